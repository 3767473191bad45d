"""Hands over Slumbot's protocol against a server that pokerkit referees, and servers that break it."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command_line import deepcfr, problem
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.game.presets import load_game
from deepcfr.interop.acpc import ProtocolError
from deepcfr.interop.slumbot import Slumbot, read_answer, slumbot_rules
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.styles import scripted_policy
from slumbot_server import Table, serving

UNIFORM = scripted_policy("uniform", ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"]))
RULES = slumbot_rules(UNIFORM)


@pytest.mark.parametrize("slashes", [True, False])
def test_many_hands_are_played_and_counted(slashes: bool) -> None:
    table = Table(seed=1, slashes=slashes)
    with serving(table) as address:
        session = Slumbot(UNIFORM, address, seed=2)
        match = session.play(60)
    assert match.hands == table.hands == 60
    assert match.chips == pytest.approx(table.total)
    assert match.mean == pytest.approx(1000 * table.total / 100 / 60)
    facts = session.agent.facts()
    assert facts["translated_hands"] > 10
    assert facts["lost_hands"] < facts["translated_hands"]
    actions = [body["incr"] for body in table.requests if "incr" in body]
    assert {action[0] for action in actions} == set("kcfb")
    assert "token" not in table.requests[0]
    tokens = [body["token"] for body in table.requests[1:]]
    assert all(int(token.removeprefix("token-")) >= 1 for token in tokens)
    assert len(set(tokens)) == 60  # a new one is used from then on


def test_a_network_of_pot_bets_plays_too() -> None:
    table = Table(seed=5)
    with serving(table) as address:
        match = Slumbot(UniformPolicy(load_game("hunl-pot")), address).play(10)
    assert match.chips == pytest.approx(table.total)


def test_the_command_reports_the_match(tmp_path: Path) -> None:
    table, rules = Table(seed=3), tmp_path / "small.toml"
    rules.write_text(
        "stack = 20_000\nbet_sizes = [[300, 900], [75], [75], [75]]\nmeasure = ['chips', 'pot', 'pot', 'pot']\n"
        "max_raises = [2, 2, 2, 2]\nall_in = [true, true, true, true]\n"
    )
    made = ("solve", rules, "--solver", "mccfr", "--abstraction", "texture", "--iterations", 1)
    assert deepcfr(*made, "--traversals", 20, "--out", tmp_path / "run", "--json").status == 0
    with serving(table) as address:
        facts = deepcfr("slumbot", tmp_path / "run", "--address", address, "--hands", 5, "--json").json
        words = deepcfr("slumbot", tmp_path / "run", "--address", f"{address}/", "--hands", 3).out
    assert (facts["hands"], facts["unit"]) == (5, "mbb/g")
    assert f"{tmp_path / 'run'} against Slumbot at " in words
    assert {body["path"] for body in table.requests} == {"/slumbot/api/new_hand", "/slumbot/api/act"}


GOOD = {"action": "b200", "client_pos": 0, "hole_cards": ["Ac", "9d"], "board": [], "token": "t"}


def test_the_published_answers_are_read() -> None:
    state = read_answer(RULES, GOOD, 7)
    assert state.text == "MATCHSTATE:0:7:r200:Ac9d|"
    flop = GOOD | {"action": "b200c/kb300", "client_pos": 1, "board": ["8c", "8d", "Js"]}
    assert read_answer(RULES, flop, 0).text == "MATCHSTATE:1:0:r200c/cr500:|Ac9d/8c8dJs"
    board = {"board": ["8c", "8d", "Js", "2c", "3c"], "bot_hole_cards": ["Kd", "Kh"]}
    shown = GOOD | {"action": "b20000c///"} | board
    assert read_answer(RULES, shown, 0).text == "MATCHSTATE:0:0:r20000c///:Ac9d|KdKh/8c8dJs/2c/3c"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"client_pos": 2}, "'client_pos' is '2', and must be 0 or 1"),
    ({"action": None}, "'action' is 'None', and must be a text"),
    ({"action": "b200x"}, "must be made of k, c, f and b with chips"),
    ({"action": "k"}, "with k where there is no such action"),
    ({"action": "b150"}, "The action r150 is not one of hunl-ladder"),
    ({"action": "fc"}, "goes on after the hand is over"),
    ({"action": "b200c/kk/"}, "'board' has 0 cards"),
    ({"action": "b200c"}, "has its rounds at other places"),
    ({"action": "b200c/", "board": ["8c", "8d", "8c"]}, "A card stands twice"),
    ({"hole_cards": ["Ac", "1d"]}, "'hole_cards' is .* must be a list of cards"),
    ({"winnings": 5}, "The server ends the hand after 'b200', where it is not over"),
    ({"winnings": 5, "action": "b200f"}, "The server counts 5 chips where its cards and actions bring -100"),
    ({"winnings": "5", "action": "b200f"}, "'winnings' is '5', and must be a whole number"),
    ({"action": ""}, "where it is not our turn"),
    ({"error_msg": "Try later"}, "The server says: 'Try later'"),
]


class Fixed:
    """Answers every request in the same way."""

    def __init__(self, answer: Any) -> None:
        self.new_hand = self.act = lambda _: answer
        self.requests: list[dict[str, Any]] = []


@pytest.mark.parametrize(("change", "sentence"), BAD)
def test_a_server_that_breaks_the_protocol_is_named(change: dict[str, Any], sentence: str) -> None:
    with serving(Fixed(GOOD | change)) as address, pytest.raises(ProtocolError, match=f"^Hand 1: .*{sentence}"):
        Slumbot(UNIFORM, address).play(3)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"<html>", "is not JSON"),
        (b"[1]", "is no JSON object"),
        (b" " * 70_000, "more than 65,536"),
        (b"nonsense\r\n\r\n", "cannot be reached"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "is not JSON"),
    ],
)
def test_answers_that_are_no_objects_are_named(raw: bytes, sentence: str) -> None:
    answer = raw if raw.startswith((b"non", b"HTTP")) else b"HTTP/1.1 200 OK\r\n\r\n" + raw
    with answering_once(answer) as address, pytest.raises(ProtocolError, match=sentence):
        Slumbot(UNIFORM, address).play(1)


@contextmanager
def answering_once(raw: bytes) -> Iterator[str]:
    """The address of a server that answers one request with these bytes."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(10_000)
            self.request.sendall(raw)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        thread.join()


def test_no_redirect_is_followed() -> None:
    asked = Fixed(GOOD)
    with serving(asked) as elsewhere:
        raw = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}/new_hand\r\nContent-Length: 0\r\n\r\n".encode()
        with answering_once(raw) as address, pytest.raises(ProtocolError, match="answers 302 Found"):
            Slumbot(UNIFORM, address).play(1)
    assert asked.requests == []


def test_hands_before_a_mistake_are_told() -> None:
    class Once(Table):
        def new_hand(self, body: dict[str, Any]) -> Any:
            return super().new_hand(body) if self.hands < 2 else {"error_msg": "enough"}

    with serving(Once(seed=1)) as address, pytest.raises(ProtocolError, match=r"Hand 3: .*The 2 hands before brought"):
        Slumbot(UNIFORM, address).play(5)


def test_what_cannot_be_is_refused_before_a_request() -> None:
    for address in ("slumbot.com", "ftp://x", "http://"):
        with pytest.raises(ConfigError, match="--address must begin with http"):
            Slumbot(UNIFORM, address)
    with pytest.raises(ConfigError, match="--hands must be at least 1"):
        Slumbot(UNIFORM, "http://127.0.0.1:9").play(0)
    for seconds in (0, float("inf")):
        with pytest.raises(ConfigError, match="--seconds must be more than 0 and at most"):
            Slumbot(UNIFORM, "http://127.0.0.1:9", seconds=seconds)
    for address in ("http://127.0.0.1:9", "http://[bad", "http://host:abc"):
        with pytest.raises(ProtocolError, match=r"cannot be reached: [^\[]+\.$"):  # a reason without its number
            Slumbot(UNIFORM, address).play(1)
    with pytest.raises(GameError, match="'fhp-pot' is not that"):
        Slumbot(UniformPolicy(load_game("fhp-pot")), "http://127.0.0.1:9")
    assert "no raises that could stand" in problem(deepcfr("slumbot", "fhp", "--address", "http://127.0.0.1:9"))
