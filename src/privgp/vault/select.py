"""One of many candidates, chosen by how well each predicts private values. Only the index of the
chosen candidate leaves, or a noisy mean; utilities stay here. Proofs: docs/proofs/select.md, and of blocks
of rows, each of which judges the candidates by its own rows alone, docs/proofs/blocks.md."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from secrets import SystemRandom

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import linf_distance
from opendp.mod import enable_features
from scipy.linalg import cho_factor, cho_solve

from privgp.gp.arithmetic import one_thread
from privgp.gp.kernels.evaluate import diagonal, evaluate
from privgp.gp.surrogate import Hyperprior, Surrogate
from privgp.plan.search.folds import Dealt, Trial
from privgp.privacy.noise import GaussianNoise
from privgp.privacy.selection import Fold, KusnerConstants, ResidualBound, selection_scale
from privgp.types import Array, Integers, Pair, Predicts, Random, UserData
from privgp.vault.labels import shares_of_each
from privgp.vault.measure import add_noise
from privgp.vault.scores import Validation, mean_loss, score_sensitivity
from privgp.vault.validate import clip_inputs, clip_outputs
from privgp.vault.values import Sealed, unseal

CHOICES = PERMUTE_AND_FLIP, EXPONENTIAL = "permute-and-flip", "exponential"
SELECTION_SAMPLER = (
    "permute-and-flip or exponential mechanism in exact rational arithmetic (OpenDP), "
    "cryptographic randomness"
)

JITTER = 1e-10  # of the kernel's variance
# Noise variance over the kernel's down to which that of a block is lowered: outputs have their own noise.
RIDGE = 0.1
LEAST, MOST = 1e-6, 1e6  # of square errors and spreads, which count as these beyond

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
    models: Sequence[Predicts],
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


def shuffle(data: Sealed, rng: Random = None) -> Sealed:
    """The same rows in an order that is drawn at random, so that theirs says nothing.

    Parameters
    ----------
    data
        Private: (X, y), sealed.
    rng
        Generator of a simulation; None for the randomness that protects.

    """
    inputs, values = unseal(data)
    order = random_order(len(values), rng)
    return Sealed((inputs[order], values[order]), len(values))


def random_order(rows: int, rng: Random = None) -> Integers:
    """A permutation of the row numbers, each as likely as every other."""
    if rng is not None:
        return rng.permutation(rows)
    return np.array(SystemRandom().sample(range(rows), rows))


def choose_by_blocks(
    method: str,
    data: Sealed,
    dealt: Dealt,
    trials: Sequence[Trial],
    epsilon: float,
    rng: Random = None,
) -> int:
    """Which candidate the blocks find best: its index, epsilon-private.

    Parameters
    ----------
    method, epsilon, rng
        As in ``privgp.vault.select.choose``.
    data
        Private: (X, y), sealed and shuffled.
    dealt
        How rows become blocks.
    trials
        The candidates.

    """
    logs = np.log([block_errors(data, dealt, trial)[0] for trial in trials])
    worst, best = logs.max(axis=0), logs.min(axis=0)
    apart = np.where(worst > best, worst - best, 1.0)
    scores = np.clip((worst - logs) / apart, 0.0, 1.0)
    utilities = np.array([math.fsum(each) / dealt.blocks for each in scores])
    return choose(method, utilities, score_sensitivity(dealt.blocks), epsilon, rng)


def measure_block_loss(
    data: Sealed, dealt: Dealt, trial: Trial, noise: GaussianNoise, rng: Random = None
) -> float:
    """The mean over blocks of error / (error + spread), plus noise: spends this step's share of the budget.

    Parameters
    ----------
    data, dealt
        As in ``choose_by_blocks``.
    trial
        The candidate.
    noise
        Noise of this step.
    rng
        Generator of a simulation; None for the noise that protects.

    """
    errors, spreads = block_errors(data, dealt, trial)
    losses = np.clip(errors / (errors + spreads), 0.0, 1.0)
    mean = min(1.0, math.fsum(losses) / dealt.blocks)
    return float(add_noise(np.array([mean]), noise, rng)[0])


def block_errors(data: Sealed, dealt: Dealt, trial: Trial) -> tuple[Array, Array]:
    """The expected square error of a candidate on every block, and the spread of the block's outputs.

    Returns
    -------
    errors, spreads : Array
        (blocks,) each, between ``LEAST`` and ``MOST``, each made of one block's rows alone. Private.

    """
    X, u = _rows(data, dealt, trial)
    half = 0.5 * trial.bounds[1] - 0.5 * trial.bounds[0]
    blocks = [slice(block, None, dealt.blocks) for block in range(dealt.blocks)]
    with one_thread(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        errors = [_error(X[block], u[block], trial, dealt.rows, half) for block in blocks]
        spreads = [float(u[block].var(axis=0).mean()) for block in blocks]
    return np.clip(errors, LEAST, MOST), np.clip(spreads, LEAST, MOST)


def _rows(data: Sealed, dealt: Dealt, trial: Trial) -> tuple[Array, Array]:
    """Inputs, in the domain where there is one, and outputs in [-1, 1], one column or one per class."""
    inputs, values = unseal(data)
    if dealt.domain is not None:
        inputs = clip_inputs(inputs, *np.array(dealt.domain, dtype=float).T)
    if trial.classes > 2:
        return inputs, 2.0 * np.column_stack([*shares_of_each(values, trial.classes)]) - 1.0
    return inputs, clip_outputs(values, dealt.rows, trial.bounds)[:, None]


def _error(X: Array, u: Array, trial: Trial, rows: int, half: float) -> float:
    """The expected square error on one block; the largest if it cannot be computed."""
    try:
        error = float(np.concatenate([*_errors(X, u, trial, rows, half)]).mean())
    except Exception:  # of a kernel or a solver, whatever the rows are
        return MOST
    return error if math.isfinite(error) else MOST


def _errors(X: Array, u: Array, trial: Trial, rows: int, half: float) -> Iterator[Array]:
    """Expected square errors at each half of a block's rows, given the other half, (half, outputs) each."""
    for first in (0, 1):
        known, rest = slice(first, None, 2), slice(1 - first, None, 2)
        K, cross = evaluate(trial.kernel, X[known]), evaluate(trial.kernel, X[rest], X[known])
        own, noise = diagonal(trial.kernel, X[known]), trial.noise_variance
        ridge = max(noise * len(K) / rows, min(noise, RIDGE * float(own.mean())))
        K.flat[:: len(K) + 1] += ridge + JITTER * own
        factor = cho_factor(K, lower=True)
        mean = np.clip(cross @ cho_solve(factor, u[known]), -1.0, 1.0)
        spread = np.full(len(cross), trial.added)
        if trial.is_draw:
            explained = np.einsum("ij,ji->i", cross, cho_solve(factor, cross.T))
            spread += np.maximum(diagonal(trial.kernel, X[rest]) - explained, 0.0)
        yield np.square(mean - u[rest]) + (spread / half**2)[:, None]


def measure_loss(
    model: Predicts, validation: Validation, noise: GaussianNoise, rng: Random = None
) -> float:
    """The mean loss, scaled to [0, 1], plus noise: spends this step's share of the budget.

    Parameters
    ----------
    model
        Fitted without the validation records.
    validation
        Private.
    noise
        Noise of this step.
    rng
        Generator of a simulation; None for the noise that protects.

    """
    exact = np.array([mean_loss(model, validation)])
    return float(add_noise(exact, noise, rng)[0])


@dataclass(frozen=True)
class Objective:
    """The score of a setting, in units of the prior's std.

    Attributes
    ----------
    train : from the index of a setting to its model
    validation : private
    prior_mean, prior_std : mean and std of the scores, public

    """

    train: Callable[[int], Predicts]
    validation: Validation
    prior_mean: float
    prior_std: float

    def value(self, setting: int) -> float:
        """The score of a setting: private."""
        try:
            with warnings.catch_warnings():  # which settings are tried is private
                warnings.simplefilter("ignore")
                model = self.train(setting)
        except Exception:
            raise ValueError("the estimator could not be fitted with a setting.") from None
        score = self.validation.loss.score(mean_loss(model, self.validation))
        return float((score - self.prior_mean) / self.prior_std)


def kusner_search(
    objective: Objective,
    points: Array,
    prior: Hyperprior,
    constants: KusnerConstants,
    report: Callable[[int], None],
    rng: Random = None,
) -> tuple[int, float]:
    """Algorithms 1 and 2 of Kusner et al. (2015), of which two numbers leave.

    Parameters
    ----------
    objective
        Private scores of the settings.
    points
        (settings, coordinates).
    prior
        One known kernel.
    constants
        The constants that the noise is computed from.
    report
        Is called with the number of steps done, which is public.
    rng
        Generator of a simulation; None for the noise that protects.

    Returns
    -------
    setting : int
        The index of the chosen one.
    value : float
        The noisy largest score, in the prior's stds.

    """
    coins = np.random.default_rng() if rng is None else rng
    surrogate = Surrogate(points, prior)
    values: list[float] = []
    order = _without_noise if constants.noise_free else _with_noise
    for setting in order(surrogate, constants):
        value = objective.value(setting) + constants.observation_std * coins.standard_normal()
        surrogate.observe(setting, value, constants.observation_std)
        values.append(value)
        report(len(values))
    # The paper leaves the first value out where there is no noise.
    largest = max(values[1:] if constants.noise_free and len(values) > 1 else values)
    sensitivity, epsilon = constants.mean_sensitivity, constants.epsilon
    chosen = choose(EXPONENTIAL, surrogate.means[0], sensitivity, epsilon, rng)
    return chosen, float(add_noise(np.array([largest]), constants.value_noise(), rng)[0])


def _with_noise(surrogate: Surrogate, constants: KusnerConstants) -> Iterator[int]:
    """T times the largest mu + sqrt(beta_t) sigma."""
    for step in range(1, constants.steps + 1):
        yield int(np.argmax(_bound(surrogate, constants.beta(step))))


def _without_noise(surrogate: Surrogate, constants: KusnerConstants) -> Iterator[int]:
    """Branch and bound: cover the settings that may be best ever more densely, the most guaranteeing
    first; a setting is ruled out once its upper bound is below another's lower bound."""
    points, width = surrogate.points, constants.beta(constants.steps)
    radius = math.sqrt(points.shape[1])
    distance = np.full(len(points), np.inf)
    for _ in range(constants.steps):
        upper = _bound(surrogate, width)
        alive = (upper >= np.max(_bound(surrogate, width, sign=-1.0))) & (distance > 0)
        if not alive.any():
            alive = distance > 0
        if not alive.any():
            return
        while not (alive & (distance > radius)).any():
            radius /= 2.0
        setting = int(np.argmax(np.where(alive & (distance > radius), upper, -np.inf)))
        yield setting
        step = np.sqrt(np.square(points - points[setting]).sum(axis=1))
        distance = np.minimum(distance, step)


def _bound(surrogate: Surrogate, width: float, sign: float = 1.0) -> Array:
    """Mu + sqrt(beta) sigma at every setting, or mu - sqrt(beta) sigma."""
    spread = sign * math.sqrt(width) * np.sqrt(surrogate.variances[0])
    return np.asarray(surrogate.means[0] + spread)
