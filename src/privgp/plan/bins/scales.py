"""The lengthscales that bins are planned for."""

from __future__ import annotations

import numpy as np

from privgp.gp.priors import Hyperparameters, Prior

DESIGN_SCALES = (-1.2, 0.0, 1.2)  # standard deviations of the prior's common lengthscale


def design_models(prior: Prior) -> list[Hyperparameters]:
    """Shorter, starting and longer lengthscales, all of them moved together, weighted equally.

    One model if the prior leaves nothing free.
    """
    if prior.size == 0:
        return [prior.start]
    free = [each for each in prior.start.kernel.hyperparameters if not each.fixed]
    moves = [each.name.endswith("length_scale") for each in free for _ in range(each.n_elements)]
    together = np.zeros(len(prior.centre))
    together[: len(moves)] = moves
    square = prior.size == len(prior.centre)
    solve = np.linalg.solve if square else lambda root, right: np.linalg.lstsq(root, right)[0]
    common = np.asarray(solve(prior.root, together), dtype=np.float64)
    return [prior.at(step * common) for step in DESIGN_SCALES]
