"""A server from Python: register, plan, approve, release, predict and download."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import numpy as np

Json = dict[str, Any]
LOCAL = ("localhost", "127.0.0.1", "::1")
PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between looks at a job
BUSY = (429, 503)
WORDS = ("classes", "outputs", "coverage")  # of a prediction, which are no columns of numbers
FILES = {
    "release": ("file", ".privgp"),
    "certificate": ("certificate", ".json"),
    "certificate page": ("certificate.html", ".html"),
    "table": ("table.csv", ".csv"),
    "map": ("map.geojson", ".geojson"),
    "script": ("script.py", ".py"),
    "page": ("page.html", ".html"),
}


class ServerRefused(Exception):
    """A server refused a request: ``status`` and the sentence that it answered."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Client:
    """A server and a key for it.

    Parameters
    ----------
    url : str
        Where the server is, such as ``https://privgp.example.org``. A key is sent without TLS to
        this machine only.
    key : str
        The API key.
    timeout : float
        Seconds for one request.
    wait : float
        Seconds for one job, such as a plan or a release.

    """

    def __init__(self, url: str, key: str, *, timeout: float = 60.0, wait: float = 900.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url must be an address such as https://privgp.example.org.")
        if parts.scheme == "http" and parts.hostname not in LOCAL:
            raise ValueError("url must begin with https://: a key would travel without TLS.")
        if not key or not key.isascii() or not key.isprintable():
            raise ValueError("key must be the text of an API key.")
        self.url, self._key = url.rstrip("/"), key
        self.timeout, self.wait = timeout, wait

    def me(self) -> Json:
        """The name and the role of the key."""
        return dict(self._ask("GET", "/api/me"))

    # datasets

    def datasets(self) -> list[Json]:
        """All datasets that the key may see, with the epsilon that is left of each."""
        return list(self._ask("GET", "/api/datasets"))

    def dataset(self, name: str) -> Json:
        """The dataset of this ``name``."""
        return dict(self._ask("GET", f"/api/datasets/{quote(name, safe='')}"))

    def register(
        self,
        name: str,
        table: str | os.PathLike[str],
        *,
        epsilon: float,
        delta: float,
        **declared: object,
    ) -> Json:
        """Upload a private table and register it with a permanent budget, as a custodian.

        Parameters
        ----------
        name
            What the dataset is called.
        table
            A ``.csv`` or ``.parquet`` file.
        epsilon, delta
            The total of all releases.
        **declared
            ``inputs``, ``output``, ``bounds`` and whatever else docs/server.md lists.

        """
        path = Path(table)
        where = f"/api/tables?{urlencode({'ending': path.suffix.removeprefix('.')})}"
        kept = self._ask("POST", where, path.read_bytes())["table"]
        body = {"name": name, "table": kept, "epsilon": epsilon, "delta": delta, **declared}
        return dict(self._ask("POST", "/api/datasets", body))

    def ledger(self, name: str) -> Json:
        """The charges, approvals and rejections of the dataset ``name``, in the order of the chain."""
        return dict(self._ask("GET", f"/api/datasets/{quote(name, safe='')}/ledger"))

    def public_key(self) -> str:
        """The key by which certificates of this server are checked, as PEM."""
        return self._send("GET", "/api/ledger/key").decode("ascii")

    # plans and releases

    def plan(self, dataset: str, *, epsilon: float, delta: float, **options: object) -> Json:
        """A plan, which is free: its ``id``, its expected error, and whether it fits into the budget.

        Parameters
        ----------
        dataset
            Its name.
        epsilon, delta
            What the release would spend.
        **options
            ``mechanism``, ``hyperparameters``, ``compare`` and whatever else docs/server.md lists.

        """
        where = f"/api/datasets/{quote(dataset, safe='')}/plans"
        job = self._ask("POST", where, {"epsilon": epsilon, "delta": delta, **options})
        return dict(self._ask("GET", f"/api/plans/{self._finish(job)}"))

    def plans(self, dataset: str) -> list[Json]:
        """All plans of a dataset."""
        return list(self._ask("GET", f"/api/datasets/{quote(dataset, safe='')}/plans"))

    def approve(self, plan: str) -> Json:
        """Approve a plan, as a custodian."""
        return dict(self._ask("POST", f"/api/plans/{quote(plan, safe='')}/approve"))

    def reject(self, plan: str) -> Json:
        """Reject a plan, or withdraw its approval, as a custodian."""
        return dict(self._ask("POST", f"/api/plans/{quote(plan, safe='')}/reject"))

    def release(self, dataset: str, plan: str, *, key: str | None = None) -> Json:
        """Carry out an approved plan, which spends its budget once.

        Parameters
        ----------
        dataset
            Its name.
        plan
            The number of the plan.
        key
            An Idempotency-Key: the same key gets the same release, at no further cost. Default: a
            fresh one.

        """
        once = {"Idempotency-Key": key or secrets.token_hex(16)}
        where = f"/api/datasets/{quote(dataset, safe='')}/releases"
        number = self._finish(self._ask("POST", where, {"plan": plan}, once))
        return dict(self._ask("GET", f"/api/releases/{number}"))

    def releases(self, dataset: str) -> list[Json]:
        """All releases of a dataset."""
        return list(self._ask("GET", f"/api/datasets/{quote(dataset, safe='')}/releases"))

    def predict(
        self, release: str, points: Iterable[Sequence[float | str]], *, coverage: float | None = 0.9
    ) -> Json:
        """Predictions of a release: free, as often as you like.

        Parameters
        ----------
        release
            Its number.
        points
            One cell per input in every one: a number, a date or a level.
        coverage
            Of the intervals; None for none.

        Returns
        -------
        dict
            Arrays ``mean`` and ``std`` (of labels ``probability``), ``low`` and ``high``.

        """
        rows = points.tolist() if isinstance(points, np.ndarray) else [[*each] for each in points]
        body = {"points": rows, "interval": coverage is not None}
        chosen = {} if coverage is None else {"coverage": coverage}
        found = self._ask("POST", f"/api/releases/{quote(release, safe='')}/predict", body | chosen)
        return {k: v if k in WORDS else np.array(v) for k, v in found.items()}

    def download(
        self, release: str, path: str | os.PathLike[str], *, what: str = "release"
    ) -> Path:
        """Write a file of a release.

        Parameters
        ----------
        release
            Its number.
        path
            The file to write, which must not exist.
        what
            "release" (.privgp), "certificate" (.json), "certificate page", "table" (.csv), "map"
            (.geojson), "script" (.py) or "page" (.html).

        """
        if what not in FILES:
            raise ValueError(f"what must be one of {', '.join(FILES)}.")
        place, (name, ending) = Path(path), FILES[what]
        if place.suffix != ending:
            raise ValueError(f"path must end in {ending}.")
        data = self._send("GET", f"/api/releases/{quote(release, safe='')}/{name}")
        with place.open("xb") as file:
            file.write(data)
        return place

    # requests

    def _finish(self, job: Json) -> str:
        """What a job made, once it is done."""
        last, pause = time.monotonic() + self.wait, PAUSE
        while job["state"] in ("waiting", "running"):
            if time.monotonic() > last:
                raise TimeoutError(f"the job {job['id']} is not done after {self.wait:g} seconds.")
            time.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)
            job = self._ask("GET", f"/api/jobs/{job['id']}")
        if job["state"] != "done":
            raise ServerRefused(409, job["error"])
        return str(job["result"])

    def _ask(self, method: str, where: str, *sent: Any) -> Any:
        return json.loads(self._send(method, where, *sent))

    def _send(
        self, method: str, where: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """The bytes of an answer. A server that is busy is asked again."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode("ascii")
        own = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        sent = Request(f"{self.url}{where}", data, {**own, **(headers or {})}, method=method)
        last = time.monotonic() + self.timeout
        while True:
            try:
                with urlopen(sent, timeout=self.timeout) as answer:
                    return bytes(answer.read())
            except HTTPError as problem:
                if problem.code not in BUSY or time.monotonic() > last:
                    raise ServerRefused(problem.code, _sentence(problem.read())) from None
                time.sleep(float(problem.headers.get("Retry-After", "1")))
            except URLError as problem:
                raise ConnectionError(f"{self.url} cannot be reached: {problem.reason}") from None

    def __repr__(self) -> str:
        return f"Client({self.url!r})"


def _sentence(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return "The server refused this without a reason."
