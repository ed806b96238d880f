"""Weak public priors on hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.input_maps import InputMap
from privgp.types import Array, Positive

COMMON_LENGTHSCALE_STD = 1.0
OTHER_STD = 0.7
NOISE_STD = 1.4  # of the noise std; its level is the least known of all beforehand


@dataclass(frozen=True)
class Hyperparameters:
    """One model: a kernel on mapped inputs and the variance of an output about the function."""

    kernel: Kernel
    noise_variance: Positive
    input_map: InputMap = field(default_factory=InputMap)
    weight: Positive = 1.0


@dataclass(frozen=True)
class Prior:
    """Log-normal about the starting values: ``log parameters = centre + root @ z``, z standard.

    The last parameter is the noise variance where it is free.
    """

    start: Hyperparameters
    centre: Annotated[Array, "parameters"]
    root: Annotated[Array, "parameters parameters"]
    noise_free: bool

    @property
    def size(self) -> int:
        return len(self.centre)

    def at(self, z: Array) -> Hyperparameters:
        logs = np.clip(self.centre + self.root @ z, -200.0, 200.0)
        count = self.size - self.noise_free
        kernel = self.start.kernel
        if count:
            kernel = kernel.clone_with_theta(logs[:count])
        noise = float(np.exp(logs[-1])) if self.noise_free else self.start.noise_variance
        return Hyperparameters(kernel, noise, self.start.input_map)


def prior_about(start: Hyperparameters, *, noise_free: bool) -> Prior:
    """Weak prior: lengthscales share a common factor; variances move as squares of their roots."""
    blocks: list[Array] = []
    for parameter in start.kernel.hyperparameters:
        if parameter.fixed:
            continue
        count = parameter.n_elements
        if parameter.name.endswith("length_scale"):
            root = np.full((count, 1), COMMON_LENGTHSCALE_STD)
            if count > 1:
                root = np.hstack([root, OTHER_STD * np.eye(count)])
        else:
            # a variance moves as the square of a standard deviation
            power = 2.0 if parameter.name.endswith("constant_value") else 1.0
            root = power * OTHER_STD * np.eye(count)
        blocks.append(np.linalg.cholesky(root @ root.T))
    centre = np.asarray(start.kernel.theta, dtype=float)
    if noise_free:
        blocks.append(np.array([[2.0 * NOISE_STD]]))
        centre = np.append(centre, np.log(start.noise_variance))
    root = np.zeros((len(centre), len(centre)))
    at = 0
    for block in blocks:
        root[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    return Prior(start, centre, root, noise_free)
