"""The one path that spends a budget: rehearse, charge, measure, learn, in that order; and what the measurement
of a plan guarantees."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from privgp.plan.part import unit_of
from privgp.plan.plan import Plan
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.protected import ROW, Protected, exactly
from privgp.question.outcomes import NUMBER_WORDING, Unit, Wording
from privgp.release.parts import FROM_THEM

if TYPE_CHECKING:
    from privgp.ledger.account import Account

Measured = TypeVar("Measured")
Released = TypeVar("Released")
Receipt = Mapping[str, Any]  # the dataset, the entry's number, the head of its chain, what is left
AGAIN = (
    "this process made such a fit before, to the same public inputs or to as many rows under the same "
    "declared bounds. If both are about the same people, each spends its whole budget: compose() adds "
    "their guarantees up, and a ledger limits the total. cross_val_score and GridSearchCV fit once per "
    "fold and candidate: give a random_state to try things out on data that are not private, and use "
    "PrivateGridSearchCV to choose within one budget. This warning is given once."
)


@dataclass(frozen=True)
class Payer:
    """Who pays for a draw, and how a draw that repeats another is recognised.

    Attributes
    ----------
    account : Account or None
        The account to charge; None: no ledger is kept.
    marks : frozenset
        Public facts about a first fit. A later fit with one of them warns; empty: no fit does.
    fingerprint : str or None
        The fingerprint of the public inputs, for the ledger.
    key : str or None
        Under which a draw that goes on later is charged once; nobody else may know it.

    """

    account: Account | None
    marks: frozenset[Hashable] = frozenset()
    fingerprint: str | None = None
    key: str | None = None


def publish(
    guarantee: Guarantee,
    payer: Payer,
    measure: Callable[[], Measured],
    learn: Callable[[Measured], Released],
    *,
    keep: Callable[[Receipt | None], None],
    rehearse: Callable[[], object] | None = None,
) -> Released:
    """Spend a budget once. Nothing else charges an account.

    A simulation is charged too, as its numbers depend on private values. What fails after the charge
    still counts as spent.

    Parameters
    ----------
    guarantee : Guarantee
        What the draw guarantees, and so what it costs.
    payer : Payer
        Who is charged.
    measure : callable
        Draws the noise: the first call that does, and the last one that holds private values.
    learn : callable
        Takes what was measured, and nothing private.
    keep : callable
        Takes the receipt of the charge before anything is drawn, or None without an account.
    rehearse : callable, optional
        Does with simulated values what follows the measurement, so that whatever would stop it stops
        it before anything is spent.

    Returns
    -------
    object
        What ``learn`` returns.

    """
    if rehearse is not None:
        rehearse()
    keep(_charge(guarantee, payer))
    measured = measure()
    del measure  # it holds private values
    return learn(measured)


def _charge(guarantee: Guarantee, payer: Payer) -> Receipt | None:
    """Charge the account and return the receipt; warn of a fit that repeats another."""
    account, fits = payer.account, FITS.get()
    marks = frozenset[Hashable]() if guarantee.is_simulation else payer.marks
    fits.warn_of(marks)
    receipt = None if account is None else _receipt(account, guarantee, payer)
    fits.marks |= marks
    return receipt


def _receipt(account: Account, guarantee: Guarantee, payer: Payer) -> Receipt:
    from privgp.errors import BudgetExceeded, ChargeRefused  # slow to import
    from privgp.ledger.filter import decimal_below
    from privgp.ledger.signing import SIGNATURE, state_entry

    budget = account.opened().budget  # nothing is read after the charge: it could fail
    try:
        entry = account.charge(guarantee, payer.key, fingerprint=payer.fingerprint)
    except ChargeRefused as refused:
        if _in_model_selection():
            raise BudgetExceeded(*refused.args) from None
        raise
    total = decimal_below(budget.epsilon), decimal_below(budget.delta)
    after = {"total_epsilon": total[0], "total_delta": total[1], "left": budget.left(entry.spent)}
    if entry.signature is None:
        return {"dataset": entry.dataset, "entry": entry.number, "head": entry.hash, **after}
    return {**state_entry(entry), SIGNATURE: entry.signature, **after}


def _in_model_selection() -> bool:
    """Whether scikit-learn fits this model, and may take an ``Exception`` for a score."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection."):
            return True
        frame = frame.f_back
    return False


def check_account(account: object) -> Account | None:
    """The argument ``ledger`` of a model, if it can be charged."""
    if account is None:
        return None
    from privgp.ledger.account import Account  # slow to import

    if not isinstance(account, Account):
        raise ValueError(
            "ledger must be an Account, such as Ledger(url).account(dataset), or None."
        )
    return account


@dataclass
class Fits:
    """Fits that protect, known by what is public of them; ``warned``: of one that repeats another."""

    marks: set[Hashable] = field(default_factory=set)
    warned: bool = False

    def warn_of(self, marks: frozenset[Hashable]) -> None:
        """Warn once if an earlier fit had one of these marks."""
        if not self.warned and not self.marks.isdisjoint(marks):
            self.warned = True
            warnings.warn(AGAIN, UserWarning, stacklevel=9)


FITS = ContextVar("FITS", default=Fits())  # noqa: B039 - of the whole process


@contextmanager
def forget_fits() -> Iterator[None]:
    """Fits to simulated data in here spend nobody's budget: they are forgotten, and warn of nothing."""
    token = FITS.set(Fits(warned=True))
    try:
        yield
    finally:
        FITS.reset(token)


RESIDUALS = (
    "; then totals of how far values are above or below a curve that was learned from the first "
    "ones, each distance clipped to a width that was learned from them too"
)


EXPOSURES = "the exposures are public, and were not computed from the counts"
OF_WEIGHTS = (
    "the weight of a record is protected with it, and the largest weight that counts was chosen without "
    "looking at the weights"
)


def guarantee_of(plan: Plan, *, simulated: bool) -> Guarantee:
    """What the measurement of a plan guarantees, of outputs or of records."""
    protected, assumptions = _protection_of(plan)
    return promise(
        protected,
        [noise.event for noise in plan.noises],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{_totals_of(plan)}{'' if plan.residuals is None else RESIDUALS} ({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


def _totals_of(plan: Plan) -> str:
    """What is measured, in words."""
    size, squares = plan.strategy.size, sum(p.strategy.energy_weight > 0 for p in plan.parts)
    if len(plan.parts) > 1:
        of_squares = f", {squares} of them of squares," if squares else ","
        return (
            f"{size} noisy totals of the values of {len(plan.parts)} outputs{of_squares} each value "
            "clipped to the declared range of its output"
        )
    (part,) = plan.parts
    told = part.outcome.wording
    what = part.kind.totals.replace("values", told.values)
    of_squares = ", one of them of squares," if squares else ","
    return f"{size} noisy total{'s' if size > 1 else ''} of {what}{of_squares} {told.limited}"


def _protection_of(plan: Plan) -> tuple[Protected, tuple[str, ...]]:
    """Whom the guarantee protects, and what it assumes."""
    unit, told = unit_of(plan.parts[0]), plan.parts[0].outcome.wording
    if len(plan.parts) > 1:
        told = replace(NUMBER_WORDING, outputs=ROW)
        protected, assumptions = _limits_of_several(plan, unit, told)
    else:
        protected, assumptions = unit.limit_change(told, plan.parts[0].max_change)
    counted = not unit.private_inputs and any(part.outcome.has_rate for part in plan.parts)
    weighed = any(part.strategy.weighted for part in plan.parts)
    more = (*((EXPOSURES,) if counted else ()), *((OF_WEIGHTS,) if weighed else ()))
    return protected, (*assumptions, *more)


def _limits_of_several(plan: Plan, unit: Unit, told: Wording) -> tuple[Protected, tuple[str, ...]]:
    """The same of several outputs, each with a limit of its own or none."""
    protected, assumptions = unit.whom(told), unit.assumptions_of(told)
    limits = [
        f"{name} by at most {exactly(change)}"
        for name, change in zip(plan.names, plan.max_changes, strict=True)
        if change is not None
    ]
    if not limits or unit.private_inputs:
        return protected, assumptions
    limited = "; ".join(limits)
    counts = ", ".join(limit.partition(" by ")[0] for limit in limits)
    protected = replace(
        protected,
        unit=f"{protected.unit}, of {counts} one person's contribution alone",
        neighbours=f"{protected.neighbours}, and {limited}",
    )
    return protected, (*assumptions, f"one person changes no more than this: {limited}")
