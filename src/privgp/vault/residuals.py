"""Residuals about a public curve, clipped to a public width: the second of two stages. The curve and the
width come from the first stage's noisy numbers; docs/proofs/residuals.md shows that neither matters to the
sensitivity."""

from collections.abc import Callable
from typing import Any

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.plan.strategy import Strategy
from privgp.privacy.noise import Noise
from privgp.types import Array, Pair, Random
from privgp.vault.masked import Sealed, unseal
from privgp.vault.measure import measure
from privgp.vault.validate import check_outputs

Centre = tuple[Array, float]  # the curve at every row, and the width


def seal_residuals(data: Any, rows: int, bounds: Pair, curve: Array, width: float) -> Sealed:
    """What outputs within their bounds are above or below a public curve, clipped to +-width.

    Parameters
    ----------
    data
        Private: y.
    rows
        How many there are.
    bounds
        Declared, (low, high).
    curve
        (rows,), public.
    width
        Positive, public.

    """
    if curve.shape != (rows,) or not np.all(np.isfinite(curve)) or not 0.0 < width < np.inf:
        raise ValueError("the curve and the width must be finite numbers, one curve value per row.")
    y = np.clip(check_outputs(unseal(data), rows), *bounds)
    return Sealed(np.clip(y - curve, -width, width), rows)


def measure_twice(
    data: Any,
    bounds: Pair,
    strategy: Strategy,
    noises: tuple[Noise, ...],
    learn_centre: Callable[[Measurement], Centre],
    random_state: Random = None,
) -> tuple[Measurement, Measurement]:
    """Spend both shares of a budget: sums of outputs, then the same sums of clipped residuals.

    Parameters
    ----------
    data, bounds, strategy, random_state
        As in ``measure``.
    noises
        Of both stages.
    learn_centre
        From the first stage's released numbers to the curve at every row and the width of residuals; it
        sees no private value.

    Returns
    -------
    first, second : Measurement
        In units of y; the second one of residuals.

    """
    first = measure(data, bounds, strategy, noises[0], random_state)
    curve, width = learn_centre(first)
    left = seal_residuals(data, strategy.rows, bounds, curve, width)
    return first, measure(left, (-width, width), strategy, noises[1], random_state)
