"""Who is protected: one value, one person, one record, or one person's records.

Neighbouring datasets differ in one unit. Whatever depends on the unit asks it: whom the guarantee names,
what it assumes, which facts are public and whether inputs may be published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privgp.privacy.protected import COUNTS, PERSON_COUNTS, Protected, exactly
from privgp.question.outcomes import Wording

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

    def protected(self, wording: Wording) -> Protected:
        """Whom a guarantee protects, of an outcome with this wording."""
        found: Protected = getattr(wording, self.name)
        return found

    def assumed(self, wording: Wording) -> tuple[str, ...]:
        """What a guarantee assumes of an outcome with this wording."""
        return self.assumptions or wording.assumptions

    def limit_change(
        self, wording: Wording, change: float | None
    ) -> tuple[Protected, tuple[str, ...]]:
        """Whom a guarantee protects and what it assumes if one person changes an output by at most
        ``change``; None: from one bound to the other."""
        if change is None or self.limited is None:
            return self.protected(wording), self.assumed(wording)
        limit = self.limit.format(change=exactly(change))
        return self.limited.by(change), (*self.assumed(wording), limit)


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
