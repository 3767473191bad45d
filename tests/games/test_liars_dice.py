"""Liar's dice by public positions: the positions, actions, payoffs and rolls of OpenSpiel's game."""

import random

import numpy as np
import pyspiel
import pytest
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import check_game
from deepcfr.games.liars_dice import LiarsDice, histories_of_dice
from deepcfr.games.openspiel import OpenSpielGame, load_openspiel_game, playable_openspiel_game
from deepcfr.rng import key
from deepcfr.types import TERMINAL

LARGE = "liars_dice(numdice=2,dice_sides=4)"
SMALL = ("liars_dice(dice_sides=4)", "liars_dice(numdice=2,dice_sides=2)")


def dice(name: str) -> LiarsDice:
    return LiarsDice(pyspiel.load_game(name), name)


@pytest.mark.parametrize("name", [*SMALL, LARGE])
def test_it_keeps_the_contract(name: str) -> None:
    check_game(dice(name))


@pytest.mark.parametrize("name", SMALL)
def test_sizes_are_those_of_the_listed_game(name: str) -> None:
    game, listed = dice(name), load_openspiel_game(name).explicit
    assert game.num_infosets == listed.num_infosets
    chance = 1 + sum(game.num_faces**k for k in range(1, 2 * game.num_dice))  # histories before the last roll
    # no call before the first bid
    assert histories_of_dice(game.spiel_game) - game.num_faces ** (2 * game.num_dice) + chance == listed.num_nodes


@pytest.mark.parametrize("name", [*SMALL, LARGE, "liars_dice(numdice=2,dice_sides=3,bidding_rule=reset-quantity)"])
def test_random_games_go_as_openspiels(name: str) -> None:
    game, chance = dice(name), random.Random(0)
    deals = game.deal(60, key(0, "dice"))
    for row in range(len(deals)):
        state, at = game.spiel_game.new_initial_state(), torch.tensor([row])
        node = game.start(deals)[at]
        for player in (0, 1):
            for face in deals.views[row, player, 0].tolist():
                state.apply_action(face)
        assert game.deals_before[node].tolist() == [len(state.history())]
        while not state.is_terminal():
            assert game.actor[node].item() == state.current_player()
            assert torch.nonzero(game.legal[node[0]])[:, 0].tolist() == state.legal_actions()
            assert torch.equal(game.encoding.legal[game.infoset[node]], game.legal[node])
            action = chance.choice(state.legal_actions())
            node = game.step(node, torch.tensor([action]), at, deals)
            state.apply_action(action)
        assert game.actor[node].item() == TERMINAL
        assert game.payoff(node, at, deals).item() == state.returns()[0]


def test_a_position_is_seen_as_the_set_of_its_bids() -> None:
    game = dice(SMALL[0])
    after = game.step(torch.tensor([0]), torch.tensor([2]), torch.tensor([0]), game.deal(1, 0))
    after = game.step(after, torch.tensor([5]), torch.tensor([0]), game.deal(1, 0))
    assert torch.nonzero(game.encoding.node_features[game.infoset[after[0]]])[:, 0].tolist() == [2, 5]


def test_rolls_are_as_likely_as_they_should_be() -> None:
    game = dice("liars_dice(numdice=2,dice_sides=3)")
    assert game.hands.tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    np.testing.assert_allclose(game.chance, np.array([1, 2, 2, 1, 2, 1]) / 9)
    count = 30_000
    hand = game.deal(count, key(1, "rolls")).hidden.numpy()
    pairs = np.zeros((6, 6))
    np.add.at(pairs, (hand[:, 0], hand[:, 1]), 1 / count)
    expected = game.chance[:, None] * game.chance
    assert (np.abs(pairs - expected) < 5 * np.sqrt(expected / count)).all()


def test_only_what_cannot_be_listed_is_held_by_positions() -> None:
    assert isinstance(playable_openspiel_game(LARGE), LiarsDice)
    assert isinstance(playable_openspiel_game(SMALL[0]), OpenSpielGame)
    assert isinstance(playable_openspiel_game("kuhn_poker"), OpenSpielGame)


def test_too_many_bids_are_refused() -> None:
    with pytest.raises(GameError, match=r"'liars_dice\(numdice=3\)' has 36 bids, and at most 22 are supported\."):
        dice("liars_dice(numdice=3)")
