"""A release as one .privgp file: all of it public, none of it per row. What predicts is not kept: it is
computed anew from the functionals, the measurement and the weighted models, to the same bits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from privgp.gp.changes import SHAPES, Change
from privgp.gp.kernels.codec import KERNELS
from privgp.release.old_files import renewed
from privgp.release.release import Release
from privgp.storage.codec import Codec, Leaf, Leaves
from privgp.types import Positive


@dataclass(frozen=True)
class WrittenChange:
    """A change as plain numbers: its arrays are small and may be hundreds."""

    kind: Annotated[str, tuple(SHAPES)]
    centre: tuple[float, ...]
    slopes: tuple[tuple[float, ...], ...]
    std: Positive

    @classmethod
    def of(cls, change: Change) -> Self:
        slopes = tuple(map(tuple, change.slopes.tolist()))
        return cls(change.kind, tuple(change.centre.tolist()), slopes, change.std)

    def read(self) -> Change:
        return Change(self.kind, np.array(self.centre), np.array(self.slopes), self.std)


CHANGES: Leaves = {Change: Leaf(WrittenChange, WrittenChange.of, WrittenChange.read)}
CODEC = Codec(Release, "release", {**KERNELS, **CHANGES})


def decode(members: Mapping[str, bytes]) -> Release:
    """Read members back; whatever does not fit together raises ``DamagedFile``."""
    release: Release = CODEC.decode(renewed(members))
    return release
