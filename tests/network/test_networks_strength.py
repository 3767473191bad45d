"""Networks that see hand strength: the rest of the network is as without it, and the encoding."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from deepcfr.config import NetworkConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.rng import generator, key
from deepcfr.core.types import NO_CARD, Infosets
from deepcfr.game.base import infosets_at
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.game.strength import SPREAD, STRENGTHS, hats
from deepcfr.network.layers import BUMPS, StrengthLayer
from deepcfr.network.networks import SplitNetwork, build_network, count_parameters
from deepcfr.policy.network import AveragePolicy
from fit_data import infosets_of
from openspiel_poker import small_fhp

FHP = load_game("fhp")
SMALL = PokerGame(small_fhp(3, (1, 1), (0, 1), num_suits=3))
TWO_BOARDS = PokerGame(small_fhp(3, (1, 1, 1), (0, 1, 1), num_suits=3))
CONFIGS = [
    NetworkConfig(strength=True),
    NetworkConfig(kind="mlp", width=16, layers=2, strength=True),
]
CENTRE = torch.arange(BUMPS, dtype=torch.float32)


def build(game: PokerGame, config: NetworkConfig, seed: int = 0) -> SplitNetwork:
    return build_network(game.encoding, config, generator(seed))


def layer_of(network: SplitNetwork) -> StrengthLayer:
    assert isinstance(network.strength, StrengthLayer)
    return network.strength


# The encoding


def test_hats_sum_to_one_and_no_more_than_two_are_up() -> None:
    up = hats(torch.linspace(0, 1, 20_001), CENTRE)
    assert up.shape == (20_001, BUMPS)
    assert float(up.min()) == 0
    assert int((up > 0).sum(1).max()) == 2
    torch.testing.assert_close(up.sum(1), torch.ones(20_001))
    torch.testing.assert_close(up[[0, -1]], torch.eye(BUMPS)[[0, -1]], atol=1e-5, rtol=0)


def test_hats_stand_at_the_chebyshev_points_and_keep_the_number() -> None:
    points = (1 - torch.cos(torch.pi * CENTRE.double() / (BUMPS - 1))) / 2
    torch.testing.assert_close(hats(points.float(), CENTRE), torch.eye(BUMPS), atol=1e-3, rtol=0)
    x = torch.linspace(0.001, 0.999, 1_000)
    place = hats(x, CENTRE) @ CENTRE  # a linear function of the hats
    torch.testing.assert_close((1 - torch.cos(torch.pi * place / (BUMPS - 1))) / 2, x, atol=1e-5, rtol=0)


@pytest.mark.parametrize("suits", ["canonical", "raw"])
def test_inputs_are_the_strengths_their_hats_and_the_cards_in_sight(suits: str) -> None:
    game = load_game("fhp", suits=suits)  # type: ignore[arg-type]
    infosets = infosets_of(game)
    layer = layer_of(build(game, CONFIGS[0]))
    inputs = layer.inputs(infosets.cards)
    strength, up, seen = inputs.split([len(STRENGTHS), len(STRENGTHS) * BUMPS, 3], dim=1)
    assert torch.equal(strength, layer.hands(infosets.cards))
    assert torch.equal(up.reshape(-1, len(STRENGTHS), BUMPS), hats(strength, CENTRE))
    assert torch.equal(seen, (infosets.cards[:, 2:] != NO_CARD).float())
    assert 0 < float(seen.mean()) < 1


def test_how_strength_is_spread_comes_last_in_games_of_several_boards() -> None:
    infosets, layer = infosets_of(TWO_BOARDS), layer_of(build(TWO_BOARDS, CONFIGS[0]))
    inputs, spread = layer.inputs(infosets.cards).split([layer.weight.shape[1] - SPREAD, SPREAD], dim=1)
    assert torch.equal(inputs[:, : len(STRENGTHS)], layer.hands(infosets.cards))
    assert torch.equal(spread, layer.hands.with_spread(infosets.cards)[:, len(STRENGTHS) :])
    assert layer_of(build(SMALL, CONFIGS[0])).hands.spread is None


def test_raw_and_canonical_suits_give_the_same_inputs() -> None:
    deals = FHP.deal_cards(50, key(3, "deals"))
    node = torch.full((50,), FHP.tree.num_decisions - 1)
    layer, hands = layer_of(build(FHP, CONFIGS[0])), []
    for suits in ("canonical", "raw"):
        game = PokerGame(FHP.rules, suits)  # type: ignore[arg-type]
        hands.append(infosets_at(game, node, torch.arange(50), game.deals_of(deals)).cards)
    assert not torch.equal(*hands)
    assert torch.equal(layer.inputs(hands[0]), layer.inputs(hands[1]))


# The network around it


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("game", [FHP, SMALL, TWO_BOARDS], ids=["fhp", "small", "two boards"])
def test_without_the_layers_weights_the_network_is_the_one_without_strength(
    game: PokerGame, config: NetworkConfig
) -> None:
    infosets = infosets_of(game)
    plain, strong = build(game, replace(config, strength=False)), build(game, config)
    weights = dict(strong.named_parameters())
    own = weights.pop("strength.weight")
    assert count_parameters(strong) == count_parameters(plain) + own.numel()
    for name, weight in plain.named_parameters():
        assert torch.equal(weight, weights.pop(name))
    assert not weights
    with torch.no_grad():
        assert not torch.allclose(strong(infosets), plain(infosets))
        own.zero_()
        assert torch.equal(strong(infosets), plain(infosets))


def test_weights_are_all_that_is_saved_and_tables_are_shared() -> None:
    one, other = build(FHP, CONFIGS[0], 1), build(FHP, CONFIGS[0], 2)
    assert {name for name in one.state_dict() if name.startswith("strength")} == {"strength.weight"}
    assert layer_of(one).hands.values.data_ptr() == layer_of(other).hands.values.data_ptr()
    other.load_state_dict(one.state_dict())
    infosets = infosets_of(FHP, 20)
    with torch.no_grad():
        assert torch.equal(one(infosets), other(infosets))


@pytest.mark.parametrize("config", CONFIGS)
def test_hands_at_nodes_and_infosets_agree(config: NetworkConfig) -> None:
    policy = AveragePolicy(FHP, build(FHP, config, 3))
    rng = np.random.default_rng(4)
    holes = np.sort(np.stack([rng.permutation(49)[:2] for _ in range(60)]), axis=1).astype(np.uint8)
    cards = FHP.visible_cards(holes, (49, 50, 51))
    nodes = np.flatnonzero(FHP.tree.round[: FHP.tree.num_decisions] == 1)[:5]
    together = policy.on_hands(nodes, cards)
    for place, node in enumerate(nodes):
        alone = policy.probabilities(Infosets(torch.full((60,), int(node)), torch.from_numpy(cards)))
        np.testing.assert_allclose(together[place], alone.numpy(), atol=1e-5)


def test_a_network_without_cards_in_sight_is_refused() -> None:
    encoding = replace(FHP.encoding, card_groups=(), num_ranks=0, num_suits=0)
    with pytest.raises(ConfigError, match=r"'network\.strength' needs a game with cards"):
        build_network(encoding, CONFIGS[1], generator(0))
