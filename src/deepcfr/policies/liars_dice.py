"""Liar's dice by public positions: tables of strategies, and exact values of all hands at all positions in one pass.

One action from one position leads to a node other than the first, so what belongs to an action is kept by the node after
it. Letters: M positions, H hands; [2 M, H] for what belongs to nodes, whose first row is not used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.compiled import nb
from deepcfr.games.base import Game
from deepcfr.games.cards import pack_cards
from deepcfr.games.liars_dice import LiarsDice
from deepcfr.policies.base import Cards, Ints, Policy
from deepcfr.types import Infosets

Floats = npt.NDArray[np.floating]
_AT_ONCE = 1 << 13  # positions that a policy is asked about together
UNREACHED = 1e-40  # the share in averages of what no policy's own reach comes to


class LiarsDiceTable(Policy):
    """The probabilities with which each hand acts towards each node, [2 M, H]."""

    def __init__(self, game: LiarsDice, table: Floats, kind: str = "table") -> None:
        self.game: Game = game
        self.table, self.kind = table, kind
        self._hands, self._legal = pack_cards(game.hands), game.encoding.legal.cpu().numpy()

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        hand = np.searchsorted(self._hands, pack_cards(infosets.cards.cpu().numpy()))
        rows = self._rows(infosets.node.cpu().numpy().astype(np.int64), hand)
        return torch.from_numpy(rows).to(infosets.cards.device)

    def on_hands(self, nodes: Ints, cards: Cards) -> Floats:
        return self._rows(nodes[:, None], np.searchsorted(self._hands, pack_cards(cards)))

    def _rows(self, node: Ints, hand: Ints) -> Floats:
        """Probabilities [..., A] at nodes and hands that broadcast."""
        actions = np.arange(self._legal.shape[1])
        after = np.where(self._legal[node], node[..., None] + (1 << actions), 0)
        return np.where(after > 0, self.table[after, hand[..., None]], 0)


def table_of_dice(policy: Policy) -> Floats:
    """The table of any policy of liar's dice, float32 [2 M, H]."""
    game = policy.game
    assert isinstance(game, LiarsDice)
    if isinstance(policy, LiarsDiceTable):
        return policy.table
    bids = game.num_bids
    table = np.ones((2 << bids, len(game.hands)), np.float32)
    for first in range(0, 1 << bids, _AT_ONCE):
        nodes = np.arange(first, min(first + _AT_ONCE, 1 << bids))
        rows = policy.on_hands(nodes, game.hands)
        for action in range(bids + 1):
            some = nodes[nodes < 1 << action]
            table[some + (1 << action)] = rows[: len(some), :, action]
    return table


def dice_values(policy: Policy) -> tuple[tuple[float, float], float]:
    """Each player's mean payoff by a best response to the other's part of the policy, and player 0's if both play it."""
    game, table = policy.game, table_of_dice(policy)
    assert isinstance(game, LiarsDice)
    return (_mean(game, table, 0, best=True), _mean(game, table, 1, best=True)), _mean(game, table, 0)


def dice_gains(first: Policy, second: Policy) -> tuple[float, float]:
    """The mean payoffs of the first policy as player 0 and as player 1 against the second."""
    game = first.game
    assert isinstance(game, LiarsDice)
    mine, theirs = table_of_dice(first), table_of_dice(second)
    zero = (game.movers == 0)[_before(game), None]
    return _mean(game, np.where(zero, mine, theirs), 0), _mean(game, np.where(zero, theirs, mine), 1)


def dice_average(game: LiarsDice, policies: Sequence[Policy], weights: Floats, kind: str) -> LiarsDiceTable:
    """The average by own reach times `weights`, as in `policies.mixture`."""
    before = _before(game)
    total = np.zeros((len(before), len(game.hands)))
    for policy, weight in zip(policies, weights, strict=True):
        table = table_of_dice(policy)
        first, second = (reach_of(table, game.movers, game.chance, player) for player in (0, 1))
        own = np.where((game.movers == 0)[:, None], first, second)
        total += weight * (own[before] + UNREACHED) * table
    return LiarsDiceTable(game, match_weights(total), kind)


def _before(game: LiarsDice) -> Ints:
    """The position before each node, without the highest bit, [2 M]; that of the first one is itself."""
    return np.concatenate([np.zeros(1, np.int64), *(np.arange(1 << bid) for bid in range(game.num_bids + 1))])


def _mean(game: LiarsDice, table: Floats, player: int, *, best: bool = False) -> float:
    return float(counterfactual_values(game, table, player, best=best)[0] @ game.chance)


def counterfactual_values(
    game: LiarsDice, table: Floats, player: int, *, best: bool = False
) -> npt.NDArray[np.float64]:
    """A player's value of every node with each hand, weighted by chance and the opponent's reach, float64 [2 M, H].

    Its own part is that of `table` or, if `best`, a best response. The first row is that of the first position.
    """
    # to the player whose bid is called, by bid and both hands; a bid counts all dice, so it does not matter whose is whose
    payoff = np.where(game.true, 1.0, -1.0)
    return _values(table, game.movers, reach_of(table, game.movers, game.chance, 1 - player), payoff, player, best)


@nb.njit(cache=True, nogil=True)
def reach_of(table: Floats, mover: Ints, chance: Floats, player: int) -> npt.NDArray[np.float64]:
    """The chance of each hand times the probability of the player's bids with it, float64 [M, H]."""
    reach = np.empty((len(mover), len(chance)))
    reach[0] = chance
    bid = 1
    for node in range(1, len(mover)):
        if node == 2 * bid:
            bid = node
        before = node - bid
        reach[node] = reach[before] * table[node] if mover[before] == player else reach[before]
    return reach


@nb.njit(cache=True, nogil=True)
def _values(
    table: Floats, mover: Ints, against: Floats, payoff: Floats, player: int, best: bool
) -> npt.NDArray[np.float64]:
    positions, hands = against.shape
    values = np.zeros((2 * positions, hands))
    bids = len(payoff)
    last = bids - 1
    for node in range(positions - 1, -1, -1):
        while last >= 0 and node < 1 << last:
            last -= 1
        own = mover[node] == player
        if node:
            call = positions + node
            for mine in range(hands):
                for other in range(hands):
                    reach = against[node, other] * (1.0 if own else table[call, other])
                    values[call, mine] += (-reach if own else reach) * payoff[last, mine, other]
        for action in range(last + 1, bids + (1 if node else 0)):
            after = node + (1 << action)
            for hand in range(hands):
                if not own:
                    values[node, hand] += values[after, hand]
                elif not best:
                    values[node, hand] += table[after, hand] * values[after, hand]
                elif action == last + 1 or values[after, hand] > values[node, hand]:
                    values[node, hand] = values[after, hand]
    return values


@nb.njit(cache=True, nogil=True)
def match_weights(weight: Floats) -> Floats:
    """Probabilities in proportion to positive weights [2 M, H], uniform where there are none; in their type."""
    table = np.ones_like(weight)
    positions, hands = len(weight) // 2, weight.shape[1]
    bids = 0
    while 1 << bids < positions:
        bids += 1
    lowest = 0  # legal bid
    for node in range(positions):
        if node >= 1 << lowest:
            lowest += 1
        actions = range(lowest, bids + (1 if node else 0))
        for hand in range(hands):
            total = 0.0
            for action in actions:
                total += max(weight[node + (1 << action), hand], 0)
            for action in actions:
                after = node + (1 << action)
                table[after, hand] = max(weight[after, hand], 0) / total if total > 0 else 1 / len(actions)
    return table
