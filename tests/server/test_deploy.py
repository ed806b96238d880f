"""The files of deploy/ say what the command and the docs say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from privgp.server.settings import Settings
from tests.command.running import subcommands

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
