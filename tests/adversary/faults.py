"""Faults planted on purpose into the code as it is: the first two were there once.

Each is a context that makes the code faulty; the suite's checks must find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cholesky

from privgp.gp.kernels.evaluate import evaluate
from privgp.storage.archive import Triangle
from privgp.vault.states import kept, paths
from privgp.vault.states.kept import StateCodec
from privgp.vault.states.paths import PathContents, PathSampler


@contextmanager
def planted(*faults: tuple[Any, str, Any]) -> Iterator[None]:
    """States are not verified when they are loaded, which would find some faults before the suite."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PathContents, "verify_draws", lambda self: None)
        for where, name, wrong in faults:
            patch.setattr(where, name, wrong)
        yield


def clipped_root(covariance: np.ndarray, **_: Any) -> np.ndarray:
    """Where there is no Cholesky factor another root, of the matrix with its eigenvalues cut off:
    its columns may have any sign."""
    try:
        return cholesky(covariance, lower=True, check_finite=False)
    except LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
        scaled = np.sqrt(np.maximum(values, 1e-8)) * vectors
        return np.asarray(np.linalg.qr(scaled.T)[1].T)


def centred_products(kernel: Any, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Kernel values from squared distances by matrix products about the mean of X, as it once was.

    ``evaluate`` centres its second argument and takes differences of one column alone: a column of
    zeros, which changes no distance, prevents that.
    """
    zeros = ((0, 0), (0, X.shape[1] == 1))
    left = np.pad(X, zeros)
    return evaluate(kernel, left) if X is Z else evaluate(kernel, np.pad(Z, zeros), left).T


CENTRED = (paths, "values_by_differences", centred_products)
ANY_ROOT = (paths, "cholesky", clipped_root)


def with_nugget(nugget: float) -> tuple[Any, str, Any]:
    """Samplers with another nugget, in squared units of y."""

    def engine(contents: Any) -> Any:
        sampler = sound(contents)
        sampler._nugget = nugget
        return sampler

    sound = PathContents.engine
    return PathContents, "engine", engine


def far_question() -> Any:
    """Any point is answered, distances come from centred products, negative directions are cut."""
    return planted(
        (kept, "check_inside", lambda X, domain: None),
        CENTRED,
        ANY_ROOT,
    )


def factor_computed_anew() -> Any:
    """After a restart all rows are computed anew, in one block, with a tiny nugget and any root."""

    def catch_up(self: Any, points: np.ndarray, lower: Any) -> None:
        if self._asked < len(points):
            self._asked = 0
            self.extend(points)

    return planted(
        (PathSampler, "catch_up", catch_up),
        CENTRED,
        ANY_ROOT,
        (paths, "RUN", 1024),
        with_nugget(1e-8),
    )


def another_root_after_a_restart() -> Any:
    """The same covariance, but the first column has the other sign; nothing breaks down."""

    def catch_up(self: Any, points: np.ndarray, lower: Any) -> None:
        restarted = self._asked < len(points)
        sound(self, points, lower)
        if restarted:
            self._lower[:, 0] *= -1.0

    sound = PathSampler.catch_up
    return planted((PathSampler, "catch_up", catch_up), ANY_ROOT)


def nugget_left_out() -> Any:
    return planted(with_nugget(0.0), ANY_ROOT)


def kernel_by_centred_products() -> Any:
    return planted(CENTRED, ANY_ROOT)


def seeded(wrong: Callable[[Any, int, int, int, int], np.ndarray]) -> Any:
    """Other normal numbers, made from those that should be."""
    sound = paths.normals_of_streams
    return planted((paths, "normals_of_streams", lambda *given: wrong(sound, *given)))


def one_normal_for_a_question() -> Any:
    return seeded(lambda f, seed, paths, first, n: np.repeat(f(seed, paths, first, 1), n, axis=2))


def normals_from_the_start() -> Any:
    return seeded(lambda f, seed, paths, first, n: f(seed, paths, 0, n))


def lattice_noise_left_out() -> Any:
    return seeded(lambda f, *given: f(*given) * np.array([1.0, 0.0])[:, None, None])


def decoded(wrong: Callable[[Any], Any]) -> Any:
    """Other draws than those that were written."""
    sound = StateCodec.decode

    def decode(self: Any, members: Any) -> Any:
        contents = sound(self, members)
        return replace(contents, draws=wrong(contents.draws))

    return planted((StateCodec, "decode", decode))


def rows_change_at_a_restart() -> Any:
    def wrong(d: Any) -> Any:
        return replace(d, lower=Triangle(tuple(row * (1 + 2.0**-52) for row in d.lower.rows)))

    return decoded(wrong)


def last_draw_is_forgotten() -> Any:
    """So it is drawn a second time."""

    def wrong(d: Any) -> Any:
        left = {name: getattr(d, name)[:-1] for name in ("points", "normals", "answers")}
        return replace(d, lower=Triangle(d.lower.rows[:-1]), **left)

    return decoded(wrong)


# What each must be found by.
FAULTS: tuple[tuple[Callable[[], Any], str], ...] = (
    (far_question, "covariance|outside the domain"),
    (factor_computed_anew, "covariance"),
    (another_root_after_a_restart, "covariance"),
    (nugget_left_out, "covariance|without noise"),
    (kernel_by_centred_products, "covariance"),
    (one_normal_for_a_question, "two points"),
    (normals_from_the_start, "two points"),
    (lattice_noise_left_out, "lattice noise"),
    (rows_change_at_a_restart, "restart"),
    (last_draw_is_forgotten, "restart"),
)
