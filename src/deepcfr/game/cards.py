"""Cards as integers: their text forms, and suit isomorphism. Card = rank * num_suits + suit.

0 is the lowest rank's first suit. Two situations that differ only by a renaming of suits are strategically the same. A
situation is a sequence of card groups in deal order (hole, flop, turn, river), each an unordered set. Its canonical form
renames the suits in the order of their holdings and sorts every group, so it is the same for all renamings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations

import numpy as np
import numpy.typing as npt

from deepcfr.core.compiled import nb
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import NO_CARD, Cards
from deepcfr.game.rules import PokerRules

SUIT_SIGNS = dict(zip(map(ord, "♣♧♦♢♥♡♠♤"), "ccddhhss", strict=True))
_BETWEEN = re.compile(
    "[\\s,;()\\[\\]\ufeff\ufe0e\ufe0f]+"
)  # cards; the last three are a byte order mark and forms of signs


def card_text(rules: PokerRules, card: int) -> str:
    """The text form of a card, such as `As`; one-suit decks omit the suit."""
    rank, suit = divmod(int(card), rules.num_suits)
    return rules.rank_symbols[rank] + (rules.suit_symbols[suit] if rules.num_suits > 1 else "")


def cards_text(rules: PokerRules, cards: npt.ArrayLike) -> str:
    """Several cards as text, separated by spaces."""
    return " ".join(card_text(rules, card) for card in np.asarray(cards).reshape(-1))


def parse_card(rules: PokerRules, text: str) -> int:
    """The card that `text` names, such as `As`, `10s`, `A♠` or, in one-suit decks, `K`.

    Raises ConfigError for anything else.
    """
    name = ("T" + text[2:] if text.startswith("10") else text).translate(SUIT_SIGNS)
    suited = rules.num_suits > 1
    if len(name) == (2 if suited else 1):
        rank = max(rules.rank_symbols.find(name[0]), rules.rank_symbols.find(name[0].upper()))
        suit = max(rules.suit_symbols.find(name[1]), rules.suit_symbols.find(name[1].lower())) if suited else 0
        if rank >= 0 and suit >= 0:
            return rank * rules.num_suits + suit
    suits = f" and a suit of {rules.suit_symbols}" if suited else ""
    raise ConfigError(f"'{text}' is not a card of {rules.name}: write a rank of {rules.rank_symbols}{suits}.")


def split_cards(rules: PokerRules, text: str) -> list[str]:
    """The texts of single cards, which `parse_card` reads, in `Qs 7h 2c`, `Qs,7h,2c`, `[Q♠ 7♥ 2♣]` or `Qs7h2c`.

    Raises ConfigError for what is no text.
    """
    if not isinstance(text, str):
        raise ConfigError(f"Cards must be in one text, such as 'Qs 7h 2c', but are {text!r}.")
    card = "10.?|..?" if rules.num_suits > 1 else "10|."
    return [piece for word in _BETWEEN.split(text) for piece in re.findall(card, word)]


def read_board(rules: PokerRules, text: str) -> tuple[int, ...]:
    """Public cards, as `split_cards` reads them. Raises ConfigError for unknown and repeated cards."""
    return tuple(give_suits(rules, [read_card(rules, piece) for piece in split_cards(rules, text)]))


def read_card(rules: PokerRules, piece: str) -> int:
    """Return the card that a piece names, or -1 - rank for a rank alone in decks of two or three suits."""
    if 1 < rules.num_suits < 4 and (len(piece) == 1 or piece == "10"):
        try:
            return -1 - parse_card(rules, piece + rules.suit_symbols[0]) // rules.num_suits
        except ConfigError:
            pass  # the error of the next line names the piece as written
    return parse_card(rules, piece)


def give_suits(rules: PokerRules, cards: list[int]) -> list[int]:
    """Give the first free suit to every rank without one (see `read_card`). Raises ConfigError for a repeated card."""
    taken = [card for card in cards if card >= 0]
    for card in taken:
        if taken.count(card) > 1:
            raise ConfigError(f"The card {card_text(rules, card)} is given {taken.count(card)} times.")
    given = []
    for card in cards:
        rank = -1 - card
        free = [c for c in range(rank * rules.num_suits, (rank + 1) * rules.num_suits) if c not in taken]
        if card < 0 and not free:
            count = f"{rules.num_suits} cards of rank {rules.rank_symbols[rank]}"
            raise ConfigError(f"{rules.name} has only {count}, but more are given.")
        given.append(card if card >= 0 else free[0])
        taken.append(given[-1])
    return given


def all_hands(num_cards: int, hole_cards: int) -> npt.NDArray[np.uint8]:
    """Every private hand in lexicographic order, uint8 [H, hole_cards], cards ascending."""
    cards = chain.from_iterable(combinations(range(num_cards), hole_cards))
    return np.fromiter(cards, np.uint8).reshape(-1, hole_cards)


def hand_class(rules: PokerRules, hand: npt.ArrayLike) -> str:
    """The name of a two-card starting hand's class, one of the 13 x 13 cells: `AKs`, `72o`, `TT`."""
    (low, low_suit), (high, high_suit) = (divmod(int(c), rules.num_suits) for c in sorted(np.asarray(hand).tolist()))
    name = rules.rank_symbols[high] + rules.rank_symbols[low]
    return name if high == low else name + ("s" if high_suit == low_suit else "o")


MAX_GROUPS = 4  # 13 rank bits a group, in a 64-bit key


@nb.njit(cache=True, inline="always")
def _suit_keys(
    cards: npt.NDArray[np.uint8], groups: npt.NDArray[np.int64], num_suits: int, keys: npt.NDArray[np.int64]
) -> None:
    keys[:] = 0
    slot = 0
    for group in range(len(groups)):
        shift = 13 * (MAX_GROUPS - 1 - group)
        for _ in range(groups[group]):
            card = int(cards[slot])
            if card != NO_CARD:
                keys[card % num_suits] |= 1 << (card // num_suits + shift)
            slot += 1


@nb.njit(cache=True)
def canonicalise_row(cards: npt.NDArray[np.uint8], groups: npt.NDArray[np.int64], num_suits: int) -> None:
    """Rename the suits of `cards` (uint8 [C], NO_CARD allowed) to the canonical form and sort each group, in place."""
    keys = np.zeros(4, np.int64)
    _suit_keys(cards, groups, num_suits, keys)
    new_suit = np.zeros(4, np.int64)
    for suit in range(num_suits):
        for other in range(num_suits):
            # equal keys have the same ranks in every group, so their order makes no difference
            if keys[other] > keys[suit] or (keys[other] == keys[suit] and other < suit):
                new_suit[suit] += 1
    for slot in range(len(cards)):
        card = int(cards[slot])
        if card != NO_CARD:
            cards[slot] = card - card % num_suits + new_suit[card % num_suits]
    sort_groups(cards, groups)


@nb.njit(cache=True)
def sort_groups(cards: npt.NDArray[np.uint8], groups: npt.NDArray[np.int64]) -> None:
    """Sort every group of `cards` (uint8 [C]) in ascending order, in place."""
    start = 0
    for size in groups:
        for i in range(start + 1, start + size):
            card = cards[i]
            j = i
            while j > start and cards[j - 1] > card:
                cards[j] = cards[j - 1]
                j -= 1
            cards[j] = card
        start += size


@nb.njit(cache=True, nogil=True)
def _canonicalise(cards: npt.NDArray[np.uint8], groups: npt.NDArray[np.int64], num_suits: int) -> None:
    for row in range(cards.shape[0]):
        canonicalise_row(cards[row], groups, num_suits)


def canonical_cards(cards: npt.NDArray[np.uint8], groups: tuple[int, ...], num_suits: int) -> npt.NDArray[np.uint8]:
    """The canonical form of each row of `cards`, uint8 [M, C] with slots divided into `groups`; a new array."""
    result = np.array(cards, np.uint8, order="C")
    _canonicalise(result, np.array(groups, np.int64), num_suits)
    return result


def pack_cards(cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Each row of up to seven cards as one integer, uint8 [M, C] to int64 [M], in the rows' lexicographic order."""
    return cards.astype(np.int64) @ (256 ** np.arange(cards.shape[1] - 1, -1, -1, dtype=np.int64))


def suit_permutations(num_ranks: int, num_suits: int) -> npt.NDArray[np.uint8]:
    """Every renaming of suits as a map of cards, uint8 [num_suits!, num_cards]; the identity is first."""
    cards = np.arange(num_ranks * num_suits)
    ranks, suits = cards // num_suits, cards % num_suits
    return np.array([ranks * num_suits + np.array(p)[suits] for p in permutations(range(num_suits))], np.uint8)


@dataclass(frozen=True)
class BoardClasses:
    """The boards that extend a prefix by one round: one for each class under the renamings that fix the prefix."""

    cards: npt.NDArray[np.uint8]  # [classes, new cards], ascending
    multiplicity: npt.NDArray[np.int64]  # [classes], boards in the class


def extend_board(
    prefix: tuple[int, ...], groups: tuple[int, ...], new_cards: int, num_ranks: int, num_suits: int, *, merge: bool
) -> BoardClasses:
    """The boards that add `new_cards` to `prefix`, merged by suit isomorphism if `merge`.

    `groups` divides `prefix` into the rounds that dealt it. The root's three-card classes are the 1,755 canonical flops.
    """
    if new_cards == 0:
        return BoardClasses(np.zeros((1, 0), np.uint8), np.ones(1, np.int64))
    rest = [card for card in range(num_ranks * num_suits) if card not in prefix]
    boards = np.array(list(combinations(rest, new_cards)), np.uint8).reshape(-1, new_cards)
    if not merge:
        return BoardClasses(boards, np.ones(len(boards), np.int64))
    whole = np.concatenate([np.tile(np.array(prefix, np.uint8), (len(boards), 1)), boards], axis=1)
    canonical = canonical_cards(whole, (*groups, new_cards), num_suits)
    _, first, counts = np.unique(canonical, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return BoardClasses(boards[first[order]], counts[order])


# Deals

# The constants of `core.rng.addressed_uniforms`; numba would turn a mixture of signed and unsigned integers into floats.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xD1342543DE82EF95)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31, _S40 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(40)


@nb.njit(cache=True, nogil=True)
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _S30)) * _MIX_1
    x = (x ^ (x >> _S27)) * _MIX_2
    return x ^ (x >> _S31)


@nb.njit(cache=True, nogil=True)
def address_of(stream: np.uint64, traversal: int) -> np.uint64:
    """The part of `deepcfr.core.rng.addressed_uniforms` that is common to a traversal."""
    return _mix(np.uint64(traversal) * _GOLDEN + stream)


@nb.njit(cache=True, nogil=True)
def uniform_at(address: np.uint64, place: int) -> float:
    """The uniform of `deepcfr.core.rng.addressed_uniforms` at (traversal, place)."""
    return (_mix(address + np.uint64(place) * _SECOND) >> _S40) * 2.0**-24


def free_holes(rules: PokerRules, dead: Sequence[int]) -> Cards:
    """Every private hand that has no card of `dead`, uint8 [H, hole cards]."""
    holes = all_hands(rules.num_cards, rules.hole_cards)
    return holes[~np.isin(holes, dead).any(1)]


@nb.njit(cache=True, nogil=True)
def deal_cards(count: int, stream: np.uint64, first: int, num_cards: int, slots: int) -> npt.NDArray[np.uint8]:
    """The cards of deals `first` .. `first + count - 1` of a stream, uint8 [B, slots].

    They are the first ones of a Fisher-Yates shuffle by the uniforms of (deal, slot).
    """
    cards = np.empty((count, slots), np.uint8)
    deck = np.empty(num_cards, np.uint8)
    for row in range(count):
        for card in range(num_cards):
            deck[card] = card
        address = address_of(stream, first + row)
        for slot in range(slots):
            pick = slot + int(uniform_at(address, slot) * (num_cards - slot))
            cards[row, slot] = deck[pick]
            deck[pick] = deck[slot]
    return cards
