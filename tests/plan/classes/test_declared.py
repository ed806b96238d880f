"""Declared classes, and the kernel of the function behind a link."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.links import LOGIT, PROBIT
from privgp.plan.labels import rescale, steepest
from privgp.question.outcomes import check_classes


@pytest.mark.parametrize(
    ("given", "sorted_"),
    [
        (["yes", "no"], ("no", "yes")),
        (np.array([2, 0, 1]), (0, 1, 2)),
        ((True, False), (False, True)),
        ([1, 0.5], (0.5, 1.0)),
    ],
)
def test_classes_are_sorted(given, sorted_):
    assert check_classes(given) == sorted_
    assert check_classes(sorted_) == sorted_


@pytest.mark.parametrize(
    "bad",
    [
        *(
            None,
            "yes,no",
            3,
            [],
            ["one"],
            ["a", 1],
            [None, 1],
            ["a", "a"],
            [0.0, np.nan],
            range(101),
        ),
        *([0, 10**400], [0.5, 10**400], np.zeros((2, 2))),
    ],
)
def test_what_cannot_be_classes_is_refused(bad):
    with pytest.raises(ValueError, match="classes must"):
        check_classes(bad)


def test_scaling_a_kernel_back_gives_the_kernel():
    kernel = RBF(0.5) + ConstantKernel(0.3)
    X = np.linspace(0, 1, 5)[:, None]
    small = rescale(kernel, 0.25)
    assert evaluate(small, X) == pytest.approx(evaluate(kernel, X) / 16.0)
    assert rescale(small, 4.0) == kernel


def test_the_steepest_slopes():
    assert steepest(LOGIT) == 0.25
    assert steepest(PROBIT) == pytest.approx(1.0 / np.sqrt(2.0 * np.pi))
