"""Strategies on boards that are visited again and again, kept until the network behind them changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.policies.base import Policy, board_strategy
from deepcfr.policies.network import RegretMatchingPolicy
from deepcfr.ranges.boards import Board, RoundTree
from deepcfr.ranges.public_chance import RoundPart
from deepcfr.ranges.sweep import BoardStrategy

BYTES_REMEMBERED = 4  # of each edge and view


class RememberedStrategies:
    """Both players' probabilities on every board that was asked for: one number for each edge and view, in 32 bits."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], npt.NDArray[np.float32]] = {}
        self._seen: dict[tuple[int, ...], list[int]] = {}  # the version of each player's part
        self._version = [0, 0]
        self._asked: list[int] = []  # infosets, of each board and player; a list, because threads may append to it

    def changed(self, player: int) -> None:
        """The player's strategy is another from now on."""
        self._version[player] += 1

    def asked(self) -> int:
        """Infosets at which networks were asked since the last call."""
        asked, self._asked = self._asked, []
        return sum(asked)

    def of(self, policy: Policy, networks: RegretMatchingPolicy) -> BoardStrategy:
        """The strategy of `policy`, which plays `networks` in all rounds but perhaps the first.

        Networks are asked only for what changed since a board was last visited; the first round is always asked anew.
        """
        whole = board_strategy(policy)

        def on_board(tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
            if board.round == 0:
                return whole(tree, board)
            place = (board.round, *board.cards)
            if place not in self._kept:
                self._kept[place] = np.empty((tree.num_edges, len(board)), np.float32)
                self._seen[place] = [-1, -1]
            kept, seen = self._kept[place], self._seen[place]
            for player in (0, 1):
                if seen[player] != self._version[player]:
                    self._asked.append(_evaluate(networks, tree, board, player, kept))
                    seen[player] = self._version[player]
            return kept

        return on_board


def _evaluate(
    networks: RegretMatchingPolicy, tree: RoundTree, board: Board, player: int, result: npt.NDArray[np.float32]
) -> int:
    """Fill in the player's edges of `result` [E, U]; returns how many infosets that were."""
    part = RoundPart.of(tree, player)
    if len(part.nodes):
        probabilities = networks.on_hands(tree.nodes[part.nodes], board.view_cards)
        result[part.edges] = probabilities[part.edge_node, :, tree.edge_action[part.edges]]
    return len(part.nodes) * len(board)
