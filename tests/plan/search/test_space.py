"""A space is a finite list of settings with coordinates in the unit cube."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privgp.plan.search.plan import make_space


def test_lists_give_all_their_combinations():
    space = make_space({"C": [10, 0.1, 1], "kind": ["a", None]})
    assert space.whole
    assert len(space) == 6
    assert [s["C"] for s in space.settings] == [0.1, 0.1, 1, 1, 10, 10]
    assert {s["kind"] for s in space.settings} == {"a", None}
    assert space.points.shape == (6, 3)  # one for numbers, one per category
    assert sorted(set(space.points[:, 0])) == [0, 0.5, 1]


def test_categories_are_all_equally_far_apart():
    points = make_space({"kind": ["a", "b", True]}).points
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert gaps[~np.eye(3, dtype=bool)] == pytest.approx(0.5)


@given(low=st.floats(1e-12, 1e6), factor=st.floats(1.001, 1e12), log=st.booleans())
def test_settings_of_an_interval_lie_in_it(low, factor, log):
    axis = (low, low * factor, "log-uniform") if log else (low, low * factor)
    space = make_space({"x": axis}, candidates=40)
    values = np.array([s["x"] for s in space.settings])
    assert len(values) == 40
    assert not space.whole
    assert np.all((values >= low) & (values <= low * factor))
    inside = space.points[:, 0]
    wanted = (
        (np.log(values / low) / math.log(factor)) if log else (values - low) / (low * factor - low)
    )
    assert inside == pytest.approx(wanted, abs=1e-6)


def test_a_space_is_the_same_at_every_call_and_fills_the_square():
    axes = {"a": (0, 1), "b": (1e-3, 1e3, "log-uniform"), "c": [1, 2, 3]}
    one, two = make_space(axes, 500), make_space(axes, 500)
    assert one.settings == two.settings
    nearest = np.linalg.norm(
        one.points[:, None, :2] - np.random.default_rng(0).uniform(size=(200, 2)), axis=2
    )
    assert nearest.min(axis=0).max() < 0.12


def test_too_many_combinations_become_a_sample_of_them():
    space = make_space({name: list(range(12)) for name in "abcd"}, candidates=300)
    assert len(space) == 300
    assert not space.whole


@pytest.mark.parametrize(
    "axes",
    [
        None, {}, [], "C", {"C": 1}, {"C": (1,)}, {"C": (2, 1)}, {"C": (1, 1)}, {"C": (0, 1, "log-uniform")},
        {"C": (-1, 1, "log-uniform")}, {"C": (0, math.inf)}, {"C": (0, math.nan)}, {"C": ("a", "b")},
        {"C": []}, {"C": [1, math.nan]}, {"C": (0, 1, "loguniform")}, {1: (0, 1)}, {"C": (-1e308, 1e308 * 10)},
        {str(i): (0, 1) for i in range(11)},
    ],
)  # fmt: skip
def test_bad_spaces_are_refused(axes):
    with pytest.raises(ValueError, match="space"):
        make_space(axes)


@pytest.mark.parametrize("candidates", [0, -1, 1.5, True, None, 10**9])
def test_bad_counts_are_refused(candidates):
    with pytest.raises(ValueError, match="candidates"):
        make_space({"C": (0, 1)}, candidates)
