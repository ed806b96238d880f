"""Blocks of private rows: each is judged by its own rows, and one row moves one of them."""

from __future__ import annotations

from itertools import combinations
from secrets import SystemRandom

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from papers.shared.choices import permute_and_flip_probabilities
from privgp.plan.search.folds import Dealt, Trial, count_blocks
from privgp.vault.select import (
    LEAST,
    MOST,
    block_errors,
    choose_by_blocks,
    measure_block_loss,
    random_order,
    shuffle,
)
from privgp.vault.values import Sealed

ROWS, BLOCKS = 40, 5
DEALT = Dealt(ROWS, BLOCKS, ((0.0, 1.0),))
BOUNDS = (-2.0, 2.0)
TRIALS = [Trial(RBF(length), 0.1, BOUNDS) for length in (0.01, 0.3, 50.0)]


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((ROWS, 1))
    return X, np.sin(6.0 * X[:, 0]) + 0.1 * rng.standard_normal(ROWS)


def sealed(X: np.ndarray, y: np.ndarray) -> Sealed:
    return Sealed((X, y), len(y))


@pytest.mark.parametrize("trial", [*TRIALS, Trial(RBF(0.3), 0.1, BOUNDS, added=0.5, is_draw=True)])
@pytest.mark.parametrize("record", [0, 7, 39])
def test_one_record_moves_one_block(trial, record):
    X, y = rows()
    before = np.array(block_errors(sealed(X, y), DEALT, trial))
    X[record], y[record] = 1e9, -1e9
    after = np.array(block_errors(sealed(X, y), DEALT, trial))
    moved = np.flatnonzero((before != after).any(axis=0))
    assert set(moved) <= {record % BLOCKS}
    assert np.all((after >= LEAST) & (after <= MOST))


def test_scores_and_losses_move_by_one_over_the_number_of_blocks(monkeypatch):
    seen = []
    monkeypatch.setattr("privgp.vault.select.choose", lambda *given: seen.append(given) or 0)
    X, y = rows()
    for value in (0.0, 2.0, -1e9):
        y[3] = value
        choose_by_blocks("permute-and-flip", sealed(X, y), DEALT, TRIALS, 1.0)
    utilities = np.array([given[1] for given in seen])
    moved = np.abs(utilities[1:] - utilities[:1]).max()
    assert 0.0 < moved <= 1.0 / BLOCKS + 1e-15
    assert [given[2] for given in seen] == pytest.approx([1.0 / BLOCKS] * 3)
    assert np.all((utilities >= 0.0) & (utilities <= 1.0))


def every_deal(rows: int) -> list[list[int]]:
    """All ways to deal eight rows to two blocks with two halves each, up to the names of blocks and halves."""
    found = []
    for first in combinations(range(1, rows), 3):
        block, rest = [0, *first], [j for j in range(1, rows) if j not in first]
        for a in block[1:]:
            for b in rest[1:]:
                one = [0, a, *(j for j in block[1:] if j != a)]
                two = [rest[0], b, *(j for j in rest[1:] if j != b)]
                order = [0] * rows  # a block's rows, and every other one of them
                order[0::4], order[2::4], order[1::4], order[3::4] = (
                    one[:2],
                    one[2:],
                    two[:2],
                    two[2:],
                )
                found.append(order)
    return found


def test_shuffled_rows_protect_a_record_that_changes_its_place(monkeypatch):
    """Of sorted tables, exactly: the mean over all deals keeps the promise that a deal by places breaks."""
    seen = []
    monkeypatch.setattr("privgp.vault.select.choose", lambda *given: seen.append(given[1:3]) or 0)
    dealt, epsilon = Dealt(8, 2, ((0.0, 1.0),)), 1.0
    trials = [Trial(RBF(length), 0.1, BOUNDS) for length in (0.3, 50.0)]
    X = np.arange(8.0)[:, None] / 7.0
    y = np.tile([2.0, -2.0], 4)

    def chances(X, y, order):
        choose_by_blocks("permute-and-flip", sealed(X[order], y[order]), dealt, trials, epsilon)
        utilities, sensitivity = seen[-1]
        return permute_and_flip_probabilities(utilities, 2.0 * sensitivity / epsilon)

    # the first of the sorted rows is now in their middle: blocks by place are half of the one, half of the other
    moved = np.insert(X[1:], 3, 0.5, axis=0), np.insert(y[1:], 3, 2.0)
    deals = every_deal(8)
    assert len({tuple(order) for order in deals}) == 315
    by_place = [chances(*table, np.arange(8)) for table in ((X, y), moved)]
    shuffled = [
        np.mean([chances(*table, order) for order in deals], axis=0) for table in ((X, y), moved)
    ]
    assert np.abs(np.log(by_place[0] / by_place[1])).max() > epsilon
    assert np.abs(np.log(shuffled[0] / shuffled[1])).max() <= epsilon


def test_rows_are_shuffled_together_and_without_a_seed_by_the_operating_system(monkeypatch):
    X, y = rows()
    for order in (random_order(ROWS), random_order(ROWS, np.random.default_rng(0))):
        assert sorted(order.tolist()) == [*range(ROWS)]
        assert order.tolist() != [*range(ROWS)]
    monkeypatch.setattr(SystemRandom, "sample", lambda self, rows, count: [*rows][::-1][:count])
    shuffled = block_errors(shuffle(sealed(X, y)), DEALT, TRIALS[1])
    assert np.array_equal(shuffled, block_errors(sealed(X[::-1], y[::-1]), DEALT, TRIALS[1]))
    assert not np.array_equal(shuffled, block_errors(sealed(X, y), DEALT, TRIALS[1]))


def test_the_right_kernel_is_best():
    X, y = rows()
    errors = [block_errors(sealed(X, y), DEALT, trial)[0].mean() for trial in TRIALS]
    assert np.argmin(errors) == 1
    rng = np.random.default_rng(0)
    assert choose_by_blocks("exponential", sealed(X, y), DEALT, TRIALS, 100.0, rng) == 1


def test_noise_is_added_to_a_mean_loss():
    from privgp.privacy.noise import noise_of_shares
    from privgp.vault.scores import score_sensitivity

    (noise,) = noise_of_shares(1.0, 1e-3, (1.0,), score_sensitivity(BLOCKS))
    X, y = rows()
    rng = np.random.default_rng(1)
    found = [measure_block_loss(sealed(X, y), DEALT, TRIALS[1], noise, rng) for _ in range(400)]
    errors, spreads = block_errors(sealed(X, y), DEALT, TRIALS[1])
    exact = np.mean(errors / (errors + spreads))
    assert abs(np.mean(found) - exact) < 5.0 * noise.std / 20.0
    assert np.std(found) == pytest.approx(noise.std, rel=0.2)


class Failing(ConstantKernel):
    """A kernel that fails where an input is large."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if np.max(X) > 0.9:
            raise ValueError(f"secret {np.max(X)}")
        return super().__call__(X, Y, eval_gradient)


def test_a_kernel_that_fails_has_the_largest_error_and_says_nothing(capsys):
    X, y = rows()
    kernel: Kernel = Failing(1.0)
    errors, _ = block_errors(sealed(X, y), DEALT, Trial(kernel, 0.1, BOUNDS))
    assert errors.max() == MOST
    assert capsys.readouterr() == ("", "")


def test_labels_are_one_number_per_class():
    X = rows()[0]
    codes = np.where(X[:, 0] > 0.5, 2.0, 1.0)
    dealt = Dealt(ROWS, BLOCKS, None)
    trials = [Trial(RBF(length), 0.1, (0.0, 1.0), 3) for length in (0.01, 0.3, 50.0)]
    errors = [block_errors(sealed(X, codes), dealt, trial)[0].mean() for trial in trials]
    assert np.argmin(errors) == 1


@pytest.mark.parametrize(("asked", "rows", "count"), [(None, 400, 20), (None, 9, 2), (7, 400, 7)])
def test_number_of_blocks(asked, rows, count):
    assert count_blocks(asked, rows) == count


@pytest.mark.parametrize(("asked", "rows"), [(None, 7), (1, 100), (26, 100), ("2", 100), (2.5, 99)])
def test_bad_numbers_of_blocks_are_refused(asked, rows):
    with pytest.raises(ValueError, match="blocks"):
        count_blocks(asked, rows)
