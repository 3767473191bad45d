"""Texture buckets: the made hand, the board's texture, and draws.

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker", section 5
and figure 4) sorts hands after the flop by made hand, board texture, draws and who raised in earlier rounds; before the
flop by their two ranks and whether they are suited. The paper does not specify all classes; those below are ours.
Who raised belongs to the betting, not to the cards: `deepcfr.sample.bet_size_tables` handles it.

Buckets are computed from the cards when needed, in numba, without a table of boards. They depend on ranks and on how many
cards share a suit, so renaming suits does not change them. Every hand on every board has a bucket:

    (made hand with draws) * TEXTURES + texture        on the flop and the turn
    (made hand) * TEXTURES + texture                   with five board cards, where there are no draws

Many of these numbers never occur. Rounds may deal any number of board cards; the game must have two hole cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from deepcfr.buckets.buckets import check_cards
from deepcfr.core.compiled import nb
from deepcfr.core.errors import GameError
from deepcfr.core.types import Cards, Ints
from deepcfr.game.hands import (
    FLUSH,
    FULL_HOUSE,
    HIGH_CARD,
    PAIR,
    QUADS,
    STRAIGHT,
    STRAIGHT_FLUSH,
    TRIPS,
    TWO_PAIR,
    count_bits,
    strength,
)
from deepcfr.game.rules import PokerRules

TEXTURE = "texture"  # the setting that selects these buckets
TEXTURES = 27  # pairs on the board (3) x cards of one suit (3) x cards near each other (3)
DRAWS = 6  # straight draw (3: none, one rank completes it, more) x flush draw (2)
LAST_BOARD = 5  # number of board cards of the last round

# Made hands, weak to strong; only those below STRAIGHTS have draws.
NOTHING, ONE_OVERCARD, TWO_OVERCARDS, ACE_HIGH = 0, 1, 2, 3
BOARD_PAIRS, BOARD_PAIRS_ACE = 4, 5  # all pairs are on the board
UNDERPAIR, MIDDLE_POCKET_PAIR, OVERPAIR = 6, 7, 8
LOW_PAIR, SECOND_PAIR, TOP_PAIR, TOP_PAIR_GOOD_KICKER = 9, 10, 11, 12
PAIR_AND_BOARD_PAIR, TOP_PAIR_AND_BOARD_PAIR, OVERPAIR_AND_BOARD_PAIR = 13, 14, 15
TWO_PAIRS, TOP_TWO_PAIRS = 16, 17
BOARD_TRIPS, BOARD_TRIPS_ACE, MADE_TRIPS, MADE_TRIPS_GOOD_KICKER, SET = 18, 19, 20, 21, 22
STRAIGHTS = 23  # then: on the board, lower than another one could be, the highest
FLUSHES = 26  # then: on the board, low, second or third highest card of the suit, highest
FULL_HOUSES = 30  # then: on the board, with trips of which two are on the board and not the highest, other ones
BEST = 33  # then: quads on the board, own quads, straight flush on the board, own one
MADE_HANDS = 37
GOOD_KICKER = 9  # a jack, in decks of thirteen ranks


@dataclass(frozen=True)
class TextureBuckets:
    """The texture buckets of a game with two hole cards; implements `Buckets`.

    Raises GameError for games with another number of hole cards.
    """

    rules: PokerRules

    def __post_init__(self) -> None:
        if self.rules.hole_cards != 2:
            raise GameError(
                f"Texture buckets are of hands of two cards, but {self.rules.name} deals {self.rules.hole_cards}."
            )

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Buckets of each round, numbered from 0."""
        seen = np.cumsum(self.rules.board_cards).tolist()
        return tuple(_bucket_count(self.rules.num_ranks, cards) for cards in seen)

    def buckets(self, round_: int, holes: Cards, boards: Cards) -> Ints:
        """The bucket of every hand on its board, int64 [M]; undefined where hand and board share a card.

        `holes` is uint8 [M, 2] and `boards` uint8 [M, n], all board cards so far; both in any order and any suits.
        Raises GameError for an unknown round, and for a wrong number of cards or cards outside the deck.
        """
        rules = self.rules
        check_cards(rules, round_, holes, boards)
        return _buckets(np.ascontiguousarray(holes), np.ascontiguousarray(boards), rules.num_ranks, rules.num_suits)

    def made_hands(self, round_: int, holes: Cards, boards: Cards) -> tuple[Ints, Ints]:
        """The made hand and the draws of every hand after the flop, int64 [M] each; arguments and errors as of `buckets`.

        Draws are 0 where there are none, with straights and better hands, and on boards of five cards.
        """
        classes = self.buckets(round_, holes, boards) // TEXTURES
        if boards.shape[1] >= LAST_BOARD:
            return classes, np.zeros_like(classes)
        strong = classes >= STRAIGHTS * DRAWS
        return np.where(strong, classes - STRAIGHTS * (DRAWS - 1), classes // DRAWS), np.where(
            strong, 0, classes % DRAWS
        )


class Buckets(Protocol):
    """Interface of buckets: an `Abstraction`, `TextureBuckets`, or coarser buckets made from them."""

    @property
    def rules(self) -> PokerRules:
        """The game of the hands."""
        ...

    @property
    def counts(self) -> tuple[int, ...]:
        """Buckets of each round, numbered from 0."""
        ...

    def buckets(self, round_: int, holes: Cards, boards: Cards) -> Ints:
        """The bucket of every hand on its board, int64 [M]; holes uint8 [M, hole cards], boards uint8 [M, n]."""
        ...


def _bucket_count(num_ranks: int, board_cards: int) -> int:
    if board_cards == 0:
        return num_ranks * num_ranks
    return (MADE_HANDS if board_cards >= LAST_BOARD else STRAIGHTS * DRAWS + MADE_HANDS - STRAIGHTS) * TEXTURES


@nb.njit(cache=True, nogil=True)
def _buckets(holes: Cards, boards: Cards, num_ranks: int, num_suits: int) -> Ints:
    result = np.empty(len(holes), np.int64)
    hand = np.empty(2 + boards.shape[1], np.uint8)
    for row in range(len(holes)):
        hole, board = holes[row], boards[row]
        if len(board) == 0:
            result[row] = starting_hand(hole, num_ranks, num_suits)
            continue
        hand[:2] = hole
        hand[2:] = board
        made = made_hand(hand, num_ranks, num_suits)
        if len(board) < LAST_BOARD:
            made = made * DRAWS + draws(hand, num_suits) if made < STRAIGHTS else STRAIGHTS * (DRAWS - 1) + made
        result[row] = made * TEXTURES + texture(board, num_suits)
    return result


@nb.njit(cache=True, nogil=True)
def starting_hand(hole: Cards, num_ranks: int, num_suits: int) -> int:
    """The cell of a starting hand: pairs on the diagonal, suited hands on one side, offsuit hands on the other."""
    high, low = max(hole[0], hole[1]), min(hole[0], hole[1])
    suited = high % num_suits == low % num_suits
    top, bottom = int(high) // num_suits, int(low) // num_suits
    return top * num_ranks + bottom if suited else bottom * num_ranks + top


@nb.njit(cache=True, nogil=True)
def _rank_mask(cards: Cards, num_suits: int) -> int:
    mask = 0
    for card in cards:
        mask |= 1 << (int(card) // num_suits)
    return mask


@nb.njit(cache=True, nogil=True)
def _count_rank(cards: Cards, rank: int, num_suits: int) -> int:
    count = 0
    for card in cards:
        count += int(card) // num_suits == rank
    return count


@nb.njit(cache=True, nogil=True)
def _top(mask: int) -> int:
    """The highest rank of a mask, -1 if it is empty."""
    rank = -1
    while mask:
        mask >>= 1
        rank += 1
    return rank


@nb.njit(cache=True, nogil=True)
def _window(high: int) -> int:
    """The ranks of the straight up to `high`; up to rank 3 it is the wheel, which needs the ace of thirteen ranks."""
    return 0b1000000001111 if high == 3 else 31 << (high - 4)


@nb.njit(cache=True, nogil=True)
def _suit_of_most(cards: Cards, num_suits: int) -> tuple[int, int]:
    """A suit with the most cards, and the number of its cards."""
    suit, most = 0, 0
    for candidate in range(num_suits):
        count = 0
        for card in cards:
            count += int(card) % num_suits == candidate
        if count > most:
            suit, most = candidate, count
    return suit, most


@nb.njit(cache=True, nogil=True)
def texture(board: Cards, num_suits: int) -> int:
    """The texture of a board: its pairs, cards of one suit, and cards of one straight, three classes each.

    Pairs: none; one; more, or trips. Suits: no flush is possible (on a flop: three suits); three of a suit (on a flop:
    two); more. Ranks: the most board cards of one straight: at most two; three; more.
    """
    ranks = _rank_mask(board, num_suits)
    doubles = min(len(board) - count_bits(ranks), 2)
    _, suited = _suit_of_most(board, num_suits)
    least = 1 if len(board) <= 3 else 2
    near = 0
    for high in range(3, 13):
        near = max(near, count_bits(ranks & _window(high)))
    return (doubles * 3 + min(max(suited - least, 0), 2)) * 3 + min(max(near - 2, 0), 2)


@nb.njit(cache=True, nogil=True)
def draws(hand: Cards, num_suits: int) -> int:
    """The draws of a hand with its board, hole cards first: 2 x straight draw + flush draw, classes as in DRAWS.

    Only draws with a hole card count.
    """
    own, ranks = _rank_mask(hand[:2], num_suits), _rank_mask(hand, num_suits)
    board = _rank_mask(hand[2:], num_suits)
    outs = 0
    for high in range(3, 13):
        window = _window(high)
        missing = window & ~ranks
        if count_bits(missing) == 1 and own & window & ~board:
            outs |= missing
    flush_draw = 0
    for suit in range(num_suits):
        count, mine = 0, 0
        for slot in range(len(hand)):
            if int(hand[slot]) % num_suits == suit:
                count += 1
                mine += slot < 2
        flush_draw |= int(count == 4 and mine > 0)
    return 2 * min(count_bits(outs), 2) + flush_draw


@nb.njit(cache=True, nogil=True)
def made_hand(hand: Cards, num_ranks: int, num_suits: int) -> int:
    """The made hand of two hole cards, which come first in `hand`, with their board."""
    category = strength(hand, num_suits) >> 20
    if category == HIGH_CARD:
        return _high_card(hand, num_ranks, num_suits)
    if category in (PAIR, TWO_PAIR):
        return _pairs(hand, num_ranks, num_suits)
    if category == TRIPS:
        return _trips(hand, num_ranks, num_suits)
    on_board = strength(hand[2:], num_suits) if len(hand) > 6 else -1
    improved = strength(hand, num_suits) > on_board
    if category == STRAIGHT:
        return STRAIGHTS + (_straight_rank(hand, num_suits) if improved else 0)
    if category == FLUSH:
        return FLUSHES + (_flush_rank(hand, num_ranks, num_suits) if improved else 0)
    if category == FULL_HOUSE:
        return FULL_HOUSES + (_full_house_rank(hand, num_suits) if improved else 0)
    return BEST + 2 * int(category == STRAIGHT_FLUSH) + int(_improves_best(hand, category, num_suits, improved))


@nb.njit(cache=True, nogil=True)
def _high_card(hand: Cards, num_ranks: int, num_suits: int) -> int:
    top = _top(_rank_mask(hand[2:], num_suits))
    own = _rank_mask(hand[:2], num_suits)
    if own >> (num_ranks - 1):
        return ACE_HIGH
    return NOTHING + count_bits(own >> (top + 1))


@nb.njit(cache=True, nogil=True)
def _board_pairs(hand: Cards, num_suits: int) -> int:
    """The ranks of which the board has two or more cards."""
    pairs, seen = 0, 0
    for card in hand[2:]:
        bit = 1 << (int(card) // num_suits)
        pairs |= seen & bit
        seen |= bit
    return pairs


@nb.njit(cache=True, nogil=True)
def _pairs(hand: Cards, num_ranks: int, num_suits: int) -> int:
    """Classes of one pair and two pairs, by the pairs that include hole cards."""
    board = _rank_mask(hand[2:], num_suits)
    board_pairs = _board_pairs(hand, num_suits)
    high, low = int(max(hand[0], hand[1])) // num_suits, int(min(hand[0], hand[1])) // num_suits
    top = _top(board)
    if high == low:  # a pocket pair that no board card matches
        if board_pairs and count_bits(board_pairs >> (high + 1)) < 2:
            return OVERPAIR_AND_BOARD_PAIR if high > top else PAIR_AND_BOARD_PAIR
        if board_pairs:
            return BOARD_PAIRS
        below = count_bits(board & ((1 << high) - 1))
        return OVERPAIR if high > top else UNDERPAIR if below == 0 else MIDDLE_POCKET_PAIR
    matched = ((1 << high) | (1 << low)) & board
    if count_bits(matched) == 2:
        best_two = board ^ (1 << top)
        return TOP_TWO_PAIRS if high == top and low == _top(best_two) else TWO_PAIRS
    if matched == 0 or count_bits(board_pairs >> (_top(matched) + 1)) > 1:
        return BOARD_PAIRS_ACE if high == num_ranks - 1 and matched == 0 else BOARD_PAIRS
    pair = _top(matched)
    if board_pairs:
        return TOP_PAIR_AND_BOARD_PAIR if pair == top else PAIR_AND_BOARD_PAIR
    if pair == top:
        kicker = low if pair == high else high
        return TOP_PAIR_GOOD_KICKER if kicker >= GOOD_KICKER else TOP_PAIR
    return SECOND_PAIR if pair == _top(board ^ (1 << top)) else LOW_PAIR


@nb.njit(cache=True, nogil=True)
def _trips(hand: Cards, num_ranks: int, num_suits: int) -> int:
    high, low = int(max(hand[0], hand[1])) // num_suits, int(min(hand[0], hand[1])) // num_suits
    if high == low:
        return SET
    for rank, kicker in ((high, low), (low, high)):
        if _count_rank(hand, rank, num_suits) == 3:
            return MADE_TRIPS_GOOD_KICKER if kicker >= GOOD_KICKER else MADE_TRIPS
    return BOARD_TRIPS_ACE if high == num_ranks - 1 else BOARD_TRIPS


@nb.njit(cache=True, nogil=True)
def _straight_rank(hand: Cards, num_suits: int) -> int:
    """1 if other hole cards could make a higher straight, 2 if not."""
    board, ranks = _rank_mask(hand[2:], num_suits), _rank_mask(hand, num_suits)
    own, best = 0, 0
    for high in range(3, 13):
        window = _window(high)
        if ranks & window == window:
            own = high
        if count_bits(board & window) >= 3:
            best = high
    return 2 if own >= best else 1


@nb.njit(cache=True, nogil=True)
def _flush_rank(hand: Cards, num_ranks: int, num_suits: int) -> int:
    """3 for the highest card of the suit that is not on the board, 2 for the second or third, 1 for a lower one."""
    suit, _ = _suit_of_most(hand, num_suits)
    board, own = 0, -1
    for slot in range(len(hand)):
        rank = int(hand[slot]) // num_suits
        if int(hand[slot]) % num_suits == suit:
            if slot < 2:
                own = max(own, rank)
            else:
                board |= 1 << rank
    higher = 0
    for rank in range(own + 1, num_ranks):
        higher += not board >> rank & 1
    return 3 if higher == 0 else 2 if higher <= 2 else 1


@nb.njit(cache=True, nogil=True)
def _full_house_rank(hand: Cards, num_suits: int) -> int:
    """1 if the board has a pair higher than the trips, so a larger full house is likely; otherwise 2."""
    trips = (strength(hand, num_suits) >> 16) & 15
    return 1 if _board_pairs(hand, num_suits) >> (trips + 1) else 2


@nb.njit(cache=True, nogil=True)
def _improves_best(hand: Cards, category: int, num_suits: int, improved: bool) -> bool:
    """Whether hole cards make the quads or the straight flush; a kicker beside quads on the board is not enough."""
    if category != QUADS:
        return improved
    rank = (strength(hand, num_suits) >> 16) & 15
    return _count_rank(hand[2:], rank, num_suits) < 4
