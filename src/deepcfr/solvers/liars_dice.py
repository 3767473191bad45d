"""Full-width CFR in its variants on liar's dice by public positions, with all hands of both players in one pass.

The regrets of an action are those of all hands, [2 M, H] by the node after it, in single precision. Sources as in
`tree_cfr`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.compiled import nb
from deepcfr.config import TabularConfig
from deepcfr.games.liars_dice import LiarsDice
from deepcfr.policies.liars_dice import LiarsDiceTable, counterfactual_values, match_weights, reach_of
from deepcfr.solvers.tabular import MatchingSolver
from deepcfr.solvers.tree_cfr import PLAYERS

Floats = npt.NDArray[np.floating]


def memory_bytes(game: LiarsDice) -> int:
    """Bytes of a solver's regrets and averages, of an iteration's strategy and values, and of the opponent's reach."""
    return 24 * len(game.hands) * (2 << game.num_bids)


class LiarsDiceCFR(MatchingSolver):
    """The state of a solver: iterate over `iterations()` to advance it.

    Players are updated in turn. Where no regret is positive, all legal actions have equal probability. Raises ConfigError
    for an algorithm that is not full-width.
    """

    name = "liars-dice-cfr"
    game: LiarsDice

    def __init__(self, game: LiarsDice, config: TabularConfig) -> None:
        super().__init__(game, config, (2 << game.num_bids, len(game.hands)))

    @property
    def precision(self) -> str:
        """The data type of the tables."""
        return "float32"

    def _iterate(self) -> int:
        mover = self.game.movers
        for player in PLAYERS:
            table = match_weights(self.matched)
            values = counterfactual_values(self.game, table, player)
            reach = reach_of(table, mover, self.game.chance, player)
            tables = self.regret, self.average, self.matched, self.variant.predictive
            factors = (*self.variant.factors(self.iteration + 1), self.variant.floor)
            _update(*tables, table, values, reach, mover == player, *factors)
        return 2 * self.regret.size

    def _policy(self, weights: Floats, name: str) -> LiarsDiceTable:
        return LiarsDiceTable(self.game, match_weights(weights), name)


@nb.njit(cache=True, nogil=True)
def _update(
    regret: Floats,
    average: Floats,
    matched: Floats,
    predictive: bool,
    table: Floats,
    values: Floats,
    reach: Floats,
    mine: npt.NDArray[np.bool_],
    positive: float,
    negative: float,
    past: float,
    floor: bool,
) -> None:
    """Add an iteration's counterfactual regrets and strategy of one player to the sums, which shrink by the factors."""
    positions, hands = reach.shape
    bit = 1
    for after in range(1, 2 * positions):
        if after == 2 * bit:
            bit = after
        node = after - bit
        if not mine[node] or after == positions:  # nothing is called before the first bid
            continue
        for hand in range(hands):
            gain = values[after, hand] - values[node, hand]
            old = regret[after, hand]
            new = old * (positive if old > 0 else negative) + gain
            regret[after, hand] = max(new, 0.0) if floor else new
            if predictive:
                matched[after, hand] = regret[after, hand] + gain
            average[after, hand] = average[after, hand] * past + reach[node, hand] * table[after, hand]
