"""A measurement in one pass: what it computes, what it refuses, and that nothing is drawn before."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from privgp.plan.build import Budget, Question
from privgp.plan.inputs.rows import ArrayRows
from privgp.plan.streamed.columns import Columns
from privgp.plan.streamed.sketch import sketch_plan
from privgp.plan.streamed.sums import ENERGIES
from privgp.vault.masked import Key
from privgp.vault.people import person_codes
from privgp.vault.stream import ArrayOutputs, Measured, sum_rows
from tests.budgets import SetNoise

BOUNDS = (10.0, 30.0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(300, 2)), rng.uniform(*BOUNDS, size=300)


def sketch_of(X, multiplier=None, **settings):
    budget = Budget(1.0, 1e-3) if multiplier is None else SetNoise(1.0, 1e-3, multiplier)
    question = Question(BOUNDS, mechanism="gaussian", **settings)
    return sketch_plan(ArrayRows(X), question, budget, 12)


def measured(sketch, X, y, size=64, seed=None):
    rng = None if seed is None else np.random.default_rng(seed)
    rows = ArrayRows(X, size=size)
    sums = sum_rows(rows, ArrayOutputs.of(y, rows), BOUNDS, sketch.columns)
    plan = sketch.finish(sums.totals)
    return plan, sums.measure(plan, rng)


def test_measured_are_sums_of_columns_and_the_energy_in_units_of_y(data):
    X, y = data
    sketch = sketch_of(X, multiplier=1e-7)  # so little noise that the sums can be read off
    plan, result = measured(sketch, X, np.where(y < 12, -1e9, y))  # clipped to 10
    centred = np.where(y < 12, 10.0, y) - 20.0
    assert_allclose(result.values, sketch.columns.at(X)[0] @ centred, atol=1e-3)
    assert result.energy == pytest.approx(centred @ centred, abs=1e-2)
    assert result.noise_std == plan.measured_noise_std


def test_the_plan_of_a_release_is_the_plan_without_outputs(data):
    X, y = data
    sketch = sketch_of(X)
    plan, _ = measured(sketch, X, y, seed=0)
    alone = sketch.finish(sketch.columns.totals(ArrayRows(X, size=64)))
    assert plan.noise == alone.noise
    assert np.array_equal(plan.functionals.weights, alone.functionals.weights)


def test_blocks_do_not_matter(data):
    X, y = data
    sketch = sketch_of(X)
    results = [measured(sketch, X, y, size, seed=1)[1] for size in (1, 50, 300)]
    for result in results[1:]:
        assert_allclose(result.values, results[0].values, atol=1e-9)


def test_float_errors_are_within_their_bound():
    """Against exact rational arithmetic, for columns of very different sizes."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 1)), rng.uniform(*BOUNDS, size=200)
    scale = 10.0 ** rng.uniform(-6, 6, size=(2, 4))
    columns = Columns(RBF(0.5), rng.normal(size=(4, 1)), scale * rng.normal(size=(2, 4)), False)
    sketch = sketch_of(X)
    sketch = replace(sketch, columns=columns)
    rows, key = ArrayRows(X, size=37), Key.new()
    function, total = Measured(columns, BOUNDS, True, 2.0, key), None
    exact, squares = [Fraction(0), Fraction(0)], Fraction(0)
    for chunk, outputs in ArrayOutputs(y).chunks(rows):
        masked = function((chunk, outputs))[1]
        total = masked if total is None else total + masked
        B, u = columns.at(chunk.inputs)[0], np.clip((outputs - 20.0) / 10.0, -1.0, 1.0)
        for row in range(2):
            exact[row] += sum(Fraction(b) * Fraction(v) for b, v in zip(B[row], u, strict=True))
        squares += sum(Fraction(v) ** 2 for v in u)
    private = total.unmask(key)
    sums = columns.lattice("absolute").join(private[:, :-1])
    energy = float(ENERGIES.join(private[:, -1]))
    plan = sketch.finish(columns.totals(rows))
    weight = plan.strategy.energy_weight
    errors = [float(abs(Fraction(s) - e)) for s, e in zip(sums, exact, strict=True)]
    errors.append(float(abs(Fraction(weight * energy) - Fraction(weight) * squares)))
    assert np.linalg.norm(errors) <= plan.strategy.float_error()
    assert plan.strategy.float_error() < 1e-9 * plan.strategy.sensitivity() * 200


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_output_in_the_last_row_stops_everything_before_noise_is_drawn(
    data, bad, monkeypatch
):
    X, y = data
    y = y.copy()
    y[-1] = bad

    def forbidden(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("privgp.vault.stream.add_noise", forbidden)
    with pytest.raises(ValueError, match="NaN or infinity") as caught:
        measured(sketch_of(X), X, y)
    assert str(299) not in str(caught.value)


@pytest.mark.parametrize("count", [299, 301])
def test_outputs_are_one_for_each_row(data, count):
    X, y = data
    with pytest.raises(ValueError, match="one value for each"):
        measured(sketch_of(X), X, np.resize(y, count))


def test_no_rows_are_refused(data):
    X, _ = data
    sketch = sketch_of(X)
    nothing = ArrayRows(np.empty((0, 2)))
    with pytest.raises(ValueError, match="no rows"):
        sum_rows(nothing, ArrayOutputs(np.empty(0)), BOUNDS, sketch.columns)


@pytest.mark.parametrize("also", ["1", " 1", "1.0", "01", 1.0, True, Decimal("1.00"), b"1"])
def test_a_person_is_one_however_files_write_the_identifier(also):
    one, other, two = person_codes([1, also, 2], 3)
    assert one == other != two


def test_dates_tell_people_apart():
    codes = person_codes(np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), 2)
    assert codes[0] != codes[1]
