"""PosteriorPaths: sample paths of a posterior, whole records private, kept by the custodian."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import validate_data

from privgp.ledger.account import Account
from privgp.models.kept import KeptEstimator
from privgp.models.published import names_of
from privgp.models.rows.tables import numbers_only
from privgp.pictures import style
from privgp.pictures.released import input_names
from privgp.pictures.style import number
from privgp.plan.functions.paths import Calibration, PathModel, check_count, path_model
from privgp.plan.search.folds import Trial
from privgp.privacy.guarantee import Guarantee
from privgp.types import STAMP, Array, Booleans, Bounds, Column, Pair, RandomState, Table
from privgp.vault.states.kept import Kept
from privgp.vault.states.paths import PATHS, PathContents, first_path_draws
from privgp.vault.validate import seal_inputs, seal_outputs

SHOWN_PATHS = 20


def plot_excursion(excursion: Excursion) -> Figure:
    count, promise = excursion.points.shape[1], excursion.guarantee
    if count > 2:
        raise ValueError(f"an excursion set over {count} inputs cannot be drawn: at most two.")
    ax = style.new_figure(3.2 if count == 1 else 4.6).subplots()
    draw = _band if count == 1 else _map
    draw(ax, excursion)
    style.set_labels(ax, *[*input_names(excursion.names, count), "value"][:2])
    for axis in (ax.xaxis, ax.yaxis):
        style.set_ticks(axis, None)
    budget = style.budget_text(promise.epsilon, promise.delta)
    title = f"Where the released function is at least {number(excursion.threshold)}"
    title += f"\nProtects {promise.unit} with {budget}"
    style.set_title(style.root_of(ax), title, simulation=promise.is_simulation)
    style.legend([ax], below=True)
    return style.root_of(ax)


def _band(ax: Axes, excursion: Excursion) -> None:
    """The paths, and the set as a band behind them."""
    paths = excursion.paths[:SHOWN_PATHS]
    order = np.argsort(excursion.points[:, 0], kind="stable")
    x = excursion.points[order, 0]
    lines = ax.plot(x, paths[:, order].T, color=style.BLUE, lw=0.8, alpha=0.3 + 0.7 / len(paths))
    lines[0].set_label("released paths")
    ax.axhline(excursion.threshold, color=style.BLACK, lw=0.8, ls="--", label="threshold")
    ax.fill_between(x, 0.0, 1.0, where=excursion.inside[order], step="mid", color=style.ORANGE,
        alpha=0.3, lw=0, transform=ax.get_xaxis_transform(), label="excursion set")  # fmt: skip


def _map(ax: Axes, excursion: Excursion) -> None:
    """The set's points, and its boundary through the triangles between all points."""
    (x, y), inside = excursion.points.T, excursion.inside
    ax.plot(x[inside], y[inside], "s", color=style.ORANGE, ms=3, label="excursion set")
    ax.plot(x[~inside], y[~inside], ".", color=style.SKY, ms=2, label="outside")
    spread = len(x) > 3 and np.linalg.matrix_rank(excursion.points - excursion.points[0]) == 2
    if spread and 0 < inside.sum() < len(inside):
        height = excursion.share - excursion.vote
        if excursion.vote == 0.5 and len(excursion.paths) == 1:
            height = excursion.paths[0] - excursion.threshold
        ax.tricontour(x, y, height, levels=[0.0], colors=style.BLACK, linewidths=1.2)
        ax.plot([], [], color=style.BLACK, lw=1.2, label="boundary")


@dataclass(frozen=True, repr=False)
class Excursion:
    """Where at least ``vote`` of the paths reach the threshold. ``points``: (points, inputs);
    ``paths``: (paths, points), smoothed where that was asked for."""

    points: Array
    threshold: float
    vote: float
    paths: Array
    names: tuple[str, ...] | None
    guarantee: Guarantee

    @property
    def share(self) -> Array:
        """The share of the paths that reach the threshold at each point, (points,)."""
        return np.asarray(np.mean(self.paths >= self.threshold, axis=0))

    @property
    def inside(self) -> Booleans:
        """Whether each point belongs to the set, (points,)."""
        return np.asarray(self.share >= self.vote)

    def describe(self) -> str:
        stamp = f"{STAMP}: " if self.guarantee.is_simulation else ""
        return (
            f"{stamp}{int(np.sum(self.inside))} of {len(self.points)} points lie where at least "
            f"{self.vote:g} of {len(self.paths)} paths reach {self.threshold:g}.\n"
            f"{self.guarantee.describe()}"
        )

    def __repr__(self) -> str:
        stamp = f", {STAMP!r}" if self.guarantee.is_simulation else ""
        return (
            f"Excursion(threshold={self.threshold:g}, vote={self.vote:g}, points={len(self.points)}, "
            f"inside={int(np.sum(self.inside))}, paths={len(self.paths)}{stamp})"
        )

    def plot(self) -> Figure:
        """One input: paths, threshold and the set as a band; two: the set and its boundary."""
        return plot_excursion(self)


def check_vote(threshold: float, vote: float, smoothing: float | None) -> None:
    """Refuse what no paths can be asked, before they are: their answers cost."""
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {threshold}.")
    if not 0 < vote <= 1:
        raise ValueError(f"vote must be above 0 and at most 1, got {vote}.")
    if smoothing is not None and not (math.isfinite(smoothing) and smoothing > 0):
        raise ValueError(f"smoothing must be positive and finite, got {smoothing}.")


def smooth_paths(points: Array, paths: Array, std: float) -> Array:
    """Every path averaged over its neighbours with Gaussian weights of this std, in units of x."""
    weights = np.exp(-0.5 * cdist(points, points, "sqeuclidean") / std**2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(paths @ weights.T)


@dataclass(eq=False, repr=False)
class PosteriorPaths(KeptEstimator):
    """Paths drawn from the posterior of private records: the draw itself is what hides them.

    They are drawn where they are asked for: the custodian keeps the records. Answers may be published.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed.
    noise_variance : variance of an output about the function (None: the kernel's WhiteKernel).
        Divided by the kernel's variance it is r^2, the regularisation that privacy rests on.
    domain : (low, high), or one such pair per input; inputs are projected, questions refused.
    y_bounds : (low, high), public bounds of the outputs; outputs outside are clipped.
    n_paths : how many paths; each costs.
    extra_noise : std of Gaussian-process noise with the same kernel, added to every path.
    delta : the guarantee is (epsilon, delta), epsilon follows from the rest.
    sensitivity : "auto", the least proved bound; "paper", the paper's bounds throughout; or
        ("function", norm), which assumes that all outputs are one function of that norm.
    max_points : the most points ever asked; the noise that hides rounding errors grows with it.
    ledger : the Account of these data, which every fit charges for all answers; None: none.
    random_state : for simulations only: repeatable paths, and a guarantee that states this.

    Attributes
    ----------
    guarantee_ : what is guaranteed, for all paths and points together.
    sensitivity_ : the bound of how far one record moves the posterior mean, in units of y.
    nugget_std_ : std of the independent noise of every value, in units of y.

    """

    _CODEC = PATHS

    kernel: Kernel
    noise_variance: float | None
    _: KW_ONLY
    domain: Bounds
    y_bounds: Sequence[float] | None
    n_paths: int = 1
    extra_noise: float = 0.0
    delta: float
    sensitivity: str | float = "auto"
    max_points: int = 2000
    ledger: Account | None = None
    random_state: RandomState = None

    def guarantee_for(self, n: int) -> Guarantee:
        """What paths of n records would guarantee. Needs no data.

        Parameters
        ----------
        n : int
            The number of records.

        Returns
        -------
        Guarantee

        """
        model = self._model()
        return model.guarantee(check_count(n), simulated=self.random_state is not None)

    def calibrate(self, epsilon: float, n: int, *, by: str = "noise_variance") -> Calibration:
        """The least noise with which paths of n records meet a budget. Needs no data.

        Parameters
        ----------
        epsilon : float
            The budget, beside the ``delta`` of the paths.
        n : int
            The number of records.
        by : {"noise_variance", "extra_noise"}
            What to find. The extra noise is found at the given noise variance.

        Returns
        -------
        Calibration

        """
        return self._model().calibrate_noise(epsilon, check_count(n), by)

    def fit(self, X: Table, y: Column, *, state: str | os.PathLike[str] | None = None) -> Self:
        """Take the records. The first release spends the budget; every fit has its own.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        y : column (rows,)
            The private values.
        state : str or path, optional
            A new ``.private-state`` file, which keeps every draw before its answer is given.

        Returns
        -------
        self

        """
        tried, seed = self._prepare(X, y, state)
        model = self._model()
        inputs = seal_inputs(X, len(model.domain))
        outputs = seal_outputs(y, len(inputs))
        validate_data(tried, X, skip_check_array=True)  # remembers the names of the columns
        n = check_count(len(inputs))
        promised = model.guarantee(n, simulated=seed is not None)
        known = promised, names_of(tried), model
        self._publish(
            promised,
            lambda: Kept.new(
                PathContents(*known, first_path_draws(inputs, outputs, model, seed)), PATHS, state
            ),
            self._take,
            rows=n,
        )
        return self

    def release(self, X_new: Table) -> Array:
        """The paths at these points, always the same; stored before they are returned.

        Parameters
        ----------
        X_new : table (points, inputs)
            Where to evaluate.

        Returns
        -------
        array (paths, points)

        """
        return self._ask(X_new).T

    def excursion(
        self, X_new: Table, threshold: float, *, vote: float = 0.5, smoothing: float | None = None
    ) -> Excursion:
        """Where the function is at least ``threshold``, by a vote of the paths. Costs nothing.

        Parameters
        ----------
        X_new : table (points, inputs)
            Where to evaluate.
        threshold : float
            In units of the output.
        vote : float, default 0.5
            The share of the paths that must reach the threshold.
        smoothing : float, optional
            The std, in units of X, of a Gaussian filter that smooths every path first.

        Returns
        -------
        Excursion

        """
        check_vote(threshold, vote, smoothing)
        paths = self.release(X_new)
        numbers_only(self, X_new)
        points = validate_data(self, X_new, reset=False, dtype=np.float64)
        if smoothing is not None:
            paths = smooth_paths(points, paths, smoothing)
        names = names_of(self)
        return Excursion(points, float(threshold), float(vote), paths, names, self.guarantee_)

    def _with_budget(self, epsilon: float, delta: float, rows: int) -> Self:
        """An unfitted copy that spends at most this budget: its noise variance is raised if necessary."""
        made: Self = clone(self).set_params(delta=delta)
        if made.guarantee_for(rows).epsilon > epsilon:
            made.set_params(noise_variance=made.calibrate(epsilon, rows).noise_variance)
        return made

    def _domain(self) -> tuple[Pair, ...]:
        return self._model().domain

    def _trial(self, X: Array | None, rows: int) -> Trial:
        """A draw of the posterior, with its extra noise."""
        model = self._model()
        known = model.kernel, model.noise_variance, model.y_bounds
        return Trial(*known, added=model.extra_noise**2, is_draw=True)

    def _model(self) -> PathModel:
        return path_model(self.get_params(deep=False))

    def _take(self, kept: Kept) -> None:
        super()._take(kept)
        model, records = kept.contents.model, len(kept.contents.draws.outputs)
        self.sensitivity_ = model.mean_sensitivity(records).value
        self.nugget_std_ = model.nugget_std(records)
