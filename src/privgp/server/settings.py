"""Settings of a server: its folder, its ledger, and limits on what anybody may ask.

Every setting can be given in the environment (``PRIVGP_SERVE_MAX_ROWS=1000``) or in a TOML file
(``max_rows = 1000``; ``privgp serve --settings FILE``). The environment wins.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Self

from pydantic import Field, PositiveFloat, PositiveInt, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

SQLITE = "sqlite:///"
LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Settings(BaseSettings):
    """Folder, ledger and limits of a server; every field has a description."""

    model_config = SettingsConfigDict(
        env_prefix="PRIVGP_SERVE_", frozen=True, extra="forbid", hide_input_in_errors=True
    )

    data: Annotated[Path, Field(description="folder of private tables and states")] = Path(
        "privgp-server"
    )
    ledger: Annotated[
        str | None, Field(description="URL of the ledger; default: an SQLite file in `data`")
    ] = None
    signing_key: Annotated[
        Path | None,
        Field(description="Ed25519 key that signs the ledger's entries; default: a file in `data`"),
    ] = None
    metrics_token: Annotated[
        str | None,
        Field(
            min_length=16,
            repr=False,
            description="text that `/metrics` asks for; default: there are no metrics",
        ),
    ] = None
    secure: Annotated[bool, Field(description="send sign-in cookies over TLS only")] = False
    hosts: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(description="host names that requests may be sent to, separated by commas"),
    ] = LOCAL
    max_upload_bytes: Annotated[PositiveInt, Field(description="size of a table")] = 32 * 2**20
    max_body_bytes: Annotated[PositiveInt, Field(description="size of any other request")] = 2**20
    max_rows: Annotated[PositiveInt, Field(description="rows of a table")] = 100_000
    max_columns: Annotated[PositiveInt, Field(description="columns of a table")] = 1_000
    max_expanded_bytes: Annotated[
        PositiveInt, Field(description="size of a Parquet table once it is decompressed")
    ] = 256 * 2**20
    max_exact_rows: Annotated[
        PositiveInt, Field(description="rows of a table that is planned without inducing inputs")
    ] = 2_000
    max_points: Annotated[PositiveInt, Field(description="points of one prediction")] = 10_000
    max_function_points: Annotated[
        PositiveInt, Field(description="points of one request to a whole function or to paths")
    ] = 500
    max_function_total: Annotated[
        PositiveInt,
        Field(description="points of all requests to a function without inducing inputs"),
    ] = 4_000
    max_jobs_per_key: Annotated[
        PositiveInt, Field(description="jobs of one key that wait or run")
    ] = 20
    max_job_seconds: Annotated[PositiveFloat, Field(description="duration of one job")] = 600.0
    max_requests: Annotated[PositiveInt, Field(description="requests accepted at once")] = 100
    max_requests_per_key: Annotated[
        PositiveInt, Field(description="requests of one key processed at once; others wait")
    ] = 6
    max_wait_seconds: Annotated[
        PositiveFloat, Field(description="time that a request waits for its turn")
    ] = 5.0
    threads: Annotated[PositiveInt, Field(description="requests processed at once")] = 8
    predictors: Annotated[
        int, Field(ge=0, description="processes that predict; 0: the server predicts itself")
    ] = 2
    header_seconds: Annotated[
        PositiveFloat, Field(description="time to send the headers of a request")
    ] = 10.0
    body_seconds: Annotated[
        PositiveFloat, Field(description="time to send the body of a request")
    ] = 120.0
    requests_per_second: Annotated[
        PositiveFloat, Field(description="steady rate of requests of one key")
    ] = 50.0
    burst: Annotated[
        PositiveInt, Field(description="requests of one key in a moment, before the rate counts")
    ] = 200

    @field_validator("data")
    @classmethod
    def _absolute_folder(cls, data: Path) -> Path:
        """The folder as every process of the server finds it."""
        return data.absolute()

    @field_validator("ledger")
    @classmethod
    def _absolute_ledger(cls, ledger: str | None) -> str | None:
        if ledger is None or not ledger.startswith(SQLITE):
            return ledger
        path = ledger.removeprefix(SQLITE)
        named = path and not path.startswith((":", "file:"))
        return f"{SQLITE}{Path(path).absolute()}" if named else ledger

    @field_validator("hosts", mode="before")
    @classmethod
    def _split_hosts(cls, hosts: object) -> object:
        return [*filter(None, hosts.replace(",", " ").split())] if isinstance(hosts, str) else hosts

    @classmethod
    def load(cls, file: Path | None = None, **given: object) -> Self:
        """Settings of a TOML file, the environment, and what is given here; later ones win.

        Parameters
        ----------
        file
            The TOML file; None for none.
        given
            Values by name.

        Raises
        ------
        ValueError
            A value or a name is wrong, or the file is no TOML.

        """

        class FromFile(Settings):
            @classmethod
            def settings_customise_sources(
                cls,
                settings_cls: type[BaseSettings],
                init_settings: PydanticBaseSettingsSource,
                env_settings: PydanticBaseSettingsSource,
                *_: PydanticBaseSettingsSource,
                **__: PydanticBaseSettingsSource,
            ) -> tuple[PydanticBaseSettingsSource, ...]:
                read = TomlConfigSettingsSource(settings_cls, file) if file else None
                return tuple(filter(None, (init_settings, env_settings, read)))

        return cls(**FromFile(**given).model_dump())  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        return self.ledger or f"sqlite:///{self.data / 'ledger.db'}"

    @property
    def key_file(self) -> Path:
        """The private key that signs the ledger's entries."""
        return self.signing_key or self.data / "signing-key.pem"

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


@contextmanager
def new_private_file(path: Path) -> Iterator[BinaryIO]:
    """A new file that nobody but the server's user may read, whatever the umask is. It is gone if the
    body fails."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        try:
            yield file
        except BaseException:
            path.unlink()
            raise
