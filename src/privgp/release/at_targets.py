"""The papers' output: the non-private prediction plus noise, at the targets and nowhere else."""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from privgp.gp.inference.mixtures import Mixture
from privgp.gp.inference.posterior import Posterior
from privgp.gp.measurement import Measurement
from privgp.plan.part import Part
from privgp.release.rates import RatePosterior
from privgp.types import Array, Integers, Positive


@dataclass(frozen=True)
class AtTargets:
    """``C y`` plus noise at the targets. ``covariance``: of f about it, (targets, targets) as
    ``diag(model_variance) + noise_root noise_root^T``."""

    targets: Annotated[Array, "targets columns"]
    mean: Annotated[Array, "targets"]
    model_variance: Annotated[Array, "targets"]
    noise_root: Annotated[Array, "targets measured"]
    noise_variance: Positive

    @classmethod
    def of(cls, plan: Part, measurement: Measurement, centre: float) -> Self:
        assert plan.unbiased is not None
        R = plan.unbiased.reconstruction
        return cls(
            targets=plan.targets,
            mean=R @ measurement.values + centre,
            model_variance=plan.unbiased.variance,
            noise_root=R * measurement.noise_std,
            noise_variance=plan.start.noise_variance,
        )

    def mean_at(self, X: Array) -> Array:
        """What was released at the targets that the rows of X are, (rows,)."""
        return self.mean[self._find(X)]

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        at = self._find(X)
        return self.mean[at], self.model_variance[at] + self.privacy_variance(X)

    def mixture(self, X: Array) -> Mixture:
        mean, variance = self.mean_and_variance(X)
        return Mixture(mean[None], variance[None], np.ones(1), np.array([self.noise_variance]))

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        at = self._find(X)
        root = self.noise_root[at]
        return self.mean[at], np.diag(self.model_variance[at]) + root @ root.T

    def privacy_variance(self, X: Array) -> Array:
        return np.asarray(np.square(self.noise_root).sum(axis=1)[self._find(X)])

    def _find(self, X: Array) -> Integers:
        """The target that every row of X is; a row that is none raises."""
        places = {row.tobytes(): i for i, row in enumerate(self.targets + 0.0)}
        try:
            return np.array([places[row.tobytes()] for row in X + 0.0], dtype=np.int64)
        except KeyError:
            raise ValueError(
                "reconstruct='unbiased' predicts at its targets only; "
                "use reconstruct='posterior' to predict anywhere."
            ) from None


Answer = AtTargets | Posterior | RatePosterior  # what predicts a number, a count or a rate
