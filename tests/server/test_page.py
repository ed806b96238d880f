"""A walk through the pages in a real browser: by keyboard, in dark mode, at phone width, alone."""

from __future__ import annotations

import shutil
import threading
import time

import pytest
import uvicorn

from privgp.server.app import application
from tests.server.world import settings, table_of

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the walk is not taken")
LIGHT = {"color_scheme": "light", "viewport": {"width": 1100, "height": 900}}
DARK = {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a server, and a custodian's key."""
    made = application(settings(tmp_path_factory.mktemp("page")))
    key = made.state.service.store.add_key("clara", "custodian")[1]
    server = uvicorn.Server(uvicorn.Config(made, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    end = time.monotonic() + 30
    while not server.started:
        assert time.monotonic() < end
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", key
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield made
        made.close()


def opened(browser, look):
    """A page that notes every host it asks and whatever it complains of."""
    page = browser.new_context(**look, reduced_motion="reduce").new_page()
    page.set_default_timeout(30_000)
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    return page, asked, complaints


def signed_in(page, address, key):
    page.goto(address)
    page.get_by_label("Your key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Datasets").wait_for()


def serious(page):
    """What an audit of accessibility finds, but for trifles."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        (e["id"], e["nodes"][0]["html"]) for e in found if e["impact"] in ("serious", "critical")
    ]


def no_wider_than_the_screen(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_walk(served, browser, tmp_path):
    """Register → plan → slide → approve → release → curve → certificate → ledger → download."""
    address, key = served
    page, asked, complaints = opened(browser, LIGHT)
    page.goto(address)
    assert not serious(page)
    signed_in(page, address, key)
    assert not serious(page)
    (tmp_path / "visits.csv").write_bytes(table_of())
    page.get_by_label("Table").set_input_files(tmp_path / "visits.csv")
    form = {"Input columns": "age", "Private output": "cost", "Bounds of the output": "0, 5000"}
    for label, value in {**form, "Epsilon in all": "2"}.items():
        page.get_by_label(label).fill(value)
    page.locator("#name").fill("visits")
    page.get_by_role("button", name="Register").click()

    page.get_by_role("heading", name="visits", exact=True).wait_for()
    page.get_by_text("Left: epsilon = 2.").wait_for()
    page.get_by_role("button", name="Show what budgets would buy").click()
    slider = page.get_by_label("Epsilon")
    slider.wait_for()
    before = page.locator("#buys").inner_text()
    slider.focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")  # the keyboard moves it
    assert page.locator("#buys").inner_text() != before
    page.locator("#bars .main-svg").first.wait_for()
    page.get_by_role("button", name="Plan with this epsilon").click()
    page.locator("#plans tr").nth(1).wait_for()
    page.get_by_role("button", name="Approve").nth(1).click()
    page.get_by_role("button", name="Release …").click()
    words = page.locator("#last-words").inner_text()
    assert "This spends epsilon = 0.5" in words
    assert "Left afterwards: epsilon = 1.5" in words
    assert not serious(page)
    page.get_by_role("button", name="Spend it and release").click()

    page.get_by_role("heading", name="Release of visits").wait_for()
    page.locator("#views .main-svg").first.wait_for()
    assert not serious(page)
    page.screenshot(path=tmp_path / "release.png", full_page=True)
    with page.expect_download() as download:
        page.get_by_role("link", name="The release (.privgp)").click()
    assert download.value.path().read_bytes()[:2] == b"PK"
    released = page.url
    page.get_by_role("link", name="Certificate", exact=True).click()
    page.get_by_role("heading", name="Privacy certificate").wait_for()
    page.goto(f"{address}/datasets/visits")
    page.locator("#entries tr").nth(1).wait_for()
    assert page.locator("#left").inner_text() == "1.5"
    page.screenshot(path=tmp_path / "dataset.png", full_page=True)
    page.goto(address)
    page.get_by_role("button", name="Check every chain").click()
    page.get_by_text("Every chain is whole.").wait_for()

    phone, also_asked, also = opened(browser, DARK)
    signed_in(phone, address, key)
    for path, drawn in (
        (released, "#views .main-svg"),
        (f"{address}/datasets/visits", "#plans tr"),
    ):
        phone.goto(path)
        phone.locator(drawn).first.wait_for()
        assert no_wider_than_the_screen(phone), path
        assert not serious(phone)
    phone.goto(released)
    phone.locator("#views .main-svg").first.wait_for()
    phone.screenshot(path=tmp_path / "phone.png", full_page=True)
    phone.keyboard.press("Tab")
    assert phone.evaluate("document.activeElement.textContent") == "Skip to the content"
    hosts = {url.split("/")[2] for url in asked + also_asked if url.startswith("http")}
    assert hosts == {address.removeprefix("http://")}  # nothing leaves the host
    assert not complaints + also
