"""A release as one page for publishing."""

from pathlib import Path

from privgp.command.errors import Failure, Refusal
from privgp.command.io.files import whole_file
from privgp.release.release import Release

NEEDS = "--page needs more packages: pip install privgp[server]."


def write_page(release: Release, path: Path, name: str, label: str | None) -> None:
    """The same view as the server's page, in one file. ``name``: its title; ``label``: the output's."""
    try:
        from privgp.server.errors import Refused
        from privgp.server.views.page import render_release
    except ImportError:
        raise Failure(NEEDS) from None
    try:
        text = render_release(release, label or release.label(""), name)
    except Refused as refused:
        raise Refusal(refused.sentence) from None
    except ModuleNotFoundError:  # the plotting script, which is a package's data
        raise Failure(NEEDS) from None
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")
