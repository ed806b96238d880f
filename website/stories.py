"""Run the notebooks of docs/notebooks, and keep their pictures in docs/pictures."""

from __future__ import annotations

import tempfile
from pathlib import Path
from shutil import copyfile
from typing import Any, cast

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parents[1] / "docs"
STORIES = sorted((DOCS / "notebooks").glob("*.ipynb"))


def run(story: Path, folder: Path) -> str:
    """Execute a notebook in a folder, where its files stay; what it printed."""
    notebook = cast(Any, nbformat).read(story, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


def draw(story: Path) -> str:
    """Execute a notebook and keep its picture; what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        printed = run(story, Path(folder))
        made = Path(folder) / f"{story.stem}.png"
        copyfile(made, DOCS / "pictures" / f"story-{story.stem}.png")
    return printed


if __name__ == "__main__":
    for story in STORIES:
        print(f"{story.name}:\n{draw(story)}")
