"""What was measured: noisy linear functionals of the outputs, and their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from privgp.types import Array, NotNegative, Positive, later


@dataclass(frozen=True)
class Measurement:
    """What was measured, in units of y about the middle of its bounds. Public once it exists.

    ``values``: (measured,), B s plus noise; ``noise_std`` of each; ``energy``: the weighted sum of
    squared outputs plus noise, or None; ``energy_noise_std`` its noise; ``counts``:
    (measured,), B times the records per bin plus noise, where inputs are private;
    ``gram``: (measured, measured), the sums of products of two features plus noise, where inputs are
    private and many;
    ``is_laplace``: whether the noise on ``values`` is Laplace noise, not normal.
    """

    values: Annotated[Array, "measured"]
    noise_std: Positive
    energy: float | None
    energy_noise_std: NotNegative
    counts: Annotated[Array, "measured"] | None = None
    is_laplace: bool = later(False)
    gram: Annotated[Array, "measured measured"] | None = later(None)  # noqa: RUF009
