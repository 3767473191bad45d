"""Dealer and client over loopback: whole matches, bots that misbehave, and connections that break."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest

from command_line import deepcfr, problem
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.rng import key
from deepcfr.game.betting import ACTION_LETTERS, FOLDED, SHOWDOWN, first_state, next_state
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.interop import client as client_module
from deepcfr.interop.acpc import ProtocolError, log_line, parse_match_state
from deepcfr.interop.client import Client, ProtocolAgent, Visit
from deepcfr.interop.dealer import Dealer, DealtResult, Terms
from deepcfr.interop.hand_history import load_histories
from deepcfr.interop.host import HostedTable, Records, host_match, seat_names, seat_players
from deepcfr.measure.intervals import score_of
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import MixturePolicy
from deepcfr.policy.styles import scripted_policy

LEDUC, MINI, POT = (PokerGame(PRESETS[name]) for name in ("leduc", "fhp-mini", "fhp-pot"))
HOST = "127.0.0.1"


def nothing(text: str) -> None:
    raise AssertionError(text)


def host(game: PokerGame, policies: tuple[Policy, Policy], terms: Terms, records: Records = Records()) -> DealtResult:  # noqa: B008
    first, second = (
        ProtocolAgent(p, key(terms.seed, "dealer", "agent", i), game.rules) for i, p in enumerate(policies)
    )
    return host_match(HostedTable(game.rules, ("ann", "bob"), (first, second)), terms, records, nothing)


def states(log: Path) -> list[list[str]]:
    """The fields of every hand in a log."""
    return [line.split(":") for line in log.read_text().splitlines() if line.startswith("STATE")]


# Whole matches


@pytest.mark.parametrize("game", [LEDUC, POT], ids=lambda game: game.name)
def test_a_match_adds_up(game: PokerGame, tmp_path: Path) -> None:
    policies = (UniformPolicy(game), scripted_policy("raise", game))
    terms = Terms(hands=60, seed=3)
    result = host(game, policies, terms, Records(log=tmp_path / "log"))
    hands = states(tmp_path / "log")
    won = {"ann": 0, "bob": 0}
    for number, (_, hand, betting, cards, chips, names) in enumerate(hands):
        assert int(hand) == number
        parse_match_state(f"MATCHSTATE:0:{hand}:{betting}:{cards}")  # reads as a state
        first = names.split("|")[0 if game is LEDUC else 1]  # player 0 is position 1 where there are two blinds
        assert first == ("ann", "bob")[number % 2]
        for name, amount in zip(names.split("|"), chips.split("|"), strict=True):
            won[name] += int(amount)
    assert len(hands) == terms.hands == result.score.hands
    assert won["ann"] == -won["bob"] == result.score.chips
    assert result.score.mean == pytest.approx(1000 * won["ann"] / game.rules.unit_chips / terms.hands)
    assert (tmp_path / "log").read_text().splitlines()[-1] == f"SCORE:{won['ann']}|{won['bob']}:ann|bob" == result.line
    again = host(game, policies, Terms(hands=20, seed=3), Records(log=tmp_path / "again"))
    assert states(tmp_path / "again") == hands[:20]
    assert again.score.hands == 20


def test_equal_players_draw_a_duplicate_match_exactly(tmp_path: Path) -> None:
    policies = (scripted_policy("call", LEDUC), scripted_policy("call", LEDUC))
    result = host(LEDUC, policies, Terms(hands=30, seed=1, duplicate=True), Records(log=tmp_path / "log"))
    assert (result.score.chips, result.score.mean, result.score.interval, result.score.hands) == (0, 0.0, 0.0, 60)
    hands = states(tmp_path / "log")
    assert [hand[3] for hand in hands[:30]] == [hand[3] for hand in hands[30:]]  # the cards
    assert [hand[5] for hand in hands[:2]] == [hand[5] for hand in hands[30:32]][::-1]  # the seats
    assert any(hand[4] != "0|0" for hand in hands)


def test_a_mixture_plays_one_policy_through_a_hand(tmp_path: Path) -> None:
    parts = [scripted_policy("call", LEDUC), scripted_policy("raise", LEDUC)]
    mixture = MixturePolicy(LEDUC, parts, [1.0, 1.0])
    host(LEDUC, (mixture, scripted_policy("call", LEDUC)), Terms(hands=40, seed=2), Records(log=tmp_path / "log"))
    raised = []
    for number, (_, _, betting, *_) in enumerate(states(tmp_path / "log")):
        rounds = ["r" in moves for moves in betting.split("/")]
        assert rounds[0] == rounds[1], f"hand {number}: {betting}"
        raised.append(rounds[0])
    assert 8 < sum(raised) < 32


def test_histories_of_a_match(tmp_path: Path) -> None:
    policies = (UniformPolicy(MINI), UniformPolicy(MINI))
    host(MINI, policies, Terms(hands=12), Records(log=tmp_path / "log", phh=tmp_path / "phh"))
    hands = load_histories(tmp_path / "phh" / "hands.phhs", MINI.rules)
    lines = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("STATE")]
    assert [log_line(MINI.rules, hand) for hand in hands] == lines
    with pytest.raises(ConfigError, match="is there already"):
        host(MINI, policies, Terms(hands=12), Records(log=tmp_path / "refused", phh=tmp_path / "phh"))
    assert not (tmp_path / "refused").exists()
    with pytest.raises(GameError, match="not leduc"):
        host(LEDUC, (UniformPolicy(LEDUC),) * 2, Terms(hands=1), Records(phh=tmp_path / "other"))


def test_duplicate_hands_are_scored_in_pairs() -> None:
    paired = score_of([1.0, -3.0, 2.0, 0.0], LEDUC.rules, duplicate=True)  # pairs 1.5 and -1.5
    assert paired.interval == pytest.approx(1000 * 1.959964 * 4.5**0.5 / 2**0.5)


@pytest.mark.parametrize("moves, ended", [("rf", FOLDED), ("cc/cc", SHOWDOWN)])
def test_only_a_showdown_shows_the_opponents_cards(moves: str, ended: int) -> None:
    dealer, state, actions = Dealer(LEDUC.rules, ("ann", "bob"), Terms(1)), first_state(LEDUC.rules), []
    for move in moves.replace("/", ""):
        actions.append("fcr".index(move))
        state = next_state(LEDUC.rules, state, actions[-1])
    assert state.ended == ended
    own = [line.rsplit(":", 1)[1].split("/")[0] for line in dealer._views(0, state, actions, ((0,), (2,)), (4,))]
    assert own == (["Qh|", "|Kh"] if ended == FOLDED else ["Qh|Kh", "Qh|Kh"])


# Bots from outside


Bot = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def play_against(bot: Bot, hands: int = 3, seconds: float = 20.0) -> DealtResult:
    """A match of leduc between an agent that calls and `bot`, which is called for every connection that it asks for."""

    async def match() -> DealtResult:
        dealer = Dealer(LEDUC.rules, ("ann", "bob"), Terms(hands, seconds=seconds))
        for seat in dealer.seats:
            await seat.open(HOST, 0)
        agent = ProtocolAgent(scripted_policy("call", LEDUC), 0)
        tasks = [asyncio.create_task(Client(agent, HOST, dealer.seats[0].port, 0, 9.0, nothing).play())]
        tasks.append(asyncio.create_task(connect(bot, dealer.seats[1].port)))
        try:
            return await dealer.play(lambda _: None)
        finally:
            await dealer.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(match())


async def connect(bot: Bot, port: int) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        await bot(reader, writer)
    finally:
        writer.close()


def caller(change: Callable[[str], str] = lambda line: line) -> Bot:
    """Answers every state in which it is its turn with `c`, after `change` of the line that it sends."""

    async def bot(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        agent = ProtocolAgent(scripted_policy("call", LEDUC), 0)
        writer.write(b"\r\n# I am a bot\r\nVERSION:2.0.0\r\n")
        while line := (await reader.readline()).decode().strip():
            if agent.answer(parse_match_state(line)):
                writer.write(b"; thinking\r\n\r\n" + change(line + ":c").encode() + b"\r\n")

    return bot


def test_a_bot_with_comments_and_blank_lines_plays() -> None:
    result = play_against(caller(), hands=20)
    assert result.score.hands == 20
    assert result.names == ("ann", "bob")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda line: line[:-1] + "f",
            r"bob answered 'MATCHSTATE:.*:f': The action f is not one of leduc .* c or r is",
        ),
        (lambda line: line[:-1] + "x", r"bob answered .*: 'x' is no action"),
        (lambda _: "hello", "bob answered 'hello', but an answer to 'MATCHSTATE:"),
        (lambda line: line.replace(":0:", ":7:", 1).replace(":1:", ":7:", 1), "bob answered .*, but an answer to"),
        (lambda _: "x" * 9999, "bob sent a line of more than 4,096 characters"),
        (lambda _: "né", "which is not ASCII"),
    ],
)
def test_a_wrong_message_ends_the_match(change: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        play_against(caller(change))


@pytest.mark.parametrize(
    ("greeting", "sentence"),
    [
        (b"VERSION:1.0.0\r\n", "bob began with 'VERSION:1.0.0', but this dealer speaks VERSION:2.0.0"),
        (b"VERSION:2.0.0\r\n", "bob did not answer 'MATCHSTATE:.* within 1.5 s"),
        (b"", "bob did not connect within 1.5 s"),
    ],
)
def test_a_bot_that_is_old_or_silent_ends_the_match(greeting: bytes, sentence: str) -> None:
    async def bot(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        await reader.read()

    with pytest.raises(ProtocolError, match=sentence):
        play_against(bot, seconds=1.5)


def test_a_bot_may_come_back_in_the_middle_of_a_hand() -> None:
    """It hangs up when it is first asked, and is asked the same again by its second connection."""
    answers: list[str] = []

    def note(answer: str) -> str:
        answers.append(answer)
        return answer

    async def bot(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        agent = ProtocolAgent(scripted_policy("call", LEDUC), 0)
        writer.write(b"VERSION:2.0.0\r\n")
        while not agent.answer(parse_match_state(line := (await reader.readline()).decode().strip())):
            pass
        note(f"{line}:c")  # which is not sent
        writer.close()
        await connect(caller(note), writer.get_extra_info("peername")[1])

    assert play_against(bot, hands=6).score == play_against(caller(), hands=6).score
    assert answers[1] == answers[0]


# The client against other dealers


def visit(lines: list[list[str]], retries: int = 2) -> tuple[Visit, list[str]]:
    """Run an agent that raises against a dealer that sends `lines`, one list a connection; return its answers too.

    Connections beyond those are refused.
    """
    answers: list[str] = []
    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readline()) == b"VERSION:2.0.0\r\n"
        for line in lines.pop(0):
            writer.write(line.encode() + b"\r\n")
        writer.write_eof()
        answers.extend((await reader.read()).decode().split("\r\n"))
        writer.close()

    async def session() -> Visit:
        left = len(lines)

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.append(asyncio.create_task(serve(reader, writer)))
            if len(serving) == left:
                server.close()

        server = await asyncio.start_server(accept, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        agent = ProtocolAgent(scripted_policy("raise", MINI), 0)
        try:
            return await Client(agent, HOST, port, retries, 9.0, nothing).play()
        finally:
            await asyncio.gather(*serving)

    result = asyncio.run(session())
    return result, [answer for answer in answers if answer]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.001)


FIRST, OVER = "MATCHSTATE:1:0::|AcKc", "MATCHSTATE:1:0:rf:|AcKc"


def test_the_client_answers_its_turns_only() -> None:
    """Position 1 is the small blind and acts first; comments, blank lines and the other player's turn need no answer."""
    first_hand = ["# welcome", "", FIRST, "; ok", "MATCHSTATE:1:0:r:|AcKc", OVER]
    result, answers = visit([[*first_hand, "MATCHSTATE:0:1::TcTd|", "MATCHSTATE:0:1:f:TcTd|"]])
    assert answers == [f"{FIRST}:r"]
    assert (result.score.chips, result.score.hands, result.connections) == (150, 2, 1)


def test_the_client_comes_back_in_the_middle_of_a_hand() -> None:
    result, answers = visit([[FIRST], [], [FIRST, OVER]])
    assert answers == [f"{FIRST}:r", f"{FIRST}:r"]
    assert (result.score.chips, result.connections) == (100, 3)


@pytest.mark.parametrize("retries", [2, 1_100])  # more than a float has exponents
def test_the_client_gives_up_after_as_many_attempts_as_it_may_make(
    retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "LONGEST_PAUSE", 0.0)
    with pytest.raises(ProtocolError, match=rf"no match with 127.0.0.1:[0-9]+ after {retries + 1} attempts: "):
        visit([[FIRST]], retries)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("MATCHSTATE:0:0:r300:AcKc|", "The action r300 is not one of fhp-mini with 50 and 100 chips"),
        ("MATCHSTATE:0:0:cc/cc/:AcKc|/TcTdTh/Ts", "The betting 'cc/cc/' has its rounds at other places"),
        ("MATCHSTATE:1:0::|2c2d", "The card 2c is not in the deck of fhp-mini: the dealer plays another game"),
        ("MATCHSTATE:1:0::|As", "are not 2 to a hand"),
        ("MATCHSTATE:1:0:cc/cc:|AcKc/TcTdTh", "is a showdown, but does not show the other player's cards"),
        ("HELLO", "'HELLO' is no match state"),
    ],
)
def test_the_client_refuses_a_foreign_game(line: str, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=re.escape(sentence)):
        visit([[line]])


def test_an_agent_decides_by_hand_and_node() -> None:
    """Whatever it was asked before; another seed decides otherwise somewhere."""
    asked = [parse_match_state(f"MATCHSTATE:1:{hand}::|AcKc") for hand in range(40)]
    agent = ProtocolAgent(UniformPolicy(MINI), 7)
    answers = [agent.answer(state) for state in asked]
    assert [agent.answer(state) for state in reversed(asked)] == answers[::-1]
    assert {move.letter for move in answers if move} == set(ACTION_LETTERS)
    assert [ProtocolAgent(UniformPolicy(MINI), 8).answer(state) for state in asked] != answers


# The commands


def test_the_dealer_command(tmp_path: Path) -> None:
    asked = ("dealer", "scripted:call", "scripted:raise", "--game", "leduc", "--hands", 10, "--duplicate")
    facts = deepcfr(*asked, "--json").json
    assert (facts["hands"], facts["unit"], facts["duplicate"]) == (20, "mA/g", True)
    assert facts["players"] == ["scripted-call", "scripted-raise"]
    shown = deepcfr(*asked, "--log", tmp_path / "log").out.splitlines()
    assert shown[-1] == (tmp_path / "log").read_text().splitlines()[-1]
    assert shown[-1].startswith("SCORE:")
    assert any(line.startswith("scripted-call against scripted-raise at leduc: ") for line in shown)


def test_the_client_command_names_its_player() -> None:
    policy = scripted_policy("raise", LEDUC)
    table = HostedTable(LEDUC.rules, ("bot", "ann"), (None, ProtocolAgent(policy, 0, LEDUC.rules)))
    addresses: Queue[str] = Queue()
    with ThreadPoolExecutor(1) as pool:
        match = pool.submit(host_match, table, Terms(hands=4, seed=0), Records(), addresses.put)
        address = re.fullmatch(r"Waiting for bot at 127\.0\.0\.1:(\d+)\.", addresses.get(timeout=20))
        assert address
        facts = deepcfr("acpc", "tight:leduc", "--port", address[1], "--json").json
        assert match.result().score.hands == 4
    assert (facts["player"], facts["hands"]) == ("tight:leduc", 4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-", "-", "--hands", 1), "Nothing says which game is played: name it with --game."),
        (("-", "-", "--hands", 0, "--game", "leduc"), "--hands must be at least 1, but is 0."),
        (("-", "-", "--hands", 1, "--seconds", 0, "--game", "leduc"), "--seconds must be more than 0, but is 0."),
        (("-", "-", "--hands", 1, "--seconds", 0.1, "--game", "kuhn"), "bot (1) did not connect within 0.1 s."),
        (("a", "-", "--hands", 1, "--seed", -1, "--game", "kuhn"), "--seed must be at least 0, but is -1."),
    ],
)
def test_refusals_of_the_dealer_command(arguments: tuple[object, ...], sentence: str, tmp_path: Path) -> None:
    outcome = deepcfr("dealer", *arguments, "--log", tmp_path / "log")
    assert (outcome.status, outcome.err) == (2, f"deepcfr: {sentence}\n")
    assert list(tmp_path.iterdir()) == []  # a match without a hand leaves no files


def test_what_is_no_host_and_no_run_is_said(tmp_path: Path) -> None:
    asked = ("-", "scripted:call", "--game", "leduc", "--hands", 1, "--host", "a..b")
    assert "Nobody can listen on a..b:" in problem(deepcfr("dealer", *asked))
    assert "'a..b:1' is no address" in problem(deepcfr("acpc", "models/leduc", "--host", "a..b", "--port", 1))
    assert "does not hold a run" in problem(deepcfr("acpc", tmp_path, "--port", 1))


def test_seats_have_names_and_bots_are_left_free() -> None:
    assert seat_names(("-", "-")) == ("bot (1)", "bot (2)")
    assert seat_names(("a:b", "-")) == ("a-b", "bot")
    table = seat_players(("-", "scripted:call"), "leduc", "average", nothing)
    assert (table.rules.name, [bot is None for bot in table.bots]) == ("leduc", [True, False])
