"""Policies from tables: one row of probabilities for every public node and canonical hand of a poker game."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.cards import all_hands
from deepcfr.games.isomorphism import extend_board, pack_cards
from deepcfr.games.poker import PokerGame
from deepcfr.types import Infosets


class TablePolicy:
    """Probabilities in tables, one for each round: float [nodes of the round, views of the round, A].

    The views of a round are its distinct infosets' cards as the game shows them, in `views(game)` order.
    """

    kind = "table"

    def __init__(self, game: PokerGame, tables: list[npt.NDArray[np.float64]]) -> None:
        self.game = game
        self.tables = [torch.from_numpy(table) for table in tables]
        self._keys = [torch.from_numpy(pack_cards(view)) for view in round_views(game)]
        self._local = torch.zeros(game.tree.num_decisions, dtype=torch.int64)
        for round_, table in enumerate(self.tables):
            nodes = (game.round[: game.tree.num_decisions] == round_).nonzero()[:, 0]
            if table.shape != (len(nodes), len(self._keys[round_]), game.encoding.num_actions):
                raise GameError(
                    f"The table of round {round_} has shape {list(table.shape)}, which does not fit {game.name}."
                )
            self._local[nodes] = torch.arange(len(nodes))

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        packed = torch.from_numpy(pack_cards(infosets.cards.numpy()))
        result = torch.empty(len(infosets), self.game.encoding.num_actions, dtype=torch.float64)
        for round_, table in enumerate(self.tables):
            here = self.game.round[node] == round_
            column = torch.searchsorted(self._keys[round_], packed[here])
            result[here] = table[self._local[node[here]], column]
        return result


def round_views(game: PokerGame) -> list[npt.NDArray[np.uint8]]:
    """The distinct cards, uint8 [V, C], that a player can see in each round, in ascending order of `pack_cards`."""
    rules = game.rules
    holes = all_hands(rules.num_cards, rules.hole_cards)
    boards: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ())]
    views = []
    for new_cards in rules.board_cards:
        if new_cards:
            boards = [
                ((*board, *map(int, cards)), (*groups, new_cards))
                for board, groups in boards
                for cards in extend_board(
                    board, groups, new_cards, rules.num_ranks, rules.num_suits, merge=game.suits == "canonical"
                ).cards
            ]
        views.append(_distinct(np.concatenate([_views_on(game, holes, board) for board, _ in boards])))
    return views


def _views_on(game: PokerGame, holes: npt.NDArray[np.uint8], board: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    live = holes[~np.isin(holes, board).any(axis=1)]
    return game.views_of(live, board)


def _distinct(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    _, first = np.unique(pack_cards(rows), return_index=True)
    return rows[first]
