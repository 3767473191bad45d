"""Search that stops at the next round, where a network says what all hands are worth.

    python -m experiments.value_network fhp --out runs/flops.pt
    python -m experiments.value_search runs/flops.pt
    python -m experiments.value_network hulh --round 2 --out runs/turns.pt
    python -m experiments.value_search runs/turns.pt --agent hulh --boards 40

The first search plays flop hold'em from nothing, and its NashConv is exact: the betting before the flop is solved with the
network's values, and flops are solved to the end. The second one solves the flop of an agent's limit hold'em, and plays a
match against the agent itself.

Discounted CFR solves the round. Its leaves are the boards of the next one, some of which are visited in each iteration.
Half of the equity, the larger part of what a hand is worth there, is known for all boards at once, so only what the network
adds to it is estimated from those.

Source: Moravčík et al. 2017, "DeepStack".
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.api import load
from deepcfr.config import SearchConfig
from deepcfr.evaluation.check_down import CheckDown
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.evaluation.local_best_response import local_best_response
from deepcfr.evaluation.match.boards import boards_match
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_game
from deepcfr.ladder.listed import listed
from deepcfr.policies.base import Policy
from deepcfr.policies.scripted import scripted_policy
from deepcfr.ranges.boards import Board, Boards
from deepcfr.ranges.kernels import add_up
from deepcfr.ranges.sweep import Scratch
from deepcfr.ranges.tables import Table
from deepcfr.rng import key
from deepcfr.search.policy import ResolvingPolicy
from deepcfr.solvers.tabular import DISCOUNTED
from deepcfr.solvers.vector_cfr import update
from experiments.value_network import PLAYERS, Doubles, Hands, Ints, Samples, ValueNetwork, paid_at

Floats = npt.NDArray[np.floating]
Network = Callable[[Samples, torch.Tensor], torch.Tensor]
GOLDEN = (5**0.5 - 1) / 2
_TOGETHER = 4  # entries that the network sees together: their layers stay in the cache
_KEPT = 64  # boards whose hands stay in memory: all turns after a flop


class Leaves:
    """Values of hands at the end of a round on `board`, by the network; either player has `paid` [X] by then."""

    def __init__(self, boards: Boards, board: Board, paid: Doubles, network: Network) -> None:
        self.paid, self._network = paid, network
        check_down = CheckDown(boards.game.rules)
        self._results = Hands(board, check_down).results
        self._children = boards.children(board)
        self._copies = np.cumsum([child.copies for child in self._children])
        children = self._children  # without `self`, which would keep all of this until a collection of garbage
        self._hands = lru_cache(_KEPT)(lambda place: Hands(children[place], check_down))

    def mean(self, at_exits: Floats, start: float, count: int) -> Doubles:
        """An estimate of both players' values [2, X, U] for their reach [2, X, U], from `count` boards of the next round.

        The boards are as far from each other as can be in the order of their cards, which begins at `start`, from 0 to 1.
        The estimate is unbiased if that is random.
        """
        total: Doubles = np.asarray(at_exits, np.float64)[::-1] @ self._results.T * self.paid[:, None]
        for place in np.searchsorted(self._copies, (np.arange(count) + start) / count * self._copies[-1], side="right"):
            child = self._children[place]
            values = self.values(int(place), np.ascontiguousarray(at_exits[:, :, child.up], np.float64), rest=True)
            add_up(values, child.up, child.weight * self._copies[-1] / (count * child.copies), total)
        return total

    def values(self, place: int, reach: Doubles, *, rest: bool = False) -> Doubles:
        """Counterfactual values of both players, [2, X, U], on a board of the next round with `reach` [2, X, U].

        With `rest` without half of the equity.
        """
        seen, met = self._hands(place).describe(self.paid, reach)
        some = torch.split(torch.arange(len(seen.group)), 2 * reach.shape[2] * _TOGETHER)
        with torch.no_grad():
            gains = torch.cat([self._network(seen, rows) for rows in some])
        if rest:
            gains = gains - 0.5 * seen.equity
        by_hand: Doubles = gains.numpy().reshape(len(self.paid), 2, -1).swapaxes(0, 1) * seen.pot.numpy()[:, None] * met
        return by_hand


class ValueSearch(ResolvingPolicy):
    """`policy` with round `round_` solved up to the next one, with `visits` boards of it in each of `iterations`.

    Later rounds are searched to the end as `settings` say, or played by `policy` without them. The boards that are visited
    depend on the names of suits.
    """

    def __init__(
        self,
        policy: Policy,
        network: Network,
        round_: int,
        settings: SearchConfig | None,
        *,
        iterations: int,
        visits: int,
        seed: int = 0,
    ) -> None:
        super().__init__(policy, settings or SearchConfig(kind="unsafe"))
        assert self.settings.kind == "unsafe"
        tree = self._boards.rounds[round_]
        self._network, self._round, self._seed = network, round_, seed
        self._iterations, self._visits = iterations, visits
        self._searched = (round_, *(self._searched if settings else ()))
        self._sizes[round_] = np.bincount(tree.entry_of_slot[: len(tree.nodes)], minlength=len(tree.entries))
        self.kind = f"{policy.kind}, network leaves"

    def _in_subgame(self, board: Board, entries: Ints, player: int) -> Floats:
        if board.round != self._round:
            return super()._in_subgame(board, entries, player)
        game, lines = self.game, self._lines(board.round, entries)
        trees, root, tree = list(self._boards.rounds), replace(board, index=0), lines.tree
        trees[board.round] = tree
        boards = Boards(game, merge=game.suits == "canonical", root=root, rounds=trees)
        leaves = Leaves(boards, root, paid_at(game, trees[board.round + 1])[lines.exits], self._network)
        regrets, averages = (Table(tree, [root], np.float64) for _ in range(2))
        tables = [regrets] * len(trees), [averages] * len(trees)  # of this round only
        reach, scratch = self._reach(board, entries), Scratch()
        start = np.random.default_rng(key(self._seed, "leaves", *board.cards)).random()
        for t in range(1, self._iterations + 1):
            for traverser in PLAYERS:
                start = (start + GOLDEN) % 1  # such steps visit all boards as evenly as can be

                def deal(at_exits: Floats, traverser: int = traverser, start: float = start) -> Doubles:
                    return leaves.mean(at_exits, start, self._visits)[traverser : traverser + 1]

                update(trees, tables, traverser, DISCOUNTED, t, scratch)(root, reach, deal)
        sums = averages.load(root)
        total, learnt = (
            np.add.reduceat(np.abs(table.load(root)), tree.first_edge[:-1], axis=0)[tree.edge_node]
            for table in (averages, regrets)
        )
        strategy = np.array(self._plain(lines, board), np.float32)  # where nothing was learnt, as in `on_first_board`
        np.divide(sums, total, out=strategy, where=(total > 0) & (learnt > 0), casting="same_kind")
        return strategy


def exact(network: Network, options: argparse.Namespace) -> dict[str, object]:
    """Flop hold'em from nothing, and its exact NashConv."""
    settings = SearchConfig(kind="unsafe", iterations=options.search)
    uniform = scripted_policy("uniform", load_game("fhp"))
    policy = ValueSearch(
        uniform, network, 0, settings, iterations=options.iterations, visits=options.visits, seed=options.seed
    )
    result = exploitability(policy, threads=options.threads)
    return {"nash_conv": result.nash_conv, "best_responses": result.best_response_values, "value": result.value}


def against_itself(network: Network, options: argparse.Namespace) -> dict[str, object]:
    """Matches of an agent with search against itself without and, if asked, local best responses, on the same boards."""
    plain = listed(load(options.agent).policy)
    assert isinstance(plain, Policy)
    assert isinstance(plain.game, PokerGame)
    to_end = SearchConfig(kind="unsafe", iterations=options.search)
    leaves = {"iterations": options.iterations, "visits": options.visits, "seed": options.seed}
    arms: dict[str, Callable[[], Policy]] = {
        "river": lambda: ResolvingPolicy(plain, to_end),
        "flop": lambda: ValueSearch(plain, network, 1, None, **leaves),
        "both": lambda: ValueSearch(plain, network, 1, to_end, **leaves),
    }
    found: dict[str, object] = {}
    for name in options.arms:
        begun, policy = time.process_time(), arms[name]()
        match = boards_match(policy, plain, options.boards, options.seed, threads=options.threads)
        facts = {"mean": match.value, "interval": match.interval, "seats": match.seats}
        if options.lbr:
            bound = local_best_response(policy, options.boards, options.seed, threads=options.threads)
            facts |= {"bound": bound.mean, "bound_interval": bound.interval}
        found[name] = facts | {"seconds": time.process_time() - begun}
        print(json.dumps({name: found[name]}), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", type=Path)
    parser.add_argument("--agent", help="play limit hold'em against this agent, in place of flop hold'em")
    parser.add_argument("--arms", nargs="+", choices=("river", "flop", "both"), default=["river", "flop", "both"])
    parser.add_argument("--lbr", action="store_true", help="measure a local best response to each arm too")
    for name, number in {"iterations": 200, "visits": 40, "search": 100, "boards": 40, "threads": 1, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    stored = torch.load(options.network)
    network = ValueNetwork(stored["width"])
    network.load_state_dict(stored["weights"])
    found = (against_itself if options.agent else exact)(network, options)
    print(json.dumps(found | {"processor_seconds": time.process_time()}), flush=True)


if __name__ == "__main__":
    main()
