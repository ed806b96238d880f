"""Posteriors of many synthetic datasets at once: what kernel settings would do, before any data.

For a unit kernel k and every draw j, ``K_j = Q diag(w) Q'`` once; then for any ridge r^2 the
posterior mean at the points is ``H diag(1 / (w + r^2)) Q'y`` and its variance
``1 - H^2 / (w + r^2)``, H = k(T, X) Q. Nothing here is private: the draws come from a prior."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import evaluate
from privgp.types import Array


class Posteriors(Protocol):
    """Posteriors of many datasets under one kernel of variance 1, for any ridge, as ``ManyPosteriors``."""

    def at(self, ridge: float) -> tuple[Array, Array]: ...
    def effective_dimension(self, ridge: float) -> Array: ...


@dataclass(frozen=True)
class PriorDraws:
    """Synthetic datasets and the functions behind them.

    Attributes
    ----------
    inputs : (draws, records, columns)
    outputs : (draws, records), about the centre of their bounds
    points : (points, columns)
    truth : (draws, points), the functions there

    """

    inputs: Array = field(repr=False)
    outputs: Array = field(repr=False)
    points: Array = field(repr=False)
    truth: Array = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs", "points", "truth"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.inputs.ndim != 3 or self.points.ndim != 2 or self.truth.ndim != 2:
            raise ValueError(
                "prior draws need inputs (draws, records, columns) and truth (draws, points)."
            )
        (draws, records, columns), points = self.inputs.shape, len(self.points)
        shapes = self.outputs.shape, self.points.shape[1], self.truth.shape
        if shapes != ((draws, records), columns, (draws, points)) or 0 in (draws, records, points):
            raise ValueError("the parts of prior draws do not belong together.")
        if not all(np.all(np.isfinite(part)) for part in vars(self).values()):
            raise ValueError("prior draws contain NaN or infinity.")

    @property
    def records(self) -> int:
        """How many records each dataset has."""
        return int(self.inputs.shape[1])

    def posteriors(self, kernel: Kernel) -> "Posteriors":
        """Their posteriors under a kernel of variance 1."""
        return ManyPosteriors(self, kernel)


class ManyPosteriors:
    """The posteriors of all draws under one unit kernel, for any ridge.

    Parameters
    ----------
    draws : synthetic
    kernel : one of variance 1

    """

    def __init__(self, draws: PriorDraws, kernel: Kernel) -> None:
        spectra, vectors = np.linalg.eigh([evaluate(kernel, X) for X in draws.inputs])
        self._spectra = np.maximum(spectra, 0.0)
        crosses = np.stack([evaluate(kernel, draws.points, X) for X in draws.inputs])
        self._crosses = crosses @ vectors
        self._outputs = np.einsum("jni,jn->ji", vectors, draws.outputs)
        self._squares = self._crosses**2

    def at(self, ridge: float) -> tuple[Array, Array]:
        """Mean and variance, each (draws, points), the kernel having variance 1.

        Parameters
        ----------
        ridge
            r^2, noise variance over kernel variance.

        """
        weights = 1.0 / (self._spectra + ridge)
        mean = np.einsum("jti,ji->jt", self._crosses, weights * self._outputs)
        variance = 1.0 - np.einsum("jti,ji->jt", self._squares, weights)
        return mean, np.maximum(variance, 1e-12)

    def effective_dimension(self, ridge: float) -> Array:
        """``tr K (K + r^2 I)^-1``, (draws,)."""
        return np.asarray((self._spectra / (self._spectra + ridge)).sum(axis=1))
