"""What the measured numbers are of the unknown function, in terms of its values at a few nodes.

With few distinct inputs the nodes are the inputs and nothing is approximated. With many, values at
the inputs are interpolated from the nodes by the plan's kernel, and the variance that interpolation
leaves out is kept as a separate term; then nothing here grows with the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from privgp.types import Array, Positive, later


@dataclass(frozen=True)
class Functionals:
    """cov(t) = A k(Z, Z) A^T + s^2 noise_gram + k(x, x) residual_gram + fixed_gram + noise.

    Everything is public: it depends on inputs and on what is measured, never on outputs.

    Attributes
    ----------
    nodes : Z, (nodes, inputs' columns)
    weights : A, (measured, nodes)
    noise_gram, residual_gram : (measured, measured)
    energy_total : the sum of e_i, of the energy ``sum e_i y_i^2``
    energy_gram : G, (nodes, nodes)
    energy_cross : H, (nodes, measured)
    energy_noise_gram : N, (measured, measured), so that the weighted sum over rows of
        ``cov(t, y_i) cov(y_i, t)`` is ``A K G K A^T + s^2 (A K H + (A K H)^T) + s^4 N``
    fixed_gram : (measured, measured), what no hyperparameter changes, such as the effect of
        uncertain counts if inputs are private; None for nothing
    scatter : C, (measured, bins), of records at unknown places of bins, whose nodes stand
        together. The covariance has ``- C diag(v) C^T`` besides, with v the variances of f's
        averages over the bins, so that with ``residual_gram = C C^T`` what f varies within bins
        remains.
    shares : (nodes per bin,), summing to 1, the weights of the nodes in such an average
    energy_centre : o, (nodes,), the function about which squared outputs were summed, so that the energy is
        ``sum e_i (y_i - o_i)^2``; None for the middle of the bounds

    """

    nodes: Annotated[Array, "nodes columns"]
    weights: Annotated[Array, "measured nodes"]
    noise_gram: Annotated[Array, "measured measured"]
    residual_gram: Annotated[Array, "measured measured"]
    energy_total: Positive
    energy_gram: Annotated[Array, "nodes nodes"]
    energy_cross: Annotated[Array, "nodes measured"]
    energy_noise_gram: Annotated[Array, "measured measured"]
    fixed_gram: Annotated[Array, "measured measured"] | None = None
    scatter: Annotated[Array, "measured bins"] | None = None
    shares: Annotated[Array, "parts"] | None = None
    energy_centre: Annotated[Array, "nodes"] | None = later(None)

    def in_units(self, unit: float) -> Self:
        """The same if outcomes are ``unit`` times a rate.

        Their means grow with the unit, and so do the variances about these, as those of counts
        do.
        """
        fixed, scatter = self.fixed_gram, self.scatter
        return replace(
            self,
            weights=unit * self.weights,
            noise_gram=unit * self.noise_gram,
            residual_gram=unit**2 * self.residual_gram,
            energy_total=unit * self.energy_total,
            energy_gram=unit * self.energy_gram,
            energy_cross=unit * self.energy_cross,
            energy_noise_gram=unit * self.energy_noise_gram,
            fixed_gram=None if fixed is None else unit**2 * fixed,
            scatter=None if scatter is None else unit * scatter,
        )

    def average_variances(self, K: Array) -> Array:
        """The variances v of f's averages over the bins, (bins,), from K, (nodes, nodes)."""
        assert self.shares is not None
        parts = len(self.shares)
        blocks = K.reshape(len(K) // parts, parts, -1, parts)
        each = np.arange(len(blocks))
        return np.asarray(
            np.einsum("iab,a,b->i", blocks[each, :, each, :], self.shares, self.shares)
        )

    def average_pull(self, G: Array, slope: Array) -> None:
        """Add to G what a gradient by the averages' variances contributes, in place.

        Parameters
        ----------
        G
            (nodes, nodes), the gradient with respect to K.
        slope
            (bins,), the gradient with respect to v.

        """
        assert self.shares is not None
        parts = len(self.shares)
        blocks = G.reshape(len(G) // parts, parts, -1, parts)
        each = np.arange(len(blocks))
        blocks[each, :, each, :] += slope[:, None, None] * np.outer(self.shares, self.shares)


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
