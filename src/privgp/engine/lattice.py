"""Exact sums: numbers rounded once to a lattice, then added as integers, in any order and number of
parts. Proof: docs/proofs/engine.md."""

import math
from dataclasses import dataclass

import numpy as np

from privgp.types import Array, Integers

LIMB = 40  # bits of the upper part; the lower one has one more for the rest of the upper's rounding
SPAN = 2 * LIMB + 1
MOST_TERMS = 2**22  # sums of this many terms cannot overflow
MOST_TOP = 400  # beyond, powers of two and their inverses leave the range of numbers


@dataclass(frozen=True)
class Lattice:
    """Numbers of at most ``2**top`` as multiples of ``2**(top - 81)``: an upper and a lower
    integer.

    Attributes
    ----------
    top : the exponent

    """

    top: int

    @classmethod
    def for_size(cls, most: float) -> "Lattice":
        """The finest lattice for numbers of at most this size.

        Raises
        ------
        ValueError
            The size is not finite or far beyond what can be split.

        """
        top = math.frexp(most)[1] if 0.0 < most < math.inf else MOST_TOP + 1
        if abs(top) > MOST_TOP:
            raise ValueError("the measurement of some rows is not finite: choose other units.")
        return cls(top)

    @property
    def step(self) -> float:
        """The distance of neighbouring lattice points."""
        return 2.0 ** (self.top - SPAN)

    def split(self, numbers: Array) -> Integers:
        """The nearest lattice points, (2, *shape) of int64: off by at most half a step.

        Sums of up to 2^22 such parts are exact, in any order.
        """
        out = np.empty((2, *numbers.shape), dtype=np.int64)
        upper = np.rint(numbers * 2.0 ** (LIMB - self.top))
        out[0] = upper
        upper *= 2.0 ** (self.top - LIMB)
        rest = np.subtract(numbers, upper, out=upper)  # exact
        rest *= 2.0 ** (SPAN - self.top)
        out[1] = np.rint(rest, out=rest)
        return out

    def join(self, parts: Integers) -> Array:
        """The number of a sum of split numbers t: off by at most a step and three roundings of t.

        Parameters
        ----------
        parts
            (2, *shape), added up as integers.

        """
        width = SPAN - LIMB
        carried = (parts[1] + (1 << (width - 1))) >> width
        upper = (parts[0] + carried) * 2.0 ** (self.top - LIMB)
        lower = (parts[1] - (carried << width)) * self.step
        return np.asarray(upper + lower, dtype=np.float64)


def whole_multiples(numbers: Array, bits: int) -> Integers:
    """Numbers as whole multiples of ``2**-bits``, rounded down, each by itself."""
    return np.floor(numbers * 2.0**bits).astype(np.int64)
