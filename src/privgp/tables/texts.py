"""Numbers and dates as people write them in text: decimal commas, groups of thousands, 45% or 31/12/2024.

Public cells show how numbers are written, or an option says it; then every cell is read separately. Texts
that look like numbers or dates are refused as categories: they would lose their order, and nobody would
notice."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from privgp.errors import TableError

# how tables write that there is no value
NOTHING = {"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "?", "."}

MONEY, MINUS = "$£€¥₹", "−–-"  # the hyphen last, as sets of letters have it
SPACES = "\u00a0\u202f\u2009 '’"
NUMBER = re.compile(
    rf"[(+{MINUS}]?\s*[{MONEY}]?\s*[+{MINUS}]?\s*[.,]?\d[\d.,{SPACES}]*([eE][-+]?\d+)?"
    rf"\s*([%‰{MONEY}]|°[CFcf]?|°?\s*[NSEWnsew])?\)?"
)
DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}([ T,].*)?|\d{4}[-/]\d{1,2}|\d{1,2}[./]\d{4}")

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$")  # which is no disguise

SIGN, EXPONENT = r"^\s*[-+]?", r"([eE][-+]?\d+)?\s*$"
COMMA = rf"{SIGN}\d*,\d+{EXPONENT}"
POINT = rf"{SIGN}\d*\.\d+{EXPONENT}"
# 1.250 or 12.345.678, and the same with commas: thousands, or a number with three decimals.
POINT_GROUPS = rf"{SIGN}[1-9]\d{{0,2}}(\.\d{{3}})+"
COMMA_GROUPS = rf"{SIGN}[1-9]\d{{0,2}}(,\d{{3}})+"
OTHERWISE = " with a point"  # after a number that has one where commas are declared
END, THREE = r"\s*$", r"\s*[-+]?[1-9]\d{0,2}[.,]\d{3}\s*$"


def disguise_of(texts: Iterable[str]) -> str | None:
    """``"dates"`` or ``"numbers"`` if every text looks like one; None for whole numbers without any
    sign, which may be codes, and for all other texts."""
    cells = {text.strip() for text in texts}
    if not cells:
        return None
    if all(map(DATE.fullmatch, cells)):
        return "dates"
    if all(cell.isascii() and cell.isdigit() for cell in cells):
        return None
    return "numbers" if all(map(NUMBER.fullmatch, cells)) else None


def has_decimal_comma(public: pl.DataFrame, path: object, delimiter: str) -> bool | None:
    """Whether numbers of public columns have decimal commas; None where they do not show it. Numbers
    that may be thousands as well as decimals are refused where no other number settles it."""
    commas = points = False
    doubtful: tuple[str, str] | None = None
    for name in public.columns:
        cells = public[name].drop_nulls()
        either = cells.str.contains("^" + THREE)
        plain = cells.filter(~either)
        commas |= bool(
            (plain.str.contains(COMMA) | plain.str.contains(POINT_GROUPS + "(,|\\.)")).any()
        )
        points |= bool(
            (plain.str.contains(POINT) | plain.str.contains(COMMA_GROUPS + "(,|\\.)")).any()
        )
        # Between commas, a point can only be a decimal point.
        found = cells.filter(either & (cells.str.contains(",", literal=True) | (delimiter != ",")))
        if doubtful is None and len(found):
            doubtful = name, str(found[0]).strip()
    if commas != points:
        return commas
    if doubtful is not None and not commas:
        name, cell = doubtful
        digits = cell.replace(".", "").replace(",", "")
        raise TableError(
            f"Column '{name}' of '{path}' has numbers such as {cell}, which may be {digits} or "
            f"{cell.replace(',', '.')}: give `decimal_comma` or `decimal_point`."
        )
    return False if commas else None


def use_decimal_points(cells: pl.Expr, decimal_comma: bool | None) -> pl.Expr:
    """Cells with decimal points and without signs between thousands. ``decimal_comma``: None where it
    is not known; then cells stay as they are."""
    if decimal_comma is None:
        return cells
    if not decimal_comma:
        grouped = cells.str.contains(COMMA_GROUPS + r"(\.\d+)?" + END)
        return pl.when(grouped).then(cells.str.replace_all(",", "", literal=True)).otherwise(cells)
    bare = cells.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return (
        pl.when(cells.str.contains(COMMA) | cells.str.contains(POINT_GROUPS + r"(,\d+)?" + END))
        .then(bare)
        .when(cells.str.contains(POINT))  # which would be another number than the one written
        .then(cells + pl.lit(OTHERWISE))
        .otherwise(cells)
    )
