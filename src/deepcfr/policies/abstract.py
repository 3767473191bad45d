"""Policy of an abstract game's tables in the full game, where its exploitability can be computed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.abstraction.texture import Buckets
from deepcfr.compiled import nb
from deepcfr.errors import GameError
from deepcfr.games.poker import PokerGame
from deepcfr.policies.base import Policy
from deepcfr.sampling.traversal_tree import seen_buckets, table_layout
from deepcfr.types import Infosets


class AbstractPolicy(Policy):
    """Probabilities proportional to the positive entries of a table over buckets, uniform where no entry is positive.

    `table` is flat, in the `table_layout` of the game's tree and the abstraction's bucket counts. It holds an average
    strategy, or regrets for regret matching. It is not copied, so the policy changes when a solver updates the table.
    Raises GameError for an abstraction of another game and for a table of the wrong size.
    """

    game: PokerGame

    def __init__(
        self, game: PokerGame, abstraction: Buckets, table: npt.NDArray[np.floating], kind: str = "abstract average"
    ) -> None:
        if abstraction.rules != game.rules:
            raise GameError(f"An abstraction of {abstraction.rules.name} cannot be played in {game.name}.")
        self.game, self.abstraction, self.table, self.kind = game, abstraction, table, kind
        self._layout = table_layout(game.tree, abstraction.counts)
        if table.shape != (self._layout.size,):
            raise GameError(
                f"The tables of {game.name} with {list(abstraction.counts)} buckets have {self._layout.size:,} entries, "
                f"but the given table has shape {list(table.shape)}."
            )

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = infosets.node.cpu().numpy().astype(np.int64)
        cards = infosets.cards.cpu().numpy()
        result = np.empty((len(nodes), self.game.encoding.num_actions))
        rounds = self.game.tree.round[nodes]
        for round_ in np.unique(rounds):
            here = np.flatnonzero(rounds == round_)
            buckets = seen_buckets(self.abstraction, int(round_), cards[here])
            result[here] = self._rows(nodes[here], np.arange(len(here)), buckets[:, None])[:, 0]
        return torch.from_numpy(result).to(self.game.device)

    def on_hands(self, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        round_ = int(self.game.tree.round[nodes[0]])
        buckets = seen_buckets(self.abstraction, round_, cards)
        return self._rows(nodes, np.zeros(len(nodes), np.int64), buckets[None])

    def _rows(
        self, nodes: npt.NDArray[np.int64], group: npt.NDArray[np.int64], buckets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Probabilities [n, U, A] at `nodes` [n] with each of the `buckets` [G, U] of the node's `group` [n]."""
        result = np.zeros((len(nodes), buckets.shape[1], self.game.encoding.num_actions))
        _normalise(
            self.table, self._layout.start[nodes], self._layout.stride[nodes], self.game.tree.legal[nodes],
            group, buckets, result,
        )  # fmt: skip
        return result


@nb.njit(cache=True, nogil=True)
def _normalise(
    table: npt.NDArray[np.floating],
    start: npt.NDArray[np.int64],
    stride: npt.NDArray[np.int64],
    legal: npt.NDArray[np.bool_],
    group: npt.NDArray[np.int64],
    buckets: npt.NDArray[np.int64],
    result: npt.NDArray[np.float64],
) -> None:
    """Fill `result` [n, U, A], initially zero, with strategies from the rows of `table`."""
    for hand in range(buckets.shape[1]):
        for node in range(len(start)):  # the rows of a bucket lie together
            at = start[node] + stride[node] * buckets[group[node], hand]
            total, actions = 0.0, 0
            for action in range(legal.shape[1]):
                if legal[node, action]:
                    entry = max(float(table[at + actions]), 0.0)
                    result[node, hand, action] = entry
                    total += entry
                    actions += 1
            for action in range(legal.shape[1]):
                if total > 0.0:
                    result[node, hand, action] /= total
                elif legal[node, action]:
                    result[node, hand, action] = 1.0 / actions
