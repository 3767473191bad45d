"""The effect of noise in advantages: Linear CFR in limit hold'em on bucket tables with disturbed mean regrets.

    python -m experiments.regret_noise runs/b200 runs/rival --noise 0.02 --noise 0.06

Traversals and their order are those of Deep CFR: strategies are fixed within an iteration. Tables over the buckets of an
abstraction replace the networks; they have the weighted mean of all sampled regrets. Like the error of a fit, new noise
with a standard deviation of `--noise` times the pot is added to every mean in every iteration. The current strategy plays
the average strategy of a run in duplicate deals; results are in mbb/g with a 95 % interval over deals.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import torch

from deepcfr.abstraction.files import load_abstraction
from deepcfr.config import CFRConfig
from deepcfr.evaluation.match import sampled_match
from deepcfr.games.base import Deals
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_rules
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import FirstRound, WithFirstRound
from deepcfr.policies.matching import regret_matching
from deepcfr.rng import addressed_uniforms, key
from deepcfr.runs.folder import RunFolder
from deepcfr.sampling.external import Strategy, Traversals, traverse
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.histories import with_table
from deepcfr.types import Infosets, Samples

CHUNK, DEALS, THREADS, SEED, MATCH_SEED = 625, 200_000, 2, 0, 1


class BucketTables(Policy):
    """Weighted sums of sampled regrets for every decision and bucket, and their strategy."""

    game: PokerGame
    kind = "regret matching on bucket tables"

    def __init__(self, game: PokerGame, folder: Path, noise: float) -> None:
        self.game, self.noise = game, noise
        self.buckets = load_abstraction(folder, game.rules)
        self.most = max(self.buckets.counts)
        rows, actions = len(game.encoding.legal) * self.most, game.encoding.num_actions
        self.sums = torch.zeros(rows, actions, dtype=torch.float64)
        self.weight = torch.zeros(rows, dtype=torch.float64)
        self.round, self.iteration = torch.as_tensor(game.round).long(), 0

    def bucket(self, round_: int, cards: torch.Tensor) -> torch.Tensor:
        """The buckets of cards in the game's encoding, uint8 [I, C] to int64 [I]; 0 in the first round."""
        if round_ == 0:
            return torch.zeros(len(cards), dtype=torch.int64)
        hole, known = self.game.rules.hole_cards, sum(self.game.rules.board_cards[: round_ + 1])
        hand, board = cards[:, :hole].numpy(), cards[:, hole : hole + known].numpy()
        found = self.buckets.buckets(round_, np.ascontiguousarray(hand), np.ascontiguousarray(board))
        return torch.from_numpy(found).long()

    def rows(self, infosets: Infosets) -> torch.Tensor:
        """The row of each infoset, int64 [I]."""
        node = infosets.node.long()
        bucket = torch.zeros_like(node)
        for round_ in set(self.round[node].tolist()):
            here = self.round[node] == round_
            bucket[here] = self.bucket(round_, infosets.cards[here])
        return node * self.most + bucket

    def matched(self, node: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The strategy at some rows, float32 [I, A]."""
        mean = self.sums[rows] / self.weight[rows].clamp(min=1e-9)[:, None]
        if self.noise:
            actions = torch.arange(mean.shape[1])
            uniform = addressed_uniforms(key(SEED, "noise", self.iteration), rows[:, None], actions)
            mean += (self.noise * self.game.pot[node])[:, None] * 12**0.5 * (uniform - 0.5)
        return regret_matching(mean.float(), self.game.encoding.legal[node])

    def strategy(self, player: int, deals: Deals, first: FirstRound) -> Strategy:
        """The strategy of one player on some deals, for traversals."""
        views = deals.views[:, player]
        bucket = torch.stack([self.bucket(round_, views[:, round_]) for round_ in range(views.shape[1])], 1)

        def later(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            return self.matched(node, node * self.most + bucket[row, self.round[node]])

        return with_table(self.game, later, first, deals, player)

    def add(self, samples: Samples) -> None:
        """Add sampled regrets with the weights of Linear CFR."""
        rows, weight = self.rows(samples.infosets), samples.iteration.double()
        self.sums.index_add_(0, rows, weight[:, None] * samples.target.double())
        self.weight.index_add_(0, rows, weight)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        """The current strategy as a policy, float64 [I, A]."""
        return self.matched(infosets.node.long(), self.rows(infosets)).double()


def main() -> None:
    """Print the gain of the current strategy after some iterations, for every noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("abstraction", type=Path, help="what `deepcfr abstract hulh` wrote")
    parser.add_argument("rival", type=Path, help="a run of hulh, of which the average strategy is met")
    parser.add_argument("--noise", type=float, action="append", help="standard deviation in units of the pot")
    parser.add_argument("--traversals", type=int, default=30_000, help="in each iteration, for each player")
    parser.add_argument("--at", type=int, nargs="+", default=[16, 24, 32], help="iterations after which it is met")
    options = parser.parse_args()
    for noise in options.noise or [0.0]:
        run(options, noise)


def run(options: argparse.Namespace, noise: float) -> None:
    """Run the requested iterations with one noise."""
    game = PokerGame(load_rules("hulh"))
    rival = RunFolder.open(options.rival).load_policy("average", print)[0]
    tables, first_round = BucketTables(game, options.abstraction, noise), FirstRoundTable(game, CFRConfig())
    workers = Workers(THREADS)
    for t in range(1, max(options.at) + 1):
        tables.iteration = t
        for player in (0, 1):
            ask = partial(traversals, game, tables, first_round.strategy(), options.traversals, t, player)
            for found in list(workers.map(ask, range(0, options.traversals, CHUNK))):
                early = [tables.round[s.infosets.node.long()] == 0 for s in (found.advantages, found.strategies)]
                first_round.add_samples(found.advantages[early[0]], found.strategies[early[1]], t)
                tables.add(found.advantages[~early[0]])
        if t in options.at:
            policy = WithFirstRound(tables, first_round.strategy())
            match = sampled_match(policy, rival, DEALS, MATCH_SEED, threads=THREADS)
            print(f"noise {noise:g}, iteration {t}: {match.value:+.1f} ± {match.interval:.1f} mbb/g", flush=True)


def traversals(
    game: PokerGame, tables: BucketTables, first: FirstRound, total: int, t: int, player: int, begin: int
) -> Traversals:
    """One chunk of a player's traversals in iteration t, which starts at number `begin` of `total`."""
    deals = game.deal(min(CHUNK, total - begin), key(SEED, "deal", t, player), begin)
    mine, theirs = (tables.strategy(p, deals, first) for p in (0, 1))
    return traverse(game, deals, player, (mine, theirs), key(SEED, "action", t, player), t)


if __name__ == "__main__":
    main()
