"""What the files of functions and paths hold; those of earlier versions are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privgp.gp.kernels.codec import KERNELS
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Codec
from privgp.vault.states.outputs import OutputsContents
from privgp.vault.states.paths import PathContents
from privgp.vault.states.records import RecordsContents


class StateCodec(Codec):
    """Refuses states of another kind and of earlier versions, with the reason."""

    def decode(self, members: Mapping[str, bytes]) -> Any:
        if "private_paths.json" in members:
            raise DamagedFile(
                "it holds sample paths of privgp 0.1, whose answers could give records away: delete "
                "it and fit the paths again, which spends another budget"
            )
        if "private_state.json" in members:
            rational = b'"RationalQuadratic"' in members["private_state.json"]
            if rational and "weights.npy" in members:
                raise DamagedFile(
                    "it holds a function of records of privgp 0.1 with a RationalQuadratic kernel, "
                    "which could break its promise: delete it and fit the function again, which "
                    "spends another budget"
                )
            raise DamagedFile(
                "it was written by privgp 0.1: ask it with that version, or fit the function again, "
                "which spends another budget"
            )
        if self.name == "function" and "paths.json" in members:
            raise DamagedFile("it holds sample paths, not a function")
        if self.name == "paths" and "function.json" in members:
            raise DamagedFile("it holds a function, not sample paths")
        return super().decode(members)


FUNCTIONS = StateCodec(OutputsContents | RecordsContents, "function", KERNELS)
PATHS = StateCodec(PathContents, "paths", KERNELS)
