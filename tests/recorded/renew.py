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
# What a plan expects is averaged over several lengthscales where these are learned; where they are
# given, its range and the error over the range are those of ``EXPECTED_FIXED``.
EXPECTED = {"expected_error", "expected_std", "expected_range"}
EXPECTED_FIXED = {"expected_error", "expected_range"}
PLANNED = LEARNED | EXPECTED
# Groups are chosen for several lengthscales: noise of the same scale, on other sums.
GROUPED = PLANNED | {"noise_std"}
# The plan chooses how much the energy weighs beside the sums of bins under Laplace noise, and with it
# the sensitivity that the noise covers.
WEIGHED = GROUPED | {"measured_noise_std"}
KERNELS = ("rbf", "exponential", "matern 3/2", "matern 5/2", "rational quadratic", "periodic")
RENEWED: dict[str, dict[str, set[str]]] = {  # of every case, by variant ("": it has none)
    "default_1d": {"": GROUPED},
    "default_2d": {"": GROUPED},
    "default_4d": {"": GROUPED},
    "fixed_default_kernel": {"": PREDICTED | EXPECTED_FIXED},  # Laplace noise
    "every_kernel_fixed": {kernel: {"expected_error"} for kernel in KERNELS},
    "sum_with_white_noise": {"": GROUPED},
    "product_partly_fixed": {"": GROUPED},
    "periodic_learned": {"": PLANNED},
    "few_targets": {"": GROUPED},
    "groups": {"gaussian": PLANNED, "laplace": GROUPED},
    "gaussian_noise": {"": PLANNED},
    "laplace_noise": {"": GROUPED},
    # Sums over inputs, as without inducing inputs, and no longer functions of the kernel.
    "chosen_inducing_inputs": {"": WEIGHED},
    "given_inducing_inputs": {"": WEIGHED},
    "records_gaussian": {"1-D": PLANNED, "2-D": PLANNED},
    "records_laplace": {"1-D": WEIGHED, "2-D": WEIGHED},
    "records_3d": {"gaussian": EXPECTED_FIXED, "laplace": EXPECTED_FIXED},
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
