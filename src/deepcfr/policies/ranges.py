"""The policy of a full-width solver: its tables, normalised where they are asked."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.isomorphism import pack_cards
from deepcfr.ranges.boards import Board, Boards, RoundTree
from deepcfr.ranges.kernels import match_regrets
from deepcfr.ranges.tables import Table
from deepcfr.types import Infosets


class RangePolicy:
    """Probabilities in proportion to the positive numbers in tables (average strategy or regrets), uniform where none is.

    Exact evaluation visits `boards`, the ones that the tables were made on.
    """

    def __init__(self, boards: Boards, tables: list[Table], kind: str) -> None:
        self.boards, self.game, self.kind = boards, boards.game, kind
        self._tables = tables
        local = np.zeros(self.game.tree.num_decisions, np.int64)
        for tree in boards.rounds:
            local[tree.nodes] = np.arange(len(tree.nodes))
        self._local = local

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        """The probability of every edge of the round with every view of the board, [E, U]."""
        weight = self._tables[board.round].load(board)
        strategy = np.empty_like(weight)
        for node in range(len(tree.nodes)):
            match_regrets(tree.first_edge, node, weight, strategy)
        return strategy

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.numpy().astype(np.int64)
        packed = pack_cards(infosets.cards.numpy())
        rounds = self.game.tree.round[node]
        result = np.zeros((len(node), self.game.encoding.num_actions))
        for round_, tree in enumerate(self.boards.rounds):
            keys, board_of, view_of = self._views[round_]
            here = np.flatnonzero(rounds == round_)
            place = np.searchsorted(keys, packed[here])
            for index in np.unique(board_of[place]):
                rows = here[board_of[place] == index]
                board = self.boards.kept[round_][index]
                edge = tree.edge_node[:, None] == self._local[node[rows]]
                strategy = self.on_board(tree, board)[:, view_of[np.searchsorted(keys, packed[rows])]]
                edges, columns = np.nonzero(edge)
                result[rows[columns], tree.edge_action[edges]] = strategy[edges, columns]
        return torch.from_numpy(result)

    @cached_property
    def _views(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """For each round all views as packed cards in ascending order, with their board and their column there."""
        found = []
        for boards in self.boards.kept:
            packed = np.concatenate([pack_cards(board.view_cards) for board in boards])
            board_of = np.repeat(np.arange(len(boards)), [len(board) for board in boards])
            view_of = np.concatenate([np.arange(len(board)) for board in boards])
            order = np.argsort(packed)
            found.append((packed[order], board_of[order], view_of[order]))
        return found
