"""What was measured: noisy linear functionals of the outputs, and their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from privgp.types import Array, NotNegative, Positive, later

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Measurement:
    """Measured numbers, in units of y about the middle of its bounds. Public once it exists.

    Attributes
    ----------
    values : (measured,), B s plus noise
    noise_std : std of the noise on each value
    energy : the weighted sum of squared outputs plus noise, or None
    energy_noise_std : its noise
    counts : (measured,), B times the records per bin plus noise, if inputs are private
    is_laplace : whether the noise on ``values`` is Laplace noise, not normal; one answer for all
        of them, or one for each
    gram : (measured, measured), the sums of products of two features plus noise, if inputs are
        private and many
    centre : number that was subtracted from every outcome with a link before it was summed;
        None: the usual one of their kind

    """

    values: Annotated[Array, "measured"]
    noise_std: Positive
    energy: float | None
    energy_noise_std: NotNegative
    counts: Annotated[Array, "measured"] | None = None
    is_laplace: bool | tuple[bool, ...] = later(False)
    gram: Annotated[Array, "measured measured"] | None = later(None)
    centre: float | None = later(None)

    def check(self) -> None:
        """Refuse another number of answers than of values, as only a file can have it."""
        if isinstance(self.is_laplace, tuple) and len(self.is_laplace) != len(self.values):
            raise ValueError("is_laplace must be one answer, or one for each value.")

    def parts(self, count: int) -> tuple[Measurement, ...]:
        """The values of each of ``count`` functions, which stand one after the other."""
        return tuple(replace(self, values=values) for values in np.split(self.values, count))

    @property
    def laplace(self) -> Flags:
        """Whether the noise on each of the values is Laplace noise, (measured,)."""
        return np.broadcast_to(np.array(self.is_laplace, dtype=bool), len(self.values))


def average(again: Sequence[Measurement]) -> Measurement:
    """The same numbers measured several times, as one measurement.

    Their means, weighted by one over the variances of their noise; energies are left out.
    """
    precisions = np.array([each.noise_std**-2.0 for each in again])
    weights = precisions / precisions.sum()
    return _weigh_sums(again, weights, float(precisions.sum() ** -0.5))


def add(parts: Sequence[Measurement]) -> Measurement:
    """The same sums of different records, as one measurement of all of them, without an energy."""
    std = float(np.linalg.norm([each.noise_std for each in parts]))
    return _weigh_sums(parts, np.ones(len(parts)), std)


def _weigh_sums(each: Sequence[Measurement], weights: Array, std: float) -> Measurement:
    """Weighted sums of values, counts and Gram matrices, without an energy."""
    if len(each) == 1:
        return replace(each[0], energy=None, energy_noise_std=0.0)

    def total(parts: list[Array | None]) -> Array | None:
        known = [part for part in parts if part is not None]
        return np.tensordot(weights, known, 1) if known else None

    values = total([one.values for one in each])
    assert values is not None
    counts, gram = total([one.counts for one in each]), total([one.gram for one in each])
    return Measurement(values, std, None, 0.0, counts, gram=gram, centre=each[0].centre)
