"""Cross-validation residuals as linear maps of the outputs, and how far one person moves their norm.

For scaled outputs u in [-1, 1] and folds with training rows T and test rows V, the stacked residuals
``R u`` have entries ``u_V - C u_T``. ``sqrt(||R u||^2 + noise^2)`` moves by at most the norm of
``R (u - u')``. Proof: docs/proofs/select.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privgp.gp.rounding import UNIT_ROUNDOFF, rounding
from privgp.types import Array, Integers


@dataclass(frozen=True)
class Fold:
    """One part of R: rows ``test`` predicted from rows ``train`` by the stored floats ``weights``.

    ``train``, ``test``: row numbers without a row in common; ``index``: (train,), the distinct input
    of every training row; ``weights``: C, (test, distinct inputs), on the sums of outputs there.
    """

    train: Integers
    test: Integers
    index: Integers
    weights: Array


class ResidualBound:
    """Adds up, fold by fold, what bounds the movement of the computed norm: public numbers only."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._squares = np.zeros(rows)  # of the columns of R
        self._reach = 0.0  # sum of squares of the absolute row sums of R
        self._tested = 0
        self._error = 0.0  # sum of squares of the rounding errors of the residuals

    def add(self, fold: Fold) -> None:
        C, counts = fold.weights, np.bincount(fold.index, minlength=fold.weights.shape[1])
        columns = np.einsum("ij,ij->j", C, C) * (1.0 + rounding(len(C) + 2))
        self._squares[fold.train] += columns[fold.index]
        self._squares[fold.test] += 1.0
        reach = 1.0 + np.abs(C) @ counts.astype(float)
        self._reach += float(reach @ reach)
        self._error += float(reach @ reach) * rounding(len(fold.train) + C.shape[1] + 8) ** 2
        self._tested += len(fold.test)

    def sensitivity(self, noise: float, people: Integers | None = None) -> float:
        """``2 max_j ||R_:j||`` (for a person the sum over their rows), and twice the float error.

        ``noise``: the constant inside the root, in the same units.
        """
        norms: Array = np.asarray(np.sqrt(self._squares) * (1.0 + 1e-12), dtype=np.float64)
        if people is not None:
            norms = np.bincount(people, norms).astype(float)
            norms *= 1.0 + rounding(self._rows + 2)
        largest = float(np.hypot(np.sqrt(self._reach), noise))
        error = float(np.sqrt(self._error)) + rounding(self._tested + 16) * largest
        return 2.0 * (float(norms.max()) + 1.01 * error) * (1.0 + 8.0 * UNIT_ROUNDOFF)
