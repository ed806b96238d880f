"""Kernel values against 150 digits: never further off than their bound, over all parameters."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
)

from papers.shared.varah import falls_with_distance
from privgp import PosteriorPaths, PrivateFunction
from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.kind import ULPS
from privgp.gp.kernels.proved import (
    exponential_rate,
    least_value,
    rounding_error,
    values_by_differences,
)
from tests.gp.kernels.rows import PROVED, ROWS, Row, exactly

DIGITS = 150  # sin near a multiple of pi, over a lengthscale of 1e-50, takes this many
UNITS = (1e-50, 3e-7, 1.7, 1e50)  # of distance: lengthscales and periods


def pairs(unit: Any, most: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of points, (pairs, columns) each: equal, subnormally near, some units apart, far."""
    rng = np.random.default_rng(seed)
    unit = np.atleast_1d(unit)
    steps = np.concatenate(
        [[0.0, 1e-200, 1e-120, 1e-9, 0.5, 1.0], 10.0 ** rng.uniform(-3, 1.5, 20), [40.0, 1e6, 1e11]]
    )
    steps = np.outer(steps, rng.uniform(0.1, 1.0, len(unit))) * unit
    centre = unit * rng.uniform(-30, 30, len(unit))
    widest = np.minimum(0.5 * most * unit, 1e50)
    X = np.vstack([np.zeros((4, len(unit))), np.tile(centre, (len(steps), 1)), -widest])
    Z = np.vstack([5e-324 * np.array([[1.0], [3.0]]) * np.ones(len(unit)), unit * [[1.0], [2.5]],
        centre + steps, widest])  # fmt: skip
    return np.clip(X, -widest, widest), np.clip(Z, -widest, widest)


@pytest.mark.parametrize("row", PROVED, ids=lambda row: row.name)
def test_values_are_never_further_off_than_the_bound_which_is_not_vacuous(row):
    largest = 0.0
    with mp.workdps(DIGITS):
        for seed, (unit, extra, shape) in enumerate(
            (unit, extra, shape) for unit in UNITS for extra in row.extras for shape in row.shapes
        ):
            scale = np.clip(unit * shape, 1e-50 * row.room, 1e50 / row.room)
            kernel = row.make(scale, extra)
            X, Z = pairs(scale, row.most, seed)
            values = [
                values_by_differences(kernel, x[None], z[None])[0, 0]
                for x, z in zip(X, Z, strict=True)
            ]
            bound = rounding_error(kernel, np.abs(X - Z).max(axis=0))
            for x, z, value in zip(X, Z, values, strict=True):
                error = abs(mp.mpf(float(value)) - exactly(kernel, x, z)) / mp.mpf(variance(kernel))
                assert error <= bound, (kernel, x, z)
                largest = max(largest, float(error) / bound)
    assert largest > 1.0 / 50.0


@pytest.mark.parametrize(
    ("computed", "exact", "arguments"),
    [
        (np.exp, mp.exp, -np.append(np.geomspace(1e-300, 745.0, 1500), np.linspace(0, 5, 1500))),
        (np.log1p, mp.log1p, np.append(np.geomspace(1e-320, 1e255, 1500), np.linspace(0, 5, 1500))),
        (np.sin, mp.sin, np.append(np.geomspace(1e-320, 1.57, 1500), np.linspace(0, 1.5713, 1500))),
    ],
    ids=["exp", "log1p", "sin"],
)
def test_elementary_functions_err_no_more_than_was_assumed(computed, exact, arguments):
    assert computed(0.0) == float(exact(0))
    with mp.workdps(40):
        for argument, value in zip(arguments.tolist(), computed(arguments).tolist(), strict=True):
            true = exact(mp.mpf(argument))
            ulp = mp.ldexp(1, max(mp.frexp(true)[1] - 53, -1074)) if true else 0
            assert abs(mp.mpf(value) - true) <= ULPS * ulp


def places(row: Row, columns: int) -> tuple[Any, np.ndarray]:
    kernel = row.make(1.0, row.middle)
    return kernel, np.random.default_rng(5).normal(size=(41, columns)) * 3.0


@pytest.mark.parametrize("row", PROVED, ids=lambda row: row.name)
def test_an_entry_depends_on_its_two_points_alone(row):
    """Not on where it stands, on the size of the matrix or on how its points lie in memory."""
    kernel, X = places(row, min(np.size(row.shapes[-1]), 2))
    values = values_by_differences(kernel, X, X)
    single = [[values_by_differences(kernel, X[i : i + 1], X[j : j + 1])[0, 0] for j in range(41)]
        for i in range(41)]  # fmt: skip
    assert np.array_equal(values, np.array(single))
    assert np.array_equal(values[3:, 7:], values_by_differences(kernel, X[3:], X[7:]))
    assert np.array_equal(values[::3, ::-1], values_by_differences(kernel, X[::3], X[::-1]))
    assert np.array_equal(values, values_by_differences(kernel, np.asfortranarray(X), X.copy()))


@pytest.mark.parametrize("row", PROVED, ids=lambda row: row.name)
def test_matrices_are_exactly_symmetric_with_the_variance_on_the_diagonal(row):
    kernel, X = places(row, min(np.size(row.shapes[-1]), 2))
    X = np.vstack([X, X[:3], X[:3] * (1 + 2.0**-52), X[:3] * 1e9])
    values = values_by_differences(kernel, X, X)
    assert np.array_equal(values, values.T)
    assert set(np.diag(values)) == {variance(kernel)}


@pytest.mark.parametrize("row", PROVED, ids=lambda row: row.name)
@pytest.mark.parametrize("box", [(-0.1, 0.2), (0.0, 0.49), (1e6 + 0.3, 1e6 + 3.0), (-40.0, 1e3)])
def test_the_least_value_on_a_domain_is_below_all_values_there(row, box):
    low, high = box
    apart = np.append(np.linspace(0.0, min(high - low, 2.0), 21), [high - low, 0.5])
    with mp.workdps(50):
        for extra in row.extras:
            kernel = row.make(1.0, extra)
            bound = least_value(kernel, np.array([high - low]))
            # the ends themselves: their exact distance may be more than the computed width
            values = [exactly(kernel, [low], [high])]
            values += [exactly(kernel, [0.0], [d]) for d in apart if d <= high - low]
            assert 0.0 <= bound <= min(values)
            if not row.name.startswith(("sum", "product", "periodic that")):
                assert min(values) - bound <= 1e-14 * variance(kernel)


FAR_OUT = [
    RBF([0.3, 7.0]),
    Matern(0.1, nu=0.5),
    Matern(2.0, nu=1.5),
    3.0 * Matern([1.0, 0.01], nu=2.5),
    RationalQuadratic(0.5, 0.1) * RBF(3.0) + 0.2 * RationalQuadratic(2.0, 50.0),
]


@pytest.mark.parametrize("kernel", FAR_OUT, ids=str)
def test_values_a_million_away_from_zero_err_no_more_than_they_say(kernel):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.uniform(-1, 1, (6, 2)), 1e6 + 1e-3 * rng.uniform(-1, 1, (6, 2))])
    values = values_by_differences(kernel, X, X)
    with mp.workdps(50):
        errors = [
            abs(mp.mpf(float(values[i, j])) - exactly(kernel, X[i], X[j]))
            for i in range(12)
            for j in range(12)
        ]
    assert float(max(errors)) <= rounding_error(kernel, np.full(2, 1e7)) * float(
        kernel.diag(X[:1])[0]
    )


@pytest.mark.parametrize("row", [row for row in ROWS if not row.proved], ids=lambda row: row.name)
def test_a_kernel_whose_error_is_not_proved_is_refused_but_can_be_evaluated(row):
    kernel = row.make(1.0, row.middle)
    assert np.all(np.isfinite(evaluate(kernel, np.zeros((2, 1)))))
    with pytest.raises(ValueError, match="not available"):
        rounding_error(2.0 * kernel, np.ones(1))


BOXED = [
    RBF(0.7), RBF([0.5, 2.0]), Matern(0.8, nu=0.5), Matern(0.8, nu=1.5), Matern(0.8, nu=2.5),
    RationalQuadratic(0.6, 1.3), ConstantKernel(2.5),
    ConstantKernel(3.0) * RBF(1.0) + Matern(0.3, nu=1.5),
    RBF(0.5) * RationalQuadratic(1.0, 0.7) + ConstantKernel(0.4),
]  # fmt: skip


@pytest.mark.parametrize("kernel", BOXED, ids=str)
def test_no_two_points_of_the_domain_have_a_smaller_covariance(kernel):
    rng = np.random.default_rng(0)
    widths = np.array([1.5, 0.8])
    X = np.vstack([rng.random((200, 2)), [[0, 0], [1, 1], [0, 1], [1, 0]]]) * widths + 7.0
    least = evaluate(kernel, X).min()
    bound = least_value(kernel, widths)
    assert 0 <= bound <= least
    assert bound == pytest.approx(least, rel=1e-9)


def test_a_kernel_whose_error_is_not_proved_is_bounded_by_zero():
    part = Matern(0.8, nu=1.1)
    assert least_value(part, np.ones(2)) == 0.0
    assert least_value(part + ConstantKernel(2.0), np.ones(2)) == pytest.approx(2.0, rel=1e-15)
    assert least_value(RationalQuadratic(1.0, 1e60), np.ones(1)) == 0.0
    with pytest.raises(ValueError, match="is not proved"):
        least_value(DotProduct(), np.ones(1))


@pytest.mark.parametrize("width", [0.1, 0.4, 0.5, 0.9, 5.0])
def test_a_periodic_kernel_is_least_half_a_period_apart(width):
    kernel = ExpSineSquared(0.8, 1.0)
    X = np.linspace(0, width, 401)[:, None]
    bound = least_value(kernel, np.array([width]))
    assert bound <= evaluate(kernel, X).min()
    assert bound == pytest.approx(evaluate(kernel, X).min(), rel=1e-3)


def test_the_exponential_kernel_is_known_through_products_and_not_through_sums():
    scaled = ConstantKernel(4.0) * Matern(0.5, nu=0.5)
    assert exponential_rate(scaled) == 2.0
    assert exponential_rate(scaled * scaled) == 4.0
    assert exponential_rate(ConstantKernel(3.0) + ConstantKernel(1.0)) == 0.0
    for other in (RBF(1.0), Matern(1.0, nu=1.5), scaled + ConstantKernel(1.0), scaled * RBF(1.0)):
        assert exponential_rate(other) is None


@pytest.mark.parametrize("row", PROVED, ids=lambda row: row.name)
def test_a_kernel_that_is_said_to_fall_with_the_distance_does(row):
    kernel = row.make(1.0, row.middle)
    values = values_by_differences(kernel, np.zeros((1, 1)), np.linspace(0, 3, 301)[:, None])[0]
    assert falls_with_distance(kernel) == ("periodic" not in row.name)
    assert falls_with_distance(kernel) == bool(np.all(np.diff(values) <= 0))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (DotProduct(), "DotProduct is not available here"),
        (2.0 * RBF(1.0) ** 2, "Exponentiation is not available here"),
        (Matern(1.0, nu=0.7) + RBF(1.0), "nu=0.7"),
        (RBF(9e-51), "length_scale must lie"),
        (RBF([1.0, 2e50]), "length_scale must lie"),
        (RBF([1.0, 2.0, 3.0]), "one per input"),
        (RBF(np.nan), "length_scale must lie"),
        (RationalQuadratic(1.0, 9e-51), "alpha must lie"),
        (RationalQuadratic(1.0, 2e50), "alpha must lie"),
        (RBF(1.0) * ExpSineSquared(1.0, 1.0), "one input only"),
        (1e-101 * RBF(1.0), "constant_value must lie"),
        (1e101 * RBF(1.0), "constant_value must lie"),
        (ConstantKernel(1e-60) * ConstantKernel(1e-60), "variance must lie"),
        (1e60 * (1e60 * RBF(1.0)), "variance must lie"),
    ],
    ids=str,
)
def test_what_has_no_proved_error_is_refused_in_one_sentence(kernel, words):
    with pytest.raises(ValueError, match=words):
        rounding_error(kernel, np.ones(2))


def test_boxes_for_which_no_error_is_proved_are_refused():
    for wrong in (3e50, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="domain must lie within"):
            rounding_error(RBF(1.0), np.array([1.0, wrong]))
    with pytest.raises(ValueError, match="widths"):
        rounding_error(RBF(1.0), np.ones((1, 1)))
    for kernel in (ExpSineSquared(1e-51, 1.0), ExpSineSquared(1.0, 2e50)):
        with pytest.raises(ValueError, match="must lie between"):
            rounding_error(kernel, np.ones(1))
    assert rounding_error(ExpSineSquared(1.0, 1e-12), np.ones(1)) < 2e-15
    with pytest.raises(ValueError, match="periods"):
        rounding_error(ExpSineSquared(1.0, 1e-13), np.ones(1))


def test_a_constant_is_exact_and_a_sum_errs_no_more_than_its_worst_part():
    one = np.ones(1)
    assert rounding_error(ConstantKernel(3.0), one) == 0.0
    worst = rounding_error(Matern(1.0, nu=2.5), one)
    assert rounding_error(RBF(1.0) + Matern(1.0, nu=2.5), one) < worst + 1.01 * 2.0**-53
    assert rounding_error(RBF(1.0), one) < 6 * 2.0**-53


@pytest.mark.parametrize("alpha", [1e3, 1e5, 1e9, 1e16])
@pytest.mark.parametrize("values", [values_by_differences, evaluate])
def test_a_rational_quadratic_of_large_alpha_keeps_its_digits(values, alpha):
    """``(1 + s / (2 alpha))^-alpha`` as written loses a digit with every digit of alpha."""
    X = np.linspace(0, 3, 61)[:, None]
    kernel = RationalQuadratic(0.7, alpha)
    found = values(kernel, X[:1], X)[0]
    with mp.workdps(50):
        errors = [
            abs(mp.mpf(float(v)) - exactly(kernel, X[0], x)) for v, x in zip(found, X, strict=True)
        ]
    assert max(errors) < 2e-15


@pytest.mark.parametrize(
    ("alpha", "points"),
    [(1e9, np.linspace(1.0, 1.0001, 200)), (1e16, np.array([1.489, 1.491]))],
)
def test_one_record_of_a_rational_quadratic_function_keeps_to_its_sensitivity(alpha, points):
    """Where kernel values jumped between near points, it passed it 2.5 and 6,300 times."""
    exact = []
    for y in (0.0, 1.0):
        function = PrivateFunction(
            RationalQuadratic(1.0, alpha), 0.5, y_bounds=(0, 1), epsilon=1.0, delta=1e-5,
            protect="records", domain=(0, 3), random_state=0,
        ).fit([[0.0]], [y])  # fmt: skip
        function.release(points[:, None])
        exact.append(function._kept.contents.draws.exact)
    moved = np.linalg.norm(exact[1] - exact[0])
    assert 0.5 < moved / (2.0 * function._kept.contents.norm) <= 1.0


def test_paths_of_a_rational_quadratic_of_large_alpha_promise_what_those_of_its_limit_do():
    """Its least value on the domain was taken for 1, and epsilon was stated 3 times too small."""
    promised = [
        PosteriorPaths(kernel, 25.0, domain=(0, 1.4), y_bounds=(-1, 1), delta=1e-5)
        .guarantee_for(100)
        .epsilon
        for kernel in (RationalQuadratic(1.0, 1e16), RBF(1.0))
    ]
    assert promised[0] == pytest.approx(promised[1], rel=1e-9)
