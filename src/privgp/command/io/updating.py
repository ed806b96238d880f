"""What an update of a release is asked, and what comes before it spends: read and rehearse."""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from privgp.command.errors import Refusal, counted, refusing
from privgp.command.io.columns import as_table, made_up, split_names
from privgp.command.io.files import open_stored
from privgp.command.io.request import Request, public_computation
from privgp.command.io.screen import Step
from privgp.command.io.spending import Measure
from privgp.models.kept import names_of
from privgp.models.load import load, save
from privgp.models.regressor import PrivateGPRegressor
from privgp.models.updates import check_updatable
from privgp.storage.parts import part_beside


@dataclass(frozen=True, kw_only=True)
class UpdateRequest(Request):
    """``released``: the model of the file; ``names``: of the input columns; ``further``: budget for
    the same rows, None for new people."""

    released: PrivateGPRegressor
    names: tuple[str, ...]
    further: tuple[float, float] | None

    @classmethod
    def of(
        cls,
        release: Path,
        data: Path,
        inputs: str | None,
        output: str,
        groups: str | None,
        further: tuple[float, float] | None,
        seed: int | None,
    ) -> Self:
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
        with public_computation():
            check_updatable(model)
        epsilon, delta = further or (model.epsilon, model.delta)
        return cls(
            released=model, names=names, further=further, data=data, inputs=",".join(names),
            output=output, groups=groups, bounds=model.y_bounds, epsilon=epsilon, delta=delta,
            seed=seed,
        )  # fmt: skip

    @property
    def input_names(self) -> list[str]:
        return [*self.names]

    def model(self) -> PrivateGPRegressor:
        released: PrivateGPRegressor = self.released.set_params(random_state=self.seed)
        return released


def prepared_update(request: UpdateRequest, output: str, path: Path, step: Step) -> Measure:
    """Read the table and rehearse; what is handed back spends."""
    step("Reading the table")
    X, people, y = request.all_columns(output)
    model = request.model()
    rows = as_table(model, X.to_numpy().astype(float))
    step("Planning and rehearsing")
    _rehearse(model, request, X, rows, people, path)
    if request.further is None:
        return lambda: model.update(rows, y, people)
    epsilon, delta = request.further
    return lambda: model.refine(rows, y, epsilon, delta, people)


def _rehearse(
    model: PrivateGPRegressor, request: UpdateRequest, X: Any, rows: Any, people: Any, path: Path
) -> None:
    """Release made-up values from a copy of the model, into a file that is removed."""
    trial = deepcopy(model).set_params(hyperparameters="fixed", random_state=0)
    _, middle = made_up(X, None, model.y_bounds)
    with (
        refusing(f"'{path}' cannot be written there; nothing was spent.", OSError),
        public_computation(),
        part_beside(path, ending=path.suffix) as part,
    ):
        if request.further is None:
            trial.update(rows, middle, people)
        else:
            trial.refine(rows, middle, *request.further, people)
        save(trial, part, overwrite=True)
