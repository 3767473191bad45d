"""Tournaments: matches of all pairs of policies, or of the first policy against all others, in a cross table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Protocol, TypeVar

from deepcfr.errors import ConfigError
from deepcfr.evaluation.match import Match


class Rival(Protocol):
    """The part of a policy that a tournament uses."""

    @property
    def kind(self) -> str:
        """A short description for reports."""
        ...


P = TypeVar("P", bound=Rival)


@dataclass(frozen=True)
class Tournament:
    """A cross table in thousandths of the game's unit: `mean[i][j]` is the gain of policy i against policy j.

    Pairs that did not play have None.
    """

    game: str
    unit: str
    names: tuple[str, ...]
    policies: tuple[str, ...]  # their kinds
    mean: tuple[tuple[float | None, ...], ...]  # 0 on the diagonal
    interval: tuple[tuple[float | None, ...], ...]  # half of each 95 % confidence interval
    average: tuple[float, ...]  # mean of each row over its opponents
    boards: int  # sampled runouts of each match; 0 for exact matches and matches over hands
    hands: int  # sampled deals of each match; 0 for other matches
    seconds: float

    def facts(self) -> dict[str, Any]:
        """The table as data for JSON."""
        return asdict(self)


def pairings(players: int, against_first: bool) -> list[tuple[int, int]]:
    """The pairs that play, by number: all pairs, or the first policy with all others."""
    if against_first:
        return [(0, other) for other in range(1, players)]
    return list(combinations(range(players), 2))


def tournament(
    names: Sequence[str],
    policies: Sequence[P],
    play: Callable[[P, P], Match],
    against_first: bool = False,
) -> Tournament:
    """The cross table of `policies` under `names`, one match by `play` for each pair of `pairings`.

    With the same seed, all matches have the same deals or boards. Raises ConfigError for fewer than two policies, and
    any error of `play`.
    """
    if len(policies) < 2:
        raise ConfigError(f"A tournament needs at least 2 policies, but {len(policies)} were given.")
    mean: list[list[float | None]] = [[None] * len(policies) for _ in policies]
    interval: list[list[float | None]] = [[None] * len(policies) for _ in policies]
    for i in range(len(policies)):
        mean[i][i] = interval[i][i] = 0.0
    seconds = 0.0
    for i, j in pairings(len(policies), against_first):
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
        average=tuple(map(_average, mean)),
        boards=match.boards,
        hands=match.hands,
        seconds=seconds,
    )


def _average(row: Sequence[float | None]) -> float:
    """The mean gain over the opponents that the policy met."""
    met = [gain for gain in row if gain is not None]
    return sum(met) / (len(met) - 1)
