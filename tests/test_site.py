"""The site stands separately: it builds strictly, its links lead somewhere, it asks no other host."""

from __future__ import annotations

import inspect
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import matplotlib
import numpy as np
import pytest
from mkdocs.exceptions import PluginError

import privgp
from benchmarks import gallery
from website.links import with_dark_pictures
from website.mathematics import mathml
from website.stories import STORIES, run, text_of

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

# Links a browser follows separately, in contrast to what readers click.
LOADING = {
    "script",
    "img",
    "iframe",
    "source",
    "video",
    "audio",
    "embed",
    "object",
    "link",
    "track",
}
OTHER_HOST = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", re.IGNORECASE)
IN_SCRIPT = re.compile(r"[\"'`]((?:https?:)?//[\w.-]+\.[a-z]{2,}[^\"'`\s]*)", re.IGNORECASE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Text in messages and in examples, and names of formats; none is ever fetched.
NAMED = ("http://www.w3.org/", "https://privgp.example.org", "https://login.example.org")


class Page(HTMLParser):
    """What a page loads, where it links to, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)
        self.loads += styled(" ".join(re.findall(r"<style.*?</style>", text, re.DOTALL)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if "id" in has:
            self.anchors.add(has["id"])
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        if tag in LOADING and has.get("rel") not in {"canonical", "prev", "next"}:
            self.loads += [has[name] for name in ("src", "href", "data", "poster") if name in has]
            self.loads += [part.split()[0] for part in has.get("srcset", "").split(",") if part]
        self.loads += styled(has.get("style", ""))


def styled(text: str) -> list[str]:
    """What a style sheet loads."""
    return [one or other for one, other in STYLE.findall(COMMENT.sub("", text))]


def scripted(text: str) -> list[str]:
    """Addresses of other hosts in the strings of a script."""
    found = IN_SCRIPT.findall(COMMENT.sub("", text))
    return [address for address in found if not address.startswith(NAMED)]


def foreign(addresses: list[str]) -> list[str]:
    return [address for address in addresses if OTHER_HOST.match(address)]


def asked_elsewhere(site: Path) -> list[tuple[str, str]]:
    """Every file of the site with an address of another host that it makes a browser fetch."""
    found = []
    for path in sorted(site.rglob("*")):
        if path.suffix not in {".html", ".css", ".js", ".svg"}:
            continue
        text = path.read_text(encoding="utf-8")
        kinds = {".html": lambda text: foreign(Page(text).loads), ".js": scripted}
        addresses = kinds.get(path.suffix, lambda text: foreign(styled(text)))(text)
        found += [(str(path.relative_to(site)), address) for address in addresses]
    return found


def broken(site: Path) -> list[tuple[str, str]]:
    """Every page with a link or a load to a file or an anchor that is not there."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"  # its links start at the root of a server
    }
    found = []
    for path, page in pages.items():
        for target in [*page.links, *page.loads]:
            if re.match(r"[a-z]+:|//", target):
                continue
            name, _, anchor = unquote(target).partition("#")
            place = (path.parent / name.partition("?")[0]).resolve() if name else path
            place = place / "index.html" if place.is_dir() else place
            there = place.is_file() and place.is_relative_to(site)
            if not there or (anchor and place in pages and anchor not in pages[place].anchors):
                found.append((str(path.relative_to(site)), target))
    return found


def searched(site: Path) -> tuple[str, list[str]]:
    """What a search says in a browser that opened the site from disk, and whatever it asked."""
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(reduced_motion="reduce")
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.click(".md-search__input")
        page.keyboard.type("ledger")
        found = page.locator(".md-search-result__item")
        for _ in range(60):  # a key that is pressed before the index is there is lost
            page.wait_for_timeout(500)
            if found.count():
                break
            page.keyboard.press("End")
        said = page.locator(".md-search-result__meta").text_content() or ""
        browser.close()
    return said, asked


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    site = tmp_path_factory.mktemp("built").resolve() / "site"
    made = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return site


def test_the_site_builds_strictly_and_stands_by_itself(site):
    assert not broken(site)
    assert not asked_elsewhere(site)
    for page in (ROOT / "docs" / "proofs").glob("*.md"):
        if page.name != "README.md":
            proof = (site / "proofs" / f"{page.stem}.html").read_text(encoding="utf-8")
            assert "<math" in proof, page.name
            assert "arithmatex" not in proof, page.name
    if CHROMIUM:
        said, asked = searched(site)
        assert re.search(r"\d+ matching", said)
        assert [address for address in asked if not address.startswith("file:")] == []


def test_the_search_ranks_guides_before_the_reference_and_knows_other_words(site):
    entries = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    weights = {entry["location"].partition("#")[0]: entry.get("boost", 1.0) for entry in entries}
    guide, reference = weights["ledger.html"], weights["reference/Ledger.html"]
    assert guide > 1.0 > weights["proofs/ledger.html"] > reference
    assert reference > weights["project/changelog.html"]
    found = {entry["location"].partition(".")[0] for entry in entries if "GDPR" in entry["text"]}
    assert "dpia" in found


ROW = re.compile(
    r'id="(privgp\.[\w.]+)"|<tr class="doc-section-item">\s*<td>\s*<code>(\w+)</code>(.*?)</tr>',
    re.DOTALL,
)


def documented_defaults(page: str) -> list[tuple[str, str, str]]:
    """Every parameter of the reference: whose it is, its name and its default; empty: required."""
    owner, found = "", []
    for whose, parameter, rest in ROW.findall(page):
        owner = whose or owner
        cells = re.findall(r"<td>(.*?)</td>", rest, re.DOTALL)
        if parameter and len(cells) == 3:  # type, sentence, default
            default = re.search(r"<code>(.*)</code>", cells[-1], re.DOTALL)
            found.append((owner, parameter, unescape(default[1]) if default else ""))
    return found


def shown_default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    return "" if value is parameter.empty else getattr(value, "__name__", repr(value))


def test_the_reference_states_every_default_as_it_is(site):
    """Of parameters that share a sentence too: delta is 1e-6 beside an epsilon of 1."""
    pages = sorted((site / "reference").glob("*.html"))
    found = [each for page in pages for each in documented_defaults(page.read_text("utf-8"))]
    wrong, regressor = [], {}
    for owner, name, default in found:
        thing = pydoc.locate(owner)
        stated = shown_default(inspect.signature(thing).parameters[name])
        if re.sub(r"<[^>]*>", "", default) != stated:
            wrong.append((owner, name, default, stated))
        if thing is privgp.PrivateGPRegressor:
            regressor[name] = default
    assert wrong == []
    assert len(found) > 50
    assert (regressor["epsilon"], regressor["delta"]) == ("1.0", "1e-06")


@pytest.mark.parametrize(
    ("formula", "part"),
    [
        (r"m \log \theta", '<mo lspace="0.17em" rspace="0.17em">log</mo>'),
        (r"\max(a, b)", '<mo lspace="0" rspace="0">max</mo>'),
        ("[-1, 1]", '<mo form="prefix" lspace="0" rspace="0">&#x02212;</mo>'),
        ("b - a", "<mo>&#x02212;</mo>"),
        (r"z \sim N", "<mo>&#x0223C;</mo>"),
    ],
)
def test_a_formula_is_spaced_as_in_print(formula, part):
    assert part in mathml(formula, "inline")


def test_a_command_that_cannot_be_rendered_is_refused():
    with pytest.raises(PluginError, match="cannot be rendered"):
        mathml(r"a \unheardof b", "inline")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.html", '<script src="https://unpkg.com/x.js"></script>'),
        ("page.html", '<link rel="stylesheet" href="//fonts.example.org/css">'),
        ("page.html", '<img srcset="a.png 1x, https://example.org/b.png 2x">'),
        ("page.html", '<p style="background: url(https://example.org/a.png)">'),
        ("page.html", "<style>@import 'https://example.org/a.css';</style>"),
        ("style.css", 'a { src: url("https://fonts.example.org/a.woff") }'),
        ("code.js", 'load("https://unpkg.com/mermaid")'),
    ],
)
def test_whatever_another_host_is_asked_for_is_found(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert [found for found, _ in asked_elsewhere(tmp_path)] == [name]


def test_links_that_readers_click_may_lead_elsewhere(tmp_path):
    (tmp_path / "page.html").write_text('<a href="https://example.org">x</a>', encoding="utf-8")
    assert asked_elsewhere(tmp_path) == []


@pytest.mark.parametrize("target", ["away.html", "other.html#gone", "#gone", "../outside.html"])
def test_a_link_that_leads_nowhere_is_found(tmp_path, target):
    site = tmp_path.resolve() / "site"
    site.mkdir()
    (site.parent / "outside.html").write_text("", encoding="utf-8")
    (site / "other.html").write_text('<h1 id="here">x</h1>', encoding="utf-8")
    (site / "page.html").write_text(
        f'<a href="other.html#here">x</a><a href="{target}">x</a>', encoding="utf-8"
    )
    assert broken(site) == [("page.html", target)]


# Notebooks: they run, and what they would print is not kept in them.


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_a_notebook_runs_and_makes_its_picture(story, tmp_path):
    printed = run(story, tmp_path)
    assert "differential privacy" in printed
    assert (tmp_path / f"{story.stem}.svg").stat().st_size > 10_000
    assert (ROOT / "docs" / "pictures" / f"story-{story.stem}.svg").exists()


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_a_notebook_holds_what_it_printed_as_text(story):
    cells = json.loads(story.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert {output["output_type"] for output in outputs} == {"stream"}
    assert not [cell for cell in code if cell["execution_count"]]
    assert "ipykernel" not in json.dumps(outputs)


def test_a_picture_with_a_dark_twin_is_shown_with_it():
    both = "![a](pictures/server-home.png#only-light)![a](pictures/server-home-dark.png#only-dark)"
    assert with_dark_pictures("![a](pictures/server-home.png)", ROOT / "docs") == both
    alone = "![a](pictures/server-light.png)"
    assert with_dark_pictures(alone, ROOT / "docs") == alone


def test_a_warning_in_a_notebook_keeps_its_words_alone():
    printed = "a\n/tmp/ipykernel_1/2.py:5: UserWarning: The file contains inputs.\n  model.save(path)\nb\n"
    assert text_of({"text": printed}) == "a\nUserWarning: The file contains inputs.\nb\n"


TAUGHT = [*STORIES, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


@pytest.mark.parametrize("page", TAUGHT, ids=lambda path: path.name)
def test_no_page_teaches_to_silence_warnings(page):
    text = page.read_text(encoding="utf-8")
    assert "simplefilter" not in text
    assert "filterwarnings" not in text


def outlines(picture: Path) -> list[np.ndarray]:
    """The numbers of every line and area of an SVG picture."""
    found = re.findall(r'<path d="([^"]+)"', picture.read_text(encoding="utf-8"))
    return [np.array(re.findall(r"-?[\d.]+", each), dtype=float) for each in found]


DRAWN_BY = (3, 11)  # the version of matplotlib that drew the pictures of the pages


def test_the_picture_and_the_words_of_the_tutorial_are_of_its_own_data(
    tmp_path, monkeypatch, capsys
):
    """Drawn again by the code on the page; what it prints is what the page shows, except for the dots."""
    monkeypatch.setattr(gallery, "HERE", tmp_path)
    gallery.DRAWN["plan"](tmp_path / "plan.svg")
    made, kept = (outlines(folder / "plan.svg") for folder in (tmp_path, ROOT / "docs/pictures"))
    assert len(made) > 10
    if matplotlib.__version_info__ >= DRAWN_BY:  # older versions set letters of other sizes
        assert [len(each) for each in made] == [len(each) for each in kept]
        assert max(np.abs(a - b).max() for a, b in zip(made, kept, strict=True)) < 2.0  # points
    shown = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(Budget: .*?)```", shown, re.DOTALL)
    form = re.escape(block).replace(re.escape("..."), ".*")
    assert re.search(form, capsys.readouterr().out)
