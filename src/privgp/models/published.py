"""What every model that is published has: its budget, its least epsilon, its file, its certificate."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

from sklearn.base import clone

from privgp.gp.measurement import Measurement
from privgp.models.kinds.further import spendings_of
from privgp.models.promise import VALUES, Told, noted, regressor_guarantee
from privgp.plan.build import Budget
from privgp.plan.plan import Plan
from privgp.plan.replan import check_error, least_epsilon
from privgp.plan.several.plan import JointPlan
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate import utc
from privgp.release.spendings import Spending, as_one, promised
from privgp.types import Array

LONGEST = 200


@dataclass(frozen=True)
class Further:
    """What a measurement is added to: ``before``: those so far; ``batch``: of its people;
    ``guarantee``: what it promises alone; None: as its plan has it."""

    before: tuple[Spending, ...] = ()
    batch: int = 0
    guarantee: Guarantee | None = None


FIRST = Further()


class Published:
    _each: tuple[Any, ...] = ()  # the fitted models of several outputs
    _spent: tuple[Any, ...] = ()  # every measurement, where more may follow
    _held: tuple[Any, ...] = ()  # what was measured and learned of every class of labels
    inputs_: Any = None  # what the columns are, where they are not all numbers
    output_: Any = None  # what the output is called, and its units
    _noted: tuple[str, ...] = ()  # what the promise assumes besides
    epsilon: float
    delta: float
    protect: str
    plan: Any
    plan_: Any
    random_state: Any
    _told: ClassVar[Told] = VALUES  # what the promise says of outputs
    _parameters: Any

    def epsilon_for(self, X: Any, error: float, *, groups: Any = None) -> float:
        """The least epsilon, within 1%, whose plan for these inputs expects at most this error.

        Every epsilon that is tried is planned for; the model's own is not used. Reads no output and
        spends nothing. ValueError if no epsilon reaches the error.
        """
        return self._least_epsilon(X, error, groups)

    def _least_epsilon(self, X: Any, error: float, groups: Any, **given: Any) -> float:
        error = check_error(error)

        def planned(epsilon: float) -> Plan:
            plan: Plan = clone(self).set_params(epsilon=epsilon).plan(X, groups=groups, **given)
            return plan

        return least_epsilon(planned, error)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to a .privgp file; see privgp.load.

        It holds noisy sums of the outputs and, under ``protect="outputs"``, inputs, which a warning says.
        """
        from privgp.models.load import notice, save

        save(self, path, overwrite=overwrite)
        if self.protect == "outputs":
            warnings.warn(notice(self), UserWarning, stacklevel=2)

    def certificate(
        self, *, holder: Mapping[str, str] | None = None, date: datetime | None = None
    ) -> dict[str, Any]:
        """What was promised, as JSON; see privgp.release.certificate."""
        from privgp.release.certificate import certificate

        return certificate(self, holder=holder, date=date)

    def name_output(self, name: str, units: str | None = None, column: str | None = None) -> Self:
        """Say what the output is called, in which units it is, and in which column of the table: for
        the file, pictures and certificate. It tells nothing of its values."""
        said = {"name": name, "units": units, "column": column}
        given = {key: text for key, text in said.items() if text is not None or key == "name"}
        for what, text in given.items():
            if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
                raise ValueError(f"{what} must be a text of at most {LONGEST} characters.")
        if self._each:
            raise ValueError("several outputs have the names of the columns of y.")
        self.output_ = given
        loaded = vars(self).get("loaded_")
        if loaded is not None:
            self.loaded_ = replace(loaded, certificate={**loaded.certificate, "output": given})
        return self

    def _called(self, otherwise: str) -> str:
        """What the output is called on pictures."""
        if self.output_ is None:
            return otherwise
        units = self.output_.get("units")
        return f"{self.output_['name']} ({units})" if units else str(self.output_["name"])

    @property
    def plan_summary_(self) -> str:
        """What the plan said of itself; also where only a file is left of it."""
        loaded = vars(self).get("loaded_")
        return str(self.plan_.summary() if loaded is None else loaded.plan_summary)

    def _exposed_by(self, exposure: Any, rows: int) -> dict[int, Array]:
        """The exposure of every row by the place of the output that is counted; labels are not."""
        return {}

    def _promised(self, plan: Plan | JointPlan) -> Guarantee:
        """What the measurement of a plan promises, with what is assumed besides."""
        simulated = self.random_state is not None
        return noted(self, regressor_guarantee(plan, simulated=simulated, told=self._told))

    def _note(
        self, plan: Plan, measurement: Measurement, functions: int, further: Further
    ) -> tuple[Measurement, ...]:
        """Take over a plan and what was measured; returns all measurements as one, of every function."""
        guarantee = further.guarantee or self._promised(plan)
        new = spendings_of(plan.strategy, plan, measurement, guarantee, further.batch)
        self._spent = (*further.before, *new)
        self.guarantee_ = promised(self._spent) if further.before else guarantee
        self.plan_ = plan
        # for a file, should a parameter be changed later
        self._asked = self._parameters(plan.targets.shape[1])
        self.released_at_ = utc(datetime.now(UTC))
        loaded = self.__dict__.pop("loaded_", None)  # a file is no longer what was released
        if not further.before:
            self.__dict__.pop("chosen_by_", None)
        elif loaded is not None:
            self.chosen_by_ = loaded.certificate["hyperparameters"]["source"]
        spent = self._spent
        measured = as_one(spent, functions) if spent else measurement.parts(functions)
        self._hold(spent, measured)
        return measured

    def _hold(self, spent: tuple[Spending, ...], measured: tuple[Measurement, ...]) -> None:
        """Keep what was measured; ``measured``: all of it as one, of every function."""
        each = [one.measurement.parts(len(measured)) for one in spent] or [measured]
        self.measurements_ = tuple(one for function in zip(*each, strict=True) for one in function)
        self._spent, self._as_one = spent, measured

    def _streams(self, rows: int) -> bool:
        """Whether so many rows are read in blocks, so that they need not be in memory."""
        return False

    def _budget(self) -> Budget:
        return Budget(float(self.epsilon), float(self.delta))
