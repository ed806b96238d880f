"""The file of a search that may be killed: what is asked, before it is drawn; what came, before it
is used. One line of JSON per event, appended and brought to the disk. A step whose line ``asked``
has no line ``got`` was perhaps drawn and counts as spent: it is never drawn again. The file holds
noisy scores only, nothing that the promise does not already cover."""

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import IO

from privgp.plan.search.space import Space
from privgp.storage.state_file import lock_folder

FORMAT = "privgp-search"
HEAD = b'{"format": "privgp-search", "version": 1, '
LARGEST = 2**24


class SearchState:
    """The steps of one search; without a path they are kept in memory only. ``settings``: the
    indices of those asked for, one per step; ``values``: what came of each, NaN if it was lost."""

    def __init__(self, path: str | os.PathLike[str] | None, question: dict[str, object]) -> None:
        self.settings: list[int] = []
        self.values: list[float] = []
        self.charged: dict[str, object] = {}  # what a ledger was charged for all steps
        self._file: IO[bytes] | None = None
        if path is None:
            return
        self._name = f"state_file {os.fspath(path)!r}"
        try:
            self._file = open(path, "a+b")  # noqa: SIM115 - held open, and locked, while searching
        except OSError:
            raise ValueError(f"{self._name} cannot be written there.") from None
        try:
            self._read(self._file, question)
        except BaseException:
            self.close()
            raise

    def check(self, steps: int, settings: int) -> None:
        """Refuse steps that this search cannot have made."""
        if len(self.settings) > steps or any(not 0 <= k < settings for k in self.settings):
            raise ValueError(f"{self._name} is damaged.")

    def pay(self, charged: Mapping[str, object] | None) -> None:
        """Say that a ledger was charged: a search that goes on is not charged again."""
        if charged not in (None, self.charged):
            self._append({"charged": charged})
            self.charged = dict(charged or {})

    def ask(self, setting: int) -> None:
        """Say that a step is about to be drawn: from here on it counts as spent."""
        self._append({"asked": len(self.settings), "place": setting})
        self.settings.append(setting)
        self.values.append(math.nan)

    def got(self, value: float) -> None:
        self._append({"got": len(self.settings) - 1, "value": value})
        self.values[-1] = value

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, file: IO[bytes], question: dict[str, object]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"{self._name} is in use by another search.") from None
        file.seek(0)
        data = file.read(LARGEST + 1)
        if not data.startswith(HEAD[: len(data)]) or len(data) > LARGEST:
            raise ValueError(f"{self._name} is not the file of a search.")
        *lines, torn = data.split(b"\n")
        if torn:  # killed while writing: an unfinished line never took effect
            file.truncate(len(data) - len(torn))
        if not lines:
            self._append({"format": FORMAT, "version": 1, "question": question})
            with lock_folder(file.name) as folder:
                os.fsync(folder)  # brings the new file's name to the disk too
            return
        try:
            same = json.loads(lines[0])["question"] == json.loads(json.dumps(question))
        except (ValueError, KeyError, TypeError):
            same = False
        if not same:
            raise ValueError(
                f"{self._name} belongs to another search (another space, budget, number of records "
                "or estimator): give another name."
            )
        for line in lines[1:]:
            self._replay(line)

    def _replay(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            if "asked" in event and event["asked"] == len(self.settings):
                self.settings.append(int(event["place"]))
                self.values.append(math.nan)
                return
            if "charged" in event and isinstance(event["charged"], dict):
                self.charged = event["charged"]
                return
            value = float(event["value"])
            if event["got"] == len(self.settings) - 1 and math.isfinite(value):
                self.values[-1] = value
                return
        except (ValueError, LookupError, TypeError):
            pass
        raise ValueError(f"{self._name} is damaged.")

    def _append(self, event: dict[str, object]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(event).encode("utf-8") + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            raise RuntimeError(f"{self._name} could not be written; go on with it later.") from None


def fingerprint(space: Space) -> str:
    text = repr([sorted((k, repr(v)) for k, v in s.items()) for s in space.settings])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
