"""Help: a dozen options that matter, all of them on demand, an example, and no words of programmers."""

from __future__ import annotations

import re
import shlex

import pytest

from privgp.command.app import EXAMPLES, MOST_SHOWN
from tests.command.running import run, subcommands

COMMANDS = subcommands()
OPTION = re.compile(r"^  (--[a-z-]+)", re.MULTILINE)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_is_short_and_help_all_is_complete(command):
    short, whole = (run(*command.split(), word) for word in ("--help", "--help-all"))
    assert (short.code, short.err, whole.code, whole.err) == (0, "", 0, "")
    shown = [p for p in COMMANDS[command].params if p.param_type_name == "option" and not p.hidden]
    assert len(OPTION.findall(short.out)) == min(MOST_SHOWN, len(shown))
    assert {*OPTION.findall(whole.out)} == {each.opts[0] for each in shown}
    assert {each.opts[0] for each in shown if each.required} <= {*OPTION.findall(short.out)}
    for text in (short.out, whole.out):
        assert not re.search(r"<bool>|\[\[|\{[A-Z]", text)
        assert "Example" in text


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_examples_name_options_that_are_there(command):
    program, *line = shlex.split(EXAMPLES[command])
    words = command.split()
    assert (program, line[: len(words)]) == ("privgp", words)
    known = {option for p in COMMANDS[command].params for option in p.opts}
    assert {word for word in line if re.match("--?[a-z]", word)} <= known
    required = {p.opts[0] for p in COMMANDS[command].params if p.required and p.opts[0][0] == "-"}
    assert required - {*line} <= ({"--out"} if "-o" in line else set())


def test_a_release_says_what_was_spent_and_the_error_to_expect(tmp_path, monkeypatch):
    from tests.command.running import people_table

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    people_table().write_csv("v.csv")
    line = (
        "release v.csv --inputs age --output cost --bounds 0 5000 --epsilon 1 --delta 0 -o v.privgp"
    )
    told = run(*line.split(), "--hyperparameters", "fixed").out
    assert "Spent: epsilon = 1, delta = 0." in told
    assert re.search(r"at most \d\d(\.\d)?% of the time", told)
    assert "Expected error: " in told


@pytest.mark.parametrize("command", ["", "audit", "function", "ledger", "paths", "search"])
def test_a_command_with_subcommands_names_them_and_no_kinds_of_values(command):
    shown = run(*command.split(), "--help")
    assert shown.code == 0
    assert shown.out.startswith(f"Usage: {' '.join(['privgp', *command.split()])} COMMAND")
    assert "Commands" in shown.out
    assert not any(word in shown.out for word in ("<bool>", "[[", "{", "curator"))
