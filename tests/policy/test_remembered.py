"""Remembered strategies are what the networks would say now, and are not asked for twice."""

import numpy as np
import torch

from deepcfr.boards.boards import Boards
from deepcfr.config import CFRConfig, NetworkConfig
from deepcfr.core.rng import generator
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.policy.network import RegretMatchingPolicy, WithFirstRound
from deepcfr.solve.data import RememberedStrategies
from deepcfr.solve.first_round import FirstRoundTable

LEDUC = PokerGame(PRESETS["leduc"])
BOARDS = Boards(LEDUC, merge=True, keep=True)


def network(seed: int) -> SplitNetwork:
    return build_network(LEDUC.encoding, NetworkConfig(kind="mlp", width=16, layers=2), generator(seed))


class Counting(SplitNetwork):
    """A network that counts the hands that it is asked about."""

    def __init__(self, seed: int) -> None:
        super().__init__(LEDUC.encoding, NetworkConfig(width=16))
        self.inner, self.hands = network(seed), 0

    def encode_cards(self, cards: torch.Tensor) -> torch.Tensor:
        self.hands += len(cards)
        return self.inner.encode_cards(cards)

    def encode_nodes(self, some: torch.Tensor | None = None) -> torch.Tensor:
        return self.inner.encode_nodes(some)

    def joint(self, hands: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        return self.inner.joint(hands, nodes)


def test_every_answer_is_that_of_the_newest_networks() -> None:
    remembered, table = (
        RememberedStrategies(),
        FirstRoundTable(LEDUC, CFRConfig()),
    )
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


def test_networks_are_asked_only_for_what_changed() -> None:
    remembered, networks = RememberedStrategies(), (Counting(0), Counting(1))
    later = RegretMatchingPolicy(LEDUC, networks)
    tree, board = BOARDS.rounds[1], BOARDS.kept[1][0]
    infosets = [int((tree.actor == player).sum()) * len(board) for player in (0, 1)]

    def asked() -> list[int]:
        for net in networks:
            net.hands = 0
        remembered.of(later, later)(tree, board)
        return [net.hands for net in networks]

    assert asked() == [len(board), len(board)]
    assert remembered.asked() == sum(infosets)
    assert asked() == [0, 0]
    remembered.changed(1)
    assert asked() == [0, len(board)]
    assert remembered.asked() == infosets[1]
    assert asked() == [0, 0]
