"""Spots of hold'em: two ranges, a board, a pot, stacks and bet sizes, from the flop, turn or river to the end.

The dealer is player 0, and player 1 acts first. A bet is a percentage of the pot, a raise one of the pot after a call;
both are at least the smallest legal one and at most the stack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import comb

import numpy as np
import numpy.typing as npt

from deepcfr.errors import ConfigError
from deepcfr.games.betting import CALL, FOLD, RAISE, BettingState, PublicTree, legal_actions, next_state, raised, unroll
from deepcfr.games.board_index import binomials, hand_images, hand_numbers
from deepcfr.games.cards import all_hands, card_text, parse_card, suit_permutations
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PRESETS, PokerRules

Cards = npt.NDArray[np.uint8]
Doubles = npt.NDArray[np.float64]

HOLDEM = PRESETS["hunl-pot"]
STREETS = {"flop": 1, "turn": 2, "river": 3}
NAMES = ("dealer", "big blind")
UNIT = HOLDEM.unit_chips  # chips of a big blind
_MOST_STACK = 10_000  # big blinds
_MOST_RAISES = 99  # of a round


@dataclass(frozen=True)
class Sizes:
    """Bets by round and raises, in percent of the pot, and whether all-in is always among them."""

    bets: dict[int, tuple[int, ...]]
    raises: tuple[int, ...] = ()
    all_in: bool = False

    @staticmethod
    def parse(text: str) -> Sizes:
        """Sizes such as `flop 33 75, turn 66, river 75 150, raise 100, allin`. Raises ConfigError for anything else."""
        bets: dict[int, tuple[int, ...]] = {}
        raises: tuple[int, ...] = ()
        all_in = False
        for part in filter(None, map(str.strip, text.split(","))):
            name, *numbers = part.split()
            if name == "allin" and not numbers:
                all_in = True
            elif name == "raise":
                raises = _percents(part, numbers)
            elif name in STREETS:
                bets[STREETS[name]] = _percents(part, numbers)
            else:
                raise ConfigError(
                    f"'{part}' is not a size: write flop, turn, river or raise with percentages, or allin."
                )
        return Sizes(bets, raises, all_in)


def _percents(part: str, numbers: list[str]) -> tuple[int, ...]:
    if not numbers or not all(re.fullmatch(r"\d{1,4}", number) and int(number) > 0 for number in numbers):
        raise ConfigError(f"'{part}' needs percentages of the pot, whole numbers from 1 to 9999.")
    return tuple(sorted({int(number) for number in numbers}))


def parse_board(text: str) -> tuple[int, ...]:
    """The cards of a board such as `Qs 7h 2c` or `Qs7h2c`. Raises ConfigError for anything else."""
    pieces = [piece for word in text.split() for piece in re.findall("10.?|..?", word)]
    return tuple(parse_card(HOLDEM, piece) for piece in pieces)


def parse_range(text: str) -> Doubles:
    """The weight of every hand, [1326], of a range such as `77+,A5s-A2s,KQo:0.5`; pokerkit reads the notation.

    Raises ConfigError for what is not a range, and if pokerkit is not installed.
    """
    try:
        from pokerkit.analysis import parse_range as hands_of
    except ImportError as error:
        raise ConfigError("Ranges in text need pokerkit: pip install 'deepcfr[pokerkit]'.") from error
    weights = np.zeros(comb(HOLDEM.num_cards, 2))
    for part in filter(None, map(str.strip, re.split(r"[,;\s]+", text))):
        name, _, weight = part.partition(":")
        if weight and not re.fullmatch(r"0?\.\d+|[01]|1\.0*", weight):
            raise ConfigError(f"The weight of '{part}' must be a number from 0 to 1.")
        try:
            hands = [sorted(parse_card(HOLDEM, repr(card)) for card in hand) for hand in hands_of(*_expanded(name))]
            if any(len(hand) != 2 for hand in hands):
                raise ValueError(name)
        except (ValueError, KeyError, IndexError) as error:
            raise ConfigError(
                f"'{name}' is not a part of a range: write hands such as 77+, A5s-A2s, KQo or AsKd."
            ) from error
        weights[hand_rows(np.array(hands, np.uint8))] = float(weight or 1)
    return weights


def hand_rows(holes: Cards) -> npt.NDArray[np.int32]:
    """The places of hands [H, 2] in a range."""
    rows: npt.NDArray[np.int32] = hand_numbers(holes, binomials(HOLDEM.num_cards, 2))
    return rows


def _expanded(name: str) -> list[str]:
    """The classes of `A5s-A2s`, which pokerkit does not read; another name alone."""
    ranks = HOLDEM.rank_symbols
    match = re.fullmatch(rf"([{ranks}])([{ranks}])([so]?)-\1([{ranks}])\3", name)
    if not match or match[1] in (match[2], match[4]):
        return [name]
    first, last = sorted((ranks.index(match[2]), ranks.index(match[4])))
    return [f"{match[1]}{rank}{match[3]}" for rank in ranks[first : last + 1] if rank != match[1]]


@dataclass(frozen=True)
class Spot:
    """A spot; amounts are in big blinds. Raises ConfigError with the first problem."""

    board: tuple[int, ...]
    pot: float
    stacks: float
    ranges: tuple[Doubles, Doubles]  # weights [1326] of the dealer's hands and of the big blind's
    sizes: Sizes
    rules: PokerRules = field(init=False)

    def __post_init__(self) -> None:
        dealt = {sum(HOLDEM.board_cards[: round_ + 1]): round_ for round_ in STREETS.values()}
        if len(self.board) not in dealt:
            raise ConfigError(f"A board has 3, 4 or 5 cards, but {len(self.board)} are given.")
        for card in self.board:
            if self.board.count(card) > 1:
                raise ConfigError(f"The card {card_text(HOLDEM, card)} is twice on the board.")
        for name, value in (("pot", self.pot), ("stacks", self.stacks)):
            if not 0 < value <= _MOST_STACK:
                raise ConfigError(
                    f"The {name} must be above 0 and at most {_MOST_STACK:,} big blinds, but is {value:g}."
                )
        live = ~np.isin(all_hands(HOLDEM.num_cards, 2), self.board).any(1)
        object.__setattr__(self, "ranges", tuple(weights * live for weights in self.ranges))
        for name, weights in zip(NAMES, self.ranges, strict=True):
            if not weights.any():
                raise ConfigError(f"The range of the {name} has no hand that is possible on this board.")
        half, stack = self.half_pot, round(self.stacks * UNIT)
        if not half or not stack:
            raise ConfigError(
                f"Half the pot and the stacks are rounded to {1 / UNIT:g} big blinds, and one of them vanishes."
            )
        object.__setattr__(
            self, "rules", replace(HOLDEM, name="the spot", stack=half + stack, max_raises=(_MOST_RAISES,) * 4)
        )

    @property
    def half_pot(self) -> int:
        """The chips that each player has put in before."""
        return round(self.pot * UNIT / 2)

    @property
    def round(self) -> int:
        """The round of the board, from 0."""
        return {3: 1, 4: 2, 5: 3}[len(self.board)]

    def game(self, merge: bool) -> PokerGame:
        """The betting from here on as a game; with `merge`, suits are merged if both ranges are symmetric in them."""
        return PokerGame(self.rules, "canonical" if merge and self._symmetric() else "raw", tree=_betting(self))

    def _symmetric(self) -> bool:
        groups = [set(self.board[:3]), *({card} for card in self.board[3:])]
        renamings = suit_permutations(HOLDEM.num_ranks, HOLDEM.num_suits)
        images = hand_images(HOLDEM.num_ranks, HOLDEM.num_suits, 2)
        return all(
            (weights[image] == weights).all()
            for renaming, image in zip(renamings, images, strict=True)
            if all({int(renaming[card]) for card in group} == group for group in groups)
            for weights in self.ranges
        )


def _betting(spot: Spot) -> PublicTree:
    """The public tree of a spot."""
    rules, sizes, half = spot.rules, spot.sizes, spot.half_pot
    first = BettingState(
        round=spot.round,
        actor=rules.first_player[spot.round],
        chips=(half, half),
        last_raise=UNIT,
        actions=((),) * (spot.round + 1),
    )

    def totals(state: BettingState) -> list[int]:
        called = max(state.chips)
        percents = sizes.raises if state.raises else sizes.bets.get(state.round, ())
        wanted = {min(called + max(2 * called * p // 100, state.last_raise), rules.stack) for p in percents}
        return sorted(wanted | ({rules.stack} if sizes.all_in else set()))

    def after(state: BettingState) -> dict[int, BettingState]:
        legal = legal_actions(rules, state)
        found = {action: next_state(rules, state, action) for action in legal if action in (FOLD, CALL)}
        if RAISE in legal:
            found |= {RAISE + i: raised(state, total) for i, total in enumerate(totals(state))}
        return found

    most = RAISE + 1 + max(len(sizes.raises), *(len(bets) for bets in (*sizes.bets.values(), ())))
    return unroll(first, after, rules, most, "give fewer sizes")
