"""A grid of candidates, from ``--lengthscales 3,9,27`` and ``--noise-std 1,2`` to models."""

import math
from typing import Any

from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
)

from privgp.command.errors import Refusal
from privgp.gp.kernels.noise import split_noise
from privgp.gp.kernels.registry import parts
from privgp.plan.inputs.start import SIGNAL_SHARE

MOST = 200
SCALED = (RBF, RationalQuadratic, ExpSineSquared)


def read_candidates(
    lengthscales: str, noise_std: str | None, kernel: Kernel, columns: int
) -> dict[str, list[Any]]:
    """A grid for the regressor: one kernel per lengthscale, and the noise variances."""
    scales = [_scales(entry, columns) for entry in lengthscales.split(",")]
    candidates: dict[str, list[Any]] = {"kernel": [_with_scales(kernel, each) for each in scales]}
    if noise_std is not None:
        if split_noise(kernel)[1] is not None:
            raise Refusal("Give the noise once: as --noise-std or as white(...) in --kernel.")
        stds = [_positive(entry, "--noise-std") for entry in noise_std.split(",")]
        candidates["noise_variance"] = [std**2 for std in stds]
    if math.prod(len(values) for values in candidates.values()) > MOST:
        raise Refusal(f"There are more than {MOST} candidates: name fewer.")
    return candidates


def default_kernel(bounds: tuple[float, float]) -> Kernel:
    """As without a kernel: Matern 5/2 about an unknown constant, both of std d/4."""
    signal = (SIGNAL_SHARE * (bounds[1] - bounds[0])) ** 2
    return ConstantKernel(signal) * Matern(1.0, nu=2.5) + ConstantKernel(signal)


def find_scale_part(kernel: Kernel) -> Any:
    scaled = [part for part in parts(kernel) if isinstance(part, SCALED)]
    if len(scaled) != 1:
        raise Refusal(f"--kernel must have one part with a lengthscale, not {len(scaled)}.")
    return scaled[0]


def _with_scales(kernel: Kernel, scales: list[float]) -> Kernel:
    changed = clone(kernel)
    part = find_scale_part(changed)
    if len(scales) > 1 and not isinstance(part, RBF):
        raise Refusal("--lengthscales: rq and periodic have one lengthscale for all inputs.")
    part.length_scale = scales[0] if len(scales) == 1 else scales
    return changed


def _scales(text: str, columns: int) -> list[float]:
    values = [_positive(part, "--lengthscales") for part in text.split(":")]
    if len(values) not in (1, columns):
        raise Refusal(
            f"--lengthscales: give one number, or as many as there are inputs ({columns}) joined by "
            f"colons, not {len(values)}."
        )
    return values


def _positive(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1e-50 <= value <= 1e50:
        raise Refusal(f"{option} must be positive numbers separated by commas, such as 3,9,27.")
    return value
