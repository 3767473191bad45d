"""The rules of a two-player poker game as validated data, and the games that come with the library."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import comb

from deepcfr.core.errors import GameError

RANK_SYMBOLS = "23456789TJQKA"
SUIT_SYMBOLS = "cdhs"

# The most chips of a player in the pot; keeps products of chips within 64-bit integers.
MAX_CHIPS = 2**31 - 1

# The size of a raise: a number of chips ("limit"), a share of the pot, at most the stack ("pot"), or any that poker allows
# ("no-limit"), for dealers and not for solvers.
BETTING = ("limit", "pot", "no-limit")
WHOLE_POT = 100  # percent

MILLI_UNITS = {"big blinds": "mbb/g", "antes": "mA/g"}

# The smallest and largest value of each number; None for no largest.
_NUMBERS: dict[str, tuple[int, int | None]] = {
    "num_ranks": (2, len(RANK_SYMBOLS)),
    "num_suits": (1, len(SUIT_SYMBOLS)),
    "hole_cards": (1, None),
    "unit_chips": (1, None),
    "stack": (0, MAX_CHIPS),
}
_TUPLES: dict[str, tuple[int, int | None]] = {
    "board_cards": (0, None),
    "blinds": (0, None),
    "first_player": (0, 1),
    "raise_size": (1, None),
    "max_raises": (0, None),
}


@dataclass(frozen=True)
class PokerRules:
    """The rules of one two-player poker game.

    Player 0 is the dealer and acts first in the first round. Chips are whole numbers; `unit_chips` of them are one unit
    of payoff. Tuples have one entry per round, except `blinds`, which has one per player. Empty symbols get the defaults.

    Every decision has at most one raise. In pot betting its size is a percentage of the pot after a call, but at least the
    smallest legal raise (the round's last one, or the larger blind), and at most the rest of the stack. A player who has
    put in the whole stack is all-in: the other player may call or fold, and after a call there is no further betting and
    all remaining cards are dealt.

    Raises GameError with every problem found if the values contradict each other or the limits below.
    """

    name: str
    num_ranks: int  # 2 to 13
    num_suits: int  # 1 to 4
    hole_cards: int  # private cards of each player
    board_cards: tuple[int, ...]  # public cards dealt at the start of each round
    blinds: tuple[int, int]  # forced chips of player 0 and player 1; antes are two equal blinds
    first_player: tuple[int, ...]  # 0 or 1: who acts first in each round
    #: size of a bet or raise in each round: chips, or in pot betting percent of the pot; not used in no-limit betting
    raise_size: tuple[int, ...]
    max_raises: tuple[int, ...]  # bets and raises allowed in each round; a blind is not counted
    unit_chips: int
    unit: str  # "big blinds" or "antes"
    milli_unit: str  # "mbb/g" or "mA/g"
    rank_symbols: str = ""  # lowest rank first; by default the first of 23456789TJQKA
    suit_symbols: str = ""  # by default the first of cdhs
    betting: str = "limit"  # one of BETTING
    stack: int = 0  # chips of each player at the start; 0 (no limit) in limit betting
    limp: bool = True  # whether the first player may call the blind as the first action of the game

    def __post_init__(self) -> None:
        if self.rank_symbols == "" and _is_integer(self.num_ranks):
            object.__setattr__(self, "rank_symbols", RANK_SYMBOLS[: max(self.num_ranks, 0)])
        if self.suit_symbols == "" and _is_integer(self.num_suits):
            object.__setattr__(self, "suit_symbols", SUIT_SYMBOLS[: max(self.num_suits, 0)])
        if problems := _find_problems(self):
            raise GameError(problems)

    @property
    def deck(self) -> PokerRules:
        """The game's cards and rounds: these rules themselves."""
        return self

    @property
    def num_rounds(self) -> int:
        """The number of betting rounds."""
        return len(self.board_cards)

    @property
    def num_cards(self) -> int:
        """The number of cards in the deck."""
        return self.num_ranks * self.num_suits

    def count_boards(self) -> list[int]:
        """The number of boards in each round, without merging those that differ by a renaming of suits."""
        dealt = accumulate(self.board_cards, initial=0)
        ways = (comb(self.num_cards - seen, new) for seen, new in zip(dealt, self.board_cards, strict=False))
        return list(accumulate(ways, operator.mul))


def most_chips(blinds: Sequence[int], raise_size: Sequence[int], max_raises: Sequence[int]) -> int:
    """Return the most chips that one player can put in during a game.

    Takes the chips of each blind, and for each round the chips per raise and the number of raises.
    """
    return max(blinds) + sum(size * count for size, count in zip(raise_size, max_raises, strict=True))


def most_raises(blinds: Sequence[int], stack: int) -> int:
    """Return how many pot-sized raises fit into a stack: a cap that is never reached.

    Takes the chips of each blind and of the stack. A raise from `c` chips each leads to 3 c, or all-in.
    """
    chips, raises = max(blinds), 0
    while 0 < chips < stack:
        chips, raises = 3 * chips, raises + 1
    return raises


def no_limit(deck: PokerRules, stack: int) -> PokerRules:
    """The no-limit game with the cards, blinds and units of `deck`: raises to any amount, by at least the last raise."""
    raises = (stack // max(1, *deck.blinds) + 1,) * deck.num_rounds  # more than fit into the stack
    return replace(
        deck, betting="no-limit", stack=stack, raise_size=(1,) * deck.num_rounds, max_raises=raises, limp=True
    )


def _find_problems(rules: PokerRules) -> list[str]:
    """List every problem; a sentence about one field begins with that field's name."""
    own = {field: list(_number_problems(field, getattr(rules, field), *limits)) for field, limits in _NUMBERS.items()}
    own |= {field: list(_tuple_problems(field, getattr(rules, field), *limits)) for field, limits in _TUPLES.items()}
    sound = {field for field, problems in own.items() if not problems}
    problems = list(_text_problems(rules))
    problems += [problem for field in own for problem in own[field]]
    problems += _length_problems(rules)
    problems += _betting_problems(rules, sound)
    problems += _card_problems(rules, sound)
    return problems


def _is_integer(value: object) -> bool:
    # bool is a subclass of int, but True is not a number.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_allowed(value: int, least: int, most: int | None) -> bool:
    return _is_integer(value) and value >= least and (most is None or value <= most)


def _allowed(least: int, most: int | None) -> str:
    return f"a whole number of {least} or more" if most is None else f"a whole number from {least} to {most}"


def _number_problems(field: str, value: int, least: int, most: int | None) -> Iterator[str]:
    if not _is_allowed(value, least, most):
        yield f"{field} is {value!r}, but must be {_allowed(least, most)}."


def _tuple_problems(field: str, values: tuple[int, ...], least: int, most: int | None) -> Iterator[str]:
    if not isinstance(values, tuple):
        yield f"{field} is {values!r}, but must be a tuple of whole numbers."
        return
    for index, value in enumerate(values):
        if not _is_allowed(value, least, most):
            where = "" if field == "blinds" else f" in round {index + 1}"
            yield f"{field} holds {value!r}{where}, but every entry must be {_allowed(least, most)}."


def _text_problems(rules: PokerRules) -> Iterator[str]:
    if not isinstance(rules.name, str) or not rules.name.strip():
        yield f"name is {rules.name!r}, but must be a text that is not blank."
    if rules.betting not in BETTING:
        yield f"betting is {rules.betting!r}, but must be one of {', '.join(map(repr, BETTING))}."
    if not isinstance(rules.limp, bool):
        yield f"limp is {rules.limp!r}, but must be True or False."
    if not isinstance(rules.unit, str) or rules.unit not in MILLI_UNITS:
        yield f"unit is {rules.unit!r}, but must be one of {', '.join(map(repr, MILLI_UNITS))}."
    elif rules.milli_unit != MILLI_UNITS[rules.unit]:
        yield f"milli_unit is {rules.milli_unit!r}, but must be {MILLI_UNITS[rules.unit]!r} if unit is {rules.unit!r}."


def _length_problems(rules: PokerRules) -> Iterator[str]:
    if isinstance(rules.blinds, tuple) and len(rules.blinds) != 2:
        yield f"blinds has {len(rules.blinds)} entries, but must have 2, one for each player."
    if not isinstance(rules.board_cards, tuple):
        return
    if not rules.board_cards:
        yield "board_cards has no entries, but a game has at least one round."
    for field in ("first_player", "raise_size", "max_raises"):
        values = getattr(rules, field)
        if isinstance(values, tuple) and len(values) != rules.num_rounds:
            yield f"{field} has {len(values)} entries, but board_cards has {rules.num_rounds}, one for each round."


def _betting_problems(rules: PokerRules, sound: set[str]) -> Iterator[str]:
    if "blinds" in sound and len(rules.blinds) == 2 and not any(rules.blinds):
        yield "blinds holds only zeros, but at least one player must put in chips before the first card."
    if "first_player" in sound and rules.first_player[:1] == (1,):
        yield "first_player holds 1 in round 1, but player 0 must act first in that round."
    same_length = {"raise_size", "max_raises"} <= sound and len(rules.raise_size) == len(rules.max_raises)
    if same_length and rules.betting == "limit" and "blinds" in sound and rules.blinds:
        most = most_chips(rules.blinds, rules.raise_size, rules.max_raises)
        if most > MAX_CHIPS:
            yield f"raise_size and max_raises let a player put in {most} chips, but {MAX_CHIPS} are the most allowed."
    if "stack" in sound and rules.betting == "limit" and rules.stack:
        yield f"stack is {rules.stack}, but must be 0 in limit betting, where nobody runs out of chips."
    if "blinds" in sound and len(rules.blinds) == 2:
        yield from _stack_problems(rules, sound)


def _stack_problems(rules: PokerRules, sound: set[str]) -> Iterator[str]:
    """Problems with the stack of pot betting and with limping; `blinds` must be valid."""
    called = max(rules.blinds)
    pot = rules.betting == "pot" and "stack" in sound
    if rules.betting in BETTING[1:] and "stack" in sound and rules.stack <= called:
        yield f"stack is {rules.stack}, but must be more than the larger blind, which is {called}."
    if rules.limp is not False:
        return
    if rules.blinds[0] >= rules.blinds[1]:
        yield f"limp is False, but the blinds {rules.blinds[0]} and {rules.blinds[1]} leave the first player no call."
    if "max_raises" in sound and rules.max_raises[:1] == (0,):
        yield "limp is False, but max_raises holds 0 in round 1, so that the first player could only fold."
    if pot and "raise_size" in sound and len(rules.raise_size) > 1:
        opened = called + max(2 * called * rules.raise_size[0] // 100, called)
        if called < rules.stack <= opened:
            yield (
                f"stack is {rules.stack}, but without limping must be more than the {opened} chips of the first raise, "
                "or nobody acts after round 1."
            )


def _card_problems(rules: PokerRules, sound: set[str]) -> Iterator[str]:
    if {"num_ranks", "num_suits", "hole_cards", "board_cards"} <= sound:
        dealt = 2 * rules.hole_cards + sum(rules.board_cards)
        if dealt > rules.num_cards:
            yield f"hole_cards and board_cards together deal {dealt} cards, but the deck has only {rules.num_cards}."
    for field, count in (("rank_symbols", "num_ranks"), ("suit_symbols", "num_suits")):
        if count in sound:
            yield from _symbol_problems(field, getattr(rules, field), getattr(rules, count))


def _symbol_problems(field: str, symbols: str, count: int) -> Iterator[str]:
    if not isinstance(symbols, str):
        yield f"{field} is {symbols!r}, but must be a text of {count} symbols."
        return
    if len(symbols) != count:
        yield f"{field} is {symbols!r} with {len(symbols)} symbols, but must have {count}."
    if len(set(symbols)) != len(symbols):
        yield f"{field} is {symbols!r}, but must not repeat a symbol."


# The big blind counts as the first of four bets before the flop, which leaves three raises.
_FHP = PokerRules(
    name="fhp",
    num_ranks=13,
    num_suits=4,
    hole_cards=2,
    board_cards=(0, 3),
    blinds=(50, 100),
    first_player=(0, 1),
    raise_size=(100, 100),
    max_raises=(3, 4),
    unit_chips=100,
    unit="big blinds",
    milli_unit="mbb/g",
)

_KUHN = PokerRules(
    name="kuhn",
    num_ranks=3,
    num_suits=1,
    hole_cards=1,
    board_cards=(0,),
    blinds=(1, 1),
    first_player=(0,),
    raise_size=(1,),
    max_raises=(1,),
    unit_chips=1,
    unit="antes",
    milli_unit="mA/g",
    rank_symbols="JQK",
)

PRESETS: dict[str, PokerRules] = {
    "kuhn": _KUHN,
    "leduc": replace(
        _KUHN,
        name="leduc",
        num_suits=2,
        suit_symbols="",
        board_cards=(0, 1),
        first_player=(0, 0),
        raise_size=(2, 4),
        max_raises=(2, 2),
    ),
    "fhp": _FHP,
    # A small cousin of fhp with its betting and its hands, but five ranks: 543,400 infosets and 1,140 boards, on which
    # exact NashConv takes a fraction of a second.
    "fhp-mini": replace(_FHP, name="fhp-mini", num_ranks=5, rank_symbols=""),
    "hulh": replace(
        _FHP,
        name="hulh",
        board_cards=(0, 3, 1, 1),
        first_player=(0, 1, 1, 1),
        raise_size=(100, 100, 200, 200),
        max_raises=(3, 4, 4, 4),
    ),
    # Flop hold'em of the first version of the Deep CFR paper (section 5 and Appendix A). The largest pot, after a raise and
    # two more on the flop, is 27 big blinds a player, so the stack never matters.
    "fhp-pot": replace(
        _FHP,
        name="fhp-pot",
        raise_size=(WHOLE_POT, WHOLE_POT),
        max_raises=(1, 2),
        betting="pot",
        stack=20_000,
        limp=False,
    ),
    # Raises lead to 3, 9, 27, 81 and 200 big blinds: the stacks end before the cap of five raises a round.
    "hunl-pot": replace(
        _FHP,
        name="hunl-pot",
        board_cards=(0, 3, 1, 1),
        first_player=(0, 1, 1, 1),
        raise_size=(WHOLE_POT,) * 4,
        max_raises=(5, 5, 5, 5),
        betting="pot",
        stack=20_000,
    ),
}
