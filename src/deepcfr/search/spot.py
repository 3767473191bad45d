"""Spots of hold'em: two ranges, a board, a pot, stacks and bet sizes, from the flop, turn or river to the end.

The dealer is player 0, and player 1 acts first. A bet is a percentage of the pot, a raise one of the pot after a call;
both are at least the smallest legal one and at most the stack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import inf
from numbers import Real

import numpy as np

from deepcfr.errors import ConfigError
from deepcfr.games.betting import CALL, FOLD, RAISE, BettingState, PublicTree, legal_actions, next_state, raised, unroll
from deepcfr.games.board_index import hand_images
from deepcfr.games.cards import all_hands, card_text, cards_text, suit_permutations
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Player
from deepcfr.policies.query import read_board
from deepcfr.search.spot_ranges import HOLDEM, UNIT, Doubles, parse_range, range_text, ranges_after

STREETS = {"flop": 1, "turn": 2, "river": 3}
NAMES = ("dealer", "big blind")
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
            elif (name == "raise" and raises) or (name in STREETS and STREETS[name] in bets):
                raise ConfigError(f"'{part}' names the {name} a second time: write all its sizes in one part.")
            elif name == "raise":
                raises = _percents(part, numbers)
            elif name in STREETS:
                bets[STREETS[name]] = _percents(part, numbers)
            else:
                raise ConfigError(
                    f"'{part}' is not a size: write flop, turn, river or raise with percentages, or allin."
                )
        return Sizes(bets, raises, all_in)

    def quiet(self, first: int) -> list[str]:
        """The streets from round `first` on that have no bets."""
        return [
            name for name, street in STREETS.items() if street >= first and not (self.all_in or self.bets.get(street))
        ]

    def __str__(self) -> str:
        """The sizes as `parse` reads them."""
        parts = {name: self.bets.get(street, ()) for name, street in STREETS.items()} | {"raise": self.raises}
        texts = [" ".join([name, *map(str, percents)]) for name, percents in parts.items() if percents]
        return ", ".join([*texts, *(["allin"] if self.all_in else [])])


def _percents(part: str, numbers: list[str]) -> tuple[int, ...]:
    if not numbers or not all(re.fullmatch(r"\d{1,4}", number) and int(number) > 0 for number in numbers):
        raise ConfigError(f"'{part}' needs percentages of the pot, whole numbers from 1 to 9999.")
    return tuple(sorted({int(number) for number in numbers}))


def parse_board(text: str) -> tuple[int, ...]:
    """The cards of a board such as `Qs 7h 2c` or `Qs7h2c`. Raises ConfigError for unknown and repeated cards."""
    return read_board(HOLDEM, text)


@dataclass(frozen=True)
class Spot:
    """A spot; amounts are in big blinds. Raises ConfigError with the first problem."""

    board: tuple[int, ...]
    pot: float
    stacks: float
    ranges: tuple[Doubles, Doubles]  # weights [1326] of the dealer's hands and of the big blind's
    sizes: Sizes
    rake: float = 0.0  # percent of the final pot that the house takes from the winner
    cap: float | None = None  # most of it, in big blinds
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
        policy: Player | None = None,
        line: str = "",
        rake: float = 0.0,
        cap: float | None = None,
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
        dealt, other = (None if text is None else parse_range(text) for text in (dealer, big_blind))
        if policy is not None:
            state, reach = ranges_after(policy, line, cards)
            rules = state.rules
            assert isinstance(policy.game, PokerGame | LadderGame)
            stack = policy.game.rules.stack
            if stacks is None and not stack:
                raise ConfigError(f"Nobody runs out of chips in '{rules.name}': give the stacks.")
            pot = state.pot if pot is None else pot
            stacks = (stack - max(state.chips)) / rules.unit_chips if stacks is None else stacks
            dealt, other = (own if text is None else text for text, own in zip((dealt, other), reach, strict=True))
        assert pot is not None
        assert stacks is not None
        assert dealt is not None
        assert other is not None
        return Spot(cards, pot, stacks, (dealt, other), Sizes.parse(sizes), rake, cap)

    def texts(self) -> dict[str, str | float | None]:
        """The spot as `parse` reads it."""
        dealer, big_blind = (range_text(weights, self.board) for weights in self.ranges)
        named = {"dealer": dealer, "big_blind": big_blind, "sizes": str(self.sizes)}
        amounts = {"pot": self.pot, "stacks": self.stacks, "rake": self.rake, "cap": self.cap}
        return {"board": cards_text(HOLDEM, self.board), **amounts, **named}

    def __post_init__(self) -> None:
        dealt = {sum(HOLDEM.board_cards[: round_ + 1]): round_ for round_ in STREETS.values()}
        if len(self.board) not in dealt:
            raise ConfigError(f"A board has 3, 4 or 5 cards, but {len(self.board)} are given.")
        for card in self.board:
            if self.board.count(card) > 1:
                raise ConfigError(f"The card {card_text(HOLDEM, card)} is twice on the board.")
        for name, value in (("pot", self.pot), ("stacks", self.stacks), ("rake", self.rake), ("cap", self.cap or 0)):
            if not isinstance(value, Real):
                raise ConfigError(f"The {name} must be a number, but is {value!r}.")
        for name, value in (("pot", self.pot), ("stacks", self.stacks)):
            if not 0 < value <= _MOST_STACK:
                raise ConfigError(
                    f"The {name} must be above 0 and at most {_MOST_STACK:,} big blinds, but is {value:g}."
                )
        if not 0 <= self.rake < 100:
            raise ConfigError(f"The rake must be from 0 to less than 100 percent, but is {self.rake:g}.")
        if self.cap is not None and not 0 <= self.cap < inf:
            raise ConfigError(f"The cap of the rake must be 0 or more big blinds, but is {self.cap:g}.")
        if self.cap is not None and not self.rake:
            raise ConfigError(f"A cap of {self.cap:g} big blinds needs a rake.")
        live = ~np.isin(all_hands(HOLDEM.num_cards, 2), self.board).any(1)
        object.__setattr__(self, "ranges", tuple(weights * live for weights in self.ranges))
        for name, weights in zip(NAMES, self.ranges, strict=True):
            if not weights.any():
                board = cards_text(HOLDEM, self.board)
                raise ConfigError(f"The range of the {name} has no hand that is possible on the board {board}.")
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
    def unraked(self) -> float:
        """What the house leaves of the pot if nobody bets."""
        pot = 2 * self.half_pot / UNIT
        return pot - min(self.rake / 100 * pot, inf if self.cap is None else self.cap)

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
