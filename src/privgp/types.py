"""What every room shares: array types, float64 unless a docstring says otherwise, and one warning."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Random = np.random.Generator | None  # of a simulation; None: the noise that protects
Integers = NDArray[np.int64]
STAMP = "SIMULATION, not for release"  # on whatever is shown, drawn or written of a simulation
