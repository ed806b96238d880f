"""What a .privgp file holds of several outputs that were released together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from privgp.gp.functionals import Functionals
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.parameters import Parameters
from privgp.plan.several.arguments import checked_shares, output_bounds
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate import joint_hash
from privgp.release.stated import check_models, check_stated
from privgp.storage.archive import require
from privgp.types import Positive, Within


@dataclass(frozen=True)
class OutputContents:
    """One output: what was measured of it, and what was learned; as in ``Contents``."""

    _own_axes: ClassVar[bool] = True
    unit_rate: ClassVar[None] = None
    at_targets: ClassVar[None] = None
    measurement: Measurement
    functionals: Functionals
    models: tuple[Hyperparameters, ...]
    noise_variance: Positive

    def check_for(self, columns: int) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        f = self.functionals
        require(f.nodes.shape[1] == columns, "its number of columns is broken")
        extra = (self.measurement.counts, f.fixed_gram, f.scatter, f.shares)
        require(all(part is None for part in extra), "its bins are broken")
        check_models(self.models, columns)


@dataclass(frozen=True)
class JointContents:
    """One release of several outputs. ``names``: of the input columns; ``output_names``: of the
    outputs, which ``outputs`` has in the same order."""

    parameters: Parameters
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
        declared = len(output_bounds(given.y_bounds))
        require(count == declared == len(self.output_names), "its outputs are not one per pair")
        require(len({*self.output_names}) == count, "its outputs do not have names of their own")
        checked_shares(given.shares, count)
        if self.names is not None:
            named = given.inputs_of(self.columns)
            require(len(self.names) == named, "its column names are not one per column")
        require(given.reconstruct == "posterior", "its parameters are not those of its release")
        for output in self.outputs:
            output.check_for(self.columns)
        budget = (self.guarantee.epsilon, self.guarantee.delta)
        measured = tuple(output.functionals for output in self.outputs)
        check_stated(
            self.certificate,
            self.guarantee,
            given,
            joint_hash(measured, output_bounds(given.y_bounds), *budget),
        )
        named = self.certificate.get("outputs") == list(self.output_names)
        require(named, "its certificate is not about its contents")
