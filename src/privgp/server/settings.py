"""What a server is started with: its folder, its ledger, and limits on what anybody may ask."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Settings:
    """``data``: the folder of tables and states, private, and of the ledger unless ``ledger`` is an
    address.

    ``most_upload``, ``most_body``: bytes of a table and of any other request
    ``most_rows``, ``most_exact``: rows of a table, and of one that is planned for without inducing
    inputs
    ``most_points``: points of one prediction
    ``most_asked``, ``most_drawn``: points of one question to a whole function or to paths, and of all
    questions to it, unless inducing inputs fix it
    ``most_waiting``: jobs that wait or run at once, of one key
    ``most_seconds``: of one job
    ``most_at_once``, ``most_of_one``, ``threads``: requests accepted at once, of everybody and of one
    key, and requests being processed
    ``header_seconds``, ``body_seconds``: time to send the headers and the whole body of a request
    ``most_wait``: seconds to wait for others who ask the same function
    ``rate``, ``burst``: requests a second of one key, and how many may come at once
    ``secure``: cookies travel over TLS only
    """

    data: Path
    ledger: str | None = None
    most_upload: int = 32 * 2**20
    most_body: int = 2**20
    most_rows: int = 100_000
    most_exact: int = 2_000
    most_points: int = 10_000
    most_asked: int = 500
    most_drawn: int = 4_000
    most_waiting: int = 20
    most_seconds: float = 600.0
    most_at_once: int = 100
    most_of_one: int = 6
    header_seconds: float = 10.0
    body_seconds: float = 120.0
    threads: int = 8
    most_wait: float = 5.0
    rate: float = 50.0
    burst: int = 200
    secure: bool = False

    def __post_init__(self) -> None:
        """Paths are those of the folder that this process is in now, for every process of the server."""
        object.__setattr__(self, "data", self.data.absolute())
        if self.ledger is not None and self.ledger.startswith(SQLITE):
            path = self.ledger.removeprefix(SQLITE)
            if path and not path.startswith((":", "file:")):
                object.__setattr__(self, "ledger", f"{SQLITE}{Path(path).absolute()}")

    @property
    def url(self) -> str:
        return self.ledger or f"sqlite:///{self.data / 'ledger.db'}"

    @property
    def tables(self) -> Path:
        """The folder of private tables."""
        return self.data / "tables"

    @property
    def states(self) -> Path:
        """The folder of functions and paths that are drawn bit by bit, private too."""
        return self.data / "states"

    def create_folders(self) -> None:
        """Make the folders, which nobody but the server's user may open, whatever the umask is."""
        for folder in (self.data, self.tables, self.states):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Keep other servers out of a folder until this one ends.

    Raises
    ------
    BlockingIOError
        Another server has the folder.

    """
    with (folder / "lock").open("w") as file:
        os.chmod(file.fileno(), 0o600)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def write_private(path: Path, data: bytes) -> None:
    """Write a new file that nobody but the server's user may read, whatever the umask is."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(data)
