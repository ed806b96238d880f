"""A plan before anything is spent: the error that a budget buys."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from privgp.pictures import style
from privgp.types import Array


def plot_errors(
    epsilons: Array,
    errors: Array,
    *,
    floor: float,
    planned: tuple[float, float],
    prior_range: Array | None,
    title: str,
    ax: Axes | None = None,
) -> Figure:
    """Expected errors, which may be nan, against epsilon, with the planned (epsilon, error) marked.

    ``floor``: the error without noise; ``prior_range``: its ends where the prior varies.
    """
    panel = style.panels(None, 1, 1, 3.0)[0] if ax is None else ax
    panel.plot(epsilons, errors, color=style.BLUE, label="root mean square at the targets")
    line = "same measurement, no noise"
    panel.axhline(floor, color=style.BLACK, lw=1.0, ls="--", label=line)
    epsilon, error = planned
    if prior_range is not None:
        middle, reach = prior_range.mean(), np.ptp(prior_range) / 2.0
        panel.errorbar(epsilon, middle, reach, fmt="none", ecolor=style.ORANGE, elinewidth=2.0,
            capsize=4.0, capthick=2.0, label="over 90% of the prior")  # fmt: skip
    marked = f"planned: {error:.3g} at epsilon={style.number(epsilon)}"
    panel.plot(epsilon, error, "o", color=style.VERMILION, zorder=4, label=marked)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
    panel.set_ylim(bottom=0.0)
    panel.grid(alpha=0.3, lw=0.5)
    style.set_labels(panel, "epsilon", "expected error, in units of the output")
    style.set_title(panel, title)
    style.legend([panel], below=ax is None)
    return style.root_of(panel)
