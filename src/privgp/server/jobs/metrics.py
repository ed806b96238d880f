"""What a server counts, for Prometheus. No label holds a name, a key or a value that somebody sent."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from privgp.server.jobs.turns import Turns
from privgp.server.store.schema import Row
from privgp.server.store.store import Store

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
OTHER = "other"
KIND = "text/plain; version=0.0.4; charset=utf-8"  # which every version of Prometheus reads


class Metrics:
    """What one server counts.

    Parameters
    ----------
    store : knows the jobs
    turns : queues by name

    """

    def __init__(self, store: Store, turns: dict[str, Turns]) -> None:
        self._store, self._turns = store, turns
        self._registry = CollectorRegistry()
        kept: Row = {"registry": self._registry}
        labels, states = ("method", "route", "status"), ("queue", "state")
        self._requests = Counter("privgp_requests", "Requests answered.", labels, **kept)
        self._seconds = Histogram("privgp_request_seconds", "Time to answer.", ("route",), **kept)
        self._queues = Gauge("privgp_queue", "Requests by queue and state.", states, **kept)
        self._jobs = Gauge("privgp_jobs", "Jobs by kind and state.", ("kind", "state"), **kept)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request; ``route`` is a pattern of paths, not a path."""
        known = method if method in METHODS else OTHER
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def page(self) -> bytes:
        """All of it in the text format of Prometheus."""
        for name, turns in self._turns.items():
            self._queues.labels(name, "running").set(turns.running.total())
            self._queues.labels(name, "waiting").set(turns.queue_length)
        self._jobs.clear()
        for kind, state, number in self._store.count_jobs():
            self._jobs.labels(kind, state).set(number)
        return generate_latest(self._registry)
