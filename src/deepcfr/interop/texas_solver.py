"""Read the parameter files of TexasSolver's console program: a command a line, such as `set_pot 50`.

The console program always has all-in as a further size, at most three raises of a street, and all-in for a bet with which
more than 67 % of stack and half the pot are in; so has what is read here. Its bets are whole chips, those here are not.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

from deepcfr.core.errors import ConfigError

_PLAYERS, _STREETS, _KINDS = ("oop", "ip"), ("flop", "turn", "river"), ("bet", "raise", "donk")
_RAISES, _THRESHOLD, _ITERATIONS = 3, 0.67, 100  # its defaults
_TEXTS = {"set_board": "board", "set_range_ip": "dealer", "set_range_oop": "big_blind", "dump_result": "dump"}
_NUMBERS = {"set_pot": "pot", "set_effective_stack": "stacks"}
_RUNNING = (  # how it runs and what it prints, which makes no difference to the spot
    "build_tree", "start_solve", "set_thread_num", "set_print_interval", "set_use_isomorphism", "set_dump_rounds",
)  # fmt: skip
_KNOWN = sorted(
    [*_TEXTS, *_NUMBERS, *_RUNNING, "set_allin_threshold", "set_accuracy", "set_max_iteration", "set_bet_sizes"]
)


def read_parameters(text: str) -> dict[str, Any]:
    """The options of `deepcfr spot` that a file has, by name, and as `dump` the file that TexasSolver would write.

    Raises ConfigError with the number of the first line that cannot be read.
    """
    found: dict[str, Any] = {"iterations": _ITERATIONS}
    sizes: dict[tuple[str, str, str], list[float]] = {}
    threshold = _THRESHOLD
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        name, value = ([*line.split(maxsplit=1), "", ""])[:2]
        where = f"Line {number}, '{line.strip()}',"
        if name == "set_bet_sizes":
            _read_sizes(where, value, sizes)
        elif name == "set_allin_threshold":
            threshold = _number(where, value)
        elif name == "set_accuracy":  # percent of the pot, the mean of both players' gains
            found["exploitability"] = f"{_number(where, value):g}%"
        elif name == "set_max_iteration":
            found["iterations"] = int(_number(where, value))
        elif name in _NUMBERS:
            found[_NUMBERS[name]] = _number(where, value)
        elif name in _TEXTS:
            found[_TEXTS[name]] = value.strip()
        elif name and name not in _RUNNING and not name.startswith("#"):
            raise ConfigError(f"{where} is no command of TexasSolver that can be read: {', '.join(_KNOWN)}.")
    return found | {"sizes": _sizes_text(sizes, threshold)}


def _number(where: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = inf
    if not isfinite(number):
        raise ConfigError(f"{where} needs a number, or numbers with commas between them for sizes.")
    return number


def _read_sizes(where: str, text: str, sizes: dict[tuple[str, str, str], list[float]]) -> None:
    """Read `oop,turn,bet,30,70` into `sizes`; all-in is always a size, so it changes nothing."""
    player, street, kind, *numbers = [part.strip() for part in text.lower().split(",")] + [""] * 3
    numbers = [part for part in numbers if part]
    if player not in _PLAYERS or street not in _STREETS or kind not in (*_KINDS, "allin"):
        raise ConfigError(
            f"{where} needs a player ({', '.join(_PLAYERS)}), a street ({', '.join(_STREETS)}), and bet, raise, donk "
            "or allin."
        )
    if kind != "allin":
        sizes[player, street, kind] = [_number(where, part) for part in numbers]


def _sizes_text(sizes: dict[tuple[str, str, str], list[float]], threshold: float) -> str:
    """The sizes as `Sizes.parse` reads them; where TexasSolver has none, there are none."""
    parts = [
        f"{player} {street} {kind} {' '.join(f'{number:f}%' for number in sizes.get((player, street, kind), ())) or 'none'}"
        for player in _PLAYERS
        for street in _STREETS
        for kind in _KINDS
        if kind != "donk" or (player == "oop" and street != "flop")
    ]
    return ", ".join([*parts, "allin", f"cap {_RAISES}", f"threshold {100 * min(threshold, 1):f}"])
