"""Tables of densities and places on the pages are those of the kept numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import density
from benchmarks.calibration_page import filled
from benchmarks.places_and_bounds import KEPT, PAGES, SHOWN

TABLES: dict[str, tuple[Path, Path, Any]] = {
    "density": (density.KEPT, density.PAGE, density.table),
    **{name: (KEPT / f"{name}.json", page, SHOWN[name]) for name, (page,) in PAGES.items()},
}


@pytest.mark.parametrize("name", TABLES)
def test_the_page_shows_what_was_measured(name):
    kept, page, table = TABLES[name]
    results = json.loads(kept.read_text("utf-8"))
    text = page.read_text("utf-8")
    assert filled(text, f"{table(results)}\n") == text
    assert min(map(len, results.values())) >= 4
