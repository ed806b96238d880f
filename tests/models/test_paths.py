"""PosteriorPaths: guarantees before data, one set of paths, states, refusals."""

from __future__ import annotations

import copy
import math
import os
import pickle
import stat
import sys
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import privgp
from privgp import PosteriorPaths, PrivateFunction
from privgp.privacy.rdp import epsilon_for
from privgp.storage.archive import DamagedFile, Triangle
from privgp.vault.states.paths import PathContents

RNG = np.random.default_rng(5)
X = RNG.random((40, 1))
Y = np.sin(5 * X[:, 0]) + 0.3 * RNG.standard_normal(40)
ASKED = np.linspace(0.0, 1.0, 60)[:, None]


def paths(**changes):
    given = {
        "kernel": Matern(1.0, nu=0.5), "noise_variance": 4.0, "domain": (0, 1), "y_bounds": (-1, 1),
        "delta": 1e-3,
    }  # fmt: skip
    return PosteriorPaths(**{**given, **changes})


@pytest.mark.parametrize(
    ("r", "paper", "sharper"), [(1.0, 20.45, 13.24), (2.0, 4.51, 2.57), (5.0, 0.684, 0.263)]
)
def test_the_promise_is_known_before_any_data(r, paper, sharper):
    model = paths(noise_variance=r * r, delta=100**-1.1)
    assert model.guarantee_for(100).epsilon <= sharper
    published = model.set_params(sensitivity="paper").guarantee_for(100)
    exact = [replace(curve, charge=0.0) for curve in published.path_curves]
    assert epsilon_for(exact, model.delta, "paper") == pytest.approx(paper, abs=0.006)
    assert paper < published.epsilon < 1.01 * paper  # rounding is charged for


def test_the_promise_does_not_depend_on_the_data_and_scales_with_units():
    here = paths(n_paths=2, extra_noise=0.3)
    promised = here.guarantee_for(40)
    assert here.fit(X, Y).guarantee_ == promised
    assert here.fit(X, np.zeros(40)).guarantee_ == promised
    scaled = paths(
        kernel=ConstantKernel(100.0) * Matern(3.0, nu=0.5), noise_variance=400.0, domain=(5, 8),
        y_bounds=(40, 60), n_paths=2, extra_noise=3.0,
    )  # fmt: skip
    assert scaled.guarantee_for(40).epsilon == pytest.approx(promised.epsilon, rel=1e-9)
    assert scaled.fit(5 + 3 * X, 50 + 10 * Y).sensitivity_ == pytest.approx(10 * here.sensitivity_)


def test_calibrate_finds_the_least_noise():
    for by in ("noise_variance", "extra_noise"):
        model = paths(noise_variance=1.0, n_paths=3)
        found = model.calibrate(2.0, 40, by=by)
        assert found.epsilon <= 2.0
        assert found.epsilon == pytest.approx(2.0, rel=1e-6)
        chosen = {"noise_variance": found.noise_variance, "extra_noise": found.extra_noise}
        assert model.set_params(**chosen).guarantee_for(40).epsilon == found.epsilon
        less = {by: 0.999 * chosen[by]}
        assert model.set_params(**less).guarantee_for(40).epsilon > 2.0
    assert found.regularisation == 1.0
    assert paths(noise_variance=1e4).calibrate(50.0, 40, by="extra_noise").extra_noise == 0.0


@pytest.mark.parametrize("extra", [0.0, 0.5])
def test_the_law_is_the_posterior_however_it_is_asked(extra):
    """Mean and covariance over 4,000 paths against the textbook, asked in three parts."""
    model = paths(kernel=RBF(0.3), noise_variance=0.5, n_paths=4000, extra_noise=extra,
        random_state=1, y_bounds=(-2, 4)).fit(X, Y)  # fmt: skip
    points = np.array([[0.1], [0.15], [0.5], [0.9], [1.0]])
    drawn = np.hstack([model.release(points[i]) for i in ([3], [0, 1], [4, 2])])
    drawn = drawn[:, [1, 2, 4, 0, 3]]
    kernel = RBF(0.3)
    half = np.linalg.solve(kernel(X) + 0.5 * np.eye(40), kernel(X, points))
    mean = 1.0 + half.T @ (Y - 1.0)
    cov = (1 + extra**2) * kernel(points) - kernel(points, X) @ half
    error = np.sqrt(np.diag(cov) / 4000)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5.5 * error)
    scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)) + cov**2)
    assert np.all(np.abs(np.cov(drawn.T) - cov) < 5.5 * scale / math.sqrt(4000))


def test_asking_again_gives_the_same_paths():
    model = paths(n_paths=3).fit(X, Y)
    first = model.release(ASKED)
    again = model.release(np.vstack([ASKED[::-1], [[0.123]], ASKED]))
    assert first.shape == (3, 60)
    assert np.array_equal(again[:, :60], first[:, ::-1])
    assert np.array_equal(again[:, 61:], first)
    assert model.points_answered_ == 61
    assert model.points_left_ == 2000 - 61
    assert not np.array_equal(paths(n_paths=3).fit(X, Y).release(ASKED), first)
    assert np.unique(first).size > 150


def test_values_lie_on_a_lattice_far_below_their_noise():
    model = paths().fit(X, Y)
    lattice = model._kept.contents.model.precision(40).lattice_nugget
    step = 2.0 ** (math.floor(0.5 * math.log2(lattice)) - 40)
    values = model.release(ASKED) / step
    assert np.array_equal(values, np.round(values))
    assert model.guarantee_.sampler.startswith("discrete Gaussian on a lattice")
    assert not model.guarantee_.is_simulation
    simulated = paths(random_state=0).fit(X, Y)
    assert simulated.guarantee_.is_simulation
    assert np.allclose(simulated.release(ASKED), paths(random_state=0).fit(X, Y).release(ASKED))


def test_more_points_need_a_little_more_noise_and_the_promise_names_it():
    few, many = paths(max_points=50).fit(X, Y), paths(max_points=10_000).fit(X, Y)
    assert 0 < few.nugget_std_ < many.nugget_std_ < 0.05
    assert f"std {few.nugget_std_:.3g} at each of at most 50 points" in few.guarantee_.mechanism
    bare = replace(few.guarantee_.path_curves[0], charge=0.0)
    for model in (few, many):
        assert 1.0 < model.guarantee_.epsilon / epsilon_for([bare], 1e-3) < 1.02


def test_inputs_are_projected_and_outputs_clipped():
    far = np.vstack([X[:-2], [[-50.0], [1e9]]])
    wild = np.concatenate([Y[:-1], [1e12]])
    near = np.vstack([X[:-2], [[0.0], [1.0]]])
    tame = np.clip(np.concatenate([Y[:-1], [1.0]]), -1, 1)
    a = paths(random_state=2).fit(far, wild).release(ASKED)
    b = paths(random_state=2).fit(near, tame).release(ASKED)
    assert np.array_equal(a, b)


def test_near_duplicates_and_many_points_do_not_break_the_factor():
    model = paths(kernel=RBF(2.0), noise_variance=1e-3, n_paths=2).fit(X, Y)
    close = 0.5 + np.array([0.0, 1e-15, 1e-12, 1e-9, 1e-6])[:, None]
    values = model.release(np.vstack([close, ASKED, np.abs(ASKED - 1e-13)]))
    assert np.all(np.isfinite(values))
    assert np.ptp(values[:, :5], axis=1).max() < 8 * model.nugget_std_
    assert np.abs(values[:, 5:65] - values[:, 65:]).max() < 8 * model.nugget_std_


def test_one_record_and_equal_records():
    for x, y in (([[0.5]], [0.2]), (np.full((30, 1), 0.5), np.full(30, 0.2))):
        model = paths(random_state=0).fit(x, y)
        assert np.all(np.isfinite(model.release(ASKED)))
        assert model.guarantee_ == paths(random_state=0).guarantee_for(len(y))


def test_a_function_of_known_norm_is_named_in_the_guarantee():
    free, assumed = paths(), paths(sensitivity=("function", 0.5))
    text = assumed.guarantee_for(40).describe()
    assert "one function" in text
    assert "one function" not in free.guarantee_for(40).describe()
    assert assumed.guarantee_for(40).epsilon < free.guarantee_for(40).epsilon


def test_paths_compose_with_a_regressor_of_records():
    model = paths().guarantee_for(40)
    other = privgp.PrivateGPRegressor(
        protect="records", y_bounds=(-1, 1), x_bounds=(0, 1), epsilon=1.0, delta=1e-5,
        hyperparameters="fixed", kernel=RBF(0.3), noise_variance=0.1, random_state=0,
    ).fit(X, Y)  # fmt: skip
    whole = privgp.compose([model, other.guarantee_], delta=1e-3)
    assert max(model.epsilon, other.guarantee_.epsilon_at(1e-3)) < whole.epsilon
    assert whole.epsilon < model.epsilon_at(5e-4) + other.guarantee_.epsilon_at(5e-4)


def test_a_restart_goes_on_with_the_same_paths(tmp_path):
    file = tmp_path / "p.private-state"
    first = paths(n_paths=2, extra_noise=0.1, sensitivity=("function", 2.0))
    table = pd.DataFrame(X, columns=["age"])
    before = first.fit(table, Y, state=file).release(pd.DataFrame(ASKED, columns=["age"]))
    second = PosteriorPaths.load_state(file)
    assert second.get_params()["sensitivity"] == ("function", 2.0)
    assert second.guarantee_ == first.guarantee_
    assert second.sensitivity_ == first.sensitivity_
    extra = second.release(pd.DataFrame([[0.777]], columns=["age"]))
    third = PosteriorPaths.load_state(file)
    both = pd.DataFrame(np.vstack([ASKED, [[0.777]]]), columns=["age"])
    assert np.array_equal(third.release(both), np.hstack([before, extra]))
    with pytest.raises(RuntimeError, match="another process"):
        first.release(pd.DataFrame([[0.3]], columns=["age"]))
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert b"PRIVATE" in file.read_bytes()


def test_simulations_go_on_as_if_there_had_been_no_restart(tmp_path):
    file = tmp_path / "p.private-state"
    whole = paths(random_state=3, n_paths=2).fit(X, Y).release(ASKED)
    paths(random_state=3, n_paths=2).fit(X, Y, state=file)
    parts = [PosteriorPaths.load_state(file).release(x[None])[:, 0] for x in ASKED[:9]]
    assert np.allclose(np.array(parts).T, whole[:, :9], atol=1e-5)


def test_states_of_other_kinds_and_broken_states_are_refused(tmp_path):
    file, other = tmp_path / "p.private-state", tmp_path / "f.private-state"
    paths().fit(X, Y, state=file)
    PrivateFunction(RBF(1.0), 1.0, y_bounds=(-1, 1), epsilon=1.0, delta=1e-5).fit(X, Y, state=other)
    with pytest.raises(DamagedFile, match="function"):
        PosteriorPaths.load_state(other)
    with pytest.raises(DamagedFile):
        PrivateFunction.load_state(file)
    data = file.read_bytes()
    for broken in (b"", data[:-10], data[:200] + b"x" + data[201:]):
        file.write_bytes(broken)
        with pytest.raises(DamagedFile):
            PosteriorPaths.load_state(file)
    with pytest.raises((ValueError, OSError)):
        paths().fit(X, Y, state=other)
    with pytest.raises(ValueError, match="private-state"):
        paths().fit(X, Y, state=tmp_path / "p.csv")
    model = paths().fit(X, Y)
    model.save_state(tmp_path / "new.private-state")
    with pytest.raises(RuntimeError, match="second file"):
        model.save_state(tmp_path / "newer.private-state")


def test_fitted_paths_cannot_be_copied():
    model = paths().fit(X, Y)
    for copied in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(TypeError, match="copied"):
            copied(model)
    assert not hasattr(clone(model), "guarantee_")
    with pytest.raises(NotFittedError):
        clone(model).release(ASKED)


def test_nothing_public_shows_a_record():
    model = paths().fit(np.full((7, 1), 0.123456789), np.full(7, 0.987654321))
    shown = repr(model) + repr(model.guarantee_) + repr(model._kept.contents) + str(vars(model))
    assert "0.12345" not in shown
    assert "0.98765" not in shown


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"domain": None}, "domain"), ({"domain": (1, 0)}, "domain"), ({"domain": "ab"}, "domain"),
        ({"domain": [(0, 1, 2)]}, "domain"), ({"domain": (0, math.nan)}, "domain"),
        ({"y_bounds": None}, "y_bounds"), ({"y_bounds": (1, 1)}, "y_bounds"),
        ({"kernel": "rbf"}, "kernel"), ({"kernel": WhiteKernel()}, "noise"),
        ({"kernel": RBF(1.0) + WhiteKernel()}, "noise once"), ({"kernel": RBF([1.0, 2.0])}, "kernel"),
        ({"noise_variance": None}, "noise_variance"), ({"noise_variance": 0}, "noise_variance"),
        ({"noise_variance": math.inf}, "noise_variance"), ({"noise_variance": 1e30}, "variance"),
        ({"n_paths": 0}, "n_paths"), ({"n_paths": 1.5}, "n_paths"), ({"n_paths": True}, "n_paths"),
        ({"extra_noise": -1}, "extra_noise"), ({"extra_noise": math.nan}, "extra_noise"),
        ({"delta": 0.0}, "delta"), ({"delta": 1.0}, "delta"), ({"delta": "small"}, "delta"),
        ({"sensitivity": "best"}, "sensitivity"), ({"sensitivity": ("function", -1)}, "sensitivity"),
        ({"sensitivity": 3}, "sensitivity"), ({"max_points": 0}, "max_points"),
        ({"max_points": 10_001}, "max_points"), ({"max_points": 2.5}, "max_points"),
        ({"kernel": Matern(1.0, nu=0.7)}, "not proved"),
        ({"kernel": RationalQuadratic(1.0, alpha=1e60)}, "alpha"),
    ],
)  # fmt: skip
def test_public_arguments_out_of_range_are_refused(changes, match):
    with pytest.raises(ValueError, match=match):
        paths(**changes).guarantee_for(10)
    with pytest.raises(ValueError, match=match):
        paths(**changes).fit(X, Y)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X, None), (X, Y[:-1]), (X, [*Y[:-1], np.nan]), (X, [*Y[:-1], np.inf]),
        (X, ["a"] * 40), (np.where(X > 0.9, np.nan, X), Y), (X[:, 0], Y), (np.hstack([X, X]), Y),
        (X[:0], Y[:0]), ([["a"]] * 40, Y), (X * np.inf, Y),
    ],
)  # fmt: skip
def test_records_that_are_no_numbers_are_refused_without_naming_one(x, y):
    model = paths()
    with pytest.raises(ValueError, match=r"X|y|n must") as refusal:
        model.fit(x, y)
    assert "0." not in str(refusal.value)
    assert not hasattr(model, "guarantee_")


def test_questions_out_of_range_are_refused():
    model = paths().fit(X, Y)
    for asked in ([[np.nan]], [[np.inf]], [[0.1, 0.2]], [], [["a"]], [0.1]):
        with pytest.raises(ValueError):  # noqa: PT011
            model.release(asked)
    with pytest.raises(ValueError, match="at most"):
        model.release(np.linspace(0, 1, 2001)[:, None])
    for far in (-1e-300, np.nextafter(1.0, 2.0), 1e18, -1e308):
        with pytest.raises(ValueError, match="outside the declared domain"):
            model.release([[0.5], [far]])
    assert model.points_answered_ == 0
    for n in (0, -1, 2.5, True, "ten"):
        with pytest.raises(ValueError, match="n must"):
            model.guarantee_for(n)
    for epsilon in (0.0, -1.0, math.nan, math.inf, 1e5):
        with pytest.raises(ValueError, match="epsilon"):
            model.calibrate(epsilon, 40)
    with pytest.raises(ValueError, match="by"):
        model.calibrate(1.0, 40, by="luck")
    with pytest.raises(ValueError, match="extra_noise"):
        paths(noise_variance=1e-8).calibrate(1e-4, 10**6, by="extra_noise")


def test_the_excursion_set_is_a_vote_of_the_paths():
    model = paths(n_paths=5).fit(X, Y)
    values = model.release(ASKED)
    found = model.excursion(ASKED, 0.1, vote=0.6)
    assert np.array_equal(found.share, (values >= 0.1).mean(axis=0))
    assert np.array_equal(found.inside, found.share >= 0.6)
    smooth = model.excursion(ASKED, 0.1, smoothing=0.2)
    weights = np.exp(-0.5 * (ASKED - ASKED.T) ** 2 / 0.04)
    weights /= weights.sum(axis=1, keepdims=True)
    assert np.allclose(smooth.paths, values @ weights.T)
    assert len(found.plot().axes) == 1
    assert model.points_answered_ == 60
    others = paths(n_paths=5).fit(X, Y)
    for wrong in ({"vote": 0.0}, {"vote": 1.1}, {"smoothing": 0.0}, {"smoothing": math.nan}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            others.excursion(ASKED, 0.1, **wrong)
    with pytest.raises(ValueError, match="threshold"):
        others.excursion(ASKED, math.nan)
    assert others.points_answered_ == 0  # a question that is refused costs nothing


def test_an_excursion_set_over_two_inputs_has_a_boundary():
    inputs = RNG.random((60, 2))
    model = paths(domain=[(0, 1), (0, 1)], n_paths=3).fit(inputs, inputs[:, 0] - 0.5)
    a, b = np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 12))
    grid = np.column_stack([a.ravel(), b.ravel()])
    assert len(model.excursion(grid, 0.0, smoothing=0.1).plot().axes) == 1
    assert len(model.excursion(grid, 50.0).plot().axes) == 1
    assert len(model.excursion(grid[:2], 0.0).plot().axes) == 1
    three = paths(domain=[(0, 1)] * 3).fit(RNG.random((9, 3)), np.zeros(9))
    with pytest.raises(ValueError, match="two"):
        three.excursion(RNG.random((4, 3)), 0.0).plot()


def test_an_interrupt_at_any_line_leaves_all_of_a_draw_or_nothing(tmp_path):
    start, file = tmp_path / "start.private-state", tmp_path / "p.private-state"
    paths(n_paths=2).fit(X, Y, state=start).release(ASKED[:5])
    lines = {"last": 0, "seen": 0}

    def counted(frame, event, arg):
        lines["seen"] += event == "line"
        if lines["seen"] == lines["last"]:
            raise KeyboardInterrupt
        return counted

    def traced(frame, event, arg):
        ours = ("states/paths.py", "states/kept.py")
        return counted if frame.f_code.co_filename.endswith(ours) else None

    interrupted, before = True, sys.gettrace()
    while interrupted:
        file.write_bytes(start.read_bytes())
        model = PosteriorPaths.load_state(file)
        lines["last"], lines["seen"] = lines["last"] + 1, 0
        sys.settrace(traced)
        try:
            model.release(ASKED[:7])
            interrupted = False
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        told = model.release(ASKED[3:9])  # goes on, and is kept
        kept = PosteriorPaths.load_state(file)
        assert np.array_equal(kept.release(ASKED[3:9]), told)
        contents = kept._kept.contents
        anew = Triangle().grow(contents.engine().extend(contents.draws.points)).rows
        rows = contents.draws.lower.rows
        assert all(np.allclose(a, b, atol=1e-9) for a, b in zip(anew, rows, strict=True))
    assert lines["last"] > 50


def test_a_forked_process_refuses(tmp_path, monkeypatch):
    model = paths().fit(X, Y)
    monkeypatch.setattr("privgp.vault.states.kept.os.getpid", lambda: -1)
    refusals = (
        lambda: model.release(ASKED),
        lambda: model.save_state(tmp_path / "p.private-state"),
    )
    for refused in refusals:
        with pytest.raises(RuntimeError, match="another process"):
            refused()
    assert [*tmp_path.iterdir()] == []
    assert model.fit(X, Y).release(ASKED).shape == (1, 60)


def test_new_records_wait_for_an_answer_about_the_old_ones(monkeypatch):
    model = paths().fit(X, Y)
    fit = threading.Thread(target=lambda: model.fit(X[:7], Y[:7]))

    def meanwhile(*given):
        fit.start()
        fit.join(0.5)
        assert len(model._kept.contents.draws.outputs) == 40
        return sound(*given)

    sound = PathContents.grow
    monkeypatch.setattr(PathContents, "grow", meanwhile)
    assert model.release(ASKED).shape == (1, 60)
    fit.join()
    assert len(model._kept.contents.draws.outputs) == 7
    assert model.points_answered_ == 0
    assert model._kept._engine is None


def test_single_questions_answer_what_one_question_does(tmp_path):
    """The rows of the factor are stored as they were used: restarts and batches change rounding only."""
    state = tmp_path / "p.private-state"
    model, whole = paths(random_state=3), paths(random_state=3).fit(X, Y).release(ASKED)
    model.fit(X, Y, state=state)
    single = np.hstack([model.release(x[None]) for x in ASKED])
    assert np.allclose(single, whole, atol=1e-6)
    again = PosteriorPaths.load_state(state)
    assert np.array_equal(again.release(ASKED), single)
    rows, before = again._kept.contents.draws.lower.rows, model._kept.contents.draws.lower.rows
    assert all(map(np.array_equal, rows, before))
