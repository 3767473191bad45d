"""Buckets of hands: for every round a table from (board, hand) to a bucket, the same for all renamings of suits.

A board is a *set* of cards: the order of its cards and the buckets of earlier rounds are forgotten. So abstractions of
games with several board rounds have imperfect recall (Waugh, Zinkevich, Johanson, Kan, Schnizlein and Bowling, SARA 2009,
"A practical use of imperfect recall").

An abstraction on disk: a folder with `abstraction.json` and one table for each round.

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
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcfr.buckets.kernels import list_hands
from deepcfr.core.compiled import nb
from deepcfr.core.errors import CheckpointError, DeepCFRError, GameError
from deepcfr.core.files import checksum, read_json, signed_json, write_atomically, writing
from deepcfr.core.types import Cards, Ints
from deepcfr.game.board_index import (
    BoardIndex,
    binomials,
    board_index,
    count_classes,
    hand_images,
    hand_number,
    set_rank,
)
from deepcfr.game.cards import all_hands, suit_permutations
from deepcfr.game.rules import PokerRules

_BLOCK = 256  # rows looked up together, and boards numbered together
MOST_CLASSES = 20_000_000  # most buckets in a round of a lossless abstraction


@dataclass(frozen=True)
class Abstraction:
    """The bucket of every hand on every board of a game.

    `tables[r][c, h]` is the bucket in round r of hand h (in the order of `game.cards.all_hands`) on representative c of
    the `BoardIndex` of all board cards seen so far. Hands that differ only by a renaming of suits that keeps the board
    are in one bucket.
    """

    rules: PokerRules
    counts: tuple[int, ...]  # buckets of each round, numbered from 0
    tables: tuple[
        npt.NDArray[np.unsignedinteger], ...
    ]  # [board classes, H]; the dtype's maximum where hand and board share a card

    def buckets(self, round_: int, holes: Cards, boards: Cards) -> Ints:
        """The bucket of every hand on its board, int64 [M]; undefined where hand and board share a card.

        `holes` is uint8 [M, hole cards] and `boards` uint8 [M, n], all board cards so far; both in any order and any suits.
        Raises GameError for an unknown round, and for a wrong number of cards or cards outside the deck.
        """
        check_cards(self.rules, round_, holes, boards)
        index = round_boards(self.rules, round_)
        return _buckets(
            np.ascontiguousarray(holes, np.uint8),
            np.ascontiguousarray(boards, np.uint8),
            index.class_of,
            index.permutation_of,
            suit_permutations(self.rules.num_ranks, self.rules.num_suits),
            binomials(self.rules.num_cards, max(boards.shape[1], self.rules.hole_cards)),
            self.tables[round_],
        )


def round_boards(rules: PokerRules, round_: int) -> BoardIndex:
    """The index of the boards that are visible in a round."""
    return board_index(rules.num_ranks, rules.num_suits, sum(rules.board_cards[: round_ + 1]))


def round_classes(rules: PokerRules, round_: int) -> int:
    """The number of hands of a round that differ by more than suits: classes of (hole, board as a set)."""
    seen = sum(rules.board_cards[: round_ + 1])
    return count_classes(rules.num_ranks, rules.num_suits, (rules.hole_cards, seen))


def lossless(rules: PokerRules) -> Abstraction:
    """The abstraction in which every canonical (hole, board as a set) is its own bucket.

    Buckets are numbered by board class, then by the lowest hand number in the class of hands. Raises GameError if a round
    has more than 20 million of them.
    """
    counts = tuple(round_classes(rules, round_) for round_ in range(rules.num_rounds))
    if max(counts) > MOST_CLASSES:
        raise GameError(
            f"Round {counts.index(max(counts)) + 1} of {rules.name} has {max(counts):,} distinct hands, and a lossless "
            f"abstraction numbers at most {MOST_CLASSES:,}: ask for fewer buckets instead."
        )
    return Abstraction(rules, counts, tuple(lossless_table(rules, round_) for round_ in range(rules.num_rounds)))


def lossless_table(rules: PokerRules, round_: int) -> npt.NDArray[np.unsignedinteger]:
    """The table of one round of `lossless`."""
    dtype = bucket_dtype(round_classes(rules, round_))
    index = round_boards(rules, round_)
    holes = all_hands(rules.num_cards, rules.hole_cards)
    renamings = suit_permutations(rules.num_ranks, rules.num_suits)
    images = hand_images(rules.num_ranks, rules.num_suits, rules.hole_cards)
    table, number = np.full((len(index), len(holes)), np.iinfo(dtype).max, dtype), 0
    for start in range(0, len(index), _BLOCK):
        hands, _, _, row = list_hands(index.boards[start : start + _BLOCK], holes, renamings, images)
        table[start : start + _BLOCK][row >= 0] = row[row >= 0] + number
        number += len(hands)
    return table


def bucket_dtype(count: int) -> type[np.unsignedinteger]:
    """The smallest unsigned type for `count` buckets and the value of impossible hands."""
    for dtype in (np.uint8, np.uint16, np.uint32):
        if count <= np.iinfo(dtype).max:
            return dtype
    return np.uint64


def table_bytes(rules: PokerRules, counts: tuple[int, ...]) -> int:
    """Bytes of the tables of an abstraction with `counts` buckets, without making them."""
    hands = comb(rules.num_cards, rules.hole_cards)
    return sum(
        len(round_boards(rules, round_)) * hands * np.dtype(bucket_dtype(count)).itemsize
        for round_, count in enumerate(counts)
    )


def check_cards(rules: PokerRules, round_: int, holes: Cards, boards: Cards) -> None:
    """Raise GameError unless uint8 holes [M, hole cards] and boards [M, n] are of the round, and of the game's deck."""
    if not 0 <= round_ < rules.num_rounds:
        raise GameError(f"{rules.name} has rounds 0 to {rules.num_rounds - 1}, and round {round_} was asked for.")
    seen = sum(rules.board_cards[: round_ + 1])
    if holes.shape[1:] != (rules.hole_cards,) or boards.shape[1:] != (seen,) or len(holes) != len(boards):
        raise GameError(
            f"Round {round_} of {rules.name} shows {rules.hole_cards} hole and {seen} board cards, but the arrays have "
            f"shapes {list(holes.shape)} and {list(boards.shape)}."
        )
    highest = max(int(cards.max()) if cards.size else 0 for cards in (holes, boards))
    if highest >= rules.num_cards:
        raise GameError(f"{rules.name} has cards 0 to {rules.num_cards - 1}, but the arrays hold {highest}.")


@nb.njit(cache=True, nogil=True)
def _buckets(
    holes: Cards,
    boards: Cards,
    class_of: npt.NDArray[np.int32],
    permutation_of: Cards,
    renamings: Cards,
    table: Ints,
    bucket: npt.NDArray[np.unsignedinteger],
) -> Ints:
    """Look up rows in blocks, one step for all rows of a block at a time, so that their cache misses overlap."""
    count, held = holes.shape
    result = np.empty(count, np.int64)
    rank = np.empty(_BLOCK, np.int64)
    hand = np.empty(held, np.uint8)
    for start in range(0, count, _BLOCK):
        rows = min(_BLOCK, count - start)
        for i in range(rows):
            rank[i] = set_rank(boards[start + i], table)
        for i in range(rows):
            renaming = permutation_of[rank[i]]
            for slot in range(held):
                hand[slot] = renamings[renaming, holes[start + i, slot]]
            result[start + i] = hand_number(hand, table)
            rank[i] = class_of[rank[i]]
        for i in range(rows):
            result[start + i] = bucket[rank[i], result[start + i]]
    return result


FORMAT = 1
DESCRIPTION = "abstraction.json"
_CARDS = ("num_ranks", "num_suits", "hole_cards", "board_cards")  # the rules that buckets depend on
_ROWS = 2_048  # rows of a table checked at a time: a few megabytes


def save_abstraction(path: Path, abstraction: Abstraction, facts: dict[str, Any]) -> None:
    """Write an abstraction into the folder `path`, which is created if needed; replaces an earlier one.

    `facts` must be JSON values. Raises CheckpointError if a file cannot be written.
    """
    with writing(path / DESCRIPTION):
        (path / DESCRIPTION).unlink(missing_ok=True)  # so that it never describes tables that are partly replaced
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
