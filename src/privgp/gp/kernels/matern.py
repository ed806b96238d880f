"""The RBF kernel and the Matern family, of which it is the limit."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from privgp.gp.kernels.kind import ULPS, KernelKind
from privgp.types import Array


def _nu(kernel: Kernel) -> float:
    return float(getattr(kernel, "nu", np.inf))


def _profile(kernel: Kernel, s: Array) -> Array:
    nu = _nu(kernel)
    if nu == np.inf:
        return np.exp(-0.5 * s)
    if nu not in (0.5, 1.5, 2.5):
        return _bessel(s, nu, 0.0)
    distance = 2.0 * nu * s
    return _decay(nu, np.sqrt(distance, out=distance))


def _along(kernel: Kernel) -> tuple[float, Callable[[Array], Array]] | None:
    nu = _nu(kernel)
    return (math.sqrt(2.0 * nu), partial(_decay, nu)) if nu in (0.5, 1.5, 2.5) else None


def _decay(nu: float, distance: Array) -> Array:
    """The kernel at distances in units of ``length_scale / sqrt(2 nu)``, which are overwritten."""
    decay = np.negative(distance)
    np.exp(decay, out=decay)
    if nu == 0.5:
        return decay
    if nu == 2.5:  # 1 + d + d^2 / 3 by Horner, in place
        third = distance / 3.0
        third += 1.0
        distance *= third
    distance += 1.0
    distance *= decay
    return distance


def _slope(kernel: Kernel, s: Array, K: Array) -> Array:
    nu = _nu(kernel)
    if nu == np.inf:
        return K
    if nu not in (0.5, 1.5, 2.5):
        return 2.0 * nu * _bessel(s, nu, 1.0)
    distance = np.sqrt(2.0 * nu * s)
    if nu == 0.5:
        return np.divide(K, distance, out=np.zeros_like(K), where=distance > 0)
    decay = np.exp(-distance)
    return 3.0 * decay if nu == 1.5 else (5.0 / 3.0) * decay * (1.0 + distance)


def _bessel(s: Array, nu: float, order: float) -> Array:
    """2^(1-nu)/Gamma(nu) d^(nu-order) K_(nu-order)(d), d^2 = 2 nu s; at 0 its limit for
    order 0, which is 1, and 0 otherwise, where it is multiplied by a zero distance."""
    distance = np.sqrt(2.0 * nu * np.where(s > 0, s, 1.0))
    power = nu - order
    values = 2.0 ** (1.0 - nu) / gamma(nu) * distance**power * kv(power, distance)
    return np.where(s > 0, values, 1.0 if order == 0 else 0.0)


def _error_units(kernel: Kernel, widths: Array) -> float:
    nu, inputs = _nu(kernel), len(widths)
    if nu == np.inf:
        return (inputs + 4.0) / math.e + ULPS
    if nu == 0.5:
        return (0.5 * inputs + 3.0) / math.e + ULPS
    if nu == 1.5:
        return (0.5 * inputs + 3.5) * 4.0 / math.e**2 + 1.694 * ULPS + 2.0
    if nu == 2.5:
        return (0.5 * inputs + 3.5) * 0.6044 + 1.854 * ULPS + 5.0
    raise ValueError(
        f"kernel Matern(nu={nu:g}) is not available here, as the error of its values is not "
        "proved: use nu 0.5, 1.5, 2.5 or inf."
    )


_family = partial(
    KernelKind,
    parameters=("length_scale",),
    words=("lengthscale",),
    per_input=True,
    profile=_profile,
    along=_along,
    slope=_slope,
    error_units=_error_units,
    exponential_rate=lambda k: 1.0 / float(np.max(k.length_scale)) if _nu(k) == 0.5 else None,
)
RBF_KIND = _family(RBF, names={"rbf": {}})
_ORDERS = {"matern12": 0.5, "exp": 0.5, "matern32": 1.5, "matern52": 2.5}
MATERN_KIND = _family(
    Matern, names={name: {"nu": nu} for name, nu in _ORDERS.items()}, settings=("nu",)
)
