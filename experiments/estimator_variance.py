"""The noise and bias of sampled advantages: external, robust and outcome sampling, and history values in two uses.

    python -m experiments.estimator_variance runs/dream --out experiments/results/estimator_variance.json

All of them sample the newest strategy of a run with learnt history values. Outcome sampling explores with probability 0.5,
but with history values alone always.

*Noise* is the mean square of the difference between a target and the mean target of its infoset, over samples with their
copies and over legal actions. It contains the opponent's cards, which no estimate can see. *Bias* is the root mean square
difference between the mean targets of infosets and those of external sampling, over its samples and legal actions; a second
run of external sampling shows how much of it is chance. Both are in units of the payoffs, noise in their squares.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from deepcfr.config import ExternalSampling, OutcomeSampling, RunConfig, Sampling, sampling_of
from deepcfr.files import json_bytes, write_atomically
from deepcfr.memory.reservoir import InfosetSums, Memory
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import environment
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.solvers.histories import PLAYERS, Traversals

CHUNK, CAPACITY = 10_000, 20_000_000


def main() -> None:
    """Measure all estimates, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run of train --solver dream or escher, with its memories")
    parser.add_argument("--traversals", type=int, default=400_000, help="of each player, for outcome sampling")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    solver = RunFolder.open(asked.run).load_solver(print, memories=True)[0]
    assert isinstance(solver, DeepCFR)
    assert solver.values is not None
    outcome = solver.config.sampling
    assert isinstance(outcome, OutcomeSampling)
    external = sampling_of("external", outcome)
    assert isinstance(external, ExternalSampling)
    kinds: dict[str, Sampling] = {"external": external, "external again": external}
    kinds["payoffs"] = replace(outcome, estimate="payoffs", exploration=0.5)
    kinds["baseline"] = replace(outcome, estimate="baseline", exploration=0.5)
    kinds["values"] = replace(outcome, estimate="values", exploration=1.0)
    kinds |= {f"robust, {actions} of the actions": replace(external, actions=actions) for actions in (1, 2)}
    found: dict[str, dict[str, float]] = {}
    reference: list[InfosetSums] = []
    for number, (name, sampling) in enumerate(kinds.items()):
        count = asked.traversals // 8 if sampling.kind == "external" else asked.traversals
        config = replace(solver.config, sampling=sampling, seed=number)
        noises, squares, weight = [], 0.0, 0.0
        for player in PLAYERS:
            memory = sampled(solver, config, player, count)
            sums, noise = noise_of(memory)
            noises.append(noise)
            if len(reference) < len(PLAYERS):
                reference.append(sums)
            square, visits = distance(sums, reference[player], memory.encoding.legal)
            squares, weight = squares + square, weight + visits
        found[name] = {"traversals": count, "noise": sum(noises) / 2, "bias": (squares / weight) ** 0.5}
        print(name, found[name], flush=True)
    facts = {"environment": environment("cpu", 1), "game": solver.game.name, "iteration": solver.iteration}
    if asked.out:
        write_atomically(asked.out, json_bytes({**facts, "estimates": found}))


def sampled(solver: DeepCFR, config: RunConfig, player: int, count: int) -> Memory:
    """A memory with the advantages of `count` traversals of the newest strategy."""
    memory = Memory(solver.game.encoding, CAPACITY, "window")
    current = replace(solver.current(), values=solver.values if config.has_values else None)
    traversals = Traversals(solver.game, config, solver.iteration + 1, player, current)
    for first in range(0, count, CHUNK):
        for batch in traversals.run(first, min(CHUNK, count - first)).advantages:
            memory.add(batch.samples, batch.stream)
    if memory.seen > CAPACITY:
        raise SystemExit(f"{memory.seen:,} samples do not fit: lower --traversals.")
    return memory


def noise_of(memory: Memory) -> tuple[InfosetSums, float]:
    """The sums of a memory's infosets, and the mean square of its targets around their means over legal actions."""
    ones = torch.ones(len(memory))
    sums, place = memory.target_sums(ones)
    mean = (sums.target / sums.weight[:, None])[place]
    legal = memory.encoding.legal[memory.filled("node").long()]
    return sums, float((memory.filled("target").double() - mean)[legal].square().mean())


def distance(sums: InfosetSums, reference: InfosetSums, legal: torch.Tensor) -> tuple[float, float]:
    """The sum of squared differences between mean targets at the infosets of both, by visits of `reference`, and those.

    A square is the mean over the legal actions, `legal` [K, A], of an infoset.
    """
    at = torch.searchsorted(sums.code, reference.code).clamp(max=len(sums.code) - 1)
    both = sums.code[at] == reference.code
    mine, theirs = (s.target / s.weight[:, None] for s in (sums, reference))
    square = (mine[at] - theirs).square().sum(1) / legal[reference.code % len(legal)].sum(1)
    return float((square * reference.weight)[both].sum()), float(reference.weight[both].sum())


if __name__ == "__main__":
    main()
