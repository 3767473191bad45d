"""Policies from tables over the infosets of an explicit tree, and any policy of such a game as a table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.explicit import Floats
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.policies.base import Policy
from deepcfr.types import Infosets

_ROWS = 65_536  # infosets that a policy is asked for at a time


class TreePolicy:
    """Probabilities in a table, float64 [K, L]: one row for each infoset, one column for each of its legal actions.

    Columns beyond the legal actions of an infoset are 0. Raises GameError for a table that is no policy of `game`.
    """

    initial: Callable[[], Policy] | None = None  # makes what training started from, if that is not uniform

    def __init__(self, game: OpenSpielGame, table: Floats, kind: str = "table") -> None:
        self.game: Game = game
        self.kind = kind
        self._positions = game.positions
        self.table = np.ascontiguousarray(table, np.float64)
        tree = game.explicit
        if self.table.shape != tree.legal.shape:
            raise GameError(f"A policy of '{game.name}' is a table of {tree.legal.shape}, not of {self.table.shape}.")
        wrong = (self.table < 0) | (self.table > 0) & ~tree.legal
        bad = wrong.any(1) | ~(np.abs(self.table.sum(1) - 1) < 1e-4)  # also true of NaN
        if bad.any():
            infoset = int(bad.argmax())
            raise GameError(
                f"The probabilities at the infoset {tree.infoset_names[infoset]!r} of '{game.name}' are "
                f"{self.table[infoset].tolist()}: no distribution over its {tree.infoset_actions[infoset]} actions."
            )
        self._table = torch.from_numpy(self.table).to(game.device)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        position = self._positions[node]
        return self._table[node].gather(1, position.clamp(min=0)) * (position >= 0)


def table_of(policy: Policy) -> Floats:
    """The table [K, L] of any policy of an OpenSpiel game, with rows that sum to 1 in double precision.

    Raises GameError if the policy is of another kind of game.
    """
    game = policy.game
    if not isinstance(game, OpenSpielGame):
        raise GameError(f"Tables over explicit trees are for OpenSpiel games, and '{game.name}' is not one.")
    if isinstance(policy, TreePolicy):
        return policy.table
    table = np.zeros(game.explicit.legal.shape)
    for start in range(0, len(table), _ROWS):
        nodes = torch.arange(start, min(start + _ROWS, len(table)), device=game.device)
        cards = torch.empty(len(nodes), 0, dtype=torch.uint8, device=game.device)
        rows = policy.probabilities(Infosets(nodes, cards)).double().gather(1, game.columns[nodes])
        table[start : start + _ROWS] = rows.cpu().numpy()
    table *= game.explicit.legal
    table /= table.sum(1, keepdims=True)  # networks answer in single precision
    return table


def tree_policy(policy: Policy) -> TreePolicy:
    """Any policy of an OpenSpiel game as a `TreePolicy` that says where it came from."""
    table = table_of(policy)
    assert isinstance(policy.game, OpenSpielGame)
    return TreePolicy(policy.game, table, policy.kind)
