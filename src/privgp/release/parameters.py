"""Constructor parameters of a regressor as JSON, and back; the seed of a simulation is dropped."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from privgp.gp.kernels.codec import kernel_from, kernel_tree
from privgp.plan.build import MECHANISMS, OBJECTIVES, RECONSTRUCTIONS
from privgp.plan.inputs.arguments import MOST_INDUCING, check_bounds, target_points
from privgp.privacy.budget import MAX_EPSILON
from privgp.storage import fields as field
from privgp.storage.archive import DamagedFile
from privgp.types import Array

_CHOICES = {
    "protect": ("outputs", "records"),
    "objective": OBJECTIVES,
    "reconstruct": RECONSTRUCTIONS,
    "hyperparameters": ("learned", "fixed"),
    "mechanism": MECHANISMS,
}
_NAMES = (
    *("kernel", "noise_variance", "y_bounds", "x_bounds", "epsilon", "delta", "inducing"),
    *_CHOICES,
)
POINTS = "points"  # inducing inputs were given: they are the nodes of the functionals


def parameters_tree(
    parameters: dict[str, Any], columns: int
) -> tuple[dict[str, Any], Array | None]:
    """JSON of the parameters but the targets, and the targets."""
    kernel, noise = parameters["kernel"], parameters["noise_variance"]
    x_bounds = parameters["x_bounds"]
    tree = {
        "kernel": None if kernel is None else kernel_tree(kernel),
        "noise_variance": None if noise is None else float(noise),
        "y_bounds": [float(end) for end in parameters["y_bounds"]],
        "x_bounds": None if x_bounds is None else np.asarray(x_bounds, dtype=float).tolist(),
        "epsilon": float(parameters["epsilon"]),
        "delta": float(parameters["delta"]),
        "inducing": _inducing_tree(parameters["inducing"]),
        **{name: str(parameters[name]) for name in _CHOICES},
    }
    return tree, target_points(parameters["targets"], columns)


def parameters_from(value: Any, columns: int, targets: Array | None) -> dict[str, Any]:
    """Arguments for the constructor, checked."""
    tree = field.record(value, "parameters", _NAMES)
    kernel, noise, x_bounds = tree["kernel"], tree["noise_variance"], tree["x_bounds"]
    return {
        "kernel": None if kernel is None else kernel_from(kernel),
        "noise_variance": None if noise is None else field.positive(noise, "noise variance"),
        "y_bounds": _interval(tree["y_bounds"]),
        "x_bounds": None if x_bounds is None else _intervals(x_bounds, columns),
        "epsilon": field.positive(tree["epsilon"], "epsilon", MAX_EPSILON),
        "delta": field.positive(tree["delta"], "delta", 1.0),
        "targets": targets,
        "inducing": _inducing_from(tree["inducing"]),
        **{name: field.choice(tree[name], name, known) for name, known in _CHOICES.items()},
    }


def _inducing_tree(value: Any) -> int | str | None:
    return int(value) if isinstance(value, Integral) else None if value is None else POINTS


def _inducing_from(value: Any) -> int | str | None:
    if value is None or value == POINTS:
        return None if value is None else POINTS
    return field.whole(value, "number of inducing inputs", 1, MOST_INDUCING)


def _intervals(value: Any, columns: int) -> Any:
    """One interval, or one per column."""
    found = field.items(value, "bounds", least=1)
    if not isinstance(found[0], list):
        return _interval(found)
    if len(found) != columns:
        raise DamagedFile("its bounds are not one pair per column")
    return tuple(_interval(entry) for entry in found)


def _interval(value: Any) -> tuple[float, float]:
    ends = [field.number(end, "bounds") for end in field.items(value, "bounds")]
    try:
        return check_bounds("bounds", ends)
    except ValueError:
        raise DamagedFile("its bounds are broken") from None
