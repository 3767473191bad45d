"""The strategy browser without a browser: positions, ranges, grids, and their JSON and CSV."""

import csv
import io
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings, strategies as st

from command_line import deepcfr
from deepcfr import __version__
from deepcfr.config import NetworkConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.rng import generator
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.network.networks import build_network
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.network import RegretMatchingPolicy
from deepcfr.policy.query import hand_strategy
from deepcfr.web.browse import LEAST_OPACITY, deck, detail, difference, grid, opacity
from deepcfr.web.play_view import action_kinds, bars, card_face, percent, signed
from deepcfr.web.ranges import (
    Position,
    Range,
    address,
    grid_labels,
    range_at,
    range_csv,
    range_facts,
    read_position,
    seat_name,
)
from deepcfr.web.site import Advantages, RequestError, shorten
from leaning import Leaning
from web_site import agent, client, model

LEDUC = PokerGame(PRESETS["leduc"])
MINI = PokerGame(PRESETS["fhp-mini"])


@pytest.fixture(scope="module")
def reader() -> Iterator[TestClient]:
    runs = model("kuhn"), model("leduc"), agent("even", "leduc", UniformPolicy), agent("odd", "kuhn", UniformPolicy)
    with client(*runs) as somebody:
        yield somebody


def test_positions_are_read_and_written() -> None:
    position = read_position(MINI, "rc/c", "4h3c2s")
    assert (position.betting, position.board_text, position.round_name) == ("rc/c", "4h3c2s", "flop")
    assert (position.state.actor, position.state.pot, position.state.to_call, position.missing) == (0, 4.0, 0.0, 0)
    parts = urlsplit(address("a", position, cell="AKs", other="b"))
    assert parts.path == "/strategy/a"
    assert parse_qs(parts.query) == {"betting": ["rc/c"], "board": ["4h3c2s"], "cell": ["AKs"], "with": ["b"]}
    assert address("a", read_position(MINI, "", "")) == "/strategy/a"
    assert read_position(LEDUC, "crc", "[k♦]") == read_position(LEDUC, "crc/", "Kd")  # a round may be over
    assert read_position(LEDUC, "crc/", "Q").board_text in ("Qc", "Qd")


def test_names_are_those_of_the_round_and_blinds_are_bets() -> None:
    names = {
        (MINI, "", ""): "raise to 2", (MINI, "rr", ""): "raise to 4", (MINI, "rc/c", "4h3c2s"): "bet 1",
        (MINI, "rc/r", "4h3c2s"): "raise to 2",
        (LEDUC, "", ""): "bet 2", (LEDUC, "r", ""): "raise to 4", (LEDUC, "cc", "Kd"): "bet 4",  # antes are not bets
    }  # fmt: skip
    assert {key: read_position(*key).name(2) for key in names} == names
    seats = [seat_name(game.rules, player) for game in (MINI, LEDUC) for player in (0, 1)]
    assert seats == ["dealer", "big blind", "Player 0", "Player 1"]
    labels = grid_labels(PRESETS["fhp"])
    assert [labels[row][column] for row, column in ((0, 0), (0, 1), (1, 0), (12, 12))] == ["AA", "AKs", "AKo", "22"]
    assert len({label for row in labels for label in row}) == 169
    assert grid_labels(PRESETS["kuhn"]) == [["K", "Q", "J"]]


@pytest.mark.parametrize(
    ("betting", "board", "words"),
    [
        ("/r", "", "'/r' has 'r' in its field 2, but the round 1 betting is not over there"),
        ("r/", "", "'r/' has '' in its field 2, but the round 1 betting is not over there"),
        ("rf/c", "", "'rf/c' has 'c' in its field 2, but the hand is over there"),
        ("f", "", "'f' as the first action, where only c (check) or r (bet) is allowed"),
        ("rf" + "c", "", "continues after 'rf', which ended the hand"),
        ("", "Zz", "'Zz' is not a card of leduc"),
        ("", "KcKc", "Kc is given 2 times"),
        ("", "KcQc", "more than the 1 cards"),
        ("rrr", "", "'r' after 'rr', where only f (fold) or c (call) is allowed"),
    ],
)
def test_what_is_no_position_is_refused(betting: str, board: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read_position(LEDUC, betting, board)


def test_boards_are_chosen_where_cards_are_missing() -> None:
    position = read_position(MINI, "rc", "4h")
    assert position.missing == 2
    cards = [card for suit in deck(MINI, position) for card in suit]
    assert len(cards) == len({card["text"] for card in cards}) == 20
    assert [card["text"] for card in cards if card["taken"]] == ["4h"]
    with pytest.raises(RequestError, match="2 cards of the board are missing"):
        range_at(UniformPolicy(MINI), position)
    with pytest.raises(RequestError, match="the hand is over"):
        range_at(UniformPolicy(MINI), read_position(MINI, "f", ""))


@pytest.mark.parametrize(("betting", "board"), [("", ""), ("r", ""), ("rc/", "5h3c2s"), ("rc/cr", "5h3c2s")])
def test_cells_are_means_over_the_pairs_of_hands_that_get_there(betting: str, board: str) -> None:
    policy, position = Leaning(MINI), read_position(MINI, betting, board)
    found = range_at(policy, position)
    reach = np.ones((2, len(found.holes)))
    for before, action in position.path():
        rows = hand_strategy(policy, MINI.state(before.node), found.holes, before.board)
        reach[before.state.actor] *= rows[:, action]
    apart = (found.holes[:, None, :, None] != found.holes[None, :, None, :]).all((2, 3))
    chance = reach[position.state.actor] * (apart @ reach[1 - position.state.actor])
    assert found.reach == pytest.approx(reach[position.state.actor])
    assert found.weight == pytest.approx(chance)
    assert found.reached
    assert np.allclose(found.strategy.sum(1), 1)
    assert sum(len(cell.members) for cell in found.cells) == len(found.holes)
    for cell in found.cells:
        assert len({found.labels[index] for index in cell.members}) == 1
        expected = np.average(found.strategy[cell.members], axis=0, weights=chance[cell.members])
        assert cell.shares == pytest.approx(expected)
    assert found.whole == pytest.approx(np.average(found.strategy, axis=0, weights=chance))


def test_every_number_of_a_grid_is_that_of_the_strategy_command(reader: TestClient) -> None:
    for name, betting, board in (("kuhn", "c", ""), ("leduc", "rc/r", "Qc"), ("leduc", "", "")):
        facts = reader.get(f"/api/agents/{name}/range", params={"betting": betting, "board": board}).json()
        first, *later = betting.split("/")
        for hand in facts["hands"]:
            asked = {"situation": " / ".join([hand["hand"], first, *([board, *later] if board else [])])}
            answer = reader.get(f"/api/agents/{name}/strategy", params=asked).json()
            shares = list(answer["probabilities"].values())
            assert shares == pytest.approx(list(hand["probabilities"].values()), abs=1e-6)
            assert (answer["pot"], answer["to_call"]) == (facts["pot"], facts["to_call"])
            assert hand["advantages"] is None or set(hand["advantages"]) == set(facts["actions"])


def shown_advantages(betting: str = "rc/r", board: str = "6d 4d 4c", table: bool = False, **settings: bool) -> Range:
    """The range at a position with the outputs of networks with random weights."""
    networks = [build_network(MINI.encoding, NetworkConfig(width=8), generator(seed)) for seed in (0, 1)]
    newest = Advantages(RegretMatchingPolicy(MINI, (networks[0], networks[1]), **settings), table)
    return range_at(UniformPolicy(MINI), read_position(MINI, betting, board), newest)


def test_advantages_are_shown_in_their_units_and_with_their_meaning() -> None:
    plain, pots, compressed = shown_advantages(), shown_advantages(pot_units=True), shown_advantages(compressed=True)
    np.testing.assert_allclose(pots.advantages, 5 * plain.advantages, rtol=1e-6)  # two and two before, and a bet
    assert plain.meaning == "what the newest advantage network gives each action, in big blinds."
    assert compressed.meaning.startswith(plain.meaning)
    assert "Negative ones are on a logarithmic scale (advantage.units), nearer to 0" in compressed.meaning
    assert np.array_equal(plain.advantages, compressed.advantages)
    assert range_facts("a", compressed)["meaning"] == detail(compressed, "54s")["meaning"] == compressed.meaning
    first = shown_advantages("r", "", table=True)
    assert first.advantages is None
    assert first.meaning == "There are no advantages here: this run keeps the regrets of the first round in a table."
    assert "advantage" not in range_csv(first).splitlines()[0]
    assert shown_advantages(table=True).advantages is not None


def test_what_a_run_compresses_is_known_from_what_its_networks_were_fitted_to() -> None:
    """The shipped model of flop hold'em has a panel, and keeps the regrets of the first round in a table."""
    found = {name: model(name).agent().advantages for name in ("fhp", "leduc", "kuhn")}
    known = {name: (each.table, each.policy.compressed, each.policy.pot_units) for name, each in found.items() if each}
    assert known == {"fhp": (True, True, False), "leduc": (False, True, False), "kuhn": (False, False, False)}


def test_the_table_has_what_the_json_has(reader: TestClient) -> None:
    where = {"betting": "rc/", "board": "Kd"}
    facts = reader.get("/api/agents/leduc/range", params=where).json()
    answer = reader.get("/api/agents/leduc/range.csv", params=where)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == len(facts["hands"]) == 5
    for row, hand in zip(rows, facts["hands"], strict=True):
        assert (row["hand"], row["cell"]) == (hand["hand"], hand["cell"])
        assert (float(row["reach"]), float(row["weight"])) == (hand["reach"], hand["weight"])
        assert [float(row[name]) for name in facts["actions"]] == list(hand["probabilities"].values())
        assert [float(row[f"advantage {name}"]) for name in facts["actions"]] == list(hand["advantages"].values())


def test_views_of_a_grid() -> None:
    found = range_at(Leaning(MINI), read_position(MINI, "rc/c", "5h3c2s"))
    view = grid(found, lambda label: f"?with=b&cell={label}", "54s")
    cells = [cell for row in view["rows"] for cell in row if not cell["empty"]]
    assert view["columns"] == 5
    for cell in cells:
        assert sum(bar.share for bar in cell["bars"]) == pytest.approx(1)
        assert LEAST_OPACITY <= float(cell["opacity"]) <= 1
        assert cell["said"].startswith(f"{cell['label']}: ")
        assert "with=b" in cell["address"]
    assert [cell["label"] for cell in cells if cell["selected"]] == ["54s"]
    assert [hand["text"] for hand in detail(found, "54s")["hands"]] == ["5c 4c", "5d 4d", "5s 4s"]
    assert detail(range_at(Leaning(MINI), read_position(MINI, "cc/", "5h5c5s")), "55") is None
    assert (opacity(2.0), opacity(0.0)) == (1.0, LEAST_OPACITY)


def test_differences_are_total_variation_distances() -> None:
    position = read_position(LEDUC, "", "")
    even, lean = range_at(UniformPolicy(LEDUC), position), range_at(Leaning(LEDUC), position)
    same = difference(even, even, str)
    assert {cell["apart"] for row in same["rows"] for cell in row} == {"0"}
    apart = difference(even, lean, str)
    for cell in apart["rows"][0]:
        mine, theirs = (found.cell(cell["label"]).shares for found in (even, lean))  # type: ignore[union-attr]
        assert float(cell["opacity"]) == pytest.approx(np.abs(mine - theirs).max(), abs=1e-3)  # of two actions


def test_words_for_numbers_and_actions() -> None:
    assert [percent(x) for x in (0, 0.0004, 0.034, 0.5, 0.9999)] == ["0 %", "<0.1 %", "3.4 %", "50 %", ">99.9 %"]
    assert [signed(x) for x in (1.5, -0.25, 0.0, -0.001)] == ["+1.50", "−0.25", "0", "0"]
    kinds = action_kinds(["fold", "call", "raise to 2", "raise to 4"])
    assert list(kinds.values()) == ["fold", "call", "raise-1", "raise-2"]
    found = [(bar.name, bar.start) for bar in bars({"fold": 0.5, "call": 0.3, "raise": 0.2})]
    assert found == [("raise", 0), ("call", 0.2), ("fold", 0.5)]
    assert (card_face("Th").label, card_face("Th").rank, card_face("K").label) == ("ten of hearts", "10", "king")
    assert shorten("x" * 99, 9) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/play", 200),
        ("/strategy", 200),
        ("/strategy/leduc?betting=crc/&board=Qc&cell=K", 200),
        ("/strategy/leduc?betting=cc&card=Qc", 303),
        ("/strategy/leduc?betting=cc&board=Qc&card=Kd", 400),
        ("/strategy/leduc?with=even", 200),
        ("/strategy/leduc?with=odd", 409),
        ("/strategy/leduc?betting=rf", 200),
        ("/strategy/leduc?betting=zz", 400),
        ("/strategy/leduc?cell=" + "A" * 9, 422),
        ("/strategy/..%2f..%2fetc", 404),
        ("/play/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/docs", 404),
    ],
)
def test_addresses(reader: TestClient, path: str, status: int) -> None:
    answer = reader.get(path)
    assert answer.status_code == status
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "root:" not in answer.text
    assert "http://" not in answer.text.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_api_describes_itself(reader: TestClient) -> None:
    document = reader.get("/api/openapi.json").json()
    assert document["info"]["version"] == __version__
    assert deepcfr("api").json["paths"].keys() == document["paths"].keys()  # without a run
    for path in ("/api/play/{name}/review", "/api/agents/{name}/strategy"):
        endpoint = document["paths"][path]["get"]
        schema = endpoint["responses"]["200"]["content"]["application/json"]["schema"]
        assert schema["$ref"].split("/")[-1] in document["components"]["schemas"]
        assert endpoint["description"]
    for path, verbs in document["paths"].items():
        for verb, endpoint in verbs.items():
            assert "422" not in endpoint["responses"] or "4XX" in endpoint["responses"], (path, verb)
    assert not any(path.startswith(("/play", "/strategy")) for path in document["paths"])


Letters = st.text(alphabet="fcrkbx/ ", max_size=12) | st.text(max_size=12)
BoardTexts = st.text(alphabet="KQJcd ", max_size=6) | st.text(max_size=6)


@settings(max_examples=20)
@given(name=st.sampled_from(["leduc", "kuhn"]), betting=Letters, board=BoardTexts, situation=st.text(max_size=30))
def test_any_query_is_answered_or_refused_with_a_sentence(
    reader: TestClient, name: str, betting: str, board: str, situation: str
) -> None:
    where = {"betting": betting, "board": board}
    answer, page = (reader.get(path, params=where) for path in (f"/api/agents/{name}/range", f"/strategy/{name}"))
    asked = reader.get(f"/api/agents/{name}/strategy", params={"situation": situation})
    for one in (answer, asked):
        assert one.status_code == 200 or (400 <= one.status_code < 500 and one.json()["error"].endswith("."))
    if answer.status_code == 200:
        assert page.status_code == 200
        assert all(sum(hand["probabilities"].values()) == pytest.approx(1) for hand in answer.json()["hands"])
    assert page.status_code < 500
    assert "<script>" not in page.text


@settings(max_examples=20)
@given(st.data())
def test_any_walk_has_an_address_that_leads_back(data: st.DataObject) -> None:
    position = Position(LEDUC, 0, (3,))
    while not position.over:
        parts = parse_qs(urlsplit(address("a", position)).query, keep_blank_values=True)
        again = read_position(LEDUC, parts.get("betting", [""])[0], parts.get("board", [""])[0])
        assert again == position
        position = position.after(data.draw(st.sampled_from(position.state.legal())))
    assert read_position(LEDUC, position.betting, position.board_text) == position
