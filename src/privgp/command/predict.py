"""``privgp predict``: use what was published, any number of times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privgp.command.errors import Failure, Refusal, refusal
from privgp.command.io.columns import asked_inputs, input_columns, names_of_inputs
from privgp.command.io.destinations import (
    PICTURES,
    RELEASES,
    TABLES,
    check_apart,
    check_destination,
)
from privgp.command.io.screen import Step, progress, say, say_if_simulated, say_json
from privgp.command.io.tables import load, open_stored, open_table, write_table
from privgp.models.load import load as load_release
from privgp.release.figures import save_figure
from privgp.types import Array

BLOCK = 4096


def open_release(path: Path) -> Any:
    """The model in a .privgp file."""
    return open_stored(path, RELEASES, load_release)


def run_predict(
    release: Path,
    data: Path,
    out: Path,
    *,
    inputs: str | None,
    observation: bool,
    plot: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the inputs with columns for mean and std."""
    check_destination(out, TABLES, force=force)
    check_destination(plot, PICTURES, force=force)
    check_apart([release, data], [out, plot])
    model = open_release(release)
    names = asked_inputs(model, release, inputs)
    source = open_table(data)
    X = input_columns(load(source, names), names, source)
    blocks = -(-X.height // BLOCK)
    with progress(blocks + 1) as step:
        mean, std = _predictions(model, X.to_numpy().astype(np.float64), observation, step)
        step("Writing")
        labels = result_names(names)
        frame = X.with_columns(pl.Series(labels[0], mean), pl.Series(labels[1], std))
        columns = write_table(frame, out, simulation=model.guarantee_.is_simulation)
        if plot is not None:
            try:
                save_figure(model.plot(observation=observation), plot)
            except OSError:
                raise Failure(f"'{plot}' could not be written.") from None
    if as_json:
        say_json(
            {
                "predictions": str(out),
                "rows": X.height,
                "columns": columns,
                "plot": None if plot is None else str(plot),
            },
            simulation=model.guarantee_.is_simulation,
        )
        return
    say_if_simulated(model.guarantee_)
    what = "an output about the function" if observation else "the function"
    say(f"Predicted {X.height} rows into {out}: {labels[0]}, and {labels[1]} of {what}.")
    if plot is not None:
        say(f"Drawn in {plot}.")


def result_names(inputs: list[str]) -> tuple[str, str]:
    """Mean and std, unless an input is called so."""
    return ("predicted_mean", "predicted_std") if {"mean", "std"} & {*inputs} else ("mean", "std")


def _predictions(model: Any, X: Array, observation: bool, step: Step) -> tuple[Array, Array]:
    """Mean and std in blocks of rows, so that any number of rows fits into memory."""
    named = names_of_inputs(model)
    means, stds = [], []
    for start in range(0, len(X), BLOCK):
        step(f"Predicting row {start + 1} of {len(X)}")
        rows: Any = X[start : start + BLOCK]
        if named is not None:
            # As many rows as columns would be taken for columns otherwise.
            rows = pl.DataFrame(rows, schema=named, orient="row")
        try:
            with np.errstate(all="ignore"):
                mean, std = model.predict(rows, return_std=True, observation=observation)
        except ValueError as problem:
            raise refusal(problem) from None
        means.append(mean)
        stds.append(std)
    mean, std = np.concatenate(means), np.concatenate(stds)
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(std))):
        raise Refusal("Some rows are too far away for a prediction that numbers can hold.")
    return mean, std
