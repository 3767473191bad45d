"""Rules of games with bet sizes: no-limit hold'em with a few raise sizes, each larger than those before it in the round.

Source: Lin 2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker",
section 10. The betting tree of `hunl-ladder` is too large to list as a `PublicTree`, so a state machine
(`deepcfr.game.bet_size_betting`) steps through it.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from deepcfr.core.errors import GameError
from deepcfr.game.rules import MAX_CHIPS, PokerRules

MEASURES = ("chips", "pot")  # the unit of a round's sizes: totals to raise to, or percent of the pot after a call
MOST_ROUNDS = 5  # of betting
MOST_SIZES = 10  # of a round, including all-in; a round has 2^sizes sequences of raises


@dataclass(frozen=True)
class BetSizeRules:
    """The rules of one two-player game with bet sizes.

    Player 0 is the dealer and acts first in the first round. In a round measured in chips a size is the total that a raise
    leads to; measured in the pot it is the size of the raise as a percentage of the pot after a call. A size is legal if
    it is higher than every size chosen in the round so far and leads to a legal no-limit raise: by at least the round's
    last raise or the larger blind, or all-in if the stack is shorter. Of two sizes that lead to the same total only the
    lower one is legal. `all_in` adds a highest size that puts in the whole stack. A player who has put in the whole stack
    is all-in: the other player may call or fold, and after a call all remaining cards are dealt.

    Raises GameError with every problem found if the values contradict each other or the limits.
    """

    name: str
    stack: int  # chips of each player at the start
    bet_sizes: tuple[tuple[int, ...], ...]  # the sizes of each round, ascending
    measure: tuple[str, ...]  # one of MEASURES for each round
    max_raises: tuple[int, ...]  # bets and raises allowed in each round; a blind is not counted
    all_in: tuple[bool, ...]  # whether all-in is the highest size of a round
    blinds: tuple[int, int] = (50, 100)
    first_player: tuple[int, ...] = (0, 1, 1, 1)
    num_ranks: int = 13
    num_suits: int = 4
    hole_cards: int = 2
    board_cards: tuple[int, ...] = (0, 3, 1, 1)
    unit_chips: int = 100
    unit: str = "big blinds"
    milli_unit: str = "mbb/g"

    def __post_init__(self) -> None:
        problems = list(_bet_size_problems(self))
        try:
            _ = self.deck
        except GameError as error:
            problems += error.problems
        if problems:
            raise GameError(problems)

    @cached_property
    def deck(self) -> PokerRules:
        """The cards and rounds as the rules of a limit game, for code that does not use raises."""
        rounds = len(self.board_cards) if isinstance(self.board_cards, tuple) else 0
        return PokerRules(
            name=self.name,
            num_ranks=self.num_ranks,
            num_suits=self.num_suits,
            hole_cards=self.hole_cards,
            board_cards=self.board_cards,
            blinds=self.blinds,
            first_player=self.first_player,
            raise_size=(1,) * rounds,
            max_raises=(0,) * rounds,
            unit_chips=self.unit_chips,
            unit=self.unit,
            milli_unit=self.milli_unit,
        )

    @property
    def num_rounds(self) -> int:
        """The number of betting rounds."""
        return len(self.board_cards)


def _bet_size_problems(rules: BetSizeRules) -> Iterator[str]:
    """One sentence for every problem that `PokerRules` does not find."""
    rounds = len(rules.board_cards) if isinstance(rules.board_cards, tuple) else 0
    if rounds > MOST_ROUNDS:
        yield f"board_cards has {rounds} entries, but a game with bet sizes has at most {MOST_ROUNDS} rounds."
        return
    for field in ("bet_sizes", "measure", "max_raises", "all_in"):
        values = getattr(rules, field)
        if not isinstance(values, tuple) or len(values) != rounds:
            yield f"{field} is {values!r}, but must have {rounds} entries, one for each round."
            return
    if type(rules.stack) is not int or not 0 < rules.stack <= MAX_CHIPS:
        yield f"stack is {rules.stack!r}, but must be a whole number from 1 to {MAX_CHIPS}."
        return
    blinds = [chips for chips in rules.blinds if type(chips) is int] if isinstance(rules.blinds, tuple) else []
    if blinds and rules.stack <= max(blinds):
        yield f"stack is {rules.stack}, but must be more than the larger blind, which is {max(blinds)}."
        return
    for round_ in range(rounds):
        yield from _round_problems(rules, round_)


def _round_problems(rules: BetSizeRules, round_: int) -> Iterator[str]:
    where, sizes = f"in round {round_ + 1}", rules.bet_sizes[round_]
    if rules.measure[round_] not in MEASURES:
        yield f"measure is {rules.measure[round_]!r} {where}, but must be one of {', '.join(MEASURES)}."
    if type(rules.all_in[round_]) is not bool:
        yield f"all_in is {rules.all_in[round_]!r} {where}, but must be True or False."
    if type(rules.max_raises[round_]) is not int or not 0 <= rules.max_raises[round_] <= MAX_CHIPS:
        yield f"max_raises is {rules.max_raises[round_]!r} {where}, but must be a whole number from 0 to {MAX_CHIPS}."
    if not isinstance(sizes, tuple) or any(type(size) is not int or not 0 < size <= MAX_CHIPS for size in sizes):
        yield f"bet_sizes holds {sizes!r} {where}, but every size must be a whole number from 1 to {MAX_CHIPS}."
        return
    if any(low >= high for low, high in pairwise(sizes)):
        yield f"bet_sizes holds {sizes!r} {where}, but every size must be higher than the one before it."
    if len(sizes) + bool(rules.all_in[round_]) > MOST_SIZES:
        yield f"bet_sizes holds {len(sizes)} sizes {where}, but with all-in {MOST_SIZES} are the most."
    if rules.measure[round_] == "chips" and sizes and sizes[-1] > rules.stack:
        yield f"bet_sizes holds {sizes[-1]} {where}, but the stack is only {rules.stack}."


BET_SIZE_GAMES: dict[str, BetSizeRules] = {
    # A raise to 1 big blind is a call of the blind, so it is never legal; it is here because the paper lists it. The paper
    # lists no all-in; a player with a short stack who raises by the pot is all-in.
    "hunl-ladder": BetSizeRules(
        name="hunl-ladder",
        stack=10_000,
        bet_sizes=((100, 200, 400, 800, 1_600), *((30, 50, 70, 100, 150, 200),) * 3),
        measure=("chips", "pot", "pot", "pot"),
        max_raises=(5, 6, 6, 6),
        all_in=(False, False, False, False),
    ),
    # Deep stacks and few sizes, so that an agent's tables stay small: raises to 2.5, 8 and 24 big blinds before the flop,
    # then one or two shares of the pot, and all-in everywhere.
    "hunl-200": BetSizeRules(
        name="hunl-200",
        stack=20_000,
        bet_sizes=((250, 800, 2_400), (50, 100), (75,), (75,)),
        measure=("chips", "pot", "pot", "pot"),
        max_raises=(4, 2, 2, 2),
        all_in=(True, True, True, True),
    ),
}


def bet_size_rules(table: dict[str, Any], path: Path | str) -> BetSizeRules:
    """Rules from a table of JSON or TOML, whose keys are the fields of `BetSizeRules`.

    Raises GameError that names `path` for unknown and missing names, and for impossible values.
    """
    known = {field.name for field in dataclasses.fields(BetSizeRules)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise GameError(f"'{path}' has {', '.join(unknown)}, but rules with bet sizes have {', '.join(sorted(known))}.")
    needed = {f.name for f in dataclasses.fields(BetSizeRules) if f.default is dataclasses.MISSING}
    missing = sorted(needed - set(table))
    if missing:
        raise GameError(f"'{path}' lacks {', '.join(missing)}, which a game with bet sizes needs.")
    return BetSizeRules(**{name: _tuples(value) for name, value in table.items()})


def read_bet_sizes(path: Path) -> BetSizeRules:
    """Read rules from a TOML file; defaults are those of hold'em. Raises GameError as `bet_size_rules` does."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise GameError(f"The game with bet sizes '{path}' cannot be read: {error}.") from error
    return bet_size_rules({"name": path.stem} | table, path)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value
