"""What functions of outputs and of records have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.gp.kernels.evaluate import variance
from privgp.plan.functions.records import RecordsModel
from privgp.types import Array
from privgp.vault.states.function_file import Contents

if TYPE_CHECKING:
    from privgp.pictures.functions import Shown


def parameters(contents: Contents) -> dict[str, Any]:
    """The arguments that a function was made with."""
    c = contents
    return {
        "protect": "records" if isinstance(c.model, RecordsModel) else "outputs",
        "domain": c.model.domain if isinstance(c.model, RecordsModel) else None,
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
    from privgp.pictures.functions import Shown  # matplotlib takes its time
    from privgp.pictures.style import limits

    c = contents
    if isinstance(c.model, RecordsModel):
        extent, inputs = np.array(c.model.domain), None
    else:
        inputs = c.model.inputs
        extent = np.array([limits(column, 0.0) for column in inputs.T])
    scale = 0.5 * (c.y_bounds[1] - c.y_bounds[0]) * c.draws.noise.std
    return Shown(
        release=release,
        noise_std=lambda X: scale * c.model.noise_shape(X),
        largest_std=scale * float(np.sqrt(variance(c.model.kernel))),
        extent=extent,
        inputs=inputs,
        answered=(c.points, c.answers),
        bounds=c.y_bounds,
        names=c.names,
        guarantee=c.guarantee,
    )
