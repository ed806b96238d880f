"""The command ``privgp``: one sentence for every error, and an exit code.

0: done; 1: it failed; 2: the arguments or the files are not as they should be.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from privgp.command.app import app
from privgp.command.errors import Failure, Refusal, one_line
from privgp.command.pairs import with_pairs_joined

INTERRUPTED = 130  # typer's answer to an interrupt that nobody caught


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    command = typer.main.get_command(app)
    given = with_pairs_joined(sys.argv[1:] if arguments is None else arguments)
    try:
        with _terminated_as_interrupted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = command.main(args=given, prog_name="privgp", standalone_mode=False)
            sys.stdout.flush()
    except (Refusal, Failure) as stop:
        return _stop(str(stop), stop.code)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except MemoryError:
        return _stop("There is not enough memory for this; nothing was spent.", 1)
    except Exception as problem:
        if hasattr(problem, "format_message"):  # typer's own: unknown options, missing values
            return _stop(f"{problem.format_message()} (--help shows how.)", 2)
        # Its message might quote anything, so only its kind is told.
        return _stop(f"Failed unexpectedly ({type(problem).__name__}); nothing was spent.", 1)
    if code == INTERRUPTED:
        return _stop("Interrupted; nothing was spent.", 1)
    return int(code or 0)


def _stop(sentence: str, code: int) -> int:
    print(one_line(f"Error: {sentence}"), file=sys.stderr)
    return code


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
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
