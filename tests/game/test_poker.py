"""Poker games: deals are uniform, suits do not matter, and playouts pay what OpenSpiel says."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.stats import chisquare

from deepcfr.core.types import NO_CARD, TERMINAL
from deepcfr.game.base import Deals, check_game
from deepcfr.game.betting import FOLD, RAISE
from deepcfr.game.cards import suit_permutations
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.interop.openspiel import openspiel_game

CANONICAL = {name: PokerGame(rules, "canonical") for name, rules in PRESETS.items()}
RAW = {name: PokerGame(rules, "raw") for name, rules in PRESETS.items()}
EVERY_GAME = pytest.mark.parametrize(
    "game", [RAW["kuhn"], CANONICAL["leduc"], RAW["fhp"], CANONICAL["hulh"], CANONICAL["fhp-pot"]], ids=lambda g: g.name
)
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


@pytest.mark.parametrize(("name", "outcomes"), [("kuhn", 3 * 2), ("leduc", 6 * 5 * 4)])
def test_all_deals_of_small_games_are_equally_likely(name: str, outcomes: int) -> None:
    cards = dealt(RAW[name], RAW[name].deal(600 * outcomes, stream=2))
    counts = np.unique(cards, axis=0, return_counts=True)[1]
    assert len(counts) == outcomes
    assert chisquare(counts).pvalue > 1e-3


@HOLDEM
def test_all_cards_and_hands_are_equally_likely(name: str) -> None:
    cards = dealt(RAW[name], RAW[name].deal(100_000, stream=3))
    assert (np.diff(np.sort(cards, axis=1), axis=1) > 0).all()  # none twice
    for slots in (slice(0, 2), slice(2, 4), slice(4, 7), *(slice(slot, slot + 1) for slot in range(7, cards.shape[1]))):
        assert chisquare(np.bincount(cards[:, slots].ravel(), minlength=52)).pvalue > 1e-3
    for hand in (cards[:, 0:2], cards[:, 2:4]):
        counts = np.unique(hand @ [52, 1], return_counts=True)[1]
        assert len(counts) == 1326
        assert chisquare(counts).pvalue > 1e-3


# What players see.
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leduc", "hulh"])
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


@pytest.mark.parametrize("name", ["leduc", "hulh"])
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


@pytest.mark.parametrize("game", [RAW["fhp"], CANONICAL["hulh"]], ids=lambda game: game.name)
def test_playouts_are_those_of_openspiel(game: PokerGame) -> None:
    rules = game.rules
    cards = random_cards(rules, 300, seed=6)
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
def test_every_preset_keeps_the_contract(game: PokerGame) -> None:
    check_game(game)


@EVERY_GAME
def test_chance_events_are_counted_where_the_cards_fall(game: PokerGame) -> None:
    tree = game.tree
    for node in range(0, tree.num_nodes, max(1, tree.num_nodes // 300)):
        path = [parent for parent, _ in tree.path(node)] + [node]
        assert int(game.deals_before[path].sum()) == 1 + tree.round[node]
