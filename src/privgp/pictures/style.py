"""What all pictures share: colours, text sizes, titles, panels and files. Figures are made without
pyplot, so that nothing global changes and no display is needed."""

from __future__ import annotations

import io
import itertools
import re
import textwrap
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerBase, HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import Formatter
from scipy.stats import norm

from privgp.types import STAMP, Array

# Okabe and Ito's colours, distinguished by colour-blind readers and in grey.
BLUE, SKY, ORANGE, VERMILION, BLACK = "#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#000000"
GREY, FOOT = "#888888", "#666666"
SEQUENTIAL, DIVERGING = "cividis", "PuOr_r"
TITLE, TEXT, SMALL = 10.0, 9.0, 8.0  # points, for figures printed at their own width
WIDTH = 6.3  # inches: the text of an A4 page
DPI = 200
SIDE = 18  # letters of a name beside a curve
LETTERS = 45  # that fit beside each other along half of a picture
REACH = float(norm.ppf(0.95))  # standard deviations to either side of the middle 90%
AT_TARGETS = "release at the targets"
Canvas = Figure | SubFigure
Ticks = str | tuple[str, ...] | None  # how numbers along an axis are written


def figure_bytes(figure: Figure, ending: str) -> bytes:
    """A figure as bytes. Equal figures give equal bytes: no date, no random identifier.

    Parameters
    ----------
    figure
        a figure of matplotlib.
    ending
        ".png" or ".svg".

    """
    buffer = io.BytesIO()
    metadata = {"Date": None} if ending == ".svg" else {"Software": None}
    with matplotlib.rc_context({"svg.hashsalt": "privgp"}):
        figure.savefig(buffer, format=ending[1:], dpi=DPI, metadata=metadata)
    return buffer.getvalue()


class ShownFigure(Figure):
    """A figure that notebooks show as the last line of a cell, whether pyplot was imported or not."""

    def _repr_png_(self) -> bytes:
        return figure_bytes(self, ".png")


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure of this size in inches, made without pyplot."""
    return ShownFigure(figsize=(width, height), layout="constrained")


def panels(figure: Canvas | None, count: int, columns: int, height: float) -> list[Axes]:
    """``count`` panels in rows that share their y axis.

    Parameters
    ----------
    figure
        The figure to put them in; a new one by default.
    count
        How many.
    columns
        How many beside each other at most.
    height
        Height of each in a new figure, in inches.

    """
    columns = min(count, columns)
    rows = -(-count // columns)
    if figure is None:
        figure = new_figure(max(3.0, height * rows + 0.8))
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for unused in axes[count:]:
        unused.remove()
    return list(axes[:count])


def root_of(ax: Axes) -> Figure:
    """The whole figure that a panel is in."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def budget_text(epsilon: float, delta: float) -> str:
    """Epsilon and delta as titles write them."""
    rest = number(delta) if delta else "0 (pure)"
    return f"ε = {number(epsilon)}, δ = {rest}"


def set_title(place: Axes | Canvas, text: str, *, simulation: bool = False, room: int = 95) -> None:
    """Set a title at the left; for a whole figure, the first line of the text.

    Further lines of a figure, such as the number of rows and the guarantee, are written in grey at its
    foot. A simulation has a stamp in the upper right corner.

    Parameters
    ----------
    place
        a panel or a figure.
    text
        Lines; long ones are wrapped.
    simulation
        Whether to stamp it.
    room
        Characters on a line.

    """
    lines = text.split("\n")
    if isinstance(place, Figure):
        set_source(place, lines[1:], room)
        lines = lines[:1]
    if simulation:
        set_stamp(place)
        room -= 0 if isinstance(place, Axes) else len(STAMP)
    written = _plain("\n".join(part for line in lines for part in textwrap.wrap(line, room)))
    if isinstance(place, Axes):
        place.set_title(written, loc="left", fontsize=TEXT)
    else:
        size = TITLE if isinstance(place, Figure) else TEXT
        place.suptitle(written, x=0.01, ha="left", fontsize=size)


def set_stamp(place: Axes | Canvas) -> None:
    """Mark a simulation in the upper right corner, so that nobody can overlook it."""
    where = place.transAxes if isinstance(place, Axes) else place.transSubfigure
    text = place.text(0.99, 0.99, STAMP, ha="right", va="top", transform=where, zorder=6,
        fontsize=SMALL - 1.0, color=VERMILION, fontweight="bold")  # fmt: skip
    text.set_in_layout(False)
    on_white(text)


def set_source(figure: Figure, lines: Sequence[str], room: int = 95) -> None:
    """Write lines in grey at the foot of a figure and keep its panels above them.

    Parameters
    ----------
    figure
        a whole figure, laid out by ``new_figure``.
    lines
        Such as the number of rows, the guarantee, and the meaning of marks.
    room
        Characters on a line, of the size of a title.

    """
    written = [part for line in lines for part in textwrap.wrap(line, int(1.2 * room))]
    if not written:
        return
    foot = keep_free(figure, (1.3 * (SMALL - 1.0) * len(written) + 3.0) / 72.0)
    below = figure.text(
        0.01, foot + 0.01, _plain("\n".join(written)), ha="left", va="bottom", fontsize=SMALL - 1.0,
        color=FOOT, linespacing=1.3,
    )  # fmt: skip
    below.set_in_layout(False)


def keep_free(figure: Figure, inches: float) -> float:
    """Move the panels of a figure up.

    Parameters
    ----------
    figure
        a whole figure, laid out by ``new_figure``.
    inches
        The height of the strip that is left free above the foot, or above the last such strip.

    Returns
    -------
    float
        Where the strip begins, as a share of the height.

    """
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    foot = float(engine.get()["rect"][1])
    free = foot + inches / figure.get_figheight()
    engine.set(rect=(0.0, free, 1.0, 1.0 - free))
    return foot


def _plain(text: str) -> str:
    """A text in which a bare dollar begins no formula."""
    return text.replace("$", r"\$")


def set_labels(ax: Axes, x: str = "", y: str = "", *, room: int = 40) -> None:
    """Name the axes of a panel.

    Parameters
    ----------
    ax
        The panel.
    x, y
        The names; empty for none.
    room
        Characters that fit along an axis, beyond which a name is wrapped.

    """
    for name, set_label in ((x, ax.set_xlabel), (y, ax.set_ylabel)):
        wrapped = textwrap.fill(name, room, max_lines=3, placeholder=" ...")
        set_label(_plain(wrapped), fontsize=TEXT)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)


def set_ticks(axis: Axis, ticks: Ticks, name: str = "", most: int = 6) -> None:
    """Write the numbers along an axis as what they stand for.

    Parameters
    ----------
    axis
        Axis of a panel.
    ticks
        "date" for days since 1970, "longitude", "latitude", names of 0, 1 and so on, or None for
        short numbers.
    name
        Name of the axis, which tells whether numbers are money.
    most
        How many dates at most.

    """
    if ticks == "date":
        locator = AutoDateLocator(minticks=3, maxticks=most)  # type: ignore[no-untyped-call]
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        axis.get_offset_text().set_fontsize(SMALL)
    elif ticks in ("longitude", "latitude"):
        axis.set_major_formatter(Degrees("EW" if ticks == "longitude" else "NS"))
    elif ticks is not None:
        step = -(-len(ticks) // 12)
        shown = [_plain(str(name)) for name in ticks[::step]]
        room = max(LETTERS // len(shown), 6)  # for each, on lines below each other
        lines = textwrap.TextWrapper(room, break_long_words=False, break_on_hyphens=False)
        axis.set_ticks(range(0, len(ticks), step), [lines.fill(each) for each in shown])
    else:
        axis.set_major_formatter(Readable(name))


def limits(values: Array, margin: float = 0.02) -> tuple[float, float]:
    """The range of values with a margin; about a single value, a tenth of it either way."""
    low, high = float(values.min()), float(values.max())
    pad = margin * (high - low) if high > low else 0.1 * abs(low) or 1.0
    return low - pad, high + pad


def mark_answers(ax: Axes, x: Array, y: Array, edge: str = VERMILION) -> None:
    """Points that were answered before, if there are any; ``edge``: the colour around them."""
    if len(x):
        ax.plot(x, y, "o", color=VERMILION, ms=3.5, mec=edge, zorder=4, label="answered before")


def mark_points(ax: Axes, x: Array, y: Array, *, above: bool = False) -> None:
    """Points that were asked for, with a white edge, so that they are seen on any colour.

    Parameters
    ----------
    ax
        The panel.
    x, y
        (points,) each.
    above
        Whether ``y`` is the share of the panel's height.

    """
    size = min(4.0, 60.0 / len(x) ** 0.5)
    ax.plot(x, y, "D", color=VERMILION, ms=size, mec="white", mew=0.1 * size, ls="none",
        clip_on=False, zorder=5, label="points asked",
        transform=ax.get_xaxis_transform() if above else ax.transData)  # fmt: skip


def on_white(text: Artist) -> None:
    """Give a text a white edge."""
    text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])


def legend(axes: Sequence[Axes], *, below: bool, columns: int = 2) -> None:
    """One legend for all panels.

    An entry with two looks, such as a band and a bar, or a line and a dot, is explained once,
    with both.

    Parameters
    ----------
    axes
        The panels.
    below
        Below them in a figure of ours, else inside the first.
    columns
        Number of columns of a legend below.

    """
    looks: dict[str, dict[object, Artist]] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            kind = handle.get_marker() if isinstance(handle, Line2D) else type(handle)
            looks.setdefault(label, {}).setdefault(kind, handle)
    handles = [tuple(each.values()) for each in looks.values()]
    both: dict[type, HandlerBase] = {tuple: HandlerTuple(None)}
    if not handles:
        return
    if below:
        figure = root_of(axes[0])
        lines = -(-len(handles) // columns)
        foot = keep_free(figure, (1.6 * SMALL * lines + 8.0) / 72.0)
        figure.legend(  # type: ignore[call-overload] # pairs, as HandlerTuple draws them
            handles,
            [*looks],
            fontsize=SMALL,
            handler_map=both,
            loc="lower left",
            bbox_to_anchor=(0.0, foot),
            borderaxespad=0.3,
            ncols=columns,
            frameon=False,
        )
    else:
        axes[0].legend(handles, [*looks], fontsize=SMALL - 1.0, handlelength=1.5, handler_map=both)


MARKS = {"D": "Diamonds", AT_TARGETS: "Circles"}


def name_of_mark(artist: Artist) -> str:
    """What a kind of mark is called in a sentence, such as "Dots"."""
    if not isinstance(artist, Line2D):
        return MARKS.get(str(artist.get_label()), "Dots")
    plain = "Orange dots" if artist.get_color() == VERMILION else "Dots"
    return MARKS.get(str(artist.get_marker()), plain)


def label_curves(ax: Axes) -> list[Artist]:
    """Write the name of every line and band at its right end, so that none needs a legend.

    Parameters
    ----------
    ax
        The panel, with all of its curves.

    Returns
    -------
    list of Artist
        Named marks that have no right end, such as single points; they are left without a name.

    """
    heights, names, colours, left = [], [], [], []
    for artist, label in zip(*ax.get_legend_handles_labels(), strict=True):
        end = _right_end(ax, artist)
        if end is None:
            left.append(artist)
            continue
        heights.append(end)
        names.append(textwrap.fill(str(label), SIDE))
        colours.append(artist.get_color() if isinstance(artist, Line2D) else BLUE)
    line = 1.25 * SMALL / (0.7 * 72.0 * root_of(ax).get_figheight())
    sizes = line * np.array([name.count("\n") + 1.3 for name in names])
    for height, name, colour in zip(spread(heights, sizes), names, colours, strict=True):
        ax.text(1.015, height, _plain(name), color=colour, fontsize=SMALL, va="center",
            transform=ax.transAxes)  # fmt: skip
    return left


def _right_end(ax: Axes, artist: Artist) -> float | None:
    """Where a curve or a band ends at the right, as a share of the height; None for anything else."""
    if isinstance(artist, Line2D):
        is_rug, drawn = artist.get_marker() == "|", np.asarray(artist.get_xydata(), dtype=float)
        if len(drawn) == 0 or (artist.get_linestyle() == "None" and not is_rug):
            return None
        if is_rug:
            return float(drawn[-1, 1])
        shown = artist.get_transform().transform(drawn[-1])
    elif isinstance(artist, PolyCollection):
        corners = np.concatenate([path.vertices for path in artist.get_paths()])
        shown = ax.transData.transform(corners[corners[:, 0] >= corners[:, 0].max()]).max(axis=0)
    else:
        return None
    return float(np.clip(ax.transAxes.inverted().transform(shown)[1], 0.0, 1.0))


def spread(heights: Sequence[float], sizes: Array) -> Array:
    """Heights of texts moved apart until none overlaps, in their order.

    Parameters
    ----------
    heights
        Where the middle of each should be.
    sizes
        (texts,), the height of each.

    """
    order = np.argsort(heights, kind="stable")
    placed = np.asarray(heights, dtype=float)
    for _ in range(50):
        for low, high in itertools.pairwise(order):
            overlap = 0.5 * (sizes[low] + sizes[high]) - (placed[high] - placed[low])
            if overlap > 0.0:
                placed[low] -= 0.5 * overlap
                placed[high] += 0.5 * overlap
        placed = np.maximum(placed, 0.5 * sizes)
    return placed


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
