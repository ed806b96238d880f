"""The container of a .privgp file: a zip of stored members, their hashes, a digest of the whole.
Members of a .plan file are compressed: plans are sent to their approvers.
The hashes find damage: a flipped bit, a cut end, a member from another file. They do not find
forgery, as anyone who edits a file can compute them anew; publish the file's own hash for that.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from privgp.storage.parts import PUBLIC, PathLike, part_beside, remove_stale, write_through
from privgp.types import Array

FORMAT = "privgp"
PLAN = "plan"  # the other public form
VERSION = 4
VERSIONS = {PLAN: 5}  # compressed since then
MANIFEST = "manifest.json"
LARGEST_FILE = 2**30
LARGEST_JSON = 2**24
LARGEST_COMPRESSED = 2**28  # of all compressed members together, once they are read
MOST_MEMBERS = 256
LARGEST_DIRECTORY = 2**16
DIGEST = 64  # hexadecimal digits of SHA-256
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can hold: equal models give equal bytes

_END = struct.Struct("<4s4H2LH")  # the zip's end record
_LOCAL_HEADER = 30
_NAME = re.compile(r"[a-z0-9_]{1,60}\.(json|npy)")


class DamagedFile(ValueError):
    """A file that is not a release of this format, or not as it was saved."""


def require(holds: bool, problem: str) -> None:
    """Raise ``DamagedFile`` with this problem unless the condition holds."""
    if not holds:
        raise DamagedFile(problem)


@contextmanager
def damage_of(path: PathLike) -> Iterator[None]:
    """Name the file in whatever is found to be damaged inside of this block.

    Parameters
    ----------
    path
        Path of the file that is read.

    """
    try:
        yield
    except DamagedFile as problem:
        raise DamagedFile(f"{os.fspath(path)!r} cannot be loaded: {problem}.") from None


def pack(members: Mapping[str, bytes], form: str = FORMAT) -> bytes:
    """The bytes of a file with these members; equal members give equal bytes.

    Parameters
    ----------
    members
        By names such as "release.json" or "values.npy".
    form
        The kind of file, named in the manifest that comes first; also its ending.

    Raises
    ------
    ValueError
        The members are larger than 1 GiB together.

    """
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    manifest = dump({"format": form, "version": VERSIONS.get(form, VERSION), "members": hashes})
    size = sum(map(len, members.values()))
    if size > LARGEST_FILE - 2**20:
        raise ValueError(f"the release is too large for a .{form} file, which holds 1 GiB.")
    buffer = io.BytesIO()
    # A larger plan is stored as it is: a small file must not become a large one when it is read.
    squeezed = form in VERSIONS and size <= LARGEST_COMPRESSED - 2**20
    way = zipfile.ZIP_DEFLATED if squeezed else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", way, compresslevel=6) as archive:
        for name, data in {MANIFEST: manifest, **members}.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, data, way, 6)
        archive.comment = b"0" * DIGEST
    body = buffer.getvalue()[:-DIGEST]
    return body + hashlib.sha256(body).hexdigest().encode("ascii")


def unpack(data: bytes, form: str = FORMAT) -> dict[str, bytes]:
    """The members of a file, all checks passed: order of bytes, sizes, names, hashes, version.

    Parameters
    ----------
    data
        The whole file, trusted in nothing.
    form
        The kind of file that is expected.

    Returns
    -------
    dict
        The members by name, without the manifest.

    Raises
    ------
    DamagedFile
        The file is no such archive, was changed, or is of a later version.

    """
    require(data.startswith(b"PK\x03\x04"), f"it is not a .{form} file")
    digest = hashlib.sha256(memoryview(data)[:-DIGEST]).hexdigest().encode("ascii")
    if len(data) < _END.size + DIGEST or data[-DIGEST:] != digest:
        raise DamagedFile(f"it is no .{form} file, or was cut short or changed since it was saved")
    directory = _directory_start(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _check_members(infos, directory, form)
            members = {info.filename: archive.read(info) for info in infos}
    except DamagedFile:
        raise
    except Exception:  # whatever the parser trips over, the file is at fault
        raise DamagedFile("its zip structure is broken") from None
    _check_manifest(members, form)
    del members[MANIFEST]
    return members


def _directory_start(data: bytes) -> int:
    """Where the zip's directory starts; refuses large ones before anything parses them."""
    at = len(data) - DIGEST - _END.size
    mark, disk, first, here, count, size, start, comment = _END.unpack_from(data, at)
    plain = mark == b"PK\x05\x06" and (disk, first, comment) == (0, 0, DIGEST) and here == count
    if not plain or start + size != at or data[max(0, at - 20) :].startswith(b"PK\x06\x07"):
        raise DamagedFile("its zip structure is broken")
    require(count <= MOST_MEMBERS and size <= LARGEST_DIRECTORY, "it has too many members")
    return int(start)


def _check_members(infos: list[zipfile.ZipInfo], directory: int, form: str) -> None:
    names = {info.filename for info in infos}
    require(len(names) == len(infos), "it has two members of one name")
    taken = unpacked = 0
    for info in infos:
        name, size = info.filename, info.file_size
        named = _NAME.fullmatch(name) is not None and name == info.orig_filename
        require(named, "it has a member with an unexpected name")
        # Members of releases are stored: nothing can grow when it is read. Those of plans can, to a limit.
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == size
        squeezed = form in VERSIONS and info.compress_type == zipfile.ZIP_DEFLATED
        require(stored or squeezed, f"it is not a .{form} file: it has a compressed member")
        unpacked += 0 if stored else size
        plain = not (info.flag_bits or info.extra or info.comment) and info.date_time == EPOCH
        require(plain, "it was repacked by another program")
        small = not name.endswith(".json") or size <= LARGEST_JSON
        require(small, "it has a member that is too large")
        taken += _LOCAL_HEADER + len(name) + info.compress_size
    require(unpacked <= LARGEST_COMPRESSED, "it has a member that is too large")
    require(taken == directory, "it holds bytes that belong to no member")


def _check_manifest(members: Mapping[str, bytes], form: str) -> None:
    manifest = parse(members.get(MANIFEST, b"{}"))
    ours = isinstance(manifest, dict) and manifest.get("format") == form
    require(ours, f"it is not a .{form} file")
    version, listed = manifest.get("version"), manifest.get("members")
    require(type(version) is int and version >= 1, "its version is not a number")
    newest = VERSIONS.get(form, VERSION)
    require(version <= newest, "its format is of a later version, so a newer privgp is needed")
    require(len(manifest) == 3 and isinstance(listed, dict), "its manifest is broken")
    require({*listed, MANIFEST} == {*members}, "its members are not those its manifest lists")
    hashes = {name: hashlib.sha256(members[name]).hexdigest() for name in listed}
    require(hashes == listed, "a member is not what its manifest says")


def dump(value: object) -> bytes:
    """JSON without NaN or infinity; numbers are written so that they read back to the same bits."""
    return json.dumps(value, indent=1, allow_nan=False).encode("ascii")


def parse(data: bytes) -> Any:
    """The value of JSON without NaN, infinity or names that come twice; otherwise ``DamagedFile``."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError
        return dict(pairs)

    def refuse(_: str) -> None:
        raise ValueError

    try:
        return json.loads(data.decode(), object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise DamagedFile("its JSON is broken") from None


def read(path: PathLike) -> bytes:
    """The bytes of a file that is small enough to be one of ours.

    Unfinished files of writers that died are removed from its folder first.

    Raises
    ------
    DamagedFile
        It is a device or a pipe, or larger than 1 GiB.
    OSError
        It does not exist or cannot be read.

    """
    remove_stale(os.path.dirname(os.path.realpath(path)))
    status = os.stat(path)
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise DamagedFile("it is a device or a pipe, not a file")  # opening one might never return
    require(status.st_size <= LARGEST_FILE, "it is larger than 1 GiB, which no .privgp file is")
    with open(path, "rb") as file:
        return file.read(LARGEST_FILE)


def write(
    path: PathLike, data: bytes, *, overwrite: bool, form: str = FORMAT, mode: int = PUBLIC
) -> None:
    """Write a file whole or not at all: beside its place first, then moved there.

    Parameters
    ----------
    path
        Must end in ``form``.
    data
        All its bytes.
    overwrite
        Whether a file there may be replaced.
    form
        The kind of file, without a dot.
    mode
        Its permissions, less the process's umask.

    """
    check_target(path, overwrite=overwrite, form=form)
    with part_beside(path, mode=mode) as part:
        write_through(part, data)
        check_target(path, overwrite=overwrite, form=form)
        os.replace(part, path)


def check_target(path: PathLike, *, overwrite: bool, form: str = FORMAT) -> None:
    """Refuse a path with another ending (ValueError), or one that is taken (FileExistsError)."""
    if Path(path).suffix != f".{form}":
        raise ValueError(f"path must end in '.{form}', such as 'heights.{form}'.")
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"the folder of {os.fspath(path)!r} does not exist: make it first.")
    if not overwrite and os.path.lexists(path):
        advice = " or give overwrite=True" if form in (FORMAT, PLAN) else ""
        raise FileExistsError(f"{os.fspath(path)!r} exists already: choose another name{advice}.")


@dataclass(frozen=True)
class Triangle:
    """A lower triangular matrix as its rows.

    Attributes
    ----------
    rows : the first of length 1, each one longer than the one before

    """

    rows: tuple[Array, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, packed: Array) -> Self:
        """The triangle of numbers that stand row after row; ValueError if they do not make one."""
        size = (math.isqrt(8 * len(packed) + 1) - 1) // 2
        if entries(size) != len(packed):
            raise ValueError("these numbers are no triangle.")
        return cls(tuple(packed[entries(i) : entries(i + 1)] for i in range(size)))

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def pack_rows(self, first: int = 0) -> Array:
        """The rows from the first on, one after the other, as one vector."""
        return np.concatenate([*self.rows[first:], np.empty(0)])

    def square(self) -> Array:
        """The whole matrix, zeros above the diagonal."""
        full = np.zeros((self.size, self.size))
        for place, row in enumerate(self.rows):
            full[place, : place + 1] = row
        return full

    def grow(self, lower: Array) -> Self:
        """With further rows of the square matrix, (new, old + new), cut above the diagonal."""
        added = (row[: self.size + i + 1].copy() for i, row in enumerate(lower))
        return type(self)((*self.rows, *added))


NO_ROWS = Triangle()


def entries(rows: int) -> int:
    """How many numbers a triangle of this many rows has."""
    return rows * (rows + 1) // 2
