"""Full-width Counterfactual Regret Minimization in its variants on an explicit tree (Zinkevich et al. 2007; Tammelin 2014,
CFR+; Brown and Sandholm 2019, Linear and Discounted CFR; Farina, Kroer and Sandholm 2021, predictive CFR+).

An iteration visits no histories: against the opponent's realization plan the terminal pairs of the sequence form give the
value of every own sequence, and one pass over the player's infosets, from the last to the first, turns them into
counterfactual regrets. It is the same sum as over histories, since all those of an infoset share the player's own reach.

Sums are taken in another order than in a traversal of histories. In games with exact ties, such as goofspiel, rounding then
decides which of several equal actions has a positive regret, so two correct programs take different paths.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.compiled import nb
from deepcfr.config import TabularConfig
from deepcfr.games.explicit import EMPTY, realization, terminal_values
from deepcfr.games.tree_game import TreeGame
from deepcfr.policies.tables import TreePolicy
from deepcfr.solvers.tabular import MatchingSolver
from deepcfr.types import Doubles, Ints

PLAYERS = (0, 1)


def memory_bytes(game: TreeGame) -> int:
    """Bytes of a solver's regrets, averages and predictions: float64 [K, L] each."""
    return 3 * 8 * game.explicit.legal.size


class TreeCFR(MatchingSolver):
    """The state of a solver: iterate over `iterations()` to advance it.

    All tables are in double precision; `config.precision` is for larger games. Players are updated in turn, the second
    one against the first one's new strategy. Where no regret is positive, all legal actions have equal probability. Raises
    ConfigError for an algorithm that is not full-width.
    """

    name = "tree-cfr"
    game: TreeGame

    def __init__(self, game: TreeGame, config: TabularConfig) -> None:
        super().__init__(game, config, game.explicit.legal.shape)  # [K, L]

    def _iterate(self) -> int:
        t = self.iteration + 1
        form = self.game.sequences
        for player in PLAYERS:
            strategy = match_positive(self.matched, form.num_actions)
            plan = realization(strategy, form.parent, form.num_actions)
            values = terminal_values(*form.sequences, form.payoff, plan)
            factors = (*self.variant.factors(t), self.variant.floor)
            mine = form.actor == player
            tables = self.regret, self.average, self.matched, self.variant.predictive
            _update(*tables, strategy, values, plan, mine, form.parent, form.num_actions, *factors)
        return 2 * self.game.explicit.num_nodes

    def _policy(self, weights: Doubles, name: str) -> TreePolicy:
        return TreePolicy(self.game, match_positive(weights, self.game.sequences.num_actions), name)


@nb.njit(cache=True, nogil=True)
def match_positive(weight: Doubles, num_actions: Ints) -> Doubles:
    """Probabilities in proportion to positive weights [K, L], uniform over the legal actions where there are none."""
    strategy = np.zeros_like(weight)
    for infoset in range(len(weight)):
        actions = num_actions[infoset]
        total = 0.0
        for action in range(actions):
            total += max(weight[infoset, action], 0.0)
        for action in range(actions):
            strategy[infoset, action] = max(weight[infoset, action], 0.0) / total if total > 0 else 1 / actions
    return strategy


@nb.njit(cache=True, nogil=True)
def _update(
    regret: Doubles,
    average: Doubles,
    matched: Doubles,
    predictive: bool,
    strategy: Doubles,
    values: Doubles,
    plan: Doubles,
    mine: npt.NDArray[np.bool_],
    parent: Ints,
    num_actions: Ints,
    positive: float,
    negative: float,
    past: float,
    floor: bool,
) -> None:
    """Add an iteration's counterfactual regrets and strategy of one player to the sums, which shrink by the factors.

    With `predictive`, `matched` becomes the new sums plus the new regrets. `values` [S] are those of the sequences where
    the game ends right after them, and become those of all that follows.
    """
    width = regret.shape[1]
    for infoset in range(len(parent) - 1, -1, -1):
        if not mine[infoset]:
            continue
        first = EMPTY + infoset * width
        value = 0.0
        for action in range(num_actions[infoset]):
            value += strategy[infoset, action] * values[first + action]
        values[parent[infoset]] += value
        for action in range(num_actions[infoset]):
            old = regret[infoset, action]
            new = old * (positive if old > 0 else negative) + values[first + action] - value
            regret[infoset, action] = max(new, 0.0) if floor else new
            if predictive:
                matched[infoset, action] = regret[infoset, action] + values[first + action] - value
            average[infoset, action] = average[infoset, action] * past + plan[first + action]
