"""What is drawn of a released function: plain arrays and functions of arrays, all of it public."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privgp.types import Array

Band = tuple[Array, Array]  # the lower and the upper end at every point

# The 90% intervals that a picture can show, by their text in the legend.
OUTPUTS = "90% interval of new outputs"
TOTAL = "90% interval"
PRIVACY = "part of the interval due to privacy noise"
NOISE = "90% interval of the privacy noise"


def input_names(names: Sequence[object] | None, count: int) -> list[str]:
    """The names of the inputs, or numbers if there are none; ValueError if there are too few."""
    if names is None:
        return ["input"] if count == 1 else [f"input {j + 1}" for j in range(count)]
    if len(names) != count:
        raise ValueError(f"names must name {count} inputs, got {len(names)}.")
    return [str(name) for name in names]


def without_units(name: str) -> str:
    """A name without the units in parentheses at its end."""
    return re.sub(r"(?<=\S) \([^()]*\)$", "", name)


@dataclass(frozen=True)
class Released:
    """A function of its inputs, or its values at targets alone. Everything is public.

    Attributes
    ----------
    values : the function at points (points, inputs), and its bands there by range, the widest
        first
    extent : (inputs, 2), the ends of the drawn range
    points : number of points along a curve, a slice or either side of a map
    held_at : (inputs,), where slices hold the inputs that they do not vary
    held : the same in words
    names : names of the inputs
    output : its name, with its units
    curve : the statistic that the line shows, such as "mean"
    public_inputs : (rows, inputs) to mark; None if inputs are private
    simulation : whether the noise does not protect, which the title then says
    protection : the number of rows, and the guarantee and whom it protects
    targets : (targets, inputs), if there are values nowhere else
    answered : points (points, inputs) that were asked before, and their answers
    asked : points (points, inputs) to mark
    bounds : declared bounds of the outputs, drawn as lines
    ticks : how numbers along every input are written, as ``style.set_ticks`` has it
    aspect : how long a unit of the second input is drawn in units of the first; None: any length
    known : the name of the public inputs in the legend

    """

    values: Callable[[Array], tuple[Array, Mapping[str, Band]]]
    extent: Array
    points: int
    held_at: Array
    held: str
    names: Sequence[object] | None
    output: str
    curve: str
    public_inputs: Array | None
    simulation: bool
    protection: str = ""
    targets: Array | None = None
    answered: tuple[Array, Array] | None = None
    asked: Array | None = None
    bounds: tuple[float, float] | None = None
    ticks: tuple[str | tuple[str, ...] | None, ...] = ()
    aspect: float | None = None
    known: str = "public inputs"

    @property
    def caption(self) -> str:
        """The label of a value, such as "mean cost (£)"."""
        return self.output if self.curve == "probability" else f"{self.curve} {self.output}"

    @property
    def title(self) -> str:
        """What is drawn against what, without units, which the axes have."""
        names = [without_units(name) for name in input_names(self.names, len(self.extent))]
        by = " and ".join(names) if len(names) <= 2 else f"{len(names)} inputs"
        what = without_units(self.caption)
        return f"{what[:1].upper()}{what[1:]} by {by}"

    @property
    def constant_values(self) -> str:
        """Where slices hold each input, such as "age = 50, region = north"."""
        names = input_names(self.names, len(self.extent))
        return ", ".join(f"{name} = {self._in_words(j)}" for j, name in enumerate(names))

    def _in_words(self, j: int) -> str:
        """Where slices hold an input, as its axis writes it."""
        value, ticks = float(self.held_at[j]), self.ticks[j] if self.ticks else None
        if isinstance(ticks, tuple):
            return str(ticks[int(np.clip(np.rint(value), 0, len(ticks) - 1))])
        return str(np.datetime64(int(value), "D")) if ticks == "date" else f"{value:.4g}"

    def levels(self, j: int) -> Array:
        """The values of an input that has none in between: levels with names, or two numbers.

        Returns
        -------
        Array
            Empty for an input with values in between.

        """
        ticks = self.ticks[j] if self.ticks else None
        if isinstance(ticks, tuple):
            return np.arange(len(ticks), dtype=float)
        if self.public_inputs is None or len(self.extent) == 1 or ticks is not None:
            return np.empty(0)
        values = np.unique(self.public_inputs[:, j])
        return values if len(values) == 2 < len(self.public_inputs) else np.empty(0)

    def whole(self, j: int) -> bool:
        """Whether an input is known to have whole numbers only."""
        known = self.public_inputs
        return known is not None and bool(np.all(known[:, j] == np.round(known[:, j])))

    @property
    def is_map(self) -> bool:
        """Whether there are two inputs, and every value between the ends of both has a meaning."""
        return len(self.extent) == 2 and not (len(self.levels(0)) or len(self.levels(1)))

    @property
    def curve_per_level(self) -> int | None:
        """Which of two inputs is a number, where the other is a category: it has a curve for every level."""
        if len(self.extent) != 2 or self.targets is not None:
            return None
        few = [bool(len(self.levels(j))) for j in (0, 1)]
        return few.index(False) if sum(few) == 1 else None

    def within(self, points: Array) -> Array:
        """Which points are in the drawn range."""
        low, high = self.extent.T
        return np.asarray(np.all((points >= low) & (points <= high), axis=1))
