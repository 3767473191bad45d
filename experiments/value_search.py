"""Flop hold'em by search alone, measured exactly: a value network before the flop, and solved flops.

    python -m experiments.value_network fhp --out runs/values.pt
    python -m experiments.value_search runs/values.pt --kind gadget

Discounted CFR solves the betting before the flop. Its leaves are the flops, some of which are visited in each iteration;
what each hand is worth there by both ranges says the network. Half of the equity, the larger part of that, is known for all
flops at once, so only the rest is estimated from those. When play comes to a flop, the flop is solved by the ranges
that arrive: either for them alone, or safely, where the opponent's alternative is again what the network says.

Source: Moravčík et al. 2017, "DeepStack".
"""

from __future__ import annotations

import argparse
import json
import time
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.config import SearchConfig
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_game
from deepcfr.policies.base import Policy
from deepcfr.policies.scripted import scripted_policy
from deepcfr.ranges.boards import Board, Boards, Deal
from deepcfr.ranges.kernels import add_up
from deepcfr.ranges.rounds import RoundTree
from deepcfr.ranges.sweep import BoardStrategy, RoundPass, Scratch
from deepcfr.ranges.tables import Table
from deepcfr.search.policy import ResolvingPolicy
from deepcfr.search.subgame import Entrance, Gadget, subgame
from deepcfr.solvers.tabular import DISCOUNTED
from deepcfr.solvers.vector_cfr import update
from deepcfr.types import Infosets
from experiments.value_network import PLAYERS, Doubles, Sampler, ValueNetwork

Floats = npt.NDArray[np.floating]
GOLDEN = (5**0.5 - 1) / 2


class Leaves:
    """Values of hands on the flop, by the network."""

    def __init__(self, game: PokerGame, network: ValueNetwork) -> None:
        self.boards = Boards(game, merge=True, keep=True)
        self._network, self._sampler = network, Sampler(scripted_policy("call", game), 1, 0)
        self._strength: dict[tuple[int, ...], Doubles] = {}

    @cached_property
    def before(self) -> Board:
        """The empty board of the first round."""
        (board,) = self.boards.children(self.boards.root)
        return board

    @cached_property
    def checked(self) -> Doubles:
        """Gains of each view against each of the opponent's, [U, U], over all flops, if both paid 1 big blind and check."""
        rounds, size, scratch = self.boards.rounds, len(self.before), Scratch()
        paid, calls = self.paid, scripted_policy("call", self.boards.game).on_board

        def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
            play = RoundPass(rounds[1], board, reach, scratch)
            play.down(calls(rounds[1], board))
            return play.up(((0, False),), deal)[:, rounds[1].entries]

        found = []
        for views in np.array_split(np.arange(size), -(-size // len(paid))):
            reach = np.zeros((2, len(paid), size))
            reach[0] = 1
            reach[1, np.arange(len(views)), views] = 1
            found.append((self.boards.deal(visit, self.before, reach)[0] / paid[:, None])[: len(views)])
        by_view: Doubles = np.concatenate(found).T
        return by_view

    @property
    def paid(self) -> Doubles:
        """The big blinds that each player has put in before the flop, by entry [X]."""
        chips = self.boards.game.tree.chips[self.boards.rounds[1].entry_nodes]
        paid: Doubles = chips[:, 0] / self.boards.game.rules.unit_chips
        return paid

    def mean(self, at_exits: Floats, start: float, count: int) -> Doubles:
        """An estimate of both players' values [2, X, U] before the flop, from `count` flops.

        They are as far from each other as can be in the order of their cards, which begins at `start`, from 0 to 1. The
        estimate is unbiased if that is random.
        """
        flops = self.boards.children(self.before)
        copies = np.cumsum([flop.copies for flop in flops])
        total: Doubles = np.asarray(at_exits, np.float64)[::-1] @ self.checked.T * self.paid[:, None]
        for place in np.searchsorted(copies, (np.arange(count) + start) / count * copies[-1], side="right"):
            flop = flops[place]
            inside = subgame(self.boards.game, self.boards.rounds, flop, np.arange(at_exits.shape[1]))
            values = self.values(inside, np.ascontiguousarray(at_exits[:, :, flop.up], np.float64), rest=True)
            add_up(values, flop.up, flop.weight * copies[-1] / (count * flop.copies), total)
        return total

    def values(self, inside: Boards, reach: Doubles, *, rest: bool = False) -> Doubles:
        """Counterfactual values of both players, [2, X, U], at the entries of `inside` with `reach` [2, X, U].

        With `rest` without half of the equity.
        """
        flop = inside.root
        if flop.cards not in self._strength:
            self._strength[flop.cards] = self._sampler.strength(flop)
        seen, against = self._sampler.describe(inside, reach, self._strength[flop.cards])
        with torch.no_grad():
            gains = self._network(seen, torch.arange(len(seen.group)))
        if rest:
            gains = gains - 0.5 * seen.equity
        by_hand: Doubles = (
            gains.numpy().reshape(reach.shape[1], 2, -1).swapaxes(0, 1) * seen.pot.numpy()[:, None] * against
        )
        return by_hand


class FirstRound(Policy):
    """The betting before the flop, solved with the network's leaves; on the flop every action alike."""

    kind = "network leaves"

    def __init__(self, leaves: Leaves, iterations: int, flops: int, seed: int) -> None:
        self.game = leaves.boards.game
        tree = leaves.boards.rounds[0]
        tables = [Table(tree, [leaves.before], np.float64)], [Table(tree, [leaves.before], np.float64)]
        start, scratch = np.random.default_rng(seed).random(), Scratch()
        for t in range(1, iterations + 1):
            for player in PLAYERS:
                start = (start + GOLDEN) % 1  # such steps visit all flops as evenly as can be

                def deal(at_exits: Floats, player: int = player, start: float = start) -> Doubles:
                    return leaves.mean(at_exits, start, flops)[player : player + 1]

                visit = update(leaves.boards.rounds, tables, player, DISCOUNTED, t, scratch)
                visit(leaves.before, np.ones((2, 1, len(leaves.before))), deal)
            if t % 20 == 0:
                print(f"{t} iterations before the flop, {time.process_time():.0f} s of processor time", flush=True)
        sums = tables[1][0].load(leaves.before)
        self._strategy = sums / np.add.reduceat(sums, tree.first_edge[:-1], axis=0)[tree.edge_node]

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        raise NotImplementedError

    def on_board(self, tree: RoundTree, board: Board) -> Floats:
        if board.round == 0:
            return self._strategy
        count = np.diff(tree.first_edge)[tree.edge_node]
        return np.repeat(1 / count[:, None], len(board), axis=1)


class Search(ResolvingPolicy):
    """Search whose opponent has the network's values as its alternative."""

    def __init__(self, policy: Policy, settings: SearchConfig, leaves: Leaves) -> None:
        super().__init__(policy, settings)
        self._leaves = leaves

    def _entrance(self, inside: Boards, as_trained: BoardStrategy, reach: Floats, resolver: int) -> Entrance | None:  # noqa: ARG002
        if self.settings.kind == "unsafe":
            return None
        opponent = 1 - resolver
        alternative = self._leaves.values(inside, np.asarray(reach, np.float64))[opponent]
        return Gadget(opponent, alternative, inside.root.size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", type=Path)
    parser.add_argument("--kind", choices=("unsafe", "gadget"), nargs="+", default=["unsafe", "gadget"])
    for name, number in {"iterations": 200, "flops": 40, "search": 100, "threads": 1, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    stored = torch.load(options.network)
    network = ValueNetwork(stored["width"])
    network.load_state_dict(stored["weights"])
    leaves = Leaves(load_game("fhp"), network)
    plain = FirstRound(leaves, options.iterations, options.flops, options.seed)
    print(f"{time.process_time():.0f} s of processor time", flush=True)
    for kind in options.kind:
        result = exploitability(
            Search(plain, SearchConfig(kind=kind, iterations=options.search), leaves), threads=options.threads
        )
        best = result.best_response_values
        found = {"kind": kind, "nash_conv": result.nash_conv, "best_responses": best, "value": result.value}
        print(json.dumps(found | {"processor_seconds": time.process_time()}), flush=True)


if __name__ == "__main__":
    main()
