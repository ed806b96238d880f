"""The public side of sample paths: arguments, what they guarantee, and the least noise for a budget."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from scipy.optimize import brentq

from privgp.gp.kernels.evaluate import signal_and_noise, variance
from privgp.gp.kernels.proved import rounding_error
from privgp.plan.functions.records import DomainModel
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import NOT_TIMED, Event, Guarantee, promise
from privgp.privacy.noise import GAUSSIAN_SAMPLER
from privgp.privacy.path_rounding import PathPrecision, PathSizes, path_precision
from privgp.privacy.posterior_mean import (
    LARGEST_RIDGE,
    LEAST_RIDGE,
    SENSITIVITIES,
    MeanSensitivity,
    mean_sensitivity,
    sensitivity_for_norm,
)
from privgp.privacy.protected import RECORDS
from privgp.privacy.rdp import PathCurve, epsilon_for, influence_and_shift
from privgp.question.rules import check_bounds, check_choice, domain_pairs, whole_number

MOST_PATHS = 10_000
MOST_POINTS = 10_000
LARGEST_EXTRA = 1e12  # times the kernel's std
LEAST, NOISE, EXTRA = 1e-6, "noise_variance", "extra_noise"


@dataclass(frozen=True)
class Calibration:
    """The least noise that meets a budget, to be put into ``set_params``, and its epsilon.

    Attributes
    ----------
    regularisation : the root of noise variance over kernel variance
    noise_variance : in squared units of y
    extra_noise : a std, in units of y
    epsilon : that is reached at the model's delta

    """

    regularisation: float
    noise_variance: float
    extra_noise: float
    epsilon: float


@dataclass(frozen=True)
class PathModel(DomainModel):
    """All that fixes the distribution of the paths, checked and public.

    Attributes
    ----------
    y_bounds : declared
    paths : how many are drawn of one posterior
    extra_noise : std of Gaussian-process noise added to each, in units of y
    delta : delta of the guarantee
    sensitivity : "auto" or "paper", or the norm of one function
    max_points : how many are ever answered

    """

    y_bounds: tuple[float, float]
    paths: int
    extra_noise: float
    delta: float
    sensitivity: str | float
    max_points: int

    def parameters(self) -> dict[str, object]:
        """The arguments of ``path_model``."""
        named, norm = dict(vars(self)), self.sensitivity
        named["n_paths"] = named.pop("paths")
        named["sensitivity"] = norm if isinstance(norm, str) else ("function", norm)
        return named

    @property
    def half_width(self) -> float:
        """Half the width of the outputs' bounds."""
        return 0.5 * self.y_bounds[1] - 0.5 * self.y_bounds[0]

    @property
    def bounds(self) -> str:
        """Which bounds of divergences are used: "paper" or "sharp"."""
        return "paper" if self.sensitivity == "paper" else "sharp"

    def precision(self, records: int) -> PathPrecision:
        """The nuggets that hide rounding errors, and what these cost; over the kernel's variance."""
        scale, points, paths = variance(self.kernel), self.max_points, self.paths
        ridge, extra = self.noise_variance / scale, self.extra_noise**2 / scale
        reach, error = self.half_width / math.sqrt(scale), rounding_error(self.kernel, self.widths)
        return path_precision(PathSizes(records, points, paths, ridge, extra, reach, error))

    def nugget_std(self, records: int) -> float:
        """Std, in units of y, of the independent noise at every point."""
        precision = self.precision(records)
        return math.sqrt((precision.nugget + precision.lattice_nugget) * variance(self.kernel))

    def mean_sensitivity(self, records: int) -> MeanSensitivity:
        """How far one record moves the posterior mean, for outputs in their bounds, in units of y.

        Parameters
        ----------
        records
            How many there are.

        """
        shape = self.shape(records)
        if isinstance(self.sensitivity, float):
            # given in the kernel's own Hilbert space; the lemma divides the kernel by its variance
            return sensitivity_for_norm(shape, self.sensitivity * math.sqrt(variance(self.kernel)))
        unit = mean_sensitivity(shape, self.sensitivity)
        return replace(unit, value=unit.value * self.half_width)

    def curve(self, records: int) -> PathCurve:
        """The Renyi divergences of all paths at all points together, rounding included."""
        precision = self.precision(records)
        influence, shift = influence_and_shift(
            sensitivity=self.mean_sensitivity(records).value,
            influence=self.shape(records).influence,
            kernel_variance=variance(self.kernel),
            extra_variance=self.extra_noise**2,
        )
        charge = precision.charge, precision.charge_limit
        return PathCurve(influence, shift, self.paths, self.bounds, *charge)

    def epsilon(self, records: int) -> float:
        """The epsilon of all paths at all points together, at the model's delta."""
        return epsilon_for([self.curve(records)], self.delta, self.bounds)

    def guarantee(self, records: int, *, simulated: bool) -> Guarantee:
        """The guarantee of all paths at all points together.

        Parameters
        ----------
        records
            How many there are; public.
        simulated
            The noise does not protect.

        Raises
        ------
        ValueError
            Rounding errors cannot be bounded.

        """
        epsilon = self.epsilon(records)
        if epsilon == math.inf:
            raise ValueError("rounding is not bounded: raise noise_variance or lower max_points.")
        assumptions = [
            f"the number of records is public: {records}",
            "kernel, noise variance, domain, bounds, numbers of paths and points and extra noise "
            "were chosen without looking at the records",
            "no draw is made twice: the state of the paths is kept and never set back",
            NOT_TIMED,
        ]
        if isinstance(self.sensitivity, float):
            assumptions.append(
                "every output of these data and of their neighbours is one function of the input, of "
                "the stated norm"
            )
        extra = ""
        if self.extra_noise:
            extra = f", Gaussian-process noise of std {self.extra_noise:g} added to each"
        return promise(
            RECORDS,
            [Event(path_curves=(self.curve(records),))],
            (epsilon, self.delta),
            assumptions=tuple(assumptions),
            mechanism=f"{self.paths} sample path{'s' * (self.paths > 1)} of the posterior{extra}, with "
            f"independent noise of std {self.nugget_std(records):.3g} at each of at most "
            f"{self.max_points:,} points, all together; bound of the mean: "
            f"{self.mean_sensitivity(records).lemma}",
            sampler=GAUSSIAN_SAMPLER,
            simulated=simulated,
        )

    def calibrate_noise(self, epsilon: float, records: int, by: str) -> Calibration:
        """The least noise variance, or extra noise, with which the paths are epsilon-private.

        Parameters
        ----------
        epsilon
            To reach at the model's delta.
        records
            How many there are.
        by
            "noise_variance" or "extra_noise".

        Raises
        ------
        ValueError
            Nothing within reach meets it.

        """
        check_choice("by", by, (NOISE, EXTRA))
        check_budget(epsilon, self.delta)
        scale = variance(self.kernel)
        least, largest = LEAST * math.sqrt(scale), math.sqrt(scale) / LEAST
        if by == NOISE:
            least, largest = LEAST_RIDGE * scale, LARGEST_RIDGE * scale
        low, high = math.log(least), math.log(largest)

        def with_noise(t: float) -> PathModel:
            noise: dict[str, Any] = {by: min(max(math.exp(t), least), largest)}
            return replace(self, **noise)

        def excess(t: float) -> float:
            reached = with_noise(t).epsilon(records)
            return math.log(min(reached, 1e300) / epsilon) if reached > 0 else -700.0

        without = replace(self, extra_noise=0.0)
        if by == EXTRA and without.epsilon(records) <= epsilon:
            best = without
        elif excess(high) > 0:
            raise ValueError(f"no {by} within reach meets epsilon={epsilon:g}: ask for more.")
        elif excess(low) <= 0:
            best = with_noise(low)
        else:
            t = float(brentq(excess, low, high, xtol=1e-12))
            while excess(t) > 0:
                t += 1e-11
            best = with_noise(t)
        ratio, epsilon = best.noise_variance / scale, best.epsilon(records)
        return Calibration(math.sqrt(ratio), best.noise_variance, best.extra_noise, epsilon)


def path_model(given: Mapping[str, Any]) -> PathModel:
    """A checked model from the arguments of ``PosteriorPaths``.

    Raises
    ------
    ValueError
        An argument is out of range, or the kernel's values have no proved error.

    """
    domain = domain_pairs("domain", given["domain"])
    y_bounds = check_bounds("y_bounds", given["y_bounds"])
    kernel, noise = signal_and_noise(given["kernel"], given["noise_variance"], len(domain))
    extra = _number("extra_noise", given["extra_noise"])
    if not 0 <= extra <= LARGEST_EXTRA * math.sqrt(variance(kernel)):
        raise ValueError(f"extra_noise must be 0 to {LARGEST_EXTRA:g} kernel stds, got {extra}.")
    paths = whole_number("n_paths", given["n_paths"], MOST_PATHS)
    points = whole_number("max_points", given["max_points"], MOST_POINTS)
    check_budget(1.0, given["delta"])
    delta, sensitivity = float(given["delta"]), _sensitivity(given["sensitivity"])
    model = PathModel(kernel, noise, domain, y_bounds, paths, extra, delta, sensitivity, points)
    model.shape(1)  # refuses a ratio of variances out of range
    model.precision(1)  # refuses kernels whose values have no proved error
    return model


def _sensitivity(given: object) -> str | float:
    """A name, or the norm in ("function", norm)."""
    if isinstance(given, str):
        check_choice("sensitivity", given, SENSITIVITIES)
        return given
    if isinstance(given, tuple | list) and len(given) == 2 and given[0] == "function":
        norm = _number("sensitivity", given[1])
        if norm > 0:
            return norm
    raise ValueError("sensitivity must be 'auto', 'paper', or ('function', its norm).")


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number.")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}.")
    return float(value)


def check_count(n: object) -> int:
    """The number of records as an integer; ValueError unless it is one of at least 1."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ValueError("n must be the number of records, at least 1.")
    return int(n)
