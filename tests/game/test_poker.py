"""Poker games: deals are uniform, suits do not matter, and playouts pay what two other rule books say."""

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import phevaluator
import pytest
import torch
from scipy.stats import chisquare

from deepcfr.core.errors import GameError
from deepcfr.core.types import NO_CARD, TERMINAL
from deepcfr.game.base import Deals, check_game, infosets_at
from deepcfr.game.betting import ACTION_LETTERS, FOLD, RAISE
from deepcfr.game.cards import suit_permutations
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.interop.openspiel import openspiel_game

CANONICAL = {name: PokerGame(rules, "canonical") for name, rules in PRESETS.items()}
RAW = {name: PokerGame(rules, "raw") for name, rules in PRESETS.items()}
EVERY_GAME = pytest.mark.parametrize("game", [*CANONICAL.values(), *RAW.values()], ids=lambda g: f"{g.name}-{g.suits}")
HOLDEM = pytest.mark.parametrize("name", ["fhp", "hulh"])

Cards = npt.NDArray[np.uint8]


def random_cards(rules: PokerRules, count: int, seed: int) -> Cards:
    """Both hands and the board of `count` deals, uint8 [count, cards], without the game's own shuffle."""
    order = np.random.default_rng(seed).random((count, rules.num_cards)).argsort(axis=1)
    return order[:, : 2 * rules.hole_cards + sum(rules.board_cards)].astype(np.uint8)


def dealt(game: PokerGame, deals: Deals) -> npt.NDArray[np.int64]:
    """Both hands and the board of every deal of a raw game, [B, cards], read from the hands of the last round."""
    hands = deals.visible_cards[:, :, -1].long().numpy()
    hole = game.rules.hole_cards
    assert np.array_equal(hands[:, 0, hole:], hands[:, 1, hole:])
    return np.concatenate([hands[:, 0, :hole], hands[:, 1]], axis=1)


# Deals.
# -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(PRESETS))
def test_no_card_is_dealt_twice(name: str) -> None:
    cards = dealt(RAW[name], RAW[name].deal(20_000, stream=1))
    assert (np.diff(np.sort(cards, axis=1), axis=1) > 0).all()
    assert set(np.unique(cards)) == set(range(PRESETS[name].num_cards))


@pytest.mark.parametrize(("name", "outcomes"), [("kuhn", 3 * 2), ("leduc", 6 * 5 * 4)])
def test_all_deals_of_small_games_are_equally_likely(name: str, outcomes: int) -> None:
    cards = dealt(RAW[name], RAW[name].deal(600 * outcomes, stream=2))
    counts = np.unique(cards, axis=0, return_counts=True)[1]
    assert len(counts) == outcomes
    assert chisquare(counts).pvalue > 1e-3


@HOLDEM
def test_all_cards_and_hands_are_equally_likely(name: str) -> None:
    cards = dealt(RAW[name], RAW[name].deal(200_000, stream=3))
    for slots in (slice(0, 2), slice(2, 4), slice(4, 7), *(slice(slot, slot + 1) for slot in range(7, cards.shape[1]))):
        assert chisquare(np.bincount(cards[:, slots].ravel(), minlength=52)).pvalue > 1e-3
    for hand in (cards[:, 0:2], cards[:, 2:4]):
        counts = np.unique(hand @ [52, 1], return_counts=True)[1]
        assert len(counts) == 1326
        assert chisquare(counts).pvalue > 1e-3


def test_the_two_hands_depend_on_each_other_only_through_the_deck() -> None:
    cards = dealt(RAW["fhp"], RAW["fhp"].deal(400_000, stream=4))
    observed = np.zeros((52, 52))
    np.add.at(observed, (cards[:, 1], cards[:, 3]), 1)  # the higher cards of both hands
    high, low = np.maximum(*np.indices((52, 52))), np.minimum(*np.indices((52, 52)))
    ways = np.where(high == low, 0, low * (high - 2)).clip(min=0)  # disjoint hands with these higher cards
    expected = ways * len(cards) / ways.sum()
    assert observed[ways == 0].sum() == 0
    enough = expected >= 5
    rest = observed[~enough].sum(), expected[~enough].sum()
    assert chisquare(np.append(observed[enough], rest[0]), np.append(expected[enough], rest[1])).pvalue > 1e-3


@EVERY_GAME
def test_a_traversal_has_the_same_deal_in_any_chunking(game: PokerGame) -> None:
    whole = game.deal(100, stream=5, first=40)
    assert whole.traversal.tolist() == list(range(40, 140))
    for size in (1, 7, 64):
        chunks = [game.deal(min(size, 140 - first), stream=5, first=first) for first in range(40, 140, size)]
        assert torch.equal(torch.cat([chunk.traversal for chunk in chunks]), whole.traversal)
        assert torch.equal(torch.cat([chunk.visible_cards for chunk in chunks]), whole.visible_cards)
        assert torch.equal(torch.cat([chunk.hidden for chunk in chunks]), whole.hidden)


def test_streams_and_traversals_have_different_deals() -> None:
    hands = RAW["hulh"].deal(1000, stream=6).visible_cards
    assert len(torch.unique(hands, dim=0)) == 1000
    assert not torch.equal(hands, RAW["hulh"].deal(1000, stream=7).visible_cards)


# What players see.
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(PRESETS))
def test_raw_views_are_the_own_hand_and_the_board_so_far(name: str) -> None:
    rules = PRESETS[name]
    cards = random_cards(rules, 50, seed=1)
    hands = RAW[name].deals_of(cards).visible_cards.tolist()
    for row, deal in enumerate(cards.tolist()):
        board = deal[2 * rules.hole_cards :]
        for player in (0, 1):
            seen = sorted(deal[player * rules.hole_cards : (player + 1) * rules.hole_cards])
            start = 0
            for round_, size in enumerate(rules.board_cards):
                seen = seen + sorted(board[start : start + size])
                start += size
                assert hands[row][player][round_] == seen + [NO_CARD] * (rules.hole_cards + len(board) - len(seen))


@EVERY_GAME
def test_views_tell_nothing_of_the_opponents_hand_or_of_cards_to_come(game: PokerGame) -> None:
    rules = game.rules
    deck = np.random.default_rng(2).random((200, rules.num_cards)).argsort(axis=1).astype(np.uint8)
    slots, hole = 2 * rules.hole_cards + sum(rules.board_cards), rules.hole_cards
    hands = game.deals_of(deck[:, :slots].copy()).visible_cards
    known = 2 * hole
    for round_, size in enumerate(rules.board_cards):
        known += size
        for player in (0, 1):
            # exchange everything that the player does not know against the rest of the deck, in reverse order
            mine = np.zeros(rules.num_cards, bool)
            mine[player * hole : (player + 1) * hole] = True
            mine[2 * hole : known] = True
            other = deck.copy()
            other[:, ~mine] = deck[:, ~mine][:, ::-1]
            assert torch.equal(
                game.deals_of(other[:, :slots].copy()).visible_cards[:, player, round_], hands[:, player, round_]
            )


@pytest.mark.parametrize("name", ["leduc", "fhp", "hulh"])
def test_renaming_suits_changes_raw_views_only(name: str) -> None:
    rules = PRESETS[name]
    cards = random_cards(rules, 500, seed=3)
    deals, raw = CANONICAL[name].deals_of(cards), RAW[name].deals_of(cards)
    for renaming in suit_permutations(rules.num_ranks, rules.num_suits)[1:]:
        renamed = CANONICAL[name].deals_of(renaming[cards])
        assert torch.equal(renamed.visible_cards, deals.visible_cards)
        assert torch.equal(renamed.hidden, deals.hidden)
        raw_renamed = RAW[name].deals_of(renaming[cards])
        assert (raw_renamed.visible_cards != raw.visible_cards).flatten(1).any(1).float().mean() > 0.5
        assert torch.equal(raw_renamed.hidden, raw.hidden)


def test_infosets_are_those_of_the_acting_player_and_round() -> None:
    game = RAW["leduc"]
    deals = game.deals_of(np.array([[0, 3, 5], [4, 1, 2]], np.uint8))
    check, flop = 1, int(np.flatnonzero(game.tree.round == 1)[0])
    assert (game.tree.actor[check], game.tree.actor[flop]) == (1, 0)
    found = infosets_at(game, torch.tensor([0, check, flop]), torch.tensor([0, 0, 1]), deals)
    assert found.node.tolist() == [0, check, flop]
    assert found.cards.tolist() == [[0, NO_CARD], [3, NO_CARD], [4, 2]]


# Playouts.
# --------------------------------------------------------------------------------------------------------------


def random_playouts(game: PokerGame, deals: Deals, seed: int) -> list[list[tuple[int, int]]]:
    """The (node, action) pairs of one random playout of every deal, then (terminal node, -1)."""
    rng = np.random.default_rng(seed)
    playouts = []
    for row in range(len(deals)):
        node, steps = int(game.start(deals)[row]), []
        while game.actor[node] != TERMINAL:
            legal = np.flatnonzero(game.legal[node].numpy())
            # folding rarely and raising often, so that many playouts are long
            weights = np.where(legal == FOLD, 0.15, np.where(legal == RAISE, 2.0, 1.0))
            action = int(rng.choice(legal, p=weights / weights.sum()))
            steps.append((node, action))
            node = int(game.step(torch.tensor([node]), torch.tensor([action]), torch.tensor([row]), deals))
        playouts.append([*steps, (node, -1)])
    return playouts


def replay(rules: PokerRules, letters: str) -> tuple[list[tuple[int, int, str]], list[int], int | None]:
    """Limit betting again: (round, player, legal letters) of every action, the chips at the end, and who folded."""
    chips, steps, done = list(rules.blinds), [], 0
    for round_ in range(rules.num_rounds):
        player, taken = rules.first_player[round_], ""
        while len(taken) < 2 or taken[-1] != "c":
            facing_a_bet = chips[player] < chips[1 - player]
            can_raise = taken.count("r") < rules.max_raises[round_]
            steps.append((round_, player, "f" * facing_a_bet + "c" + "r" * can_raise))
            taken += letters[done]
            done += 1
            if taken[-1] == "f":
                assert done == len(letters)
                return steps, chips, player
            chips[player] = max(chips) + (rules.raise_size[round_] if taken[-1] == "r" else 0)
            player = 1 - player
    assert done == len(letters)
    return steps, chips, None


def gain(rules: PokerRules, cards: list[int], chips: list[int], folded: int | None) -> float:
    """Player 0's payoff, in units, by phevaluator's ranking."""
    if folded is not None:
        return -chips[0] / rules.unit_chips if folded == 0 else chips[1] / rules.unit_chips
    ranks = [phevaluator.evaluate_cards(*cards[2 * p : 2 * p + 2], *cards[4:]) for p in (0, 1)]  # low is good
    return (chips[1] * (ranks[0] < ranks[1]) - chips[0] * (ranks[1] < ranks[0])) / rules.unit_chips


@pytest.mark.parametrize("suits", ["canonical", "raw"])
@HOLDEM
def test_playouts_follow_an_independent_rule_book(name: str, suits: str) -> None:
    game, rules = (CANONICAL if suits == "canonical" else RAW)[name], PRESETS[name]
    cards = random_cards(rules, 1500, seed=4)
    deals = game.deals_of(cards)
    showdowns = 0
    for row, playout in enumerate(random_playouts(game, deals, seed=5)):
        end = playout[-1][0]
        letters = "".join(ACTION_LETTERS[action] for _, action in playout[:-1])
        steps, chips, folded = replay(rules, letters)
        found = [
            (
                int(game.round[node]),
                int(game.actor[node]),
                "".join(ACTION_LETTERS[a] for a in np.flatnonzero(game.legal[node].numpy())),
            )
            for node, _ in playout[:-1]
        ]
        assert found == steps
        assert game.tree.chips[end].tolist() == chips
        payoff = float(game.payoff(torch.tensor([end]), torch.tensor([row]), deals))
        assert payoff == pytest.approx(gain(rules, cards[row].tolist(), chips, folded))
        showdowns += folded is None
    assert showdowns > 300  # or the cards were not tested


@HOLDEM
def test_playouts_are_those_of_openspiel(name: str) -> None:
    game, rules = RAW[name], PRESETS[name]
    cards = random_cards(rules, 400, seed=6)
    deals = game.deals_of(cards)
    other = openspiel_game(rules)
    for row, playout in enumerate(random_playouts(game, deals, seed=7)):
        state, deck = other.new_initial_state(), iter(cards[row].tolist())
        for node, action in playout:
            while state.is_chance_node():
                state.apply_action(next(deck))
            if action < 0:
                assert state.is_terminal()
                payoff = float(game.payoff(torch.tensor([node]), torch.tensor([row]), deals))
                assert state.returns() == pytest.approx([payoff * rules.unit_chips, -payoff * rules.unit_chips])
            else:
                assert state.current_player() == game.actor[node]
                assert state.legal_actions() == np.flatnonzero(game.legal[node].numpy()).tolist()
                state.apply_action(action)


@EVERY_GAME
def test_exchanging_the_hands_exchanges_win_and_loss(game: PokerGame) -> None:
    hole = game.rules.hole_cards
    cards = random_cards(game.rules, 300, seed=8)
    swapped = np.concatenate([cards[:, hole : 2 * hole], cards[:, :hole], cards[:, 2 * hole :]], axis=1)
    deals, exchanged = game.deals_of(cards), game.deals_of(swapped)
    assert torch.equal(exchanged.visible_cards, deals.visible_cards.flip(1))
    rows = torch.arange(300)
    showdown = int(np.flatnonzero(game.tree.ended == 2)[-1])
    nodes = torch.full((300,), showdown)
    payoff = game.payoff(nodes, rows, deals)
    assert torch.equal(game.payoff(nodes, rows, exchanged), -payoff)
    assert set(payoff.abs().tolist()) <= {0.0, game.tree.chips[showdown, 0] / game.rules.unit_chips}


# The contract.
# ----------------------------------------------------------------------------------------------------------


@EVERY_GAME
def test_every_preset_keeps_the_contract(game: PokerGame) -> None:
    check_game(game)


@pytest.mark.parametrize("game", RAW.values(), ids=RAW)
def test_chance_events_are_counted_where_the_cards_fall(game: PokerGame) -> None:
    tree = game.tree
    for node in range(0, tree.num_nodes, max(1, tree.num_nodes // 300)):
        path = [parent for parent, _ in tree.path(node)] + [node]
        assert int(game.deals_before[path].sum()) == 1 + tree.round[node]


def altered(game: PokerGame, **changes: Any) -> PokerGame:
    """A copy of `game` with some of its parts replaced."""
    broken = copy.copy(game)
    for name, value in changes.items():
        setattr(broken, name, value)
    return broken


def replaced(values: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    changed = values.clone()
    changed[index] = value
    return changed


def broken_games() -> list[tuple[str, PokerGame]]:
    game, kuhn = CANONICAL["leduc"], CANONICAL["kuhn"]
    encoding = game.encoding
    features = copy.copy(encoding)
    object.__setattr__(features, "node_features", replaced(encoding.node_features, (3, 0), float("nan")))
    idle = copy.copy(encoding)
    object.__setattr__(idle, "legal", replaced(encoding.legal, 2, False))
    return [
        ("actor must be int64", altered(game, actor=game.actor.int())),
        ("round must be int64", altered(game, round=game.round[:-1])),
        ("infoset must be int64", altered(game, infoset=game.infoset.float())),
        ("deals_before must be int64", altered(game, deals_before=game.deals_before[None])),
        ("legal must be bool", altered(game, legal=game.legal[:, :2])),
        ("actor must be 0, 1 or TERMINAL", altered(game, actor=replaced(game.actor, 1, 2))),
        ("infoset must index the rows", altered(game, infoset=replaced(game.infoset, 1, 10_000))),
        ("infoset must index the rows", altered(game, infoset=replaced(game.infoset, 1, -1))),
        ("infoset must index the rows", altered(game, actor=torch.full_like(game.actor, TERMINAL))),
        ("needs a legal action", altered(game, legal=replaced(game.legal, 2, False), encoding=idle)),
        ("legal actions must be those of its infoset", altered(game, legal=replaced(game.legal, (0, FOLD), True))),
        ("must belong to one player", altered(kuhn, infoset=replaced(kuhn.infoset, 1, 0))),
        ("node_features must be finite", altered(game, encoding=features)),
        ("in any chunking", altered(game, deal=lambda count, stream, first=0: game.deal(count, stream + first))),
        ("visible_cards must be", altered(game, deal=lambda *args, **options: kuhn.deal(*args, **options))),
        ("a playout does not end", altered(game, step=lambda node, *_: node)),
        ("step() must lead to a node", altered(game, step=lambda node, *_: node + 10_000)),
        ("step() must lead to a node", altered(game, step=lambda node, *_: node * 0 - 1)),
        ("payoffs must be finite", altered(game, payoff=lambda node, *_: node / 0)),
    ]


@pytest.mark.parametrize(
    ("sentence", "game"), broken_games(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_broken_game_is_reported(sentence: str, game: PokerGame) -> None:
    with pytest.raises(GameError) as caught:
        check_game(game)
    problems = caught.value.problems
    assert any(sentence in problem for problem in problems)
    assert len(problems) == (2 if sentence == "in any chunking" else 1)  # that one numbers its traversals wrongly too
    for problem in problems:
        assert problem.startswith(f"The game '{game.name}' breaks the contract: ")
        assert problem.endswith(".")


def test_all_static_breaches_are_reported_together() -> None:
    game = CANONICAL["leduc"]
    broken = altered(game, actor=replaced(game.actor, 1, 5), legal=replaced(game.legal, (0, FOLD), True))
    with pytest.raises(GameError) as caught:
        check_game(broken)
    assert len(caught.value.problems) == 2
