"""The public side of sample paths: arguments, what they promise, and the least noise for a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.noise import signal_and_noise
from privgp.gp.kernels.proved import rounding_error
from privgp.plan.inputs.arguments import check_bounds, check_choice, domain_pairs, whole_number
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import RECORDS, Event, Guarantee, promise
from privgp.privacy.noise import GAUSSIAN_SAMPLER
from privgp.privacy.path_rounding import PathPrecision, PathSizes, path_precision
from privgp.privacy.posterior_mean import (
    LARGEST_RIDGE,
    LEAST_RIDGE,
    SENSITIVITIES,
    MeanSensitivity,
    PosteriorShape,
    fixed_function,
    mean_sensitivity,
    posterior_shape,
)
from privgp.privacy.rdp import PathCurve, epsilon_for, influence_and_shift
from privgp.types import Array

MOST_PATHS = 10_000
MOST_POINTS = 10_000
LARGEST_EXTRA = 1e12  # times the kernel's std
LEAST, NOISE, EXTRA = 1e-6, "noise_variance", "extra_noise"


@dataclass(frozen=True)
class Calibration:
    """The least noise that meets a budget, to be put into ``set_params``.

    ``regularisation`` is r, the root of noise variance over kernel variance; ``extra_noise`` the
    std of the noise added to a path; ``epsilon`` what they promise together.
    """

    regularisation: float
    noise_variance: float
    extra_noise: float
    epsilon: float


@dataclass(frozen=True)
class PathModel:
    """All that fixes the law of the paths, checked; ``sensitivity``: a name or a norm."""

    kernel: Kernel
    noise_variance: float
    domain: tuple[tuple[float, float], ...]
    y_bounds: tuple[float, float]
    paths: int
    extra_noise: float
    delta: float
    sensitivity: str | float
    max_points: int

    def parameters(self) -> dict[str, Any]:
        """The arguments of ``path_model``."""
        named, norm = dict(vars(self)), self.sensitivity
        named["n_paths"] = named.pop("paths")
        named["sensitivity"] = norm if isinstance(norm, str) else ("function", norm)
        return named

    @property
    def columns(self) -> int:
        return len(self.domain)

    @property
    def widths(self) -> Array:
        """The sides of the domain, (inputs,)."""
        return np.array([high - low for low, high in self.domain])

    def precision(self, records: int) -> PathPrecision:
        """The nuggets that hide rounding errors, and what these cost; over the kernel's variance."""
        scale = variance(self.kernel)
        half = 0.5 * self.y_bounds[1] - 0.5 * self.y_bounds[0]
        return path_precision(
            PathSizes(
                records=records,
                points=self.max_points,
                paths=self.paths,
                ridge=self.noise_variance / scale,
                extra=self.extra_noise**2 / scale,
                reach=half / math.sqrt(scale),
                kernel_error=rounding_error(self.kernel, self.widths),
            )
        )

    def nugget_std(self, records: int) -> float:
        """Std, in units of y, of the independent noise at every point."""
        found = self.precision(records)
        return math.sqrt((found.nugget + found.lattice_nugget) * variance(self.kernel))

    def shape(self, records: int) -> PosteriorShape:
        return posterior_shape(self.kernel, self.noise_variance, self.widths, records)

    def mean_sensitivity(self, records: int) -> MeanSensitivity:
        """For outputs in their bounds, in units of y."""
        shape = self.shape(records)
        if isinstance(self.sensitivity, float):
            # given in the kernel's own Hilbert space; the lemma divides the kernel by its variance
            return fixed_function(shape, self.sensitivity * math.sqrt(variance(self.kernel)))
        unit = mean_sensitivity(shape, self.sensitivity)
        half = 0.5 * self.y_bounds[1] - 0.5 * self.y_bounds[0]
        return replace(unit, value=unit.value * half)

    def curve(self, records: int) -> PathCurve:
        precision = self.precision(records)
        influence, shift = influence_and_shift(
            sensitivity=self.mean_sensitivity(records).value,
            influence=self.shape(records).influence,
            kernel_variance=variance(self.kernel),
            extra_variance=self.extra_noise**2,
        )
        return PathCurve(
            influence,
            shift,
            paths=self.paths,
            covariance="paper" if self.sensitivity == "paper" else "sharp",
            charge=precision.charge,
            charge_limit=precision.charge_limit,
        )

    def epsilon(self, records: int) -> float:
        conversion = "paper" if self.sensitivity == "paper" else "sharp"
        return epsilon_for([self.curve(records)], self.delta, conversion)

    def guarantee(self, records: int, *, simulated: bool) -> Guarantee:
        """What is promised of all paths at all points together."""
        epsilon = self.epsilon(records)
        if epsilon == math.inf:
            raise ValueError(
                "rounding errors cannot be bounded for these arguments: raise noise_variance or "
                "lower max_points."
            )
        lemma = self.mean_sensitivity(records).lemma
        assumed = ("every output of these data and of their neighbours is one function of the "
            "input, of the stated norm",) if isinstance(self.sensitivity, float) else ()  # fmt: skip
        extra = f", Gaussian-process noise of std {self.extra_noise:g} added to each" * bool(
            self.extra_noise
        )
        return promise(
            RECORDS,
            [Event(path_curves=(self.curve(records),))],
            epsilon=epsilon,
            delta=self.delta,
            assumptions=(
                f"the number of records is public: {records}",
                "kernel, noise variance, domain, bounds, numbers of paths and points and extra noise "
                "were chosen without looking at the records",
                "no draw is made twice: the state of the paths is kept and never set back",
                *assumed,
            ),
            mechanism=f"{self.paths} sample path{'s' * (self.paths > 1)} of the posterior{extra}, with "
            f"independent noise of std {self.nugget_std(records):.3g} at each of at most "
            f"{self.max_points:,} points, all together; bound of the mean: {lemma}",
            sampler=GAUSSIAN_SAMPLER,
            simulated=simulated,
        )

    def calibrated(self, epsilon: float, records: int, by: str) -> Calibration:
        """The least noise variance, or extra noise, with which the paths are epsilon-private."""
        check_choice("by", by, (NOISE, EXTRA))
        check_budget(epsilon, self.delta)
        scale = variance(self.kernel)
        if by == NOISE:
            low, high = math.log(LEAST_RIDGE * scale), math.log(LARGEST_RIDGE * scale)
        else:
            low, high = math.log(LEAST * math.sqrt(scale)), math.log(math.sqrt(scale) / LEAST)

        def with_noise(t: float) -> PathModel:
            value = math.exp(t)
            if by == NOISE:
                return replace(self, noise_variance=min(max(value, scale * LEAST_RIDGE),
                    scale * LARGEST_RIDGE))  # fmt: skip
            return replace(self, extra_noise=value)

        def excess(t: float) -> float:
            found = with_noise(t).epsilon(records)
            return math.log(min(found, 1e300) / epsilon) if found > 0 else -700.0

        if by == EXTRA and replace(self, extra_noise=0.0).epsilon(records) <= epsilon:
            found = replace(self, extra_noise=0.0)
        elif excess(high) > 0:
            raise ValueError(f"no {by} within reach meets epsilon={epsilon:g}: ask for more.")
        elif excess(low) <= 0:
            found = with_noise(low)
        else:
            t = float(brentq(excess, low, high, xtol=1e-12))
            while excess(t) > 0:
                t += 1e-11
            found = with_noise(t)
        return Calibration(
            math.sqrt(found.noise_variance / scale), found.noise_variance, found.extra_noise,
            found.epsilon(records),
        )  # fmt: skip


def path_model(
    kernel: Any,
    noise_variance: Any,
    *,
    domain: Any,
    y_bounds: Any,
    n_paths: Any,
    extra_noise: Any,
    delta: Any,
    sensitivity: Any,
    max_points: Any,
) -> PathModel:
    """The arguments of PosteriorPaths, every one checked."""
    box = domain_pairs("domain", domain)
    bounds = check_bounds("y_bounds", y_bounds)
    signal, noise = signal_and_noise(kernel, noise_variance, len(box))
    extra = _number("extra_noise", extra_noise)
    if not 0 <= extra <= LARGEST_EXTRA * math.sqrt(variance(signal)):
        raise ValueError(
            f"extra_noise must not be negative, nor above {LARGEST_EXTRA:g} times the kernel's std, "
            f"got {extra}."
        )
    paths = whole_number("n_paths", n_paths, MOST_PATHS)
    points = whole_number("max_points", max_points, MOST_POINTS)
    check_budget(1.0, delta)
    model = PathModel(
        signal, noise, box, bounds, paths, extra, float(delta), _sensitivity(sensitivity), points
    )
    model.shape(1)  # refuses a ratio of variances out of range
    model.precision(1)  # refuses kernels whose values have no proved error
    return model


def _sensitivity(given: Any) -> str | float:
    """A name, or the norm in ("function", norm)."""
    if isinstance(given, str):
        check_choice("sensitivity", given, SENSITIVITIES)
        return given
    if isinstance(given, tuple | list) and len(given) == 2 and given[0] == "function":
        norm = _number("sensitivity", given[1])
        if norm > 0:
            return norm
    raise ValueError("sensitivity must be 'auto', 'paper', or ('function', its norm).")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number.")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}.")
    return float(value)


def check_count(n: Any) -> int:
    """The number of records, which is public."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError("n must be the number of records, at least 1.")
    return int(n)
