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
SLASH = re.compile(r"<mo>&#x0002F;</mo>")
# A minus sign after nothing, a bracket, a comma or a relation belongs to what follows it.
SIGN = re.compile(
    r"((?:<mo[^>]*>(?:&#x00028;|&#x0002C;|&#x0003D;|&#x02264;|&#x02265;|&#x02208;|&#x0221D;|\[)"
    r"</mo>)|^<math[^>]*><mrow>)<mo>&#x02212;</mo>"
)
# Names such as log: a thin space to a letter beside them, none to a bracket.
NAME = re.compile(
    r"(</m(?:i|n|sub|sup|subsup|sqrt|frac|style)>|&#x00029;</mo>)?"
    r"<m[io](?: movablelimits=\"true\")?>([A-Za-z]\w+)</m[io]>(?=(<mo[^>]*>(?:&#x00028;|\[))?)"
)


def mathml(formula: str, display: str) -> str:
    """A formula of LaTeX as a MathML element; a command that is not known is refused."""
    made = convert(html.unescape(formula).strip(), display=display)
    if unknown := COMMAND.findall(made):
        raise PluginError(f"{formula!r}: {', '.join(sorted(set(unknown)))} cannot be rendered")
    made = BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', made)
    made = RELATIONS.sub(r"<mo>\1</mo>", made).replace(TILDE, "<mo>&#x0223C;</mo>")
    made = SLASH.sub('<mo lspace="0" rspace="0">&#x0002F;</mo>', made)
    made = SIGN.sub(r'\1<mo form="prefix" lspace="0" rspace="0">&#x02212;</mo>', made)
    return NAME.sub(spaced, made)


def spaced(name: re.Match[str]) -> str:
    before, word, bracket = name.groups(default="")
    left, right = "0.17em" if before else "0", "0" if bracket else "0.17em"
    return f'{before}<mo lspace="{left}" rspace="{right}">{word}</mo>'


def on_page_content(content: str, **_: Any) -> str:
    content = DISPLAY.sub(
        lambda found: f'<div class="formula">{mathml(found[1], "block")}</div>', content
    )
    return INLINE.sub(lambda found: mathml(found[1], "inline"), content)
