"""Which numbers were changed on purpose since version 0.1.0, and how they are recorded anew.

``python -m tests.recorded.renew`` runs the cases that have such numbers (or those that are named) and
records these alone: every other number stays that of version 0.1.0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.recorded.cases import run, written

FILE = Path(__file__).parent / "recorded.json"
LEARNED = {"mean", "std", "std_of_outputs", "theta", "noise_variance"}
PREDICTED = {"mean", "std", "std_of_outputs"}
# Groups are chosen for several lengthscales: noise of the same scale, on other sums.
GROUPED = LEARNED | {"noise_std", "expected_error", "expected_std", "expected_range"}
RENEWED: dict[str, dict[str, set[str]]] = {  # of every case, by variant ("": it has none)
    "default_1d": {"": GROUPED},
    "default_2d": {"": GROUPED},
    "default_4d": {"": GROUPED},
    "fixed_default_kernel": {"": PREDICTED},  # Laplace noise
    "sum_with_white_noise": {"": GROUPED},
    "product_partly_fixed": {"": GROUPED},
    "periodic_learned": {"": LEARNED},
    "few_targets": {"": GROUPED},
    "groups": {"gaussian": LEARNED, "laplace": GROUPED},
    "gaussian_noise": {"": LEARNED},
    "laplace_noise": {"": GROUPED},
    "chosen_inducing_inputs": {"": LEARNED},
    "given_inducing_inputs": {"": LEARNED},
    "records_gaussian": {"1-D": LEARNED, "2-D": LEARNED},
    "records_laplace": {"1-D": LEARNED, "2-D": LEARNED},
    "grid_search": {
        method: {"mean"} for method in ("measurement", "permute-and-flip", "exponential")
    },
}


def renewed(case: str) -> set[str]:
    """The names of the numbers of a case that were recorded anew."""
    return {
        f"{variant}: {name}" if variant else name
        for variant, names in RENEWED.get(case, {}).items()
        for name in names
    }


if __name__ == "__main__":
    recorded = json.loads(FILE.read_text())
    for case in sys.argv[1:] or RENEWED:
        found = run(case)
        recorded[case] |= {name: found[name] for name in recorded[case] if name in renewed(case)}
    FILE.write_text(written(recorded) + "\n")
