"""One codec: what was written is read back to the bit, and whatever else a file holds is refused."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp.gp.kernels.registry import KERNELS
from privgp.gp.measurement import Functionals
from privgp.gp.priors import Hyperparameters, Prior, blend_ranks, prior_about
from privgp.privacy.noise import GaussianNoise, gaussian_noise
from privgp.storage.archive import DamagedFile, Triangle
from privgp.storage.codec import MOST_EXPANDED, Codec
from privgp.types import Array, Positive, Within, added_field


@dataclass(frozen=True)
class Circle:
    radius: Positive


@dataclass(frozen=True)
class Box:
    sides: tuple[float, float]

    def check(self) -> None:
        if self.sides[0] > self.sides[1]:
            raise ValueError("sides must be in order.")


@dataclass(frozen=True)
class Room:
    width: float
    height: float = 2.5
    door: bool = added_field(True)


@dataclass(frozen=True)
class Everything:
    number: float
    limit: Annotated[float, Within(0.0, infinite=True)]
    count: Annotated[int, Within(1, 10)]
    text: str
    flag: bool
    colour: Annotated[str, ("red", "blue")]
    size: Annotated[str, ("small", "large")]
    nothing: None
    shape: Circle | Box | None
    either: str | float
    pairs: tuple[tuple[float, float], ...]
    A: Annotated[Array, "rows columns"]
    b: Annotated[Array, "rows"]
    any_axes: Array
    maybe: Annotated[Array, "columns"] | None
    lower: Triangle
    document: dict[str, Any]


def everything(**changes) -> Everything:
    fields = {
        "number": 0.1, "limit": math.inf, "count": 3, "text": "ü", "flag": True, "colour": "red",
        "size": "large", "nothing": None, "shape": Box((1.0, 2.0)), "either": 2.5,
        "pairs": ((0.0, 1.0), (-1.0, 1e300)), "A": np.arange(6.0).reshape(3, 2), "b": np.ones(3),
        "any_axes": np.full((2, 2, 2), 0.5), "maybe": None,
        "lower": Triangle((np.array([1.0]), np.array([2.0, 3.0]))), "document": {"a": [1, {}]},
    }  # fmt: skip
    return Everything(**{**fields, **changes})


CODEC = Codec(Everything, "thing")


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        bits = [np.ascontiguousarray(a).view(np.int64) for a in (one, other)]
        return one.shape == other.shape and bool(np.array_equal(*bits))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__
        )
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"shape": None}, {"shape": Circle(2.0)}, {"either": "text"}, {"limit": 7.0},
        {"maybe": np.array([1.0, -0.0])}, {"lower": Triangle()}, {"pairs": ()},
    ],
)  # fmt: skip
def test_a_value_is_read_back_to_the_bit(changes):
    value = everything(**changes)
    members = CODEC.encode(value)
    assert same(CODEC.decode(members), value)
    assert CODEC.encode(CODEC.decode(members)) == members


@dataclass(frozen=True)
class One:
    values: Array


FORMS = st.sampled_from(
    [np.asarray, np.tril, np.triu, lambda a: np.diag(np.diag(a)), np.zeros_like]
)


@given(
    arrays(np.float64, (4, 4), elements=st.sampled_from([0.0, -0.0, 1.5, 5e-324, -1e308])), FORMS
)
def test_every_form_of_a_matrix_keeps_every_bit(values, form):
    codec = Codec(One, "one")
    value = One(np.array(form(values)))
    assert same(codec.decode(codec.encode(value)), value)


@given(arrays(np.float64, st.tuples(*[st.integers(0, 3)] * 3), elements=st.floats(-1, 1)))
def test_arrays_of_any_shape_are_read_back(values):
    codec = Codec(One, "one")
    assert same(codec.decode(codec.encode(One(values))), One(values))


def test_sparse_matrices_take_little_room_and_equal_arrays_one_member():
    codec = Codec(tuple[One, ...], "many")
    members = codec.encode((One(np.eye(1000)),) * 3 + (One(np.zeros((999, 999))),))
    assert len(members) == 2
    assert sum(map(len, members.values())) < 10_000
    values = codec.decode(members)
    assert values[0].values is values[2].values


def test_nested_values_of_other_rooms_need_no_code_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 2))
    start = Hyperparameters(2.0 * Matern([1.0, 2.0], nu=1.5) + RBF(3.0), 0.1, blend_ranks(X, 0.5))
    codec = Codec(tuple[Prior, GaussianNoise, Functionals], "plan", KERNELS)
    square = np.eye(3)
    functionals = Functionals(X[:2], X[:3], square, 0 * square, 1.0, np.eye(2), X[:3].T, square)
    value = (
        prior_about(start, noise_free=True),
        gaussian_noise(1.0, 1e-5, 3, 1.0, 0.0),
        functionals,
    )
    assert same(codec.decode(codec.encode(value)), value)


WRONG = [
    ("type", "Box"), ("number", "1"), ("number", None), ("number", True), ("number", "inf"),
    ("number", 10**400), ("limit", -1.0), ("count", 11), ("count", 0), ("count", 2.0),
    ("count", True), ("text", 3), ("text", "x" * (2**20 + 1)), ("flag", 1), ("colour", "green"),
    ("size", "middle"), ("nothing", 0), ("shape", {}), ("shape", {"type": "Circle", "radius": 0.0}),
    ("shape", {"type": "Circle", "radius": 1.0, "more": 1}), ("shape", {"type": "Sphere"}),
    ("shape", {"type": "Box", "sides": [2.0, 1.0]}), ("shape", {"type": "Box", "sides": [1.0]}),
    ("either", None), ("either", []), ("pairs", [[1.0]]), ("pairs", {}), ("pairs", [1.0]),
    ("A", None), ("A", {"array": "b"}), ("A", {"array": "none"}), ("A", {"array": 1}),
    ("A", {"array": "a", "form": "upper"}), ("A", {"array": "a", "form": "lower"}),
    ("A", {"zeros": [3]}), ("A", {"zeros": [3, 3.0]}), ("A", {"zeros": [3, -1]}),
    ("A", {"zeros": [3, 2**40]}), ("A", {"zeros": [2**14, 2**15]}), ("A", {"zeros": "32"}),
    ("b", {"zeros": [4]}), ("b", {"array": "any_axes"}), ("b", {"array": "b", "form": "diagonal"}),
    ("maybe", {"zeros": [3]}), ("lower", {"zeros": [2]}), ("lower", []), ("document", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG, ids=str)
def test_wrong_values_are_refused_in_one_short_sentence(name, value):
    members = CODEC.encode(everything())
    tree = json.loads(members["thing.json"])
    members["thing.json"] = json.dumps({**tree, name: value}).encode()
    with pytest.raises(DamagedFile, match=r"^(its|a|it) [^\n]{3,80}$"):
        CODEC.decode(members)


def test_missing_and_extra_names_and_members_are_refused():
    members = CODEC.encode(everything())
    tree = json.loads(members["thing.json"])
    for name in tree:
        less = {k: v for k, v in tree.items() if k != name}
        with pytest.raises(DamagedFile):
            CODEC.decode({**members, "thing.json": json.dumps(less).encode()})
    for name in members:
        with pytest.raises(DamagedFile):
            CODEC.decode({k: v for k, v in members.items() if k != name})
    for extra in ("other.npy", "other.json"):
        with pytest.raises(DamagedFile, match="should not have"):
            CODEC.decode({**members, extra: members["b.npy"] if "npy" in extra else b"{}"})


def test_a_small_file_cannot_fill_the_memory():
    codec = Codec(tuple[One, ...], "many")
    tree = [{"type": "One", "values": {"zeros": [2**13, 2**13]}}] * 50
    assert MOST_EXPANDED < 50 * 2**26
    with pytest.raises(DamagedFile, match="larger than"):
        codec.decode({"many.json": json.dumps(tree).encode()})


def test_what_cannot_be_written_is_refused_before_it_is():
    for value in (everything(text={1, 2}), everything(shape=object())):
        with pytest.raises(ValueError, match="cannot be saved"):
            CODEC.encode(value)


def test_only_a_field_that_came_later_may_be_missing():
    codec = Codec(Room, "room")

    def read(**parts: Any) -> Any:
        return codec.decode({"room.json": json.dumps({"type": "Room", **parts}).encode()})

    assert read(width=3.0, height=2.0) == Room(3.0, 2.0, True)
    assert read(width=3.0, height=2.0, door=False) == Room(3.0, 2.0, False)
    assert json.loads(codec.encode(Room(3.0))["room.json"]).keys() >= {"width", "height", "door"}
    for parts in (
        {"width": 3.0},
        {"height": 2.0},
        {"width": 3.0, "height": 2.0, "window": True},
        {"width": 3.0, "height": 2.0, "door": None},
        {"width": 3.0, "height": 2.0, "door": 1},
    ):
        with pytest.raises(DamagedFile):
            read(**parts)
