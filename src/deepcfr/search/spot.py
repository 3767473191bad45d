"""Spots of hold'em: two ranges, a board, a pot, stacks and bet sizes, from the flop, turn or river to the end.

The dealer is player 0, and player 1, the big blind, acts first. Amounts are in any unit, such as big blinds or chips.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import floor, inf, log10
from numbers import Real
from sys import float_info
from typing import TYPE_CHECKING

import numpy as np

from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Doubles
from deepcfr.game.betting import RAISE
from deepcfr.game.board_index import hand_images
from deepcfr.game.cards import all_hands, card_text, cards_text, read_board, suit_permutations
from deepcfr.game.poker import Poker, PokerGame
from deepcfr.game.rules import MAX_CHIPS, PokerRules
from deepcfr.search.spot_ranges import HOLDEM, range_text, ranges_after, read_range
from deepcfr.search.spot_sizes import STREETS, Betting, Sizes, amount_text, betting

if TYPE_CHECKING:
    from deepcfr.policy.base import Policy

NAMES = ("dealer", "big blind")
#: what a spot is read from, besides a policy
SPOT_TEXTS = (
    "board", "sizes", "pot", "stacks", "dealer", "big_blind", "line", "rake", "cap", "min_bet", "aggressor",
)  # fmt: skip
_MOST_AMOUNT = 100_000_000  # of the pot and of the stacks
_MOST_DIGITS = 12  # of a unit after the point
_EXACT = 1e-6  # a smaller relative change of an amount is not worth a word


def parse_board(text: str) -> tuple[int, ...]:
    """The cards of a board, as `read_board` reads them. Raises ConfigError for unknown and repeated cards."""
    return read_board(HOLDEM, text)


def _aggressor(policy: Policy, line: str) -> str | None:
    """The player who made the last bet of a line's last round, one of NAMES."""
    from deepcfr.policy.query import poker_state, read_line

    steps = list(read_line(poker_state(policy), line))
    raises = [state.actor for state, action in steps if action >= RAISE and state.round == steps[-1][0].round]
    return NAMES[raises[-1]] if raises else None


@dataclass(frozen=True)
class Spot:
    """A spot. Raises ConfigError with the first problem."""

    board: tuple[int, ...]
    pot: float
    stacks: float
    ranges: tuple[Doubles, Doubles]  # weights [1326] of the dealer's hands and of the big blind's
    sizes: Sizes
    rake: float = 0.0  # percent of the final pot that the house takes from the winner
    cap: float | None = None  # most of it
    min_bet: float = 0.0  # the smallest bet that is allowed; a raise is at least as large as the bet or raise before
    aggressor: str | None = None  # who made the last bet of the street before, one of NAMES, or None for nobody
    remarks: tuple[str, ...] = ()  # on the texts that it was read from
    rules: PokerRules = field(init=False)

    @staticmethod
    def parse(
        board: str,
        sizes: str,
        *,
        pot: float | None = None,
        stacks: float | None = None,
        dealer: str | None = None,
        big_blind: str | None = None,
        policy: Policy | None = None,
        line: str = "",
        rake: float = 0.0,
        cap: float | None = None,
        min_bet: float = 0.0,
        aggressor: str | None = None,
    ) -> Spot:
        """A spot from texts; what is None is as `policy` has it after the betting `line` (see `ranges_after`).

        Raises ConfigError for mistakes, for a missing value without a policy, and for missing stacks if the policy's game
        has none; GameError as `ranges_after` does.
        """
        cards = parse_board(board)
        ranges = {f"the range of the {name}": text for name, text in zip(NAMES, (dealer, big_blind), strict=True)}
        given = {"the pot": pot, "the stacks": stacks} | ranges
        missing = [name for name, value in given.items() if value is None]
        if line and policy is None:
            raise ConfigError(f"The line '{line}' needs an agent whose betting it is.")
        if missing and policy is None:
            raise ConfigError(f"A spot needs a value for {' and '.join(missing)}, or an agent that has it.")
        (dealt, first_note), (other, second_note) = (
            (None, "") if text is None else read_range(text) for text in (dealer, big_blind)
        )
        if policy is not None:
            state, reach = ranges_after(policy, line, cards)
            rules = state.rules
            assert isinstance(policy.game, Poker)
            stack = policy.game.rules.stack
            if stacks is None and not stack:
                raise ConfigError(f"Nobody runs out of chips in '{rules.name}': give the stacks.")
            pot = state.pot if pot is None else pot
            stacks = (stack - max(state.chips)) / rules.unit_chips if stacks is None else stacks
            aggressor = aggressor or _aggressor(policy, line)
            dealt, other = (own if text is None else text for text, own in zip((dealt, other), reach, strict=True))
        remarks = tuple(filter(None, (first_note, second_note)))
        assert pot is not None
        assert stacks is not None
        assert dealt is not None
        assert other is not None
        return Spot(cards, pot, stacks, (dealt, other), Sizes.parse(sizes), rake, cap, min_bet, aggressor, remarks)

    def texts(self) -> dict[str, str | float | None]:
        """The spot as `parse` reads it."""
        dealer, big_blind = (range_text(weights, self.board) for weights in self.ranges)
        named = {"dealer": dealer, "big_blind": big_blind, "sizes": str(self.sizes)}
        amounts = {"pot": self.pot, "stacks": self.stacks, "rake": self.rake, "cap": self.cap, "min_bet": self.min_bet}
        return {"board": cards_text(HOLDEM, self.board), **amounts, "aggressor": self.aggressor, **named}

    def __post_init__(self) -> None:
        dealt = {sum(HOLDEM.board_cards[: round_ + 1]): round_ for round_ in STREETS.values()}
        if len(self.board) not in dealt:
            raise ConfigError(f"A board has 3, 4 or 5 cards, but {len(self.board)} are given.")
        for card in self.board:
            if self.board.count(card) > 1:
                raise ConfigError(f"The card {card_text(HOLDEM, card)} is twice on the board.")
        amounts = {
            "pot": self.pot,
            "stacks": self.stacks,
            "rake": self.rake,
            "cap": 0 if self.cap is None else self.cap,
        }
        for name, value in (amounts | {"smallest bet": self.min_bet}).items():
            if not isinstance(value, Real) or (isinstance(value, int) and abs(value) > float_info.max):
                raise ConfigError(f"The {name} must be a number, but is {value!r:.40}.")
        for name, value in (("pot", self.pot), ("stacks", self.stacks)):
            if not 0 < value <= _MOST_AMOUNT:
                raise ConfigError(f"The {name} must be above 0 and at most {_MOST_AMOUNT:,}, but is {value:g}.")
        if not 0 <= self.rake < 100:
            raise ConfigError(f"The rake must be from 0 to less than 100 percent, but is {self.rake:g}.")
        if self.cap is not None and not 0 <= self.cap < inf:
            raise ConfigError(f"The cap of the rake must be a number of 0 or more, but is {self.cap:g}.")
        if self.cap is not None and not self.rake:
            raise ConfigError(f"A cap of {self.cap:g} needs a rake.")
        if not 0 <= self.min_bet < inf:
            raise ConfigError(f"The smallest bet must be a number of 0 or more, but is {self.min_bet:g}.")
        if self.aggressor not in (None, *NAMES):
            raise ConfigError(f"Who bet last is {' or '.join(NAMES)}, not {self.aggressor!r}.")
        live = ~np.isin(all_hands(HOLDEM.num_cards, 2), self.board).any(1)
        object.__setattr__(self, "ranges", tuple(weights * live for weights in self.ranges))
        for name, weights in zip(NAMES, self.ranges, strict=True):
            if not weights.any():
                board = cards_text(HOLDEM, self.board)
                raise ConfigError(f"The range of the {name} has no hand that is possible on the board {board}.")
        # as many chips for a unit, a power of ten, as the rules allow: what is rounded is then less than a billionth
        chips = 10 ** floor(log10(min(MAX_CHIPS / (self.pot / 2 + self.stacks), 10.0**_MOST_DIGITS)))
        half, stack = round(self.pot * chips / 2), round(self.stacks * chips)
        if not half or not stack:
            raise ConfigError(
                f"A pot of {self.pot:g} with stacks of {self.stacks:g} cannot be solved: one of them is too small."
            )
        least = max(round(min(self.min_bet, stack / chips) * chips), 1)
        rules = replace(HOLDEM, name="the spot", unit_chips=chips, blinds=(1, least), stack=half + stack)
        object.__setattr__(self, "rules", replace(rules, max_raises=(self.sizes.cap + 1,) * rules.num_rounds))

    @property
    def half_pot(self) -> int:
        """The chips that each player has put in before; `rules.unit_chips` of them are one of the spot's unit."""
        return round(self.pot * self.rules.unit_chips / 2)

    @property
    def notes(self) -> list[str]:
        """A sentence for each value that is solved otherwise than it was given."""
        chips = self.rules.unit_chips
        solved = {"pot": (self.pot, 2 * self.half_pot), "stacks": (self.stacks, self.rules.stack - self.half_pot)}
        notes = list(self.remarks) + [
            f"The {name} of {value:g} is solved as {amount_text(whole / chips)}."
            for name, (value, whole) in solved.items()
            if abs(whole - value * chips) > _EXACT * value * chips
        ]
        if lifted := self.betting.lifted:
            least = "the smallest legal bet or raise, the smallest one is solved."
            notes.append(f"Where {', '.join(lifted)} would be less than {least}")
        return notes

    @cached_property
    def betting(self) -> Betting:
        """The betting from here on. Raises GameError for too many positions."""
        return betting(self.rules, self.half_pot, self.round, self.sizes, donk=self.aggressor == NAMES[0])

    @property
    def unraked(self) -> float:
        """The part of the pot that the house leaves if nobody bets."""
        pot = 2 * self.half_pot / self.rules.unit_chips
        return pot - min(self.rake / 100 * pot, inf if self.cap is None else self.cap)

    @property
    def round(self) -> int:
        """The round of the board, from 0."""
        return {3: 1, 4: 2, 5: 3}[len(self.board)]

    def game(self, merge: bool) -> PokerGame:
        """The betting from here on as a game; with `merge`, suits are merged if both ranges are symmetric in them."""
        return PokerGame(self.rules, "canonical" if merge and self._symmetric() else "raw", tree=self.betting.tree)

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
