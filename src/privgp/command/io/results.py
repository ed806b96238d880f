"""The files of a release: checked before anything is spent, then written and told of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privgp.command.errors import listed
from privgp.command.io.certificates import write_certificate
from privgp.command.io.destinations import (
    CERTIFICATES,
    PICTURES,
    RELEASES,
    check_apart,
    check_destination,
)
from privgp.command.io.request import Request
from privgp.command.io.screen import Step, say, say_if_simulated
from privgp.models.load import save
from privgp.models.regressor import PrivateGPRegressor
from privgp.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Results:
    """The files to write."""

    release: Path
    certificate: Path | None = None
    plot: Path | None = None

    def check(self, source: Path, *, force: bool) -> None:
        check_destination(self.release, RELEASES, force=force)
        check_destination(self.certificate, CERTIFICATES, force=force)
        check_destination(self.plot, PICTURES, force=force)
        check_apart([source], [self.release, self.certificate, self.plot])

    def write(
        self,
        model: PrivateGPRegressor,
        output: str,
        saved: list[Path],
        step: Step,
        *,
        force: bool,
    ) -> None:
        """Write what was asked for; the release comes first and is noted once it is complete."""
        step("Writing the release")
        save(model, self.release, overwrite=force)
        saved.append(self.release)
        step("Drawing and certifying")
        if self.certificate is not None:
            write_certificate(model, self.certificate)
        if self.plot is not None:
            from privgp.release.figures import save_figure  # slow to import

            save_figure(model.plot(output=output), self.plot)

    def facts(self, guarantee: Guarantee, request: Request) -> dict[str, Any]:
        """What was done, for programs."""
        return {
            "release": str(self.release),
            "certificate": None if self.certificate is None else str(self.certificate),
            "plot": None if self.plot is None else str(self.plot),
            "contains_inputs": [] if request.is_private_throughout else request.input_names,
            "guarantee": json.loads(guarantee.to_json()),
            "spent": True,
        }

    def tell(self, guarantee: Guarantee, request: Request) -> None:
        """What was done, for people."""
        say_if_simulated(guarantee)
        say(f"Released {self.release}.")
        if request.is_private_throughout:
            say("The file contains no input and no output of any record.")
        else:
            what = "inputs" if request.inducing is None else "centres or values of inputs"
            say(
                f"The file contains {what}, {listed(request.input_names)} of rows of "
                f"{request.data.name}: publish it only where they may be known. It contains no "
                "output."
            )
        say("")
        say(guarantee.describe())
        for name, path in (("Certificate", self.certificate), ("Plot", self.plot)):
            if path is not None:
                say(f"{name}: {path}")
