"""Releases and plans as documents: what ``inspect`` shows and ``certificate`` writes of a file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from privgp.command.errors import Refusal
from privgp.command.io.answers import Answers
from privgp.command.io.files import open_own, suffix_of, whole_file
from privgp.command.io.results import write_certificate
from privgp.models.load import estimator_for, load
from privgp.models.published import Published
from privgp.plan.plan import Plan, load_plan
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate import certificate, plan_page, plan_statement
from privgp.release.certificate.wording import output_title
from privgp.release.spendings import describe_spendings
from privgp.tables.parser import list_names

Facts = dict[str, Any]
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Document(Protocol):
    """A file that can be shown and certified."""

    @property
    def guarantee(self) -> Guarantee | None:
        """That of what was released; None where nothing was."""

    def facts(self) -> Facts:
        """For programs."""

    def describe(self) -> list[str]:
        """For people."""

    def write(self, path: Path, holder: Mapping[str, str] | None) -> None:
        """A page or JSON, by the ending of the path."""


@dataclass(frozen=True)
class ReleaseDocument:
    """A release from its file."""

    model: Published

    @property
    def guarantee(self) -> Guarantee:
        return self.model.guarantee_

    def facts(self) -> Facts:
        return certificate(self.model)

    def write(self, path: Path, holder: Mapping[str, str] | None) -> None:
        write_certificate(self.model, path, holder)

    def describe(self) -> list[str]:
        answers, facts = Answers(self.model), self.facts()
        release = answers.release
        hidden = release.parameters.x_bounds is not None
        names, kinds, name = release.names, release.parameters.columns, release.facts.called
        inputs = f"{release.columns} without names" if names is None else list_names(names)
        reach: list[str] = []
        if kinds is not None:
            from privgp.plan.inputs.inputs import ranges

            inputs = "; ".join(kinds.describe())
            reach = [] if hidden else [*ranges(kinds, release.parts[0].functionals.nodes)]
        charged = []
        if "ledger" in facts:
            entry, dataset = facts["ledger"]["entry"], facts["ledger"]["dataset"]
            charged = ["", f"Charged to '{dataset}' as entry {entry} of the holder's ledger."]
        return [
            release.guarantee.describe(),
            "",
            *describe_spendings(release.spent),
            f"Inputs: {inputs}; the file contains {'none' if hidden else 'their values'}.",
            *([f"They have {'; '.join(reach)}."] if reach else []),
            *([] if name is None else [f"Output: {output_title(name)}."]),
            *answers.describe_fit(),
            "",
            "The plan it was made with:",
            *release.facts.plan_summary.splitlines(),
            *charged,
        ]


@dataclass(frozen=True)
class PlanDocument:
    """A plan from its file. Nothing of it has been spent."""

    plan: Plan

    @property
    def guarantee(self) -> None:
        return None

    @cached_property
    def own_guarantee(self) -> Guarantee:
        """The guarantee of a release by this plan."""
        assert self.plan.made_for is not None
        made: Guarantee = estimator_for(self.plan.made_for.parameters)._guarantee(self.plan)
        return made

    def facts(self) -> Facts:
        return self._statement({self.plan.epsilon: plain_error(self.plan)})

    def _statement(self, errors: Mapping[float, object]) -> Facts:
        return plan_statement(self.plan, self.own_guarantee, errors)

    def describe(self) -> list[str]:
        facts = self.facts()
        columns = [f"Inputs: {'; '.join(facts['columns']) or 'without names'}."]
        for what in ("groups", "exposure"):
            columns += [f"{what.capitalize()}: {facts[what]}."] if facts[what] else []
        return [
            f"A plan, hash {facts['hash']}. Nothing has been spent.",
            "",
            "A release by this plan would have this guarantee:",
            self.own_guarantee.describe(),
            "",
            *columns,
            *facts["description"].splitlines(),
        ]

    def write(self, path: Path, holder: Mapping[str, str] | None) -> None:
        if holder is not None:
            raise Refusal("--holder is for the certificate of a release, not for a plan.")
        from privgp.pictures.style import figure_bytes

        facts = self._statement(errors_by_epsilon(self.plan))
        if path.suffix == ".html":
            text = plan_page(facts, figure_bytes(self.plan.plot(), ".png"))
        else:
            text = json.dumps(facts, indent=2) + "\n"
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")


def plain_error(plan: Plan, epsilon: float | None = None) -> object:
    """The expected error at an epsilon, a list of them for several outputs; NaN where no noise can be
    calibrated."""
    try:
        error = plan.expected_error(epsilon)
    except ValueError:
        error = math.nan * plan.expected_error()
    return error.tolist() if hasattr(error, "tolist") else error


def errors_by_epsilon(
    plan: Plan, step: Callable[[str], None] = lambda label: None
) -> dict[float, object]:
    """The expected error at several budgets, the planned one among them."""
    errors: dict[float, object] = {}
    for epsilon in sorted({*EPSILONS, plan.epsilon}):
        step(f"Computing what epsilon = {epsilon:g} buys")
        errors[epsilon] = plain_error(plan, epsilon)
    return errors


def open_document(path: Path) -> Document:
    """A release or a plan, by the ending of its file."""
    if suffix_of(path) == ".plan":
        return PlanDocument(open_own(path, load_plan))
    return ReleaseDocument(open_own(path, load))
