"""How well members can be told from others: the curve of all thresholds, and what is certain of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privgp.audit.densities import MeanLaw, VarianceLaw
from privgp.audit.promises import Promise
from privgp.audit.result import clopper_pearson
from privgp.types import Array


@dataclass(frozen=True)
class Released:
    """What is seen of many releases at one place: ``means`` of the paths' values and, with more than
    one path, ``log_variances``."""

    means: Array
    log_variances: Array | None


@dataclass(frozen=True)
class Laws:
    """The fitted laws with the record and without it."""

    mean_in: MeanLaw
    mean_out: MeanLaw
    variance_in: VarianceLaw | None
    variance_out: VarianceLaw | None

    def score(self, seen: Released) -> Array:
        """Log-likelihood ratios, member over not: the mean's plus the variance's."""
        score = self.mean_in.logpdf(seen.means) - self.mean_out.logpdf(seen.means)
        if seen.log_variances is not None and self.variance_in and self.variance_out:
            score = score + self.variance_in.logpdf(seen.log_variances)
            score = score - self.variance_out.logpdf(seen.log_variances)
        return score


@dataclass(frozen=True)
class Threshold:
    """One threshold, fixed before the test: its two rates on fresh draws, with their bounds.

    ``wanted``: the false-positive rate it was set for.
    """

    wanted: float
    false_positive_rate: float
    true_positive_rate: float
    false_positive_bounds: tuple[float, float]
    true_positive_bounds: tuple[float, float]


@dataclass(frozen=True)
class Membership:
    """A membership attack's success on fresh draws.

    ``false_positive_rates``, ``true_positive_rates``: the curve over all thresholds; ``auc``: the
    area under it, ``auc_bounds`` by Hoeffding; ``thresholds``: those fixed beforehand, with
    Clopper-Pearson bounds. All bounds together are wrong with probability at most
    ``failure_probability``.
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
        """The share of members found at this false-positive rate, from the curve."""
        return float(
            np.interp(false_positive_rate, self.false_positive_rates, self.true_positive_rates)
        )

    @property
    def holds(self) -> bool:
        """Whether the attack stayed within the promise; True without one."""
        if self.promise is None:
            return True
        return all(
            1.0 - t.true_positive_bounds[0]
            >= float(self.promise.false_negative_rate(t.false_positive_bounds[1]))
            for t in self.thresholds
        )

    def describe(self) -> str:
        paths = "the exact posterior" if self.n_paths == math.inf else f"{self.n_paths:g} path(s)"
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
            verdict = "holds" if self.holds else "IS BROKEN"
            lines.append(f"The promise ({self.promise.describe()}) {verdict}.")
        lines.append(f"Bounds are wrong with probability {self.failure_probability:g}.")
        return "\n".join(lines)

    def plot(self) -> Any:
        """The curve, and what the two kinds of datasets release, as a figure."""
        from privgp.audit.plots import plot_membership

        return plot_membership(self)


def measured(
    laws: Laws,
    calibration: Released,
    inside: Released,
    outside: Released,
    rates: tuple[float, ...],
    failure: float,
    promise: Promise | None,
    facts: dict[str, Any],
) -> Membership:
    """The success of a fitted attack; thresholds come from ``calibration``, shadows without the record.

    The area's bounds are Hoeffding's for two samples of m: ``P(|A - a| >= t) <= 2 exp(-2 m t^2)``.
    """
    members, others = laws.score(inside), laws.score(outside)
    draws = len(members)
    each = failure / (1 + 2 * len(rates))
    known = laws.score(calibration)
    thresholds = []
    for wanted in rates:
        t = float(np.quantile(known, 1.0 - wanted))
        found, wrong = int(np.count_nonzero(members > t)), int(np.count_nonzero(others > t))
        thresholds.append(
            Threshold(
                wanted,
                wrong / draws,
                found / draws,
                clopper_pearson(wrong, draws, each),
                clopper_pearson(found, draws, each),
            )
        )
    fpr, tpr = curve(members, others)
    area = float(np.trapezoid(tpr, fpr))
    reach = math.sqrt(math.log(2.0 / each) / (2.0 * draws))
    return Membership(
        **facts,
        draws=draws,
        auc=area,
        auc_bounds=(max(0.0, area - reach), min(1.0, area + reach)),
        thresholds=tuple(thresholds),
        failure_probability=failure,
        promise=promise,
        false_positive_rates=fpr,
        true_positive_rates=tpr,
        laws=laws,
        inside=inside,
        outside=outside,
    )


def curve(members: Array, others: Array) -> tuple[Array, Array]:
    """Rates of false and true positives over all thresholds, from (0, 0) to (1, 1)."""
    cuts = np.unique(np.concatenate([members, others]))[::-1]
    fpr = 1.0 - np.searchsorted(np.sort(others), cuts, side="left") / len(others)
    tpr = 1.0 - np.searchsorted(np.sort(members), cuts, side="left") / len(members)
    return np.concatenate([[0.0], fpr]), np.concatenate([[0.0], tpr])
