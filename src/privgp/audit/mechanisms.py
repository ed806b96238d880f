"""From a mechanism and two neighbouring datasets to what an attack needs.

A linear measurement with isotropic noise becomes a NoisyPair, on which the best attack is known;
anything else a sampler of releases, on which one is trained.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from privgp.audit.gaussian import NoisyPair
from privgp.audit.progress import Callback
from privgp.audit.promises import Promise, promise_of
from privgp.audit.trained import Sampler
from privgp.gp.growing import Coordinates
from privgp.models.function.estimator import PrivateFunction
from privgp.models.paths import PosteriorPaths
from privgp.models.promise import simulation
from privgp.models.regressor import PrivateGPRegressor
from privgp.plan.functions.paths import MOST_PATHS
from privgp.plan.inputs.arguments import domain_pairs
from privgp.plan.plan import Plan
from privgp.types import Array
from privgp.vault.measure import exact
from privgp.vault.states.outputs import within_limit
from privgp.vault.validate import clipped_outputs

NOT_NEIGHBOURS = "data and neighbour must share their inputs: only outputs are private here."
ONE_PERSON = "data and neighbour must differ in one row only (with groups, in one person's rows)."
PAIRS = "data and neighbour must both be (X, y), or data be X alone for the worst neighbours."
# Steps from where the datasets differ, as shares of the domain's width.
CLUSTER: Array = np.array([3e-9, 6e-9, 9e-9, 12e-9])  # rounding errors weigh most there
NEAR: Array = np.array([1e-12, 1e-3])


def pair_of_plan(plan: Plan, data: Any, neighbour: Any) -> NoisyPair:
    """The measurements of two datasets under a plan: outputs y, or for records (X, y)."""
    if (data is None) != (neighbour is None):
        raise ValueError("give both data and neighbour, or neither for the worst there are.")
    strategy, bounds = plan.strategy, plan.y_bounds
    if data is None:
        low, high = strategy.furthest()
    elif plan.x_bounds is not None:
        both = _inputs_and_outputs(data), _inputs_and_outputs(neighbour)
        _check_one_record(*both)
        low, high = (exact(strategy, each, bounds) for each in both)
    elif strategy.distinct_inputs is None:
        raise ValueError("with inducing inputs only the worst neighbours are attacked.")
    else:
        first, second = (clipped_outputs(y, strategy.rows, bounds) for y in (data, neighbour))
        _check_one_person(first != second, strategy.people)
        low, high = (exact(strategy, y, bounds) for y in (data, neighbour))
    return NoisyPair(low, high, plan.noise, Promise.of(plan.noise.event))


def pair_of_regressor(model: PrivateGPRegressor, data: Any, neighbour: Any) -> NoisyPair:
    """The measurements that ``fit`` would make of two datasets (X, y), or X alone."""
    if neighbour is None:
        return pair_of_plan(model.plan(_inputs_alone(data)), None, None)
    (X, y), (Z, v) = _inputs_and_outputs(data), _inputs_and_outputs(neighbour)
    if model.protect == "records":
        return pair_of_plan(model.plan(len(y)), (X, y), (Z, v))
    if not np.array_equal(X, Z):
        raise ValueError(NOT_NEIGHBOURS)
    return pair_of_plan(model.plan(X), y, v)


def pair_of_function(
    function: PrivateFunction, data: Any, neighbour: Any, points: Any
) -> NoisyPair:
    """The coordinates of a whole function at these points, which its answers there tell.

    ``data``: (X, y) with ``neighbour``, or X alone: then the row whose output moves the function
    most, at either end of the bounds, all others in the middle.
    """
    low, high = (float(end) for end in function.y_bounds)
    if neighbour is None:
        X = np.asarray(_inputs_alone(data), dtype=float)
        outputs = np.full((2, len(X)), 0.5 * low + 0.5 * high)
        fitted = clone(function).fit(X, outputs[0])
        model = fitted._kept.contents.model
        worst = model.inputs[int(np.argmax(model.exact_norms()))]
        outputs[:, int(np.flatnonzero((worst == X).all(axis=1))[0])] = low, high
    else:
        (X, y), (Z, v) = _inputs_and_outputs(data), _inputs_and_outputs(neighbour)
        if not np.array_equal(X, Z):
            raise ValueError(NOT_NEIGHBOURS)
        _check_one_person(y != v, None)
        outputs = np.stack([y, v])
    states = [clone(function).fit(X, y)._kept.contents for y in outputs]
    model, start = states[0].model, states[0].draws
    if model.nodes is not None:
        rows = model.node_rows
    else:
        asked = model.inputs if points is None else np.asarray(points, dtype=float)
        asked = asked[:, None] if asked.ndim == 1 else asked
        rows = Coordinates(model.kernel, model.inputs, model.coefficients).propose(asked).rows
    rows, _ = within_limit(rows, start.squares, start.limit)
    first, second = (rows @ state.draws.sums for state in states)
    return NoisyPair(first, second, start.noise, promise_of(states[0].guarantee))


def sampler_of(
    mechanism: Callable[..., Any], datasets: tuple[Any, Any], rng: np.random.Generator, batch: bool
) -> Sampler:
    """Releases of a callable: one call a release, or ``mechanism(dataset, rng, count)`` for all."""

    def sample(which: int, count: int, tell: Callback) -> Array:
        dataset = datasets[which]
        if batch:
            tell(0.0, "drawing releases")
            return _numbers(mechanism(dataset, rng, count), count)
        step, drawn = max(1, count // 100), []
        for k in range(count):
            if k % step == 0:
                tell(k / count, "drawing releases")
            drawn.append(np.ravel(mechanism(dataset, rng)))
        try:
            return _numbers(np.stack(drawn), count)
        except ValueError:
            raise ValueError("every release must hold the same number of finite numbers.") from None

    return sample


def paths_of(
    model: PosteriorPaths, data: Any, neighbour: Any, points: Any
) -> tuple[Callable[..., Any], Any]:
    """A mechanism for many releases of paths at once, and what they promise.

    Paths of one posterior are independent, so many releases of a few are few releases of many.
    ``points``: unless given, the questions that hurt most about the inputs of the records in which
    the datasets differ, with restarts between them.
    """
    (X, y), (Z, v) = _inputs_and_outputs(data), _inputs_and_outputs(neighbour)
    _check_one_record((X, y), (Z, v))
    if points is None:
        differ = np.any(X != Z, axis=1) | (y != v)
        box = domain_pairs("domain", model.domain)
        low, high = np.array(box).T
        places = np.unique(np.clip(np.vstack([X[differ], Z[differ]]), low, high), axis=0)
        questions = worst_questions(box, places)
    else:
        asked = np.asarray(points, dtype=float)
        questions = [asked[:, None] if asked.ndim == 1 else asked]

    def release(dataset: Any, rng: np.random.Generator, count: int) -> Array:
        inputs, outputs = _inputs_and_outputs(dataset)
        drawn, wanted = [], count * model.n_paths
        for start in range(0, wanted, MOST_PATHS):
            part = min(MOST_PATHS, wanted - start)
            seed = None if model.random_state is None else int(rng.integers(2**31))
            fresh = clone(model).set_params(n_paths=part, random_state=seed)
            fresh.fit(inputs, outputs)
            if len(questions) == 1:
                drawn.append(fresh.release(questions[0]))
            else:
                drawn.append(asked_with_restarts(fresh, questions))
        return np.vstack(drawn).reshape(count, -1)

    return release, model.guarantee_for(len(y))


def released_by(model: Any, points: Any) -> Callable[[Any, np.random.Generator], Array]:
    """The mechanism of an estimator with ``fit`` and ``release``: its answers at these points."""

    def mechanism(dataset: Any, rng: np.random.Generator) -> Array:
        X, y = dataset
        fresh = clone(model).set_params(random_state=int(rng.integers(2**31)))
        return np.ravel(fresh.fit(X, y).release(points))

    return mechanism


def simulated(model: Any) -> np.random.Generator | None:
    """The generator of a model that simulates, else None: the noise that protects."""
    return simulation(model) if hasattr(model, "random_state") else None


def _inputs_alone(data: Any) -> Any:
    if isinstance(data, tuple):
        raise ValueError(PAIRS)
    return data


def _check_one_person(differ: Any, people: Any) -> None:
    """Refuse outputs that differ in several rows, unless all of them are one person's."""
    rows = np.flatnonzero(differ)
    if len(rows) > 1 and (people is None or len(np.unique(people[rows])) > 1):
        raise ValueError(ONE_PERSON)


def _check_one_record(first: tuple[Array, Array], second: tuple[Array, Array]) -> None:
    (X, y), (Z, v) = first, second
    if X.shape != Z.shape:
        raise ValueError("data and neighbour must have the same number of records and inputs.")
    _check_one_person(np.any(X != Z, axis=1) | (y != v), None)


def _inputs_and_outputs(dataset: Any) -> tuple[Array, Array]:
    if not isinstance(dataset, tuple | list) or len(dataset) != 2:
        raise ValueError(PAIRS)
    X, y = (np.asarray(part, dtype=float) for part in dataset)
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or y.shape != (len(X),) or not np.all(np.isfinite(X)):
        raise ValueError(PAIRS)
    return X, y


def _numbers(drawn: Any, count: int) -> Array:
    """Releases as a table of finite numbers, (count, numbers)."""
    table = np.asarray(drawn, dtype=float)
    table = table.reshape(len(table), -1) if table.ndim else table
    if table.ndim != 2 or table.shape[0] != count or table.shape[1] == 0:
        raise ValueError("the mechanism must return one row of numbers for every release.")
    if not np.all(np.isfinite(table)):
        raise ValueError("the mechanism returned NaN or infinity.")
    return table


def worst_questions(domain: Sequence[tuple[float, float]], places: Array) -> list[Array]:
    """Where the datasets differ, ``places`` (points, columns); clusters and single points near there;
    the edges of the domain and the next numbers inside; and the first places once more."""
    low, high = np.array(domain).T
    width = high - low

    def about(steps: Array) -> Array:
        moved = places[:, None, :] + steps[:, None] * width
        inside = np.where(moved <= high, moved, 2.0 * places[:, None, :] - moved)
        return np.asarray(np.clip(inside.reshape(-1, len(low)), low, high))

    edges = np.stack([low, high, np.nextafter(low, high), np.nextafter(high, low)])
    return [places, about(CLUSTER), edges, about(NEAR), places]


def asked_with_restarts(paths: PosteriorPaths, questions: Sequence[Array]) -> Array:
    """The answers to all questions, (paths, points); after each the curator starts again."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "audit.private-state"
        paths.save_state(state)
        for points in questions:
            answers.append(paths.release(points))
            paths = PosteriorPaths.load_state(state)
    return np.hstack(answers)
