"""Every mechanism that the product has, by every entry point, has a row of replay.

What there is comes from the product: estimators with their ways from the adversary suite, which has a
row for every guarantee that is made; commands and options from the command itself; fields and addresses
from the server. Whatever is new fails here until it has a row, or is named as harmless.
"""

from __future__ import annotations

import re
import shlex

from privgp.models.search.grid import METHODS
from privgp.privacy.noise import LAWS
from privgp.server.declared import Declared, PlanAsked
from privgp.server.store.functions import FunctionAsked, PathsAsked
from privgp.tables.kinds import KINDS
from tests.adversary.mechanisms import ROWS
from tests.adversary.replay.command import COMMANDS
from tests.adversary.replay.python import ESTIMATORS, KINDS_OF_COLUMNS
from tests.adversary.replay.running import run
from tests.adversary.replay.server import DECLARED, FIXED, OTHERS, PLAN, ROUTES, SERVED
from tests.command.running import subcommands

LINES = [shlex.split(line) for row in COMMANDS.values() for line in row.lines]
NO_TABLE = {
    "demo", "serve", "audit trade-off", "audit membership", "paths calibrate", "paths tune"
}  # fmt: skip
# Options about how tables and results are written, and those that choose among public computations.
# --keep copies private columns: the custodian's own word.
HARMLESS = {
    "--force", "--seed", "--scheduler", "--delimiter", "--decimal-comma", "--decimal-point",
    "--encoding", "--date-format", "--numbers", "--crs", "--missing", "--name", "--units", "--holder",
    "--template", "--objective", "--for-error", "--contours", "--grid-bounds", "--coverage", "--observation", "--noise", "--noise-variance", "--vote", "--smoothing",
    "--n-paths", "--extra-noise", "--sensitivity", "--max-points", "--dominance", "--acquisition",
    "--loss", "--head", "--reserve", "--selection-share", "--further-bounds", "--noise-std",
    "--keep",
}  # fmt: skip
HARMLESS_FIELDS = {"reserve", "compare", "n_paths", "max_points"}


def test_every_mechanism_of_the_adversary_suite_has_a_row():
    assert {f"{kind.__name__}, {name}" for name, kind, _ in ROWS} <= {*ESTIMATORS}


def test_every_kind_of_private_column_has_a_row():
    assert {*KINDS_OF_COLUMNS} == {*KINDS} - {"number"}
    assert {f"private {each}" for each in KINDS_OF_COLUMNS} <= {*ESTIMATORS} & {*COMMANDS}


def test_every_command_that_sees_a_private_table_has_a_row():
    begun = {tuple(line[:count]) for line in LINES for count in (1, 2)}
    assert {name for name in subcommands() if tuple(name.split()) not in begun} == NO_TABLE


def test_every_option_has_a_row():
    written = {word for line in LINES for word in line}
    options = {
        word
        for name, command in subcommands().items()
        if name not in NO_TABLE
        for option in command.params
        if not written & {*option.opts}
        for word in option.opts[:1]
        if word.startswith("-")
    }
    assert options <= HARMLESS
    assert {*LAWS, *METHODS, "measured", "kusner", "records", "poisson", "unbiased"} <= written


def test_every_field_of_the_server_has_a_row():
    known = {
        field
        for asked in (Declared, PlanAsked, FunctionAsked, PathsAsked)
        for field in asked.model_fields
    }
    given = {*DECLARED, *PLAN, "table", "public_inputs"}
    for row in SERVED.values():
        given |= {*row.declared, *(row.plan or {}), *(row.function or {})}
    assert known - given == HARMLESS_FIELDS


def test_every_address_of_the_server_is_visited(tmp_path):
    visited = set()
    for name in ("updated", "function"):
        left = run(SERVED[name], 0, tmp_path).left
        visited |= {way.split(": ", 1)[1] for way in left if way.startswith("headers of ")}
    addresses = [
        f"{method} {route}"
        for method, route in ROUTES
        if (method, route) not in OTHERS and route not in FIXED
    ]
    assert len(addresses) > 20
    patterns = {each: re.sub(r"{\w+}", "[^/]+", each.replace(".", r"\.")) for each in addresses}
    missed = [
        each
        for each, form in patterns.items()
        if not any(re.fullmatch(form, way) for way in visited)
    ]
    assert missed == []
