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
from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.parameters import LabelParameters, Parameters
from privgp.privacy.guarantee import Guarantee
from privgp.release.at_targets import AtTargets
from privgp.release.certificate import plan_hash
from privgp.release.old_files import OLD, renewed
from privgp.release.several import JointContents, OneClass, check_bins
from privgp.release.spendings import AnySpending
from privgp.release.stated import check_models, check_spent, check_stated, check_total
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Codec, Leaf, Leaves
from privgp.types import Positive, Within, later

MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Contents:
    """One release. ``parameters``: of the constructor; ``names``: of the input columns;
    ``at_targets``: None for a posterior; ``noise_variance``: the expected one; ``measurement``: all of
    them as one; ``spent``: each by itself, where more may follow; ``unit_rate``: the one that rates are
    multiples of, where outputs are counts."""

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
    unit_rate: Positive | None = later(None)
    spent: tuple[AnySpending, ...] = later(())

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        given, columns, at_targets = self.parameters, self.columns, self.at_targets
        given.check_for(columns)
        check_models(self.models, columns)
        if self.names is not None:
            _holds(
                len(self.names) == given.inputs_of(columns), "column names are not one per column"
            )
        counts = given.likelihood == "poisson"
        _holds((self.unit_rate is not None) == counts, "unit of rates is broken")
        unbiased = given.reconstruct == "unbiased"
        _holds((at_targets is not None) == unbiased, "parameters are not those of its release")
        if at_targets is not None:
            _holds(at_targets.noise_variance == self.noise_variance, "noise variance is broken")
            _holds(np.all(at_targets.model_variance >= 0.0), "variance is broken")
        self._check_functionals()
        self._check_certificate()
        check_spent(self.spent, tuple(each.measurement for each in self.every_class))
        check_total(self.spent, self.guarantee)

    @property
    def every_class(self) -> tuple[OneClass, ...]:
        """What was measured and learned of every function, of which there is one."""
        return (OneClass(self.measurement, self.models, self.functionals.fixed_gram),)

    def _check_functionals(self) -> None:
        """What goes with private inputs is there with them, and nowhere else."""
        f, private = self.functionals, self.parameters.protect == "records"
        _holds(f.nodes.shape[1] == self.columns, "number of columns is broken")
        check_bins(f, self.measurement, records=private)

    def _check_certificate(self) -> None:
        """The certificate has its form and is about this release."""
        budget = self.guarantee.epsilon, self.guarantee.delta
        bounds = check_bounds("bounds", self.parameters.y_bounds)
        measured = plan_hash(self.functionals, bounds, *budget)
        several = len(self.spent) > 1  # then the parameters are those of one of them
        check_stated(self.certificate, self.guarantee, self.parameters, measured, several=several)


@dataclass(frozen=True)
class LabelContents(Contents):
    """A release of labels; ``further``: the classes after the first, where there are three or more."""

    parameters: LabelParameters
    further: tuple[OneClass, ...] = ()

    @property
    def every_class(self) -> tuple[OneClass, ...]:
        return (*super().every_class, *self.further)

    def check(self) -> None:
        super().check()
        classes = len(self.parameters.classes)
        _holds(len(self.further) == (0 if classes == 2 else classes - 1), "classes are broken")
        private = self.functionals.fixed_gram is not None
        for each in self.further:
            check_models(each.models, self.columns)
            _holds((each.fixed_gram is not None) == private, "classes are broken")


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
CODEC = Codec(Contents | LabelContents | JointContents, "release", {**KERNELS, **CHANGES})


def decode(members: Mapping[str, bytes]) -> Any:
    """Read members back; whatever does not fit together raises ``DamagedFile``."""
    return CODEC.decode(renewed(members) if OLD in members else members)
