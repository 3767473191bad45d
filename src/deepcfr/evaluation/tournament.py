"""Tournaments: every policy against every other one, and the cross table of their matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from deepcfr.errors import ConfigError
from deepcfr.evaluation.match import Match
from deepcfr.policies.ladder import Player


@dataclass(frozen=True)
class Tournament:
    """A cross table in thousandths of the game's unit: `mean[i][j]` is what policy i gains against policy j."""

    game: str
    unit: str
    names: tuple[str, ...]
    policies: tuple[str, ...]  # what each of them is
    mean: tuple[tuple[float, ...], ...]  # 0 on the diagonal
    interval: tuple[tuple[float, ...], ...]  # half of each 95 % confidence interval
    average: tuple[float, ...]  # of each row over its opponents
    boards: int  # runouts of each match; 0 if they were exact or of hands
    hands: int  # deals of each match, likewise
    seconds: float

    def facts(self) -> dict[str, Any]:
        """The table as data for JSON."""
        return asdict(self)


def tournament(names: Sequence[str], policies: Sequence[Player], play: Callable[[Player, Player], Match]) -> Tournament:
    """The cross table of `policies` under `names`, one match by `play` for each pair.

    With the same seed in all of them, every match has the same deals or boards. Raises ConfigError for fewer than two
    policies, and what `play` raises.
    """
    if len(policies) < 2:
        raise ConfigError(f"A tournament needs at least 2 policies, but {len(policies)} were given.")
    count = len(policies)
    mean = [[0.0] * count for _ in policies]
    interval = [[0.0] * count for _ in policies]
    seconds = 0.0
    for i, j in combinations(range(count), 2):
        match = play(policies[i], policies[j])
        mean[i][j], mean[j][i] = match.value, -match.value
        interval[i][j] = interval[j][i] = match.interval
        seconds += match.seconds
    return Tournament(
        game=match.game,
        unit=match.unit,
        names=tuple(names),
        policies=tuple(policy.kind for policy in policies),
        mean=tuple(map(tuple, mean)),
        interval=tuple(map(tuple, interval)),
        average=tuple(sum(row) / (count - 1) for row in mean),
        boards=match.boards,
        hands=match.hands,
        seconds=seconds,
    )
