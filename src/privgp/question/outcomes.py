"""What is measured about a person: a number between bounds, a count, a label, or where they are.

An outcome is declared without looking at the data. It states the bounds or classes, so that values
outside them are clipped or counted in no class. It also states how many functions are learned of it,
what is measured besides, how to put it in words, and which estimator and parameters learn it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from privgp.privacy.protected import (
    COUNTS,
    LABELLED_RECORDS,
    LABELS,
    OUTPUTS,
    PEOPLE_LABELLED_RECORDS,
    PEOPLE_RECORDS,
    PERSON,
    PERSON_COUNTS,
    PERSON_LABELS,
    RECORDS,
    Protected,
    exactly,
)

if TYPE_CHECKING:
    from privgp.types import Pair


REGRESSOR, CLASSIFIER, POINTS = "PrivateGPRegressor", "PrivateGPClassifier", "PrivateGPDensity"
UNKNOWN_HIGH = (
    "Count needs high, the largest plausible count, such as Count(high=50): larger counts are clipped "
    "to it, and plans expect rates of about half of it."
)
PUBLIC_ROWS = "the inputs, the number of rows and any person identifiers are public"


@dataclass(frozen=True)
class Wording:
    """What guarantees and plans say of an outcome.

    Attributes
    ----------
    outputs, person, records, people_records : Protected
        Who is protected, by unit: one value, one person, one record, one person's records.
    values : str
        What is totalled.
    limited : str
        How it is limited.
    assumptions : tuple of str
        What is assumed where inputs are public.
    error_unit : str
        What an error is counted in.

    """

    outputs: Protected
    person: Protected
    records: Protected
    people_records: Protected
    values: str
    limited: str
    assumptions: tuple[str, ...]
    error_unit: str


NUMBER_WORDING = Wording(
    OUTPUTS,
    PERSON,
    RECORDS,
    PEOPLE_RECORDS,
    "values",
    "each value clipped to the declared range",
    (PUBLIC_ROWS, "kernel, bounds, targets and budget were chosen without looking at the outputs"),
    "in units of the output",
)
COUNT_WORDING = replace(NUMBER_WORDING, error_unit="relative to the rate")
LABEL_WORDING = Wording(
    LABELS,
    PERSON_LABELS,
    LABELLED_RECORDS,
    PEOPLE_LABELLED_RECORDS,
    "labels",
    "each label counted in its declared class",
    (PUBLIC_ROWS, "kernel, classes, targets and budget were chosen without looking at the labels"),
    "as a probability",
)


class Outcome(ABC):
    """One private column of a table. A kind of outcome says what is different about it.

    Attributes
    ----------
    estimator : str
        The name of the estimator that learns this outcome alone.
    has_rate : bool
        Whether it has a rate, in multiples of a unit, over an exposure.
    has_squares : bool
        Whether squared values hold more information than values.
    scatters : bool
        Whether values scatter about the function with their own variance.
    column : bool
        Whether a column of the table holds it.
    wording : Wording
    unneeded : str, optional
        What a plan need not read, if other than the values.
    exposure : str, optional
        The name of the public column that counts are counted over.

    """

    estimator: ClassVar[str] = REGRESSOR
    has_rate: ClassVar[bool] = False
    has_squares: ClassVar[bool] = False
    scatters: ClassVar[bool] = True
    column: ClassVar[bool] = True
    wording: ClassVar[Wording] = NUMBER_WORDING
    unneeded: ClassVar[str | None] = None
    exposure: str | None = None

    @property
    def functions(self) -> int:
        """How many functions are learned of it."""
        return 1

    @property
    def bounds(self) -> tuple[Pair, ...]:
        """The declared bounds (low, high), if any."""
        return ()

    @property
    def codes(self) -> Classes | None:
        """The declared classes in the order of their codes; None: values are numbers."""
        return None

    def within(self) -> str:
        """Where values lie, in words."""
        ((low, high),) = self.bounds
        return f"in [{low:g}, {high:g}]"

    def describe_declaration(self) -> str:
        """What the custodian declared, in words."""
        return f"outputs {self.within()}"

    def describe_change(self, most: float) -> str:
        """How one person changes what is measured, by at most ``most``, in words."""
        return f"one person changes one output by at most {exactly(most)}"

    @abstractmethod
    def parameters(self, protect: str) -> dict[str, object]:
        """The parameters of the estimator that declare this outcome.

        Parameters
        ----------
        protect : {"outputs", "records"}
            What the release protects.

        """


@dataclass(frozen=True)
class Number(Outcome):
    """A number, clipped to the declared bounds.

    Parameters
    ----------
    low, high : float
        Public bounds, chosen without looking at the values.

    """

    has_squares: ClassVar[bool] = True
    low: float
    high: float

    @classmethod
    def of(cls, bounds: Pair, max_change: float | None, exposure: str | None) -> Number:
        """From the parameters ``bounds``, ``max_change`` and ``exposure`` of a regressor."""
        return cls(*bounds)

    @property
    def bounds(self) -> tuple[Pair, ...]:
        """(low, high), public."""
        return ((self.low, self.high),)

    def parameters(self, protect: str) -> dict[str, object]:
        """The parameters of an estimator for this outcome, given what to ``protect``."""
        return {"y_bounds": (self.low, self.high)}


@dataclass(frozen=True)
class Count(Outcome):
    """A count with a rate that varies over the inputs.

    Parameters
    ----------
    max_change : float
        How much one person changes one count. Under ``protect="records"`` a whole record is replaced,
        its count included, and this is not used.
    high : float
        The largest plausible count. Larger counts are clipped to it.
    exposure : str, optional
        The name of a public column: what every count is counted over, such as a population.
    low : float
        The least plausible count. Smaller counts are raised to it.

    """

    has_rate: ClassVar[bool] = True
    wording: ClassVar[Wording] = COUNT_WORDING
    max_change: float | None = 1.0
    high: float | None = None
    exposure: str | None = None
    low: float = field(default=0.0, kw_only=True, repr=False)

    @classmethod
    def of(cls, bounds: Pair, max_change: float | None, exposure: str | None) -> Count:
        """From the parameters ``bounds``, ``max_change`` and ``exposure`` of a regressor."""
        if bounds[0] < 0:
            raise ValueError("likelihood='poisson' is for counts: y_bounds must not be negative.")
        return cls(max_change, bounds[1], exposure, low=bounds[0])

    @property
    def bounds(self) -> tuple[Pair, ...]:
        """(low, high), public."""
        return () if self.high is None else ((self.low, self.high),)

    def parameters(self, protect: str) -> dict[str, object]:
        """The parameters of an estimator for this outcome, given what to ``protect``."""
        if self.high is None:
            raise ValueError(UNKNOWN_HIGH)
        change = None if has_private_inputs(protect) else self.max_change
        return {"y_bounds": (self.low, self.high), "likelihood": "poisson", "max_change": change}


Classes = tuple[str, ...] | tuple[bool, ...] | tuple[int, ...] | tuple[float, ...]
CLASS_TYPES = (str, bool, int, float)
MOST_CLASSES = 100
LARGEST_CLASS = 10**18  # which an array of numbers holds


def check_classes(classes: object) -> Classes:
    """The classes, sorted as scikit-learn sorts them; ValueError unless they can be classes."""
    if classes is None:
        raise ValueError(
            "classes must be declared: all labels that may occur, chosen without looking at them."
        )
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise ValueError("classes must be a list of labels.")
    # scalars of NumPy as numbers and texts of Python
    found = [each.item() if getattr(each, "ndim", None) == 0 else each for each in classes]
    if not 2 <= len(found) <= MOST_CLASSES:
        got = "1 class" if len(found) == 1 else f"{len(found)} classes"
        raise ValueError(f"classes must be 2 to {MOST_CLASSES} labels, got {got}.")
    kinds = {type(each) for each in found}
    if not kinds <= set(CLASS_TYPES) or (len(kinds) > 1 and kinds != {int, float}):
        raise ValueError("classes must be all numbers or all text.")
    if not all(abs(each) < LARGEST_CLASS for each in found if not isinstance(each, str)):
        raise ValueError("classes must not be NaN or infinite, or numbers of 19 digits and more.")
    if len(kinds) > 1:
        found = [float(each) for each in found]
    if len(set(found)) < len(found):
        raise ValueError("classes must differ from each other.")
    return tuple(sorted(found))


@dataclass(frozen=True, init=False)
class Label(Outcome):
    """One of several declared classes.

    Parameters
    ----------
    *classes : str or number
        All classes that may occur, two or more. A label that is none of them is counted in no class.

    """

    estimator: ClassVar[str] = CLASSIFIER
    scatters: ClassVar[bool] = False
    wording: ClassVar[Wording] = LABEL_WORDING
    classes: tuple[object, ...]

    def __init__(self, *classes: object) -> None:
        object.__setattr__(self, "classes", classes)

    @property
    def functions(self) -> int:
        """Two classes have one function, more have one each."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def codes(self) -> Classes:
        """The classes, sorted as scikit-learn sorts them."""
        return check_classes(self.classes)

    def within(self) -> str:
        """The declared classes, in words."""
        return f"one of {', '.join(map(str, self.classes))}"

    def describe_declaration(self) -> str:
        """What the custodian declared, in words."""
        return f"declared classes {', '.join(map(str, self.classes))}"

    def parameters(self, protect: str) -> dict[str, object]:
        """The parameters of an estimator for this outcome, given what to ``protect``."""
        return {"classes": list(self.classes)}


@dataclass(frozen=True)
class Presence(Outcome):
    """That a record is there: where records lie is private, and nothing else is measured of them.

    What is released is the number of records per unit of length, area or volume of the declared domain.
    """

    estimator: ClassVar[str] = POINTS
    has_rate: ClassVar[bool] = True
    column: ClassVar[bool] = False
    wording: ClassVar[Wording] = COUNT_WORDING
    unneeded: ClassVar[str | None] = "no place of a record"

    def within(self) -> str:
        """What every record counts as, in words."""
        return "one for every record"

    def describe_declaration(self) -> str:
        """What the custodian declared, in words."""
        return "records that are counted where they lie"

    def describe_change(self, most: float) -> str:
        """In words: ``most`` is what is left in one bin and added in another."""
        return "one person has one of them, which moves from one bin to another"

    def parameters(self, protect: str) -> dict[str, object]:
        """Nothing is declared of a record, whatever to ``protect``."""
        return {}


# What a regressor's outputs are, by its parameter ``likelihood``.
BY_LIKELIHOOD: Mapping[str, type[Number | Count]] = {"gaussian": Number, "poisson": Count}


WITHOUT_LOOKING = (
    "kernel, bounds of inputs and outputs, targets and budget were chosen without looking at "
    "the records"
)


@dataclass(frozen=True)
class Unit:
    """Who neighbours differ in.

    Attributes
    ----------
    name : {"outputs", "person", "records", "people_records"}
        The field of a ``Wording`` that says who is protected.
    noun : {"row", "person"}
        What one of them is called.
    private_inputs : bool
        Whether inputs are private too.
    several_rows : bool
        Whether all rows of one person are protected together.
    assumptions : tuple of str
        What is assumed where inputs are private.
    limited : Protected, optional
        Who is protected where one person changes an output by less than its range.
    limit : str
        What is assumed then.

    """

    name: str
    noun: str
    private_inputs: bool
    several_rows: bool
    assumptions: tuple[str, ...] = ()
    limited: Protected | None = None
    limit: str = ""

    def whom(self, wording: Wording) -> Protected:
        """Whom a guarantee protects, of an outcome with this wording."""
        found: Protected = getattr(wording, self.name)
        return found

    def assumptions_of(self, wording: Wording) -> tuple[str, ...]:
        """What a guarantee assumes of an outcome with this wording."""
        return self.assumptions or wording.assumptions

    def limit_change(
        self, wording: Wording, change: float | None
    ) -> tuple[Protected, tuple[str, ...]]:
        """Whom a guarantee protects and what it assumes if one person changes an output by at most
        ``change``; None: from one bound to the other."""
        if change is None or self.limited is None:
            return self.whom(wording), self.assumptions_of(wording)
        limit = self.limit.format(change=exactly(change))
        return self.limited.by(change), (*self.assumptions_of(wording), limit)


ONE_VALUE = Unit(
    "outputs", "row", private_inputs=False, several_rows=False, limited=COUNTS,
    limit="one person changes one output value alone, and that by at most {change}",
)  # fmt: skip
ONE_PERSON = Unit(
    "person", "person", private_inputs=False, several_rows=True, limited=PERSON_COUNTS,
    limit="one person changes the output values of one group of rows alone, each by at most {change}",
)  # fmt: skip
ONE_RECORD = Unit(
    "records", "row", private_inputs=True, several_rows=False,
    assumptions=("the number of records is public", WITHOUT_LOOKING),
)  # fmt: skip
ONE_PERSONS_RECORDS = Unit(
    "people_records", "person", private_inputs=True, several_rows=True,
    assumptions=(
        "the number of people is public, and the person identifiers are right", WITHOUT_LOOKING,
    ),
)  # fmt: skip
# By what is private ("outputs" or "records"), and whether rows of one person are protected together.
UNITS: Mapping[tuple[str, bool], Unit] = {
    ("outputs", False): ONE_VALUE,
    ("outputs", True): ONE_PERSON,
    ("records", False): ONE_RECORD,
    ("records", True): ONE_PERSONS_RECORDS,
}


def has_private_inputs(protect: str) -> bool:
    """Whether inputs are private too, by the parameter ``protect``."""
    return any(unit.private_inputs for (word, _), unit in UNITS.items() if word == protect)


def unit_for(protect: str, *, several_rows: bool) -> Unit:
    """Who is protected.

    Parameters
    ----------
    protect : str
        The parameter of a model.
    several_rows : bool
        Whether rows of one person are protected together, so that ``groups`` were given.

    """
    if (protect, several_rows) not in UNITS:
        asks = "goes without groups" if several_rows else "needs groups, which say whose a row is"
        raise ValueError(f"protect={protect!r} {asks}.")
    return UNITS[protect, several_rows]
