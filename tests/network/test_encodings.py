"""Two hands that differ have different network inputs in every shipped configuration but those of flop hold'em."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from deepcfr.config import RunConfig, load_config
from deepcfr.config.toml import RECIPES
from deepcfr.core.rng import key
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import build_game, load_source
from deepcfr.network.networks import CardCounts

Views = npt.NDArray[np.uint8]
CONFIGS = sorted(RECIPES.glob("*.toml"))
RUNS = {path.stem: config for path in CONFIGS if not (config := load_config(path)).tabular}
# docs/differences.md counts the twins of these
FLOP = {name for name, config in RUNS.items() if config.game.startswith("fhp") and not config.network.card_embedding}


def last_views(game: PokerGame, cards: Views) -> Views:
    """Player 0's information in the last round of deals with these cards."""
    seen: Views = game.deals_of(cards).visible_cards[:, 0, -1].numpy()
    return seen


def twins(game: PokerGame, count: int) -> tuple[Views, Views]:
    """Player 0's information in random deals, and in the same deals when its two cards exchange their suits."""
    one = game.deal_cards(count, key(0, "twins"))
    if game.rules.hole_cards == 1:
        return last_views(game, one), last_views(game, np.roll(one, 1, axis=1))
    other, suits = one.copy(), game.rules.num_suits
    other[:, 0], other[:, 1] = (one[:, a] // suits * suits + one[:, 1 - a] % suits for a in (0, 1))
    can_be_dealt = ~(other[:, :2, None] == one[:, None, 2:]).any((1, 2))
    return last_views(game, one[can_be_dealt]), last_views(game, other[can_be_dealt])


def counts(game: PokerGame, config: RunConfig, seen: Views) -> npt.NDArray[np.float32]:
    """A network's card inputs, without strength."""
    single_cards = config.network.kind != "mlp" and config.network.card_embedding
    found: npt.NDArray[np.float32] = CardCounts(game.encoding, single_cards)(torch.from_numpy(seen)).numpy()
    return found


def share_alike(config: RunConfig) -> float:
    """The share of pairs of twins that differ to a player, in which the network sees no difference."""
    game = build_game(load_source(config.game), config.network.suits)
    assert isinstance(game, PokerGame)
    one, other = twins(game, 1_500)
    differ = (one != other).any(1)
    assert differ.sum() > 90
    return float((counts(game, config, one) == counts(game, config, other)).all(1)[differ].mean())


@pytest.mark.parametrize("name", sorted(RUNS.keys() - FLOP))
def test_hands_that_differ_have_different_inputs(name: str) -> None:
    assert share_alike(RUNS[name]) == 0


@pytest.mark.parametrize("name", sorted(FLOP))
def test_flop_holdem_at_the_papers_size_has_twins(name: str) -> None:
    """The 98,948 parameters leave no room for the card embedding; canonical suits still tell most twins apart."""
    share = share_alike(RUNS[name])
    assert share == 1 if RUNS[name].network.suits == "raw" else 0.1 < share < 0.3
