"""Remembered strategies are what the networks would say now, and are not asked for twice."""

import numpy as np
import pytest
import torch

from deepcfr.boards.boards import Boards
from deepcfr.config import CFRConfig, NetworkConfig
from deepcfr.core.rng import generator
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.policy.network import RegretMatchingPolicy, RememberedStrategies, WithFirstRound
from deepcfr.solve.first_round import FirstRoundTable

LEDUC = PokerGame(PRESETS["leduc"])
BOARDS = Boards(LEDUC, merge=True, keep=True)


def network(seed: int) -> SplitNetwork:
    return build_network(LEDUC.encoding, NetworkConfig(kind="mlp", width=16, layers=2), generator(seed))


def test_every_answer_is_that_of_the_newest_networks() -> None:
    remembered, table = RememberedStrategies(), FirstRoundTable(LEDUC, CFRConfig())
    networks = [network(0), network(1)]
    rng = np.random.default_rng(0)
    for change in range(6):
        table.regret[:] = rng.normal(size=table.regret.shape)
        later = RegretMatchingPolicy(LEDUC, (networks[0], networks[1]))
        policy = WithFirstRound(later, table.strategy())
        remembering, anew = remembered.of(policy, later), policy.on_board
        for tree, boards in zip(BOARDS.rounds, BOARDS.kept, strict=True):
            for board in boards[: 1 + change]:  # some boards are visited later than others
                for _ in range(2):
                    np.testing.assert_allclose(remembering(tree, board), anew(tree, board), atol=1e-6)
        networks[change % 2] = network(10 + change)
        remembered.changed(change % 2)


def test_networks_are_asked_only_for_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered, networks, hands = RememberedStrategies(), (network(0), network(1)), [0, 0]
    later = RegretMatchingPolicy(LEDUC, networks)
    tree, board = BOARDS.rounds[1], BOARDS.kept[1][0]
    infosets = [int((tree.actor == player).sum()) * len(board) for player in (0, 1)]
    encode = type(networks[0]).encode_cards

    def counting(net: SplitNetwork, cards: torch.Tensor) -> torch.Tensor:
        hands[networks.index(net)] += len(cards)
        return encode(net, cards)

    monkeypatch.setattr(type(networks[0]), "encode_cards", counting)

    def asked() -> list[int]:
        hands[:] = 0, 0
        remembered.of(later, later)(tree, board)
        return list(hands)

    assert asked() == [len(board), len(board)]
    assert remembered.asked() == sum(infosets)
    assert asked() == [0, 0]
    remembered.changed(1)
    assert asked() == [0, len(board)]
    assert remembered.asked() == infosets[1]
    assert asked() == [0, 0]
