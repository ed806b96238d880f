"""Counts and rates: errors with the noise of one person, by simulated (seeded) releases. Prints JSON.

``python -m benchmarks.counts [--data DIR] [--releases N]``. Milan: deaths by day, a quarter of the days
held out. Areas: 300 of them with simulated populations, smooth risks and Poisson cases; the error is that
of the rates themselves, beside the same model with so much budget that noise vanishes. The linear link
has the rate itself as a Gaussian process; it is here for comparison only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from benchmarks.tasks import BESIDE, TASKS
from privgp import PrivateGPRegressor
from privgp.gp.inference.learning import learn
from privgp.gp.inference.posterior import Posterior, posterior
from privgp.gp.priors import prior_about
from privgp.types import Array

NO_NOISE = 1e4
MILAN = next(task for task in TASKS if task.name == "Milan")
WAYS: dict[str, dict[str, Any]] = {
    "bounded outputs": {},
    "max_change=1": {"max_change": 1},
    "max_change=1, poisson": {"max_change": 1, "likelihood": "poisson"},
}


@dataclass(frozen=True)
class Areas:
    """Cases in 300 areas. ``rate``: cases per person where the risk is 1; ``contrast``: the std of the
    logarithm of the risk at four hot or cold spots; ``bounds``: declared, of the cases in an area."""

    name: str
    rate: float
    contrast: float
    bounds: tuple[float, float]

    def draw(self, release: int) -> tuple[Array, Array, Array, Array]:
        """Places, populations, true rates and cases."""
        rng = np.random.default_rng(release)
        X = rng.uniform(0, 100, size=(300, 2))
        people = np.rint(rng.lognormal(np.log(4000), 0.7, size=300))
        spots, heights = rng.uniform(0, 100, size=(4, 2)), rng.normal(0, self.contrast, size=4)
        apart = np.square(X[:, None] - spots).sum(axis=2) / 25.0**2
        rates = self.rate * np.exp(np.exp(-0.5 * apart) @ heights)
        return X, people, rates, rng.poisson(people * rates).astype(float)

    def model(self, epsilon: float, release: int) -> PrivateGPRegressor:
        return PrivateGPRegressor(
            y_bounds=self.bounds, epsilon=epsilon, delta=1e-5, max_change=1, likelihood="poisson",
            random_state=release,
        )  # fmt: skip


MAPS = (
    Areas("areas", 0.005, 0.6, (0, 600)),
    Areas("areas, rare cases", 0.001, 0.6, (0, 120)),
    Areas("areas, strong contrasts", 0.002, 1.2, (0, 600)),
)


def milan(data: Path, way: dict[str, Any], releases: int) -> dict[str, Any]:
    """The error of held-out deaths by day, and how many 90% intervals of counts hold them."""
    squares, held = [], []
    for release in range(releases):
        X, y, X_test, y_test = MILAN.split(data, release)
        model = PrivateGPRegressor(**{**MILAN.settings, **way}, random_state=release).fit(X, y)
        low, high = model.interval(X_test, observation=True)
        squares.append(np.mean(np.square(model.predict(X_test) - y_test)))
        held.append(np.mean((low <= y_test) & (y_test <= high)))
    return {"rmse": round(float(np.sqrt(np.mean(squares))), 3), "coverage": _mean(held)}


def areas(made: Areas, releases: int) -> dict[str, Any]:
    """Errors as shares of ``made.rate``, of releases, without noise and with the linear link."""
    found = [_areas_once(made, release) for release in track(range(releases), made.name)]
    told = {name: np.array([each[name] for each in found]) for name in found[0]}
    root = {name: float(np.sqrt(np.mean(told[name]))) for name in ("private", "without", "linear")}
    return {
        "rmse": round(root["private"], 4),
        "rmse without noise": round(root["without"], 4),
        "rmse, linear link": round(root["linear"], 4),
        "ratio": round(root["private"] / root["without"], 3),
        "mean of ratios": _mean(np.sqrt(told["private"] / told["without"])),
        **{name: _mean(told[name]) for name in ("coverage", "log score", "log score, linear link")},
    }


def _areas_once(made: Areas, release: int) -> dict[str, float]:
    X, people, rates, cases = made.draw(release)
    one: Any = made.model(1.0, release).fit(X, cases, exposure=people)
    free = made.model(NO_NOISE, release).fit(X, cases, exposure=people)
    low, high = one.interval(X)
    logs, unit, straight = one.release_.logs.mixture(X), one.plan_.unit, linear_link(one)
    linear = unit * np.maximum(straight.mean_and_variance(X)[0], 0.0)
    found = {"private": one.predict(X), "without": free.predict(X), "linear": linear}
    return {
        **{name: np.mean(np.square((rate - rates) / made.rate)) for name, rate in found.items()},
        "coverage": np.mean((low <= rates) & (rates <= high)),
        "log score": np.mean(_scores(logs, np.log(rates / unit)) - np.log(rates)),
        "log score, linear link": np.mean(
            _scores(straight.mixture(X), rates / unit) - np.log(unit)
        ),
    }


def linear_link(model: PrivateGPRegressor) -> Posterior:
    """The rate itself, as a multiple of the unit, as a Gaussian process given what was measured."""
    plan, measured = model.plan_, model.measurements_[0]
    functionals = plan.functionals
    about = replace(measured, values=measured.values - functionals.weights.sum(axis=1))

    def priors(scatter: float) -> Iterator[Any]:
        for prior in plan.priors:
            lengths = prior.start.kernel.k1.k2.length_scale
            shape = ConstantKernel(0.25) * Matern(lengths, nu=2.5) + ConstantKernel(0.25, "fixed")
            start = replace(prior.start, kernel=shape, noise_variance=scatter)
            yield prior_about(start, noise_free=False)

    scatter = 1.0
    for _ in range(3):  # the variance of a count is its mean
        start = next(priors(scatter)).start
        mean = posterior(functionals, about, [start], 1.0).mean_and_variance(plan.inputs)[0]
        scatter = max(float(np.average(mean, weights=plan.target_weights)), 1e-3)
    return posterior(functionals, about, learn(functionals, about, [*priors(scatter)]), 1.0)


def _scores(mixture: Any, values: Array) -> Array:
    """Log densities of a mixture of normal distributions."""
    z = np.square(values - mixture.means) / mixture.variances
    logs = -0.5 * (z + np.log(2.0 * np.pi * mixture.variances))
    return np.asarray(logsumexp(logs, b=mixture.weights[:, None], axis=0))


def _mean(values: Any) -> float:
    return round(float(np.mean(values)), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=BESIDE)
    parser.add_argument("--releases", type=int, default=20)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for name, way in track(WAYS.items(), "Milan"):
        found[f"Milan, {name}"] = milan(given.data, way, given.releases)
    for made in MAPS:
        found[made.name] = areas(made, given.releases)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
