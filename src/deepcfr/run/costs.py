"""Estimates of a run's memory and time before it starts, and refusals of runs that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from deepcfr.boards.boards import keeps_all
from deepcfr.boards.rounds import round_trees
from deepcfr.buckets.buckets import read_counts, table_bytes
from deepcfr.buckets.texture import TEXTURE
from deepcfr.config import RunConfig, SamplingConfig, unread_settings
from deepcfr.core.errors import ConfigError
from deepcfr.core.files import cache_folder
from deepcfr.core.machine import usable_memory
from deepcfr.game import strength
from deepcfr.game.base import Game
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.poker import Poker, PokerGame
from deepcfr.game.presets import GameSource, cards_of, is_poker
from deepcfr.game.rules import PokerRules
from deepcfr.game.tree_game import TreeGame
from deepcfr.measure.limits import too_many_boards
from deepcfr.network.networks import number_of_weights
from deepcfr.run.build import make_game, solver_class
from deepcfr.solve.mccfr import built_in_buckets
from deepcfr.solve.memories import board_bytes, drawn_bytes


def cost_notes(
    config: RunConfig, source: GameSource, abstraction: Path | None = None, *, game: Callable[[], Game] | None = None
) -> list[str]:
    """Sentences on the memory of a run and on settings that it does not read.

    `abstraction` is the folder of the one that the run uses, if any.
    `game` returns the game of `source` with cards as the run's networks see them; without it the game is built here.
    Raises ConfigError if its device is missing, or too small for its memories or tables, and the errors of the game and
    the abstraction if they are missing.
    """
    game = game or partial(make_game, source, config)
    if config.tabular:
        return [*_of_tables(config, source, abstraction, game), *unread_settings(config)]
    available = _memory_of(config.runtime.device)  # before a game is made there
    made = game()
    reason = too_many_boards(made.rules) if isinstance(made, PokerGame) else None
    return [*_of_networks(config, made, available), *unread_settings(config), *([reason] if reason else [])]


def require_memory(what: str, needed: int, available: int | None, advice: str = "", beside: int = 0) -> None:
    """Raise ConfigError with `what` and `advice` if `needed` bytes do not fit into what is `available`.

    Other `beside` bytes are there already. None: what is available is not known.
    """
    if available is not None and needed + beside > 0.9 * available:
        advice = f": {advice}" if advice else ""
        raise ConfigError(f"{what} {needed / 1e9:,.1f} GB, and there are {available / 1e9:.1f} GB{advice}.")


def _of_networks(config: RunConfig, game: Game, available: int | None) -> Iterator[str]:
    """Sentences on a run that trains networks."""
    networks, table = network_bytes(game, config), 0
    if isinstance(game, PokerGame) and config.network.strength:
        deck = (game.card_groups, game.rules.num_ranks, game.rules.num_suits)
        table = strength.table_bytes(*deck, spread=strength.has_spread(game.card_groups))
    if available is not None and config.runtime.device != "cpu":  # processors map the table from a file
        available -= table
    settings = "network.width or network.layers" + ", or raise cfr.keep_networks" * bool(config.cfr.keep_networks)
    require_memory("The networks need up to", networks, available, f"lower {settings}")
    if hasattr(game, "size"):
        yield game.size
    if config.family != "ppo":  # which has no memories
        yield _memory_note(game, config, available, networks)
    if isinstance(game, PokerGame) and config.plays_all_hands:
        yield from _board_notes(game, config.sampling)
    if table:
        kept = f", kept in {folder}" if table >= strength.KEPT_BYTES and (folder := cache_folder()) else ""
        yield f"the table of hand strengths takes {table / 1e9:.2f} GB{kept}"


def network_bytes(game: Game, config: RunConfig) -> int:
    """Bytes of a run's networks when all are there, with gradients and optimizer's state of those fitted at a time.

    Weights take four bytes, and two in snapshots; Adam keeps two moments of each.
    """
    count, moments = number_of_weights(game.encoding, config.network), 2
    if config.solver == "deep-cfr":
        every = config.cfr.keep_networks
        snapshots = config.iterations // every if every else 0
        return count * (4 * (2 + moments + 2 + config.has_values) + 2 * 2 * snapshots)
    return count * 4 * (4 * (2 + moments) + (2 if config.solver == "nfsp" else 0))


def _memory_note(game: Game, config: RunConfig, available: int | None, networks: int) -> str:
    """A sentence on the memories of a run; raises ConfigError if they do not fit beside its networks."""
    needed = solver_class(game, config).memory_bytes(game, config)
    names = ["memory.capacity", *(["values.capacity"] if config.has_values else [])]
    if config.solver == "nfsp":
        names = ["nfsp.reservoir_capacity", "nfsp.replay_capacity"]
    require_memory("The memories need up to", needed, available, f"lower {' or '.join(names)}", beside=networks)
    return f"memories take up to {needed / 1e9:.2f} GB, and a checkpoint as much on disk"


def _board_notes(game: PokerGame, settings: SamplingConfig) -> Iterator[str]:
    """Sentences on the boards of public-chance traversals."""
    if not keeps_all(game.rules, merge=game.suits == "canonical"):
        if settings.on_panel:
            raise ConfigError(
                f"{game.name} has too many boards to keep, and a panel keeps its boards: set sampling.panel to false, "
                "and cfr.weighting to linear, or sampling.kind to external."
            )
        yield f"each thread takes up to {drawn_bytes(game, round_trees(game)) / 1e9:.2f} GB for a drawn board"
        return
    needed = board_bytes(game, settings, round_trees(game))
    what = f"Public-chance traversals keep all boards of {game.name}, which need"
    require_memory(what, needed, usable_memory(), "sampling.kind = external keeps none")
    yield f"boards take up to {needed / 1e9:.2f} GB"
    if settings.hands and not settings.on_panel:
        yield f"sampling.hands: ignored, because all boards of {game.name} are kept with all their hands"


def _of_tables(
    config: RunConfig, source: GameSource, abstraction: Path | None, build: Callable[[], Game]
) -> Iterator[str]:
    """Sentences on a run of a tabular solver."""
    settings, sampled = config.solve, config.solver == "mccfr"
    reason = too_many_boards(cards_of(source)) if is_poker(source) else None
    if reason and not sampled:
        raise ConfigError(f"{config.solver} visits every board: {reason} mccfr samples them.")
    game, counts, buckets = build(), None, 0
    kind = solver_class(game, config)
    if isinstance(game, Poker) and abstraction:
        counts = read_counts(abstraction, game.source.deck, any_betting=isinstance(game, BetSizePoker))
        buckets = table_bytes(game.source.deck, counts)
    elif isinstance(game, Poker) and settings.abstraction != "lossless":
        counts = built_in_buckets(game.source.deck, TEXTURE).counts
    needed = kind.memory_bytes(game, config, **({"counts": counts} if counts else {}))
    beside = f", and its abstraction {buckets / 1e9:.1f} GB" if buckets else ""
    advice = "choose an abstraction" if sampled else "choose int16, or mccfr with an abstraction"
    require_memory(
        f"The tables of {source.name} in {settings.precision}{beside} need",
        needed,
        usable_memory(),
        advice if isinstance(source, PokerRules) else "",
        beside=buckets,
    )
    if size := game.size if isinstance(game, TreeGame) else reason:
        yield size
    yield f"tables take {needed / 1e9:.2f} GB, and a checkpoint about as much on disk"
    if buckets:
        yield f"the abstraction takes {buckets / 1e9:.2f} GB"


def _memory_of(device: str) -> int | None:
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise ConfigError(f"'runtime.device' is {device}, but this machine has no CUDA device.")
        index, count = torch.device(device).index or 0, torch.cuda.device_count()
        if index >= count:
            raise ConfigError(f"'runtime.device' is {device}, but the devices of this machine are 0 to {count - 1}.")
        return int(torch.cuda.get_device_properties(device).total_memory)
    return usable_memory()
