"""A table strategy for the first betting round, and a policy that plays it there and another policy in later rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.cards import pack_cards
from deepcfr.games.poker import poker_game
from deepcfr.policies.base import Policy, RowStrategy
from deepcfr.ranges.boards import Board, Boards
from deepcfr.ranges.rounds import RoundTree
from deepcfr.types import Infosets, Ints


@dataclass(frozen=True)
class FirstRound:
    """Both players' strategy for the first round of a game without public cards in it: one board with U views.

    `first_board` gives the `tree` and the `view_cards`.
    """

    tree: RoundTree
    view_cards: npt.NDArray[np.uint8]  # [U, C], ascending by `pack_cards`
    probabilities: npt.NDArray[np.float32]  # [E, U]

    @cached_property
    def _keys(self) -> Ints:
        return pack_cards(self.view_cards)

    @cached_property
    def _edge(self) -> Ints:
        """The edge of every action at every node up to this round's last node, -1 where there is none."""
        tree = self.tree
        edges = np.full((int(tree.nodes.max()) + 1, int(tree.edge_action.max()) + 1), -1)
        edges[tree.nodes[tree.edge_node], tree.edge_action] = np.arange(tree.num_edges)
        return edges

    def on_board(self, board: Board) -> npt.NDArray[np.float32]:
        """The probability of every edge with every view of the round's board, [E, U]."""
        return self.probabilities[:, self.columns(board.view_cards)]

    def columns(self, cards: npt.NDArray[np.uint8]) -> Ints:
        """The columns, [M], of hands `cards`, uint8 [M, C] in the game's encoding."""
        return np.searchsorted(self._keys, pack_cards(cards))

    def rows(self, node: Ints, column: Ints, num_actions: int) -> npt.NDArray[np.float32]:
        """Probabilities [M, A] at `node` [M] of the public tree with the hands in `column` [M]."""
        result = np.zeros((len(node), num_actions), np.float32)
        edge = self._edge[node]
        result[:, : edge.shape[1]] = np.where(edge >= 0, self.probabilities[edge, column[:, None]], 0)
        return result


def first_board(game: Game) -> tuple[RoundTree, Board]:
    """The tree of a poker game's first round and its board; their edges and views give the shape of a `FirstRound`.

    Raises GameError for other games, and for games that deal public cards before the first round.
    """
    poker = poker_game(game)
    if poker.rules.board_cards[0]:
        raise GameError(
            f"A table for the first betting round needs a round without public cards, but {poker.name} deals "
            f"{poker.rules.board_cards[0]} before it."
        )
    boards = Boards(poker, merge=poker.suits == "canonical")
    return boards.rounds[0], boards.children(boards.root)[0]


class WithFirstRound(Policy):
    """A policy that plays a table in the first round and `policy` in all later ones."""

    def __init__(self, policy: Policy, first_round: FirstRound) -> None:
        self.policy, self.first_round = policy, first_round
        self.game, self.kind = policy.game, f"{policy.kind}, with a table for the first round"
        self.whole_rounds = policy.whole_rounds  # the first round has one entry, so none of its lines are left out

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        first = self.game.round[node] == 0  # in poker an infoset index is a node
        result = torch.zeros(len(infosets), self.game.encoding.num_actions, dtype=torch.float64, device=node.device)
        if not bool(first.all()):
            result[~first] = self.policy.probabilities(infosets[~first]).double()
        column = self.first_round.columns(infosets.cards[first].cpu().numpy())
        rows = self.first_round.rows(node[first].cpu().numpy(), column, result.shape[1])
        result[first] = torch.from_numpy(rows).to(result)
        return result

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        return self.first_round.on_board(board) if board.round == 0 else self.policy.on_board(tree, board)

    def row_strategy(self, player: int, round_: int, cards: npt.NDArray[np.uint8]) -> RowStrategy:
        if round_ > 0:
            return self.policy.row_strategy(player, round_, cards)
        table, column, actions = self.first_round, self.first_round.columns(cards), self.game.encoding.num_actions
        return lambda node, hand: table.rows(node, column[hand], actions)
