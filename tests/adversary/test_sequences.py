"""10,000 adversarial sequences of questions against everything that a curator keeps.

After each the realised law of the noise is computed from the state and held against what its proof
needs: in float64 for all, in 50 digits for a sample. All the noise together has the promised law;
that fails by chance with probability below 1e-6.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privgp.vault import state
from tests.adversary import laws
from tests.adversary.asking import asked
from tests.adversary.digits import FIFTY, FLOAT, Digits
from tests.adversary.settings import SETTINGS

SEQUENCES = {"paths": 4000, "outputs": 3000, "records": 3000}
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


@pytest.mark.statistical
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("kind", SEQUENCES)
def test_noise_is_never_below_what_the_proof_needs(kind, part, tmp_path):
    count = SEQUENCES[kind] // 5
    noise = np.concatenate([run(kind, seed, tmp_path) for seed in range(part, 5 * count, 5)])
    assert len(noise) > 3 * count  # sequences are not idle
    laws.check_noise(noise)
    with pytest.raises(AssertionError):
        laws.check_noise(0.8 * noise)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_the_same_in_fifty_digits(kind, tmp_path):
    for seed in range(10_000, 10_000 + SAMPLED):
        run(kind, seed, tmp_path, FIFTY)
