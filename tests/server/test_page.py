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
from privgp.server.views.exports import render_release
from tests.server.world import settings

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the walk is not taken")
FIND = "Nobody knows the bounds of the outcome"
LIGHT = {"color_scheme": "light", "viewport": {"width": 1100, "height": 900}}
PHONE = {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a server, and a custodian's key."""
    made = application(settings(tmp_path_factory.mktemp("page"), hosts=["127.0.0.1"]))
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


def rents(rng):
    """Rents of simulated people, by where they live."""
    lat, lon = rng.uniform(51.3, 51.7, 30), rng.uniform(-0.5, 0.2, 30)
    return pl.DataFrame({"lat": lat, "lon": lon, "rent": 1000 + 900 * lon})


def scores(rng):
    """Scores of simulated patients, by day and ward."""
    days = np.datetime64("2024-01-01") + rng.integers(0, 365, 40).astype("timedelta64[D]")
    ward = rng.choice(["surgery", "medicine"], 40)
    score = 5 + 2 * (ward == "surgery") + rng.normal(0, 0.5, 40)
    return pl.DataFrame({"day": days, "ward": ward, "score": score})


def stays(rng):
    """Costs of simulated stays in hospital: one patient has several."""
    age = rng.integers(20, 80, 20).repeat(2)
    return pl.DataFrame({"patient": np.arange(20).repeat(2), "age": age, "cost": 10 * age})


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    for make in (rents, scores, stays):
        make(rng).write_csv(tmp_path / f"{make.__name__}.csv")
    return tmp_path


def opened(browser, look):
    """A page that notes every address it asks and whatever it complains of."""
    page = browser.new_context(**look, reduced_motion="reduce").new_page()
    page.set_default_timeout(120_000)
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda problem: complaints.append(str(problem)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    return page, asked, complaints


def signed_in(page, address, key):
    page.goto(address)
    page.get_by_label("Your key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Datasets").wait_for()


def serious(page):
    """What an audit of accessibility finds, except for trifles."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        (e["id"], e["nodes"][0]["html"]) for e in found if e["impact"] in ("serious", "critical")
    ]


def no_wider_than_the_screen(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def taken(page, link):
    """The file that an entry of the menu gives, and its name."""
    page.get_by_text("Download", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name=link).click()
    return download.value.path(), download.value.suggested_filename


def go_on(page, button="Next"):
    page.get_by_role("button", name=button, exact=True).click()


def heading(page, name):
    page.get_by_role("heading", name=name, exact=True).wait_for()


def registered(page, address, path, uses, bounds, *, public=(), several="", epsilon="2"):
    """Register a table as the questions come.

    uses: what a column is used as; bounds: fields of the step about bounds and what is written there;
    public: inputs that everyone may see; several: the person column
    """
    page.goto(f"{address}/register")
    page.locator("#table").set_input_files(path)
    go_on(page)
    heading(page, "What is in the columns?")
    for name, use in uses.items():
        page.get_by_label(f"Use {name} as", exact=True).select_option(use)
    go_on(page)
    heading(page, "May everyone see these values of every person?")
    assert page.get_by_label("No, ", exact=False).first.is_checked()  # as nobody said otherwise
    for name in public:
        page.get_by_label(f"Yes, everyone may see {name}").check()
    go_on(page)
    heading(page, "Can one person have several rows?")
    if several:  # as a column that names people holds some more than once
        assert page.get_by_label("Yes, and a column identifies the person").is_checked()
        assert page.get_by_label("Person column").input_value() == several
    go_on(page)
    heading(page, "Between which values?")
    go_on(page)
    assert page.locator("#bounds [aria-invalid=true]").count() == 1  # told at the field
    for label, value in bounds.items():
        if label == FIND:
            page.get_by_label(FIND).check()
        elif value is None:
            page.get_by_role("button", name="Fill in from the file").click()
        else:
            page.get_by_label(label).fill(value)
    go_on(page)
    heading(page, "How much privacy may be spent in total?")
    page.get_by_label("Total epsilon").fill(epsilon)
    assert "right at most 88.1% of the time" in page.locator("#odds").inner_text()
    go_on(page)
    heading(page, "Is this right?")
    summary = page.locator("#summary").inner_text()
    go_on(page, "Register")
    heading(page, path.stem)
    return summary


def released(page, name):
    """Plan, approve and release what the slider proposes, without learning, which is faster."""
    page.locator("#choice").wait_for()
    page.get_by_text("Options for experts").click()
    page.get_by_label("Hyperparameters").select_option("fixed")
    go_on(page, "Plan and approve")
    page.get_by_role("button", name="Release …").click()
    words = page.locator("#last-words").inner_text()
    go_on(page, "Spend it and release")
    page.locator(".reading strong").wait_for()
    assert f"Release of {name}" in page.locator("main").inner_text()
    return words


def test_from_sign_in_to_a_published_map(served, browser, tables):
    """A custodian registers a table of places, plans, releases, reads, names and publishes it."""
    address, key = served
    page, asked, complaints = opened(browser, LIGHT)
    page.goto(address)
    page.get_by_role("heading", name="Sign in").wait_for()
    assert not serious(page)
    page.get_by_label("Your key").fill("privgp-wrong")
    page.keyboard.press("Enter")
    page.get_by_text("This is not a valid key.").wait_for()
    assert ["status of 401" in each for each in complaints] == [True]  # the wrong key
    complaints.clear()
    signed_in(page, address, key)
    uses = {"lat": "input", "lon": "input", "rent": "outcome"}
    bounds = {"Lowest rent": "0", "Highest rent": "3000"}
    summary = registered(page, address, tables / "rents.csv", uses, bounds, public=("lat", "lon"))
    assert "lat, lon of every person, row by row" in summary

    slider = page.get_by_label("Epsilon to spend")
    slider.wait_for()
    before = page.locator("#buys").inner_text()
    for _ in range(2):
        slider.press("ArrowRight")  # the keyboard moves it
    after = page.locator("#buys").inner_text()
    errors = [float(told.split("±")[1].split(";")[0].replace(",", "")) for told in (before, after)]
    assert errors[1] < errors[0]  # more budget, a narrower interval
    assert not serious(page)
    words = released(page, "rents")
    assert "epsilon = 0.8, delta = " in words.replace("\n", " ")
    assert "Left afterwards\nepsilon = 1.2" in words
    assert "row by row" in words  # a last look says what is public

    read = page.get_by_label("Read at lon")
    before = page.locator(".reading").inner_text()
    read.press("ArrowRight")
    after = page.locator(".reading").inner_text()
    assert before != after == read.get_attribute("aria-valuetext")
    assert "Privacy noise accounts for ±" in after
    page.locator(".picture canvas").first.click(position={"x": 500, "y": 200})
    assert page.locator(".reading").inner_text() != after  # a click reads
    page.get_by_text("Part due to privacy noise").click()
    assert "privacy noise from ±" in page.locator(".map-key").inner_text()
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Edit headline and unit").click()
    page.locator("#headline").fill("Rents rise to the east")
    page.get_by_label("Unit of rent").fill("£")
    go_on(page, "Save")
    page.get_by_role("heading", name="Rents rise to the east").wait_for()
    page.locator(".reading strong", has_text="£").wait_for()
    assert not serious(page)
    shown = page.url

    path, name = taken(page, "The release")
    assert path.read_bytes()[:2] == b"PK"
    assert name.startswith("rents-")
    assert (
        taken(page, "The numbers of the picture")[0].read_text().startswith("lon,lat,mean of rent")
    )
    assert len(json.loads(taken(page, "The map")[0].read_text())["features"]) == 41 * 41
    shutil.copy(taken(page, "This page, to publish")[0], tables / "published.html")
    page.get_by_text("The numbers of the picture", exact=True).click()
    page.locator("#numbers tr").nth(1680).wait_for()

    phone, also_asked, also = opened(browser, PHONE)
    signed_in(phone, address, key)
    for path, place in (
        (address, ".thumb canvas"),
        (f"{address}/register", "#table"),
        (f"{address}/approvals", "td .released"),
        (f"{address}/people", "#keys tr"),
        (f"{address}/ledger", ".ring"),
        (f"{address}/datasets/rents", "td .released"),
        (f"{address}/datasets/rents/releases", ".thumb canvas"),
        (f"{address}/datasets/rents/ledger", "#entries tr >> nth=1"),
        (shown, ".reading strong"),
    ):
        phone.goto(path)
        phone.locator(place).first.wait_for()
        assert no_wider_than_the_screen(phone), path
        assert not serious(phone), path
    phone.goto(f"{address}/ledger")
    phone.get_by_role("button", name="Verify every chain").click()
    phone.get_by_text("Every chain is whole.").wait_for()
    phone.goto(address)
    phone.keyboard.press("Tab")
    assert phone.evaluate("document.activeElement.textContent") == "Skip to the content"
    hosts = {url.split("/")[2] for url in asked + also_asked if url.startswith("http")}
    assert hosts == {address.removeprefix("http://")}  # nothing leaves the host
    assert not complaints + also

    for look in (LIGHT, PHONE):  # what was published, without any server
        alone, asked, complaints = opened(browser, look)
        alone.goto((tables / "published.html").as_uri())
        heading(alone, "Rents rise to the east")
        alone.locator(".reading strong", has_text="£").wait_for()
        assert no_wider_than_the_screen(alone)
        assert not complaints
        assert [url for url in asked if not url.startswith(("data:", "blob:"))] == asked[:1]


def test_dates_and_categories_that_are_private(served, browser, tables):
    """Errors are told at the field; private inputs get bounds and levels; one curve per level."""
    address, key = served
    page, _, complaints = opened(browser, PHONE)
    signed_in(page, address, key)
    page.goto(f"{address}/register")
    go_on(page)
    page.get_by_text("Choose a table.").wait_for()
    uses = {"day": "input", "ward": "input", "score": "outcome"}
    bounds = {
        FIND: "", "Lowest score": "0", "Lowest day": "2024-01-01", "Highest day": "2024-12-31",
        "levels": None,
    }  # fmt: skip
    summary = registered(page, address, tables / "scores.csv", uses, bounds)
    assert "nothing about a single person" in summary
    assert "day 2024-01-01 to 2024-12-31" in summary
    assert "found with privacy noise, for epsilon 0.2" in summary
    assert "medicine, surgery: everyone sees this list" in summary
    page.locator("aside", has_text="found for epsilon 0.2").wait_for()
    assert "1.8 of 2 epsilon left" in page.locator("main").inner_text()
    released(page, "scores")
    page.get_by_label("ward").select_option("surgery")
    assert "ward surgery" in page.locator(".reading").inner_text()
    named = page.locator(".curve .label").all_text_contents()
    assert {"surgery", "medicine", "90% interval", "share of noise"} <= {*named}  # on a phone too
    page.locator(".curve").click(position={"x": 100, "y": 100})
    assert no_wider_than_the_screen(page)
    assert not serious(page)
    assert not complaints


def test_empty_cells_are_told_where_columns_are_chosen(served, browser, tmp_path):
    """Not once all questions are answered; signs that a name may not have are replaced."""
    page, _, _ = opened(browser, LIGHT)
    signed_in(page, *served)
    page.goto(f"{served[0]}/register")
    table = tmp_path / "März.csv"
    table.write_text("age,cost\n30,1\n40,\n50,2\n", "utf-8")
    page.locator("#table").set_input_files(table)
    go_on(page)
    for name, use in {"age": "input", "cost": "outcome"}.items():
        page.get_by_label(f"Use {name} as", exact=True).select_option(use)
    go_on(page)
    page.get_by_text("cost is empty in one row.").wait_for()
    assert page.locator("#name").input_value() == "Marz"


def test_people_with_several_rows_and_an_update(served, browser, tables):
    """All rows of a person are protected together; new people are added under the same plan."""
    address, key = served
    page, _, complaints = opened(browser, LIGHT)
    signed_in(page, address, key)
    uses = {"age": "input", "cost": "outcome"}
    bounds = {"Lowest cost": "0", "Highest cost": "1000"}
    given = {"public": ("age",), "several": "patient"}
    summary = registered(page, address, tables / "stays.csv", uses, bounds, **given)
    assert "all rows of a person together (patient)" in summary
    released(page, "stays")
    assert "all rows of one person together" in page.locator("main").inner_text()
    stays(np.random.default_rng(1)).write_csv(tables / "more.csv")
    page.get_by_label("Table").set_input_files(tables / "more.csv")
    page.get_by_role("button", name="See what it will cost").click()
    go_on(page, "Spend it and update")
    page.get_by_text("Update of stays").wait_for()
    page.goto(f"{address}/datasets/stays/releases")
    page.locator("#releases li").nth(1).wait_for()
    assert not complaints


@pytest.mark.parametrize("inputs", [1, 2])
def test_names_in_pictures_are_text(browser, tmp_path, inputs):
    """What is written like a link is drawn as text."""
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
    page.locator(".reading strong").wait_for()
    assert "click</a>" in page.locator("main").inner_text()
    links = page.evaluate("[...document.querySelectorAll('a')].map((each) => each.outerHTML)")
    assert not [each for each in links if "elsewhere" in each]
    assert not complaints
