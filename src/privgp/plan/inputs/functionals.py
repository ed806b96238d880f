"""What a strategy measures of the unknown function, in terms of its values at a few nodes."""

from __future__ import annotations

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.smoothers import Nystrom
from privgp.plan.strategy import OutputSums


def functionals(strategy: OutputSums, factor: Nystrom) -> Functionals:
    """Describe a strategy on the distinct inputs that ``factor`` was made from."""
    B, J = strategy.matrix, factor.interpolation
    per_input = strategy.per_input
    g, e = strategy.row_weights, strategy.energy_shares
    mass, squares = per_input(g), per_input(g * g)
    variance = float(np.square(factor.factor[0]).sum() + factor.residual[0])
    unexplained = B * (mass * np.sqrt(factor.residual / variance))
    exact = factor.chosen.size == B.shape[1]
    if exact:  # the interpolation is the identity
        weights, energy_gram = B * mass, np.diag(per_input(e))
        energy_cross = per_input(e * g)[:, None] * B.T
    else:
        shared = J * np.sqrt(per_input(e))
        weights, energy_gram = (B * mass) @ J.T, shared @ shared.T
        energy_cross = J @ (per_input(e * g)[:, None] * B.T)
    return Functionals(
        nodes=factor.nodes,
        weights=weights,
        noise_gram=(B * squares) @ B.T,
        residual_gram=np.zeros((len(B), len(B))) if exact else unexplained @ unexplained.T,
        energy_total=float(e.sum()),
        energy_gram=energy_gram,
        energy_cross=energy_cross,
        energy_noise_gram=(B * per_input(e * g * g)) @ B.T,
    )
