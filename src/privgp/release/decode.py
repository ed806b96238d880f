"""From the members of a file to a release whose parts fit together, or ``DamagedFile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.input_maps import InputMap
from privgp.gp.kernels.evaluate import check_kernel
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.privacy.budget import MAX_EPSILON
from privgp.privacy.guarantee import Guarantee
from privgp.release.at_targets import AtTargets
from privgp.release.certificate import plan_hash, validate
from privgp.release.contents import MOST_NODES, Contents
from privgp.release.parameters import POINTS, parameters_from
from privgp.storage import fields as field
from privgp.storage.archive import DamagedFile, parse
from privgp.types import Array

MOST_MODELS = 256
MOST_COLUMNS = 10_000

_MODEL = (
    *("parameters", "columns", "names", "guarantee", "measurement", "functionals"),
    *("models", "input_maps", "at_targets", "noise_variance", "plan_summary"),
)

Take = Callable[..., Array]


def decode(members: Mapping[str, bytes]) -> Contents:
    """Read members back; whatever does not fit together raises ``DamagedFile``."""
    left = dict(members)

    def take(name: str, *shape: int | None) -> Array:
        if f"{name}.npy" not in left:
            raise DamagedFile(f"its array {name} is missing")
        return field.array(left.pop(f"{name}.npy"), name, shape)

    if "model.json" not in left or "certificate.json" not in left:
        raise DamagedFile("a member is missing")
    tree = field.record(parse(left.pop("model.json")), "model", _MODEL)
    certificate = parse(left.pop("certificate.json"))
    columns = field.whole(tree["columns"], "number of columns", 1, MOST_COLUMNS)
    has_targets = "parameter_targets.npy" in left
    parameters = parameters_from(
        tree["parameters"],
        columns,
        take("parameter_targets", None, columns) if has_targets else None,
    )
    values = take("measurement_values", None)
    # These are there where inputs are private, and nowhere else.
    private = parameters["protect"] == "records"
    counts = take("measurement_counts", len(values)) if private else None
    measurement = _measurement(tree["measurement"], values, counts)
    functionals = _functionals(tree["functionals"], len(values), columns, take)
    if private:
        functionals = _with_bins(functionals, take)
    if parameters["inducing"] == POINTS:
        parameters["inducing"] = functionals.nodes
    maps = [
        _input_map(share, place, columns, take)
        for place, share in enumerate(field.items(tree["input_maps"], "input maps", least=1))
    ]
    models = [
        _hyperparameters(model, maps, columns) for model in field.items(tree["models"], "models")
    ]
    if not 1 <= len(models) <= MOST_MODELS or abs(sum(m.weight for m in models) - 1.0) > 1e-9:
        raise DamagedFile("its models do not have weights that sum to one")
    noise_variance = field.positive(tree["noise_variance"], "noise variance")
    if type(tree["at_targets"]) is not bool:
        raise DamagedFile("it does not say what was released")
    if tree["at_targets"] != (parameters["reconstruct"] == "unbiased"):
        raise DamagedFile("its parameters are not those of its release")
    at_targets = None
    if tree["at_targets"]:
        at_targets = _at_targets(len(measurement.values), columns, noise_variance, take)
    if left:
        raise DamagedFile("it has members that it should not have")
    contents = Contents(
        parameters=parameters,
        columns=columns,
        names=_names(tree["names"], columns),
        guarantee=_guarantee(tree["guarantee"]),
        measurement=measurement,
        functionals=functionals,
        models=tuple(models),
        at_targets=at_targets,
        noise_variance=noise_variance,
        plan_summary=field.text(tree["plan_summary"], "summary of the plan"),
        certificate=certificate,
    )
    _check_certificate(contents)
    return contents


def _check_certificate(c: Contents) -> None:
    """The certificate has its form and is about this release."""
    try:
        validate(c.certificate)
    except ValueError:
        raise DamagedFile("its certificate is broken") from None
    told, promised, given = c.certificate, c.guarantee, c.parameters
    budget = (promised.epsilon, promised.delta)
    hashed = plan_hash(c.functionals, given["y_bounds"], *budget)
    if (
        (told["epsilon"], told["delta"]) != budget
        or given["epsilon"] != promised.epsilon
        or (given["delta"] != promised.delta and not promised.is_pure)
        or told["unit"] != promised.unit
        or told["neighbours"] != promised.neighbours
        or told["simulation"] != promised.is_simulation
        or told["bounds"]["outputs"] != list(given["y_bounds"])
        or told["plan_hash"] != hashed
    ):
        raise DamagedFile("its certificate is not about its contents")


def _names(value: Any, columns: int) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(field.text(name, "column name") for name in field.items(value, "column names"))
    if len(names) != columns:
        raise DamagedFile("its column names are not one per column")
    return names


def _guarantee(value: Any) -> Guarantee:
    names = [f.name for f in fields(Guarantee) if f.name != "path_curves"]
    parts = field.record(value, "guarantee", names)
    if not (parts["noise_multipliers"] or parts["pure_epsilons"]):
        raise DamagedFile("its guarantee names no mechanism")

    def told(name: str) -> str:
        return field.text(parts[name], "guarantee")

    promised = Guarantee(
        epsilon=field.positive(parts["epsilon"], "epsilon", MAX_EPSILON),
        delta=field.number(parts["delta"], "delta", 0.0, 1.0),
        assumptions=tuple(
            field.text(entry, "guarantee")
            for entry in field.items(parts["assumptions"], "guarantee")
        ),
        noise_multipliers=tuple(
            field.positive(entry, "noise multiplier")
            for entry in field.items(parts["noise_multipliers"], "noise multipliers")
        ),
        delta_slack=field.number(parts["delta_slack"], "delta slack", 0.0, 1.0),
        unit=told("unit"),
        neighbours=told("neighbours"),
        mechanism=told("mechanism"),
        sampler=told("sampler"),
        pure_epsilons=tuple(
            field.positive(entry, "pure epsilon", MAX_EPSILON)
            for entry in field.items(parts["pure_epsilons"], "pure epsilons")
        ),
    )
    if promised.delta == 0 and not promised.is_pure:
        raise DamagedFile("its delta is out of range")
    return promised


def _measurement(value: Any, values: Array, counts: Array | None) -> Measurement:
    parts = field.record(value, "measurement", ("noise_std", "energy", "energy_noise_std"))
    energy = parts["energy"]
    return Measurement(
        values,
        field.positive(parts["noise_std"], "noise std"),
        None if energy is None else field.number(energy, "energy"),
        field.number(parts["energy_noise_std"], "noise std", 0.0),
        counts,
    )


def _functionals(value: Any, measured: int, columns: int, take: Take) -> Functionals:
    parts = field.record(value, "functionals", ("energy_total", "energy_gram", "residual_gram"))
    nodes = take("nodes", None, columns)
    count, square = len(nodes), (measured, measured)
    if field.choice(parts["energy_gram"], "functionals", ("diagonal", "full")) == "full":
        energy_gram = take("energy_gram", count, count)
    elif count > MOST_NODES:
        raise DamagedFile("it has too many nodes")
    else:
        energy_gram = np.diag(take("energy_gram", count))
    full = field.choice(parts["residual_gram"], "functionals", ("zero", "full")) == "full"
    return Functionals(
        nodes=nodes,
        weights=take("weights", measured, count),
        noise_gram=take("noise_gram", *square),
        residual_gram=take("residual_gram", *square) if full else np.zeros(square),
        energy_total=field.positive(parts["energy_total"], "energy"),
        energy_gram=energy_gram,
        energy_cross=take("energy_cross", count, measured),
        energy_noise_gram=take("energy_noise_gram", *square),
    )


def _with_bins(found: Functionals, take: Take) -> Functionals:
    shares = take("shares", None)
    bins, rest = divmod(len(found.nodes), max(len(shares), 1))
    if rest or len(shares) == 0 or np.any(shares < 0.0) or abs(float(shares.sum()) - 1.0) > 1e-9:
        raise DamagedFile("its bins are broken")
    measured = len(found.weights)
    fixed, scatter = take("fixed_gram", measured, measured), take("scatter", measured, bins)
    return replace(found, fixed_gram=fixed, scatter=scatter, shares=shares)


def _input_map(value: Any, place: int, columns: int, take: Take) -> InputMap:
    share = field.number(value, "input map", 0.0, 1.0)
    if share == 0.0:
        return InputMap()
    knots = take(f"input_map_{place}_knots", None, columns)
    ranks = take(f"input_map_{place}_ranks", len(knots), columns)
    if len(knots) == 0 or np.any(np.diff(knots, axis=0) < 0.0):
        raise DamagedFile("its input map is broken")
    return InputMap(share, knots, ranks)


def _hyperparameters(value: Any, maps: list[InputMap], columns: int) -> Hyperparameters:
    parts = field.record(value, "model", ("kernel", "noise_variance", "input_map", "weight"))
    kernel = field.kernel_from(parts["kernel"])
    try:
        check_kernel(kernel, columns)
    except ValueError:
        raise DamagedFile("its kernel does not fit its inputs") from None
    return Hyperparameters(
        kernel,
        field.positive(parts["noise_variance"], "noise variance"),
        maps[field.whole(parts["input_map"], "input map", 0, len(maps) - 1)],
        field.positive(parts["weight"], "weight", 1.0),
    )


def _at_targets(measured: int, columns: int, noise_variance: float, take: Take) -> AtTargets:
    targets = take("release_targets", None, columns)
    count = len(targets)
    variance = take("release_model_variance", count)
    if np.any(variance < 0.0):
        raise DamagedFile("it has a negative variance")
    root = take("release_noise_root", count, measured)
    return AtTargets(targets, take("release_mean", count), variance, root, noise_variance)
