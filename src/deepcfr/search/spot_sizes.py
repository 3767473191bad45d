"""Bet sizes of spots in the words of the well-known solvers (docs/spots.md has the table), and the betting tree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import inf
from typing import Literal, get_args

from deepcfr.core.errors import ConfigError
from deepcfr.game.betting import CALL, FOLD, RAISE, BettingState, PublicTree, legal_actions, next_state, raised, unroll
from deepcfr.game.rules import PokerRules

STREETS = {"flop": 1, "turn": 2, "river": 3}
DEALER, BIG_BLIND = 0, 1
MOST_RAISES = 99  # of a round
Kind = Literal["bet", "raise", "donk"]
Place = tuple[int | None, int | None, Kind]
"""A player and a street, each None for all, and what the sizes are for."""

_PLAYERS = {"ip": DEALER, "dealer": DEALER, "btn": DEALER, "oop": BIG_BLIND, "bb": BIG_BLIND, "big blind": BIG_BLIND}
_OWN_NAMES = {DEALER: "ip", BIG_BLIND: "oop"}
_ALL_IN = ("allin", "all-in", "a")
_LIMITS = {"threshold": 100.0, "force": inf, "merge": inf, "cap": float(MOST_RAISES - 1)}  # the most of each number
_NUMBER = r"(?:\d{1,9}(?:\.\d{1,20})?|\.\d{1,20})"
_COMMA = re.compile(r"(?<![\d.])(?=(\d+),(\d+)(?![\d.e]))")  # between digits, which are looked at but not passed
_SIZE = re.compile(rf"(?P<number>{_NUMBER})(?P<unit>%|x|c|)|(?P<streets>\d{{1,2}})?e(?:(?P<most>{_NUMBER})%)?")


@dataclass(frozen=True, order=True)
class Size:
    """One size: percent of the pot, a multiple `x` of the bet faced, `c` chips, `e` geometric, or all-in."""

    unit: Literal["%", "x", "c", "e", "a"]
    number: float = 0.0  # percent, multiple, chips, or streets of a geometric size, 0 for those that are left
    most: float = inf  # percent of the pot, of a geometric size

    def __str__(self) -> str:
        if self.unit == "a":
            return "allin"
        if self.unit == "e":
            streets, most = self.number, self.most
            return (_text(streets) if streets else "") + "e" + (f"{_text(most)}%" if most < inf else "")
        # below 1 only with its sign, as 0.5 could be meant as half of the pot
        return _text(self.number) + ("" if self.unit == "%" and self.number >= 1 else self.unit)


@dataclass(frozen=True)
class Sizes:
    """Bets, raises and donk bets by player and street, and what holds for all of them."""

    parts: dict[Place, tuple[Size, ...]] = field(default_factory=dict)
    all_in: float = 0.0  # all-in is a further size where it is at most this percentage of the pot
    cap: int = MOST_RAISES - 1  # most raises of a round
    threshold: float = 100.0  # a bet is all-in if more than this percentage of stack and half the pot is then put in
    force: float = 0.0  # a bet is all-in if a call would leave at most this percentage of the pot
    merge: float = (
        0.0  # of two bets in percent of the pot the smaller is left out if (100 + a) / (100 + b) < 1 + merge / 100
    )

    @staticmethod
    def parse(text: str) -> Sizes:
        """Sizes such as `flop 33 75, oop river donk 50%, raise 2.5x, allin`, where the first ones may have no place.

        Raises ConfigError for anything else.
        """
        if not isinstance(text, str):
            raise ConfigError(f"Sizes must be text such as 'river 33 75, raise 100', but are {text!r}.")
        parts: dict[Place, tuple[Size, ...]] = {}
        limits: dict[str, float] = {}
        last: Place | None = None
        plain = re.sub(r"\s+(?=%)", "", text.replace("\ufeff", ""))
        for found in _COMMA.finditer(plain):
            left, right = found.groups()
            if not (10 <= int(right) <= 10 * int(left) and int(right) > int(left) + 1):
                raise ConfigError(
                    f"'{left},{right}' in '{plain}' may be the number {left}.{right} or the sizes {left} and {right}: "
                    "write a point, or a space after the comma."
                )
        for part in filter(None, map(str.strip, re.split(r"[,;\n]", plain))):
            words = part.lower().replace("big blind", "bb").replace("all in", "all-in").split()
            if words[0] in _ALL_IN or words[0] in _LIMITS:
                name = "allin" if words[0] in _ALL_IN else words[0]
                if name in limits:
                    raise ConfigError(f"'{part}' gives {name} a second time: write it once.")
                limits[name], last = _limit(part, name, words[1:]), None
            elif (_SIZE.fullmatch(words[0]) and last) or (
                not parts and (_SIZE.fullmatch(words[0]) or words == ["none"])
            ):
                last = last or (None, None, "bet")  # sizes before any place
                parts[last] = _unique((*parts.get(last, ()), *_sizes(part, words, last[2])))
            else:
                last, words = _place(part, words)
                if last in parts:
                    raise ConfigError(
                        f"'{part}' names the {_name(last)} a second time: write all its sizes in one part."
                    )
                parts[last] = _unique(_sizes(part, words, last[2]))
        return Sizes(parts, limits.pop("allin", 0.0), int(limits.pop("cap", MOST_RAISES - 1)), **limits)

    @staticmethod
    def everywhere(text: str) -> Sizes:
        """Sizes as `parse` reads them, but all-in at the beginning is a bet, and raises without sizes have those of bets.

        Raises ConfigError as `parse` does.
        """
        words = text.lower().replace(",", " ").split()
        sizes = Sizes.parse(text if words and words[0] not in _ALL_IN else f"bet {text}")
        if any(kind == "raise" for _, _, kind in sizes.parts):
            return sizes
        raises: dict[Place, tuple[Size, ...]] = {
            (player, street, "raise"): found for (player, street, kind), found in sizes.parts.items() if kind == "bet"
        }
        return replace(sizes, parts=sizes.parts | raises)

    def totals(self, rules: PokerRules, state: BettingState) -> list[int]:
        """The chips that the actor of a no-limit game has put in after each of its bets or raises, ascending."""
        can = state.raises <= self.cap and RAISE in legal_actions(rules, state)
        return _Builder(rules, 0, 0, self, donk=False).totals(state) if can else []

    @property
    def none(self) -> bool:
        """Whether there are no bets and no raises."""
        return not self.all_in and not any(self.parts.values())

    def at(self, player: int, street: int, kind: Kind) -> tuple[Size, ...]:
        """The sizes at a decision: those of the part that names most of it, the street before the player.

        Without any donk bets a player who may make one has its bets.
        """
        for place in ((player, street, kind), (None, street, kind), (player, None, kind), (None, None, kind)):
            if place in self.parts:
                return self.parts[place]
        return self.at(player, street, "bet") if kind == "donk" else ()

    def quiet(self, first: int) -> list[str]:
        """The streets from round `first` on that have no bets."""
        return [
            name
            for name, street in STREETS.items()
            if street >= first
            and not (self.all_in or self.at(DEALER, street, "bet") or self.at(BIG_BLIND, street, "bet"))
        ]

    def __str__(self) -> str:
        """The sizes as `parse` reads them."""
        texts = [" ".join([_name(place), *map(str, sizes or ("none",))]) for place, sizes in self.parts.items()]
        if self.all_in:
            texts.append("allin" if self.all_in == inf else f"allin {_text(self.all_in)}%")
        plain = Sizes()
        texts += [
            f"{name} {_text(getattr(self, name))}" for name in _LIMITS if getattr(self, name) != getattr(plain, name)
        ]
        return ", ".join(texts)


def _number(text: str) -> float:
    """A number with as many digits as `_text` writes."""
    return round(float(text), 9)


def _text(number: float) -> str:
    return f"{number:.9f}".rstrip("0").rstrip(".")


def _name(place: Place) -> str:
    """A place as `Sizes.parse` reads it, such as `river`, `raise` or `oop turn donk`."""
    player, street, kind = place
    words = [] if player is None else [_OWN_NAMES[player]]
    words += [name for name, number in STREETS.items() if number == street]
    return " ".join(words if kind == "bet" and street else [*words, kind])


def _unique(sizes: Iterable[Size]) -> tuple[Size, ...]:
    return tuple(sorted(set(sizes)))


def _place(part: str, words: list[str]) -> tuple[Place, list[str]]:
    """The place that the first words of a part name, and the rest of them."""
    player = street = kind = None
    place = 0
    for place, word in enumerate([*words, ""]):  # noqa: B007
        if word in _PLAYERS and player is None:
            player = _PLAYERS[word]
        elif word in STREETS and street is None:
            street = STREETS[word]
        elif word in get_args(Kind) and kind is None:
            kind = word
        else:
            break
    if street is None and kind is None:
        raise ConfigError(
            f"'{part}' is not a size: write flop, turn, river, bet, raise or donk with percentages of the pot, or allin."
        )
    return (player, street, kind or "bet"), words[place:]  # type: ignore[return-value]


def _sizes(part: str, words: list[str], kind: Kind) -> list[Size]:
    if words == ["none"]:
        return []
    if not words:
        raise ConfigError(f"'{part}' needs percentages of the pot, such as 33 or 75%, or none.")
    return [_size(part, word, kind) for word in words]


def _size(part: str, word: str, kind: Kind) -> Size:
    if word in _ALL_IN:
        return Size("a")
    found = _SIZE.fullmatch(word)
    if not found:
        raise ConfigError(
            f"'{part}' needs percentages of the pot: '{word}' is none, and no other size such as 2.5x, 10c, 2e or allin."
        )
    if found["number"] is None:
        streets, most = _number(found["streets"] or "1"), _number(found["most"] or "inf")
        if not streets or not most:
            raise ConfigError(f"'{word}' in '{part}' needs numbers above 0.")
        return Size("e", streets if found["streets"] else 0, most)
    number, unit = _number(found["number"]), found["unit"] or "%"
    if not number:
        raise ConfigError(f"'{part}' needs percentages of the pot above 0.")
    if unit == "%" and number < 1 and not found["unit"]:
        raise ConfigError(
            f"'{word}' in '{part}' is less than one percent of the pot: write {word}% or {_text(100 * number)}."
        )
    if unit == "x" and kind != "raise":
        raise ConfigError(f"'{word}' in '{part}' multiplies the bet that is faced, so it is a size of a raise only.")
    if unit == "x" and number <= 1:
        raise ConfigError(f"'{word}' in '{part}' raises nothing: the multiple must be above 1.")
    return Size(unit, number)  # type: ignore[arg-type]


def _limit(part: str, name: str, words: list[str]) -> float:
    if name == "allin" and not words:
        return inf
    most = _LIMITS.get(name, inf)
    if len(words) == 1 and re.fullmatch(rf"{_NUMBER}%?" if name != "cap" else r"\d+", words[0]):
        number = _number(words[0].removesuffix("%"))
        if number <= most and (number or name != "allin"):
            return number
    allowed = f"a number up to {most:g}" if most < inf else "one percentage"
    raise ConfigError(f"'{part}' needs {allowed} after {name}.")


@dataclass(frozen=True)
class Betting:
    """The betting of a spot as a tree."""

    tree: PublicTree
    lifted: tuple[str, ...]  # sizes that are below the smallest legal one somewhere, and are that there


def amount_text(amount: float, digits: int = 6) -> str:
    """An amount with so many significant digits or all of its whole part, and without an exponent."""
    return f"{amount:.0f}" if abs(amount) >= 10**digits else f"{Decimal(f'{amount:.{digits}g}'):f}"


class _Builder:
    """Lists the bets at every decision of a spot."""

    def __init__(self, rules: PokerRules, half: int, round_: int, sizes: Sizes, donk: bool) -> None:
        self.rules, self.half, self.round, self.sizes, self.donk = rules, half, round_, sizes, donk
        self.lifted: dict[str, None] = {}

    def after(self, state: BettingState) -> dict[int, BettingState]:
        legal = legal_actions(self.rules, state)
        found = {action: next_state(self.rules, state, action) for action in legal if action in (FOLD, CALL)}
        if RAISE in legal:
            found |= {RAISE + i: raised(state, total) for i, total in enumerate(self.totals(state))}
        return found

    def _kind(self, state: BettingState) -> Kind:
        """The kind of bet: a donk bet is made first in a round after a call that ended the one before."""
        if state.raises:
            return "raise"
        if state.actor != BIG_BLIND or state.actions[-1]:
            return "bet"
        before = state.actions[-2]
        # the big blind acts first in a round, so it made every other action, beginning with the first one
        called = self.donk if state.round == self.round else bool(before) and len(before) % 2 == 1 and before[-1] > 0
        return "donk" if called else "bet"

    def totals(self, state: BettingState) -> list[int]:
        """The chips that the actor has put in after each bet or raise, ascending."""
        stack, kind = self.rules.stack, self._kind(state)
        called = max(state.chips)
        pot, least = 2 * called, min(called + state.last_raise, stack)
        totals = set()
        for size in self.sizes.at(state.actor, state.round, kind):
            wanted = min(called + self._more(state, size), stack)
            if wanted < least:
                self.lifted[f"{kind} {size}"] = None
            totals.add(self._or_all_in(max(wanted, least)))
        if self.sizes.all_in and stack - called <= self.sizes.all_in * pot / 100:
            totals.add(stack)
        kept: dict[str, int] = {}
        shares: list[float] = []  # of the pot, of those that are kept
        for total in sorted(totals, reverse=True):
            share = (total - called) / pot
            if not shares or (1 + shares[-1]) / (1 + share) >= 1 + self.sizes.merge / 100:
                name = "all-in" if total == stack else amount_text((total - self.half) / self.rules.unit_chips)
                if kept.setdefault(name, total) == total:
                    shares.append(share)
        return sorted(kept.values())

    def _more(self, state: BettingState, size: Size) -> int:
        """The chips of a size beyond a call."""
        called, stack = max(state.chips), self.rules.stack
        pot = 2 * called
        if size.unit == "%":
            return round(pot * size.number / 100)
        if size.unit == "x":
            return round((called - state.before) * (size.number - 1))
        if size.unit == "c":
            return round(size.number * self.rules.unit_chips)
        if size.unit == "a":
            return stack - called
        left = size.number or len(STREETS) + 1 - state.round
        streets = max(left - max(state.raises - 1, 0), 1)
        share: float = ((1 + 2 * (stack - called) / pot) ** (1 / streets) - 1) / 2
        return round(pot * min(share, size.most / 100))

    def _or_all_in(self, total: int) -> int:
        """A total, or the whole stack if it is near enough to that."""
        stack = self.rules.stack
        near = total > self.sizes.threshold * stack / 100 or stack - total <= self.sizes.force * 2 * total / 100
        return stack if near else total


def betting(rules: PokerRules, half: int, round_: int, sizes: Sizes, *, donk: bool) -> Betting:
    """The betting from a round on, into which each player brings `half` chips.

    With `donk` the dealer made the last bet before, so a first bet of the big blind is a donk bet. Raises GameError for too
    many positions.
    """
    builder = _Builder(rules, half, round_, sizes, donk)
    first = BettingState(
        round=round_,
        actor=rules.first_player[round_],
        chips=(half, half),
        last_raise=max(rules.blinds),
        actions=((),) * (round_ + 1),
    )
    most = RAISE + 1 + max(map(len, sizes.parts.values()), default=0)
    tree = unroll(first, builder.after, rules, most, "give fewer sizes")
    return Betting(tree, tuple(builder.lifted))
