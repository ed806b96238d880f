"""Run the notebooks of docs/notebooks: their text outputs stay in them, their pictures in docs/pictures."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from shutil import copyfile
from typing import Any, cast

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parents[1] / "docs"
STORIES = sorted((DOCS / "notebooks").glob("*.ipynb"))
ANY_NOTEBOOK = cast(Any, nbformat)


def execute(story: Path, folder: Path) -> Any:
    """The notebook after its cells ran in a folder, where its files stay."""
    notebook = ANY_NOTEBOOK.read(story, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


# A warning as Python prints it: the place of the code, its kind, its words, then the line of code.
WARNING = re.compile(r"^\S+:\d+: (\w*Warning: .*)\n(?:  .*\n)?", re.MULTILINE)


def text_of(output: Any) -> str:
    """The words of an output; nothing for a picture. A warning keeps its words, not its place in the kernel."""
    text = str(output.get("text") or output.get("data", {}).get("text/plain", ""))
    return WARNING.sub(r"\1\n", text)


def run(story: Path, folder: Path) -> str:
    """Execute a notebook in a folder; what it printed."""
    cells = execute(story, folder).cells
    return "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def draw(story: Path) -> str:
    """Execute a notebook and keep its text outputs and its picture; what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = execute(story, Path(folder))
        made = Path(folder) / f"{story.stem}.svg"
        copyfile(made, DOCS / "pictures" / f"story-{story.stem}.svg")
    printed = ""
    for cell in [cell for cell in notebook.cells if cell.cell_type == "code"]:
        said = "".join(map(text_of, cell.outputs))
        shown = said if said and not said.startswith("<Figure") else ""
        cell.outputs = [ANY_NOTEBOOK.v4.new_output("stream", text=shown)] if shown else []
        cell.execution_count, cell.metadata = None, {}
        printed += shown
    ANY_NOTEBOOK.write(notebook, story)
    return printed


if __name__ == "__main__":
    for story in STORIES:
        print(f"{story.name}:\n{draw(story)}")
