"""Performance of the tabular solvers: ratios to OpenSpiel's C++ in one process, and our own speeds and memory on hold'em.

The two sides of a ratio run in turns, and medians are compared, because other programs may share the cores.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

import numpy as np

from deepcfr.buckets.buckets import Abstraction, bucket_dtype, round_boards, round_classes
from deepcfr.config import RunConfig, RuntimeConfig, TabularConfig
from deepcfr.config.records import SolverName
from deepcfr.core.rng import key
from deepcfr.game.cards import all_hands
from deepcfr.game.openspiel import import_pyspiel, load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PokerRules
from deepcfr.run.metrics import environment
from deepcfr.solve.mccfr import MCCFR
from deepcfr.solve.sequence_form import TreeCFR
from deepcfr.solve.vector_cfr import VectorCFR
from experiments.bench import peak_memory
from experiments.grid import Say

Rate = Callable[[], float]  # does some work and returns its rate per second
_ENDLESS = 100_000_000  # limit of iterations, more than any measurement needs
_LIARS_DICE = "liars_dice(numdice=1,dice_sides=5)"
_GOOFSPIEL = "goofspiel(imp_info=True,num_cards=5,points_order=descending)"


@dataclass(frozen=True)
class Workload:
    """The size of the measurement; a repetition of the default takes about half a second to a second."""

    repetitions: int = 5  # of both sides of a ratio, after one warm-up
    traversals: int = 300_000  # ours for each player, Monte Carlo CFR on Leduc
    peer_traversals: int = 20_000
    leduc_iterations: int = 3_000  # ours, CFR+
    peer_leduc_iterations: int = 60
    tree_iterations: int = 3_000  # ours, CFR on explicit trees
    peer_tree_iterations: int = 30
    flop_game: str = "fhp"
    limit_game: str = "hulh"
    full_width_iterations: int = 5  # after the first
    buckets: int = 1_000  # in each later round of the limit game
    hold_em_traversals: int = 100_000  # for each player in an iteration
    hold_em_iterations: int = 10  # of the warm-up, and as many again that are measured
    threads: int = 2  # ratios use one thread


def bench_tabular(seed: int, say: Say, workload: Workload | None = None) -> dict[str, Any]:
    """All measurements of the tabular solvers as one JSON object; each figure is also reported when it is measured.

    Raises ConfigError if OpenSpiel is not installed.
    """
    import_pyspiel()
    load = workload or Workload()
    facts: dict[str, Any] = {
        "unit": "ratios: our iterations per second over OpenSpiel's, one thread each",
        "seed": seed,
        "environment": environment("cpu", load.threads),
    }
    # first, while this process is small: a child's peak includes that of its parent
    facts |= _full_width_facts(load, say)
    facts |= _leduc_facts(seed, load, say)
    facts |= _tree_facts("liars_dice", _LIARS_DICE, load, say)
    facts |= _tree_facts("goofspiel", _GOOFSPIEL, load, say)
    return facts | _hold_em_facts(seed, load, say)


def _full_width_facts(load: Workload, say: Say) -> dict[str, Any]:
    """Linear CFR on FHP with tables of 32 and of 16 bits, each in a separate process for separate peaks."""
    facts: dict[str, Any] = {}
    for precision, suffix in (("float32", ""), ("int16", "_int16")):
        work = (load.flop_game, precision, load.full_width_iterations, load.threads)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            seconds, memory = process.submit(measure_full_width, *work).result()
        facts[f"fhp_linear_cfr{suffix}_seconds_per_iteration"] = seconds
        facts[f"fhp_linear_cfr{suffix}_memory_gb"] = memory
        say(f"{load.flop_game}, Linear CFR in {precision}: {seconds:.3g} s an iteration, peak memory {memory:.2f} GB")
    return facts


def measure_full_width(game: str, precision: str, iterations: int, threads: int) -> tuple[float, float]:
    """Seconds of an iteration of full-width Linear CFR, the mean after the first one, and this process's peak in GB."""
    config = _config("linear-cfr", iterations + 1, threads, precision=precision)
    solver = VectorCFR(load_game(game), config)
    seconds = [record.iteration_seconds for record in solver.iterations()]
    return mean(seconds[1:]), peak_memory() / 1e9


def _config(solver: SolverName, iterations: int, threads: int = 1, seed: int = 0, **settings: Any) -> RunConfig:
    """A tabular solver, with these settings of its section."""
    tables, runtime = TabularConfig(**settings), RuntimeConfig(threads=threads)
    return RunConfig(seed=seed, solver=solver, iterations=iterations, solve=tables, runtime=runtime)


def _leduc_facts(seed: int, load: Workload, say: Say) -> dict[str, Any]:
    """Leduc: an iteration of Monte Carlo CFR is one external-sampling traversal for each player, on both sides."""
    pyspiel = import_pyspiel()
    game, peers = load_game("leduc"), pyspiel.load_game("leduc_poker")
    sampling = _config("mccfr", _ENDLESS, seed=seed, traversals=load.traversals, weighting="uniform")
    sampled = _rate(_stepper(MCCFR(game, sampling)), 1, load.traversals)
    swept = _rate(_stepper(VectorCFR(game, _config("cfr+", _ENDLESS))), load.leduc_iterations)
    peer_sampled = _rate(pyspiel.ExternalSamplingMCCFRSolver(peers, seed % 2**31).run_iteration, load.peer_traversals)
    merged = pyspiel.load_game("leduc_poker(suit_isomorphism=true)")
    plain, isomorphic = (
        _rate(pyspiel.CFRPlusSolver(peer).evaluate_and_update_policy, load.peer_leduc_iterations)
        for peer in (peers, merged)
    )
    return {
        **_against("mccfr_leduc", sampled, peer_sampled, load, say),
        **_against("cfr_plus_leduc", swept, plain, load, say),
        # this variant of the game merges suits, as ours does, so its tree is much smaller
        **_against("cfr_plus_leduc_suit_isomorphism", swept, isomorphic, load, say),
    }


def _tree_facts(name: str, openspiel_name: str, load: Workload, say: Say) -> dict[str, Any]:
    """CFR on the explicit tree of a game of OpenSpiel, against CFRSolver on the same turn-based game."""
    game = load_openspiel_game(openspiel_name)
    ours = _rate(_stepper(TreeCFR(game, _config("cfr", _ENDLESS))), load.tree_iterations)
    peer = import_pyspiel().CFRSolver(game.spiel_game)
    theirs = _rate(peer.evaluate_and_update_policy, load.peer_tree_iterations)
    return {f"{name}_game": openspiel_name, **_against(f"{name}_cfr", ours, theirs, load, say)}


def _hold_em_facts(seed: int, load: Workload, say: Say) -> dict[str, Any]:
    """Nodes per second of Monte Carlo CFR: lossless FHP, and limit hold'em in random buckets."""
    flop = _nodes_per_second(load_game(load.flop_game), None, seed, load)
    say(f"{load.flop_game}, lossless MCCFR: {flop:,.0f} nodes/s")
    limit = load_game(load.limit_game)
    abstraction = random_abstraction(limit.rules, load.buckets, seed)
    abstract = _nodes_per_second(limit, abstraction, seed, load)
    say(f"{load.limit_game}, MCCFR with {load.buckets:,} buckets a round: {abstract:,.0f} nodes/s")
    return {
        "fhp_mccfr_nodes_per_second": flop,
        "hulh_mccfr_nodes_per_second": abstract,
        "hulh_mccfr_abstraction": f"Random: {load.buckets:,} buckets in each later round, drawn for every hand on every "
        "board by itself, so look-ups cost what they cost in a real one while strategies mean nothing.",
    }


def _nodes_per_second(game: PokerGame, abstraction: Abstraction | None, seed: int, load: Workload) -> float:
    """The median over iterations after the warm-up, in which most of the tables' memory is touched for the first time."""
    config = _config("mccfr", 2 * load.hold_em_iterations, load.threads, seed, traversals=load.hold_em_traversals)
    records = list(MCCFR(game, config, abstraction).iterations())
    return median(record.nodes_touched / record.iteration_seconds for record in records[load.hold_em_iterations :])


def random_abstraction(rules: PokerRules, buckets: int, seed: int) -> Abstraction:
    """Random buckets in every round with board cards, and a bucket for each hand in rounds without."""
    random = np.random.default_rng(key(seed, "random abstraction"))
    holes = all_hands(rules.num_cards, rules.hole_cards)
    holds = (holes[:, :, None] == np.arange(rules.num_cards)).any(axis=1).T  # [cards, hands]
    counts = tuple(
        buckets if sum(rules.board_cards[: r + 1]) else round_classes(rules, r) for r in range(rules.num_rounds)
    )
    tables = []
    for round_, count in enumerate(counts):
        boards = round_boards(rules, round_).boards
        table = random.integers(count, size=(len(boards), len(holes)), dtype=bucket_dtype(count))
        for card in range(boards.shape[1]):
            table[holds[boards[:, card]]] = np.iinfo(table.dtype).max
        tables.append(table)
    return Abstraction(rules, counts, tuple(tables))


def _stepper(solver: MCCFR | VectorCFR | TreeCFR) -> Callable[[], object]:
    iterations = solver.iterations()
    return lambda: next(iterations)


def _rate(step: Callable[[], object], steps: int, worth: int = 1) -> Rate:
    """The rate of `step` in units per second, over `steps` calls."""

    def rate() -> float:
        start = time.perf_counter()
        for _ in range(steps):
            step()
        return steps * worth / (time.perf_counter() - start)

    return rate


def _against(name: str, ours: Rate, theirs: Rate, load: Workload, say: Say) -> dict[str, Any]:
    """Run both sides in turns, after a warm-up that compiles ours and fills OpenSpiel's tables; medians and their ratio."""
    rates = [(ours(), theirs()) for _ in range(1 + load.repetitions)][1:]
    our_rate, their_rate = (median(side) for side in zip(*rates, strict=True))
    say(f"{name}: {our_rate:,.0f} iterations/s, OpenSpiel {their_rate:,.0f}, {our_rate / their_rate:.1f} x")
    return {
        f"{name}_ratio": our_rate / their_rate,
        f"{name}_iterations_per_second": our_rate,
        f"{name}_openspiel_iterations_per_second": their_rate,
    }
