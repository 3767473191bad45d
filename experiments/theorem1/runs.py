"""Measure the average regret of sampled CFR on Kuhn and Leduc poker, and the bound of the Deep CFR paper's Theorem 1.

With probability 1 - rho the average regret of player p after T iterations of K traversals is at most (Theorem 1;
Appendix B.4, equation 54)

    (1 + sqrt(2 / (rho K))) Delta |I_p| sqrt(|A|) / sqrt(T)  +  4 |I_p| sqrt(|A| Delta epsilon)

where Delta is the range of payoffs, |I_p| the number of p's infosets, |A| the most actions at one, and epsilon bounds
the advantage loss on the memory above the least possible loss. Tables have no second term. The theorem holds for
uniform weights; the paper has no bound for linear weights.

The regret is exact: the value of the best fixed strategy against sigma^1 .. sigma^T minus the value of sigma^1 ..
sigma^T. The best strategy is a best response to the exact average of the opponent's strategies (`policy/mixture.py`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from deepcfr.config import (
    EvaluationConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
    TabularConfig,
    load_config,
)
from deepcfr.core.errors import CheckpointError
from deepcfr.core.files import write_atomically
from deepcfr.core.types import Infosets
from deepcfr.defaults import default_config
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PokerRules, most_chips
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import Policy
from deepcfr.policy.mixture import MixturePolicy
from deepcfr.run.build import build_solver
from deepcfr.run.folder import RunFolder
from deepcfr.run.metrics import read_metrics
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.mccfr import MCCFR
from deepcfr.solve.memories import InfosetMemories
from experiments.grid import Say, claimed, difference
from experiments.theorem1.tables import TablePolicy, canonical_hands

Arm = Literal["mccfr", "linear-mccfr", "deep-cfr"]
NAME = "theorem1"
GAMES = ("kuhn", "leduc")
RHO = 0.05  # the bound holds with probability 1 - rho
TRAVERSALS = 100  # K
ITERATIONS: dict[Arm, int] = {"mccfr": 1_024, "linear-mccfr": 1_024, "deep-cfr": 128}
LABELS: dict[Arm, str] = {
    "mccfr": "external-sampling MCCFR in tables",
    "linear-mccfr": "the same with linear weights (no bound is known)",
    "deep-cfr": "Deep CFR with uniform weights",
}
BOUNDED: tuple[Arm, ...] = ("mccfr", "deep-cfr")


@dataclass(frozen=True)
class Constants:
    """The constants of a game in the bound; infosets by player, Delta in the game's unit."""

    infosets: tuple[int, int]  # |I_p|
    actions: int  # |A|
    range: float  # Delta

    @classmethod
    def of(cls, rules: PokerRules) -> Constants:
        """Count the constants from the rules; suits are merged."""
        game = PokerGame(rules)
        tree, hands = game.tree, canonical_hands(game)
        decisions = range(tree.num_decisions)
        counts = [sum(len(hands[tree.round[n]]) for n in decisions if tree.actor[n] == player) for player in (0, 1)]
        most = most_chips(rules.blinds, rules.raise_size, rules.max_raises) / rules.unit_chips
        return cls((counts[0], counts[1]), int(game.encoding.legal.sum(1).max()), 2 * most)


def sampling_bound(facts: Constants, player: int, iterations: int, traversals: int, rho: float = RHO) -> float:
    """The first term of Theorem 1, in the game's unit: the cost of regret matching and sampling."""
    spread = 1 + math.sqrt(2 / (rho * traversals))
    return spread * facts.range * facts.infosets[player] * math.sqrt(facts.actions / iterations)


def approximation_bound(facts: Constants, player: int, excess_loss: float) -> float:
    """The second term of Theorem 1 for epsilon = `excess_loss` (in squared units): the cost of networks."""
    return 4 * facts.infosets[player] * math.sqrt(facts.actions * facts.range * excess_loss)


def arm_config(game: str, arm: Arm, seed: int) -> RunConfig:
    """The configuration of an arm's run on a game."""
    runtime = RuntimeConfig(threads=1)
    if arm != "deep-cfr":
        weighting: Literal["linear", "uniform"] = "linear" if arm == "linear-mccfr" else "uniform"
        settings = TabularConfig(precision="float64", traversals=TRAVERSALS, weighting=weighting)
        return RunConfig(game, seed, "mccfr", ITERATIONS[arm], solve=settings, runtime=runtime)
    base = load_config("leduc-external") if game == "leduc" else default_config(game)  # external sampling
    return dataclasses.replace(
        base,
        seed=seed,
        iterations=ITERATIONS[arm],
        cfr=dataclasses.replace(base.cfr, weighting="uniform", keep_networks=0),
        sampling=SamplingConfig(traversals=TRAVERSALS),
        advantage=dataclasses.replace(base.advantage, refit="scratch", steps=200),
        evaluation=EvaluationConfig(),
        runtime=runtime,
    )


def arm_path(root: Path, game: str, arm: Arm, seed: int) -> Path:
    """The run folder of a game, an arm and a seed; these take seconds to minutes, so they are the same at every budget."""
    return root / NAME / game / f"{arm}-s{seed}"


def run_theorem(root: Path, seeds: int, say: Say, arms: Sequence[Arm] = tuple(ITERATIONS)) -> None:
    """Measure every game, arm and seed into run folders, except existing ones.

    A run writes its metrics at its end, so an interrupted one starts again. Raises CheckpointError for a folder with a
    run of other settings.
    """
    for game, arm, seed in product(GAMES, arms, range(seeds)):
        path, config = arm_path(root, game, arm, seed), arm_config(game, arm, seed)
        with claimed(path, wait=True):
            run = _folder(path, config)
            if read_metrics(run.metrics_path):
                continue
            say(f"{path}")
            lines = "".join(json.dumps(line) + "\n" for line in measure(run))
            write_atomically(run.metrics_path, lines.encode())


def _folder(path: Path, config: RunConfig) -> RunFolder:
    if not (path / "config.toml").is_file():
        return RunFolder.create(path, config)
    run = RunFolder.open(path)
    if problem := difference(run.config, config):
        raise CheckpointError(f"'{path}' holds a run of other settings: {problem}. Move it away to run this study.")
    return run


def measure(run: RunFolder) -> list[dict[str, Any]]:
    """The average regrets of a run, in milli units of the game, at iterations 1, 2, 4, 8 and so on and at the last one."""
    game = run.game()
    assert isinstance(game, PokerGame)
    config = run.config
    solver = build_solver(game, config)
    assert isinstance(solver, DeepCFR | MCCFR)
    linear = (config.solve.weighting if config.tabular else config.cfr.weighting) == "linear"
    hands = canonical_hands(game)
    policies, values, lines = [snapshot(solver.current_policy(), hands)], [], []
    excess, start = [0.0, 0.0], time.perf_counter()
    for record in solver.iterations():
        values.append(exploitability(policies[-1]).value)
        if isinstance(solver, DeepCFR):
            excess = [max(old, new) for old, new in zip(excess, excess_losses(solver), strict=True)]
        if _is_point(record.iteration, config.iterations):
            weights = [float(t) if linear else 1.0 for t in range(1, record.iteration + 1)]
            line: dict[str, Any] = {
                "iteration": record.iteration,
                "regret": average_regrets(game, policies, values, weights),
            }
            if isinstance(solver, DeepCFR):
                line["excess_loss"] = list(excess)
            lines.append(line | {"total_nodes_touched": solver.nodes_touched, "seconds": time.perf_counter() - start})
        policies.append(snapshot(solver.current_policy(), hands))
    return lines


def _is_point(iteration: int, last: int) -> bool:
    return iteration & (iteration - 1) == 0 or iteration == last


def average_regrets(
    game: PokerGame, policies: Sequence[Policy], values: Sequence[float], weights: Sequence[float]
) -> list[float]:
    """Both players' average regrets of `policies`, whose values to player 0 are `values`; in milli units.

    Policies beyond the number of weights are ignored. The sum of both regrets is the NashConv of the average strategy,
    because the game is zero-sum.
    """
    count = len(weights)
    mixture = MixturePolicy(game, policies[:count], weights)
    best = exploitability(mixture).best_response_values
    gained = float(np.average(values[:count], weights=weights))
    return [best[0] - gained, best[1] + gained]


def snapshot(policy: Policy, hands: Sequence[np.ndarray[Any, np.dtype[np.uint8]]]) -> TablePolicy:
    """A copy of a policy of a small poker game as tables, which does not change while a solver continues."""
    game = policy.game
    assert isinstance(game, PokerGame)
    tables = []
    for round_, cards in enumerate(hands):
        nodes = (game.round[: game.tree.num_decisions] == round_).nonzero()[:, 0]
        rows = torch.from_numpy(cards).repeat(len(nodes), 1)
        infosets = Infosets(nodes.repeat_interleave(len(cards)), rows)
        tables.append(policy.probabilities(infosets).double().numpy().reshape(len(nodes), len(cards), -1))
    return TablePolicy(game, tables)


def excess_losses(solver: DeepCFR) -> Iterator[float]:
    """Each player's advantage loss on its memory minus the least loss of any function, in squared units.

    The least loss is the variance of samples around the means of their infosets, so the excess is the mean squared
    distance between those means and the network (Lemmas 3 and 4).
    """
    assert isinstance(solver.memories, InfosetMemories)
    for network, memory in zip(solver.advantage_networks, solver.memories.advantages, strict=True):
        samples = memory[slice(None)]
        means = memory.mean_targets(torch.ones(len(memory)))
        with torch.no_grad():
            predicted = network(samples.infosets) * network.scale
        legal = solver.game.encoding.legal[samples.infosets.node.long()]
        yield float(((predicted - means).square() * legal).sum(1).double().mean())
