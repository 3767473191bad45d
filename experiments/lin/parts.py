"""Find the decisions of a raise-ladder bot that lose to its own deterministic style.

python -m experiments.lin.parts runs/lin --hands 200000 > experiments/results/lin_parts.json

The bot meets itself with the deterministic style at one kind of decision only: in one round, facing a bet or not, or where
the row of its average strategy was visited so often. What that variant gains is what the bot's mixing loses there. The
gains of kinds need not add up to that of the whole style. Then it plays with thresholds: actions less probable than the
threshold are left out. The bot itself is taken without a threshold, whatever its settings say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from copy import copy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcfr.compiled import nb
from deepcfr.evaluation.match.hands import sampled_match
from deepcfr.games.ladder_betting import CHIPS, ROUND, RUNG, Ladder, is_legal
from deepcfr.ladder.policies import LadderStyle, LadderTable, own_view
from deepcfr.ladder.traversals import LadderLayout, Table, entry_of, row_of
from deepcfr.policies.base import LadderPolicy
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import environment

Cards = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Chooses = Callable[[Ints, Floats], npt.NDArray[np.bool_]]  # decisions of a kind, by position and visits
_THRESHOLDS = (0.1, 0.2, 0.3, 0.4)
_VISITS = (0.0, 0.5, 10.0, 100.0, 1_000.0, 10_000.0, np.inf)


@nb.njit(cache=True, nogil=True)
def row_weights(ladder: Ladder, layout: LadderLayout, table: Table, positions: Ints, buckets: Ints) -> Floats:
    """The sum of the table's entries for the legal actions of each decision, float64 [n]."""
    result = np.zeros(len(positions))
    for i in range(len(positions)):
        at = row_of(layout, positions[i], buckets[i])
        for action in range(RUNG + ladder.length[positions[i, ROUND]]):
            if is_legal(ladder, positions[i], action):
                entry = entry_of(positions[i], action)
                if entry >= 0:
                    result[i] += table[at + entry]
    return result


class PartlyDeterministic(LadderPolicy):
    """A bot that plays the deterministic style at the decisions that `chooses`, and as it is at the others."""

    def __init__(self, bot: LadderTable, visit: float, chooses: Chooses) -> None:
        self.game, self.kind, self.width = bot.game, f"{bot.kind}, partly deterministic", bot.width
        self.bot, self.visit, self.chooses = bot, visit, chooses
        self.style = LadderStyle(bot, "deterministic")

    def look(self, cards: Cards, numbers: Ints, stream: int) -> Ints:
        return self.bot.look(cards, numbers, stream)

    def probabilities(self, positions: Ints, views: Ints) -> Floats:
        table = self.bot.table
        weights = row_weights(self.game.ladder, self.bot.layout, table, positions, own_view(positions, views))
        there = self.chooses(positions, weights / self.visit)
        styled, plain = (policy.probabilities(positions, views) for policy in (self.style, self.bot))
        result: Floats = np.where(there[:, None], styled, plain)
        return result


def chosen(
    positions: Ints,
    visits: Floats,
    round_: int | None = None,
    facing: bool | None = None,
    least: float = 0.0,
    most: float = np.inf,
) -> npt.NDArray[np.bool_]:
    """Decisions in a round, facing a bet or not, with `least` to `most` visits of their rows; None is either."""
    result = (visits >= least) & (visits < most)
    if round_ is not None:
        result &= positions[:, ROUND] == round_
    if facing is not None:
        result &= (positions[:, CHIPS] != positions[:, CHIPS + 1]) == facing
    return result


def kinds(rounds: int) -> dict[str, Chooses]:
    """The kinds of decisions, by name."""
    found: dict[str, Chooses] = {"all": chosen}
    for round_ in range(rounds):
        found[f"round {round_ + 1}"] = partial(chosen, round_=round_)
        found[f"round {round_ + 1}, facing a bet"] = partial(chosen, round_=round_, facing=True)
        found[f"round {round_ + 1}, no bet"] = partial(chosen, round_=round_, facing=False)
    for least, most in pairwise(_VISITS):
        found[f"{least:g} to {most:g} visits"] = partial(chosen, least=least, most=most)
    return found


def measure(run: Path, hands: int, threads: int) -> dict[str, Any]:
    """Gains with their intervals, in thousandths of a big blind: of every kind's variant, and with thresholds."""
    bot, _ = RunFolder.open(run).load_player("average", print)
    assert isinstance(bot, LadderTable)
    bot.threshold = 0.0
    iterations = RunFolder.open(run).load_solver(print, memories=False)[0].iteration

    def gain(name: str, first: LadderPolicy, second: LadderPolicy) -> dict[str, float]:
        match = sampled_match(first, second, hands, 0, threads=threads)
        print(f"{name:40s} {match.value:+8.1f} ± {match.interval:.1f}", file=sys.stderr, flush=True)
        return {"gain": match.value, "interval": match.interval}

    variants = {
        name: PartlyDeterministic(bot, iterations / 2, chooses)  # weights of iterations are 1 .. T
        for name, chooses in kinds(bot.game.rules.num_rounds).items()
    }
    found: dict[str, Any] = {name: gain(name, variant, bot) for name, variant in variants.items()}
    for threshold in _THRESHOLDS:
        one, name = copy(bot), f"threshold {threshold:g}"
        one.threshold = threshold
        found[name] = {
            "the bot": gain(f"{name} against the bot", one, bot),
            "deterministic": gain(f"{name} against the deterministic style", one, LadderStyle(bot, "deterministic")),
        }
    return {"iterations": iterations, "hands": hands, "gains": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--hands", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    made_with = {key: value for key, value in environment("cpu", given.threads).items() if key != "command"}
    print(json.dumps({"environment": made_with, **measure(given.run, given.hands, given.threads)}, indent=2))
