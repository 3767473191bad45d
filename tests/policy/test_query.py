"""Situations in text: what is written is what is asked, and every mistake has its sentence."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import NO_CARD, Infosets
from deepcfr.game.base import infosets_at
from deepcfr.game.betting import BettingState, first_state, legal_actions, next_state
from deepcfr.game.cards import card_text, parse_card, suit_permutations
from deepcfr.game.poker import PokerGame
from deepcfr.game.public_state import ListedState
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.query import Situation, infosets_with, parse_situation, query, round_name

# Three suits, a card on the table before the first action, a round without cards, and antes.
ODD = PokerRules(
    name="odd", num_ranks=4, num_suits=3, hole_cards=2, board_cards=(1, 0, 2), blinds=(1, 1), first_player=(0, 1, 0),
    raise_size=(1, 2, 3), max_raises=(1, 0, 2), unit_chips=1, unit="antes", milli_unit="mA/g", rank_symbols="JQKA",
)  # fmt: skip
RULES = {**PRESETS, "odd": ODD}
GAMES = {(name, suits): PokerGame(rules, suits) for name, rules in RULES.items() for suits in ("canonical", "raw")}


def parse(game: str, text: str) -> Situation:
    return parse_situation(GAMES[game, "canonical"].state(), text)


def node_of(situation: Situation) -> int:
    assert isinstance(situation.state, ListedState)
    return situation.state.node


def infosets_of(game: PokerGame, situation: Situation) -> Infosets:
    """The information of the player of a situation, one row."""
    return infosets_with(game, game.state(node_of(situation)), np.array([situation.hole], np.uint8), situation.board)


EXAMPLES = [
    # game, text: full text, player, round, pot, to call, names of the legal actions
    ("kuhn", "K", "K", 0, "round 1", 2, 0, "check bet"),
    ("kuhn", " q / c", "Q / c", 1, "round 1", 2, 0, "check bet"),
    ("kuhn", "J/b", "J / r", 1, "round 1", 3, 1, "fold call"),
    ("kuhn", "J / k B", "J / cr", 0, "round 1", 3, 1, "fold call"),
    ("leduc", "Kd", "Kd", 0, "round 1", 2, 0, "check bet"),
    ("leduc", "Kd / cr", "Kd / cr", 0, "round 1", 4, 2, "fold call raise"),
    ("leduc", "Kd / rr", "Kd / rr", 0, "round 1", 8, 2, "fold call"),
    ("leduc", "K / r / Q", "Kc / rc / Qc", 0, "round 2", 6, 0, "check bet"),
    ("leduc", "K / / K / r", "Kc / cc / Kd / r", 1, "round 2", 6, 4, "fold call raise"),
    ("leduc", "K / c / Kc", "Kd / cc / Kc", 0, "round 2", 2, 0, "check bet"),
    ("fhp", "As Kd", "As Kd", 0, "pre-flop", 1.5, 0.5, "fold call raise"),
    ("fhp", "AsKd / c", "As Kd / c", 1, "pre-flop", 2, 0, "check raise"),
    ("fhp", "AsKd / rrr", "As Kd / rrr", 1, "pre-flop", 7, 1, "fold call"),
    ("fhp", "As Kd / r / Qs 7h 2c", "As Kd / rc / Qs 7h 2c", 1, "flop", 4, 0, "check bet"),
    ("fhp", "aSkD//10s7H2c/k", "As Kd / cc / Ts 7h 2c / c", 0, "flop", 2, 0, "check bet"),
    ("fhp", "AsKd/crrc/Qs7h2c/kbr", "As Kd / crrc / Qs 7h 2c / crr", 0, "flop", 9, 1, "fold call raise"),
    ("hulh", "As Kd / r / Qs 7h 2c / / 2d / rr", "As Kd / rc / Qs 7h 2c / cc / 2d / rr", 1, "turn", 10, 2, None),
    ("hulh", "9s9d/r/Qs7h2c/r/2d/r/3d", "9s 9d / rc / Qs 7h 2c / rc / 2d / rc / 3d", 1, "river", 10, 0, "check bet"),
    ("odd", "J Jd / Q", "Jc Jd / Qc", 0, "round 1", 2, 0, "check bet"),
    ("odd", "JcJd / Q / r / ", "Jc Jd / Qc / rc", 1, "round 2", 4, 0, "check"),
    ("odd", "JcJd / Q / rc / c / Q K / r", "Jc Jd / Qc / rc / cc / Qd Kc / r", 1, "round 3", 7, 3, "fold call raise"),
]


@pytest.mark.parametrize("game, text, full, player, name, pot, to_call, actions", EXAMPLES)
def test_examples_by_hand(
    game: str, text: str, full: str, player: int, name: str, pot: float, to_call: float, actions: str | None
) -> None:
    answer = query(UniformPolicy(GAMES[game, "canonical"]), text)
    facts, state = answer.facts(), answer.situation.state
    assert (answer.situation.text, facts["player"], facts["round"]) == (full, player, name)
    assert (facts["pot"], facts["to_call"]) == (pot, to_call)
    names = (actions or "fold call raise").split()
    assert answer.probabilities == pytest.approx(dict.fromkeys(names, 1 / len(names)))
    assert state.actor == player
    assert round_name(RULES[game], state.round) == name


def test_the_answer_is_that_of_the_situations_infoset() -> None:
    class Recorder(UniformPolicy):
        def probabilities(self, infosets: Infosets) -> torch.Tensor:
            self.asked = infosets
            return torch.tensor([[0.0, 0.25, 0.75]])

    policy = Recorder(GAMES["fhp", "canonical"])
    answer = query(policy, "As Kd / r / Qs 7h 2c")
    assert answer.probabilities == {"check": 0.25, "bet": 0.75}
    assert policy.asked.node.tolist() == [node_of(answer.situation)]
    # Canonical suits: the largest holdings come first, so spades (A, then Q) become suit 0, diamonds 1, and so on.
    expected = [parse_card(PRESETS["fhp"], card) for card in ("Kd", "Ac", "2s", "7h", "Qc")]
    assert policy.asked.cards.tolist() == [expected]


def test_an_answer_is_described_in_text_and_in_json() -> None:
    answer = query(UniformPolicy(GAMES["fhp", "canonical"]), "AsKd")
    assert answer.describe().splitlines() == [
        "As Kd", "pre-flop, player 0 to act, pot 1.5 big blinds, 0.5 to call",
        "  fold    33.33%", "  call    33.33%", "  raise   33.33%",
    ]  # fmt: skip
    assert json.loads(json.dumps(answer.facts())) == {
        "game": "fhp", "unit": "big blinds", "policy": "uniform", "situation": "As Kd", "player": 0, "round": "pre-flop",
        "pot": 1.5, "to_call": 0.5, "probabilities": pytest.approx(dict.fromkeys(["fold", "call", "raise"], 1 / 3)),
    }  # fmt: skip


CARD = "'{}' is not a card of {}: write a rank of {}."
ENDED = "Nobody can act yet: after {} must follow in a field of its own, {}."
SENTENCES = [
    ("fhp", "", "The text '' is not a situation of fhp: begin with the 2 cards of the player to act."),
    ("kuhn", " / ", "The text ' / ' is not a situation of kuhn: begin with the 1 card of the player to act."),
    ("fhp", "AKs", CARD.format("AK", "fhp", "23456789TJQKA and a suit of cdhs")),
    ("kuhn", "A", CARD.format("A", "kuhn", "JQK")),
    ("leduc", "K/r/QJ", CARD.format("QJ", "leduc", "JQK and a suit of cd")),
    ("fhp", "/ r", "A hand of fhp is 2 cards, but none is given."),
    ("kuhn", "KQ", "A hand of kuhn is 1 card, but 'KQ' holds 2 cards."),
    ("fhp", "AsKd/r/Qs7h", "The flop of fhp is 3 cards, but 'Qs7h' holds 2 cards."),
    ("leduc", "K/r/Q J", "The round 2 board of leduc is 1 card, but 'Q J' holds 2 cards."),
    ("fhp", "AsKd/r/Kd7h2c", "The card Kd is given 2 times."),
    ("odd", "Jc J/J/c/c/J Q", "odd has only 3 cards of rank J, but more are given."),
    (
        "fhp",
        "AsKd/Qs7h2c",
        "'Q' in the betting 'Qs7h2c' is not an action: write f (fold), c or k (call or check), r or b (raise or bet).",
    ),
    (
        "fhp",
        "AsKd/rrrr",
        "The pre-flop betting 'rrrr' has 'r' after 'rrr', where only f (fold) or c (call) is allowed.",
    ),
    ("kuhn", "K/f", "The round 1 betting 'f' has 'f' as the first action, where only c (check) or r (bet) is allowed."),
    ("odd", "J J/K/c/b", "The round 2 betting 'b' has 'b' as the first action, where only c (check) is allowed."),
    ("fhp", "AsKd/fc", "The betting 'fc' continues after 'f', which ended the hand."),
    (
        "fhp",
        "AsKd/ccr",
        "The betting 'ccr' continues after 'cc', which ended the round: put the next action in a new field, after '/'.",
    ),
    ("fhp", "AsKd/rf/Qs7h2c", "The betting 'rf' ended the hand, but the field 'Qs7h2c' follows."),
    ("fhp", "AsKd/rf", "Nobody is left to act: the betting 'rf' ends the hand."),
    ("kuhn", "K/bc", "Nobody is left to act: the betting 'rc' leads to the showdown."),
    ("fhp", "AsKd/rc", ENDED.format("the betting 'rc' the flop", "3 cards")),
    ("odd", "J J", ENDED.format("the hole cards the round 1 board", "1 card")),
    ("kuhn", "K/r/Q", "kuhn takes at most 2 fields between '/' (hole cards, round 1 betting), but 'K/r/Q' has 3."),
    (
        "odd",
        "JJ//////",
        "odd takes at most 6 fields between '/' (hole cards, round 1 board, round 1 betting, round 2 betting, "
        "round 3 board, round 3 betting), but 'JJ//////' has 7.",
    ),
]


@pytest.mark.parametrize("game, text, expected", SENTENCES)
def test_every_mistake_has_its_sentence(game: str, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(game, text)
    assert caught.value.problems == (expected,)


def test_only_poker_games_can_be_asked_in_text() -> None:
    policy = UniformPolicy(GAMES["kuhn", "canonical"])
    policy.game = type("Other", (), {"name": "rock paper scissors"})()
    with pytest.raises(GameError, match="Only poker games have situations in text, but rock paper scissors is not one"):
        query(policy, "K")


def random_playout(rules: PokerRules, rng: random.Random) -> tuple[list[int], list[list[int]], BettingState]:
    """A shuffled deck, and the actions of every round up to a random position where somebody must act."""
    deck = rng.sample(range(rules.num_cards), rules.num_cards)
    state, actions, history = first_state(rules), [[]], []  # type: ignore[var-annotated]
    while not state.ended:
        history.append(([list(letters) for letters in actions], state))
        action = rng.choice(legal_actions(rules, state))
        actions[-1].append(action)
        after = next_state(rules, state, action)
        actions += [[]] if after.round > state.round else []
        state = after
    actions, state = rng.choice(history)
    return deck, actions, state


def written(rules: PokerRules, deck: list[int], actions: list[list[int]], rng: random.Random) -> str:
    """The position as a person might write it: aliases, capitals, spaces, and calls that go without saying left out."""

    def cards(some: list[int]) -> str:
        case = rng.choice([str, str.upper, str.lower])
        return rng.choice(["", " "]).join(case(card_text(rules, card)) for card in some)

    board = deck[rules.hole_cards :]
    fields = [cards(deck[: rules.hole_cards])]
    for index, done in enumerate(actions):
        size = rules.board_cards[index]
        fields += [cards(board[:size])] if size else []
        board = board[size:]
        letters = "".join(rng.choice(("f", "cCkK", "rRbB")[action]) for action in done)
        if index + 1 < len(actions):  # the round is over: its last call may be left out, or both checks of a quiet one
            quiet = done == [1, 1]
            letters = letters[: len(letters) - rng.randint(0, 2 if quiet else 1)]
        fields.append(" ".join(letters) if rng.random() < 0.5 else letters)
    # A last field without betting may be left out, but it is what tells of a new round that dealt no cards.
    quiet_end = not actions[-1] and (rules.board_cards[len(actions) - 1] > 0 or len(actions) == 1)
    return rng.choice(["/", " / ", " /"]).join(fields[:-1] if quiet_end and rng.random() < 0.5 else fields)


@settings(max_examples=200)
@given(
    name=st.sampled_from(sorted(RULES)),
    suits=st.sampled_from(["canonical", "raw"]),
    rng=st.randoms(use_true_random=False),
)
def test_a_written_playout_is_read_back_as_the_infoset_that_a_deal_shows(
    name: str, suits: str, rng: random.Random
) -> None:
    game, rules = GAMES[name, suits], RULES[name]
    deck, actions, state = random_playout(rules, rng)
    node = 0
    for action in (a for done in actions for a in done):
        node = int(game.tree.child[node, action])
    situation = parse_situation(game.state(), written(rules, deck, actions, rng))
    hole, dealt = rules.hole_cards, sum(rules.board_cards[: state.round + 1])
    assert situation.hole == tuple(deck[:hole])
    assert situation.board == tuple(deck[hole : hole + dealt])
    assert (node_of(situation), situation.state.actor, situation.state.round) == (node, state.actor, state.round)
    assert situation.state.betting == tuple("".join("fcr"[action] for action in done) for done in actions)
    assert parse_situation(game.state(), situation.text) == situation

    mine, other = deck[:hole], deck[::-1][:hole]
    hands = (mine, other) if state.actor == 0 else (other, mine)
    board = deck[hole:][: sum(rules.board_cards)]
    deals = game.deals_of(np.array([[*hands[0], *hands[1], *board]], np.uint8))
    expected = infosets_at(game, torch.tensor([node]), torch.tensor([0]), deals)
    given = infosets_of(game, situation)
    assert torch.equal(given.node, expected.node)
    assert given.cards.dtype == expected.cards.dtype
    assert torch.equal(given.cards, expected.cards)
    if suits == "canonical":  # renaming the suits asks for the same infoset
        renaming = rng.choice(suit_permutations(rules.num_ranks, rules.num_suits).tolist())
        renamed = parse_situation(game.state(), written(rules, [renaming[card] for card in deck], actions, rng))
        assert torch.equal(infosets_of(game, renamed).cards, given.cards)


def test_raw_suits_are_kept_and_sorted() -> None:
    cards = infosets_of(GAMES["fhp", "raw"], parse_situation(GAMES["fhp", "raw"].state(), "As Kd")).cards[0].tolist()
    assert cards == [parse_card(PRESETS["fhp"], "Kd"), parse_card(PRESETS["fhp"], "As"), *[NO_CARD] * 3]


def test_a_rank_alone_is_a_card_only_below_four_suits() -> None:
    three_suits = PokerGame(replace(PRESETS["leduc"], num_suits=3, suit_symbols=""))
    assert parse_situation(three_suits.state(), "K / r / K").text == "Kc / rc / Kd"
    assert parse_situation(three_suits.state(), "K / r / Kc").text == "Kd / rc / Kc"
    four_suits = PokerGame(replace(PRESETS["leduc"], num_suits=4, suit_symbols=""))
    with pytest.raises(ConfigError, match="'K' is not a card of leduc: write a rank of JQK and a suit of cdhs"):
        parse_situation(four_suits.state(), "K / r / K")


@settings(max_examples=200)
@given(name=st.sampled_from(sorted(RULES)), text=st.text() | st.text("AKQJT10cdhs/ fckrb") | st.text("KQJcd/ rckb"))
def test_garbage_raises_only_config_errors_of_one_sentence(name: str, text: str) -> None:
    try:
        situation = parse(name, text)
    except ConfigError as error:
        (problem,) = error.problems
        assert problem.endswith(".")
        assert "\n" not in problem
    else:
        assert GAMES[name, "canonical"].tree.actor[node_of(situation)] == situation.state.actor
        assert parse(name, situation.text) == situation
