"""The excessive gap technique on an explicit tree, a first-order method (Nesterov 2005; Hoda, Gilpin, Peña and Sandholm
2010, "Smoothing techniques for computing Nash equilibria of sequential games").

u_p(x, y) is bilinear in the players' realization plans. With a distance d of plans from uniform play, the smoothed value

    f_p(opponent's plan) = max_z [u_p(z, opponent's plan) - mu_p d(z)]

has one maximiser and is smooth. A pair of plans has an excessive gap if f_0(y) + f_1(x) <= 0, and then its NashConv is at
most mu_0 D_0 + mu_1 D_1, D_p being the largest distance. An iteration lowers one mu and keeps the gap.

d is the dilated entropy: the sum over infosets of own reach times weight times the divergence from uniform play. The weight
of an infoset is 1 plus the largest sum of the weights after one of its actions (Farina, Kroer and Sandholm 2021, "Better
regularization for sequential decision spaces"). Step sizes are tried, and halved where they would lose the gap (Kroer,
Farina and Sandholm 2018, "Solving large sequential games with the excessive gap technique").
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

_FIRST_STEP = 0.5
_ROUNDING = 1e-12  # of a gap, in payoffs


class ExcessiveGap(FullWidthSolver):
    """The state of a run: iterate over `iterations()` to advance it. The newest plans are the result."""

    name = "excessive-gap"
    game: TreeGame

    def __init__(self, game: TreeGame, config: TabularConfig) -> None:
        super().__init__(game, config)
        form = game.sequences
        with np.errstate(divide="ignore"):
            self._uniform = np.log(game.explicit.uniform())  # [K, L]; tables are of logarithms, which do not underflow
        owner = np.repeat(form.actor, self._uniform.shape[1])
        self._owner = np.concatenate([[0, 1], owner])  # [S], the player of each sequence
        self._weight = entropy_weights(form.parent, form.num_actions, self._uniform.shape[1])  # [K]
        self.plan = np.zeros(len(self._owner))  # [S], realization plans of both players
        self.smoothing = np.ones(3)  # mu of each player, and the step that is tried next
        self._start()

    def _start(self) -> None:
        """Plans with an excessive gap, for the least mu of 1, 2, 4, ... that has them."""
        mu, center = self.smoothing[:2], self._plan(self._uniform)
        while True:
            second = self._plan(self._responses(center, mu)[0])
            plan = self._mixed(self._plan(self._responses(second, mu)[0]), second)
            if self._responses(plan, mu)[1].sum() <= _ROUNDING:
                break
            mu *= 2
        self.plan[:], self.smoothing[2] = plan, _FIRST_STEP

    def _mixed(self, first: Doubles, second: Doubles) -> Doubles:
        """Player 0's part of one array of sequences and player 1's of another."""
        mixed: Doubles = np.where(self._owner == 0, first, second)
        return mixed

    def _plan(self, table: Doubles) -> Doubles:
        """Realization plans of strategies, given as logarithms [K, L]."""
        form = self.game.sequences
        plan: Doubles = realization(np.exp(table), form.parent, form.num_actions)
        return plan

    def _responses(self, plan: Doubles, mu: Doubles, base: Doubles | None = None) -> tuple[Doubles, Doubles]:
        """The logarithms of each player's smoothed response to the other's plan, [K, L], and its smoothed value, [2].

        With another `base` than uniform play, logarithms [K, L], distances are from that.
        """
        form = self.game.sequences
        values = terminal_values(*form.sequences, form.payoff, plan)
        start = self._uniform if base is None else base
        table = respond(values, start, self._weight, mu, form.actor, form.parent, form.num_actions)
        return table, values[:EMPTY]

    def _iterate(self) -> int:
        """Lower the larger mu by the largest step of the trials that keeps the gap."""
        passes = 1
        responses = self._responses(self.plan, self.smoothing[:2])[0]
        while True:
            plan, mu = self._step(responses, self.smoothing[2])
            passes += 3
            if self._responses(plan, mu)[1].sum() <= _ROUNDING:
                break
            self.smoothing[2] /= 2
        self.plan[:], self.smoothing[:2] = plan, mu
        return passes * self.game.explicit.num_nodes

    def _step(self, responses: Doubles, step: float) -> tuple[Doubles, Doubles]:
        """The plans and mu after a step; `responses` [K, L] are those to the plans as they are."""
        mu = self.smoothing[:2].copy()
        player = int(mu[1] > mu[0])
        mine = self._owner == player
        ahead = np.where(mine, (1 - step) * self.plan + step * self._plan(responses), self.plan)
        answer = self._plan(self._responses(ahead, mu)[0])  # of the opponent
        temper = mu.copy()
        temper[player] *= (1 - step) / step
        moved = self._plan(self._responses(answer, temper, responses)[0])
        plan = (1 - step) * self.plan + step * np.where(mine, moved, answer)
        mu[player] *= 1 - step
        return plan, mu

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The live state, besides `iteration` and `nodes_touched`: filling these arrays in place restores a solver.

        An export leaves the array named regret out, as the strategy does not need it.
        """
        return {"plan": self.plan, "regret-smoothing": self.smoothing}

    def average_policy(self) -> TreePolicy:
        """The newest plans."""
        form = self.game.sequences
        table = match_positive(self.plan[EMPTY:].reshape(self._uniform.shape), form.num_actions)
        return TreePolicy(self.game, table, f"plans of {self.config.algorithm}")

    def current_policy(self) -> TreePolicy:
        """The same: there is no average."""
        return self.average_policy()


@nb.njit(cache=True, nogil=True)
def entropy_weights(parent: Ints, num_actions: Ints, width: int) -> Doubles:
    """The weight of each infoset in the dilated entropy, [K]."""
    after = np.zeros(EMPTY + len(parent) * width)  # sums of weights after each sequence
    weight = np.empty(len(parent))
    for infoset in range(len(parent) - 1, -1, -1):
        first = EMPTY + infoset * width
        weight[infoset] = 1.0 + after[first : first + num_actions[infoset]].max()
        after[parent[infoset]] += weight[infoset]
    return weight


@nb.njit(cache=True, nogil=True)
def respond(
    values: Doubles, base: Doubles, weight: Doubles, mu: Doubles, actor: Ints, parent: Ints, num_actions: Ints
) -> Doubles:
    """Logarithms of both players' maximisers of value - mu times the distance from a strategy, [K, L].

    `base` [K, L] has the logarithms of that strategy. `values` [S] are those of the sequences where the game ends right
    after them, and become the smoothed ones of all that follows.
    """
    table = np.full_like(base, -np.inf)
    for infoset in range(len(parent) - 1, -1, -1):
        first, actions = EMPTY + infoset * base.shape[1], num_actions[infoset]
        temperature = mu[actor[infoset]] * weight[infoset]
        row = base[infoset, :actions] + values[first : first + actions] / temperature
        total = row.max() + np.log(np.exp(row - row.max()).sum())
        table[infoset, :actions] = row - total
        values[parent[infoset]] += temperature * total
    return table
