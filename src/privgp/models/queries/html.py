"""What a notebook shows of a fitted or loaded model: inputs, output, rows and the guarantee."""

from __future__ import annotations

from typing import Any

from privgp.privacy.html import facts_table
from privgp.release.release import Release


def model_html(name: str, release: Release) -> str:
    """A table of what was released.

    Parameters
    ----------
    name : str
        Of the estimator.
    release : Release
        What it answers by.

    """
    promise, asked = release.guarantee, release.parameters
    called: Any = release.facts.called or {}
    outputs = ", ".join(release.output_names or (called.get("name", "output"),))
    facts: dict[str, object] = {"output": outputs}
    if "units" in called:
        facts["units"] = called["units"]
    kinds = asked.columns
    if kinds is not None:
        facts["inputs"] = "\n".join(kinds.describe())
    elif release.names is not None:
        facts["inputs"] = ", ".join(release.names)
    else:
        facts["inputs"] = release.columns
    if asked.labels():
        facts["classes"] = ", ".join(asked.labels() or ())
    facts |= {
        "epsilon": f"{promise.epsilon:g}",
        "delta": f"{promise.delta:g}",
        "protects": promise.unit,
    }
    if release.spent:
        facts["rows"] = sum(each.rows for each in release.spent)
    return facts_table(name, facts, simulation=promise.is_simulation)
