"""The versions that pyproject.toml allows are the ones that are tested.

``lowest.lock`` (``make lowest``) has the lowest of them, ``requirements.lock`` (``make test``) the
newest, and ``deploy/requirements.lock`` what a server needs of the latter.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TOOLS = ("dev", "docs")  # of this repository, not of its users
LOCKS = ("requirements.lock", "lowest.lock", "deploy/requirements.lock")
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)


def locked(name: str) -> dict[str, Version]:
    """The versions in a lock, by package."""
    pins = PIN.findall((ROOT / name).read_text("utf-8"))
    return {package: Version(version) for package, version in pins}


def bounds() -> dict[str, Version]:
    """The lower bound of everything that a user may have to install."""
    extras = PROJECT["optional-dependencies"]
    lines = [line for name in extras if name not in TOOLS for line in extras[name]]
    found = {}
    for each in map(Requirement, [*PROJECT["dependencies"], *lines]):
        by_operator = {only.operator: only.version for only in each.specifier}
        assert {">="} <= {*by_operator} <= {">=", "<"}, each
        found[each.name] = Version(by_operator[">="])
    return found


def test_the_lowest_environment_has_every_lower_bound():
    lowest = locked("lowest.lock")
    assert {name: lowest[name] for name in bounds()} == bounds()


def test_the_newest_environment_is_within_the_bounds():
    newest = locked("requirements.lock")
    assert all(newest[name] >= lowest for name, lowest in bounds().items())


def test_versions_of_opendp_with_a_wrong_distribution_are_not_allowed():
    assert bounds()["opendp"] >= Version("0.14.2")


def test_a_server_has_the_versions_that_are_tested():
    server, tested = locked("deploy/requirements.lock"), locked("requirements.lock")
    assert {"opendp", "fastapi", "psycopg", "hatchling"} <= server.keys()
    assert server.items() <= tested.items()
    image = (ROOT / "deploy" / "Dockerfile").read_text("utf-8")
    assert "--require-hashes -r /source/requirements.lock" in image
    installs = [line for line in image.splitlines() if "pip install" in line]
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_hashes_and_no_addresses(name):
    text = (ROOT / name).read_text("utf-8")
    assert "://" not in text
    blocks = re.split(r"\n(?=\S)", text.strip())
    assert len(blocks) > 20
    assert all(PIN.match(block) and "--hash=sha256:" in block for block in blocks)
