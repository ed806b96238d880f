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
from typing import Annotated, Any, BinaryIO, Self

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

SQLITE = "sqlite:///"
# Addresses, without TLS on this machine only; empty: none. That of an issuer may end in a slash.
HERE = r"http://(localhost|127\.0\.0\.1)(:\d+)?"
ORIGIN = rf"^(https://[^\s?#]*[^\s?#/]|{HERE})?$"
ISSUER = rf"^(https://[^\s?#]*[^\s?#/]/?|{HERE}/?)?$"
LOCAL = ("localhost", "127.0.0.1", "[::1]")


def about(default: object, text: str, **limits: Any) -> Any:
    """A setting with its default, described."""
    return Field(default, description=text, **limits)


class Settings(BaseSettings):
    """Folder, ledger and limits of a server; every field has a description."""

    model_config = SettingsConfigDict(
        env_prefix="PRIVGP_SERVE_", frozen=True, extra="forbid", hide_input_in_errors=True
    )

    data: Path = about(Path("privgp-server"), "folder of private tables and states")
    ledger: str | None = about(None, "URL of the ledger; default: an SQLite file in `data`")
    signing_key: Path | None = about(None, "key that signs the ledger; default: a file in `data`")
    metrics_token: str | None = about(
        None, "password of `/metrics`; default: there are no metrics", min_length=16, repr=False
    )
    address: str = about("", "the server's address: `https://` and its name", pattern=ORIGIN)
    oidc_issuer: str = about("", "OpenID Connect provider that people sign in at", pattern=ISSUER)
    oidc_client_id: str = about("", "the name of this server at the provider")
    oidc_client_secret: str = about("", "password of this server at the provider", repr=False)
    oidc_claim: str = about("email", "the claim that identifies a person")
    secure: bool = about(False, "send sign-in cookies over TLS only")
    hosts: Annotated[
        tuple[str, ...],
        NoDecode,
        Field(description="host names that requests may be sent to, separated by commas"),
    ] = LOCAL
    max_upload_bytes: PositiveInt = about(32 * 2**20, "size of a table")
    max_body_bytes: PositiveInt = about(2**20, "size of any other request")
    max_rows: PositiveInt = about(100_000, "rows of a table")
    max_columns: PositiveInt = about(1_000, "columns of a table")
    max_expanded_bytes: PositiveInt = about(256 * 2**20, "size of a decompressed Parquet table")
    max_exact_rows: PositiveInt = about(2_000, "rows of a table planned without inducing inputs")
    max_points: PositiveInt = about(10_000, "points of one prediction")
    max_function_points: PositiveInt = about(500, "points of one request to a function or paths")
    max_function_total: PositiveInt = about(4_000, "points ever answered without inducing inputs")
    max_jobs_per_key: PositiveInt = about(20, "jobs of one key that wait or run")
    max_job_seconds: PositiveFloat = about(600.0, "duration of one job")
    max_connections: PositiveInt = about(500, "connections at once: the longest idle is closed")
    max_requests: PositiveInt = about(100, "requests accepted at once")
    max_requests_per_key: PositiveInt = about(6, "requests of one key processed at once")
    max_wait_seconds: PositiveFloat = about(5.0, "time that a request waits for its turn")
    threads: PositiveInt = about(8, "requests processed at once")
    predictors: int = about(2, "processes that predict; 0: the server predicts itself", ge=0)
    header_seconds: PositiveFloat = about(10.0, "time to send the headers of a request")
    body_seconds: PositiveFloat = about(120.0, "time to send the body of a request")
    requests_per_second: PositiveFloat = about(50.0, "steady rate of requests of one key")
    burst: PositiveInt = about(200, "requests of one key in a moment, before the rate counts")

    @model_validator(mode="after")
    def _complete_sign_in(self) -> Self:
        if self.oidc_issuer and not (self.oidc_client_id and self.address):
            raise ValueError("oidc_issuer needs oidc_client_id and address")
        return self

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
        made = type(
            cls.__name__, (cls,), {"model_config": {"toml_file": file}, "__module__": __name__}
        )
        return cls(**made(**given).model_dump())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def url(self) -> str:
        return self.ledger or f"{SQLITE}{self.data / 'ledger.db'}"

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
        """Make the folders and the ledger in them, which only the server's user may open, whatever
        the umask is."""
        for folder in (self.data, self.tables, self.states):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        if self.ledger is None:
            Path(self.url.removeprefix(SQLITE)).touch(0o600)


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
    """A new file that only the server's user may read, whatever the umask is. It is gone if the
    body fails."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        try:
            yield file
        except BaseException:
            path.unlink()
            raise
