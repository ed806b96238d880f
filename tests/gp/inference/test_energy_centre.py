"""Squares about a function instead of the middle of the bounds, against the model row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from privgp.gp.inference.evidence import Bending, fit
from privgp.gp.inference.learning import noise_variance, sample
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from tests.gp.sums import sums_of_parts

rng = np.random.default_rng(0)
PLACES = np.sort(rng.uniform(0, 1, (12, 1)), axis=0)
SUMS, COUNTS = np.repeat(np.eye(4), 3, axis=1), rng.integers(3, 9, 12).astype(float)
CURVE = np.sin(5.0 * PLACES[:, 0])
ABOUT = replace(sums_of_parts(SUMS, PLACES, COUNTS), energy_centre=CURVE)
KERNEL, NOISE = ConstantKernel(1.3) * Matern(0.3, nu=2.5), 0.2
MEASURED = Measurement(SUMS @ (COUNTS * (CURVE + 0.1)), 2.0, 5.0, 1.0)


def by_rows():
    """Mean and covariance of all outputs given the sums."""
    rows = np.repeat(np.arange(12), COUNTS.astype(int))
    K = KERNEL(PLACES[rows]) + NOISE * np.eye(len(rows))
    sums = SUMS[:, rows]
    S = sums @ K @ sums.T + 4.0 * np.eye(4)
    gain = np.linalg.solve(S, sums @ K).T
    return gain @ MEASURED.values, K - gain @ sums @ K, CURVE[rows]


def log_evidence(theta, log_noise, gradient=False):
    kernel = KERNEL.clone_with_theta(theta)
    given = ABOUT, MEASURED, kernel, np.exp(log_noise), PLACES
    return fit(*given, gradient=gradient, energy_variance=3.0)


def test_the_expected_sum_of_squares_is_that_of_the_rows():
    mean, covariance, curve = by_rows()
    expected = np.sum((mean - curve) ** 2) + np.trace(covariance)
    without = fit(ABOUT, replace(MEASURED, energy=None), KERNEL, NOISE, PLACES).log_evidence
    found = fit(ABOUT, MEASURED, KERNEL, NOISE, PLACES, energy_variance=3.0).log_evidence
    wanted = -0.5 * ((5.0 - expected) ** 2 / 3.0 + np.log(3.0))
    assert found - without == pytest.approx(wanted, rel=1e-9)


def test_the_gradient_is_that_of_the_evidence():
    at, step = np.append(KERNEL.theta, np.log(NOISE)), 1e-5
    found = log_evidence(at[:-1], at[-1], gradient=True).gradient
    for place, axis in enumerate(step * np.eye(3)):
        ends = (log_evidence((at + s)[:-1], (at + s)[-1]).log_evidence for s in (axis, -axis))
        assert found[place] == pytest.approx(np.subtract(*ends) / (2.0 * step), rel=1e-5)


@pytest.mark.parametrize("about", [CURVE, np.zeros(12)])
def test_changes_of_the_function_move_the_expected_squares_alike(about):
    """The spread of the squares is approximated, so its noise is made large enough to rule."""
    f, measured = replace(ABOUT, energy_centre=about), replace(MEASURED, energy_noise_std=1e3)
    shapes = np.column_stack([PLACES[:, 0] > 0.5, 0.7 * (PLACES[:, 0] > 0.3)]).astype(float)
    bending = replace(Bending.of(f, measured, shapes), pairs=np.array([[0, 1]]))
    numbers, energy = bending.log_evidence(KERNEL, NOISE, PLACES)
    for place, chosen in enumerate(([], [0], [1], [0, 1])):
        changes = shapes[:, chosen] if chosen else None
        wanted = fit(f, measured, KERNEL, NOISE, PLACES, changes=changes).log_evidence
        assert numbers[place] + energy[place] == pytest.approx(wanted, abs=1e-4)


def test_squares_about_nothing_are_squares_about_zero():
    zero, none = (replace(ABOUT, energy_centre=o) for o in (np.zeros(12), None))
    one, other = (fit(f, MEASURED, KERNEL, NOISE, PLACES, gradient=True) for f in (zero, none))
    assert one.log_evidence == pytest.approx(other.log_evidence)
    assert one.gradient == pytest.approx(other.gradient)


def test_the_scatter_follows_from_squares_about_the_curve():
    told = replace(
        MEASURED, values=SUMS @ (COUNTS * CURVE), noise_std=1e-3, energy=0.09 * COUNTS.sum()
    )
    model = Hyperparameters(KERNEL, 0.05)
    assert noise_variance(ABOUT, told, model) == pytest.approx(0.09, rel=0.6)
    assert noise_variance(ABOUT, told, model) < noise_variance(
        replace(ABOUT, energy_centre=CURVE + 1.0), replace(told, energy=told.energy * 14), model
    )


def test_a_sample_of_the_numbers_keeps_the_curve_at_its_nodes():
    some, _ = sample(ABOUT, MEASURED, 2)
    kept = np.isin(PLACES[:, 0], some.nodes[:, 0])
    assert np.array_equal(some.energy_centre, CURVE[kept])
