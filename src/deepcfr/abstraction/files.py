"""An abstraction on disk: a folder with `abstraction.json` and one table for each round.

`abstraction.json` is a JSON object:

| key | value |
|---|---|
| `format` | 1 |
| `rules` | the fields of `PokerRules` |
| `counts` | buckets of each round |
| `facts` | how it was made: seed, kind of features, requested buckets |
| `checksums` | BLAKE2b in hex of each table, by file name |
| `checksum` | BLAKE2b in hex of this object without this key, as JSON with sorted keys |

`round-<r>.npy`, r from 0, is a NumPy array of unsigned integers, [board classes, hands] (`buckets.Abstraction`). Each file
is written atomically, tables first and `abstraction.json` last, so an unfinished folder has no `abstraction.json`.
"""

from __future__ import annotations

import dataclasses
import io
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcfr.abstraction.buckets import Abstraction, bucket_dtype, round_boards
from deepcfr.errors import CheckpointError, DeepCFRError
from deepcfr.files import cannot_write, checksum, read_json, signed_json, write_atomically
from deepcfr.games.cards import all_hands
from deepcfr.games.rules import PokerRules

FORMAT = 1
DESCRIPTION = "abstraction.json"
_CARDS = ("num_ranks", "num_suits", "hole_cards", "board_cards")  # the rules that buckets depend on
_ROWS = 2_048  # rows of a table checked at a time: a few megabytes


def save_abstraction(path: Path, abstraction: Abstraction, facts: dict[str, Any]) -> None:
    """Write an abstraction into the folder `path`, which is created if needed; replaces an earlier one.

    `facts` must be JSON values. Raises CheckpointError if a file cannot be written.
    """
    try:
        (path / DESCRIPTION).unlink(missing_ok=True)  # so that it never describes tables that are partly replaced
    except OSError as error:
        raise cannot_write(path / DESCRIPTION, error) from error
    checksums = {}
    for round_, table in enumerate(abstraction.tables):
        file = path / _table_name(round_)
        data = io.BytesIO()
        np.save(data, table, allow_pickle=False)
        write_atomically(file, data.getbuffer())  # a view, because tables have hundreds of megabytes
        checksums[file.name] = checksum(file)
    description = {
        "format": FORMAT,
        "rules": dataclasses.asdict(abstraction.rules),
        "counts": list(abstraction.counts),
        "facts": facts,
        "checksums": checksums,
    }
    write_atomically(path / DESCRIPTION, signed_json(description))


def _table_name(round_: int) -> str:
    return f"round-{round_}.npy"


def load_abstraction(path: Path, rules: PokerRules, *, any_betting: bool = False) -> Abstraction:
    """Read the abstraction of a game from a folder, verified by its checksums.

    Raises CheckpointError that names a file which is missing, damaged, of another format or of other rules. The name of
    the game may differ; with `any_betting` only its cards must agree.
    """
    description = _read_matching(path, rules, any_betting)
    counts = description["counts"]
    tables = tuple(_read_table(path, round_, rules, counts[round_], description) for round_ in range(rules.num_rounds))
    return Abstraction(rules, tuple(counts), tables)


def read_counts(path: Path, rules: PokerRules, *, any_betting: bool = False) -> tuple[int, ...]:
    """Read the number of buckets of each round, without the tables. Raises the errors of `load_abstraction`."""
    return tuple(_read_matching(path, rules, any_betting)["counts"])


def _read_matching(path: Path, rules: PokerRules, any_betting: bool) -> dict[str, Any]:
    """Read the description and check it against the game; arguments and errors are those of `load_abstraction`."""
    description = read_description(path)
    own = rules_of(path, description)
    if any_betting:
        fits = all(getattr(own, name) == getattr(rules, name) for name in _CARDS)
    else:
        fits = dataclasses.replace(own, name=rules.name) == rules
    if not fits:
        what = "cards" if any_betting else "rules"
        raise CheckpointError(
            f"'{path / DESCRIPTION}' belongs to {own.name}, whose {what} are not those of {rules.name}."
        )
    counts = description.get("counts")
    if not isinstance(counts, list) or len(counts) != rules.num_rounds or not all(isinstance(c, int) for c in counts):
        raise _damaged(path / DESCRIPTION, f"its counts are {counts!r}")
    return description


def read_description(path: Path) -> dict[str, Any]:
    """Read `abstraction.json` in the folder `path`.

    Raises CheckpointError if it is missing, damaged or of another format.
    """
    file = path / DESCRIPTION
    description = read_json(file)
    if description.get("format") != FORMAT:
        raise CheckpointError(f"'{file}' has format {description.get('format')!r}, and this version reads {FORMAT}.")
    if "checksum" not in description:
        raise _damaged(file, "it has no checksum")
    return description


def rules_of(path: Path, description: dict[str, Any]) -> PokerRules:
    """The rules in a description of the folder `path`. Raises CheckpointError if there are none."""
    stored: dict[str, Any] = description.get("rules") or {}
    values: dict[str, Any] = {}
    try:
        for name, value in stored.items():
            values[name] = tuple(value) if isinstance(value, list) else value
        return PokerRules(**values)
    except (AttributeError, TypeError, DeepCFRError) as error:
        raise _damaged(path / DESCRIPTION, f"it holds no rules ({error})") from error


def _read_table(
    path: Path, round_: int, rules: PokerRules, count: int, description: dict[str, Any]
) -> npt.NDArray[np.unsignedinteger]:
    file = path / _table_name(round_)
    try:
        if checksum(file) != dict(description.get("checksums") or {}).get(file.name):
            raise _damaged(file, "its checksum does not match")
        table: npt.NDArray[np.unsignedinteger] = np.load(file, allow_pickle=False)
    except OSError as error:
        raise CheckpointError(f"'{file}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, EOFError) as error:
        raise _damaged(file, str(error)) from error
    shape = (len(round_boards(rules, round_)), len(all_hands(rules.num_cards, rules.hole_cards)))
    if table.shape != shape or table.dtype != bucket_dtype(count):
        raise _damaged(file, f"it holds {table.dtype} {list(table.shape)} in place of {list(shape)}")
    live = comb(rules.num_cards - sum(rules.board_cards[: round_ + 1]), rules.hole_cards)
    if not all(_is_whole(table[start : start + _ROWS], count, live) for start in range(0, len(table), _ROWS)):
        raise _damaged(file, f"some hands have none of its {count:,} buckets")
    return table


def _is_whole(rows: npt.NDArray[np.unsignedinteger], count: int, live: int) -> bool:
    """Whether every row has `live` hands with one of `count` buckets and the value of impossible hands elsewhere."""
    possible = rows != np.iinfo(rows.dtype).max
    return bool((possible.sum(1) == live).all() and (rows[possible] < count).all())


def _damaged(file: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"'{file}' is damaged: {reason}.")
