"""A function of private records: one function, nothing private outside, wrong arguments refused."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from privgp import PrivateFunction, compose
from privgp.storage import state_file
from privgp.storage.archive import DamagedFile
from tests.models.functions import ASKED, X, Y, function


def records(**options):
    return function(**{"protect": "records", "domain": (0.0, 10.0), **options})


def test_with_hardly_any_noise_it_is_the_posterior_mean():
    made = records(epsilon=1e4, delta=0.5, noise_variance=4e4, random_state=0).fit(X, Y)
    known = GaussianProcessRegressor(400.0 * RBF(2.0), alpha=4e4, optimizer=None)
    mean = 50.0 + known.fit(X, Y - 50.0).predict(ASKED)
    assert np.abs(made.release(ASKED) - mean).max() < 6 * made.noise_std_
    assert made.noise_std_ < 0.1


def test_attributes_are_in_the_units_they_claim():
    """One record: the mean moves by at most d / (1 + r^2) in the kernel of variance 1."""
    made = records(noise_variance=200.0).fit(X[:1], Y[:1])
    assert made.sensitivity_ == pytest.approx(100.0 / 1.5 / 20.0, rel=1e-6)
    (multiplier,) = made.guarantee_.noise_multipliers
    assert made.noise_std_ == pytest.approx(multiplier * made.sensitivity_ * 20.0, rel=1e-4)
    assert made.guarantee_.unit == "one whole record (inputs and output)"
    assert made.guarantee_.delta_at(1.0) <= 1e-5
    assert records(sensitivity="paper").fit(X, Y).noise_std_ > records().fit(X, Y).noise_std_
    whole = compose([made.guarantee_, records().fit(X, Y).guarantee_], delta=1e-5)
    assert 1.0 < whole.epsilon < 2.0


def test_the_noise_depends_on_no_record():
    other = np.random.default_rng(1).uniform(-50, 50, X.shape)
    first, second = records().fit(X, Y), records().fit(other, -Y)
    assert first.noise_std_ == second.noise_std_
    assert first.guarantee_ == second.guarantee_


def test_inputs_outside_the_domain_are_moved_to_its_edge_without_a_word(recwarn):
    outside, edge = X.copy(), X.copy()
    outside[:3], edge[:3] = [[-4.0], [11.0], [1e9]], [[0.0], [10.0], [10.0]]
    answers = [records(random_state=1).fit(x, Y).release(ASKED) for x in (outside, edge)]
    assert np.array_equal(*answers)
    assert not recwarn.list


@pytest.mark.parametrize("anew", [False, True], ids=["entries", "written anew"])
def test_restarts_go_on_with_the_same_function(tmp_path, monkeypatch, anew):
    if anew:
        monkeypatch.setattr(state_file, "_outgrown", lambda mark: True)
    path = tmp_path / "records.private-state"
    table = pd.DataFrame({"age": X[:, 0]})
    made = records(noise_variance=4e4).fit(table, Y, state=path)
    first = made.release(table[:5])
    again = PrivateFunction.load_state(path)
    assert again.protect == "records"
    assert again.domain == ((0.0, 10.0),)
    second = np.concatenate([again.release(table[i : i + 1]) for i in range(5, 30)])
    third = PrivateFunction.load_state(path)
    assert np.array_equal(third.release(table), [*first, *second])
    assert third.points_answered_ == 30
    assert third.points_left_ == 4000 - 30
    line = pd.DataFrame({"age": np.linspace(0, 4, 40)})
    assert np.abs(np.diff(third.release(line), 4)).max() < 0.01 * third.noise_std_


def test_any_flipped_byte_of_a_state_is_found(tmp_path):
    path = tmp_path / "records.private-state"
    made = records().fit(X, Y, state=path)
    made.release(ASKED)
    data = path.read_bytes()
    for at in range(0, len(data), 83):
        broken = bytearray(data)
        broken[at] ^= 1
        path.write_bytes(bytes(broken))
        with pytest.raises(DamagedFile):
            PrivateFunction.load_state(path)


def test_nothing_shown_holds_a_private_value():
    made = records().fit(X, Y)
    made.release(ASKED)
    shown = repr(made) + made.guarantee_.describe() + repr(made._kept.contents)
    numbers = np.array(re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", shown), dtype=float)
    draws = made._kept.contents.draws
    for value in [*X[:, 0], *Y, *draws.weights, *draws.exact]:
        assert np.abs(numbers - value).min() > 1e-8  # arrays are shown with eight decimals


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protect": "inputs"}, "protect"),
        ({"domain": None}, "domain must be given"),
        ({"domain": (1, 0)}, "domain"),
        ({"domain": "all"}, "domain"),
        ({"domain": [(0, 1), (0, 1)]}, "one column per"),
        ({"domain": [[0, np.inf]]}, "domain"),
        ({"inducing": 4}, "inducing"),
        ({"sensitivity": "varah"}, "sensitivity"),
        ({"kernel": 4.0 * Matern(1.0, nu=0.7)}, "not available"),
        ({"kernel": RationalQuadratic(1.0, 1e60)}, "alpha must lie"),
        ({"kernel": 1e-120 * RBF(1.0)}, "must lie between"),
        ({"kernel": 4.0 * RBF([1.0, 2.0])}, "lengthscales"),
        ({"noise_variance": 1e-8}, "noise"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"protect": "outputs"}, "domain goes with"),
    ],
)
def test_wrong_arguments_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        records(**change).fit(X, Y)


def test_wrong_records_are_refused_without_a_value():
    for x, y in (
        (X, None),
        (X, Y[:-1]),
        (X, [*Y[:-1], np.nan]),
        (np.where(X > 9, np.nan, X), Y),
        (X.astype(str), Y),
        (X[:0], Y[:0]),
        (X[:, 0], Y),
    ):
        with pytest.raises(ValueError) as refusal:  # noqa: PT011 - scikit-learn's and ours
            records().fit(x, y)
        assert "0731" not in str(refusal.value)


def test_a_constant_kernel_releases_a_noisy_mean():
    made = records(kernel=ConstantKernel(100.0), noise_variance=100.0, random_state=0).fit(X, Y)
    assert made.sensitivity_ == pytest.approx(100.0 / 31.0 / 10.0, rel=1e-6)
    assert np.ptp(made.release(ASKED)) < 1e-3 * made.noise_std_


def test_there_is_a_most_of_points():
    made = records(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="at most 4,000 points"):
        made.release(np.linspace(0, 10, 4001)[:, None])
    assert made.points_answered_ == 0


def test_it_is_drawn_over_its_domain_and_shows_no_record():
    made = records(noise_variance=4e4).fit(X, Y)
    figure = made.plot(output="height")
    (axes,) = figure.axes
    assert axes.get_xlim() == (0.0, 10.0)
    shown = [text.get_text() for text in figure.findobj(Text)]
    assert "released function" in shown
    assert "public inputs" not in shown
    drawn = np.concatenate([line.get_xydata().ravel() for line in axes.lines])
    assert np.abs(X[:, :1] - drawn[np.isfinite(drawn)]).min() > 1e-9
