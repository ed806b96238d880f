"""Releases and plans as documents: what ``inspect`` shows and ``certificate`` writes of a file, and what
is written of a release at new rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from privgp.command.errors import Refusal
from privgp.command.io.columns import in_blocks, refuse_questions
from privgp.command.io.files import open_own, suffix_of, write_json, write_text
from privgp.command.io.kernel_text import write_kernel
from privgp.command.io.results import write_certificate
from privgp.command.io.screen import Step
from privgp.models.load import estimator_for, load
from privgp.models.published import Published
from privgp.plan.inputs.inputs import narrow_kernel
from privgp.plan.plan import Plan, load_plan
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate import certificate, plan_page, plan_statement
from privgp.release.certificate.wording import output_title
from privgp.release.parts import describe_spendings
from privgp.release.queries.quantities import NEAR_DATA
from privgp.release.release import Release
from privgp.tables.parser import list_names
from privgp.types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Facts = dict[str, Any]
Errors = dict[float, float | list[float]]  # by epsilon; a list for several outputs
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True)
class ReleaseDocument:
    """A release from its file."""

    model: Published

    @property
    def guarantee(self) -> Guarantee:
        """That of what was released."""
        return self.model.guarantee_

    def facts(self) -> Facts:
        """For programs."""
        return certificate(self.model)

    def write(self, path: Path, holder: Mapping[str, str] | None) -> None:
        """Write a page or JSON, by the ending of the path."""
        write_certificate(self.model, path, holder)

    def describe(self) -> list[str]:
        """For people."""
        answers, facts = Answers(self.model), self.facts()
        release = answers.release
        hidden = release.parameters.x_bounds is not None
        names, kinds, name = release.names, release.parameters.columns, release.facts.called
        inputs = f"{release.columns} without names" if names is None else list_names(names)
        reach = release.ranges()
        if kinds is not None:
            inputs = "; ".join(kinds.describe())
        charged = []
        if "ledger" in facts:
            entry, dataset = facts["ledger"]["entry"], facts["ledger"]["dataset"]
            charged = ["", f"Charged to '{dataset}' as entry {entry} of the custodian's ledger."]
        return [
            release.guarantee.describe(),
            "",
            *describe_spendings(release.spent),
            f"Inputs: {inputs}. The file contains {'no input' if hidden else 'their values'}.",
            *([f"Range of the inputs: {'; '.join(reach)}."] if reach else []),
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
        for what in ("outputs", "groups", "exposure", "weights"):
            told = facts[what] if isinstance(facts[what], str) else ", ".join(facts[what] or ())
            columns += [f"{what.capitalize()}: {told}."] if told else []
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
            write_text(path, plan_page(facts, figure_bytes(self.plan.plot(), ".png")))
        else:
            write_json(path, facts)


def plain_error(plan: Plan, epsilon: float | None = None) -> float | list[float]:
    """The expected error at an epsilon, a list of them for several outputs; NaN where no noise can be
    calibrated."""
    try:
        error = plan.expected_error(epsilon)
    except ValueError:
        error = math.nan * plan.expected_error()
    plain: float | list[float] = error.tolist() if hasattr(error, "tolist") else error
    return plain


def errors_by_epsilon(plan: Plan, step: Callable[[str], None] = lambda label: None) -> Errors:
    """The expected error at several budgets, the planned one among them."""
    errors: Errors = {}
    for epsilon in sorted({*EPSILONS, plan.epsilon}):
        step(f"Computing what epsilon = {epsilon:g} buys")
        errors[epsilon] = plain_error(plan, epsilon)
    return errors


def open_document(path: Path) -> ReleaseDocument | PlanDocument:
    """A release or a plan, by the ending of its file."""
    if suffix_of(path) == ".plan":
        return PlanDocument(open_own(path, load_plan))
    return ReleaseDocument(open_own(path, load))


BLOCK = 4096
ERROR_BARS = "Intervals: 'privgp predict' gives intervals of the function, and with --observation those of new outputs."
LABEL_BARS = "Intervals: 'privgp predict' gives the probability of every class with its interval."
NO_OBSERVATION = (
    "--observation cannot be used with labels: their probability already describes a new label."
)


@dataclass(frozen=True)
class Answers:
    """Predictions of a release, a column for each number that is told of an outcome."""

    model: Published

    @property
    def release(self) -> Release:
        return self.model._released

    def check(self, observation: bool) -> None:
        """Refuse intervals of new outputs where there are labels alone."""
        if observation and all(one.parameters.labels() for one, _ in self.outcomes):
            raise Refusal(NO_OBSERVATION)

    @cached_property
    def outcomes(self) -> list[tuple[Release, str]]:
        """The release of every outcome alone, and what the names of its columns begin with."""
        names = self.release.output_names
        prefixes = [""] if names is None else [f"{name}_" for name in names]
        return [*zip(self.release.each, prefixes, strict=True)]

    def steps(self, rows: int) -> int:
        return -(-rows // BLOCK)

    def at(
        self, X: pl.DataFrame, step: Step, coverage: float, observation: bool, simultaneous: bool
    ) -> dict[str, Array]:
        """The columns by name, by blocks of rows, so that any number fits into memory; all rows in one
        block where intervals contain the function at all of them at once."""
        size, parts = max(X.height, 1) if simultaneous else BLOCK, []
        asked: Any = {"observation": observation, "simultaneous": simultaneous}
        for rows in in_blocks(self.release.names, X, size, step, "Predicting row"):
            with refuse_questions():
                parts.append(self.model.predict_frame(rows, coverage, **asked))
        columns = {
            name: np.concatenate([np.asarray(part[name]) for part in parts])
            for name in parts[0].columns
        }
        numbers = [each for each in columns.values() if each.dtype.kind == "f"]
        if not np.all(np.isfinite(numbers)):
            raise Refusal("Some rows are too far away: their predictions would overflow.")
        return columns

    def plot(self, observation: bool, points: pl.DataFrame | None = None) -> Figure:
        with refuse_questions():
            asked = {"observation": True} if observation else {}
            figure: Figure = self.model.plot(points=points, **asked)
            return figure

    def describe(self, observation: bool) -> str:
        """What the columns are about, in words."""
        told = []
        for one, _ in self.outcomes:
            rates = one.parts[0].unit_rate is not None
            what = "a new output" if observation else "the rate" if rates else "the function"
            told.append("the probabilities" if one.parameters.labels() else what)
        return " and ".join(dict.fromkeys(told))

    def map_columns(self) -> dict[str, str]:
        """The columns whose contours make a map, by what is shown."""
        shown: dict[str, str] = {}
        for one, prefix in self.outcomes:
            labels, title = one.parameters.labels(), self.title(one, prefix.removesuffix("_"))
            shown |= {
                f"probability of {each}": f"{prefix}probability_{each}" for each in labels or ()
            }
            shown |= {} if labels else {title: f"{prefix}mean"}
        return shown

    def title(self, one: Release, name: str) -> str:
        called = self.release.facts.called or {}
        rates = one.parts[0].unit_rate is not None and not name
        per = rates and not str(called.get("units")).startswith("per ")
        return f"{name or called.get('name', 'output')}{' per unit of exposure' if per else ''}"

    def facts(self, columns: Mapping[str, str]) -> dict[str, Any]:
        """The columns for a program, by what they hold; of several outcomes a list of them."""
        if self.release.output_names is None:
            return dict(columns)
        held: dict[str, list[str]] = {}
        shared = {name: column for name, column in columns.items() if name == NEAR_DATA}
        for name, written in columns.items():
            if name in shared:
                continue
            prefix = next(each for _, each in self.outcomes if name.startswith(each))
            held.setdefault(name.removeprefix(prefix), []).append(written)
        return {**held, **shared}

    def describe_fit(self) -> list[str]:
        """What was learned of every outcome."""
        lines, bars = [], dict[str, None]()
        for one, prefix in self.outcomes:
            name, labels = prefix.removesuffix("_"), one.parameters.labels()
            lines.append(_kernel_line(one, f" of {name}" if name else ""))
            if labels:
                lines.append(f"Classes: {list_names(labels)}.")
            else:
                lines.append(_variance_line(one, name or "an output"))
            bars[LABEL_BARS if labels else ERROR_BARS] = None
        return [*lines, *bars]


def _kernel_line(release: Release, of: str) -> str:
    kernel, inputs = release.parts[0].models[0].kernel, release.parameters.columns
    kernel = kernel if inputs is None else narrow_kernel(inputs, kernel)
    return f"Most plausible kernel{of}: {write_kernel(kernel, figures=4)}."


def _variance_line(release: Release, output: str) -> str:
    (part,) = release.parts
    scattered = f"{output} about the function"
    if part.unit_rate is not None:
        scattered = "a count over its mean"
    return f"Variance of {scattered}: {part.noise_variance:.4g}."
