"""Estimates of a run's memory and time before it starts, and refusals of runs that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import disk_usage

import torch

from deepcfr.abstraction.buckets import read_counts, read_description, table_bytes
from deepcfr.abstraction.texture import TEXTURE
from deepcfr.config import AnyConfig, PublicChanceSampling, RunConfig, SolveConfig, unread_settings
from deepcfr.errors import ConfigError
from deepcfr.evaluation.limits import refusal
from deepcfr.files import cache_folder
from deepcfr.games import strength
from deepcfr.games.base import Game
from deepcfr.games.ladder_game import LadderPoker
from deepcfr.games.poker import Poker, PokerGame
from deepcfr.games.presets import GameSource, build_game, cards_of, is_poker
from deepcfr.games.rules import PokerRules
from deepcfr.games.tree_game import TreeGame
from deepcfr.machine import usable_memory
from deepcfr.ranges.boards import keeps_all
from deepcfr.ranges.rounds import round_trees
from deepcfr.reinforcement import nfsp
from deepcfr.runs.listing import duration
from deepcfr.solvers import mccfr, memories, tree_cfr, vector_cfr
from deepcfr.solvers.build import Solver, require_tabular
from deepcfr.solvers.history_values import value_memory_bytes
from deepcfr.solvers.mccfr import built_in_buckets
from deepcfr.solvers.memories import board_bytes, drawn_bytes
from deepcfr.training.networks import number_of_weights


def cost_notes(
    config: AnyConfig,
    source: GameSource,
    abstraction: Path | None = None,
    *,
    game: Callable[[], Game] | None = None,
) -> list[str]:
    """Sentences on the memory of a run and on settings that it does not read.

    `abstraction` is the folder of the one that the run uses, if any.
    `game` returns the game of `source` with cards as the run's networks see them; without it the game is built here.
    Raises ConfigError if its device is missing, or too small for its memories or tables, and the errors of the game and the
    abstraction if they are missing.
    """
    if isinstance(config, SolveConfig):
        return _tabular_notes(config, source, abstraction, game or partial(build_game, source))
    available = _memory_of(config.runtime.device)
    poker = (game or partial(build_game, source, config.network.suits))()
    table = _strength_bytes(poker, config)
    if available is not None and config.runtime.device != "cpu":  # processors map the table from a file
        available -= table
    _require_networks(poker, config, available)
    notes = [poker.size] if hasattr(poker, "size") else []
    if config.solver != "ppo":  # which has no memories
        notes.append(_memory_note(poker, config, available))
    if not isinstance(poker, PokerGame):
        return [*notes, *unread_settings(config)]
    if config.sampling.kind == "public-chance" and config.solver == "deep-cfr":
        notes.append(_board_note(poker, config.sampling))
        if (
            config.sampling.hands
            and not config.sampling.panel
            and keeps_all(poker.rules, merge=poker.suits == "canonical")
        ):
            notes.append(f"sampling.hands: ignored, because all boards of {poker.name} are kept with all their hands")
    if table:
        kept = f", kept in {folder}" if table >= strength.KEPT_BYTES and (folder := cache_folder()) else ""
        notes.append(f"the table of hand strengths takes {table / 1e9:.2f} GB{kept}")
    notes += unread_settings(config)
    reason = refusal(poker.rules)
    return [*notes, reason] if reason else notes


def network_bytes(game: Game, config: RunConfig) -> int:
    """Bytes of a run's networks when all are there, with gradients and optimizer's state of those fitted at a time.

    Weights take four bytes, and two in snapshots; Adam keeps two moments of each.
    """
    count = number_of_weights(game.encoding, config.network)
    if config.solver == "nfsp":
        fitted, others, moments = 4, 2, 2
    elif config.solver == "ppo":
        fitted, others, moments = 4, 0, 2
    else:
        fitted, others, moments = 1, 2 + config.has_values, 2
    every = config.cfr.keep_networks if config.solver == "deep-cfr" else 0
    snapshots = config.iterations // every if every else 0
    return count * (4 * (fitted * (2 + moments) + others) + 2 * 2 * snapshots)


def _strength_bytes(game: Game, config: RunConfig) -> int:
    """Bytes of the table of hand strengths that the networks read; 0 if they read none."""
    if not isinstance(game, PokerGame) or not config.network.strength:
        return 0
    deck = (game.card_groups, game.rules.num_ranks, game.rules.num_suits)
    return strength.table_bytes(*deck, spread=strength.has_spread(game.card_groups))


def _require_networks(game: Game, config: RunConfig, available: int | None) -> None:
    """Raise ConfigError if the networks do not fit into what is `available`; None: it is not known."""
    needed = network_bytes(game, config)
    if available is not None and needed > 0.9 * available:
        settings = "network.width or network.layers" + ", or raise cfr.keep_networks" * bool(config.cfr.keep_networks)
        raise ConfigError(
            f"The networks need up to {needed / 1e9:.1f} GB, and there are {available / 1e9:.1f} GB: lower {settings}."
        )


def _memory_note(poker: Game, config: RunConfig, available: int | None) -> str:
    """A sentence on the memories of a run; raises ConfigError if they do not fit beside its networks into `available`."""
    is_nfsp = config.solver == "nfsp"
    needed = nfsp.memory_bytes(poker, config.nfsp) if is_nfsp else memories.memory_bytes(poker, config)
    if config.memory.files and not is_nfsp:
        _require_disk(Path(config.memory.files), needed - value_memory_bytes(poker, config), _capacities(config))
    elif available is not None and needed + network_bytes(poker, config) > 0.9 * available:
        names = "nfsp.reservoir_capacity or nfsp.replay_capacity" if is_nfsp else _capacities(config)
        raise ConfigError(
            f"The memories need up to {needed / 1e9:.1f} GB, and there are {available / 1e9:.1f} GB: lower {names}."
        )
    return f"memories take up to {needed / 1e9:.2f} GB, and a checkpoint as much on disk"


def _capacities(config: RunConfig) -> str:
    """The settings that memories shrink with."""
    of_values = ["values.capacity"] if config.has_values else []
    return " or ".join(["memory.advantage_capacity", "memory.strategy_capacity", *of_values])


def _require_disk(folder: Path, needed: int, names: str) -> None:
    """Raise ConfigError if files of memories do not fit into the folder, which need not exist yet."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    free = disk_usage(there).free
    if needed > free:
        raise ConfigError(
            f"The memories need up to {needed / 1e9:.1f} GB in '{folder}', where {free / 1e9:.1f} GB are free: lower "
            f"{names}, or set memory.files to another folder."
        )


def _board_note(game: PokerGame, settings: PublicChanceSampling) -> str:
    if not keeps_all(game.rules, merge=game.suits == "canonical"):
        if settings.panel:
            raise ConfigError(
                f"{game.name} has too many boards to keep, and a panel keeps its boards: set sampling.panel to false, "
                "and cfr.weighting to linear, or sampling.kind to external."
            )
        return f"each thread takes up to {drawn_bytes(game, round_trees(game)) / 1e9:.2f} GB for a drawn board"
    needed, available = board_bytes(game, settings, round_trees(game)), usable_memory()
    if available is not None and needed > 0.9 * available:
        raise ConfigError(
            f"Public-chance traversals keep all boards of {game.name}, which need {needed / 1e9:,.1f} GB, and there are "
            f"{available / 1e9:.1f} GB: sampling.kind = external keeps none."
        )
    return f"boards take up to {needed / 1e9:.2f} GB"


def _tabular_notes(
    config: SolveConfig, source: GameSource, abstraction: Path | None, game: Callable[[], Game]
) -> list[str]:
    settings = config.solve
    sampled = settings.algorithm == "mccfr"
    notes, buckets = [], 0
    if is_poker(source):
        deck = cards_of(source)
        reason = refusal(deck)
        if reason and not sampled:
            raise ConfigError(f"{settings.algorithm} visits every board: {reason} mccfr samples them.")
        notes = [reason] if reason else []
        buckets = _abstraction_bytes(deck, abstraction)
    if isinstance(source, PokerRules) and not sampled:
        needed = vector_cfr.memory_bytes(source, settings)
    else:
        made = require_tabular(game())
        notes += [made.size] if isinstance(made, TreeGame) else []
        if sampled:
            counts = None if isinstance(made, TreeGame) else _bucket_counts(config, made, abstraction)
            needed = mccfr.memory_bytes(made, counts, settings.precision, settings.baseline)
        else:
            assert isinstance(made, TreeGame)
            needed = tree_cfr.memory_bytes(made)
    if reason := tables_refusal(source.name, settings.precision, needed, buckets):
        raise ConfigError(f"{reason}{_advice(source, sampled)}.")
    notes.append(f"tables take {needed / 1e9:.2f} GB, and a checkpoint about as much on disk")
    notes += [f"the abstraction takes {buckets / 1e9:.2f} GB"] if buckets else []
    return [*notes, *unread_settings(config)]


def _bucket_counts(config: SolveConfig, game: Poker, abstraction: Path | None) -> tuple[int, ...] | None:
    """The buckets of each round; None for a lossless abstraction, which is not built for it."""
    if abstraction:
        return read_counts(abstraction, game.source.deck, any_betting=isinstance(game, LadderPoker))
    return None if config.solve.abstraction == "lossless" else built_in_buckets(game.source.deck, TEXTURE).counts


def tables_refusal(name: str, precision: str, needed: int, buckets: int = 0) -> str | None:
    """The reason why memory cannot hold tables of `needed` bytes and an abstraction of `buckets` bytes; None if it can.

    A sentence without its full stop, so that advice can follow.
    """
    available = usable_memory()
    if available is None or needed + buckets <= 0.9 * available:
        return None
    beside = f", and its abstraction {buckets / 1e9:.1f} GB" if buckets else ""
    return f"The tables of {name} in {precision} need {needed / 1e9:.1f} GB{beside}, and there are {available / 1e9:.1f} GB"


def _abstraction_bytes(rules: PokerRules, abstraction: Path | None) -> int:
    return table_bytes(rules, tuple(read_description(abstraction)["counts"])) if abstraction else 0


def _advice(source: GameSource, sampled: bool) -> str:
    if not isinstance(source, PokerRules):
        return ""
    return ": choose an abstraction" if sampled else ": choose int16, or mccfr with an abstraction"


def time_notes(solver: Solver, config: AnyConfig) -> Iterator[str]:
    """Sentences on the time of the rest of a run; a tabular solver measures a small part of it when they are read."""
    left = config.iterations - solver.iteration
    if config.runtime.minutes:
        yield f"the run ends after {config.runtime.minutes:g} min"
    elif left > 0 and (seconds := solver.seconds_per_iteration()) is not None:
        whole = duration(left * seconds)
        yield f"{left:,} iterations take about {whole}, {seconds:.2g} s each, and evaluations besides"


def _memory_of(device: str) -> int | None:
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise ConfigError(f"'runtime.device' is {device}, but this machine has no CUDA device.")
        index, count = torch.device(device).index or 0, torch.cuda.device_count()
        if index >= count:
            raise ConfigError(f"'runtime.device' is {device}, but the devices of this machine are 0 to {count - 1}.")
        return int(torch.cuda.get_device_properties(device).total_memory)
    return usable_memory()
