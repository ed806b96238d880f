"""One thread that hands jobs to a process, one after the other; the database remembers where they
stand."""

import logging
import threading
import time

from privgp.errors import LedgerError
from privgp.server.jobs.child import failure_text
from privgp.server.jobs.process import SHARED, End
from privgp.server.store.schema import FAILED, Row
from privgp.server.work import PLAN, Work

IDLE = 0.5  # seconds between looks for jobs that another process added
GRACE = 10.0  # seconds that a job may go on when the server ends
TOO_LONG = "The job took longer than {:g} seconds and was stopped."
NOT_TWICE = " Asked for again with the same Idempotency-Key, it is not charged twice."
log = logging.getLogger("privgp.server")


class Worker:
    def __init__(self, work: Work) -> None:
        self.work, self.store = work, work.store
        self._wake, self._stop = threading.Event(), threading.Event()
        self._last = float("inf")  # when the server can wait no longer
        self._thread = threading.Thread(target=self._run, name="privgp jobs", daemon=True)

    def start(self) -> None:
        self.store.requeue()
        SHARED.warm()
        self._thread.start()

    def stop(self) -> None:
        """End after the job that runs, or soon; what is left is carried out by the next server."""
        self._last = time.monotonic() + GRACE
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        self._wake.set()

    def _run(self) -> None:
        unwritten: dict[str, str] = {}  # ends of jobs that the database could not be told
        while not self._stop.is_set():
            try:
                while unwritten:
                    number, error = next(iter(unwritten.items()))
                    self.store.end(number, state=FAILED, error=error)
                    del unwritten[number]
                job = self.store.next_job()
                if job is not None:
                    error = self._carry_out(job)
                    if error:
                        unwritten[job["id"]] = error
                    continue
            except LedgerError:  # the database is away: jobs wait in it
                log.error("the database cannot be reached")
            self._wake.wait(IDLE)
            self._wake.clear()

    def _carry_out(self, job: Row) -> str:
        """Why a job did not come to its own end, if so."""
        end = SHARED.run(self.work.settings, job, lambda: time.monotonic() > self._last)
        if end is End.TOO_LONG:
            paid = "" if job["kind"] == PLAN else NOT_TWICE
            return TOO_LONG.format(self.work.settings.max_job_seconds) + paid
        if end is End.LOST:
            log.error("the process of a job of kind %s was lost", job["kind"])
            return failure_text(job)
        return ""
