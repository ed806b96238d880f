"""``trade_off``: attack any mechanism of two neighbouring datasets, and compare with its guarantee.

A linear measurement with isotropic noise becomes a NoisyPair, on which the best attack is known;
anything else a sampler of releases, on which one is trained. Searches are attacked at the worst
validation record there is, which every model predicts right under one dataset and wrong under the
other, or which speaks for one setting against all others, and then the other way round."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Protocol, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from privgp.audit.attacks import NoisyPair, Sampler, attack_pair, train_attack
from privgp.audit.promises import Promise, promise_of
from privgp.audit.result import Callback, TradeOff, Trial, repeat_draws, show_progress
from privgp.gp.growing import Coordinates
from privgp.models.classifier import PrivateGPClassifier
from privgp.models.function.estimator import PrivateFunction
from privgp.models.paths import PosteriorPaths
from privgp.models.published import simulation
from privgp.models.regressor import PrivateGPRegressor
from privgp.models.search.bayes import PrivateBayesSearchCV, guarantee_of
from privgp.models.search.candidates import candidates_of
from privgp.models.search.grid import PrivateGridSearchCV
from privgp.plan.functions.paths import MOST_PATHS
from privgp.plan.part import Part
from privgp.plan.plan import Plan
from privgp.publish import forget_fits
from privgp.question.outcomes import has_private_inputs
from privgp.question.rules import domain_pairs
from privgp.types import Array, Cells, Random, RandomState, Table, UserData
from privgp.vault.measure import exact
from privgp.vault.scores import score_sensitivity
from privgp.vault.select import CHOICES, choose
from privgp.vault.states.outputs import within_limit
from privgp.vault.validate import check_output_columns, clip_outputs

PAIRS = "data and neighbour must both be (X, y), or data be X alone for the worst neighbours."
# Steps from where the datasets differ, as shares of the domain's width.
CLUSTER: Array = np.array([3e-9, 6e-9, 9e-9, 12e-9])  # rounding errors weigh most there
NEAR: Array = np.array([1e-12, 1e-3])


@singledispatch
def pair_of(model: object, data: object, neighbour: object, points: object) -> NoisyPair | None:
    """What the best attack needs; None where it is not known."""
    if callable(model) or (hasattr(model, "fit") and hasattr(model, "release")):
        return None
    raise TypeError(
        "trade_off takes a Plan, such as model.plan(X), an unfitted model, or a function "
        "mechanism(dataset, rng) that returns numbers."
    )


@pair_of.register
def pair_of_plan(
    plan: Plan | Part, data: object, neighbour: object, points: object = None
) -> NoisyPair:
    """The measurements of two datasets under a plan: outputs y, or for records (X, y); of several
    outcomes a column each."""
    if (data is None) != (neighbour is None):
        raise ValueError("give both data and neighbour, or neither for the worst there are.")
    strategy, bounds = plan.strategy, plan.y_bounds
    if data is None:
        low, high = strategy.worst_neighbours()
    elif plan.x_bounds is not None:
        both = _differ_in_one_record(data, neighbour)
        low, high = (exact(strategy, each, bounds) for each in both)
    else:
        several, rows = np.ndim(bounds) == 2, strategy.rows
        first, second = (
            check_output_columns(y, rows, len(bounds)) if several else clip_outputs(y, rows, bounds)
            for y in (data, neighbour)
        )
        _check_one_person(
            np.any(first != second, axis=tuple(range(1, first.ndim))), strategy.people
        )
        low, high = (exact(strategy, y, bounds) for y in (data, neighbour))
    return _of_stages(low, high, plan)


def _of_stages(low: Array, high: Array, plan: Plan | Part) -> NoisyPair:
    """Measured once, or in two stages: residuals about a curve that is far from the person whose outputs
    change move their sums as far as outputs move theirs, in units of the width. Numbers with other noise
    are scaled to that of the first stage."""
    noises, split = plan.noises, plan.residuals

    def all_of(numbers: Array) -> Array:
        each = [numbers] if split is None else [split.add_up(numbers), numbers]
        return np.concatenate(
            [noises[0].std / n.std * e for n, e in zip(noises, each, strict=True)]
        )

    first, second = all_of(low), all_of(high)
    spent = Promise.of(*(noise.event for noise in noises))
    return NoisyPair(first, second, noises[0].with_size(len(first)), spent)


@pair_of.register
def _(model: PrivateGPRegressor, data: object, neighbour: object, points: object) -> NoisyPair:
    """The measurements that ``fit`` would make of two datasets (X, y), or X alone."""
    if neighbour is None:
        return pair_of_plan(model.plan(_inputs_alone(data)), None, None)
    if has_private_inputs(model.protect):
        rows = len(_inputs_and_outputs(data)[1])
        return pair_of_plan(model.plan(rows), data, neighbour)
    X, y, v = _differ_in_outputs(data, neighbour)
    return pair_of_plan(model.plan(X), y, v)


@pair_of.register
def _(model: PrivateGPClassifier, data: object, neighbour: object, points: object) -> NoisyPair:
    """The measurements that ``fit`` would make of X and the worst labels."""
    if neighbour is not None:
        raise ValueError("of labels only the worst neighbours are attacked: give data=X alone.")
    return pair_of_plan(model.plan(_inputs_alone(data)), None, None)


@pair_of.register
@forget_fits()
def _(function: PrivateFunction, data: object, neighbour: object, points: object) -> NoisyPair:
    """The coordinates of a whole function at these points. With X alone: the row that moves it
    most, its output at either end of the bounds, all others in the middle."""
    if neighbour is None:
        low, high = np.asarray(function.y_bounds, dtype=float).tolist()
        X = np.asarray(_inputs_alone(data), dtype=float)
        outputs = np.full((2, len(X)), 0.5 * low + 0.5 * high)
        model = clone(function).fit(X, outputs[0])._kept.contents.model
        worst = model.inputs[int(np.argmax(model.exact_norms()))]
        outputs[:, int(np.flatnonzero((worst == X).all(axis=1))[0])] = low, high
    else:
        X, *both = _differ_in_outputs(data, neighbour)
        _check_one_person(both[0] != both[1], None)
        outputs = np.stack(both)
    states = [clone(function).fit(X, y)._kept.contents for y in outputs]
    model, start = states[0].model, states[0].draws
    if model.nodes is not None:
        rows = model.node_rows
    else:
        asked = _table(model.inputs if points is None else points)
        rows = Coordinates(model.kernel, model.inputs, model.coefficients).propose(asked).rows
    rows, _ = within_limit(rows, np.zeros_like(start.squares), start.limit)  # before any draw
    first, second = (rows @ state.draws.sums for state in states)
    return NoisyPair(first, second, start.noise, promise_of(states[0].guarantee))


@pair_of.register
def _(search: PrivateBayesSearchCV, rows: object, neighbour: object, points: object) -> NoisyPair:
    """All scores that a search measures, in units of the first one's noise."""
    plan = search.plan(_count(rows))
    if plan.constants is not None:
        raise ValueError("Kusner's guarantees hold under an assumption: attack method='measured'.")
    first = plan.noise[0]
    moved = np.array([first.std / step.std for step in plan.noise]) / plan.rows
    promise = promise_of(guarantee_of(plan, simulated=False))
    return NoisyPair(np.zeros(len(moved)), moved, first, promise)


def attack_choice(
    search: PrivateGridSearchCV, rows: object, trial: Trial, noise_scale: float, rng: Random
) -> TradeOff:
    """How often the last setting is chosen: two records behind all others, or level with them."""
    if search.method not in CHOICES:
        raise ValueError("method='measurement' chooses for nothing: attack the regressor itself.")
    count, settings = _count(rows), len(candidates_of(search.param_grid))
    if settings < 2:
        raise ValueError("param_grid must hold at least two settings to choose from.")
    epsilon, scale = float(search.epsilon), noise_scale * score_sensitivity(count)

    def last_chosen(which: int, tell: Callback) -> Array:
        utilities = np.zeros(settings)
        utilities[-1] = 0.0 if which else -2.0 / count

        def draw() -> bool:
            return choose(search.method, utilities, scale, epsilon, rng) == settings - 1

        return np.array(repeat_draws(draw, trial.draws, "watching choices", tell), dtype=float)

    return trial.test(last_chosen, 0.5, Promise(pairs=((epsilon, 0.0),)), "the last setting")


def sampler_of(
    mechanism: Callable[..., ArrayLike],
    datasets: tuple[object, object],
    rng: np.random.Generator,
    batch: bool,
) -> Sampler:
    """Releases of a callable: one call a release, or ``mechanism(dataset, rng, count)`` for all."""

    def sample(which: int, count: int, tell: Callback) -> Array:
        dataset, doing = datasets[which], "drawing releases"
        if batch:
            tell(0.0, doing)
            return _numbers(mechanism(dataset, rng, count), count)
        drawn = repeat_draws(lambda: np.ravel(mechanism(dataset, rng)), count, doing, tell)
        try:
            return _numbers(np.stack(drawn), count)
        except ValueError:
            raise ValueError("every release must hold the same number of finite numbers.") from None

    return sample


def paths_of(
    model: PosteriorPaths, data: object, neighbour: object, points: object
) -> tuple[Callable[..., object], object]:
    """A mechanism for many releases of paths at once (a few of many: they are independent), and
    what they guarantee. ``points``: by default the questions that hurt most about the inputs of
    the records in which the datasets differ, with restarts between them."""
    (X, y), (Z, v) = _differ_in_one_record(data, neighbour)
    differ = np.any(X != Z, axis=1) | (y != v)
    questions = worst_questions(model.domain, np.vstack([X[differ], Z[differ]]))
    if points is not None:
        questions = [_table(points)]

    @forget_fits()
    def release(dataset: object, rng: np.random.Generator, count: int) -> Array:
        drawn, wanted = [], count * model.n_paths
        for start in range(0, wanted, MOST_PATHS):
            part = min(MOST_PATHS, wanted - start)
            seed = None if model.random_state is None else int(rng.integers(2**31))
            fresh = clone(model).set_params(n_paths=part, random_state=seed)
            fresh.fit(*_inputs_and_outputs(dataset))
            drawn.append(ask_with_restarts(fresh, questions))
        return np.vstack(drawn).reshape(count, -1)

    return release, model.guarantee_for(len(y))


class Releases(Protocol):
    """An estimator whose releases are attacked."""

    def fit(self, X: Table, y: Array) -> Self: ...
    def release(self, X: Table) -> Array: ...


def release_mechanism(
    model: Releases, points: UserData
) -> Callable[[object, np.random.Generator], Array]:
    """The mechanism of an estimator with ``fit`` and ``release``: its answers at these points."""

    def mechanism(dataset: UserData, rng: np.random.Generator) -> Array:
        X, y = dataset
        fresh = clone(model).set_params(random_state=int(rng.integers(2**31)))
        return np.ravel(fresh.fit(X, y).release(points))

    return mechanism


def worst_questions(domain: object, differ: Array) -> list[Array]:
    """Where the datasets differ, (points, columns); clusters and single points near there; the edges
    of the domain and the next numbers inside; and the first places once more."""
    low, high = np.array(domain_pairs("domain", domain)).T
    places, width = np.unique(np.clip(differ, low, high), axis=0), high - low

    def about(steps: Array) -> Array:
        moved = places[:, None, :] + steps[:, None] * width
        inside = np.where(moved <= high, moved, 2.0 * places[:, None, :] - moved)
        return np.asarray(np.clip(inside.reshape(-1, len(low)), low, high))

    edges = np.stack([low, high, np.nextafter(low, high), np.nextafter(high, low)])
    return [places, about(CLUSTER), edges, about(NEAR), places]


def ask_with_restarts(paths: PosteriorPaths, questions: Sequence[Array]) -> Array:
    """The answers to all questions, (paths, points); after each the custodian starts again."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "audit.private-state"
        paths.save_state(state)
        for points in questions:
            answers.append(paths.release(points))
            paths = PosteriorPaths.load_state(state)
    return np.hstack(answers)


def _differ_in_outputs(data: object, neighbour: object) -> tuple[Array, Array, Array]:
    """The inputs that both share, and the outputs of each."""
    (X, y), (Z, v) = _inputs_and_outputs(data), _inputs_and_outputs(neighbour)
    if not np.array_equal(X, Z):
        raise ValueError("data and neighbour must share their inputs: only outputs are private.")
    return X, y, v


def _differ_in_one_record(data: object, neighbour: object) -> tuple[tuple[Array, Array], ...]:
    (X, y), (Z, v) = _inputs_and_outputs(data), _inputs_and_outputs(neighbour)
    if X.shape != Z.shape:
        raise ValueError("data and neighbour must have the same number of records and inputs.")
    _check_one_person(np.any(X != Z, axis=1) | (y != v), None)
    return (X, y), (Z, v)


def _check_one_person(differ: Cells, people: UserData) -> None:
    """Refuse outputs that differ in several rows, unless all of them are one person's."""
    rows = np.flatnonzero(differ)
    if len(rows) > 1 and (people is None or len(np.unique(people[rows])) > 1):
        raise ValueError("data and neighbour must differ in one row, or in one person's rows.")


def _inputs_alone(data: UserData) -> UserData:
    if data is None:
        raise ValueError("give data: X alone for the worst neighbours, or (X, y).")
    if isinstance(data, tuple):
        raise ValueError(PAIRS)
    return data


def _inputs_and_outputs(dataset: object) -> tuple[Array, Array]:
    if not isinstance(dataset, tuple | list) or len(dataset) != 2:
        raise ValueError(PAIRS)
    X, y = _table(dataset[0]), np.asarray(dataset[1], dtype=float)
    if X.ndim != 2 or y.shape != (len(X),) or not np.all(np.isfinite(X)):
        raise ValueError(PAIRS)
    return X, y


def _table(values: object) -> Array:
    """Numbers as rows of inputs; a list of them is one column."""
    table = np.asarray(values, dtype=float)
    return table[:, None] if table.ndim == 1 else table


def _numbers(drawn: object, count: int) -> Array:
    """Releases as a table of finite numbers, (count, numbers)."""
    table = np.asarray(drawn, dtype=float)
    table = table.reshape(len(table), -1) if table.ndim else table
    if table.ndim != 2 or table.shape[0] != count or table.shape[1] == 0:
        raise ValueError("the mechanism must return one row of numbers for every release.")
    if not np.all(np.isfinite(table)):
        raise ValueError("the mechanism returned NaN or infinity.")
    return table


def _count(rows: object) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 2:
        raise ValueError("data must be the number of validation records, at least 2.")
    return int(rows)


def trade_off(
    mechanism: object,
    data: object = None,
    neighbour: object = None,
    *,
    promise: object = None,
    points: Table | None = None,
    batch: bool = False,
    draws: int = 20_000,
    noise_scale: float = 1.0,
    failure_probability: float = 1e-6,
    random_state: RandomState = None,
    progress: bool | Callback = False,
) -> TradeOff:
    """Attack a mechanism: can it be told which of two neighbouring datasets a release came from?

    Use public or simulated data only: an audit shows what it can tell. ``mechanism``:

    - a plan, with no data for the worst neighbours there are (or two sets of outputs; of records,
      two datasets (X, y)). The best attack, on the sampler that protects real releases;
    - an unfitted PrivateGPRegressor or PrivateFunction, with X alone for the worst neighbours, or
      two datasets (X, y); a function is attacked at ``points`` (its inputs by default);
    - an unfitted PosteriorPaths, with two datasets (X, y) and ``points``. Unless given, the attacker
      asks where they differ, clusters and near points there and the edges of the domain, with a
      restart after every question. A trained attack;
    - an unfitted PrivateBayesSearchCV (method "measured") or PrivateGridSearchCV (with validation
      records), with the number of those records: the worst record there is. The best attack on all
      scores, and a count of choices;
    - an unfitted model with ``fit`` and ``release``, or any ``mechanism(dataset, rng)`` that returns
      the numbers of one release (with ``batch``, ``mechanism(dataset, rng, count)`` those of many, a
      row each), with two datasets and a ``promise``: a Guarantee or (epsilon, delta). A trained
      attack.

    ``data`` and ``neighbour`` are the two datasets. ``draws`` releases of each are attacked, and a mechanism
    that keeps its guarantee is reported with at most ``failure_probability``.
    ``noise_scale`` below 1 plants a fault into a measurement or a choice, to see that the audit finds
    it. ``random_state`` seeds the generator that callables get. ``progress``: True for a bar, or a
    function of (share done, what is being done)."""
    if draws < 1 or not 0 < failure_probability < 1 or not noise_scale > 0:
        raise ValueError("draws and noise_scale must be positive, failure_probability in (0, 1).")
    with show_progress(progress) as tell:
        trial = Trial(draws, failure_probability, tell)
        if isinstance(mechanism, PrivateGridSearchCV):
            return attack_choice(mechanism, data, trial, noise_scale, _generator_of(mechanism))
        pair = pair_of(mechanism, data, neighbour, points)
        if pair is not None:
            if promise is not None:
                pair = replace(pair, promise=promise_of(promise))
            return attack_pair(pair, trial, noise_scale, _generator_of(mechanism))
        if isinstance(mechanism, PosteriorPaths):
            mechanism, promised = paths_of(mechanism, data, neighbour, points)
            promise, batch = promised if promise is None else promise, True
        if data is None or neighbour is None or promise is None:
            raise ValueError("this mechanism needs data, neighbour and guarantee.")
        if noise_scale != 1.0:
            raise ValueError("noise_scale is for measurements and choices: scale your own noise.")
        release = mechanism
        if not callable(release):
            release = release_mechanism(cast(Releases, mechanism), points)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        sampler = sampler_of(release, (data, neighbour), rng, batch)
        return train_attack(sampler, promise_of(promise), trial)


def _generator_of(model: object) -> Random:
    """The generator of a model that simulates, else None: the noise that protects."""
    return simulation(model) if hasattr(model, "random_state") else None
