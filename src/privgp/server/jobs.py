"""One thread that carries jobs out, one after the other; the database remembers where they stand."""

import logging
import threading

from privgp.ledger.errors import LedgerError
from privgp.server.errors import Refused, first_line
from privgp.server.store.store import DONE, FAILED, Row
from privgp.server.work import PLAN, STOPPED, Work

IDLE = 0.5  # seconds between looks for jobs that another process added
UNEXPECTED = "The plan could not be computed."
log = logging.getLogger("privgp.server")


class Worker:
    def __init__(self, work: Work) -> None:
        self.work, self.store = work, work.store
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="privgp jobs", daemon=True)

    def start(self) -> None:
        self.store.requeue()
        self._thread.start()

    def stop(self) -> None:
        """End after the job that runs; what waits is carried out by the next server."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                job = self.store.next_job()
                if job is not None:
                    self.carry_out(job)
                    continue
            except LedgerError:  # the database is away: jobs wait in it
                log.error("the database cannot be reached")
            self._wake.wait(IDLE)
            self._wake.clear()

    def carry_out(self, job: Row) -> None:
        def step(progress: float, doing: str) -> None:
            self.store.note(job["id"], progress=progress, doing=doing)

        try:
            result = self.work.run(job, step)
        except Refused as refused:
            self.store.note(job["id"], state=FAILED, error=refused.sentence)
        except LedgerError as problem:  # budgets and names alone are in it
            self.store.note(job["id"], state=FAILED, error=first_line(problem))
        except Exception as problem:  # whose text might quote anything
            log.error("a job of kind %s failed: %s", job["kind"], type(problem).__name__)
            sentence = UNEXPECTED if job["kind"] == PLAN else STOPPED
            self.store.note(job["id"], state=FAILED, error=sentence)
        else:
            self.store.note(job["id"], state=DONE, progress=1.0, doing="", result=result)
