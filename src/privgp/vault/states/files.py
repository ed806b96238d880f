"""What the files of functions and paths hold; those of earlier versions are refused."""

from collections.abc import Mapping
from typing import Any

from privgp.gp.kernels.registry import KERNELS
from privgp.storage.archive import require
from privgp.storage.codec import Codec
from privgp.vault.states.outputs import OutputsContents
from privgp.vault.states.paths import PathContents
from privgp.vault.states.records import RecordsContents

OLD_PATHS = (
    "it holds sample paths of privgp 0.1, whose answers could give records away: delete it and fit "
    "the paths again, which spends another budget"
)
OLD_RATIONAL = (
    "it holds a function of records of privgp 0.1 with a RationalQuadratic kernel, which could break "
    "its guarantee: delete it and fit the function again, which spends another budget"
)
OLD_FUNCTION = (
    "it was written by privgp 0.1: ask it with that version, or fit the function again, which spends "
    "another budget"
)


class StateCodec(Codec):
    """Refuses states of another kind and of earlier versions, with the reason."""

    def decode(self, members: Mapping[str, bytes]) -> Any:
        """The contents that these members hold.

        Raises
        ------
        DamagedFile
            They are of another kind, of an earlier version, or broken; the sentence says which.

        """
        require("private_paths.json" not in members, OLD_PATHS)
        function = members.get("private_state.json", b"")
        of_records = "weights.npy" in members
        require(not of_records or b'"RationalQuadratic"' not in function, OLD_RATIONAL)
        require(function == b"", OLD_FUNCTION)
        if self.name == "function":
            require("paths.json" not in members, "it holds sample paths, not a function")
        else:
            require("function.json" not in members, "it holds a function, not sample paths")
        return super().decode(members)


FUNCTIONS = StateCodec(OutputsContents | RecordsContents, "function", KERNELS)
PATHS = StateCodec(PathContents, "paths", KERNELS)
