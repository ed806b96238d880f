"""Further points of paths that were drawn in part."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privgp.gp.kernels.evaluate import variance
from privgp.types import Array
from privgp.vault.states.paths import PathSampler, drawn_normals, seeded_normals, with_lattice_noise
from privgp.vault.states.paths_file import PathContents


def sampler_of(contents: PathContents) -> PathSampler:
    """The posterior of the records, with nothing drawn yet."""
    m = contents.model
    extra = m.extra_noise**2 / variance(m.kernel)
    nugget = m.precision(len(contents.factor)).nugget
    return PathSampler(contents.records, contents.factor, m.kernel, extra, nugget)


def further(contents: PathContents, sampler: PathSampler, points: Array) -> PathContents:
    """The same paths at further points, (points, columns)."""
    c, m = contents, contents.model
    first, count = len(c.points), len(points)
    precision = m.precision(len(c.factor))
    std = math.sqrt(precision.lattice_nugget * variance(m.kernel))
    sampler.catch_up(c.points, c.lower)
    rows = sampler.extend(points)
    if c.seed is None:
        normals = np.hstack([c.normals, drawn_normals(m.paths, count)])
        values = with_lattice_noise(sampler.values(normals, first), std)
    else:
        drawn, added = seeded_normals(c.seed, m.paths, first, count)
        normals = np.hstack([c.normals, drawn])
        values = sampler.values(normals, first) + std * added
    middle = 0.5 * m.y_bounds[0] + 0.5 * m.y_bounds[1]
    return replace(
        c,
        points=np.vstack([c.points, points]),
        normals=normals,
        answers=np.hstack([c.answers, middle + values]),
        lower=(*c.lower, *rows),
    )
