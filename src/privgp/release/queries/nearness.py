"""Where data are near: by public inputs, or by noisy numbers of private records.

Everything here is post-processing of a release.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from privgp.gp.nearness import near_inputs
from privgp.plan.inputs.arguments import check_bounds
from privgp.release.release import Release
from privgp.types import Array

NEAR_DATA = "near_data"  # the column of tables and files
SHOWN = 2.0  # stds of the noise that a number of records must exceed


def near_data(release: Release, rows: Array) -> Array | None:
    """1 where data are near and 0 where a prediction is an extrapolation.

    Where inputs are private, the noisy numbers of records tell: those of the bins nearby must exceed their
    noise.

    Parameters
    ----------
    release : Release
        What was published.
    rows : array (rows, columns)
        Where to ask, as the kernel has it.

    Returns
    -------
    array (rows,), or None
        None where inputs are few, or where a release does not tell it: of densities, which say themselves
        where points lie, and of private records that were not counted in bins.

    """
    part = release.parts[0]
    if part.measurement.counts is not None:
        return _near_records(release, rows)
    if release.parameters.x_bounds is not None:
        return None
    return near_inputs(part.functionals.nodes, rows)


def _near_records(release: Release, rows: Array) -> Array | None:
    """1 where the bins around a point, its own among them, hold more records than noise explains."""
    part = release.parts[0]
    f, shares = part.functionals, part.functionals.shares
    if shares is None:
        return None
    parts = len(shares)
    centres = np.einsum("bpi,p->bi", f.nodes.reshape(-1, parts, f.nodes.shape[1]), shares)
    masses = np.diag(f.energy_gram).reshape(-1, parts).sum(axis=1) / (part.unit_rate or 1.0)
    lowest, highest = check_bounds("bounds", release.parameters.parts()[0].y_bounds)
    noise_std = part.measurement.noise_std / (0.5 * highest - 0.5 * lowest)  # of a count
    levels = [np.unique(np.round(column, 9)) for column in centres.T]
    width = np.array([each[1] - each[0] if len(each) > 1 else np.inf for each in levels])
    low, high = centres.min(axis=0) - 0.5 * width, centres.max(axis=0) + 0.5 * width
    inside = np.all((low <= rows) & (rows <= high), axis=1)
    scale = np.where(np.isfinite(width), width, 1.0)
    tree = cKDTree(centres / scale)
    around = tree.query_ball_point(rows / scale, 1.25, p=np.inf)
    return np.array(
        [
            float(near and masses[own].sum() > SHOWN * noise_std * len(own) ** 0.5)
            for near, own in zip(inside, around, strict=True)
        ]
    )
