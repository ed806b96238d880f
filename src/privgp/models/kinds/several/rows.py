"""The rows that a plan for several outcomes is made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privgp.models.kinds.records import domain, row_count
from privgp.models.planned import PublicRows
from privgp.models.tables import domain_of, records_to_plan
from privgp.plan.several.build import PlannedRows, PrivateInputs, PublicInputs
from privgp.types import Array
from privgp.vault.checks.roles import check_roles
from privgp.vault.people import count_people
from privgp.vault.validate import person_ids

Exposed = Mapping[
    int, Array
]  # the exposure of every row, by the place of the outcome it belongs to


@dataclass(frozen=True)
class Given:
    """The rows that a joint plan is made for. ``planned``: what the plan is made from; ``public``: what
    it is bound to; ``exposed``: the exposures of counts."""

    planned: PlannedRows
    public: PublicRows
    exposed: Exposed


def public_rows(model: Any, X: Array, groups: Any, exposed: Exposed) -> Given:
    """Rows whose inputs are public, where the kernel has them."""
    people = person_ids(groups, len(X))
    exposures = np.column_stack([*exposed.values()]) if exposed else None
    public = PublicRows.of(X, people, exposures)
    return Given(PublicInputs(X, people), public, exposed)


def private_count(model: Any, X: Any, groups: Any) -> Given:
    """Private records: their number, or that of their people, and the declared domain."""
    check_roles(groups, called="groups", X=X)
    pairs = domain(domain_of(records_to_plan(model)))
    count, people = row_count(X), groups is not None
    count = count_people(groups, count) if people else count
    return Given(PrivateInputs(count, pairs, people), PublicRows(count, len(pairs)), {})
