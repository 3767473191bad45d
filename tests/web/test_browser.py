"""The pages in a browser: whole hands, whole ways through the strategy, by keyboard, without script, and for everybody."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page

from chromium import needs_a_folder, needs_chromium, take_picture
from command_line import deepcfr
from deepcfr.api import solve_spot, solve_spots
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.query import query
from deepcfr.web.app import build_app, warm_up
from deepcfr.web.schema import SpotFacts
from deepcfr.web.site import Site
from web_site import MODELS, agent, model, site

PATIENCE = 30_000  # milliseconds
MOST_BYTES = 600_000  # of all pictures
SERIOUS = ("serious", "critical")  # impacts of barriers
FLOP = "betting=rc/c&board=Qs7h2c"

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Site:
    runs = site(model("fhp"), model("leduc"), model("hunl-200"), agent("even", "leduc", UniformPolicy))
    played = deepcfr("tournament", MODELS / "leduc", "scripted:call", "scripted:uniform", "--threads", 1, "--json")
    table = tmp_path_factory.mktemp("matches") / "tournament.json"
    table.write_text(played.out.replace(str(MODELS), "models"))
    runs.matches = (table,)
    spot: dict[str, Any] = {"pot": 6, "stacks": 20, "dealer": "22+,A2s+,KTs+,QTs+,ATo+,KJo+", "exploitability": 0.8}
    for name, big_blind in (("turn", "22-TT,A2s-AJs,K9s+,QTs+,JTs,T9s,98s,AJo,KQo"), ("wide", "22+,A2s+,K2s+,A8o+")):
        found = solve_spot("Qs 7h 2c 9d", "turn 75, river 75", big_blind=big_blind, **spot)
        runs.spots._spots[name] = SpotFacts.model_validate(found.facts())
        runs.spots._keep_streets(name, found)
    warm_up(runs)
    return runs


@pytest.fixture(scope="module")
def base(shown: Site) -> Iterator[str]:
    """The address of a server in this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build_app(shown), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, base: str) -> Iterator[Visit]:
    """Open a page; the test fails if anything leaves this machine, the console has an error, or an answer is 4xx or 5xx.

    With `mistakes` answers may be 400.
    """
    wrong: list[str] = []
    contexts = []

    def note(is_wrong: bool, text: str) -> None:
        wrong.extend([text] * is_wrong)

    def open_page(path: str, *, mistakes: bool = False, **settings: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | settings))
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: note(urlsplit(request.url).hostname != "127.0.0.1", request.url))
        page.on("response", lambda answer: note(answer.status >= 400 + mistakes, f"{answer.status} {answer.url}"))
        told = "status of 400" if mistakes else "nothing"
        page.on("console", lambda said: note(said.type in ("error", "warning") and told not in said.text, said.text))
        page.on("pageerror", lambda error: note(True, str(error)))
        page.goto(base + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def test_the_table_of_many_spots_sorts_by_a_press(browser: Browser, tmp_path: Path) -> None:
    """Numbers by their value, texts by their letters; the line of means stays where it is. Nothing bars anybody."""
    spots: dict[str, Any] = {"pot": 10, "stacks": 10, "dealer": "AA,QQ,JJ", "big_blind": "KK,77", "sizes": "river 50"}
    boards = ["Qs 7h 2c 9d 4s", "Ah Kd Qc 7s 2s", "Ts 9s 8s 2c 2d"]
    found = solve_spots(spots | {"boards": boards, "exploitability": 1}, tmp_path)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    column, head = list(found.columns()).index("EV of dealer"), page.get_by_role("button", name="EV of dealer")
    values = sorted(spot.shares("values")["dealer"] for spot in found.spots)
    for press, expected in ((head.click, values[::-1]), (lambda: head.press("Enter"), values)):
        press()
        shown = page.locator(f"table.sortable tbody td:nth-child({column + 1})").all_inner_texts()
        assert [float(text) for text in shown] == pytest.approx(expected, abs=1e-2)
    page.get_by_role("button", name="board").click()
    assert page.locator("table.sortable tbody td:nth-child(2)").all_inner_texts() == sorted(boards, reverse=True)
    assert page.locator("table.sortable tfoot td").first.inner_text() == "mean"
    for width, scheme in ((360, "dark"), (1280, "light")):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert [one["id"] for one in Axe().run(page).response["violations"] if one["impact"] in SERIOUS] == []
    page.close()


def finish(page: Page, press: Callable[[str], None]) -> int:
    """Play a hand to its end by checking and calling; how many actions that took."""
    taken = 0
    while not page.locator("#next").count():
        before = page.locator("input[name=decision]").get_attribute("value")
        press("c")
        taken += 1
        page.locator(f"#next, input[name=decision]:not([value='{before}'])").first.wait_for(state="attached")
    return taken


def sit(page: Page, name: str) -> None:
    """Go to an agent's table, and sit down there if that is not done."""
    page.goto(urljoin_base(page, f"/play/{name}"))
    if page.get_by_role("button", name="Sit down").count():
        with page.expect_navigation():
            page.keyboard.press("n")
        page.locator(".felt").wait_for()


def test_whole_hands_in_both_seats_by_keyboard(visit: Visit) -> None:
    page = visit("/")
    sit(page, "leduc")
    cards = page.get_by_role("group", name="Your cards").inner_html()
    table = page.locator(".table-side").inner_text()
    page.reload()
    assert page.locator(".table-side").inner_text() == table
    links: list[Any] = []
    for number, seat in ((1, "first"), (2, "second")):
        assert f"you act {seat}" in page.locator("h1").inner_text()
        taken = finish(page, page.keyboard.press)
        assert re.search(r"(You (win|lose) \d|The pot is split)", page.locator(".outcome").inner_text())
        assert page.locator(".review > li").count() == taken
        page.locator(".review .cost", has_text="cost").first.wait_for()
        assert page.locator(".seat .card.back").count() == 0
        links.append(page.get_by_role("link", name="Play this hand again").get_attribute("href"))
        if number == 1:
            page.keyboard.press("n")
            page.get_by_role("heading", name="Hand 2").wait_for()
    counted = page.locator("#score-title").inner_text()
    assert "2 hands" in counted
    page.goto(urljoin_base(page, links[0]))
    page.get_by_role("button", name="Deal this hand again").click()
    page.get_by_text("dealt again, does not count").wait_for()
    assert page.get_by_role("group", name="Your cards").inner_html() == cards
    finish(page, page.keyboard.press)
    assert page.locator("#score-title").inner_text() == counted


def test_hands_are_played_without_script(visit: Visit) -> None:
    page = visit("/play/leduc", java_script_enabled=False)
    page.get_by_role("button", name="Sit down").click()
    while not page.locator("#next").count():
        with page.expect_navigation():
            page.locator("button[value=c]").click()
    assert page.locator(".outcome").inner_text()
    page.locator("#next").click()
    page.get_by_role("heading", name="Hand 2").wait_for()


def test_the_way_to_a_flop_and_the_board_that_is_picked(visit: Visit, shown: Site) -> None:
    page = visit("/strategy/fhp")
    page.get_by_role("link", name="raise to 2", exact=True).click()
    page.wait_for_url("**betting=r")
    page.locator(".history > ol > li.here").get_by_role("link", name="call", exact=True).click()
    page.get_by_label("queen of spades", exact=True).first.wait_for(state="attached")
    page.goto(page.url + "&board=Qs")  # a card that was there does not count as picked
    for card in ("7 of hearts", "2 of clubs"):
        page.get_by_label(card, exact=True).first.check(force=True)
    page.locator(".dealt").wait_for()
    assert parts(page.url) == {"betting": "rc/", "board": "Qs7h2c"}
    page.locator(".history > ol > li.here").get_by_role("link", name="check", exact=True).click()
    page.wait_for_url("**betting=rc/c*")
    widths = page.eval_on_selector_all(
        ".cell svg", "all => all.map(one => [...one.children].map(bar => +bar.getAttribute('width')))"
    )
    assert len(widths) == 169
    assert all(abs(sum(row) - 1000) < 0.5 for row in widths)
    page.locator("#fhp-by-hand-AKs").focus()
    for name in ("ArrowDown", "ArrowLeft", "Enter"):
        page.keyboard.press(name)
    page.get_by_role("heading", name="AKo").wait_for()
    assert page.evaluate("document.activeElement.id") == "fhp-by-hand-AKo"
    row = page.locator(".hands tbody tr").nth(5)
    text = row.locator(".strip").get_attribute("aria-label")
    expected = query(shown.run("fhp").listed()[0], f"{text} / rc / Qs 7h 2c / c").probabilities
    drawn = row.locator("rect").evaluate_all("all => all.map(bar => +bar.getAttribute('width') / 1000)")
    assert drawn == pytest.approx([share for share in reversed(expected.values()) if share > 0], abs=1e-4)
    page.go_back()
    page.get_by_role("heading", name="Hands").wait_for()


def parts(address: str) -> dict[str, str]:
    """The named parts of an address."""
    return dict(pair.split("=", 1) for pair in urlsplit(address).query.split("&"))


def test_a_spot_is_walked_from_its_turn_to_its_river_and_back(visit: Visit) -> None:
    page = visit("/spots/turn")
    way = page.get_by_role("navigation", name="Betting")
    for place in (0, 1):
        way.get_by_role("link", name="check").nth(place).click()
    page.get_by_role("heading", name="Choose the next card").wait_for()
    assert page.locator(".runouts a").count() == 48
    heart = page.locator(".runouts a", has=page.get_by_role("img", name="6 of hearts"))
    shares = [float(share) for share in re.findall(r"([\d.]+)%", heart.get_attribute("title") or "")]
    heart.click()
    page.locator(".browse").wait_for()
    assert page.locator("h1 .pip").count() == 5
    for share in page.locator(".browse .legend").first.get_by_role("listitem").all_inner_texts():
        assert any(abs(float(re.findall(r"[\d.]+", share)[-1]) - each) < 0.6 for each in shares), share
    way.get_by_role("link", name="bet 4.5").last.click()
    page.locator("p", has_text="to call").wait_for()
    assert page.locator(".lock").count() == 0
    way.get_by_role("link", name="Choose other cards").click()
    page.get_by_role("heading", name="Choose the next card").wait_for()


def test_a_spot_is_painted_solved_walked_and_locked(visit: Visit) -> None:
    page = visit("/spots", mistakes=True)
    page.locator("#dealer").fill("")
    page.locator("[data-paint=dealer] [data-kind=AA][aria-pressed=false]").wait_for()
    for name, text in (("board", "2c 2d 7h 9s Kc"), ("pot", "10"), ("stacks", "10"), ("sizes", "river 100")):
        page.locator(f"#{name}").fill(text)
    page.locator("#big_blind").fill("KK,4s3s:0.5")
    page.locator("[data-paint=big_blind] [data-kind='43s'][aria-pressed=mixed]").wait_for()
    cells = [page.locator(f"[data-paint=dealer] [data-kind={name}]") for name in ("AA", "AKs", "AQs", "QQ")]
    for place, box in enumerate(cell.bounding_box() for cell in cells[:3]):
        assert box is not None
        page.mouse.move(box["x"] + 9, box["y"] + 9)
        if not place:
            page.mouse.down()
    page.mouse.up()
    assert page.locator("#dealer").input_value() == "AA,AKs,AQs"
    page.locator("#dealer").fill("AsKs,AA,AQs")
    page.locator("[data-paint=dealer] [data-kind=AKs][aria-pressed=mixed]").wait_for()
    cells[3].focus()
    page.keyboard.press("Enter")
    assert page.locator("#dealer").input_value() == "AA,AsKs,AQs,QQ"  # one hand of AKs stays one hand
    for _ in range(2):
        cells[1].click()
    assert page.locator("#dealer").input_value() == "AA,AQs,QQ"
    page.locator("#weight-dealer").fill("25")
    cells[0].click()
    assert page.locator("#dealer").input_value() == "AA:0.25,AQs,QQ"
    cells[0].click()
    assert page.locator("#dealer").input_value() == "AQs,QQ"
    page.locator("#preset-dealer").select_option(index=1)
    page.locator("[data-paint=dealer] [data-kind='22'][aria-pressed=true]").wait_for()
    assert page.locator("#dealer").input_value().startswith("22+,A2s+")
    page.locator("#dealer").fill("AA,AQs,QQ")
    for board, runouts in (("2c 2d 7h 9s", "48 runouts"), ("2c 2d 7h 9s Kc", "1 runouts")):
        page.locator("#board").fill(board)
        page.locator("[data-size]", has_text=runouts).wait_for()
    page.get_by_role("button", name="Solve").click()
    here = page.locator(".history .here")
    here.get_by_role("link", name="all-in").click()
    address = urlsplit(page.url).path
    page.wait_for_url("**line=all-in")
    assert page.locator(".facts").inner_text().startswith("dealer to act")
    page.locator("#dealer-by-hand-QQ").click()
    page.get_by_role("heading", name="QQ").wait_for()
    assert page.locator(".hands tbody tr").count() == 6
    page.locator("summary", has_text="Lock this decision").click()
    assert page.locator("#hands").input_value() == "QQ"  # the cell that is shown
    page.locator("#share-fold").fill("often")
    page.get_by_role("button", name="Lock and solve").click()
    page.get_by_text("'often' is not a share").wait_for()
    assert page.evaluate("document.activeElement.id") == "share-fold"
    for name, share in (("fold", "2"), ("call", "0")):
        page.locator(f"#share-{name}").fill(share)
    page.get_by_role("button", name="Lock and solve").click()
    page.wait_for_url(f"**{address}-locked")
    here.get_by_role("link", name="all-in").click()
    page.locator(".history .here", has_text="locked").wait_for()
    assert page.locator("#dealer-by-hand-QQ").get_attribute("aria-label").startswith("QQ: fold 100 %")
    page.get_by_role("button", name="Unlock and solve").click()
    page.wait_for_url(f"**{address}-unlocked")
    here.wait_for()


@pytest.mark.parametrize(
    ("place", "part", "name"),
    [  # bars of actions, bars whose opacity is the range, cards with bars and numbers, curves
        (0, "[role=grid] >> nth=0", "dealer by hand"),
        (1, "[role=grid] >> nth=1", "big blind by hand"),
        (2, "svg.chart >> nth=0", "Equity"),
        (3, "svg.chart >> nth=1", "EV"),
        (0, "table.runouts", "cards"),
    ],
)
def test_grids_and_charts_are_saved_as_the_page_shows_them(
    visit: Visit, tmp_path: Path, place: int, part: str, name: str
) -> None:
    page = visit("/spots/turn?line=check, check / 4s / bet 4.5")
    if name == "cards":
        page.get_by_role("link", name="Choose other cards").click()
        page.locator(".runouts .strip").first.wait_for()
    page.evaluate("""() => {
        const pen = CanvasRenderingContext2D.prototype, draw = pen.fillText;
        window.written = [];
        pen.fillText = function (text, ...at) { window.written.push(text); draw.call(this, text, ...at); };
    }""")
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").nth(place).click()
    assert download.value.suggested_filename.endswith(f" · deepcfr {name}.png")
    download.value.save_as(tmp_path / "saved.png")
    page.locator(part).screenshot(path=tmp_path / "page.png")
    images = [Image.open(tmp_path / f"{kind}.png").convert("RGB") for kind in ("saved", "page")]
    assert all(abs(a - 2 * b) <= 4 for a, b in zip(*(image.size for image in images), strict=True))
    pixels = [np.asarray(image.resize((130, 130)), dtype=float) for image in images]
    assert np.abs(pixels[0] - pixels[1]).mean() < 4  # of 255; texts are a little elsewhere
    assert pixels[1].std(axis=(0, 1)).max() > 10
    suits = [text for text in page.evaluate("window.written") if text in "♠♥♦♣"]
    cards = page.locator(f"{part} .pip").evaluate_all("pips => pips.map(pip => pip.classList[1])")
    assert suits == [{"spade": "♠", "heart": "♥", "diamond": "♦", "club": "♣"}[card] for card in cards]
    assert len(suits) == (48 if name == "cards" else 0)


def test_a_drill_is_played_by_keyboard(visit: Visit) -> None:
    page = visit("/spots/turn/drill?seat=big+blind", viewport={"width": 390, "height": 800})
    dealt: set[str] = set()
    for _ in range(10):
        page.locator(".button kbd").first.wait_for()
        while page.locator("[data-key='1']").count():
            page.keyboard.press("1")
            page.locator("[data-key=n]").wait_for()
            if page.get_by_text("Go on").count():
                page.keyboard.press("n")
                page.locator("[data-key='1']").wait_for()
        dealt.add(parts(page.url)["deal"])
        page.get_by_text(f"lost in {len(dealt)} hand").wait_for()
        page.keyboard.press("n")
        page.locator("[data-key='1']").wait_for()
    assert 2 < len(dealt) < 10  # hands that were lost came again


def test_a_mistake_in_the_form_is_shown_at_its_field(visit: Visit) -> None:
    page = visit("/spots", mistakes=True)
    page.locator("#dealer").fill("AA,QQQ")
    page.locator("#mistake-dealer", has_text="'QQQ' is not a part of a range").wait_for()  # while it is written
    page.locator("#pot").fill("much")
    page.get_by_role("button", name="Solve").click()
    page.get_by_role("alert").wait_for()
    assert page.evaluate("document.activeElement.id") == "pot"
    assert [page.locator(f"#{name}").input_value() for name in ("pot", "dealer", "stacks")] == ["much", "AA,QQQ", "40"]


def test_a_swipe_over_a_range_scrolls_and_a_tap_paints(visit: Visit) -> None:
    page = visit("/spots", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.locator("#dealer").fill("AA")
    page.locator("[data-paint=dealer] [data-kind=KK][aria-pressed=false]").wait_for()
    cell = page.locator("[data-paint=dealer] [data-kind='72o']")
    cell.scroll_into_view_if_needed()
    box = cell.bounding_box()
    assert box is not None
    y = page.evaluate("scrollY")
    x, start = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    for kind, up in (("touchStart", 0), *(("touchMove", 20 * step) for step in range(1, 11)), ("touchEnd", None)):
        points = [] if up is None else [{"x": x, "y": start + up}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.wait_for_function("before => scrollY < before - 50", arg=y)
    still = "() => { const at = scrollY; return new Promise((done) => setTimeout(() => done(scrollY === at), 100)); }"
    page.wait_for_function(still)
    for painted in ("AA", "AA,72o", "AA"):
        assert page.locator("#dealer").input_value() == painted
        cell.tap()


PAGES = {
    "home": "/", "seat": "/play/leduc", "table": "/play/fhp", "no-limit": "/play/hunl-200",
    "preflop": "/strategy/fhp?betting=r", "flop": f"/strategy/fhp?{FLOP}&cell=AKs", "board": "/strategy/fhp?betting=rc",
    "compared": "/strategy/leduc?betting=c&with=even&cell=K", "runs": "/runs", "run": "/runs/leduc",
    "matches": "/matches", "hands": "/hands", "spots": "/spots", "spot": "/spots/turn?line=check&cell=AKs",
    "two spots": "/spots/turn?with=wide&cell=QQ", "next card": "/spots/turn?line=check, check / *",
    "river": "/spots/turn?line=check, check / 4s / check&cell=AKs", "drill": "/spots/turn/drill",
}  # fmt: skip


# Each looks as others do: two of bets and decisions, and the two of which the other is a half.
LIKE_OTHERS = ("table", "preflop", "two spots", "river")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LIKE_OTHERS)) for name in PAGES]
)
def test_a_page_has_no_serious_barriers_fits_any_window_and_stands_still(visit: Visit, name: str) -> None:
    page, path = visit("/", viewport={"width": 360, "height": 800}), PAGES[name]
    if path.startswith("/play/"):
        sit(page, path.removeprefix("/play/"))
    if name == "seat":
        finish(page, page.keyboard.press)  # with a review
    slow = {"offline": False, "latency": 20, "downloadThroughput": 150_000, "uploadThroughput": 150_000}  # ms, bytes/s
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)  # a page shows in parts
    page.goto(urljoin_base(page, path))
    moved = page.evaluate(
        "() => new Promise(done => { let sum = 0; new PerformanceObserver(list => {"
        "for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;"
        "}).observe({type: 'layout-shift', buffered: true}); setTimeout(() => done(sum), 50); })"
    )
    assert moved < 0.05  # of the window; 0.1 is what counts as good
    for width in (360, 1920, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        in_line = "[...document.querySelectorAll('.grid > *')].every("
        in_line += "row => new Set([...row.children].map(cell => cell.offsetTop)).size < 2)"
        assert page.evaluate(in_line)
    for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):  # all that the scheme changes
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        found = Axe().run(page, options={"resultTypes": ["violations"], **rules}).response["violations"]
        wrong = [each for each in found if each["impact"] in SERIOUS]
        assert [f"{each['id']}: {each['nodes'][0]['html'][:150]}" for each in wrong] == []


def urljoin_base(page: Page, path: str) -> str:
    """A path on the page's server."""
    there = urlsplit(page.url)
    return f"{there.scheme}://{there.netloc}{path}"


def test_a_slider_and_a_field_give_a_raise_of_any_size_and_all_in_asks_once(visit: Visit) -> None:
    page = visit("/")
    start_again(page, "hunl-200", 2)
    field, slider, main = page.locator("#size"), page.locator("#size-slider"), page.locator("#main")
    sizes = [float(size) for size in (slider.get_attribute("data-steps") or "").split()]
    slider.fill("8")
    assert float(field.input_value()) == sizes[8]
    send = page.get_by_role("button", name="Raise", exact=True)
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    most, last = field.get_attribute("max") or "", slider.get_attribute("max") or ""
    ways: list[Callable[[], object]] = [
        lambda: main.press("a"),
        lambda: page.locator("button[value=a]").click(),
        lambda: (field.fill(most), send.click()),  # type: ignore[func-returns-value]
        lambda: (field.fill(f"{float(most) - 0.001}"), field.press("Enter")),  # type: ignore[func-returns-value]
        lambda: (slider.fill(last), send.press("Space")),  # type: ignore[func-returns-value]
    ]
    for count, way in enumerate(ways, 1):
        way()
        assert asked == ["Put in all your chips?"] * count
    assert not page.locator(".rounds .you").count()  # nothing was sent
    field.fill("7.25")
    assert sizes[int(slider.input_value()) - 1] < 7.25 <= sizes[int(slider.input_value())]
    send.click()
    page.locator(".rounds .you", has_text="raise to 7.25").wait_for()
    assert len(asked) == len(ways)


@needs_a_folder
def test_pictures_of_the_pages_are_small(visit: Visit) -> None:
    """Write the pictures of README.md and docs/web.md: `make screens`."""
    page = visit("/", viewport={"width": 1280, "height": 800}, color_scheme="light")
    sizes: list[int] = []

    def take(name: str) -> None:
        sizes.append(take_picture(page, name))

    take("home")
    for name in ("flop", "compared", "run", "matches", "spot"):
        page.goto(urljoin_base(page, PAGES[name]))
        for source in page.locator(".cross code").all():  # a folder of this test, which tells nobody anything
            source.evaluate("place => { place.textContent = 'runs/tournament.json'; }")
        take({"flop": "strategy"}.get(name, name))
    start_again(page, "fhp", 1)
    page.keyboard.press("c")
    page.locator(".rounds .you").first.wait_for()
    take("play")
    start_again(page, "hunl-200", 2)
    page.locator("#size").fill("7.25")
    page.get_by_role("button", name="Raise", exact=True).click()
    page.locator(".rounds .you").first.wait_for()
    take("no-limit")
    start_again(page, "leduc", 4)
    finish(page, page.keyboard.press)
    page.locator(".review .cost", has_text="cost").first.wait_for()
    take("review")
    assert len(sizes) == 9
    assert sum(sizes) < MOST_BYTES


@needs_a_folder
@pytest.mark.timeout(900)
def test_pictures_of_the_pages_around_spots_are_small(visit: Visit, browser: Browser, tmp_path: Path) -> None:
    """Write the other pictures of docs/web.md: `make screens`."""
    page = visit("/spots/turn?line=check, check / *", viewport={"width": 1280, "height": 500}, color_scheme="light")
    sizes = [take_picture(page, "cards")]
    page.goto(urljoin_base(page, "/spots/turn/drill?seat=big+blind"))
    page.keyboard.press("2")
    page.locator("[data-key=n]").wait_for()
    sizes.append(take_picture(page, "drill"))
    page.goto(urljoin_base(page, "/hands"))
    folded, called = "hero: folds\n", "hero: calls $5\n*** TURN *** [Ks 7h 2c] [4s]\n*** RIVER *** [Ks 7h 2c 4s] [3s]\n"
    hands = (("Ah Ad", called), ("Qc Jc", called), ("7c 7d", folded), ("Kh 9h", folded), ("As 5s", called))
    page.locator("#text").fill("\n\n".join(played(number, *hand) for number, hand in enumerate(hands, 1)))
    page.get_by_role("button", name="Review").click()
    page.locator("p", has_text="in 5 decisions after the flop.").wait_for(timeout=600_000)
    sizes.append(take_picture(page, "hands"))
    many: dict[str, Any] = {"dealer": "TT+,AQs+,AKo", "big_blind": "99-66,AJs,KQs,QJs,JTs", "pot": 10, "stacks": 20}
    solve_spots(many | {"sizes": "flop 33 75, cap 0", "flops": 25, "exploitability": 2}, folder := tmp_path / "flops")
    table = browser.new_page(viewport={"width": 1280, "height": 700})
    table.goto((folder / "report.html").as_uri())
    sizes.append(take_picture(table, "flops"))
    table.close()
    assert sum(sizes) < 300_000


def played(number: int, cards: str, answer: str) -> str:
    """A hand of hold'em that the big blind goes all-in in on the flop, and hero's answer."""
    return f"""\
PokerStars Hand #{number}:  Hold'em No Limit ($0.50/$1.00 USD) - 2024/03/01 20:15:00 ET
Table 'Example' 2-max Seat #1 is the button
Seat 1: hero ($100 in chips)
Seat 2: erin ($7.50 in chips)
hero: posts small blind $0.50
erin: posts big blind $1
*** HOLE CARDS ***
Dealt to hero [{cards}]
hero: raises $1.50 to $2.50
erin: calls $1.50
*** FLOP *** [Ks 7h 2c]
erin: bets $5 and is all-in
{answer}"""


def start_again(page: Page, name: str, seed: int) -> None:
    """Go to an agent's table, and start a session whose hands follow from a seed."""
    sit(page, name)
    page.locator("summary", has_text="Start again").click()
    page.locator("#seed").fill(str(seed))
    with page.expect_navigation():
        page.get_by_role("button", name="Start a new session").click()


def test_a_late_action_in_a_second_tab_is_told_and_shows_the_hand_as_it_is(browser: Browser, base: str) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    first, second = context.new_page(), context.new_page()
    first.goto(base)
    sit(first, "leduc")
    second.goto(first.url)
    first.keyboard.press("c")
    first.locator(".rounds .you").first.wait_for()
    second.keyboard.press("c")
    said = second.get_by_role("alert").inner_text()
    assert said.startswith("Nothing was changed. The action is for decision")
    assert second.locator(".table-side").inner_text() == first.locator(".table-side").inner_text()
    context.close()
