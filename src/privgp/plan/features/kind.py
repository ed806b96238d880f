"""What only plans that measure features of private inputs have and do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.priors import Hyperparameters
from privgp.plan.accuracy import left_by_rows
from privgp.plan.designs.noise_aware import Certificate
from privgp.plan.features.masses import SUPPORT, even_functionals, even_points
from privgp.plan.kinds import Records
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.plan.part import Part


@dataclass(frozen=True)
class FeatureRecords(Records):
    """What is planned where inputs are private and many."""

    design_gap: ClassVar[float | None] = math.inf
    totals: ClassVar[str] = "smooth features of the inputs, multiplied in pairs and by the values"

    def functionals(
        self, plan: Part, strategy: Any, noise: Any, model: Hyperparameters
    ) -> Functionals:
        """What is measured of f, for even records known as well as this noise allows."""
        return even_functionals(strategy, noise.std, model, self.unit)

    def variances_left(self, plan: Part, model: Hyperparameters, targets: Array) -> Array:
        """The variance of f at the targets, were even records themselves published."""
        low, high = np.array(self.x_bounds).T
        points = even_points(low, high)
        even = np.full(SUPPORT, plan.rows / SUPPORT) * (self.unit or 1.0)
        return left_by_rows(model, points, even, points, targets)

    def certificate(self, plan: Part, gaussian: Part) -> Certificate:
        """Refuse: no bound is known of how near features are to the best."""
        raise ValueError("a plan that measures features has no certificate of its error.")

    def describe_rows(self, plan: Part) -> str:
        """How many records are measured by how many features, in words."""
        features: Any = plan.strategy
        return (
            f"{features.rows} {features.counted} with {len(features.matrix)} features of the inputs"
        )
