"""Node locks: decisions of a spot that are played as given, read and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from deepcfr.boards.boards import Board
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Doubles
from deepcfr.search.spot import NAMES
from deepcfr.search.spot_ranges import hand_names, hand_rows


def locked_nodes(
    lines: Iterable[tuple[str, int, list[str]]],
    board: Board,
    ranges: Sequence[Doubles],
    locks: Sequence[dict[str, Any]],
) -> Iterator[tuple[int, Doubles]]:
    """The nodes that are locked, with their strategies [actions, U], nan for hands that are solved.

    `lines` are the line, the player and the actions of every decision on the board, and `ranges` both players' weights
    [1326]. Raises ConfigError for locks that do not fit.
    """
    places = {line: (node, player, names) for node, (line, player, names) in enumerate(lines)}
    columns = []
    for weights in ranges:
        held = zip(hand_names(board.holes), board.canonical.tolist(), weights[hand_rows(board.holes)], strict=True)
        column = {name: canonical for name, canonical, weight in held if weight}
        columns.append(column | {name[2:] + name[:2]: canonical for name, canonical in column.items()})
    seen: set[str] = set()
    for lock in locks:
        line = lock.get("line")
        if not isinstance(line, str):
            raise ConfigError("A lock has no 'line', the actions before its decision; '' is the first decision.")
        if line not in places:
            raise ConfigError(f"There is no decision after {line!r}: write a line as solutions have it.")
        node, acting, actions = places[line]
        if line in seen:
            raise ConfigError(f"The decision after {line!r} is locked twice.")
        seen.add(line)
        if (player := lock.get("player", owner := NAMES[acting])) != owner:
            raise ConfigError(f"After {line!r} the {owner} acts, not {player!r}.")
        fixed, column = np.full((len(actions), len(board)), np.nan), columns[acting]
        if "frequencies" in lock:
            shares = _object(line, "frequencies", lock["frequencies"])
            if set(shares) != set(actions):
                raise ConfigError(f"The actions after {line!r} are {', '.join(actions)}, not {', '.join(shares)}.")
            fixed[:] = _distribution(line, "all hands", [shares[action] for action in actions])[:, None]
        named: dict[int, str] = {}
        for name, shares in _object(line, "hands", lock.get("hands", {})).items():
            if name not in column or not isinstance(shares, list) or len(shares) != len(actions):
                hint = f"is no hand of the {owner}'s range with {len(actions)} probabilities"
                raise ConfigError(f"After {line!r}, {name} {hint}.")
            if (first := named.setdefault(column[name], name)) != name:
                raise ConfigError(f"After {line!r}, {first} and {name} are the same hand: lock it once.")
            fixed[:, column[name]] = _distribution(line, name, shares)
        if np.isnan(fixed[0]).all():
            raise ConfigError(f"The lock after {line!r} names neither frequencies nor the probabilities of a hand.")
        yield node, fixed


def _object(line: str, name: str, value: object) -> dict[str, Any]:
    """A part of a lock, which must be an object of JSON. Raises ConfigError for another one."""
    if not isinstance(value, dict):
        raise ConfigError(f"'{name}' of the lock after {line!r} must be an object, but is {value!r}.")
    return value


def _distribution(line: str, hands: str, shares: Sequence[float]) -> Doubles:
    """Probabilities that sum to 1, from numbers that nearly do. Raises ConfigError for others."""
    try:
        values = np.array(shares, np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.full(1, np.nan)
    if values.ndim != 1 or not ((values >= 0).all() and abs(values.sum() - 1) < 1e-3):
        raise ConfigError(f"The probabilities of {hands} after {line!r} are {list(shares)}, which do not sum to 1.")
    return values / values.sum()
