"""Pages and files outside docs/ on the site, and links to them that lead there.

Links in the repository are relative to the file they stand in, so that they work wherever the
repository is shown. Four pages of its root are pages of the site; every other file outside docs/
that a page links to is copied.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = {
    "README.md": "project/overview.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
}
HOMES = {there: ROOT / here for here, there in PAGES.items()}

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[([^]]*)\]\(([^)\s#:]+\.png)\)")
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def outside_fences(text: str, change: Any) -> str:
    """The text with `change` applied to all that is not in a fenced block."""
    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, change(text[at:])])


def place(path: Path) -> str:
    """Where a file of the repository is on the site."""
    if path.is_relative_to(DOCS):
        inside = path.with_suffix(".md") if path.suffix == ".ipynb" else path
        return inside.relative_to(DOCS).as_posix()
    inside = path.relative_to(ROOT).as_posix()
    return PAGES.get(inside, f"project/files/{inside}")


def source(uri: str) -> Path:
    """The file of the repository that a page of the site is made from."""
    return HOMES.get(uri, DOCS / uri)


def relinked(text: str, uri: str) -> str:
    """The page's text with links as they must be where the page is on the site."""
    here = source(uri).parent

    def link(found: re.Match[str]) -> str:
        path = Path(os.path.normpath(here / found[2]))
        if not path.is_file() or not path.is_relative_to(ROOT):
            return found[0]
        to = os.path.relpath(place(path), os.path.dirname(uri) or ".")
        return f"{found[1]}{to}{found[3] or ''}{found[4]}"

    return outside_fences(text, lambda part: LINK.sub(link, part))


def with_dark_pictures(text: str, folder: Path) -> str:
    """The text with the dark twin of every picture that has one, shown where the site is dark."""

    def both(found: re.Match[str]) -> str:
        path, dark = found[2], found[2].removesuffix(".png") + "-dark.png"
        if not (folder / dark).is_file():
            return found[0]
        return f"![{found[1]}]({path}#only-light)![{found[1]}]({dark}#only-dark)"

    return outside_fences(text, lambda part: PICTURE.sub(both, part))


def linked_files() -> set[Path]:
    """Every file outside docs/ that a page links to, but for the pages themselves."""
    pages = [*DOCS.rglob("*.md"), *HOMES.values()]
    found = {
        Path(os.path.normpath(page.parent / link[2]))
        for page in pages
        for link in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8")))
    }
    return {
        path
        for path in found
        if path.is_file()
        and path.is_relative_to(ROOT)
        and not path.is_relative_to(DOCS)
        and path not in HOMES.values()
    }


def on_files(files: Any, config: Any) -> Any:
    for uri, path in HOMES.items():
        files.append(File.generated(config, uri, content=path.read_text(encoding="utf-8")))
    for path in sorted(linked_files()):
        files.append(File.generated(config, place(path), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    uri = page.file.src_uri
    return relinked(with_dark_pictures(markdown, source(uri).parent), uri)
