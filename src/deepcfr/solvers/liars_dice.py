"""Full-width CFR in its variants on liar's dice by public positions, with all hands of both players in one pass.

The regrets of an action are those of all hands, [2 M, H] by the node after it, in single precision. Sources as in
`tree_cfr`.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from deepcfr.config import TabularConfig
from deepcfr.games.liars_dice import LiarsDice
from deepcfr.policies.liars_dice import LiarsDiceTable, counterfactual_values, match_weights, reach_of
from deepcfr.solvers.tabular import discounting
from deepcfr.solvers.tree_cfr import PLAYERS, TreeSolver

Floats = npt.NDArray[np.floating]


def memory_bytes(game: LiarsDice) -> int:
    """Bytes of a solver's regrets and averages, of an iteration's strategy and values, and of the opponent's reach."""
    return 24 * len(game.hands) * (2 << game.num_bids)


class LiarsDiceCFR(TreeSolver):
    """The state of a solver: iterate over `iterations()` to advance it.

    Players are updated in turn. Where no regret is positive, all legal actions have equal probability. Raises ConfigError
    for an algorithm that is not full-width.
    """

    name = "liars-dice-cfr"
    game: LiarsDice

    def __init__(self, game: LiarsDice, config: TabularConfig) -> None:
        self.game, self.config = game, config
        self.variant = discounting(config)
        self.iteration = 0
        self.nodes_touched = 0
        shape = (2 << game.num_bids, len(game.hands))
        self.regret, self.average = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.matched = np.zeros_like(self.regret) if self.variant.predictive else self.regret

    def _anew(self, config: TabularConfig) -> LiarsDiceCFR:
        return LiarsDiceCFR(self.game, config)

    def describe(self) -> str:
        """One line that describes the run: algorithm, game and sizes."""
        return f"{self.config.algorithm} on {self.game.name}: {self.config.iterations} iterations, float32"

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

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The live state, besides `iteration` and `nodes_touched`: filling these arrays in place restores a solver."""
        predicted = {"matched": self.matched} if self.variant.predictive else {}
        return {"regret": self.regret, "average": self.average, **predicted}

    def average_policy(self) -> LiarsDiceTable:
        """The average strategy, uniform at infosets that their player has never reached."""
        table = match_weights(self.average)
        return LiarsDiceTable(self.game, table, f"average of {self.config.algorithm}")

    def current_policy(self) -> LiarsDiceTable:
        """The strategy that the next iteration starts from, by regret matching."""
        table = match_weights(self.matched)
        return LiarsDiceTable(self.game, table, f"current of {self.config.algorithm}")


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
