"""The terms of matches, tournaments in a cross table, and the text of their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from numbers import Integral
from typing import Any, Literal

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from deepcfr.core.errors import ConfigError, require_least
from deepcfr.core.types import OnProgress
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.measure.match.boards import boards_match
from deepcfr.measure.match.exact import exact_match
from deepcfr.measure.match.hands import sampled_match
from deepcfr.measure.match.record import Match
from deepcfr.policy.base import Policy

BET_SIZE_DEALS = 100_000  # default number of deals in a game with bet sizes


@dataclass(frozen=True)
class TournamentTerms:
    """The terms of matches. Without boards and hands they are exact, or over BET_SIZE_DEALS deals in a game with bet sizes.

    Raises ConfigError for impossible values.
    """

    boards: int | Literal["all"] | None = None
    hands: int | None = None
    lines: int | None = None  # public action sequences of a round to play out on a runout; None for the default
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("boards", "hands", "lines", "seed", "threads"):
            value = getattr(self, name)
            optional = name not in ("seed", "threads")
            if (optional and value is None) or (name == "boards" and isinstance(value, str) and value == "all"):
                continue
            if not isinstance(value, Integral):
                raise ConfigError(f"'{name}' of a match must be a whole number, but is {value!r}.")
            object.__setattr__(self, name, int(value))
        require_least(1, {"The number of threads": self.threads})
        require_least(0, {"The seed": self.seed})
        if self.boards is not None and self.hands is not None:
            raise ConfigError(
                "A match is played over boards or over hands: give a number of one of them, but not of both."
            )
        if self.lines is not None and not isinstance(self.boards, int):
            raise ConfigError("A number of lines is for matches over sampled boards: give a number of boards with it.")

    def settled(self, player: Policy) -> TournamentTerms:
        """These terms with the defaults of a player's game: in a game with bet sizes a number of hands."""
        if not isinstance(player.game, BetSizePoker) or self.boards is not None or self.hands is not None:
            return self
        return replace(self, hands=BET_SIZE_DEALS)

    def play(self, first: Policy, second: Policy, on_progress: OnProgress | None = None) -> Match:
        """Play one match on these terms; raises the errors of the matches.

        Raises GameError for boards in a game with bet sizes that is too large to list.
        """
        hands = self.settled(first).hands
        if hands is not None:
            return sampled_match(first, second, hands, self.seed, threads=self.threads, on_hands=on_progress)
        if not isinstance(self.boards, int):
            return exact_match(first, second, self.threads, on_progress)
        match = partial(boards_match, first, second, self.boards, self.seed, threads=self.threads, on_board=on_progress)
        return match() if self.lines is None else match(lines=self.lines)

    def describe(self) -> str:
        """The terms of a result, in words."""
        if self.hands is not None:
            return f"{self.hands:,} deals, each in both seats, seed {self.seed}"
        if isinstance(self.boards, int):
            return f"all hands on {self.boards:,} sampled boards, in both seats, seed {self.seed}"
        return "exact"


def describe_match(match: Match, names: tuple[str, str], terms: TournamentTerms) -> str:
    """A match in one sentence."""
    margin = "" if match.exact else f" +- {match.interval:.3f} (95 %)"
    return (
        f"{match.game}: {names[0]} gains {match.value:+.3f}{margin} {match.unit} against {names[1]} ({terms.describe()}; "
        f"{match.seats[0]:+.3f} as player 0, {match.seats[1]:+.3f} as player 1)"
    )


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


def play_tournament(
    names: Sequence[str],
    policies: Sequence[Policy],
    terms: TournamentTerms,
    on_match: OnProgress,
    against_first: bool = False,
) -> Tournament:
    """The cross table of `policies` under `names`: matches of all pairs, or of the first policy with all others.

    With the same seed, all matches have the same deals or boards. `on_match(done, total)` reports progress. Raises
    ConfigError for fewer than two policies, and the errors of the matches.
    """
    count = len(policies)
    if count < 2:
        raise ConfigError(f"A tournament needs at least 2 policies, but {count} were given.")
    mean: list[list[float | None]] = [[None] * count for _ in policies]
    interval: list[list[float | None]] = [[None] * count for _ in policies]
    for i in range(count):
        mean[i][i] = interval[i][i] = 0.0
    pairs = [(i, j) for i, j in combinations(range(count), 2) if i == 0 or not against_first]
    seconds = 0.0
    for done, (i, j) in enumerate(pairs, start=1):
        match = terms.play(policies[i], policies[j])
        mean[i][j], mean[j][i] = match.value, -match.value
        interval[i][j] = interval[j][i] = match.interval
        seconds += match.seconds
        on_match(done, len(pairs))
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


def show_tournament(result: Tournament, terms: TournamentTerms, console: Console) -> None:
    """Print the cross table of gains of rows against columns, or the gains of the first player."""
    complete = all(gain is not None for row in result.mean for gain in row)
    table = _cross_table(result, terms) if complete else _gains_of_first(result, terms)
    # a wide table wraps in the terminal, so that no names or numbers are cut
    widest = Measurement.get(console, console.options.update(width=10_000), table).maximum
    Console(file=console.file, width=max(console.width, widest), highlight=False, markup=False).print(table)
    if result.boards or result.hands:
        console.print("The number after +- is half of the match's 95 % confidence interval.")


def _cross_table(result: Tournament, terms: TournamentTerms) -> Table:
    table = Table(title=f"{result.game}, {result.unit}, the row's gain against the column ({terms.describe()})")
    table.add_column("")
    for number in range(1, len(result.names) + 1):  # names of runs are paths, too long for column heads
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("average", justify="right", no_wrap=True)
    for i, name in enumerate(result.names):
        cells = ["-" if i == j else _cell(result, i, j) for j in range(len(result.names))]
        table.add_row(f"{i + 1} {name}", *cells, f"{result.average[i]:+.1f}")
    return table


def _gains_of_first(result: Tournament, terms: TournamentTerms) -> Table:
    """One row for each opponent of the first player."""
    table = Table(title=f"{result.game}, {result.unit} ({terms.describe()})")
    table.add_column(f"{result.names[0]} against")
    table.add_column("gain", justify="right", no_wrap=True)
    for j, name in enumerate(result.names[1:], start=1):
        table.add_row(name, _cell(result, 0, j))
    table.add_row("all of them, on average", f"{result.average[0]:+.1f}")
    return table


def _cell(result: Tournament, i: int, j: int) -> str:
    """The gain of player i against player j, with its interval unless it is exact."""
    margin = f" +- {result.interval[i][j]:.1f}" if result.boards or result.hands else ""
    return f"{result.mean[i][j]:+.1f}{margin}"
