"""The server's pages in Chromium, as pictures: ``python -m benchmarks.screenshots [--all FOLDER]``.

Writes the pictures of docs/server.md; with ``--all``, every view in light, dark and at phone width
into a folder, to be looked at.
"""

from __future__ import annotations

import argparse
import io
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import uvicorn
from PIL import Image

from privgp.server.app import application
from privgp.server.settings import Settings

HERE = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDE, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
LOOKS: dict[str, Any] = {
    "light": {"color_scheme": "light", "viewport": WIDE},
    "dark": {"color_scheme": "dark", "viewport": WIDE},
    "phone": {"color_scheme": "light", "viewport": PHONE},
}
# The pictures of the docs, light and dark, beside a sheet of all pages in every look: page, height in pixels.
SHOWN = {
    "server-home": ("home", 560),
    "server-register": ("bounds", 900),
    "server-plan": ("plan", 1010),
    "server-release": ("curve", 1130),
    "server-map": ("map", 1180),
}
# A sheet of all pages in a look: pages in a row, and the width and height of each.
SHEETS = {"light": (4, 380, 310), "dark": (4, 380, 310), "phone": (8, 190, 412)}
COLOURS, SHEET_COLOURS = 256, 128
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
PATIENCE = 180_000  # milliseconds


def tables() -> dict[str, tuple[pl.DataFrame, dict[str, Any]]]:
    """Made-up patients: what a server is shown on."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 95, 600)
    cost = 900 + 35 * age + 8 * np.maximum(0, age - 60) ** 1.4 + rng.normal(0, 500, 600)
    lat, lon = rng.normal(52.5, 0.9, 900).clip(50.5, 54.5), rng.normal(11, 2, 900).clip(6, 15)
    wait = 30 + 12 * np.sin(lon) + 10 * (lat - 52) + rng.normal(0, 6, 900)
    first = np.datetime64("2024-01-01")
    day, ward = rng.integers(0, 365, 500), rng.choice(["surgery", "medicine", "children"], 500)
    pain = 4 + 2 * np.cos(day / 58) + 1.5 * (ward == "surgery") + rng.normal(0, 1, 500)
    days = first + day.astype("timedelta64[D]")
    kinds = [{"columns": ["day"], "kind": "date"}, {"columns": ["ward"], "kind": "category"}]
    return {
        "Hospital stays": (
            pl.DataFrame({"age": age, "cost": cost}),
            {"inputs": ["age"], "output": "cost", "bounds": [0, 8000]},
        ),
        "Waiting times": (
            pl.DataFrame({"lat": lat, "lon": lon, "days": wait}),
            {"inputs": ["lat", "lon"], "output": "days", "bounds": [0, 90]},
        ),
        "Pain scores": (
            pl.DataFrame({"day": days, "ward": ward, "score": pain}),
            {"inputs": ["day", "ward"], "kinds": kinds, "output": "score", "bounds": [0, 10]},
        ),
    }


HEADLINES = {
    "Hospital stays": ("A stay costs three times as much at 90 as at 30", "€"),
    "Waiting times": ("Patients in the north wait longest", ""),
    "Pain scores": ("Pain is least in summer, and worst after surgery", ""),
}


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """The address of a server and a custodian's key."""
    made = application(Settings(data=folder, requests_per_second=1e9, burst=10**9))
    key = made.state.service.store.add_key("Clara", "custodian")[1]
    server = uvicorn.Server(uvicorn.Config(made, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", key
    finally:
        server.should_exit = True
        thread.join()


def released(address: str, key: str) -> dict[str, str]:
    """Register, plan, approve and release every table; the number of each release."""
    import httpx

    numbers = {}
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}) as client:

        def finished(job: dict[str, Any]) -> str:
            while job["state"] in ("waiting", "running"):
                time.sleep(0.1)
                job = client.get(f"/api/jobs/{job['id']}").json()
            assert job["state"] == "done", job
            return str(job["result"])

        for name, (table, columns) in tables().items():
            kept = client.post("/api/tables", content=table.write_csv().encode()).json()
            asked = {"name": name, "table": kept["table"], "epsilon": 4.0, "delta": 1e-5, **columns}
            asked["public_inputs"] = columns["inputs"]
            assert client.post("/api/datasets", json=asked).status_code == 201
            wanted = {"epsilon": 1.0, "delta": 1e-5}
            plan = finished(client.post(f"/api/datasets/{name}/plans", json=wanted).json())
            client.post(f"/api/plans/{plan}/approve")
            once = {"Idempotency-Key": f"picture-{name.replace(' ', '-')}"}
            path = f"/api/datasets/{name}/releases"
            numbers[name] = finished(client.post(path, json={"plan": plan}, headers=once).json())
            headline, unit = HEADLINES[name]
            words = {"headline": headline, "unit": unit}
            client.put(f"/api/releases/{numbers[name]}/title", json=words)
        finished(client.post("/api/datasets/Pain scores/plans", json=wanted).json())
        prior = {"kind": "function", "variance": 4e6, "lengthscales": [20], "noise_variance": 2.5e5}
        once = {"Idempotency-Key": "picture-function"}
        path = "/api/datasets/Hospital stays/functions"
        numbers["function"] = finished(
            client.post(path, json={**prior, **wanted}, headers=once).json()
        )
    return numbers


def taken(address: str, key: str, numbers: dict[str, str], looks: list[str]) -> Iterator[Any]:
    """Every page in these looks: its name, its look, its picture."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    stays = "/datasets/Hospital stays"
    pages = {
        "home": "/", "approvals": "/approvals", "people": "/people", "ledger": "/ledger",
        "plan": stays, "releases": f"{stays}/releases", "charges": f"{stays}/ledger",
        "curve": f"/releases/{numbers['Hospital stays']}",
        "map": f"/releases/{numbers['Waiting times']}",
        "levels": f"/releases/{numbers['Pain scores']}",
        "function": f"/functions/{numbers['function']}", "missing": "/nothing",
    }  # fmt: skip
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=browser, args=FLAGS)
        for look in looks:
            page = made.new_context(**LOOKS[look], reduced_motion="reduce").new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(address)
            yield "sign-in", look, page.screenshot(full_page=True)
            page.get_by_label("Your key").fill(key)
            page.keyboard.press("Enter")
            page.get_by_role("heading", name="Datasets").wait_for()
            for name, path in pages.items():
                page.goto(f"{address}{path}")
                page.wait_for_load_state("networkidle")
                if name == "plan":
                    page.locator("#choice").wait_for()
                yield name, look, page.screenshot(full_page=True)
            page.goto(f"{address}/register")
            yield "register", look, page.screenshot(full_page=True)
            _answer_questions(page)
            yield "bounds", look, page.screenshot(full_page=True)
        made.close()


def _answer_questions(page: Any) -> None:
    """Go through the wizard up to the bounds."""
    table, _ = tables()["Pain scores"]
    file = {"name": "pain.csv", "mimeType": "text/csv", "buffer": table.write_csv().encode()}
    page.locator("#table").set_input_files(file)
    following = page.get_by_role("button", name="Next", exact=True)
    following.click()
    for column, use in {"day": "input", "ward": "input", "score": "outcome"}.items():
        page.get_by_label(f"Use {column} as", exact=True).select_option(use)
    for _ in range(3):
        following.click()
    page.get_by_role("heading", name="Between which values?").wait_for()


def sheet(pictures: list[bytes], across: int, width: int, height: int) -> bytes:
    """The tops of many pages beside each other."""
    rows = -(-len(pictures) // across)
    whole = Image.new("RGB", (across * (width + 12) + 12, rows * (height + 12) + 12), "#8a949e")
    for place, picture in enumerate(pictures):
        image = Image.open(io.BytesIO(picture)).convert("RGB")
        ratio = width / image.width
        image = image.resize((width, round(ratio * image.height)), Image.Resampling.LANCZOS)
        at = 12 + place % across * (width + 12), 12 + place // across * (height + 12)
        whole.paste(image.crop((0, 0, width, min(height, image.height))), at)
    out = io.BytesIO()
    few = whole.quantize(SHEET_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(out, "PNG", optimize=True)
    return out.getvalue()


def small(picture: bytes, height: int) -> bytes:
    """The top of a picture, in few colours."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.crop((0, 0, image.width, min(height, image.height)))
    out = io.BytesIO()
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, default=None)
    folder = parser.parse_args(arguments).all
    with TemporaryDirectory() as data, served(Path(data)) as (address, key):
        pictures = {
            (name, look): picture
            for name, look, picture in taken(address, key, released(address, key), [*LOOKS])
        }
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        for (name, look), picture in pictures.items():
            (folder / f"{name}-{look}.png").write_bytes(picture)
    for name, (page, height) in SHOWN.items():
        for look, end in (("light", ""), ("dark", "-dark")):
            (HERE / f"{name}{end}.png").write_bytes(small(pictures[page, look], height))
    for look in LOOKS:
        every = [picture for (_, each), picture in pictures.items() if each == look]
        (HERE / f"server-{look}.png").write_bytes(sheet(every, *SHEETS[look]))


if __name__ == "__main__":
    main()
