"""Private values on their way through code that must not read them: sealed in this process, and sums
from workers masked. Anyone who sees a masked sum on a wire or in a worker's memory, or on the disk that it
was moved to, sees uniform numbers. Masks add up like the sums, and are taken off the total."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import shake_256
from inspect import currentframe
from secrets import token_bytes
from typing import Any, NoReturn

import numpy as np

from privgp.types import Integers


class Sealed:
    """Private values, checked, which only the vault opens. Their number is public, and their names.

    Parameters
    ----------
    values : object
        The private values.
    rows : int
        How many rows they have.
    columns : tuple of str, optional
        The names of several columns.

    """

    __slots__ = ("_open", "columns", "rows")
    _open: Callable[[], Any]
    rows: int
    columns: tuple[str, ...]

    def __init__(self, values: object, rows: int, columns: tuple[str, ...] = ()) -> None:
        def open_values() -> Any:
            _check_caller()
            return values

        for name, value in (("_open", open_values), ("rows", rows), ("columns", columns)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return "Sealed(...)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("private values are sealed once.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("private values are neither copied nor stored.")


def unseal(given: object) -> Any:
    """Private values as they are, for the vault alone; what is not sealed is handed back."""
    if not isinstance(given, Sealed):
        return given
    _check_caller()
    return given._open()


def _check_caller() -> None:
    """Refuse whatever calls the calling function, unless it is of the vault."""
    caller: Any = currentframe()
    if not caller.f_back.f_back.f_globals["__name__"].startswith("privgp.vault."):
        raise TypeError("private values are opened in the vault alone.")


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
