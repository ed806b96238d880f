"""What pictures of models and of private functions show; no private output exists here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privgp.gp.kernels.evaluate import variance as kernel_variance
from privgp.models.rows.tables import rows_at
from privgp.pictures.released import NOISE, OUTPUTS, PRIVACY, TOTAL, Band, Released
from privgp.pictures.style import REACH, budget_text, limits, number
from privgp.release.geojson import places_in
from privgp.release.queries.quantities import ReleasedFunction
from privgp.release.release import Release
from privgp.types import Array, Table, UserData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privgp.models.published import Published
    from privgp.plan.inputs.inputs import Inputs
    from privgp.privacy.guarantee import Guarantee
    from privgp.vault.states.kept import Kept

LONGITUDE = "longitude"  # the ticks of one
PLANES = (("x", "y"), ("east", "north"), ("easting", "northing"))  # coordinates of one unit
MOST_UNEVEN = 8.0  # sides of a map
# Points along a curve, either side of a map, a slice.
MODEL_POINTS, FUNCTION_POINTS = (300, 80, 300), (200, 32, 80)


def rate_of(output: str) -> str:
    """A rate's name: units such as "per 1,000 people" name the unit of exposure."""
    return output if " per " in output.replace("(", " ") else f"{output} per unit of exposure"


def function_picture(release: Release, output: str, observation: bool) -> Released:
    """The mean with the 90% interval of the latent function and, inside it, that of the privacy noise.

    ``output``: the name on the axis; ``observation``: also the interval of new outputs (not on a map).
    """
    is_map = _inputs_of(release) == 2
    function = ReleasedFunction.of(release)

    def values(X: Array) -> tuple[Array, dict[str, Band]]:
        mean, bands = ranges(function, X, observation and not is_map)
        # on a map the band of privacy is not drawn, and costs as much as the rest
        return mean, bands if is_map else bands | {
            PRIVACY: part_of(bands[TOTAL], mean, function.privacy_share(X))
        }

    output = rate_of(output) if function.is_rate else output
    return _picture(release, values, output, "mean")


def probability_picture(release: Release, place: int, output: str) -> Released:
    """The probability of the class at this place, with its 90% interval. ``output``: the label's name."""
    answer: Any = release.answers[0]

    def values(X: Array) -> tuple[Array, dict[str, Band]]:
        low, high = answer.between(X, (0.05, 0.95))
        return answer.at(X)[:, place], {TOTAL: (low[:, place], high[:, place])}

    label = (release.parameters.labels() or [])[place]
    what = f"{output} = {label}" if output else label
    return _picture(release, values, f"probability of {what}", "probability")


def picture_of(release: Release, output: str, observation: bool) -> Released:
    """The picture of one outcome; of a label, of the probability of its last class."""
    classes = len(release.parameters.labels() or ())
    if classes:
        return probability_picture(release, classes - 1, output)
    return function_picture(release, output, observation)


def plot_several(
    model: Published,
    ax: Axes | None,
    figure: Figure | None,
    observation: bool,
    points: UserData = None,
) -> Figure:
    """The curve, map or slices of every output, one above the other."""
    from privgp.pictures.curves import plot_each

    if ax is not None:
        raise ValueError("several outputs are drawn in several panels: give figure, not ax.")
    release: Release = model._released
    shown = zip(release.each, release.output_names or (), strict=True)
    released = [picture_of(one, name, observation) for one, name in shown]
    if model.inputs_ is None:
        released = [replace(one, names=release.names) for one in released]
    return plot_each([on_paper(model, one, points) for one in released], figure)


def _picture(release: Release, values: Any, output: str, curve: str) -> Released:
    """A picture of a release over its inputs as people know them."""
    at_targets = release.parts[0].at_targets
    shown = Released(
        values=values,
        points=MODEL_POINTS[min(_inputs_of(release), 3) - 1],
        **_shown_of_inputs(release),
        names=release.names,
        output=output,
        curve=curve,
        simulation=release.guarantee.is_simulation,
        targets=None if at_targets is None else at_targets.targets,
    )
    return in_numbers(shown, release.parameters.columns, release.outermost)


def on_paper(model: Published, released: Released, points: UserData = None) -> Released:
    """The same with what a reader needs who has the picture alone: what is shown, of how many, what is
    guaranteed to whom; places with north upwards. ``points``: rows to mark, as ``predict`` takes them."""
    release: Release = model._released
    data, nodes = release.facts.statement(release)["data"], released.public_inputs
    chosen = nodes is not None and data["distinct_inputs"] != len(nodes)
    made = replace(
        released,
        protection=_protection(model.guarantee_, data),
        known=f"{len(nodes):,} representative inputs" if chosen and nodes is not None
        else released.known,
        asked=_shown_points(model, released, points),
    )  # fmt: skip
    return as_map(made, is_projected=model.inputs_ is not None and _has_projection(model.inputs_))


def as_map(released: Released, *, is_projected: bool = False) -> Released:
    """Longitude along x and latitude along y, wherever they stand, and a map of true shape."""
    ticks = list(released.ticks) or [None] * len(released.extent)
    for place in [j for j, each in enumerate(ticks) if each == LONGITUDE][1::2]:
        ticks[place] = "latitude"
    released = replace(released, ticks=tuple(ticks))
    if not released.is_map or released.names is None:
        return released
    names = [str(name) for name in released.names]
    found = (0, 1) if ticks == [LONGITUDE, "latitude"] else places_in(names)
    if found is not None and np.abs(released.extent[found[1]]).max() <= 90.0:
        if found == (1, 0):
            released = _swap_axes(released)
        north = np.clip(np.abs(released.extent[1]).mean(), 0.0, 80.0)
        released = replace(released, ticks=(LONGITUDE, "latitude"))
        return replace(released, aspect=float(1.0 / np.cos(np.radians(north))))
    same = is_projected or _same_unit(names, released.extent)
    return replace(released, aspect=1.0) if same else released


def _swap_axes(released: Released) -> Released:
    """The second input along x, the first along y."""

    def swap_inputs(points: Array | None) -> Any:
        return None if points is None else points[:, ::-1]

    return replace(
        released,
        values=lambda X: released.values(X[:, ::-1]),
        extent=released.extent[::-1],
        held_at=released.held_at[::-1],
        names=list(cast(Any, released.names))[::-1],
        public_inputs=swap_inputs(released.public_inputs),
        targets=swap_inputs(released.targets),
        asked=swap_inputs(released.asked),
        answered=released.answered and (swap_inputs(released.answered[0]), released.answered[1]),
    )


def _same_unit(names: Sequence[str], extent: Array) -> bool:
    """Whether both inputs are named as coordinates of a plane are, and drawn so would be readable."""
    words = [name.lower().partition("(") for name in names]
    plane = tuple(word[0].strip() for word in words) in PLANES and words[0][2] == words[1][2]
    width, height = np.ptp(extent, axis=1)
    return bool(plane and 1.0 / MOST_UNEVEN <= height / width <= MOST_UNEVEN)


def _has_projection(inputs: Inputs) -> bool:
    return len(inputs.columns) == 1 and inputs.columns[0].system is not None


def _protection(promise: Guarantee, data: Mapping[str, object]) -> str:
    """The number of rows, and what is guaranteed to whom."""
    rows, people = data["rows"], data["people"]
    count = f"{rows:,} row{'s' if rows != 1 else ''}" if people is None else f"{people:,} people"
    budget = budget_text(promise.epsilon, promise.delta)
    return f"From {count}; protects {promise.unit} with {budget}"


def _shown_points(model: Published, released: Released, points: Table) -> Array | None:
    """Rows to mark, in the numbers that the picture has, longitudes next to the others."""
    if points is None:
        return None
    rows, inputs = rows_at(model, points), model.inputs_
    if inputs is not None:
        rows = inputs.unwrap(inputs.back(rows))[:, inputs.drawn]
        middle = released.extent.mean(axis=1)
        for j in [j for j, each in enumerate(released.ticks) if each == LONGITUDE][::2]:
            rows[:, j] += 360.0 * np.round((middle[j] - rows[:, j]) / 360.0)
    return np.asarray(rows)


def kernel_points(inputs: Inputs | None, X: Array) -> Array:
    """Where the kernel has points of a picture, (points, inputs as drawn)."""
    return X if inputs is None else inputs.coordinates(X[:, np.argsort(inputs.drawn)])


def in_numbers(released: Released, inputs: Inputs | None, reached: Array) -> Released:
    """The same over the inputs as people know them, in the order that pictures have them in, as far as
    these points reach."""
    if inputs is None:
        return released
    order, places = inputs.drawn, np.argsort(inputs.drawn)

    def shown(coordinates: Array | None) -> Any:
        return None if coordinates is None else inputs.unwrap(inputs.back(coordinates))[:, order]

    points = shown(released.public_inputs)
    if points is None:
        ends = inputs.range_ends()
        middle = ends.mean(axis=1)
    else:
        ends, middle = inputs.ends(shown(reached)[:, places]), inputs.middle(points[:, places])
    names = inputs.names if released.names is None else released.names
    return replace(
        released,
        values=lambda X: released.values(inputs.coordinates(X[:, places])),
        extent=ends[order],
        held_at=middle[order],
        held="at a typical value" if points is not None else "in the middle of their range",
        names=[names[j] for j in order],
        public_inputs=points,
        targets=shown(released.targets),
        ticks=tuple(inputs.ticks[j] for j in order),
    )


def _inputs_of(release: Release) -> int:
    return release.parameters.inputs_of(release.columns)


def _shown_of_inputs(release: Release) -> dict[str, Any]:
    """Where the function is drawn: over the public inputs, or over the domain of private ones."""
    nodes, asked = release.parts[0].functionals.nodes, release.parameters
    if asked.x_bounds is None:
        return {
            "extent": _range_of(release.outermost),
            "held_at": np.median(nodes, axis=0),
            "held": "at their median",
            "public_inputs": nodes,
        }
    declared = asked.x_bounds if asked.columns is None else asked.columns.domain
    bounds = np.reshape(np.asarray(declared, dtype=float), (-1, 2))
    extent = np.broadcast_to(bounds, (nodes.shape[1], 2))
    return {
        "extent": extent,
        "held_at": extent.mean(axis=1),
        "held": "in the middle of their range",
        "public_inputs": None,
    }


def ranges(
    released: ReleasedFunction, X: Array, observation: bool
) -> tuple[Array, dict[str, Band]]:
    """Mean at the rows of X, and the 90% intervals of ``model.interval``, the widest first."""
    mixture = released.answer.mixture(X)
    bands = {}
    for name, of_outputs in ((OUTPUTS, True), (TOTAL, False))[not observation :]:
        low, high = released.quantiles(mixture, (0.05, 0.95), of_outputs)
        bands[name] = low, high
    return mixture.mean, bands


def part_of(total: Band, mean: Array, share: Array) -> Band:
    """The part of an interval that a share of its variance makes, always inside it.

    Both sides shrink by the root of the share, towards the mean, or towards the end next to a mean
    that lies outside: intervals keep to the bounds of the outputs and need not be even, the mean does
    neither. The parts of both shares add up like variances on either side.
    """
    centre, root = np.clip(mean, *total), np.sqrt(share)
    low, high = (np.clip(centre + root * (end - centre), *total) for end in total)
    return low, high


def function_of_release(kept: Kept, output: str) -> Released:
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

    def values(X: Array) -> tuple[Array, dict[str, Band]]:
        answers, reach = kept.ask(X), REACH * scale * model.noise_shape(X)
        return answers, {NOISE: (answers - reach, answers + reach)}

    return Released(
        values=values,
        extent=extent,
        points=FUNCTION_POINTS[min(len(extent), 3) - 1],
        held_at=extent.mean(axis=1),
        held="in the middle of their range",
        protection=f"Protects {promise.unit} with {budget_text(promise.epsilon, promise.delta)}; "
        f"std of the noise {largest}",
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
