"""One of many candidates, chosen by how well each predicts private values. Only the index of the
chosen candidate leaves; utilities stay here. Proof: docs/proofs/select.md."""

from collections.abc import Iterable, Sequence

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import linf_distance
from opendp.mod import enable_features

from privgp.privacy.selection import Fold, ResidualBound, selection_scale
from privgp.types import Array, Integers, Pair, Random, UserData
from privgp.vault.scores import Validation, mean_loss, score_sensitivity
from privgp.vault.validate import clip_outputs

CHOICES = PERMUTE_AND_FLIP, EXPONENTIAL = "permute-and-flip", "exponential"
SELECTION_SAMPLER = (
    "permute-and-flip or exponential mechanism in exact rational arithmetic (OpenDP), "
    "cryptographic randomness"
)

# its folds, and the noise: a public number in units of half the bounds' width, where |u| <= 1
Candidate = tuple[Iterable[Fold], float]

enable_features("contrib")


def choose(
    method: str, utilities: Array, sensitivity: float, epsilon: float, rng: Random = None
) -> int:
    """Which candidate has the (nearly) largest utility: epsilon-private.

    Parameters
    ----------
    method
        "permute-and-flip", or the papers' "exponential" mechanism, which is never better.
    utilities
        (candidates,), private.
    sensitivity
        The most that one person can move any utility, float error included.
    epsilon
        The budget of the choice.
    rng
        Generator of a simulation; None for the randomness that protects.

    Notes
    -----
    OpenDP draws the exponential mechanism exactly where its report is in concentrated
    divergence; the distribution of the draw, and so its pure epsilon, is the same.

    """
    scale = selection_scale(sensitivity, epsilon)
    values = np.asarray(utilities, dtype=np.float64)
    # OpenDP takes infinity for the largest number
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
        raise ValueError("the utilities of the candidates are not finite; nothing was released.")
    flips = method == PERMUTE_AND_FLIP
    if rng is not None:
        size = len(values)
        noise = rng.exponential(scale, size) if flips else rng.gumbel(0.0, scale, size)
        return int(np.argmax(values + noise))
    space = vector_domain(atom_domain(T=float, nan=False)), linf_distance(T=float)
    divergence = max_divergence() if flips else zero_concentrated_divergence()
    chosen = int(measurements.make_noisy_max(*space, divergence, scale=scale)(values.tolist()))
    if not 0 <= chosen < len(values):
        raise RuntimeError("the sampler failed after it drew: count the budget as spent.")
    return chosen


def choose_by_validation(
    method: str,
    models: Sequence[object],
    validation: Validation,
    epsilon: float,
    rng: Random = None,
) -> int:
    """Which model has the least mean loss on private validation records: its index.

    Parameters
    ----------
    method, epsilon, rng
        As in ``choose``.
    models
        Fitted without these records.
    validation
        Private.

    """
    utilities = np.array([-mean_loss(model, validation) for model in models])
    return choose(method, utilities, score_sensitivity(validation.rows), epsilon, rng)


def choose_by_residuals(
    method: str,
    y: UserData,
    bounds: Pair,
    candidates: Iterable[Candidate],
    people: Integers | None,
    epsilon: float,
    rng: Random = None,
) -> tuple[int, float]:
    """Which candidate predicts held-out outputs best, and the sensitivity (public) of that choice.

    Parameters
    ----------
    method, epsilon, rng
        As in ``choose``.
    y
        Private outputs.
    bounds
        Bounds of the outputs.
    candidates
        Folds and noise of each, public.
    people
        (rows,), whose rows they are; by default every row is a person.

    """
    utilities, sensitivity = root_utilities(y, bounds, candidates, people)
    return choose(method, utilities, sensitivity, epsilon, rng), sensitivity


def root_utilities(
    y: UserData, bounds: Pair, candidates: Iterable[Candidate], people: Integers | None = None
) -> tuple[Array, float]:
    """``-sqrt(||R u||^2 + noise^2)`` of every candidate (private); their sensitivity (public).

    Parameters
    ----------
    y, bounds, candidates, people
        As in ``choose_by_residuals``.

    """
    rows = len(y)
    u = clip_outputs(y, rows, bounds)
    utilities, largest = [], 0.0
    for folds, noise in candidates:
        bound, energy = ResidualBound(rows), 0.0
        for fold in folds:
            bound.add(fold)
            residuals = u[fold.test] - fold.weights @ np.bincount(
                fold.index, u[fold.train], minlength=fold.weights.shape[1]
            )
            energy += float(residuals @ residuals)
        utilities.append(-float(np.sqrt(energy + noise**2)))
        largest = max(largest, bound.sensitivity(noise, people))
    return np.array(utilities), largest
