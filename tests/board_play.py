"""Small poker games, random strategies on them, and what those and every hand's advantages are worth, from every deal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Boards
from deepcfr.boards.public_chance import RoundPart
from deepcfr.buckets.buckets import lossless
from deepcfr.core.types import TERMINAL, HandSamples, Infosets
from deepcfr.game.cards import pack_cards
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.policy.base import Policy
from deepcfr.policy.tables import AbstractPolicy, RangePolicy
from deepcfr.sample.traversal_tree import table_layout
from deepcfr.solve.vector_cfr import VectorCFR
from experiments.theorem1.tables import TablePolicy, canonical_hands
from tables import finished, tabular

Floats = npt.NDArray[np.float64]

KUHN, LEDUC = PRESETS["kuhn"], PRESETS["leduc"]
THREE_ROUNDS = replace(
    LEDUC, name="three rounds", board_cards=(0, 1, 1), first_player=(0, 1, 0), raise_size=(1, 2, 4),
    max_raises=(1, 1, 1), rank_symbols="",
)  # fmt: skip

ALL_IN = replace(  # raises lead from 2 chips to 6 and to 14, all-in, in any of three rounds
    PRESETS["hunl-pot"], name="pot bets", num_ranks=3, num_suits=2, hole_cards=1, board_cards=(0, 1, 1), blinds=(1, 2),
    first_player=(0, 1, 1), raise_size=(100,) * 3, max_raises=(5,) * 3, unit_chips=2, stack=14, rank_symbols="",
    suit_symbols="",
)  # fmt: skip


def random_policy(game: PokerGame | PokerRules, seed: int, suits: Suits = "canonical") -> TablePolicy:
    """Independent probabilities at every infoset, a fifth of the actions hardly ever played."""
    game = PokerGame(game, suits) if isinstance(game, PokerRules) else game
    rng = np.random.default_rng(seed)
    tables = []
    for round_, hands in enumerate(canonical_hands(game)):
        legal = game.tree.legal[: game.tree.num_decisions][game.tree.round[: game.tree.num_decisions] == round_]
        weights = rng.exponential(size=(len(legal), len(hands), legal.shape[1]))
        weights = (weights * (rng.random(weights.shape) < 0.8) + 1e-9) * legal[:, None, :]
        tables.append(weights / weights.sum(axis=2, keepdims=True))
    return TablePolicy(game, tables)


def random_table(game: PokerGame, seed: int) -> AbstractPolicy:
    """A table with rows of every kind: mixed, pure, and without any positive entry, so that some actions have no reach."""
    abstraction = lossless(game.rules)
    size = table_layout(game.tree, abstraction.counts).size
    return AbstractPolicy(game, abstraction, np.random.default_rng(seed).normal(size=size))


def all_infosets(game: PokerGame) -> Infosets:
    """Every infoset of a game, once."""
    nodes, cards = [], []
    for round_, hands in enumerate(canonical_hands(game)):
        here = np.flatnonzero(game.tree.round[: game.tree.num_decisions] == round_)
        nodes.append(np.repeat(here, len(hands)))
        cards.append(np.tile(hands, (len(here), 1)))
    return Infosets(torch.from_numpy(np.concatenate(nodes)), torch.from_numpy(np.concatenate(cards)))


def solved(rules: PokerRules, iterations: int) -> RangePolicy:
    """The average strategy of CFR+, in tables of the solver's boards."""
    solver = finished(VectorCFR(PokerGame(rules), tabular("cfr+", iterations)))
    return solver.average_policy()


class OnlyRows(Policy):
    """A policy that answers for single infosets, without its own way over whole boards."""

    def __init__(self, policy: Policy) -> None:
        self.game, self.kind, self.policy = policy.game, policy.kind, policy

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self.policy.probabilities(infosets)


class AllDeals:
    """A game as the list of its deals: values are plain means, and infosets are told apart by the cards as dealt."""

    def __init__(self, policy: TablePolicy) -> None:
        self.game: PokerGame = policy.game
        self.policy, self.cards = policy, every_deal(policy.game)
        self.deals, self.rows, cards = self.game.deals_of(self.cards), torch.arange(len(self.cards)), self.cards
        hole, ends = self.game.rules.hole_cards, np.cumsum(self.game.rules.board_cards)
        seen = [[*range(p * hole, (p + 1) * hole), *range(2 * hole, 2 * hole + e)] for p in (0, 1) for e in ends]
        numbers = [cards[:, slots].astype(np.int64) @ 64 ** np.arange(len(slots)) for slots in seen]
        # numbers of infosets, [P * R] of [D]
        self._infosets = [np.unique(number, return_inverse=True)[1] for number in numbers]

    def infosets(self, player: int, node: int) -> npt.NDArray[np.int64]:
        """The number of the player's infoset in every deal, [D]."""
        return self._infosets[player * self.game.rules.num_rounds + int(self.game.tree.round[node])]

    def payoff(self, node: int, player: int) -> Floats:
        """The player's gain at the end of the hand in every deal, [D]."""
        gain = self.game.payoff(torch.full_like(self.rows, node), self.rows, self.deals).double().numpy()
        return gain if player == 0 else -gain

    def sigma(self, node: int) -> Floats:
        """The policy of who acts at the node in every deal, [D, A]."""
        cards = self.deals.visible_cards[:, int(self.game.tree.actor[node]), int(self.game.tree.round[node])]
        return self.policy.probabilities(Infosets(torch.full_like(self.rows, node), cards)).double().numpy()

    def value(self, player: int, free: npt.NDArray[np.bool_] | None = None) -> float:
        """The player's mean gain, with the best actions at the nodes in `free` and the policy's everywhere else."""
        free = np.zeros(self.game.tree.num_decisions, bool) if free is None else free
        return float(self._values(0, player, free, np.ones(len(self.rows))).mean())

    def best_response(self, player: int) -> float:
        return self.value(player, np.ones(self.game.tree.num_decisions, bool))

    def _values(self, node: int, player: int, free: npt.NDArray[np.bool_], reach: Floats) -> Any:
        """The player's gain in every deal from `node` on, [D]; `reach` [D] is that of the opponent's actions."""
        tree = self.game.tree
        actor = int(tree.actor[node])
        if actor == TERMINAL:
            return self.payoff(node, player)
        sigma = self.sigma(node)
        legal = np.flatnonzero(tree.legal[node])
        reaches = [reach if actor == player else reach * sigma[:, action] for action in legal]
        children = [int(tree.child[node, action]) for action in legal]
        below = np.stack([self._values(c, player, free, r) for c, r in zip(children, reaches, strict=True)])
        if actor != player or not free[node]:
            return (sigma[:, legal].T * below).sum(axis=0)
        infoset = self.infosets(player, node)
        sums = np.stack([np.bincount(infoset, reach * gain) for gain in below])
        return below[sums.argmax(axis=0)[infoset], np.arange(len(infoset))]


@dataclass(frozen=True)
class Expected:
    """The expected values of a hand of some round: a row for every hand, in ascending order of packed cards."""

    keys: npt.NDArray[np.int64]  # [V] packed cards
    chance: Floats  # [V] that a deal shows the player this canonical hand
    values: Floats  # [V, E] mean over deals of the opponent's reach * (action value - value)
    reach: Floats  # [V, n] mean over deals of the opponent's reach
    own_values: Floats  # [V, E] the player's reach after each action
    own_reach: Floats  # [V, n]


def every_deal(game: PokerGame) -> npt.NDArray[np.uint8]:
    """All ways to deal both hands and the cards of each round, as sets."""
    rules = game.rules
    deals: list[tuple[int, ...]] = [()]
    for count in (rules.hole_cards, rules.hole_cards, *(n for n in rules.board_cards if n)):
        deals = [
            (*dealt, *cards)
            for dealt in deals
            for cards in combinations([c for c in range(rules.num_cards) if c not in dealt], count)
        ]
    return np.array(deals, np.uint8)


def expected_hands(policy: TablePolicy, player: int) -> list[Expected]:
    """The player's advantages and strategy in every round, by playing out every deal."""
    game = policy.game
    deals = game.deals_of(every_deal(game))
    every, tree = torch.arange(len(deals)), game.tree
    values = np.zeros((tree.num_nodes, len(deals)))
    reach = np.ones((2, tree.num_nodes, len(deals)))
    sigma = np.zeros((tree.num_decisions, len(deals), game.encoding.num_actions))
    for node in range(tree.num_decisions):  # parents first
        actor, round_ = int(tree.actor[node]), int(tree.round[node])
        cards = deals.visible_cards[:, actor, round_]
        sigma[node] = policy.probabilities(Infosets(torch.full((len(deals),), node), cards)).numpy()
        for action in np.flatnonzero(tree.legal[node]):
            child = tree.child[node, action]
            reach[:, child] = reach[:, node]
            reach[actor, child] *= sigma[node, :, action]
    for node in range(tree.num_nodes - 1, -1, -1):
        if node >= tree.num_decisions:
            gain = game.payoff(torch.full((len(deals),), node), every, deals).double().numpy()
            values[node] = gain if player == 0 else -gain
            continue
        for action in np.flatnonzero(tree.legal[node]):
            values[node] += sigma[node, :, action] * values[tree.child[node, action]]
    return [
        _expected(game, deals.visible_cards[:, player, round_].numpy(), player, round_, values, reach, sigma)
        for round_ in range(game.rules.num_rounds)
    ]


def _expected(
    game: PokerGame,
    cards: npt.NDArray[np.uint8],
    player: int,
    round_: int,
    values: Floats,
    reach: Floats,
    sigma: Floats,
) -> Expected:
    tree = Boards(game, merge=False).rounds[round_]
    part = RoundPart.of(tree, player)
    keys, canonical, count = np.unique(pack_cards(cards), return_inverse=True, return_counts=True)

    def mean(rows: list[Floats]) -> Floats:
        return (
            np.stack([np.bincount(canonical, row) for row in rows], axis=1) / count[:, None]
            if rows
            else np.empty((0, 0))
        )

    nodes = tree.nodes[part.nodes]
    edges = [(node, action) for node, action in zip(nodes[part.edge_node], tree.edge_action[part.edges], strict=True)]
    other = 1 - player
    return Expected(
        keys=keys,
        chance=count / len(canonical),
        values=mean([reach[other, n] * (values[game.tree.child[n, a]] - values[n]) for n, a in edges]),
        reach=mean([reach[other, n] for n in nodes]),
        own_values=mean([reach[player, n] * sigma[n, :, a] for n, a in edges]),
        own_reach=mean([reach[player, n] for n in nodes]),
    )


def rows_of(hands: HandSamples, expected: Expected) -> npt.NDArray[np.int64]:
    """The row of `expected` of each hand."""
    packed = pack_cards(hands.cards.numpy())
    row = np.searchsorted(expected.keys, packed)
    assert (expected.keys[row] == packed).all()
    return row


def num_hands(game: PokerGame) -> int:
    """Hands before any card is public."""
    return comb(game.rules.num_cards, game.rules.hole_cards)
