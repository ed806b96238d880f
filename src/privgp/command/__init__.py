"""The command ``privgp``: one sentence for every error, and an exit code. 0: done; 1: it failed; 2:
the arguments or the files are not as they should be."""

import gc
import json
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import typer

from privgp.command.app import app
from privgp.command.errors import Failure, Refusal, in_options, is_number, one_line
from privgp.errors import TableError

PAIRS = "--x-bounds"
BOUNDS, FURTHER = "--bounds", "--further-bounds"  # of the first output, and of all others
SEVERAL = ("plan", "release")  # commands that know several outputs
DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!.*=)")
INTERRUPTED = 130  # typer's answer to an interrupt that nobody caught
# What typer says of a value, and what we say instead.
PLAIN = {
    "Value error, ": "",
    "Input should be a valid number, unable to parse string as a number": "it must be a number.",
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number.",
    "is not a valid float.": "is none: it must be a number.",
    "is not a valid integer.": "is none: it must be a whole number.",
    "Input should be greater than or equal to": "it must be at least",
    "Got unexpected extra argument(s)": "Too many words; write several names with commas, as a,b:",
}
COLLECT_AFTER = 50_000  # new objects: imports make more than that, and hardly any is garbage


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is not None:
        return _run(arguments)
    # A process of its own need not search what it imported for garbage, now or when it ends.
    gc.set_threshold(COLLECT_AFTER)
    try:
        return _run(sys.argv[1:])
    finally:
        if "duckdb" not in sys.modules:  # which complains of what is not collected
            gc.freeze()


def _run(arguments: Sequence[str]) -> int:
    return run_application(app, join_pairs(arguments), "privgp", "; nothing was spent")


def join_pairs(arguments: Sequence[str]) -> list[str]:
    """Every ``--x-bounds LO HI`` as ``--x-bounds=LO:HI``, and so all ``--bounds`` after the first:
    repeated options take one word only."""
    out: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        again = word == BOUNDS and BOUNDS in out and out[0] in SEVERAL
        if (word == PAIRS or again) and len(left) >= 2 and all(map(_is_end, left[:2])):
            word = f"{FURTHER if again else PAIRS}={left.pop(0)}:{left.pop(0)}"
        out.append(word)
    return out


def _is_end(word: str) -> bool:
    """Whether a word is a number or, as an end of private dates, begins as one."""
    return is_number(word) or bool(DATE.match(word))


def run_application(
    application: typer.Typer, arguments: Sequence[str], name: str, unfinished: str = ""
) -> int:
    """Run a command line and return its exit code. ``unfinished``: how errors half-way end."""
    for before, word in zip(["", *arguments], arguments, strict=False):
        if "\0" in word:  # older versions of typer fail on it
            return _stop(f"No null character may be in {before} {word!r}.", 2, arguments)
        if not word and not before.startswith("-"):  # as a path it would be this folder
            return _stop("A word of the line is empty: give it, or leave it out.", 2, arguments)
    try:
        with _interrupt_on_termination(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = _built(application).main
            code = run(args=[*arguments], prog_name=name, standalone_mode=False)
            sys.stdout.flush()
    except (Refusal, Failure) as stop:
        return _stop(str(stop), stop.code, arguments)
    except TableError as problem:
        return _stop(in_options(str(problem)), Refusal.code, arguments)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except MemoryError:
        return _stop(f"There is not enough memory for this{unfinished}.", 1, arguments)
    except Exception as problem:
        if hasattr(problem, "format_message"):  # typer's own: unknown options, missing values
            said = problem.format_message()
            for words, plain in PLAIN.items():
                said = said.replace(words, plain)
            return _stop(f"{said} (--help shows how.)", 2, arguments)
        # Its message might quote anything, so only its kind is told.
        sentence = f"Failed unexpectedly ({type(problem).__name__}){unfinished}."
        return _stop(sentence, 1, arguments)
    if code == INTERRUPTED:
        return _stop(f"Interrupted{unfinished}.", 1, arguments)
    return int(code or 0)


_built = cache(typer.main.get_command)  # a process may run many lines


def _stop(sentence: str, code: int, arguments: Sequence[str]) -> int:
    """Say why it stopped: with --json as one JSON object, which is all that is printed."""
    shown = one_line(f"Error: {sentence}")
    if "--json" in arguments:
        shown = json.dumps({"error": one_line(sentence), "code": code})
    print(shown, file=sys.stderr)
    return code


@contextmanager
def _interrupt_on_termination() -> Iterator[None]:
    """Take a request to terminate like Ctrl-C, so that nothing half-written stays."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
