"""What a .privgp file holds: all of it public, none of it per row. The posterior is not kept: it is
computed anew from the functionals, the measurement and the weighted models, to the same bits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from privgp.gp.changes import SHAPES, Change
from privgp.gp.functionals import Functionals
from privgp.gp.kernels.codec import KERNELS
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.parameters import Parameters
from privgp.privacy.guarantee import Guarantee
from privgp.release.at_targets import AtTargets
from privgp.release.certificate import plan_hash, validate
from privgp.release.old_files import OLD, renewed
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Codec, Leaf, Leaves
from privgp.types import Positive, Within

MOST_MODELS = 256
MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Contents:
    """One release. ``parameters``: of the constructor; ``names``: of the input columns;
    ``at_targets``: None for a posterior; ``noise_variance``: the expected one."""

    parameters: Parameters
    columns: Annotated[int, Within(1, MOST_COLUMNS)]
    names: tuple[str, ...] | None
    guarantee: Guarantee
    measurement: Measurement
    functionals: Functionals
    models: tuple[Hyperparameters, ...]
    at_targets: AtTargets | None
    noise_variance: Positive
    plan_summary: str
    certificate: dict[str, Any]

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        given, columns, at_targets = self.parameters, self.columns, self.at_targets
        given.check_for(columns)
        for model in self.models:
            model.check_for(columns)
        total = sum(model.weight for model in self.models)
        several = 1 <= len(self.models) <= MOST_MODELS
        _holds(several and abs(total - 1.0) <= 1e-9, "models do not have weights that sum to one")
        if self.names is not None:
            _holds(len(self.names) == columns, "column names are not one per column")
        unbiased = given.reconstruct == "unbiased"
        _holds((at_targets is not None) == unbiased, "parameters are not those of its release")
        if at_targets is not None:
            _holds(at_targets.noise_variance == self.noise_variance, "noise variance is broken")
            _holds(np.all(at_targets.model_variance >= 0.0), "variance is broken")
        self._check_functionals()
        self._check_certificate()

    def _check_functionals(self) -> None:
        """What goes with private inputs is there with them, and nowhere else."""
        f, given, shares = self.functionals, self.parameters, self.functionals.shares
        _holds(f.nodes.shape[1] == self.columns, "number of columns is broken")
        if isinstance(given.inducing, np.ndarray):
            _holds(np.array_equal(given.inducing, f.nodes), "inducing inputs are broken")
        private = given.protect == "records"
        counted = self.measurement.counts is not None or self.measurement.gram is not None
        extra = (f.fixed_gram is not None, f.scatter is not None, shares is not None)
        _holds(all(part == private for part in (counted, *extra)), "bins are broken")
        if f.scatter is not None and shares is not None:
            _holds(f.scatter.shape[1] * len(shares) == len(f.nodes), "bins are broken")
            whole = abs(float(shares.sum()) - 1.0) <= 1e-9
            _holds(whole and np.all(shares >= 0.0), "bins are broken")

    def _check_certificate(self) -> None:
        """The certificate has its form and is about this release."""
        stated, promised, given = self.certificate, self.guarantee, self.parameters
        try:
            validate(stated)
        except ValueError:
            raise DamagedFile("its certificate is broken") from None
        budget = (promised.epsilon, promised.delta)
        _holds(
            (stated["epsilon"], stated["delta"]) == budget
            and given.epsilon == promised.epsilon
            and (given.delta == promised.delta or promised.is_pure)
            and stated["unit"] == promised.unit
            and stated["neighbours"] == promised.neighbours
            and stated["simulation"] == promised.is_simulation
            and stated["bounds"]["outputs"] == list(given.y_bounds)
            and stated["plan_hash"] == plan_hash(self.functionals, given.y_bounds, *budget),
            "certificate is not about its contents",
        )


def _holds(holds: Any, problem: str) -> None:
    if not holds:
        raise DamagedFile(f"its {problem}")


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
CODEC = Codec(Contents, "release", {**KERNELS, **CHANGES})


def decode(members: Mapping[str, bytes]) -> Contents:
    """Read members back; whatever does not fit together raises ``DamagedFile``."""
    contents: Contents = CODEC.decode(renewed(members) if OLD in members else members)
    return contents
