"""Frozen values as JSON and arrays, and back from files that nobody vouches for.

A dataclass becomes an object with its class's name as ``type`` and its fields; a tuple a list; an
array its own member, named in its place. Reading goes by the declared types: whatever is of
another type, out of its declared range (``privgp.types``), missing or left over raises
``DamagedFile``, and so does a class whose constructor or ``check()`` raises ValueError. Names of
classes and fields are part of the format: anyone who changes one raises ``archive.VERSION``. A field
declared as ``types.later`` may be missing, as it is from files of the versions before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.storage import fields as field
from privgp.storage.archive import DamagedFile, Triangle, dump, parse, require
from privgp.types import Array, Integers, Within

LONGEST_DIAGONAL = 2**13
MOST_EXPANDED = 2**28  # entries of diagonal and zero matrices together, which files do not hold
LONGEST_NAME = 50


@dataclasses.dataclass(frozen=True)
class Leaf:
    """How values of a class from elsewhere are written.

    Attributes
    ----------
    stored : the declared type of what is written in its place
    write, read : from the value to that, and back

    """

    stored: object
    write: Callable[[Any], object]
    read: Callable[[Any], Any]


Leaves = Mapping[type, Leaf]
TRIANGLES: Leaves = {Triangle: Leaf(Annotated[Array, "*"], Triangle.pack_rows, Triangle.of)}


@dataclasses.dataclass(frozen=True)
class Codec:
    """Values of one declared type as members of an archive.

    Attributes
    ----------
    kind : the declared type
    name : name of the member that holds the JSON, without its ending
    leaves : how classes from elsewhere are written, by class

    """

    kind: Any
    name: str
    leaves: Leaves = dataclasses.field(default_factory=dict)

    def encode(self, value: object) -> dict[str, bytes]:
        """The members of a value, by name; equal values give equal bytes.

        Raises
        ------
        ValueError
            It holds something of a type that files cannot hold.

        """
        writer = _Writer({**TRIANGLES, **self.leaves})
        tree = writer.tree(value, ())
        arrays = {f"{name}.npy": data for name, data in writer.arrays.items()}
        return {f"{self.name}.json": dump(tree), **arrays}

    def decode(self, members: Mapping[str, bytes]) -> Any:
        """The value that these members hold.

        Parameters
        ----------
        members
            As ``unpack`` returned them; none may be left over.

        Raises
        ------
        DamagedFile
            They do not hold a value of the declared type.

        """
        main = f"{self.name}.json"
        require(main in members, "a member is missing")
        reader = _Reader(members, {**TRIANGLES, **self.leaves})
        value = reader.value(parse(members[main]), self.kind, self.name.replace("_", " "))
        used = {main, *(f"{name}.npy" for name in reader.used)}
        require(members.keys() <= used, "it has members that it should not have")
        return value


class _Writer:
    """Collects the arrays of a value. An array that comes twice is written once."""

    def __init__(self, leaves: Leaves) -> None:
        self.arrays: dict[str, bytes] = {}
        self._leaves = leaves
        self._written: dict[
            int, tuple[object, object]
        ] = {}  # the arrays too, so that no id comes again

    def tree(self, value: object, path: tuple[str, ...]) -> object:
        for kind, leaf in self._leaves.items():
            if isinstance(value, kind):
                return self.tree(leaf.write(value), path)
        if value is None or isinstance(value, bool | str | dict):
            return value
        if isinstance(value, Integral):
            return int(value)
        if isinstance(value, Real):
            return "inf" if value == math.inf else float(value)
        if isinstance(value, tuple):
            return [self.tree(entry, (*path, str(i))) for i, entry in enumerate(value)]
        if isinstance(value, np.ndarray):
            return self._array(value, path)
        if not dataclasses.is_dataclass(value):
            raise ValueError(f"{type(value).__name__} cannot be saved.")
        named = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        parts = {name: self.tree(part, (*path, name)) for name, part in named}
        return {"type": type(value).__name__, **parts}

    def _array(self, value: object, path: tuple[str, ...]) -> object:
        """Where an array is, which is written in the shortest of its forms."""
        if id(value) in self._written:
            return self._written[id(value)][1]
        form, values = _shortest(np.asarray(value, "<f8"))
        place: dict[str, object] = {"zeros": list(values.shape)}
        if form != "zeros":
            name = "_".join(path).lower()[-LONGEST_NAME:] or "value"
            while name in self.arrays:
                name += "x"
            self.arrays[name] = field.array_bytes(values)
            place = {"array": name} if form == "full" else {"array": name, "form": form}
        self._written[id(value)] = value, place
        return place


def _shortest(values: Array) -> tuple[str, Array]:
    """Zeros (or nothing), a diagonal, a lower triangle, or all of it. -0.0 is no zero."""
    bits = np.ascontiguousarray(values).view(np.int64)
    filled = np.count_nonzero(bits)
    if not filled:
        return "zeros", values
    rows = len(values) if values.ndim else 0
    if values.ndim == 2 and values.shape == (rows, rows) and rows > 1:
        if rows <= LONGEST_DIAGONAL and filled == np.count_nonzero(np.diag(bits)):
            return "diagonal", np.diag(values)
        if not any(row[i + 1 :].any() for i, row in enumerate(bits)):
            return "lower", values[np.tri(rows, dtype=bool)]
    return "full", values


class _Reader:
    """Takes members as they are referred to."""

    def __init__(self, members: Mapping[str, bytes], leaves: Leaves) -> None:
        self.used: set[str] = set()
        self._members, self._leaves = members, leaves
        self._read: dict[tuple[str, str, bool], Array | Integers] = {}
        self._lengths: dict[str, int] = {}
        self._entries = 0

    def value(self, tree: object, kind: Any, what: str, mark: Any = None) -> Any:
        """The value of this type; ``mark``: its range, choices or axes, as its annotation declares."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.value(tree, inner[0], what, inner[1])
        if origin in (types.UnionType, Union):
            return self._one_of(tree, inner, what)
        if origin is tuple:
            return self._tuple(tree, inner, what)
        if origin is np.ndarray:
            whole = get_args(inner[1]) == (np.int64,)
            return self._check_axes(self._array(tree, what, whole), what, mark)
        if kind in self._leaves:
            leaf = self._leaves[kind]
            return _make_value(what, leaf.read, self.value(tree, leaf.stored, what))
        if dataclasses.is_dataclass(kind):
            return self._dataclass(tree, kind, what)
        if kind is str:
            return field.text(tree, what) if mark is None else field.choice(tree, what, mark)
        within = mark or Within()
        if kind is int:
            return field.whole(tree, what, within.low, within.high)
        if kind is float:
            if tree == "inf" and within.infinite:
                return math.inf
            return field.number(tree, what, within.low, within.high)
        require(kind is Any or isinstance(tree, origin or kind), f"its {what} is broken")
        return tree

    def _one_of(self, tree: object, kinds: tuple[object, ...], what: str) -> Any:
        """The first alternative that fits; among classes the one with the name that is told."""
        if tree is None and type(None) in kinds:
            return None
        left = [kind for kind in kinds if kind is not type(None)]
        if isinstance(tree, dict) and isinstance(tree.get("type"), str):
            left = [k for k in left if getattr(k, "__name__", "") == tree["type"]] or left
        for kind in left[:-1]:
            try:
                return self.value(tree, kind, what)
            except DamagedFile:
                pass
        return self.value(tree, left[-1], what)

    def _tuple(self, tree: object, kinds: tuple[object, ...], what: str) -> tuple[object, ...]:
        entries = field.items(tree, what)
        if kinds[1:] == (Ellipsis,):
            kinds = kinds[:1] * len(entries)
        require(len(entries) == len(kinds), f"its {what} is not a list of the right length")
        return tuple(self.value(e, kind, what) for e, kind in zip(entries, kinds, strict=True))

    def _dataclass(self, tree: object, kind: Any, what: str) -> Any:
        declared = _field_types(kind)
        if isinstance(tree, dict):
            declared = {n: t for n, t in declared.items() if n in tree or n not in _later(kind)}
        parts = dict(field.record(tree, what, ("type", *declared)))
        require(parts.pop("type") == kind.__name__, f"its {what} is of another kind")
        around = self._lengths
        self._lengths = {} if getattr(kind, "_own_axes", False) else around
        made = {
            name: self.value(parts[name], declared[name], name.replace("_", " "))
            for name in declared
        }
        self._lengths = around
        return _make_value(what, lambda parts: kind(**parts), made)

    def _check_axes(
        self, values: Array | Integers, what: str, axes: str | None
    ) -> Array | Integers:
        """The same array, if its axes have the lengths that others of their names have."""
        names = ["*"] * values.ndim if axes is None else axes.split()
        lengths = self._lengths
        if len(names) != values.ndim or any(
            name != "*" and lengths.setdefault(name, length) != length
            for name, length in zip(names, values.shape, strict=True)
        ):
            raise DamagedFile(f"its array {what} has a wrong shape")
        return values

    def _array(self, tree: object, what: str, whole: bool) -> Array | Integers:
        if isinstance(tree, dict) and "zeros" in tree:
            sizes = field.items(field.record(tree, what, ("zeros",))["zeros"], what)
            shape = [field.whole(size, what, 0, MOST_EXPANDED) for size in sizes]
            self._expand(math.prod(shape))
            return np.zeros(shape, np.int64) if whole else np.zeros(shape)
        names = ("array", "form") if isinstance(tree, dict) and "form" in tree else ("array",)
        given = field.record(tree, what, names)
        name = field.text(given["array"], what)
        form = field.choice(given.get("form", "full"), what, ("full", "diagonal", "lower"))
        require(f"{name}.npy" in self._members, f"its array {what} is missing")
        self.used.add(name)
        if (name, form, whole) not in self._read:
            values = field.array(self._members[f"{name}.npy"], what, 1 if form != "full" else None)
            values = self._fill_form(values, what, form)
            self._read[name, form, whole] = _whole(values, what) if whole else values
        return self._read[name, form, whole]

    def _fill_form(self, values: Array, what: str, form: str) -> Array:
        if form == "full":
            return values
        if form == "diagonal":
            self._expand(len(values) ** 2)
            return np.diag(values)
        rows = _make_value(f"array {what}", Triangle.of, values).size
        full = np.zeros((rows, rows))  # at most twice what the file holds
        full[np.tri(rows, dtype=bool)] = values
        return full

    def _expand(self, entries: int) -> None:
        self._entries += entries
        require(self._entries <= MOST_EXPANDED, "it is larger than any file of ours")


def check_state(value: object) -> Any:
    """The same state, if its own ``check`` finds nothing wrong; otherwise ``DamagedFile``."""
    return _make_value("state", lambda value: value, value)


def _make_value(what: str, make: Callable[[Any], Any], given: object) -> Any:
    """What a constructor makes of checked parts, if it and its ``check`` find nothing wrong."""
    try:
        value = make(given)
        if hasattr(value, "check"):
            value.check()
    except DamagedFile:
        raise
    except (ValueError, TypeError, ArithmeticError):
        raise DamagedFile(f"its {what} is broken") from None
    return value


@cache
def _field_types(kind: type) -> dict[str, object]:
    hints = get_type_hints(kind, include_extras=True)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


@cache
def _later(kind: type) -> set[str]:
    """The fields of a dataclass that a file may lack."""
    return {f.name for f in dataclasses.fields(kind) if "later" in f.metadata}


def _whole(values: Array, what: str) -> Integers:
    integers = bool(np.all((np.abs(values) <= 2.0**53) & (values == np.floor(values))))
    require(integers, f"its array {what} does not hold whole numbers")
    return values.astype(np.int64)


def fingerprint(*values: object) -> str:
    """Equal for equal values: ``1`` is ``1.0``, and a list of numbers is the array of them."""
    digest = hashlib.sha256(b"privgp values 1")
    _add(digest, values)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Every value with its kind and length, so that none can be mistaken for another."""
    if isinstance(value, Kernel):
        value = [type(value).__name__, value.get_params(deep=False)]
    elif is_dataclass(value):
        value = {
            each.name: getattr(value, each.name)
            for each in fields(value)
            if _counts_for_hash(value, each)
        }
    if isinstance(value, dict):
        value = [part for name in sorted(value) for part in (name, value[name])]
    if value is None or isinstance(value, bool | str):
        digest.update(f"{type(value).__name__} {len(str(value))} {value}".encode())
        return
    numbers = _numbers(value)
    if numbers is not None:
        digest.update(f"numbers {numbers.shape}".encode())
        digest.update(numbers.tobytes())
        return
    digest.update(f"parts {len(value)}".encode())
    for part in value:
        _add(digest, part)


def _counts_for_hash(value: object, each: Field[object]) -> bool:
    """Whether a field counts: one that came later does not while it is None, or the number or text
    that it is by default, so that fingerprints of older versions stay what they were."""
    held = getattr(value, each.name)
    plain = isinstance(held, str | float) or each.metadata.get("silent", False)
    usual = held is None or (plain and held == each.default)
    return "later" not in each.metadata or not usual


def _numbers(value: Any) -> Array | None:
    """An array, a number or sequences of numbers as an array; None for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:  # sequences of several lengths
        return None
    return np.array(array, dtype="<f8", order="C") if array.dtype.kind in "fiu" else None
