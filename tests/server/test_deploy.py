"""The files of deploy/ say what the command and the docs say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from benchmarks.postgresql import new_schema
from privgp.server.settings import Settings
from tests.command.running import subcommands
from tests.server.live import LOCAL, listening
from tests.server.world import CUSTODIAN

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def compose():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def options(words):
    return {word for word in words if word.startswith("--")}


def test_the_server_is_started_with_options_that_exist(compose):
    known = {option for each in subcommands()["serve"].params for option in each.opts}
    (line,) = compose["services"]["server"]["command"]
    started = shlex.split(line.partition("exec ")[2].replace("$$", "$"))
    assert started[:2] == ["privgp", "serve"]
    assert {"--secure", "--ledger"} <= options(started) <= known
    assert "anchor=/anchor/" in started[-1]
    image = re.search(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert image is not None
    assert options(re.findall(r'"([^"]*)"', image[1])) <= known


def test_only_the_proxy_can_be_reached(compose):
    services, networks = compose["services"], compose["networks"]
    assert [name for name, each in services.items() if "ports" in each] == ["proxy"]
    for name in ("server", "database"):
        assert all((networks[each] or {}).get("internal") for each in services[name]["networks"])
    assert not {*services["proxy"]["networks"]} & {*services["database"]["networks"]}


def test_all_that_it_names_is_there(compose):
    named = {
        volume.partition(":")[0]
        for each in compose["services"].values()
        for volume in each["volumes"]
    }
    files = {name for name in named if name.startswith(".")}
    assert named - files == {*compose["volumes"]}
    assert all((DEPLOY / name).is_file() for name in files)
    assert (DEPLOY / compose["secrets"]["password"]["file"]).name in (
        DEPLOY / ".gitignore"
    ).read_text("utf-8")
    copied = re.findall(
        r"^COPY (.*) /source", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    parts = " ".join(copied).split()
    assert {"src", "pyproject.toml"} <= {*parts}
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").split()
    assert all((ROOT / part).exists() and f"!{part}" in ignored for part in parts)
    assert "reverse_proxy server:8000" in (DEPLOY / "Caddyfile").read_text("utf-8")


def test_every_setting_is_in_the_docs_and_settings_of_compose_exist(compose):
    text = (ROOT / "docs" / "server.md").read_text("utf-8")
    fields = Settings.model_fields
    assert all(f"| `{name}` | {each.description} |" in text for name, each in fields.items())
    given = compose["services"]["server"]["environment"]
    prefix = Settings.model_config["env_prefix"]
    named = {name.removeprefix(prefix).lower() for name in given if name.startswith(prefix)}
    assert {"hosts"} <= named <= fields.keys()


def has_docker():
    return (
        shutil.which("docker")
        and not subprocess.run(["docker", "info"], capture_output=True, timeout=30).returncode
    )


def free_port():
    with socket.socket() as free:
        free.bind((LOCAL, 0))
        return free.getsockname()[1]


def answer_of(address, seconds, **sent):
    """What an address answers once it does."""
    end = time.monotonic() + seconds
    while True:
        try:
            return httpx.get(address, verify=False, **sent)
        except httpx.TransportError:
            assert time.monotonic() < end
            time.sleep(0.2)


@pytest.mark.skipif(not has_docker(), reason="no Docker daemon here")
def test_compose_starts_a_server_behind_tls():
    password = DEPLOY / "password"
    made = not password.exists()
    if made:
        password.write_text("for-this-test")
    compose = ["docker", "compose", "-f", str(DEPLOY / "compose.yaml"), "-p", "privgp-test"]
    try:
        subprocess.run([*compose, "up", "-d", "--build", "--wait"], check=True, timeout=900)
        assert answer_of("https://localhost/health", 60).json() == {"status": "ok"}
        told = subprocess.run([*compose, "logs", "server"], capture_output=True, text=True)
        assert "The custodian's key: privgp-" in told.stdout
    finally:
        subprocess.run([*compose, "down", "-v"], check=False)
        if made:
            password.unlink()


CADDY = shutil.which("caddy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@contextmanager
def caddy(folder, port, behind):
    """The proxy of compose with its file, at other ports."""
    text = (DEPLOY / "Caddyfile").read_text("utf-8").replace("server:8000", f"{LOCAL}:{behind}")
    ports = f"http_port {free_port()}\nhttps_port {port}"
    options = f"{{\nadmin off\nskip_install_trust\n{ports}\n}}\n"
    (folder / "Caddyfile").write_text(f"{options}{text}", "utf-8")
    line = [CADDY, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    kept = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("w") as log:
        environment = {**os.environ, **kept, "PRIVGP_HOST": "localhost"}
        made = subprocess.Popen(line, env=environment, stderr=log)
        try:
            yield
        finally:
            made.terminate()
            made.wait(30)


@pytest.mark.skipif(CADDY is None, reason="no Caddy here")
def test_the_proxy_and_the_database_of_compose_serve(postgresql, tmp_path):
    """What compose starts, without its containers."""
    port, ledger = free_port(), new_schema(postgresql, tmp_path / "anchor")
    given = {"hosts": ["localhost"], "secure": True, "ledger": ledger}
    with (
        listening(tmp_path / "data", **given) as world,
        caddy(tmp_path, port, world.client.base_url.port),
    ):
        key = {"Authorization": f"Bearer {world.keys[CUSTODIAN]}"}
        answer = answer_of(f"https://localhost:{port}/api/me", 60, headers=key)
        large = httpx.post(
            f"https://localhost:{port}/api/tables",
            content=b"x" * (33 * 2**20),
            headers=key,
            verify=False,
        )
    assert (answer.status_code, large.status_code) == (200, 413)
    assert answer.headers["strict-transport-security"]


NGINX = re.compile(r"```text\n(server \{.*?\n\})\n```", re.DOTALL)


@contextmanager
def nginx(folder, port, behind):
    """Nginx with the configuration of the docs, at other ports and with a certificate of its own."""
    found = NGINX.search((ROOT / "docs" / "server.md").read_text("utf-8"))
    assert found is not None
    text = found[1].replace("443", f"{LOCAL}:{port}").replace("127.0.0.1:8000", f"{LOCAL}:{behind}")
    text = text.replace("/etc/ssl/", f"{folder}/")
    line = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=privgp"]
    line += ["-keyout", f"{folder}/privgp.key", "-out", f"{folder}/privgp.pem"]
    subprocess.run(line, check=True, capture_output=True)
    paths = [
        f"{n}_temp_path {folder}/{n};" for n in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    ]
    main = f"daemon off; pid {folder}/pid; error_log stderr; events {{}}"
    inside = "\n".join(["access_log off;", *paths, text])
    (folder / "nginx.conf").write_text(f"{main}\nhttp {{\n{inside}\n}}\n")
    made = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        yield
    finally:
        made.terminate()
        made.wait(30)


@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx here")
def test_the_configuration_of_nginx_in_the_docs_serves(tmp_path):
    name, port = "privgp.example.org", free_port()
    with listening(tmp_path / "data", hosts=[name], secure=True) as world:
        folder = tmp_path / "nginx"
        folder.mkdir()
        with nginx(folder, port, world.client.base_url.port):
            key = {"Host": name, "Authorization": f"Bearer {world.keys[CUSTODIAN]}"}
            answer = answer_of(f"https://{LOCAL}:{port}/api/me", 30, headers=key)
    assert answer.status_code == 200, answer.text
