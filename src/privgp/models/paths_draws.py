"""Further points of paths that were drawn in part: randomness from the system, then the vault."""

from __future__ import annotations

import secrets
from dataclasses import replace

import numpy as np

from privgp.models.paths_contents import PathContents
from privgp.plan.kernels import variance
from privgp.types import Array
from privgp.vault.paths import PathSampler, seeded_normals, system_normals


def sampler_of(contents: PathContents) -> PathSampler:
    """The posterior of the records, with nothing drawn yet."""
    m = contents.model
    extra = m.extra_noise**2 / variance(m.kernel)
    return PathSampler(contents.records, m.kernel, m.noise_variance, extra)


def further(contents: PathContents, sampler: PathSampler, points: Array) -> PathContents:
    """The same paths at further points, (points, columns), rounded to their grid."""
    c, m = contents, contents.model
    first = len(c.points)
    sampler.catch_up(c.points)
    sampler.extend(points)
    if c.seed is None:
        randomness = secrets.token_bytes(8 * m.paths * len(points))
        drawn = system_normals(randomness, m.paths, len(points))
    else:
        drawn = seeded_normals(c.seed, m.paths, first, len(points))
    normals = np.hstack([c.normals, drawn])
    middle = 0.5 * m.y_bounds[0] + 0.5 * m.y_bounds[1]
    answers = np.round((middle + sampler.values(normals, first)) / m.grid) * m.grid
    return replace(
        c,
        points=np.vstack([c.points, points]),
        normals=normals,
        answers=np.hstack([c.answers, answers]),
    )
