"""Parameters are declared once: estimators, files, command and server agree with the table."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from typer.main import get_command

from privgp import PrivateGP, PrivateGPClassifier, PrivateGPRegressor
from privgp.command.app import app
from privgp.gp.links import LABEL_LINKS
from privgp.plan.parameters import LabelParameters, Parameters
from privgp.privacy.budget import MAX_EPSILON
from privgp.privacy.noise import LAWS
from privgp.question.outcomes import REGRESSOR
from privgp.question.parameters import (
    BY_NAME,
    EVERY,
    TABLE,
    Choice,
    Chosen,
    check_values,
    choices,
    names_of,
)
from privgp.question.rules import COLUMNS, LABELS, ONE, OUTCOME, RULES, SEVERAL, check_rules
from privgp.server.declared import Declared, PlanAsked

ESTIMATORS = {each.__name__: each for each in (PrivateGPRegressor, PrivateGPClassifier, PrivateGP)}
OWN = {"PrivateGP": {"outcomes", "inputs", "groups"}}  # which are no parameters of others
PROOFS = Path(__file__).parents[2] / "docs" / "proofs"


@pytest.mark.parametrize("name", EVERY)
def test_constructors_take_the_parameters_of_the_table_with_their_defaults(name: str) -> None:
    taken = {each.name: each for each in fields(ESTIMATORS[name])}
    assert {*taken} - OWN.get(name, set()) == {*names_of(name)}
    for own in names_of(name):
        assert taken[own].default == BY_NAME[own].default
        assert (
            f"{own} :" in ESTIMATORS[name].__doc__
            or f"{own}," in ESTIMATORS[name].__doc__
            or (f", {own} :" in ESTIMATORS[name].__doc__)
        )


def test_files_keep_the_parameters_of_the_table() -> None:
    kept = {each.name for each in fields(Parameters)} | {
        each.name for each in fields(LabelParameters)
    }
    assert kept == {each.name for each in TABLE if each.kept}
    for each in fields(Parameters):
        if each.default is not MISSING:  # absent from older files, which then have the default
            assert each.default == BY_NAME[each.name].default


def test_what_is_a_word_or_a_number_is_kept_as_the_table_says() -> None:
    own = [each for each in TABLE if each.kept and REGRESSOR in each.estimators]
    plain = {e.name for e in own if e.values is not None and not getattr(e.values, "others", False)}
    assert {each.name for each in fields(Chosen)} == plain
    hints = get_type_hints(Chosen, include_extras=True)
    for name in plain:
        declared = get_args(hints[name])
        if isinstance(BY_NAME[name].values, Choice):
            assert declared == (str, choices(name))


def test_words_and_limits_are_those_of_what_uses_them() -> None:
    assert choices("mechanism") == ("auto", *LAWS)
    assert choices("link") == (*LABEL_LINKS,)
    most = {name: getattr(BY_NAME[name].values, "most", None) for name in BY_NAME}
    assert most["epsilon"] == MAX_EPSILON


def options_of(command: str) -> dict[str, Any]:
    every: Any = get_command(app)
    return {name: each for each in every.commands[command].params for name in each.opts}


@pytest.mark.parametrize("command", ["plan", "release"])
def test_the_command_has_an_option_for_every_parameter(command: str) -> None:
    found = options_of(command)
    for each in TABLE:
        for option in each.options or ["--" + each.name.replace("_", "-")]:
            if command == "plan" and each.name in ("ledger", "random_state"):
                continue  # a plan spends nothing and draws nothing
            assert option in found, f"{each.name} has no option {option}"
            if each.values is not None and each.name not in ("epsilon", "delta"):
                assert found[option].default == each.default


def test_the_server_takes_what_the_table_says() -> None:
    asked = {"dataset": Declared, "plan": PlanAsked}
    for each in TABLE:
        for where, schema in asked.items():
            total = where == "dataset" and each.name in ("epsilon", "delta")  # of all releases
            if each.values is not None and not total:
                assert (each.name in schema.model_fields) == (each.served == where), each.name
    for word in ("mechanism", "hyperparameters"):
        assert get_args(PlanAsked.model_fields[word].annotation) == choices(word)


@pytest.mark.parametrize("name", [each.name for each in TABLE if each.values is not None])
def test_bad_values_are_refused_by_name(name: str) -> None:
    points = name == "inducing"  # which are checked where they are used
    for bad in (-1,) if points else ("no such word", -1, -1.0, float("nan"), True):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            check_values({name: bad})


def other(name: str) -> Any:
    """A value that is no default."""
    values = getattr(BY_NAME.get(name), "values", None)
    words = getattr(values, "words", ())
    return next((w for w in words if w != BY_NAME[name].default), [[1.0]] if not words else None)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.names[0]} {rule.where}")
def test_every_rule_refuses_and_has_a_proof_page(rule: Any) -> None:
    assert (PROOFS / f"{rule.proof}.md").is_file()
    for name in rule.names:
        assert name in BY_NAME or name in COLUMNS
        for value in rule.values:
            outcome = value if rule.where == OUTCOME else ONE
            assert outcome in (ONE, SEVERAL, LABELS)
            with pytest.raises(ValueError, match=f"^{name} does not go with .*{rule.proof}.md"):
                rule.check({rule.where: value, name: other(name)})
            rule.check({rule.where: value, name: (BY_NAME.get(name) or COLUMNS[name]).default})


def test_what_goes_together_passes() -> None:
    check_rules({"protect": "records", "x_bounds": (0, 1), "inducing": 9}, ONE)
    check_rules({"likelihood": "poisson", "exposure": [1.0], "protect": "outputs"}, SEVERAL)
    check_rules({"link": "probit"}, LABELS)
    check_rules({"most_rows": 3, "groups": ["a"]}, ONE)
