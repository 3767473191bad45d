"""External sampling (Deep CFR, Algorithm 2; Lanctot et al. 2009) for all traversals of a batch at once.

The traversals advance together, one level for every depth; a level has one row for every live history. The traverser's
rows branch into all legal actions, the opponent's rows into one sampled action. Then values are propagated back.

In robust sampling (Li et al. 2020, "Double Neural Counterfactual Regret Minimization") the traverser's rows branch into
k of their n legal actions, drawn alike without replacement. The value of a drawn action is multiplied by n / k and that
of another one is 0, so means stay as they are. The draw does not depend on the strategy: an infoset is visited as often
in every iteration as without it, but for a factor that is the same in all of them.

Whole games between two strategies are played in the same way: every live game takes one sampled action at each depth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import TERMINAL, Samples
from deepcfr.game.base import Deals, Game, infosets_at

Strategy = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(node [M], row [M]) to the acting player's probabilities, float32 [M, A]; all nodes belong to one player."""


@dataclass(frozen=True)
class Traversals:
    """Results of a batch of traversals."""

    advantages: Samples  # the traverser's sampled instantaneous regrets
    strategies: Samples  # the opponent's action probabilities
    values: torch.Tensor  # float32 [B], each traversal's value to the traverser
    nodes_touched: int  # decision and terminal histories visited, plus deals
    decisions: torch.Tensor  # int64 [R], decisions visited in each round
    histories: Samples | None = None  # the steps that history values are learnt from


@dataclass
class _Level:
    """The histories at one depth; `weight` is the weight of each action's value in the value of its node."""

    node: torch.Tensor  # int64 [M]
    row: torch.Tensor  # int64 [M], the traversal
    parent: torch.Tensor  # int64 [M], row in the level above
    action: torch.Tensor  # int64 [M], the parent's action
    weight: torch.Tensor  # float32 [M, A], the strategy if the traverser acts, the sampled action if the opponent does


def traverse(
    game: Game,
    deals: Deals,
    traverser: int,
    strategies: tuple[Strategy, Strategy],
    stream: int,
    iteration: int,
    actions: int = 0,
) -> Traversals:
    """Run one external-sampling traversal for every deal.

    `strategies[p]` is player p's strategy sigma^t; the opponent's actions use the uniforms addressed by (traversal,
    node) in `stream`. The traverser takes so many `actions` at a decision, or all if that is 0. Samples carry
    `iteration`. Source: Algorithm 2; the estimator is that of Lemma 1.
    """
    levels, opponent = _descend(game, deals, traverser, strategies, stream, actions)
    values, advantages = _ascend(game, deals, traverser, levels, actions)
    return Traversals(
        advantages=samples_at(game, deals, advantages, iteration),
        strategies=samples_at(game, deals, opponent, iteration),
        values=values,
        nodes_touched=sum(len(level.node) + int(game.deals_before[level.node].sum()) for level in levels),
        decisions=by_round(game, deals, [visit[0] for visit in (*advantages, *opponent)]),
    )


Visits = list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]  # node [M], row [M], target [M, A]


def _descend(
    game: Game, deals: Deals, traverser: int, strategies: tuple[Strategy, Strategy], stream: int, actions: int
) -> tuple[list[_Level], Visits]:
    node = game.start(deals)
    row = torch.arange(len(deals), device=node.device)
    parent = action = torch.zeros_like(row)
    levels, opponent = [], Visits()
    while len(node):
        weight = torch.zeros(len(node), game.encoding.num_actions, device=node.device)
        mine = (game.actor[node] == traverser).nonzero()[:, 0]
        theirs = (game.actor[node] == 1 - traverser).nonzero()[:, 0]
        if len(mine):
            weight[mine] = strategies[traverser](node[mine], row[mine])
        if len(theirs):
            probabilities = strategies[1 - traverser](node[theirs], row[theirs])
            opponent.append((node[theirs], row[theirs], probabilities))
            chance = addressed_uniforms(stream, deals.traversal[row[theirs]], node[theirs])
            weight[theirs, sample_actions(probabilities, chance)] = 1.0
        levels.append(_Level(node, row, parent, action, weight))
        taken = weight > 0
        taken[mine] = game.legal[node[mine]]
        if actions and len(mine):
            taken[mine] &= _drawn(game.legal[node[mine]], deals.traversal[row[mine]], node[mine], stream, actions)
        parent, action = taken.nonzero(as_tuple=True)
        node, row = game.step(node[parent], action, row[parent], deals), row[parent]
    return levels, opponent


def _drawn(legal: torch.Tensor, traversal: torch.Tensor, node: torch.Tensor, stream: int, actions: int) -> torch.Tensor:
    """So many of the `legal` actions [M, A], drawn alike without replacement, bool [M, A]; all if there are not more."""
    columns = range(legal.shape[1])
    lots = torch.stack([addressed_uniforms(key(stream, "drawn", a), traversal, node) for a in columns], 1)
    first = lots.masked_fill(~legal, torch.inf).argsort(dim=1, stable=True)[:, :actions]
    return torch.zeros_like(legal).scatter(1, first, True) & legal


def sample_actions(probabilities: torch.Tensor, chance: torch.Tensor) -> torch.Tensor:
    """Sample an action from each row of `probabilities` [M, A] by the uniform number `chance` [M]; int64 [M].

    An action of probability 0 is never sampled.
    """
    upper = probabilities.cumsum(1)
    action = (upper <= chance[:, None] * upper[:, -1:]).sum(1)
    last = probabilities.shape[1] - 1 - (probabilities > 0).flip(1).int().argmax(1)
    return torch.minimum(action, last)


def _ascend(
    game: Game, deals: Deals, traverser: int, levels: list[_Level], actions: int
) -> tuple[torch.Tensor, Visits]:
    sign = 1.0 if traverser == 0 else -1.0
    advantages = Visits()
    below: _Level | None = None
    values = torch.empty(0)
    for level in reversed(levels):
        action_values = torch.zeros_like(level.weight)
        if below is not None:
            action_values[below.parent, below.action] = values
        actor = game.actor[level.node]
        if actions:
            inverse = (game.legal[level.node].sum(1) / actions).clamp(min=1)
            action_values *= torch.where(actor == traverser, inverse, 1.0)[:, None]
        values = (level.weight * action_values).sum(1)
        over = (actor == TERMINAL).nonzero()[:, 0]
        values[over] = sign * game.payoff(level.node[over], level.row[over], deals)
        mine = (actor == traverser).nonzero()[:, 0]
        if len(mine):
            node = level.node[mine]
            advantage = (action_values[mine] - values[mine, None]) * game.legal[node]
            advantages.append((node, level.row[mine], advantage))
        below = level
    return values, advantages


def by_round(game: Game, deals: Deals, nodes: list[torch.Tensor]) -> torch.Tensor:
    """Count the `nodes` in each round of the game, int64 [R]."""
    node = torch.cat([torch.empty(0, dtype=torch.int64, device=game.device), *nodes])
    return game.round[node].bincount(minlength=deals.visible_cards.shape[2])


def samples_at(game: Game, deals: Deals, visits: Visits, iteration: int) -> Samples:
    """The infosets of all `visits` with their targets, as samples of `iteration`."""
    empty = torch.empty(0, dtype=torch.int64, device=game.device)
    node = torch.cat([visit[0] for visit in visits]) if visits else empty
    row = torch.cat([visit[1] for visit in visits]) if visits else empty
    target = (
        torch.cat([v[2] for v in visits]) if visits else torch.empty(0, game.encoding.num_actions, device=empty.device)
    )
    times = torch.full((len(node),), iteration, dtype=torch.int32, device=node.device)
    return Samples(infosets_at(game, node, row, deals), target, times)


def last_nodes(
    game: Game,
    deals: Deals,
    strategies: tuple[Strategy, Strategy],
    stream: int,
    start: torch.Tensor | None = None,
    place: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Play one game of every deal, from its node of `start` [B] or from the beginning; returns terminal nodes, int64
    [B].

    `strategies[p]` is player p's; actions use the uniforms addressed by (traversal, node) in `stream`, so a game is the
    same in any batch, and two games of one deal differ only where their strategies do. `place` gives the numbers that
    stand for nodes in addresses, [M] to [M].
    """
    node = game.start(deals) if start is None else start
    live = torch.arange(len(node), device=node.device)
    while True:
        actor = game.actor[node[live]]
        live, actor = live[actor != TERMINAL], actor[actor != TERMINAL]
        if not len(live):
            return node
        action = torch.empty_like(live)
        for player in (0, 1):
            here = (actor == player).nonzero()[:, 0]
            if len(here):
                row = live[here]
                address = place(node[row]) if place else node[row]
                chance = addressed_uniforms(stream, deals.traversal[row], address)
                action[here] = sample_actions(strategies[player](node[row], row), chance)
        after = game.step(node[live], action, live, deals)
        node = node.index_put((live,), after)
