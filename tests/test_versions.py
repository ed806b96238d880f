"""What the project says of its versions: one number everywhere, a changelog, advisories, a citation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import privgp

ROOT = Path(__file__).resolve().parents[1]
CHANGES, ADVISORIES = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "SECURITY.md")
)
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
RELEASES = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)$", CHANGES, re.MULTILINE)
ROWS = re.findall(r"^\| PRIVGP-2026-(\d\d) \|(.*)\|$", ADVISORIES, re.MULTILINE)


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest, date = RELEASES[0]
    assert newest == project["version"] == privgp.__version__ == CITATION["version"]
    assert date == str(CITATION["date-released"])
    assert f"Only the newest version is fixed: {newest}." in ADVISORIES


def test_the_changelog_is_short_and_has_a_section_for_every_release():
    assert len(CHANGES.split()) <= 1500
    assert [version for version, _ in RELEASES] == ["0.3.0", "0.2.0", "0.1.0"]
    assert "Unreleased" not in CHANGES


def test_advisories_are_numbered_without_gaps_and_complete():
    assert sorted(int(number) for number, _ in ROWS) == [*range(1, len(ROWS) + 1)]
    known = {version for version, _ in RELEASES}
    for _, row in ROWS:
        problem, affected, who, what = (cell.strip() for cell in row.split(" | "))
        assert problem.startswith("**")
        assert {*affected.split(", ")} < known
        assert who
        assert what.endswith(".")


def test_what_was_fixed_after_the_newest_version_says_that_it_is_affected():
    newest = RELEASES[0][0]
    part = ADVISORIES.partition(f"### Fixed after {newest}")[2].partition("\n### ")[0]
    found = re.findall(r"^\| PRIVGP-2026-(\d\d) \|(.*)\|$", part, re.MULTILINE)
    assert [int(number) for number, _ in found] == [*range(22, len(ROWS) + 1)]
    assert all(newest in row.split(" | ")[1] for _, row in found)


@pytest.mark.parametrize(("version", "first", "last"), [("0.3.0", 10, 21), ("0.2.0", 1, 9)])
def test_the_changelog_names_every_advisory_of_a_version(version, first, last):
    section = CHANGES.partition(f"\n## {version} ")[2].partition("\n## ")[0]
    kept = section.partition("### Guarantees that were not kept")[2].partition("\n### ")[0]
    named = {
        int(number) for group in re.findall(r"\(([\d, ]+)\)", kept) for number in group.split(",")
    }
    assert named == {*range(first, last + 1)}
    part = ADVISORIES.partition(f"### Fixed in {version}")[2].partition("\n### ")[0]
    assert {int(n) for n in re.findall(r"^\| PRIVGP-2026-(\d\d)", part, re.MULTILINE)} == named


def test_the_citation_has_the_papers_that_were_implemented():
    papers = CITATION["references"]
    assert len(papers) == 5
    assert all(paper["title"] and paper["authors"] for paper in papers)
    assert CITATION["license"] == "Apache-2.0"
