"""What an update of a release is asked, and what comes before it spends: read and rehearse."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from privgp.command.errors import Refusal, counted, refusing
from privgp.command.io.cells.kinds import Kinds, levels_of
from privgp.command.io.columns import as_table, known_kinds, made_up, split_names
from privgp.command.io.files import open_stored
from privgp.command.io.request import Request, public_computation
from privgp.command.io.screen import Step
from privgp.command.io.spending import Measure
from privgp.models.kept import names_of
from privgp.models.kinds.updates import (
    KINDS,
    MEASURED,
    OTHER_ROWS,
    OTHER_UNIT,
    check_updatable,
    measure_again,
    measure_new,
)
from privgp.models.load import load, save
from privgp.models.regressor import PrivateGPRegressor
from privgp.storage.parts import part_beside

Further = tuple[float, float] | None  # a further budget for the same rows; None for new people

# What the library refuses, in words of this command.
IN_OPTIONS = {
    KINDS: "FILE cannot be updated: it must be a release of one output, neither labels nor rates, at "
    "public inputs, made without --inducing and --reconstruct unbiased. Nothing was spent.",
    MEASURED: "The rows of DATA were measured already: if they are the same people, give --same-rows. "
    "Nothing was spent.",
    OTHER_ROWS: "With --same-rows, DATA must be the rows of FILE or of one of its updates, in the same "
    "order: leave it out for new people. Nothing was spent.",
    OTHER_UNIT: "--groups must be given if FILE was made with it, and otherwise not: the promise "
    "protects one kind of unit. Nothing was spent.",
}


@dataclass(frozen=True, kw_only=True)
class UpdateRequest(Request):
    """``released``: the model of the file; ``names``: of the input columns; ``further``: budget for
    the same rows, None for new people."""

    released: PrivateGPRegressor
    names: tuple[str, ...]
    further: Further

    @classmethod
    def of(
        cls,
        release: Path,
        data: Path,
        inputs: str | None,
        output: str,
        groups: str | None,
        further: Further,
        seed: int | None,
        **written: Any,
    ) -> Self:
        """``written``: how the table is, and what is done about missing values."""
        model = open_stored(release, load)
        names = names_of(model) if inputs is None else tuple(split_names(inputs))
        count = int(model.n_features_in_)
        if names is None:
            raise Refusal(
                f"'{release}' does not name its {counted(count, 'input')}: do so with --inputs."
            )
        if len(names) != count:
            raise Refusal(
                f"'{release}' has {counted(count, 'input')}, but --inputs names {len(names)}."
            )
        with _told_as_options():
            check_updatable(model)
        epsilon, delta = further or (model.epsilon, model.delta)
        return cls(
            released=model, names=names, further=further, data=data, inputs=",".join(names),
            output=output, groups=groups, bounds=model.y_bounds, epsilon=epsilon, delta=delta,
            seed=seed, **written,
        )  # fmt: skip

    @property
    def input_names(self) -> list[str]:
        return [*self.names]

    @property
    def kinds(self) -> Kinds | None:
        return known_kinds(self.released, self.names)

    @property
    def levels(self) -> dict[str, list[str]]:
        inputs = self.released.inputs_
        if inputs is None:
            return {}
        here = dict(zip(inputs.names, self.names, strict=True))
        return {here[name]: levels for name, levels in levels_of(inputs).items()}

    def model(self) -> PrivateGPRegressor:
        released: PrivateGPRegressor = self.released.set_params(random_state=self.seed)
        released._noted = self.noted
        return released


def prepared_update(request: UpdateRequest, output: str, path: Path, step: Step) -> Measure:
    """Read the table and rehearse; what is handed back spends."""
    step("Reading the table")
    X, people, y = request.all_columns(output)
    model = request.model()
    step("Planning and rehearsing")
    rehearse_update(model, X, people, path, request.further)

    def measure() -> PrivateGPRegressor:
        model.set_params(ledger=request.account)
        _measure(model, X, y, people, request.further)
        return model

    return measure


def rehearse_update(
    model: PrivateGPRegressor, X: Any, people: Any, path: Path, further: Further
) -> None:
    """Release made-up values from a copy of the model, into a file that is removed."""
    trial = deepcopy(model).set_params(hyperparameters="fixed", random_state=0)
    with (
        refusing(f"'{path}' cannot be written there; nothing was spent.", OSError),
        _told_as_options(),
        part_beside(path, ending=path.suffix) as part,
    ):
        _, middle = made_up(X, None, model.y_bounds)
        _measure(trial, X, middle, people, further)
        save(trial, part, overwrite=True)


@contextmanager
def _told_as_options() -> Iterator[None]:
    """Pass on what a computation without private values refuses, in words of this command."""
    with public_computation():
        try:
            yield
        except ValueError as problem:
            raise ValueError(IN_OPTIONS.get(str(problem), str(problem))) from None


def _measure(model: PrivateGPRegressor, X: Any, y: Any, people: Any, further: Further) -> None:
    """New people's rows, or the same again with a further budget."""
    rows = as_table(model, X)  # under the names that the model knows
    if further is None:
        measure_new(model, rows, y, people)
    else:
        measure_again(model, rows, y, *further, people)
