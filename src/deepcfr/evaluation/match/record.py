"""What a match says, and which policies can have one."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, fields
from typing import Any

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy

_WORDS = ("name", "rank_symbols", "suit_symbols")  # fields of rules that change how a game is written, not the game


@dataclass(frozen=True)
class Match:
    """What the first of two policies gains against the second; values are in thousandths of the game's unit."""

    game: str
    unit: str  # the milli unit, such as mbb/g
    value: float  # mean of both seats
    seats: tuple[float, float]  # as player 0, as player 1
    interval: float  # half the width of the 95 % confidence interval of `value`, 0 if exact
    hands: int  # deals played, each of them twice; 0 if none were
    boards: int  # runouts sampled, with all hands on each; 0 if none were
    exact: bool
    seconds: float
    policies: tuple[str, str]  # what the first and the second are

    def facts(self) -> dict[str, Any]:
        """The match as data for JSON; `mean` is `value` under the name that its interval is of."""
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
    """The record of a match that began at `start`, from `gains` in each seat and half an interval in the game's unit."""
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


def require_same_game(first: Game, second: Game) -> None:
    """Raise GameError unless policies of the two games can play each other; how cards are shown may differ."""
    if first is second:
        return
    if isinstance(first, PokerGame) and isinstance(second, PokerGame):
        different = _different_rules(first.rules, second.rules)
        if not different:
            return
        names = f"'{first.name}' and '{second.name}' differ in {', '.join(different)}"
    elif isinstance(first, OpenSpielGame) and isinstance(second, OpenSpielGame):
        if str(first.spiel_game) == str(second.spiel_game):  # which spells out all parameters
            return
        names = f"'{first.name}' and '{second.name}' are two games of OpenSpiel"
    else:
        names = (
            f"'{first.name}' ({type(first).__name__}) and '{second.name}' ({type(second).__name__}) are not the same"
        )
    raise GameError(f"A match needs two policies of one game, but {names}.")


def _different_rules(first: PokerRules, second: PokerRules) -> list[str]:
    names = [field.name for field in fields(PokerRules) if field.name not in _WORDS]
    return [name for name in names if getattr(first, name) != getattr(second, name)]
