"""Full-width extensive-form fictitious play on an explicit tree: XFP (Heinrich, Lanctot and Silver 2015, "Fictitious
Self-Play in Extensive-Form Games", Algorithm 1).

In every iteration both players find a best response to the opponent's average strategy and add it to their own average.
The paper mixes behaviour strategies with weights of reach, which is a mean of realization plans; their sums are kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepcfr.compiled import nb
from deepcfr.config import TabularConfig
from deepcfr.games.explicit import EMPTY, realization, terminal_values
from deepcfr.games.tree_game import TreeGame
from deepcfr.policies.tables import TreePolicy
from deepcfr.solvers.tabular import FullWidthSolver
from deepcfr.solvers.tree_cfr import match_positive
from deepcfr.types import Doubles, Ints


class FictitiousPlay(FullWidthSolver):
    """The state of a run: iterate over `iterations()` to advance it. Uniform play is the first strategy in the average."""

    name = "fictitious-play"
    game: TreeGame

    def __init__(self, game: TreeGame, config: TabularConfig) -> None:
        super().__init__(game, config)
        form = game.sequences
        self.average = self._plan(game.explicit.uniform())  # [K, L], sums of realization plans
        self.response = match_positive(np.zeros_like(self.average), form.num_actions)  # [K, L], the newest one

    def _iterate(self) -> int:
        form = self.game.sequences
        plan = realization(match_positive(self.average, form.num_actions), form.parent, form.num_actions)
        values = terminal_values(*form.sequences, form.payoff, plan)
        self.response[:] = best_responses(values, form.parent, form.num_actions, self.response.shape[1])
        self.average += self._plan(self.response)
        return 2 * self.game.explicit.num_nodes

    def _plan(self, strategy: Doubles) -> Doubles:
        """The realization plan of a strategy without the empty sequences, [K, L]."""
        form = self.game.sequences
        plan: Doubles = realization(strategy, form.parent, form.num_actions)[EMPTY:].reshape(strategy.shape)
        return plan

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The live state, besides `iteration` and `nodes_touched`: filling these arrays in place restores a solver.

        An export leaves the arrays named regret out, as the average strategy needs none of them.
        """
        return {"average": self.average, "regret-response": self.response}

    def average_policy(self) -> TreePolicy:
        """The average of all responses and of uniform play."""
        strategy = match_positive(self.average, self.game.sequences.num_actions)
        return TreePolicy(self.game, strategy, f"average of {self.config.algorithm}")

    def current_policy(self) -> TreePolicy:
        """The newest best responses."""
        return TreePolicy(self.game, self.response.copy(), f"best responses of {self.config.algorithm}")


@nb.njit(cache=True, nogil=True)
def best_responses(values: Doubles, parent: Ints, num_actions: Ints, width: int) -> Doubles:
    """Pure best responses of both players, [K, L]; ties go to the first action.

    `values` [S] are those of the sequences where the game ends right after them, and become those of all that follows.
    """
    response = np.zeros((len(parent), width))
    for infoset in range(len(parent) - 1, -1, -1):
        first, best = EMPTY + infoset * width, 0
        for action in range(1, num_actions[infoset]):
            if values[first + action] > values[first + best]:
                best = action
        response[infoset, best] = 1.0
        values[parent[infoset]] += values[first + best]
    return response
