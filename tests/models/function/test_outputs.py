"""One and the same function at any points, whatever happens between the questions."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.text import Text
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from papers.shared.varah import separated_dominance
from privgp import PrivateFunction, compose
from tests.models.functions import ASKED, X, Y, function


def almost_without_noise(**options):
    return function(epsilon=1e4, delta=0.5, random_state=0, **options)


@pytest.mark.parametrize("inducing", [None, 30, X])
def test_with_hardly_any_noise_it_is_the_posterior_mean(inducing):
    made = almost_without_noise(inducing=inducing).fit(X, Y)
    known = GaussianProcessRegressor(400.0 * RBF(2.0), alpha=25.0, optimizer=None)
    mean = 50.0 + known.fit(X, Y - 50.0).predict(ASKED)
    assert np.abs(made.release(ASKED) - mean).max() < 5 * made.noise_std_
    assert made.noise_std_ < 10.0


@pytest.mark.parametrize("inducing", [None, 8])
def test_a_point_asked_again_has_the_same_bits_alone_or_in_any_company(inducing):
    made = function(inducing=inducing).fit(X, Y)
    first = made.release(ASKED)
    mixed = np.vstack([ASKED[::-1], [[3.3]], ASKED[:4]])
    assert np.array_equal(made.release(mixed)[:12], first[::-1])
    assert np.array_equal([made.release(x[None])[0] for x in ASKED], first)
    assert made.release([[0.0]]) == made.release([[-0.0]])


def test_two_fits_are_two_functions():
    assert not np.any(function().fit(X, Y).release(ASKED) == function().fit(X, Y).release(ASKED))


def test_near_duplicates_have_nearly_equal_answers():
    made = function().fit(X, Y)
    near = 5.0 + np.concatenate([[0.0], 10.0 ** -np.arange(3, 16)])[:, None]
    answers = made.release(near)
    more = np.concatenate([made.release(x[None]) for x in near + 1e-9])
    # each point has its own 1e-4 of the noise
    assert np.abs(answers - answers[0]).max() < 2e-3 * made.noise_std_
    assert np.abs(more - answers[0]).max() < 2e-3 * made.noise_std_


def test_points_far_from_everything_and_from_each_other_are_answered():
    made = function(kernel=400.0 * Matern(2.0, nu=2.5)).fit(X, Y)
    far = np.array([[1e6], [1e6 + 1e-7], [-1e9], [1e12], [1e12 + 1.0], [3.0]])
    assert np.all(np.isfinite(made.release(far)))
    with pytest.raises(ValueError, match="too far away"), np.errstate(all="ignore"):
        made.release([[1e300]])
    assert np.all(np.isfinite(made.release([[4.0]])))


def test_a_smooth_kernel_gives_a_smooth_function():
    """Fourth differences over 40 points stay below 1% of the noise."""
    line = np.linspace(0, 4, 40)[:, None]  # a twentieth of a lengthscale apart
    together = function().fit(X, Y)
    singly = function().fit(X, Y)
    for made, answers in (
        (together, together.release(line)),
        (singly, np.concatenate([singly.release(x[None]) for x in line])),
    ):
        assert np.abs(np.diff(answers, 4)).max() < 0.01 * made.noise_std_
        assert np.ptp(answers) > 0


def test_attributes_are_in_the_units_they_claim():
    made = function().fit(X, Y)
    prior = (400.0 * RBF(2.0))(X)
    inverse = np.linalg.inv(prior + 25.0 * np.eye(30))
    wanted = 100.0 * np.sqrt(np.diag(inverse @ prior @ inverse).max())
    assert made.sensitivity_ == pytest.approx(wanted, rel=1e-9)
    (multiplier,) = made.guarantee_.noise_multipliers
    assert made.noise_std_ == pytest.approx(multiplier * wanted * 20.0, rel=1e-6)
    assert made.guarantee_.delta_at(1.0) <= 1e-5
    assert made.guarantee_.unit == "one output value"
    assert not made.guarantee_.is_simulation
    assert function(random_state=1).fit(X, Y).guarantee_.is_simulation


def test_a_declared_dominance_gives_noise_that_depends_on_no_input():
    """Inputs a lengthscale apart; Varah's bound from that alone."""
    declared = separated_dominance(400.0 * RBF(0.4), 2000.0, 1.0, 8)
    options = {"kernel": 400.0 * RBF(0.4), "noise_variance": 2000.0, "sensitivity": "varah"}
    places = np.arange(8.0)[:, None], np.cumsum(np.linspace(1.0, 2.0, 8))[:, None]
    made = [function(**options, dominance=declared).fit(x, Y[:8]) for x in places]
    assert made[0].noise_std_ == made[1].noise_std_
    assert made[0].sensitivity_ == pytest.approx(100.0 * 20.0 / declared)
    assert made[0].get_params()["dominance"] == declared
    assert function(**options).fit(places[1], Y[:8]).noise_std_ < made[0].noise_std_
    with pytest.raises(ValueError, match="closer together"):
        function(**options, dominance=declared).fit(0.5 * places[0], Y[:8])


@pytest.mark.parametrize("inducing", [None, 8])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_it_is_drawn_from_answers_that_it_remembers(inducing, columns):
    inputs = np.random.default_rng(0).uniform(0, 10, (30, columns))
    made = function(inducing=inducing).fit(inputs, Y)
    before = made.release(inputs[:3])
    figure = made.plot(output="height")
    assert len(figure.axes) == {1: 1, 2: 2, 3: 3}[columns]
    if inducing is None:
        assert made.points_answered_ == 3 + {1: 200, 2: 1024, 3: 240}[columns]
    assert np.array_equal(made.release(inputs[:3]), before)
    texts = " ".join(word for text in figure.findobj(Text) for word in text.get_text().split())
    assert ("answered before" in texts) == (inducing is None and columns < 3)
    if columns == 1:
        (ax,) = figure.axes
        curve = next(line for line in ax.lines if line.get_label() == "released function")
        assert np.array_equal(made.release(curve.get_xdata()[:, None]), curve.get_ydata())
        made.plot(ax)
    if columns == 3:
        with pytest.raises(ValueError, match="give figure"):
            made.plot(figure.axes[0])
    with pytest.raises(NotFittedError):
        function().plot()


def test_a_picture_is_not_drawn_of_points_that_are_not_left(monkeypatch):
    monkeypatch.setattr("privgp.plan.functions.outputs.MAX_POINTS", 10)
    made = function().fit(X, Y)
    with pytest.raises(ValueError, match="at most"):
        made.plot()
    assert made.points_answered_ == 0


@pytest.mark.parametrize("bound", ["infinity", "nonnegative"])
def test_the_papers_bounds_only_add_noise(bound):
    loose, exact = (function(sensitivity=s).fit(X, Y) for s in (bound, "exact"))
    assert loose.sensitivity_ > exact.sensitivity_
    assert loose.noise_std_ / loose.sensitivity_ == pytest.approx(
        exact.noise_std_ / exact.sensitivity_
    )


def test_its_promise_adds_up_with_others():
    first, second = function().fit(X, Y), function(inducing=6).fit(X, Y)
    whole = compose([first.guarantee_, second.guarantee_], delta=1e-5)
    assert 1.0 < whole.epsilon < 2.0


# What is refused, and what is said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"y_bounds": None}, "y_bounds"),
        ({"y_bounds": (1, 0)}, "y_bounds"),
        ({"noise_variance": None}, "noise_variance"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"noise_variance": np.nan}, "noise_variance"),
        ({"kernel": "rbf"}, "kernel"),
        ({"kernel": RBF([1.0, 2.0])}, "lengthscales"),
        ({"kernel": WhiteKernel()}, "nothing but noise"),
        ({"kernel": RBF() + WhiteKernel()}, "noise once"),
        ({"sensitivity": "best"}, "sensitivity"),
        ({"sensitivity": "varah"}, "diagonally dominant"),
        ({"sensitivity": "varah", "dominance": "much"}, "dominance"),
        ({"sensitivity": "varah", "dominance": np.nan}, "dominance"),
        ({"sensitivity": "varah", "dominance": 1.0, "inducing": 3}, "need no dominance"),
        ({"sensitivity": "infinity", "inducing": 3}, "inducing inputs go with"),
        ({"dominance": 1.0}, "varah"),
        ({"inducing": 0}, "inducing"),
        ({"inducing": "few"}, "inducing"),
        ({"inducing": [[1.0, 2.0]]}, "inducing"),
        ({"inducing": 4, "sensitivity": "infinity"}, "exact"),
    ],
)
def test_wrong_arguments_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        function(**change).fit(X, Y)


def test_wrong_data_are_refused_without_a_private_value():
    for y in (None, Y[:-1], [*Y[:-1], np.nan], [*Y[:-1], "tall"], Y[:, None] * [1, 1]):
        with pytest.raises(ValueError, match="y") as refusal:
            function().fit(X, y)
        assert "0731" not in str(refusal.value)
    made = function().fit(X, Y)
    for wrong in ([[np.nan]], [[1.0, 2.0]], [1.0], [], [["a"]]):
        with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn's sentences
            made.release(wrong)
    with pytest.raises(NotFittedError):
        function().release(ASKED)
    with pytest.raises(NotFittedError):
        function().save_state("x.private-state")


def test_a_refused_fit_leaves_the_former_function_as_it_was():
    made = function().fit(X, Y)
    answers = made.release(ASKED)
    with pytest.raises(ValueError, match="y must"):
        made.fit(np.hstack([X, X]), Y[:-1])
    assert np.array_equal(made.release(ASKED), answers)


def test_nothing_shown_holds_a_private_value():
    made = function().fit(X, Y)
    made.release(ASKED)
    shown = (
        repr(made) + str(made.guarantee_) + made.guarantee_.describe() + repr(made._kept.contents)
    )
    assert not any(f"{value:.7f}"[:8] in shown for value in Y)
    assert not any(f"{value:.6g}" in shown for value in made._kept.contents.draws.sums)


def test_there_is_a_most_of_points_and_none_through_inducing_inputs(monkeypatch):
    monkeypatch.setattr("privgp.plan.functions.outputs.MAX_POINTS", 10)
    made = function().fit(X, Y)
    made.release(ASKED[:8])
    with pytest.raises(ValueError, match="at most"):
        made.release(ASKED)
    assert len(made._kept.contents.draws.points) == 8
    assert len(function(inducing=5).fit(X, Y).release(np.linspace(0, 9, 700)[:, None])) == 700


def test_a_white_kernel_is_the_noise_variance():
    given = function(kernel=400.0 * RBF(2.0) + WhiteKernel(25.0), noise_variance=None).fit(X, Y)
    assert given.sensitivity_ == function().fit(X, Y).sensitivity_


def noisy_rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = np.round(rng.uniform(0, 3, (20, 1)), 1)  # some are equal
    return X, rng.uniform(-1, 1, 20), np.tile([0.05, 0.4, 3.0, 0.4], 5)


@pytest.mark.parametrize("inducing", [None, [[0.5], [1.5], [2.5]]])
def test_noise_by_row_is_the_posterior_mean_with_that_noise(inducing):
    """Against the matrices themselves: the mean beneath hardly any noise, and its sensitivity."""
    X, y, noise = noisy_rows()
    kernel = 0.5 * RBF(0.7)
    made = PrivateFunction(
        kernel, noise, y_bounds=(-1, 1), epsilon=1e4, delta=0.5, inducing=inducing, random_state=0
    ).fit(X, y)
    K = kernel(X)
    if inducing is not None:
        Z = np.array(inducing)
        K = kernel(X, Z) @ np.linalg.solve(kernel(Z), kernel(Z, X))
    inverse = np.linalg.inv(K + np.diag(noise))
    moved = np.sqrt(np.diag(inverse @ K @ inverse))
    assert made.sensitivity_ == pytest.approx(2.0 * moved.max(), rel=1e-6)
    at = np.array([[0.3], [2.0]])
    if inducing is None:
        expected = kernel(at, X) @ inverse @ y
    else:
        expected = kernel(at, Z) @ np.linalg.solve(kernel(Z), kernel(Z, X)) @ inverse @ y
    assert_allclose(made.release(at), expected, atol=6 * made.noise_std_ + 1e-6)


def test_more_noise_on_the_rows_that_move_most_lowers_the_sensitivity():
    """As the papers suggest: an outlying input has the largest norm, until its noise is raised."""
    X, y = np.append(np.linspace(0, 1, 30), 3.0)[:, None], np.zeros(31)
    law = {"y_bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-3, "random_state": 0}
    noise = np.full(31, 0.3)
    even = PrivateFunction(RBF(0.5), 0.3, **law).fit(X, y)
    same = PrivateFunction(RBF(0.5), noise, **law).fit(X, y)
    assert same.sensitivity_ == pytest.approx(even.sensitivity_, rel=1e-9)
    noise[-1] = 3.0
    assert PrivateFunction(RBF(0.5), noise, **law).fit(X, y).sensitivity_ < 0.6 * even.sensitivity_


@pytest.mark.parametrize("sensitivity", ["infinity", "nonnegative"])
def test_the_papers_bounds_hold_with_noise_by_row(sensitivity):
    X, y, noise = noisy_rows()
    law = {"y_bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-3, "random_state": 0}
    exact = PrivateFunction(RBF(0.7), noise, **law).fit(X, y).sensitivity_
    assert (
        PrivateFunction(RBF(0.7), noise, sensitivity=sensitivity, **law).fit(X, y).sensitivity_
        >= exact
    )
    wide = PrivateFunction(RBF(0.01), noise, sensitivity="varah", **law)
    assert wide.fit(np.arange(20.0)[:, None], y).sensitivity_ >= 2.0 * 1.0 / (1.0 + 0.05) - 1e-9


def test_noise_by_row_is_kept_in_the_state(tmp_path):
    X, y, noise = noisy_rows()
    law = {"y_bounds": (-1, 1), "epsilon": 1.0, "delta": 1e-3, "random_state": 0}
    state = tmp_path / "f.private-state"
    made = PrivateFunction(RBF(0.7), noise, **law).fit(X, y, state=state)
    first = made.release([[0.5], [1.0]])
    later = PrivateFunction.load_state(state)
    assert_allclose(later.release([[1.0], [0.5]]), first[::-1])
    assert later.sensitivity_ == made.sensitivity_


@pytest.mark.parametrize(
    "wrong", [np.ones(3), np.zeros(20), np.full(20, np.nan), np.ones((20, 1)), ["a"] * 20]
)
def test_noise_by_row_that_is_wrong_is_refused(wrong):
    X, y, _ = noisy_rows()
    made = PrivateFunction(RBF(0.7), wrong, y_bounds=(-1, 1), epsilon=1.0, delta=1e-3)
    with pytest.raises(ValueError, match="noise_variance"):
        made.fit(X, y)
