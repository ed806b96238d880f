"""``privgp bounds``: find bounds of a private column with a part of the budget."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from privgp.command import options as o
from privgp.command.errors import Refusal
from privgp.command.io.files import MANY_TABLES, check_files, is_many, write_json
from privgp.command.io.screen import progress, tell

if TYPE_CHECKING:
    from privgp.models.bounds import PrivateBounds
    from privgp.types import Array

SHARE_HELP = "The share of the values that the bounds should cover."
LOW_HELP = "A known lower bound, such as 0 for costs. Default: the lower bound is found as well."
SMALLEST_HELP = (
    "A magnitude below which values need not be distinguished, chosen without looking at them."
)
LARGEST_HELP = "A magnitude that no value exceeds, chosen without looking at them."
EPSILON_HELP = "The budget to spend on the bounds; a tenth of the total is usual."
OUT_HELP = "Also write the bounds and what they guarantee: a .json file; it may be published."


def bounds(
    data: o.ManyData,
    output: o.Output,
    epsilon: Annotated[float, o.privacy(EPSILON_HELP)],
    charge: o.Charge,
    form: o.NumberForm,
    protect: o.Protect = "outputs",
    missing: o.Missing = "refuse",
    share: Annotated[float, o.privacy(SHARE_HELP)] = 0.95,
    low: Annotated[float | None, o.privacy(LOW_HELP)] = None,
    smallest: Annotated[float, o.privacy(SMALLEST_HELP)] = 0.01,
    largest: Annotated[float, o.privacy(LARGEST_HELP)] = 1e9,
    out: Annotated[Path | None, o.destination("FILE", OUT_HELP)] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Find bounds of a private column, for custodians who cannot declare them. Spends epsilon."""
    check_files([(data, MANY_TABLES)], [(out, (".json",))], force=force)
    from privgp.command.io.accounts import charge_facts
    from privgp.command.io.columns import refuse_questions
    from privgp.command.io.spending import guard_budget
    from privgp.models.bounds import check_question, private_bounds

    with refuse_questions():
        check_question(epsilon, share, low, smallest, largest)
    account = charge.account
    with progress(2) as step:
        step("Reading the column")
        y = _column(data, output, form, drops=missing == "drop")
        step("Counting with noise")
        with guard_budget(epsilon, 0.0) as saved:
            found = private_bounds(
                y, epsilon=epsilon, share=share, low=low, smallest=smallest, largest=largest,
                protect=protect, ledger=account, random_state=charge.seed,
            )  # fmt: skip
            del y
            facts: dict[str, object] = {
                "column": output,
                "bounds": [found.low, found.high],
                "share": found.share,
                "simulation": found.guarantee.is_simulation,
                "guarantee": loads(found.guarantee.to_json()),
            }
            if out is not None:
                write_json(out, facts)
                saved.append(out)
    charged, lines = charge_facts(found)
    facts |= {"file": out, "spent": True, **charged}
    written_to = [] if out is None else [f"Written to {out}."]
    tell(facts, [*_lines(found, output), *lines, *written_to], found.guarantee, as_json=json)
    charge.note(data)


def _column(data: Path, output: str, form: o.NumberForm, *, drops: bool) -> Array:
    """The private values; rows without one are left out where that was asked for."""
    from privgp.command.io.columns import check_decimals, output_column, whole_rows
    from privgp.tables.source import Form, load, open_many, open_source

    many = is_many(data)
    source = open_many(data) if many else open_source(data, Form(**vars(form)), [])
    frame = load(source, [output])
    if drops:
        frame = whole_rows(frame, {})
    if frame.height == 0:
        raise Refusal(f"Column '{output}' of '{data}' has no value.")
    check_decimals(source)
    return output_column(frame, output, source)


def _lines(found: PrivateBounds, output: str) -> list[str]:
    ends = f"{found.low:g} {found.high:g}"
    return [
        f"Bounds of {output}: {found.low:g} to {found.high:g}. Give them to plan and release as "
        f"--bounds {ends}.",
        f"They are meant to cover {found.share:.0%} of the values; values outside are clipped.",
        f"This spent epsilon = {found.guarantee.epsilon:g}, and a release within the bounds spends its own epsilon on top.",
        "",
        found.guarantee.describe(),
    ]
