"""The shared suite of strategies: sensitivity by brute force, rounding, noise, files, an attack."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privgp.audit.attacks import NoisyPair, attack_pair
from privgp.audit.promises import Promise
from privgp.audit.result import Trial
from privgp.gp.kernels.registry import KERNELS
from privgp.plan.choice import AnyStrategy
from privgp.plan.strategy import noise_of
from privgp.privacy.noise import LAWS, PURE
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Codec, fingerprint
from privgp.vault.measure import measure
from tests.plan.strategies import BOUNDS, ROWS

SEEDS = range(3)
every_strategy = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


def made(row, seed):
    rng = np.random.default_rng(seed)
    return row.make(rng), rng


def distance(strategy, first, second):
    return float(np.linalg.norm(first - second, 1 if strategy.law in PURE else 2))


def test_every_kind_that_a_plan_can_hold_has_a_row():
    kinds = {kind.__name__ for kind in get_args(AnyStrategy)}
    assert kinds <= {name.split()[0] for name in ROWS}
    for name, row in ROWS.items():
        assert type(made(row, 0)[0]).__name__ == name.split()[0]


@every_strategy
@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_moves_it_further_than_the_sensitivity(row, seed):
    strategy, rng = made(row, seed)
    bound, most = strategy.sensitivity(), 0.0
    for _ in range(300):
        data = row.data(strategy, rng)
        pair = (row.exact(strategy, d) for d in (data, row.neighbour(strategy, data, rng)))
        most = max(most, distance(strategy, *pair))
    assert most <= bound * (1 + 1e-12) + 2 * strategy.float_error()
    assert most >= 0.6 * bound
    furthest = distance(strategy, *strategy.worst_neighbours())
    assert 0.9 * bound <= furthest <= bound * (1 + 1e-12) + 2 * strategy.float_error()


@every_strategy
@pytest.mark.parametrize("seed", SEEDS)
def test_sizes_agree(row, seed):
    strategy, rng = made(row, seed)
    numbers = row.exact(strategy, row.data(strategy, rng))
    assert numbers.shape == strategy.worst_neighbours()[0].shape == (strategy.size,)
    noise = noise_of(strategy, 1.0, 1e-5)
    assert noise.law == strategy.law
    assert noise.size == strategy.size
    for one, own, read in row.read(strategy, numbers, noise, 2.0):
        assert len(read.values) == len(one.matrix) * getattr(one, "classes", 1)
        assert read.noise_std == pytest.approx(one.sum_std(own.std) * 2.0)
        assert (read.energy is None) == (one.energy_weight == 0)


@every_strategy
@pytest.mark.parametrize("seed", SEEDS)
def test_rounding_stays_within_its_bound(row, seed):
    if row.weights is None:
        pytest.skip("sums of records, whose bounds tests/plan/bins checks")
    strategy, rng = made(row, seed)
    weights = row.weights(strategy)
    u = rng.uniform(-1, 1, size=strategy.rows) * rng.choice([1.0, 1e-9], size=strategy.rows)
    true = [sum(Fraction(w) * Fraction(x) for w, x in zip(r, u, strict=True)) for r in weights]
    found = row.exact(strategy, u)[: len(true)]
    errors = [float(abs(Fraction(f) - t)) for f, t in zip(found, true, strict=True)]
    assert np.linalg.norm(errors, 1 if strategy.law in PURE else 2) <= strategy.float_error()


@every_strategy
def test_bad_data_are_refused_before_anything_is_drawn(row, monkeypatch):
    strategy, rng = made(row, 0)
    if row.exact.__module__ == "tests.plan.strategies" and row.exact.__name__ != "<lambda>":
        pytest.skip("summed in blocks: tests/plan/test_tally.py")
    monkeypatch.setattr("privgp.vault.measure.add_noise", None)
    data = row.data(strategy, rng)
    y = data[1] if isinstance(data, tuple) else data
    y[2] = np.nan
    with pytest.raises(ValueError, match="y "):
        measure(data, BOUNDS, strategy, noise_of(strategy, 1.0, 1e-5))


@every_strategy
def test_it_is_written_and_read_back(row):
    strategy, _ = made(row, 0)
    if type(strategy) not in get_args(AnyStrategy):
        pytest.skip("no plan holds it")
    codec = Codec(AnyStrategy, "strategy", KERNELS)
    again = codec.decode(codec.encode(strategy))
    assert type(again) is type(strategy)
    assert fingerprint(again) == fingerprint(strategy)
    assert again.sensitivity() == strategy.sensitivity()
    for ours, theirs in zip(strategy.worst_neighbours(), again.worst_neighbours(), strict=True):
        assert_array_equal(ours, theirs)


@every_strategy
def test_a_file_with_noise_of_the_other_norm_is_refused(row):
    strategy, _ = made(row, 0)
    stored = {field.name for field in fields(strategy)}
    if "law" not in stored or type(strategy) not in get_args(AnyStrategy):
        pytest.skip("no file says its law")
    codec = Codec(AnyStrategy, "strategy", KERNELS)
    for law in LAWS:
        members = codec.encode(replace(strategy, law=law))
        if (law in PURE) == (strategy.law in PURE):
            assert codec.decode(members).law == law
        else:
            with pytest.raises(DamagedFile, match="law"):
                codec.decode(members)


@pytest.mark.statistical
@every_strategy
def test_an_attack_holds_and_finds_noise_a_fifth_too_small(row):
    """45,000 simulated draws (Gaussian: 4,000) of the numbers that differ; with any other seed either
    would fail with probability below 1e-6. Real noise: tests/privacy/test_laws.py."""
    strategy, _ = made(row, 0)
    noise = noise_of(strategy, 2.5 if strategy.law in PURE else 8.0, 0.01)
    low, high = strategy.worst_neighbours()
    moved = low != high
    some = noise.with_size(int(moved.sum()))
    pair = NoisyPair(low[moved], high[moved], some, Promise.of(noise.event))
    draws = 45_000 if noise.pure else 4000
    trial = Trial(draws, 1e-6, lambda share, doing: None)
    for factor, holds in ((1.0, True), (0.8, False)):
        assert attack_pair(pair, trial, factor, np.random.default_rng(1)).holds is holds
