"""What a killed writer leaves is removed by the next one, and nothing else ever is."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from privgp import PosteriorPaths, PrivateFunction, load
from privgp.command.io.files import whole_file
from privgp.storage import archive, parts, state_file
from privgp.storage.archive import DamagedFile
from privgp.storage.parts import NAME, part_beside, remove_stale
from tests.command.running import run
from tests.models.functions import ASKED, X, Y, function

STALE = ".privgp-" + "0" * 32 + ".part"
FORK = multiprocessing.get_context("fork")  # a process of its own that need not import anything


def write_state(path: Path, go: Callable[[], None]) -> None:
    os.umask(0)
    made = function().fit(X, Y, state=path)
    state_file._outgrown = lambda mark: True
    go()
    made.release(ASKED)


def write_new_paths(path: Path, go: Callable[[], None]) -> None:
    os.umask(0)
    go()
    made = PosteriorPaths(Matern(1.0, nu=0.5), 9.0, domain=(0, 1), y_bounds=(0, 1), delta=0.1)
    made.fit(np.linspace(0, 1, 9)[:, None], np.full(9, 0.5), state=path)


def write_table(path: Path, go: Callable[[], None]) -> None:
    """As the command does, except for the library that makes the text, which cannot be forked."""
    go()
    with whole_file(path) as part:
        part.write_text("a\n1.0\n")


def stopped(program: Callable[..., None], how: str, at: str, path: Path, talk: Any) -> None:
    """Stops in the middle of a write: by a kill, or until it is told to go on."""
    real = getattr(os, at)

    def stop(*arguments: Any) -> Any:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        talk.send("there")
        talk.recv()
        return real(*arguments)

    program(path, lambda: setattr(os, at, stop))


def started(program: Callable[..., None], how: str, at: str, path: Path) -> tuple[Any, Any]:
    """The process, and a pipe to it."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=stopped, args=(program, how, at, path, theirs))
    process.start()
    return process, ours


def killed(program: Callable[..., None], at: str, path: Path) -> Path:
    """The part that a process leaves which is killed at this call."""
    process, _ = started(program, "kill", at, path)
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    (left,) = (one for one in path.parent.iterdir() if one.name.startswith(".privgp-"))
    assert NAME.fullmatch(left.name)
    return left


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_a_kill_in_the_middle_of_a_write_leaves_a_part_that_the_next_start_removes(tmp_path, at):
    path = tmp_path / "f.private-state"
    left = killed(write_state, at, path)
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    assert b"PRIVATE: for the curator only" in left.read_bytes()[:200]
    again = PrivateFunction.load_state(path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert again.release(ASKED).shape == (len(ASKED),)


def test_writing_another_state_there_removes_it_too(tmp_path):
    path = tmp_path / "p.private-state"
    left = killed(write_new_paths, "replace", path)
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    assert not path.exists()
    function().fit(X, Y, state=tmp_path / "f.private-state")
    assert [one.name for one in tmp_path.iterdir()] == ["f.private-state"]
    with pytest.raises(FileNotFoundError):
        PosteriorPaths.load_state(path)


def test_the_command_removes_what_a_killed_one_left(tmp_path):
    left = killed(write_table, "replace", tmp_path / "a.csv")
    assert left.suffix == ".csv"
    (tmp_path / "in.csv").write_text("age\n1\n2\n")
    asked = ("--inputs", "age", "--bounds", 0, 1, "--epsilon", 1, "--delta", 1e-5)
    assert run("plan", tmp_path / "in.csv", *asked, "--plot", tmp_path / "p.svg").code == 0
    assert {one.name for one in tmp_path.iterdir()} == {"in.csv", "p.svg"}


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_what_a_live_process_writes_is_left_alone(tmp_path, at):
    path = tmp_path / "f.private-state"
    process, talk = started(write_state, "wait", at, path)
    assert talk.poll(120)
    assert talk.recv() == "there"
    (part,) = (one for one in tmp_path.iterdir() if NAME.fullmatch(one.name))
    remove_stale(tmp_path)
    with part_beside(tmp_path / "other.csv"):
        assert part.exists()
    assert PrivateFunction.load_state(path).points_answered_ == 0
    assert part.exists()
    for _ in range(9):
        talk.send("go on")
    process.join(120)
    assert process.exitcode == 0
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert PrivateFunction.load_state(path).points_answered_ == len(ASKED)


def test_parts_of_the_same_process_are_left_alone_too(tmp_path):
    with part_beside(tmp_path / "a") as one, part_beside(tmp_path / "b") as two:
        thread = threading.Thread(target=remove_stale, args=(tmp_path,))
        thread.start()
        thread.join()
        assert one.exists()
        assert two.exists()
    assert [*tmp_path.iterdir()] == []


LOOKALIKES = [
    ".privgp-notes.part", ".privgp-.part", STALE.upper(), STALE + "~", STALE + ".bak.gz", "x" + STALE,
    STALE.replace("0", "g"), STALE[1:], STALE[:-1], STALE + ".", STALE + "\n",
    ".privgp-" + "0" * 31 + ".part", ".privgp-" + "0" * 33 + ".part",
]  # fmt: skip


def test_a_users_own_files_are_never_removed(tmp_path):
    for name in LOOKALIKES:
        (tmp_path / name).write_text("mine")
    remove_stale(tmp_path)
    function().fit(X, Y, state=tmp_path / "f.private-state").release(ASKED)
    PrivateFunction.load_state(tmp_path / "f.private-state")
    assert {one.name for one in tmp_path.iterdir()} == {*LOOKALIKES, "f.private-state"}


def test_links_folders_pipes_and_files_of_others_are_not_touched(tmp_path, monkeypatch):
    def named(digit: str) -> Path:
        return tmp_path / STALE.replace("0", digit)

    precious = tmp_path / "precious"
    precious.write_text("mine")
    named("1").symlink_to(precious)
    named("2").symlink_to(tmp_path / "nowhere")
    named("3").mkdir()
    os.mkfifo(named("4"))
    os.link(precious, named("5"))
    remove_stale(tmp_path)
    assert precious.read_text() == "mine"
    assert len([*tmp_path.iterdir()]) == 6
    named("6").write_text("somebody's")
    with monkeypatch.context() as patch:
        patch.setattr(parts.os, "geteuid", lambda: os.getuid() + 1)
        remove_stale(tmp_path)
    assert named("6").exists()
    remove_stale(tmp_path)
    assert not named("6").exists()
    assert len([*tmp_path.iterdir()]) == 6


def test_folders_that_cannot_be_read_are_no_problem(tmp_path):
    remove_stale(tmp_path / "none")
    (tmp_path / "file").touch()
    remove_stale(tmp_path / "file")


def test_a_part_taken_for_dead_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock, seen = fcntl.flock, []

    def raced(held, how):
        seen.append(held)
        if len(seen) == 1:  # removed between creation and lock
            (one,) = tmp_path.iterdir()
            one.unlink()
        if len(seen) == 2:  # being removed at that moment
            raise BlockingIOError
        return lock(held, how)

    monkeypatch.setattr(parts.fcntl, "flock", raced)
    with part_beside(tmp_path / "a") as part:
        assert len(seen) == 3
        assert [*tmp_path.iterdir()] == [part]
        part.write_text("whole")
        os.replace(part, tmp_path / "a")
    assert (tmp_path / "a").read_text() == "whole"


def test_where_there_are_no_locks_files_are_written_and_none_is_removed(tmp_path, monkeypatch):
    def none(*_):
        raise OSError("no locks available")

    (tmp_path / STALE).touch()
    monkeypatch.setattr(parts.fcntl, "flock", none)
    with part_beside(tmp_path / "a") as part:
        os.replace(part, tmp_path / "a")
    assert {one.name for one in tmp_path.iterdir()} == {"a", STALE}


def test_an_entry_that_is_added_needs_no_part(tmp_path, monkeypatch):
    made = function().fit(X, Y, state=tmp_path / "f.private-state")
    monkeypatch.setattr(archive, "part_beside", None)
    assert np.isfinite(made.release(ASKED)).all()
    assert state_file.MOST_ENTRIES > 2**20


def test_reading_a_release_removes_what_was_left_beside_it(tmp_path):
    (tmp_path / "v.privgp").write_text("broken")
    (tmp_path / STALE).touch()
    with pytest.raises(DamagedFile):
        load(tmp_path / "v.privgp")
    assert [one.name for one in tmp_path.iterdir()] == ["v.privgp"]
