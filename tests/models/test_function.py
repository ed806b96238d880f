"""One and the same function at any points, whatever happens between the questions."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from privgp import PrivateFunction, compose
from privgp.models import state_contents
from privgp.release import archive
from privgp.release.archive import DamagedFile

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, (30, 1))
Y = np.round(50 + 20 * np.sin(X[:, 0]) + RNG.normal(size=30), 6) + 0.0000731
ASKED = np.linspace(0, 10, 12)[:, None]
MOST = {"y_bounds": (0.0, 100.0), "epsilon": 1.0, "delta": 1e-5}


def function(kernel=None, noise_variance=25.0, **options):
    kernel = 400.0 * RBF(2.0) if kernel is None else kernel
    return PrivateFunction(kernel, noise_variance, **{**MOST, **options})


def almost_without_noise(**options):
    return function(epsilon=1e4, delta=0.5, random_state=0, **options)


@pytest.mark.parametrize("inducing", [None, 30, X])
def test_with_hardly_any_noise_it_is_the_posterior_mean(inducing):
    made = almost_without_noise(inducing=inducing).fit(X, Y)
    known = GaussianProcessRegressor(400.0 * RBF(2.0), alpha=25.0, optimizer=None)
    mean = 50.0 + known.fit(X, Y - 50.0).predict(ASKED)
    assert np.abs(made.release(ASKED) - mean).max() < 5 * made.noise_std_
    assert made.noise_std_ < 10.0


@pytest.mark.parametrize("inducing", [None, 8])
def test_a_point_asked_again_has_the_same_bits_alone_or_in_any_company(inducing):
    made = function(inducing=inducing).fit(X, Y)
    first = made.release(ASKED)
    mixed = np.vstack([ASKED[::-1], [[3.3]], ASKED[:4]])
    assert np.array_equal(made.release(mixed)[:12], first[::-1])
    assert np.array_equal([made.release(x[None])[0] for x in ASKED], first)
    assert made.release([[0.0]]) == made.release([[-0.0]])


def test_two_fits_are_two_functions():
    assert not np.any(function().fit(X, Y).release(ASKED) == function().fit(X, Y).release(ASKED))


def test_near_duplicates_have_nearly_equal_answers():
    made = function().fit(X, Y)
    near = 5.0 + np.concatenate([[0.0], 10.0 ** -np.arange(3, 16)])[:, None]
    answers = made.release(near)
    more = np.concatenate([made.release(x[None]) for x in near + 1e-9])
    # each point has its own 1e-4 of the noise
    assert np.abs(answers - answers[0]).max() < 2e-3 * made.noise_std_
    assert np.abs(more - answers[0]).max() < 2e-3 * made.noise_std_


def test_points_far_from_everything_and_from_each_other_are_answered():
    made = function(kernel=400.0 * Matern(2.0, nu=2.5)).fit(X, Y)
    far = np.array([[1e6], [1e6 + 1e-7], [-1e9], [1e12], [1e12 + 1.0], [3.0]])
    assert np.all(np.isfinite(made.release(far)))
    with pytest.raises(ValueError, match="too far away"), np.errstate(all="ignore"):
        made.release([[1e300]])
    assert np.all(np.isfinite(made.release([[4.0]])))


def test_a_smooth_kernel_gives_a_smooth_function():
    """Fourth differences over 40 points stay below 1% of the noise."""
    line = np.linspace(0, 4, 40)[:, None]  # a twentieth of a lengthscale apart
    together = function().fit(X, Y)
    singly = function().fit(X, Y)
    for made, answers in (
        (together, together.release(line)),
        (singly, np.concatenate([singly.release(x[None]) for x in line])),
    ):
        assert np.abs(np.diff(answers, 4)).max() < 0.01 * made.noise_std_
        assert np.ptp(answers) > 0


def test_attributes_are_in_the_units_they_claim():
    made = function().fit(X, Y)
    prior = (400.0 * RBF(2.0))(X)
    inverse = np.linalg.inv(prior + 25.0 * np.eye(30))
    wanted = 100.0 * np.sqrt(np.diag(inverse @ prior @ inverse).max())
    assert made.sensitivity_ == pytest.approx(wanted, rel=1e-9)
    (multiplier,) = made.guarantee_.noise_multipliers
    assert made.noise_std_ == pytest.approx(multiplier * wanted * 20.0, rel=1e-6)
    assert made.guarantee_.delta_at(1.0) <= 1e-5
    assert made.guarantee_.unit == "one output value"
    assert not made.guarantee_.is_simulation
    assert function(random_state=1).fit(X, Y).guarantee_.is_simulation


@pytest.mark.parametrize("bound", ["infinity", "nonnegative"])
def test_the_papers_bounds_only_add_noise(bound):
    loose, exact = (function(sensitivity=s).fit(X, Y) for s in (bound, "exact"))
    assert loose.sensitivity_ > exact.sensitivity_
    assert loose.noise_std_ / loose.sensitivity_ == pytest.approx(
        exact.noise_std_ / exact.sensitivity_
    )


def test_its_promise_adds_up_with_others():
    first, second = function().fit(X, Y), function(inducing=6).fit(X, Y)
    whole = compose([first.guarantee_, second.guarantee_], delta=1e-5)
    assert 1.0 < whole.epsilon < 2.0


# The state


@pytest.mark.parametrize("inducing", [None, 8])
def test_a_restart_goes_on_with_the_same_function(tmp_path, inducing):
    path = tmp_path / "heights.private-state"
    first = function(inducing=inducing).fit(X, Y, state=path)
    before = first.release(ASKED)
    second = PrivateFunction.load_state(path)
    after = second.release([[1.23], [4.56]])
    third = PrivateFunction.load_state(path)
    assert np.array_equal(third.release(np.vstack([ASKED, [[1.23], [4.56]]])), [*before, *after])
    assert third.guarantee_ == first.guarantee_
    assert third.sensitivity_ == first.sensitivity_
    assert third.get_params()["epsilon"] == 1.0


def test_simulations_go_on_as_if_there_had_been_no_restart(tmp_path):
    path = tmp_path / "heights.private-state"
    whole = function(random_state=3).fit(X, Y).release(ASKED)
    function(random_state=3).fit(X, Y, state=path)
    parts = [PrivateFunction.load_state(path).release(x[None])[0] for x in ASKED]
    assert np.allclose(parts, whole, rtol=1e-6)


def test_the_file_says_that_it_is_private(tmp_path):
    path = tmp_path / "heights.private-state"
    before = os.umask(0)
    try:
        made = function().fit(X, Y, state=path)
        made.release(ASKED)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    head = path.read_bytes()[:4096]
    assert b'"format": "private-state"' in head[:200]
    assert b"PRIVATE: for the curator only" in head
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    for name in ("heights.privgp", "heights"):
        with pytest.raises(ValueError, match="must end in"):
            function().fit(X, Y, state=tmp_path / name)


def test_a_state_is_never_overwritten_nor_kept_twice(tmp_path):
    path = tmp_path / "heights.private-state"
    made = function().fit(X, Y)
    answers = made.release(ASKED)
    made.save_state(path)
    with pytest.raises(RuntimeError, match="fall behind"):
        made.save_state(tmp_path / "other.private-state")
    with pytest.raises(FileExistsError):
        function().fit(X, Y, state=path)
    assert np.array_equal(PrivateFunction.load_state(path).release(ASKED), answers)


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("moment", ["encode", "write", "replace", "after replace", "answer"])
@pytest.mark.parametrize("inducing", [None, 8])
def test_killed_at_any_moment_it_goes_on_with_the_same_function(
    tmp_path, monkeypatch, moment, inducing
):
    path = tmp_path / "heights.private-state"
    made = function(inducing=inducing).fit(X, Y, state=path)
    known = made.release(ASKED[:3]) if inducing is None else np.empty(0)
    replace = os.replace

    def killed(*_, **__):
        raise Killed

    def killed_after(*arguments):
        replace(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        if moment == "encode":
            patch.setattr(state_contents.archive, "pack", killed)
        elif moment == "write":
            patch.setattr(archive.os, "fsync", killed)
        elif moment == "replace":
            patch.setattr(archive.os, "replace", killed)
        elif moment == "after replace":
            patch.setattr(archive.os, "replace", killed_after)
        else:
            patch.setattr(PrivateFunction, "_persist", _then_killed(PrivateFunction._persist))
        with pytest.raises(Killed):
            made.release(ASKED)
    # The process that was interrupted and lived on, and one that starts anew:
    drawn = made._contents.draws.numbers.copy()
    if moment in ("after replace", "answer"):
        again = PrivateFunction.load_state(path)
        assert np.array_equal(again._contents.draws.numbers, drawn)
    survived = made.release(ASKED)
    assert np.array_equal(made._contents.draws.numbers, drawn)
    anew = PrivateFunction.load_state(path)
    assert np.array_equal(anew.release(ASKED), survived)
    assert np.array_equal(survived[: len(known)], known)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def _then_killed(persist):
    def both(self):
        persist(self)
        raise Killed

    return both


ASKING = """
import sys
import numpy as np
from privgp import PrivateFunction, compose
made = PrivateFunction.load_state(sys.argv[1])
for x in np.random.default_rng(0).uniform(0, 10, 5000):
    print(float(x).hex(), float(made.release([[x]])[0]).hex(), flush=True)
"""


@pytest.mark.parametrize("lines", [1, 37])
def test_a_process_that_is_killed_outright_has_told_nothing_but_this_function(tmp_path, lines):
    path = tmp_path / "heights.private-state"
    function().fit(X, Y, state=path)
    command = [sys.executable, "-c", ASKING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        said += process.stdout.readlines()
    pairs = [line.split() for line in said if line.endswith("\n") and line.strip()]
    assert len(pairs) >= lines
    points = np.array([[float.fromhex(x)] for x, _ in pairs])
    after = PrivateFunction.load_state(path)
    answers = after.release(points)
    assert np.array_equal(answers, [float.fromhex(answer) for _, answer in pairs])


def test_a_state_behind_a_link_stays_the_one_state(tmp_path):
    path, link = tmp_path / "heights.private-state", tmp_path / "link.private-state"
    function().fit(X, Y, state=path)
    link.symlink_to(path)
    answers = PrivateFunction.load_state(link).release(ASKED)
    assert link.is_symlink()
    assert np.array_equal(PrivateFunction.load_state(path).release(ASKED), answers)


def test_two_processes_cannot_draw_one_function_differently(tmp_path):
    path = tmp_path / "heights.private-state"
    first = function().fit(X, Y, state=path)
    second = PrivateFunction.load_state(path)
    first.release([[1.0]])
    with pytest.raises(RuntimeError, match="changed by another process"):
        second.release([[1.0]])
    with pytest.raises(RuntimeError, match="changed by another process"):
        second.release([[1.0]])  # what it drew never leaves
    path.unlink()
    with pytest.raises(RuntimeError, match="nothing is answered"):
        first.release([[2.0]])


def test_a_forked_process_refuses(monkeypatch):
    made = function().fit(X, Y)
    monkeypatch.setattr("privgp.models.function.os.getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="another process"):
        made.release(ASKED)


def test_threads_share_one_function():
    made = function().fit(X, Y)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: made.release(ASKED), range(8)))
    assert all(np.array_equal(answer, answers[0]) for answer in answers)
    assert len(made._contents.points) == 12


def test_a_fitted_function_cannot_be_copied_but_its_settings_can():
    made = function().fit(X, Y)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(made)
    with pytest.raises(NotFittedError):
        clone(made).release(ASKED)
    pickle.dumps(function())


def test_any_flipped_byte_of_a_state_is_found(tmp_path):
    path = tmp_path / "heights.private-state"
    function().fit(X, Y, state=path)
    data = path.read_bytes()
    for at in range(0, len(data), 97):
        broken = bytearray(data)
        broken[at] ^= 1
        path.write_bytes(bytes(broken))
        with pytest.raises(DamagedFile):
            PrivateFunction.load_state(path)
    path.write_bytes(b"")
    with pytest.raises(DamagedFile):
        PrivateFunction.load_state(path)


def test_a_state_is_no_release_and_a_release_no_state(tmp_path):
    path = tmp_path / "heights.private-state"
    function().fit(X, Y, state=path)
    with pytest.raises(DamagedFile, match="not a"):
        archive.unpack(path.read_bytes())


# What is refused, and what is said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"y_bounds": None}, "y_bounds"),
        ({"y_bounds": (1, 0)}, "y_bounds"),
        ({"noise_variance": None}, "noise_variance"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"noise_variance": np.nan}, "noise_variance"),
        ({"kernel": "rbf"}, "kernel"),
        ({"kernel": RBF([1.0, 2.0])}, "lengthscales"),
        ({"kernel": WhiteKernel()}, "nothing but noise"),
        ({"kernel": RBF() + WhiteKernel()}, "noise once"),
        ({"sensitivity": "best"}, "sensitivity"),
        ({"inducing": 0}, "inducing"),
        ({"inducing": "few"}, "inducing"),
        ({"inducing": [[1.0, 2.0]]}, "inducing"),
        ({"inducing": 4, "sensitivity": "infinity"}, "exact"),
    ],
)
def test_wrong_arguments_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        function(**change).fit(X, Y)


def test_wrong_data_are_refused_without_a_private_value():
    for y in (None, Y[:-1], [*Y[:-1], np.nan], [*Y[:-1], "tall"], Y[:, None] * [1, 1]):
        with pytest.raises(ValueError, match="y") as refusal:
            function().fit(X, y)
        assert "0731" not in str(refusal.value)
    made = function().fit(X, Y)
    for wrong in ([[np.nan]], [[1.0, 2.0]], [1.0], [], [["a"]]):
        with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn's sentences
            made.release(wrong)
    with pytest.raises(NotFittedError):
        function().release(ASKED)
    with pytest.raises(NotFittedError):
        function().save_state("x.private-state")


def test_a_refused_fit_leaves_the_former_function_as_it_was():
    made = function().fit(X, Y)
    answers = made.release(ASKED)
    with pytest.raises(ValueError, match="y must"):
        made.fit(np.hstack([X, X]), Y[:-1])
    assert np.array_equal(made.release(ASKED), answers)


def test_nothing_shown_holds_a_private_value():
    made = function().fit(X, Y)
    made.release(ASKED)
    shown = repr(made) + str(made.guarantee_) + made.guarantee_.describe() + repr(made._contents)
    assert not any(f"{value:.7f}"[:8] in shown for value in Y)
    assert not any(f"{value:.6g}" in shown for value in made._contents.draws.sums)


def test_there_is_a_most_of_points_and_none_through_inducing_inputs(monkeypatch):
    monkeypatch.setattr("privgp.plan.functions.MAX_POINTS", 10)
    made = function().fit(X, Y)
    made.release(ASKED[:8])
    with pytest.raises(ValueError, match="at most"):
        made.release(ASKED)
    assert len(made._contents.points) == 8
    assert len(function(inducing=5).fit(X, Y).release(np.linspace(0, 9, 700)[:, None])) == 700


def test_tables_keep_their_names(tmp_path):
    path = tmp_path / "heights.private-state"
    table = pd.DataFrame({"age": X[:, 0]})
    answers = function().fit(table, Y, state=path).release(table)
    again = PrivateFunction.load_state(path)
    assert list(again.feature_names_in_) == ["age"]
    assert np.array_equal(again.release(table), answers)


def test_a_white_kernel_is_the_noise_variance():
    given = function(kernel=400.0 * RBF(2.0) + WhiteKernel(25.0), noise_variance=None).fit(X, Y)
    assert given.sensitivity_ == function().fit(X, Y).sensitivity_
