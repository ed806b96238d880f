"""Shadow posteriors, fitted laws, and the attack on membership."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from benchmarks.shadows import one_at_a_time
from privgp.audit import membership, path_promise
from privgp.audit.members import draw_release
from privgp.audit.shadows import (
    MeanLaw,
    Population,
    fit_means,
    fit_variances,
    posteriors,
    step,
)

POPULATION = Population(10, np.zeros(1), np.ones(1), np.array([0.5]), 1.0)
EXPONENTIAL = Matern(1.0, nu=0.5)
QUICK = {"shadows": 2000, "draws": 2000, "random_state": 0}


@pytest.mark.parametrize("kernel", [EXPONENTIAL, 4.0 * RBF(0.3), RBF(0.2) * Matern(2.0) + 0.5])
def test_posteriors_together_are_those_one_at_a_time(kernel, monkeypatch):
    X, y = POPULATION.draw(300, True, np.random.default_rng(0))
    monkeypatch.setattr("privgp.audit.shadows.BLOCK_NUMBERS", 10 * 10 * 70)  # several blocks
    together = posteriors(kernel, 0.1, X, y, POPULATION.point)
    alone = one_at_a_time(kernel, 0.1, X, y, POPULATION.point)
    assert np.allclose(together, alone, rtol=0, atol=1e-7)


def test_posteriors_are_scikit_learns():
    population = Population(6, np.zeros(2), np.array([1.0, 3.0]), np.array([0.5, 2.0]), 1.0)
    X, y = population.draw(3, False, np.random.default_rng(0))
    mean, var = posteriors(2.0 * RBF(0.7), 0.2, X, y, population.point)
    for k in range(3):
        model = GaussianProcessRegressor(2.0 * RBF(0.7), alpha=0.2, optimizer=None).fit(X[k], y[k])
        expected = model.predict(population.point[None], return_std=True)
        assert mean[k] == pytest.approx(expected[0][0], abs=1e-7)
        assert var[k] == pytest.approx(expected[1][0] ** 2, abs=1e-7)


def test_many_shadows_are_much_faster_together():
    """Measured 27 to 50 times; a loose bound, for machines that do other things as well."""
    import time

    X, y = POPULATION.draw(10_000, True, np.random.default_rng(0))
    best = [math.inf, math.inf]
    for _ in range(3):
        for k, (compute, part) in enumerate(((posteriors, 10_000), (one_at_a_time, 1000))):
            start = time.perf_counter()
            compute(EXPONENTIAL, 0.1, X[:part], y[:part], POPULATION.point)
            best[k] = min(best[k], (time.perf_counter() - start) / part)
    assert best[1] > 5 * best[0]


def test_members_are_in_and_labels_are_bounded():
    population = Population(4, np.zeros(1), np.ones(1), np.array([0.5]), 1.0, label_noise=0.3)
    X, y = population.draw(500, True, np.random.default_rng(0))
    assert np.all(X[:, -1] == 0.5)
    assert np.all(y[:, -1] == 1.0)
    assert np.all((np.abs(y[:, :-1]) >= 0.4) & (np.abs(y[:, :-1]) <= 1.0))
    assert np.all(np.sign(y[:, :-1]) == step(X[:, :-1]))
    X, _ = population.draw(500, False, np.random.default_rng(0))
    assert np.mean(X == 0.5) == 0.0


def test_statistics_of_paths_have_the_law_of_drawn_paths():
    """200,000 draws: means and variances agree to five standard errors."""
    rng, count = np.random.default_rng(0), 200_000
    mean, var = np.full(count, 0.3), np.full(count, 0.7)
    seen = draw_release(mean, var, 3, 2.0, rng)
    paths = 0.3 + math.sqrt(0.7) * rng.standard_normal((count, 3))
    logs = np.log(paths.var(axis=1) / 4.0)
    for drawn, direct in ((seen.means, paths.mean(axis=1)), (seen.log_variances, logs)):
        centre = direct.mean()
        for a, b in ((drawn, direct), ((drawn - centre) ** 2, (direct - centre) ** 2)):
            assert abs(a.mean() - b.mean()) < 5 * math.hypot(a.std(), b.std()) / math.sqrt(count)
    assert draw_release(mean, var, 1, 2.0, rng).log_variances is None
    exact = draw_release(mean, var, math.inf, 2.0, rng)
    assert np.array_equal(exact.means, mean)
    assert exact.log_variances == pytest.approx(np.log(0.7 / 4.0))


@pytest.mark.parametrize("noise", [-4.0, -1.0, 1.0])
def test_the_fitted_density_is_the_integral_of_the_model(noise):
    """The sum over intervals against quadrature of the two-component latent law."""
    p = (0.4, -1.0, -0.3, 1.2, -0.8, noise)
    law, s = MeanLaw(p, 1.0), math.exp(noise)
    share = 1 / (1 + math.exp(-p[0]))

    def normal(x, m, sd):
        return math.exp(-0.5 * ((x - m) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))

    def density(t):
        def inside(phi):
            prior = share * normal(phi, p[1], math.exp(p[2]))
            prior += (1 - share) * normal(phi, p[3], math.exp(p[4]))
            return normal(t, math.tanh(phi / 2), s) * prior

        peak = 2 * math.atanh(max(-0.999, min(0.999, t)))
        return quad(inside, -8, 8, points=[peak], limit=500)[0]

    for t in (-0.6, 0.0, 0.5):
        assert math.exp(law.logpdf(np.array([t]))[0]) == pytest.approx(density(t), rel=0.1)
    grid = np.linspace(-1 - 10 * s, 1 + 10 * s, 20_001)
    assert np.trapezoid(np.exp(law.logpdf(grid)), grid) == pytest.approx(1.0, abs=1e-3)


def test_fitted_laws_find_the_law_they_are_drawn_from():
    rng = np.random.default_rng(0)
    two = np.where(rng.uniform(size=5000) < 0.3, -3.0, 1.0) + 0.3 * rng.standard_normal(5000)
    variances = fit_variances(two)
    assert sorted(variances.mixture.means_[:, 0]) == pytest.approx([-3.0, 1.0], abs=0.05)
    values = 2.0 * np.tanh(two / 2) + 0.1 * rng.standard_normal(5000)
    law = fit_means(values, 2.0)
    truth = MeanLaw(
        (math.log(0.3 / 0.7), -3.0, math.log(0.3), 1.0, math.log(0.3), math.log(0.05)), 2.0
    )
    assert law.logpdf(values).mean() > truth.logpdf(values).mean() - 0.01


def test_the_curve_and_its_area_are_those_of_the_scores():
    result = membership(EXPONENTIAL, 0.1, **QUICK)
    members, others = result.laws.score(result.inside), result.laws.score(result.outside)
    ahead = np.mean(members[:, None] > others) + 0.5 * np.mean(members[:, None] == others)
    assert result.auc == pytest.approx(ahead)
    fpr, tpr = result.false_positive_rates, result.true_positive_rates
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0.0, 0.0, 1.0, 1.0)
    assert np.all(np.diff(fpr) >= 0)
    assert np.all(np.diff(tpr) >= 0)


def test_a_strong_attack_a_weak_one_and_many_paths():
    strong = membership(EXPONENTIAL, 0.01, **QUICK)
    weak = membership(EXPONENTIAL, 100.0, **QUICK)
    many = membership(25.0 * EXPONENTIAL, 25.0, n_paths=1000, **QUICK)
    one = membership(25.0 * EXPONENTIAL, 25.0, **QUICK)
    assert strong.auc_bounds[0] > 0.8
    assert weak.auc_bounds[0] <= 0.5 <= weak.auc_bounds[1]
    assert many.auc_bounds[0] > one.auc_bounds[1]


def test_a_large_scale_does_not_hide_a_record_where_the_ridge_is_small():
    """Paths about zero, the limit of large sigma: the covariance tells."""
    centred = membership(EXPONENTIAL, 0.01, centred=True, **QUICK)
    large = membership(1e6 * EXPONENTIAL, 1e4, **QUICK)
    assert centred.auc_bounds[0] > 0.6
    assert abs(centred.auc - large.auc) < 0.06


def test_records_may_have_any_number_of_inputs():
    box, record = [(0.0, 1.0)] * 4, ([0.5] * 4, 1.0)
    promise = path_promise(EXPONENTIAL, 0.5, 10, x_bounds=box)
    found = membership(
        EXPONENTIAL,
        0.5,
        x_bounds=box,
        record=record,
        promise=promise,
        shadows=200,
        draws=200,
        random_state=0,
    )
    assert found.holds


def test_a_promise_that_is_kept_and_one_that_is_not():
    kept = membership(EXPONENTIAL, 0.01, promise=path_promise(EXPONENTIAL, 0.01, 10), **QUICK)
    assert kept.holds
    assert "holds" in kept.describe()
    broken = membership(EXPONENTIAL, 0.01, promise=(0.5, 1e-3), **QUICK)
    assert not broken.holds
    assert "IS BROKEN" in broken.describe()
    assert membership(EXPONENTIAL, 0.01, **QUICK).holds  # nothing was guaranteed


def test_the_same_seed_gives_the_same_audit_and_noise_may_come_in_the_kernel():
    first = membership(EXPONENTIAL + WhiteKernel(0.1), **QUICK)
    second = membership(EXPONENTIAL, 0.1, **QUICK)
    assert first.auc == second.auc
    assert first.true_positive_rate_at(0.1) == second.true_positive_rate_at(0.1)


def test_progress_and_pictures():
    told: list[float] = []
    result = membership(
        EXPONENTIAL, 0.1, n_paths=3, promise=(3.0, 0.1),
        progress=lambda share, doing: told.append(share), **QUICK,
    )  # fmt: skip
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)
    assert len(result.plot().axes) == 3
    assert len(membership(EXPONENTIAL, 0.1, **QUICK).plot().axes) == 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"kernel": "rbf"}, "kernel"),
        ({"kernel": WhiteKernel()}, "noise"),
        ({"kernel": EXPONENTIAL + WhiteKernel()}, "once"),
        ({"noise_variance": None}, "noise_variance"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"noise_variance": math.nan}, "noise_variance"),
        ({"n": 0}, "n must"),
        ({"n": 2.5}, "n must"),
        ({"n_paths": 0}, "n_paths"),
        ({"n_paths": 1.5}, "n_paths"),
        ({"n_paths": math.nan}, "n_paths"),
        ({"record": 3}, "record"),
        ({"record": ([0.1, 0.2], 1.0)}, "record"),
        ({"record": (math.inf, 1.0)}, "record"),
        ({"x_bounds": (1, 0)}, "x_bounds"),
        ({"label_noise": 1.0}, "label_noise"),
        ({"response": lambda X: X}, "response"),
        ({"response": lambda X: X[:, 0] * np.nan}, "response"),
        ({"shadows": 10}, "shadows"),
        ({"draws": 2.5}, "draws"),
        ({"false_positive_rates": ()}, "false_positive_rates"),
        ({"false_positive_rates": (2.0,)}, "false_positive_rates"),
        ({"failure_probability": 0.0}, "failure_probability"),
        ({"promise": (-1.0, 0.1)}, "epsilon"),
    ],
)
def test_bad_arguments_are_refused(options, problem):
    given = {"kernel": EXPONENTIAL, "noise_variance": 0.1, **QUICK, **options}
    with pytest.raises(ValueError, match=problem):
        membership(given.pop("kernel"), given.pop("noise_variance"), **given)


def test_one_record_alone_is_attacked_too():
    assert membership(EXPONENTIAL, 0.01, n=1, **QUICK).auc > 0.6
