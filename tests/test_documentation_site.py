"""The documentation site: built without a warning, whole, for everybody, and without a request to another host."""

import functools
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request

import deepcfr
from chromium import needs_a_folder, needs_chromium, take_picture

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(str(page.relative_to(DOCS).with_suffix(".html")) for page in DOCS.rglob("*.md"))


def build(folder: Path, **pages: str) -> subprocess.CompletedProcess[str]:
    """Build the site of a copy of the sources in `folder`, with text added to pages."""
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(DOCS, folder / "docs")
    (folder / "src").symlink_to(ROOT / "src")
    for name, text in pages.items():
        with open(folder / "docs" / f"{name}.md", "a", encoding="utf-8") as file:
            file.write(text)
    command = [Path(sys.executable).with_name("zensical"), "build", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build/site"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *_: object) -> None: ...


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(built))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page of a browser; the test fails if it asks another host, or if a script has an error."""
    wrong: list[str] = []

    def check(request: Request) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            wrong.append(request.url)

    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.on("request", check)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    opened.close()
    assert wrong == []


def test_every_page_is_on_the_site(built: Path) -> None:
    assert {str(page.relative_to(built)) for page in built.rglob("*.html")} == {*PAGES, "404.html"}


def test_every_public_name_is_in_the_reference(built: Path) -> None:
    names = set(re.findall(r'id="deepcfr\.([\w.]+)"', (built / "reference.html").read_text(encoding="utf-8")))
    shown = {name.rpartition(".")[2] for name in names}
    hidden = {"RunConfig", "load_config", "load_rules", "PokerGame"}  # settings and their files have pages of their own
    assert set(deepcfr.__all__) - hidden - shown == set()
    assert {"api.Agent.act", "api.Ranges.strategy", "game.base.Game.step"} <= names


def test_a_broken_page_is_an_error(tmp_path: Path) -> None:
    done = build(tmp_path, games="[x](cli.md#no-such-heading)", agents="\n\n::: deepcfr.nothing\n")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "anchor does not exist" in said
    assert "Could not collect 'deepcfr.nothing'" in said


FIRST = [f"{name}.html" for name in ("agents", "algorithms/cfr", "fhp", "index", "spots")]


@needs_chromium
@pytest.mark.parametrize("names", [FIRST, pytest.param(PAGES, marks=pytest.mark.long)], ids=["first", "all"])
def test_pages_are_for_everybody(page: Page, address: str, names: list[str]) -> None:
    quick = {"runOnly": ["wcag2a", "wcag2aa"], "rules": {"color-contrast": {"enabled": False}}}  # the theme's colours
    for name in names:
        page.goto(f"{address}/{name}")
        assert page.locator("h1").count() == 1, name
        options = {"resultTypes": ["violations"], **({} if name in ("index.html", "spots.html") else quick)}
        violations = Axe().run(page, options=options).response["violations"]
        found = [(v["id"], v["nodes"][0]["html"]) for v in violations]
        assert found == [], name


@needs_chromium
def test_search_finds_the_words_of_players_and_opens_a_page(page: Page, address: str) -> None:
    page.goto(f"{address}/index.html")
    page.get_by_role("button", name="Search").click()
    box = page.get_by_role("combobox")
    for words in ("node lock", "GTO", "OOP", "gadget"):
        box.fill(words)
        page.get_by_role("option").filter(has_text=re.compile(words, re.IGNORECASE)).first.wait_for()
    page.get_by_role("option").first.click()
    page.wait_for_url(re.compile(r"/search\.html"))


@needs_chromium
def test_a_page_of_a_folder_says_that_its_search_needs_a_server(browser: Browser, built: Path, address: str) -> None:
    note = "Search works when this site is served: make site-serve."
    for start, times in ((built.as_uri(), 1), (address, 0)):
        opened = browser.new_page()
        opened.goto(f"{start}/index.html", wait_until="load")
        assert opened.get_by_text(note, exact=True).count() == times
        opened.close()


@needs_a_folder
def test_a_picture_of_the_site_is_small(page: Page, address: str) -> None:
    """Write the picture of docs/web.md: `make screens`."""
    page.goto(f"{address}/index.html")
    assert take_picture(page, "site") < 150_000
