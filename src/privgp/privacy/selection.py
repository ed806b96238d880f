"""One of many, chosen with probabilities that hardly depend on any one record. Mechanisms see
utilities ``u`` (larger is better) of sensitivity Delta and are epsilon-private at scale
``2 Delta / epsilon``.

One kind of utility is made of cross-validation residuals, linear maps of the outputs: for outputs v
scaled to [-1, 1] and folds with training rows T and test rows V, the stacked residuals ``R v`` have
entries ``v_V - C v_T``, and ``sqrt(||R v||^2 + noise^2)`` moves by at most the norm of
``R (v - v')``. Proofs: docs/proofs/select.md."""

import math
from dataclasses import dataclass

import numpy as np

from privgp.gp.rounding import UNIT_ROUNDOFF, rounding
from privgp.types import Array, Integers


def selection_scale(sensitivity: float, epsilon: float) -> float:
    """``2 Delta / epsilon``, rounded up: the scale at which choices are epsilon-private.

    Parameters
    ----------
    sensitivity
        Delta, how far one person moves any utility.
    epsilon
        The budget of the choice.

    """
    scale = 2.0 * sensitivity / epsilon * (1.0 + 2.0**-50)
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError("the sensitivity of the utilities must be positive and finite.")
    return scale


@dataclass(frozen=True)
class Fold:
    """One part of R: some rows predicted from others. All fields are public.

    Attributes
    ----------
    train : (train,), the rows that are predicted from
    test : (test,), the rows that are predicted
    index : (train,), the distinct input of every training row
    weights : C, (test, distinct inputs), stored floats that multiply the sums of outputs there

    """

    train: Integers
    test: Integers
    index: Integers
    weights: Array


class ResidualBound:
    """Adds up, fold by fold, what bounds the movement of the computed norm: public numbers only.

    Parameters
    ----------
    rows : how many outputs there are

    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._squares = np.zeros(rows)  # of the columns of R
        self._reach = 0.0  # sum of squares of the absolute row sums of R
        self._tested = 0
        self._error = 0.0  # sum of squares of the rounding errors of the residuals

    def add(self, fold: Fold) -> None:
        """Take in one fold: the squares of its columns, and a bound of its rounding errors."""
        C, counts = fold.weights, np.bincount(fold.index, minlength=fold.weights.shape[1])
        columns = np.einsum("ij,ij->j", C, C) * (1.0 + rounding(len(C) + 2))
        self._squares[fold.train] += columns[fold.index]
        self._squares[fold.test] += 1.0
        reach = 1.0 + np.abs(C) @ counts.astype(float)
        self._reach += float(reach @ reach)
        self._error += float(reach @ reach) * rounding(len(fold.train) + C.shape[1] + 8) ** 2
        self._tested += len(fold.test)

    def sensitivity(self, noise: float, people: Integers | None = None) -> float:
        """How far one person moves ``sqrt(||R v||^2 + noise^2)`` as it is computed.

        ``2 max_j ||R_:j||``, for a person the sum over their rows, and twice the float error.

        Parameters
        ----------
        noise
            The constant inside the root, in the same units.
        people
            (rows,), who each row belongs to; by default every row is a person.

        """
        norms: Array = np.asarray(np.sqrt(self._squares) * (1.0 + 1e-12), dtype=np.float64)
        if people is not None:
            norms = np.bincount(people, norms).astype(float)
            norms *= 1.0 + rounding(self._rows + 2)
        largest = float(np.hypot(np.sqrt(self._reach), noise))
        error = float(np.sqrt(self._error)) + rounding(self._tested + 16) * largest
        return 2.0 * (float(norms.max()) + 1.01 * error) * (1.0 + 8.0 * UNIT_ROUNDOFF)
