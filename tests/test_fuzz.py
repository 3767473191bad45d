"""Damaged and random input from outside: everything that is read is accepted, or refused with sentences.

`make test` tries some inputs of each kind; the long ones, 1,250 of each kind, are 10,000 in all.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from deepcfr.core.errors import DeepCFRError
from deepcfr.game.acpc_definition import parse_game_definition
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, read_bet_sizes
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PRESETS
from deepcfr.interop.acpc import gain_of, parse_match_state, parse_move
from deepcfr.interop.client import ProtocolAgent
from deepcfr.interop.slumbot import read_answer, slumbot_rules
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.query import query
from deepcfr.policy.styles import scripted_policy
from deepcfr.run.folder import RunFolder
from deepcfr.search.spot import Sizes, parse_board
from deepcfr.search.spot_ranges import parse_range
from definitions import format_game_definition
from histories import parse_histories
from web_site import MODELS, agent, client

SOME, ALL = 50, 1_250
AMOUNTS = [pytest.param(SOME, id="some"), pytest.param(ALL, id="all", marks=pytest.mark.long)]
BET_SIZES = """\
stack = 2_000
bet_sizes = [[200, 400], [50, 100], [50, 100], [100]]
measure = ["chips", "pot", "pot", "pot"]
max_raises = [2, 2, 2, 1]
all_in = [false, false, true, true]
"""
HISTORY = """\
variant = "FT"
antes = [0, 0]
blinds_or_straddles = [50, 100]
small_bet = 100
big_bet = 100
starting_stacks = [2000, 2000]
actions = ["d dh p1 2c3c", "d dh p2 AsKd", "p2 cbr 200", "p1 cc", "d db 8c8dJs", "p1 cc", "p2 cbr 100", "p1 f"]
players = ["ann", "bob"]
_board_cards = [0, 3]
"""
STATES = ("MATCHSTATE:0:31:r300c/cr900:Kd2h|/8c8dJs", "MATCHSTATE:1:0::|AsKd", "MATCHSTATE:0:7:crrc/cr:Kd2h|/8c8dJs")
ANSWER = {"action": "b200c/kb300", "client_pos": 0, "hole_cards": ["Ac", "9d"], "board": ["8c", "8d", "Js"]}
SPOT = {"board": "Qs 7h 2c 9d 4s", "pot": 10, "stacks": 20, "dealer": "AA", "big_blind": "KK,QQ:0.5", "iterations": 10}
WEIRD = [
    "", " ", "0", "-1", "1e999", "9" * 30, "é", "\x00", "٣", "[", "]", '"', "'", "=", ":", "/", ",", "\n", "None", "nan",
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, *texts: str) -> str:
    """One of the texts with some pieces left out, repeated, exchanged or replaced."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 8)))
        piece = draw(st.sampled_from(WEIRD) | st.text(max_size=4) | st.just(text[start:end] * 2))
        text = text[:start] + piece + text[end:]
    return text


def refused_in_sentences(read: Callable[[Any], object], value: Any) -> None:
    """Read a value; what is refused is refused with whole sentences."""
    problems: list[str] = []
    try:
        read(value)
    except DeepCFRError as error:
        problems = list(error.problems)
        assert problems  # or nothing would be said
    for problem in problems:
        assert_sentence(problem)


def assert_sentence(problem: str) -> None:
    """A refusal is a sentence, and names what was read or what is not there."""
    assert problem.endswith(".")
    assert re.search(r"['\"\d]|missing|needs a value|at end of", problem), problem


def fuzz(amount: int, inputs: st.SearchStrategy[Any], read: Callable[[Any], object]) -> None:
    """Read `amount` inputs."""

    @settings(max_examples=amount)
    @given(inputs)
    def run(value: Any) -> None:
        refused_in_sentences(read, value)

    run()


@pytest.mark.parametrize("amount", AMOUNTS)
def test_game_definitions(amount: int) -> None:
    texts = [format_game_definition(PRESETS[name]) for name in ("fhp", "leduc", "hunl-pot")]
    fuzz(amount, damaged(*texts), lambda text: parse_game_definition(text, "fuzzed"))


@pytest.mark.parametrize("amount", AMOUNTS)
def test_bet_size_files(amount: int, tmp_path: Path) -> None:
    path = tmp_path / "fuzzed.toml"

    def read(text: str) -> None:
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        read_bet_sizes(path)

    fuzz(amount, damaged(BET_SIZES), read)


@pytest.mark.parametrize("amount", AMOUNTS)
def test_ranges_boards_sizes_and_situations(amount: int) -> None:
    uniform = UniformPolicy(load_game("fhp"))
    readers: list[tuple[Callable[[str], object], tuple[str, ...]]] = [
        (parse_range, ("22+,A2s+,KTo+", "A5s-A2s,KQo:0.5,AsKd")),
        (parse_board, ("Qs 7h 2c 9d", "Qs7h2c")),
        (Sizes.parse, ("flop 33 75, turn 66, river 75 150, raise 100, allin",)),
        (partial(query, uniform), ("As Kd / rc / Qs 7h 2c / cr",)),
    ]
    for read, texts in readers:
        fuzz(amount // len(readers), damaged(*texts), read)


@pytest.mark.parametrize("amount", AMOUNTS)
def test_hand_histories(amount: int) -> None:
    assert len(parse_histories(HISTORY, PRESETS["fhp"])) == 1
    fuzz(amount, damaged(HISTORY), lambda text: parse_histories(text, PRESETS["fhp"]))


@pytest.mark.parametrize("amount", AMOUNTS)
def test_lines_of_the_dealer_protocol(amount: int) -> None:
    limit = ProtocolAgent(UniformPolicy(load_game("fhp")), 0)
    free = ProtocolAgent(scripted_policy("uniform", ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])), 0)

    def read(text: str) -> None:
        parse_match_state(text)
        for bot in (free, limit):
            bot.answer(parse_match_state(text))
            gain_of(bot.rules, parse_match_state(text))

    fuzz(amount, damaged(*STATES), read)
    fuzz(amount // 10, damaged("r300", "f"), parse_move)


def json_values() -> st.SearchStrategy[Any]:
    plain = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WEIRD) | st.text(max_size=6)
    return st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


@st.composite
def damaged_object(draw: st.DrawFn, good: dict[str, Any]) -> dict[str, Any]:
    """An object with some fields left out, or with other values: random ones, or damaged texts."""
    found = dict(good)
    for field in draw(st.lists(st.sampled_from(sorted(good)), max_size=3)):
        if draw(st.booleans()) and isinstance(good[field], str):
            found[field] = draw(damaged(good[field]))
        elif draw(st.integers(0, 4)) == 0:
            found.pop(field, None)
        else:
            found[field] = draw(json_values())
    return found


@pytest.mark.parametrize("amount", AMOUNTS)
def test_answers_of_slumbot(amount: int) -> None:
    rules = slumbot_rules(scripted_policy("uniform", ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])))
    fuzz(amount, damaged_object(ANSWER), lambda answer: read_answer(rules, answer, 0))


@pytest.mark.parametrize("amount", AMOUNTS)
def test_bodies_of_the_api(amount: int) -> None:
    """No answer is an error of the server: the client raises its exceptions, and 5xx fails here."""
    web = client(agent("even", "leduc", UniformPolicy))
    assert web.post("/api/play/even", json={}).status_code == 201
    act = {"hand": 1, "decision": 0, "action": "c"}

    def post(request: tuple[str, dict[str, Any]]) -> None:
        address, body = request
        raw = json.dumps(body).encode("utf-8", "surrogatepass")
        answer = web.post(address, content=raw, headers={"content-type": "application/json"})
        assert answer.status_code < 500
        if answer.status_code >= 400:
            assert_sentence(answer.json()["error"])

    bodies = st.one_of(
        st.tuples(st.just("/api/play/even/act"), damaged_object(act)),
        st.tuples(st.just("/api/play/even/next"), damaged_object({"hand": 1})),
        st.tuples(st.just("/api/play/even"), damaged_object({"seed": 5})),
        st.tuples(st.just("/api/spots"), damaged_object(SPOT)),
    )
    fuzz(amount, bodies, post)


@pytest.mark.parametrize("amount", AMOUNTS)
def test_checkpoints_with_flipped_bytes(amount: int, tmp_path: Path) -> None:
    good = tmp_path / "good"
    shutil.copytree(MODELS / "kuhn", good)
    files = sorted(path.relative_to(good) for path in good.rglob("*") if path.is_file() and path.suffix != ".md")
    damage = st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 255)), min_size=1, max_size=3)

    def load(case: tuple[Path, list[tuple[int, int]]]) -> None:
        name, flips = case
        raw = bytearray((good / name).read_bytes())
        for place, bits in flips:
            raw[place % len(raw)] ^= bits
        run = tmp_path / "run"
        shutil.copytree(good, run, dirs_exist_ok=True)
        (run / name).write_bytes(raw)
        policy, _ = RunFolder.open(run).load_policy("own", lambda _: None)
        query(policy, "K")

    fuzz(amount, st.tuples(st.sampled_from(files), damage), load)
