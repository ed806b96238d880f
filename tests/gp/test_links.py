"""Links: slopes, inverses, and averages over a normal distribution."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from privgp.gp.links import LABEL_LINKS, LINKS, LOG, PROBIT

F = np.linspace(-4.0, 4.0, 9)
every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)


@every_link
def test_the_slope_is_the_derivative_and_the_inverse_undoes_the_mean(link):
    step = 1e-5
    assert_allclose(
        link.slope(F), (link.mean(F + step) - link.mean(F - step)) / (2 * step), rtol=1e-6
    )
    assert_allclose(link.inverse(link.mean(F)), F, atol=1e-9)


@every_link
def test_the_variance_is_that_of_the_outcome(link):
    mean = link.mean(F)
    expected = mean * (1.0 - mean) if link.name in LABEL_LINKS else mean
    assert_allclose(link.variance(F), expected, rtol=1e-9)


@every_link
def test_averages_are_those_of_fine_quadrature(link):
    for centre, spread in ((0.3, 0.4), (-2.0, 1.0), (1.0, 1.5)):
        pairs = [
            (link.average, link.mean),
            (link.average_slope, link.slope),
            (link.average_variance, link.variance),
            (link.average_square, lambda f: link.mean(f) ** 2),
        ]
        for average, g in pairs:
            ends = centre - 12 * spread, centre + 12 * spread
            density = norm(centre, spread).pdf
            true = quad(lambda f, g=g, d=density: float(g(f)) * d(f), *ends)[0]
            found = average(np.array([centre]), np.array([spread**2]))[0]
            assert found == pytest.approx(true, rel=2e-3)


def test_averages_with_a_closed_form():
    mean, variance = np.array([0.7]), np.array([2.0])
    expected = PROBIT.average(mean, variance)
    assert_allclose(expected, norm.cdf(0.7 / np.sqrt(3.0)), rtol=1e-6)
    assert_allclose(LOG.average(mean, variance), np.exp(0.7 + 1.0), rtol=1e-6)


def test_nothing_overflows_far_away():
    far = np.array([-1e6, 1e6])
    for link in LINKS.values():
        assert np.all(np.isfinite([link.mean(far), link.slope(far), link.variance(far)]))
