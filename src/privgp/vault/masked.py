"""Private values on their way through code that must not read them: sealed in this process, and sums
from workers masked. Anyone who sees a masked sum on a wire or in a worker's memory, or on the disk that it
was moved to, sees uniform numbers. Masks add up like the sums, and are taken off the total."""

from dataclasses import dataclass
from hashlib import shake_256
from secrets import token_bytes

import numpy as np

from privgp.types import Integers


@dataclass(frozen=True, repr=False)
class Key:
    """The secret behind masks, new for every pass; only the custodian and the workers' tasks have
    it.

    Attributes
    ----------
    secret : 32 random bytes

    """

    secret: bytes

    @classmethod
    def new(cls) -> "Key":
        """A key of fresh cryptographic randomness."""
        return cls(token_bytes(32))

    def mask(self, place: int, shape: tuple[int, ...]) -> Integers:
        """Uniform integers, other ones for every place, by SHAKE-256.

        Parameters
        ----------
        place
            Place of the part of the sum, never used twice with one key.
        shape
            Shape of the mask.

        """
        stream = shake_256(self.secret + place.to_bytes(8, "little"))
        count = int(np.prod(shape))
        return np.frombuffer(stream.digest(8 * count), dtype="<i8").reshape(shape)


@dataclass(frozen=True, repr=False)
class Masked:
    """Integers plus the masks of these places, modulo 2**64.

    Attributes
    ----------
    numbers : masked
    places : the places whose masks are in them

    """

    numbers: Integers
    places: list[int]

    @classmethod
    def of(cls, numbers: Integers, place: int, key: Key) -> "Masked":
        """Private integers with the mask of one place."""
        return cls(numbers + key.mask(place, numbers.shape), [place])

    def __add__(self, other: "Masked") -> "Masked":
        """The sum of both; it takes over this one's list."""
        self.places.extend(other.places)
        return Masked(self.numbers + other.numbers, self.places)

    def unmask(self, key: Key) -> Integers:
        """The sum without masks: private."""
        total = self.numbers.copy()
        for place in self.places:
            total -= key.mask(place, total.shape)
        return total
