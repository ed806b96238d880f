"""What takes long, as jobs: plans, releases, updates and functions. A release charges, draws, and stores once.

A job may be run again at any time, by the same server or the next one: its charge carries a key that
belongs to the job, so that it is charged once, and only what the ledger stored is ever given out
(docs/proofs/ledger.md).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from privgp.ledger.account import Account
from privgp.ledger.chain import APPROVAL, Entry, digest
from privgp.ledger.ledger import Ledger
from privgp.models.bounds import private_bounds
from privgp.models.load import estimator_for, pack_model, unpack_model
from privgp.models.published import Published
from privgp.models.rows.tables import rehearsal_inputs
from privgp.models.rows.updates import MEASURED, check_updatable
from privgp.plan.accuracy import expected_std
from privgp.plan.plan import Plan, pack_plan, unpack_plan
from privgp.privacy.guarantee import Guarantee
from privgp.server.declared import LARGEST, Declared, PlanAsked
from privgp.server.errors import Refused, explain, first_line
from privgp.server.settings import Settings
from privgp.server.store import functions
from privgp.server.store.schema import Row
from privgp.server.store.store import Store
from privgp.types import Array

PLAN, RELEASE, UPDATE, FUNCTION = "plan", "release", "update", "function"
Step = Callable[[float, str], None]
STOPPED = (
    "The release stopped half-way: ask again with the same Idempotency-Key. What was charged is not "
    "charged twice."
)
NOT_APPROVED = (
    "The ledger has no approval of this plan: withdraw it and approve it again. Nothing was drawn."
)
MEASURED_AGAIN = "These rows were measured already: an update needs new people. Nothing was spent."
ABOUT_PLAN = "plan {} by key "  # how the chain names decisions; the key of who decided follows
CURVE = 60  # points along every input that a plan states its intervals at


class Keyed(Account):
    """An account whose charges carry the key of one job: made again, they cost nothing."""

    def __init__(self, account: Account, key: str, request: str) -> None:
        super().__init__(account.ledger, account.dataset)
        self.key, self.request = key, request.encode("ascii")

    def charge(
        self,
        guarantee: Guarantee,
        key: str | None = None,
        *,
        request: bytes = b"",
        fingerprint: str | None = None,
    ) -> Entry:
        return super().charge(guarantee, self.key, request=self.request, fingerprint=fingerprint)


@dataclass(frozen=True)
class Work:
    settings: Settings
    ledger: Ledger
    store: Store
    keeper: functions.Keeper

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The work of a server with these settings, on its database."""
        settings.create_folders()
        ledger = Ledger(settings.url, signing_key=settings.key_file, pooled=True)
        store = Store(ledger.database)
        return cls(settings, ledger, store, functions.Keeper(settings, store))

    def run(self, job: Row, step: Step) -> str:
        """Carry a job out; the number of what it made."""
        made = self._plan, self._release, self._update, self._function
        kinds = dict(zip((PLAN, RELEASE, UPDATE, FUNCTION), made, strict=True))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return kinds[job["kind"]](job, self.declaration_of(job["dataset"]), step)

    def declaration_of(self, dataset: str) -> Declared:
        return Declared.from_store(self.store.read_declaration(dataset))

    def account_of(self, dataset: str) -> Account:
        """The account that releases of a dataset are charged to."""
        return self.ledger.account(self.declaration_of(dataset).payer)

    def find_bounds(self, asked: Declared) -> Declared:
        """The same dataset with bounds, which cost a part of its budget: charge, draw, store. The first
        bounds stored are those that everybody gets."""
        account, wanted = self.ledger.account(asked.payer), asked.find_bounds
        assert wanted is not None
        key = f"bounds of {asked.name}"
        kept = account.stored(key)
        if kept is None:
            _, _, y = asked.all_columns(asked.usual_model(), asked.path(self.settings))
            keyed = Keyed(account, key, wanted.model_dump_json())
            given = {**wanted.model_dump(), "protect": asked.protect, "largest": LARGEST}
            made = private_bounds(y, ledger=keyed, **given)
            kept = account.store(key, json.dumps(made.bounds).encode("ascii"))
        return asked.with_bounds(json.loads(kept))

    def read_release(self, row: Row) -> bytes:
        """The stored bytes of a release."""
        found = self.account_of(row["dataset"]).stored(row["ledger_key"])
        assert found is not None
        return found

    def model(self, number: str) -> Published:
        """What answers for a release."""
        return unpack_model(self.read_release(self.store.any_release(number)))

    def _plan(self, job: Row, declared: Declared, step: Step) -> str:
        asked = PlanAsked(**job["asked"])
        step(0.0, "Reading the public columns")
        model = declared.model(asked)
        X, others = declared.public_columns(model, declared.path(self.settings))
        public = 0 if isinstance(X, int) else len(X)  # private records are counted alone
        if asked.inducing is None and public > self.settings.max_exact_rows:
            most = f"{self.settings.max_exact_rows:,}"
            raise Refused(422, f"More than {most} rows: give a number of inducing inputs.")
        step(0.1, "Planning")
        with explain(ValueError, ArithmeticError, NotImplementedError):  # all of it is public
            plan = model.plan(X, **others)
            told = _plan_summary(plan, declared, asked, step)
        guarantee = model._guarantee(plan)
        self.store.add_plan(
            id=job["id"], dataset=job["dataset"], key=job["key"], told=json.dumps(told),
            guarantee=guarantee.to_json(), file=pack_plan(plan), approved_at="", approved_by="",
        )  # fmt: skip
        return str(job["id"])

    def _release(self, job: Row, declared: Declared, step: Step) -> str:
        plan = unpack_plan(self.store.plan_file(job["asked"]["plan"]))
        assert plan.made_for is not None
        self._check_approval(declared.payer, job["asked"]["plan"], plan.hash)
        model = estimator_for(plan.made_for.parameters)
        step(0.1, "Reading the table")
        X, others, y = declared.all_columns(model, declared.path(self.settings))
        step(0.3, "Rehearsing with simulated values")
        trial = clone(model).set_params(hyperparameters="fixed", random_state=0)
        values = model._rehearsal_outputs(len(X))
        pack_model(trial.fit(rehearsal_inputs(model, X), values, plan=plan, **others))

        def draw(account: Keyed) -> Any:
            return model.set_params(ledger=account).fit(X, y, plan=plan, **others)

        return self._answer_once(job, f"plan {job['asked']['plan']}", draw, "", step)

    def _update(self, job: Row, declared: Declared, step: Step) -> str:
        previous = self.store.any_release(job["asked"]["release"])
        data = self.read_release(previous)
        with explain(ValueError):
            check_updatable(unpack_model(data))
        step(0.1, "Reading the table")
        trial = unpack_model(data).set_params(hyperparameters="fixed", random_state=0)
        path = self.settings.tables / job["asked"]["table"]
        if not path.is_file():
            raise Refused(422, "The table of this update was deleted: start another one.")
        X, others, y = declared.all_columns(trial, path)
        step(0.3, "Rehearsing with simulated values")
        values = trial._rehearsal_outputs(len(X))
        try:
            pack_model(trial.update(rehearsal_inputs(trial, X), values, **others))
        except ValueError as problem:  # about public columns: these are nobody's values
            told = MEASURED_AGAIN if str(problem) == MEASURED else first_line(problem)
            raise Refused(422, told) from None

        def draw(account: Keyed) -> Any:
            return unpack_model(data).set_params(ledger=account).update(X, y, **others)

        request = f"update of {previous['id']} by {job['asked']['table']}"
        return self._answer_once(job, request, draw, previous["id"], step)

    def _function(self, job: Row, declared: Declared, step: Step) -> str:
        """A function or paths: the charge pays for all that is ever asked of its file."""
        number = str(job["id"])
        if not self.store.has_function(number):  # once it is there, its file is never made anew
            step(0.1, "Reading the table, and rehearsing with simulated values")
            account, request = self.account_of(job["dataset"]), json.dumps(job["asked"])
            keyed = Keyed(account, f"job {number}", request)
            made = functions.make(self.keeper, number, declared, job["asked"], keyed)
            self.store.add_function(id=number, dataset=job["dataset"], **made)
        return number

    def _check_approval(self, account: str, number: str, plan_hash: str) -> None:
        """Refuse a plan, unless the last decision about it in the chain approves this very plan."""
        last, who, beginning = "", "", ABOUT_PLAN.format(number)
        for entry in self.ledger.check_account(account):
            if str(entry.key).startswith(beginning):
                who = str(entry.key).removeprefix(beginning).partition(":")[0]
                last = f"{entry.kind} {entry.request}"
        if last != f"{APPROVAL} {digest(decision(plan_hash, who))}":
            raise Refused(409, NOT_APPROVED)

    def _answer_once(
        self, job: Row, request: str, draw: Callable[[Keyed], Any], previous: str, step: Step
    ) -> str:
        """Charge, draw, store: the first answer stored is the one that everybody gets."""
        account, key = self.account_of(job["dataset"]), f"job {job['id']}"
        step(0.5, "Measuring with noise and learning from the measurement")
        if account.stored(key) is None:
            account.store(key, pack_model(draw(Keyed(account, key, request))))
        self.store.add_release(
            id=job["id"], dataset=job["dataset"], ledger_key=key, previous=previous
        )
        return str(job["id"])


def decision(plan_hash: str, key: str) -> bytes:
    """What is decided about a plan, of which the chain keeps a hash."""
    return json.dumps({"plan": plan_hash, "key": key}).encode("ascii")


def _plan_summary(
    plan: Plan, declared: Declared, asked: PlanAsked, step: Step
) -> dict[str, object]:
    """What a plan says of itself, all of it public. Errors of several outputs are lists."""
    epsilons = sorted({*asked.compare, asked.epsilon})
    axes = _axes(plan, declared)
    options = []
    for place, epsilon in enumerate(epsilons):
        step(0.2 + 0.7 * place / len(epsilons), f"Computing what epsilon = {epsilon:g} buys")
        at = plan if epsilon == asked.epsilon else plan.at(epsilon)
        stds = [expected_std(part, points) for part in at.parts for *_, points in axes]
        options.append(
            {
                "epsilon": epsilon,
                "delta": at.promised_delta,
                "expected_error": _numbers(at.expected_error()),
                "noise": at.noise.describe(),
                "bars": [_numbers(std) for std in stds],
            }
        )
    step(0.9, "Describing the plan")
    return {
        "epsilon": plan.epsilon,
        "delta": plan.promised_delta,
        "hash": plan.hash,
        "outputs": [*declared.outputs],
        "expected_error": _numbers(plan.expected_error()),
        "error_range": [_numbers(end) for end in plan.error_range()],
        "error_without_privacy": _numbers(plan.error_without_privacy()),
        "summary": plan.summary(),
        "description": plan.describe(),
        "axes": [
            {"input": name, "output": output, "at": at.tolist(), "ticks": ticks}
            for output in declared.outputs
            for name, ticks, at, _ in axes
        ],
        "options": options,
    }


def _axes(plan: Plan, declared: Declared) -> list[tuple[str, str, Array, Array]]:
    """The name of every input without levels, whether it is a date, points along it over public nodes,
    and where the kernel has them, the other inputs in the middle."""
    assert plan.made_for is not None
    nodes, inputs = plan.parts[0].functionals.nodes, plan.made_for.parameters.columns
    numbers = nodes if inputs is None else inputs.back(nodes)
    names = declared.inputs if inputs is None else inputs.names
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    middle = 0.5 * low + 0.5 * high if inputs is None else inputs.middle(numbers)
    made = []
    for place, name in enumerate(names):
        ticks = None if inputs is None else inputs.ticks[place]
        if isinstance(ticks, tuple):
            continue
        points = np.tile(middle, (CURVE, 1))
        points[:, place] = np.linspace(low[place], high[place], CURVE)
        located = points if inputs is None else inputs.coordinates(points)
        made.append((name, "date" if ticks == "date" else "", points[:, place], located))
    return made


def _numbers(value: object) -> object:
    """Numbers of one output, or of each of several, as JSON has them."""
    return np.asarray(finite(value)).tolist()


def finite(value: Any) -> Any:
    """Numbers that JSON can hold, or a refusal."""
    if not np.all(np.isfinite(value)):
        raise Refused(422, "The numbers are too large or too small: choose other units or bounds.")
    return value
