"""What is drawn of a released function: plain arrays and functions of arrays, all of it public."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privgp.types import Array

Band = tuple[Array, Array]  # the lower and the upper end at every point

# The 90% ranges that a picture can show, by what the legend says of them.
OUTPUTS = "90% range of new outputs"
TOTAL = "90% range of the function, in all"
PRIVACY = "90% range of the privacy noise alone"
NOISE = "90% range of the privacy noise"


@dataclass(frozen=True)
class Released:
    """A function of its inputs, or its values at targets alone.

    values: the function at points (points, inputs), and its bands there by range, the widest first
    extent: (inputs, 2), the ends of the drawn range
    points: number of points along a curve, a slice or either side of a map
    held_at: (inputs,), where slices hold the inputs that they do not vary; held: the same in words
    curve: what the legend calls the line
    targets: (targets, inputs), if there are values nowhere else
    answered: points (points, inputs) that were asked before, and their answers
    ticks: how numbers along every input are written, as ``style.set_ticks`` has it
    """

    values: Callable[[Array], tuple[Array, Mapping[str, Band]]]
    extent: Array
    points: int
    held_at: Array
    held: str
    title: str
    names: Sequence[object] | None
    output: str
    curve: str
    public_inputs: Array | None
    simulation: bool
    targets: Array | None = None
    answered: tuple[Array, Array] | None = None
    bounds: tuple[float, float] | None = None
    ticks: tuple[Any, ...] = ()

    @property
    def has_levels(self) -> bool:
        """Whether an input has no values between its ticks."""
        return any(isinstance(each, tuple) for each in self.ticks)
