"""``privgp predict FILE --page``: one file for publishing, with or without rows to predict at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command.running import assert_one_sentence, run


def test_a_page_of_a_release(tmp_path: Path, release: Path) -> None:
    out = tmp_path / "map.html"
    made = run("predict", release, "--page", out, "--label", "cost in pounds")
    assert (made.code, made.out) == (0, f"Drawn in {out}.\n")
    text = out.read_text("utf-8")
    assert "<h1>visits</h1>" in text
    assert "cost in pounds" in text
    assert "What is not protected" in text
    assert_one_sentence(run("predict", release, "--page", out))  # it is there already


def test_a_page_beside_predictions_and_a_picture(
    tmp_path: Path, release: Path, visits: Path
) -> None:
    out = [tmp_path / name for name in ("p.csv", "p.html", "p.png")]
    files = ("-o", out[0], "--page", out[1], "--plot", out[2])
    made = run("predict", release, visits, *files, "--json")
    assert made.code == 0, made
    assert json.loads(made.out)["page"] == str(out[1])
    assert all(path.stat().st_size > 100 for path in out)
    alone = run("predict", release, "--page", tmp_path / "q.html", "--plot", tmp_path / "q.png")
    assert alone.code == 0, alone


@pytest.mark.parametrize(
    "options", [(), ("-o", "p.csv"), ("--plot", "p.png"), ("--page", "p.html", "-o", "p.csv")]
)
def test_it_must_be_said_what_is_wanted(release: Path, options: tuple[str, ...]) -> None:
    assert_one_sentence(run("predict", release, *options))


OF_THE_SERVER = ("fastapi", "uvicorn", "pydantic_settings", "prometheus_client", "psycopg")


def test_a_page_needs_no_package_of_the_server(tmp_path: Path, release: Path) -> None:
    hidden = f"import sys; sys.modules.update(dict.fromkeys({OF_THE_SERVER}))"
    line = [str(each) for each in ("predict", release, "--page", tmp_path / "p.html")]
    program = f"{hidden}; from privgp.command import main; sys.argv[1:] = {line}; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.html").stat().st_size > 100
