"""Laplace noise by expectation propagation, against integrals on a grid."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privgp.gp.measurement import find_sites

Moments = tuple[np.ndarray, np.ndarray, float]
ONE = {
    "near": (1.0, 0.3, 1.0),
    "far": (1.0, 4.0, 1.0),
    "very far": (1.0, -40.0, 1.0),
    "hardly any noise": (100.0, 3.0, 0.1),
    "hardly any signal": (0.01, 3.0, 2.0),
}
TWO = {
    "contradicting": ([[1.0, 0.8], [0.8, 1.0]], [1.0, -1.0], 1.0),
    "contradicting, clear": ([[1.0, 0.8], [0.8, 1.0]], [3.0, -3.0], 0.5),
    "agreeing": ([[1.0, 0.99], [0.99, 1.0]], [1.0, 1.2], 0.3),
    "opposite": ([[4.0, -1.0], [-1.0, 0.5]], [0.0, 5.0], 1.0),
    "independent": ([[2.0, 0.0], [0.0, 0.3]], [1.0, -2.0], 1.0),
}


def integrated(signal: np.ndarray, t: np.ndarray, noise_std: float) -> Moments:
    """Mean and covariance of g given t, and the log density of t, summed over a grid of g."""
    size, b = len(t), noise_std / np.sqrt(2.0)
    steps = 20_001 if size == 1 else 901
    axes = [np.linspace(-8 * s, 8 * s, steps) for s in np.sqrt(np.diag(signal))]
    g = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, size)
    squares = np.einsum("ij,jk,ik->i", g, np.linalg.inv(signal), g)
    log_prior = -0.5 * (squares + np.linalg.slogdet(2 * np.pi * signal)[1])
    logs = log_prior - np.abs(t - g).sum(axis=1) / b - size * np.log(2.0 * b)
    w = np.exp(logs - logs.max())
    total, volume = w.sum(), np.prod([axis[1] - axis[0] for axis in axes])
    mean = w @ g / total
    covariance = (g.T * w) @ g / total - np.outer(mean, mean)
    return mean, covariance, float(logs.max() + np.log(total * volume))


def found(signal: np.ndarray, t: np.ndarray, noise_std: float) -> Moments:
    """The same from the sites."""
    sites = find_sites(signal, t, noise_std)
    assert_allclose(sites.factor @ sites.factor.T, signal + np.diag(sites.variances), atol=1e-9)
    gain = np.linalg.solve(signal + np.diag(sites.variances), signal).T
    return gain @ sites.values, signal - gain @ signal, sites.log_evidence


@pytest.mark.parametrize("case", ONE)
def test_one_number_has_the_moments_and_the_evidence_of_its_integral(case):
    variance, t, noise_std = ONE[case]
    given = np.array([[variance]]), np.array([t]), noise_std
    mean, covariance, evidence = integrated(*given)
    our_mean, our_covariance, our_evidence = found(*given)
    assert_allclose(our_mean, mean, atol=1e-3 * np.sqrt(covariance[0, 0]))
    assert_allclose(our_covariance, covariance, rtol=0.01)
    assert_allclose(our_evidence, evidence, atol=2e-3)


@pytest.mark.parametrize("case", TWO)
def test_two_numbers_have_nearly_the_moments_and_the_evidence_of_their_integral(case):
    signal, t, noise_std = TWO[case]
    given = np.array(signal), np.array(t), noise_std
    mean, covariance, evidence = integrated(*given)
    our_mean, our_covariance, our_evidence = found(*given)
    std = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(our_mean - mean) < 0.03 * std)
    assert_allclose(our_covariance, covariance, atol=0.06 * np.outer(std, std).max())
    assert_allclose(our_evidence, evidence, atol=0.02)


def test_one_number_that_four_others_contradict_counts_less():
    signal = np.ones((5, 5)) + 1e-6 * np.eye(5)
    sites = find_sites(signal, np.array([0.0, 0.1, -0.1, 0.05, 6.0]), 0.5)
    assert np.all(sites.variances[4] > 3.0 * sites.variances[:4])
    assert np.all(sites.variances[:4] < 0.5**2)
    normal = np.linalg.solve(signal + 0.25 * np.eye(5), np.ones(5)) @ [0.0, 0.1, -0.1, 0.05, 6.0]
    mean = found(signal, np.array([0.0, 0.1, -0.1, 0.05, 6.0]), 0.5)[0][0]
    assert abs(mean) < 0.3 < normal


def test_the_sites_move_with_units_and_with_the_order_of_numbers():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 6))
    signal, t, order = root @ root.T, 3.0 * rng.standard_normal(6), rng.permutation(6)
    plain, turned = find_sites(signal, t, 1.0), find_sites(signal[order][:, order], t[order], 1.0)
    assert_allclose(turned.values, plain.values[order], rtol=1e-6)
    assert_allclose(turned.log_evidence, plain.log_evidence, rtol=1e-6)
    for unit in (1e-30, 1e-6, 1e6, 1e30):
        scaled = find_sites(unit**2 * signal, unit * t, unit)
        assert_allclose(scaled.values, unit * plain.values, rtol=1e-6)
        assert_allclose(scaled.variances, unit**2 * plain.variances, rtol=1e-6)
        moved = scaled.log_evidence + 6 * np.log(unit)
        assert_allclose(moved, plain.log_evidence, rtol=1e-6)


def test_numbers_and_signals_of_any_size_give_finite_sites():
    fell_back = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(1, 12))
        root = rng.standard_normal((size, int(rng.integers(1, size + 1))))
        signal = root @ root.T * 10.0 ** rng.uniform(-12, 12)
        t = rng.standard_normal(size) * 10.0 ** rng.uniform(-6, 6)
        t[0] *= rng.choice([1.0, 1e4])
        sites = find_sites(signal, t, 1.0)
        for numbers in (sites.values, sites.variances, sites.factor, sites.log_evidence):
            assert np.all(np.isfinite(numbers))
        assert np.all(sites.variances > 0.0)
        fell_back += bool(np.all(sites.variances == 1.0) and np.array_equal(sites.values, t))
    assert 0 < fell_back < 100  # as normal noise, where the iteration does not converge


def test_the_inputs_are_left_as_they_were():
    signal, t = np.eye(3), np.array([1.0, 20.0, -3.0])
    find_sites(signal, t, 1.0)
    assert_allclose(signal, np.eye(3))
    assert_allclose(t, [1.0, 20.0, -3.0])
