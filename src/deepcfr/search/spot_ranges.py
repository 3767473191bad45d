"""Ranges of hold'em: as text in the usual notation, and as a policy has them after a line of betting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import Cards, Doubles
from deepcfr.game.board_index import binomials, hand_numbers
from deepcfr.game.cards import SUIT_SIGNS, all_hands, cards_text, free_holes, hand_class, parse_card, split_cards
from deepcfr.game.public_state import PublicState
from deepcfr.game.rules import PRESETS, PokerRules

if TYPE_CHECKING:
    from deepcfr.policy.base import Policy

HOLDEM = replace(PRESETS["hunl-pot"], name="hold'em")
_CARDS = HOLDEM.num_cards
_DIGITS = 6  # significant ones of a weight in text
_LEAST = 1e-9  # weight of a hand that a run still has
_RANK = f"[{HOLDEM.rank_symbols}]"
_HAND = re.compile(f"(?:{_RANK}[{HOLDEM.suit_symbols}]){{2}}", re.IGNORECASE)
_CLASSES = re.compile(f"({_RANK})({_RANK})(s|o|)(?:(\\+)|-({_RANK}?)({_RANK})(s|o|))?", re.IGNORECASE)
_ALL = ("random", "any", "100%")
_DASHES = "-‐‑‒–—−"
_SIGNS = SUIT_SIGNS | dict.fromkeys(map(ord, _DASHES), "-") | dict.fromkeys(map(ord, "\ufe0e\ufe0f"), "")
_BLOCK = re.compile(r"\[([\d.]+%?)\]([^\[\]]*)\[/\1\]")
_DECIMAL_COMMA = re.compile(r"[^\s,;]*:0+,\d+(?![\w:@+-])")
_PERCENT_COMMA = re.compile(r"([^\s,;]*@\d+),(\d+)(?![\w:@+-])")
_WEIGHT = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:e-?\d{1,2})?", re.IGNORECASE)


def parse_range(text: str) -> Doubles:
    """The weight of every hand, [1326], of a range in the usual notation (docs/spots.md).

    Raises ConfigError for what is not a range.
    """
    return read_range(text)[0]


def read_range(text: str) -> tuple[Doubles, str]:
    """A range as `parse_range` reads it, and a sentence if parts overlap, of which the last counts, or may be decimals."""
    weights, owner, note = np.zeros(comb(_CARDS, 2)), np.full(comb(_CARDS, 2), -1), ""
    parts = list(_parts(text))
    for number, (name, weight) in enumerate(parts):
        rows = _rows_of(name)
        if not note and (twice := rows[owner[rows] >= 0]).size:
            earlier, hand = parts[owner[twice[0]]][0], hand_names(all_hands(_CARDS, 2)[twice[:1]])[0]
            note = f"'{earlier}' and '{name}' both have {hand}: of parts of a range that overlap the last one counts."
        weights[rows], owner[rows] = weight, number
    if not note and (found := _PERCENT_COMMA.search(text)):
        note = f"'{found[0]}' is read as {found[1]} and {found[2]}: a decimal weight has a point."
    return weights, note


def _parts(text: str) -> Iterator[tuple[str, float]]:
    """The hands of each part of a range, as written, and their weight."""
    if not isinstance(text, str):
        raise ConfigError(f"A range must be text such as 77+,AKs:0.5, but is {text!r}.")
    plain = re.sub(r"(?:#|//).*", "", re.sub("\r\n?", "\n", text.replace("\ufeff", "")))
    plain = re.sub(rf"[ \t]*([{_DASHES}])[ \t]*", r"\1", plain)
    plain = re.sub(r"[ \t]*([:@])[ \t]*(?=[\d.])", r"\1", re.sub(r"[ \t]+%", "%", plain))
    if found := _DECIMAL_COMMA.search(plain):
        part, comma = found[0], found[0].index(",")
        raise ConfigError(
            f"'{part}' may be a weight of {part[part.index(':') + 1 :].replace(',', '.')} or a weight of 0 before "
            f"'{part[comma + 1 :]}': write a point, or a space after the comma."
        )
    start = 0
    for block in _BLOCK.finditer(plain):
        yield from _weighted(plain[start : block.start()])
        yield from _weighted(block[2], _share(block[0], "@", block[1]))
        start = block.end()
    yield from _weighted(plain[start:])


def _weighted(text: str, weight: float | None = None) -> Iterator[tuple[str, float]]:
    """Parts without blocks; those inside of one have its `weight`."""
    for part in filter(None, re.split(r"[,;\s]+", text)):
        if "[" in part or "]" in part:
            raise ConfigError(
                f"'{part}' is not a part of a range: a weight of several hands is written [50]77,AKs[/50]."
            )
        name, sign, own = re.fullmatch(r"([^:@]*)([:@]?)(.*)", part).groups()  # type: ignore[union-attr]
        if sign and weight is not None:
            raise ConfigError(f"'{part}' has a weight of its own inside of a block that has one.")
        yield name, _share(part, sign, own) if sign else 1.0 if weight is None else weight


def _share(part: str, sign: str, text: str) -> float:
    """The weight of a part: `text` is a share after `:`, percent after `@` or with its sign. Raises ConfigError."""
    if not text:
        raise ConfigError(f"The weight of '{part}' is missing: write {part}0.5, or no '{sign}'.".replace("@0.5", "@50"))
    percent = sign == "@" or text.endswith("%")
    number = text.removesuffix("%")
    value = float(Decimal(number).scaleb(-2 if percent else 0)) if _WEIGHT.fullmatch(number) else -1.0
    if not 0 <= value <= 1:
        raise ConfigError(f"The weight of '{part}' must be a number from 0 to 1, or percent such as :50% or @50.")
    if 0 < value < _LEAST:
        raise ConfigError(f"The weight of '{part}' is below {_LEAST:g}: leave the hands out.")
    if sign == "@" and 0 < value <= 0.01 and not text.endswith("%"):
        raise ConfigError(
            f"The weight of '{part}' is at most one percent: write :{number} for a share, or {sign}{number}%."
        )
    return value


@lru_cache(maxsize=4_096)
def _rows_of(name: str) -> npt.NDArray[np.int32]:
    """The places of the hands of a part of a range. Raises ConfigError for another text."""
    if name.lower() in _ALL:
        return np.arange(comb(_CARDS, 2), dtype=np.int32)
    plain = name.translate(_SIGNS).replace("10", "T")
    try:
        if _HAND.fullmatch(plain):
            holes = np.array([sorted(parse_card(HOLDEM, card) for card in split_cards(HOLDEM, plain))], np.uint8)
            if holes[0, 0] == holes[0, 1]:
                raise ValueError(name)
        else:
            holes = _hands_of(*_ranks(plain))
    except ValueError as error:
        raise ConfigError(
            f"'{name}' is not a part of a range: write hands such as 77+, A5s-A2s, KQo or AsKd."
        ) from error
    return hand_rows(holes)


def _ranks(plain: str) -> tuple[list[tuple[int, int]], str]:
    """Both ranks of each class of a part, and `s`, `o` or nothing for suited, offsuit or both.

    Raises ValueError for another text.
    """
    found = _CLASSES.fullmatch(plain)
    if not found:
        raise ValueError(plain)
    high, low, suits, plus, first, last, other = (part.upper() for part in found.groups(default=""))
    if (high == low and (suits or other or (last and not first))) or (suits and other and suits != other):
        raise ValueError(plain)
    ranks = HOLDEM.rank_symbols
    a, b = ranks.index(high), ranks.index(low)
    c, d = (ranks.index(first or high), ranks.index(last)) if last else (a, b)
    if plus and a == b:
        c = d = len(ranks) - 1
    elif plus:
        a, b = max(a, b), min(a, b)
        c, d = a, a - 1
    kind = (suits or other).lower()
    if a == c and a not in (b, d):  # the second rank differs
        return [(a, rank) for rank in range(min(b, d), max(b, d) + 1) if rank != a], kind
    if c - a != d - b:
        raise ValueError(plain)
    return [(a + up, b + up) for up in range(min(c - a, 0), max(c - a, 0) + 1)], kind


def _hands_of(pairs: list[tuple[int, int]], suits: str) -> Cards:
    """The hands [H, 2] that have one of some pairs of ranks, suited (`s`), offsuit (`o`) or both."""
    holes = all_hands(_CARDS, 2)
    rank, suit = np.divmod(holes, HOLDEM.num_suits)
    same = suit[:, 0] == suit[:, 1]
    held = np.any([(rank == sorted(pair)).all(1) for pair in pairs], axis=0)
    found: Cards = holes[held & {"s": same, "o": ~same}.get(suits, True)]
    return found


def hand_rows(holes: Cards) -> npt.NDArray[np.int32]:
    """The places of hands [H, 2] in a range."""
    return hand_numbers(holes, binomials(HOLDEM.num_cards, 2))


def hand_names(holes: Cards) -> list[str]:
    """Hands [H, 2] as text, such as `AsKd`, the higher card first."""
    return [cards_text(HOLDEM, hole).replace(" ", "") for hole in holes[:, ::-1]]


def _fixed(weight: float) -> str:
    """A weight with its digits and without an exponent."""
    return np.format_float_positional(weight, trim="-")


def kind_texts(weights: Doubles, board: Sequence[int] = ()) -> dict[str, str]:
    """For each kind of hands with a weight a text that `parse_range` reads, best kinds first.

    That is the kind, such as `AKs:0.5`, if all its hands have one weight, else hands. Hands with a card of `board` are left
    out, and make no difference to their kind. Weights are rounded to six significant digits.
    """
    holes = all_hands(_CARDS, 2)
    kinds: dict[str, list[int]] = {}
    for h in np.flatnonzero(~np.isin(holes, board).any(1))[::-1].tolist():
        kinds.setdefault(hand_class(HOLDEM, holes[h]), []).append(h)
    rounded = [float(f"{weight:.{_DIGITS}g}") for weight in weights[hand_rows(holes)]]
    named, found = hand_names(holes), {}
    for kind, hands in kinds.items():
        parts = [(named[h], rounded[h]) for h in hands]
        if len({weight for _, weight in parts}) == 1:
            parts = [(kind, parts[0][1])]
        texts = [name if weight == 1 else f"{name}:{_fixed(weight)}" for name, weight in parts if weight]
        if texts:
            found[kind] = ",".join(texts)
    return found


def range_text(weights: Doubles, board: Sequence[int] = ()) -> str:
    """Weights [1326] as text that `parse_range` reads, as `kind_texts` writes it."""
    return ",".join(kind_texts(weights, board).values())


def kind_weights(weights: Doubles) -> dict[str, float]:
    """The mean weight of each kind of hands with a weight, such as AKs."""
    holes = all_hands(_CARDS, 2)
    kinds: dict[str, list[float]] = {}
    for hole, weight in zip(holes, weights[hand_rows(holes)].tolist(), strict=True):
        kinds.setdefault(hand_class(HOLDEM, hole), []).append(weight)
    return {kind: sum(each) / len(each) for kind, each in kinds.items() if any(each)}


def is_holdem(rules: PokerRules) -> bool:
    """Whether a game has the cards and the unit of hold'em, and the big blind acts first after the flop."""
    same = (rules.num_cards, rules.hole_cards, rules.unit) == (_CARDS, 2, HOLDEM.unit)
    return same and set(rules.first_player[1:]) == {1}


def ranges_after(policy: Policy, line: str, board: Sequence[int]) -> tuple[PublicState, tuple[Doubles, Doubles]]:
    """The state after a line of betting, and each player's range there, [1326], if both play as `policy` does.

    A weight is the probability of the player's own actions, divided by the largest one of its hands; below 1e-9 it is 0.
    `line` has the actions of each round, with `/` between rounds, as in `policy.query`: `rc` or `rc/ccrc`. Raises
    ConfigError if it is not legal or does not end where the last card of `board` is dealt; GameError if the policy does not
    play hold'em, or draws one of several policies for each deal.
    """
    state, ranges = play_ranges(policy, line, board)
    if state.over or state.betting[-1] or sum(state.rules.board_cards[: state.round + 1]) != len(board):
        raise ConfigError(
            f"The line {line!r} must end where the last of the {len(board)} cards on the board are dealt."
        )
    return state, ranges


def play_ranges(policy: Policy, line: str, board: Sequence[int]) -> tuple[PublicState, tuple[Doubles, Doubles]]:
    """The state and the ranges as of `ranges_after`, for lines that may end anywhere, such as before the flop."""
    from deepcfr.policy.query import poker_state, reach_after

    rules = poker_state(policy).rules
    if not is_holdem(rules):
        raise GameError(f"Ranges of a spot come from hold'em, and '{rules.name}' is not it.")
    holes = free_holes(HOLDEM, board)
    state, reach = reach_after(policy, line, holes, board)
    weights = np.zeros((2, comb(_CARDS, 2)))
    share = reach / np.maximum(reach.max(1, keepdims=True), np.finfo(np.float64).tiny)
    weights[:, hand_rows(holes)] = np.where(share < _LEAST, 0, share)
    return state, (weights[0], weights[1])
