"""One record's value or type never changes what is made of another record.

``READERS``: every way in which private values are read. ``ENTRY_POINTS``: everything a custodian can
call, and how. A new one is one row.
"""

from __future__ import annotations

import datetime
import sys
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import RidgeClassifier

from privgp import (
    BinnedGP,
    BinnedMeans,
    PosteriorPaths,
    PrivateBayesSearchCV,
    PrivateFunction,
    PrivateGPRegressor,
    PrivateGridSearchCV,
)
from privgp.command.errors import Refusal
from privgp.command.io.columns import output_column, outputs, private_columns
from privgp.tables.cells import identifiers
from privgp.tables.source import Source, load, open_source
from privgp.vault.scores import (
    check_validation,
    make_loss,
    mean_loss,
    predict_records,
    record_losses,
    score_sensitivity,
)
from privgp.vault.table import _people
from privgp.vault.validate import check_private_inputs, clip_outputs, person_codes, person_ids
from privgp.vault.values import label, number, read_label, read_number

# Numbers of many types. 2^53 + 1 is rounded by whatever makes a float of it.
NUMBERS: list[Any] = [
    0, 1, -3, 0.5, 1.0, -0.0, 1e-320, 1e300, True, False, np.bool_(True), 2**53 + 1, -(2**63), 2**64,
    10**30, np.int8(-7), np.uint8(200), np.int64(2**53 + 1), np.uint64(2**64 - 1), np.float16(0.1),
    np.float32(0.1), np.float64(0.1), np.longdouble("0.1"), Decimal("0.1"), Decimal("1"),
    Fraction(1, 3), Fraction(4, 2), np.array(0.25), np.array(7), pa.scalar(3), pa.scalar(0.5),
]  # fmt: skip
WORDS: list[Any] = ["a", "1", "1.0", "0.5", " 1 ", "", "nan", "True", "é", np.str_("a"), "2" * 30]
BLOBS: list[Any] = [b"a", b"1", np.bytes_(b"1"), b""]
OTHERS: list[Any] = [
    None, float("nan"), np.nan, float("inf"), np.float32("nan"), Decimal("NaN"), Decimal("sNaN"),
    pd.NA, pd.NaT, np.datetime64("NaT"), np.datetime64("2020-01-01"), np.timedelta64(3, "s"),
    np.timedelta64(3, "ns"), datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 3), 1 + 2j,
    np.complex128(1), 10**400, np.ma.masked, [1.0], (1.0, 2.0), {"a": 1}, {1.0}, object(),
    np.array([1.0]), pa.scalar("a"), pd.Timestamp("2020-01-01"),
]  # fmt: skip
CELLS = ["1", "1.0", "01", " 1", "1 ", "0.5", "-2e3", "1e400", "nan", "inf", "a", "A", "true", "1_0",
    "9007199254740993", "9007199254740993.0", "", " ", "١", "+3", "0x1", "3.", ".5", "x 1", "1,5"]  # fmt: skip
CONTAINERS: list[Callable[[list[Any]], Any]] = [
    list,
    tuple,
    deque,
    lambda values: _objects(values),
    lambda values: pd.Series(_objects(values), dtype=object),
]


def _objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


class Lookup(BaseEstimator):
    """Predicts by a record's first input, in an array made of all predictions: it promotes them."""

    MIXED = (1, 0.5, "a", "1", 2**53 + 1, b"1", True)

    def __init__(self, places: int = 7) -> None:
        self.places = places

    def fit(self, X: Any, y: Any) -> Lookup:
        return self

    def predict(self, X: Any) -> Any:
        column = np.asarray(X)[:, 0]
        words = [isinstance(value, str) for value in column]
        return np.array(
            [
                "word" if word else self.MIXED[int(float(value)) % self.places]
                for value, word in zip(column, words, strict=True)
            ]
        )


class Echo(BaseEstimator):
    """Predicts a record's first input."""

    def __init__(self, times: float = 1.0) -> None:
        self.times = times

    def fit(self, X: Any, y: Any) -> Echo:
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0] * self.times


class Cell(BaseEstimator):
    """Predicts a record's first cell, number or text."""

    def predict(self, X: Any) -> Any:
        return np.array([row[0] for row in np.asarray(X)])


# Readers: from records to what each of them contributes, exactly, before noise.


def read_outputs(records: list[Any], container: Any) -> list[Any]:
    return clip_outputs(container(records), len(records), (-4.0, 9.0)).tolist()


def read_inputs(records: list[Any], container: Any) -> list[Any]:
    rows = [container([record, 0.5]) for record in records]
    return check_private_inputs(rows, 2).tolist()


def read_people(records: list[Any], container: Any) -> list[Any]:
    """Whether a record's person is person 1, who comes first."""
    found = person_ids(container([1, *records]), 1 + len(records))
    assert found is not None
    return (found[1:] == found[0]).tolist()


def losses(model: Any, X: Any, y: Any, kind: Any, bounds: Any = None) -> list[Any]:
    loss = make_loss(kind, bounds)
    held = check_validation(X, y, loss)
    return record_losses(held.y, predict_records(model, held.X), loss).tolist()


def read_labels(records: list[Any], container: Any) -> list[Any]:
    """Against predictions of 1: 1, 1.0, True and so on are right."""
    return losses(Echo(), np.ones((len(records), 1)), container(records), "accuracy")


def read_squares(records: list[Any], container: Any) -> list[Any]:
    return losses(Echo(), np.ones((len(records), 1)), container(records), "squared_error", (0, 9))


def given_loss(y: Any, prediction: Any) -> float:
    """Looks at types, too."""
    first = y[0]
    return len(str(y.dtype)) + len(str(first)) + 3.0 * isinstance(first, str) + (first == 1)


def read_given(records: list[Any], container: Any) -> list[Any]:
    return losses(Echo(), np.ones((len(records), 1)), container(records), given_loss, (0, 400))


def read_questions(records: list[Any], container: Any) -> list[Any]:
    """Inputs of validation records, asked of a model that answers with a mixture of types."""
    labels = [1, "a", "1", 0.5, 2**53 + 1, b"1", "word"]
    wanted = [labels[i % len(labels)] for i in range(len(records))]
    return losses(Lookup(), [container([record, 1]) for record in records], wanted, "accuracy")


def read_frames(records: list[Any], container: Any) -> list[Any]:
    frame = pd.DataFrame({"x": pd.Series(_objects(records), dtype=object), "z": 1})
    return losses(Cell(), frame, [1] * len(records), "accuracy")


def table_of(records: list[Any], ending: str) -> tuple[pl.DataFrame, Source]:
    path = Path(FOLDER) / f"records.{ending}"
    if ending == "csv":
        pl.DataFrame({"v": [str(r) for r in records], "z": ["7"] * len(records)}).write_csv(path)
    else:
        pl.DataFrame({"v": records, "z": [7] * len(records)}, strict=False).write_parquet(path)
    source = open_source(path)
    return load(source, ["v", "z"]), source


def from_file(read: Callable[[pl.DataFrame, Source], Any], ending: str) -> Any:
    return lambda records, container: np.asarray(read(*table_of(records, ending))).tolist()


COMMAND: dict[str, Callable[[pl.DataFrame, Source], Any]] = {
    "outputs": lambda frame, source: output_column(frame, "v", source),
    "inputs": lambda frame, source: private_columns(frame, ["v", "z"], source),
    "labels": lambda frame, source: outputs(frame, "v", source, "classification"),
    "people": lambda frame, source: read_people(list(identifiers(frame, "v", source)), list),
}

# name: (what reads, what is mixed, how many mixtures)
Reader = Callable[[list[Any], Any], list[Any]]
READERS: dict[str, tuple[Reader, list[list[Any]], int]] = {
    "outputs": (read_outputs, [NUMBERS], 2000),
    "private inputs": (read_inputs, [NUMBERS], 1500),
    "people": (read_people, [NUMBERS, WORDS, BLOBS], 1500),
    "labels": (read_labels, [NUMBERS, WORDS, BLOBS], 2000),
    "squared errors": (read_squares, [NUMBERS], 1000),
    "a given loss": (read_given, [NUMBERS, WORDS, BLOBS], 1000),
    "validation inputs": (read_questions, [NUMBERS, WORDS], 600),
    "validation frames": (read_frames, [NUMBERS, WORDS], 400),
    **{
        f"{name} of CSV": (from_file(read, "csv"), [CELLS[:7] if "puts" in name else CELLS], 80)
        for name, read in COMMAND.items()
    },
    **{
        f"{name} of Parquet": (from_file(read, "parquet"), [[0, 1, 0.5, -2, 1e300, 2**40]], 80)
        for name, read in COMMAND.items()
    },
}
FOLDER = ""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.FOLDER", str(tmp_path))


def contributions(read: Reader, records: list[Any], container: Any) -> list[Any] | None:
    """None: refused. Refusals are for the custodian alone, before anything is spent."""
    try:
        return read(records, container)
    except (ValueError, Refusal):
        return None


def others(found: list[Any], place: int) -> str:
    return repr(found[:place] + found[place + 1 :])


def test_there_are_ten_thousand_mixtures():
    assert sum(count for _, _, count in READERS.values()) >= 10_000


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READERS)
def test_replacing_one_record_moves_no_other_records_contribution(name):
    """And each contribution is that of the record alone: no other record is needed to know it."""
    check_mixtures(name)


def smallest_type(values: Any) -> np.ndarray:
    """Numbers of the smallest type that holds them all."""
    return pd.to_numeric(np.array([number(value) for value in values]), downcast="float")


FAULTS: dict[str, tuple[str, Any]] = {
    "labels": ("values.entries", np.asarray),
    "a given loss": ("values.entries", np.asarray),
    "validation inputs": ("scores.entries", np.asarray),
    "outputs": ("validate.numbers", smallest_type),
    "private inputs": (
        "validate._table",
        lambda X, columns: smallest_type([v for row in X for v in row]).reshape(-1, columns),
    ),
    "squared errors": ("scores.numbers", smallest_type),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FAULTS)
def test_reading_all_values_as_one_array_would_be_noticed(name, monkeypatch):
    place, fault = FAULTS[name]
    monkeypatch.setattr(f"privgp.vault.{place}", fault)
    with pytest.raises(AssertionError):
        check_mixtures(name)


def test_people_read_as_one_array_would_be_noticed(monkeypatch):
    monkeypatch.setattr("privgp.vault.validate.entries", np.asarray)
    with pytest.raises(AssertionError):
        check_mixtures("people")


def check_mixtures(name: str) -> None:
    read, kinds, count = READERS[name]
    rng = np.random.default_rng(sorted(READERS).index(name))
    some = [value for kind in kinds for value in kind]
    alone = {}
    for i, value in enumerate(some):
        found = contributions(read, [value], list)
        alone[i] = None if found is None else repr(found[0])
    by_place = name == "validation inputs"  # what is right depends on the place there
    compared = 0
    for _ in range(count):
        places = rng.integers(len(some), size=rng.integers(2, 7))
        records = [some[i] for i in places]
        container = CONTAINERS[rng.integers(len(CONTAINERS))]
        place = int(rng.integers(len(records)))
        changed = list(records)
        any_type = some if "of" in name.split() else [*some, *OTHERS]
        changed[place] = any_type[rng.integers(len(any_type))]
        before, after = (contributions(read, each, container) for each in (records, changed))
        if before is not None and not by_place:
            assert [repr(one) for one in before] == [alone[i] for i in places], records
        if before is not None and after is not None:
            compared += 1
            assert others(before, place) == others(after, place), (records, changed)
    assert compared > 0.2 * count


# Each fault as it was.


def test_one_label_replaced_by_text_moves_the_mean_loss_by_at_most_its_sensitivity():
    X, y = np.ones((200, 1)), [1] * 200
    loss = make_loss("accuracy")
    before = mean_loss(Echo(), check_validation(X, y, loss))
    for other in ("text", 0.5, b"1", 10**400, Decimal("0.5")):
        after = mean_loss(Echo(), check_validation(X, [*y[:-1], other], loss))
        assert (before, after) == (0.0, 0.005)
        assert after - before <= score_sensitivity(200)


def test_one_label_of_a_parquet_file_does_not_rewrite_the_others(tmp_path):
    for labels in ([1, 0, 1], [1.0, 0.0, 0.5], ["1", " 0", "x"], [True, False, True]):
        path = tmp_path / "labels.parquet"
        pl.DataFrame({"state": labels}).write_parquet(path)
        source = open_source(path)
        found = outputs(load(source, ["state"]), "state", source, "classification").tolist()
        assert found[:2] == (["true", "false"] if labels[0] is True else ["1", "0"])


def test_one_record_of_text_does_not_make_texts_of_all_inputs():
    X = [[1, 5.0], [2, 5.0], [3, 5.0]]
    assert losses(Cell(), X, [1, 2, 3], "accuracy") == [0.0, 0.0, 0.0]
    assert losses(Cell(), [*X[:2], ["x", 5.0]], [1, 2, 3], "accuracy") == [0.0, 0.0, 1.0]


def test_one_prediction_of_text_does_not_make_texts_of_all_predictions():
    X = np.array([[0.0], [4.0], [0.0]])
    assert losses(Lookup(), X, [1, 2**53 + 1, 1], "accuracy") == [0.0, 0.0, 0.0]
    for other in (1.0, 2.0, 3.0, 5.0):
        X[2] = other
        assert losses(Lookup(), X, [1, 2**53 + 1, 1], "accuracy")[:2] == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_how_a_model_is_asked_depends_on_no_cell():
    """All at once or one by one: arithmetic may round differently, so no record may decide it."""
    asked = []

    class Counting(RidgeClassifier):
        def predict(self, X):
            asked.append(len(X))
            return super().predict(X)

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.array(["ill", "well"] * 15)
    model = Counting().fit(X, y)
    at_once = losses(model, X, y, "accuracy")
    assert asked == [30]
    X[0] = 1e300
    assert losses(model, X, y, "accuracy")[1:] == at_once[1:]
    assert asked == [30, 30]
    frame = pd.DataFrame(X, columns=["a", "b"])
    for table in (X.tolist(), X.astype(object), frame.astype({"b": object})):
        asked.clear()
        assert losses(model, table, y, "accuracy")[1:] == at_once[1:]
        assert asked == [1] * 30


ONE = [1, "1", 1.0, True, b"1", " 01 ", "1.0", Decimal("1.00"), np.int8(1), b"+1", "1e0"]
OTHERS = [2, "1.5", 1.5, "one", b"One", "2.0", "", " "]


def test_memory_and_files_agree_on_who_is_one_person():
    """However they are written, in a list, as texts or as numbers, alone or among others."""
    assert person_ids(ONE, len(ONE)).tolist() == [0] * len(ONE)
    assert len({*person_codes(ONE, len(ONE)).tolist()}) == 1
    mixed = [*ONE, *OTHERS[:-2]]
    ids, codes = person_ids(mixed, len(mixed)), person_codes(mixed, len(mixed))
    same = np.equal.outer(ids, ids)
    assert np.array_equal(same, np.equal.outer(codes, codes))
    assert ids.max() == 4  # 1, 2, 1.5, one, One
    texts = ["1", "01", " 1", "1.0", "2", "one", "2e0", "ONE"]
    columns = [pl.Series("who", texts), pl.Series("who", [1, 1, 1, 1, 2])]
    streamed = [_people(column) for column in columns]
    memory = [person_codes(column.to_numpy(), len(column)) for column in columns]
    for stream, codes, column in zip(streamed, memory, columns, strict=True):
        assert np.array_equal(stream, codes)
        for held in (column.to_list(), column.to_numpy(), np.array(column.to_list())):
            ids = person_ids(held, len(column))
            assert np.array_equal(np.equal.outer(ids, ids), np.equal.outer(stream, stream))
    assert np.array_equal(streamed[0][:5], streamed[1])
    for blank in OTHERS[-2:]:
        with pytest.raises(ValueError, match="groups contain missing"):
            person_ids(np.array(["1", blank]), 2)


def test_people_are_numbered_as_they_come():
    assert person_ids([1, 2, 1], 3).tolist() == [0, 1, 0]
    assert person_ids(np.array([2.5, 1.0, 2.5]), 3).tolist() == [0, 1, 0]
    for missing in (None, np.nan, pd.NaT, pd.NA, np.datetime64("NaT"), Decimal("NaN")):
        with pytest.raises(ValueError, match="groups contain missing"):
            person_ids([1, "1", missing], 3)


def test_an_array_of_texts_is_text_for_every_record():
    ready = np.array([1, 1, "a"])
    assert losses(Echo(), np.ones((3, 1)), ready, "accuracy") == [1.0, 1.0, 1.0]
    assert losses(Echo(), np.ones((3, 1)), [1, 1, "a"], "accuracy") == [0.0, 0.0, 1.0]


def test_a_given_loss_receives_what_is_made_of_its_record_alone():
    seen = []

    def loss(y, prediction):
        seen.append((y.dtype.kind, y.tolist(), prediction.tolist()))
        return 0.0

    losses(Echo(), np.ones((3, 1)), [1, "a", 0.5], loss, (0, 1))
    assert seen == [("i", [1], [1.0]), ("U", ["a"], [1.0]), ("f", [0.5], [1.0])]


# What values are.


def test_numbers_are_the_nearest_floats():
    for value in NUMBERS:
        exact = Fraction(label(value)[1])
        assert number(value) == exact.numerator / exact.denominator
    for value in [*WORDS, *BLOBS, np.timedelta64(3, "s"), 1j, None, [1.0], np.ma.masked]:
        with pytest.raises(TypeError):
            number(value)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "u8", "f2", "f4", "f8", "g"])
def test_arrays_read_at_once_are_read_as_one_by_one(dtype):
    with np.errstate(all="ignore"):
        held = np.array([0, 1, 3, 200, 2**53 + 1, 2**62, 0.1, 1e-30]).astype(dtype)
    held = held[np.isfinite(held)]
    assert check_private_inputs(held[:, None], 1)[:, 0].tolist() == [
        number(value) for value in held
    ]


def test_labels_are_equal_within_a_kind_only():
    assert label(1) == label(1.0) == label(np.int8(1)) == label(True) == label(Decimal("1.0"))
    assert label("1") == label(np.str_("1"))
    assert label(b"1") == label(np.bytes_(b"1"))
    assert len({label(1), label("1"), label(b"1"), label(0.1), label(Decimal("0.1"))}) == 5
    assert label(2**53 + 1) != label(float(2**53))
    long = np.array(["0.1", "0.5"], dtype=np.longdouble)  # read as float64, alone or in an array
    assert losses(Echo(), [[0.1], [0.5]], long, "accuracy") == [0.0, 0.0]
    assert losses(Echo(), [[0.1], [0.5]], list(long), "accuracy") == [0.0, 0.0]
    assert all(label(value) is None for value in (None, np.nan, 1j, pd.NaT, [1], np.inf))


def test_cells_of_tables_follow_one_grammar():
    assert [read_number(cell) for cell in ("1", " -1.5 ", "2e3", "+.5", "3.")] == [
        1,
        -1.5,
        2e3,
        0.5,
        3,
    ]
    for cell in ("", " ", "a", "1_0", "0x1", "1,5", "١", "1 2", None):
        with pytest.raises(TypeError):
            read_number(cell)
    same = ["1", "1.0", " 1", "01", "+1", "1e0", 1, 1.0, Decimal("1.00")]
    assert {read_label(cell) for cell in same} == {"1"}
    told = {"0.50": "0.5", "a ": "a", "nan": "nan", "1e999": "1e999", "1_0": "1_0", "-0": "0"}
    assert {cell: read_label(cell) for cell in told} == told
    assert read_label("9007199254740993") == "9007199254740993"
    assert [read_label(cell) for cell in ("", "  ", None, np.nan, np.inf)] == [None] * 5


@pytest.mark.parametrize(
    "X", [[1.0, 2.0], [[1.0], [2.0, 3.0]], [[1.0], None], [[None], [1.0]], [[b"a"], [1.0]], [{}, {}],
        np.ma.array([[1.0], [2.0]]), np.array([["2020"], ["2021"]], "M8[D]"), [[1j], [1.0]],
        pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), pd.DataFrame({"a": [1, None]}, dtype="Int64"),
        pd.DataFrame(index=[0, 1])],
)  # fmt: skip
def test_validation_inputs_that_are_no_numbers_and_texts_are_refused(X):
    with pytest.raises(ValueError, match="X_val"):
        check_validation(X, [1, 1], make_loss("accuracy"))


def test_validation_inputs_of_every_sort_are_the_same_records():
    rows = [[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]]
    frame = pd.DataFrame(rows, columns=["a", "b"])
    sorts = [rows, np.array(rows), np.array(rows, dtype=int), np.array(rows, dtype=object), frame,
        frame.astype(int), frame.astype("Int64"), pl.DataFrame(rows, schema=["a", "b"], orient="row")]  # fmt: skip
    for X in sorts:
        assert losses(Echo(), X, [1, 0, 0], "accuracy") == [0.0, 1.0, 0.0]
    held = check_validation(csr_array(rows), [1, 0, 0], make_loss("accuracy"))
    assert held.X.table.dtype == np.float64
    texts = check_validation(["a b", "c", "d"], [1, 0, 0], make_loss("accuracy")).X
    assert (texts.record(0), texts.table) == (["a b"], None)


# Every entry point reads through the converter.


class Witness(Fraction):
    """A number that notices when NumPy looks at it, as it does to make an array of a list."""

    @property
    def __array__(self) -> Any:
        frame = sys._getframe(1)
        SEEN.append(f"{frame.f_code.co_filename} {frame.f_code.co_name}")
        raise AttributeError


SEEN: list[str] = []
ROWS = 12
PLACES = np.linspace(0.0, 1.0, ROWS)
PUBLIC = PLACES[:, None]
LAST = {"y_bounds": (0, 1), "epsilon": 1.0, "delta": 1e-3, "random_state": 0}


def regressor(**options: Any) -> PrivateGPRegressor:
    return PrivateGPRegressor(RBF(0.3), hyperparameters="fixed", **LAST, **options)


def function(**options: Any) -> PrivateFunction:
    return PrivateFunction(RBF(0.3), 4.0, **LAST, **options)


def grid(method: str) -> PrivateGridSearchCV:
    model = PrivateGPRegressor(RBF(0.3, "fixed"), y_bounds=(0, 1))
    settings = {"epsilon": 1.0, "delta": 1e-3, "random_state": 0}
    if method != "measurement":  # which has no folds
        settings["cv"] = 2
    return PrivateGridSearchCV(model, {"noise_variance": [0.1, 0.3]}, method=method, **settings)


def validated(method: str, scoring: Any) -> PrivateGridSearchCV:
    bounds = None if scoring == "accuracy" else (0, 1)
    return PrivateGridSearchCV(
        Echo(), {"times": [0.5, 1.0]}, epsilon=1.0, delta=1e-3, method=method, scoring=scoring,
        loss_bounds=bounds, random_state=0,
    )  # fmt: skip


def bayes(method: str, scoring: Any) -> PrivateBayesSearchCV:
    free = {"A": 1e-3, "tau": 1.0} if method == "kusner-noise-free" else None
    return PrivateBayesSearchCV(
        Echo(), {"times": [0.5, 1.0]}, epsilon=1.0, delta=1e-3, n_iter=2, method=method,
        scoring=scoring, loss_bounds=None if scoring == "accuracy" else (0, 1), assume=free,
        random_state=0,
    )  # fmt: skip


def absolute(y: Any, prediction: Any) -> Any:
    return abs(float(y[0]) - float(prediction[0]))


SCORINGS = {"accuracy": "accuracy", "squares": "squared_error", "given": absolute}
ENTRY_POINTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "regressor": lambda X, y, who: regressor().fit(PUBLIC, y),
    "regressor, people": lambda X, y, who: regressor().fit(PUBLIC, y, groups=who),
    "regressor, inducing": lambda X, y, who: regressor(inducing=4).fit(PUBLIC, y),
    "regressor, records": lambda X, y, who: regressor(protect="records", x_bounds=(0, 1)).fit(X, y),
    "function": lambda X, y, who: function().fit(PUBLIC, y),
    "function, records": lambda X, y, who: function(protect="records", domain=(0, 1)).fit(X, y),
    "paths": lambda X, y, who: PosteriorPaths(
        RBF(0.3), 4.0, domain=(0, 1), y_bounds=(0, 1), delta=1e-3, random_state=0
    ).fit(X, y),
    **{
        f"{kind.__name__}, {protect}": lambda X, y, who, kind=kind, protect=protect: kind(
            bins=3, x_bounds=(0, 1), protect=protect, noise="gaussian", **LAST
        ).fit(PUBLIC if protect == "outputs" else X, y)
        for kind in (BinnedMeans, BinnedGP)
        for protect in ("outputs", "records")
    },
    **{
        f"grid, {method}": lambda X, y, who, method=method: grid(method).fit(PUBLIC, y, groups=who)
        for method in ("measurement", "permute-and-flip", "exponential")
    },
    **{
        f"validated grid, {method}, {name}": lambda X, y, who, method=method, by=by: validated(
            method, by
        ).fit(None, None, X_val=X, y_val=y)
        for method in ("permute-and-flip", "exponential")
        for name, by in SCORINGS.items()
    },
    **{
        f"bayes, {method}, {name}": lambda X, y, who, method=method, by=by: bayes(method, by).fit(
            None, None, X_val=X, y_val=y
        )
        for method in ("measured", "kusner", "kusner-noise-free")
        for name, by in SCORINGS.items()
    },
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_no_entry_point_makes_an_array_of_values_before_the_converter(name):
    def witnesses() -> list[Witness]:
        return [Witness(place) for place in PLACES]

    SEEN.clear()
    ENTRY_POINTS[name]([[value] for value in witnesses()], witnesses(), witnesses())
    made = [where for where in SEEN if not where.endswith("scores.py _alone")]  # of one value
    assert not made, made


def test_a_witness_notices_an_array(monkeypatch):
    SEEN.clear()
    monkeypatch.setattr("privgp.vault.values.entries", np.asarray)
    ENTRY_POINTS["regressor"](None, [Witness(place) for place in PLACES], None)
    assert SEEN
