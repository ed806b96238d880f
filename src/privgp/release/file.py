"""A release as one .privgp file: all of it public, none of it per row. What predicts is not kept: it is
computed anew from the functionals, the measurement and the weighted models, to the same bits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from privgp.gp.changes import SHAPES, Change
from privgp.gp.kernels.registry import KERNELS
from privgp.release.release import Release
from privgp.storage.archive import DamagedFile, dump, parse
from privgp.storage.codec import Codec, Leaf, Leaves
from privgp.storage.fields import array
from privgp.types import Positive

# What files of earlier versions had.
OLD, CERTIFICATE, RELEASE = "model.json", "certificate.json", "release.json"
FACTS = ("plan_summary", "certificate")
PART = (
    *("measurement", "functionals", "models", "noise_variance", "at_targets", "unit_rate"),
    *("further", "spent"),
)
NOTHING = {"zeros": [0, 0]}
FUNCTIONALS = (
    *("nodes", "weights", "noise_gram", "energy_cross", "energy_noise_gram"),
    *("fixed_gram", "scatter", "shares"),
)


@dataclass(frozen=True)
class WrittenChange:
    """A change as plain numbers: its arrays are small and may be hundreds."""

    kind: Annotated[str, tuple(SHAPES)]
    centre: tuple[float, ...]
    slopes: tuple[tuple[float, ...], ...]
    std: Positive

    @classmethod
    def of(cls, change: Change) -> Self:
        slopes = tuple(map(tuple, change.slopes.tolist()))
        return cls(change.kind, tuple(change.centre.tolist()), slopes, change.std)

    def read(self) -> Change:
        return Change(self.kind, np.array(self.centre), np.array(self.slopes), self.std)


CHANGES: Leaves = {Change: Leaf(WrittenChange, WrittenChange.of, WrittenChange.read)}
CODEC = Codec(Release, "release", {**KERNELS, **CHANGES})


def decode(members: Mapping[str, bytes]) -> Release:
    """Read members back; whatever does not fit together raises ``DamagedFile``."""
    release: Release = CODEC.decode(renew_members(members))
    return release


def renew_members(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """The members of a file of any version, as they are now."""
    try:
        kept = {name: data for name, data in members.items() if name not in (OLD, CERTIFICATE)}
        if OLD in members:
            tree = _release(parse(members[OLD]), members)
            tree["certificate"] = parse(members[CERTIFICATE])
        else:
            tree = parse(kept[RELEASE])
        return {**kept, RELEASE: dump(_in_parts(tree)) if "facts" not in tree else kept[RELEASE]}
    except DamagedFile:
        raise
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise DamagedFile("it does not have the parts it should") from None


def _in_parts(tree: dict[str, Any]) -> dict[str, Any]:
    """A release as the parts that it has had since format 4; before, one outcome stood by itself."""
    rest = dict(tree)
    kind, facts = rest.pop("type"), {name: rest.pop(name) for name in FACTS if name in rest}
    if kind == "JointContents":
        outputs = rest.pop("outputs")
    elif kind in ("Contents", "LabelContents"):
        outputs = [{name: rest.pop(name) for name in PART if name in rest}]
        rest["output_names"] = None
    else:
        raise DamagedFile("it does not say what was released")
    parts = [{**each, "type": "Part"} for each in outputs]
    for part in parts:
        more = part.get("further", [])
        part["further"] = [{**each, "type": "Function"} for each in more]
    return {**rest, "type": "Release", "parts": parts, "facts": {"type": "Facts", **facts}}


def _release(tree: Any, members: Mapping[str, bytes]) -> dict[str, Any]:
    def stored(name: str, **form: str) -> Any:
        return {"array": name, **form} if f"{name}.npy" in members else None

    tree = dict(tree)
    maps = []
    for place, share in enumerate(tree.pop("input_maps")):
        knots, ranks = (stored(f"input_map_{place}_{name}") for name in ("knots", "ranks"))
        blend = {"knots": knots, "ranks": ranks} if share else {"knots": NOTHING, "ranks": NOTHING}
        maps.append({"type": "InputMap", "share": share, **blend})
    parameters = {**tree["parameters"], "targets": stored("parameter_targets")}
    if parameters["inducing"] == "points":
        parameters["inducing"] = stored("nodes")
    measured = len(array(members["measurement_values.npy"], "values", 1))
    functionals = {**tree["functionals"], **{name: stored(name) for name in FUNCTIONALS}}
    residual = {"zero": {"zeros": [measured, measured]}, "full": stored("residual_gram")}
    energy = {"diagonal": stored("energy_gram", form="diagonal"), "full": stored("energy_gram")}
    for name, forms in (("residual_gram", residual), ("energy_gram", energy)):
        functionals[name] = forms.get(functionals[name])
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
        "parameters": {"type": "Parameters", **parameters},
        "guarantee": {"type": "Guarantee", **tree["guarantee"], "path_curves": []},
        "measurement": {
            "type": "Measurement",
            **tree["measurement"],
            "values": stored("measurement_values"),
            "counts": stored("measurement_counts"),
        },
        "functionals": {"type": "Functionals", **functionals},
        "models": [
            {"type": "Hyperparameters", **model, "input_map": maps[model["input_map"]]}
            for model in tree["models"]
        ],
        "at_targets": at_targets,
    }
