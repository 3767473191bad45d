"""The time of search: single decisions of limit hold'em with nothing kept from before, and spots of hold'em."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
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
    gains: tuple[float, ...] = (0.005, 0.001)  # of the pot, both players' added, at which a spot's time is noted
    spots: tuple[tuple[str, str], ...] = (
        ("Qs 7h 2c 9d 4s", "river 33 75 150, raise 100, allin"),
        ("Qs 7h 2c 9d", "turn 33 75 150, river 33 75 150, raise 100, allin"),
    )
    pot: float = 10.0
    stacks: float = 95.0
    threads: int = 2  # of spots


def bench_search(seed: int, say: Say, workload: Workload | None = None) -> dict[str, Any]:
    """Median milliseconds of a decision (processor and wall time) by round and kind, and seconds of spots with all
    hands.

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
    everything = ",".join(_all_hands())
    rows = []
    for board, sizes in size.spots:
        progress: list[tuple[float, int, float]] = []  # seconds, iterations, exploitability
        start = time.perf_counter()
        solution = solve_spot(
            board, sizes, pot=size.pot, stacks=size.stacks, dealer=everything, big_blind=everything,
            exploitability=50 * min(size.gains), threads=size.threads,
            on_progress=partial(_note, progress, start),
        )  # fmt: skip
        reached = {}
        for share in size.gains:
            seconds, iterations, now = next(row for row in progress if row[2] <= 50 * share)
            reached[str(share)] = {"seconds": seconds, "iterations": iterations, "exploitability_percent": now}
            say(f"{board}, {sizes}: {share:.1%} of the pot after {iterations} iterations, {seconds:.1f} s")
        rows.append({"board": board, "sizes": sizes, "bytes": solution.bytes, "reached": reached})
    return rows


def _note(progress: list[tuple[float, int, float]], start: float, iterations: int, now: float) -> None:
    progress.append((time.perf_counter() - start, iterations, now))


def _all_hands() -> list[str]:
    ranks = "AKQJT98765432"
    suited = [f"{high}2s+" for high in ranks[:-1]]
    return ["22+", *suited, *(hands.replace("s", "o") for hands in suited)]
