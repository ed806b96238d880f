"""Priors of functions that are rougher than the default kernel expects.

The default kernel, a Matern kernel of smoothness 5/2, has one lengthscale. Temperatures over a year, or prices on
a map, change slowly over long ranges and also from place to place. Intervals that follow from one
lengthscale are then too narrow between the places that were measured.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from privgp.gp.priors import COMMON_LENGTHSCALE_STD, OTHER_STD, Prior

SHORT = 0.125  # lengthscale of the short range, over that of the long one
SHORT_VARIANCE = 0.1  # over that of the whole function
ROUGH = 0.5  # smoothness of a kernel whose functions have a kink everywhere


def rougher(prior: Prior) -> tuple[Prior, ...]:
    """The prior with a kernel of smoothness 1/2, and with a second component of short range.

    Parameters
    ----------
    prior : Prior
        About the default kernel.

    Returns
    -------
    tuple of Prior
        Empty where the kernel has not exactly one Matern kernel of smoothness 5/2, or nothing is free.

    """
    leaves = _materns(prior.start.kernel)
    if len(leaves) != 1 or leaves[0].nu != 2.5 or prior.start.kernel.theta.size == 0:
        return ()
    return _with_smoothness(prior, ROUGH), _with_short_range(prior)


def _materns(kernel: Kernel) -> list[Matern]:
    if isinstance(kernel, Matern):
        return [kernel]
    inner = (getattr(kernel, name, None) for name in ("k1", "k2"))
    return [leaf for each in inner if each is not None for leaf in _materns(each)]


def lengthscales(kernel: Kernel) -> list[float]:
    """Of a kernel with exactly one Matern kernel; none of any other."""
    leaves = _materns(kernel)
    return np.atleast_1d(leaves[0].length_scale).tolist() if len(leaves) == 1 else []


def _with_smoothness(prior: Prior, nu: float) -> Prior:
    kernel = deepcopy(prior.start.kernel)
    _materns(kernel)[0].nu = nu
    return replace(prior, start=replace(prior.start, kernel=kernel))


def _with_short_range(prior: Prior) -> Prior:
    """The kernel plus a short range, whose lengthscales move with the long ones and by themselves."""
    kernel, names = prior.start.kernel, []
    for parameter in kernel.hyperparameters:
        if not parameter.fixed:
            names += [parameter.name.rsplit("__", 1)[-1]] * parameter.n_elements
    scales = np.array([name == "length_scale" for name in names])
    long, variance = _materns(kernel)[0].length_scale, float(np.exp(kernel.theta[~scales][0]))
    short = ConstantKernel(SHORT_VARIANCE * variance) * Matern(SHORT * long, nu=1.5)
    count, moves = len(names), prior.size - prior.noise_free
    own = prior.root[:count, :moves]
    along = own[scales]
    root = np.zeros((count + 1 + len(along), moves + 2))
    root[:count, :moves] = own
    root[count, moves] = 2.0 * OTHER_STD
    root[count + 1 :, :moves], root[count + 1 :, -1] = along, COMMON_LENGTHSCALE_STD
    centre = np.concatenate([prior.centre[:count], short.theta])
    if prior.noise_free:
        root = np.block(
            [[root, np.zeros((len(root), 1))], [np.zeros((1, moves + 2)), prior.root[-1:, -1:]]]
        )
        centre = np.append(centre, prior.centre[-1])
    return Prior(replace(prior.start, kernel=kernel + short), centre, root, prior.noise_free)
