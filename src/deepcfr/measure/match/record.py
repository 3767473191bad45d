"""Gains of many deals in both seats, the result of a match, and the check that two policies can play one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.game.base import Game
from deepcfr.game.openspiel import OpenSpielGame, same_game
from deepcfr.game.poker import Poker
from deepcfr.game.tree_game import ClassGame
from deepcfr.policy.base import Policy, measures_itself

_WORDS = ("name", "rank_symbols", "suit_symbols")  # fields of rules that change only names


@dataclass(frozen=True)
class Match:
    """The gain of the first of two policies against the second; values are in thousandths of the game's unit."""

    game: str
    unit: str  # the milli unit, such as mbb/g
    value: float  # mean of both seats
    seats: tuple[float, float]  # as player 0, as player 1
    interval: float  # half the width of the 95 % confidence interval of `value`, 0 if exact
    hands: int  # deals played, each of them twice; 0 without sampled deals
    boards: int  # runouts sampled, with all hands on each; 0 without sampled runouts
    exact: bool
    seconds: float
    policies: tuple[str, str]  # kinds of the first and the second policy

    def facts(self) -> dict[str, Any]:
        """The match as data for JSON; `value` is also given as `mean`."""
        return asdict(self) | {"mean": self.value}


def match_record(
    first: Policy,
    second: Policy,
    gains: tuple[float, float],
    start: float,
    *,
    interval: float = 0.0,
    hands: int = 0,
    boards: int = 0,
) -> Match:
    """The result of a match that began at `start`, from the `gains` in each seat and the half interval, both in units."""
    return Match(
        game=first.game.name,
        unit=first.game.milli_unit,
        value=1000 * (gains[0] + gains[1]) / 2,
        seats=(1000 * gains[0], 1000 * gains[1]),
        interval=1000 * interval,
        hands=hands,
        boards=boards,
        exact=not hands and not boards,
        seconds=time.perf_counter() - start,
        policies=(first.kind, second.kind),
    )


def in_both_seats(
    gains: Callable[[int], tuple[float, float]], count: int, threads: int, on_done: Callable[[int, int], None] | None
) -> npt.NDArray[np.float64]:
    """The `gains` of runouts or deals 0 .. `count` - 1 as player 0 and as player 1, [2, count], in units.

    `on_done(done, total)` reports progress.
    """
    found = np.empty((2, count))
    with Workers(threads) as workers:
        for number, both in enumerate(workers.map(gains, range(count))):
            found[:, number] = both
            if on_done:
                on_done(number + 1, count)
    return found


def require_same_game(first: Game, second: Game) -> None:
    """Raise GameError unless policies of the two games can play each other; the encoding of cards may differ."""
    if first is second:
        return
    if isinstance(first, Poker) and isinstance(second, Poker) and type(first.source) is type(second.source):
        names = [field.name for field in fields(first.source) if field.name not in _WORDS]
        different = [name for name in names if getattr(first.source, name) != getattr(second.source, name)]
        if not different:
            return
        problem = f"'{first.name}' and '{second.name}' differ in {', '.join(different)}"
    elif isinstance(first, OpenSpielGame) and isinstance(second, OpenSpielGame):
        if same_game(first.spiel_game, second.spiel_game):
            return
        problem = f"'{first.name}' and '{second.name}' are two different OpenSpiel games"
    elif type(first) is type(second) and (isinstance(first, ClassGame) or measures_itself(first)):
        if first.name == second.name:
            return
        problem = f"'{first.name}' and '{second.name}' are two different classes"
    else:
        problem = (
            f"'{first.name}' ({type(first).__name__}) and '{second.name}' ({type(second).__name__}) are not the same"
        )
    raise GameError(f"A match needs two policies of one game, but {problem}.")
