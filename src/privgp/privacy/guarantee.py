"""What was guaranteed: frozen, comparable, composable."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from fractions import Fraction
from html import escape
from itertools import product
from typing import Any, Self

from scipy.optimize import brentq
from scipy.special import expit

from privgp.privacy.budget import check_budget, gaussian_delta, gaussian_multiplier, least_epsilon
from privgp.privacy.protected import LABELLED_RECORDS, RECORDS, SAME_RECORDS, VALIDATION, Protected
from privgp.privacy.rdp import Curve, GaussianCurve, PathCurve, delta_for
from privgp.types import NotNegative, Positive, Share, added_field

MOST_COINS = 10  # beyond, the smallest are taken as one step of their sum, which guarantees no less


def total_epsilon(pure_epsilons: Sequence[float]) -> float:
    """The sum, rounded up: what pure steps guarantee together with delta = 0."""
    total = math.fsum(pure_epsilons)
    if Fraction(total) < sum(map(Fraction, pure_epsilons)):
        return math.nextafter(total, math.inf)
    return total


def mix_delta(epsilon: float, mu: float, pure_epsilons: Sequence[float]) -> float:
    """delta(epsilon), at any real epsilon, of pure steps and Gaussian ones together.

    Parameters
    ----------
    epsilon
        a real number, which may be negative.
    mu
        The Gaussian-DP parameter of all Gaussian steps; 0 if there are none.
    pure_epsilons
        One per pure step; beyond 10 the smallest are added up, which guarantees no less.

    """
    if mu == 0 and epsilon >= total_epsilon(pure_epsilons):
        return 0.0
    coins = sorted(pure_epsilons, reverse=True)
    if len(coins) > MOST_COINS:
        coins = [*coins[: MOST_COINS - 1], math.fsum(coins[MOST_COINS - 1 :])]
    whole, multiplier = 0.0, 1.0 / mu if mu > 0 else math.inf
    for signs in product((1.0, -1.0), repeat=len(coins)):
        losses = [sign * coin for sign, coin in zip(signs, coins, strict=True)]
        probability = math.prod(float(expit(loss)) for loss in losses)
        whole += probability * gaussian_delta(epsilon - math.fsum(losses), multiplier)
    return min(1.0, whole * (1.0 + 1e-12))


def epsilon_left(epsilon: float, delta: float, spent: float) -> float:
    """The largest e for which an (e, delta)-private Gaussian mechanism fits beside a pure step.

    Parameters
    ----------
    epsilon, delta
        The budget of both together.
    spent
        The epsilon of the pure step.

    Returns
    -------
    float
        Never less than ``epsilon - spent``, which adding up allows.

    """
    least = epsilon - spent

    def excess(share: float) -> float:
        multiplier = gaussian_multiplier(share, delta * (1.0 - 1e-6))
        return mix_delta(epsilon * (1.0 - 1e-9), 1.0 / multiplier, [spent]) - delta * (1.0 - 1e-5)

    if excess(least) >= 0 or excess(epsilon) <= 0:
        return least
    root = float(brentq(excess, least, epsilon, xtol=1e-9 * epsilon)) * (1.0 - 1e-8)
    return max(least, root)


STAMP_STYLE = "color:#D55E00;font-weight:bold"


def facts_table(title: str, facts: Mapping[str, object], *, simulation: bool = False) -> str:
    """A table of facts with a title, stamped where the noise protects nobody.

    Parameters
    ----------
    title : str
        Above the table.
    facts : mapping
        What is stated, by its name.
    simulation : bool
        Whether the noise was simulated.

    """
    stamp = f'<div style="{STAMP_STYLE}">SIMULATION, not for release</div>' if simulation else ""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{_lines(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div>{stamp}<b>{escape(title)}</b><table><tbody>{rows}</tbody></table></div>"


def _lines(value: object) -> str:
    return "<br>".join(escape(line) for line in str(value).splitlines())


SIMULATION = "simulation, not for release"
SIMULATED_SAMPLER = f"ordinary floating-point noise: {SIMULATION}"
EPSILON_SLACK = 2.0**-40
# For draws that are made when they are asked for: an exact sampler takes longer for larger noise.
NOT_TIMED = (
    "nobody measures how long a new answer takes, as its noise is drawn while it is waited for"
)


@dataclass(frozen=True)
class Event:
    """The cost of one step, in the terms in which steps compose; see ``Guarantee``.

    Attributes
    ----------
    noise_multipliers : noise std over sensitivity of every Gaussian mechanism
    delta_slack : the lattice's part of delta, docs/proofs/sample.md
    path_curves : Renyi divergences of posterior sample paths, docs/proofs/rdp.md
    pure_epsilons : epsilon of every step that needs no delta: Laplace noise, a private choice

    """

    noise_multipliers: tuple[Positive, ...] = ()
    delta_slack: Share = 0.0
    path_curves: tuple[PathCurve, ...] = ()
    pure_epsilons: tuple[Positive, ...] = ()

    @property
    def mu(self) -> float:
        """The Gaussian-DP parameter of all Gaussian mechanisms: the root of the sum of 1/c^2."""
        return math.hypot(*(1.0 / c for c in self.noise_multipliers))

    @property
    def is_pure(self) -> bool:
        """Whether every step is epsilon-private on its own."""
        mixed = self.noise_multipliers or self.path_curves or self.delta_slack
        return bool(self.pure_epsilons) and not mixed

    def delta_at(self, epsilon: float) -> float:
        """The delta that holds at this epsilon, lattice terms included.

        Gaussian and pure steps together follow docs/proofs/select.md; as soon as sample paths
        are among them, Renyi divergences of a common order are added and converted.

        Parameters
        ----------
        epsilon
            Not negative.

        """
        drawn = len(self.noise_multipliers) + len(self.path_curves)  # each on its own lattice
        epsilon -= EPSILON_SLACK * drawn * max(epsilon, 1.0)
        if self.path_curves:  # divergences of one order add; pure steps shift the others' curve
            curves: list[Curve] = [*self.path_curves, GaussianCurve(self.mu)]
            reduced = epsilon - math.fsum(self.pure_epsilons)
            spent = delta_for(curves, reduced) if reduced >= 0 else 1.0
        else:
            spent = mix_delta(epsilon, self.mu, self.pure_epsilons)
        return min(1.0, spent + self.delta_slack)


@dataclass(frozen=True)
class Guarantee:
    """An (epsilon, delta) guarantee with its subject. Every field is public.

    Attributes
    ----------
    epsilon, delta : the guarantee; delta is 0 if every step is pure
    unit, neighbours : the unit of protection, see ``Protected``
    assumptions : further conditions, one clause each, as in "Assumes ..."
    mechanism : the mechanism in words
    sampler : how the noise was drawn; simulations are named here
    noise_multipliers : one per Gaussian mechanism, noise std over sensitivity
    delta_slack : the lattice's part of delta (docs/proofs/sample.md)
    path_curves : Renyi divergences of posterior paths (docs/proofs/rdp.md)
    pure_epsilons : one per step that is epsilon-private without delta, such as Laplace noise or
        a choice. With nothing else the guarantee is pure: delta is 0.
    others : the spending of people in other batches. Each person is in one batch, and the
        guarantee is that of the batch where it is weakest (docs/proofs/updates.md).

    """

    epsilon: NotNegative
    delta: Share
    unit: str
    neighbours: str
    assumptions: tuple[str, ...]
    mechanism: str
    sampler: str
    noise_multipliers: tuple[Positive, ...]
    delta_slack: Share = 0.0
    path_curves: tuple[PathCurve, ...] = ()
    pure_epsilons: tuple[Positive, ...] = ()
    others: tuple[Event, ...] = added_field(())

    def check(self) -> None:
        """Refuse what no mechanism guarantees, as only a file can have it.

        Raises
        ------
        ValueError
            No mechanism is named, delta is 0 though a step is not pure, or the steps spend more
            than (epsilon, delta) by more than a relative 1e-9.

        """
        if not self._names_mechanism:
            raise ValueError("the guarantee names no mechanism.")
        if self.delta == 0 and not self.is_pure:
            raise ValueError("delta is out of range.")
        rounded = self.epsilon + 1e-9 * max(self.epsilon, 1.0)
        if self.delta_at(rounded) > self.delta * (1.0 + 1e-9):
            raise ValueError("the steps spend more than is guaranteed.")

    @property
    def events(self) -> tuple[Event, ...]:
        """The cost for each person: one of these, by batch; the first is in the fields themselves."""
        own = Event(self.noise_multipliers, self.delta_slack, self.path_curves, self.pure_epsilons)
        return (own, *self.others)

    @property
    def mu(self) -> float:
        """The Gaussian-DP parameter of all Gaussian mechanisms, of the batch where it is largest."""
        return max(event.mu for event in self.events)

    @property
    def _names_mechanism(self) -> bool:
        """Whether more is known than (epsilon, delta) itself, of every batch."""
        return all(e.noise_multipliers or e.path_curves or e.pure_epsilons for e in self.events)

    @property
    def is_pure(self) -> bool:
        """Whether every step is epsilon-private on its own, so that the guarantee holds with delta = 0."""
        return all(event.is_pure for event in self.events)

    @property
    def is_simulation(self) -> bool:
        """Whether the noise came from an ordinary generator, so that nothing may be published."""
        return SIMULATION in self.sampler

    def delta_at(self, epsilon: float) -> float:
        """The delta that holds at this epsilon, lattice terms included.

        Parameters
        ----------
        epsilon
            Finite and not negative.

        Returns
        -------
        float
            The largest over all batches. Without a named mechanism only (epsilon, delta) itself
            is known: 1 below that epsilon.

        """
        if not math.isfinite(epsilon) or epsilon < 0:
            raise ValueError(f"epsilon must be finite and not negative, got {epsilon}.")
        if not self._names_mechanism:
            return self.delta if epsilon >= self.epsilon else 1.0
        return max(event.delta_at(epsilon) for event in self.events)

    def epsilon_at(self, delta: float) -> float:
        """The least epsilon, rounded up, that holds at this delta; infinite if none does.

        Parameters
        ----------
        delta
            0 <= delta < 1; at 0 only pure steps have a finite epsilon.

        Returns
        -------
        float

        """
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {delta}.")
        if delta == 0:
            if self.is_pure:
                return max(total_epsilon(event.pure_epsilons) for event in self.events)
            return math.inf if self._names_mechanism or self.delta > 0 else self.epsilon
        return least_epsilon(self.delta_at, delta)

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        facts = {
            "epsilon": f"{self.epsilon:g}",
            "delta": f"{self.delta:g}",
            "protects": self.unit,
            "neighbours": self.neighbours,
            "mechanism": self.mechanism,
            "assumes": "\n".join(self.assumptions),
        }
        return facts_table("Guarantee", facts, simulation=self.is_simulation)

    def describe(self) -> str:
        """The guarantee in a few lines: what it protects, neighbours, mechanism and assumptions."""
        stamp = f"{SIMULATION.upper()}: " if self.is_simulation else ""
        pure = "" if self.delta else " (pure)"
        lines = [
            f"{stamp}({self.epsilon:g}, {self.delta:g})-differential privacy{pure}, protecting "
            f"{self.unit}.",
            f"Neighbours: {self.neighbours}.",
            f"Mechanism: {self.mechanism}.",
            f"Sampler: {self.sampler}.",
        ]
        return "\n".join(lines + [f"Assumes {a}." for a in self.assumptions])

    def to_json(self) -> str:
        """All fields and ``mu`` as JSON; ``from_json`` reads it."""
        return json.dumps({**asdict(self), "mu": self.mu}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The guarantee of a JSON text; ``mu`` is ignored, absent newer fields are empty."""
        fields = json.loads(text)
        fields.pop("mu", None)
        fields["path_curves"] = tuple(PathCurve(**c) for c in fields.get("path_curves", ()))
        for name in ("assumptions", "noise_multipliers", "pure_epsilons"):
            fields[name] = tuple(fields.get(name, ()))
        fields["others"] = tuple(_event(other) for other in fields.get("others", ()))
        return cls(**fields)


def _event(fields: dict[str, Any]) -> Event:
    """From JSON."""
    curves = tuple(PathCurve(**c) for c in fields["path_curves"])
    multipliers, epsilons = fields["noise_multipliers"], fields["pure_epsilons"]
    return Event(tuple(multipliers), fields["delta_slack"], curves, tuple(epsilons))


def promise(
    protected: Protected,
    events: Sequence[Event],
    budget: tuple[float, float],
    *,
    assumptions: Sequence[str],
    mechanism: str,
    sampler: str,
    simulated: bool,
) -> Guarantee:
    """The guarantee of these steps together: the one place that builds a guarantee.

    Parameters
    ----------
    protected
        Whom it protects and who the neighbours are.
    events
        The spending of every step. With none at all only the budget is known, as with a
        guarantee under an assumption, and it cannot be composed.
    budget
        (epsilon, delta) that the steps were calibrated to; if all steps are pure, delta is 0,
        whatever was offered.
    assumptions
        Further conditions, as clauses.
    mechanism, sampler
        In words.
    simulated
        The noise does not protect; the sampler then states this.

    """
    (epsilon, delta), spent = budget, _join(events)
    return Guarantee(
        epsilon=float(epsilon),
        delta=0.0 if spent.is_pure else float(delta),
        assumptions=tuple(assumptions),
        mechanism=mechanism,
        sampler=SIMULATED_SAMPLER if simulated else sampler,
        **vars(protected),
        **vars(spent),
    )


def _of_alternatives(events: Sequence[Event]) -> dict[str, Any]:
    """The fields of a guarantee under which each person spends one of these."""
    first, *others = dict.fromkeys(events)
    return {**vars(first), "others": tuple(others)}


def in_parallel(guarantees: Sequence[Guarantee]) -> Guarantee:
    """The guarantee of several releases of different people's records.

    Each person is in one of them, and the guarantee is the weakest (docs/proofs/updates.md).

    Raises
    ------
    ValueError
        They protect different units, or one names no mechanism.

    """
    if len({(each.unit, each.neighbours) for each in guarantees}) > 1:
        raise ValueError("these guarantees protect different things.")
    if not all(each._names_mechanism for each in guarantees):
        raise ValueError("a guarantee that names no mechanism stands for nobody else's.")
    weakest = max(guarantees, key=lambda each: (each.delta, each.epsilon))
    rest = [event for each in guarantees for event in each.events]
    return replace(
        weakest,
        epsilon=max(each.epsilon for each in guarantees),
        assumptions=tuple(dict.fromkeys(a for each in guarantees for a in each.assumptions)),
        sampler=" and ".join(dict.fromkeys(each.sampler for each in guarantees)),
        **_of_alternatives([*weakest.events, *rest]),
    )


def _join(parts: Sequence[Event]) -> Event:
    """Several steps as one."""
    return Event(
        noise_multipliers=tuple(c for part in parts for c in part.noise_multipliers),
        delta_slack=math.fsum(part.delta_slack for part in parts),
        path_curves=tuple(curve for part in parts for curve in part.path_curves),
        pure_epsilons=tuple(e for part in parts for e in part.pure_epsilons),
    )


def _of_same_records(parts: Sequence[Guarantee]) -> Sequence[Guarantee]:
    """Choices by validation records beside releases of records: guarantees of the same records.

    Neighbours of a choice differ in one record in any way, so its guarantee holds for the neighbours
    of a release, which differ in one record within bounds.
    """
    units = {(part.unit, part.neighbours) for part in parts}
    records = [each for each in (RECORDS, LABELLED_RECORDS) if astuple(each) in units]
    if units != {astuple(VALIDATION), *map(astuple, records)} or len(records) != 1:
        return parts
    unit, neighbours = astuple(records[0])
    return tuple(
        part
        if part.unit == unit
        else replace(
            part,
            unit=unit,
            neighbours=neighbours,
            assumptions=(*part.assumptions, SAME_RECORDS),
        )
        for part in parts
    )


def compose(guarantees: Iterable[Guarantee], delta: float) -> Guarantee:
    """The guarantee of several releases of the same records together, at this delta.

    Parameters
    ----------
    guarantees
        At least one; all protect the same unit and name their mechanisms. Choices by validation
        records go with releases of these records.
    delta
        0 <= delta < 1; with 0 all steps must be pure, and epsilons add up.

    Returns
    -------
    Guarantee
        With the least epsilon that holds at ``delta``, and the assumptions of all.

    Raises
    ------
    TypeError, ValueError
        Something else than guarantees, none, or ones that cannot be composed.

    Notes
    -----
    Gaussian mechanisms compose exactly: the multipliers add as ``1/c^2``, also when a later
    question was chosen by looking at an earlier release, if the total was fixed
    beforehand. With sample paths, Renyi divergences of a common order add. Pure steps compose
    with them as coins (docs/proofs/select.md).

    """
    parts: Sequence[Guarantee] = tuple(guarantees)
    if not parts:
        raise ValueError("compose needs at least one guarantee.")
    if any(not isinstance(part, Guarantee) for part in parts):
        raise TypeError("compose takes Guarantee objects, such as model.guarantee_.")
    parts = _of_same_records(parts)
    check_budget(1.0, delta, pure=True)
    if not all(part._names_mechanism for part in parts):
        raise ValueError("a guarantee that names no mechanism cannot be composed.")
    if len({(part.unit, part.neighbours) for part in parts}) > 1:
        raise ValueError(
            "these guarantees protect different things "
            f"({'; '.join(sorted({part.unit for part in parts}))}): compose them separately."
        )
    whole = Guarantee(
        epsilon=math.inf,
        delta=delta,
        unit=parts[0].unit,
        neighbours=parts[0].neighbours,
        assumptions=tuple(dict.fromkeys(a for part in parts for a in part.assumptions)),
        mechanism=" and ".join(dict.fromkeys(part.mechanism for part in parts)),
        sampler=" and ".join(dict.fromkeys(part.sampler for part in parts)),
        **_of_alternatives([_join(each) for each in product(*(part.events for part in parts))]),
    )
    if delta == 0 and not whole.is_pure:
        raise ValueError("delta must be positive here, got 0: there is a step that is not pure.")
    epsilon = whole.epsilon_at(delta)
    if epsilon == math.inf:
        raise ValueError(f"no finite epsilon holds at delta={delta}: give a larger delta.")
    return replace(whole, epsilon=epsilon)
