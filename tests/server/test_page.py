"""A walk through the pages in a real browser: by keyboard, in dark mode, at phone width, alone."""

from __future__ import annotations

import json
import shutil
import threading
import time

import numpy as np
import polars as pl
import pytest
import uvicorn

from privgp.models.load import pack_model, unpack_model
from privgp.models.regressor import PrivateGPRegressor
from privgp.server.app import application
from privgp.server.views.page import render_release
from tests.server.world import settings

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the walk is not taken")
LIGHT = {"color_scheme": "light", "viewport": {"width": 1100, "height": 900}}
PHONE = {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}
# A sheet that the plotting script tries to bring along, and the status of the page to sign in at.
EXPECTED = ("Applying inline style violates", "status of 401")


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


@pytest.fixture
def table(tmp_path):
    """Rents of made-up people, by where they live."""
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(51.3, 51.7, 30), rng.uniform(-0.5, 0.2, 30)
    path = tmp_path / "rents.csv"
    pl.DataFrame({"lat": lat, "lon": lon, "rent": 1000 + 900 * lon}).write_csv(path)
    return path


def is_problem(said):
    return said.type == "error" and not any(text in said.text for text in EXPECTED)


def opened(browser, look):
    """A page that notes every address it asks and whatever it complains of."""
    page = browser.new_context(**look, reduced_motion="reduce").new_page()
    page.set_default_timeout(30_000)
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    page.on("console", lambda said: complaints.append(said.text) if is_problem(said) else None)
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


def taken(page, link):
    with page.expect_download() as download:
        page.get_by_role("link", name=link).click()
    return download.value.path()


def drawn(page, address):
    page.goto(address)
    page.locator("#views .main-svg").last.wait_for()


def test_the_audit_finds_what_is_wrong(browser):
    page, _, _ = opened(browser, LIGHT)
    page.set_content("<html lang='en'><title>t</title><main><h1>h</h1><input></main>")
    assert [rule for rule, _ in serious(page)] == ["label"]


def test_a_walk(served, browser, table, tmp_path):
    """Register → plan → slide → approve → release → map → certificate → ledger → downloads."""
    address, key = served
    page, asked, complaints = opened(browser, LIGHT)
    page.goto(address)
    assert not serious(page)
    signed_in(page, address, key)
    assert not serious(page)
    page.get_by_label("Table").set_input_files(table)
    form = {
        "Input columns": "lat, lon",
        "Private output": "rent",
        "Bounds of the output": "0, 3000",
    }
    for label, value in {**form, "Total epsilon": "2", "Name": "rents"}.items():
        page.get_by_label(label).fill(value)
    assert page.get_by_label(
        "Bounds of the private inputs"
    ).is_visible()  # as nobody said otherwise
    for name in ("lat", "lon"):
        page.get_by_label(f"Yes, everyone may see {name} of every person").check()
    assert not page.get_by_label("Bounds of the private inputs").is_visible()
    page.get_by_role("button", name="Register").click()

    page.get_by_role("heading", name="rents", exact=True).wait_for()
    page.locator("#left", has_text="2").wait_for()
    page.get_by_text("There is no plan yet.").wait_for()
    page.get_by_text("Options").click()
    page.get_by_label("Hyperparameters").select_option("fixed")
    page.get_by_role("button", name="Show what budgets would buy").click()
    slider = page.get_by_label("Epsilon to spend")
    slider.wait_for()
    before = page.locator("#buys").inner_text()
    for _ in range(2):
        slider.press("ArrowRight")  # the keyboard moves it
    after = page.locator("#buys").inner_text()
    errors = [float(told.split("error ")[1].split(";")[0]) for told in (before, after)]
    assert errors[1] < errors[0]  # more budget, less error
    page.locator("#bars .main-svg").last.wait_for()
    page.get_by_role("button", name="Plan with this epsilon").click()
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("button", name="Release …").click()
    words = page.locator("#last-words").inner_text()
    assert "epsilon = 1, delta = " in words.replace("\n", " ")
    assert "Left now\nepsilon = 2" in words
    assert "Left afterwards\nepsilon = 1" in words
    assert not serious(page)
    page.get_by_role("button", name="Spend it and release").click()

    page.get_by_role("heading", name="Release of rents").wait_for()
    page.locator("#views .main-svg").last.wait_for()
    assert page.locator("#views figure").count() == 3  # mean, privacy and model
    read = page.get_by_label("Read at lon")
    before = page.locator(".reading").inner_text()
    read.press("ArrowRight")
    after = page.locator(".reading").inner_text()
    assert before != after == read.get_attribute("aria-valuetext")
    assert "due to privacy noise ±" in after
    released = page.url

    assert taken(page, "The release (.privgp)").read_bytes()[:2] == b"PK"
    assert taken(page, "The numbers of the picture").read_text().startswith("lat,lon,mean of rent")
    assert "privgp.load" in taken(page, "A script that repeats it").read_text()
    found = json.loads(taken(page, "The map (GeoJSON)").read_text())
    assert len(found["features"]) == 41 * 41
    shutil.copy(taken(page, "This page as one file"), tmp_path / "published.html")
    page.get_by_text("Everything it says").click()
    page.get_by_role("heading", name="What is not protected").wait_for()
    assert not serious(page)
    page.get_by_text("The same as numbers").click()
    page.locator("#numbers tr").nth(1680).wait_for()
    page.get_by_role("link", name="Certificate to print").click()
    page.get_by_role("heading", name="Privacy certificate").wait_for()

    page.goto(f"{address}/datasets/rents")
    page.locator("#entries tr").nth(1).wait_for()
    page.get_by_text("2 entries, each chained to the one before").wait_for()
    assert page.locator("#left").inner_text() == "1"
    page.get_by_role("button", name="Check every chain").click()
    page.get_by_text("Every chain is whole.").wait_for()

    phone, also_asked, also = opened(browser, PHONE)
    signed_in(phone, address, key)
    for path, shown in (
        (address, "#keys tr"),
        (f"{address}/datasets/rents", "#plans tr"),
        (released, "#views .main-svg"),
    ):
        phone.goto(path)
        phone.locator(shown).last.wait_for()
        assert no_wider_than_the_screen(phone), path
        assert not serious(phone)
    phone.keyboard.press("Tab")
    assert phone.evaluate("document.activeElement.textContent") == "Skip to the content"
    hosts = {url.split("/")[2] for url in asked + also_asked if url.startswith("http")}
    assert hosts == {address.removeprefix("http://")}  # nothing leaves the host
    assert not complaints + also

    for look in (LIGHT, PHONE):  # what was published, without any server
        alone, asked, complaints = opened(browser, look)
        drawn(alone, (tmp_path / "published.html").as_uri())
        assert alone.locator("#views figure").count() == 3
        assert no_wider_than_the_screen(alone)
        assert not complaints
        assert [url for url in asked if not url.startswith(("data:", "blob:"))] == asked[:1]


def test_an_update_and_a_refusal(served, browser, table, tmp_path):
    """A form that is wrong says why; new rows are looked at a last time, charged and published."""
    address, key = served
    page, _, complaints = opened(browser, PHONE)
    signed_in(page, address, key)
    rng = np.random.default_rng(1)
    for name in ("first", "second"):
        age = rng.uniform(20, 80, 25)
        pl.DataFrame({"age": age, "cost": 10 * age}).write_csv(tmp_path / f"{name}.csv")
    page.get_by_label("Table").set_input_files(tmp_path / "first.csv")
    form = {
        "Input columns": "age",
        "Private output": "cost",
        "Name": "costs",
        "Total epsilon": "2",
    }
    for label, value in form.items():
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Register").click()
    page.get_by_text("Give either the bounds of the output or its classes.").wait_for()
    page.get_by_label("Bounds of the output").fill("0, 1000")
    page.get_by_role("button", name="Register").click()
    page.get_by_text("or state that everyone may see them").wait_for()
    page.get_by_label("Yes, everyone may see age of every person").check()
    page.get_by_label("Bounds of the output").fill("1000, 0")
    page.get_by_role("button", name="Register").click()
    page.get_by_text("bounds must be low < high").wait_for()
    complaints.clear()  # the refused request
    page.get_by_label("Bounds of the output").fill("0, 1000")
    page.get_by_role("button", name="Register").click()
    page.get_by_role("heading", name="costs", exact=True).wait_for()
    page.get_by_text("Options").click()
    page.get_by_label("Hyperparameters").select_option("fixed")
    page.get_by_role("button", name="Show what budgets would buy").click()
    page.get_by_role("button", name="Plan with this epsilon").click()
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("button", name="Release …").click()
    page.get_by_role("button", name="Spend it and release").click()
    page.get_by_role("heading", name="Release of costs").wait_for()
    page.get_by_label("Table").set_input_files(tmp_path / "second.csv")
    page.get_by_role("button", name="Look at what it will cost").click()
    page.get_by_role("button", name="Spend it and update").wait_for()
    assert page.locator("#spent-epsilon").inner_text() == "0.6"
    page.get_by_role("button", name="Spend it and update").click()
    page.get_by_role("heading", name="Update of costs").wait_for()
    page.goto(f"{address}/datasets/costs")
    page.locator("#releases li").nth(1).wait_for()
    assert page.locator("#left").inner_text() == "0.8"
    assert not complaints


@pytest.mark.parametrize("inputs", [1, 2])
def test_names_in_pictures_are_text(browser, tmp_path, inputs):
    """The plotting script makes links of what is written like one."""
    link = '<a href="https://elsewhere.test/{}">click</a>'
    names = [link.format(place) for place in range(inputs)]
    X = pl.DataFrame(np.random.default_rng(0).uniform(size=(30, inputs)), schema=names)
    given = {"epsilon": 1.0, "delta": 1e-5, "hyperparameters": "fixed"}
    model = unpack_model(
        pack_model(PrivateGPRegressor(y_bounds=(0, 1), **given).fit(X, np.zeros(30)))
    )
    path = tmp_path / "page.html"
    path.write_text(
        render_release(model._released, link.format("output"), "names"), encoding="utf-8"
    )
    page, _, complaints = opened(browser, LIGHT)
    page.goto(path.as_uri())
    page.locator(".plot .main-svg").first.wait_for()
    assert "click</a>" in page.locator(".plot .infolayer").first.text_content()
    links = page.evaluate("[...document.querySelectorAll('a')].map((each) => each.outerHTML)")
    assert not [each for each in links if "elsewhere" in each]
    assert not complaints
