"""Outcome sampling (Lanctot et al. 2009, section 3.1) for Deep CFR: one sampled history for every traversal of a batch.

Section 4 of the Deep CFR paper recommends it for games with many actions, with appropriate weights of samples. The
traverser, too, takes a single action at each of its decisions. Chance and the opponent are sampled on-policy, and the
traverser by

    q(I, a) = e / |A(I)| + (1 - e) sigma(I, a) ,        e = `exploration` .

This has two consequences for samples; docs/algorithms/mccfr.md derives both.

* **Targets.** On a history that goes through I, takes a there, and ends in z, the sampled value of a is

      v(I, a) = [u_p(z) * product of sigma / q over the traverser's later actions] / q(I, a) ,

  that of the other actions is 0, and the target is v(I, .) - sum_b sigma(I, b) v(I, b). Given that I is visited, its
  mean
    is the advantage of Lemma 1, as in external sampling: the traverser's own earlier choices are the same for all
    histories of I (perfect recall), so they do not change the probability of each history given I.
  * **Copies.** External sampling visits a history h with probability pi_{-p}(h). Its memory holds infosets in these
    proportions, so the mean over *iterations*, which a network learns, is proportional to regret. In outcome sampling
    the probability is pi_{-p}(h) times the product of q over the traverser's earlier actions, which varies between
    iterations. So a sample is added to the memory a random integer number of times, whose mean is the inverse of that
    product. In expectation the memory gets the same samples as in external sampling: as many of every infoset, with the
    same sum of targets. The same holds for samples of the opponent's strategy.

  No target is divided by a reach probability. Every divisor is a single q(I, a) >= e / |A(I)|, and configurations keep
  e at 0.01 or more; sigma / q is also at most 1 / (1 - e). With d decisions of the traverser before it and l after it,
  a sample has at most (|A| / e)^d + 1 copies, and its target is at most |u| (|A| / e) min(1 / (1 - e), |A| / e)^l. So a
  traversal touches far fewer nodes for the same mean, but variance is much higher.

With history values b(h, .) the sampled value of every action b is known a little, and only the rest is weighted
(DREAM: Steinberger, Lerer and Brown 2020, equations 5 and 6; Schmid et al. 2019):

    v(h, a) = b(h, a) + [a was taken] (v(h a) - b(h, a)) / q(I, a) ,     v(h) = sum_a sigma(I, a) v(h, a) ;

the opponent and chance are sampled on-policy, so there v(h) = sum_a sigma(a) b(h, a) + v(h a) - b(h, a). The mean is
the same for any b; with b = 0 this is the estimate above. ESCHER (McAleer et al. 2023) takes b(h, a) for v(h, a) and
samples nothing, so nothing is divided by q. Its traverser plays uniformly in every iteration, so the product in
*Copies* is one number for each infoset, and a visit is one sample.

The values are learnt from the same histories: a step (h, a) has the target w(h a), where w is the payoff at the end,
and

    w(h) = sum_a sigma(I, a) b(h, a) + c (w(h a) - b(h, a)) ,

with c = sigma(I, a) / q(I, a) at the traverser's decisions and c = 1 elsewhere: its mean is the value under sigma.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch

from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import TERMINAL, Infosets, Samples
from deepcfr.game.base import Deals, Game
from deepcfr.sample.external import Strategy, Traversals, Visits, by_round, sample_actions, samples_at

Values = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(node [M], row [M]) to the values of all actions there to player 0, float32 [M, A]."""


class Learnt(NamedTuple):
    """History values for the estimates of advantages."""

    values: Values
    alone: bool  # advantages from values alone, as in ESCHER; else they are a baseline, as in DREAM


@dataclass(frozen=True)
class _Batch:
    """Traversals that advance together, and how they are sampled; arguments as of `traverse_outcomes`."""

    game: Game
    deals: Deals
    traverser: int
    strategies: tuple[Strategy, Strategy]
    exploration: float
    stream: int
    learnt: Learnt | None

    @property
    def sign(self) -> float:
        """The sign of player 0's payoffs to the traverser."""
        return 1.0 if self.traverser == 0 else -1.0


@dataclass(frozen=True)
class _Decisions:
    """The decisions at one depth, one for each live history; M is their number."""

    node: torch.Tensor  # int64 [M]
    row: torch.Tensor  # int64 [M], the traversal
    mine: torch.Tensor  # bool [M], whether the traverser acts
    sigma: torch.Tensor  # float32 [M, A]
    taken: torch.Tensor  # int64 [M]
    drawn: torch.Tensor  # float64 [M], q of `taken` where the traverser acts, else 1
    copies: torch.Tensor  # int64 [M]
    known: torch.Tensor  # float64 [M, A], history values to the traverser, 0 without them


def traverse_outcomes(
    game: Game,
    deals: Deals,
    traverser: int,
    strategies: tuple[Strategy, Strategy],
    exploration: float,
    stream: int,
    iteration: int,
    learnt: Learnt | None = None,
) -> Traversals:
    """Run one outcome-sampling traversal for every deal.

    `strategies[p]` is player p's strategy sigma^t. Both players' actions use the uniforms addressed by (traversal,
    node) in `stream`, so the opponent takes the same actions as in external sampling with the same stream.
    `exploration` must be above 0. Samples carry `iteration`; `values` are weighted, so only their mean is a value.
    With `learnt` values there are `histories`, the steps that they are learnt from.
    """
    batch = _Batch(game, deals, traverser, strategies, exploration, stream, learnt)
    levels, payoffs, touched = _follow(batch)
    values, advantages = _credit(game, levels, payoffs, alone=learnt is not None and learnt.alone)
    opponent = [_repeated(level, ~level.mine, level.sigma) for level in levels]
    return Traversals(
        advantages=samples_at(game, deals, advantages, iteration),
        strategies=samples_at(game, deals, opponent, iteration),
        values=values.float(),
        nodes_touched=touched,
        decisions=by_round(game, deals, [level.node for level in levels]),
        histories=_steps(batch, levels, payoffs, iteration) if learnt else None,
    )


def _follow(batch: _Batch) -> tuple[list[_Decisions], torch.Tensor, int]:
    """Play every deal to its end; returns the decisions, the traverser's payoffs (float64 [B]) and the nodes touched."""
    game, deals = batch.game, batch.deals
    node = game.start(deals)
    row = torch.arange(len(deals), device=node.device)
    payoffs = torch.zeros(len(deals), dtype=torch.float64, device=node.device)
    inverse = torch.ones_like(payoffs)  # 1 / probability of the traverser's choices so far
    levels, touched = list[_Decisions](), 0
    while len(node):
        touched += len(node) + int(game.deals_before[node].sum())
        over = game.actor[node] == TERMINAL
        payoffs[row[over]] = batch.sign * game.payoff(node[over], row[over], deals).double()
        node, row = node[~over], row[~over]
        if len(node):
            level = _decide(batch, node, row, inverse[row])
            levels.append(level)
            inverse[row] /= level.drawn
            node = game.step(node, level.taken, row, deals)
    return levels, payoffs, touched


def _decide(batch: _Batch, node: torch.Tensor, row: torch.Tensor, inverse: torch.Tensor) -> _Decisions:
    """Sample an action at every node; `inverse` [M] is 1 / probability of the traverser's choices before it."""
    game, traverser, learnt = batch.game, batch.traverser, batch.learnt
    mine = game.actor[node] == traverser
    sigma = torch.zeros(len(node), game.encoding.num_actions, device=node.device)
    for player, places in ((traverser, mine.nonzero()[:, 0]), (1 - traverser, (~mine).nonzero()[:, 0])):
        if len(places):
            sigma[places] = batch.strategies[player](node[places], row[places])
    legal = game.legal[node]
    e = batch.exploration
    mixed = e * (legal / legal.sum(1, keepdim=True)) + (1 - e) * sigma
    played = torch.where(mine[:, None], mixed, sigma)
    address = batch.deals.traversal[row]
    taken = sample_actions(played, addressed_uniforms(batch.stream, address, node))
    drawn = torch.where(mine, played.take_along_dim(taken[:, None], 1)[:, 0].double(), 1.0)
    # stochastic rounding: the mean number of copies is exactly the weight
    copies = (inverse + addressed_uniforms(key(batch.stream, "copies"), address, node)).long()
    if learnt is None:
        return _Decisions(node, row, mine, sigma, taken, drawn, copies, torch.zeros_like(sigma, dtype=torch.float64))
    known = learnt.values(node, row).double() * batch.sign
    return _Decisions(node, row, mine, sigma, taken, drawn, torch.ones_like(copies) if learnt.alone else copies, known)


def _credit(game: Game, levels: list[_Decisions], payoffs: torch.Tensor, *, alone: bool) -> tuple[torch.Tensor, Visits]:
    """Propagate payoffs [B] back: returns the traversals' values (float64 [B]) and the traverser's targets."""
    values = payoffs.clone()
    advantages = Visits()
    for level in reversed(levels):
        taken = level.taken[:, None]
        expected = (level.sigma * level.known).sum(1)
        missed = values[level.row] - level.known.take_along_dim(taken, 1)[:, 0]
        gained = missed / level.drawn  # what the sample adds to the known value of the taken action
        mean = expected + level.sigma.take_along_dim(taken, 1)[:, 0] * gained
        if alone:
            target = level.known - expected[:, None]
        else:
            target = level.known.scatter_add(1, taken, gained[:, None]) - mean[:, None]
        advantages.append(_repeated(level, level.mine, (target * game.legal[level.node]).float()))
        values[level.row] = torch.where(level.mine, mean, expected + missed)
    return values, advantages


def _steps(batch: _Batch, levels: list[_Decisions], payoffs: torch.Tensor, iteration: int) -> Samples:
    """The steps of all histories, in the form of `history_cards`: targets are to player 0, NaN for other actions."""
    traced = payoffs.clone()
    visits = Visits()
    for level in reversed(levels):
        taken = level.taken[:, None]
        target = torch.full_like(level.sigma, torch.nan)
        target.scatter_(1, taken, batch.sign * traced[level.row, None].float())
        visits.append((level.node, level.row, target))
        missed = traced[level.row] - level.known.take_along_dim(taken, 1)[:, 0]
        ratio = level.sigma.take_along_dim(taken, 1)[:, 0] / level.drawn
        share = torch.where(level.mine, ratio, 1.0)
        traced[level.row] = (level.sigma * level.known).sum(1) + share * missed
    node, row, target = (torch.cat(parts) for parts in zip(*visits, strict=True))
    whole = row.argsort(stable=True)  # history by history, so that a full window drops whole histories
    node, row, target = node[whole], row[whole], target[whole]
    cards = history_cards(batch.deals)[row, batch.game.round[node]]
    return Samples(Infosets(node, cards), target, torch.full_like(node, iteration, dtype=torch.int32))


def history_cards(deals: Deals) -> torch.Tensor:
    """The cards of histories in each round: what player 0 sees, then what player 1 sees, uint8 [B, R, 2 C].

    In canonical suits each canonical hand has its own order of suits, so a few histories of different values look the
    same.
    """
    return torch.cat([deals.visible_cards[:, 0], deals.visible_cards[:, 1]], -1)


def _repeated(
    level: _Decisions, where: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The decisions of a level `where` [M] with their targets [M, A], each repeated by its number of copies."""
    places = where.nonzero()[:, 0]
    places = places.repeat_interleave(level.copies[places])
    return level.node[places], level.row[places], target[places]
