"""Find what one's own hands cost: decisions after the flop, against one opponent, beside the solutions of their spots.

Each of the two players begins with the range of its position and of what it did before the flop, from a file of ranges.
Every street is solved as a spot with the sizes that were really bet there; its strategies then give the ranges of the next
street by Bayes' rule.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepcfr.core.errors import ConfigError, DeepCFRError
from deepcfr.core.files import read_json, signed_json, write_atomically
from deepcfr.core.types import Doubles
from deepcfr.game.betting import CALL, RAISE
from deepcfr.interop.own_hands import CALLS, FOLDS, POSITIONS, RAISES, ROLES, OwnAction, OwnHand
from deepcfr.search.spot import Spot, parse_board
from deepcfr.search.spot_ranges import hand_names, hand_rows, kind_weights, parse_range, play_ranges, range_text
from deepcfr.search.spot_sizes import BIG_BLIND, DEALER, STREETS, Size, Sizes
from deepcfr.search.spot_solution import Solution, SolvedDecision
from deepcfr.search.spot_solver import SpotSolver, check_limits, memory_for_spots

if TYPE_CHECKING:
    from deepcfr.policy.base import Policy

PRESET = "ranges.toml"  # the ranges that ship
SPOTS = "spots"  # the folder of solved spots inside of that of a review
FOLD = "fold"  # of the actions of a solution
_KNOWN = 0.01  # weight of the hand that was really held, where a range has less, as a share of the largest weight
OnSpot = Callable[[str], None]
"""Called with the hand and the street before a spot is solved."""


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


def preset_ranges() -> str:
    """The ranges that ship, as the text of a file that can be edited."""
    return files("deepcfr.interop").joinpath(PRESET).read_text(encoding="utf-8")


def agent_ranges(policy: Policy) -> str:
    """The ranges of heads-up hands on the flop, if both play as `policy`, as the text of a file that can be edited.

    Raises are to the lowest size of the policy's game. Weights are those of kinds of hands, in hundredths. Raises what
    `search.spot_ranges.play_ranges` does.
    """
    from deepcfr.policy.query import poker_state

    found: dict[str, dict[str, str]] = {}
    for limps, raises in product((False, True), range(len(ROLES))):
        state, aggressor, line = poker_state(policy), DEALER, list[str]()
        for action in [CALL] * limps + [RAISE] * raises + [CALL] * (limps or raises > 0):
            chosen = CALL if action == CALL else min((a for a in state.legal() if a >= RAISE), default=None)
            if chosen is None:
                break
            aggressor = aggressor if action == CALL else state.actor
            line.append(state.token(chosen))
            state = state.after(chosen)
        if state.over or state.round != 1:
            continue
        _, ranges = play_ranges(policy, " ".join(line), ())
        for player, position in enumerate(("BTN", "BB")):
            shares = {kind: round(weight, 2) for kind, weight in kind_weights(ranges[player]).items()}
            text = ",".join(kind if w == 1 else f"{kind}:{w:g}" for kind, w in reversed(shares.items()) if w)
            if text:
                found.setdefault(ROLES[raises][player == aggressor], {})[position] = text
    lines = (
        [f"[{json.dumps(role)}]", *(f'{p} = "{text}"' for p, text in part.items())] for role, part in found.items()
    )
    return "\n\n".join(map("\n".join, lines)) + "\n"


def read_ranges(text: str) -> dict[str, dict[str, Doubles]]:
    """The weights [1326] of a file of ranges, by role and position. Raises ConfigError for a wrong one."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The ranges are not TOML: {error}.") from error
    known = {role for pair in ROLES for role in pair}
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
        asked["ranges"] = [range_text(weights) for weights in self._start(hand)]
        asked = json.loads(json.dumps(asked))
        if kept.exists() and (found := read_json(kept)).get("asked") == asked:
            return [ReviewedDecision(**row) for row in found["decisions"]]
        rows = list(self._decisions(hand, player, on_spot))
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, signed_json({"asked": asked, "decisions": [asdict(row) for row in rows]}))
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
                        f"'{line}' is over in the solved betting: leave threshold, force and merge out of the sizes."
                    )
                decision = by_line[line]
                place = _place(decision, action, put, stacks)
                if action.player == hero:
                    values = decision.values[column]
                    best = int(values.argmax())
                    chosen, worth = (FOLD, 0.0) if place is None else (decision.actions[place], values[place])
                    yield ReviewedDecision(
                        hand.number, name, shown, cards, hand.positions[hero], line, decision.pot,
                        chosen, decision.actions[best], round(max(float(values[best] - worth), 0.0), 4),
                        _by_action(decision, values), _by_action(decision, decision.strategy[column]), file,
                    )  # fmt: skip
                if place is None:
                    return
                _condition(ranges[action.player], solution, decision, place)
                put[action.player] = _put(action, put, stacks)
                line = f"{line}, {decision.actions[place]}".removeprefix(", ")
            pot, stacks = pot + 2 * min(put), stacks - min(put)

    def _solve(self, spot: Spot) -> Solution:
        return SpotSolver(spot, memory_for_spots(), self._threads).solve_to_end(*self._stop)

    def _with_real(self, street: int, actions: Sequence[OwnAction]) -> Sizes:
        """The sizes with those that were really bet on a street, as chips beyond a call."""
        parts, put, raises = dict(self._sizes.parts), [0.0, 0.0], 0
        for action in actions:
            if action.kind == RAISES:
                kind, size = "raise" if raises else "bet", Size("c", round(action.to - max(put), 6))
                raises += 1
                for player in (DEALER, BIG_BLIND):
                    place = (player, street, kind)
                    parts[place] = tuple(sorted({*Sizes(parts).at(*place), size}))  # type: ignore[arg-type, index]
            put[action.player] = max(action.to, max(put) if action.kind == CALLS else 0)
        return replace(self._sizes, parts=parts, cap=max(self._sizes.cap, raises))


def _put(action: OwnAction, put: Sequence[float], stacks: float) -> float:
    """The chips of a player on the street after an action, at most the smaller stack."""
    return min(action.to if action.kind == RAISES else max(put) if action.kind == CALLS else put[action.player], stacks)


def _place(decision: SolvedDecision, action: OwnAction, put: Sequence[float], stacks: float) -> int | None:
    """The place of a real action among those of a solved decision: of bets the one whose amount is nearest.

    None for a fold where a check is free.
    """
    if action.kind == FOLDS:
        return decision.actions.index(FOLD) if FOLD in decision.actions else None
    if action.kind == CALLS:
        return next(i for i, name in enumerate(decision.actions) if name in ("check", "call"))
    amounts = {
        i: stacks if name == "all-in" else float(name.split()[-1])
        for i, name in enumerate(decision.actions)
        if name not in (FOLD, "check", "call")
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
