"""Find what one's own hands cost: decisions after the flop, against one opponent, beside the solutions of their spots.

pokerkit reads and replays the histories: texts of PokerStars, and PHH. A hand counts if two players see the flop. Each of
them begins with the range of its position and of what it did before the flop, from a file of ranges. Every street is solved
as a spot with the sizes that were really bet there; its strategies then give the ranges of the next street by Bayes' rule.
"""

from __future__ import annotations

import io
import json
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from pokerkit import HandHistory, PokerStarsParser

from deepcfr.core.errors import ConfigError, DeepCFRError
from deepcfr.core.files import write_atomically
from deepcfr.core.types import Doubles
from deepcfr.interop.hand_history import fields_of
from deepcfr.search.spot import Spot, parse_board
from deepcfr.search.spot_ranges import hand_names, hand_rows, parse_range
from deepcfr.search.spot_sizes import BIG_BLIND, DEALER, STREETS, Size, Sizes
from deepcfr.search.spot_solution import Solution, SolvedDecision
from deepcfr.search.spot_solver import SpotSolver, check_limits, memory_for_spots

PRESET = "ranges.toml"  # the ranges that ship
SPOTS = "spots"  # the folder of solved spots inside of that of a review
_UTG, _LATE = (
    ("UTG", "UTG+1", "UTG+2", "UTG+3"),
    ("LJ", "HJ", "CO"),
)  # before the button, the last of them at small tables
POSITIONS = (*_UTG, *_LATE, "BTN", "SB", "BB")
_ROLES = (("check", "limp"), ("call", "raise"), ("call 3-bet", "3-bet"), ("call 4-bet", "4-bet"))
_KNOWN = 0.01  # weight of the hand that was really held, where a range has less, as a share of the largest weight
_FOLD, _CALL, _RAISE = "f", "cc", "cbr"
OnSpot = Callable[[str], None]
"""Called with the hand and the street before a spot is solved."""


@dataclass(frozen=True)
class OwnAction:
    """An action after the flop: `kind` is f, cc or cbr as in PHH, and `to` the big blinds put in on this street."""

    player: int  # 0 in position, 1 out of position, as the dealer and the big blind of a spot
    kind: str
    to: float


@dataclass(frozen=True)
class OwnHand:
    """A hand that two players saw the flop of; amounts are in big blinds."""

    number: str
    names: tuple[str, str]  # of the player in position, and of the other one
    positions: tuple[str, str]
    roles: tuple[str, str]  # what each did before the flop
    holes: tuple[str, str]  # such as AsQd; empty if nobody saw them
    pot: float  # on the flop
    stacks: float  # what the smaller stack has behind there
    board: str
    streets: tuple[tuple[OwnAction, ...], ...]  # flop, turn, river, as far as anybody acted


@dataclass(frozen=True)
class ReviewedDecision:
    """A decision of the player, beside the solution; amounts are in big blinds."""

    hand: str
    street: str
    board: str
    cards: str
    position: str
    line: str  # on this street before
    pot: float
    action: str
    best: str
    lost: float  # value of the best action less that of the chosen one
    values: dict[str, float]  # of every action
    strategy: dict[str, float]  # of the solution with these cards
    spot: str  # the name of the solved spot

    def describe(self) -> str:
        """The decision in one line."""
        after = f" after {self.line}" if self.line else ""
        where = f"hand {self.hand}, {self.street} {self.board}, {self.position} with {self.cards}{after}"
        return f"{self.lost:.2f}  {where}: {self.action}" + ("" if self.action == self.best else f", best {self.best}")


def read_own_hands(text: str) -> tuple[list[OwnHand], dict[str, str]]:
    """The hands of a text of PokerStars or PHH that two players saw the flop of, and why others are left out, by number.

    Raises ConfigError for a text that is neither.
    """
    plain = re.sub(r"[ \t]+\n", "\n", text.replace("\ufeff", "").replace("\r\n", "\n")).strip()
    hands: dict[str, OwnHand] = {}
    refused = {}
    for place, part in enumerate(_parts(plain), 1):
        found = (
            re.search(r"#(\d+)", part) if isinstance(part, str) else re.search(r"(.*)", str(part.get("hand", place)))
        )
        named = found[1] if found else ""
        number = named if re.fullmatch(r"\w[\w-]{0,40}", named) else str(place)  # it names files
        if number in hands or number in refused:
            refused[f"{number} again"] = "It is there twice."
            continue
        try:
            hands[number] = _own_hand(_of_site(part) if isinstance(part, str) else HandHistory(**part), number)
        except (ValueError, KeyError, TypeError):  # of pokerkit, with the whole hand in its text
            refused[number] = "It is no hand of hold'em that pokerkit can read."
        except ConfigError as error:
            refused[number] = str(error)
    return list(hands.values()), refused


def _parts(text: str) -> Sequence[str | dict[str, Any]]:
    """The texts of PokerStars's hands, or the fields of those of PHH. Raises ConfigError for anything else."""
    if text.startswith("PokerStars"):
        return re.split(r"\n{2,}(?=PokerStars .*#\d)", text)
    try:
        return fields_of(text)
    except ConfigError as error:
        raise ConfigError("The hands are neither a text of PokerStars nor PHH.") from error


def _of_site(text: str) -> HandHistory:
    """A hand of PokerStars. Raises ConfigError for what pokerkit would leave out, ValueError for what it cannot read."""
    posted = sorted(re.findall(r"^.+: posts (.+?) \D?[\d.]+(?: and is all-in)?$", text, re.MULTILINE))
    if posted != ["big blind", "small blind"]:
        raise ConfigError("Only hands with one small and one big blind, and without antes, are read.")
    with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")  # of fields that pokerkit's own parser adds
        (found,) = PokerStarsParser()(text + "\n\n\n", error_status=True)
    return found


def _own_hand(history: HandHistory, number: str) -> OwnHand:
    """A hand in big blinds. Raises ConfigError if it is no hold'em or if not two players see the flop."""
    if history.variant not in ("NT", "FT"):
        raise ConfigError(f"Variant {history.variant} is not hold'em.")
    if sum(map(bool, history.blinds_or_straddles or ())) != 2:
        raise ConfigError("Only hands with one small and one big blind are read.")
    count, unit = len(history.starting_stacks), float(max(list(history.blinds_or_straddles or ())[:2]))
    raised: list[int] = []
    streets: list[list[OwnAction]] = []
    seen: tuple[int, ...] = ()
    pot = stacks = 0.0
    for state, action in history.state_actions:
        words = (action or "").split()
        if words[:2] == ["d", "db"]:
            if not streets:
                seen = tuple(player for player, active in enumerate(state.statuses) if active)
                if len(seen) != 2:
                    raise ConfigError(f"{len(seen)} players see the flop.")
                pot = float(sum(pot.amount for pot in state.pots)) / unit
                stacks = min(float(state.stacks[player]) for player in seen) / unit
            streets.append([])
        elif len(words) > 1 and words[1] in (_FOLD, _CALL, _RAISE):
            player = int(words[0][1:]) - 1
            if not streets and words[1] == _RAISE:
                raised.append(player)
            elif streets:
                to = float(words[2]) / unit if words[1] == _RAISE else 0.0
                streets[-1].append(OwnAction(int(player == seen[0]), words[1], to))
    if not seen:
        raise ConfigError("The hand ends before the flop.")
    last, first = seen[1], seen[0]  # seats are in the order in which they act after the flop
    holes = {int(a.split()[2][1:]) - 1: a.split()[3] for a in history.actions if a.startswith("d dh")}
    names = history.players or [f"p{player + 1}" for player in range(count)]
    level = min(len(raised), len(_ROLES) - 1)
    cards = "".join(a.split()[2] for a in history.actions if a.startswith("d db"))
    return OwnHand(
        number=number,
        names=(str(names[last]), str(names[first])),
        positions=(_position(last, count), _position(first, count)),
        roles=(_role(last, raised, level, count), _role(first, raised, level, count)),
        holes=tuple("" if "?" in holes.get(player, "?") else holes[player] for player in (last, first)),  # type: ignore[arg-type]
        pot=pot,
        stacks=stacks,
        board=" ".join(cards[i : i + 2] for i in range(0, len(cards), 2)),
        streets=tuple(map(tuple, streets)),
    )


def _position(seat: int, count: int) -> str:
    """The name of a seat, counted in the order after the flop."""
    if count == 2:
        return ("BB", "BTN")[seat]
    early = max(count - 6, 0)  # of six players the first is the lojack
    return ("SB", "BB", *_UTG[:early], *_LATE[len(_LATE) - (count - 3 - early) :], "BTN")[seat]


def _role(seat: int, raised: Sequence[int], level: int, count: int) -> str:
    if not raised:
        return "check" if _position(seat, count) == "BB" else "limp"
    return _ROLES[level][seat == raised[-1]]


def preset_ranges() -> str:
    """The ranges that ship, as the text of a file that can be edited."""
    return files("deepcfr.interop").joinpath(PRESET).read_text(encoding="utf-8")


def read_ranges(text: str) -> dict[str, dict[str, Doubles]]:
    """The weights [1326] of a file of ranges, by role and position. Raises ConfigError for a wrong one."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The ranges are not TOML: {error}.") from error
    known = {role for pair in _ROLES for role in pair}
    if unknown := set(table) - known:
        raise ConfigError(f"'{min(unknown)}' is no role of a player before the flop: {', '.join(sorted(known))} are.")
    found: dict[str, dict[str, Doubles]] = {}
    for role, part in table.items():
        if not isinstance(part, dict):
            raise ConfigError(f"'{role}' must be a table, [{role}], of ranges by position.")
        if wrong := set(part) - {*POSITIONS, "any"}:
            raise ConfigError(f"'{min(wrong)}' under [{role}] is no position: {', '.join(POSITIONS)} and any are.")
        found[role] = {position: parse_range(text) for position, text in part.items()}
        if empty := [position for position, weights in found[role].items() if not weights.any()]:
            raise ConfigError(f"The range '{empty[0]}' under [{role}] has no hands.")
    return found


def _range_of(ranges: Mapping[str, Mapping[str, Doubles]], role: str, position: str) -> Doubles:
    part = ranges.get(role, {})
    found = part.get(position, part.get("any"))
    if found is None:
        raise ConfigError(f"The ranges have no '{position}' and no 'any' under [{role}].")
    return found


class OwnHandReview:
    """Reviews hands of one player; solved spots and the rows of each hand are kept in a folder, and not solved again."""

    def __init__(
        self,
        folder: Path,
        ranges: Mapping[str, Mapping[str, Doubles]],
        sizes: str,
        exploitability: str,
        iterations: int,
        threads: int,
    ) -> None:
        """Ranges as of `read_ranges`, the rest as for a spot. Raises ConfigError for sizes and limits that are wrong."""
        check_limits(exploitability, iterations, threads)
        self.folder, self._ranges, self._sizes = folder, ranges, Sizes.parse(sizes)
        self._stop, self._threads = (exploitability, iterations), threads

    def review(self, hand: OwnHand, hero: str, on_spot: OnSpot) -> list[ReviewedDecision]:
        """The decisions of `hero` in a hand. Raises ConfigError if it is not there, or if its cards are unknown."""
        if hero not in hand.names:
            raise ConfigError(f"{hero} does not see the flop.")
        player = hand.names.index(hero)
        if not hand.holes[player]:
            raise ConfigError(f"The cards of {hero} are not known.")
        kept = self.folder / f"{hand.number}.json"
        asked = {"hand": asdict(hand), "hero": hero, "sizes": str(self._sizes), "stop": list(self._stop)}
        asked["ranges"] = [float(weights @ np.arange(len(weights))) for weights in self._start(hand)]
        asked = json.loads(json.dumps(asked))
        if kept.exists() and (found := json.loads(kept.read_text(encoding="utf-8")))["asked"] == asked:
            return [ReviewedDecision(**row) for row in found["decisions"]]
        rows = list(self._decisions(hand, player, on_spot))
        self.folder.mkdir(parents=True, exist_ok=True)
        facts: dict[str, Any] = {"asked": asked, "decisions": [asdict(row) for row in rows]}
        write_atomically(kept, json.dumps(facts, indent=1).encode())
        return rows

    def all(
        self, hands: Sequence[OwnHand], hero: str, on_spot: OnSpot
    ) -> tuple[list[ReviewedDecision], dict[str, str]]:
        """The decisions of `hero` in many hands, those that cost most first, and why hands are left out, by number."""
        rows: list[ReviewedDecision] = []
        refused = {}
        for hand in hands:
            try:
                rows += self.review(hand, hero, on_spot)
            except DeepCFRError as error:
                refused[hand.number] = str(error)
        return sorted(rows, key=lambda row: -row.lost), refused

    def _start(self, hand: OwnHand) -> list[Doubles]:
        """Copies of both players' ranges on the flop."""
        both = zip(hand.roles, hand.positions, strict=True)
        return [_range_of(self._ranges, role, position).copy() for role, position in both]

    def _decisions(self, hand: OwnHand, hero: int, on_spot: OnSpot) -> Iterator[ReviewedDecision]:
        ranges, pot, stacks = self._start(hand), hand.pot, hand.stacks
        cards, board = hand.holes[hero], hand.board.split()
        for street, (name, actions) in enumerate(zip(STREETS, hand.streets, strict=False)):
            if not actions or stacks <= 0:
                continue
            ranges[hero] = _with_hand(ranges[hero], cards)
            shown = " ".join(board[: 3 + street])
            sizes = self._with_real(street + 1, actions)
            on_spot(f"hand {hand.number}, {name}")
            solution = self._solve(Spot(parse_board(shown), pot, stacks, (ranges[DEALER], ranges[BIG_BLIND]), sizes))
            file = f"{hand.number}-{name}"
            (self.folder / SPOTS).mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / SPOTS / f"{file}.json", json.dumps(solution.facts()).encode())
            column = _column(solution, cards)
            by_line = {decision.line: decision for decision in solution.decisions}
            line, put = "", [0.0, 0.0]
            for action in actions:
                if line not in by_line:
                    raise ConfigError(
                        f"'{line}' is over in the solved betting: leave threshold and force out of the sizes."
                    )
                decision = by_line[line]
                place = _place(decision, action, put, stacks)
                if action.player == hero:
                    values = decision.values[column]
                    best = int(values.argmax())
                    yield ReviewedDecision(
                        hand.number, name, shown, cards, hand.positions[hero], line, decision.pot,
                        decision.actions[place], decision.actions[best], round(float(values[best] - values[place]), 4),
                        _by_action(decision, values), _by_action(decision, decision.strategy[column]), file,
                    )  # fmt: skip
                _condition(ranges[action.player], solution, decision, place)
                put[action.player] = _put(action, put, stacks)
                line = f"{line}, {decision.actions[place]}".removeprefix(", ")
            pot, stacks = pot + 2 * min(put), stacks - min(put)

    def _solve(self, spot: Spot) -> Solution:
        """The solution. Raises KeyboardInterrupt if it was stopped before."""
        solution = SpotSolver(spot, memory_for_spots(), self._threads).solve(*self._stop)
        if solution.exploitability > solution.goal and solution.iterations < self._stop[1]:
            raise KeyboardInterrupt
        return solution

    def _with_real(self, street: int, actions: Sequence[OwnAction]) -> Sizes:
        """The sizes with those that were really bet on a street, as chips beyond a call."""
        parts, put, raises = dict(self._sizes.parts), [0.0, 0.0], 0
        for action in actions:
            if action.kind == _RAISE:
                kind, size = "raise" if raises else "bet", Size("c", round(action.to - max(put), 6))
                raises += 1
                for player in (DEALER, BIG_BLIND):
                    place = (player, street, kind)
                    parts[place] = tuple(sorted({*Sizes(parts).at(*place), size}))  # type: ignore[arg-type, index]
            put[action.player] = max(action.to, max(put) if action.kind == _CALL else 0)
        return replace(self._sizes, parts=parts, cap=max(self._sizes.cap, raises))


def _put(action: OwnAction, put: Sequence[float], stacks: float) -> float:
    """The chips of a player on the street after an action, at most the smaller stack."""
    return min(action.to if action.kind == _RAISE else max(put) if action.kind == _CALL else put[action.player], stacks)


def _place(decision: SolvedDecision, action: OwnAction, put: Sequence[float], stacks: float) -> int:
    """The place of a real action among those of a solved decision: of bets the one whose amount is nearest."""
    if action.kind == _FOLD:
        return decision.actions.index("fold")
    if action.kind == _CALL:
        return next(i for i, name in enumerate(decision.actions) if name in ("check", "call"))
    amounts = {
        i: stacks if name == "all-in" else float(name.split()[-1])
        for i, name in enumerate(decision.actions)
        if name not in ("fold", "check", "call")
    }
    if not amounts:  # the other one is all-in with less
        return next(i for i, name in enumerate(decision.actions) if name in ("check", "call"))
    wanted = _put(action, put, stacks)
    return min(amounts, key=lambda i: abs(amounts[i] - wanted))


def _with_hand(weights: Doubles, cards: str) -> Doubles:
    """A range that surely has a hand: with a hundredth of its largest weight, if it has less."""
    (row,) = np.flatnonzero(parse_range(cards))
    changed = weights.copy()
    changed[row] = max(changed[row], _KNOWN * weights.max(initial=0.0) or 1.0)
    return changed


def _condition(weights: Doubles, solution: Solution, decision: SolvedDecision, place: int) -> None:
    """Weight a range, in place, with the probability of the action that was taken, unless no hand takes it."""
    rows = hand_rows(solution.holes)
    after = weights[rows] * np.nan_to_num(decision.strategy[:, place])
    if after.max(initial=0.0) > 0:
        weights[:] = 0
        weights[rows] = after / after.max()


def _column(solution: Solution, cards: str) -> int:
    names = hand_names(solution.holes)
    return next(h for h, name in enumerate(names) if cards in (name, name[2:] + name[:2]))


def _by_action(decision: SolvedDecision, numbers: Doubles) -> dict[str, float]:
    return dict(zip(decision.actions, np.round(numbers, 4).tolist(), strict=True))


def find_hero(hands: Sequence[OwnHand], refused: Mapping[str, str], wanted: str | None = None) -> str:
    """The player to review: `wanted`, or the one whose cards are known most often.

    Raises ConfigError if there is no hand of such a player, with the reasons why hands are left out.
    """
    known = Counter(name for hand in hands for name, cards in zip(hand.names, hand.holes, strict=True) if cards)
    if not known or (wanted and wanted not in known):
        seen = f"{wanted} shows cards on no flop; {', '.join(known)} do." if known else "There is no hand to review."
        raise ConfigError(" ".join([seen, *reasons(refused)]))
    return wanted or known.most_common(1)[0][0]


def reasons(refused: Mapping[str, str]) -> list[str]:
    """A sentence for each reason why hands are left out, with their number."""
    return [f"Hands left out: {count}. {reason}" for reason, count in Counter(refused.values()).most_common()]
