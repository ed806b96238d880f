"""What a regressor was asked for, as plans and releases remember it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.links import LABEL_LINKS, LINKS, Link
from privgp.gp.priors import Prior, usual
from privgp.plan.bins.points import MOST_BINS, REPLACED, PointBins, count_bounds
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.labels import LABEL_VARIANCE, rescale, signal_of, steepest
from privgp.privacy.sensitivity import scale_change
from privgp.question.outcomes import (
    BY_LIKELIHOOD,
    CLASSIFIER,
    REGRESSOR,
    Classes,
    Label,
    Outcome,
    Presence,
    check_classes,
    has_private_inputs,
)
from privgp.question.parameters import (
    BY_NAME,
    EVERY,
    GENERAL,
    LEAST_SHARE,
    MOST_INDUCING,
    Chosen,
    names_of,
)
from privgp.question.rules import (
    AnyBounds,
    are_several,
    check_any_bounds,
    check_inducing_inputs,
    check_row_noise,
    domain_pairs,
    is_number,
    output_bounds,
    per_output,
    target_points,
)
from privgp.storage.codec import fingerprint
from privgp.tables.kinds import are_round
from privgp.types import Array, Pair, Positive, UserData, Within, added_field
from privgp.types import Count as Rows

# What the constructor of PrivateGP takes besides its outcomes.
MIXED_ARGUMENTS = names_of(GENERAL, kept=True)
# What outcomes of several kinds have in common.
MIXED = {name: BY_NAME[name].default for name in names_of(REGRESSOR, kept=True)}
OF_PARTS = ("epsilon", "delta", "targets")  # which every outcome alone may have otherwise
# What a probability is among outputs.
PROBABILITY: dict[str, Any] = {
    name: default for name, default in MIXED.items() if name not in names_of(CLASSIFIER)
} | {"y_bounds": (0.0, 1.0), "noise_variance": LABEL_VARIANCE}


@dataclass(frozen=True, kw_only=True)
class Parameters(Chosen):
    """The arguments of a regressor's constructor. The seed of a simulation is dropped.

    ``estimator``: the name of the class that takes them.
    """

    estimator: ClassVar[str] = "PrivateGPRegressor"
    kernel: Kernel | tuple[Kernel | None, ...] | None
    noise_variance: Positive | tuple[Positive | None, ...] | Annotated[Array, "*"] | None
    y_bounds: AnyBounds
    x_bounds: Pair | tuple[Pair, ...] | None
    targets: Annotated[Array, "* columns"] | None
    inducing: Annotated[int, Within(1, MOST_INDUCING)] | Annotated[Array, "* columns"] | None
    shares: tuple[Positive, ...] | None = added_field(None)
    columns: Inputs | None = added_field(None)

    @property
    def change(self) -> float:
        """How far one person moves the one output, scaled to [-1, 1]."""
        return scale_change(self.max_change, cast(Pair, self.y_bounds))

    @property
    def private_inputs(self) -> bool:
        """Whether inputs are private too."""
        return has_private_inputs(self.protect)

    @property
    def most_nodes(self) -> float:
        """How many inputs carry the function at most; infinite if no number was asked for."""
        given = math.inf if self.inducing is None else self.inducing
        return len(given) if isinstance(given, np.ndarray) else given

    def parts(self) -> tuple[Parameters, ...]:
        """The parameters that each output alone would have."""
        if not are_several(self.y_bounds):
            return (self,)
        bounds = output_bounds(self.y_bounds)
        kernels = per_output("kernel", self.kernel, len(bounds))
        noises = per_output("noise_variance", self.noise_variance, len(bounds))
        return tuple(
            replace(self, y_bounds=pair, kernel=kernel, noise_variance=noise, shares=None)
            for pair, kernel, noise in zip(bounds, kernels, noises, strict=True)
        )

    @classmethod
    def of(cls, given: Mapping[str, Any], columns: int) -> Self:
        """From arguments of the constructor, for inputs of this many columns."""
        x_bounds, inducing, noise = given["x_bounds"], given["inducing"], given["noise_variance"]
        kernel, change = given["kernel"], given["max_change"]
        converted = {
            "epsilon": float(given["epsilon"]),
            "delta": float(given["delta"]),
            "kernel": tuple(kernel) if isinstance(kernel, list) else kernel,
            "noise_variance": _numbers(noise) if np.ndim(given["y_bounds"]) > 1 else _noises(noise),
            "max_change": None if change is None else float(change),
            "y_bounds": _pairs(given["y_bounds"]),
            "x_bounds": None if x_bounds is None else _pairs(x_bounds),
            "targets": target_points(given["targets"], columns),
            "inducing": _check_points(inducing, columns),
            "shares": None if given["shares"] is None else tuple(map(float, given["shares"])),
        }
        return cls(**{each.name: given[each.name] for each in fields(cls)} | converted)

    def arguments(self) -> dict[str, Any]:
        """What the constructor of the estimator takes."""
        return {**vars(self), **self._points()}

    def _points(self) -> dict[str, Any]:
        """Points as the user of a table gave them."""
        if self.columns is None:
            return {}
        given = {"targets": self.targets, "inducing": self.inducing}
        points = {name: part for name, part in given.items() if isinstance(part, np.ndarray)}
        return {name: self.columns.table(self.columns.back(p)) for name, p in points.items()}

    def asks(self) -> dict[str, Any]:
        """What a plan is asked in other words than the parameters have for it."""
        return {
            "learned": self.hyperparameters == "learned",
            "squares": self.outcome().has_squares or self.noise_variance is None,
            "inputs": self.columns,
            **self._noise(),
        }

    def _noise(self) -> dict[str, Any]:
        """The noise variance, or that of every row and their mean; the latter is known, and not learned."""
        given = self.noise_variance
        if not isinstance(given, np.ndarray):
            return {}
        if self.residuals == "always":
            raise ValueError("residuals='always' does not go with a noise_variance by row.")
        known = {"noise_variance": float(given.mean()), "row_noise": given}
        return {**known, "residuals": "never", "squares": False}

    def usual_priors(self, priors: Sequence[Prior]) -> tuple[Prior, ...]:
        """What a number is learned with, from the priors of its plan: what is usual, unless declared."""
        if self.kernel is not None:
            return tuple(priors)
        return tuple(usual(prior, noise=self.noise_variance is None) for prior in priors)

    def inputs_of(self, columns: int) -> int:
        """How many columns of a table have this many coordinates."""
        return columns if self.columns is None else len(self.columns.names)

    @property
    def scatters(self) -> bool:
        """Whether outputs scatter about the function with their own variance."""
        return all(own.outcome().scatters for own in self.parts())

    @property
    def holds_inputs(self) -> bool:
        """Whether a file of the release holds inputs of rows."""
        return not self.private_inputs

    def labels(self) -> list[str] | None:
        """The declared classes as text; None where outputs are numbers."""
        return None

    def outcome(self, exposure: str | None = None) -> Outcome:
        """What was declared of one output. ``exposure``: the name of the public column, of counts."""
        kind = BY_LIKELIHOOD[self.likelihood]
        return kind.of(cast(Pair, self.y_bounds), self.max_change, exposure)

    def restate(self, stated: dict[str, object]) -> dict[str, object]:
        """A certificate in the words of what was declared."""
        return stated

    def table_rows(self, measured: int) -> int:
        """How many rows the table has, if that many outputs are measured."""
        return measured

    def describe_rows(self, found: str) -> str:
        """How many rows there are and where, in words; ``found``: of what is measured."""
        return found

    def check_for(self, columns: int) -> None:
        """Refuse bounds and targets that do not go with inputs of this many columns."""
        check_any_bounds(self.y_bounds)
        if self.columns is not None and self.columns.width != columns:
            raise ValueError("columns are broken.")
        target_points(self.targets, columns)
        _check_points(self.inducing, columns)
        if self.x_bounds is not None:  # one pair serves all columns
            every = None if np.ndim(self.x_bounds) == 1 else columns
            domain_pairs("bounds", self.x_bounds, every)


@dataclass(frozen=True, kw_only=True)
class LabelParameters(Parameters):
    """The arguments of a classifier's constructor, and what they mean for its probabilities.

    ``classes``: sorted; ``link``: from the function to the probability of a class; ``prevalence``: a guess of
    how common the last of two classes is.
    """

    estimator: ClassVar[str] = "PrivateGPClassifier"
    classes: Classes
    link: Annotated[str, LABEL_LINKS]
    prevalence: Annotated[float, Within(LEAST_SHARE, 1.0 - LEAST_SHARE)] | None = added_field(None)

    @property
    def probability(self) -> Link:
        """From a function that is 0 where a probability is even, or as declared, to the probability."""
        link, guess = LINKS[self.link], self.prevalence
        return link if guess is None else link.about(float(link.inverse(np.array(guess))))

    @classmethod
    def of(cls, given: Mapping[str, object], columns: int) -> Self:
        """From arguments of the constructor, for inputs of this many columns."""
        classes = check_classes(given["classes"])
        if given["prevalence"] is not None and len(classes) > 2:
            raise ValueError("prevalence is how common the last of two classes is: it needs two.")
        return super().of({**given, **PROBABILITY, "classes": classes}, columns)

    def arguments(self) -> dict[str, Any]:
        return {name: p for name, p in super().arguments().items() if name not in PROBABILITY}

    def asks(self) -> dict[str, Any]:
        """The kernel is that of the function, so it is turned into one of the probability."""
        steep, guess = steepest(self.probability), self.prevalence
        kernel = None if self.kernel is None else rescale(self.kernel, steep)
        more = {"kernel": kernel, "classes": len(self.classes)}
        if guess is not None:
            more["noise_variance"], more["signal"] = (
                guess * (1.0 - guess),
                signal_of(self.probability),
            )
        return super().asks() | more

    def labels(self) -> list[str]:
        return [str(each) for each in self.classes]

    def outcome(self, exposure: str | None = None) -> Outcome:
        return Label(*self.classes)

    def check_for(self, columns: int) -> None:
        super().check_for(columns)
        fixed = {name: getattr(self, name) for name in PROBABILITY}
        if check_classes(self.classes) != self.classes or fixed != PROBABILITY:
            raise ValueError("classes are broken.")


@dataclass(frozen=True, kw_only=True)
class MixedParameters(Parameters):
    """The arguments of ``PrivateGP``: those of every outcome alone, and their names.

    ``exposures``: for every outcome the name of its public column of exposures, or an empty text
    """

    estimator: ClassVar[str] = "PrivateGP"
    output_names: tuple[str, ...]
    exposures: tuple[str, ...]
    outcomes: tuple[Parameters | LabelParameters | DensityParameters, ...]

    @classmethod
    def from_outcomes(
        cls,
        given: Mapping[str, object],
        columns: int,
        each: tuple[Parameters, ...],
        names: tuple[str, ...],
        exposures: tuple[str, ...],
    ) -> Self:
        """From arguments of the constructor, and the parameters of every outcome."""
        bounds = tuple(part.y_bounds for part in each)
        named = {"output_names": names, "exposures": exposures, "outcomes": each}
        return cls.of({**MIXED, **given, **named, "y_bounds": bounds}, columns)

    def parts(self) -> tuple[Parameters, ...]:
        return tuple(
            replace(each, epsilon=self.epsilon, delta=self.delta) for each in self.outcomes
        )

    def arguments(self) -> dict[str, Any]:
        """What the constructor of ``PrivateGP`` takes."""
        named = zip(self.output_names, self.outcomes, self.exposures, strict=True)
        outcomes = {name: each.outcome(exposure or None) for name, each, exposure in named}
        given = super().arguments()
        kept = {name: given[name] for name in MIXED_ARGUMENTS}
        protect = self.protect if self.holds_inputs or self.private_inputs else "records"
        return {**kept, "outcomes": outcomes, "protect": protect}

    @property
    def holds_inputs(self) -> bool:
        return any(part.holds_inputs for part in self.outcomes)

    def restate(self, stated: dict[str, object]) -> dict[str, object]:
        for each in self.outcomes:
            stated = each.restate(stated)
        return stated

    def check_for(self, columns: int) -> None:
        super().check_for(columns)
        shared = [name for name in names_of(*EVERY, kept=True) if name not in OF_PARTS]
        marks = {fingerprint([getattr(self, name) for name in shared])}
        for each in self.outcomes:
            each.check_for(columns)
            marks.add(fingerprint([getattr(each, name) for name in shared]))
        if len(marks) > 1:
            raise ValueError("outcomes are broken.")
        names, count = self.output_names, len(self.outcomes)
        fits = count == len(names) == len({*names}) == len(self.exposures)
        if not fits or self.y_bounds != tuple(each.y_bounds for each in self.outcomes):
            raise ValueError("outcomes are broken.")


@dataclass(frozen=True, kw_only=True)
class DensityParameters(Parameters):
    """What was declared of private points: their domain, ``x_bounds``, its bins, and their number.

    Their counts are the outputs of a release at public inputs, the centres of the bins. Bounds of the
    counts are a power of two, so that scaling them is exact.
    """

    estimator: ClassVar[str] = "PrivateGPDensity"
    holds_inputs: ClassVar[bool] = False
    bins: tuple[Annotated[int, Within(1, MOST_BINS)], ...]
    points: Rows

    @classmethod
    def declare(
        cls,
        domain: tuple[Pair, ...],
        bins: tuple[int, ...],
        points: int,
        budget: tuple[float, float],
        columns: Inputs | None,
        kept: Mapping[str, object],
    ) -> Self:
        """From what the constructor of the estimator was given, and the number of points."""
        given = {**MIXED, **kept, "epsilon": budget[0], "delta": budget[1]}
        given |= {"x_bounds": domain, "columns": columns, "protect": "outputs"}
        given |= {"y_bounds": count_bounds(points), "max_change": REPLACED, "likelihood": "poisson"}
        return cls.of({**given, "bins": bins, "points": points}, len(domain))

    def outcome(self, exposure: str | None = None) -> Outcome:
        return Presence()

    def asks(self) -> dict[str, Any]:
        """Every bin is measured alone, and no squares: one point that moves changes those of two bins."""
        return {**super().asks(), "each": True, "squares": False}

    @property
    def grid(self) -> PointBins:
        low, high = np.array(self.x_bounds).reshape(-1, 2).T
        return PointBins(low, high, self.bins, self.columns)

    def arguments(self) -> dict[str, Any]:
        """What the constructor of the estimator takes."""
        given = super().arguments()
        names = ("epsilon", "delta", "kernel", "columns", "hyperparameters", "mechanism")
        kept = {name: given[name] for name in names}
        own = [n for n, is_number in zip(self.bins, self.grid.has_length, strict=True) if is_number]
        return {**kept, "x_bounds": self.x_bounds, "bins": next(iter(own), None)}

    def check_for(self, columns: int) -> None:
        super().check_for(columns)
        declared = (self.likelihood, self.max_change, self.protect, self.y_bounds)
        wanted = ("poisson", REPLACED, "outputs", count_bounds(self.points))
        fits = len(self.bins) == columns == len(np.array(self.x_bounds).reshape(-1, 2))
        if declared != wanted or not fits or len(self.grid.places) > MOST_BINS:
            raise ValueError("bins are broken.")

    def table_rows(self, measured: int) -> int:
        return self.points

    def describe_rows(self, found: str) -> str:
        return f"{self.points} points in {' x '.join(map(str, self.bins))} bins"

    def restate(self, stated: dict[str, Any]) -> dict[str, object]:
        bounds = {"inputs": np.array(self.x_bounds).reshape(-1, 2).tolist()}
        return {
            **stated,
            "public": [
                "the number of points",
                "domain, bins, kernel and budget",
                "the noisy measurement and all that follows from it",
            ],
            "private": ["the place of every point"],
            "bounds": {**stated["bounds"], **bounds},
            "data": {**stated["data"], "rows": self.points, "distinct_inputs": None},
            "not_protected": [
                *[
                    each
                    for each in stated["not_protected"]
                    if each.startswith(("NOTHING", "Facts"))
                ],
                "The number of points is not protected: neighbours have equally many.",
            ],
        }


AnyParameters = Parameters | LabelParameters | MixedParameters | DensityParameters
# What is kept of an outcome that is more than a number or a count.
PARAMETERS: Mapping[type, type[Parameters]] = {Label: LabelParameters, Presence: DensityParameters}


@dataclass(frozen=True)
class MadeFor:
    """What a plan was asked for, with the names of the columns of inputs, of people, of exposures, of weights
    and of a single output, if known."""

    parameters: AnyParameters
    names: tuple[str, ...] | None = None
    groups: str | None = None
    exposure: str | None = added_field(None)
    weights: str | None = added_field(None)
    output: str | None = added_field(None)


def _check_points(given: UserData, columns: int) -> int | Array | None:
    """A number of inducing inputs, points of this many columns, or None."""
    return None if given is None else check_inducing_inputs(given, columns)


def _pairs(bounds: object) -> Any:
    """(low, high), or one such pair per column, as tuples."""
    plain = np.asarray(bounds, dtype=float).tolist()
    return tuple(tuple(pair) if isinstance(pair, list) else pair for pair in plain)


def _noises(given: UserData) -> Any:
    """A number, None, or one positive number per row as an array."""
    if given is None or is_number(given):
        return _numbers(given)
    return check_row_noise(given, len(given) if np.ndim(given) == 1 else 0)


def _numbers(given: UserData) -> Any:
    """A number, None, or one of them per output as a tuple."""
    if isinstance(given, list | tuple):
        return tuple(_numbers(each) for each in given)
    return None if given is None else float(given)


def bounds_advice(asked: Parameters) -> list[str]:
    """A sentence about every pair of declared bounds that looks read from the data. It depends on the
    declared numbers alone. ``asked``: the parameters of a plan."""
    told = [("y_bounds", pair) for own in asked.parts() for pair in own.outcome().bounds]
    odd: list[str] = []
    if asked.columns is not None:  # then x_bounds are those of its coordinates
        columns = [column for column in asked.columns.columns if not column.has_round_bounds]
        odd = [f"x_bounds of {column.names[0]!r}" for column in columns]
    elif asked.x_bounds is not None:
        told += [("x_bounds", (low, high)) for low, high in np.reshape(asked.x_bounds, (-1, 2))]
    numbers = [f"{name} {a:.12g} and {b:.12g}" for name, (a, b) in told if not are_round(a, b)]
    return [
        f"The {each} look as if they were read from the data, which would reveal private values: declare "
        "round numbers that are known without looking."
        for each in (*numbers, *odd)
    ]
