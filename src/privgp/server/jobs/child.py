"""A process that carries jobs out, or predicts, one after the other. It may be killed at any moment: a
job is then run again, or failed, and what it charged is charged once."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from functools import partial
from queue import SimpleQueue

from privgp.errors import LedgerError
from privgp.server.errors import Refused, first_line
from privgp.server.jobs.predictors import Answers
from privgp.server.jobs.process import LOST, OVER, READY, write_whole
from privgp.server.settings import Settings
from privgp.server.store.schema import DONE, FAILED, Row
from privgp.server.work import PLAN, STOPPED, Work

UNEXPECTED = "The plan could not be computed."
log = logging.getLogger("privgp.server")


def carry_out(work: Work, job: Row) -> None:
    """Run a job and write down how it ended."""

    def step(progress: float, doing: str) -> None:
        work.store.note(job["id"], progress=progress, doing=doing)

    try:
        result = work.run(job, step)
    except Refused as refused:
        work.store.end(job["id"], state=FAILED, error=refused.sentence)
    except LedgerError as problem:  # budgets and names alone are in it
        work.store.end(job["id"], state=FAILED, error=first_line(problem))
    except Exception as problem:  # whose text might quote anything
        log.error("a job of kind %s failed: %s", job["kind"], type(problem).__name__)
        work.store.end(job["id"], state=FAILED, error=failure_text(job))
    else:
        work.store.end(job["id"], state=DONE, progress=1.0, doing="", result=result)


def failure_text(job: Row) -> str:
    return UNEXPECTED if job["kind"] == PLAN else STOPPED


def main() -> None:
    """Jobs come as lines; the end of the input is the end of the server, and of this process."""
    told = os.dup(1)
    os.dup2(2, 1)  # whatever is printed is no answer
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    os.write(told, READY)
    works: dict[str, Answers] = {}
    while True:
        line = json.loads(lines.get())
        name = json.dumps(line["settings"])
        try:
            if name not in works:
                works = {name: Answers(Work.of(Settings(**line["settings"])))}
            if "asked" in line:
                write_whole(partial(os.write, told), _answer(works[name], line["asked"]))
                continue
            carry_out(works[name].work, line["job"])
        except LedgerError:  # the database is away
            os.write(told, LOST)
        else:
            os.write(told, OVER)


def _answer(answers: Answers, asked: Row) -> bytes:
    """What a release answers, as one line."""
    try:
        made: Row = {"text": answers.text(asked)}
    except Refused as refused:
        made = {"status": refused.status, "sentence": refused.sentence}
    except LedgerError:
        raise
    except Exception as problem:  # whose text might quote anything
        log.error("a question to a release failed: %s", type(problem).__name__)
        made = {"status": 500, "sentence": "The server failed unexpectedly."}
    return json.dumps(made).encode("ascii") + b"\n"


def _listen(lines: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the server is gone
        os._exit(0)
