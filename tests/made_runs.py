"""Runs that several test modules look at and leave alone: each is made once in a process, when it is first asked for."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bet_size_games import TWO_ROUNDS, write_game
from command_line import Outcome, deepcfr
from small_runs import TINY, Places, make_places

_FOLDER = tempfile.TemporaryDirectory(prefix="deepcfr-made-")
ROOT = Path(_FOLDER.name)


class Made(NamedTuple):
    """A finished run, and what the command that made it said."""

    path: Path
    outcome: Outcome


def _made(path: Path, outcome: Outcome) -> Made:
    assert outcome.status == 0, outcome.err  # so that no later test finds half a run
    return Made(path, outcome)


@cache
def places() -> Places:
    """A definition of a game and an abstraction of leduc."""
    return make_places(ROOT)


@cache
def trained() -> Made:
    """Three iterations of Deep CFR on kuhn."""
    arguments = ("--iterations", 3, "--evaluation.every", 2, *TINY)
    return _made(ROOT / "trained", deepcfr("train", "kuhn", "--out", ROOT / "trained", "--json", *arguments))


@cache
def solved(name: str) -> Made:
    """A run of tables: `full-width`, on `buckets`, or of a game of `openspiel`."""
    arguments: tuple[object, ...] = {
        "full-width": ("leduc", "--solver", "cfr+", "--iterations", 200, "--evaluation.every", 50),
        "buckets": ("leduc", "--solver", "mccfr", "--iterations", 4, "--traversals", 500, "--runtime.threads", 1),
        "openspiel": ("openspiel:kuhn_poker", "--solver", "cfr+", "--iterations", 30, "--evaluation.every", 10),
    }[name]
    if name == "buckets":
        arguments = (*arguments, "--abstraction", places().abstraction)
    return _made(ROOT / name, deepcfr("solve", *arguments, "--out", ROOT / name, "--json"))


@cache
def bet_sizes() -> Path:
    """A run of tables of a game with bet sizes, beside its `two.toml`."""
    write_game(TWO_ROUNDS, ROOT / "two.toml")
    few = ("--solver", "mccfr", "--iterations", 20, "--traversals", 50, "--runtime.threads", 1, "--json")
    assert deepcfr("solve", ROOT / "two.toml", "--out", ROOT / "sizes", *few).status == 0
    return ROOT / "sizes"


@cache
def exported() -> Path:
    """The run of `trained` without its memories."""
    assert deepcfr("export", trained().path, "--out", ROOT / "exported").status == 0
    return ROOT / "exported"
