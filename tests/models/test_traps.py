"""Mistakes that honest users make: each is refused, or said, before it spends."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

import privgp
from privgp import BudgetExceeded, Ledger, LedgerError, PrivateGPRegressor, open_table
from privgp.models.load import notice
from privgp.publish import FITS, Fits, forget_fits
from tests.ledger.test_estimators import MADE

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"age": RNG.uniform(0, 10, 30), "cost": RNG.uniform(0, 1, 30), "days": RNG.integers(0, 5, 30)}
)
FRAME["label"] = np.arange(30) % 2
WHO = pd.Series(np.arange(30) // 2, name="who")
FIXED: dict[str, Any] = {"y_bounds": (0, 1), "delta": 1e-6, "hyperparameters": "fixed"}
SECOND = {"several outputs": ["cost", "days"], "labels": "label", "labelled records": "label"}


@pytest.fixture(autouse=True)
def fits() -> Iterator[Fits]:
    """As in a process in which nothing was fitted."""
    token = FITS.set(Fits())
    yield FITS.get()
    FITS.reset(token)


def plain(**options: Any) -> PrivateGPRegressor:
    return PrivateGPRegressor(**FIXED, **options)


# the private column among the inputs


def fit(model: Any, X: Any, y: Any) -> None:
    if "loss_bounds" in model.get_params() and model.loss_bounds is not None:
        model.fit(FRAME[["age"]], FRAME["cost"], X_val=X, y_val=y)
    else:
        model.fit(X, y)


OF_ONE_TABLE = ("any outcomes", "density")  # which take no output beside X


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind not in OF_ONE_TABLE])
def test_no_estimator_takes_its_output_among_its_inputs(kind, monkeypatch):
    monkeypatch.setattr("privgp.models.published.publish", None)
    output = SECOND.get(kind, "cost")
    y = FRAME[output]
    frame = pl.from_pandas(FRAME)
    for X in (FRAME, frame, frame.lazy(), FRAME.to_dict("list")):
        with pytest.raises(ValueError, match=r"is called '.*', like a column of X(_val)?: "):
            fit(MADE[kind][0](), X, y)
    array = FRAME[["age", *np.atleast_1d(output)]].to_numpy()
    own = array[:, 1:] if array.shape[1] > 2 else array[:, 1]
    with pytest.raises(ValueError, match=r"shares memory with a column of X(_val)?: "):
        fit(MADE[kind][0](), array, own)


ARROW = pa.Table.from_pandas(FRAME[["age", "cost"]])
CHUNKS = pa.concat_tables([ARROW, ARROW])
POLARS = pl.from_pandas(FRAME[["age", "cost"]])
ARRAY = FRAME[["age", "cost"]].to_numpy()
RECORDS = FRAME[["age", "cost"]].to_records(index=False)
HIDDEN: dict[str, tuple[Any, Any]] = {
    "arrow": (ARROW, ARROW["cost"]),
    "arrow, as an array": (ARROW, ARROW["cost"].to_numpy()),
    "arrow, named by pandas": (ARROW, FRAME["cost"]),
    "arrow, a table": (ARROW, ARROW.select(["cost"])),
    "arrow, a batch": (ARROW.to_batches()[0], ARROW.to_batches()[0]["cost"]),
    "arrow, in pieces": (CHUNKS, CHUNKS["cost"]),
    "polars, renamed": (POLARS, POLARS["cost"].alias("z")),
    "polars, in pieces": (
        (pieces := pl.concat([POLARS, POLARS], rechunk=False)), pieces["cost"].alias("z"),
    ),
    "a lazy frame": (POLARS.lazy(), POLARS["cost"]),
    "narwhals": (nw.from_native(POLARS), nw.from_native(POLARS)["cost"]),
    "pandas, renamed": (FRAME, FRAME["cost"].rename("z")),
    "a structured array": (RECORDS, RECORDS["cost"]),
    "a list of rows": (FRAME.to_dict("records"), FRAME["cost"]),
    "a view by its buffer": (ARRAY, memoryview(ARRAY[:, 1])),
}  # fmt: skip


@pytest.mark.parametrize("how", HIDDEN)
def test_tables_of_no_library_hide_their_output_among_their_inputs(how):
    with pytest.raises(ValueError, match=r"y (is called 'cost', like|shares memory with) a column"):
        plain().fit(*HIDDEN[how])


@pytest.mark.parametrize("X", [ARROW, ARROW.to_batches()[0], nw.from_native(POLARS)], ids=type)
def test_inputs_of_every_library_are_taken(X):
    asked = plain(random_state=0).fit(FRAME[["age", "cost"]], FRAME["days"] / 5)
    model = plain(random_state=0).fit(X, FRAME["days"].to_numpy() / 5)
    assert model.predict(X) == pytest.approx(asked.predict(FRAME[["age", "cost"]]))


def test_neither_does_a_model_of_any_outcomes():
    lists = FRAME[["age", "cost"]].to_dict("list")
    named = privgp.PrivateGP({"cost": privgp.Number(0, 1)}, hyperparameters="fixed")
    for table in (lists | {"copy": lists["cost"]}, FRAME[["age", "cost"]].assign(copy=FRAME.cost)):
        with pytest.raises(ValueError, match="y shares memory with a column of X"):
            named.fit(table)
    alone = privgp.PrivateGP(privgp.Number(0, 1), hyperparameters="fixed")
    with pytest.raises(ValueError, match="y is called 'cost', like a column of X"):
        alone.fit(FRAME[["age", "cost"]], FRAME["cost"])
    with pytest.raises(ValueError, match="different pandas indexes"):
        alone.fit(FRAME[["age"]], FRAME["cost"].sample(frac=1, random_state=0))
    days = {"days": privgp.Count(high=9, exposure="days")}
    for model in (privgp.PrivateGP(days), named.set_params(groups="cost")):
        for call in (model.plan, model.fit):
            with pytest.raises(
                ValueError, match="is a private outcome: it cannot be an exposure or"
            ):
                call(FRAME)


@pytest.mark.parametrize("name", ["update", "refine"])
def test_neither_does_a_further_measurement(name):
    model = plain(random_state=0).fit(FRAME[["age"]], FRAME["cost"])
    more = {"epsilon": 0.5} if name == "refine" else {}
    with pytest.raises(ValueError, match="y is called 'age', like a column of X"):
        getattr(model, name)(FRAME[["age"]], FRAME["age"], **more)
    with pytest.raises(ValueError, match="X and y have different pandas indexes"):
        getattr(model, name)(FRAME[["age"]], FRAME["cost"].sample(frac=1, random_state=0), **more)
    assert len(model.measurements_) == 1


def test_columns_of_one_array_are_taken():
    array = FRAME[["age", "cost"]].to_numpy()
    model = plain(random_state=0).fit(array[:, :1], array[:, 1])
    same = plain(random_state=0).fit(array[:, :1].copy(), array[:, 1].copy())
    assert np.array_equal(model.predict([[5.0]]), same.predict([[5.0]]))


def test_private_identifiers_are_not_among_private_inputs():
    X = FRAME[["age"]].assign(who=WHO)
    model = plain(protect="records", x_bounds=((0, 10), (0, 30)))
    for call in (lambda: model.plan(X, groups=WHO), lambda: model.fit(X, FRAME.cost, groups=WHO)):
        with pytest.raises(ValueError, match="groups is called 'who', like a column of X"):
            call()
    public = plain(random_state=0).fit(X, FRAME["cost"], groups=WHO)  # where they may be an input
    assert public.n_features_in_ == 2


def test_an_output_in_files_is_not_among_inputs_in_files(tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="cannot be among the inputs"):
        open_table(tmp_path / "a.parquet", ["age", "cost"], "cost")
    inputs = open_table(tmp_path / "a.parquet", ["age", "cost"]).inputs
    table = open_table(tmp_path / "a.parquet", ["age"], "cost", "days")
    with pytest.raises(ValueError, match="y is called 'cost', like a column of X"):
        plain().fit(inputs, table.output)
    groups = open_table(tmp_path / "a.parquet", ["age"], None, "cost").groups
    with pytest.raises(ValueError, match="y is called 'cost', like a column of groups"):
        plain().fit(table.inputs, table.output, groups=groups)


def test_files_do_not_claim_what_cannot_be_known(tmp_path):
    copy = FRAME["cost"].to_numpy().copy()  # nothing shows what it is
    X = FRAME[["age"]].assign(other=copy)
    for more in ({}, {"inducing": 5}):
        model = plain(random_state=0, **more).fit(X, FRAME["cost"])
        with pytest.warns(UserWarning, match="only if no column of X is private"):
            model.save(tmp_path / f"{len(more)}.privgp")
    records = plain(random_state=0, protect="records", x_bounds=(0, 10), targets=[[1.0]])
    records.fit(FRAME[["age"]], FRAME["cost"])
    for text in (notice(model), notice(records), model.plan_.describe(), records.plan_.describe()):
        assert "no output" not in text.replace("a plan needs no output", "")
        assert "was read" not in text


# rows in another order, and arguments by their place


@pytest.mark.parametrize("kind", ["outputs", "records", "labels", "means", "function", "paths"])
def test_a_shuffled_output_is_refused(kind):
    y = FRAME[SECOND.get(kind, "cost")].sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match="X and y have different pandas indexes"):
        MADE[kind][0]().fit(FRAME[["age"]], y)


def test_shuffled_people_and_exposures_are_refused():
    X, shuffled = FRAME[["age"]], WHO.sample(frac=1, random_state=0)
    for call in (
        lambda: plain().plan(X, groups=shuffled),
        lambda: plain().fit(X, FRAME["cost"], groups=shuffled),
        lambda: plain().epsilon_for(X, 1.0, groups=shuffled),
        lambda: plain(likelihood="poisson").plan(X, exposure=shuffled + 1.0),
        lambda: plain(likelihood="poisson").fit(X, FRAME["days"], exposure=shuffled + 1.0),
    ):
        with pytest.raises(ValueError, match="different pandas indexes"):
            call()


def test_a_plan_needs_no_outputs():
    X, y = FRAME[["age"]], FRAME["cost"]
    labels = privgp.PrivateGPClassifier(classes=(0, 1))
    several = privgp.PrivateGP({"cost": privgp.Number(0, 1)})
    for method in (plain().plan, plain().stages, labels.plan, several.plan):
        with pytest.raises(TypeError, match=r"needs no y, .* by name: \w+"):
            method(X, y)
    with pytest.raises(ValueError, match=r"^error must be a positive number\.$"):
        plain().epsilon_for(X, y)  # which is not quoted


BY_PLACE = {
    "plan": ["X"], "stages": ["X"], "fit": ["X", "y"], "update": ["X", "y"], "predict": ["X"],
    "refine": ["X", "y", "epsilon", "delta"], "epsilon_for": ["X", "error"],
    "interval": ["X", "coverage"],
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted({type(made()).__name__ for made, _ in MADE.values()}))
def test_only_what_is_essential_goes_by_its_place(kind):
    estimator = getattr(privgp, kind)
    for name in {*BY_PLACE} & {*dir(estimator)}:
        parameters = inspect.signature(getattr(estimator, name)).parameters.values()
        by_place = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        by_place = ["X" if place == "table" else place for place in by_place]
        in_the_table = [place for place in BY_PLACE[name] if place != "y"]  # of any outcomes
        allowed = (BY_PLACE[name], ["n_val"], in_the_table)
        assert by_place[1:] in allowed, name


# fits that repeat others


def repeated(found: list[warnings.WarningMessage]) -> int:
    return sum("made such a fit before" in str(each.message) for each in found)


def warned(*calls: Callable[[], Any]) -> list[int]:
    """How often each call warned that it repeats a fit."""
    told = []
    for call in calls:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        told.append(repeated(found))
    return told


@pytest.mark.parametrize("kind", MADE)
def test_a_fit_that_repeats_another_warns_once(kind):
    made, fitted = MADE[kind]
    again = lambda: fitted(made())  # noqa: E731
    assert warned(again, again, again) == [0, 1, 0]


def test_simulations_and_further_measurements_do_not():
    X, y = FRAME[["age"]], FRAME["cost"]
    simulate = lambda: plain(random_state=0).fit(X, y)  # noqa: E731
    assert warned(simulate, simulate) == [0, 0]
    model = plain()
    more = X + 0.01
    assert warned(
        lambda: model.fit(X, y),
        lambda: model.update(more, y),
        lambda: model.refine(more, y, 0.5),
    ) == [0, 0, 0]
    with forget_fits():
        assert warned(lambda: model.fit(X, y)) == [0]


def test_other_bounds_on_the_same_inputs_warn_and_other_rows_do_not():
    X, y = FRAME[["age"]], FRAME["cost"]
    other = PrivateGPRegressor(**(FIXED | {"y_bounds": (0, 2)}))
    calls = [lambda: plain().fit(X, y), lambda: plain().fit(X[1:], y[1:]), lambda: other.fit(X, y)]
    assert warned(*calls) == [0, 0, 1]


def test_a_refused_fit_was_none(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path}/a.db").open("people", 0.5, 1e-5)
    X, y = FRAME[["age"]], FRAME["cost"]
    with pytest.raises(BudgetExceeded):
        plain(ledger=account).fit(X, y)
    assert warned(lambda: plain(epsilon=0.5, ledger=account).fit(X, y)) == [0]


@pytest.mark.parametrize("protect", [{}, {"protect": "records", "x_bounds": (0, 10)}])
def test_cross_validation_warns(protect):
    X, y = FRAME[["age"]], FRAME["cost"]
    assert warned(lambda: cross_val_score(plain(**protect), X, y, cv=3)) == [1]


def test_a_grid_search_warns():
    X, y = FRAME[["age"]], FRAME["cost"]
    grid = GridSearchCV(plain(), {"noise_variance": [0.1, 0.2]}, cv=2)
    assert warned(lambda: grid.fit(X, y)) == [1]


# scikit-learn and an empty account


def account(path: Path, epsilon: float) -> Any:
    return Ledger(f"sqlite:///{path}/budget.db").open("people", epsilon, 1e-3)


SEARCHES: dict[str, Callable[[Any, int], Any]] = {
    "cross_val_score": lambda model, jobs: cross_val_score(
        model, FRAME[["age"]], FRAME["cost"], cv=3, n_jobs=jobs
    ),
    "cross_validate": lambda model, jobs: cross_validate(
        model, FRAME[["age"]], FRAME["cost"], cv=3, n_jobs=jobs
    ),
    "GridSearchCV": lambda model, jobs: GridSearchCV(
        model, {"noise_variance": [0.1, 0.2]}, cv=2, n_jobs=jobs
    ).fit(FRAME[["age"]], FRAME["cost"]),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_an_empty_account_stops_scikit_learn(name, epsilon, tmp_path):
    """Whether no fit is paid for or some are: no score becomes NaN."""
    paying = account(tmp_path, epsilon)
    with pytest.raises(BudgetExceeded, match="nothing was drawn") as stopped:
        SEARCHES[name](plain(ledger=paying), 1)
    assert not isinstance(stopped.value, Exception)
    assert len(paying.entries()) == int(epsilon)


def test_it_stops_processes(tmp_path):
    """Which cross_val_score and GridSearchCV start by the same lines of joblib."""
    paying = account(tmp_path, 1.5)
    with pytest.raises(BudgetExceeded, match="nothing was drawn"):
        SEARCHES["GridSearchCV"](plain(ledger=paying), 2)
    assert len(paying.entries()) == 1


def test_it_stops_threads_and_a_model_in_a_pipeline_too(tmp_path):
    from joblib import parallel_config
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), plain(ledger=account(tmp_path, 1.5)))
    with parallel_config("threading"), pytest.raises(BudgetExceeded):
        SEARCHES["cross_val_score"](model, 2)


def test_elsewhere_it_is_an_exception_of_the_ledger(tmp_path):
    empty = account(tmp_path, 0.5)
    for wanted in (Exception, RuntimeError, LedgerError, BudgetExceeded):
        with pytest.raises(wanted, match="nothing was drawn"):
            plain(ledger=empty).fit(FRAME[["age"]], FRAME["cost"])
        with pytest.raises(wanted, match="nothing was drawn"):
            empty.charge(clone(plain(random_state=0)).fit(FRAME[["age"]], FRAME["cost"]).guarantee_)


def test_what_stops_scikit_learn_otherwise_is_as_before():
    with pytest.raises(ValueError, match="3 fits failed"):
        cross_val_score(PrivateGPRegressor(), FRAME[["age"]], FRAME["cost"], cv=3)
    assert np.all(np.isfinite(cross_val_score(Ridge(), FRAME[["age"]], FRAME["cost"], cv=3)))
