"""``privgp serve``: a server, with budgets that cannot be overspent."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from privgp.command import options as o
from privgp.command.errors import Failure, Refusal, refusal, refuse_on
from privgp.command.io.screen import say

if TYPE_CHECKING:
    from privgp.server.settings import Settings

WILDCARDS = ("0.0.0.0", "::")
DATA_HELP = (
    "The folder of the private tables and of the SQLite ledger, made if it does not exist. "
    "Default: privgp-server."
)
LEDGER_HELP = "The address of the ledger, such as postgresql://… Default: a file in the folder."
DEMO_HELP = "Start with a registered dataset of public data."
HOST_HELP = "The address to listen at. Put a proxy with TLS in front of any other than this one."
NEW_KEY_HELP = "Make another custodian's key and show it, if all are lost."
SETTINGS_HELP = (
    "A TOML file of settings, such as limits; see the page 'server' of the documentation."
)
SECURE_HELP = "Send sign-in cookies over TLS only, for a server behind a proxy with TLS."


def serve(
    data: Annotated[Path | None, o.plain(DATA_HELP, "--data", metavar="FOLDER")] = None,
    demo: Annotated[bool, o.plain(DEMO_HELP, "--demo")] = False,
    host: Annotated[str, o.plain(HOST_HELP, "--host")] = "127.0.0.1",
    port: Annotated[int, o.plain("The port to listen at.", "--port")] = 8000,
    ledger: Annotated[str | None, o.plain(LEDGER_HELP, "--ledger", metavar="URL")] = None,
    secure: Annotated[bool, o.plain(SECURE_HELP, "--secure")] = False,
    new_key: Annotated[bool, o.plain(NEW_KEY_HELP, "--new-key")] = False,
    settings: Annotated[Path | None, o.plain(SETTINGS_HELP, "--settings", metavar="FILE")] = None,
) -> None:
    """Run a server on which several people plan, release and predict, in a browser or through JSON."""
    if not 0 < port < 65536:
        raise Refusal(f"--port must lie between 1 and 65535, got {port}.")
    if not host or not host.isprintable():
        raise Refusal("--host must be an address such as 127.0.0.1.")
    try:
        import fastapi  # noqa: F401

        from privgp.server.jobs.process import SHARED

        SHARED.warm()  # while this process imports as much
        from privgp.server.start import bind_socket, listen, prepare_server
    except ImportError:
        raise Failure("The server needs more packages: pip install privgp[server].") from None
    from privgp.errors import LedgerError
    from privgp.ledger.ledger import Ledger
    from privgp.server.settings import hold_folder

    given = {"data": data, "ledger": ledger, "secure": secure or None}
    limits = _load(settings, {name: value for name, value in given.items() if value is not None})
    if host not in WILDCARDS:
        limits = limits.model_copy(update={"hosts": (*limits.hosts, host)})
    folder = limits.data
    try:
        place = bind_socket(host, port)
    except (OSError, UnicodeError):
        raise Failure(
            f"Cannot listen at {host}:{port}: perhaps another program does; see --port."
        ) from None
    with place, ExitStack() as held, suppress(KeyboardInterrupt):
        try:
            if limits.ledger is not None:
                Ledger(limits.ledger).close()
            with refuse_on(
                f"--data '{folder}' cannot be made or is no folder: name another one.",
                OSError,
                ValueError,
            ):
                limits.create_folders()
            with refuse_on(f"Another server runs in the folder '{folder}'.", BlockingIOError):
                held.enter_context(hold_folder(folder))
            made = prepare_server(limits, demo=demo, say=say, new_key=new_key)
        except (LedgerError, ValueError) as problem:
            raise refusal(problem, url="--ledger") from None
        say(f"Open http://{host}:{port}/ and sign in with a key. Press Ctrl-C to end.")
        listen(made, place)


def _load(file: Path | None, given: dict[str, object]) -> Settings:
    """Settings from a file, the environment and options, or a refusal that names the setting."""
    from pydantic import ValidationError

    from privgp.server.settings import Settings

    if file is not None and not file.is_file():
        raise Refusal(f"--settings '{file}' is not a file.")
    try:
        return Settings.load(file, **given)
    except ValidationError as problem:
        first = problem.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise Refusal(f"The setting {name} is wrong: {first['msg'].lower()}.") from None
    except ValueError:
        raise Refusal(f"--settings '{file}' is not a TOML file.") from None
