"""No test draws noise that does not repeat, unless it states with which probability it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from opendp import measurements

import repeatable
from privgp import PrivateGPRegressor, PrivateGridSearchCV
from privgp.privacy.noise import gaussian_noise, laplace_noise
from privgp.vault.measure import add_noise
from privgp.vault.select import CHOICES, choose
from tests.command.running import BUDGET, COLUMNS, QUICK, people_table, run

X, Y = np.arange(12.0)[:, None], np.arange(12.0)
NOISES = [gaussian_noise(1.0, 1e-5, 3, 2.0, 0.0), laplace_noise(1.0, 3, 2.0, 0.0)]


def draws() -> list:
    """What a test gets that draws from every generator that it could reach without a seed."""
    numbers = [add_noise(np.zeros(3), noise).tolist() for noise in NOISES for _ in range(2)]
    chosen = [choose(method, np.zeros(50), 1.0, 1.0) for method in CHOICES for _ in range(8)]
    others = np.random.default_rng().normal(), np.random.normal(), np.random.default_rng().normal()
    return [*numbers, chosen, *others]


def again(**changed) -> list:
    """The same draws in another test."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changed.items():
            patch.setenv(name, value)
        repeatable.start()
        return draws()


def test_draws_repeat_and_differ_within_a_test_and_between_shifts():
    first = again()
    assert again() == first
    assert len({str(each) for each in first}) == len(first)
    other = again(**{repeatable.SHIFT: "12345"})
    assert not any(one == two for one, two in zip(first, other, strict=True))


def test_draws_do_not_depend_on_those_before_them_with_other_noise():
    repeatable.start()
    other = add_noise(np.zeros(3), gaussian_noise(0.5, 1e-5, 3, 2.0, 0.0))
    assert other.tolist() not in again()
    repeatable.start()
    alone = add_noise(np.zeros(3), NOISES[1]).tolist()
    assert alone in again()


def test_a_fit_without_a_seed_repeats():
    def fitted() -> list[float]:
        repeatable.start()
        model = PrivateGPRegressor(y_bounds=(0, 12), hyperparameters="fixed").fit(X, Y)
        grid = {"noise_variance": [0.5, 1.0]}
        search = PrivateGridSearchCV(model, grid, epsilon=1.0, delta=1e-6, method="exponential")
        return [*model.predict(X), *search.fit(X, Y).predict(X)]

    assert fitted() == fitted()


def test_noise_lies_on_the_lattice_and_around_the_values():
    """1,000 draws that repeat: the spread is the claimed one to a fifth."""
    noise = gaussian_noise(1.0, 1e-5, 1000, 2.0, 0.0)
    released = add_noise(np.full(1000, 7.3), noise)
    steps = released / 2.0**noise.exponent
    np.testing.assert_array_equal(steps, np.round(steps))
    assert np.std(released - 7.3) == pytest.approx(noise.std, rel=0.2)


def test_a_command_in_another_process_repeats(tmp_path: Path, monkeypatch):
    """It draws what this process draws with the same shift, and something else than with another one."""
    people_table().write_csv(tmp_path / "visits.csv")
    start = "import sys; from privgp.command import main; sys.exit(main(sys.argv[1:]))"

    def predicted(name: str, *, elsewhere: bool = False) -> str:
        data, release, table = (tmp_path / each for each in ("visits.csv", f"{name}.privgp", name))
        line = ["release", data, *COLUMNS, *BUDGET, *QUICK, "-o", release]
        if elsewhere:
            words = [sys.executable, "-c", start, *map(str, line)]
            subprocess.run(words, env={**os.environ}, capture_output=True, check=True)
        else:
            repeatable.start()
            assert run(*line).code == 0
        assert run("predict", release, data, "-o", table.with_suffix(".csv")).code == 0
        return table.with_suffix(".csv").read_text("utf-8")

    one = predicted("one")
    assert predicted("again") == one
    monkeypatch.setenv(repeatable.SHIFT, str(int(os.environ.get(repeatable.SHIFT) or 0) + 1))
    two = predicted("two")
    assert predicted("two elsewhere", elsewhere=True) == two != one


def test_a_sampler_that_does_not_repeat_is_refused():
    answer = measurements.make_randomized_response_bool(prob=0.75)
    for draw in (answer, answer.invoke):
        with pytest.raises(repeatable.UnseededNoise, match="does not repeat"):
            draw(True)


def test_a_failure_that_is_too_likely_is_refused():
    for failure in (1e-5, 0.0, -1.0, float("nan")):
        with pytest.raises(repeatable.UnseededNoise, match="at most 1e-6"):
            repeatable.start(failure)


@pytest.mark.statistical(failure=1e-6)
def test_a_statistical_test_draws_the_noise_that_protects():
    """Two draws of three numbers, of some 2**40 values each, are equal with probability below 1e-30."""
    first = add_noise(np.zeros(3), NOISES[0]).tolist()
    repeatable.start(1e-6)
    assert add_noise(np.zeros(3), NOISES[0]).tolist() != first
    assert isinstance(measurements.make_randomized_response_bool(prob=0.75)(True), bool)


def test_only_tests_know_the_switch():
    """A switch in the package that replaces noise would be a hole."""
    root = Path(__file__).resolve().parents[1]
    for folder in ("src", "papers", "benchmarks", "deploy"):
        for path in (root / folder).rglob("*"):
            if path.is_file() and path.suffix in {".py", ".yaml", ""}:
                assert repeatable.SHIFT not in path.read_text("utf-8", errors="ignore"), path
