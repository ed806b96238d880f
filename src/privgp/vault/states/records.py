"""Lazy draws of a function of private records: one noisy coordinate for every new point. The
function is ``k(., inputs) weights``; its coordinates at the points asked are L^-1 of its values, L
public and stored as it was used. Proof: docs/proofs/function_records.md."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.proved import values_by_differences
from privgp.plan.functions.records import (
    MOST_POINTS,
    RECORD_SENSITIVITIES,
    CheckedFactor,
    RecordsModel,
)
from privgp.privacy.noise import SAME_NOISE, GaussianNoise
from privgp.question.rules import check_bounds
from privgp.storage.archive import NO_ROWS, Triangle, require
from privgp.types import Array, NotNegative, Pair
from privgp.vault.states.functions import FunctionContents, FunctionDraws
from privgp.vault.states.kept import NOT_DRAWN, NOT_TOGETHER, OTHER_PROMISE, TOO_MUCH
from privgp.vault.validate import clip_inputs, clip_outputs


@dataclass(frozen=True, kw_only=True)
class RecordDraws(FunctionDraws):
    """Draws of a function of records.

    Attributes
    ----------
    inputs, weights : (records, columns), (records,); private
    exact : coordinates without noise; private
    lower : the rows of L as they were used; public
    residual : the squared error of L; public

    """

    inputs: Annotated[Array, "records columns"] = field(repr=False)
    weights: Annotated[Array, "records"] = field(repr=False)
    exact: Annotated[Array, "points"] = field(default_factory=lambda: np.empty(0), repr=False)
    lower: Triangle = NO_ROWS
    residual: NotNegative = 0.0

    GROWS = (*FunctionDraws.GROWS, "exact", "lower")
    CHANGES: ClassVar[tuple[str, ...]] = ("residual",)


def first_record_draws(
    X: Any, y: Any, model: RecordsModel, bounds: Pair, noise: GaussianNoise, seed: int | None
) -> RecordDraws:
    """Nothing drawn yet: inputs projected onto the domain, outputs clipped and scaled to [-1, 1].

    Parameters
    ----------
    X, y
        Private records.
    model
        The public part.
    bounds
        Bounds of the outputs.
    noise
        For the most coordinates there may be.
    seed
        Seed of a simulation.

    """
    inputs = clip_inputs(X, *np.array(model.domain).T)
    outputs = clip_outputs(y, len(inputs), bounds)
    K = values_by_differences(model.kernel, inputs, inputs)
    K.flat[:: len(K) + 1] += model.noise_variance
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    weights = np.asarray(cho_solve(factor, outputs, check_finite=False))
    points = np.empty((0, model.columns))
    return RecordDraws(noise=noise, seed=seed, points=points, inputs=inputs, weights=weights)


def grow_records(
    draws: RecordDraws, kernel: Kernel, points: Array, lower: Array, residual: float
) -> RecordDraws:
    """The same function in further coordinates: draws their noise.

    Parameters
    ----------
    draws
        So far.
    kernel
        Kernel of the function.
    points
        (new, columns).
    lower
        (new, old + new), the rows of the factor.
    residual
        The factor's squared error with them.

    """
    first, count = len(draws.numbers), len(points)
    if lower.shape != (count, first + count) or not np.all(np.isfinite(lower)):
        raise ValueError("the rows of the factor have a wrong shape or are not finite.")
    values = values_by_differences(kernel, points, draws.inputs) @ draws.weights
    rest = values - lower[:, :first] @ draws.exact
    exact = solve_triangular(lower[:, first:], rest, lower=True, check_finite=False)
    return replace(
        draws,
        exact=np.concatenate([draws.exact, exact]),
        numbers=draws.with_noise(exact),
        lower=draws.lower.grow(lower),
        residual=residual,
    )


@dataclass(frozen=True)
class RecordsContents(FunctionContents):
    """A function of private records. Only the factor at the points asked is public."""

    model: RecordsModel
    draws: RecordDraws

    PROTECT = "records"
    SENSITIVITIES = RECORD_SENSITIVITIES

    def engine(self) -> CheckedFactor:
        """The public factor of the points asked, whose error is bounded."""
        return CheckedFactor(self.model.kernel, self.model.widths)

    def grow(self, engine: CheckedFactor, points: Array) -> RecordDraws:
        """The draws with these new points among them; see ``Contents``."""
        engine.catch_up(self.draws.points, self.draws.lower.rows, self.draws.residual)
        rows = engine.propose(points)
        drawn = grow_records(self.draws, engine.kernel, points, rows.lower, rows.residual)
        engine.accept(rows)
        return self.with_answers(drawn, points, rows.lower)

    def check(self) -> None:
        """Refuse draws, a domain or a norm that do not belong together, as only a file has them."""
        super().check()
        model, draws = self.model, self.draws
        for pair in model.domain:
            check_bounds("domain", pair)
        points, drawn = len(draws.points), (len(draws.numbers), draws.lower.size)
        aligned = drawn == (points, points) and len(draws.inputs) == model.rows
        require(aligned and self.holds_inputs(draws.inputs), NOT_TOGETHER)
        require(draws.noise.size == MOST_POINTS, NOT_TOGETHER)
        norm = model.norm(self.sensitivity)
        require(norm <= self.norm * (1.0 + SAME_NOISE), OTHER_PROMISE)
        require(points <= MOST_POINTS, TOO_MUCH)

    def verify_draws(self) -> CheckedFactor:
        """An engine, if the weights are those of outputs in their bounds, the factor is that of the
        kernel, and the coordinates are those of the function: the bounds rest on all three."""
        model, draws = self.model, self.draws
        solved, most = model.weights_error()
        outputs = values_by_differences(model.kernel, draws.inputs, draws.inputs) @ draws.weights
        outputs += model.noise_variance * draws.weights
        require(bool(np.all(np.abs(outputs) <= 1.0 + 2.0 * solved * most)), NOT_DRAWN)
        engine = self.engine()
        engine.catch_up(draws.points, draws.lower.rows, draws.residual)
        require(engine.holds(), NOT_DRAWN)
        values = values_by_differences(model.kernel, draws.points, draws.inputs) @ draws.weights
        exact = solve_triangular(draws.lower.square(), values, lower=True, check_finite=False)
        error = float(np.linalg.norm(exact - draws.exact))
        require(error <= 2.0 * model.float_error(), NOT_DRAWN)
        return engine
