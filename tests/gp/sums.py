"""Sums over parts of rows, as tests describe them."""

from __future__ import annotations

import numpy as np

from privgp.gp.measurement import Functionals
from privgp.types import Array


def sums_of_parts(B: Array, places: Array, counts: Array) -> Functionals:
    """Sums ``B s`` of outputs over parts of ``counts`` rows each, which are taken to be at these places.

    Parameters
    ----------
    B : array, (measured, parts)
        Which parts every sum is over.
    places : array, (parts, inputs)
        Where the rows of every part are.
    counts : array, (parts,)
        How many rows a part has.

    """
    weights, squares = B * counts, (B * counts) @ B.T
    return Functionals(
        nodes=places,
        weights=weights,
        noise_gram=squares,
        residual_gram=np.zeros_like(squares),
        energy_total=float(counts.sum()),
        energy_gram=np.diag(counts),
        energy_cross=weights.T.copy(),
        energy_noise_gram=squares,
    )
