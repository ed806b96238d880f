"""Run the notebooks of docs/notebooks, and keep their pictures in docs/pictures."""

from __future__ import annotations

import tempfile
from pathlib import Path
from shutil import copyfile

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parents[1] / "docs"
STORIES = sorted((DOCS / "notebooks").glob("*.ipynb"))


def run(story: Path, folder: Path) -> str:
    """Execute a notebook in a folder, where its files stay; what it printed."""
    notebook = nbformat.read(story, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


if __name__ == "__main__":
    for story in STORIES:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{story.name}:\n{run(story, Path(folder))}")
            made = Path(folder) / f"{story.stem}.png"
            copyfile(made, DOCS / "pictures" / f"story-{story.stem}.png")
