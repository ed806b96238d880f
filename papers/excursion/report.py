"""Excursion sets from one private sample path: tables 1 to 4 and figures 4, 7 and 8 of Maciazek 2026.

Paper's method: the bounds of its author's scripts, settings chosen by cross-entropy. Default: the least
proved bounds, settings chosen for one path, and a filter over the path chosen on synthetic data.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from papers.excursion.london import London, LondonTask
from papers.excursion.map import london
from papers.excursion.plumes import SIDE, plumes
from papers.excursion.printed import DIMENSION, GAP, OPEN, PATH, TABLE_1, TABLE_2, TABLE_3, Cell
from papers.excursion.rows import LINE_SEARCH, PLANE_SEARCH, ROUNDS, Effort, Row, Setting
from papers.excursion.tables import LAYOUTS, NOISES, PLUME_NOISES, SIZES, Found, Layout
from papers.excursion.tasks import (
    GRID,
    LEAST_WIDTH,
    MOST_PIECES,
    PLUME_WIDTHS,
    STEEPNESS,
    VOLUMES,
)
from papers.shared.parallel import for_each
from papers.shared.report import Report, Request, Result, Section

FULL, QUICK = Effort(1000, 1000, 1000, 50, 40), Effort(12, 12, 40, 5, 3)
FULL_LARGE, QUICK_LARGE = Effort(40, 24, 150, 20, 15), Effort(5, 5, 12, 5, 1)


def _ranges(search: dict[str, Any]) -> str:
    ends = [f"{values[0]:.3g} to {values[-1]:.3g}" for values in search.values()]
    return f"Lengthscales are searched from {ends[0]} and r from {ends[1]}"


def _cell(cell: Cell) -> str:
    median, low, high = cell
    return f"{median:g} [{low:g}, {high:g}]"


WORDS = {
    1: ("Delta 0.005. Paper's method: settings of the least mean cross-entropy, under the bound of the "
        "author's scripts. It is that of lemma B.7 divided by the root of 2, which holds with one input "
        f"(docs/proofs/paths.md). {_ranges(LINE_SEARCH)}, and beyond in {ROUNDS} refinements. With two "
        f"inputs: {_ranges(PLANE_SEARCH).lower()}.",
        f"Functions are drawn as the scripts draw them. On {GRID} points they reject those whose set has a "
        f"volume outside {VOLUMES[0]:g} to {VOLUMES[1]:g}, more than {MOST_PIECES} pieces, or pieces narrower "
        f"than {LEAST_WIDTH:g} on average. The paper does not mention it.",),
    2: (f"Table 1 prints an effective dimension of {TABLE_1[DIMENSION][0][0]:g} and an IoU of one path of "
        f"{TABLE_1[PATH][2][0]:g} where this table prints {TABLE_2[DIMENSION][0][0]:g} and "
        f"{TABLE_2[PATH][2][0]:g}.",),
    3: (f"Delta 0.5/n. The printed gap for 50 records, {_cell(TABLE_3[GAP][0])}, is that of noise to signal "
        f"0.43 in table 2, {_cell(TABLE_2[GAP][1])}; the printed medians {TABLE_3[PATH][0][0]:g} and "
        f"{TABLE_3[OPEN][0][0]:g} are {100 * (1 - TABLE_3[PATH][0][0] / TABLE_3[OPEN][0][0]):.0f}% apart.",),
    4: (f"Delta 0.001. Plumes have the defaults of the author's script, widths of {PLUME_WIDTHS[0]:g} to "
        f"{PLUME_WIDTHS[1]:g} and a steepness of {STEEPNESS:g}, and its filter of 2 of 60 pixels. The scripts' bound with two inputs is the generic "
        "one divided by the root of 2, which is false (docs/proofs/paths.md): these rows of the paper's "
        "method guarantee less than epsilon 10 and serve the comparison only.",),
}  # fmt: skip
SHORT = "A short run: two inputs have 100 records here, and columns are missing."


class Job(Protocol):
    def run(self) -> Row | London | None: ...


def run(request: Request) -> Report:
    """All tables and figures; the map of London where the data are."""
    lines, planes = settings(request.quick)
    jobs: list[Job] = [LondonTask(request.data, request.quick), *planes, *lines]
    request.progress(0.0, "tables 1 to 4 and London")
    answers = for_each(
        _run, jobs, lambda count: request.progress(0.95 * count / len(jobs), "tables 1 to 4")
    )
    rows = [answer for answer in answers if isinstance(answer, Row)]
    rows.sort(key=lambda row: (row.setting.side, row.setting.records, row.setting.noise))
    results, details, sections = _tables(rows, (SHORT,) if request.quick else ())
    request.progress(0.95, "figures")
    flat = {row.setting.noise: row for row in rows if row.setting.side}
    side = 21 if request.quick else SIDE
    for number, noise, count in ((7, 0.5, 3), (8, 0.1, 1)):
        more, drawn = plumes(number, flat[noise], 1 if request.quick else count, side)
        results += more
        sections += drawn
    mapped = answers[0] if isinstance(answers[0], London) else None
    more, section = london(mapped)
    request.progress(1.0, "done")
    return Report(
        name="excursion",
        title="Excursion sets from one private sample path (Maciazek 2026, tables 1 to 4, figures 4, 7 and 8)",
        results=(*results, *more),
        sections=(
            sections[0],
            section,
            *sections[1:],
            Section("Not private as published", _PRIVACY),
        ),
        details=tuple(details),
    )


def settings(quick: bool) -> tuple[list[Setting], list[Setting]]:
    """The columns of the tables with one input and with two, those that take longest first."""
    small, large = (QUICK, QUICK_LARGE) if quick else (FULL, FULL_LARGE)
    sizes = [n for n in reversed(SIZES) if n != 100 and (not quick or n == 50)]
    lines = [Setting(n, 0.5, 0.5 / n, small) for n in sizes]
    lines += [Setting(100, noise, 0.005, small) for noise in NOISES]
    records, side = (100, 10) if quick else (400, 20)
    noises = [noise for noise in PLUME_NOISES if not quick or noise != 0.3]
    return lines, [Setting(records, noise, 0.001, large, side) for noise in noises]


def _run(job: Job) -> Row | London | None:
    return job.run()


def _tables(
    rows: list[Row], note: tuple[str, ...]
) -> tuple[list[Result], list[Result], list[Section]]:
    lines = [row for row in rows if not row.setting.side]
    by_noise: Found = {row.setting.noise: row for row in lines if row.setting.records == 100}
    by_size: Found = {row.setting.records: row for row in lines if row.setting.noise == 0.5}
    flat: Found = {row.setting.noise: row for row in rows if row.setting.side}
    results: list[Result] = []
    details: list[Result] = []
    sections = [Section("Which to take", _advice(rows))]
    for layout, found in zip(LAYOUTS, (by_noise, by_noise, by_size, flat), strict=True):
        medians, ends = layout.results(found)
        (details if layout.number == 2 else results).extend(medians)
        details += ends
        said = (*WORDS[layout.number], _effort(found), *_inside(layout, found), *note)
        sections.append(layout.section(found, said))
    for row in rows:
        where = _where(row.setting)
        results += [
            Result(f"IoU of one path, scripts' bounds, settings chosen for a path, {where}", None,
                row.papers_for_a_path, None),
            Result(f"IoU of PrivateGPRegressor for records, {where}", None, None, row.regressor),
            Result(f"IoU of one path on the same data, {where}", None, None, row.path_there),
        ]  # fmt: skip
    return results, details, sections


def _effort(found: Found) -> str:
    """Which numbers of draws these columns rest on, beside the paper's."""
    settings, each = [row.setting for row in found.values()], []
    for e in sorted({setting.effort for setting in settings}, key=lambda e: -e.judged):
        same = [setting for setting in settings if setting.effort == e]
        records = " or ".join(map(str, sorted({setting.records for setting in same})))
        tuned, judged = same[0].points
        each.append(
            f"{records} records: {e.tuned} draws of {tuned} points to tune on, {e.chosen} to choose "
            f"cutoffs and filters, {e.judged} of {judged} points to judge, {e.repeats} paths each"
        )
    return (
        f"This run, with {ROUNDS} rounds of refinement: {'; '.join(each)}. The paper: 1,000 draws, 800 "
        "points, 50 paths, two rounds."
    )


def _inside(layout: Layout, found: Found) -> tuple[str, ...]:
    """Of every quantity, in how many columns the median lies within the printed quartiles."""
    said = []
    for quantity, cells in layout.printed.items():
        printed = zip(layout.columns, cells, strict=True)
        rows = [(found[c].papers[quantity][0], cell) for c, cell in printed if c in found]
        if all(len(cell) == 3 for _, cell in rows):
            within = sum(low <= value <= high for value, (_, low, high) in rows)
            said.append(f"{quantity} in {within} of {len(rows)}")
    return (f"Medians here lie within the printed quartiles: {', '.join(said)}.",) if said else ()


def _where(setting: Setting) -> str:
    inputs = "two inputs" if setting.side else "one input"
    return f"{inputs}, {setting.records} records, noise to signal {setting.ratio:.2f}"


def _advice(rows: list[Row]) -> tuple[str, ...]:
    said = [
        f"{_where(row.setting)}: one path {row.path_there:.3f}, regressor {row.regressor:.3f}."
        for row in rows
    ]
    return (
        "Median overlap (intersection over union) of the released set with the true one, whole "
        "records private, epsilon 10, the same data. One path at its best setting against the mean "
        "of PrivateGPRegressor(protect='records') with learned hyperparameters:",
        *said,
    )


_PRIVACY = (
    "The guarantee of figure 4 is about one hexagon, as the paper says, and not about one sale. A sale "
    "that had been in another place changes two hexagons: epsilon 10 and delta for one give epsilon 20 "
    "and (1 + e^10) delta for two, with delta = n^-1.1 at n = 1,075 a delta of "
    f"{(1 + math.exp(10)) * 1075**-1.1:.0f}, where 1 and more guarantees nothing. "
    "It may also fill an empty hexagon or empty one, which changes n and the places, both taken as "
    "public. A sale whose price alone is changed is protected as stated.",
    "The paper's bounds are never less than those that docs/proofs/rdp.md proves. Its draws are floating-point numbers, about which no theorem speaks.",
)
