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
WIDE, PHONE = {"width": 1000, "height": 800}, {"width": 390, "height": 844}
LOOKS: dict[str, Any] = {
    "light": {"color_scheme": "light", "viewport": WIDE},
    "dark": {"color_scheme": "dark", "viewport": WIDE},
    "phone": {"color_scheme": "light", "viewport": PHONE},
    "phone-dark": {"color_scheme": "dark", "viewport": PHONE},
}
# The pictures of the docs: page, look, height in pixels.
SHOWN = {
    "server-plan": ("planner", "light", 1500),
    "server-release": ("curve", "light", 1000),
    "server-map": ("map", "dark", 1500),
    "server-phone": ("curve", "phone", 1000),
}
COLOURS = 256
PATIENCE = 180_000  # milliseconds


def tables() -> dict[str, tuple[pl.DataFrame, dict[str, Any]]]:
    """Made-up people: what a server is shown on."""
    rng = np.random.default_rng(0)
    age = rng.uniform(2, 85, 400)
    height = 168 - 90 * np.exp(-age / 8) + rng.normal(0, 7, 400)
    lon, lat = rng.normal(-0.1, 0.12, 400), rng.normal(51.5, 0.07, 400)
    rent = 2200 * np.exp(-8 * ((lon + 0.13) ** 2 + 2 * (lat - 51.51) ** 2) ** 0.5 / 2) + rng.normal(
        0, 200, 400
    )
    bmi, bp = rng.normal(26, 4, 400), rng.normal(95, 12, 400)
    cost = 500 + 20 * age + 40 * (bmi - 20) + 5 * (bp - 90) + rng.normal(0, 200, 400)
    return {
        "heights": (
            pl.DataFrame({"age": age.round(1), "height in cm": height}),
            {"inputs": ["age"], "output": "height in cm", "bounds": [60, 210]},
        ),
        "rents": (
            pl.DataFrame({"latitude": lat, "longitude": lon, "rent in pounds": rent}),
            {
                "inputs": ["latitude", "longitude"],
                "output": "rent in pounds",
                "bounds": [0, 3000],
            },
        ),
        "costs": (
            pl.DataFrame({"age": age, "bmi": bmi, "blood pressure": bp, "cost in pounds": cost}),
            {
                "inputs": ["age", "bmi", "blood pressure"],
                "output": "cost in pounds",
                "bounds": [0, 5000],
            },
        ),
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
            once = {"Idempotency-Key": f"picture-{name}"}
            path = f"/api/datasets/{name}/releases"
            numbers[name] = finished(client.post(path, json={"plan": plan}, headers=once).json())
    return numbers


def taken(address: str, key: str, numbers: dict[str, str], looks: list[str]) -> Iterator[Any]:
    """Every page in these looks: its name, its look, its picture."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    paths = {"curve": "heights", "map": "rents", "slices": "costs"}
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu"]
        )
        for look in looks:
            page = made.new_context(**LOOKS[look], reduced_motion="reduce").new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(address)
            yield "sign-in", look, page.screenshot(full_page=True)
            page.get_by_label("Your key").fill(key)
            page.keyboard.press("Enter")
            page.locator("#keys tr").first.wait_for()
            yield "start", look, page.screenshot(full_page=True)
            for name, dataset in paths.items():
                page.goto(f"{address}/releases/{numbers[dataset]}")
                page.locator("#views .main-svg").last.wait_for()
                page.wait_for_timeout(1500)
                yield name, look, page.screenshot(full_page=True)
            page.locator("summary", has_text="Everything it says").click()
            yield "certificate", look, page.screenshot(full_page=True)
            page.goto(f"{address}/datasets/rents")
            page.get_by_role("button", name="Show what budgets would buy").click()
            page.locator("#bars .main-svg").last.wait_for()
            page.wait_for_timeout(700)
            yield "planner", look, page.screenshot(full_page=True)
            page.get_by_role("button", name="Plan with this epsilon").click()
            page.get_by_role("button", name="Approve").last.click()
            page.get_by_role("button", name="Release …").last.click()
            yield "last-look", look, page.screenshot()
        made.close()


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
    looks = [*LOOKS] if folder else sorted({look for _, look, _ in SHOWN.values()})
    with TemporaryDirectory() as data, served(Path(data)) as (address, key):
        pictures = {
            (name, look): picture
            for name, look, picture in taken(address, key, released(address, key), looks)
        }
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        for (name, look), picture in pictures.items():
            (folder / f"{name}-{look}.png").write_bytes(picture)
    for name, (page, look, height) in SHOWN.items():
        (HERE / f"{name}.png").write_bytes(small(pictures[page, look], height))


if __name__ == "__main__":
    main()
