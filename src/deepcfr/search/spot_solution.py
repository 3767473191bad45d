"""A solved spot of hold'em: the strategies and values of hands, as text and as a dictionary for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcfr.games.cards import cards_text
from deepcfr.ranges.kernels import pair_weights
from deepcfr.search.spot import NAMES, Spot
from deepcfr.search.spot_ranges import HOLDEM, hand_names, hand_rows
from deepcfr.search.spot_sizes import amount_text
from deepcfr.search.subgame import PLAYERS
from deepcfr.types import Cards, Doubles, Floats

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


@dataclass(frozen=True)
class Solution:
    """A solved spot; amounts are in its unit."""

    spot: Spot
    iterations: int
    goal: float  # the gap at which it stops
    gap: float  # thousandths of the unit: gains of both players by best responses in the spot, added
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

    @property
    def gap_percent(self) -> float:
        """The gap in percent of the pot."""
        return self.gap / (10 * self.spot.pot)

    @property
    def places(self) -> int:
        """The decimal places of amounts: six, and more in a pot below 1."""
        return _PLACES + max(0, -floor(log10(self.spot.pot)))

    @property
    def exploitability_percent(self) -> float:
        """Half the gap, the mean gain of both players' best responses, in percent of the pot."""
        return self.gap_percent / 2

    def describe(self) -> str:
        """The solution as text: gap, values, and the frequencies of the first decisions."""
        stop = f"{self.iterations} iterations, {self.seconds:.1f} s"
        lines = [
            f"exploitability {self.exploitability_percent:.3g}% of the pot ({stop}): best responses gain "
            f"{amount_text(self.gap / 1000, 3)} of {amount_text(self.spot.pot)}, both players added"
        ]
        if 0 < self.goal < self.gap:
            goal, found = (amount_text(gap / 1000, 3) for gap in (self.goal, self.gap))
            percent = f"exploitability of {self.goal / (20 * self.spot.pot):.3g}%"
            lines.append(f"the goal, a gain of {goal} ({percent}), was not reached: it is {found}")
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
        """The solution as a dictionary for JSON (docs/search.md); with `hands` also ranges and single hands."""
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
            "goal_mbb": self.goal,
            "gap_mbb": self.gap,
            "exploitability_percent": self.exploitability_percent,
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


def _by_name(names: list[str], which: npt.NDArray[np.bool_], numbers: Floats, places: int = _PLACES) -> dict[str, Any]:
    """Rounded numbers [H, ...] of some hands, by their names; none is -0."""
    chosen = np.flatnonzero(which)
    rounded = (np.round(numbers[chosen].astype(np.float64), places) + 0.0).tolist()
    return dict(zip((names[h] for h in chosen), rounded, strict=True))
