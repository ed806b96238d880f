"""Everything that leaves a run, as bytes by the way that it leaves.

An object is followed to the end: attributes, containers, closures, tables. Files are taken apart: every
member of an archive is its own way. What a custodian keeps (``.private-state`` files, and what
fitted functions and paths hold of them) does not leave.
"""

from __future__ import annotations

import io
import logging
import pickle
import traceback
import types
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

Left = dict[str, bytes]
KEPT = ".private-state"
SCALARS = (bool, int, float, complex, str, bytes, np.generic, type(None))
NAMED = (type, types.ModuleType, types.BuiltinFunctionType)


@contextmanager
def heard() -> Iterator[Left]:
    """What is printed, warned of, logged and raised meanwhile; an exception ends there."""
    left: Left = {}
    out, err, records = io.StringIO(), io.StringIO(), list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: records.append(  # type: ignore[method-assign]
        f"{record.name} {record.levelname} {record.getMessage()} {record.exc_info}"
    )
    product = logging.getLogger("privgp")
    logging.getLogger().addHandler(handler)
    before = product.level
    product.setLevel(logging.DEBUG)
    try:
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            warnings.catch_warnings(record=True) as told,
        ):
            warnings.simplefilter("always")
            yield left
    except Exception as problem:
        left["exception"] = _raised(problem).encode()
    finally:
        logging.getLogger().removeHandler(handler)
        product.setLevel(before)
    texts = {"stdout": out.getvalue(), "stderr": err.getvalue(), "log": "\n".join(records)}
    texts["warnings"] = "\n".join(f"{each.category.__name__}: {each.message}" for each in told)
    left.update({name: text.encode() for name, text in texts.items()})


def _raised(problem: BaseException) -> str:
    """An exception as a user sees it, with those before it, and what programs can read of it."""
    shown = "".join(traceback.TracebackException.from_exception(problem).format(chain=True))
    seen, arguments = problem, list[str]()
    while seen is not None:
        arguments.append(f"{type(seen).__name__} {seen.args!r} {seen.__dict__!r}")
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)  # type: ignore[assignment]
    return "\n".join([shown, *arguments])


def of_object(thing: Any, name: str, known: dict[int, str] | None = None) -> Left:
    """Everything that can be reached from an object."""
    left: Left = {}
    _follow(thing, name, left, {} if known is None else known, [])
    return left


def _follow(thing: Any, name: str, left: Left, known: dict[int, str], alive: list[Any]) -> None:
    if isinstance(thing, SCALARS):
        left[name] = f"{type(thing).__name__} {thing!r}".encode()
        return
    if id(thing) in known:
        left[name] = f"as {known[id(thing)]}".encode()
        return
    known[id(thing)] = name
    alive.append(thing)  # so that no other object takes its place
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        left[name] = f"{thing.dtype} {thing.shape} ".encode() + thing.tobytes()
        return
    inside = _inside(thing)
    left[name] = f"{type(thing).__qualname__} of {list(inside)}".encode()
    for part, value in inside.items():
        _follow(value, f"{name}{part}", left, known, alive)


def _inside(thing: Any) -> dict[str, Any]:
    """The parts of a thing, by how they are reached."""
    if isinstance(thing, Mapping):
        return {f"[{key!r}]": value for key, value in thing.items()}
    if isinstance(thing, pl.DataFrame | pd.DataFrame):
        return {f"[{column!r}]": thing[column].to_numpy() for column in thing.columns}
    if isinstance(thing, pl.Series | pd.Series):
        return {".values": thing.to_numpy()}
    if isinstance(thing, set | frozenset):
        return {f"{{{each!r}}}": None for each in sorted(thing, key=repr)}
    if isinstance(thing, list | tuple | np.ndarray):
        return {f"[{place}]": value for place, value in enumerate(thing)}
    if isinstance(thing, partial):
        return {".func": thing.func, ".args": thing.args, ".keywords": thing.keywords}
    if isinstance(thing, types.MethodType):
        return {".__self__": thing.__self__, ".__name__": thing.__name__}
    if isinstance(thing, types.FunctionType):
        held = [cell.cell_contents for cell in thing.__closure__ or ()]
        return {
            ".__qualname__": thing.__qualname__,
            ".closure": held,
            ".defaults": thing.__defaults__,
        }
    if isinstance(thing, NAMED):
        return {".__name__": thing.__name__}
    if isinstance(thing, PurePath):
        return {".path": str(thing)}
    slots = [slot for kind in type(thing).__mro__ for slot in getattr(kind, "__slots__", ())]
    named = {f".{slot}": getattr(thing, slot) for slot in slots if hasattr(thing, slot)}
    named |= {f".{attribute}": value for attribute, value in getattr(thing, "__dict__", {}).items()}
    return named or {".pickle": _pickled(thing)}


def _pickled(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing)
    except (TypeError, AttributeError, pickle.PicklingError):
        return b"not copied"  # a lock, a connection


def of_files(folder: Path, given: Set[Path] = frozenset()) -> Left:
    """Every file of a folder but those that were given, archives member by member."""
    left: Left = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in given and path.suffix != KEPT:
            left |= of_content(path.read_bytes(), f"file {path.relative_to(folder)}")
    return left


def of_content(content: bytes, name: str) -> Left:
    """A file's content, an archive's member by member."""
    if not content.startswith(b"PK\x03\x04"):
        return {name: content}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: content} | {
            f"{name}/{each}": archive.read(each) for each in archive.namelist()
        }


def differing(one: Left, other: Left) -> list[str]:
    """By which ways something different left."""
    return [way for way in {**one, **other} if one.get(way) != other.get(way)]
