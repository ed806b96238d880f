"""Every mechanism and entry point, one row each: how it is called, and on which two datasets.

``Measured`` numbers are attacked with the best test there is, ``Released`` ones with a trained test,
``Chosen`` candidates by their frequencies; attacks.py explains all three. A row must hold as it is and break when its noise is a fifth too small.

How many draws are attacked is in attacks.py, by the law and by how many numbers move. Labelled records with
many inputs move by 0.90 of the bound, which covers features of either sign: 8,000 draws miss too little
noise with probability 4e-10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from papers.shared.choices import exponential_probabilities, permute_and_flip_probabilities
from privgp import (
    BinnedGP,
    BinnedMeans,
    Count,
    Label,
    Number,
    PosteriorPaths,
    Presence,
    PrivateBayesSearchCV,
    PrivateBounds,
    PrivateFunction,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPDensity,
    PrivateGPRegressor,
    PrivateGridSearchCV,
    VaryingLengthscale,
    private_bounds,
)
from privgp.audit.promises import Promise
from privgp.plan.bins.bins import Bins
from privgp.privacy.noise import PURE
from privgp.release.residuals import FirstStage
from tests.adversary.attacks import Chosen, Measured, Released
from tests.adversary.neighbours import (
    INPUTS,
    PEOPLE,
    ends,
    of_bins,
    of_features,
    of_joint_plan,
    of_labels,
    of_plan,
)
from tests.models.looking_up import Column

BUDGET = {"y_bounds": (0, 1), "epsilon": 8.0, "delta": 0.01}
SMALL = {**BUDGET, "epsilon": 2.5}
FEW = INPUTS[::4]
WEIGHTS = np.tile([3.0, 1.0, 2.0, 0.5], 3)
LABELS = INPUTS + 0.03, np.zeros(len(INPUTS), int)  # first batches, before that which is attacked
FEW_RECORDS = np.full((200_000, 1), 0.7), np.full(200_000, 0.5)
VARYING = DotProduct(0.5) * VaryingLengthscale(0.5, places=[[0.0], [1.0]], factors=[0.5, 2.0])
TWO_OUTPUTS = PrivateGPRegressor(
    **{**BUDGET, "y_bounds": ((0, 1), (0, 1))}, mechanism="gaussian", hyperparameters="fixed"
)


def regressor(groups: Any = None, **settings: Any) -> Measured:
    """Outputs are private: the worst person of the plan at either end of the bounds."""
    model = PrivateGPRegressor(**{**BUDGET, **settings})
    worst = of_plan(model, groups)
    return Measured(lambda y: clone(model).fit(INPUTS, y, groups=groups), worst)


def weighted(groups: Any = None, **settings: Any) -> Measured:
    """Rows with sample weights: the worst person, whose rows may have different ones."""
    model = PrivateGPRegressor(**{**BUDGET, "hyperparameters": "fixed", **settings})
    given = {"groups": groups, "sample_weight": WEIGHTS}
    worst = of_plan(model, **given)
    return Measured(lambda y: clone(model).fit(INPUTS, y, **given), worst)


def many_rows(groups: Any = None, **settings: Any) -> Measured:
    """Rows that are tallied, as if there were many of them: a person's outputs at either end of the
    bounds."""
    model = PrivateGPRegressor(**{**SMALL, "hyperparameters": "fixed", **settings})
    X = INPUTS if groups is None else np.round(np.asarray(groups, dtype=float))[:, None]

    def fit(y: Any) -> Any:
        with mock.patch("privgp.models.rows.fit.STREAMED", 5):
            return clone(model).fit(X, y, groups=groups)

    pair = ends() if groups is None else ends_of_person(groups)
    return Measured(fit, pair)


def many_labels() -> Measured:
    """Labels of three classes in cells: one changes."""
    model = PrivateGPClassifier(
        classes=range(3), epsilon=2.5, delta=0.0, hyperparameters="fixed", mechanism="laplace"
    )

    def fit(y: Any) -> Any:
        with mock.patch("privgp.models.rows.fit.STREAMED", 5):
            return clone(model).fit(INPUTS, y)

    return Measured(fit, lambda: (np.zeros(12, int), np.r_[1, np.zeros(11, int)]))


def ends_of_person(groups: Any) -> Callable[[], Any]:
    """All outputs of the first person at either end of (0, 1)."""
    mine = groups == groups[0]
    return lambda: (np.where(mine, 0.0, 0.5), np.where(mine, 1.0, 0.5))


def several(groups: Any = None, **settings: Any) -> Measured:
    """Two outputs of everybody are private: both of the worst person at either end of the bounds."""
    settings = {"y_bounds": ((0, 1), (0, 1)), "hyperparameters": "fixed", **settings}
    model = PrivateGPRegressor(**{**BUDGET, **settings})
    worst = of_joint_plan(model, groups)
    return Measured(lambda y: clone(model).fit(INPUTS, y, groups=groups), worst)


def mixed(**settings: Any) -> Measured:
    """A number, a label and a count of everybody: all of the first person move as far as they may, with
    private inputs between two places; counts do not go with these."""
    private = "x_bounds" in settings
    outcomes = {"pay": Number(0, 1), "ill": Label("no", "yes")}
    outcomes |= {} if private else {"visits": Count(2, high=9)}
    shared = {"epsilon": 8.0, "delta": 0.01, "hyperparameters": "fixed", "inputs": ["x"]}
    model = PrivateGP(outcomes, **{**shared, **settings})
    moved = PEOPLE == 0 if model.groups else np.arange(12) == 0

    def run(end: int) -> Any:
        columns = {"x": np.tile([0.1, 0.5, 0.9], 4), "whose": PEOPLE, "pay": np.full(12, 0.5)}
        columns |= {"visits": np.zeros(12), "ill": np.full(12, "no", dtype=object)}
        columns["pay"][moved], columns["visits"][moved] = end, 2 * end
        columns["ill"][moved] = ("no", "yes")[end]
        if private:
            columns["x"][moved] = (0.1, 0.9)[end]
        return clone(model).fit(columns)

    return Measured(run, lambda: (0, 1))


def classifier(classes: int, **settings: Any) -> Measured:
    """Labels are private: all are of the first class, but one that changes to the second."""
    settings = {"epsilon": 8.0, "delta": 0.01, "hyperparameters": "fixed", **settings}
    model = PrivateGPClassifier(classes=range(classes), **settings)

    return Measured(lambda y: clone(model).fit(INPUTS, y), labels_of(model))


def labels_of(model: Any) -> Callable[[], Any]:
    """Labels of the first class, except for the one that moves the measurement most."""

    def pair() -> Any:
        plan = model.plan(INPUTS)
        columns = np.abs(plan.strategy.matrix[:, plan.strategy.index])
        y = np.zeros((2, len(INPUTS)), int)
        y[1, int(np.argmax(np.linalg.norm(columns, 1 if plan.noise.pure else 2, axis=0)))] = 1
        return y[0], y[1]

    return pair


def refined(law: str, groups: Any = None, **budget: Any) -> Measured:
    """Outputs of the same rows measured twice."""
    model = PrivateGPRegressor(mechanism=law, hyperparameters="fixed", **{**BUDGET, **budget})
    return refined_model(model, of_plan(model, groups), at_inputs, groups)


def refined_model(
    model: Any,
    pair: Any,
    rows: Callable[[Any], Any],
    groups: Any = None,
) -> Measured:
    """The same rows measured twice: both measurements are attacked together. The hyperparameters are
    fixed, so that the second plan does not depend on the first one's noise. ``rows``: X and y from one
    of the two datasets."""
    half = model.epsilon / 2, model.delta / 2

    def run(data: Any) -> Any:
        X, y = rows(data)
        fresh = clone(model).set_params(epsilon=half[0], delta=half[1]).fit(X, y, groups=groups)
        return fresh.refine(X, y, *half, groups=groups)

    return Measured(run, pair)


def residuals(law: str, groups: Any = None, *, many: bool = False, **budget: Any) -> Measured:
    """Outputs, then clipped residuals about a curve: both stages are attacked together. The curve and the
    width are given, so that the second stage does not depend on the first one's noise. ``many``: rows are
    tallied, as if there were many of them."""
    settings = {**BUDGET, **budget, "mechanism": law, "hyperparameters": "fixed"}
    model = PrivateGPRegressor(**settings, residuals="always")
    middle = property(lambda stage: (np.full(len(stage.plan.strategy.index), 0.5), 0.1))

    def run(y: Any) -> Any:
        rows = mock.patch("privgp.models.rows.fit.STREAMED", 5 if many else len(y))
        with rows, mock.patch.object(FirstStage, "centre", middle):
            return clone(model).fit(INPUTS, y, groups=groups)

    if many:
        return Measured(run, ends() if groups is None else ends_of_person(groups))

    return Measured(run, of_plan(model, groups))


def updated(law: str, **budget: Any) -> Measured:
    """A person of the second batch: the first one's measurement tells nothing of them."""
    model = PrivateGPRegressor(mechanism=law, hyperparameters="fixed", **{**BUDGET, **budget})
    first = INPUTS + 0.03, np.full(len(INPUTS), 0.5)
    return updated_model(model, of_plan(model), at_inputs, first)


def updated_model(model: Any, pair: Any, rows: Callable[[Any], Any], first: Any) -> Measured:
    """Rows of the second batch are attacked by its measurement. ``first``: X and y of the first."""

    def run(data: Any) -> Any:
        return clone(model).fit(*first).update(*rows(data))

    return Measured(run, pair, part=1)


def at_inputs(y: Any) -> Any:
    return INPUTS, y


def further_labels(how: Any, classes: int, *first: Any, **settings: Any) -> Measured:
    """Labels measured twice, or of a second batch."""
    settings = {"epsilon": 8.0, "delta": 0.01, "hyperparameters": "fixed", **settings}
    model = PrivateGPClassifier(classes=range(classes), **settings)
    return how(model, labels_of(model), at_inputs, *first)


def further_records(how: Any, *first: Any, rows: int, **settings: Any) -> Measured:
    """Records measured twice, or of a second batch: as in ``records``."""
    model = PrivateGPRegressor(
        ConstantKernel(0.2) * RBF(0.6),
        protect="records",
        x_bounds=(0, 1),
        hyperparameters="fixed",
        **settings,
    )

    def records_of(record: Any) -> Any:
        X, y = np.full((rows, 1), 0.4), np.full(rows, 0.5)
        X[0], y[0] = record
        return X, y

    stay = settings["mechanism"] in PURE
    return how(model, lambda: of_bins(model.plan(rows).strategy, stay=stay), records_of, *first)


def fitted_records(model: Any, bins: Callable[[], Any], **where: Any) -> Measured:
    """Records are private: the first is one of the two that lie furthest apart."""

    def run(record: Any) -> Any:
        rows = bins().rows
        X, y = np.full((rows, 1), 0.4), np.full(rows, 0.5)
        X[0], y[0] = record
        return clone(model).fit(X, y)

    return Measured(run, lambda: of_bins(bins(), **where))


def features(**budget: Any) -> Measured:
    """Four private inputs: the first record is one of two at places whose features move it most."""
    kernel, bounds = ConstantKernel(0.2) * RBF(0.6), [(0, 1)] * 4
    model = PrivateGPRegressor(kernel, 0.02, protect="records", x_bounds=bounds, **budget)

    def run(record: Any) -> Any:
        X, y = np.full((5, 4), 0.4), np.full(5, 0.5)
        X[0], y[0] = record
        return clone(model).set_params(hyperparameters="fixed").fit(X, y)

    return Measured(run, lambda: of_features(model.plan(5).strategy))


def people(bounds: Any, **settings: Any) -> Measured:
    """All three records of the first person lie in one place, and all of one output."""
    kernel, whose = ConstantKernel(0.2) * RBF(0.6), np.repeat(np.arange(4), 3)
    model = PrivateGPRegressor(kernel, 0.02, protect="records", x_bounds=bounds, **settings)

    def run(y: float) -> Any:
        X, outputs = np.full((12, len(bounds)), 0.4), np.full(12, 0.5)
        outputs[whose == 0] = y
        return clone(model).set_params(hyperparameters="fixed").fit(X, outputs, groups=whose)

    return Measured(run, lambda: (0.0, 1.0))


def labelled(
    bounds: Any,
    classes: int = 3,
    *,
    whose: Any = None,
    **settings: Any,
) -> Measured:
    """Whole records with labels: the first record, or all of the first person, is of one class or of
    another, or at another place of many inputs, whichever moves most. A person's records lie in one
    place and have one label."""
    settings = {"epsilon": 8.0, "delta": 0.01, "hyperparameters": "fixed", **settings}
    kernel = ConstantKernel(4.0) * RBF(1.5)
    model = PrivateGPClassifier(
        kernel, classes=range(classes), protect="records", x_bounds=bounds, **settings
    )
    rows = 5 if whose is None else len(whose)
    mine = np.arange(rows) == 0 if whose is None else whose == whose[0]

    def run(record: Any) -> Any:
        X, y = np.full((rows, len(bounds)), 0.4), np.zeros(rows, int)
        X[mine], y[mine] = record
        return clone(model).fit(X, y, groups=whose)

    def pair() -> Any:
        return of_labels(model.plan(rows, groups=whose).strategy)

    return Measured(run, pair)


def counted(whose: Any = None, **settings: Any) -> Measured:
    """Whole records with counts: none or the most there may be, in one place."""
    kernel = ConstantKernel(0.2) * RBF(0.6)
    model = PrivateGPRegressor(
        kernel, protect="records", x_bounds=(0, 1), likelihood="poisson", hyperparameters="fixed",
        **settings,
    )  # fmt: skip
    rows = 5 if whose is None else len(whose)
    mine = np.arange(rows) == 0 if whose is None else whose == whose[0]

    def run(count: float) -> Any:
        y = np.where(mine, count, 0.5)
        return clone(model).fit(np.full((rows, 1), 0.4), y, groups=whose)

    return Measured(run, lambda: (0.0, 1.0))


def records(law: str, **budget: Any) -> Measured:
    """With Laplace noise and many rows next to nothing goes to the energy, and the move is whole."""
    model = PrivateGPRegressor(
        ConstantKernel(0.2) * RBF(0.6),
        protect="records",
        x_bounds=(0, 1),
        mechanism=law,
        hyperparameters="fixed",
        **budget,
    )
    rows, stay = (200_000, True) if law in PURE else (5, False)
    return fitted_records(model, lambda: model.plan(rows).strategy, stay=stay)


def weighted_records(law: str, **settings: Any) -> Measured:
    """Records with private weights: all others weigh next to nothing, the first one as much as may be. Only
    the noisy numbers tell what all weights add up to."""
    model = PrivateGPRegressor(
        ConstantKernel(0.2) * RBF(0.6), protect="records", x_bounds=(0, 1), mechanism=law,
        hyperparameters="fixed", max_weight=4.0, **settings,
    )  # fmt: skip
    rows, stay = (200_000, True) if law in PURE else (5, False)
    bins = lambda: model.plan(rows).strategy  # noqa: E731

    def run(record: Any) -> Any:
        X, y = np.full((rows, 1), 0.4), np.full(rows, 0.5)
        X[0], y[0] = record
        weights = np.append(9.0, np.full(rows - 1, 0.125))
        return clone(model).fit(X, y, sample_weight=weights)

    return Measured(run, lambda: of_bins(replace(bins(), weighted=False), stay=stay))


def weighted_people(**settings: Any) -> Measured:
    """The same of people: all records of the first one lie in one place, and all of one output."""
    kernel, whose = ConstantKernel(0.2) * RBF(0.6), np.repeat(np.arange(4), 3)
    model = PrivateGPRegressor(
        kernel,
        0.02,
        protect="records",
        x_bounds=(0, 1),
        hyperparameters="fixed",
        max_weight=2.0,
        **settings,
    )

    def run(y: float) -> Any:
        outputs = np.where(whose == 0, y, 0.5)
        weights = np.where(whose == 0, 3.0, 0.1)
        return clone(model).fit(np.full((12, 1), 0.4), outputs, groups=whose, sample_weight=weights)

    return Measured(run, lambda: (0.0, 1.0))


def density(mechanism: str, **budget: Any) -> Measured:
    """Places of points are private: the first lies at one end of the domain or at the other. There are
    this many points that the plan keeps both ends apart."""
    model = PrivateGPDensity(
        x_bounds=[(0, 1)], bins=4, mechanism=mechanism, hyperparameters="fixed", **budget
    )

    def run(place: float) -> Any:
        points = np.full((200_000, 1), 0.4)
        points[0] = place
        return clone(model).fit(points)

    return Measured(run, lambda: (0.05, 0.95))


def density_of_categories() -> Measured:
    """The same with a private category, and a public exposure that differs from bin to bin."""
    columns = {"sex": ("category", ["f", "m"])}
    box: Any = {"x_bounds": {"x": (0, 1)}, "columns": columns, "bins": 2}
    model = PrivateGPDensity(**box, hyperparameters="fixed", epsilon=2.5, delta=0.01)
    census = {"x": [0.2, 0.8] * 2, "sex": ["f", "f", "m", "m"], "people": [9e5, 5e5, 7e5, 8e5]}

    def run(sex: str) -> Any:
        points = {"x": np.full(200_000, 0.4), "sex": np.full(200_000, "f", dtype=object)}
        points["x"][0], points["sex"][0] = 0.9, sex
        return clone(model).fit(points, exposure=census)

    return Measured(run, lambda: ("f", "m"))


def presence() -> Measured:
    """The same by ``PrivateGP``."""
    model = PrivateGP(
        Presence(), x_bounds={"x": (0, 1)}, hyperparameters="fixed", epsilon=2.5, delta=0.01
    )

    def run(place: float) -> Any:
        return clone(model).fit({"x": np.append(place, np.full(30, 0.4))})

    return Measured(run, lambda: (0.05, 0.95))


class FoundBounds(BaseEstimator):
    """``private_bounds`` as an estimator, which attacks and replays call like all others."""

    def fit(self, y: Any) -> Any:
        found = private_bounds(y, epsilon=2.5, largest=1e3)
        self.guarantee_, self.bounds_ = found.guarantee, found.bounds
        return self


def found_bounds() -> Measured:
    """Values are private: the first is small or large."""

    def run(value: float) -> Any:
        return FoundBounds().fit(np.append(value, np.full(11, 3.0)))

    return Measured(run, lambda: (0.5, 700.0))


def bins(kind: type, protect: str, noise: str, **budget: Any) -> Measured:
    model = kind(bins=3, x_bounds=(0, 1), protect=protect, noise=noise, **budget)
    if protect == "records":
        grid = Bins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3))
        pure = noise in PURE
        return fitted_records(model, lambda: grid, stay=pure)
    return Measured(lambda y: clone(model).fit(INPUTS, y), ends())


def function(**settings: Any) -> Measured:
    """The outermost row moves the function most."""
    kernel = settings.pop("kernel", Matern(0.5, nu=2.5))
    noise = settings.pop("noise_variance", 0.3)
    made = PrivateFunction(kernel, noise, **BUDGET, **settings)

    def run(y: Any) -> Any:
        fresh = clone(made).fit(FEW, y)
        fresh.release(FEW)
        return fresh

    return Measured(run, ends(0, len(FEW)))


def function_of_records() -> Measured:
    """One record, so that another output and another input move as far as the bound."""
    made = PrivateFunction(RBF(0.5), 1.0, protect="records", domain=(0, 1), **BUDGET)

    def run(record: Any) -> Any:
        fresh = clone(made).fit([[record[0]]], [record[1]])
        fresh.release(np.linspace(0.3, 0.7, 5)[:, None])
        return fresh

    return Measured(run, lambda: ((0.5, 1.0), (0.52, 0.0)))


def paths(count: int, extra: float, draws: int) -> Released:
    """One record's output at either end; asked in two questions, near it and at the edges."""
    kernel, X, points = (
        Matern(1.0, nu=0.5),
        np.array([[0.5]]),
        np.array([[0.5], [0.5 + 3e-9], [1.0]]),
    )
    one = PosteriorPaths(
        kernel, 1.0, domain=(0, 1), y_bounds=(-1, 1), n_paths=count, extra_noise=extra, delta=1e-3
    )

    def run(y: float, many: int) -> tuple[Any, np.ndarray, np.ndarray]:
        made = clone(one).set_params(n_paths=count * many).fit(X, [y])
        drawn = np.hstack([made.release(points[:1]), made.release(points[1:])])
        cross = kernel(X, points) / 2.0
        law = (1 + extra**2) * kernel(points) - 2.0 * cross.T @ cross
        root = np.linalg.cholesky(law + made.nugget_std_**2 * np.eye(3))
        noise = np.linalg.solve(root, (drawn - y * cross).T)
        return made, drawn.reshape(many, -1), noise

    return Released(run, lambda: (-1.0, 1.0), draws)


def validated(method: str, law: Any, settings: int) -> Chosen:
    """Of 20 validation records one speaks for the last setting or against it, and one is against it:
    it falls behind the others by two records or by none."""
    search = PrivateGridSearchCV(
        Column(), {"j": list(range(settings))}, epsilon=3.0, delta=1e-5, method=method
    )

    def run(X: Any) -> Any:
        return clone(search).fit(X, np.ones(20, int), X_val=X, y_val=np.ones(20, int))

    def pair() -> Any:
        X = np.ones((2, 20, settings), int)
        X[:, 3, -1] = 0
        X[0, 7, -1] = 0
        X[1, 7, :-1] = 0
        return X[0], X[1]

    return Chosen(run, pair, lambda: 2.0 / 20 / 3.0, law, 3.0)


def cross_validated(part: str) -> Measured | Chosen:
    """A choice by cross-validation, at its whole sensitivity, then a release."""
    lengths = [1.0] if part == "release" else [0.5, 1.0]
    model = PrivateGPRegressor(RBF(1.0) + WhiteKernel(0.1), y_bounds=(0, 1), mechanism="gaussian")
    search = PrivateGridSearchCV(
        model, {"kernel__k1__length_scale": lengths}, cv=2, method="permute-and-flip",
        epsilon=10.0, delta=0.01,
    )  # fmt: skip

    def run(y: Any) -> Any:
        return clone(search).fit(INPUTS, y)

    if part == "release":
        rest = PrivateGPRegressor(RBF(1.0), 0.1, mechanism="gaussian", **BUDGET)
        mu = lambda g: Promise(mu=1.0 / g.noise_multipliers[0])  # noqa: E731
        return Measured(run, of_plan(rest), part=1, promise=mu)

    def most() -> float:
        """In units of half the width of the bounds."""
        told = clone(search).set_params(random_state=0).fit(INPUTS, ends()()[0])
        return 2.0 * float(told.cv_results_["sensitivity"][0])

    def worst() -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.0, -2.0]) * most(), np.array([-1.0, -1.0]) * most()

    law = permute_and_flip_probabilities
    return Chosen(run, ends(), lambda: 2.0 * most() / 3.0, law, 3.0, worst=worst)


def measured_search() -> Measured:
    model = PrivateGPRegressor(RBF(1.0) + WhiteKernel(0.1), y_bounds=(0, 1), mechanism="gaussian")
    grid = {"kernel__k1__length_scale": [0.5, 2.0]}
    search = PrivateGridSearchCV(model, grid, epsilon=8.0, delta=0.01)
    planner = PrivateGPRegressor(RBF(1.0), 0.1, mechanism="gaussian", **BUDGET)
    return Measured(lambda y: clone(search).fit(INPUTS, y), of_plan(planner))


def bayes(method: str = "measured", part: str = "all") -> Measured | Chosen:
    """One of 20 validation records is predicted right or wrong by every setting.

    Kusner's guarantees assume how far two objectives are apart: so far are they here.
    """
    settings: dict[str, Any] = {"epsilon": 8.0, "delta": 0.01, "n_iter": 2, "method": method}
    if method != "measured":
        settings["epsilon"] = 5.0
    if method == "kusner-noise-free":
        settings["assume"] = {"A": 1.0, "tau": 1.0}
    search = PrivateBayesSearchCV(Column(), {"j": [0, 1]}, **settings)

    def run(y: Any) -> Any:
        return clone(search).fit(None, None, X_val=np.ones((20, 2), int), y_val=y)

    def pair() -> Any:
        y = np.ones((2, 20), int)
        y[1, 7] = 0
        return y[0], y[1]

    if part == "all":
        return Measured(run, pair)
    known = search.plan(20).constants
    if part == "score":
        apart = lambda exact: (exact, exact + known.value_sensitivity)  # noqa: E731
        half = lambda g: Promise(pairs=((0.5 * g.epsilon, 0.0),))  # noqa: E731
        return Measured(run, pair, part=1, promise=half, worst=apart)
    moved = known.mean_sensitivity
    worst = lambda: (np.array([0.0, -2.0]) * moved, np.array([-1.0, -1.0]) * moved)  # noqa: E731
    law = exponential_probabilities
    return Chosen(run, pair, lambda: 2.0 * moved / 2.5, law, 2.5, worst=worst)


BLOCKS = np.repeat([[0.0], [1.0]], 2, axis=0).repeat(2, axis=0)  # two blocks of two places


def of_blocks() -> tuple[np.ndarray, np.ndarray]:
    """Outputs of two blocks of four rows. Three of four are equal in both blocks, or the first block has a
    step from one place to the other: its last output is at either bound."""
    rough = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0])
    step = rough.copy()
    step[6] = 0.0
    return step, rough


def blocks(method: str, law: Any) -> Chosen:
    """Two candidates, of which one suits a step and the other none: the first block changes its mind."""
    model = PrivateGPRegressor(
        RBF(100.0, "fixed"), 1e-4, y_bounds=(0, 1), protect="records", x_bounds=(0, 1), mechanism="laplace",
    )  # fmt: skip
    search = PrivateGridSearchCV(
        model, {"kernel__length_scale": [100.0, 0.05]}, method=method, epsilon=6.0, delta=0.0,
        selection_share=0.5, blocks=2,
    )  # fmt: skip
    return Chosen(
        lambda y: clone(search).fit(BLOCKS, y), of_blocks, lambda: 2.0 / 2 / 3.0, law, 3.0
    )


def measured_blocks() -> Measured:
    """Noisy mean losses of two blocks, of which one may move from 0 to 1."""
    model = PrivateGPRegressor(
        RBF(0.05), 1e-4, y_bounds=(0, 1), protect="records", x_bounds=(0, 1), mechanism="laplace"
    )
    search = PrivateBayesSearchCV(
        model, {"kernel__length_scale": [0.05, 0.1]}, epsilon=16.0, delta=0.02, n_iter=1,
        final_share=0.0, selection_share=0.5, blocks=2,
    )  # fmt: skip
    mu = lambda g: Promise(mu=1.0 / g.noise_multipliers[0])  # noqa: E731
    apart = lambda exact: (exact, exact + 0.5)  # noqa: E731
    return Measured(
        lambda y: clone(search).fit(BLOCKS, y), of_blocks, part=0, promise=mu, worst=apart
    )


# (name, public class, what is attacked); names of options stand in the name as users write them.
ROWS: tuple[tuple[str, type, Measured | Chosen | Released], ...] = (
    ("bounds", PrivateBounds, found_bounds()),
    ("density", PrivateGPDensity, density("laplace", epsilon=2.5, delta=0.01)),
    ("density, categories", PrivateGPDensity, density_of_categories()),
    ("presence", PrivateGP, presence()),
    ("outputs, gaussian", PrivateGPRegressor, regressor(mechanism="gaussian")),
    (
        "outputs, unbiased",
        PrivateGPRegressor,
        regressor(mechanism="gaussian", reconstruct="unbiased", targets=[[0.3]]),
    ),
    (
        "outputs, unbiased, noise by row",
        PrivateGPRegressor,
        regressor(
            reconstruct="unbiased",
            targets=[[0.3]],
            kernel=RBF(0.5),
            noise_variance=np.linspace(0.1, 2.0, len(INPUTS)),
        ),
    ),
    (
        "outputs, gaussian, noise by row",
        PrivateGPRegressor,
        regressor(mechanism="gaussian", noise_variance=np.linspace(0.01, 0.2, len(INPUTS))),
    ),
    (
        "refined, unbiased",
        PrivateGPRegressor,
        refined("gaussian", reconstruct="unbiased", targets=[[0.3]]),
    ),
    (
        "outputs, unbiased, not stationary",
        PrivateGPRegressor,
        regressor(reconstruct="unbiased", targets=[[0.3]], kernel=VARYING, noise_variance=0.1),
    ),
    (
        "outputs, laplace",
        PrivateGPRegressor,
        regressor(mechanism="laplace", hyperparameters="fixed", epsilon=2.5),
    ),
    ("people, gaussian", PrivateGPRegressor, regressor(PEOPLE, mechanism="gaussian")),
    ("weights, gaussian", PrivateGPRegressor, weighted(mechanism="gaussian")),
    ("weights of people, gaussian", PrivateGPRegressor, weighted(PEOPLE, mechanism="gaussian")),
    (
        "weights, laplace",
        PrivateGPRegressor,
        weighted(mechanism="laplace", epsilon=2.5),
    ),
    (
        "people, laplace",
        PrivateGPRegressor,
        regressor(PEOPLE, mechanism="laplace", hyperparameters="fixed", epsilon=2.5),
    ),
    ("several outputs, gaussian", PrivateGPRegressor, several(mechanism="gaussian")),
    (
        "several outputs, laplace",
        PrivateGPRegressor,
        several(mechanism="laplace", epsilon=2.5),
    ),
    (
        "several outputs of people, gaussian",
        PrivateGPRegressor,
        several(PEOPLE, mechanism="gaussian", shares=(1, 3)),
    ),
    (
        "max_change, gaussian",
        PrivateGPRegressor,
        regressor(mechanism="gaussian", max_change=0.2, hyperparameters="fixed"),
    ),
    (
        "max_change of people, laplace",
        PrivateGPRegressor,
        regressor(
            PEOPLE,
            mechanism="laplace",
            hyperparameters="fixed",
            epsilon=2.5,
            max_change=0.1,
        ),
    ),
    (
        "poisson, laplace",
        PrivateGPRegressor,
        regressor(
            mechanism="laplace",
            likelihood="poisson",
            epsilon=2.5,
            max_change=0.25,
            hyperparameters="fixed",
        ),
    ),
    (
        "residuals, gaussian",
        PrivateGPRegressor,
        residuals("gaussian"),
    ),
    (
        "residuals, laplace",
        PrivateGPRegressor,
        residuals("laplace", epsilon=2.5),
    ),
    (
        "residuals of people, laplace",
        PrivateGPRegressor,
        residuals("laplace", PEOPLE, epsilon=2.5),
    ),
    (
        "residuals of many rows, laplace",
        PrivateGPRegressor,
        residuals("laplace", epsilon=2.5, many=True),
    ),
    (
        "residuals of many people, laplace",
        PrivateGPRegressor,
        residuals("laplace", PEOPLE, epsilon=2.5, many=True),
    ),
    ("refined, gaussian", PrivateGPRegressor, refined("gaussian")),
    ("refined, people, gaussian", PrivateGPRegressor, refined("gaussian", PEOPLE)),
    ("refined, laplace", PrivateGPRegressor, refined("laplace", epsilon=2.5)),
    ("updated, gaussian", PrivateGPRegressor, updated("gaussian")),
    ("updated, laplace", PrivateGPRegressor, updated("laplace", epsilon=2.5)),
    (
        "refined, three classes, gaussian",
        PrivateGPClassifier,
        further_labels(refined_model, 3, mechanism="gaussian"),
    ),
    (
        "refined, two classes, laplace",
        PrivateGPClassifier,
        further_labels(refined_model, 2, mechanism="laplace", epsilon=2.5),
    ),
    (
        "updated, two classes, laplace",
        PrivateGPClassifier,
        further_labels(updated_model, 2, LABELS, mechanism="laplace", epsilon=2.5),
    ),
    (
        "updated, three classes, gaussian",
        PrivateGPClassifier,
        further_labels(updated_model, 3, LABELS, mechanism="gaussian"),
    ),
    (
        "refined, poisson, gaussian",
        PrivateGPRegressor,
        refined("gaussian", likelihood="poisson", max_change=0.25),
    ),
    (
        "updated, poisson, laplace",
        PrivateGPRegressor,
        updated("laplace", likelihood="poisson", max_change=0.25, epsilon=2.5),
    ),
    (
        "refined, several outputs, gaussian",
        PrivateGPRegressor,
        refined_model(TWO_OUTPUTS, of_joint_plan(TWO_OUTPUTS), at_inputs),
    ),
    (
        "updated, several outputs, gaussian",
        PrivateGPRegressor,
        updated_model(
            TWO_OUTPUTS,
            of_joint_plan(TWO_OUTPUTS),
            at_inputs,
            (INPUTS + 0.03, np.full((len(INPUTS), 2), 0.5)),
        ),
    ),
    (
        "refined, records, gaussian",
        PrivateGPRegressor,
        further_records(refined_model, rows=5, mechanism="gaussian", **BUDGET),
    ),
    (
        "updated, records, laplace",
        PrivateGPRegressor,
        further_records(updated_model, FEW_RECORDS, rows=200_000, mechanism="laplace", **SMALL),
    ),
    (
        "inducing",
        PrivateGPRegressor,
        regressor(inducing=3, mechanism="gaussian", hyperparameters="fixed"),
    ),
    (
        "inducing, people",
        PrivateGPRegressor,
        regressor(PEOPLE, inducing=3, mechanism="gaussian", hyperparameters="fixed"),
    ),
    ("cells", PrivateGPRegressor, many_rows()),
    ("cells, people", PrivateGPRegressor, many_rows(PEOPLE)),
    ("cells, Gaussian", PrivateGPRegressor, many_rows(**BUDGET, mechanism="gaussian")),
    ("cells, labels", PrivateGPClassifier, many_labels()),
    (
        "inducing, laplace",
        PrivateGPRegressor,
        regressor(inducing=3, mechanism="laplace", hyperparameters="fixed", epsilon=2.5),
    ),
    ("records, gaussian", PrivateGPRegressor, records("gaussian", **BUDGET)),
    ("private weights, gaussian", PrivateGPRegressor, weighted_records("gaussian", **BUDGET)),
    ("private weights, laplace", PrivateGPRegressor, weighted_records("laplace", **SMALL)),
    (
        "private weights of people, gaussian",
        PrivateGPRegressor,
        weighted_people(mechanism="gaussian", **BUDGET),
    ),
    ("records, laplace", PrivateGPRegressor, records("laplace", **SMALL)),
    ("outputs, gaussian", PrivateGP, mixed(mechanism="gaussian")),
    ("outputs, laplace", PrivateGP, mixed(mechanism="laplace", epsilon=2.5)),
    ("people, gaussian", PrivateGP, mixed(mechanism="gaussian", groups="whose")),
    ("inducing", PrivateGP, mixed(mechanism="gaussian", inducing=3)),
    (
        "records, gaussian",
        PrivateGP,
        mixed(mechanism="gaussian", protect="records", x_bounds={"x": (0, 1)}),
    ),
    ("two classes, gaussian", PrivateGPClassifier, classifier(2, mechanism="gaussian")),
    (
        "two classes, laplace",
        PrivateGPClassifier,
        classifier(2, mechanism="laplace", epsilon=2.5),
    ),
    ("three classes, gaussian", PrivateGPClassifier, classifier(3, mechanism="gaussian")),
    (
        "three classes, laplace",
        PrivateGPClassifier,
        classifier(3, mechanism="laplace", epsilon=2.5),
    ),
    ("records, gaussian, many inputs", PrivateGPRegressor, features(**BUDGET)),
    (
        "records of people, gaussian",
        PrivateGPRegressor,
        people([(0, 1)], mechanism="gaussian", **BUDGET),
    ),
    ("records of people, many inputs", PrivateGPRegressor, people([(0, 1)] * 4, **BUDGET)),
    ("records, poisson, gaussian", PrivateGPRegressor, counted(mechanism="gaussian", **BUDGET)),
    (
        "records, poisson, laplace",
        PrivateGPRegressor,
        counted(mechanism="laplace", **SMALL),
    ),
    (
        "records of people, poisson",
        PrivateGPRegressor,
        counted(PEOPLE, mechanism="gaussian", **BUDGET),
    ),
    (
        "records, three classes, gaussian",
        PrivateGPClassifier,
        labelled([(0, 1)], mechanism="gaussian"),
    ),
    (
        "records, three classes, laplace",
        PrivateGPClassifier,
        labelled([(0, 1)], mechanism="laplace", epsilon=2.5),
    ),
    (
        "records of people, three classes",
        PrivateGPClassifier,
        labelled([(0, 1)], whose=PEOPLE, mechanism="gaussian"),
    ),
    (
        "records of people, two classes",
        PrivateGPClassifier,
        labelled([(0, 1)], 2, whose=PEOPLE, mechanism="gaussian"),
    ),
    (
        "records, three classes, many inputs",
        PrivateGPClassifier,
        replace(labelled([(0, 1)] * 4), draws=8_000),
    ),
    ("outputs, laplace", BinnedMeans, bins(BinnedMeans, "outputs", "laplace", **SMALL)),
    ("outputs, gaussian", BinnedMeans, bins(BinnedMeans, "outputs", "gaussian", **BUDGET)),
    ("records, gaussian", BinnedMeans, bins(BinnedMeans, "records", "gaussian", **BUDGET)),
    ("records, laplace", BinnedMeans, bins(BinnedMeans, "records", "laplace", **SMALL)),
    ("outputs, gaussian", BinnedGP, bins(BinnedGP, "outputs", "gaussian", **BUDGET)),
    ("outputs, laplace", BinnedGP, bins(BinnedGP, "outputs", "laplace", **SMALL)),
    ("records, gaussian", BinnedGP, bins(BinnedGP, "records", "gaussian", **BUDGET)),
    ("records, laplace", BinnedGP, bins(BinnedGP, "records", "laplace", **SMALL)),
    ("outputs", PrivateFunction, function()),
    ("outputs, not stationary", PrivateFunction, function(kernel=VARYING)),
    ("outputs, noise by row", PrivateFunction, function(noise_variance=[0.2, 0.5, 0.9])),
    ("inducing", PrivateFunction, function(inducing=FEW)),
    ("records", PrivateFunction, function_of_records()),
    ("one path", PosteriorPaths, paths(1, 0.0, 800)),
    ("three paths", PosteriorPaths, paths(3, 0.0, 300)),
    ("extra noise", PosteriorPaths, paths(1, 1.0, 800)),
    ("measurement", PrivateGridSearchCV, measured_search()),
    ("permute-and-flip, choice", PrivateGridSearchCV, cross_validated("choice")),
    ("permute-and-flip, release", PrivateGridSearchCV, cross_validated("release")),
    (
        "permute-and-flip, records",
        PrivateGridSearchCV,
        validated("permute-and-flip", permute_and_flip_probabilities, 2),
    ),
    (
        "exponential, records",
        PrivateGridSearchCV,
        validated("exponential", exponential_probabilities, 6),
    ),
    (
        "permute-and-flip, blocks",
        PrivateGridSearchCV,
        blocks("permute-and-flip", permute_and_flip_probabilities),
    ),
    ("exponential, blocks", PrivateGridSearchCV, blocks("exponential", exponential_probabilities)),
    ("measured, blocks", PrivateBayesSearchCV, measured_blocks()),
    ("measured", PrivateBayesSearchCV, bayes()),
    ("kusner, setting", PrivateBayesSearchCV, bayes("kusner", "setting")),
    ("kusner, score", PrivateBayesSearchCV, bayes("kusner", "score")),
    ("kusner-noise-free, score", PrivateBayesSearchCV, bayes("kusner-noise-free", "score")),
)
