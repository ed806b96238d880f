"""``membership``: was this record in the data from which posterior paths were released? The attack
of the paper's appendix C: draw many datasets with and without the record, fit the distribution of
what either releases at its place, and score fresh releases by the likelihood ratio."""

import math
from collections.abc import Sequence
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from privgp.audit.promises import promise_of
from privgp.audit.result import Callback, Membership, measure_success, show_progress
from privgp.audit.shadows import Population, Released, Response, fit_laws, posteriors, step
from privgp.gp.kernels.evaluate import signal_and_noise, variance
from privgp.question.rules import domain_pairs
from privgp.types import Array, Bounds, RandomState


def membership(
    kernel: Kernel,
    noise_variance: float | None = None,
    *,
    n: int = 10,
    n_paths: float = 1,
    record: tuple[ArrayLike, float] = (0.5, 1.0),
    x_bounds: Bounds = (0.0, 1.0),
    response: Response = step,
    label_noise: float = 0.0,
    centred: bool = False,
    promise: object = None,
    shadows: int = 10_000,
    draws: int = 10_000,
    false_positive_rates: Sequence[float] = (0.01, 0.1),
    failure_probability: float = 1e-6,
    random_state: RandomState = None,
    progress: bool | Callback = False,
) -> Membership:
    """Attack released posterior paths at one record's place. Everything here is simulated.

    Parameters
    ----------
    kernel
        sigma^2 k of the paper.
    noise_variance
        lambda^2 of the paper; may be in the kernel as a WhiteKernel.
    n
        Rows of a dataset.
    n_paths
        How many paths are released, ``inf`` for the exact mean and variance.
    record
        (x, y) whose membership is asked for.
    x_bounds
        The box of the inputs, (low, high) or one such pair per input.
    response
        Outputs of inputs, (rows, inputs) to (rows,).
    label_noise
        m, the share of an output that is even in [-1, 1], independent of its input.
    centred
        Paths about zero, the limit of large sigma.
    promise
        a Guarantee or (epsilon, delta), for replacing one record, that no attack may beat.
    shadows
        Datasets with and without the record to learn from.
    draws
        Fresh ones to be tested on.
    false_positive_rates
        At which thresholds are fixed before the test.
    failure_probability
        With which any of the bounds may be wrong.
    random_state
        Seeds all draws.
    progress
        True for a bar, or a function of (share done, what is being done).

    """
    for name, value, least in (("n", n, 1), ("shadows", shadows, 100), ("draws", draws, 100)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}.")
    if n_paths != math.inf and not (n_paths >= 1 and n_paths == int(n_paths)):
        raise ValueError("n_paths must be a whole number of at least 1, or inf.")
    rates = tuple(float(rate) for rate in false_positive_rates)
    if not rates or not all(0 < share < 1 for share in (*rates, failure_probability)):
        raise ValueError("false_positive_rates and failure_probability must lie between 0 and 1.")
    population = _population(n, record, x_bounds, response, label_noise)
    kernel, noise = signal_and_noise(kernel, noise_variance, len(population.low))
    allowed = None if promise is None else promise_of(promise)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    scale = float(np.sqrt(variance(kernel)))

    with show_progress(progress) as tell:

        def draw(count: int, member: bool, start: float, end: float) -> Released:
            tell(start, "drawing datasets")
            X, y = population.draw(count, member, rng)
            tell(start + 0.3 * (end - start), "computing posteriors")
            mean, var = posteriors(kernel, noise, X, y, population.point)
            return draw_release(np.zeros(count) if centred else mean, var, n_paths, scale, rng)

        inside, outside = draw(shadows, True, 0.0, 0.15), draw(shadows, False, 0.15, 0.3)
        tell(0.3, "fitting distributions")
        laws = fit_laws(inside, outside, scale if centred else max(abs(population.output), 1.0))
        fresh = draw(draws, True, 0.6, 0.8), draw(draws, False, 0.8, 1.0)
        tell(1.0, "done")
    return measure_success(
        laws, outside, *fresh, rates, float(failure_probability), allowed,
        n=int(n), n_paths=float(n_paths), shadows=int(shadows),
    )  # fmt: skip


def draw_release(
    mean: Array, var: Array, n_paths: float, scale: float, rng: np.random.Generator
) -> Released:
    """Mean and log-variance of L simulated values N(mu, v) each, from their exact distributions.

    N(mu, v / L) and, in units of scale^2, v chi^2(L - 1) / L, independent.

    Parameters
    ----------
    mean, var
        (datasets,), mu and v.
    n_paths
        L; ``inf`` gives mu and v themselves, 1 no variance.
    scale
        Unit of the variances, as a std.
    rng
        Generator of the simulation.

    """
    if n_paths == math.inf:
        return Released(mean, np.log(var / scale**2))
    means = mean + np.sqrt(var / n_paths) * rng.standard_normal(len(mean))
    if n_paths == 1:
        return Released(means, None)
    spread = rng.chisquare(n_paths - 1, size=len(mean)) / n_paths
    return Released(means, np.log(var / scale**2 * spread))


def _population(
    n: int,
    record: tuple[ArrayLike, float],
    x_bounds: Bounds,
    response: Response,
    label_noise: float,
) -> Population:
    low, high = np.array(domain_pairs("x_bounds", x_bounds)).T
    try:
        x, y = record
        point, output = np.atleast_1d(np.asarray(x, dtype=float)), float(y)
    except (TypeError, ValueError):
        raise ValueError("record must be (x, y).") from None
    if point.shape != low.shape or not (np.all(np.isfinite(point)) and math.isfinite(output)):
        raise ValueError(f"record must have {len(low)} finite inputs and a finite output.")
    if not 0.0 <= label_noise < 1.0:
        raise ValueError("label_noise must lie in [0, 1).")
    return Population(int(n), low, high, point, output, response, float(label_noise))
