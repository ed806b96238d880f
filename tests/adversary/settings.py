"""What is attacked by sequences of questions: every kernel that is allowed, on boxes of every kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
)

from privgp import PosteriorPaths, PrivateFunction
from privgp.vault.states.kept import Kept

UNIT, AROUND_ZERO, FAR, TINY = (0.0, 1.0), (-1.0, 1.0), (-1e18, 1e18), (-1e-45, 1e-45)


@dataclass(frozen=True)
class Setting:
    """A kernel on a box, and how noisy the records are, over the kernel's variance.

    ``reach``: how far questions go where no domain is declared. Values of a periodic kernel are exact
    up to 1e12 periods; beyond, answers are less smooth than they should be, and no less private.
    """

    kernel: Kernel
    box: tuple[tuple[float, float], ...] = (UNIT,)
    ridge: float = 1.0
    extra: float = 0.0
    paths: int = 1
    reach: float = 1e100

    def records(self) -> tuple[np.ndarray, np.ndarray]:
        """Five records, of which two are one and two lie at the ends of the box."""
        low, high = np.array(self.box).T
        share = np.array([0.0, 0.3, 0.3, 0.7, 1.0])[:, None]
        return low * (1 - share) + high * share, np.array([-1.0, 0.4, -0.2, 0.9, 1.0])


SETTINGS = (
    Setting(Matern(1.0, nu=0.5), ridge=25.0),
    Setting(Matern(1e-9, nu=0.5), ridge=0.1),
    Setting(Matern(1e6, nu=0.5), (FAR,), extra=0.5),
    Setting(Matern(0.5, nu=1.5), (AROUND_ZERO,)),
    Setting(Matern(0.5, nu=2.5), (AROUND_ZERO,), paths=2),
    Setting(Matern(0.5, nu=np.inf)),
    Setting(RBF(0.3), (AROUND_ZERO,), ridge=0.1),
    Setting(RBF(1e17), (FAR,), paths=2),
    Setting(RBF(1.0), (TINY,), ridge=25.0),
    Setting(RBF([0.2, 5.0]), (UNIT, AROUND_ZERO), extra=1.0),
    Setting(RationalQuadratic(0.4, alpha=0.1), (AROUND_ZERO,)),
    Setting(RationalQuadratic(0.4, alpha=1e16)),
    Setting(ExpSineSquared(1.0, 0.3), (AROUND_ZERO,), reach=1e10),
    Setting(ConstantKernel(3.0), ridge=25.0),
    Setting(9.0 * Matern(0.4, nu=0.5) + RBF(0.1), (AROUND_ZERO,), extra=0.2),
    Setting(1e-6 * RBF(0.5) * Matern([1.0, 0.1], nu=1.5), (UNIT, UNIT)),
)


def std(setting: Setting) -> float:
    return float(np.sqrt(setting.kernel.diag(np.zeros((1, len(setting.box))))[0]))


@cache
def fitted(kind: str, place: int) -> Any:
    """An estimator of which nothing has been asked; sequences share its state, which is frozen."""
    setting = SETTINGS[place]
    X, y = setting.records()
    scale = std(setting)
    common: dict[str, Any] = {
        "kernel": setting.kernel,
        "noise_variance": setting.ridge * scale**2,
        "y_bounds": (-scale, scale),
        "random_state": 0,
    }
    if kind == "paths":
        made: Any = PosteriorPaths(
            domain=setting.box, n_paths=setting.paths, extra_noise=setting.extra * scale,
            delta=1e-3, max_points=100, **common,
        )  # fmt: skip
    else:
        records = {"protect": "records", "domain": setting.box} if kind == "records" else {}
        made = PrivateFunction(epsilon=1.0, delta=1e-3, **records, **common)
    return made.fit(X, scale * y)


def started(kind: str, place: int, seed: int | None) -> Any:
    """A fresh kept thing; ``seed`` of its simulated draws, None for the sampler that protects."""
    made = fitted(kind, place)
    contents = made._kept.contents
    return taken(made, replace(contents, draws=replace(contents.draws, seed=seed)))


def taken(made: Any, contents: Any) -> Any:
    """What a process makes of the state it finds: all that a fitted estimator does not share."""
    fresh = type(made).__new__(type(made))
    fresh.__dict__.update(made.__dict__)
    fresh._kept = Kept(contents, made._CODEC)
    return fresh
