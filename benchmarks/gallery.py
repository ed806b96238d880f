"""Every picture of the docs: ``python -m benchmarks.gallery [NAME ...]``, or ``make pictures``.

The papers' figures are taken out of the pages of ``python -m papers all --out FOLDER`` where
``--papers FOLDER`` says so; without it, all of them are run first, in full unless ``--quick`` is given. The picture of intervals is of the
numbers in ``benchmarks/measured``. Those of the server need Chromium: without it the old ones stay.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

from benchmarks import ideas, made_up

ROOT = Path(__file__).resolve().parents[1]
DOCS, HERE = ROOT / "docs", ROOT / "docs" / "pictures"
PICTURE = re.compile(r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]*)"')
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)

# file: page, beginning of the section's title
OF_PAPERS = {
    "kung-figure-1a": ("kung", "Figure 1A"),
    "kung-figure-1b": ("kung", "Figure 1B"),
    "kung-figure-2": ("kung", "Figure 2"),
    "kung-inducing": ("kung", "Inducing inputs"),
    "london-figure-3": ("london", "Figure 3"),
    "lengthscales-figure-4": ("lengthscales", "Figure 4"),
    "excursion-figure-4": ("excursion", "Figure 4"),
    "excursion-figure-7": ("excursion", "Figure 7"),
    "attack-figure-1": ("attack", "Figure 1"),
    "attack-figure-2": ("attack", "Figure 2"),
    "attack-figure-3": ("attack", "Figure 3"),
    "optimisation": ("optimisation", "What is found"),
}


def pictures_of(page: Path) -> dict[str, bytes]:
    """The pictures of a page by the titles of their sections."""
    found = PICTURE.findall(page.read_text("utf-8"))
    return {unescape(title): base64.b64decode(data) for title, data in found}


def papers(folder: Path | None, names: list[str], *, quick: bool) -> None:
    """The figures of the papers, out of the reports in this folder or out of new ones."""
    from papers.reports import write_reports

    wanted = {name: OF_PAPERS[name] for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        if folder is None:
            folder, reports = (
                Path(temporary),
                list(dict.fromkeys(page for page, _ in wanted.values())),
            )
            write_reports(reports, data=None, quick=quick, out=folder, together=False)
        for name, (page, beginning) in wanted.items():
            pictures = pictures_of(folder / f"{page}.html")
            first = next(title for title in pictures if title.startswith(beginning))
            (HERE / f"{name}.svg").write_bytes(pictures[first])


def of_page(name: str, page: str) -> None:
    """The picture that the code on a page of the docs writes."""
    code = "\n".join(BLOCK.findall((DOCS / page).read_text("utf-8")))
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        exec(compile(code, page, "exec"), {"__name__": page})
        (HERE / f"{name}.svg").write_bytes(Path(f"{name}.svg").read_bytes())


def calibration(path: Path) -> None:
    from benchmarks.calibration_page import KEPT, read
    from benchmarks.calibration_picture import draw

    draw(*read(KEPT), path)


def screenshots(_: Path) -> None:
    from benchmarks import screenshots as server

    server.main([])


def story(path: Path) -> None:
    from website.stories import DOCS, draw

    draw(DOCS / "notebooks" / f"{path.stem.removeprefix('story-')}.ipynb")


def features(path: Path) -> None:
    from benchmarks.features import draw, one_citi_bike
    from benchmarks.tasks import BESIDE

    draw(*one_citi_bike(BESIDE, 0)[1:], path)


def updates(path: Path) -> None:
    from benchmarks.updates import picture

    picture(path)


def several_outputs(path: Path) -> None:
    from benchmarks.several_outputs import picture

    picture(path)


DRAWN: dict[str, Callable[[Path], None]] = {
    "curve": made_up.curve,
    "plan": lambda _: of_page("plan", "tutorial.md"),
    **ideas.PICTURES,
    "classes": made_up.classes,
    "tables": made_up.tables,
    "attack": made_up.attack,
    "membership": made_up.membership,
    "rates": made_up.rates,
    "ledger": made_up.ledger,
    "districts": lambda _: of_page("districts", "averages.md"),
    "updates": updates,
    "several-outputs": several_outputs,
    "features": features,
    "calibration": calibration,
    "story-growth-curve": story,
    "story-city-map": story,
    "story-case-counts": story,
    "server-release": screenshots,
}


@contextlib.contextmanager
def told(name: str) -> Iterator[None]:
    """Say how long a picture took, or why there is no new one."""
    started = time.monotonic()
    try:
        yield
    except (FileNotFoundError, ModuleNotFoundError) as missing:
        print(f"{name}: not drawn again: {missing}", file=sys.stderr, flush=True)
    else:
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {[*DRAWN, *OF_PAPERS]}")
    parser.add_argument("--papers", type=Path, default=None, metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="run the papers with few repetitions")
    asked = parser.parse_args()
    names = asked.names or [*DRAWN, *OF_PAPERS]
    os.chdir(ROOT)
    for name in [name for name in names if name in DRAWN]:
        with told(name):
            DRAWN[name](HERE / f"{name}.svg")
    of_papers = [name for name in names if name in OF_PAPERS]
    if of_papers:
        with told("figures of the papers"):
            papers(asked.papers, of_papers, quick=asked.quick)


if __name__ == "__main__":
    main()
