"""The `Policy` contract: probabilities at infosets. Every evaluator, match and page takes only this."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.base import Game
from deepcfr.ranges.boards import Board, RoundTree
from deepcfr.ranges.sweep import BoardStrategy
from deepcfr.types import Infosets


class Policy(Protocol):
    """A behaviour strategy of both players."""

    @property
    def game(self) -> Game:
        """Whose infosets it understands."""
        ...

    @property
    def kind(self) -> str:
        """What it is, in words for a report."""
        ...

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        """Action probabilities, float [I, A]: 0 for illegal actions, rows sum to 1."""
        ...


def board_strategy(policy: Policy) -> BoardStrategy:
    """The policy as a full-width pass asks for it: all actions of a round with all hands on a board.

    A policy may offer a faster `on_board(tree, board) -> [E, U]`, or `on_hands(nodes [n], cards [U, C]) -> [n, U, A]`.
    """
    own = getattr(policy, "on_board", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    on_hands = getattr(policy, "on_hands", None) or partial(_on_hands, policy)

    def on_board(tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        if not len(tree.nodes):  # both are all-in on all lines
            return np.empty((0, len(board.view_cards)))
        probabilities = on_hands(tree.nodes, board.view_cards)
        return probabilities[tree.edge_node, :, tree.edge_action]

    return on_board


def _on_hands(policy: Policy, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
    device = policy.game.device
    node = torch.from_numpy(nodes).to(device).repeat_interleave(len(cards))
    rows = torch.from_numpy(cards).to(device).repeat(len(nodes), 1)
    return policy.probabilities(Infosets(node, rows)).cpu().numpy().reshape(len(nodes), len(cards), -1)


class UniformPolicy:
    """Every legal action with the same probability."""

    kind = "uniform"

    def __init__(self, game: Game) -> None:
        self.game = game

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        legal = self.game.encoding.legal[infosets.node.long()].double()
        return legal / legal.sum(1, keepdim=True)

    def on_hands(self, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
        """Probabilities [n, U, A] of hands `cards` [U, C] at `nodes` [n], the same for all hands."""
        legal = self.game.encoding.legal.cpu().numpy()[nodes].astype(np.float64)
        share = legal / legal.sum(1, keepdims=True)
        return np.broadcast_to(share[:, None], (len(nodes), len(cards), share.shape[1]))
