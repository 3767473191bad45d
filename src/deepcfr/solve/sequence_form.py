"""Solvers on explicit trees that visit no histories: CFR and its variants, fictitious play, and excessive gap.

**CFR** full-width in its variants (Zinkevich et al. 2007; Tammelin 2014, CFR+; Brown and Sandholm 2019, Linear and
Discounted CFR; Farina, Kroer and Sandholm 2021, predictive CFR+). Against the opponent's realization plan the terminal
pairs of the sequence form give the value of every own sequence, and one pass over the player's infosets, from the last to
the first, turns them into counterfactual regrets. It is the same sum as over histories, since all those of an infoset share
the player's own reach. Sums are taken in another order than in a traversal of histories. In games with exact ties, such as
goofspiel, rounding then decides which of several equal actions has a positive regret, so two correct programs differ.

**XFP**, extensive-form fictitious play (Heinrich, Lanctot and Silver 2015, "Fictitious Self-Play in Extensive-Form Games",
Algorithm 1). In every iteration both players find a best response to the opponent's average strategy and add it to their
own average. The paper mixes behaviour strategies with weights of reach, which is a mean of realization plans; their sums
are kept.

**EGT**, the excessive gap technique, a first-order method (Nesterov 2005; Hoda, Gilpin, Peña and Sandholm 2010, "Smoothing
techniques for computing Nash equilibria of sequential games"). u_p(x, y) is bilinear in the players' realization plans.
With a distance d of plans from uniform play, the smoothed value

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

from deepcfr.config import RunConfig
from deepcfr.core.compiled import nb
from deepcfr.core.types import Doubles, Ints
from deepcfr.game.explicit import EMPTY, realization, terminal_values
from deepcfr.game.tree_game import TreeGame
from deepcfr.policy.tables import TreePolicy
from deepcfr.solve.base import PLAYERS, FullWidthSolver, MatchingSolver


class TreeCFR(MatchingSolver):
    """The state of a solver: iterate over `iterations()` to advance it.

    All tables are in double precision; `config.precision` is for larger games. Players are updated in turn, the second
    one against the first one's new strategy. Where no regret is positive, all legal actions have equal probability. Raises
    ConfigError for an algorithm that is not full-width.
    """

    name = "tree-cfr"
    game: TreeGame

    def __init__(self, game: TreeGame, config: RunConfig) -> None:
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


class FictitiousPlay(FullWidthSolver):
    """The state of a run: iterate over `iterations()` to advance it. Uniform play is the first strategy in the average."""

    name = "fictitious-play"
    game: TreeGame

    def __init__(self, game: TreeGame, config: RunConfig) -> None:
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
        return realization(strategy, form.parent, form.num_actions)[EMPTY:].reshape(strategy.shape)

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        # an export leaves the arrays named regret out, as the average strategy needs none of them
        return {"average": self.average, "regret-response": self.response}

    def average_policy(self) -> TreePolicy:
        """The average of all responses and of uniform play."""
        strategy = match_positive(self.average, self.game.sequences.num_actions)
        return TreePolicy(self.game, strategy, f"average of {self.config.solver}")

    def current_policy(self) -> TreePolicy:
        """The newest best responses."""
        return TreePolicy(self.game, self.response.copy(), f"best responses of {self.config.solver}")


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


_FIRST_STEP = 0.5
_ROUNDING = 1e-12  # of a gap, in payoffs


class ExcessiveGap(FullWidthSolver):
    """The state of a run, whose result are the newest plans."""

    name = "excessive-gap"
    game: TreeGame

    def __init__(self, game: TreeGame, config: RunConfig) -> None:
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
            plan = np.where(self._owner == 0, self._plan(self._responses(second, mu)[0]), second)
            if self._responses(plan, mu)[1].sum() <= _ROUNDING:
                break
            mu *= 2
        self.plan[:], self.smoothing[2] = plan, _FIRST_STEP

    def _plan(self, table: Doubles) -> Doubles:
        """Realization plans of strategies, given as logarithms [K, L]."""
        form = self.game.sequences
        return realization(np.exp(table), form.parent, form.num_actions)

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
        return {"plan": self.plan, "regret-smoothing": self.smoothing}

    def average_policy(self) -> TreePolicy:
        """The newest plans."""
        form = self.game.sequences
        table = match_positive(self.plan[EMPTY:].reshape(self._uniform.shape), form.num_actions)
        return TreePolicy(self.game, table, f"plans of {self.config.solver}")

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
