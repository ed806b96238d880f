"""Every line of code knows its room: imports go down, and only the vault computes on private values.

Every rule is also shown to fail: on a copy of the house, as text, with a violation planted in it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.house import kinds, order, private, quiet
from tests.house.source import SOURCE, House, Module, room_of

MOST_FILES, MOST_LINES = 15, 37_342
HOUSE = House.built()


def new_ones(found: set, left: set) -> list:
    return sorted(found - left)


@cache
def watch() -> private.Watch:
    return private.Watch(HOUSE)


@cache
def violations() -> frozenset[str]:
    return frozenset(watch().violations())


def test_the_walk_sees_the_whole_house():
    assert {"vault", "plan", "release", "models", "command"} <= set(map(room_of, HOUSE.modules))
    assert "privgp.vault.validate" in HOUSE.needs(HOUSE.modules["privgp.vault.measure"])
    watched = {flow.function.module.name for flow in watch().flows if flow.names}
    assert {
        "privgp.models.regressor",
        "privgp.command.io.columns",
        "privgp.command.io.spending",
        "privgp.command.paths",
        "privgp.models.binned",
        "privgp.models.kept",
        "privgp.models.search.bayes",
    } <= watched
    fits = [flow for flow in watch().flows if flow.function.node.name == "fit"]
    assert len(fits) >= 6
    assert all(flow.names for flow in fits)  # every estimator's fit is handed something private
    assert watch().fields  # kept states


# the order of the rooms


def test_imports_go_downwards_lazy_ones_too():
    assert not order.upward_imports(HOUSE)


def test_no_cycle_between_rooms_nor_between_modules_at_import():
    assert not order.cycle(order.room_graph(HOUSE))
    assert not order.cycle(order.module_graph(HOUSE))


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("privgp.plan.build", "def peek():\n    from privgp.vault import measure\n"),
        ("privgp.privacy.budget", "if TYPE_CHECKING:\n    import privgp.plan.strategy\n"),
        ("privgp.storage.archive", "from privgp.gp import arithmetic"),
        ("privgp.pictures.style", "from ..gp import arithmetic"),
        ("privgp.gp.priors", "import privgp.privacy.budget as money"),
        ("privgp.vault.measure", "from privgp import models"),
        ("privgp.release.records", "from papers import reports"),
        ("privgp.models.load", "import privgp"),
    ],
)
def test_a_planted_upward_import_is_found(module, text):
    (found,) = order.upward_imports(HOUSE.planted(module, text))
    assert found[0] == module


def test_a_planted_cycle_is_found():
    between_rooms = HOUSE.planted("privgp.gp.priors", "def f():\n    import privgp.plan.build\n")
    assert {"gp", "plan"} <= set(order.cycle(order.room_graph(between_rooms)))
    assert not order.cycle(order.module_graph(between_rooms))  # it is late
    between_modules = HOUSE.planted("privgp.vault.validate", "import privgp.vault.measure")
    assert "privgp.vault.validate" in order.cycle(order.module_graph(between_modules))


# the one path that spends


def test_nothing_but_publish_charges_an_account():
    assert order.charging(HOUSE) == {"privgp.publish"}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("privgp.models.regressor", "def pay(model):\n    model.ledger.charge(model.guarantee_)"),
        ("privgp.command.release", "from privgp.publish import charge\n\ncharge(None)"),
        (
            "privgp.server.work",
            "def pay(account):\n    return account.answer(None, '', b'', bytes)",
        ),
    ],
)
def test_a_planted_charge_is_found(module, text):
    assert order.charging(HOUSE.planted(module, text)) == {"privgp.publish", module}


# its size


def crowded(root: Path) -> dict[str, int]:
    return {name: n for name, n in order.files_per_folder(root).items() if n > MOST_FILES}


def test_no_folder_is_crowded():
    assert not crowded(SOURCE)


def test_one_file_too_many_is_a_crowd(tmp_path):
    (tmp_path / "room").mkdir()
    for number in range(MOST_FILES + 1):
        assert not crowded(tmp_path)
        (tmp_path / "room" / f"{number}.py").touch()
    assert crowded(tmp_path) == {"room": MOST_FILES + 1}


def test_the_package_is_small():
    assert order.lines_of_code() <= MOST_LINES


# private values


def test_nothing_outside_the_vault_computes_on_private_values():
    assert not new_ones(violations(), private.LEFT)


def test_no_private_value_enters_a_public_room():
    assert not private.private_in_public_rooms(HOUSE)


PLANTED = {
    "models: arithmetic in a function": (
        "privgp.models.rows.fit",
        "def doubled(X):\n    inputs = seal_inputs(X, 3)\n    return 2.0 * inputs",
    ),
    "models: a mean of what the vault checked": (
        "privgp.models.regressor",
        "def mean_of(X, rows):\n    z = seal_columns(X, 1, rows)\n    return np.mean(z)",
    ),
    "models: a branch on an output": (
        "privgp.models.rows.fit",
        "def first(y):\n    return 1 if y[0] else 0",
    ),
    "models: an output in an error": (
        "privgp.models.regressor",
        "def refuse(y):\n    raise ValueError(f'{y}')",
    ),
    "models: inputs of records": (
        "privgp.models.paths",
        "def largest(X):\n    inputs = seal_inputs(X, 2)\n    return X.max()",
    ),
    "models: handed to a function that is not watched": (
        "privgp.models.search.outputs",
        "def helper(values):\n    return values\n\n\ndef fit_other(y):\n    return helper(y)",
    ),
    "models: a public method that returns outputs": (
        "privgp.models.regressor",
        "class Open:\n    def training_data(self, y):\n        return y",
    ),
    "models: what is nested": (
        "privgp.models.search.bayes",
        "def outer():\n    return lambda y_val: sum(y_val)",
    ),
    "command: a total of the private column": (
        "privgp.command.paths",
        "def total(frame, source):\n    return output_column(frame, 'cost', source).sum()",
    ),
    "command: a column of a loaded table": (
        "privgp.command.release",
        "from privgp.tables.source import load\n\n\n"
        "def column(source):\n    frame = load(source, ['cost'])\n    return frame['cost']",
    ),
    "command: private inputs of a request": (
        "privgp.command.search",
        "def widest(request):\n    X, people, y = request.all_columns('cost')\n    return X.max()",
    ),
    "command: planned by private inputs": (
        "privgp.command.io.spending",
        "def informed(request, model):\n    X, people, y = request.all_columns('cost')\n"
        "    return model.plan(X, people)",
    ),
    "command: shown on the screen": (
        "privgp.command.function",
        "from privgp.command.io.columns import output_column\n\n\n"
        "def show(frame, source):\n    tell({}, [output_column(frame, 'cost', source)], None)",
    ),
    "command: arithmetic while reading": (
        "privgp.command.io.columns",
        "def halves(frame, name, source):\n    return output_column(frame, name, source) / 2",
    ),
    "models: the private column of a table": (
        "privgp.models.rows.files",
        "def most(table):\n    return max(table.output)",
    ),
    "server: a total of the private column": (
        "privgp.server.work",
        "def total(declared, path):\n    X, people, y = declared.all_columns(path)\n    return y.sum()",
    ),
    "server: a cell of a table in a refusal": (
        "privgp.server.declared",
        "def refuse(model, table):\n"
        "    X, y, people, over = columns_to_fit(model, table.inputs, table.output)\n"
        "    raise Refused(422, f'{y[0]}')",
    ),
    "states: a model that keeps outputs": (
        "privgp.models.paths",
        "class Keeping:\n    def fit(self, X, y):\n        self._outputs = y",
    ),
    "states: a model that keeps them in a dict": (
        "privgp.models.paths",
        "class Hiding:\n    def fit(self, X, y):\n        vars(self)['outputs'] = y",
    ),
    "states: a dataclass that keeps an array": (
        "privgp.models.paths",
        "class Held:\n    values: Array\n\n\ndef keep(y):\n    return Held(y)",
    ),
    "states: a look into what the vault keeps": (
        "privgp.models.paths",
        "class Curious:\n    def spread(self):\n        return self._kept.contents.draws.outputs.std()",
    ),
    "states: a look by name": (
        "privgp.models.kept",
        "def spread(made):\n    return getattr(made, '_kept').contents.draws.outputs.std()",
    ),
    "states: a look from the command": (
        "privgp.command.paths",
        "def spread(made):\n    return made._kept.contents.draws.outputs * 2",
    ),
}


@cache
def violations_planted() -> frozenset[str]:
    """Of one house with all of them in it."""
    house = HOUSE
    for module, text in PLANTED.values():
        house = house.planted(module, text)
    return frozenset(private.Watch(house).violations())


def functions_in(module: str, text: str) -> list[str]:
    planted = Module(module, text, is_package=False)
    return [f"{module}.{each.title}: " for each in private.functions_of(planted)]


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_computation_on_private_values_is_found(planted):
    places = tuple(functions_in(*PLANTED[planted]))
    assert [found for found in violations_planted() if found.startswith(places)]


def test_nothing_but_what_was_planted_is_found():
    places = tuple(place for planted in PLANTED.values() for place in functions_in(*planted))
    found = violations_planted() - violations()
    assert all(each.startswith(places) for each in found)


HANDED_ON = """
def fit_none(y):
    if y is None:
        raise ValueError
    y = seal_outcome(y, None, 3)
    del y

def count(y):
    return len(y)

def fit_others(model, X, y, groups):
    fit_columns(model, X, y, groups, None, dict)
"""


def test_handing_private_values_on_is_no_violation():
    house = HOUSE.planted("privgp.models.rows.estimator", HANDED_ON)
    assert private.Watch(house).violations() == violations()


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("privgp.plan.build", "def scaled(y):\n    return y / 2"),
        ("privgp.plan.bins.bins", "class More:\n    def sums(self, outputs):\n        return 0"),
        ("privgp.release.answers", "def residuals(self, y_val):\n    return y_val"),
    ],
)
def test_a_planted_private_value_in_a_public_room_is_found(module, text):
    assert private.private_in_public_rooms(HOUSE.planted(module, text))


# the vault


def test_the_vault_keeps_quiet():
    assert not quiet.loud(HOUSE)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("privgp.vault.measure", "def show(y):\n    print(y)"),
        ("privgp.vault.measure", "import logging"),
        ("privgp.vault.measure", "def keep(y):\n    np.save('y', y)"),
        ("privgp.vault.validate", "def refuse(y):\n    raise ValueError(y)"),
        ("privgp.vault.validate", "def refuse(y):\n    raise ValueError(f'{y[0]} is too large')"),
        ("privgp.vault.validate", "from privgp.storage import archive"),
        ("privgp.vault.measure", "from privgp.tables.parser import read_rows"),
        ("privgp.vault.measure", "from privgp.plan.plan import anything"),
        ("privgp.vault.states.outputs", "def keep(path):\n    return open(path)"),
        ("privgp.vault.states.kept", "def refuse(c, y):\n    raise ValueError(c.too_many(y, 1))"),
        (
            "privgp.vault.states.paths",
            "def refuse(draws):\n    raise ValueError('no: ' + str(draws.outputs))",
        ),
        ("privgp.vault.states.paths", "def check(d):\n    require(False, str(d.outputs))"),
        ("privgp.vault.states.records", "import pickle"),
    ],
)
def test_a_planted_word_of_the_vault_is_found(module, text):
    found = quiet.loud(HOUSE.planted(module, text))
    assert found
    assert all(each.startswith(module) for each in found)


# kinds of noise, strategies, plans and draws


def test_kinds_are_asked_for_only_where_they_are_built():
    assert not new_ones(kinds.asked_kinds(HOUSE), kinds.LEFT)


@pytest.mark.parametrize(
    "text",
    [
        "def f(noise):\n    return isinstance(noise, GaussianNoise | LaplaceNoise)",
        "def f(plan):\n    return type(plan.strategy) is OutputSums",
        "def f(plan):\n    match plan:\n        case Bins():\n            return 1",
    ],
)
def test_a_planted_question_of_kind_is_found(text):
    assert new_ones(kinds.asked_kinds(HOUSE.planted("privgp.release.parameters", text)), kinds.LEFT)


# what is left to tidy


def test_the_tables_name_nothing_that_is_gone():
    assert not private.LEFT - violations()
    assert not kinds.LEFT - kinds.asked_kinds(HOUSE)
    titles = {f"{f.title} {each.arg}" for f in watch().functions for each in f.parameters}
    named = {*private.PUBLIC_PARAMETERS, *private.PRIVATE_PARAMETERS, *private.TRUSTED_PARAMETERS}
    assert named <= titles
    reading = [each for module in HOUSE.room("tables") for each in private.functions_of(module)]
    functions = [*watch().functions, *watch().vault_functions.values(), *reading]
    names = {each.node.name for each in functions}
    assert names >= private.RELEASED | private.READERS | private.KEEPERS | private.TABLES
    assert {name for name, place in private.PUBLIC_ELEMENTS} <= names


def test_nothing_is_left_to_tidy():
    assert not private.LEFT
    assert not kinds.LEFT
