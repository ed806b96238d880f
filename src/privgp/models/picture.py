"""What pictures of models and of private functions show; no private output exists here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.gp.kernels.evaluate import variance as kernel_variance
from privgp.pictures.released import NOISE, OUTPUTS, PRIVACY, TOTAL, Released
from privgp.pictures.style import budget_text, limits, number
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor
    from privgp.vault.states.kept import Kept

# Points along a curve, either side of a map, a slice.
MODEL_POINTS, FUNCTION_POINTS = (300, 80, 300), (200, 32, 80)


def released_model(model: PrivateGPRegressor, output: str, observation: bool) -> Released:
    """The mean with the ranges of the latent function, of the privacy noise inside it (variances
    add, widths do not) and, with ``observation``, of new outputs (not on a map)."""
    nodes, release, promise = model.functionals_.nodes, model.release_, model.guarantee_

    def values(X: Array) -> tuple[Array, dict[str, Array]]:
        if nodes.shape[1] != 2:
            return ranges(model, X, observation)
        mean, variance = release.mean_and_variance(X)
        return mean, {TOTAL: np.sqrt(variance)}

    return Released(
        values=values,
        extent=_range_of(nodes),
        points=MODEL_POINTS[min(nodes.shape[1], 3) - 1],
        held_at=np.median(nodes, axis=0),
        held="at their median",
        title=budget_text(promise.epsilon, promise.delta),
        names=getattr(model, "feature_names_in_", None),
        output=output,
        curve="mean",
        public_inputs=nodes,
        simulation=promise.is_simulation,
        targets=None if model._at_targets is None else model._at_targets.targets,
    )


def ranges(
    model: PrivateGPRegressor, X: Array, observation: bool
) -> tuple[Array, dict[str, Array]]:
    """Mean at the rows of X, and stds there by range, the widest first."""
    mean, total = model.release_.mean_and_variance(X)
    variances = {OUTPUTS: model._observed(mean, total)} if observation else {}
    privacy = np.minimum(model.release_.privacy_variance(X), total)
    variances |= {TOTAL: total, PRIVACY: privacy}
    return mean, {name: np.sqrt(variance) for name, variance in variances.items()}


def released_function(kept: Kept, output: str) -> Released:
    """The function over the range of its public inputs, or over its declared domain, with the range
    of its noise, in which the prediction without noise lies, point by point, and earlier answers.
    Drawing asks for 200 points, 1,024 on a map, 80 per slice: ValueError if fewer are left."""
    contents: Any = kept.contents
    model, promise = contents.model, contents.guarantee
    inputs = model.inputs if model.domain is None else None  # with a domain they are private
    extent = _range_of(model.inputs) if model.domain is None else np.array(model.domain)
    low, high = contents.y_bounds
    scale = 0.5 * (high - low) * contents.draws.noise.std
    largest = number(scale * float(np.sqrt(kernel_variance(model.kernel))))
    return Released(
        values=lambda X: (kept.ask(X), {NOISE: scale * model.noise_shape(X)}),
        extent=extent,
        points=FUNCTION_POINTS[min(len(extent), 3) - 1],
        held_at=extent.mean(axis=1),
        held="in the middle of their range",
        title=f"{budget_text(promise.epsilon, promise.delta)}; std of the noise {largest}",
        names=contents.names,
        output=output,
        curve="released function",
        public_inputs=inputs,
        simulation=promise.is_simulation,
        answered=(contents.draws.points, contents.draws.answers),
        bounds=contents.y_bounds,
    )


def _range_of(inputs: Array) -> Array:
    return np.array([limits(column, 0.0) for column in inputs.T])
