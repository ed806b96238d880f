"""Plans for private inputs: how near the best they are, and how they are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.plan.bins.counts import bin_functionals, counts_given
from privgp.plan.bins.grids import even_hypotheses
from privgp.plan.designs.noise_aware import Certificate, certify, gain, unexplained

if TYPE_CHECKING:
    from privgp.plan.plan import Plan


@dataclass(frozen=True)
class Records:
    """What is planned where whole records are private, from their number alone.

    The accuracy is that for records spread evenly over the domain. ``x_bounds``: the declared domain;
    ``default_kernel``: whether no kernel was given.
    """

    inputs: ClassVar[None] = None
    chosen: ClassVar[None] = None
    unbiased: ClassVar[None] = None
    design_gap: ClassVar[None] = None
    is_quick: ClassVar[bool] = True
    unread: ClassVar[str] = "neither an input nor an output"
    condition: ClassVar[str] = ", if records lie evenly over the domain"
    x_bounds: tuple[tuple[float, float], ...]
    default_kernel: bool

    def check_in(self, plan: Plan) -> None:
        """Refuse bins of another domain, as only a file can have them."""
        bins: Any = plan.strategy
        if not np.array_equal(np.array(self.x_bounds).T, [bins.low, bins.high]):
            raise ValueError("the bins are not those of the domain.")

    def functionals(self, plan: Plan, strategy: Any, noise: Any) -> Functionals:
        """What is measured of f, given counts as uncertain as this noise leaves them."""
        counts = counts_given(strategy, strategy.sum_std(noise.std), None)
        return bin_functionals(strategy, *counts, plan.start)

    def certificate(self, plan: Plan, gaussian: Plan) -> Certificate:
        """The expected mean square at the targets, and the least that Gaussian noise allows.

        No Gaussian measurement of sums over these bins, even with the counts known and the records
        spread evenly, has a smaller error under the starting hyperparameters. Noisy counts are part
        of the gap.
        """
        bins: Any = gaussian.strategy
        B, noise = bins.matrix, gaussian.measured_noise_std**2
        known = even_hypotheses(bins, [plan.start], plan.targets)
        error = known[0].total - gain(B, known, noise)[0]
        floor = certify(B, error, unexplained(B, known, noise), noise, is_root=True).floor
        return Certificate(plan.expected_error() ** 2, floor / len(plan.targets))

    def domain(self) -> str:
        pairs = " x ".join(f"[{a:g}, {b:g}]" for a, b in self.x_bounds)
        return f", inputs in {pairs}, both private"

    def measured(self, plan: Plan) -> str:
        """How much is measured with which noise, and what the other noise would give."""
        bins: Any = plan.strategy
        text = (
            f"{bins.rows} records in {' x '.join(map(str, bins.shape))} bins; {bins.size} numbers are "
            f"measured, with {plan.noise.describe()}"
        )
        if plan.rival is None:
            return text
        other = plan.measuring(plan.rival)
        error = other.expected_error()
        return f"{text} ({other.noise.describe()}: an expected error of {error:.4g})"
