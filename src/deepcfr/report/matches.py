"""Matches and tournaments of runs, styles and ensembles: who plays, how, and what is printed of it.

A player has a name: a run folder; `scripted:STYLE`; `STYLE:PLAYER`, another one in a style such as tight; or
`ensemble:RULE:PLAYER,PLAYER`, several as one, by the rule sum, mixture or member.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from deepcfr.errors import ConfigError, GameError
from deepcfr.evaluation.match import Match, boards_match, exact_match, sampled_match
from deepcfr.evaluation.match.ladder import ladder_match
from deepcfr.evaluation.match.record import require_same_game
from deepcfr.evaluation.tournament import Tournament, pairings, tournament
from deepcfr.games.ladder import LadderRules
from deepcfr.policies.ensemble import ensemble
from deepcfr.policies.ladder import (
    LadderPolicy,
    Player,
    ladder_ensemble,
    ladder_scripted,
    ladder_style,
    require_same_ladder,
)
from deepcfr.policies.scripted import scripted_policy
from deepcfr.policies.styles import STYLES, styled
from deepcfr.runs.folder import RunFolder

SCRIPTED = "scripted:"
ENSEMBLE = "ensemble:"
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]+")  # meant as a style before a colon: no drive and no path
LADDER_DEALS = 100_000  # of a match in a raise-ladder game where no number is asked for
Warn = Callable[[str], None]
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Terms:
    """How matches are played: with neither boards nor hands exactly, or over LADDER_DEALS deals in a raise-ladder game.

    Raises ConfigError for what cannot be.
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
        """These terms with what a player's game leaves no choice in. Raises ConfigError for a ladder on boards."""
        if not isinstance(player, LadderPolicy):
            return self
        if self.boards is not None:
            raise ConfigError(
                f"The tree of {player.game.name} is not listed, so its matches are of hands: give --hands and no --boards."
            )
        return self if self.hands is not None else replace(self, hands=LADDER_DEALS)

    def play(self, first: Player, second: Player, on_progress: OnProgress | None = None) -> Match:
        """One match on these terms; raises what the matches raise."""
        if isinstance(first, LadderPolicy) or isinstance(second, LadderPolicy):
            return self._play_ladder(first, second, on_progress)
        if self.hands is not None:
            return sampled_match(first, second, self.hands, self.seed, threads=self.threads, on_hands=on_progress)
        if not isinstance(self.boards, int):
            return exact_match(first, second, self.threads, on_progress)
        match = partial(boards_match, first, second, self.boards, self.seed, threads=self.threads, on_board=on_progress)
        return match() if self.lines is None else match(lines=self.lines)

    def _play_ladder(self, first: Player, second: Player, on_progress: OnProgress | None) -> Match:
        if not isinstance(first, LadderPolicy) or not isinstance(second, LadderPolicy):
            raise GameError(f"'{first.game.name}' and '{second.game.name}' are not the same game.")
        hands = self.settled(first).hands
        assert hands is not None
        return ladder_match(first, second, hands, self.seed, threads=self.threads, on_hands=on_progress)

    def describe(self) -> str:
        """What a result rests on, in words."""
        if self.hands is not None:
            return f"{self.hands:,} deals, each in both seats, seed {self.seed}"
        if isinstance(self.boards, int):
            return f"all hands on {self.boards:,} sampled boards, in both seats, seed {self.seed}"
        return "exact"


def load_players(names: Sequence[str], which: str, warn: Warn) -> list[Player]:
    """The policies that play under `names`: `which` one of each run folder, and what is made of them.

    A scripted style plays the game of the first run. Raises ConfigError if there is none and for unknown styles, GameError
    for runs of different games and for unknown scripted styles and rules, and what loading a run raises.
    """
    paths = [path for name in names for path in runs_of(name)]
    if not paths:
        raise ConfigError(f"Scripted styles play the game of a run, but none is among {', '.join(names)}.")
    loaded = {path: _load(path, which, warn) for path in dict.fromkeys(paths)}
    for one, other in combinations(loaded.values(), 2):
        _require_one_game(one, other)
    return [_player(name, loaded, loaded[paths[0]]) for name in names]


def with_styles(names: Sequence[str], styles: Sequence[str]) -> tuple[str, ...]:
    """The names, each followed by its run in each style, or in all of them. Raises ConfigError for an unknown style."""
    wanted = STYLES if "all" in styles else tuple(styles)
    for style in wanted:
        if style not in STYLES:
            raise _no_style(style, "and all")
    return tuple(each for name in names for each in (name, *(f"{style}:{name}" for style in wanted if runs_of(name))))


def runs_of(name: str) -> list[str]:
    """The run folders that a player's name mentions. Raises ConfigError for a style that there is not."""
    if name.startswith(SCRIPTED):
        return []
    if name.startswith(ENSEMBLE):
        _, members = _ensemble_parts(name)
        return [path for member in members for path in runs_of(member)]
    style, _, rest = name.partition(":")
    if style in STYLES and rest:
        return runs_of(rest)
    if rest and _WORD.fullmatch(style) and not Path(name).exists():
        raise _no_style(style, "beside scripted:STYLE and ensemble:RULE:RUN,RUN")
    return [name]


def _no_style(style: str, others: str) -> ConfigError:
    return ConfigError(f"'{style}' is no style of play: {', '.join(STYLES)} are, {others}.")


def made_of(name: str, policy: Player) -> Player:
    """What plays under a name that mentions one run, whose policy this is."""
    return _player(name, dict.fromkeys(runs_of(name), policy), policy)


def _ensemble_parts(name: str) -> tuple[str, list[str]]:
    rule, colon, members = name.removeprefix(ENSEMBLE).partition(":")
    if not colon or not all(members.split(",")):
        raise ConfigError(f"'{name}' names no ensemble: write ensemble:RULE:RUN,RUN.")
    return rule, members.split(",")


def _load(path: str, which: str, warn: Warn) -> Player:
    run = RunFolder.open(Path(path))
    if isinstance(run.source, LadderRules):
        return run.load_ladder_policy(which, warn)[0]
    return run.load_policy(which, warn)[0]


def _require_one_game(one: Player, other: Player) -> None:
    if isinstance(one, LadderPolicy) and isinstance(other, LadderPolicy):
        require_same_ladder(one.game.rules, other.game.rules)
    elif isinstance(one, LadderPolicy) or isinstance(other, LadderPolicy):
        raise GameError(f"A match needs two policies of one game, but there are {one.game.name} and {other.game.name}.")
    else:
        require_same_game(one.game, other.game)


def _player(name: str, loaded: dict[str, Player], first: Player) -> Player:
    """What plays under a name; `first` is a player of the game, which scripted styles play."""
    style, _, rest = name.partition(":")
    if name.startswith(SCRIPTED):
        return (
            ladder_scripted(rest, first.game) if isinstance(first, LadderPolicy) else scripted_policy(rest, first.game)
        )
    if name.startswith(ENSEMBLE):
        rule, members = _ensemble_parts(name)
        return _ensemble([_player(member, loaded, first) for member in members], rule)
    if style in STYLES and rest:
        plain = _player(rest, loaded, first)
        return ladder_style(plain, style) if isinstance(plain, LadderPolicy) else styled(plain, style)
    return loaded[name]


def _ensemble(members: list[Player], rule: str) -> Player:
    if isinstance(members[0], LadderPolicy):
        return ladder_ensemble([member for member in members if isinstance(member, LadderPolicy)], rule)
    return ensemble([member for member in members if not isinstance(member, LadderPolicy)], rule)


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
    """The cross table on these terms, of all pairs or of those with the first; `on_match(done, total)` reports progress."""
    total, done = len(pairings(len(policies), against_first)), 0

    def play(first: Player, second: Player) -> Match:
        nonlocal done
        match = terms.play(first, second)
        done += 1
        on_match(done, total)
        return match

    return tournament(names, policies, play, against_first)


def show_tournament(result: Tournament, terms: Terms, console: Console) -> None:
    """Print the cross table, what the player of a row gains against that of a column; or what the first one gains."""
    complete = all(gain is not None for row in result.mean for gain in row)
    table = _cross_table(result, terms) if complete else _gains_of_first(result, terms)
    # a table of many players is wider than a terminal, which then wraps its lines instead of losing names and numbers
    widest = Measurement.get(console, console.options.update(width=10_000), table).maximum
    Console(file=console.file, width=max(console.width, widest), highlight=False, markup=False).print(table)
    if result.boards or result.hands:
        console.print("The number after +- is half of the match's 95 % confidence interval.")


def _cross_table(result: Tournament, terms: Terms) -> Table:
    table = Table(title=f"{result.game}, {result.unit}, the row's gain against the column ({terms.describe()})")
    table.add_column("")
    for number in range(1, len(result.names) + 1):  # names of runs are paths, too long to stand side by side
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("average", justify="right", no_wrap=True)
    for i, name in enumerate(result.names):
        cells = ["-" if i == j else _cell(result, i, j) for j in range(len(result.names))]
        table.add_row(f"{i + 1} {name}", *cells, f"{result.average[i]:+.1f}")
    return table


def _gains_of_first(result: Tournament, terms: Terms) -> Table:
    """One row for each opponent of the first player, as those have not met."""
    table = Table(title=f"{result.game}, {result.unit} ({terms.describe()})")
    table.add_column(f"{result.names[0]} against")
    table.add_column("gain", justify="right", no_wrap=True)
    for j, name in enumerate(result.names[1:], start=1):
        table.add_row(name, _cell(result, 0, j))
    table.add_row("all of them, on average", f"{result.average[0]:+.1f}")
    return table


def _cell(result: Tournament, i: int, j: int) -> str:
    """What player i gains against player j, with its interval unless it is exact."""
    margin = f" +- {result.interval[i][j]:.1f}" if result.boards or result.hands else ""
    return f"{result.mean[i][j]:+.1f}{margin}"
