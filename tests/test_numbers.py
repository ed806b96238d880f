"""Numbers of the house that may only fall. Lower a limit when its number fell."""

from __future__ import annotations

import pytest

from tests.house import numbers
from tests.house.source import PACKAGE, SOURCE, House

HOUSE = House.built()
MOST_ASKS = 36
MOST_ANY = 473
MOST_METHODS = 25
MOST_PARTICIPLES = 47
MOST_MODULES = 40
MOST_FILES = 256


def test_few_places_ask_which_kind_they_have():
    assert numbers.kind_asks(HOUSE) <= MOST_ASKS


@pytest.mark.parametrize(
    "text",
    [
        "def f(model):\n    return model.protect == 'records'",
        "def f(model):\n    return 1 if model.labels() is None else 2",
        "def f(model):\n    return model.inducing is not None",
        "def f(model):\n    return are_several(model.y_bounds)",
    ],
)
def test_a_planted_ask_is_counted(text):
    planted = HOUSE.planted("privgp.plan.build", text)
    assert numbers.kind_asks(planted) == numbers.kind_asks(HOUSE) + 1


def test_a_docstring_asks_nothing():
    planted = HOUSE.planted("privgp.plan.build", 'def f():\n    """If protect == 1."""')
    assert numbers.kind_asks(planted) == numbers.kind_asks(HOUSE)


def test_types_are_named():
    assert numbers.uses_of_any(HOUSE) <= MOST_ANY


def test_no_class_does_everything():
    large = {
        n: count for n, count in numbers.methods_per_class(HOUSE).items() if count > MOST_METHODS
    }
    assert not large


def test_functions_are_called_by_verbs_and_nouns():
    assert len(numbers.participles(HOUSE)) <= MOST_PARTICIPLES


def test_no_modules_import_each_other_in_a_circle_lazy_imports_too():
    assert not numbers.circles(HOUSE)


def test_a_planted_circle_is_found_unless_it_is_for_the_type_checker():
    late = "def f():\n    from privgp.plan.plan import Plan\n    return Plan"
    found = numbers.circles(HOUSE.planted("privgp.plan.strategy", late))
    assert any({"privgp.plan.strategy", "privgp.plan.plan"} <= circle for circle in found)
    typed = "if TYPE_CHECKING:\n    from privgp.plan.plan import Plan\n"
    assert numbers.circles(HOUSE.planted("privgp.plan.strategy", typed)) == numbers.circles(HOUSE)


def test_a_plain_fit_runs_few_modules():
    ran = numbers.modules_of_a_plain_fit()
    assert "privgp.vault.measure" in ran
    assert len(ran) <= MOST_MODULES


def test_the_package_has_few_files():
    assert sum(1 for _ in (SOURCE / PACKAGE).rglob("*.py")) <= MOST_FILES
