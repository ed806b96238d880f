"""The custodian's state: one function across restarts, kills, processes and threads."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import shutil
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from privgp import PrivateFunction
from privgp.privacy.guarantee import NOT_TIMED
from privgp.storage import archive, state_file
from privgp.storage.archive import DamagedFile
from privgp.storage.state_file import StateFile
from privgp.vault.states.kept import Kept
from privgp.vault.states.outputs import OutputsContents
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


def killed(*_, **__):
    raise Killed


def _half(write):
    """Half of an entry reaches the disk."""

    class Half:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, data):
            self.file.write(data[: len(data) // 2])
            raise Killed

        def __getattr__(self, name):
            return getattr(self.file, name)

    return lambda self: Half(write(self))


MOMENTS = {
    "before the entry": lambda patch: patch.setattr(state_file, "entry", killed),
    "half an entry": lambda patch: patch.setattr(
        StateFile, "_open_file", _half(StateFile._open_file)
    ),
    "entry on its way": lambda patch: patch.setattr(state_file.os, "fdatasync", killed),
    "before the archive": lambda patch: patch.setattr(archive, "pack", killed),
    "archive on its way": lambda patch: patch.setattr(archive.os, "fsync", killed),
    "before it is moved": lambda patch: patch.setattr(archive.os, "replace", killed),
    "after it is moved": lambda patch: patch.setattr(archive.os, "replace", _then(os.replace)),
    "before the answer": lambda patch: patch.setattr(Kept, "_persist", _then(Kept._persist)),
}
ENTRIES, ARCHIVES = [*MOMENTS][:3], [*MOMENTS][3:7]


@pytest.mark.parametrize(
    ("moment", "way"),
    [(moment, "entries") for moment in [*ENTRIES, "before the answer"]]
    + [(moment, "records") for moment in [*ENTRIES, "before the answer"]]
    + [(moment, "written anew") for moment in [*ARCHIVES, "before the answer"]]
    + [(moment, "inducing") for moment in [*ARCHIVES, "before the answer"]],
)
def test_killed_at_any_moment_it_goes_on_with_the_same_function(tmp_path, monkeypatch, moment, way):
    path = tmp_path / "heights.private-state"
    kind = {"inducing": {"inducing": 8}, "records": {"protect": "records", "domain": (0, 10)}}
    with monkeypatch.context() as patch:  # earlier versions drew nothing at the fit
        patch.setattr(OutputsContents, "draw_at_once", lambda self: None)
        made = function(**kind.get(way, {})).fit(X, Y, state=path)
    known = made.release(ASKED[:3]) if way != "inducing" else np.empty(0)
    with monkeypatch.context() as patch:
        if way == "written anew":
            patch.setattr(state_file, "_outgrown", lambda mark: True)
        MOMENTS[moment](patch)
        with pytest.raises(Killed):
            made.release(ASKED)
    # The process that was interrupted and lived on, and one that starts anew:
    drawn = made._kept.contents.draws.numbers.copy()
    other = PrivateFunction.load_state(path)
    if moment in ("entry on its way", "after it is moved", "before the answer"):
        assert np.array_equal(other._kept.contents.draws.numbers, drawn)
    else:
        assert np.array_equal(other._kept.contents.draws.numbers, drawn[: len(known)])
    if moment == "half an entry":  # what a process finds that starts after the kill
        copied = tmp_path / "copied.private-state"
        shutil.copy(path, copied)
        revived = PrivateFunction.load_state(copied)
        answers = revived.release(ASKED)
        assert np.array_equal(answers[:3], known)
        assert np.array_equal(PrivateFunction.load_state(copied).release(ASKED), answers)
        copied.unlink()
    survived = made.release(ASKED)
    assert np.array_equal(made._kept.contents.draws.numbers, drawn)
    made.release([[0.123]])
    anew = PrivateFunction.load_state(path)
    assert np.array_equal(anew.release(ASKED), survived)
    assert np.array_equal(survived[: len(known)], known)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def _then(done):
    def both(*arguments):
        done(*arguments)
        raise Killed

    return both


def test_entries_that_outgrow_the_rest_go_into_it(tmp_path, monkeypatch):
    monkeypatch.setattr(state_file, "MOST_ENTRIES", 0)
    path = tmp_path / "heights.private-state"
    made = function().fit(X, Y, state=path)
    first = path.stat().st_size
    points = np.linspace(0, 10, 60)[:, None]
    answers = np.concatenate([made.release(x[None]) for x in points])
    marks = made._kept.file._marks
    assert len(marks) == 1
    assert marks[0].base > first
    assert np.array_equal(PrivateFunction.load_state(path).release(points), answers)


FORK = multiprocessing.get_context("fork")  # a process of its own that need not import anything


def ask(path, seed, told):
    made = PrivateFunction.load_state(path)
    for x in np.random.default_rng(seed).uniform(0, 10, 5000):
        answer = made.release([[x]])[0]
        os.write(told, f"{float(x).hex()} {float(answer).hex()}\n".encode())


def test_processes_that_are_killed_outright_tell_nothing_but_one_function(tmp_path):
    """Killed at some moment between microseconds and a tenth of a second, ten times."""
    path = tmp_path / "heights.private-state"
    function().fit(X, Y, state=path)
    waits = np.random.default_rng(int(time.time_ns()) % 2**32).exponential(0.03, 10)
    told: dict[float, float] = {}
    for number, wait in enumerate(waits):
        reading, writing = os.pipe()
        process = FORK.Process(target=ask, args=(path, number, writing))
        process.start()
        os.close(writing)
        with open(reading) as heard:
            said = [heard.readline()]
            time.sleep(wait)
            process.kill()
            said += heard.readlines()
        process.join()
        pairs = [line.split() for line in said if line.endswith("\n")]
        assert pairs
        told |= {float.fromhex(x): float.fromhex(answer) for x, answer in pairs}
        points = np.array([*told])[:, None]
        assert np.array_equal(PrivateFunction.load_state(path).release(points), [*told.values()])


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
    monkeypatch.setattr("privgp.vault.states.kept.os.getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="another process"):
        made.release(ASKED)


def test_threads_share_one_function():
    made = function().fit(X, Y)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: made.release(ASKED), range(8)))
    assert all(np.array_equal(answer, answers[0]) for answer in answers)
    assert len(made._kept.contents.draws.points) == 12


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
    made = function().fit(X, Y, state=path)
    base = path.stat().st_size
    made.release(ASKED)
    made.release([[0.5]])
    data = path.read_bytes()
    for at in [*range(0, base, 97), *range(base, len(data), 7)]:
        broken = bytearray(data)
        broken[at] ^= 1
        path.write_bytes(bytes(broken))
        with pytest.raises(DamagedFile):
            PrivateFunction.load_state(path)
    path.write_bytes(b"")
    with pytest.raises(DamagedFile):
        PrivateFunction.load_state(path)


def test_a_state_cut_short_is_the_state_before_its_last_entry_or_none(tmp_path):
    path = tmp_path / "heights.private-state"
    made = function().fit(X, Y, state=path)
    base = path.stat().st_size
    made.release(ASKED)
    data = path.read_bytes()
    for end in (0, 50, base - 1):
        path.write_bytes(data[:end])
        with pytest.raises(DamagedFile):
            PrivateFunction.load_state(path)
    for end in (base, base + 1, base + 12, len(data) - 1):
        path.write_bytes(data[:end])
        assert PrivateFunction.load_state(path).points_answered_ == 0
    path.write_bytes(data)
    assert PrivateFunction.load_state(path).points_answered_ == 12


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


def test_noise_that_can_be_drawn_at_once_is_drawn_before_anybody_asks(tmp_path):
    """How long an exact draw takes tells a little of the noise: no caller waits for it."""
    path = tmp_path / "heights.private-state"
    made = function(inducing=8).fit(X, Y, state=path)
    numbers = made._kept.contents.draws.numbers
    assert len(numbers) == 8
    made.release(ASKED)
    assert made._kept.contents.draws.numbers is numbers
    again = PrivateFunction.load_state(path)
    assert np.array_equal(again._kept.contents.draws.numbers, numbers)
    assert NOT_TIMED not in made.guarantee_.assumptions
    for lazy in (function(), function(protect="records", domain=(0, 10))):
        assert NOT_TIMED in lazy.fit(X, Y).guarantee_.assumptions
