"""``privgp inspect``: what a release promises and what it holds."""

from __future__ import annotations

from typing import Any

from privgp.command import options as o
from privgp.command.errors import listed
from privgp.command.io.files import CERTIFICATES, RELEASES, check_files, open_stored
from privgp.command.io.screen import tell


def inspect(
    release: o.Release,
    certificate: o.Certificate = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Show what a release promises and what it holds."""
    check_files([(release, RELEASES)], [(certificate, CERTIFICATES)], force=force)
    from privgp.command.io.results import write_certificate
    from privgp.models.load import load
    from privgp.release.certificate import certificate as facts_of

    model = open_stored(release, load)
    lines = _description(model)
    if certificate is not None:
        write_certificate(model, certificate)
        lines.append(f"Certificate: {certificate}")
    tell(facts_of(model), lines, model.guarantee_, as_json=json)


def _description(model: Any) -> list[str]:
    from privgp.command.io.kernel_text import write_kernel
    from privgp.models.kept import names_of

    names = names_of(model)
    inputs = f"{model.n_features_in_} without names" if names is None else listed(names)
    contains = "none" if model.protect == "records" else "their values"
    return [
        model.guarantee_.describe(),
        "",
        f"Inputs: {inputs}; the file contains {contains}.",
        f"Most plausible kernel: {write_kernel(model.kernel_, figures=4)}.",
        f"Variance of an output about the function: {model.noise_variance_:.4g}.",
        "",
        "The plan it was made with:",
        *str(model.plan_summary_).splitlines(),
    ]
