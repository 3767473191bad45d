"""The time of search: single decisions of limit hold'em with nothing kept from before, and spots of hold'em."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

import numpy as np
import torch

from deepcfr.api import load, solve_spot
from deepcfr.boards.boards import SampledBoards
from deepcfr.config import SearchConfig
from deepcfr.core.rng import key
from deepcfr.core.types import Infosets
from deepcfr.policy.base import Policy
from deepcfr.policy.query import poker_state
from deepcfr.run.metrics import environment
from deepcfr.search.policy import ResolvingPolicy
from experiments.grid import Say

_KINDS: tuple[Literal["unsafe", "gadget"], ...] = ("unsafe", "gadget")


@dataclass(frozen=True)
class Workload:
    """The size of the measurement; the default takes some five minutes."""

    agent: str = "hulh"  # plays limit hold'em
    #: round, iterations, threads of a subgame, how many
    decisions: tuple[tuple[int, int, int, int], ...] = ((3, 60, 1, 40), (3, 100, 1, 40), (2, 40, 1, 6), (2, 30, 2, 6))
    #: board, sizes, and the exploitability in percent of the pot at which a spot's time is noted
    spots: tuple[tuple[str, str, float], ...] = (
        ("Qs 7h 2c 9d 4s", "river 33 75 150, raise 100, allin", 0.1),
        ("As Kd 8s 5c 3s", "river 33 75 150, raise 100, allin", 0.1),
        ("Td Tc 6h 5h 2s", "river 33 75 150, raise 100, allin", 0.1),
        ("Qs 7h 2c 9d", "turn 33 75, river 33 75, raise 100, allin", 0.5),
        ("Qs 7s 2c 9d", "turn 33 75, river 33 75, raise 100, allin", 0.5),
        ("Qs 7h 2c", "flop 50, turn 75, river 75, allin", 0.5),
    )
    dealer: str = "22+,A2s+,K9s+,QTs+,JTs,T9s,98s,87s,ATo+,KJo+,QJo"
    big_blind: str = "22+,A2s+,K5s+,Q8s+,J8s+,T8s+,97s+,86s+,75s+,A8o+,KTo+,QTo+,JTo"
    pot: float = 10.0
    stacks: float = 95.0
    threads: int = 2  # of spots


def bench_search(seed: int, say: Say, workload: Workload | None = None) -> dict[str, Any]:
    """Median milliseconds of a decision (processor and wall time) by round and kind; seconds of spots and of the command.

    A decision is the first one of a random betting line on a random board. Nothing is known of its hand before: its
    time has the ranges by Bayes' rule, which ask the agent for its strategy on every earlier board, and the subgame. It
    is timed when another search has read the board's hand strengths from disk.
    """
    size = workload or Workload()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        decisions = _decisions(load(size.agent).policy, seed, say, size)
    finally:
        torch.set_num_threads(threads)
    return {
        "environment": environment("cpu", size.threads),
        "seed": seed,
        "decisions": decisions,
        "spots": _spots(say, size),
        "command seconds": _command_seconds(say, size),
    }


def _decisions(policy: Policy, seed: int, say: Say, size: Workload) -> list[dict[str, Any]]:
    last = poker_state(policy).rules.num_rounds - 1
    rows: list[dict[str, Any]] = []
    for round_, iterations, threads, count in size.decisions:
        for kind in _KINDS:
            settings = SearchConfig(kind, tuple(range(round_, last + 1)), iterations, threads)
            first, timed = (ResolvingPolicy(policy, settings) for _ in range(2))
            milliseconds = []
            for i in range(count):
                _decision(first, round_, key(seed, "decision", i))
                milliseconds.append(_decision(timed, round_, key(seed, "decision", i)))
            processor, wall = (median(times) for times in zip(*milliseconds, strict=True))
            sizes = f"{iterations} iterations, {threads} threads, {count} decisions"
            say(f"round {round_}, {kind}, {sizes}: {processor:.1f} ms of processor time, {wall:.1f} ms")
            row = {"round": round_, "kind": kind, "iterations": iterations, "threads": threads, "decisions": count}
            rows.append(row | {"median_ms": processor, "median_wall_ms": wall})
    return rows


def _decision(searching: ResolvingPolicy, round_: int, stream: int) -> tuple[float, float]:
    """Milliseconds, of processor and wall time, of the first decision of a random betting line on a random board."""
    draw, game = np.random.default_rng(stream), searching.game
    rules, boards = game.rules, SampledBoards(game)
    tree = boards.rounds[round_]
    root = draw.choice(tree.roots[tree.roots < len(tree.nodes)])
    cards = draw.permutation(rules.num_cards)[: sum(rules.board_cards[: round_ + 1]) + rules.hole_cards]
    hole, public = np.sort(cards[: rules.hole_cards]), tuple(cards[rules.hole_cards :].tolist())
    seen = torch.from_numpy(game.visible_cards(hole[None].astype(np.uint8), public))
    infosets = Infosets(torch.tensor([int(tree.nodes[root])]), seen)
    start, begin = time.process_time(), time.perf_counter()
    searching.probabilities(infosets)
    return 1000 * (time.process_time() - start), 1000 * (time.perf_counter() - begin)


def _spots(say: Say, size: Workload) -> list[dict[str, Any]]:
    rows = []
    for board, sizes, goal in size.spots:
        start = time.process_time()
        found = solve_spot(
            board, sizes, pot=size.pot, stacks=size.stacks, dealer=size.dealer, big_blind=size.big_blind,
            exploitability=goal, threads=size.threads,
        )  # fmt: skip
        row = {"board": board, "sizes": sizes, "hands": len(found.holes), "bytes": found.bytes, "goal_percent": goal}
        row |= {
            "iterations": found.iterations,
            "exploitability_percent": found.exploitability,
            "seconds": found.seconds,
        }
        rows.append(row | {"processor_seconds": time.process_time() - start})
        say(
            f"{board}, {sizes}: {found.exploitability:.2f} % after {found.iterations} iterations, {found.seconds:.1f} s"
        )
    return rows


def _command_seconds(say: Say, size: Workload) -> float:
    """Median seconds of five calls of `deepcfr spot` on the first spot, from start to end, with kernels compiled."""
    board, sizes, goal = size.spots[0]
    options = {
        "board": board, "sizes": sizes, "pot": size.pot, "stacks": size.stacks, "dealer": size.dealer,
        "big-blind": size.big_blind, "exploitability": goal, "threads": size.threads,
    }  # fmt: skip
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "deepcfr.cli", "spot", *words], check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    say(f"deepcfr spot --board '{board}': {median(seconds):.2f} s from the shell to the answer")
    return median(seconds)
