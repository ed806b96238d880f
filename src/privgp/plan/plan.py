"""Plan: what a budget buys, before any private value is read."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from privgp.gp.arithmetic import one_thread, threads_for
from privgp.gp.kernels.registry import KERNELS
from privgp.gp.measurement import Measurement
from privgp.plan import accuracy, wording
from privgp.plan.bins.build import PrivateInputs
from privgp.plan.build import Budget, PublicInputs, Question
from privgp.plan.choice import AnyStrategy
from privgp.plan.inputs.tally import TALLIES
from privgp.plan.parameters import MadeFor
from privgp.plan.part import Part, check_part, hash_part, table_rows, unit_of
from privgp.plan.strategy import NOT_TOGETHER, noise_of
from privgp.plan.together import Compared, JointSums, PlannedRows, factors, plan_parts
from privgp.privacy.budget import advice, check_budget
from privgp.privacy.noise import SAME_NOISE, Noise
from privgp.privacy.sensitivity import WHOLE
from privgp.question.rules import check_output_shares
from privgp.storage.archive import (
    PLAN,
    DamagedFile,
    check_target,
    damage_of,
    dump,
    pack,
    parse,
    read,
    unpack,
    write,
)
from privgp.storage.codec import Codec, fingerprint
from privgp.types import Array, Positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTICE = (
    "The file contains the inputs in the rows of X, or inducing inputs, which count as public. "
    "Publish it only if no column of X is private or was computed from a private one."
)
OTHER_NOISE = "plan holds other noise than its budget asks for. Nothing was spent."
JSON = "plan.json"


def _first(each: Sequence[object]) -> Any:
    return each[0]


# What a plan of several outcomes makes of what its parts have; a plan of one has what its part has.
OF_SEVERAL: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(("inputs", "targets", "x_bounds", "objective", "reconstruct"), _first),
    **dict.fromkeys(("unbiased", "earlier", "rows", "residuals"), _first),
    **dict.fromkeys(("measured_noise_std", "starting_error"), np.array),
    "noise_std": np.column_stack,
    "y_bounds": tuple,
    "is_quick": all,
    "gap": max,
    "unit": lambda each: next((unit for unit in each if unit is not None), None),
    "max_change": lambda each: None,  # said of every outcome: see max_changes
}


@dataclass(frozen=True)
class Plan:
    """A measurement that is ready to be made, with the accuracy it will have.

    Made by ``plan(X)`` of a model. Everything in it is public. With one outcome, a plan also has all
    that its part has, such as ``targets`` and ``functionals``, and errors are numbers. With several,
    errors are arrays with one number per outcome.

    Attributes
    ----------
    epsilon, delta : float
        The budget of all outcomes of one person together.
    parts : tuple of Part
        One per outcome, with the noise that its numbers will have.
    factors : tuple of float
        What the numbers of every outcome are multiplied by before the noise is added.
    noise : Noise
        Of all numbers together.
    compared : Compared, optional
        The other noise distribution, where both were compared for several outcomes.
    output_names : tuple of str, optional
        The names of the outcomes, if known.
    fingerprint : str
        Of what it was made for, which ``fit`` compares; empty if not made by a model.
    made_for : MadeFor, optional
        What it was asked for; None if not made by a model.

    """

    epsilon: float
    delta: float
    parts: tuple[Part, ...] = field(repr=False)
    factors: tuple[Positive, ...]
    noise: Noise = field(repr=False)
    compared: Compared | None = None
    output_names: tuple[str, ...] | None = None
    fingerprint: str = field(repr=False, default="")
    made_for: MadeFor | None = field(repr=False, default=None)

    def __getattr__(self, name: str) -> Any:
        """What the parts and their inputs have: see ``OF_SEVERAL``."""
        parts = () if name.startswith("_") or name == "parts" else self.parts
        if len(parts) == 1:
            return getattr(parts[0] if hasattr(parts[0], name) else parts[0].kind, name)
        if not parts or name not in OF_SEVERAL:
            raise AttributeError(f"a plan of {len(parts)} outcomes has no {name!r}: see its parts.")
        return OF_SEVERAL[name]([getattr(part, name) for part in parts])

    @cached_property
    def strategy(self) -> AnyStrategy | JointSums:
        """What is measured of all outcomes; of one, what its part measures."""
        if len(self.parts) == 1:
            return self.parts[0].strategy
        return JointSums(tuple(part.strategy for part in self.parts), self.factors)

    @property
    def noises(self) -> tuple[Noise, ...]:
        """The noise of every measurement that will be made: of one, or of two stages."""
        return self.parts[0].noises if len(self.parts) == 1 else (self.noise,)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the outputs, generated where they are not known."""
        return self.output_names or default_names(len(self.parts))

    @property
    def max_changes(self) -> tuple[float | None, ...]:
        """How much one person changes each outcome; None: from one bound to the other."""
        declared = [
            part.max_change if part.asked is None else part.asked.max_change for part in self.parts
        ]
        whole = [part.strategy.change >= WHOLE for part in self.parts]
        return tuple(
            None if all_of_it else own for own, all_of_it in zip(declared, whole, strict=True)
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan, for the certificate of its release; the noise follows from the rest,
        and the names of outputs may become known later."""
        made = None if self.made_for is None else replace(self.made_for, output=None)
        own: dict[str, object] = {"fingerprint": self.fingerprint, "made_for": made}
        if len(self.parts) == 1:
            return hash_part(self.parts[0], **own)
        own |= {"epsilon": self.epsilon, "delta": self.delta}
        own |= {"factors": self.factors, "compared": self.compared}
        each = [hash_part(part, fingerprint="", made_for=None) for part in self.parts]
        return fingerprint(self.strategy.law, own, each)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a ``.plan`` file, for approval and for ``privgp.load_plan``. Warns if it holds inputs.

        Parameters
        ----------
        path : str or path
            A new file whose name ends in ``.plan``.
        overwrite : bool, default False
            Replace a file that exists.

        """
        if any(part.earlier is not None for part in self.parts):
            raise ValueError("a plan that builds on an earlier release cannot be saved.")
        save_plan(self, path, overwrite=overwrite)
        if self.made_for is not None and self.made_for.parameters.holds_inputs:
            warnings.warn(NOTICE, UserWarning, stacklevel=2)

    def with_question(self, made_for: MadeFor, fingerprint: str = "") -> Self:
        """The plan with ``made_for``, what was asked, and the ``fingerprint`` of its rows."""
        pairs = zip(self.parts, made_for.parameters.parts(), strict=True)
        parts = tuple(replace(part, asked=own) for part, own in pairs)
        return replace(self, parts=parts, made_for=made_for, fingerprint=fingerprint)

    def with_noise_for(self, epsilon: float, delta: float) -> Self:
        """The plan with the noise of its strategy at (``epsilon``, ``delta``); refused if it holds other noise."""
        self.strategy.check()
        noise = noise_of(self.strategy, epsilon, delta)
        held = (self.noise, *(part.noise for part in self.parts))
        needed = (noise, *_noises(self.strategy, noise))
        for one, other in zip(held, needed, strict=True):
            same = (one.law, one.size) == (other.law, other.size)
            if not same or not abs(one.std - other.std) <= SAME_NOISE * other.std:
                raise ValueError(OTHER_NOISE)
        if held == needed:
            return self
        shared = zip(self.parts, needed[1:], strict=True)
        parts = tuple(replace(part, noise=each) for part, each in shared)
        return replace(self, noise=noise, parts=parts)

    def check_parts(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        made, names, count = self.made_for, self.output_names, len(self.parts)
        if made is None or count < 1:
            raise ValueError(NOT_TOGETHER)
        asked = made.parameters
        self.strategy.check()
        declared = check_output_shares(asked.shares, count)
        fits = (
            (self.epsilon, self.delta) == (asked.epsilon, asked.delta)
            and (names is None or len(names) == count)
            and len(self.factors) == count
            and np.allclose(self.factors, factors(declared, self.strategy.law))
        )
        if not fits:
            raise ValueError(NOT_TOGETHER)
        first = self.parts[0]
        for part, own in zip(self.parts, asked.parts(), strict=True):
            alike = part.targets.shape == first.targets.shape
            alike = alike and (count == 1 or part.residuals is None)  # stages are of one outcome
            if not alike or not np.array_equal(part.inputs, first.inputs):
                raise ValueError(NOT_TOGETHER)
            check_part(part, own, made.names)

    @property
    def is_pure(self) -> bool:
        """Whether the release will be epsilon-private with delta = 0, whatever delta is offered."""
        return self.noise.pure

    @property
    def promised_delta(self) -> float:
        """The delta of the release: what was offered, or 0 where the noise needs none."""
        return 0.0 if self.is_pure else self.delta

    @property
    def budget(self) -> str:
        """What will be spent, in words."""
        pure = f" ({self.noise.describe()} needs none)" if self.is_pure else ""
        return f"epsilon = {self.epsilon:g}, delta = {self.promised_delta:g}{pure}"

    def expected_std(self, X_new: Array, prior_range: float | None = None) -> Array:
        """The expected standard deviation of the function about the release, privacy noise included.

        It is averaged over the models that were planned for: several lengthscales where hyperparameters are
        learned, else the given model.

        Parameters
        ----------
        X_new : array (points, inputs)
            Where to evaluate.
        prior_range : float, optional
            Instead, the ends of this share of the hyperparameters' prior: two rows.

        Returns
        -------
        array (points,) or (2, points)

        """
        each = (accuracy.expected_std(part, X_new, prior_range) for part in self.parts)
        return np.asarray(one_or_array(each))

    def expected_error(self, epsilon: float | None = None) -> Any:
        """Expected root-mean-square error at the targets, averaged over the models planned for.

        Parameters
        ----------
        epsilon : float, optional
            Another budget: the plan is then made again for it, see ``at``.

        Returns
        -------
        float or array (outputs,)
            In the units of the output.

        """
        errors = vars(self).setdefault("_errors", {})
        if epsilon is None or epsilon == self.epsilon:
            return one_or_array(part.expected_error() for part in self.parts)
        if epsilon not in errors:
            errors[epsilon] = self.at(epsilon).expected_error()
        return errors[epsilon]

    @property
    def error_unit(self) -> str:
        """What an error is counted in, in words; of every output where they differ."""
        units = [part.outcome.wording.error_unit for part in self.parts]
        return units[0] if len({*units}) == 1 else ", ".join(units)

    def error_range(self) -> tuple[object, object]:
        """The ends of 90% of the errors over the prior of the hyperparameters.

        Lengthscales, variances and noise vary as the learning allows, the function within the bounds.
        Where hyperparameters are not learned, both are the expected error.

        Returns
        -------
        low, high : float or array (outputs,)

        """
        low, high = zip(*(part.error_range() for part in self.parts), strict=True)
        return one_or_array(low), one_or_array(high)

    def error_without_privacy(self) -> Any:
        """The expected error of a prediction from the outputs themselves."""
        return one_or_array(accuracy.error_without_privacy(part) for part in self.parts)

    @property
    def can_plan_again(self) -> bool:
        """Whether the plan holds what it was made for, so that ``at`` can plan again."""
        first = self.parts[0]
        return self.made_for is not None and first.earlier is None

    def at(self, epsilon: float) -> Plan:
        """The plan for the same inputs, groups and parameters at another epsilon.

        Its noise distribution may differ. A plan that builds on earlier measurements does not hold them:
        then the same measurement gets the noise that this epsilon needs.

        Parameters
        ----------
        epsilon : float
            The other budget.

        Returns
        -------
        Plan

        """
        if self.can_plan_again:
            return plan_again(self, epsilon)
        (part,) = (part.measuring(part.strategy, epsilon) for part in self.parts)
        return replace(self, epsilon=epsilon, parts=(part,), noise=part.noise)

    def describe(self) -> str:
        """A few sentences for people."""
        return wording.describe(self)

    def summary(self) -> str:
        """What remains true after the release."""
        kept = vars(self)
        if "_summary" not in kept:
            kept["_summary"] = wording.summarize(self)
        return str(kept["_summary"])

    def choice(self) -> str:
        """Which noise distribution it is, what several outputs cost with it, and why it was taken."""
        return wording.describe_choice(self)

    def _repr_html_(self) -> str:
        """The budget, what is measured and the picture, for notebooks."""
        from base64 import b64encode

        from privgp.pictures.style import figure_bytes
        from privgp.privacy.guarantee import facts_table

        picture = b64encode(figure_bytes(self.plot(), ".png")).decode()
        table = facts_table("Plan", {"epsilon": f"{self.epsilon:g}", "plan": self.summary()})
        bought = {
            f"epsilon {epsilon:g}": ", ".join(f"{each:.4g}" for each in np.ravel(error))
            for epsilon, error in sorted(vars(self)["_errors"].items())
        }
        errors = facts_table(f"Expected error, {self.error_unit}", bought)
        return (
            f"{table}{errors}"
            f'<img alt="expected error" width="600" src="data:image/png;base64,{picture}">'
        )

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the expected error against epsilon, with a panel for every output.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib Figure

        """
        from privgp.plan.picture import plot_plan  # slow to import

        return plot_plan(self, ax)


def split_numbers(plan: Plan, measured: Any) -> tuple[Measurement, ...]:
    """What was measured of every outcome."""
    return (measured,) if len(plan.parts) == 1 else tuple(measured)


def one_or_array(values: Iterable[Any]) -> Any:
    """What users get of a number per outcome: of one the number, of several an array of them."""
    each = [*values]
    return each[0] if len(each) == 1 else np.stack(each, axis=-1)


def make_plan(
    rows: PlannedRows,
    questions: Sequence[Question],
    budget: Budget,
    shares: tuple[float, ...],
    earlier: Sequence[object] = (),
) -> Plan:
    """Choose the measurement of every outcome, and the noise for all of them together.

    Parameters
    ----------
    rows : PlannedRows
        What is public about the rows.
    questions : sequence of Question
        One per outcome.
    budget : Budget
        Of all outcomes of one person together.
    shares : tuple of float
        The share of every outcome.
    earlier : sequence
        What was measured of every outcome before, if anything.

    """
    # Only the other objectives have matrices so large that threads do more than wait.
    posterior = questions[0].objective == "posterior"
    with one_thread() if posterior else threads_for(rows.count):
        if len(questions) == 1:
            return plan_of_parts([rows.plan(questions[0], budget, *earlier)])
        parts, compared = plan_parts(rows, questions, budget, shares, earlier)
        return plan_of_parts(parts, shares, compared)


def plan_of_parts(
    parts: Sequence[Part], shares: Sequence[float] = (), compared: Compared | None = None
) -> Plan:
    """The plan of parts together, with the least noise that hides one person."""
    first = parts[0]
    epsilon, delta = first.epsilon, first.delta
    if len(parts) == 1:
        return Plan(epsilon, delta, (first,), (1.0,), first.noise, None)
    each = factors(shares, first.strategy.law)
    made = Plan(epsilon, delta, tuple(parts), each, first.noise, compared)
    noise = noise_of(made.strategy, epsilon, delta)
    shared = zip(parts, _noises(made.strategy, noise), strict=True)
    planned = tuple(replace(part, noise=own) for part, own in shared)
    return replace(made, parts=planned, noise=noise)


def plan_again(plan: Plan, epsilon: float) -> Plan:
    """The plan that a model with this epsilon makes of the same inputs, groups and parameters.

    It lacks a fingerprint: to carry it out, plan with a model that has this epsilon.
    """
    made = plan.made_for
    if made is None or not plan.can_plan_again:
        raise ValueError(
            "a plan that builds on earlier measurements does not hold these: plan again with a model "
            "that has this epsilon."
        )
    check_budget(epsilon, plan.delta, pure=True)
    asked = replace(made.parameters, epsilon=float(epsilon))
    questions = [
        Question.of(
            own,
            y_bounds=part.y_bounds,
            objective=part.objective,
            reconstruct=part.reconstruct,
            exposures=part.exposures,
        )
        for part, own in zip(plan.parts, asked.parts(), strict=True)
    ]
    shares = check_output_shares(asked.shares, len(questions))
    again = make_plan(rows_of(plan), questions, Budget(asked.epsilon, plan.delta), shares)
    named = replace(again, output_names=plan.output_names)
    return named.with_question(replace(made, parameters=asked))


def output_columns(plan: Plan) -> list[str]:
    """The names of the outputs, as far as a plan was told."""
    single = None if plan.made_for is None else plan.made_for.output
    return [*(plan.output_names or (() if single is None else (single,)))]


def rows_of(plan: Plan) -> PlannedRows:
    """The public facts about the rows that a plan was made for."""
    first = plan.parts[0]
    strategy: Any = first.strategy
    if first.x_bounds is not None:
        return PrivateInputs(strategy.rows, first.x_bounds, unit_of(first).several_rows)
    if strategy.tally is not None:
        return PublicInputs.of_tally(strategy.tally)
    return PublicInputs(np.ascontiguousarray(first.inputs[strategy.index]), strategy.people)


def default_names(count: int) -> tuple[str, ...]:
    """Names for outcomes without any."""
    return tuple(f"output {place + 1}" for place in range(count))


def _noises(strategy: AnyStrategy | JointSums, noise: Noise) -> tuple[Noise, ...]:
    """The noise in what every part measures, for this noise in all numbers."""
    return strategy.noises(noise) if hasattr(strategy, "noises") else (noise,)


# Files

CODEC = Codec(Plan, "plan", {**KERNELS, **TALLIES})


def save_plan(plan: Plan, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a plan that a model made. Equal plans give equal bytes."""
    if plan.made_for is None or not plan.fingerprint:
        raise ValueError("only a plan that a model made with plan(X) can be saved.")
    check_target(path, overwrite=overwrite, form=PLAN)
    write(path, pack_plan(plan), overwrite=overwrite, form=PLAN)


def pack_plan(plan: Plan) -> bytes:
    """The bytes of a plan's file, which holds what was declared once, not in every part."""
    parts = tuple(replace(part, asked=None) for part in plan.parts)
    members = CODEC.encode(replace(plan, parts=parts))
    try:
        _check_plan(CODEC.decode(members))  # a file that could not be read back is never written
    except DamagedFile as problem:
        raise ValueError(f"this plan cannot be saved: {problem}.") from None
    return pack(members, PLAN)


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Load a ``.plan`` file, for ``fit(X, y, plan=plan)``.

    ``fit`` refuses a plan that was made for other rows or parameters.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Plan

    Raises
    ------
    DamagedFile
        A ValueError: the file is damaged, or its noise or weights do not fit its budget.

    """
    with damage_of(path):
        return unpack_plan(read(path))


def unpack_plan(data: bytes) -> Plan:
    """The plan of a file's bytes."""
    return _check_plan(CODEC.decode(renew_members(unpack(data, PLAN))))


def _check_plan(plan: Plan) -> Plan:
    """The plan, if its parts belong together, with the noise that its strategy needs."""
    try:
        with np.errstate(all="ignore"):
            plan.check_parts()
            assert plan.made_for is not None
            whole = plan.with_question(plan.made_for, plan.fingerprint)
            return whole.with_noise_for(plan.epsilon, plan.delta)
    except (ValueError, TypeError, AttributeError, ArithmeticError, IndexError):
        raise DamagedFile("its parts do not make a plan") from None


STREAMED = (
    "an earlier version made it with inducing inputs, which are measured otherwise now: plan again"
)
# What stood beside the parts before one outcome was a part.
OF_PLAN = ("epsilon", "delta", "noise", "fingerprint", "made_for")


def renew_members(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """The members of a file of any version, as they are now: before, one outcome stood alone, and
    several had their own name."""
    if JSON not in members:
        raise DamagedFile("a member is missing")
    tree = parse(members[JSON])
    if isinstance(tree, dict) and any(map(_is_stream, tree.get("parts") or [tree])):
        raise DamagedFile(STREAMED)
    if not isinstance(tree, dict) or ("parts" in tree and tree.get("type") == "Plan"):
        return dict(members)
    if tree.get("type") == "JointPlan" and isinstance(tree.get("parts"), list):
        parts, whole = tree["parts"], {**tree, "type": "Plan"}
    else:
        parts = [tree]
        whole = {name: tree.get(name) for name in OF_PLAN}
        whole |= {"type": "Plan", "factors": [1.0], "compared": None, "output_names": None}
    whole["parts"] = [_as_part(part) for part in parts]
    return {**members, JSON: dump(whole)}


def _is_stream(part: object) -> bool:
    """Whether a part was measured as inducing inputs were in earlier versions."""
    strategy = part.get("strategy") if isinstance(part, dict) else None
    return isinstance(strategy, dict) and strategy.get("type") == "StreamedSums"


def _as_part(tree: object) -> Any:
    """A plan of one outcome, as it was, as a part."""
    if not isinstance(tree, dict) or tree.get("type") != "Plan":
        raise DamagedFile("its parts do not make a plan")
    left_out = ("fingerprint", "made_for")
    return {name: part for name, part in tree.items() if name not in left_out} | {"type": "Part"}


def budget_advice(plan: Plan) -> list[str]:
    """The same about the budget of a plan."""
    count = plan.strategy.people_count or table_rows(plan.parts[0])
    return advice(plan.epsilon, plan.promised_delta, count, unit_of(plan.parts[0]).noun)
