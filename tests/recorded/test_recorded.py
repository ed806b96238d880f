"""Thirty cases agree with the numbers that version 0.1.0 gave, or were changed on purpose since.

How near they must be follows from how far the same code differs from itself. On one and two threads,
and with the kernels that OpenBLAS has for four generations of processors, sensitivities, noise scales
and guarantees agreed to 5e-12, predictions and what was learned, with optimisers in between, to 2e-10.
So 1e-9 and 1e-6 leave room for other machines, and a change of method does not fit in. An epsilon
is found as a root and rounded up in steps of 1e-9 of it, so it has 1e-8.

The noise of a function of records covers the rounding errors of its kernel. Their bound has been
proved since, and became smaller: 3e-7 of the noise. Bins with Laplace noise name their pure epsilon
since, where they named no mechanism: these eight numbers were recorded afterwards.

``renew.RENEWED`` lists what was recorded anew when learning began to average over changes of the function,
Laplace noise on sums of outputs was modelled exactly, and groups of inputs were chosen for several
lengthscales: what is learned and what is predicted with it, predictions from Laplace noise, and what
depends on the groups. Since then plans expect errors over these lengthscales, and choose the weight of
the energy of private records under Laplace noise, whose noise covers it. All else is as version 0.1.0
gave it: epsilons, multipliers and sensitivities everywhere; scales of the measured noise except for these
records; designs with Gaussian noise; predictions with fixed hyperparameters and Gaussian noise; bins,
functions and paths.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.recorded.cases import CASES, run
from tests.recorded.renew import FILE, RENEWED, renewed

RECORDED = json.loads(FILE.read_text())
PROMISED = {
    "bounds",
    "deltas",
    "measured_noise_std",
    "noise_multipliers",
    "noise_std",
    "pure_epsilons",
    "sensitivity",
}
PROMISED_TOLERANCE, EPSILON_TOLERANCE, PREDICTED_TOLERANCE = 1e-9, 1e-8, 1e-6
CHANGED = {("function_of_records", "noise_std"): 1e-6}


def tolerance(case: str, name: str) -> float:
    quantity = name.rsplit(": ", 1)[-1]
    if (case, quantity) in CHANGED:
        return CHANGED[case, quantity]
    if quantity in ("epsilon", "epsilons"):
        return EPSILON_TOLERANCE
    return PROMISED_TOLERANCE if quantity in PROMISED else PREDICTED_TOLERANCE


def differences(case: str, found: dict, recorded: dict) -> list[str]:
    """What differs by more than its tolerance: of each guaranteed number, of the largest predicted."""
    assert found.keys() == recorded.keys()
    wrong = []
    for name, expected in recorded.items():
        a, b = np.atleast_1d(found[name]), np.atleast_1d(expected)
        rtol = tolerance(case, name)
        size = np.abs(b)
        if rtol == PREDICTED_TOLERANCE and b.size:
            size = np.full(b.shape, size.max())
        if a.shape != b.shape or not np.all(np.abs(a - b) <= rtol * size):
            wrong.append(f"{name}: {found[name]} instead of {expected}")
    return wrong


def test_every_case_was_recorded():
    assert len(CASES) == 30
    assert list(CASES) == list(RECORDED)


def test_no_promise_was_recorded_anew():
    """But for the noise of predictions from other groups, and all noise where other sums are measured:
    where the weight of bins' energy is planned, and through inducing inputs."""
    for case in RENEWED:
        assert renewed(case) <= RECORDED[case].keys()
        quantities = {name.rsplit(": ", 1)[-1] for name in renewed(case)}
        others = ("records_laplace", "chosen_inducing_inputs", "given_inducing_inputs")
        planned = {"noise_std"} | ({"measured_noise_std"} if case in others else set())
        assert not quantities & {*PROMISED - planned, "epsilon", "epsilons"}


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_as_recorded(case):
    assert differences(case, run(case), RECORDED[case]) == []


@pytest.mark.parametrize(("name", "factor"), [("noise_std", 1 + 2e-9), ("mean", 1 + 2e-6)])
def test_a_changed_number_is_found(name, factor):
    recorded = RECORDED["default_1d"]
    changed = {**recorded, name: [v * factor for v in recorded[name]]}
    assert len(differences("default_1d", changed, recorded)) == 1
