"""Numbers as people write them: 125k, 1.2M, £300, 0.1°W."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import Formatter

LARGE = ((1e9, "bn"), (1e6, "M"), (1e3, "k"), (1.0, ""))
ABBREVIATED = 1e4  # shorter numbers are written out
YEARS = (1500.0, 2200.0)  # whole numbers between them have no comma: 2024
CURRENCY = re.compile(r"\(([£$€¥])\)\s*$")


def number(value: float) -> str:
    """A short number without padding: 1e-5, not 1e-05."""
    mantissa, e, exponent = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa


def together(values: Sequence[float], currency: str = "") -> list[str]:
    """The numbers along one axis as texts: of one unit, with as many digits as tell them apart.

    Parameters
    ----------
    values
        Numbers of the ticks.
    currency
        a sign to put before each.

    """
    given = np.asarray(values, dtype=float)
    largest = float(np.abs(given).max(initial=0.0))
    scale, suffix = next(
        (pair for pair in LARGE if largest >= max(pair[0], ABBREVIATED)), LARGE[-1]
    )
    scaled = given / scale
    if not (1e-3 <= np.abs(scaled).max(initial=0.0) < 1e6 or largest == 0.0):
        return [currency + number(value) for value in given]
    step = float(np.diff(np.unique(scaled)).min()) if len(np.unique(scaled)) > 1 else 1.0
    off = (np.abs(np.round(scaled, d) - scaled).max(initial=0.0) for d in range(9))
    digits = next((d for d, each in enumerate(off) if each < 0.01 * step), 9)
    years = digits == 0 and bool(np.all((given >= YEARS[0]) & (given <= YEARS[1])))
    comma = "" if years else ","
    texts = [f"{abs(value):{comma}.{digits}f}" for value in scaled]
    signs = [
        "−" if value < 0 and float(t.replace(",", "")) else ""
        for value, t in zip(scaled, texts, strict=True)
    ]
    return [
        f"{sign}{currency}{text}{suffix}" if text.strip("0.") else f"{currency}0"
        for sign, text in zip(signs, texts, strict=True)
    ]


class Readable(Formatter):
    """Ticks of an axis in such numbers; money if the axis is named so, as in ``price (£)``.

    Parameters
    ----------
    name : name of the axis

    """

    def __init__(self, name: str = "") -> None:
        found = CURRENCY.search(name)
        self.currency = "" if found is None else found[1].replace("$", r"\$")

    def __call__(self, x: float, pos: int | None = None) -> str:
        return together([x], self.currency)[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return together(values, self.currency)


class Degrees(Formatter):
    """Longitudes or latitudes, such as 0.1°W.

    Parameters
    ----------
    sides : two letters, those of positive and of negative degrees

    """

    def __init__(self, sides: str) -> None:
        self.sides = sides

    def __call__(self, x: float, pos: int | None = None) -> str:
        turned = round((float(x) + 180.0) % 360.0 - 180.0, 6) + 0.0
        side = "" if turned in (0.0, -180.0) else self.sides[int(turned < 0)]
        return f"{abs(turned):g}°{side}"
