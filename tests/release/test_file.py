"""Files whose hashes are right and whose contents are not: one sentence, never anything else."""

from __future__ import annotations

import io
import json
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp import PrivateGPRegressor, load
from privgp.release.certificate.wording import ADDED
from privgp.storage.archive import DamagedFile, pack, unpack
from privgp.storage.fields import array_bytes

CASES = {
    "fixed": {"hyperparameters": "fixed"},
    "unbiased": {"reconstruct": "unbiased", "targets": [1.0, 5.0]},
    "kernel": {
        "kernel": 2.0 * Matern(2.0, (0.1, 10.0)) * RBF(3.0, "fixed"),
        "hyperparameters": "fixed",
    },
    "groups": {"hyperparameters": "fixed"},
}


@cache
def saved(case: str = "fixed") -> dict[str, bytes]:
    """The members of a saved model."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(24, 1))
    groups = np.arange(24) // 3 if case == "groups" else None
    settings = {"y_bounds": (-2, 2), "epsilon": 2.0, "mechanism": "gaussian", "random_state": 0}
    settings |= CASES[case]
    model = PrivateGPRegressor(**settings).fit(X, np.sin(X[:, 0]), groups=groups)
    with TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.privgp")
        return unpack((Path(folder) / "model.privgp").read_bytes())


def assert_refused(members: dict[str, bytes], folder: Path) -> str:
    path = folder / "damaged.privgp"
    path.write_bytes(pack(members))
    with pytest.raises(DamagedFile) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


def places(value, path=()):
    """Paths of everything in a JSON document."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def replaced(document, path, value):
    if not path:
        return value
    document = document.copy()
    document[path[0]] = replaced(document[path[0]], path[1:], value)
    return document


def at(document, path):
    return document if not path else at(document[path[0]], path[1:])


def kind(value) -> type:
    return float if type(value) is int else type(value)


@given(st.data())
def test_a_value_of_another_type_is_refused(folder, data):
    case = data.draw(st.sampled_from(list(CASES)))
    name = "release.json"
    document = json.loads(saved(case)[name])
    path = data.draw(st.sampled_from(list(places(document))))
    old = at(document, path)
    new = data.draw(st.sampled_from(["text", 1.5, True, [], {}, "NaN", "Infinity", "1e999"]))
    literal = new in ("NaN", "Infinity", "1e999")
    if kind(old) is kind(new) and not (literal and kind(old) is float):
        return
    if old is None and kind(new) is float:  # null is a number that was not given
        return
    edited = json.dumps(replaced(document, path, "@" if literal else new))
    edited = edited.replace('"@"', new) if literal else edited
    assert_refused({**saved(case), name: edited.encode()}, folder)


# which files had not at first
LATER = {
    "plain",
    "changes",
    "gram",
    "is_laplace",
    "max_change",
    "likelihood",
    "unit_rate",
    "spent",
    "plan",
    "utility",
    "others",
    "further",
    "at_targets",
    "fixed_gram",
    "reach",
}
# which have the same names elsewhere, where they must be
LATER_OF = {
    "parameters": {"columns", "max_weight", "most_rows", "residuals", "shares"},
    "measurement": {"centre"},
    "functionals": {"energy_centre", "common"},
    "holder": set(ADDED),
}


@given(st.data())
def test_a_missing_or_unknown_name_is_refused(folder, data):
    name = "release.json"
    document = json.loads(saved()[name])
    objects = [p for p in places(document) if isinstance(at(document, p), dict)]
    path = data.draw(st.sampled_from([p for p in objects if "software" not in p]))
    inner = dict(at(document, path))
    if data.draw(st.booleans()):
        inner["__class__"] = "os.system"
    else:
        later = LATER | LATER_OF.get(path[-1], set()) if path else LATER
        inner.pop(data.draw(st.sampled_from(sorted({*inner} - later))))
    edited = json.dumps(replaced(document, path, inner)).encode()
    assert_refused({**saved(), name: edited}, folder)


PART = ("parts", 0)  # where a file has what was released of the only outcome
BUMP = {"type": "WrittenChange", "kind": "bump", "centre": [1.0], "slopes": [[2.0]], "std": 1.0}
BROKEN_CHANGES = [
    [BUMP] * 3,
    [BUMP, {**BUMP, "kind": "dent"}],
    [{**BUMP, "type": "Change"}],
    [{**BUMP, "centre": [1.0, 2.0]}],
    [{**BUMP, "centre": []}],
    [{**BUMP, "centre": ["1"]}],
    [{**BUMP, "slopes": []}],
    [{**BUMP, "slopes": [2.0]}],
    [{**BUMP, "slopes": [[2.0], [1.0]]}],
    [{**BUMP, "slopes": [[2.0], [1.0, 3.0]]}],
    [{**BUMP, "std": 0.0}],
    [{**BUMP, "std": 10**400}],
    [{**BUMP, "more": 1}],
    [{name: value for name, value in BUMP.items() if name != "std"}],
    {},
    None,
]
EDITS = [
    *(((*PART, "models", 0, "changes"), changes) for changes in BROKEN_CHANGES),
    ((*PART, "measurement", "is_laplace"), 1),
    ((*PART, "measurement", "is_laplace"), None),
    (("type",), "Guarantee"),
    ((*PART, "models", 0, "type"), "Prior"),
    ((*PART, "models", 0, "kernel", "type"), "Exponentiation"),
    ((*PART, "models", 0, "weight"), 0.5),
    ((*PART, "models", 0, "noise_variance"), -1.0),
    ((*PART, "models", 0, "input_map", "share"), 0.5),
    ((*PART, "models", 0, "input_map", "knots"), {"zeros": [3, 2]}),
    ((*PART, "measurement", "noise_std"), 10**400),
    ((*PART, "measurement", "counts"), {"array": "parts_0_measurement_values"}),
    (("guarantee", "epsilon"), 1.0),
    (("guarantee", "delta"), 0.5),
    (("guarantee", "delta"), 0.0),
    (("guarantee", "unit"), "everything"),
    (("guarantee", "noise_multipliers"), []),
    (("parameters", "y_bounds"), [3.0, -3.0]),
    (("parameters", "y_bounds"), [-2.0, 3.0]),
    (("parameters", "x_bounds"), [[0.0, 1.0], [0.0, 1.0]]),
    (("parameters", "epsilon"), 2e4),
    (("parameters", "inducing"), {"array": "parts_0_functionals_weights"}),
    (("parameters", "reconstruct"), "unbiased"),
    (("parameters", "protect"), "records"),
    (("columns",), 2),
    (("names",), ["a", "b"]),
    ((*PART, "at_targets"), {}),
    ((*PART, "functionals", "residual_gram"), {"zeros": [2**14, 2**14]}),
    ((*PART, "functionals", "residual_gram"), {"zeros": [-1, 3]}),
    ((*PART, "functionals", "energy_gram", "form"), "full"),
    ((*PART, "functionals", "energy_gram", "form"), "lower"),
    ((*PART, "functionals", "energy_gram", "array"), "parts_0_functionals_noise_gram"),
    ((*PART, "functionals", "energy_gram", "array"), "../parts_0_functionals_noise_gram"),
    ((*PART, "functionals", "shares"), {"array": "parts_0_measurement_values"}),
    ((*PART, "models"), []),
]


@pytest.mark.parametrize(("path", "value"), EDITS, ids=str)
def test_a_value_that_does_not_fit_the_rest_is_refused(path, value, folder):
    document = replaced(json.loads(saved()["release.json"]), path, value)
    assert_refused({**saved(), "release.json": json.dumps(document).encode()}, folder)


def test_changes_of_a_file_are_those_of_its_model(folder):
    path = folder / "changed.privgp"
    document = replaced(
        json.loads(saved()["release.json"]), (*PART, "models", 0, "changes"), [BUMP] * 2
    )
    path.write_bytes(pack({**saved(), "release.json": json.dumps(document).encode()}))
    (component,) = load(path).release_.components
    assert [change.kind for change in component.model.changes] == ["bump", "bump"]
    assert component.model.changes[0](np.array([[1.0], [1.5]])) == pytest.approx(
        [1.0, np.exp(-0.5)]
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[" * 100_000,
        b'{"columns": 1, "columns": 1}',
        b"\xff\xfe",
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
def test_broken_json_is_refused(text, folder):
    assert_refused({**saved(), "release.json": text}, folder)


def test_a_kernel_without_end_is_refused(folder):
    document = json.loads(saved()["release.json"])
    leaf = document["parts"][0]["models"][0]["kernel"]
    for _ in range(300):
        leaf = {"type": "Sum", "k1": leaf, "k2": leaf["k2"]}
    document["parts"][0]["models"][0]["kernel"] = leaf
    assert_refused({**saved(), "release.json": json.dumps(document).encode()}, folder)


def npy(values, version=(1, 0), **options) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, values, version=version, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["weights", "nodes", "noise_gram", "energy_gram"])
def test_broken_arrays_are_refused(name, folder):
    good = np.load(io.BytesIO(saved()[f"parts_0_functionals_{name}.npy"]))
    spoilt = good.copy()
    spoilt.flat[0] = np.nan
    huge = saved()[f"parts_0_functionals_{name}.npy"].replace(b"(", b"(9999999999999, ", 1)
    for data in (
        b"",
        b"\x93NUMPY",
        npy(spoilt),
        npy(good * np.inf),
        npy(good.astype(np.float32)),
        npy(good.astype(">f8")),
        npy(good.astype(complex)),
        npy(good.astype(object)),
        npy(good, version=(2, 0)),
        npy(good[:-1]),
        npy(good[None]),
        npy(good) + b"\0",
        npy(good)[:-1],
        huge,
    ):
        assert_refused({**saved(), f"parts_0_functionals_{name}.npy": data}, folder)


@pytest.mark.parametrize("case", ["fixed", "kernel"])
def test_swapped_members_are_refused(case, folder):
    for one, two in combinations(saved(case), 2):
        members = dict(saved(case))
        if members[one] != members[two]:
            members[one], members[two] = members[two], members[one]
            assert_refused(members, folder)


def test_missing_and_extra_members_are_refused(folder):
    for name in saved():
        assert_refused({k: v for k, v in saved().items() if k != name}, folder)
    assert_refused({**saved(), "extra.npy": array_bytes(np.zeros(3))}, folder)
    assert_refused({**saved(), "extra.json": b"{}"}, folder)
