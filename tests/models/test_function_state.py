"""The curator's state: one function across restarts, kills, processes and threads."""

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

from privgp import PrivateFunction
from privgp.models import state_contents
from privgp.release import archive
from privgp.release.archive import DamagedFile
from tests.models.functions import ASKED, X, Y, function


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


def test_tables_keep_their_names(tmp_path):
    path = tmp_path / "heights.private-state"
    table = pd.DataFrame({"age": X[:, 0]})
    answers = function().fit(table, Y, state=path).release(table)
    again = PrivateFunction.load_state(path)
    assert list(again.feature_names_in_) == ["age"]
    assert np.array_equal(again.release(table), answers)
