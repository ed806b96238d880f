"""JointPlan: what a budget buys for several outputs that are protected together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from privgp.plan.fingerprint import fingerprint
from privgp.plan.parameters import MadeFor
from privgp.plan.plan import NOTICE, Plan, check_first
from privgp.plan.several.arguments import check_output_shares, factors
from privgp.plan.several.strategy import JointSums
from privgp.plan.strategy import NOT_TOGETHER
from privgp.privacy.noise import GAUSSIAN, LAPLACE, LAWS, SAME_NOISE, Noise, noise_for
from privgp.privacy.sensitivity import WHOLE
from privgp.types import Array, Integers, Pair, Positive


@dataclass(frozen=True)
class Compared:
    """What the other noise distribution would have been: its ``law``, and its expected error as a
    multiple of the plan's, the geometric mean over the outputs."""

    law: Annotated[str, tuple(LAWS)]
    error: Positive


@dataclass(frozen=True)
class JointPlan:
    """A measurement of several outputs that is ready to be made, with the accuracy it will have.

    Made by ``PrivateGPRegressor.plan(X)`` where ``y_bounds`` has one pair per output. Everything in
    it is public.

    ``parts``: the plan of every output, with the noise that its numbers will have
    ``factors``: what the numbers of every output are multiplied by before the noise is added
    ``noise``: of all numbers together, which hides all outputs of one person
    ``compared``: the other noise distribution, where both were compared
    ``output_names``: of the outputs, if known
    ``fingerprint``, ``made_for``: as in ``Plan``
    """

    unbiased: ClassVar[None] = None
    epsilon: float
    delta: float
    parts: tuple[Plan, ...] = field(repr=False)
    factors: tuple[Positive, ...]
    noise: Noise = field(repr=False)
    compared: Compared | None = None
    output_names: tuple[str, ...] | None = None
    fingerprint: str = field(repr=False, default="")
    made_for: MadeFor | None = field(repr=False, default=None)

    @classmethod
    def of(
        cls,
        budget: tuple[float, float],
        parts: Sequence[Plan],
        shares: Sequence[float],
        compared: Compared | None,
    ) -> Self:
        """The plan of these parts together, with the least noise that hides one person."""
        own = factors(shares, parts[0].strategy.law)
        strategy = JointSums(tuple(part.strategy for part in parts), own)
        noise = joint_noise(strategy, *budget)
        shared = zip(parts, strategy.noises(noise), strict=True)
        planned = tuple(replace(part, noise=each, rival=None) for part, each in shared)
        return cls(*budget, planned, own, noise, compared)

    @cached_property
    def strategy(self) -> JointSums:
        return JointSums(tuple(part.strategy for part in self.parts), self.factors)

    @property
    def x_bounds(self) -> tuple[Pair, ...] | None:
        """The declared domain of private inputs; None where inputs are public."""
        return self.parts[0].x_bounds

    @property
    def unit(self) -> float | None:
        """The unit of rates of the first outcome that is a count; None where none is."""
        return next((part.unit for part in self.parts if part.unit is not None), None)

    @property
    def max_change(self) -> None:
        """What one person changes is said of every outcome: see ``max_changes``."""
        return None

    @property
    def max_changes(self) -> tuple[float | None, ...]:
        """How much one person changes each outcome; None: from one bound to the other."""
        asked = () if self.made_for is None else self.made_for.parameters.parts()
        declared = [own.max_change for own in asked] or [part.max_change for part in self.parts]
        pairs = zip(declared, self.strategy.change, strict=True)
        return tuple(None if change >= WHOLE else own for own, change in pairs)

    @property
    def y_bounds(self) -> tuple[Pair, ...]:
        """One (low, high) per output."""
        return tuple(part.y_bounds for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the outputs, made up where they are not known."""
        return self.output_names or default_names(len(self.parts))

    @property
    def inputs(self) -> Array | None:
        """The distinct inputs; None where inputs are private."""
        found: Array | None = self.parts[0].inputs
        return found

    @property
    def targets(self) -> Array:
        return self.parts[0].targets

    @property
    def objective(self) -> str:
        return self.parts[0].objective

    @property
    def reconstruct(self) -> str:
        return self.parts[0].reconstruct

    @property
    def rows(self) -> int:
        return self.strategy.rows

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan, for the certificate of its release; the noise follows from the rest,
        and the names of the outputs may become known later."""
        left_out = {"noise", "parts", "output_names"}
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left_out}
        return fingerprint(self.strategy.law, own, [part.hash for part in self.parts])

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a .plan file, for approval and ``privgp.load_plan``; warns that it holds inputs."""
        from privgp.plan.file import save_plan

        check_first(self)
        save_plan(self, path, overwrite=overwrite)
        if self.inputs is not None:
            warnings.warn(NOTICE, UserWarning, stacklevel=2)

    def with_noise_for(self, epsilon: float, delta: float) -> Self:
        """The plan with the noise that its strategy needs; refused if it holds other noise."""
        self.strategy.check()
        needed = joint_noise(self.strategy, epsilon, delta)
        held = (self.noise, *(part.noise for part in self.parts))
        wanted = (needed, *self.strategy.noises(needed))
        for one, other in zip(held, wanted, strict=True):
            same = (one.law, one.size) == (other.law, other.size)
            if not same or not abs(one.std - other.std) <= SAME_NOISE * other.std:
                raise ValueError(
                    "plan holds other noise than its budget asks for. Nothing was spent."
                )
        if held == wanted:
            return self
        shared = zip(self.parts, wanted[1:], strict=True)
        parts = tuple(replace(part, noise=noise) for part, noise in shared)
        return replace(self, noise=needed, parts=parts)

    def check_parts(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        made, names, count = self.made_for, self.output_names, len(self.parts)
        if made is None or count < 1:
            raise ValueError(NOT_TOGETHER)
        asked = made.parameters
        self.strategy.check()
        fits = (
            (self.epsilon, self.delta, self.y_bounds)
            == (asked.epsilon, asked.delta, asked.y_bounds)
            and (names is None or len(names) == count)
            and np.allclose(
                self.factors, factors(check_output_shares(asked.shares, count), self.strategy.law)
            )
        )
        if not fits:
            raise ValueError(NOT_TOGETHER)
        first = self.parts[0]
        for part, own in zip(self.parts, asked.parts(), strict=True):
            alike = part.targets.shape == first.targets.shape
            if not alike or not np.array_equal(part.inputs, first.inputs):
                raise ValueError(NOT_TOGETHER)
            replace(part, made_for=replace(made, parameters=own)).check_parts()

    @property
    def is_pure(self) -> bool:
        """Whether the release will be epsilon-private with delta = 0, whatever delta is offered."""
        return self.noise.pure

    @property
    def promised_delta(self) -> float:
        """The delta of the release: what was offered, or 0 where the noise needs none."""
        return 0.0 if self.is_pure else self.delta

    @property
    def measured_noise_std(self) -> Array:
        """Std of the noise on every measured sum, of every output in its own units, (outputs,)."""
        return self._of_each("measured_noise_std")

    @cached_property
    def noise_std(self) -> Array:
        """Std of the privacy noise alone in the mean at every target, (targets, outputs)."""
        return np.column_stack([part.noise_std for part in self.parts])

    def expected_std(self, X_new: Array, prior_range: float | None = None) -> Array:
        """As ``Plan.expected_std``, with one more axis, of the outputs, at the end."""
        return np.stack([part.expected_std(X_new, prior_range) for part in self.parts], axis=-1)

    def expected_error(self, epsilon: float | None = None) -> Array:
        """Expected root-mean-square error at the targets, of every output, (outputs,).

        At another ``epsilon``: of a plan made again for it, see ``at``.
        """
        if epsilon is None or epsilon == self.epsilon:
            return np.array([part.expected_error() for part in self.parts])
        if epsilon not in self._errors:
            self._errors[epsilon] = self.at(epsilon).expected_error()
        return self._errors[epsilon]

    @cached_property
    def _errors(self) -> dict[float, Array]:
        """The expected errors at other budgets that were asked for, by epsilon."""
        return {}

    @property
    def error_unit(self) -> str:
        """What errors are counted in, in words; of every output where they differ."""
        made = self.made_for
        asked = [made] * len(self.parts)
        if made is not None:
            asked = [replace(made, parameters=own) for own in made.parameters.parts()]
        known = zip(self.parts, asked, strict=True)
        units = [replace(part, made_for=own).error_unit for part, own in known]
        return units[0] if len({*units}) == 1 else ", ".join(units)

    @property
    def starting_error(self) -> Array:
        """The same under the starting hyperparameters alone."""
        return self._of_each("starting_error")

    def error_range(self) -> tuple[Array, Array]:
        """The ends of 90% of the errors over the prior, each (outputs,); see ``Plan.error_range``."""
        low, high = np.transpose([part.error_range() for part in self.parts])
        return low, high

    def error_without_privacy(self) -> Array:
        """The expected errors of predictions from the outputs themselves, (outputs,)."""
        return np.array([part.error_without_privacy() for part in self.parts])

    @property
    def can_plan_again(self) -> bool:
        """Whether the plan holds what it was made for, so that ``at`` can plan again."""
        return self.made_for is not None and self.earlier is None

    @property
    def earlier(self) -> Any:
        """What was measured of the first outcome before, if anything."""
        return self.parts[0].earlier

    @property
    def is_quick(self) -> bool:
        """Whether finding the gap takes no noticeable time."""
        return all(part.is_quick for part in self.parts)

    @cached_property
    def gap(self) -> float:
        """The largest of the outputs' certified distances from the least possible error, given their
        share of the noise; infinite where nothing is certified."""
        return max(part.gap for part in self.parts)

    def at(self, epsilon: float) -> JointPlan:
        """The plan for the same inputs, groups and parameters at another epsilon."""
        from privgp.plan.several.build import plan_again

        return plan_again(self, epsilon)

    def inputs_and_people(self) -> tuple[Array, Integers | None]:
        """The public input of every row, and whose rows they are; of a tally, of its cells."""
        strategy: Any = self.strategy.parts[0]
        if strategy.tally is not None:
            return strategy.tally.coordinates, strategy.people
        return np.ascontiguousarray(np.asarray(self.inputs)[strategy.index]), strategy.people

    def describe(self) -> str:
        """A few sentences for people."""
        return (
            f"{self.summary()}\nNothing has been spent: a plan needs {self.parts[0].kind.unneeded}."
        )

    def summary(self) -> str:
        """What remains true after the release."""
        pure = f" ({self.noise.describe()} needs none)" if self.is_pure else ""
        rows, count = self.parts[0].kind.describe_rows(self.parts[0]), len(self.parts)
        together = f", for {count} outputs of one person together" if count > 1 else ""
        lines = [
            f"Budget: epsilon = {self.epsilon:g}, delta = {self.promised_delta:g}{pure}{together}.",
            f"{rows}; {self.strategy.size} numbers are measured.",
            self.choice(),
            *map(self._about, range(len(self.parts))),
        ]
        return "\n".join(lines)

    def choice(self) -> str:
        """Which noise distribution it is, what several outputs cost with it, and why it was taken."""
        times = [1.0 / a for a in self.factors]
        each = (
            f"{times[0]:.3g}" if np.ptp(times) < 1e-9 else " and ".join(f"{t:.3g}" for t in times)
        )
        kind = self.noise.describe()
        text = kind if len(times) == 1 else f"{kind} {each} times as large as for one output alone"
        if self.compared is None:
            return f"{text}; no other noise was compared."
        other, worse = LAWS[self.compared.law], 100.0 * (self.compared.error - 1.0)
        why = {
            GAUSSIAN: "Gaussian noise grows with the root of the number of outputs only",
            LAPLACE: "Laplace noise grows with the number of outputs, but starts smaller",
        }[self.noise.law]
        expected = f"would have {worse:.0f}% more error" if worse >= 1 else "is hardly worse"
        if len(times) == 1:
            return f"{text}; {other.law.capitalize()} noise {expected}."
        return f"{text}; {other.law.capitalize()} noise {expected}: {why}."

    def plot(self, ax: Any = None) -> Any:
        """The errors to expect against epsilon, a panel for every output."""
        from privgp.plan.several.picture import plot_joint_plan

        return plot_joint_plan(self, ax)

    def _about(self, place: int) -> str:
        part, asked = self.parts[place], None
        if self.made_for is not None:
            asked = self.made_for.parameters.parts()[place]
        low, high = part.y_bounds
        within = f"in [{low:g}, {high:g}]" if asked is None else asked.within()
        spread = ""
        if part.learns:
            least, most = part.error_range()
            spread = f" ({least:.4g} to {most:.4g} over 90% of the prior)"
        return (
            f"{self.names[place]}, {within}: privacy noise at the targets "
            f"{part.weighted(part.noise_std):.4g}, expected error {part.expected_error():.4g}{spread}."
        )

    def _of_each(self, name: str) -> Array:
        return np.array([getattr(part, name) for part in self.parts])


def joint_noise(strategy: JointSums, epsilon: float, delta: float) -> Noise:
    """The least noise that hides all outputs of one person."""
    size = strategy.size, strategy.sensitivity(), strategy.float_error()
    return noise_for(strategy.law, epsilon, delta, *size)


def default_names(count: int) -> tuple[str, ...]:
    return tuple(f"output {place + 1}" for place in range(count))
