"""What attacks achieved beside what was guaranteed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from rich.progress import Progress
from scipy.special import betainccinv, betaincinv, ndtri
from sklearn.metrics import auc, roc_curve

from privgp.audit.promises import Promise
from privgp.audit.shadows import Laws, Released
from privgp.pictures import style
from privgp.pictures.style import number
from privgp.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# callback(share of the work done, what is being done)
Callback = Callable[[float, str], None]
Drawn = TypeVar("Drawn")


@contextmanager
def show_progress(progress: bool | Callback) -> Iterator[Callback]:
    """``progress`` as a callback: True draws a bar, False tells nobody."""
    if callable(progress):
        yield progress
        return
    with Progress(disable=not progress) as bar:
        task = bar.add_task("attacking", total=1.0)
        yield lambda share, doing: bar.update(task, completed=share, description=doing)


def part(callback: Callback, start: float, end: float) -> Callback:
    """The same callback for a piece of the work that lies between the shares ``start`` and ``end``."""
    return lambda share, doing: callback(start + (end - start) * share, doing)


def repeat_draws(draw: Callable[[], Drawn], count: int, doing: str, tell: Callback) -> list[Drawn]:
    """The results of this many calls; the callback is called a hundred times on the way.

    Parameters
    ----------
    draw
        Called without arguments.
    count
        How often.
    doing
        The words that the callback is given.
    tell
        The callback.

    """
    step, drawn = max(1, count // 100), []
    for k in range(count):
        if k % step == 0:
            tell(k / count, doing)
        drawn.append(draw())
    return drawn


WHOSE = (
    "Membership attack: is one record among the data? Simulated data, released with and without it\n"
    "Each release: {paths} of {records}"
)
STATISTICS = ("mean", "log variance")
RATES = np.concatenate([np.geomspace(1e-6, 0.01, 60), np.linspace(0.011, 1.0, 400)])


def plot_trade_off(result: TradeOff, ax: Axes | None = None) -> Figure:
    """The guaranteed curve, below which no attack may come, and the attack with its bounds.

    Parameters
    ----------
    result
        Result of ``trade_off``.
    ax
        The panel to draw in; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure

    """
    if ax is None:
        ax = style.new_figure(4.0, 4.8).subplots()
    curve = result.promise.false_negative_rate(RATES)
    closed, promised = "no attack may come here", result.promise.describe().replace("mu =", "μ =")
    ax.fill_between(RATES, 0.0, curve, color=style.SKY, alpha=0.35, lw=0, label=closed)
    ax.plot(RATES, curve, color=style.BLUE, label=f"guaranteed: {promised}")
    ax.plot([0, 1], [1, 0], color=style.BLACK, lw=0.8, ls=":", label="guessing")
    colour = style.BLACK if result.holds else style.VERMILION
    (a, b), (c, d) = result.false_positive_bounds, result.false_negative_bounds
    box = f"bounds of its error rates, wrong with probability {number(result.failure_probability)}"
    ax.add_patch(Rectangle((a, c), b - a, d - c, fill=False, edgecolor=colour, lw=1.2, label=box))
    x, y = result.false_positive_rate, result.false_negative_rate
    ax.plot([x], [y], "o", ms=3, color=colour, label=result.attack)
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    style.set_labels(ax, "false-positive rate", "false-negative rate")
    found = (
        "An attack within the guarantee" if result.holds else "An attack that breaks the guarantee"
    )
    measured = f"measured μ from {result.mu_low:.3g} to {result.mu_high:.3g}"
    style.set_title(ax, f"{found}\n{measured}; smaller is more private", room=60)
    ax.legend(loc="upper right", fontsize=style.SMALL - 1.0)
    return style.root_of(ax)


def plot_membership(result: Membership) -> Figure:
    """The curve over all thresholds, and what datasets with and without the record release."""
    count = 1 + len(result.inside.statistics)
    figure = style.new_figure(3.2, 3.1 * count)
    style.set_title(figure, _whose(result))
    panels = figure.subplots(1, count)
    draw_curve(panels[0], result)
    for statistic, ax in enumerate(panels[1:]):
        draw_releases(ax, result, statistic)
    style.legend([panels[1]], below=True, columns=4)
    return figure


def _whose(result: Membership) -> str:
    records = f"{result.n:,} record{'s' if result.n != 1 else ''}"
    if np.isinf(result.n_paths):
        return WHOSE.format(paths="the exact posterior", records=records)
    count = f"{result.n_paths:,.0f} sample path{'s' if result.n_paths != 1 else ''}"
    return WHOSE.format(paths=count, records=records)


def draw_curve(ax: Axes, result: Membership) -> None:
    """True against false positives, with the bounds of the thresholds that were fixed."""
    fpr, tpr = result.false_positive_rates, result.true_positive_rates
    ax.plot(fpr, tpr, color=style.BLUE, label="attack")
    ax.plot([0, 1], [0, 1], color=style.BLACK, lw=0.8, ls=":", label="guessing")
    for place, t in enumerate(result.thresholds):
        low, high = t.true_positive_bounds
        name = None if place else "bounds at fixed thresholds"
        ax.plot([t.false_positive_rate] * 2, [low, high], color=style.BLACK, lw=1.2, label=name)
    if result.promise is not None:
        limit = 1.0 - result.promise.false_negative_rate(RATES)
        ax.plot(RATES, limit, color=style.VERMILION, ls="--", label="guaranteed limit")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.06))
    style.set_labels(ax, "false-positive rate", "true-positive rate")
    style.set_title(ax, f"Success of the attack: area {result.auc:.3f}")
    ax.legend(fontsize=style.SMALL - 1.0, loc="lower right")


def draw_releases(ax: Axes, result: Membership, statistic: int) -> None:
    """One statistic of the released values, counted and fitted, with and without the record.

    Parameters
    ----------
    ax
        The panel to draw in.
    result
        Result of ``membership``.
    statistic
        0 for means, 1 for logarithms of variances.

    """
    inside, outside = (seen.statistics[statistic] for seen in (result.inside, result.outside))
    low, high = np.quantile(np.concatenate([inside, outside]), [0.002, 0.998])
    edges, grid = np.linspace(low, high, 61), np.linspace(low, high, 300)
    member = inside, result.laws.inside[statistic], style.VERMILION, "member"
    other = outside, result.laws.outside[statistic], style.BLUE, "not a member"
    for values, law, colour, name in (member, other):
        # counted over all draws: np.histogram would leave out what lies beyond the edges
        counts = np.histogram(values, edges)[0] / (len(values) * np.diff(edges))
        ax.stairs(counts, edges, fill=True, color=colour, alpha=0.3, label=f"{name}, counted")
        line = "-" if name == "member" else "--"
        ax.plot(grid, np.exp(law.logpdf(grid)), line, color=colour, lw=1.2, label=f"{name}, fitted")
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0.0)
    ax.tick_params(labelsize=style.TEXT - 1.0)
    style.set_labels(ax, f"{STATISTICS[statistic]} of the released values", "density")


# scores(which of the two datasets, callback) -> one number for every draw
Scores = Callable[[int, Callback], Array]


@dataclass(frozen=True)
class TradeOff:
    """The error rates of one attack on fresh draws beside the least that were guaranteed.

    Attributes
    ----------
    promised_mu : the Gaussian-DP parameter of the guarantee; of another kind of guarantee, what it
        allows at the attack's false-positive rate
    mu_low, mu_high : bounds of the attack's own, from the bounds of its error rates
    false_positive_rate, false_negative_rate : on fresh draws
    draws : number of draws of each dataset
    failure_probability : with which the bounds may be wrong
    false_positive_bounds, false_negative_bounds : Clopper-Pearson bounds of both rates
    promise : the guarantee that the attack is compared with
    attack : the attack in words

    """

    promised_mu: float
    mu_low: float
    mu_high: float
    false_positive_rate: float
    false_negative_rate: float
    draws: int
    failure_probability: float
    false_positive_bounds: tuple[float, float] = (0.0, 1.0)
    false_negative_bounds: tuple[float, float] = (0.0, 1.0)
    promise: Promise = field(default_factory=Promise)
    attack: str = "the best threshold on one number"

    @property
    def holds(self) -> bool:
        """Whether the attack stayed within the guarantee."""
        return self.mu_low <= self.promised_mu

    @property
    def is_tight(self) -> bool:
        """Whether the noise is no larger than the guarantee needs, within 10%."""
        return self.mu_high >= 0.9 * self.promised_mu

    def epsilon_low(self, delta: float) -> float:
        """The epsilon below which the attack disproves every guarantee at this delta; at least 0.

        ``log((1 - beta - delta) / alpha)`` of the rates' upper bounds, or their roles exchanged.
        """
        rates = self.false_positive_bounds[1], self.false_negative_bounds[1]
        ratios = ((1.0 - b - delta) / a for a, b in (rates, rates[::-1]))
        return math.log(max(1.0, *ratios))

    def describe(self) -> str:
        """The result in a few sentences."""
        return (
            f"Guarantee: {self.promise.describe()}. Attack: {self.attack}, {self.draws} draws a side: "
            f"mu between {self.mu_low:.4g} and {self.mu_high:.4g} where {self.promised_mu:.4g} is "
            f"allowed (wrong with probability {self.failure_probability:g}). {verdict(self.holds)}."
        )

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw both error rates with their bounds beside the guaranteed curve, into ``ax`` or a new figure."""
        return plot_trade_off(self, ax)


def verdict(holds: bool) -> str:
    """Whether the guarantee holds, as a sentence begins."""
    return "The guarantee holds" if holds else "The guarantee IS BROKEN"


def clopper_pearson(count: int, draws: int, failure: float) -> tuple[float, float]:
    """Bounds of a binomial probability that are both right except with probability ``failure``.

    Parameters
    ----------
    count
        Number of successes.
    draws
        Number of trials.
    failure
        With which either bound may be wrong.

    """
    tail = 0.5 * failure
    low = betaincinv(count, draws - count + 1, tail) if count > 0 else 0.0
    high = betainccinv(count + 1, draws - count, tail) if count < draws else 1.0
    return float(low), float(high)


def from_errors(
    promise: Promise,
    false_positives: int,
    false_negatives: int,
    draws: int,
    failure: float,
    attack: str = TradeOff.attack,
) -> TradeOff:
    """The result of an attack from its errors, each rate at its Clopper-Pearson bound.

    mu = Phi^-1(1 - alpha) - Phi^-1(beta).

    Parameters
    ----------
    promise
        The guarantee that the attack is compared with.
    false_positives, false_negatives
        How often it was wrong on fresh draws of either dataset.
    draws
        Number of draws of each dataset.
    failure
        With which the bounds may be wrong.
    attack
        The attack in words.

    """
    alpha = clopper_pearson(false_positives, draws, failure / 2.0)
    beta = clopper_pearson(false_negatives, draws, failure / 2.0)
    return TradeOff(
        promised_mu=promise.equivalent_mu(alpha[1]),
        mu_low=float(-ndtri(alpha[1]) - ndtri(beta[1])),
        mu_high=float(-ndtri(alpha[0]) - ndtri(beta[0])),
        false_positive_rate=false_positives / draws,
        false_negative_rate=false_negatives / draws,
        draws=draws,
        failure_probability=failure,
        false_positive_bounds=alpha,
        false_negative_bounds=beta,
        promise=promise,
        attack=attack,
    )


@dataclass(frozen=True)
class Trial:
    """How an attack is tested.

    Attributes
    ----------
    draws : fresh ones of each dataset
    failure : how often its bounds may be wrong
    tell : the callback for progress

    """

    draws: int
    failure: float
    tell: Callback

    def test(self, scores: Scores, cut: float, promise: Promise, attack: str) -> TradeOff:
        """Take scores beyond a cut, fixed before anything is drawn, for the second dataset's.

        Parameters
        ----------
        scores
            The scores of fresh draws of dataset 0 or 1, (draws,).
        cut
            The threshold.
        promise
            The guarantee that the attack is compared with.
        attack
            The attack in words.

        """
        wrong = np.count_nonzero(scores(0, part(self.tell, 0.0, 0.5)) > cut)
        right = np.count_nonzero(scores(1, part(self.tell, 0.5, 1.0)) > cut)
        errors = int(wrong), self.draws - int(right)
        return from_errors(promise, *errors, self.draws, self.failure, attack)


@dataclass(frozen=True)
class Threshold:
    """One threshold, fixed before the test: how it did.

    Attributes
    ----------
    wanted : the false-positive rate that it was fixed for
    false_positive_rate, true_positive_rate : on fresh draws
    false_positive_bounds, true_positive_bounds : Clopper-Pearson bounds of both

    """

    wanted: float
    false_positive_rate: float
    true_positive_rate: float
    false_positive_bounds: tuple[float, float]
    true_positive_bounds: tuple[float, float]


@dataclass(frozen=True)
class Membership:
    """A membership attack's success on fresh draws.

    All bounds together are right except with probability ``failure_probability``.

    Attributes
    ----------
    n, n_paths, shadows, draws : as in ``membership``
    auc : the area under the curve of its rates over all thresholds; guessing has 0.5
    auc_bounds : Hoeffding's
    thresholds : fixed beforehand, with Clopper-Pearson bounds
    failure_probability : probability that any bound is wrong
    promise : the guarantee it is compared with, or None
    false_positive_rates, true_positive_rates : the curve
    laws : the fitted distributions
    inside, outside : the shadows' releases, with the record and without it

    """

    n: int
    n_paths: float
    shadows: int
    draws: int
    auc: float
    auc_bounds: tuple[float, float]
    thresholds: tuple[Threshold, ...]
    failure_probability: float
    promise: Promise | None
    false_positive_rates: Array = field(repr=False)
    true_positive_rates: Array = field(repr=False)
    laws: Laws = field(repr=False)
    inside: Released = field(repr=False)
    outside: Released = field(repr=False)

    def true_positive_rate_at(self, false_positive_rate: float) -> float:
        """The share of members found at this ``false_positive_rate``, from the curve."""
        curve = self.false_positive_rates, self.true_positive_rates
        return float(np.interp(false_positive_rate, *curve))

    @property
    def holds(self) -> bool:
        """Whether the attack stayed within the guarantee; True without one."""
        if self.promise is None:
            return True
        return all(
            1.0 - t.true_positive_bounds[0]
            >= float(self.promise.false_negative_rate(t.false_positive_bounds[1]))
            for t in self.thresholds
        )

    def describe(self) -> str:
        """The success in a few sentences."""
        paths = f"{self.n_paths:g} path{'s' if self.n_paths > 1 else ''}"
        if self.n_paths == math.inf:
            paths = "the exact posterior"
        lines = [
            f"Membership attack on {paths} of {self.n} records, {self.shadows} shadow datasets and "
            f"{self.draws} fresh ones each way.",
            f"Area under the curve {self.auc:.4f}, between {self.auc_bounds[0]:.4f} and "
            f"{self.auc_bounds[1]:.4f} (guessing: 0.5).",
        ]
        lines += [
            f"At a false-positive rate of {t.false_positive_rate:.4g}: {t.true_positive_rate:.4g} of "
            f"the members are found, between {t.true_positive_bounds[0]:.4g} and "
            f"{t.true_positive_bounds[1]:.4g}."
            for t in self.thresholds
        ]
        if self.promise is not None:
            lines.append(f"{verdict(self.holds)}: {self.promise.describe()}.")
        lines.append(f"Bounds are wrong with probability {self.failure_probability:g}.")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """The curve, and what the two kinds of datasets release, as a figure."""
        return plot_membership(self)


def measure_success(
    laws: Laws,
    calibration: Released,
    inside: Released,
    outside: Released,
    rates: tuple[float, ...],
    failure: float,
    promise: Promise | None,
    *,
    n: int,
    n_paths: float,
    shadows: int,
) -> Membership:
    """The success of a fitted attack on fresh draws.

    Hoeffding's bounds of the area, two samples of m: ``P(|A - a| >= t) <= 2 exp(-2 m t^2)``.

    Parameters
    ----------
    laws
        That it scores with.
    calibration
        Shadows without the record, which fix the thresholds.
    inside, outside
        Fresh releases.
    rates
        False-positive rates to fix thresholds for.
    failure
        With which any bound may be wrong.
    promise
        The guarantee it is compared with, if any.
    n, n_paths, shadows
        As in ``membership``.

    """
    members, others, known = (laws.score(seen) for seen in (inside, outside, calibration))
    draws = len(members)
    each = failure / (1 + 2 * len(rates))
    thresholds = []
    for wanted, cut in zip(rates, np.quantile(known, 1.0 - np.array(rates)), strict=True):
        wrong, right = (int(np.count_nonzero(scores > cut)) for scores in (others, members))
        bounds = clopper_pearson(wrong, draws, each), clopper_pearson(right, draws, each)
        thresholds.append(Threshold(wanted, wrong / draws, right / draws, *bounds))
    labels, scores = np.repeat([1, 0], draws), np.concatenate([members, others])
    fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
    area = float(auc(fpr, tpr))
    reach = math.sqrt(math.log(2.0 / each) / (2.0 * draws))
    return Membership(
        n=n,
        n_paths=n_paths,
        shadows=shadows,
        promise=promise,
        draws=draws,
        auc=area,
        auc_bounds=(max(0.0, area - reach), min(1.0, area + reach)),
        thresholds=tuple(thresholds),
        failure_probability=failure,
        false_positive_rates=fpr,
        true_positive_rates=tpr,
        laws=laws,
        inside=inside,
        outside=outside,
    )
