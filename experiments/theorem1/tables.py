"""Policies of small poker games as tables over all infosets, and the hands that index them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.core.errors import GameError
from deepcfr.core.types import Doubles, Infosets
from deepcfr.game.cards import all_hands, extend_board, pack_cards
from deepcfr.game.poker import PokerGame
from deepcfr.policy.base import Policy
from deepcfr.policy.tables import board_hands


class TablePolicy(Policy):
    """Probabilities in tables, one for each round: float [nodes of the round, canonical hands of the round, A].

    The canonical hands of a round are the distinct cards of its infosets in the game's encoding, in the order of
    `canonical_hands`.
    """

    game: PokerGame
    kind = "table"

    def __init__(self, game: PokerGame, tables: list[Doubles]) -> None:
        self.game = game
        self.tables = [torch.from_numpy(table) for table in tables]
        self._keys = [torch.from_numpy(pack_cards(canonical)) for canonical in canonical_hands(game)]
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


def canonical_hands(game: PokerGame) -> list[npt.NDArray[np.uint8]]:
    """The distinct cards, uint8 [V, C], that a player can see in each round, in ascending order of `pack_cards`."""
    rules = game.rules
    holes = all_hands(rules.num_cards, rules.hole_cards)
    boards: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), ())]
    hands = []
    for new_cards in rules.board_cards:
        if new_cards:
            boards = [
                ((*board, *map(int, cards)), (*groups, new_cards))
                for board, groups in boards
                for cards in extend_board(
                    board, groups, new_cards, rules.num_ranks, rules.num_suits, merge=game.suits == "canonical"
                ).cards
            ]
        found = np.concatenate([board_hands(game, holes, board) for board, _ in boards])
        hands.append(found[np.unique(pack_cards(found), return_index=True)[1]])
    return hands
