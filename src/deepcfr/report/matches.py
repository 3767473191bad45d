"""Matches and tournaments of runs and scripted styles: who plays, how, and what is printed of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table

from deepcfr.errors import ConfigError
from deepcfr.evaluation.match import Match, boards_match, exact_match, sampled_match
from deepcfr.evaluation.match.record import require_same_game
from deepcfr.evaluation.tournament import Tournament, tournament
from deepcfr.policies.base import Policy
from deepcfr.policies.scripted import scripted_policy
from deepcfr.runs.folder import RunFolder

SCRIPTED = "scripted:"
Warn = Callable[[str], None]
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Terms:
    """How matches are played; with neither boards nor hands they are exact. Raises ConfigError for what cannot be."""

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

    def play(self, first: Policy, second: Policy, on_progress: OnProgress | None = None) -> Match:
        """One match on these terms; raises what the matches raise."""
        if self.hands is not None:
            return sampled_match(first, second, self.hands, self.seed, threads=self.threads, on_hands=on_progress)
        if not isinstance(self.boards, int):
            return exact_match(first, second, self.threads, on_progress)
        match = partial(boards_match, first, second, self.boards, self.seed, threads=self.threads, on_board=on_progress)
        return match() if self.lines is None else match(lines=self.lines)

    def describe(self) -> str:
        """What a result rests on, in words."""
        if self.hands is not None:
            return f"{self.hands:,} deals, each in both seats, seed {self.seed}"
        if isinstance(self.boards, int):
            return f"all hands on {self.boards:,} sampled boards, in both seats, seed {self.seed}"
        return "exact"


def load_players(names: Sequence[str], which: str, warn: Warn) -> list[Policy]:
    """The policies that play under `names`: `which` one of a run folder, or a style as `scripted:STYLE`.

    A style plays the game of the first run. Raises ConfigError if there is none, GameError for runs of different games and
    for unknown styles, and what loading a run raises.
    """
    loaded = {name: RunFolder.open(Path(name)).load_policy(which, warn)[0] for name in names if not _is_style(name)}
    if not loaded:
        raise ConfigError(f"Scripted styles play the game of a run, but none is among {', '.join(names)}.")
    games = [policy.game for policy in loaded.values()]
    for one, other in combinations(games, 2):
        require_same_game(one, other)
    styles = {name: scripted_policy(name.removeprefix(SCRIPTED), games[0]) for name in names if _is_style(name)}
    return [(loaded | styles)[name] for name in names]


def _is_style(name: str) -> bool:
    return name.startswith(SCRIPTED)


def describe_match(match: Match, names: tuple[str, str], terms: Terms) -> str:
    """A match in one sentence."""
    margin = "" if match.exact else f" +- {match.interval:.3f} (95 %)"
    return (
        f"{match.game}: {names[0]} gains {match.value:+.3f}{margin} {match.unit} against {names[1]} ({terms.describe()}; "
        f"{match.seats[0]:+.3f} as player 0, {match.seats[1]:+.3f} as player 1)"
    )


def play_tournament(names: Sequence[str], policies: Sequence[Policy], terms: Terms, on_match: OnProgress) -> Tournament:
    """The cross table on these terms; `on_match(done, total)` reports progress."""
    total, done = len(policies) * (len(policies) - 1) // 2, 0

    def play(first: Policy, second: Policy) -> Match:
        nonlocal done
        match = terms.play(first, second)
        done += 1
        on_match(done, total)
        return match

    return tournament(names, policies, play)


def show_tournament(result: Tournament, terms: Terms, console: Console) -> None:
    """Print the cross table: what the player of a row gains against that of a column."""
    exact = not result.boards and not result.hands
    table = Table(title=f"{result.game}, {result.unit}, the row's gain against the column ({terms.describe()})")
    table.add_column("")
    for number in range(1, len(result.names) + 1):  # names of runs are paths, too long to stand side by side
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("average", justify="right", no_wrap=True)
    for i, name in enumerate(result.names):
        cells = [
            "-" if i == j else _cell(result.mean[i][j], None if exact else result.interval[i][j])
            for j in range(len(result.names))
        ]
        table.add_row(f"{i + 1} {name}", *cells, f"{result.average[i]:+.1f}")
    console.print(table)
    if not exact:
        console.print("The number after +- is half of the match's 95 % confidence interval.")


def _cell(mean: float, interval: float | None) -> str:
    return f"{mean:+.1f}" if interval is None else f"{mean:+.1f} +- {interval:.1f}"
