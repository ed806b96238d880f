"""Designs: private whatever the solver does, and correct as linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privgp.plan.designs.workload import OBJECTIVES, design
from privgp.types import Array
from tests.plan.designs.problems import (
    SEEDS,
    column_norm,
    measure,
    problem,
    relative_error,
    solved,
    variances,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_reconstructed_strategy_is_the_workload(seed: int, objective: str) -> None:
    d = solved(seed, objective)
    assert relative_error(d, problem(seed)) < 1e-8
    assert 1 - 1e-12 <= column_norm(d) <= 1 + 1e-12


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("iterations", [1, 2, 16, 18])
def test_privacy_never_depends_on_convergence(objective: str, iterations: int) -> None:
    for seed in (3, 4, 5, 9, 11):
        d = design(problem(seed), objective, max_iterations=iterations)
        assert column_norm(d) <= 1 + 1e-12
        assert relative_error(d, problem(seed)) < 1e-8


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_target_with_a_thousand_rows_gets_the_noise_it_needs(objective: str) -> None:
    c = np.random.default_rng(0).standard_normal((1, 1000))
    d = design(c, objective)
    assert d.strategy.shape == (1, 1000)
    np.testing.assert_allclose(np.abs(d.reconstruction), np.abs(c).max(), rtol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_workload_of_zeros_needs_no_measurement(objective: str) -> None:
    d = design(np.zeros((3, 4)), objective)
    assert d.strategy.shape == (0, 4)
    assert d.reconstruction.shape == (3, 0)
    assert d.gap == 0.0
    assert (d.reconstruction @ d.strategy == 0).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_zero_columns_and_zero_rows_are_harmless(objective: str) -> None:
    C = np.random.default_rng(1).standard_normal((4, 30))
    padded = np.zeros((5, 60))
    padded[:4, ::2] = C
    plain, d = design(C, objective), design(padded, objective)
    assert not d.strategy[:, 1::2].any()
    np.testing.assert_allclose(variances(d)[4], 0.0, atol=1e-20)
    assert measure(d, objective) == pytest.approx(measure(plain, objective), abs=0.011)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", [5, 9, 10])
def test_duplicated_columns_change_nothing(seed: int, objective: str) -> None:
    C = problem(seed)
    repeated = np.repeat(C, 1 + np.arange(C.shape[1]) % 3, axis=1)
    d = design(repeated, objective)
    expected = measure(solved(seed, objective), objective)
    assert measure(d, objective) == pytest.approx(expected, abs=0.011)
    same = np.repeat(np.arange(C.shape[1]), 1 + np.arange(C.shape[1]) % 3)
    _, first = np.unique(same, return_index=True)
    np.testing.assert_allclose(d.strategy, d.strategy[:, first[same]], atol=1e-9)


def test_nearly_dependent_targets_are_released_together() -> None:
    C = np.random.default_rng(2).standard_normal((3, 200))
    C = np.vstack([C, C[0] + C[1], C[2] * (1 + 1e-14)])
    for objective in OBJECTIVES:
        d = design(C, objective)
        assert d.strategy.shape[0] == 3
        assert relative_error(d, C) < 1e-12


workloads = st.tuples(st.integers(1, 6), st.integers(1, 40), st.integers(0, 10**6))


def drawn(shape: tuple[int, int, int]) -> Array:
    P, n, seed = shape
    rng = np.random.default_rng(seed)
    return rng.standard_normal((P, n)) * np.exp(rng.standard_normal(n))


@given(workloads, st.sampled_from(OBJECTIVES))
@settings(max_examples=40, deadline=None)
def test_the_order_of_columns_does_not_matter(shape: tuple[int, int, int], objective: str) -> None:
    C = drawn(shape)
    order = np.random.default_rng(0).permutation(C.shape[1])
    plain, permuted = design(C, objective), design(C[:, order], objective)
    assert measure(permuted, objective) == pytest.approx(measure(plain, objective), abs=0.011)


@given(workloads, st.sampled_from(OBJECTIVES), st.floats(-60, 60))
@settings(max_examples=40, deadline=None)
def test_noise_scales_with_the_workload(
    shape: tuple[int, int, int], objective: str, exponent: float
) -> None:
    C, scale = drawn(shape), 10.0**exponent
    plain, scaled = design(C, objective), design(scale * C, objective)
    total = np.sqrt(variances(plain).sum())
    assert np.sqrt(variances(scaled).sum()) == pytest.approx(scale * total, rel=0.01)
    assert relative_error(scaled, scale * C) < 1e-9


@given(workloads, st.sampled_from(OBJECTIVES), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_every_column_has_norm_at_most_one(
    shape: tuple[int, int, int], objective: str, iterations: int
) -> None:
    d = design(drawn(shape), objective, max_iterations=iterations)
    assert column_norm(d) <= 1 + 1e-12
    assert 0 <= d.gap < np.inf


@pytest.mark.parametrize("objective", ["trace", "max"])
def test_weights_are_rows_scaled_by_their_roots(objective: str) -> None:
    C = problem(9)[:20]
    weights = np.linspace(0.2, 5.0, len(C))
    d = design(C, objective, weights)
    scaled = design(np.sqrt(weights)[:, None] * C, objective)
    np.testing.assert_allclose(weights * variances(d), variances(scaled), rtol=1e-9)
    assert relative_error(d, C) < 1e-10
    plain = design(C, objective)
    reduce = np.sum if objective == "trace" else np.max
    assert reduce(weights * variances(d)) <= 1.01 * reduce(weights * variances(plain))


def test_weights_leave_the_volume_design_alone() -> None:
    C = np.random.default_rng(3).standard_normal((5, 80))
    weighted = design(C, "logdet", np.geomspace(1e-3, 1e3, 5))
    expected = measure(design(C, "logdet"), "logdet")
    assert measure(weighted, "logdet") == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((np.ones(3), "trace"), "matrix"),
        ((np.ones((2, 0)), "trace"), "at least one"),
        ((np.array([[1.0, np.nan]]), "max"), "not finite"),
        ((np.array([[1.0, np.inf]]), "logdet"), "not finite"),
        ((np.ones((2, 2)), "volume"), "objective must be one of"),
        ((np.ones((2, 2)), "trace", [1.0]), "shape"),
        ((np.ones((2, 2)), "trace", [1.0, -1.0]), "positive"),
        ((np.ones((2, 2)), "trace", [1.0, 0.0]), "positive"),
        ((np.ones((2, 2)), "trace", [1.0, np.nan]), "finite"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        design(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"max_iterations": 0}])
def test_senseless_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        design(np.ones((2, 2)), "trace", **options)  # type: ignore[arg-type]
