"""Files of privgp 0.1 turned into the members that a release has now, to be checked like those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privgp.storage.archive import DamagedFile, dump, parse
from privgp.storage.fields import array

OLD = "model.json"
NOTHING = {"zeros": [0, 0]}
FUNCTIONALS = ("nodes", "weights", "noise_gram", "energy_cross", "energy_noise_gram")


def renewed(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same release in today's format."""
    try:
        tree, certificate = parse(members[OLD]), parse(members["certificate.json"])
        release = {**_release(tree, members), "certificate": certificate}
        arrays = {name: data for name, data in members.items() if name.endswith(".npy")}
        others = members.keys() - arrays.keys() - {OLD, "certificate.json"}
        return {"release.json": dump(release), **arrays, **{name: members[name] for name in others}}
    except DamagedFile:
        raise
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise DamagedFile("it does not have the parts it should") from None


def _release(tree: Any, members: Mapping[str, bytes]) -> dict[str, Any]:
    def stored(name: str, **form: str) -> Any:
        return {"array": name, **form} if f"{name}.npy" in members else None

    tree = dict(tree)
    maps = [
        {
            "type": "InputMap",
            "share": share,
            "knots": stored(f"input_map_{place}_knots") if share else NOTHING,
            "ranks": stored(f"input_map_{place}_ranks") if share else NOTHING,
        }
        for place, share in enumerate(tree.pop("input_maps"))
    ]
    parameters, told = dict(tree["parameters"]), dict(tree["functionals"])
    if parameters["inducing"] == "points":
        parameters["inducing"] = stored("nodes")
    measured = len(array(members["measurement_values.npy"], "values", 1))
    if told["residual_gram"] == "zero":
        told["residual_gram"] = {"zeros": [measured, measured]}
    elif told["residual_gram"] == "full":
        told["residual_gram"] = stored("residual_gram")
    diagonal = {"form": "diagonal"} if told["energy_gram"] == "diagonal" else {}
    if told["energy_gram"] in ("diagonal", "full"):
        told["energy_gram"] = stored("energy_gram", **diagonal)
    told |= {name: stored(name) for name in (*FUNCTIONALS, "fixed_gram", "scatter", "shares")}
    at_targets = None
    if not isinstance(tree["at_targets"], bool):
        raise DamagedFile("it does not say what was released")
    if tree["at_targets"]:
        names = ("targets", "mean", "model_variance", "noise_root")
        at_targets = {name: stored(f"release_{name}") for name in names}
        at_targets |= {"type": "AtTargets", "noise_variance": tree["noise_variance"]}
    return {
        "type": "Contents",
        **tree,
        "parameters": {
            "type": "Parameters", **parameters, "targets": stored("parameter_targets")
        },
        "guarantee": {"type": "Guarantee", **tree["guarantee"], "path_curves": []},
        "measurement": {
            "type": "Measurement",
            **tree["measurement"],
            "values": stored("measurement_values"),
            "counts": stored("measurement_counts"),
        },
        "functionals": {"type": "Functionals", **told},
        "models": [
            {"type": "Hyperparameters", **model, "input_map": maps[model["input_map"]]}
            for model in tree["models"]
        ],
        "at_targets": at_targets,
    }  # fmt: skip
