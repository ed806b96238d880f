"""The arguments of a function, checked and turned into its public model; and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from privgp.models.arguments import check_choice, target_points
from privgp.models.state_contents import Contents
from privgp.plan.functions import SENSITIVITIES, FunctionModel
from privgp.plan.inputs import collapse
from privgp.plan.kernels import check_kernel, split_noise, variance
from privgp.plan.smoothers import choose_nodes
from privgp.privacy.guarantee import OUTPUTS_NEIGHBOURS, OUTPUTS_UNIT, SIMULATION, Guarantee
from privgp.types import Array
from privgp.vault.sample import LATTICE_SAMPLER
from privgp.vault.state import Draws

if TYPE_CHECKING:
    from privgp.release.plots_function import Shown


def check_dominance(sensitivity: str, dominance: Any) -> None:
    """Refuse a declared dominance that is no positive number, or goes with no other argument."""
    if dominance is None:
        return
    if sensitivity != "varah":
        raise ValueError("dominance goes with sensitivity='varah' only.")
    if isinstance(dominance, bool) or not isinstance(dominance, Real):
        raise ValueError("dominance must be a positive number.")
    if not 0.0 < float(dominance) < np.inf:
        raise ValueError(f"dominance must be positive and finite, got {dominance}.")


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
    if isinstance(inducing, Integral) and not isinstance(inducing, bool):
        if inducing < 1:
            raise ValueError(f"inducing must be at least 1, got {inducing}.")
        return inputs[choose_nodes(kernel, inputs, int(inducing))]
    try:
        nodes = target_points(inducing, inputs.shape[1])
    except ValueError as problem:
        raise ValueError(str(problem).replace("targets", "inducing")) from None
    assert nodes is not None
    return collapse(nodes)[0]


def first_contents(
    model: FunctionModel,
    draws: Draws,
    sensitivity: str,
    norm: float,
    names: Any,
    *,
    dominance: float | None = None,
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
        dominance=None if dominance is None else float(dominance),
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
        "dominance": c.dominance,
        "inducing": c.model.nodes,
        "random_state": c.draws.seed,
    }


def shown(contents: Contents, release: Callable[[Array], Array]) -> Shown:
    """What a picture of the function needs."""
    from privgp.release.plots_function import Shown  # matplotlib takes its time
    from privgp.release.plots_style import limits

    c = contents
    scale = 0.5 * (c.y_bounds[1] - c.y_bounds[0]) * c.draws.noise.std
    return Shown(
        release=release,
        noise_std=lambda X: scale * c.model.noise_shape(X),
        largest_std=scale * float(np.sqrt(variance(c.model.kernel))),
        extent=np.array([limits(column, 0.0) for column in c.model.inputs.T]),
        inputs=c.model.inputs,
        answered=(c.points, c.answers),
        bounds=c.y_bounds,
        names=c.names,
        guarantee=c.guarantee,
    )


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
