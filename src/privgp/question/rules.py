"""What does not go together, once, with the reason and the proof page that states it.

The estimators, the command and the server check these rules and report them: Python names parameters, the
command the options that say them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from privgp.question.outcomes import has_private_inputs
from privgp.question.parameters import BY_NAME, Parameter, choices

OUTCOME = "outcome"  # what is private: one of the next three
ONE, SEVERAL, LABELS = "one output", "several outputs", "labels"
# What is given beside the parameters: columns of the table.
COLUMNS = {name: Parameter(name, "") for name in ("groups", "exposure", "sample_weight")}
GIVEN = "given"  # in the place of a column
# What is protected where inputs are public, and where they are private.
PUBLIC = tuple(word for word in choices("protect") if not has_private_inputs(word))
PRIVATE = tuple(word for word in choices("protect") if has_private_inputs(word))


@dataclass(frozen=True)
class Rule:
    """Parameters that must be left out.

    Attributes
    ----------
    names : tuple of str
        The parameters, or columns, that keep their defaults.
    where : str
        The parameter or column that this depends on, or "outcome".
    values : tuple
        What it is where the rule holds.
    reason : str
    proof : str
        The page of ``docs/proofs`` that states it.
    allows : type, or none
        Values of this type are allowed.
    harmless : tuple
        Values that are allowed, as they ask for what is done anyway.

    """

    names: tuple[str, ...]
    where: str
    values: tuple[str | None, ...]
    reason: str
    proof: str
    allows: type | tuple[type, ...] = ()
    harmless: tuple[str, ...] = ()

    def check(self, given: Mapping[str, object]) -> None:
        where = given.get(self.where, "")
        if not isinstance(where, str | None) or where not in self.values:
            return
        words = f"rows without {self.where}" if where is None else f"{self.where}={where!r}"
        words = self.where if where == GIVEN else words
        words = words if self.where != OUTCOME else str(where)
        for name in self.names:
            own = BY_NAME.get(name) or COLUMNS[name]
            value = given.get(name, own.default)
            allowed = isinstance(value, self.allows) or (
                isinstance(value, str) and value in self.harmless
            )
            if not own.is_default(value) and not allowed:
                raise ValueError(
                    f"{name} does not go with {words}: {self.reason} "
                    f"(docs/proofs/{self.proof}.md). Leave {name}={own.default!r}."
                )


RULES = (
    Rule(("x_bounds",), "protect", PUBLIC,
         "public inputs need no bounds", "measure"),
    Rule(("objective", "reconstruct"), "protect", PRIVATE,
         "they weigh noise at the inputs of rows, which are private", "records"),
    Rule(("most_rows",), "protect", PRIVATE,
         "all records of a person count as one, whatever their number", "features"),
    Rule(("max_change",), "protect", PRIVATE,
         "a person changes a whole record", "records"),
    Rule(("inducing",), "protect", PRIVATE,
         "points are inputs of rows, which are private; a whole number limits the bins or "
         "features", "records", Integral),
    Rule(("exposure",), "protect", PRIVATE,
         "exposures are public, and that of a private record is as private as the record; every "
         "record counts over one unit", "counts"),
    Rule(("noise_variance",), "protect", PRIVATE,
         "a private record has no public noise variance", "records", Real),
    Rule(("noise_variance",), "likelihood", ("poisson",),
         "how counts scatter follows from their rate", "counts", Real),
    Rule(("exposure",), "likelihood", ("gaussian",),
         "it is what counts are counted over", "counts"),
    Rule(("objective", "reconstruct", "most_rows"), "likelihood", ("poisson",),
         "a rate is no linear function of the counts", "counts"),
    Rule(("objective", "reconstruct", "most_rows"), OUTCOME, (SEVERAL,),
         "the noise of all outputs is chosen together, for posteriors", "several_outputs"),
    Rule(("shares",), OUTCOME, (ONE, LABELS),
         "one output has the whole budget", "several_outputs"),
    Rule(("link", "prevalence"), OUTCOME, (ONE, SEVERAL),
         "it is for labels, and others are no probabilities", "classes"),
    Rule(("y_bounds", "noise_variance", "objective", "reconstruct", "max_change",
          "likelihood", "most_rows", "exposure"), OUTCOME, (LABELS,),
         "a label is one of the classes, and no number", "classes"),
    Rule(("sample_weight",), "protect", PRIVATE,
         "the weight of a private record is as private as the record, so declare max_weight", "weights"),
    Rule(("max_weight",), "protect", PUBLIC,
         "public weights need no bound", "weights"),
    Rule(("reconstruct",), "sample_weight", (GIVEN,),
         "unbiased values are what a model without weights would predict, plus noise", "weights"),
    Rule(("residuals",), "protect", PRIVATE,
         "what is subtracted from an output would depend on its private input", "residuals",
         harmless=("never",)),
    Rule(("residuals",), "likelihood", ("poisson",),
         "how counts scatter follows from their rate, so no width is learned", "residuals",
         harmless=("never",)),
    Rule(("residuals",), OUTCOME, (SEVERAL,),
         "the budget is shared between outputs, and not between stages", "residuals",
         harmless=("never",)),
    Rule(("objective", "reconstruct"), "residuals", ("always",),
         "the first stage has to tell a curve, which unbiased values are not", "residuals"),
    Rule(("max_change",), "residuals", ("always",),
         "what one person changes is declared, and need not be clipped", "residuals"),
    Rule(("most_rows",), "groups", (None,),
         "it is for people with several rows, so give groups", "inducing"),
    Rule(("objective", "reconstruct"), "mechanism", ("laplace",),
         "its sums are over groups of inputs, and these weigh every input separately", "partition"),
)  # fmt: skip


def check_rules(given: Mapping[str, object], outcome: str) -> None:
    """Refuse what does not go together.

    Parameters
    ----------
    given : mapping
        Parameters by name, and columns: ``groups`` and ``exposure``, None where there are none. What is
        absent is not checked.
    outcome : {"one output", "several outputs", "labels"}
        What is private.

    """
    for rule in RULES:
        rule.check({**given, OUTCOME: outcome})


def check_column_roles(
    inputs: Sequence[str],
    outputs: Sequence[str],
    groups: str | None = None,
    exposure: str | None = None,
    weights: str | None = None,
    *,
    private: bool = False,
) -> None:
    """Refuse columns of a table in two roles. ``private``: whether inputs and people are, too."""
    if len({*inputs}) < len(inputs) or not inputs:
        raise ValueError("inputs must be names of different columns.")
    if len({*outputs}) < len(outputs):
        raise ValueError("output must be names of different columns.")
    others = {
        "be among the inputs": inputs,
        "name the people": (groups,),
        "be the exposure": (exposure,),
        "be the sample weights": (weights,),
    }
    for role, names in others.items():
        for name in outputs:
            if name in names:
                raise ValueError(f"the private output {name!r} cannot {role}.")
    if private and groups in inputs:
        raise ValueError(f"the private identifiers {groups!r} cannot be among the inputs.")
