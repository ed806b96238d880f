"""What a declaration says of a number besides its type: files are checked against it. Nothing slow is imported
here, as the command makes its options from such declarations."""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any


@dataclass(frozen=True)
class Within:
    """Bounds of a number in a file, both included.

    Attributes
    ----------
    low, high : the bounds
    infinite : whether infinity is allowed too

    """

    low: float = -math.inf
    high: float = math.inf
    infinite: bool = False


def added_field(default: object, *, silent: bool = False) -> Any:
    """A field that is absent from older files: a file without it has this value.

    Parameters
    ----------
    default
        The value; it must mean what files of the versions before meant.
    silent
        Whether fingerprints leave the default out, whatever its type.

    """
    return field(default=default, metadata={"later": True, "silent": silent})


Positive = Annotated[float, Within(math.ulp(0.0))]
NotNegative = Annotated[float, Within(0.0)]
Share = Annotated[float, Within(0.0, 1.0)]
Count = Annotated[int, Within(1, 10**9)]
Exponent = Annotated[int, Within(-2000, 2000)]  # of a power of two
Seed = Annotated[int, Within(0, 2**31)]
Pair = tuple[float, float]
