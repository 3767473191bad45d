"""Until a hand is over, nothing that leaves the server depends on what the person cannot know.

The truth is taken from the server's own hand, not from its answers. A twin of a hand has the same seed and the same cards
where the person can see them, and others everywhere else; the agent plays alike with all cards. So the two must have the
same answers, byte for byte, in every field.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from deepcfr.game.cards import card_text
from deepcfr.play.hand import Hand
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.query import round_name
from deepcfr.web.play import COOKIE
from deepcfr.web.table import WebSeat
from web_site import Person, agent, client

Cards = npt.NDArray[np.uint8]
GAMES = ("leduc", "hulh")
HANDS = 4


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
def person(request: pytest.FixtureRequest) -> Person:
    return Person(client(agent("even", request.param, UniformPolicy)), "even")


def begin(person: Person, dealer: Dealer, seed: int, cards: Cards | None) -> tuple[dict[str, Any], Hand]:
    """A hand in a new seat: the first with an even seed, else the second, in which the person acts as the other player."""
    person.client.cookies.clear()
    dealer.cards = None if seed % 2 else cards
    state = person.sit(seed=seed)
    if seed % 2:
        person.finish()
        dealer.cards = cards
        state = person.next()
    dealer.cards = None
    return state, dealer.hand


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
    rules, held, other = hand.rules, hand.rules.hole_cards, 1 - hand.person

    def text(places: Any) -> list[str]:
        return [card_text(rules, int(hand.cards[0, place])) for place in places]

    return {
        "decision": len(hand.steps), "over": False, "result": None, "known": None,
        "cards": text(range(hand.person * held, (hand.person + 1) * held)), "board": text(dealt(hand, hand.state.round)),
        "pot": sum(hand.chips), "to_call": hand.chips[other] - hand.chips[hand.person],
        "chips": {"you": hand.chips[hand.person], "agent": hand.chips[other]},
        "steps": [
            {
                "who": "you" if step.player == hand.person else "agent", "round": round_name(rules, step.round),
                "board": text(dealt(hand, step.round)), "name": step.name, "token": step.token,
            }
            for step in hand.steps
        ],
    }  # fmt: skip


ELSEWHERE = {
    "agent", "game", "unit", "milli_unit", "hand", "counts", "seat", "first", "round", "board_size", "place", "stacks",
    "actions", "sizes", "session",
}  # fmt: skip


def play(
    person: Person, dealer: Dealer, seed: int, choose: Callable[[list[str]], str | None], cards: Cards | None = None
) -> tuple[list[str], list[tuple[bytes, bytes]], Hand]:
    """Play until the hand ends or `choose` gives up; the actions, what each decision showed, and the hand."""
    state, hand = begin(person, dealer, seed, cards)
    tokens, answers = [], []
    while not state["over"]:
        assert set(state) == set(expected(hand)) | ELSEWHERE
        assert {name: state[name] for name in expected(hand)} == expected(hand)
        answers.append((person.client.get(person.path).content, person.client.get("/play/even").content))
        token = choose([action["token"] for action in state["actions"]])
        if token is None:
            break
        tokens.append(token)
        state = person.act(token).json()
    return tokens, answers, hand


def test_until_the_end_no_answer_depends_on_what_is_hidden(person: Person, dealer: Dealer) -> None:
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


@pytest.mark.parametrize("path", ["/play/even", "/api/play/even", "/play/even/new"])
def test_no_script_and_no_other_site_gets_the_key_to_a_seat(path: str) -> None:
    with client(agent("even", "kuhn", UniformPolicy)) as person:
        answer = person.post(path, **({"json": {}} if path.startswith("/api") else {}))
    name, *flags = answer.headers["set-cookie"].split("; ")
    assert name.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=strict"} <= set(flags)
