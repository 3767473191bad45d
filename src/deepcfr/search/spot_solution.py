"""A solved spot of hold'em: the strategies and values of hands on every street, as text and as a dictionary for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, log10
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deepcfr.boards.kernels import pair_weights
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Cards, Doubles, Floats
from deepcfr.game.cards import card_text, cards_text, parse_card
from deepcfr.search.spot import NAMES, Spot
from deepcfr.search.spot_ranges import HOLDEM, hand_names, hand_rows
from deepcfr.search.spot_sizes import amount_text
from deepcfr.search.subgame import PLAYERS

if TYPE_CHECKING:
    from deepcfr.search.spot_tree import Runouts, SpotTree

Path = tuple[str, ...]
"""The actions and the card of each street that is over."""
ANY, BETWEEN = "*", " / "  # the place of a next card in a line, and what stands between actions and cards
_SHOWN = 12  # decisions in text
_PLACES = 6  # of probabilities and equities


@dataclass(frozen=True)
class SolvedDecision:
    """A decision on the spot's board, with the strategy of all hands there."""

    line: str  # the actions that lead to it
    player: int
    actions: tuple[str, ...]
    pot: float  # in the middle, bets of the round included; amounts are in the spot's unit
    to_call: float
    reach: Doubles  # [H] of the player, by its range and its earlier actions
    # [H] chance of the hand here, up to a factor: its reach times the opponent's hands without its cards
    weight: Doubles
    # False if no pair of hands gets here; a player that does not come then has the hands it would have if it had taken the
    # actions that it never takes with all hands alike
    reached: bool
    shown: npt.NDArray[np.bool_]  # [H] hands of the player's range that can meet one of the opponent's here
    strategy: Floats  # [H, actions]
    # [H, actions] what each hand wins in the mean by an action, where a fold is 0: what was bet before is lost.
    # nan for hands that can meet none of the opponent's here
    values: Doubles
    # of both players, [P, H], also nan for hands that can meet none:
    hand_values: Doubles  # what each hand wins in the mean from here on
    hand_equities: Doubles  # share of the pot, from 0 to 1, if nobody bets again
    # means of these over both ranges here; None if no two hands get here, or if that is lost beside many that cannot meet.
    # Values add up to the pot less the rake that is expected
    range_values: tuple[float, float] | None
    range_equities: tuple[float, float] | None

    def frequencies(self) -> dict[str, float]:
        """The mean probability of each action over the player's hands here, by their `weight`."""
        mean = self.weight @ self.strategy / self.weight.sum()
        return dict(zip(self.actions, mean.tolist(), strict=True))


def read_path(line: str) -> tuple[Path, str]:
    """The actions and cards of a line up to its last card, and the actions after that.

    Raises ConfigError for a line that is not of actions and cards in turn.
    """
    if not isinstance(line, str):
        raise ConfigError(f"A line must be text such as 'check, bet 5', but is {line!r}.")
    parts = [part.strip() for part in line.split(BETWEEN.strip())]
    if len(parts) % 2 == 0:
        parts.append("")
    cards = [part if part == ANY else card_text(HOLDEM, parse_card(HOLDEM, part)) for part in parts[1::2]]
    path = [part for pair in zip(parts[:-1:2], cards, strict=True) for part in pair]
    return tuple(path), parts[-1]


def decision_at(decisions: Sequence[SolvedDecision], actions: str) -> SolvedDecision:
    """The decision after some actions of a street. Raises ConfigError if there is none."""
    for decision in decisions:
        if decision.line == actions:
            return decision
    raise ConfigError(f"There is no decision after {actions!r} on this board.")


@dataclass(frozen=True)
class Solution:
    """A solved spot; amounts are in its unit."""

    spot: Spot
    iterations: int
    goal: float  # the exploitability at which it stops
    exploitability: float  # percent of the pot: the mean gain of both players' best responses in the spot
    # each player's share of the pot after rake, in the mean over both ranges; without rake they add up to the pot
    values: tuple[float, float]
    equities: tuple[float, float]  # share of the pot if both check to the end
    seconds: float
    bytes: int  # of tables and boards
    holes: Cards  # [H, 2] the hands
    hand_values: Doubles  # [P, H] each hand's share of the pot against the other range
    hand_equities: Doubles  # [P, H] the same if both check to the end
    decisions: tuple[SolvedDecision, ...]  # of the round of the board
    locks: tuple[dict[str, Any], ...]  # decisions that were played as given
    tree: SpotTree  # all streets from here on

    def at(self, line: str) -> Solution:
        """The street on which a line ends, such as `check, check / 9d / bet 5`, as a solution of the spot there.

        Its decisions have the strategies of this solution, and exploitability, iterations and seconds are this one's.
        Raises ConfigError if there is no such street or decision, or no two hands of the ranges are possible there.
        """
        path, actions = read_path(line)
        here = self
        if path:
            spot, street = self.tree.spot(path), self.tree.street(path)
            found: dict[str, Any] = {
                "spot": spot,
                "holes": street.board.holes,
                "decisions": street.decisions,
                "locks": (),
            }
            here = replace(self, **found | shares_at(spot, street.decisions[0]))
        if actions:
            decision_at(here.decisions, actions)
        return here

    def decision(self, line: str) -> SolvedDecision:
        """The decision after a line. Raises ConfigError if there is none."""
        return decision_at(self.at(line).decisions, read_path(line)[1])

    def runouts(self, line: str) -> Runouts:
        """One decision over all next cards, after a line with `*` for the card, such as `check, check / * / check`.

        Raises ConfigError if there is no such decision.
        """
        return self.tree.runouts(line)

    @property
    def places(self) -> int:
        """The decimal places of amounts: six, and more in a pot below 1."""
        return _PLACES + max(0, -floor(log10(self.spot.pot)))

    def describe(self) -> str:
        """The solution as text: exploitability, values, and the frequencies of the first decisions."""
        stop = f"{self.iterations} iterations, {self.seconds:.1f} s"
        lines = [
            f"exploitability {self.exploitability:.3g}% of the pot ({stop}): best responses gain "
            f"{amount_text(self.exploitability * self.spot.pot / 100, 3)} of {amount_text(self.spot.pot)} in the mean"
        ]
        if 0 < self.goal < self.exploitability:
            lines.append(f"the goal, an exploitability of {self.goal:.3g}% of the pot, was not reached")
        for player in PLAYERS:
            value, equity = self.values[player], self.equities[player]
            places = self.places - 3
            shares = f"{value:z.{places}f} of the pot; {equity:z.{places}f} if both check to the end"
            lines.append(f"{NAMES[player]}: {shares}")
        for decision in self.decisions[:_SHOWN]:
            shares = ", ".join(f"{name} {share:.1%}" for name, share in decision.frequencies().items())
            nobody = "" if decision.reached else " (nobody gets here)"
            lines.append(f"  {decision.line or 'first'}: {NAMES[decision.player]}: {shares}{nobody}")
        if len(self.decisions) > _SHOWN:
            lines.append(f"  and {len(self.decisions) - _SHOWN} more decisions on this board (the JSON has all)")
        return "\n".join(lines)

    def facts(self, *, hands: bool = True) -> dict[str, Any]:
        """The solution as a dictionary for JSON (docs/spots.md); with `hands` also ranges and single hands."""
        names = hand_names(self.holes)
        decisions = []
        for decision in self.decisions:
            row: dict[str, Any] = {"line": decision.line, "player": NAMES[decision.player]}
            row |= {name: round(getattr(decision, name), self.places) for name in ("pot", "to_call")}
            row["reached"] = decision.reached
            for kind in ("range_values", "range_equities"):
                means = getattr(decision, kind)
                row[kind] = (
                    None
                    if means is None
                    else dict(zip(NAMES, (np.round(means, self.places) + 0.0).tolist(), strict=True))
                )
            row["frequencies"] = {name: round(share, _PLACES) for name, share in decision.frequencies().items()}
            if hands:
                shown = decision.shown
                row["hands"] = _by_name(names, shown, decision.strategy)
                row["values"] = _by_name(names, shown & ~np.isnan(decision.values).any(1), decision.values, self.places)
                for kind in ("hand_values", "hand_equities"):
                    row[kind] = {seat: self._by_hand(p, getattr(decision, kind)) for p, seat in enumerate(NAMES)}
            decisions.append(row)
        facts = {
            "board": cards_text(HOLDEM, self.spot.board),
            "pot": self.spot.pot,
            "stacks": self.spot.stacks,
            "iterations": self.iterations,
            "goal_percent": self.goal,
            "exploitability_percent": self.exploitability,
            "seconds": self.seconds,
            "bytes": self.bytes,
            "values": dict(zip(NAMES, self.values, strict=True)),
            "equities": dict(zip(NAMES, self.equities, strict=True)),
            "decisions": decisions,
            "notes": self.spot.notes,
        }
        if hands:
            facts |= self.spot.texts() | {"locks": list(self.locks)}
            for kind, values in (("hand_values", self.hand_values), ("hand_equities", self.hand_equities)):
                facts[kind] = {name: self._by_hand(player, values) for player, name in enumerate(NAMES)}
        return facts

    def _by_hand(self, player: int, values: Doubles) -> dict[str, float]:
        """Values [P, H] of the hands in a player's range that can meet one of the opponent's."""
        ranges = np.stack(self.spot.ranges)[:, hand_rows(self.holes)]
        held = (pair_weights(self.holes, ranges, player)[0] > 0) & ~np.isnan(values[player])
        return _by_name(hand_names(self.holes), held, values[player], self.places)


def shares_at(spot: Spot, first: SolvedDecision) -> dict[str, Any]:
    """The values and equities of a solution by its first decision, to which some hands of the ranges come."""
    assert first.range_values is not None
    assert first.range_equities is not None
    return {
        "values": first.range_values,
        "equities": tuple(share * spot.unraked for share in first.range_equities),
        "hand_values": np.nan_to_num(first.hand_values),
        "hand_equities": np.nan_to_num(first.hand_equities) * spot.unraked,
    }


def _by_name(names: list[str], which: npt.NDArray[np.bool_], numbers: Floats, places: int = _PLACES) -> dict[str, Any]:
    """Rounded numbers [H, ...] of some hands, by their names; none is -0."""
    chosen = np.flatnonzero(which)
    rounded = (np.round(numbers[chosen].astype(np.float64), places) + 0.0).tolist()
    return dict(zip((names[h] for h in chosen), rounded, strict=True))
