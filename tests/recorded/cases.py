"""Thirty small cases whose numbers were recorded, by way of the public interface alone.

Each case is a function without arguments that returns a dict of names and numbers or lists of numbers.
``python -m tests.recorded.cases`` runs them all and writes the numbers as JSON. Data are synthetic.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

import privgp as pg

Numbers = dict[str, Any]
Case = Callable[[], Numbers]

CASES: dict[str, Case] = {}
BOUNDS = (-3.0, 5.0)
DELTA = 1e-6  # the delta at which every guarantee is read, whatever delta it was made for
DIGITS = 12


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def data(rows: int = 60, columns: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in [0, 10] and outputs within the bounds, except for a few that are clipped."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (rows, columns))
    f = 1.0 + 2.0 * np.sin(0.6 * X[:, 0]) + 0.5 * np.cos(X[:, -1])
    return X, f + 0.7 * rng.standard_normal(rows)


def points(columns: int = 1) -> np.ndarray:
    """Five points between and beyond the inputs."""
    steps = np.array([0.4, 2.7, 5.1, 8.8, 11.0])
    return np.stack([np.roll(steps, shift) for shift in range(columns)], axis=1)


def promise(guarantee: Any) -> Numbers:
    return {
        "epsilon": guarantee.epsilon_at(DELTA),
        "noise_multipliers": list(guarantee.noise_multipliers),
        "pure_epsilons": list(guarantee.pure_epsilons),
    }


def planned(plan: Any, X_new: np.ndarray) -> Numbers:
    """What a plan says; of the noise at many targets, every seventh."""
    return {
        "noise_std": plan.noise_std[::7],
        "measured_noise_std": plan.measured_noise_std,
        "expected_error": [plan.expected_error(), plan.expected_error(0.5)],
        "expected_std": plan.expected_std(X_new),
        "expected_range": plan.expected_std(X_new, 0.9).ravel(),
    }


def released(model: Any, X_new: np.ndarray) -> Numbers:
    """What a fitted regressor says."""
    mean, std = model.predict(X_new, return_std=True)
    _, observed = model.predict(X_new, return_std=True, observation=True)
    return {
        **planned(model.plan_, X_new),
        **promise(model.guarantee_),
        "mean": mean,
        "std": std,
        "std_of_outputs": observed,
        "theta": model.kernel_.theta,
        "noise_variance": model.noise_variance_,
    }


def regressor(kernel: Any = None, noise_variance: Any = None, **options: Any) -> Any:
    settings = {"y_bounds": BOUNDS, "epsilon": 2.0, "delta": 1e-5, "random_state": 3, **options}
    return pg.PrivateGPRegressor(kernel, noise_variance, **settings)


def each(variants: dict[str, Numbers]) -> Numbers:
    """The numbers of several variants, named ``variant: name``."""
    return {f"{v}: {name}": value for v, found in variants.items() for name, value in found.items()}


# Public inputs, private outputs


@case
def default_1d() -> Numbers:
    return released(regressor().fit(*data()), points())


@case
def default_2d() -> Numbers:
    return released(regressor().fit(*data(50, 2)), points(2))


@case
def default_4d() -> Numbers:
    return released(regressor().fit(*data(45, 4)), points(4))


@case
def fixed_default_kernel() -> Numbers:
    return released(regressor(hyperparameters="fixed").fit(*data(70)), points())


@case
def every_kernel_fixed() -> Numbers:
    kernels = {
        "rbf": 4.0 * RBF(2.0),
        "exponential": 4.0 * Matern(3.0, nu=0.5),
        "matern 3/2": 4.0 * Matern(2.0, nu=1.5),
        "matern 5/2": 4.0 * Matern(2.0, nu=2.5),
        "rational quadratic": 4.0 * RationalQuadratic(2.0, 0.7),
        "periodic": 4.0 * ExpSineSquared(1.5, 10.0),
    }
    options = {"hyperparameters": "fixed", "mechanism": "gaussian"}
    X, y = data(40)
    found = {}
    for name, kernel in kernels.items():
        model = regressor(kernel, 0.5, **options).fit(X, y)
        numbers = released(model, points())
        kept = ("noise_std", "measured_noise_std", "mean", "std", "expected_error")
        found[name] = {key: numbers[key] for key in kept}
    return each(found)


@case
def sum_with_white_noise() -> Numbers:
    kernel = 4.0 * RBF(2.0) + ConstantKernel(1.0) + WhiteKernel(0.4)
    return released(regressor(kernel).fit(*data()), points())


@case
def product_partly_fixed() -> Numbers:
    kernel = (
        ConstantKernel(3.0) * RBF([2.0, 3.0]) * RationalQuadratic(4.0, 1.0, alpha_bounds="fixed")
    )
    return released(regressor(kernel, 0.5).fit(*data(45, 2)), points(2))


@case
def periodic_learned() -> Numbers:
    kernel = 2.0 * ExpSineSquared(1.0, 10.0, periodicity_bounds="fixed") + 0.5 * RBF(4.0)
    return released(regressor(kernel, 0.5, mechanism="gaussian").fit(*data(40)), points())


def linear_design(objective: str, reconstruct: str) -> Numbers:
    targets = np.linspace(1, 9, 8)[:, None]
    model = regressor(
        4.0 * RBF(2.0), 0.5, objective=objective, reconstruct=reconstruct, targets=targets,
        hyperparameters="fixed",
    ).fit(*data(30))  # fmt: skip
    at = targets if reconstruct == "unbiased" else points()
    mean, std = model.predict(at, return_std=True)
    plan = model.plan_
    return {
        **promise(model.guarantee_),
        "noise_std": plan.noise_std,
        "expected_error": plan.expected_error(),
        "gap": plan.gap,
        "mean": mean,
        "std": std,
    }


@case
def trace() -> Numbers:
    forms = ("posterior", "unbiased")
    return each({form: linear_design("trace", form) for form in forms})


@case
def largest_variance() -> Numbers:
    forms = ("posterior", "unbiased")
    return each({form: linear_design("max", form) for form in forms})


@case
def logdet() -> Numbers:
    forms = ("posterior", "unbiased")
    return each({form: linear_design("logdet", form) for form in forms})


@case
def few_targets() -> Numbers:
    return released(regressor(targets=[2.0, 3.0, 7.0]).fit(*data(50)), points())


@case
def groups() -> Numbers:
    X, y = data(48)
    people = np.arange(48) % 17
    found = {}
    for mechanism in ("gaussian", "laplace"):
        model = regressor(epsilon=4.0, mechanism=mechanism).fit(X, y, groups=people)
        found[mechanism] = released(model, points())
    return each(found)


@case
def gaussian_noise() -> Numbers:
    return released(regressor(mechanism="gaussian").fit(*data(seed=1)), points())


@case
def laplace_noise() -> Numbers:
    X, y = data(80, seed=2)
    X = np.round(X)  # several rows at most inputs
    return released(regressor(mechanism="laplace", epsilon=0.7).fit(X, y), points())


@case
def chosen_inducing_inputs() -> Numbers:
    return released(regressor(inducing=12, mechanism="gaussian").fit(*data(300, 2)), points(2))


@case
def given_inducing_inputs() -> Numbers:
    given = np.linspace(0, 10, 9)[:, None]
    model = regressor(3.0 * RBF(2.0), 0.5, inducing=given, mechanism="gaussian")
    return released(model.fit(*data(200)), points())


# Private records


def private_records(columns: int, mechanism: str, rows: int = 300, **options: Any) -> Numbers:
    box = [(0.0, 10.0), (-1.0, 12.0), (1.0, 9.0)][:columns]
    model = regressor(protect="records", x_bounds=box, mechanism=mechanism, **options)
    return released(model.fit(*data(rows, columns)), points(columns))


@case
def records_gaussian() -> Numbers:
    # A lengthscale for each input: where inputs are alike, many measurements are equally good, and
    # rounding decides between them.
    unlike = {"kernel": 4.0 * RBF([2.0, 6.0]), "noise_variance": 0.6}
    return each(
        {"1-D": private_records(1, "gaussian"), "2-D": private_records(2, "gaussian", **unlike)}
    )


@case
def records_laplace() -> Numbers:
    return each({f"{d}-D": private_records(d, "laplace") for d in (1, 2)})


@case
def records_3d() -> Numbers:
    options = {"kernel": 4.0 * RBF([3.0, 5.0, 4.0]), "noise_variance": 0.6, "epsilon": 5.0}
    fixed = {**options, "hyperparameters": "fixed"}
    return each({law: private_records(3, law, 150, **fixed) for law in ("gaussian", "laplace")})


# Bins

FORMS: dict[str, dict[str, Any]] = {
    "laplace": {},
    "gaussian": {"noise": "gaussian", "x_bounds": (0.0, 10.0)},
    "records": {"noise": "gaussian", "protect": "records", "x_bounds": (0.0, 10.0)},
}


def binned(make: Any, form: str, **options: Any) -> Numbers:
    settings = {"y_bounds": BOUNDS, "epsilon": 2.0, "delta": 1e-5, "random_state": 3}
    model = make(**settings, **FORMS[form], **options).fit(*data(150))
    if isinstance(model, pg.BinnedGP):
        mean, std = model.predict(points(), return_std=True)
        predicted = {"mean": mean, "std": std, "theta": model.kernel_.theta}
    else:
        predicted = {"mean": model.predict(points())}
    return {
        **predicted,
        **promise(model.guarantee_),
        "noise_std": model.noise_std_,
        "bin_means": model.means_,
        "counts": model.counts_,
    }


@case
def binned_means() -> Numbers:
    return each({form: binned(pg.BinnedMeans, form, bins=6) for form in FORMS})


@case
def binned_gp() -> Numbers:
    found = {}
    for form in FORMS:
        for model in ("integral", "centres"):
            found[f"{form}, {model}"] = binned(pg.BinnedGP, form, bins=5, model=model)
    found["matern"] = binned(
        pg.BinnedGP, "laplace", bins=5, kernel=3.0 * Matern(2.0, nu=1.5), noise_variance=0.5
    )
    return each(found)


# Functions and paths that the custodian keeps


def kept_function(kernel: Any, columns: int = 1, rows: int = 40, **options: Any) -> Numbers:
    settings = {"y_bounds": BOUNDS, "epsilon": 2.0, "delta": 1e-5, "random_state": 3, **options}
    made = pg.PrivateFunction(kernel, 0.5, **settings).fit(*data(rows, columns))
    inside = np.minimum(points(columns), 10.0)
    return {
        **promise(made.guarantee_),
        "sensitivity": made.sensitivity_,
        "noise_std": made.noise_std_,
        "answers": made.release(inside),
    }


@case
def function_of_outputs() -> Numbers:
    narrow = 1.0 * RBF(0.01)  # a dominant diagonal, for Varah's bound
    found = {
        "1-D": kept_function(4.0 * RBF(2.0)),
        "2-D": kept_function(4.0 * Matern([2.0, 3.0], nu=2.5) + 0.5, columns=2),
        "varah": kept_function(narrow, rows=20, sensitivity="varah"),
        "dominance": kept_function(narrow, rows=20, sensitivity="varah", dominance=0.3),
    }
    for bound in ("infinity", "nonnegative"):
        found[bound] = kept_function(4.0 * RBF(2.0), sensitivity=bound)
    return each(found)


@case
def function_through_inducing_inputs() -> Numbers:
    kernel = 4.0 * RBF(2.0)
    given = np.linspace(0, 10, 7)[:, None]
    return each(
        {
            "chosen": kept_function(kernel, rows=120, inducing=8),
            "given": kept_function(kernel, rows=120, inducing=given),
        }
    )


@case
def function_of_records() -> Numbers:
    found = {}
    for bound in ("exact", "paper"):
        options = {"protect": "records", "sensitivity": bound}
        found[bound] = kept_function(4.0 * RBF(2.0), domain=(0.0, 10.0), **options)
    found["2-D"] = kept_function(
        2.0 * Matern(3.0, nu=1.5), 2, protect="records", domain=[(0.0, 10.0)] * 2
    )
    return each(found)


@case
def posterior_paths() -> Numbers:
    """How far one record moves the mean. What the paths guarantee was changed since, on purpose."""
    bounds = {"auto": "auto", "paper": "paper", "function": ("function", 3.0)}
    kernels = {
        "rbf": 4.0 * RBF(20.0),
        "exponential": 4.0 * Matern(20.0, nu=0.5),
        "sum": 2.0 * Matern(15.0, nu=2.5) + 1.0,
    }
    settings = {"domain": (0.0, 10.0), "y_bounds": BOUNDS, "delta": 1e-5, "random_state": 3}
    found = {}
    for kernel_name, kernel in kernels.items():
        for bound_name, bound in bounds.items():
            made = pg.PosteriorPaths(kernel, 40.0, sensitivity=bound, **settings).fit(*data())
            found[f"{kernel_name}, {bound_name}"] = {"sensitivity": made.sensitivity_}
    return each(found)


@case
def tuned_paths() -> Numbers:
    from privgp.models.function.tune import ExcursionTask, PriorDraws

    rng = np.random.default_rng(4)
    inputs, at = rng.uniform(0, 1, (4, 12, 1)), np.linspace(0, 1, 9)[:, None]
    shift = rng.uniform(0, 1, (4, 1))
    outputs = np.sin(5 * (inputs[:, :, 0] - shift)) + 0.2 * rng.standard_normal((4, 12))
    draws = PriorDraws(inputs, outputs, at, np.sin(5 * (at[:, 0] - shift)))
    tuned = pg.tune_for(
        ExcursionTask(0.2), draws, None, domain=(0, 1), y_bounds=(-1, 1), delta=1e-5, rounds=1,
        lengthscales=[0.2, 0.5, 1.0], regularisations=[0.1, 0.5, 2.0],
    )  # fmt: skip
    return {
        name: getattr(tuned, name) for name in ("lengthscale", "regularisation", "scale", "loss")
    }


# Choosing hyperparameters


@case
def grid_search() -> Numbers:
    grid = {"kernel__length_scale": [0.5, 2.0, 6.0], "noise_variance": [0.2, 1.0]}
    found = {}
    for method in ("measurement", "permute-and-flip", "exponential"):
        model = pg.PrivateGPRegressor(RBF(1.0, "fixed"), y_bounds=BOUNDS)
        search = pg.PrivateGridSearchCV(
            model,
            grid,
            epsilon=4.0,
            delta=1e-5,
            method=method,
            random_state=3,
            cv=5 if method == "measurement" else 3,
        ).fit(*data(40))
        results = search.cv_results_
        scores = ("log_evidence",) if method == "measurement" else ("sensitivity", "noise_std")
        found[method] = {
            **promise(search.guarantee_),
            **{name: results[name] for name in scores},
            "best_index": search.best_index_,
            "mean": search.predict(points()),
        }
    search = pg.PrivateGridSearchCV(
        KNeighborsRegressor(), {"n_neighbors": [1, 5, 20]}, epsilon=1.0, delta=1e-5,
        method="permute-and-flip", scoring="absolute_error", loss_bounds=(0, 4), random_state=3,
    ).fit(*data(80), X_val=data(90, seed=5)[0], y_val=data(90, seed=5)[1])  # fmt: skip
    found["validation records"] = {
        **promise(search.guarantee_),
        "sensitivity": search.cv_results_["sensitivity"],
        "best_index": search.best_index_,
        "mean": search.predict(points()),
    }
    return each(found)


@case
def bayes_search() -> Numbers:
    X, y = data(60, 2)
    X_val, y_val = data(200, 2, seed=5)
    found = {}
    for method in ("measured", "kusner", "kusner-noise-free"):
        assume = {"A": 2.0, "tau": 0.5} if method == "kusner-noise-free" else None
        search = pg.PrivateBayesSearchCV(
            Ridge(), {"alpha": (0.1, 1000.0, "log-uniform")}, epsilon=2.0, delta=1e-5, n_iter=5,
            method=method, scoring="squared_error", loss_bounds=(0, 9), candidates=40, assume=assume,
            random_state=3,
        ).fit(X, y, X_val=X_val, y_val=y_val)  # fmt: skip
        found[method] = {
            "noise_std": search.plan_.noise_std,
            "best_index": search.best_index_,
            "best_score": search.best_score_,
            "mean": search.predict(points(2)),
        }
        if method == "measured":
            results = search.cv_results_
            names = ("score", "posterior_mean", "posterior_std")
            found[method] |= {**promise(search.guarantee_), **{n: results[n] for n in names}}
        else:
            found[method]["bounds"] = list(search.plan_.theorem_bounds(2.0).values())
    return each(found)


# Several releases


@case
def composed() -> Numbers:
    X, y = data(30)
    given = {"kernel": 4.0 * RBF(2.0), "noise_variance": 0.5, "hyperparameters": "fixed"}
    gaussian = regressor(mechanism="gaussian", **given).fit(X, y).guarantee_
    strict = regressor(mechanism="gaussian", epsilon=0.3, **given).fit(X, y).guarantee_
    pure = regressor(mechanism="laplace", **given).fit(X, y).guarantee_
    found = {}
    for name, several in {
        "gaussian": [gaussian, strict, strict],
        "pure": [pure, pure],
        "mixed": [gaussian, pure, strict, pure],
    }.items():
        together = pg.compose(several, 1e-5)
        found[name] = {
            **promise(together),
            "epsilons": [together.epsilon_at(d) for d in (1e-9, 1e-5, 1e-3)],
            "deltas": [together.delta_at(e) for e in (0.5, 1.0)],
        }
    return each(found)


def rounded(value: Any) -> Any:
    """A number, or a list of numbers, to this many significant digits."""
    if np.ndim(value) == 0:
        return float(f"{float(value):.{DIGITS}g}")
    return [rounded(v) for v in np.ravel(value)]


def run(name: str) -> Numbers:
    return {key: rounded(value) for key, value in CASES[name]().items()}


def written(numbers: dict[str, Numbers]) -> str:
    """The numbers of several cases as JSON, one line for each name."""
    lines = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
        + "\n}"
        for name, found in numbers.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}"


if __name__ == "__main__":
    print(written({name: run(name) for name in sys.argv[1:] or CASES}))
