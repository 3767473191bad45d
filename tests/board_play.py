"""Random strategies on small poker games, and what every hand's advantages are with them, from every deal."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Boards
from deepcfr.boards.public_chance import RoundPart
from deepcfr.core.types import HandSamples, Infosets
from deepcfr.game.cards import pack_cards
from deepcfr.game.poker import PokerGame
from deepcfr.policy.tables import TablePolicy, canonical_hands

Floats = npt.NDArray[np.float64]


def random_policy(game: PokerGame, seed: int) -> TablePolicy:
    """Independent probabilities at every infoset, a fifth of the actions hardly ever played."""
    rng = np.random.default_rng(seed)
    tables = []
    for round_, hands in enumerate(canonical_hands(game)):
        legal = game.tree.legal[: game.tree.num_decisions][game.tree.round[: game.tree.num_decisions] == round_]
        weights = rng.exponential(size=(len(legal), len(hands), legal.shape[1]))
        weights = (weights * (rng.random(weights.shape) < 0.8) + 1e-9) * legal[:, None, :]
        tables.append(weights / weights.sum(axis=2, keepdims=True))
    return TablePolicy(game, tables)


def all_infosets(game: PokerGame) -> Infosets:
    """Every infoset of a game, once."""
    nodes, cards = [], []
    for round_, hands in enumerate(canonical_hands(game)):
        here = np.flatnonzero(game.tree.round[: game.tree.num_decisions] == round_)
        nodes.append(np.repeat(here, len(hands)))
        cards.append(np.tile(hands, (len(here), 1)))
    return Infosets(torch.from_numpy(np.concatenate(nodes)), torch.from_numpy(np.concatenate(cards)))


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
