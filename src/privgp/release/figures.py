"""Figures as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from privgp.pictures.style import ENDINGS, figure_bytes
from privgp.storage.parts import part_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG or SVG by the file's ending; the file appears whole or not at all."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"path must end in .png or .svg, got '{path.name}'.")
    data = figure_bytes(figure, ending)
    with part_beside(path) as part:
        part.write_bytes(data)
        os.replace(part, path)
    return path
