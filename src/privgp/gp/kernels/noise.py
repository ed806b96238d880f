"""The noise variance, which comes as a WhiteKernel of the top-level sum or as a number."""

import math
from functools import reduce
from numbers import Real
from typing import Any

from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel, Sum, WhiteKernel

from privgp.gp.kernels.evaluate import check_kernel
from privgp.gp.kernels.registry import parts


def split_noise(kernel: Kernel) -> tuple[Kernel | None, WhiteKernel | None]:
    """Take the WhiteKernel out of a top-level sum.

    Returns
    -------
    kernel : Kernel or None
        What is left; None if there was nothing but noise.
    white : WhiteKernel or None
        None if there was none.

    Raises
    ------
    ValueError
        There are two of them.

    """
    terms = parts(kernel, Sum)
    whites = [term for term in terms if isinstance(term, WhiteKernel)]
    if not whites:
        return kernel, None
    if len(whites) > 1:
        raise ValueError("kernel holds two WhiteKernels: give the noise variance once.")
    rest = [term for term in terms if term is not whites[0]]
    return (reduce(Sum, rest) if rest else None), whites[0]


def signal_and_noise(
    kernel: Any, noise_variance: Any, inputs: int, *, default: float | None = None
) -> tuple[Kernel, float]:
    """The kernel without its WhiteKernel, checked, and the noise variance.

    Parameters
    ----------
    kernel
        As the caller gave it; it is not changed.
    noise_variance
        a number, or None to take the WhiteKernel's, else the default.
    inputs
        The number of columns.
    default
        The noise variance if neither has one.

    Raises
    ------
    ValueError
        The noise is given twice or not at all, or the kernel cannot be used.

    """
    signal, white = split_noise(clone(kernel) if isinstance(kernel, Kernel) else kernel)
    if signal is None:
        raise ValueError("kernel holds nothing but noise.")
    check_kernel(signal, inputs)
    if white is not None and noise_variance is not None:
        raise ValueError("give the noise once: as noise_variance or as a WhiteKernel.")
    if noise_variance is None:
        noise_variance = default if white is None else white.noise_level
    if isinstance(noise_variance, bool) or not isinstance(noise_variance, Real):
        raise ValueError("noise_variance must be a positive number.")
    noise = float(noise_variance)
    if not 0.0 < noise < math.inf:
        raise ValueError(f"noise_variance must be positive and finite, got {noise}.")
    return signal, noise
