"""The arguments of a function, checked and turned into its public model; and what it promises."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from privgp.models.arguments import check_choice, inducing_inputs
from privgp.models.state_contents import Contents
from privgp.plan.functions import SENSITIVITIES, FunctionModel
from privgp.plan.kernels import check_kernel, split_noise
from privgp.plan.smoothers import choose_nodes
from privgp.privacy.guarantee import OUTPUTS_NEIGHBOURS, OUTPUTS_UNIT, SIMULATION, Guarantee
from privgp.types import Array
from privgp.vault.sample import LATTICE_SAMPLER
from privgp.vault.state import Draws


def function_model(
    given: Any, noise_variance: Any, inducing: Any, sensitivity: Any, inputs: Array, counts: Array
) -> FunctionModel:
    """The public model on these distinct inputs, each of which occurs ``counts`` times."""
    check_choice("sensitivity", sensitivity, SENSITIVITIES)
    if not isinstance(given, Kernel):
        raise ValueError("kernel must be a scikit-learn kernel.")
    kernel, white = split_noise(clone(given))
    if kernel is None:
        raise ValueError("kernel holds nothing but noise.")
    check_kernel(kernel, inputs.shape[1])
    if white is not None:
        if noise_variance is not None:
            raise ValueError("give the noise once: as noise_variance or as a WhiteKernel.")
        noise_variance = float(white.noise_level)
    if isinstance(noise_variance, bool) or not isinstance(noise_variance, Real):
        raise ValueError("noise_variance must be a positive number.")
    noise = float(noise_variance)
    if not (np.isfinite(noise) and noise > 0):
        raise ValueError(f"noise_variance must be positive and finite, got {noise}.")
    if inducing is None:
        return FunctionModel(kernel, noise, inputs, counts)
    if sensitivity != "exact":
        raise ValueError("inducing inputs go with sensitivity='exact' only.")
    return FunctionModel(kernel, noise, inputs, counts, _nodes(inducing, kernel, inputs))


def _nodes(inducing: Any, kernel: Kernel, inputs: Array) -> Array:
    """Inducing inputs as given, or so many of the inputs, chosen by the kernel."""
    given = inducing_inputs(inducing, inputs.shape[1])
    return inputs[choose_nodes(kernel, inputs, given)] if isinstance(given, int) else given


def first_contents(
    model: FunctionModel,
    draws: Draws,
    sensitivity: str,
    norm: float,
    names: Any,
    *,
    y_bounds: tuple[float, float],
    epsilon: float,
    delta: float,
) -> Contents:
    """A function of which nothing has been asked."""
    return Contents(
        model=model,
        y_bounds=y_bounds,
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        norm=norm,
        guarantee=_guarantee(epsilon, delta, model, draws),
        names=None if names is None else tuple(str(name) for name in names),
        draws=draws,
        points=np.empty((0, model.inputs.shape[1])),
        answers=np.empty(0),
    )


def parameters(contents: Contents) -> dict[str, Any]:
    """The arguments that a function was made with."""
    c = contents
    return {
        "kernel": c.model.kernel,
        "noise_variance": c.model.noise_variance,
        "y_bounds": c.y_bounds,
        "epsilon": c.epsilon,
        "delta": c.delta,
        "sensitivity": c.sensitivity,
        "inducing": c.model.nodes,
        "random_state": c.draws.seed,
    }


def _guarantee(epsilon: float, delta: float, model: FunctionModel, draws: Draws) -> Guarantee:
    """What is promised of all answers together."""
    noise = draws.noise
    how = (
        f"in {noise.size:,} numbers through inducing inputs"
        if model.nodes is not None
        else f"drawn where it is asked for, at most {noise.size:,} points"
    )
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=OUTPUTS_UNIT,
        neighbours=OUTPUTS_NEIGHBOURS,
        assumptions=(
            "the inputs and the number of rows are public",
            "kernel, noise variance, bounds, inducing inputs and budget were chosen without "
            "looking at the outputs",
            "no draw is made twice: the state of the function is kept and never set back",
        ),
        mechanism=f"one Gaussian mechanism on the posterior mean as a function, {how}; all answers "
        "together are covered",
        sampler=LATTICE_SAMPLER
        if draws.seed is None
        else f"ordinary floating-point noise: {SIMULATION}",
        noise_multipliers=(noise.multiplier,),
        delta_slack=noise.delta_slack,
    )
