"""Several measurements of one function as one: numbers below each other, nodes in common.

Numbers with other noise are scaled so that one noise std serves all. What outputs scatter about the
function is independent between measurements of different rows; two measurements of the same rows
share it, and its covariance lies beside the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters
from privgp.gp.smoothers import choose_nodes, nystrom, stable_cholesky
from privgp.types import Array, Integers

MOST_NODES = 512  # beyond these, functions are interpolated from the best of them
ROUNDING = 1e-9


@dataclass(frozen=True)
class Shared:
    """Rows that two measurements have in common, (earlier measured, new measured).

    Attributes
    ----------
    noise : the sum over these rows of products of their weights in both
    energy : the same with the row's share in the energy as a further factor

    """

    noise: Array
    energy: Array


@dataclass(frozen=True)
class Stacked:
    """Several measurements of one function as one.

    Attributes
    ----------
    functionals : the numbers of all, below each other, in terms of common nodes
    measurement : their values, scaled to the noise std of the first

    """

    functionals: Functionals
    measurement: Measurement

    def with_another(
        self,
        functionals: Functionals,
        measurement: Measurement,
        start: Hyperparameters,
        shared: Shared | None = None,
    ) -> Stacked:
        """With the numbers of one more measurement below.

        Parameters
        ----------
        functionals, measurement
            Functionals and values of the further measurement.
        start
            a model on inputs as they are, by which many nodes are thinned out.
        shared
            The rows that both have in common, if any. The energy then stays that of
            these rows, whose values the caller combines; that of new rows is added.

        """
        old, new = on_common_nodes(self.functionals, functionals, start)
        ratio = self.measurement.noise_std / measurement.noise_std
        new = _scale_functionals(new, ratio)
        cross = shared or Shared(*np.zeros((2, len(old.weights), len(new.weights))))
        cross = Shared(ratio * cross.noise, ratio * cross.energy)
        grown = _below(old, new, cross, again=shared is not None)
        return Stacked(grown, _longer(self.measurement, measurement, ratio))


def _below(old: Functionals, new: Functionals, cross: Shared, *, again: bool) -> Functionals:
    nothing = np.zeros_like(cross.noise)
    return Functionals(
        nodes=old.nodes,
        weights=np.vstack([old.weights, new.weights]),
        noise_gram=_certain(_blocks(old.noise_gram, cross.noise, new.noise_gram)),
        residual_gram=_blocks(old.residual_gram, nothing, new.residual_gram),
        energy_total=old.energy_total + (0.0 if again else new.energy_total),
        energy_gram=old.energy_gram + (0.0 if again else 1.0) * new.energy_gram,
        energy_cross=np.hstack([old.energy_cross, new.energy_cross]),
        energy_noise_gram=_blocks(old.energy_noise_gram, cross.energy, new.energy_noise_gram),
    )


def _longer(old: Measurement, new: Measurement, ratio: float) -> Measurement:
    """Values below each other; the energy is that of both, or none where one has none."""
    energy, std = None, 0.0
    if old.energy is not None and new.energy is not None:
        energy = old.energy + new.energy
        std = float(np.hypot(old.energy_noise_std, new.energy_noise_std))
    flags = tuple(bool(flag) for flag in (*old.laplace, *new.laplace))
    alike = flags[0] if len({*flags}) == 1 else flags
    values = np.concatenate([old.values, ratio * new.values])
    return Measurement(values, old.noise_std, energy, std, None, alike)


def _scale_functionals(f: Functionals, ratio: float) -> Functionals:
    """What is measured, multiplied by a factor."""
    return replace(
        f,
        weights=ratio * f.weights,
        noise_gram=ratio**2 * f.noise_gram,
        residual_gram=ratio**2 * f.residual_gram,
        energy_cross=ratio * f.energy_cross,
        energy_noise_gram=ratio**2 * f.energy_noise_gram,
    )


def _blocks(first: Array, cross: Array, second: Array) -> Array:
    return np.asarray(np.block([[first, cross], [cross.T, second]]))


def _certain(gram: Array) -> Array:
    """The gram as a covariance: its diagonal raised where interpolated blocks are too large for one."""
    least = float(np.linalg.eigvalsh(gram)[0])
    most = float(np.diag(gram).max(initial=0.0))
    if least < -ROUNDING * most:
        gram = gram.copy()
        gram.flat[:: len(gram) + 1] -= least
    return gram


def on_common_nodes(
    one: Functionals, two: Functionals, start: Hyperparameters
) -> tuple[Functionals, Functionals]:
    """Both in terms of the same nodes: all of them, or the best 512 of more.

    Parameters
    ----------
    one, two
        With nodes in the same columns.
    start
        The model whose kernel chooses and interpolates.

    """
    nodes, places = np.unique(np.vstack([one.nodes, two.nodes]), axis=0, return_inverse=True)
    places = np.asarray(places).ravel()
    first, second = places[: len(one.nodes)], places[len(one.nodes) :]
    wide = _among(one, nodes, first), _among(two, nodes, second)
    if len(nodes) <= MOST_NODES:
        return wide
    chosen = choose_nodes(start.kernel, nodes, MOST_NODES)
    return _thin_nodes(wide[0], chosen, start), _thin_nodes(wide[1], chosen, start)


def _among(f: Functionals, nodes: Array, places: Integers) -> Functionals:
    """The same where its nodes are some of these."""
    if np.array_equal(f.nodes, nodes):
        return f
    weights = np.zeros((len(f.weights), len(nodes)))
    gram = np.zeros((len(nodes), len(nodes)))
    cross = np.zeros((len(nodes), f.energy_cross.shape[1]))
    weights[:, places], cross[places] = f.weights, f.energy_cross
    gram[np.ix_(places, places)] = f.energy_gram
    return replace(f, nodes=nodes, weights=weights, energy_gram=gram, energy_cross=cross)


def _thin_nodes(f: Functionals, chosen: Integers, start: Hyperparameters) -> Functionals:
    """The same with values at its nodes interpolated from the chosen ones."""
    factor = nystrom(start.kernel, f.nodes, chosen)
    J = factor.interpolation
    left = f.weights * np.sqrt(factor.residual / variance(start.kernel))
    return replace(
        f,
        nodes=f.nodes[chosen],
        weights=f.weights @ J.T,
        residual_gram=f.residual_gram + left @ left.T,
        energy_gram=J @ f.energy_gram @ J.T,
        energy_cross=J @ f.energy_cross,
    )


def sums_behind(
    weights: Array, nodes: Array, inputs: Array, mass: Array, start: Hyperparameters
) -> Array:
    """B, (measured, inputs), of numbers that are known by ``A = (B mass) J^T``, (measured, nodes).

    Exact if the nodes include the inputs; else B is the part that varies as functions through the
    nodes do: ``A (J mass J^T)^+ J``.

    Parameters
    ----------
    weights
        A, (measured, nodes).
    nodes
        (nodes, columns).
    inputs
        (inputs, columns).
    mass
        (inputs,), how many outputs there are at each.
    start
        The model whose kernel interpolates.

    """
    J = _interpolation(nodes, inputs, start)
    gram = (J * mass) @ J.T
    return np.asarray(weights @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ J)


def _interpolation(nodes: Array, inputs: Array, start: Hyperparameters) -> Array:
    """The weights that carry values at the nodes to the inputs, (nodes, inputs)."""
    _, places = np.unique(np.vstack([nodes, inputs]), axis=0, return_inverse=True)
    places = np.asarray(places).ravel()
    same = places[: len(nodes), None] == places[len(nodes) :]
    J: Array = same.astype(float)
    between = ~same.any(axis=0)
    if between.any():
        root = stable_cholesky(evaluate(start.kernel, nodes))
        cross = evaluate(start.kernel, nodes, inputs[between])
        J[:, between] = cho_solve((root, True), cross, check_finite=False)
    return J
