"""One splitter: the noise is a WhiteKernel of the top-level sum or a number, never both."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from privgp.gp.kernels.evaluate import signal_and_noise, split_noise


def test_a_white_kernel_of_the_top_level_sum_is_the_noise():
    kernel, white = split_noise(RBF(1.0) + WhiteKernel(2.0) + ConstantKernel(3.0))
    assert white == WhiteKernel(2.0)
    assert kernel == RBF(1.0) + ConstantKernel(3.0)
    assert split_noise(RBF(1.0)) == (RBF(1.0), None)
    assert split_noise(WhiteKernel(1.0))[0] is None
    with pytest.raises(ValueError, match="two WhiteKernels"):
        split_noise(WhiteKernel(1.0) + (RBF(1.0) + WhiteKernel(1.0)))


def test_the_noise_comes_from_whichever_gave_it():
    given = RBF(1.0) + WhiteKernel(2.0)
    assert signal_and_noise(given, None, 1) == (RBF(1.0), 2.0)
    assert signal_and_noise(given, None, 1, default=5.0) == (RBF(1.0), 2.0)
    assert signal_and_noise(RBF(1.0), 3, 1) == (RBF(1.0), 3.0)
    assert signal_and_noise(RBF(1.0), None, 1, default=5.0) == (RBF(1.0), 5.0)


def test_a_given_kernel_is_not_changed_by_what_becomes_of_the_signal():
    given = RBF(1.0) + WhiteKernel(2.0)
    signal_and_noise(given, None, 1)[0].length_scale = 7.0
    assert given == RBF(1.0) + WhiteKernel(2.0)


@pytest.mark.parametrize(
    ("kernel", "noise", "words"),
    [
        (WhiteKernel(1.0), None, "nothing but noise"),
        (RBF(1.0) + WhiteKernel(1.0), 1.0, "noise once"),
        (RBF(1.0), None, "positive number"),
        (RBF(1.0), True, "positive number"),
        (RBF(1.0), "1", "positive number"),
        (RBF(1.0), 0.0, "positive and finite"),
        (RBF(1.0), np.inf, "positive and finite"),
        (RBF(1.0), np.nan, "positive and finite"),
        ("rbf", 1.0, "must be a kernel"),
    ],
    ids=str,
)
def test_noise_that_is_missing_double_or_wrong_is_refused(kernel, noise, words):
    with pytest.raises(ValueError, match=words):
        signal_and_noise(kernel, noise, 1)
