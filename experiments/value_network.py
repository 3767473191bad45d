"""A network for the values of all hands at the start of a round, and how near it is to rounds that it has not seen.

    python -m experiments.value_network fhp --boards 2000 --held-out 200

A sample is a subgame: a random board, a line of betting that leads there, and the ranges that the agent brings, perturbed
at random. It is solved to the end of the hand, and the values of all hands of both players are what the network is fitted
to. Errors are of samples on other boards, in thousandths of the pot.

Source of the method: Moravčík et al. 2017, "DeepStack", whose network sees ranges in buckets. This one sees a hand with its
equity, against the range and against all hands, and both ranges as histograms of the strength of their hands.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from deepcfr.api import load
from deepcfr.evaluation.check_down import CheckDown, runouts_after
from deepcfr.files import write_atomically
from deepcfr.games.hands import board_strengths
from deepcfr.games.poker import PokerGame
from deepcfr.ladder.listed import listed
from deepcfr.policies.base import Policy
from deepcfr.ranges.boards import Board, SampledBoards
from deepcfr.ranges.rounds import RoundTree
from deepcfr.ranges.sweep import Aims, RoundPass, Scratch
from deepcfr.rng import key
from deepcfr.search.subgame import SubgameSolver, against, subgame, values_at_root

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
PLAYERS = (0, 1)
BOTH: Aims = ((0, False), (1, False))
BINS = 16  # of strength, in ranges and of a hand
NOISE = (0.0, 0.5, 1.0, 2.0)  # standard deviations of the logarithm of a hand's weight
ENTRIES = 2  # lines of a board
CHUNK = 50  # boards that are stored together; numbers of boards are multiples of it


@dataclass
class Samples:
    """Solved subgames: R rows, one for each hand of either player, in G subgames."""

    group: torch.Tensor  # int64 [R]
    player: torch.Tensor  # int64 [R]
    strength: torch.Tensor  # [R] equity against all hands, from -1 to 1
    spread: torch.Tensor  # [R] its standard deviation over the boards of the last round
    equity: torch.Tensor  # [R] equity against the opponent's range, from -1 to 1
    share: torch.Tensor  # [R] the hand's part of its player's pairs of hands; adds up to 1 for a player of a group
    value: torch.Tensor  # [R] what the hand gains, in pots
    ranges: torch.Tensor  # [G, 2, BINS] histograms of strength
    pot: torch.Tensor  # [G] in big blinds
    gap: torch.Tensor  # [G] gains of best responses to the solution, in thousandths of the pot

    def only(self, chosen: torch.Tensor) -> Samples:
        """Some of the rows, `chosen` bool [R]."""
        rows = {f.name: getattr(self, f.name) for f in fields(Samples)}
        size = len(self.group)
        return Samples(**{name: row[chosen] if len(row) == size else row for name, row in rows.items()})

    @staticmethod
    def joined(parts: list[Samples]) -> Samples:
        """All rows of several samples."""
        starts = np.cumsum([0, *(len(part.pot) for part in parts)])
        moved = [part.group + int(start) for part, start in zip(parts, starts[:-1], strict=True)]
        rest = {f.name: torch.cat([getattr(part, f.name) for part in parts]) for f in fields(Samples)}
        return Samples(**(rest | {"group": torch.cat(moved)}))


class Hands:
    """The hands of a board, and what each of them wins from each other one if nobody bets any more."""

    def __init__(self, board: Board, check_down: CheckDown) -> None:
        pairs, scale = check_down.pairs(board)
        order = np.argsort(board.view, kind="stable")
        starts = np.searchsorted(board.view[order], np.arange(len(board)))
        self.board = board
        # [U, U] a hand of a view against all of another one, each won 1, lost -1, impossible 0
        self.results = np.add.reduceat(pairs[:, order], starts, axis=1) * np.float32(scale)
        met = against(board, np.ones((1, len(board))))[0]
        self.strength: Doubles = self.results.sum(1, dtype=np.float64) / met  # [U] equity against all hands, -1 to 1
        self._rules = check_down.rules

    @cached_property
    def spread(self) -> Doubles:
        """The standard deviation of each view's strength over the boards of the last round, [U], 0 on one of them.

        Strength is here among one hand of each view.
        """
        rules, board = self._rules, self.board
        runouts = runouts_after(rules, board.cards, sum(rules.board_cards) - len(board.cards))
        places = np.full((len(runouts), len(board)), np.nan)
        for place, runout in zip(places, runouts, strict=True):
            cards = np.append(np.array(board.cards, np.uint8), runout)
            strength = board_strengths(board.holes[board.example], cards, rules.num_suits)
            possible = np.sort(strength[strength >= 0])
            below, not_above = (np.searchsorted(possible, strength, side) for side in ("left", "right"))
            place[:] = np.where(strength >= 0, (below + not_above) / len(possible) - 1, np.nan)
        spread: Doubles = np.nanstd(places, axis=0)
        return spread

    def describe(self, paid: Doubles, reach: Doubles) -> tuple[Samples, Doubles]:
        """The inputs of the network, values unknown, for `reach` [2, X, U] at X entries, where both have `paid` [X].

        Rows are in the order of [X, 2, U]. Also the opponent's reach that shares no card with each view, [2, X, U].
        """
        board = self.board
        met = np.stack([against(board, reach[1 - player]) for player in PLAYERS])
        won = reach[::-1] @ self.results.T
        pairs = reach * met * board.size
        bins = np.clip(((self.strength + 1) / 2 * BINS).astype(int), 0, BINS - 1)
        held = (reach * board.size) @ np.eye(BINS)[bins]
        place, player, _ = np.indices((len(paid), 2, len(board))).reshape(3, -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_range = np.clip(np.nan_to_num(won / met), -1, 1)  # beside hands that nobody meets

        def rows(numbers: Doubles) -> torch.Tensor:
            return torch.from_numpy(numbers.swapaxes(0, 1).ravel().astype(np.float32))

        found = Samples(
            group=torch.from_numpy(place),
            player=torch.from_numpy(player),
            strength=rows(np.broadcast_to(self.strength, reach.shape)),
            spread=rows(np.broadcast_to(self.spread, reach.shape)),
            equity=rows(of_range),
            share=rows(_parts(pairs)),
            value=torch.zeros(len(place)),
            ranges=torch.from_numpy(_parts(held).swapaxes(0, 1).astype(np.float32)),
            pot=torch.from_numpy((2 * paid).astype(np.float32)),
            gap=torch.zeros(len(paid)),
        )
        return found, met


def paid_at(game: PokerGame, entries: RoundTree) -> Doubles:
    """The big blinds that each player has put in before the entries of a round, [X]."""
    paid: Doubles = game.tree.chips[entries.entry_nodes][:, 0] / game.rules.unit_chips
    return paid


class Sampler:
    """Draws and solves subgames that begin with round `round_` of the game of a policy."""

    def __init__(self, policy: Policy, round_: int, iterations: int) -> None:
        assert isinstance(policy.game, PokerGame)
        self.game, self.policy, self.round, self.iterations = policy.game, policy, round_, iterations
        self._boards = SampledBoards(policy.game)
        self._check_down = CheckDown(policy.game.rules)
        self._scratch = Scratch()

    def sample(self, stream: int) -> Samples:
        """Some subgames of one random board."""
        rules, rounds = self.game.rules, self._boards.rounds
        draw = np.random.default_rng(stream)
        cards = draw.permutation(rules.num_cards)[: sum(rules.board_cards[: self.round + 1])].tolist()
        board, reach = self._arrive(tuple(cards))
        entries = np.sort(draw.choice(len(rounds[self.round].entries), ENTRIES, replace=False))
        inside = subgame(self.game, rounds, board, entries)
        hands = Hands(board, self._check_down)
        reach = self._perturbed(reach[:, entries], hands.strength, draw)
        solver = SubgameSolver(inside, reach)
        solver.run(self.iterations)
        found, met = hands.describe(paid_at(self.game, inside.rounds[self.round]), reach)
        values = values_at_root(inside, solver.policy().on_board, reach, BOTH)
        pots = found.pot.numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = (values / met / pots[:, None]).swapaxes(0, 1).ravel()
        found.value = torch.from_numpy(np.nan_to_num(gains).astype(np.float32))
        found.gap = torch.from_numpy((1000 * solver.gap() / pots).astype(np.float32))
        return found.only(torch.from_numpy(np.isfinite(gains)))

    def _arrive(self, cards: tuple[int, ...]) -> tuple[Board, Doubles]:
        """The board with `cards`, and both players' reach at its entries, [2, X, U]."""
        boards, start = self._boards, 0
        before = boards.root
        reach: Doubles = np.ones((2, 1, len(before)))
        for round_ in range(self.round + 1):
            new = self.game.rules.board_cards[round_]
            board = boards.after(before, cards[start : start + new])
            start += new
            reach = np.ascontiguousarray(reach[:, :, board.up])
            if round_ < self.round:
                play = RoundPass(boards.rounds[round_], board, reach, self._scratch)
                play.down(self.policy.on_board(boards.rounds[round_], board))
                reach = play.reach_at_exits().astype(np.float64)
            before = board
        return before, reach

    def _perturbed(self, reach: Doubles, strength: Doubles, draw: np.random.Generator) -> Doubles:
        """Reach [2, X, U] with random weights, of single hands and along their strength; the largest is 1."""
        spread = np.array(NOISE)[draw.integers(len(NOISE), size=(*reach.shape[:2], 1))]
        trend = draw.standard_normal(spread.shape) * (strength - strength.mean()) / strength.std()
        changed = (reach + 1e-6) * np.exp(spread * (trend + draw.standard_normal(reach.shape)) / 2**0.5)
        scaled: Doubles = changed / changed.max(2, keepdims=True)
        return scaled


def _parts(weights: Doubles) -> Doubles:
    """Weights [..., n] as parts of their sum, and 0 where all are 0."""
    parts: Doubles = weights / np.maximum(weights.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
    return parts


class ValueNetwork(nn.Module):
    """Values of hands in pots: half the equity, which is what checking to the end is worth, and a learnt rest."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inputs = 4 * BINS + 8
        self.layers = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, data: Samples, rows: torch.Tensor) -> torch.Tensor:
        """The values of `rows`, whole groups, [len(rows)]; a group's values add up to 0 over all pairs of hands."""
        group, player = data.group[rows], data.player[rows]
        means = torch.zeros(len(data.pot), 2, 2)  # equity and spread of both ranges
        of_hands = torch.stack([data.equity[rows], data.spread[rows]], 1)
        means.index_put_((group, player), of_hands * data.share[rows, None], accumulate=True)
        seen = torch.cat(
            [
                _hats(data.strength[rows]),
                _hats(data.equity[rows]),
                data.strength[rows, None],
                of_hands,
                means[group, player],
                means[group, 1 - player, 1:],
                data.ranges[group, player],
                data.ranges[group, 1 - player],
                data.pot[group, None].log(),
                player[:, None].float(),
            ],
            1,
        )
        rest: torch.Tensor = self.layers(seen)[:, 0]
        raw = 0.5 * data.equity[rows] + rest
        surplus = torch.zeros(len(data.pot)).index_add(0, group, raw * data.share[rows])
        return raw - 0.5 * surplus[group]


def _hats(equity: torch.Tensor) -> torch.Tensor:
    """Equities [R] from -1 to 1 as shares of the two nearest of BINS points, [R, BINS]."""
    points = torch.linspace(-1, 1, BINS)
    return (1 - (equity[:, None] - points).abs() * (BINS - 1) / 2).clamp(min=0)


def fit(data: Samples, width: int, steps: int, batch: int, seed: int) -> ValueNetwork:
    """A network fitted to `data` by Adam, a batch of whole groups a step."""
    torch.manual_seed(seed)
    network = ValueNetwork(width)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step, rows in enumerate(_batches(data, batch, steps), start=1):
        loss = (network(data, rows) - data.value[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % max(1, steps // 10) == 0:
            print(f"step {step}: root mean square {1000 * loss.item() ** 0.5:.1f} thousandths of the pot", flush=True)
    return network


def _batches(data: Samples, batch: int, steps: int) -> Iterator[torch.Tensor]:
    start = torch.searchsorted(data.group, torch.arange(len(data.pot) + 1))
    for _ in range(steps):
        chosen = set(torch.randint(len(data.pot), (batch,)).tolist())
        yield torch.cat([torch.arange(int(start[group]), int(start[group + 1])) for group in sorted(chosen)])


def errors(network: ValueNetwork, data: Samples) -> dict[str, float]:
    """Mean absolute errors in thousandths of the pot: of all hands alike, and of hands as often as they are held."""
    rows = torch.arange(len(data.group))
    with torch.no_grad():
        guess = network(data, rows)
    of = {"network": guess, "equity": 0.5 * data.equity, "nothing": torch.zeros_like(guess)}
    weight = data.share / (2 * len(data.pot))
    found: dict[str, float] = {}
    for name, values in of.items():
        apart = 1000 * (values - data.value).abs()
        found |= {name: float(apart.mean()), f"{name}, as held": float((weight * apart).sum())}
    return found


def collect(sampler: Sampler, folder: Path, seed: int, boards: int) -> tuple[list[Samples], float]:
    """The samples of `boards` boards, CHUNK boards together, and the processor seconds that they took.

    Those that `folder` has are read, the others are drawn and stored there.
    """
    parts, seconds = [], 0.0
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, boards, CHUNK):
        path = folder / f"{first}.pt"
        if not path.is_file():
            start = time.process_time()
            drawn = Samples.joined([sampler.sample(key(seed, "values", first + i)) for i in range(CHUNK)])
            file = BytesIO()
            torch.save({"samples": vars(drawn), "seconds": time.process_time() - start}, file)
            write_atomically(path, file.getvalue())
            print(f"{first + CHUNK} boards", flush=True)
        stored = torch.load(path)
        parts.append(Samples(**stored["samples"]))
        seconds += stored["seconds"]
    return parts, seconds


def measure(
    agent: str,
    folder: Path,
    round_: int,
    boards: int,
    held_out: int,
    iterations: int,
    width: int,
    steps: int,
    seed: int,
) -> tuple[ValueNetwork, dict[str, Any]]:
    """Draw samples, fit a network to all but those of the first `held_out` boards, and measure it on both parts."""
    policy = listed(load(agent).policy)
    assert isinstance(policy, Policy)
    sampler = Sampler(policy, round_, iterations)
    parts, drawn = collect(sampler, folder / f"{agent}-{round_}-{iterations}-{seed}", seed, boards + held_out)
    start, apart = time.process_time(), held_out // CHUNK
    rest, seen = Samples.joined(parts[:apart]), Samples.joined(parts[-apart:])
    network = fit(Samples.joined(parts[apart:]), width, steps, 16, seed)
    fitted = time.process_time() - start
    facts = {
        "agent": agent, "round": round_, "boards": boards, "held_out": held_out, "iterations": iterations, "width": width,
        "steps": steps, "seed": seed, "gap": float(rest.gap.mean()), "seen": errors(network, seen),
        "unseen": errors(network, rest), "seconds_of_samples": drawn, "seconds_of_fit": fitted,
    }  # fmt: skip
    return network, facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", help="whose ranges and game they are")
    parser.add_argument(
        "--round", type=int, default=1, dest="round_", help="the round that subgames begin with, from 0"
    )
    numbers = {"boards": 2000, "held-out": 200, "iterations": 100, "width": 128, "steps": 2000, "seed": 0}
    for name, number in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument(
        "--folder", type=Path, default=Path("runs/values"), help="where samples are kept, for next time"
    )
    parser.add_argument("--out", type=Path, help="a file for the network")
    options = vars(parser.parse_args())
    out = options.pop("out")
    network, facts = measure(**options)
    if out:
        torch.save({"width": options["width"], "weights": network.state_dict()}, out)
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
