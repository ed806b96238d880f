"""Forged files: none is accepted whose real sensitivity exceeds the stated one by more than rounding.

``PRIVGP_FUZZ=10000 pytest tests/adversary/test_forgeries.py`` makes as many forgeries in total.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from sklearn.gaussian_process.kernels import RBF

from privgp import (
    PosteriorPaths,
    PrivateFunction,
    PrivateGPClassifier,
    PrivateGPDensity,
    PrivateGPRegressor,
)
from privgp.errors import LedgerTampered
from privgp.gp.growing import NUGGET
from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.registry import KERNELS
from privgp.ledger.chain import Entry, Opened, check, seal_row
from privgp.ledger.filter import Budget, Cost, Spent, decimal, ways
from privgp.models.function.estimator import FUNCTIONS
from privgp.plan.choice import AnyStrategy
from privgp.plan.designs.stages import Residuals
from privgp.plan.plan import CODEC, unpack_plan
from privgp.plan.strategy import noise_of
from privgp.plan.together import JointSums
from privgp.privacy.guarantee import mix_delta
from privgp.privacy.noise import gaussian_noise
from privgp.release.certificate.document import steps_of
from privgp.release.release import CODEC as RELEASES
from privgp.storage import state_file
from privgp.storage.archive import PLAN, DamagedFile, pack, unpack
from privgp.storage.codec import Codec
from privgp.vault.states.outputs import within_limit
from privgp.vault.states.paths import PATHS
from tests.adversary.forgeries import (
    ROUNDING,
    Exact,
    distance,
    distance_of_points,
    forge,
    in_stages,
    keeps,
    leaves,
    put,
)
from tests.ledger.promises import gaussian, pure
from tests.models.functions import ASKED, function
from tests.models.functions import X as AGES
from tests.models.functions import Y as HEIGHTS
from tests.plan.strategies import ROWS
from tests.plans import with_part

FORGERIES = int(os.environ.get("PRIVGP_FUZZ", "2000"))
STRATEGIES = Codec(AnyStrategy | JointSums, "strategy", KERNELS)
BUDGET = (1.0, 1e-6)
KINDS = [name for name in ROWS if name != "BinSums"]  # which no file holds


def generator(kind: str, number: int) -> np.random.Generator:
    return np.random.default_rng([*kind.encode(), number])


def forged_strategy(kind: str, rng: np.random.Generator) -> Any:
    """A strategy as somebody would write it who wants its bound to be untrue."""
    return forge(ROWS[kind].make(rng), rng)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of other threads
@pytest.mark.parametrize("kind", KINDS)
def test_no_forged_strategy_moves_further_than_it_states(kind: str) -> None:
    """A plan's file is refused, or the noise that it gets hides everybody."""
    outcomes: Counter[str] = Counter()
    for number in range(max(20, 6 * FORGERIES // 10 // len(KINDS))):
        rng = generator(kind, number)
        with np.errstate(all="ignore"):
            try:
                forged = forged_strategy(kind, rng)
                read = STRATEGIES.decode(STRATEGIES.encode(forged))
                noise = noise_of(read, *BUDGET)
            except (ValueError, ArithmeticError):
                outcomes["refused"] += 1
                continue
            outcomes["accepted"] += 1
            moved = distance(read)
        told = f"{kind}, {number}: stated {read.sensitivity():g}, real 2**{moved.log:g}"
        assert moved.log <= math.log2(read.sensitivity()) + 2.0 * ROUNDING, told
        assert keeps(noise, moved, *BUDGET), told
        assert 2.0**noise.exponent <= 2.0**-38 * noise.scale, told
    assert outcomes["accepted"]
    assert outcomes["refused"]


# ----- whole plans -----

X = np.random.default_rng(0).uniform(size=(9, 1))
WHO = np.repeat(np.arange(3), 3)
RECORDS = {"protect": "records", "x_bounds": ((0, 1),), "mechanism": "gaussian"}
POINTS = {
    "x_bounds": ((0, 1),),
    "bins": 4,
    "epsilon": 1.0,
    "delta": 1e-6,
    "hyperparameters": "fixed",
}
LAWS = {"mechanism": "gaussian"}, {"mechanism": "laplace"}
WEIGHTS = {"sample_weight": np.tile([4.0, 1.0, 0.3], 3)}
COUNTS = {"y_bounds": (0, 9), "likelihood": "poisson", "max_change": 2}
PLANS: dict[str, Any] = {
    "sums": (PrivateGPRegressor, {"y_bounds": (-1, 1), **LAWS[0]}, {}),
    "sums of people": (PrivateGPRegressor, {"y_bounds": (-1, 1), **LAWS[0]}, {"groups": WHO}),
    "groups": (PrivateGPRegressor, {"y_bounds": (-1, 1), **LAWS[1]}, {}),
    "classes": (PrivateGPClassifier, {"classes": [0, 1, 2], **LAWS[0]}, {}),
    "joint": (PrivateGPRegressor, {"y_bounds": ((-1, 1),) * 2, **LAWS[0]}, {}),
    "joint groups": (PrivateGPRegressor, {"y_bounds": ((-1, 1),) * 2, **LAWS[1]}, {"groups": WHO}),
    "bins": (PrivateGPRegressor, {"y_bounds": (-1, 1), **RECORDS}, {}),
    "bins of classes": (PrivateGPClassifier, {"classes": [0, 1, 2], **RECORDS}, {}),
    "counts": (PrivateGPRegressor, {**COUNTS, **LAWS[1]}, {"exposure": np.linspace(1.0, 2.0, 9)}),
    "noise by row": (
        PrivateGPRegressor,
        {"y_bounds": (-1, 1), "noise_variance": np.linspace(0.1, 0.3, 9), **LAWS[0]},
        {},
    ),
}
for law in LAWS:
    name, bounds = law["mechanism"], {"y_bounds": (-1, 1), **law}
    PLANS |= {
        f"weights, {name}": (PrivateGPRegressor, bounds, WEIGHTS),
        f"weights of people, {name}": (PrivateGPRegressor, bounds, {"groups": WHO, **WEIGHTS}),
        f"stages, {name}": (PrivateGPRegressor, {**bounds, "residuals": "always"}, WEIGHTS),
        f"stages of a tally, {name}": (
            PrivateGPRegressor,
            {**bounds, "residuals": "always"},
            {"groups": WHO, **WEIGHTS},
        ),
        f"tally, {name}": (PrivateGPRegressor, bounds, WEIGHTS),
        f"tally of people, {name}": (PrivateGPRegressor, bounds, {"groups": WHO, **WEIGHTS}),
        f"points, {name}": (PrivateGPDensity, {**POINTS, **law}, {}),
    }


@cache
def planned(kind: str) -> Any:
    estimator, asked, given = PLANS[kind]
    if estimator is PrivateGPDensity:
        return estimator(**asked).plan(3)
    fixed = {"kernel": RBF(0.3), "hyperparameters": "fixed", "epsilon": 1.0, "delta": 1e-6}
    many = 5 if "tally" in kind else len(X)  # rows from which on they are tallied
    with mock.patch("privgp.models.rows.fit.STREAMED", many):
        return estimator(**fixed, **asked).plan(X, **given)


def moved_by(plan: Any) -> Exact:
    """How far one person, or one point, moves the exact numbers of a plan."""
    points = plan.made_for.parameters.estimator == "PrivateGPDensity"
    return (distance_of_points if points else distance)(plan.strategy)


def noise_beside(plan: Any, moved: Exact) -> Any:
    """The noise of every stage, as if each moved as far as the last one: its scale over how far its own sums do."""
    if plan.residuals is None:
        return plan.noises
    first, noise = plan.residuals.strategies(plan.strategy)[0], plan.noises[0]
    less = float(np.exp2(moved.log - distance(first).log))
    return noise.with_size(noise.size, less), plan.noises[1]


def packed(plan: Any) -> bytes:
    """The file of a plan with right hashes, whatever it holds."""
    parts = tuple(replace(part, asked=None) for part in plan.parts)
    return pack(CODEC.encode(replace(plan, parts=parts)), PLAN)


def with_strategy(plan: Any, strategy: Any) -> Any:
    """The plan with a forged strategy, and with the noise that the code itself finds for it."""
    try:
        noise = noise_of(strategy, plan.epsilon, plan.delta)
    except (ValueError, ArithmeticError, IndexError):
        noise = plan.noise
    if len(plan.parts) == 1:
        return with_part(plan, strategy=strategy, noise=noise)
    each = zip(plan.parts, strategy.parts, strategy.noises(noise), strict=False)
    parts = tuple(replace(part, strategy=own, noise=shared) for part, own, shared in each)
    return replace(plan, parts=parts, factors=strategy.factors, noise=noise)


def attacked(strategy: Any) -> Any:
    """One row's column is so small that its squares vanish, and its weight so large that it is not."""
    if isinstance(strategy, JointSums):
        return replace(strategy, parts=tuple(attacked(part) for part in strategy.parts))
    matrix, weights = strategy.matrix.copy(), strategy.row_weights.copy()
    row = len(weights) // 2
    mine = (
        [row]
        if strategy.people is None or strategy.tally is not None
        else np.flatnonzero(strategy.people == strategy.people[row])
    )
    matrix[:, strategy.index[mine]] = 0.0
    matrix[0, strategy.index[mine]] = 1e-170
    weights[mine] = 1e176
    return replace(strategy, matrix=matrix, row_weights=weights)


@pytest.mark.parametrize("kind", [kind for kind in PLANS if "bins" not in kind])
def test_a_tiny_column_and_a_huge_weight_are_refused(kind: str) -> None:
    """The stated sensitivity was 2 and the real one two million."""
    plan = planned(kind)
    forged = with_strategy(plan, attacked(plan.strategy))
    assert moved_by(forged).log > 17.0
    with pytest.raises(DamagedFile):
        unpack_plan(packed(forged))
    stated = replace(forged.strategy).sensitivity()  # nor is the norm itself deceived
    assert moved_by(forged).log <= math.log2(stated) + 2.0 * ROUNDING


@pytest.mark.parametrize("points", [2, 4, 16])
@pytest.mark.parametrize("law", LAWS)
def test_squares_of_points_are_refused(points: int, law: Any) -> None:
    """One point that moves changes the squares of two counts: twice as far as was stated."""
    plan = PrivateGPDensity(**POINTS, **law).plan(points)
    unpack_plan(packed(plan))
    squares = replace(plan.strategy, energy_weight=1000.0)
    assert distance_of_points(squares).log > math.log2(squares.sensitivity()) + 0.05
    with pytest.raises(DamagedFile):
        unpack_plan(packed(with_strategy(plan, squares)))


@pytest.mark.parametrize("kind", PLANS)
def test_no_forged_plan_has_too_little_noise(kind: str) -> None:
    """Whatever of its budget, noise, bounds or strategy was forged, in a file with right hashes."""
    plan, outcomes = planned(kind), Counter[str]()
    for number in range(max(8, FORGERIES // 10 // len(PLANS))):
        rng = generator(kind, number)
        with np.errstate(all="ignore"):
            forged = plan
            try:
                if number and rng.integers(3):
                    forged = with_strategy(plan, forge(plan.strategy, rng))
                if number and rng.integers(2):
                    forged = forge(forged, rng, skip=("functionals", "priors", "kind", "targets"))
                read = unpack_plan(packed(forged))
            except (ValueError, TypeError, OverflowError):
                outcomes["refused"] += 1
                continue
            moved = moved_by(read)
            noises = noise_beside(read, moved)
        told = f"{kind}, {number}: stated {read.strategy.sensitivity():g}, real 2**{moved.log:g}"
        assert moved.log <= math.log2(read.strategy.sensitivity()) + 2.0 * ROUNDING, told
        assert keeps(in_stages(noises), moved, read.epsilon, read.delta), told
        assert all(2.0**each.exponent <= 2.0**-38 * each.scale for each in read.noises), told
        outcomes["accepted"] += 1
    assert outcomes["accepted"]
    assert outcomes["refused"]


@pytest.mark.parametrize("name", [law["mechanism"] for law in LAWS])
def test_sums_that_are_added_up_get_noise_for_what_they_are(name: str) -> None:
    """With the noise of single sums, those that overlap would hide too little once they are added up."""
    plan = planned(f"stages, {name}")
    count = len(plan.strategy.matrix)
    forged = with_part(plan, residuals=replace(plan.residuals, groups=(0,) * count))
    read, budget = unpack_plan(packed(forged)), (plan.epsilon, plan.delta)
    moved = moved_by(read)
    assert keeps(in_stages(noise_beside(read, moved)), moved, *budget)
    less = [each.with_size(each.size, 0.8) for each in noise_beside(read, moved)]
    assert not keeps(in_stages(less), moved, *budget)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("place", [0, 1])
def test_stages_of_one_of_several_outcomes_are_refused(place: int, law: Any) -> None:
    """All outcomes are drawn at once: a fit failed half-way, or measured other than the plan states."""
    plan = planned("joint" if law is LAWS[0] else "joint groups")
    parts = list(plan.parts)
    parts[place] = replace(parts[place], residuals=Residuals())
    with pytest.raises(DamagedFile, match=r"belong together|make a plan"):
        unpack_plan(packed(replace(plan, parts=tuple(parts))))


# ----- states -----

STATES: dict[str, Any] = {
    "outputs": (PrivateFunction, FUNCTIONS, lambda: function()),
    "inducing": (PrivateFunction, FUNCTIONS, lambda: function(inducing=4)),
    "records": (PrivateFunction, FUNCTIONS, lambda: function(protect="records", domain=(0, 10))),
    "paths": (
        PosteriorPaths,
        PATHS,
        lambda: PosteriorPaths(RBF(2.0), 1.0, domain=(0, 10), y_bounds=(0, 100), delta=1e-3),
    ),
}
NEW = np.array([[0.05], [3.3], [3.3001], [9.99]])  # points that were not asked, some nearly so


@cache
def contents_of(kind: str) -> Any:
    """What a state holds after some questions."""
    made = STATES[kind][2]().fit(AGES, HEIGHTS)
    made.release(ASKED)
    return made._kept.contents


def moved_outputs(contents: Any) -> Exact:
    """How far one output moves the further numbers that a function of outputs would draw."""
    draws = contents.draws
    if contents.model.nodes is None:
        engine = contents.engine()
        engine.catch_up(draws.points)
        rows = engine.propose(NEW).rows
        rows = within_limit(rows, draws.squares, draws.limit)[0]
    else:
        rows = within_limit(contents.model.node_rows, np.zeros(len(draws.sums)), draws.limit)[0]
    exponent = math.frexp(float(np.abs(rows).max()))[1]
    return Exact(2.0 * float(np.linalg.norm(np.ldexp(rows, -exponent), axis=0).max()), exponent)


def moved_records(contents: Any) -> Exact:
    """How far a few other records move all coordinates, those drawn and those to come."""
    model, inputs, v = contents.model, contents.draws.inputs, variance(contents.model.kernel)
    points = np.vstack([contents.draws.points, NEW])

    def weights(X: Any, y: Any) -> Any:
        return np.linalg.solve(evaluate(model.kernel, X) + model.noise_variance * np.eye(len(X)), y)

    outputs = evaluate(model.kernel, inputs) @ contents.draws.weights
    outputs += model.noise_variance * contents.draws.weights
    L = cholesky(evaluate(model.kernel, points) + NUGGET * v * np.eye(len(points)), lower=True)
    at = evaluate(model.kernel, points, inputs) @ contents.draws.weights
    most = 0.0
    for place in (0, 7):
        for x, u in ((inputs[place], -np.sign(outputs[place])), (0.0, 1.0), (10.0, -1.0)):
            X, y = inputs.copy(), outputs.copy()
            X[place], y[place] = x, u
            apart = at - evaluate(model.kernel, points, X) @ weights(X, y)
            most = max(most, float(np.linalg.norm(solve_triangular(L, apart, lower=True))))
    drawn = len(contents.draws.points)
    own = solve_triangular(L[:drawn, :drawn], at[:drawn], lower=True)
    assert np.allclose(own, contents.draws.exact, rtol=0, atol=1e-3 * contents.norm)
    return Exact(most, 0)


def assert_paths_are_those_of_the_records(contents: Any) -> None:
    """The mean and the covariance that further values are drawn with are the posterior's."""
    model, draws = contents.model, contents.draws
    assert contents.guarantee.path_curves == (model.curve(len(draws.inputs)),)
    assert contents.guarantee.epsilon >= model.epsilon(len(draws.inputs)) * (1.0 - 1e-6)
    K = evaluate(model.kernel, draws.inputs) + model.noise_variance * np.eye(len(draws.inputs))
    points = np.vstack([draws.points, NEW])
    across = evaluate(model.kernel, draws.inputs, points)
    mean = across.T @ np.linalg.solve(K, draws.outputs)
    engine = contents.engine()
    engine.catch_up(draws.points, draws.lower)
    first = engine.extend(NEW)
    nothing = np.zeros((model.paths, len(points)))
    scale = model.half_width + math.sqrt(variance(model.kernel))
    assert np.allclose(engine.values(nothing, 0), mean, rtol=0, atol=1e-4 * scale)
    lower = np.vstack([np.hstack([draws.lower.square(), np.zeros((len(draws.points), 4))]), first])
    extra = 1.0 + model.extra_noise**2 / variance(model.kernel)
    wanted = extra * evaluate(model.kernel, points) - across.T @ np.linalg.solve(K, across)
    nugget = model.precision(len(draws.inputs)).nugget * variance(model.kernel)
    apart = np.abs(lower @ lower.T - wanted - nugget * np.eye(len(points))).max()
    assert apart <= 0.05 * nugget + 1e-9 * variance(model.kernel)


@pytest.mark.parametrize("kind", STATES)
def test_no_forged_state_draws_too_little_noise(kind: str, tmp_path: Path) -> None:
    estimator, codec, _ = STATES[kind]
    outcomes = Counter[str]()
    for number in range(max(25, 2 * FORGERIES // 10 // len(STATES))):
        rng, path = generator(kind, number), tmp_path / f"{number}.private-state"
        with np.errstate(all="ignore"):
            try:
                forged = forge(contents_of(kind), rng) if number else contents_of(kind)
                path.write_bytes(state_file.whole(forged, codec))
                read = estimator.load_state(path)._kept.contents
            except (ValueError, TypeError, OverflowError):
                outcomes["refused"] += 1
                continue
            outcomes["accepted"] += 1
            if kind == "paths":
                assert_paths_are_those_of_the_records(read)
                continue
            try:
                moved = moved_records(read) if kind == "records" else moved_outputs(read)
            except (ValueError, np.linalg.LinAlgError):
                continue  # no further point is drawn
        noise, promised = read.draws.noise, read.guarantee
        told = f"{kind}, {number}: stated {2.0 * read.norm:g}, real 2**{moved.log:g}"
        assert moved.log <= math.log2(2.0 * read.norm) + 1e-6, told
        assert keeps(noise, moved, promised.epsilon, promised.delta), told
        assert promised.events == (noise.event,), told
        assert noise.multiplier * 2.0 * read.norm <= noise.std * (1.0 + ROUNDING), told
        assert 2.0**noise.exponent <= 2.0**-38 * noise.std, told
    assert outcomes["accepted"]
    assert outcomes["refused"]


@pytest.mark.parametrize(
    ("kind", "path", "factor"),
    [
        ("outputs", ("draws", "noise", "std"), 0.5),
        ("outputs", ("draws", "noise", "exponent"), 0),
        ("outputs", ("draws", "limit"), 4.0),
        ("outputs", ("norm",), 0.5),
        ("inducing", ("draws", "noise", "multiplier"), 2.0),
        ("records", ("draws", "noise", "std"), 0.5),
        ("records", ("norm",), 0.5),
        ("records", ("draws", "weights"), 10.0),  # of outputs beyond their bounds
        ("records", ("draws", "exact"), 0.0),  # numbers near them would no longer be their change
        ("paths", ("draws", "factor"), 0.5),  # a mean that is four times as large
        ("paths", ("draws", "normals"), 0.0),  # values near them would be the mean
    ],
)
def test_a_state_whose_noise_or_bound_is_not_its_own_is_refused(
    kind: str, path: Any, factor: float, tmp_path: Path
) -> None:
    estimator, codec, _ = STATES[kind]
    contents, file = contents_of(kind), tmp_path / "some.private-state"
    old = next(value for way, value in leaves(contents) if way == path)
    for number, value in enumerate((old, 0 * old if factor == 0 else old * factor)):
        file.write_bytes(state_file.whole(put(contents, path, value), codec))
        if number == 0:
            estimator.load_state(file)
            continue
        with pytest.raises(DamagedFile, match="cannot be loaded"):
            estimator.load_state(file)


# ----- releases -----


@cache
def released(folder: Path) -> Any:
    model = PrivateGPRegressor(
        y_bounds=(-2, 2), epsilon=1.0, kernel=RBF(0.3), hyperparameters="fixed", random_state=0,
        mechanism="gaussian",
    )  # fmt: skip
    model.fit(X, np.sin(X[:, 0])).save(folder / "some.privgp")
    return RELEASES.decode(unpack((folder / "some.privgp").read_bytes()))


def certified(contents: Any) -> Any:
    """The contents with a certificate that says what their guarantee says."""
    promised, stated = contents.guarantee, dict(contents.facts.certificate)
    stated |= {"epsilon": promised.epsilon, "delta": promised.delta, "mu": promised.mu}
    stated["mechanism"] = {**stated["mechanism"], **steps_of(promised.events[0])}
    stated["curve"] = [[e, promised.delta_at(e)] for e, _ in stated["curve"]]
    stated["best_guess"] = 0.5 + 0.5 * promised.delta_at(0.0)
    given = replace(contents.parameters, epsilon=promised.epsilon, delta=promised.delta)
    facts = replace(contents.facts, certificate=stated)
    return replace(contents, facts=facts, parameters=given)


def test_no_forged_release_promises_more_than_its_steps(tmp_path_factory: Any) -> None:
    """An update adds its own steps to this guarantee, and weighs rows as the file says."""
    contents, outcomes = released(tmp_path_factory.mktemp("release")), Counter[str]()
    for number in range(max(50, FORGERIES // 20)):
        rng = generator("release", number)
        forged = contents
        with np.errstate(all="ignore"):
            guarantee = forge(contents.guarantee, rng) if rng.integers(3) else contents.guarantee
            forged = replace(contents, guarantee=guarantee)
            if rng.integers(2):  # the same in all places, as a careful forger would
                forged = put(forged, ("parts", 0, "spent", 0, "guarantee"), guarantee)
            else:
                forged = put(forged, ("parts", 0, "spent", 0), forge(contents.spent[0], rng))
            try:
                read = RELEASES.decode(RELEASES.encode(certified(forged)))
            except (ValueError, TypeError, ArithmeticError):
                outcomes["refused"] += 1
                continue
        outcomes["accepted"] += 1
        promised, (part,) = read.guarantee, read.spent
        (c,) = promised.noise_multipliers
        noise = replace(gaussian_noise(1.0, 1e-6, 1, 1.0, 0.0), std=c)
        room = promised.delta - promised.delta_slack
        assert keeps(noise, Exact(1.0, 0), promised.epsilon * (1.0 + 1e-8), room), number
        assert (
            part.row_weights is None or 0.0 <= part.row_weights.min() <= part.row_weights.max() <= 1
        )
    assert outcomes["accepted"]
    assert outcomes["refused"]


# ----- ledgers -----


def charged(rng: np.random.Generator, total: Budget) -> tuple[list[Any], list[Entry], Opened]:
    """An account whose entries state forged guarantees or costs, with all sums and hashes right."""
    opened = seal_row(Opened("d", str(total.epsilon), str(total.delta), "0", None, "now"))
    spent, previous, stated, entries = Spent(), opened.hash, [], []
    makers = (lambda: gaussian(0.3, 1e-7), lambda: pure(0.2), lambda: gaussian(0.9, 1e-7))
    for number in range(1, int(rng.integers(2, 5))):
        guarantee = makers[rng.integers(3)]()
        honest = next(iter(ways(guarantee, total)))
        if rng.integers(3):
            guarantee = forge(guarantee, rng)
        cost = honest
        if rng.integers(3) == 0:
            powers = (10 ** int(rng.choice((0, 1, 9, 30))) for _ in range(3))
            cost = Cost(*(each // next(powers) for each in (cost.epsilon, cost.mu2, cost.delta)))
        then = next(iter(total._add_cost(spent, cost)))
        others = {"dataset": "d", "number": number, "kind": "charge", "at": "now", "key": None}
        others |= {"request": None, "fingerprint": None, "answer": None, "previous": previous}
        entry = Entry.of(cost, then, guarantee=guarantee.to_json(), **others)
        spent, previous = then, entry.hash
        stated.append(guarantee)
        entries.append(entry)
    return stated, entries, opened


def test_no_forged_ledger_hides_what_was_spent() -> None:
    epsilon, delta, outcomes = 1.0, 1e-5, Counter[str]()
    total = Budget(decimal(epsilon), decimal(delta))
    for number in range(max(100, FORGERIES // 20)):
        rng = generator("ledger", number)
        try:
            stated, entries, opened = charged(rng, total)
        except (ValueError, ArithmeticError):
            continue  # not to be written as JSON
        try:
            check(opened, entries, {})
        except LedgerTampered:
            outcomes["refused"] += 1
            continue
        outcomes["accepted"] += 1
        events = [each.events[0] for each in stated]
        mu = math.hypot(*(1.0 / c for event in events for c in event.noise_multipliers))
        coins = [e for event in events for e in event.pure_epsilons]
        slack = math.fsum(event.delta_slack for event in events)
        assert mix_delta(epsilon * (1.0 + 1e-9), mu, coins) + slack <= delta * (1.0 + 1e-6), number
    assert outcomes["accepted"]
    assert outcomes["refused"]


@pytest.mark.parametrize("amount", ["", "x", "1e9", None])
def test_an_amount_that_is_no_number_is_named(amount: Any) -> None:
    total = Budget(decimal(1.0), decimal(1e-5))
    _, entries, opened = charged(np.random.default_rng(3), total)
    forged = seal_row(replace(entries[0], mu2=amount))
    with pytest.raises(LedgerTampered, match="no amounts at entry 1"):
        check(opened, [forged], {})
