"""Notebooks as pages: their text as it is, their code and what it printed as blocks. The notebook itself can be fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File

FETCH = '<p><a href="{name}" download>Download this page as a notebook</a></p>'


def page_of(notebook: Path) -> str:
    """The Markdown of a notebook, with a link to it below the title."""
    first, *others = nbformat.read(notebook, as_version=4).cells
    title, _, text = first.source.partition("\n")
    parts = [title, FETCH.format(name=notebook.name), text.strip()]
    for cell in others:
        code = cell.cell_type == "code"
        parts.append(f"```python\n{cell.source}\n```" if code else cell.source)
        printed = "".join(output.get("text", "") for output in cell.get("outputs", []))
        parts += [f"```text\n{printed.rstrip()}\n```"] if printed else []
    return "\n\n".join(parts) + "\n"


def on_files(files: Any, config: Any) -> Any:
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            uri = file.src_uri.removesuffix(".ipynb") + ".md"
            content = page_of(Path(file.abs_src_path))
            files.append(File.generated(config, uri, content=content))
    return files
