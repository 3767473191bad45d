"""Load players by name, for everything that plays: matches, tournaments, bounds, the terminal, the pages, the dealer.

A name is a run folder; `scripted:STYLE`; `STYLE:PLAYER`, another player in a style such as tight; `resolve:PLAYER`,
another player with search; or `ensemble:RULE:PLAYER,PLAYER`, several players as one, by the rule sum, mixture or member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from deepcfr.config import DEFAULT_SEARCH, SearchConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Say
from deepcfr.game.base import Game
from deepcfr.measure.match.record import require_same_game
from deepcfr.policy.base import Policy
from deepcfr.policy.mixture import ensemble
from deepcfr.policy.styles import STYLES, scripted_policy, styled
from deepcfr.run.folder import RunFolder
from deepcfr.search.lines import searching

SCRIPTED = "scripted:"
ENSEMBLE = "ensemble:"
RESOLVE = "resolve"
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]+")  # meant as a style before a colon: no drive and no path


def load_players(
    names: Sequence[str], which: str, warn: Say, game: Game | None = None, search: SearchConfig = DEFAULT_SEARCH
) -> list[Policy]:
    """The policies under `names`: `which` one of each run folder, and styles, searching players and ensembles of them.

    Scripted styles play `game`, by default that of the first run. `search` is for all searching players. Raises
    ConfigError if there is no game, for settings of search without such a player and for unknown styles, GameError for
    different games and for unknown scripted styles and rules, and what loading a run and making a `ResolvingPolicy` raise.
    """
    paths = dict.fromkeys(path for name in names for path in runs_of(name))
    check_search(names, search)
    loaded = {path: RunFolder.open(Path(path)).load_policy(which, warn)[0] for path in paths}
    games = ([game] if game else []) + [policy.game for policy in loaded.values()]
    if not games:
        raise ConfigError(f"Scripted styles play the game of a run, but none is among {', '.join(names)}.")
    for one, other in combinations(games, 2):
        require_same_game(one, other)
    return [_player(name, loaded, games[0], search) for name in names]


def check_search(names: Sequence[str], search: SearchConfig) -> None:
    """Raise ConfigError for settings of search if no player searches."""
    if search != DEFAULT_SEARCH and not any(f"{RESOLVE}:" in name for name in names):
        given = f"but not {', '.join(names)}" if names else "and none is named"
        raise ConfigError(f"Settings of search are for players named {RESOLVE}:RUN, {given}.")


def made_of(name: str, policy: Policy, search: SearchConfig = DEFAULT_SEARCH) -> Policy:
    """The player under a name that mentions one run, made of that run's policy. Raises what `check_search` raises."""
    check_search([name], search)
    return _player(name, dict.fromkeys(runs_of(name), policy), policy.game, search)


def runs_of(name: str) -> list[str]:
    """The run folders that a player's name mentions. Raises ConfigError for an unknown style."""
    if name.startswith(SCRIPTED):
        return []
    if name.startswith(ENSEMBLE):
        _, members = _ensemble_parts(name)
        return [path for member in members for path in runs_of(member)]
    style, _, rest = name.partition(":")
    if style in (*STYLES, RESOLVE) and rest:
        return runs_of(rest)
    if rest and _WORD.fullmatch(style) and not Path(name).exists():
        raise _no_style(style, "or write resolve:RUN, scripted:STYLE or ensemble:RULE:RUN,RUN")
    return [name]


def with_styles(names: Sequence[str], styles: Sequence[str]) -> tuple[str, ...]:
    """The names, each followed by its run in each style, or in all of them. Raises ConfigError for an unknown style."""
    wanted = STYLES if "all" in styles else tuple(styles)
    for style in wanted:
        if style not in STYLES:
            raise _no_style(style, "or all")
    return tuple(each for name in names for each in (name, *(f"{style}:{name}" for style in wanted if runs_of(name))))


def _no_style(style: str, others: str) -> ConfigError:
    return ConfigError(f"'{style}' is not a style of play. Choose one of {', '.join(STYLES)}, {others}.")


def _ensemble_parts(name: str) -> tuple[str, list[str]]:
    rule, colon, members = name.removeprefix(ENSEMBLE).partition(":")
    if not colon or not all(members.split(",")):
        raise ConfigError(f"'{name}' names no ensemble: write ensemble:RULE:RUN,RUN.")
    return rule, members.split(",")


def _player(name: str, loaded: Mapping[str, Policy], game: Game, search: SearchConfig) -> Policy:
    """The player under a name; scripted styles play `game`."""
    style, _, rest = name.partition(":")
    if name.startswith(SCRIPTED):
        return scripted_policy(rest, game)
    if name.startswith(ENSEMBLE):
        rule, members = _ensemble_parts(name)
        return ensemble([_player(member, loaded, game, search) for member in members], rule)
    if style == RESOLVE and rest:
        return searching(_player(rest, loaded, game, search), search)
    if style in STYLES and rest:
        return styled(_player(rest, loaded, game, search), style)
    return loaded[name]
