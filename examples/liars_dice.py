"""Large liar's dice: a game of your own with too many histories to list, which knows its exact values.

    deepcfr train liars_dice:LiarsDice --out runs/dice        (in this folder)
    python liars_dice.py --solver dcfr --iterations 300

Every bid is higher than the one before, so a public position is a set of bids: a number with a bit for each bid that
was made. Two players with two dice of five faces have 2^20 positions and 15 rolls each, that is 15.7 million infosets
and 1.3 billion histories. OpenSpiel says which bids are true.

`LiarsDice` is the game. Its methods `exact_payoffs` and `average`, which are optional, pass over the positions with all
hands at once. Such a pass is all that CFR needs too: `LiarsDiceCFR` solves the game in tables.

One action from one position leads to a node other than the first, so what belongs to an action is kept by the node
after it. Letters: M positions, H hands; [2 M, H] for what belongs to nodes, whose first row is not used.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.config import RunConfig
from deepcfr.core.compiled import nb
from deepcfr.core.errors import GameError
from deepcfr.core.rng import addressed_uniforms
from deepcfr.core.types import TERMINAL, Encoding, Infosets
from deepcfr.game.base import Deals, Game
from deepcfr.game.cards import pack_cards
from deepcfr.game.openspiel import SpielState, import_pyspiel
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import OnPart, Payoffs, Policy
from deepcfr.solve.base import MatchingSolver

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]

MOST_BIDS = 22  # sets of 22 bids take 0.4 GB as features
_AT_ONCE = 1 << 13  # positions that a policy is asked about together
_UNREACHED = 1e-40  # the share in averages of what no policy's own reach comes to


class LiarsDice:
    """Two-player liar's dice of OpenSpiel by public positions.

    Node m < 2^b is the decision after the set m of bids, bit k for the k-th of the b bids; node 2^b + m is the end
    after that decision calls a liar. Action k is the k-th bid and action b the call. A roll of d dice is a hand: its
    faces in ascending order, without suits. Raises GameError for more than `MOST_BIDS` bids.
    """

    unit, milli_unit = "points", "mpoints/g"

    def __init__(self, rules: str = "liars_dice(numdice=2,dice_sides=5)", device: str = "cpu") -> None:
        self.spiel_game, self.name, self.device = import_pyspiel().load_game(rules), rules, device
        parameters = self.spiel_game.get_parameters()
        self.num_dice, self.num_faces = int(parameters["numdice"]), int(parameters["dice_sides"])
        self.num_bids: int = self.spiel_game.num_distinct_actions() - 1
        if self.num_bids > MOST_BIDS:
            raise GameError(f"'{rules}' has {self.num_bids} bids, and at most {MOST_BIDS} are supported.")
        self.hands = np.array(list(combinations_with_replacement(range(self.num_faces), self.num_dice)), np.uint8)
        rolls = np.sort(np.array(list(product(range(self.num_faces), repeat=self.num_dice)), np.uint8), 1)
        same = (rolls[:, None] == self.hands).all(2)
        self.chance = same.mean(0)  # [H], of each hand
        self.true = self._true_bids()
        self._true = torch.from_numpy(self.true).to(device)
        self._hand_of_roll = torch.from_numpy(same.argmax(1)).to(device)
        self._place_nodes()
        self.movers: Ints = self.actor[: 1 << self.num_bids].cpu().numpy()  # [M]
        # the position before each node, without the highest bit, [2 M]; that of the first one is itself
        self.before: Ints = np.concatenate([[0], *(np.arange(1 << bid) for bid in range(self.num_bids + 1))])
        self.action_ids = np.arange(self.num_bids + 1)
        self.size = f"{1 << self.num_bids:,} public positions, {len(self.hands) << self.num_bids:,} infosets"

    def _true_bids(self) -> Bools:
        """Whether each bid is true, by the hands of players 0 and 1: bool [bids, H, H]; OpenSpiel decides."""
        true = np.empty((self.num_bids, len(self.hands), len(self.hands)), np.bool_)
        for first, second in np.ndindex(true.shape[1:]):
            dealt = self.spiel_game.new_initial_state()
            for face in (*self.hands[first].tolist(), *self.hands[second].tolist()):
                dealt.apply_action(face)
            for bid in range(self.num_bids):
                state = dealt.child(bid)
                state.apply_action(self.num_bids)
                true[bid, first, second] = state.returns()[0] > 0  # player 0 has bid
        return true

    def _place_nodes(self) -> None:
        bids, device = self.num_bids, self.device
        mask = torch.arange(1 << bids, device=device)
        made = (mask[:, None] >> torch.arange(bids, device=device)) & 1  # [positions, bids]
        after = torch.zeros(2 << bids, bids + 1, dtype=torch.bool, device=device)
        after[: 1 << bids, :bids] = mask[:, None] < 1 << torch.arange(bids, device=device)  # bids above the last
        after[1 : 1 << bids, bids] = True
        self.last_bid = torch.log2(mask.clamp(min=1).double()).long()  # of the first position it is not used
        mover = made.sum(1) & 1
        self.actor = torch.cat([mover, torch.full_like(mask, TERMINAL)])
        self.round = torch.zeros_like(self.actor)
        self.infoset = torch.cat([mask, torch.zeros_like(mask)])
        self.legal = after
        self.deals_before = torch.zeros_like(self.actor)
        self.deals_before[0] = 2 * self.num_dice
        self.encoding = Encoding(
            made.float(), after[: 1 << bids], card_groups=(self.num_dice,), num_ranks=self.num_faces, num_suits=1
        )

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        traversal = torch.arange(first, first + count, device=self.device)
        roll = torch.zeros(count, 2, dtype=torch.int64, device=self.device)
        for die in range(2 * self.num_dice):
            uniform = addressed_uniforms(stream, traversal, torch.full_like(traversal, die)).double()
            player = die // self.num_dice
            roll[:, player] = roll[:, player] * self.num_faces + (uniform * self.num_faces).long()
        hand = self._hand_of_roll[roll]  # [B, 2]
        cards = torch.from_numpy(self.hands).to(self.device)[hand][:, :, None]
        return Deals(traversal, cards, hidden=hand)

    def start(self, deals: Deals) -> torch.Tensor:
        return torch.zeros_like(deals.traversal)

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return node + (1 << action)  # the call is the bit that ends are marked with

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        position = node - (1 << self.num_bids)
        first, second = deals.hidden[row].unbind(1)
        won = self._true[self.last_bid[position], first, second] == (self.actor[position] == 1)  # 0 bids, 1 calls
        return won.float() * 2 - 1

    def infoset_of(self, state: SpielState, player: int) -> Infosets:
        """The infoset of a player at OpenSpiel's state, optional: it lets agents play in OpenSpiel."""
        rolled, bids = state.history()[: 2 * self.num_dice], state.history()[2 * self.num_dice :]
        hand = sorted(rolled[player * self.num_dice :][: self.num_dice])
        node = torch.tensor([sum(1 << bid for bid in bids)], device=self.device)
        return Infosets(node, torch.tensor([hand], dtype=torch.uint8, device=self.device))

    def exact_payoffs(self, first: Policy, second: Policy, threads: int = 1, on_part: OnPart | None = None) -> Payoffs:  # noqa: ARG002
        mine, theirs = table_of(first), table_of(second)

        def mean(player: int, *, best: bool) -> float:
            own = (self.movers == player)[self.before, None]
            table = theirs if best or mine is theirs else np.where(own, mine, theirs)
            return float(counterfactual_values(self, table, player, best=best)[0] @ self.chance)

        zero, one = ((mean(player, best=True), mean(player, best=False)) for player in (0, 1))
        return zero, one

    def average(self, policies: Sequence[Policy], weights: Doubles, kind: str) -> Policy:
        total = np.zeros((len(self.before), len(self.hands)))
        for policy, weight in zip(policies, weights, strict=True):
            table = table_of(policy)
            first, second = (reach_of(table, self.movers, self.chance, player) for player in (0, 1))
            own = np.where((self.movers == 0)[:, None], first, second)
            total += weight * (own[self.before] + _UNREACHED) * table
        return LiarsDiceTable(self, match_weights(total), kind)


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

    def on_hands(self, nodes: Ints, cards: npt.NDArray[np.uint8]) -> Floats:
        return self._rows(nodes[:, None], np.searchsorted(self._hands, pack_cards(cards)))

    def _rows(self, node: Ints, hand: Ints) -> Floats:
        """Probabilities [..., A] at nodes and hands that broadcast."""
        actions = np.arange(self._legal.shape[1])
        after = np.where(self._legal[node], node[..., None] + (1 << actions), 0)
        return np.where(after > 0, self.table[after, hand[..., None]], 0)


def table_of(policy: Policy) -> Floats:
    """The table of any policy of the game, float32 [2 M, H]."""
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


def counterfactual_values(game: LiarsDice, table: Floats, player: int, *, best: bool = False) -> Doubles:
    """A player's value of every node with each hand, weighted by chance and the opponent's reach, float64 [2 M, H].

    Its own part is that of `table` or, if `best`, a best response. The first row is that of the first position.
    """
    # to the player whose bid is called, by bid and both hands; a bid counts all dice, so it does not matter whose is
    # whose
    payoff = np.where(game.true, 1.0, -1.0)
    return _values(table, game.movers, reach_of(table, game.movers, game.chance, 1 - player), payoff, player, best)


@nb.njit(cache=True, nogil=True)
def reach_of(table: Floats, mover: Ints, chance: Doubles, player: int) -> Doubles:
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
def _values(table: Floats, mover: Ints, against: Doubles, payoff: Doubles, player: int, best: bool) -> Doubles:
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


class LiarsDiceCFR(MatchingSolver):
    """Full-width CFR in its variants, with all hands of both players in one pass; sources as in `solve.sequence_form`.

    Players are updated in turn. The regrets of an action are those of all hands, [2 M, H] by the node after it, in
    single precision. Where no regret is positive, all legal actions have equal probability. Raises ConfigError for an
    algorithm that is not full-width.
    """

    name = "liars-dice-cfr"
    game: LiarsDice
    precision = "float32"

    def __init__(self, game: LiarsDice, config: RunConfig) -> None:
        super().__init__(game, config, (2 << game.num_bids, len(game.hands)))

    def _iterate(self) -> int:
        mover = self.game.movers
        for player in (0, 1):
            table = match_weights(self.matched)
            values = counterfactual_values(self.game, table, player)
            reach = reach_of(table, mover, self.game.chance, player)
            tables = self.regret, self.average, self.matched, self.variant.predictive
            factors = (*self.variant.factors(self.iteration + 1), self.variant.floor)
            _update(*tables, table, values, reach, mover == player, *factors)
        return 2 * self.regret.size

    def _policy(self, weights: Floats, name: str) -> LiarsDiceTable:
        return LiarsDiceTable(self.game, match_weights(weights), name)


@nb.njit(cache=True, nogil=True)
def _update(
    regret: Floats,
    average: Floats,
    matched: Floats,
    predictive: bool,
    table: Floats,
    values: Doubles,
    reach: Doubles,
    mine: Bools,
    positive: float,
    negative: float,
    past: float,
    floor: bool,
) -> None:
    """Add an iteration's counterfactual regrets and strategy of one player to the sums, which shrink by the factors."""
    positions, hands = reach.shape
    bit = 1
    for after in range(1, 2 * positions):
        if after == 2 * bit:
            bit = after
        node = after - bit
        if not mine[node] or after == positions:  # nothing is called before the first bid
            continue
        for hand in range(hands):
            gain = values[after, hand] - values[node, hand]
            old = regret[after, hand]
            new = old * (positive if old > 0 else negative) + gain
            regret[after, hand] = max(new, 0.0) if floor else new
            if predictive:
                matched[after, hand] = regret[after, hand] + gain
            average[after, hand] = average[after, hand] * past + reach[node, hand] * table[after, hand]


def main() -> None:
    """Solve the game in tables, and print the exact NashConv at some iterations and at the end."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rules", default="liars_dice(numdice=2,dice_sides=5)", help="the game, in OpenSpiel's words")
    parser.add_argument("--solver", default="dcfr", help="a full-width algorithm of deepcfr solve")
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--at", type=int, nargs="*", default=[20, 50, 100, 200], help="iterations to measure at")
    asked = parser.parse_args()
    config = RunConfig(solver=asked.solver, iterations=asked.iterations)
    solver = LiarsDiceCFR(LiarsDice(asked.rules), config)
    print(f"{solver.describe()}, {solver.game.size}", flush=True)
    for record in solver.iterations():
        if record.iteration in (*asked.at, asked.iterations):
            exact = exploitability(solver.average_policy())
            bounds = (
                f"the value is between {-exact.best_response_values[1]:.3f} and {exact.best_response_values[0]:.3f}"
            )
            print(f"iteration {record.iteration}: NashConv {exact.nash_conv:.3f} {exact.unit}, {bounds}", flush=True)


if __name__ == "__main__":
    main()
