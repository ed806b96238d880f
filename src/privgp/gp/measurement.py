"""What was measured: noisy linear functionals of the outputs, and their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from privgp.types import Array, NotNegative, Positive, later

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Measurement:
    """What was measured, in units of y about the middle of its bounds. Public once it exists.

    ``values``: (measured,), B s plus noise; ``noise_std`` of each; ``energy``: the weighted sum of
    squared outputs plus noise, or None; ``energy_noise_std`` its noise; ``counts``:
    (measured,), B times the records per bin plus noise, where inputs are private;
    ``gram``: (measured, measured), the sums of products of two features plus noise, where inputs are
    private and many;
    ``is_laplace``: whether the noise on ``values`` is Laplace noise, not normal; one answer for all of
    them, or one for each;
    ``centre``: of outcomes with a link, what was subtracted from each before it was summed; None: what
    is usual for their kind.
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

    @property
    def laplace(self) -> Flags:
        """Whether the noise on each of the values is Laplace noise, (measured,)."""
        return np.broadcast_to(np.array(self.is_laplace, dtype=bool), len(self.values))
