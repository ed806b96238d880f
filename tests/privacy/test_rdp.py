"""Divergences of sample paths: against 30 digits, monotone, inside their interval, attacked."""

from __future__ import annotations

import itertools
import json
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from privgp.privacy.budget import gaussian_epsilon
from privgp.privacy.guarantee import Guarantee, compose
from privgp.privacy.posterior_mean import PosteriorShape, mean_sensitivity, root_phi
from privgp.privacy.protected import RECORDS
from privgp.privacy.rdp import (
    GaussianCurve,
    PathCurve,
    delta_for,
    epsilon_for,
    influence_and_shift,
)

mp.mp.dps = 30
KAPPA = math.exp(-1.0)


def curve_of(r, sigma, eta=0.0, *, n=100, least=KAPPA, form="exponential", paths=1, way="auto"):
    shape = PosteriorShape(r * r, n, least, form)
    terms = influence_and_shift(
        sensitivity=mean_sensitivity(shape, way).value,
        influence=shape.influence,
        kernel_variance=sigma**2,
        extra_variance=eta**2,
    )
    return PathCurve(*terms, paths, "paper" if way == "paper" else "sharp")


@pytest.mark.parametrize(
    ("r", "paper", "sharper"), [(1.0, 20.45, 13.24), (2.0, 4.51, 2.57), (5.0, 0.684, 0.263)]
)
def test_the_figures_of_the_exponential_kernel(r, paper, sharper):
    delta = 100**-1.1
    assert epsilon_for([curve_of(r, 1.0, way="paper")], delta, "paper") == pytest.approx(
        paper, abs=0.006
    )
    assert epsilon_for([curve_of(r, 1.0)], delta) <= sharper
    # root 2 instead of root (1 + root(1 - v^2)): what the sharper covariance alone gives
    shape = PosteriorShape(r * r, 100, math.exp(-1), "exponential")
    plain = PathCurve(shape.influence, 2.0 * math.sqrt(2.0) * root_phi(shape))
    assert epsilon_for([plain], delta) == pytest.approx(sharper, abs=0.012)


def by_the_paper(V, r2, s2, e2, D, L, alpha, covariance):
    """Theorem 3.1 and proposition 2 in the paper's own symbols."""
    tau = s2 * V / (s2 * r2 + e2 * (V + r2))
    if covariance == "paper":
        psi = 2 * max(
            mp.log(1 + tau) / 2 - mp.log((1 + alpha * tau) / (1 + tau)) / (2 * (alpha - 1)),
            -mp.log(1 + tau) / 2 - mp.log(1 - tau * (alpha - 1)) / (2 * (alpha - 1)),
        )
    else:
        inside = (1 + alpha * tau) * (1 - (alpha - 1) * tau) / (1 + tau)
        psi = -mp.log(inside) / (2 * (alpha - 1))
    mean = alpha / 2 * (V + r2) * D**2 / (s2 * (r2 - (alpha - 1) * V) + e2 * (V + r2))
    return L * (psi + mean)


def test_every_divergence_and_epsilon_equals_an_independent_evaluation():
    rng = np.random.default_rng(3)
    for i in range(500):
        n, r2 = int(10 ** rng.uniform(0, 4)), float(10 ** rng.uniform(-1.5, 3))
        shape = PosteriorShape(r2, n, float(rng.random()))
        s2, D = float(10 ** rng.uniform(-1, 2)), float(10 ** rng.uniform(-3, 1))
        e2 = float(rng.choice([0.0, 10 ** rng.uniform(-2, 1)]))
        paths, way = int(rng.integers(1, 20)), str(rng.choice(["sharp", "paper"]))
        terms = influence_and_shift(
            sensitivity=D, influence=shape.influence, kernel_variance=s2, extra_variance=e2
        )
        curve = PathCurve(*terms, paths, way)
        values = [mp.mpf(x) for x in (shape.largest_variance, r2, s2, e2, D, paths)]
        order = 1.0 + (curve.limit - 1.0) * float(rng.choice([1e-3, 0.1, 0.5, 0.9]))
        exact = by_the_paper(*values, mp.mpf(order), way)
        assert exact * (1 - mp.mpf(10) ** -12) <= curve.at(order) <= exact * (1 + mp.mpf(10) ** -9)
        if i % 20 == 0:
            delta = float(10 ** rng.uniform(-8, -1))
            least = searched(values, way, mp.mpf(curve.limit), mp.mpf(delta))
            assert epsilon_for([curve], delta) == pytest.approx(max(float(least), 0), rel=1e-9)


def searched(values, way, limit, delta):
    """The least epsilon by golden section in 30 digits, from the best of a grid."""

    def epsilon(t):
        a = 1 + (limit - 1) * mp.exp(t) / (1 + mp.exp(t))
        tail = mp.log((a - 1) / a) - (mp.log(delta) + mp.log(a)) / (a - 1)
        return by_the_paper(*values, a, way) + tail

    grid = [mp.mpf(t) / 2 for t in range(-40, 31)]
    best = min(range(1, len(grid) - 1), key=lambda i: epsilon(grid[i]))
    low, high = grid[best - 1], grid[best + 1]
    ratio = (mp.sqrt(5) - 1) / 2
    for _ in range(32):
        c, d = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, d) if epsilon(c) < epsilon(d) else (c, high)
    return epsilon((low + high) / 2)


def test_epsilon_falls_with_r_sigma_and_eta_and_grows_with_the_paths():
    for way in ("auto", "paper"):
        how = "paper" if way == "paper" else "sharp"

        def epsilon(r=1.5, s=1.2, e=0.4, paths=2, way=way, how=how):
            return epsilon_for([curve_of(r, s, e, paths=paths, way=way)], 1e-4, how)

        for low, high in itertools.pairwise([0.2, 0.5, 1.0, 2.0, 5.0, 20.0]):
            assert epsilon(r=high) < epsilon(r=low)
            assert epsilon(s=high, e=0.0) < epsilon(s=low, e=0.0)
            assert epsilon(e=high) < epsilon(e=low)
        for few, many in ((1, 2), (2, 5), (5, 50)):
            assert epsilon(paths=few) < epsilon(paths=many) < many / few * epsilon(paths=few)


@given(
    influence=st.floats(1e-9, 1.0 - 1e-9), shift=st.floats(0.0, 1e3), paths=st.integers(1, 100),
    delta=st.floats(1e-12, 0.5), mu=st.floats(0.0, 10.0),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_no_order_outside_its_interval_is_ever_used(influence, shift, paths, delta, mu):
    used = []

    class Watched(PathCurve):
        def at(self, order):
            assert 1.0 < order < 1.0 / self.influence
            used.append(order)
            return super().at(order)

    curves = [Watched(influence, shift, paths), Watched(influence / 2, shift), GaussianCurve(mu)]
    epsilon = epsilon_for(curves, delta)
    assert used
    assert epsilon >= 0
    if math.isfinite(epsilon):
        assert delta_for(curves, epsilon * (1 + 1e-9) + 1e-12) <= delta * (1 + 1e-6)
    for order in (1.0, 0.5, 1.0 / influence, 2.0 / influence, math.nan, math.inf):
        with pytest.raises(ValueError, match="order"):
            PathCurve(influence, shift).at(order)


def divergence(K, y, y2, r2, sigma2, eta2, alpha):
    """The true Renyi divergence at the points (core, x, x') of data that hold x or x'."""
    m = len(K) - 1
    rows = [list(range(m)), [*range(m - 1), m]]
    laws = []
    for index, outputs in zip(rows, (y, y2), strict=True):
        half = np.linalg.solve(K[np.ix_(index, index)] + r2 * np.eye(m), K[index])
        cov = sigma2 * (K - K[:, index] @ half) + eta2 * K
        laws.append((half.T @ outputs, cov + 1e-9 * np.eye(m + 1)))
    (mean, S), (mean2, S2) = laws
    mixed = alpha * S2 - (alpha - 1.0) * S
    if np.linalg.eigvalsh(mixed)[0] <= 0:
        return math.inf
    gap = mean - mean2
    logs = [np.linalg.slogdet(matrix)[1] for matrix in (mixed, S, S2)]
    spread = -(logs[0] - (1 - alpha) * logs[1] - alpha * logs[2]) / (2.0 * (alpha - 1.0))
    return 0.5 * alpha * gap @ np.linalg.solve(mixed, gap) + spread


@pytest.mark.parametrize("eta", [0.0, 0.7])
@pytest.mark.parametrize("r", [0.7, 1.5, 4.0])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_true_divergence_never_exceeds_the_bound(n, r, eta):
    """Maximised over inputs and outputs of both datasets, at all inputs as points."""
    rng = np.random.default_rng(n)
    length, sigma2 = 2.0, 1.3
    curve = curve_of(r, math.sqrt(sigma2), eta, n=n, least=math.exp(-length))
    alpha = 1.0 + 0.5 * (min(curve.limit, 40.0) - 1.0)
    best = 0.0
    for signs in itertools.product([-1.0, 1.0], repeat=n):
        y, y2 = np.array(signs), np.array([*signs[:-1], -signs[-1]])
        for _ in range(2):

            def negative(z, y=y, y2=y2):
                x = length / (1.0 + np.exp(-np.clip(z, -30, 30)))
                K = np.exp(-np.abs(x[:, None] - x))
                return -divergence(K, y, y2, r * r, sigma2, eta**2, alpha)

            found = minimize(negative, rng.normal(size=n + 1) * 2, method="Nelder-Mead",
                options={"maxfev": 80})  # fmt: skip
            best = max(best, -found.fun)
    bound = curve.at(alpha)
    assert best <= bound * (1 + 1e-6)
    assert best >= 0.2 * bound  # the bound is about this attack, not about something else


def test_the_covariance_term_is_attained_by_uncorrelated_points():
    """Large sigma: two inputs that know nothing of each other, n = 1."""
    r2, alpha = 1.5, 1.8
    zero = np.zeros(1)
    true = divergence(np.eye(2), zero, zero, r2, 1.0, 0.0, alpha)
    assert PathCurve(1.0 / (1.0 + r2), 0.0).at(alpha) == pytest.approx(true, rel=1e-6)
    assert PathCurve(1.0 / (1.0 + r2), 0.0, covariance="paper").at(alpha) > 1.2 * true


def promise(**kwargs):
    fields = {
        "epsilon": 1.0, "delta": 1e-5, "unit": RECORDS.unit, "neighbours": RECORDS.neighbours,
        "assumptions": (), "mechanism": "m", "sampler": "s", "noise_multipliers": (),
    }  # fmt: skip
    return Guarantee(**{**fields, **kwargs})


def test_guarantees_with_paths_compose_with_gaussian_ones():
    curve = curve_of(2.0, 1.0)
    paths, gaussian = promise(path_curves=(curve,)), promise(noise_multipliers=(3.0,))
    alone = compose([paths], 1e-4)
    assert alone.epsilon == pytest.approx(epsilon_for([curve], 1e-4), rel=1e-6)
    both = compose([paths, gaussian, paths], 1e-4)
    assert both.path_curves == (curve, curve)
    assert both.noise_multipliers == (3.0,)
    expected = epsilon_for([curve, curve, GaussianCurve(1.0 / 3.0)], 1e-4)
    assert expected <= both.epsilon <= expected * (1 + 1e-6)
    assert both.epsilon > max(compose([paths, paths], 1e-4).epsilon, gaussian_epsilon(1e-4, 3.0))
    assert both.delta_at(both.epsilon) <= 1e-4
    assert both.epsilon_at(1e-4) == pytest.approx(both.epsilon, rel=1e-6)
    assert Guarantee.from_json(both.to_json()) == both
    assert json.loads(both.to_json())["path_curves"][0]["influence"] == curve.influence
    slack = compose([paths, promise(noise_multipliers=(3.0,), delta_slack=9e-5)], 1e-4)
    assert slack.epsilon > compose([paths, gaussian], 1e-4).epsilon


def test_the_old_json_of_a_guarantee_is_read():
    text = json.loads(promise(noise_multipliers=(2.0,)).to_json())
    del text["path_curves"]
    assert Guarantee.from_json(json.dumps(text)) == promise(noise_multipliers=(2.0,))


@pytest.mark.parametrize(
    "wrong",
    [{"influence": 0.0}, {"influence": 1.0}, {"influence": math.nan}, {"shift": -1.0},
        {"shift": math.inf}, {"paths": 0}, {"covariance": "none"}],
)  # fmt: skip
def test_curves_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="curve"):
        PathCurve(**{"influence": 0.5, "shift": 1.0, **wrong})


def test_budgets_out_of_range_are_refused():
    curve = PathCurve(0.5, 1.0)
    for delta in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="delta"):
            epsilon_for([curve], delta)
    with pytest.raises(ValueError, match="conversion"):
        epsilon_for([curve], 0.1, "best")
