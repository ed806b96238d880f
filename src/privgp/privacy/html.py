"""Small pieces of HTML for notebooks: everything that is shown is public, and escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

STAMP_STYLE = "color:#D55E00;font-weight:bold"


def facts_table(title: str, facts: Mapping[str, object], *, simulation: bool = False) -> str:
    """A table of facts with a title, stamped where the noise protects nobody.

    Parameters
    ----------
    title : str
        Above the table.
    facts : mapping
        What is stated, by its name.
    simulation : bool
        Whether the noise was simulated.

    """
    stamp = f'<div style="{STAMP_STYLE}">SIMULATION, not for release</div>' if simulation else ""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{_lines(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div>{stamp}<b>{escape(title)}</b><table><tbody>{rows}</tbody></table></div>"


def _lines(value: object) -> str:
    return "<br>".join(escape(line) for line in str(value).splitlines())
