"""Replay of estimators: every row of the adversary suite, and mechanisms that it has no row for."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern

from privgp import (
    Label,
    Ledger,
    Number,
    PosteriorPaths,
    PrivateFunction,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPRegressor,
    PrivateGridSearchCV,
    open_table,
)
from privgp.release.certificate import page
from tests.adversary.attacks import Released
from tests.adversary.mechanisms import BLOCKS, BUDGET, FEW, ROWS, ends_of_person, of_blocks
from tests.adversary.neighbours import INPUTS, PEOPLE, ends
from tests.adversary.replay.leaving import Left, of_files, of_object
from tests.adversary.replay.tables import ENDS, table, table_with

# Rows whose two datasets have residuals of one size: what is chosen by them does not move.
SYMMETRIC = ("permute-and-flip, choice", "permute-and-flip, release")
FIXED = {**BUDGET, "hyperparameters": "fixed"}


@dataclass(frozen=True)
class Estimator:
    """``fit``: an estimator fitted to a dataset; files of its own go to the folder."""

    fit: Callable[[Any, Path], Any]
    neighbours: Callable[[], tuple[Any, Any]]
    refused: bool = False

    def data(self, dataset: Any) -> bytes:
        return pickle.dumps(dataset)

    def run(self, dataset: Any, folder: Path) -> tuple[Any, Left]:
        model = self.fit(dataset, folder)
        given = set(folder.rglob("*"))
        return model, left_by(model, folder) | of_files(folder, given)


def left_by(model: Any, folder: Path) -> Left:
    """All that a fitted estimator gives to anyone who has it; ``_kept`` is a custodian's."""
    shown = {name: value for name, value in vars(model).items() if name != "_kept"}
    left = of_object(shown, "attributes")
    left["repr"] = f"{model!r} {model}".encode()
    left["guarantee"] = f"{model.guarantee_.to_json()} {model.guarantee_.describe()}".encode()
    if hasattr(model, "release"):
        asked = model._kept.contents.draws.points
        left["answers"] = model.release(asked if len(asked) else FEW).tobytes()
    if hasattr(model, "save"):
        model.save(folder / "model.privgp")
        facts = model.certificate()
        left["certificate.json"] = json.dumps(facts).encode()
        left["certificate.html"] = page(facts).encode()
    return left


def known(name: str, mechanism: Any) -> Estimator:
    """A row of the adversary suite."""
    if isinstance(mechanism, Released):
        return Estimator(lambda data, _: mechanism.run(data, 1)[0], mechanism.neighbours)
    pair = unequal if name in SYMMETRIC else mechanism.neighbours
    return Estimator(lambda data, _: mechanism.run(data), pair)


def unequal() -> tuple[np.ndarray, np.ndarray]:
    """Outputs of which the first moves the residuals of all of them."""
    y = np.r_[np.zeros(9), np.ones(3)]
    return y, np.r_[1.0, y[1:]]


def from_files(groups: str | None = None, **settings: Any) -> Estimator:
    """Outputs in two files that are read in parts: through inducing inputs, or in cells."""
    model = PrivateGPRegressor(
        **{**FIXED, **(settings or {"inducing": 3, "mechanism": "gaussian"})}
    )

    def fit(y: Any, folder: Path) -> Any:
        made = pl.DataFrame({"x": INPUTS[:, 0], "y": y, "who": PEOPLE})
        for name, part in (("a", made[:6]), ("b", made[6:])):
            part.write_csv(folder / f"{name}.csv")
        opened = open_table(folder, inputs=["x"], output="y", groups=groups)
        with mock.patch("privgp.models.rows.fit.STREAMED", 5):
            return clone(model).fit(opened.inputs, opened.output, groups=opened.groups)

    return Estimator(fit, ends() if groups is None else ends_of_person(PEOPLE))


def two_stages(groups: Any = None, **settings: Any) -> Estimator:
    """A curve learned from the first stage, which the second one's residuals are about."""
    model = PrivateGPRegressor(**BUDGET, residuals="always", **settings)
    y = np.tile(np.linspace(0.2, 0.7, len(INPUTS)), (2, 1))
    y[:, PEOPLE == 0 if groups is not None else slice(0, 1)] = [[0.0], [1.0]]
    return Estimator(lambda y, _: clone(model).fit(INPUTS, y, groups=groups), lambda: (y[0], y[1]))


def chosen_by_blocks(model: Any) -> Estimator:
    """A model with one of two kernels, chosen by two blocks of the rows, which one output changes."""
    name = next(each for each in model.get_params() if each.endswith("length_scale"))
    search = PrivateGridSearchCV(
        model,
        {name: [1e4, 0.01]},
        method="permute-and-flip",
        epsilon=1000.0,
        delta=0.01,
        blocks=2,
    )

    def fit(y: Any, _: Path) -> Any:
        found = clone(search).fit(BLOCKS, y).best_estimator_
        found.release(BLOCKS[2:6])
        return found

    return Estimator(fit, of_blocks)


def from_database(groups: str | None = None, **settings: Any) -> Estimator:
    """Outputs in a table of DuckDB, which sends back grouped sums."""
    model = PrivateGPRegressor(**{**FIXED, "mechanism": "laplace", **settings})

    def fit(y: Any, folder: Path) -> Any:
        ibis = pytest.importorskip("ibis", reason="the extra 'database' is not installed")
        made = pl.DataFrame({"x": INPUTS[:, 0], "y": y, "who": PEOPLE})
        rows = ibis.duckdb.connect().create_table("rows", made.to_arrow())
        opened = open_table(rows, inputs=["x"], output="y", groups=groups)
        return clone(model).fit(opened.inputs, opened.output)

    return Estimator(fit, ends() if groups is None else ends_of_person(PEOPLE))


def gathered(
    model: Any, output: Any, cells: dict[str, Any], groups: str | None = None
) -> Estimator:
    """Private cells of one row, or of a person's two, in two files that are read into memory."""

    def fit(which: int, folder: Path) -> Any:
        made = table_with(cells, which, slice(0, 2) if groups else 0)
        made[:10].write_csv(folder / "a.csv")
        made[10:].write_parquet(folder / "b.parquet")
        opened = open_table(folder, ["age"], output, groups)
        if isinstance(model, PrivateGP):
            return clone(model).fit(opened)
        return clone(model).fit(opened.inputs, opened.output)

    return Estimator(fit, lambda: (0, 1))


def from_table(kind: Any, cells: Any, x_bounds: Any = None) -> Estimator:
    """A record's private column of some kind, or two, and its output."""
    names = [*cells]
    column: Any = names[0] if len(names) == 1 else tuple(names)
    model = PrivateGPRegressor(
        **{**FIXED, "y_bounds": (0, 5000)}, protect="records", columns={column: kind},
        x_bounds=x_bounds or {}, mechanism="laplace",
    )  # fmt: skip

    def fit(which: int, _: Path) -> Any:
        made = table_with({**cells, "cost": ENDS["cost"]}, which)
        return clone(model).fit(made[names], made["cost"])

    return Estimator(fit, lambda: (0, 1))


def one_fewer() -> Estimator:
    """A person's two private records, or the second of them alone: how many there are is private."""
    model = clone(COSTS).set_params(**PRIVATE)

    def fit(fewer: int, _: Path) -> Any:
        made = table()[fewer:].to_pandas()
        return clone(model).fit(made[["age"]], made["cost"], groups=made["person"])

    return Estimator(fit, lambda: (0, 1))


def labels(groups: Any = None, **settings: Any) -> Estimator:
    """One person's label of two changes."""
    shared = {"epsilon": 8.0, "delta": 0.01, "hyperparameters": "fixed", "classes": (0, 1)}
    model = PrivateGPClassifier(**shared, **settings)
    y = np.zeros((2, len(INPUTS)), int)
    y[1, PEOPLE == 0 if groups is not None else slice(0, 1)] = 1
    return Estimator(lambda y, _: clone(model).fit(INPUTS, y, groups=groups), lambda: (y[0], y[1]))


def charged(y: Any, folder: Path) -> Any:
    """To an account, whose entries leave too."""
    account = Ledger(f"sqlite:///{folder / 'l.db'}").open("people", 20.0, 0.1)
    model = PrivateGPRegressor(**FIXED, mechanism="gaussian", ledger=account).fit(INPUTS, y)
    model.charges_ = [*account.entries()]
    return model.set_params(ledger=None)


def refused(model: Any, *cells: Any) -> Estimator:
    """An output that is not a number: what is said does not depend on what it is."""
    outputs = [[0.5] * (len(FEW) - 1) + [cell] for cell in cells]
    return Estimator(
        lambda y, _: clone(model).fit(FEW, y), lambda: (outputs[0], outputs[1]), refused=True
    )


TIGHT: Any = {"epsilon": 8.0, "delta": 0.01, "hyperparameters": "fixed"}
COSTS = PrivateGPRegressor(**TIGHT, y_bounds=(0, 5000), mechanism="gaussian")
LABELS = PrivateGPClassifier(**TIGHT, classes=["no", "yes"])
CASES = {"y_bounds": (0, 50), "likelihood": "poisson", "max_change": 3}
PRIVATE: Any = {"protect": "records", "x_bounds": [(0, 100)]}
ILL, BOTH = {"ill": ("no", "yes")}, {"cost": (0.0, 5000.0), "pay": (0.0, 100.0)}
FILES = {
    "labels": gathered(LABELS, "ill", ILL),
    "labels of people": gathered(LABELS, "ill", ILL, "person"),
    "counts": gathered(clone(COSTS).set_params(**CASES), "cases", {"cases": (10.0, 13.0)}),
    "several": gathered(
        clone(COSTS).set_params(y_bounds=((0, 5000), (0, 100))), ["cost", "pay"], BOTH
    ),
    "records": gathered(clone(COSTS).set_params(**PRIVATE), "cost", ENDS),
    "records of people": gathered(clone(COSTS).set_params(**PRIVATE), "cost", ENDS, "person"),
    "labelled records": gathered(
        clone(LABELS).set_params(**PRIVATE), "ill", {"age": ENDS["age"], **ILL}
    ),
    "any outcomes": gathered(
        PrivateGP({"cost": Number(0, 5000), "ill": Label("no", "yes")}, **TIGHT),
        ["cost", "ill"],
        {"cost": ENDS["cost"], **ILL},
    ),
}
KINDS_OF_COLUMNS = {
    "date": from_table(
        "date", {"when": ("2024-01-02", "2024-12-30")}, {"when": ("2024-01-01", "2024-12-31")}
    ),
    "category": from_table(("category", ["north", "south"]), {"region": ("north", "a secret")}),
    "place": from_table(
        "place", {"lat": (51.1, 51.9), "lon": (-0.9, 0.9)}, {"lat": (51, 52), "lon": (-1, 1)}
    ),
    "periodic": from_table(("periodic", 24), {"hour": (1.0, 13.0)}),
    "boolean": from_table("boolean", {"ok": ("true", "false")}),
}
ESTIMATORS: dict[str, Estimator] = {
    **{f"{kind.__name__}, {name}": known(name, mechanism) for name, kind, mechanism in ROWS},
    "PrivateGPRegressor, streamed files": from_files(),
    "PrivateGPRegressor, streamed files in cells": from_files(mechanism="laplace"),
    "PrivateGPRegressor, streamed files of people": from_files("who"),
    "PrivateGPRegressor, files of people in cells": from_files("who", mechanism="laplace"),
    "PrivateGPRegressor, residuals of files in cells": from_files(
        mechanism="laplace", residuals="always"
    ),
    "PrivateGPRegressor, residuals of people in files": from_files(
        "who", mechanism="laplace", residuals="always"
    ),
    "PrivateGPRegressor, residuals in a database": from_database(residuals="always"),
    "PrivateGPRegressor, residuals about a learned curve": two_stages(),
    "PrivateGPRegressor, residuals of people": two_stages(PEOPLE, mechanism="gaussian"),
    "PrivateGridSearchCV, blocks, then paths": chosen_by_blocks(
        PosteriorPaths(Matern(1.0, nu=0.5), 1e-3, domain=(0, 1), y_bounds=(0, 1), delta=0.01)
    ),
    "PrivateGridSearchCV, blocks, then a function": chosen_by_blocks(
        PrivateFunction(Matern(1.0, nu=2.5), 1e-3, **BUDGET)
    ),
    "PrivateGPRegressor, database": from_database(),
    "PrivateGPRegressor, database of people": from_database("who"),
    **{f"files of {what}": row for what, row in FILES.items()},
    "PrivateGPRegressor, ledger": Estimator(charged, ends()),
    "records of people, one fewer": one_fewer(),
    "PrivateGPClassifier, people": labels(PEOPLE),
    "PrivateGPClassifier, records": labels(protect="records", x_bounds=[(0, 1)]),
    **{f"private {kind}": row for kind, row in KINDS_OF_COLUMNS.items()},
    "PrivateGPRegressor, refused": refused(PrivateGPRegressor(**FIXED), "a secret", "b"),
    "PrivateGPClassifier, refused": refused(
        PrivateGPClassifier(classes=(0, 1), epsilon=1.0, delta=1e-5), float("nan"), None
    ),
    "PrivateFunction, refused": refused(
        PrivateFunction(Matern(0.5, nu=2.5), 0.3, **BUDGET), float("nan"), float("inf")
    ),
}
