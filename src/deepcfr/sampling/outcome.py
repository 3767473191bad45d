"""Outcome sampling (Lanctot et al. 2009, section 3.1) for Deep CFR: one sampled history for every traversal of a batch.

Section 4 of the Deep CFR paper recommends it for games with many actions, with appropriate weights of samples. The
traverser, too, takes a single action at each of its decisions. Chance and the opponent are sampled on-policy, and the
traverser by

    q(I, a) = e / |A(I)| + (1 - e) sigma(I, a) ,        e = `exploration` .

This has two consequences for samples; docs/algorithms/mccfr.md derives both.

* **Targets.** On a history that goes through I, takes a there, and ends in z, the sampled value of a is

      v(I, a) = [u_p(z) * product of sigma / q over the traverser's later actions] / q(I, a) ,

  that of the other actions is 0, and the target is v(I, .) - sum_b sigma(I, b) v(I, b). Given that I is visited, its mean
    is the advantage of Lemma 1, as in external sampling: the traverser's own earlier choices are the same for all histories
    of I (perfect recall), so they do not change the probability of each history given I.
  * **Copies.** External sampling visits a history h with probability pi_{-p}(h). Its memory holds infosets in these
    proportions, so the mean over *iterations*, which a network learns, is proportional to regret. In outcome sampling the
    probability is pi_{-p}(h) times the product of q over the traverser's earlier actions, which varies between iterations.
    So a sample is added to the memory a random integer number of times, whose mean is the inverse of that product. In
    expectation the memory gets the same samples as in external sampling: as many of every infoset, with the same sum of
    targets. The same holds for samples of the opponent's strategy.

  No target is divided by a reach probability. Every divisor is a single q(I, a) >= e / |A(I)|, and configurations keep e at
  0.01 or more; sigma / q is also at most 1 / (1 - e). With d decisions of the traverser before it and l after it, a sample
  has at most (|A| / e)^d + 1 copies, and its target is at most |u| (|A| / e) min(1 / (1 - e), |A| / e)^l. So a traversal
  touches far fewer nodes for the same mean, but variance is much higher.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from deepcfr.games.base import Deals, Game
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.external import Strategy, Traversals, Visits, by_round, sample_actions, samples_at
from deepcfr.types import TERMINAL


@dataclass(frozen=True)
class _Level:
    """The decisions at one depth, one for each live history; M is their number."""

    node: torch.Tensor  # int64 [M]
    row: torch.Tensor  # int64 [M], the traversal
    mine: torch.Tensor  # bool [M], whether the traverser acts
    sigma: torch.Tensor  # float32 [M, A]
    taken: torch.Tensor  # int64 [M]
    drawn: torch.Tensor  # float64 [M], q of `taken` where the traverser acts, else 1
    copies: torch.Tensor  # int64 [M]


def traverse_outcomes(
    game: Game,
    deals: Deals,
    traverser: int,
    strategies: tuple[Strategy, Strategy],
    exploration: float,
    stream: int,
    iteration: int,
) -> Traversals:
    """Run one outcome-sampling traversal for every deal.

    `strategies[p]` is player p's strategy sigma^t. Both players' actions use the uniforms addressed by (traversal, node)
    in `stream`, so the opponent takes the same actions as in external sampling with the same stream.
    `exploration` must be above 0. Samples carry `iteration`; `values` are weighted, so only their mean is a value.
    """
    levels, payoffs, touched = _follow(game, deals, traverser, strategies, exploration, stream)
    values, advantages = _credit(game, levels, payoffs)
    opponent = [_repeated(level, ~level.mine, level.sigma) for level in levels]
    return Traversals(
        advantages=samples_at(game, deals, advantages, iteration),
        strategies=samples_at(game, deals, opponent, iteration),
        values=values.float(),
        nodes_touched=touched,
        decisions=by_round(game, [level.node for level in levels]),
    )


def _follow(
    game: Game, deals: Deals, traverser: int, strategies: tuple[Strategy, Strategy], exploration: float, stream: int
) -> tuple[list[_Level], torch.Tensor, int]:
    """Play every deal to its end; returns the decisions, the traverser's payoffs (float64 [B]) and the nodes touched."""
    sign = 1.0 if traverser == 0 else -1.0
    node = game.start(deals)
    row = torch.arange(len(deals), device=node.device)
    payoffs = torch.zeros(len(deals), dtype=torch.float64, device=node.device)
    inverse = torch.ones_like(payoffs)  # 1 / probability of the traverser's choices so far
    levels, touched = list[_Level](), 0
    while len(node):
        touched += len(node) + int(game.deals_before[node].sum())
        over = game.actor[node] == TERMINAL
        payoffs[row[over]] = sign * game.payoff(node[over], row[over], deals).double()
        node, row = node[~over], row[~over]
        if len(node):
            level = _decide(game, deals, traverser, strategies, exploration, stream, node, row, inverse[row])
            levels.append(level)
            inverse[row] /= level.drawn
            node = game.step(node, level.taken, row, deals)
    return levels, payoffs, touched


def _decide(
    game: Game,
    deals: Deals,
    traverser: int,
    strategies: tuple[Strategy, Strategy],
    exploration: float,
    stream: int,
    node: torch.Tensor,
    row: torch.Tensor,
    inverse: torch.Tensor,
) -> _Level:
    """Sample an action at every node; `inverse` [M] is 1 / probability of the traverser's choices before it."""
    mine = game.actor[node] == traverser
    sigma = torch.zeros(len(node), game.encoding.num_actions, device=node.device)
    for player, places in ((traverser, mine.nonzero()[:, 0]), (1 - traverser, (~mine).nonzero()[:, 0])):
        if len(places):
            sigma[places] = strategies[player](node[places], row[places])
    legal = game.legal[node]
    mixed = exploration * (legal / legal.sum(1, keepdim=True)) + (1 - exploration) * sigma
    played = torch.where(mine[:, None], mixed, sigma)
    address = deals.traversal[row]
    taken = sample_actions(played, addressed_uniforms(stream, address, node))
    drawn = torch.where(mine, played.take_along_dim(taken[:, None], 1)[:, 0].double(), 1.0)
    # stochastic rounding: the mean number of copies is exactly the weight
    copies = (inverse + addressed_uniforms(key(stream, "copies"), address, node)).long()
    return _Level(node, row, mine, sigma, taken, drawn, copies)


def _credit(game: Game, levels: list[_Level], payoffs: torch.Tensor) -> tuple[torch.Tensor, Visits]:
    """Propagate payoffs [B] back: returns the traversals' values (float64 [B]) and the traverser's targets."""
    values = payoffs.clone()
    advantages = Visits()
    for level in reversed(levels):
        taken = level.taken[:, None]
        of_taken = values[level.row] / level.drawn  # value of the taken action; 0 for other actions
        mean = level.sigma.take_along_dim(taken, 1)[:, 0] * of_taken
        target = torch.zeros_like(level.sigma, dtype=torch.float64).scatter_(1, taken, of_taken[:, None])
        target = (target - mean[:, None]) * game.legal[level.node]
        advantages.append(_repeated(level, level.mine, target.float()))
        values[level.row] = torch.where(level.mine, mean, values[level.row])
    return values, advantages


def _repeated(
    level: _Level, where: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The decisions of a level `where` [M] with their targets [M, A], each repeated by its number of copies."""
    places = where.nonzero()[:, 0]
    places = places.repeat_interleave(level.copies[places])
    return level.node[places], level.row[places], target[places]
