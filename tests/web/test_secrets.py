"""Until a hand is over, nothing that leaves the server depends on what the person cannot know.

The truth is taken from the server's own hand, not from its answers. A twin of a hand has the same seed and the same cards
where the person can see them, and others everywhere else; the agent plays alike with all cards. So the two must have the
same answers, byte for byte, in every field.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fastapi.testclient import TestClient

from deepcfr.game.cards import card_text
from deepcfr.play.hand import Hand
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.query import round_name
from deepcfr.web.play import COOKIE
from deepcfr.web.table import WebSeat
from web_site import agent, client

Cards = npt.NDArray[np.uint8]
GAMES = ("leduc", "fhp", "hulh")
HANDS = 12


class Dealer:
    """Deals the cards it is told to, if any, and remembers the newest hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cards: Cards | None = None
        self.hand: Any = None
        begin, dealer = Hand.__init__, self

        def dealt(self: Hand, policy: Any, seed: int, number: int, cards: Cards | None = None, *person: Any) -> None:
            begin(self, policy, seed, number, cards if dealer.cards is None else dealer.cards, *person)
            dealer.hand = self

        monkeypatch.setattr(Hand, "__init__", dealt)


@pytest.fixture
def dealer(monkeypatch: pytest.MonkeyPatch) -> Dealer:
    return Dealer(monkeypatch)


@pytest.fixture(params=GAMES)
def person(request: pytest.FixtureRequest) -> Iterator[TestClient]:
    with client(agent("even", request.param, UniformPolicy)) as somebody:
        yield somebody


def act(person: TestClient, state: dict[str, Any], token: str) -> dict[str, Any]:
    body = {"hand": state["hand"], "decision": state["decision"], "action": token}
    answer = person.post("/api/play/even/act", json=body)
    assert answer.status_code == 200
    return answer.json()


def begin(person: TestClient, dealer: Dealer, seed: int, cards: Cards | None) -> tuple[dict[str, Any], Hand]:
    """A hand in a new seat: the first with an even seed, else the second, in which the person acts as the other player."""
    person.cookies.clear()
    dealer.cards = cards if seed % 2 == 0 else None
    state = person.post("/api/play/even", json={"seed": seed}).json()
    if seed % 2:
        while not state["over"]:
            state = act(person, state, "c")
        dealer.cards = cards
        state = person.post("/api/play/even/next", json={"hand": 0}).json()
    dealer.cards = None
    return state, dealer.hand


def shown(person: TestClient) -> tuple[bytes, bytes]:
    return person.get("/api/play/even").content, person.get("/play/even").content


def dealt(hand: Hand, round_: int) -> list[int]:
    """The public cards that are on the table in a round, as places in `hand.cards`."""
    first = 2 * hand.rules.hole_cards
    return list(range(first, first + sum(hand.rules.board_cards[: round_ + 1])))


def other_cards(hand: Hand, draw: np.random.Generator) -> Cards:
    """The same cards where the person sees them, and others in all other places."""
    held = hand.rules.hole_cards
    seen = [*range(hand.person * held, (hand.person + 1) * held), *dealt(hand, hand.state.round)]
    hidden = [place for place in range(hand.cards.shape[1]) if place not in seen]
    free = np.setdiff1d(np.arange(hand.rules.num_cards), hand.cards[0])
    pool = np.concatenate([free, hand.cards[0, hidden]])
    cards = hand.cards.copy()
    while (cards[0, hidden] == hand.cards[0, hidden]).any():
        cards[0, hidden] = draw.permutation(pool)[: len(hidden)]
    return cards


def expected(hand: Hand) -> dict[str, Any]:
    """The facts in a state about the hand itself, by the server's own cards and actions."""
    rules, held = hand.rules, hand.rules.hole_cards

    def text(places: Any) -> list[str]:
        return [card_text(rules, int(hand.cards[0, place])) for place in places]

    return {
        "game": rules.name, "hand": hand.number, "counts": True, "seat": hand.number % 2, "decision": len(hand.steps),
        "known": None,
        "cards": text(range(hand.person * held, (hand.person + 1) * held)),
        "board": text(dealt(hand, hand.state.round)), "board_size": sum(rules.board_cards), "over": False, "result": None,
        "round": round_name(rules, hand.state.round), "pot": sum(hand.chips),
        "chips": {"you": hand.chips[hand.person], "agent": hand.chips[1 - hand.person]},
        "to_call": hand.chips[1 - hand.person] - hand.chips[hand.person],
        "actions": [
            {"token": one.token, "name": one.name, "pot_share": None, "all_in": False} for one in hand.choices()
        ],
        "place": ("dealer", "big blind")[hand.person] if rules.unit == "big blinds" else f"Player {hand.person}",
        "stacks": None,
        "sizes": None,
        "steps": [
            {
                "who": "you" if step.player == hand.person else "agent", "round": round_name(rules, step.round),
                "board": text(dealt(hand, step.round)), "name": step.name, "token": step.token,
            }
            for step in hand.steps
        ],
    }  # fmt: skip


ELSEWHERE = {"agent", "unit", "milli_unit", "first", "session"}  # of the seat and the game


def play(
    person: TestClient, dealer: Dealer, seed: int, choose: Callable[[list[str]], str | None], cards: Cards | None = None
) -> tuple[list[str], list[tuple[bytes, bytes]], Hand]:
    """Play until the hand ends or `choose` gives up; the actions, what each decision showed, and the hand."""
    state, hand = begin(person, dealer, seed, cards)
    tokens, answers = [], []
    while not state["over"]:
        assert set(state) == set(expected(hand)) | ELSEWHERE
        assert {name: state[name] for name in expected(hand)} == expected(hand)
        answers.append(shown(person))
        token = choose([action["token"] for action in state["actions"]])
        if token is None:
            break
        tokens.append(token)
        state = act(person, state, token)
    return tokens, answers, hand


def test_until_the_end_no_answer_depends_on_what_is_hidden(person: TestClient, dealer: Dealer) -> None:
    draw, rounds, seats = np.random.default_rng(0), set(), set()
    for seed in range(HANDS):
        again = np.random.default_rng(seed)
        tokens, answers, _ = play(person, dealer, seed, again.choice)  # type: ignore[arg-type]
        for decision in range(len(answers)):
            script = iter([*tokens[:decision], None])
            _, before, hand = play(person, dealer, seed, lambda _, script=script: next(script))  # type: ignore[misc]
            assert before == answers[: decision + 1]
            rounds.add(hand.state.round)
            seats.add(hand.person)
            script = iter([*tokens[:decision], None])
            twin = play(person, dealer, seed, lambda _, script=script: next(script), other_cards(hand, draw))  # type: ignore[misc]
            assert (twin[2].cards != hand.cards).any()
            assert twin[1] == before
    assert seats == {0, 1}
    assert len(rounds) > 1


def test_a_seed_that_was_shown_does_not_give_away_other_hands() -> None:
    folder = agent("even", "fhp", UniformPolicy)
    policy = folder.agent().policy
    first, second = (WebSeat("even", policy, None) for _ in range(2))
    for number in range(3):
        while not first.hand.over:
            first.act(number, len(first.hand.steps), "c")
        seed = int(first.state()["result"]["seed"])
        assert (Hand(policy, seed, number).cards == first.hand.cards).all()  # it is this hand's
        first.next_hand(number)
        for guess in (seed, seed + 1):
            assert (Hand(policy, guess, number + 1).cards != first.hand.cards).any()
    assert (first.hand.cards != second.hand.cards).any()
    assert first.hand.seed != second.hand.seed


@pytest.mark.parametrize(
    ("method", "path"),
    [("post", "/play/even"), ("post", "/api/play/even"), ("post", "/play/even/new")],
)
def test_no_script_and_no_other_site_gets_the_key_to_a_seat(method: str, path: str) -> None:
    with client(agent("even", "kuhn", UniformPolicy)) as person:
        body = {"json": {}} if path.startswith("/api") else {}
        answer = getattr(person, method)(path, **body)
    name, *flags = answer.headers["set-cookie"].split("; ")
    assert name.startswith(f"{COOKIE}=")
    assert "HttpOnly" in flags
    assert "SameSite=strict" in flags
