"""Phantom tic-tac-toe by pairs of sequences: the infosets, actions and payoffs of OpenSpiel's game, and of smaller ones."""

import logging
import random
from functools import cache

import pyspiel
import pytest
import torch

from blind_hex import BlindHex
from deepcfr.config import ExternalSampling
from deepcfr.defaults import default_config
from deepcfr.errors import GameError
from deepcfr.games.base import by_infoset
from deepcfr.games.openspiel import OpenSpielGame, playable_openspiel_game
from deepcfr.games.phantom import PhantomGame
from deepcfr.types import TERMINAL

SMALL, LARGE = (BlindHex(2, 2), BlindHex(2, 3)), "phantom_ttt"


@cache
def phantom(game: BlindHex | str) -> PhantomGame:
    rules = pyspiel.load_game(game) if isinstance(game, str) else game
    return PhantomGame(rules, str(game))


@pytest.mark.parametrize("rules", SMALL)
def test_infosets_are_those_of_the_listed_game(rules: BlindHex) -> None:
    assert phantom(rules).num_infosets == OpenSpielGame(rules, "blind").explicit.num_infosets


def test_the_work_is_said_before_it_begins(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "deepcfr"):
        PhantomGame(BlindHex(2, 2), "blind")
    assert caplog.messages == ["listing the infosets of blind, which takes half a minute for nine cells"]


def test_phantom_tic_tac_toe_has_the_published_number_of_infosets() -> None:
    game = phantom(LARGE)
    assert game.num_infosets == 5_990_669  # 5.99 million in the literature
    assert game.size == "5,990,669 infosets, and too many histories to list"


@pytest.mark.parametrize("rules", [*SMALL, LARGE])
def test_random_games_go_as_openspiels(rules: BlindHex | str) -> None:
    game, chance = phantom(rules), random.Random(0)
    names: dict[str, int] = {}
    infosets: dict[int, str] = {}
    deals, fails = game.deal(150, 0), 0
    for row in range(len(deals)):
        state, at = game.spiel_game.new_initial_state(), torch.tensor([row])
        node = game.start(deals)[at]
        while not state.is_terminal():
            mover = state.current_player()
            assert game.actor[node].tolist() == [mover]
            assert torch.nonzero(game.legal[node][0])[:, 0].tolist() == state.legal_actions()
            infoset = int(game.infoset[node])
            moves = [(move.player, move.action) for move in state.full_history()]
            assert game.infoset_of(moves, mover) == infoset
            assert torch.equal(game.encoding.legal[infoset], game.legal[node][0])
            seen = f"{mover} {state.information_state_string()}"
            assert names.setdefault(seen, infoset) == infoset
            assert infosets.setdefault(infoset, seen) == seen
            assert (int(by_infoset(game, game.actor)[infoset]), int(game.round[node])) == (mover, 0)
            action = chance.choice(state.legal_actions())
            node = game.step(node, torch.tensor([action]), at, deals)
            state.apply_action(action)
            fails += not state.is_terminal() and state.current_player() == mover
        assert game.actor[node].item() == TERMINAL
        assert not game.legal[node].any()
        assert game.payoff(node, at, deals).item() == state.returns()[0]
    assert fails > 20


def test_a_player_sees_its_marks_those_that_it_found_and_when_it_tried() -> None:
    game = phantom(LARGE)
    infoset = game.infoset_of([(0, 4), (1, 0), (0, 0)], 0)  # the centre, then a corner that is taken
    expected = torch.zeros(3, 9)
    expected[0, 4] = expected[1, 0] = 1
    expected[2, 4], expected[2, 0] = 1 / 9, 2 / 9
    features = game.encoding.node_features
    torch.testing.assert_close(features[infoset], torch.cat([expected.flatten(), torch.zeros(1)]))
    assert features[game.infoset_of([(0, 4)], 1)].tolist() == [0.0] * 27 + [1.0]


def test_networks_try_few_of_the_cells_by_default() -> None:
    for name, actions, traversals in ((LARGE, 2, 6_000), ("kuhn_poker", 0, 1_500)):
        config = default_config(f"openspiel:{name}")
        assert config.sampling == ExternalSampling(traversals=traversals, actions=actions)
        assert config.sampling == default_config(f"openspiel:{name}", "deep-cfr+").sampling


def test_only_what_cannot_be_listed_is_held_by_sequences() -> None:
    assert isinstance(playable_openspiel_game("dark_hex(num_rows=2,num_cols=2)"), OpenSpielGame)
    for version in ("gameversion=abrupt", "obstype=reveal-numturns"):
        with pytest.raises(GameError, match=rf"'phantom_ttt\({version}\)' has about .* histories, and at most"):
            playable_openspiel_game(f"phantom_ttt({version})")
