"""``privgp inspect``: what a release promises and what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privgp.command.errors import listed
from privgp.command.io.certificates import write_certificate
from privgp.command.io.columns import names_of_inputs
from privgp.command.io.destinations import CERTIFICATES, check_apart, check_destination
from privgp.command.io.kernel_text import write_kernel
from privgp.command.io.screen import say, say_json
from privgp.command.predict import open_release
from privgp.release.certificate import certificate


def run_inspect(
    release: Path, *, certificate_path: Path | None, force: bool, as_json: bool
) -> None:
    """Print what is in a file; with JSON, its certificate."""
    check_destination(certificate_path, CERTIFICATES, force=force)
    check_apart([release], [certificate_path])
    model = open_release(release)
    if certificate_path is not None:
        write_certificate(model, certificate_path)
    if as_json:
        say_json(certificate(model), simulation=model.guarantee_.is_simulation)
        return
    for line in description(model):
        say(line)
    if certificate_path is not None:
        say(f"Certificate: {certificate_path}")


def description(model: Any) -> list[str]:
    """A few sentences for people."""
    names = names_of_inputs(model)
    private = model.protect == "records"
    inputs = f"{model.n_features_in_} without names" if names is None else listed(names)
    return [
        model.guarantee_.describe(),
        "",
        f"Inputs: {inputs}; the file contains {'none' if private else 'their values'}.",
        f"Most plausible kernel: {write_kernel(model.kernel_, figures=4)}.",
        f"Variance of an output about the function: {model.noise_variance_:.4g}.",
        "",
        "The plan it was made with:",
        *str(model.plan_summary_).splitlines(),
    ]
