"""Figure 3: prices of homes around London, and where cloaking adds how much noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF

from papers.shared.cloaking import Cloak, cloak, hall_multiplier, hall_text
from papers.shared.data import london
from papers.shared.report import Report, Request, Result, Section, judged
from privgp.models.regressor import PrivateGPRegressor
from privgp.pictures.style import (
    BLUE,
    SMALL,
    VERMILION,
    legend,
    new_figure,
    on_white,
    set_labels,
    set_title,
)
from privgp.types import Array

BOUNDS, DELTA = (100.0, 500.0), 0.01  # thousands of pounds
WIDTH, CENTRE = 400.0, 300.0
LENGTHSCALE = 15.0  # km, as printed; the program has 10
RATIO = 10.0  # noise variance over signal variance, in the papers' program
OTHER_RATIO = 1.0  # the paper prints none
SIGNAL = 100.0**2
TRANSPARENT = 0.4  # of the width of the bounds
SQUARE = ((480.0, 580.0), (130.0, 230.0))
NEAR, FAR, AROUND = 5.0, 30.0, 20.0  # km
NEAR_PRIOR = 0.05  # of the width of the bounds
HELD_OUT, DRAWS = 200, 20


@dataclass(frozen=True)
class Places:
    """The four kinds of place in the caption of figure 3, as masks over the targets."""

    dense: Array
    sparse: Array
    remote: Array
    bridged: Array
    edge: Array


def run(request: Request) -> Report:
    """The map, the caption's statements as numbers, and errors on sales held out."""
    X, price = london(request)
    request.progress(0.05, "map")
    return report(X, price, 20, request)


def report(X: Array, price: Array, cells: int, request: Request) -> Report:
    """The report on a map of ``cells`` by ``cells`` targets, wider than the data by 30%."""
    targets = _grid(cells)
    y = np.clip(price, *BOUNDS)
    scale = WIDTH * hall_multiplier(1.0, DELTA)
    places = kinds(X, targets)
    first, other = (caption(X, y, targets, places, ratio, scale) for ratio in (RATIO, OTHER_RATIO))
    request.progress(0.4, "default")
    model = PrivateGPRegressor(y_bounds=BOUNDS, epsilon=1.0, delta=DELTA, random_state=0).fit(X, y)
    request.progress(0.7, "held out")
    count = min(HELD_OUT, len(X) // 4)
    papers, default, constant = held_out(X, y, scale, count)
    results = (
        *first.results(""),
        *other.results(f", noise variance {OTHER_RATIO:g} times the signal's"),
        Result("RMSE on sales held out (thousand pounds)", None, papers, default),
        Result("RMSE of the middle of the bounds", None, constant, None),
    )
    depends = [a for (a, _, x), (_, _, z) in zip(first.holds, other.holds, strict=True) if x != z]
    request.progress(1.0, "done")
    return Report(
        "london",
        "Figure 3: prices of homes around London",
        results,
        (
            Section(
                "Figure 3",
                _map_text(len(X)),
                picture(X, targets, first.cloaked, first.std, scale, model),
            ),
            Section(
                "The caption as numbers",
                (
                    f"Dense: at least 20 sales within {NEAR:g} km; few: none within {NEAR:g} km but "
                    f"some within {AROUND:g} km; far: none within {FAR:g} km. Few, but between: sales "
                    f"in all four quarters within {AROUND:g} km; beside: in at most two. Numbers are thousands "
                    "of pounds.",
                    *first.judgements(),
                ),
            ),
            Section(
                f"The same with a noise variance {OTHER_RATIO:g} times the signal's",
                (
                    "The ratio of noise to signal is not printed. "
                    + (
                        f"{', '.join(depends)} depend on it."
                        if depends
                        else "No statement depends on it."
                    ),
                    *other.judgements(),
                ),
                picture(X, targets, other.cloaked, other.std, scale, model),
            ),
            Section(
                "Sales held out",
                (
                    f"Errors on {count} sales, in thousands of pounds: {papers:.0f} by the papers' cloaking "
                    f"(the mean of {DRAWS} draws of noise), {default:.0f} by the default (one release), "
                    f"{constant:.0f} by the middle of the bounds. The paper prints none.",
                ),
            ),
            Section("Not private as published", _PRIVACY),
        ),
    )


@dataclass(frozen=True)
class Caption:
    """What the caption says, at one ratio of noise to signal.

    Attributes
    ----------
    cloaked, std : the prediction, and the noise at every target
    found : noise std by kind of place, in thousands of pounds
    drift : largest distance of the mean from the prior's, far from all sales

    """

    cloaked: Cloak
    std: Array
    found: dict[str, float]
    drift: float

    @property
    def holds(self) -> tuple[tuple[str, str, bool], ...]:
        """Every statement: its letter, its words, and whether it holds."""
        f = self.found
        calm = f["remote"] < 0.5 * f["sparse"] and self.drift < NEAR_PRIOR * WIDTH
        return (
            (
                "A",
                f"little noise where sales are dense (std {f['dense']:.0f})",
                f["dense"] < 0.5 * f["sparse"],
            ),
            (
                "B",
                f"much more where they are few ({f['sparse']:.0f})",
                f["sparse"] > 2.0 * f["dense"],
            ),
            (
                "C",
                f"little noise ({f['remote']:.0f}) and the prior's mean (within {self.drift:.0f}) far away",
                calm,
            ),
            (
                "D",
                f"less noise between sales ({f['bridged']:.0f}) than beside them ({f['edge']:.0f})",
                f["bridged"] < f["edge"],
            ),
        )

    def judgements(self) -> tuple[str, ...]:
        return tuple(judged(f"{place}, {text}", ok) for place, text, ok in self.holds)

    def results(self, where: str) -> tuple[Result, ...]:
        f = self.found
        return (
            Result(
                f"A: noise std where sales are dense (thousand pounds){where}",
                None,
                f["dense"],
                None,
            ),
            Result(f"B: noise std where sales are few{where}", None, f["sparse"], None),
            Result(f"C: noise std far from all sales{where}", None, f["remote"], None),
            Result(
                f"C: largest distance of the mean from the prior's there{where}",
                0.0,
                self.drift,
                None,
            ),
            Result(f"D: noise std between sales, few near{where}", None, f["bridged"], None),
            Result(f"D: noise std beside sales, as few near{where}", None, f["edge"], None),
        )


def caption(
    X: Array, y: Array, targets: Array, places: Places, ratio: float, scale: float
) -> Caption:
    """The caption's statements with this noise variance over the signal's."""
    cloaked = cloak(SIGNAL * RBF(LENGTHSCALE), ratio * SIGNAL, X, y, targets, CENTRE)
    std = cloaked.noise_std(scale)
    found = {
        name: float(np.sqrt(np.mean(std[mask] ** 2))) if mask.any() else np.nan
        for name, mask in places.__dict__.items()
    }
    away = np.abs(cloaked.mean[places.remote] - CENTRE)
    return Caption(cloaked, std, found, float(away.max()) if away.size else np.nan)


def kinds(X: Array, targets: Array) -> Places:
    """Which targets are dense, sparse, far away, between sales or beside them."""
    distance = cdist(targets, X)
    near = (distance < NEAR).sum(axis=1)
    offset = X[None, :, :] - targets[:, None, :]
    quarter = 2 * (offset[..., 0] > 0) + (offset[..., 1] > 0)
    around = distance < AROUND
    sides = sum(((quarter == q) & around).any(axis=1).astype(int) for q in range(4))
    few = (near == 0) & around.any(axis=1)
    return Places(
        dense=near >= 20,
        sparse=few,
        remote=distance.min(axis=1) > FAR,
        bridged=few & (sides == 4),
        edge=few & (sides <= 2),
    )


def held_out(X: Array, y: Array, scale: float, count: int) -> tuple[float, float, float]:
    """RMSE on ``count`` sales: papers' cloaking (the mean of DRAWS draws), default, the middle."""
    order = np.random.default_rng(0).permutation(len(X))
    test, train = order[:count], order[count:]
    kernel = SIGNAL * RBF(LENGTHSCALE)
    cloaked = cloak(kernel, RATIO * SIGNAL, X[train], y[train], X[test], CENTRE)
    rng = np.random.default_rng(1)
    draws = [_rmse(cloaked.release(scale, rng), y[test]) for _ in range(DRAWS)]
    model = PrivateGPRegressor(y_bounds=BOUNDS, epsilon=1.0, delta=DELTA, random_state=1)
    default = _rmse(model.fit(X[train], y[train]).predict(X[test]), y[test])
    return float(np.mean(draws)), default, _rmse(np.full(count, CENTRE), y[test])


def picture(
    X: Array, targets: Array, cloaked: Cloak, std: Array, scale: float, model: PrivateGPRegressor
) -> Figure:
    """Circles: area for price, transparency for noise; contours without privacy. Beside: the default."""
    figure = new_figure(5.4, 8.2)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    set_title(
        figure,
        f"Prices of {len(X):,} homes around London, by cloaking and by the default\n"
        f"Each price is to be protected with ε = 1, δ = {DELTA:g}; a larger circle is a higher price, a paler "
        "one is less certain",
        simulation=True,
    )
    released = cloaked.release(scale, np.random.default_rng(0))
    mean, spread = model.predict(targets, return_std=True)
    side = int(np.sqrt(len(targets)))
    shape = (side, side)
    for ax, values, noise, title in (
        (left, released, std, "the papers' cloaking"),
        (right, mean, spread, "the default"),
    ):
        ax.plot(X[:, 0], X[:, 1], ".", color="#999999", markersize=1, rasterized=True)
        opaque = np.clip(1.0 - noise / (TRANSPARENT * WIDTH), 0.0, 1.0)
        look = {"color": BLUE, "linewidths": 0, "rasterized": True}
        ax.scatter(targets[:, 0], targets[:, 1], s=_area(values), alpha=opaque, **look)
        ax.set_aspect("equal")
        set_title(ax, title)
        set_labels(ax, "easting (km)", "northing (km)" if ax is left else "")
    grids = (targets[:, j].reshape(shape) for j in range(2))
    lines = left.contour(
        *grids, cloaked.mean.reshape(shape), levels=6, colors=VERMILION, linewidths=0.6
    )
    for text in left.clabel(lines, fmt="£%dk", fontsize=SMALL - 1.0):
        on_white(text)
    _explain(left)
    legend([left], below=True, columns=3)
    return figure


def _area(price: Array) -> Array:
    """The area of a circle, in square points, for a price in thousands."""
    return np.asarray(50.0 * np.clip(price - 100.0, 5.0, 500.0) / 400.0)


def _explain(ax: Axes) -> None:
    """What is drawn, for the legend."""
    ax.plot([], [], ".", color="#999999", markersize=3, label="sales")
    ax.plot([], [], color=VERMILION, lw=0.6, label="prices without privacy, contours")
    for price in (200.0, 350.0, 500.0):
        name = f"£{price:.0f}k, no uncertainty"
        ax.scatter([], [], s=_area(np.array([price])), color=BLUE, linewidths=0, label=name)
    for std in (40.0, 80.0, 120.0):
        alpha = 1.0 - std / (TRANSPARENT * WIDTH)
        name, size = f"uncertain by £{std:.0f}k (std)", _area(np.array([350.0]))
        ax.scatter([], [], s=size, color=BLUE, alpha=alpha, linewidths=0, label=name)


def _grid(cells: int) -> Array:
    axes = [
        np.linspace(low - 0.15 * (high - low), high + 0.15 * (high - low), cells)
        for low, high in SQUARE
    ]
    grids = np.meshgrid(*axes, indexing="ij")
    return np.column_stack([g.ravel() for g in grids])


def _rmse(prediction: Array, truth: Array) -> float:
    return float(np.sqrt(np.mean((prediction - truth) ** 2)))


def _map_text(sales: int) -> tuple[str, ...]:
    return (
        f"{sales:,} sales since 2013 in a square of {SQUARE[0][1] - SQUARE[0][0]:g} km around London (the papers "
        "have 4,766). Dots: sales; circles: released prices, their area the price, their transparency the "
        f"noise (invisible at {100 * TRANSPARENT:g}% of the width of the bounds); contours: the prediction "
        f"without privacy. Epsilon = 1, delta = {DELTA:g}, prices clipped to {BOUNDS[0]:g} to {BOUNDS[1]:g} "
        "thousand pounds, "
        f"lengthscale {LENGTHSCALE:g} km, noise variance {RATIO:g} times the signal's. The map is wider "
        "than the square, to show places far from all sales.",
    )


_PRIVACY = (
    f"{hall_text((1.0,), DELTA)} But prices are centred and scaled by their own mean and standard "
    "deviation, and the contours of the published figure are the prediction without privacy.",
)
