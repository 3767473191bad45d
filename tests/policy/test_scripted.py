"""Scripted styles: distributions over legal actions in every kind of betting, and what they do."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from deepcfr.core.errors import GameError
from deepcfr.core.types import Infosets
from deepcfr.game.betting import CALL, FOLD, RAISE
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.policy.styles import SCRIPTS, scripted_policy

GAMES = [PRESETS["kuhn"], PRESETS["hulh"], replace(PRESETS["fhp"], max_raises=(0, 1))]


def rows(style: str, game: PokerGame) -> torch.Tensor:
    nodes = torch.arange(game.tree.num_decisions)
    cards = torch.zeros(len(nodes), sum(game.card_groups), dtype=torch.uint8)
    return scripted_policy(style, game).probabilities(Infosets(nodes, cards))


@pytest.mark.parametrize("rules", GAMES, ids=lambda rules: rules.name)
@pytest.mark.parametrize("style", SCRIPTS)
def test_a_style_is_a_policy(style: str, rules: object) -> None:
    game = PokerGame(rules)
    table = rows(style, game)
    assert torch.allclose(table.sum(1), torch.ones(len(table), dtype=table.dtype))
    assert (table[~game.encoding.legal] == 0).all()
    hands = np.zeros((5, sum(game.card_groups)), np.uint8)
    nodes = np.array([0, game.tree.num_decisions - 1])
    on_hands = scripted_policy(style, game).on_hands(nodes, hands)
    assert on_hands.shape == (2, 5, table.shape[1])
    assert (on_hands == table.numpy()[nodes][:, None]).all()


def test_styles_do_what_they_are_called() -> None:
    game = PokerGame(PRESETS["hulh"])
    legal = game.encoding.legal
    uniform, call, raises = (rows(style, game) for style in ("uniform", "call", "raise"))
    assert torch.allclose(uniform, legal.double() / legal.sum(1, keepdim=True))
    assert (call[:, CALL] == 1).all()
    assert (raises[:, RAISE] == legal[:, RAISE]).all()
    assert (raises[:, CALL] == ~legal[:, RAISE]).all()
    assert (raises[:, FOLD] == 0).all()


def test_other_styles_and_games_are_refused() -> None:
    with pytest.raises(GameError, match=r"'maniac' is not a scripted style. Choose one of uniform, call, raise\."):
        scripted_policy("maniac", PokerGame(PRESETS["kuhn"]))
    with pytest.raises(GameError, match="Scripted styles play poker games only, but 'kuhn_poker' is not one"):
        scripted_policy("call", load_openspiel_game("kuhn_poker"))
