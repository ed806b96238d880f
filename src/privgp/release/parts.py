"""What was released of every outcome: noisy sums, the models learned from them, and what predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Annotated, Any, ClassVar

import numpy as np

from privgp.gp.inference.linked import outcome_posterior
from privgp.gp.inference.noisy_counts import NoisyCounts, counts_posterior
from privgp.gp.inference.posterior import posterior
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.parameters import DensityParameters, LabelParameters, Parameters
from privgp.privacy.guarantee import Guarantee
from privgp.question.parameters import RECONSTRUCTIONS
from privgp.release.answers import Answer, AtTargets, Cloaked, Probabilities, outcomes_of
from privgp.release.certificate import steps_of, validate_file
from privgp.release.rates import RatePosterior, rate_posterior
from privgp.release.spendings import AnySpending, Spending, as_one, combine_guarantees
from privgp.storage.archive import DamagedFile, require
from privgp.types import Array, Positive, added_field

MOST_MODELS = 256
SAME_EPSILON = 1e-9  # composed elsewhere, its last digits may differ


def check_models(models: Sequence[Hyperparameters], columns: int) -> None:
    """Refuse models that are not for this many columns, or whose weights are broken."""
    for model in models:
        model.check_for(columns)
    total = sum(model.weight for model in models)
    several = 1 <= len(models) <= MOST_MODELS
    fits = several and abs(total - 1.0) <= 1e-9
    require(fits, "its models do not have weights that sum to one")


def check_spent(spent: Sequence[Spending], measured: tuple[Measurement, ...]) -> None:
    """Refuse measurements that do not make up those that the release is computed from, one of every
    function."""
    if not spent:
        return
    problem, functions = "its measurements are broken", len(measured)
    require(len({type(each) for each in spent}) == 1, problem)
    require(all(len(each.values) % functions == 0 for each in spent), problem)
    require(len({each.sums_fingerprint for each in spent}) == 1, problem)
    for whole, held in zip(as_one(spent, functions), measured, strict=True):
        same = [
            np.array_equal(getattr(whole, name), getattr(held, name))
            for name in ("values", "counts", "gram", "laplace")
        ]
        require(all(same), problem)


def check_total(spent: Sequence[Spending], stated: Guarantee) -> None:
    """Refuse a guarantee that is not the one that follows from several measurements. One alone may have
    spent more, on a choice of hyperparameters."""
    if len(spent) < 2:
        return
    whole, told = combine_guarantees(spent), stated.epsilon
    near = abs(told - whole.epsilon) <= SAME_EPSILON * whole.epsilon
    same = near and stated == replace(whole, epsilon=told)
    require(same, "its guarantee is not that of its parts")


def check_facts(
    stated: Mapping[str, Any],
    promised: Guarantee,
    given: Parameters,
    measured: str,
    *,
    several: bool = False,
) -> None:
    """Refuse a certificate that has not its form, or is not about this release. ``measured``: the
    hash of what was measured; ``several``: times, so that parameters are those of one of them."""
    try:
        validate_file(stated)
    except ValueError:
        raise DamagedFile("its certificate is broken") from None
    budget = (promised.epsilon, promised.delta)
    require(
        (stated["epsilon"], stated["delta"]) == budget
        # A private choice may have spent some too.
        and (several or given.epsilon <= promised.epsilon)
        and (several or given.delta <= promised.delta or promised.is_pure)
        and stated["unit"] == promised.unit
        and stated["neighbours"] == promised.neighbours
        and stated["simulation"] == promised.is_simulation
        and stated["bounds"]["outputs"] == np.array(given.y_bounds).tolist()
        and stated["bounds"].get("classes") == given.labels()
        and ("noise_variance" in stated["hyperparameters"]) == given.scatters
        and stated["plan_hash"] == measured
        and _holds_everywhere(stated, promised),
        "its certificate is not about its contents",
    )


def _holds_everywhere(stated: Mapping[str, Any], promised: Guarantee) -> bool:
    """Whether a certificate's steps are those of the guarantee, and its curve, mu and best guess say no
    more."""
    mechanism = stated["mechanism"]
    own, *others = map(steps_of, promised.events)
    if {**mechanism, **own} != mechanism or mechanism.get("others", []) != others:
        return False
    slack = 1.0 + 1e-6  # versions may round otherwise
    curve = [(promised.delta_at(epsilon), delta) for epsilon, delta in stated["curve"]]
    guess = 0.5 + 0.5 * promised.delta_at(0.0)
    pairs = [*curve, (promised.mu, stated["mu"]), (guess, stated["best_guess"])]
    return all(least <= slack * told for least, told in pairs)


@dataclass(frozen=True)
class Function:
    """One released function of the inputs.

    Attributes
    ----------
    measurement : Measurement
        All measurements of it as one.
    models : tuple of Hyperparameters
        The weighted models that were learned, the most plausible first.
    fixed_gram : array (measured, measured), optional
        Where inputs are private: the effect of uncertain counts on this function's sums.

    """

    measurement: Measurement
    models: tuple[Hyperparameters, ...]
    fixed_gram: Annotated[Array, "measured measured"] | None = added_field(None)


@dataclass(frozen=True)
class Part:
    """One released outcome: a number or a count has one function, a label of several classes one each.

    Attributes
    ----------
    measurement, models
        Of the first function, as in ``Function``.
    functionals : Functionals
        What was measured of the functions.
    noise_variance : float
        The expected variance of an output about the function.
    at_targets : AtTargets, optional
        The values at the targets, where these were released.
    unit_rate : float, optional
        The rate that rates are multiples of, where outputs are counts.
    further : tuple of Function
        The functions after the first.
    spent : tuple of Spending
        Each measurement separately, where more may follow.

    """

    _own_axes: ClassVar[bool] = True
    measurement: Measurement
    functionals: Functionals
    models: tuple[Hyperparameters, ...]
    noise_variance: Positive
    at_targets: AtTargets | None = added_field(None)
    unit_rate: Positive | None = added_field(None)
    further: tuple[Function, ...] = added_field(())
    spent: tuple[AnySpending, ...] = added_field(())

    @property
    def functions(self) -> tuple[Function, ...]:
        """All functions of the outcome."""
        first = Function(self.measurement, self.models, self.functionals.fixed_gram)
        return first, *self.further

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every measurement of every function, those of one function together."""
        whole = tuple(each.measurement for each in self.functions)
        each = [one.measurement.parts(len(whole)) for one in self.spent] or [whole]
        return tuple(one for function in zip(*each, strict=True) for one in function)

    def so_far(self, guarantee: Guarantee) -> tuple[Spending, ...]:
        """The measurements so far. That of a single one may include a choice of hyperparameters, as the
        ``guarantee`` of the release does."""
        if len(self.spent) != 1:
            return self.spent
        return (replace(self.spent[0], guarantee=guarantee),)

    def check_for(self, columns: int, asked: Parameters) -> None:
        """Refuse what does not belong together, as only a file can have it."""
        require(self.functionals.nodes.shape[1] == columns, "its number of columns is broken")
        _check_bins(self.functionals, self.measurement, records=asked.private_inputs)
        outcome = asked.outcome()
        require((self.unit_rate is not None) == outcome.has_rate, "its unit of rates is broken")
        made, wanted = self.at_targets, RECONSTRUCTIONS[asked.reconstruct].at_targets
        require((made is not None) == wanted, "its parameters are not those of its release")
        if made is not None:
            require(made.noise_variance == self.noise_variance, "its noise variance is broken")
            require(bool(np.all(made.model_variance >= 0.0)), "its variance is broken")
        require(len(self.functions) == outcome.functions, "its classes are broken")
        private = self.functionals.fixed_gram is not None
        for each in self.functions:
            check_models(each.models, columns)
            require((each.fixed_gram is not None) == private, "its classes are broken")
        check_spent(self.spent, tuple(each.measurement for each in self.functions))


def _check_bins(f: Functionals, measurement: Measurement, *, records: bool) -> None:
    """Refuse what goes with private inputs where these are public, and the other way round."""
    counted = measurement.counts is not None or measurement.gram is not None
    extra = (f.fixed_gram is not None, f.scatter is not None, f.shares is not None)
    require(all(part == records for part in (counted, *extra)), "its bins are broken")
    if f.scatter is not None and f.shares is not None:
        require(f.scatter.shape[1] * len(f.shares) == len(f.nodes), "its bins are broken")
        whole = abs(float(f.shares.sum()) - 1.0) <= 1e-9
        require(whole and bool(np.all(f.shares >= 0.0)), "its bins are broken")


@singledispatch
def answer_of(asked: Any, part: Part) -> Answer | Probabilities:
    """What predicts an outcome: the function itself, a rate, or the values at the targets.

    Parameters
    ----------
    asked : Parameters
        What was declared of the outcome.
    part : Part
        What was released of it.

    """
    if part.unit_rate is not None:
        return rate_posterior(part.functionals, part.measurement, part.models, part.unit_rate)
    low, high = check_bounds("bounds", asked.y_bounds)
    centre = 0.5 * low + 0.5 * high
    if part.at_targets is not None:
        measured = part.functionals, part.measurement
        return Cloaked(part.at_targets, *measured, part.models[0], centre)
    return posterior(part.functionals, part.measurement, part.models, centre)


def bin_counts(asked: DensityParameters, f: Functionals, measured: Measurement) -> NoisyCounts:
    """What was measured of the bins of a density."""
    noise, grid = (measured.noise_std, bool(measured.laplace.all())), asked.grid
    box = grid.widths, grid.low, grid.high
    return NoisyCounts(measured.values, np.diag(f.weights), *noise, f.nodes, *box)


@answer_of.register
def _(asked: DensityParameters, part: Part) -> Answer:
    """The intensity of points."""
    require(part.unit_rate is not None, "its unit of rates is broken")
    counts = bin_counts(asked, part.functionals, part.measurement)
    return RatePosterior(counts_posterior(counts, part.models), float(part.unit_rate or 1.0))


@answer_of.register
def _(asked: LabelParameters, part: Part) -> Probabilities:
    """The probability of every class."""
    link = asked.probability
    functions = (
        outcome_posterior(
            outcomes_of(
                replace(part.functionals, fixed_gram=each.fixed_gram), each.measurement, link
            ),
            each.models,
        )
        for each in part.functions
    )
    return Probabilities(tuple(functions), link)
