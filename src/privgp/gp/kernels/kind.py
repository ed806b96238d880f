"""What privgp must know about a kind of kernel. A kind is one file and one row of the registry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.types import Array

ULPS = 4.0  # what exp, log1p and sin may err by; tests/gp/kernels/test_proved.py measures it


@dataclass(frozen=True)
class Notation:
    """How kernels of a kind are written in files and short text.

    Attributes
    ----------
    kernel_class : scikit-learn's class
    parameters : all positive, in the order of its arguments
    words : their names in the command
    names : short names, each with the settings it stands for; the first that fits is written
    settings : positive numbers that are never learned and may be infinite
    per_input : whether the one parameter may be one number per input
    arrays : arrays of numbers that are never learned, by name, with their number of axes

    """

    kernel_class: type[Kernel]
    parameters: tuple[str, ...]
    words: tuple[str, ...] = ()
    names: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    per_input: bool = False
    arrays: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GeneralKind(Notation):
    """A kernel of which only values are known, as scikit-learn's class computes them.

    It need not be stationary. Releases of outputs take it, whose sensitivity is that of the matrix
    that is multiplied; what rests on a proved error of its values refuses it.

    Attributes
    ----------
    check : function of (kernel, inputs): raises ValueError for what cannot be evaluated
    variance : function of the kernel: k(x, x) where that is one number; None if it varies

    """

    check: Callable[[Any, int], None] = lambda kernel, inputs: None
    variance: Callable[[Any], float] | None = None


@dataclass(frozen=True, kw_only=True)
class KernelKind(Notation):
    """The mathematics of a kind, ``k = profile(kernel, s)`` with s a squared distance in units.

    Attributes
    ----------
    unit : the parameter that is the unit of distance; None for a constant
    profile : function of (kernel, s): nowhere negative, largest at s = 0, and exact there
    along : function of the kernel: a factor, and k as a function of the distance in units times it, which
        it may overwrite; None where there is no such function. It spares square roots along one input
    slope : function of (kernel, s, K): -2 dk/ds, which gives the derivatives by the unit
    derivatives : functions of (kernel, s, K): dk/dlog of every other parameter, by its name
    error_units : function of (kernel, widths): how far ``profile`` of differences may be off in
        a box of these widths, in 2^-53 of the variance, to first order; raises ValueError if no
        bound is proved
    limits : the least and largest parameter for which that is proved
    by_differences : function of (kernel, X, Z): k(X, Z), if ``profile`` is not what was proved
    least_at : function of (kernel, widths): the differences in a box with the least k; None if k
        falls with them
    exponential_rate : q if k = k(0) exp(-q |x - x'|) for one input; None otherwise
    shortest_scale : the least distance over which k changes much
    one_input : whether it is a covariance of one input only

    """

    unit: str | None = "length_scale"
    profile: Callable[[Any, Array], Array]
    along: Callable[[Kernel], tuple[float, Callable[[Array], Array]] | None] = lambda kernel: None
    slope: Callable[[Any, Array, Array], Array] | None = None
    derivatives: Mapping[str, Callable[[Any, Array, Array], Array]] = field(default_factory=dict)
    error_units: Callable[[Any, Array], float]
    limits: tuple[float, float] = (1e-50, 1e50)
    by_differences: Callable[[Any, Array, Array], Array] | None = None
    least_at: Callable[[Any, Array], Array] | None = None
    exponential_rate: Callable[[Any], float | None] = lambda kernel: None
    shortest_scale: Callable[[Any], float] = lambda kernel: float(np.min(kernel.length_scale))
    one_input: bool = False


def log_positive(K: Array) -> Array:
    """Log K; if K has underflowed to 0 a finite number, as K log K is 0."""
    return np.log(np.maximum(K, np.finfo(float).tiny))
