"""What a .privgp file holds of several outcomes that were released together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.parameters import MixedParameters, Parameters
from privgp.plan.several.arguments import checked_shares, output_bounds
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate import joint_hash
from privgp.release.spendings import AnySpending, Spending
from privgp.release.stated import check_models, check_spent, check_stated, check_total
from privgp.storage.archive import require
from privgp.types import Array, Positive, Within, later


@dataclass(frozen=True)
class OneClass:
    """What was measured of one class, and the models that were learned from it.

    ``fixed_gram``: where inputs are private, the effect of uncertain counts on this class's sums.
    """

    measurement: Measurement
    models: tuple[Hyperparameters, ...]
    fixed_gram: Annotated[Array, "measured measured"] | None = later(None)

    def functionals(self, of_first: Functionals) -> Functionals:
        """What was measured of this class's function, given that of the first class."""
        return replace(of_first, fixed_gram=self.fixed_gram)


@dataclass(frozen=True)
class OutputContents:
    """One outcome: what was measured of it, and what was learned; as in ``Contents``. ``further``: the
    classes after the first, of labels with three or more."""

    _own_axes: ClassVar[bool] = True
    at_targets: ClassVar[None] = None
    measurement: Measurement
    functionals: Functionals
    models: tuple[Hyperparameters, ...]
    noise_variance: Positive
    unit_rate: Positive | None = later(None)
    further: tuple[OneClass, ...] = later(())
    spent: tuple[AnySpending, ...] = later(())

    @property
    def every_class(self) -> tuple[OneClass, ...]:
        first = OneClass(self.measurement, self.models, self.functionals.fixed_gram)
        return first, *self.further

    def check_for(self, columns: int, given: Parameters) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        require(self.functionals.nodes.shape[1] == columns, "its number of columns is broken")
        check_bins(self.functionals, self.measurement, records=given.protect == "records")
        counts = given.likelihood == "poisson"
        require((self.unit_rate is not None) == counts, "its unit of rates is broken")
        classes = len(given.labels() or ())
        functions = classes if classes > 2 else 1
        require(len(self.every_class) == functions, "its classes are broken")
        private = self.functionals.fixed_gram is not None
        for each in self.every_class:
            check_models(each.models, columns)
            require((each.fixed_gram is not None) == private, "its classes are broken")
        check_spent(self.spent, tuple(each.measurement for each in self.every_class))


def check_bins(f: Functionals, measurement: Measurement, *, records: bool) -> None:
    """Refuse what goes with private inputs where these are public, and the other way round."""
    counted = measurement.counts is not None or measurement.gram is not None
    extra = (f.fixed_gram is not None, f.scatter is not None, f.shares is not None)
    require(all(part == records for part in (counted, *extra)), "its bins are broken")
    if f.scatter is not None and f.shares is not None:
        require(f.scatter.shape[1] * len(f.shares) == len(f.nodes), "its bins are broken")
        whole = abs(float(f.shares.sum()) - 1.0) <= 1e-9
        require(whole and bool(np.all(f.shares >= 0.0)), "its bins are broken")


@dataclass(frozen=True)
class JointContents:
    """One release of several outputs. ``names``: of the input columns; ``output_names``: of the
    outputs, which ``outputs`` has in the same order."""

    parameters: Parameters | MixedParameters
    columns: Annotated[int, Within(1, 10_000)]
    names: tuple[str, ...] | None
    output_names: tuple[str, ...]
    guarantee: Guarantee
    outputs: tuple[OutputContents, ...]
    plan_summary: str
    certificate: dict[str, Any]

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        given, count = self.parameters, len(self.outputs)
        given.check_for(self.columns)
        declared = len(given.parts())
        require(count == declared == len(self.output_names), "its outputs are not one per pair")
        require(len({*self.output_names}) == count, "its outputs do not have names of their own")
        checked_shares(given.shares, count)
        if self.names is not None:
            named = given.inputs_of(self.columns)
            require(len(self.names) == named, "its column names are not one per column")
        require(given.reconstruct == "posterior", "its parameters are not those of its release")
        for output, asked in zip(self.outputs, given.parts(), strict=True):
            output.check_for(self.columns, asked)
        spent = self.outputs[0].spent
        check_total(spent, self.guarantee)
        alike = [[_shared(each) for each in output.spent] for output in self.outputs]
        require(all(own == alike[0] for own in alike), "its measurements are broken")
        budget = (self.guarantee.epsilon, self.guarantee.delta)
        measured = tuple(output.functionals for output in self.outputs)
        check_stated(
            self.certificate,
            self.guarantee,
            given,
            joint_hash(measured, output_bounds(given.y_bounds), *budget),
            several=len(spent) > 1,
        )
        named = self.certificate.get("outputs") == list(self.output_names)
        require(named, "its certificate is not about its contents")


def _shared(each: Spending) -> tuple[Any, ...]:
    """What is the same for all outcomes of one measurement."""
    return each.batch, each.rows, each.people, each.guarantee
