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
from privgp.models import paths
from privgp.vault.states import paths as vault
from privgp.vault.states import paths_draws
from privgp.vault.states import paths_file as paths_contents


@contextmanager
def planted(*faults: tuple[Any, str, Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
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
    """Kernel values from squared distances by matrix products about the mean of the points."""
    return evaluate(kernel, X) if X is Z else evaluate(kernel, X, Z)


def far_question() -> Any:
    """Any point is answered, distances come from centred products, negative directions are cut."""
    return planted(
        (paths, "check_inside", lambda X, domain: None),
        (vault, "values_by_differences", centred_products),
        (vault, "cholesky", clipped_root),
    )


def factor_computed_anew() -> Any:
    """After a restart all rows are computed anew, in one block, with a tiny nugget and any root."""

    def catch_up(self: Any, points: np.ndarray, rows: Any) -> None:
        if len(self._points) < len(points):
            self.__init__(*made[id(self)])
            self._nugget = 1e-8
            self.extend(points)

    def sampler_of(contents: Any) -> Any:
        sampler = sound(contents)
        m = contents.model
        made[id(sampler)] = (contents.records, contents.factor, m.kernel, sampler._total - 1.0, 0.0)
        sampler._nugget = 1e-8
        return sampler

    made: dict[int, Any] = {}
    sound = paths_draws.sampler_of
    return planted(
        (vault.PathSampler, "catch_up", catch_up),
        (vault, "values_by_differences", centred_products),
        (vault, "cholesky", clipped_root),
        (vault, "RUN", 1024),
        (paths, "sampler_of", sampler_of),
    )


def another_root_after_a_restart() -> Any:
    """The same covariance, but the first column has the other sign; nothing breaks down."""

    def catch_up(self: Any, points: np.ndarray, rows: Any) -> None:
        restarted = len(self._points) < len(points)
        sound(self, points, rows)
        if restarted:
            self._lower[:, 0] *= -1.0

    sound = vault.PathSampler.catch_up
    return planted((vault.PathSampler, "catch_up", catch_up), (vault, "cholesky", clipped_root))


def nugget_left_out() -> Any:
    def sampler_of(contents: Any) -> Any:
        sampler = sound(contents)
        sampler._nugget = 0.0
        return sampler

    sound = paths_draws.sampler_of
    return planted((paths, "sampler_of", sampler_of), (vault, "cholesky", clipped_root))


def kernel_by_centred_products() -> Any:
    return planted(
        (vault, "values_by_differences", centred_products), (vault, "cholesky", clipped_root)
    )


def seeded(wrong: Callable[[Any, int, int, int, int], np.ndarray]) -> Any:
    """Other normal numbers, made from those that should be."""
    sound = vault.seeded_normals
    return planted((paths_draws, "seeded_normals", lambda *given: wrong(sound, *given)))


def one_normal_for_a_question() -> Any:
    return seeded(lambda f, seed, paths, first, n: np.repeat(f(seed, paths, first, 1), n, axis=2))


def normals_from_the_start() -> Any:
    return seeded(lambda f, seed, paths, first, n: f(seed, paths, 0, n))


def lattice_noise_left_out() -> Any:
    return seeded(lambda f, *given: f(*given) * np.array([1.0, 0.0])[:, None, None])


def decoded(wrong: Callable[[Any], Any]) -> Any:
    """Another state than the one that was written."""
    sound = paths_contents.decode
    return planted((paths_contents, "decode", lambda data: wrong(sound(data))))


def rows_change_at_a_restart() -> Any:
    return decoded(lambda c: replace(c, lower=tuple(row * (1 + 2.0**-52) for row in c.lower)))


def last_draw_is_forgotten() -> Any:
    """So it is drawn a second time."""

    def wrong(c: Any) -> Any:
        answers, normals = c.answers[:, :-1], c.normals[:, :-1]
        return replace(
            c, points=c.points[:-1], normals=normals, answers=answers, lower=c.lower[:-1]
        )

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
