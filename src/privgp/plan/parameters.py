"""What a regressor was asked for, as plans and releases remember it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, cast

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.plan.inputs.arguments import (
    MOST_INDUCING,
    domain_pairs,
    inducing_inputs,
    target_points,
)
from privgp.plan.several.arguments import AnyBounds, check_any_bounds
from privgp.privacy.budget import MAX_EPSILON
from privgp.privacy.noise import LAWS
from privgp.privacy.sensitivity import scaled_change
from privgp.types import Array, Pair, Positive, Share, Within, later

OBJECTIVES = ("posterior", "trace", "max", "logdet")
RECONSTRUCTIONS = ("posterior", "unbiased")
LIKELIHOODS = ("gaussian", "poisson")
MECHANISMS = ("auto", *LAWS)


@dataclass(frozen=True)
class Parameters:
    """The arguments of a regressor's constructor. The seed of a simulation is dropped."""

    kernel: Kernel | tuple[Kernel | None, ...] | None
    noise_variance: Positive | tuple[Positive | None, ...] | None
    y_bounds: AnyBounds
    x_bounds: Pair | tuple[Pair, ...] | None
    epsilon: Annotated[float, Within(np.finfo(float).tiny, MAX_EPSILON)]
    delta: Share
    targets: Annotated[Array, "* columns"] | None
    inducing: Annotated[int, Within(1, MOST_INDUCING)] | Annotated[Array, "nodes columns"] | None
    protect: Annotated[str, ("outputs", "records")]
    objective: Annotated[str, OBJECTIVES]
    reconstruct: Annotated[str, RECONSTRUCTIONS]
    hyperparameters: Annotated[str, ("learned", "fixed")]
    mechanism: Annotated[str, MECHANISMS]
    max_change: Positive | None = later(None)
    likelihood: Annotated[str, LIKELIHOODS] = later("gaussian")
    shares: tuple[Positive, ...] | None = later(None)

    @property
    def change(self) -> float:
        """How far one person moves an output that is scaled to [-1, 1]; several move all the way."""
        return scaled_change(self.max_change, cast(Pair, self.y_bounds))

    @classmethod
    def of(cls, given: Mapping[str, Any], columns: int) -> Self:
        """From arguments of the constructor, for inputs of this many columns."""
        x_bounds, inducing, noise = given["x_bounds"], given["inducing"], given["noise_variance"]
        kernel, change = given["kernel"], given["max_change"]
        converted = {
            "epsilon": float(given["epsilon"]),
            "delta": float(given["delta"]),
            "kernel": tuple(kernel) if isinstance(kernel, list) else kernel,
            "noise_variance": _numbers(noise),
            "max_change": None if change is None else float(change),
            "y_bounds": _pairs(given["y_bounds"]),
            "x_bounds": None if x_bounds is None else _pairs(x_bounds),
            "targets": target_points(given["targets"], columns),
            "inducing": None if inducing is None else inducing_inputs(inducing, columns),
            "shares": None if given["shares"] is None else tuple(map(float, given["shares"])),
        }
        return cls(**{name: given[name] for name in cls.__dataclass_fields__} | converted)

    def check_for(self, columns: int) -> None:
        """Refuse bounds and targets that do not go with inputs of this many columns."""
        check_any_bounds(self.y_bounds)
        target_points(self.targets, columns)
        if self.x_bounds is not None:  # one pair stands for all columns
            every = None if np.ndim(self.x_bounds) == 1 else columns
            domain_pairs("bounds", self.x_bounds, every)


@dataclass(frozen=True)
class MadeFor:
    """What a plan was asked for, with the names of the columns of inputs, of people and of exposures,
    if known."""

    parameters: Parameters
    names: tuple[str, ...] | None = None
    groups: str | None = None
    exposure: str | None = later(None)


def _pairs(bounds: Any) -> Any:
    """(low, high), or one such pair per column, as tuples."""
    plain = np.asarray(bounds, dtype=float).tolist()
    return tuple(tuple(pair) if isinstance(pair, list) else pair for pair in plain)


def _numbers(given: Any) -> Any:
    """A number, None, or one of them per output as a tuple."""
    if isinstance(given, list | tuple):
        return tuple(_numbers(each) for each in given)
    return None if given is None else float(given)
