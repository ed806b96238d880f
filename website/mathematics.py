"""Formulas between dollar signs as MathML, made when the site is built: no script in the browser."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
COMMAND = re.compile(r"\\[a-zA-Z]+|<m[ion]>&(?:amp;)?</m[ion]>")

# Signs that the converter takes for letters, or that browsers would stretch and pad.
BARS = re.compile(r"<m[io]>(&#x02016;|&#x0007C;|&#x027E8;|&#x027E9;)</m[io]>")
RELATIONS = re.compile(r"<mi>(&#x02AB0;|&#x02AAF;|&#x000B1;|&#x02297;|&#x027F9;|:|;)</mi>")
TILDE = "<mi>&#x0007E;</mi>"


def mathml(formula: str, display: str) -> str:
    """A formula of LaTeX as a MathML element; a command that is not known is refused."""
    made = convert(html.unescape(formula).strip(), display=display)
    if unknown := COMMAND.findall(made):
        raise PluginError(f"{formula!r}: {', '.join(sorted(set(unknown)))} cannot be rendered")
    made = BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', made)
    return RELATIONS.sub(r"<mo>\1</mo>", made).replace(TILDE, "<mo>&#x0223C;</mo>")


def on_page_content(content: str, **_: Any) -> str:
    content = DISPLAY.sub(
        lambda found: f'<div class="formula">{mathml(found[1], "block")}</div>', content
    )
    return INLINE.sub(lambda found: mathml(found[1], "inline"), content)
