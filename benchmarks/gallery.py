"""The pictures of docs/gallery.md, taken out of the pages of ``python -m papers``.

``python -m benchmarks.gallery FOLDER``, FOLDER being the ``--out`` of ``python -m papers all``.
"""

from __future__ import annotations

import argparse
import base64
import re
from html import unescape
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "docs" / "pictures"
PICTURE = re.compile(r'<img alt="([^"]*)" src="data:image/png;base64,([^"]*)"')

# file: page, beginning of the section's title
PICTURES = {
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name, (page, beginning) in PICTURES.items():
        pictures = pictures_of(folder / f"{page}.html")
        first = next(title for title in pictures if title.startswith(beginning))
        (HERE / f"{name}.png").write_bytes(pictures[first])


if __name__ == "__main__":
    main()
