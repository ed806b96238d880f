"""A private column is refused as an input by its name or memory, never by its values, however it is given."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privgp import Number, PrivateGP, PrivateGPRegressor
from privgp.vault.validate import check_order, check_roles

DATA = np.random.default_rng(0).uniform(0, 9, (20, 3))
FORTRAN = np.asfortranarray(DATA)
FRAME = pd.DataFrame(DATA, columns=["age", "bmi", "cost"])
POLARS = pl.from_pandas(FRAME)
RECORDS = np.rec.fromarrays(DATA.T.copy(), names="age,bmi,cost")
LISTS = {name: FRAME[name].tolist() for name in FRAME}
FILES = SimpleNamespace(names=("age", "cost"))

REFUSED = {
    "pandas": (FRAME, FRAME["cost"]),
    "pandas, computed": (FRAME, FRAME["cost"] * 1.0),
    "pandas, renamed": (FRAME, FRAME["cost"].rename("paid")),
    "pandas, a table of one": (FRAME, FRAME[["cost"]]),
    "pandas, several": (FRAME, FRAME[["cost", "bmi"]].rename(columns={"bmi": "other"})),
    "pandas, its array": (FRAME, FRAME["cost"].to_numpy()),
    "pandas, numbered": (pd.DataFrame(DATA), pd.DataFrame(DATA)[2] + 1.0),
    "polars": (POLARS, POLARS["cost"]),
    "polars, lazy": (POLARS.lazy(), POLARS["cost"]),
    "polars, renamed": (POLARS, POLARS["cost"].rename("paid")),
    "polars and pandas": (POLARS, FRAME["cost"]),
    "polars, several": (POLARS, POLARS.select("cost", other="bmi")),
    "columns by name": (LISTS, FRAME["cost"]),
    "columns by name, the same list": (LISTS, LISTS["cost"]),
    "columns by name, arrays": ({"a": DATA[:, 0], "b": DATA[:, 2]}, DATA[:, 2]),
    "structured": (RECORDS, RECORDS["cost"]),
    "structured and named": (RECORDS, FRAME["cost"]),
    "rows by name": (FRAME.to_dict("records"), FRAME["cost"]),
    "array": (DATA, DATA[:, 2]),
    "array, reversed": (DATA, DATA[::-1, 2]),
    "array, part of it": (DATA[:10], DATA[5:15, 2]),
    "array, as a column": (DATA, DATA[:, 2:]),
    "array, by columns": (FORTRAN, FORTRAN[:, 2]),
    "one column": (DATA[:, 2:], DATA[:, 2]),
    "files": (FILES, SimpleNamespace(name="cost")),
}
ACCEPTED = {
    "columns of one array": (DATA[:, :2], DATA[:, 2]),
    "columns between each other": (DATA[:, ::2], DATA[:, 1]),
    "rows of one array": (DATA[:10], DATA[10:, 2]),
    "columns of one array, by columns": (FORTRAN[:, :2], FORTRAN[:, 2]),
    "fields of one array": (RECORDS[["age", "bmi"]], RECORDS["cost"]),
    "equal values": (DATA, DATA[:, 2].copy()),
    "columns of one table": (FRAME[["age", "bmi"]], FRAME["cost"]),
    "columns of one polars table": (POLARS.select("age", "bmi"), POLARS["cost"]),
    "without a name": (POLARS.rename({"age": ""}), pl.Series(DATA[:, 2])),
    "numbered tables": (pd.DataFrame(DATA[:, :2].copy()), pd.DataFrame(DATA[:, 2:].copy())),
    "lists": (DATA.tolist(), DATA[:, 2].tolist()),
    "a number of records": (20, DATA[:, 2]),
    "nothing": (None, DATA[:, 2]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_private_column_among_others_is_refused(case):
    X, y = REFUSED[case]
    with pytest.raises(ValueError, match=r"(?s)^y .*column of X: .* Nothing was spent"):
        check_roles(y, X=X)


@pytest.mark.parametrize("case", ACCEPTED)
def test_other_columns_are_not(case):
    X, y = ACCEPTED[case]
    check_roles(y, X=X)


@pytest.mark.parametrize("role", ["groups", "exposure", "targets", "inducing"])
def test_it_is_no_identifier_and_no_exposure_either(role):
    X = FRAME[["age"]]
    for other in (FRAME["cost"], FRAME["cost"].to_numpy(), FRAME["bmi"].rename("cost")):
        with pytest.raises(ValueError, match=f"^y .* column of {role}"):
            check_roles(FRAME["cost"], X=X, **{role: other})
    check_roles(FRAME["cost"], X=X, **{role: FRAME["bmi"]})


@pytest.mark.parametrize("role", ["targets", "inducing"])
def test_nor_points_that_are_declared_to_a_model(role):
    settings = {"hyperparameters": "fixed", "random_state": 0, role: FRAME[["cost"]]}
    words = f"^y .* column of {role}: .* Nothing was spent"
    with pytest.raises(ValueError, match=words):
        PrivateGPRegressor(y_bounds=(0, 9), **settings).fit(FRAME[["age"]], FRAME["cost"])
    with pytest.raises(ValueError, match=words):
        PrivateGP({"cost": Number(0, 9)}, inputs=["age"], **settings).fit(FRAME)


@pytest.mark.parametrize("role", ["targets", "inducing"])
def test_points_have_an_order_of_their_own(role):
    shuffled = FRAME[["age"]].sample(frac=1, random_state=0)
    check_roles(FRAME["cost"], X=FRAME[["age"]], **{role: shuffled})


def test_what_is_refused_does_not_depend_on_values():
    X = np.zeros((20, 2))
    check_roles(np.zeros(20), X=X)
    for values in (np.zeros(20), np.arange(20.0), np.full(20, np.nan)):
        X[:, 1] = values
        with pytest.raises(ValueError, match="shares memory with a column of X") as refused:
            check_roles(X[:, 1], X=X)
        assert not any(letter.isdigit() for letter in str(refused.value))


def test_rows_in_another_order_are_refused():
    shuffled = FRAME.sample(frac=1, random_state=0)
    for given in (
        {"X": FRAME[["age"]], "y": shuffled["cost"]},
        {"X": shuffled[["age"]], "y": FRAME["cost"]},
        {"X": DATA, "y": FRAME["cost"], "groups": shuffled["bmi"]},
        {"X": {"age": FRAME["age"]}, "y": shuffled["cost"]},
        {"X": {"age": FRAME["age"], "bmi": shuffled["bmi"]}},
    ):
        with pytest.raises(ValueError, match=r"different pandas indexes.*reset_index\(drop=True\)"):
            check_order(**given)


def test_rows_in_the_same_order_are_not():
    shuffled = FRAME.sample(frac=1, random_state=0)
    check_order(X=shuffled[["age"]], y=shuffled["cost"], groups=shuffled["bmi"].to_numpy())
    check_order(X=shuffled[["age"]].reset_index(drop=True), y=FRAME["cost"])
    check_order(X=FRAME[["age"]], y=FRAME["cost"][:-1])  # refused for its length
    check_order(X=shuffled[["age"]], y=DATA[:, 2].tolist())
