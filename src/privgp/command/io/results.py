"""The files of a release, written and told of; pictures and certificates of anything."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privgp.command.errors import listed
from privgp.command.io.files import whole_file
from privgp.command.io.request import Request
from privgp.command.io.screen import Step, tell
from privgp.models.load import save
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate import certificate, page


@dataclass(frozen=True)
class Results:
    """The files to write; ``force``: whether they may replace others."""

    release: Path
    certificate: Path | None
    plot: Path | None
    force: bool

    def write(self, model: Any, output: str, saved: list[Path], step: Step) -> None:
        """Write what was asked for; the release comes first and is noted once it is complete."""
        step("Writing the release")
        save(model, self.release, overwrite=self.force)
        saved.append(self.release)
        step("Drawing and certifying")
        if self.certificate is not None:
            write_certificate(model, self.certificate)
        if self.plot is not None:
            write_picture(model.plot(output=output), self.plot)

    def tell(
        self,
        guarantee: Guarantee,
        request: Request,
        facts: dict[str, Any] | None = None,
        *first: Any,
        as_json: bool,
    ) -> None:
        """Say what was released; ``facts`` and ``first``: what a command adds, the latter on top."""
        files = {"Certificate": self.certificate, "Plot": self.plot}
        written = [f"{name}: {path}" for name, path in files.items() if path is not None]
        released = {
            "release": self.release,
            "certificate": self.certificate,
            "plot": self.plot,
            "contains_inputs": [] if request.inputs_are_private else request.input_names,
            "guarantee": json.loads(guarantee.to_json()),
            "spent": True,
        }
        lines = [f"Released {self.release}.", contains(request), "", guarantee.describe(), *written]
        tell({**released, **(facts or {})}, [*first, *lines], guarantee, as_json=as_json)


def contains(request: Request) -> str:
    if request.inputs_are_private:
        return "The file contains no input and no output of any record."
    what = "inputs" if request.inducing is None else "centres or values of inputs"
    return (
        f"The file contains {what}, {listed(request.input_names)}, of rows of {request.data.name}: "
        "publish it only if these may be public. It contains no output."
    )


def write_certificate(model: Any, path: Path) -> None:
    """What was promised, as a page for people or as JSON for programs by the file's ending."""
    facts = certificate(model)
    text = page(facts) if path.suffix == ".html" else json.dumps(facts, indent=2) + "\n"
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_picture(figure: Any, path: Path) -> None:
    from privgp.pictures.style import figure_bytes

    data = figure_bytes(figure, path.suffix.lower())
    with whole_file(path) as part:
        part.write_bytes(data)


def drawn(plot: Path | None) -> list[str]:
    """The sentence about a picture, if there is one."""
    return [] if plot is None else [f"Drawn in {plot}."]
