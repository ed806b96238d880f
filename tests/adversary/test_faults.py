"""The suite finds every fault that is planted; the two that were there once also by their effect."""

from __future__ import annotations

import pytest

from tests.adversary import faults
from tests.adversary.settings import SETTINGS, fitted
from tests.adversary.test_once_broken import correlation_after_restarts, std_beside_a_far_point
from tests.adversary.test_sequences import run

SEQUENCES = 160


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize(
    ("fault", "found"), faults.FAULTS, ids=lambda given: getattr(given, "__name__", "")
)
def test_the_sequences_find_every_planted_fault(fault, found, tmp_path):
    for place in range(len(SETTINGS)):
        fitted("paths", place)  # sound, and shared with other tests
    with pytest.raises(AssertionError, match=found), fault():
        _ = [run("paths", seed, tmp_path) for seed in range(SEQUENCES)]


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_a_far_question_once_removed_the_noise():
    with faults.far_question():
        assert std_beside_a_far_point() < 0.01


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_a_restart_once_changed_the_sign_of_the_noise(tmp_path):
    with faults.factor_computed_anew():
        assert correlation_after_restarts(tmp_path) < -0.99
