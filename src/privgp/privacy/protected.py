"""Whom a guarantee protects: the unit, and the datasets that it makes hard to distinguish, in words."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True)
class Protected:
    """The unit that a guarantee protects, and the datasets that it makes hard to distinguish.

    Attributes
    ----------
    unit : the part of the data that is protected, such as "one output value"
    neighbours : the datasets that differ in one such unit; it may hold a place ``{change}`` for
        the declared largest change of an output

    """

    unit: str
    neighbours: str

    def by(self, change: float) -> Self:
        """The same, with the most that one person changes an output by, in units of the output."""
        return replace(self, neighbours=self.neighbours.format(change=exactly(change)))


def exactly(change: float) -> str:
    """The shortest decimal that is exactly this number, so that no guarantee is rounded in print."""
    short = f"{change:g}"
    return short if float(short) == change else repr(float(change))


OUTPUTS = Protected(
    "one output value",
    "datasets with the same inputs and the same number of rows that differ in the output value of "
    "one row, within the declared bounds",
)
PERSON = Protected(
    "all output values of one person",
    "datasets with the same inputs and the same person identifiers that differ in the output values "
    "of one person's rows, within the declared bounds",
)
ROW = Protected(
    "all output values of one row",
    "datasets with the same inputs and the same number of rows that differ in the output values of "
    "one row, all of them, within the declared bounds",
)
COUNTS = Protected(
    "one person's contribution to one output value",
    "datasets with the same inputs and the same number of rows that differ in the output value of "
    "one row, by at most {change}",
)
PERSON_COUNTS = Protected(
    "one person's contributions to the output values of one group of rows",
    "datasets with the same inputs and the same identifiers of groups that differ in the output "
    "values of one group's rows, in each by at most {change}",
)
LABELS = Protected(
    "one label",
    "datasets with the same inputs and the same number of rows that differ in the label of one row",
)
PERSON_LABELS = Protected(
    "all labels of one person",
    "datasets with the same inputs and the same person identifiers that differ in the labels of one "
    "person's rows",
)
LABELLED_RECORDS = Protected(
    "one whole record (inputs and label)",
    "datasets with the same number of records that differ in one record, its inputs, within the "
    "declared bounds, and its label",
)
RECORDS = Protected(
    "one whole record (inputs and output)",
    "datasets with the same number of records that differ in one record, its inputs and its output, "
    "within the declared bounds",
)
POINTS = Protected(
    "one point",
    "datasets with the same number of points that differ in the place of one point, within the declared "
    "domain",
)
PEOPLE_RECORDS = Protected(
    "all records of one person (inputs and outputs)",
    "datasets with the same number of people that differ in all records of one person: how many there "
    "are, their inputs and their outputs, within the declared bounds",
)
PEOPLE_LABELLED_RECORDS = Protected(
    "all records of one person (inputs and labels)",
    "datasets with the same number of people that differ in all records of one person: how many there "
    "are, their inputs, within the declared bounds, and their labels",
)
SAME_RECORDS = "the validation records are the records of the releases beside them"
VALIDATION = Protected(
    "one whole validation record (inputs and output)",
    "validation sets with the same number of records that differ in one record, its inputs and its "
    "output",
)
