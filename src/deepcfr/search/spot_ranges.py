"""Ranges of hold'em: as text in the usual notation, and as a policy has them after a line of betting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import comb

import numpy as np
import numpy.typing as npt
from pokerkit.analysis import parse_range as hands_of

from deepcfr.errors import ConfigError, GameError
from deepcfr.games.board_index import binomials, hand_numbers
from deepcfr.games.cards import all_hands, cards_text, hand_class, parse_card
from deepcfr.games.public_state import PublicState
from deepcfr.games.rules import PRESETS, PokerRules
from deepcfr.policies.base import Player
from deepcfr.policies.query import poker_state, reach_after

Cards = npt.NDArray[np.uint8]
Doubles = npt.NDArray[np.float64]

HOLDEM = replace(PRESETS["hunl-pot"], name="hold'em")
_CARDS = HOLDEM.num_cards
_DIGITS = 4  # significant ones of a weight in text
_LEAST = 1e-9  # weight of a hand that a run still has
_HAND = re.compile(f"([{HOLDEM.rank_symbols}][{HOLDEM.suit_symbols}]){{2}}")


def parse_range(text: str) -> Doubles:
    """The weight of every hand, [1326], of a range such as `77+,A5s-A2s,KQo:0.5`; pokerkit reads the notation.

    Raises ConfigError for what is not a range.
    """
    weights = np.zeros(comb(_CARDS, 2))
    for part in filter(None, map(str.strip, re.split(r"[,;\s]+", text))):
        name, _, weight = part.partition(":")
        if weight and not re.fullmatch(r"0?\.\d+|[01]|1\.0*", weight):
            raise ConfigError(f"The weight of '{part}' must be a number from 0 to 1.")
        weights[_rows_of(name)] = float(weight or 1)
    return weights


@lru_cache(maxsize=4_096)
def _rows_of(name: str) -> npt.NDArray[np.int32]:
    """The places of the hands of a part of a range. Raises ConfigError for another text."""
    try:
        hands = [(name[:2], name[2:])] if _HAND.fullmatch(name) else hands_of(*_expanded(name))
        rows = [sorted(parse_card(HOLDEM, card) for card in map(_card_text, hand)) for hand in hands]
        if not rows or any(len(set(hand)) != 2 for hand in rows):
            raise ValueError(name)
    except (ValueError, KeyError, IndexError) as error:
        raise ConfigError(
            f"'{name}' is not a part of a range: write hands such as 77+, A5s-A2s, KQo or AsKd."
        ) from error
    return hand_rows(np.array(rows, np.uint8))


def _card_text(card: object) -> str:
    """A card of ours or of pokerkit as text."""
    return card if isinstance(card, str) else repr(card)


def hand_rows(holes: Cards) -> npt.NDArray[np.int32]:
    """The places of hands [H, 2] in a range."""
    rows: npt.NDArray[np.int32] = hand_numbers(holes, binomials(HOLDEM.num_cards, 2))
    return rows


def hand_names(holes: Cards) -> list[str]:
    """Hands [H, 2] as text, such as `AsKd`, the higher card first."""
    return [cards_text(HOLDEM, hole).replace(" ", "") for hole in holes[:, ::-1]]


def _fixed(weight: float) -> str:
    """A weight with its digits and without an exponent."""
    return np.format_float_positional(weight, trim="-")


def _expanded(name: str) -> list[str]:
    """The classes of `A5s-A2s`, which pokerkit does not read; another name alone."""
    ranks = HOLDEM.rank_symbols
    match = re.fullmatch(rf"([{ranks}])([{ranks}])([so]?)-\1([{ranks}])\3", name)
    if not match or match[1] in (match[2], match[4]):
        return [name]
    first, last = sorted((ranks.index(match[2]), ranks.index(match[4])))
    return [f"{match[1]}{rank}{match[3]}" for rank in ranks[first : last + 1] if rank != match[1]]


def kind_texts(weights: Doubles, board: Sequence[int] = ()) -> dict[str, str]:
    """For each kind of hands with a weight a text that `parse_range` reads, best kinds first.

    That is the kind, such as `AKs:0.5`, if all its hands have one weight, else hands. Hands with a card of `board` are left
    out, and make no difference to their kind. Weights are rounded to four significant digits.
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


def ranges_after(policy: Player, line: str, board: Sequence[int]) -> tuple[PublicState, tuple[Doubles, Doubles]]:
    """The state after a line of betting, and each player's range there, [1326], if both play as `policy` does.

    A weight is the probability of the player's own actions, divided by the largest one of its hands; below 1e-9 it is 0.
    `line` has the actions of each round, with `/` between rounds, as in `policies.query`: `rc` or `rc/ccrc`. Raises
    ConfigError if it is not legal or does not end where the last card of `board` is dealt; GameError if the policy does not
    play hold'em, or draws one of several policies for each deal.
    """
    rules = poker_state(policy).rules
    if not is_holdem(rules):
        raise GameError(f"Ranges of a spot come from hold'em, and '{rules.name}' is not it.")
    holes = all_hands(_CARDS, 2)
    holes = holes[~np.isin(holes, board).any(1)]
    state, reach = reach_after(policy, line, holes, board)
    if state.over or state.betting[-1] or sum(rules.board_cards[: state.round + 1]) != len(board):
        raise ConfigError(
            f"The line {line!r} must end where the last of the {len(board)} cards on the board are dealt."
        )
    weights = np.zeros((2, comb(_CARDS, 2)))
    share = reach / np.maximum(reach.max(1, keepdims=True), np.finfo(np.float64).tiny)
    weights[:, hand_rows(holes)] = np.where(share < _LEAST, 0, share)
    return state, (weights[0], weights[1])
