"""Terms of matches and tournaments, and the text of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from deepcfr.errors import ConfigError
from deepcfr.evaluation.match import Match, boards_match, exact_match, sampled_match
from deepcfr.evaluation.tournament import Tournament, pairings, tournament
from deepcfr.policies.base import LadderPolicy, Player

LADDER_DEALS = 100_000  # default number of deals in a raise-ladder game
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Terms:
    """The terms of matches. Without boards and hands matches are exact, or over LADDER_DEALS deals in a raise-ladder game.

    Raises ConfigError for impossible values.
    """

    boards: int | Literal["all"] | None = None
    hands: int | None = None
    lines: int | None = None  # public action sequences of a round to play out on a runout; None for the default
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise ConfigError(f"--threads must be at least 1, but is {self.threads}.")
        if self.seed < 0:
            raise ConfigError(f"--seed must not be negative, but is {self.seed}.")
        if self.boards is not None and self.hands is not None:
            raise ConfigError("A match is played over boards or over hands: give --boards or --hands, but not both.")
        if self.lines is not None and not isinstance(self.boards, int):
            raise ConfigError("--lines is for matches over sampled boards: give --boards a number with it.")

    def settled(self, player: Player) -> Terms:
        """These terms with the defaults of a player's game. Raises ConfigError for boards in a raise-ladder game."""
        if not isinstance(player, LadderPolicy):
            return self
        if self.boards is not None:
            raise ConfigError(
                f"The tree of {player.game.name} is not listed, so its matches are of hands: give --hands and no --boards."
            )
        return self if self.hands is not None else replace(self, hands=LADDER_DEALS)

    def play(self, first: Player, second: Player, on_progress: OnProgress | None = None) -> Match:
        """Play one match on these terms; raises the errors of the matches."""
        hands = self.settled(first).hands
        if hands is not None or isinstance(first, LadderPolicy) or isinstance(second, LadderPolicy):
            return sampled_match(
                first,
                second,
                LADDER_DEALS if hands is None else hands,
                self.seed,
                threads=self.threads,
                on_hands=on_progress,
            )
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


def describe_match(match: Match, names: tuple[str, str], terms: Terms) -> str:
    """A match in one sentence."""
    margin = "" if match.exact else f" +- {match.interval:.3f} (95 %)"
    return (
        f"{match.game}: {names[0]} gains {match.value:+.3f}{margin} {match.unit} against {names[1]} ({terms.describe()}; "
        f"{match.seats[0]:+.3f} as player 0, {match.seats[1]:+.3f} as player 1)"
    )


def play_tournament(
    names: Sequence[str], policies: Sequence[Player], terms: Terms, on_match: OnProgress, against_first: bool = False
) -> Tournament:
    """Play all pairs, or those with the first player; returns the cross table. `on_match(done, total)` reports progress."""
    total, done = len(pairings(len(policies), against_first)), 0

    def play(first: Player, second: Player) -> Match:
        nonlocal done
        match = terms.play(first, second)
        done += 1
        on_match(done, total)
        return match

    return tournament(names, policies, play, against_first)


def show_tournament(result: Tournament, terms: Terms, console: Console) -> None:
    """Print the cross table of gains of rows against columns, or the gains of the first player."""
    complete = all(gain is not None for row in result.mean for gain in row)
    table = _cross_table(result, terms) if complete else _gains_of_first(result, terms)
    # a wide table wraps in the terminal, so that no names or numbers are cut
    widest = Measurement.get(console, console.options.update(width=10_000), table).maximum
    Console(file=console.file, width=max(console.width, widest), highlight=False, markup=False).print(table)
    if result.boards or result.hands:
        console.print("The number after +- is half of the match's 95 % confidence interval.")


def _cross_table(result: Tournament, terms: Terms) -> Table:
    table = Table(title=f"{result.game}, {result.unit}, the row's gain against the column ({terms.describe()})")
    table.add_column("")
    for number in range(1, len(result.names) + 1):  # names of runs are paths, too long for column heads
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("average", justify="right", no_wrap=True)
    for i, name in enumerate(result.names):
        cells = ["-" if i == j else _cell(result, i, j) for j in range(len(result.names))]
        table.add_row(f"{i + 1} {name}", *cells, f"{result.average[i]:+.1f}")
    return table


def _gains_of_first(result: Tournament, terms: Terms) -> Table:
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
