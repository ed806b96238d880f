"""Adversarial sequences of questions against everything that a custodian keeps.

``PRIVGP_FUZZ`` states how many, 2,000 unless it is set; ``make fuzz`` asks 10,000.

After each the realised law of the noise is computed from the state and held against what its proof
needs: in float64 for all, in 50 digits for a sample. All the noise together has the guaranteed law;
that fails by chance with probability below 1e-6.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privgp.vault.states import outputs as state
from tests.adversary import laws
from tests.adversary.asking import asked, restarted
from tests.adversary.digits import FIFTY, FLOAT, Digits
from tests.adversary.settings import SETTINGS, started, std

SEQUENCES = {"paths": 800, "outputs": 600, "records": 600}  # of every 2,000
PARTS = max(1, int(os.environ.get("PRIVGP_FUZZ", "2000")) // 2000)
SAMPLED = 3 * len(SETTINGS)


def run(kind: str, seed: int, folder: Path, digits: Digits = FLOAT) -> np.ndarray:
    """Ask one sequence and check the law of what was drawn; the noise in units of its std."""
    if kind == "paths":
        return laws.check_paths(asked(kind, seed, folder), digits)
    if kind == "records":
        return laws.check_records(asked(kind, seed, folder), digits)
    kept, rows = state.within_limit, []

    def watched(*arguments: Any) -> Any:
        found = kept(*arguments)
        rows.append(found[0])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "within_limit", watched)
        contents = asked(kind, seed, folder)
    return laws.check_outputs(contents, np.vstack(rows), digits)


@pytest.mark.statistical(failure=1e-6)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", SEQUENCES)
def test_noise_is_never_below_what_the_proof_needs(kind, part, tmp_path):
    count = SEQUENCES[kind]
    seeds = range(part * count, (part + 1) * count)
    noise = np.concatenate([run(kind, seed, tmp_path) for seed in seeds])
    assert len(noise) > 3 * count  # sequences are not idle
    laws.check_noise(noise)
    with pytest.raises(AssertionError):
        laws.check_noise(0.8 * noise)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_the_same_in_fifty_digits(kind, tmp_path):
    for seed in range(10_000, 10_000 + SAMPLED):
        run(kind, seed, tmp_path, FIFTY)


@pytest.mark.parametrize("kind", SEQUENCES)
@pytest.mark.parametrize("place", [0, 3, 4, 5, 6, 10, 11, 14])
def test_near_questions_get_near_answers_across_restarts(kind, place, tmp_path):
    """Neither a second draw nor noise with its sign changed: 0.5 and 0.5 + 1e-9 are asked, and between
    them clusters 3e-9 apart, with a restart after each. Kernels whose values at 0.5 and 0.5 + 1e-9
    differ by less than 1e-8: the answers differ by nuggets, a thousandth of a std or less."""
    clusters = (np.array([[0.0], [0.25], [0.75]]) + 3e-9 * np.arange(1, 9)).reshape(-1, 1)
    for seed in range(5):
        kept = started(kind, place, seed)
        answers = []
        for points in (np.array([[0.5]]), clusters, np.array([[0.5 + 1e-9]])):
            answers.append(kept.release(points)[..., 0])
            kept = restarted(kept, "bytes", tmp_path)
        noise = 1.0 if kind == "paths" else kept._kept.contents.draws.noise.std
        assert np.all(np.abs(answers[2] - answers[0]) < 0.03 * noise * std(SETTINGS[place]))
