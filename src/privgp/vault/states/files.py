"""The files of what a curator keeps: new ones, and those that exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privgp.gp.kernels.codec import KERNELS
from privgp.storage.archive import DamagedFile, parse
from privgp.storage.codec import Codec
from privgp.storage.state_file import PathLike, StateFile
from privgp.vault.states.kept_functions import (
    FunctionContents,
    KeptFunction,
    KeptOutputs,
    KeptRecords,
    OutputsContents,
    RecordsContents,
)
from privgp.vault.states.kept_paths import KeptPaths, PathContents


class StateCodec(Codec):
    """Refuses states of another kind and of earlier versions, with the reason."""

    def decode(self, members: Mapping[str, bytes]) -> Any:
        if "private_paths.json" in members:
            raise DamagedFile(
                "it holds sample paths of privgp 0.1, whose answers could give records away: delete "
                "it and fit the paths again, which spends another budget"
            )
        if "private_state.json" in members:
            of_records = "weights.npy" in members
            if of_records and _has_rational_quadratic(parse(members["private_state.json"])):
                raise DamagedFile(
                    "it holds a function of records of privgp 0.1 with a RationalQuadratic kernel, which could "
                    "break its promise: delete it and fit the function again, which spends another "
                    "budget"
                )
            raise DamagedFile(
                "it was written by privgp 0.1: ask it with that version, or fit the function again, "
                "which spends another budget"
            )
        for other, what in {"paths": "sample paths", "function": "a function"}.items():
            if other != self.name and f"{other}.json" in members:
                raise DamagedFile("it holds " + what + ", not what was asked for")
        return super().decode(members)


FUNCTIONS = StateCodec(OutputsContents | RecordsContents, "function", KERNELS)
PATHS = StateCodec(PathContents, "paths", KERNELS)


def keep_function(contents: FunctionContents, path: PathLike | None) -> KeptFunction:
    """A new function; ``path``: a new file for it."""
    return _function(
        contents, None if path is None else StateFile.create(path, contents, FUNCTIONS)
    )


def load_function(path: PathLike) -> KeptFunction:
    file, contents = StateFile.open(path, FUNCTIONS)
    return _function(contents, file)


def keep_paths(contents: PathContents, path: PathLike | None) -> KeptPaths:
    """New paths; ``path``: a new file for them."""
    file = None if path is None else StateFile.create(path, contents, PATHS)
    return KeptPaths(contents, PATHS, file)


def load_paths(path: PathLike) -> KeptPaths:
    file, contents = StateFile.open(path, PATHS)
    return KeptPaths(contents, PATHS, file)


def _function(contents: FunctionContents, file: StateFile | None) -> KeptFunction:
    kind = KeptRecords if isinstance(contents, RecordsContents) else KeptOutputs
    return kind(contents, FUNCTIONS, file)


def _has_rational_quadratic(tree: Any) -> bool:
    """Whether a part of an old state's JSON is such a kernel."""
    if isinstance(tree, dict):
        inside = any(_has_rational_quadratic(part) for part in tree.values())
        return tree.get("type") == "RationalQuadratic" or inside
    return False
