"""A real server that is killed while it is asked; ``benchmarks.kills`` does it as often as one likes."""

from __future__ import annotations

from benchmarks.kills import killed

KILLS = 2


def test_a_killed_server_has_charged_what_anybody_saw_and_repeats_it(tmp_path):
    told = killed(tmp_path / "server", KILLS)
    assert told["charged"] == told["asked"] + told["of revoked keys"] > 1
    assert told["requests without an answer"] > 0  # it was killed under load
