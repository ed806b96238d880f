"""What a .privgp file holds, as JSON and arrays: all of it public, none of it per row.

The posterior itself is not kept: it is computed anew from the functionals, the measurement and the
weighted models, to the same bits.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.input_maps import InputMap
from privgp.gp.kernels.codec import kernel_tree
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.privacy.guarantee import Guarantee
from privgp.release.at_targets import AtTargets
from privgp.release.parameters import parameters_tree
from privgp.storage import fields as field
from privgp.storage.archive import dump
from privgp.types import Array

MOST_NODES = 2**13  # of a diagonal matrix that is written out when it is read


@dataclass(frozen=True)
class Contents:
    """One release. ``parameters``: of the constructor; ``at_targets``: None for a posterior;
    ``names``: of the input columns; ``noise_variance``: the expected one."""

    parameters: dict[str, Any]
    columns: int
    names: tuple[str, ...] | None
    guarantee: Guarantee
    measurement: Measurement
    functionals: Functionals
    models: tuple[Hyperparameters, ...]
    at_targets: AtTargets | None
    noise_variance: float
    plan_summary: str
    certificate: dict[str, Any]


def encode(contents: Contents) -> dict[str, bytes]:
    """The members of a file."""
    c, f = contents, contents.functionals
    arrays: dict[str, Array] = {"measurement_values": c.measurement.values}
    tree, targets = parameters_tree(c.parameters, c.columns)
    if targets is not None:
        arrays["parameter_targets"] = targets
    # Two matrices are mostly empty when nothing is approximated.
    diagonal = len(f.nodes) <= MOST_NODES and np.array_equal(
        np.diag(np.diag(f.energy_gram)), f.energy_gram
    )
    zero = not f.residual_gram.any()
    arrays |= {
        "nodes": f.nodes,
        "weights": f.weights,
        "noise_gram": f.noise_gram,
        "energy_gram": np.diag(f.energy_gram) if diagonal else f.energy_gram,
        "energy_cross": f.energy_cross,
        "energy_noise_gram": f.energy_noise_gram,
    }
    if not zero:
        arrays["residual_gram"] = f.residual_gram
    if f.fixed_gram is not None:
        arrays["fixed_gram"] = f.fixed_gram
    if f.scatter is not None and f.shares is not None:
        arrays |= {"scatter": f.scatter, "shares": f.shares}
    if c.measurement.counts is not None:
        arrays["measurement_counts"] = c.measurement.counts
    maps: dict[int, InputMap] = {id(model.input_map): model.input_map for model in c.models}
    places = {key: place for place, key in enumerate(maps)}
    for place, input_map in enumerate(maps.values()):
        if input_map.share:
            arrays[f"input_map_{place}_knots"] = input_map.knots
            arrays[f"input_map_{place}_ranks"] = input_map.ranks
    if c.at_targets is not None:
        for name in ("targets", "mean", "model_variance", "noise_root"):
            arrays[f"release_{name}"] = getattr(c.at_targets, name)
    model = {
        "parameters": tree,
        "columns": c.columns,
        "names": None if c.names is None else list(c.names),
        "guarantee": {k: v for k, v in asdict(c.guarantee).items() if k != "path_curves"},
        "measurement": {
            "noise_std": float(c.measurement.noise_std),
            "energy": c.measurement.energy,
            "energy_noise_std": float(c.measurement.energy_noise_std),
        },
        "functionals": {
            "energy_total": float(f.energy_total),
            "energy_gram": "diagonal" if diagonal else "full",
            "residual_gram": "zero" if zero else "full",
        },
        "models": [
            {
                "kernel": kernel_tree(model.kernel),
                "noise_variance": float(model.noise_variance),
                "input_map": places[id(model.input_map)],
                "weight": float(model.weight),
            }
            for model in c.models
        ],
        "input_maps": [float(input_map.share) for input_map in maps.values()],
        "at_targets": c.at_targets is not None,
        "noise_variance": float(c.noise_variance),
        "plan_summary": c.plan_summary,
    }
    members = {"model.json": dump(model), "certificate.json": dump(c.certificate)}
    return members | {f"{name}.npy": field.array_bytes(values) for name, values in arrays.items()}
