"""An agent's strategy with every hand at a position, and its means by kinds of hands."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from deepcfr.games.cards import card_text, cards_text, hand_class
from deepcfr.games.rules import PokerRules
from deepcfr.play.hand import free_holes
from deepcfr.policies.base import Policy
from deepcfr.policies.query import hand_strategy, reach_after
from deepcfr.ranges.kernels import ABSENT, TREMBLE, pair_weights
from deepcfr.types import Doubles
from deepcfr.web.position import Position
from deepcfr.web.site import Advantages, Refusal


@dataclass(frozen=True)
class Cell:
    """A kind of hand, and its place on the grid."""

    label: str
    row: int
    column: int
    members: npt.NDArray[np.int64]  # indices of its hands
    reach: float  # mean reach of its hands
    shares: Doubles  # [A] mean strategy of its hands, by their weight


@dataclass(frozen=True)
class HandTable:
    """A strategy at a decision with each of H possible hands, and the means by kinds of hands."""

    rules: PokerRules
    names: list[str]  # of the A actions
    holes: npt.NDArray[np.uint8]  # [H, hole cards]
    reach: Doubles  # [H] probability of the player's own actions up to here
    weight: Doubles  # [H] chance of the hand here, up to a factor (`ranges.kernels.pair_weights`)
    strategy: Doubles  # [H, A]

    @cached_property
    def labels(self) -> list[str]:
        """The kind of each hand."""
        return [cell_label(self.rules, hole) for hole in self.holes]

    def hand(self, index: int) -> str:
        """A hand as text, the higher card first."""
        return cards_text(self.rules, self.holes[index][::-1])

    def mean(self, members: npt.NDArray[np.int64]) -> Doubles:
        """The mean strategy of some hands, [A], by their weight; unweighted if none of them gets here."""
        weight = self.weight[members]
        if weight.sum() <= 0:
            weight = np.ones(len(members))
        mean: Doubles = weight @ self.strategy[members] / weight.sum()
        return mean

    @cached_property
    def whole(self) -> Doubles:
        """The mean strategy of all hands, [A]."""
        return self.mean(np.arange(len(self.holes)))

    @cached_property
    def cells(self) -> list[Cell]:
        """All kinds that have hands, row by row."""
        members: dict[str, list[int]] = {}
        for index, label in enumerate(self.labels):
            members.setdefault(label, []).append(index)
        found = []
        for row, labels in enumerate(grid_labels(self.rules)):
            for column, label in enumerate(labels):
                if label in members:
                    of = np.array(members[label])
                    found.append(Cell(label, row, column, of, float(self.reach[of].mean()), self.mean(of)))
        return found

    def cell(self, label: str) -> Cell | None:
        """The kind with the name `label`; None if it has no hands."""
        return next((cell for cell in self.cells if cell.label == label), None)


@dataclass(frozen=True)
class Range(HandTable):
    """The range of the player to act at a decision of an agent's game."""

    position: Position
    reached: bool  # False if no pair of hands gets here
    advantages: Doubles | None  # [H, A] of the legal actions; explained by `meaning`
    meaning: str | None  # explains the advantages, or why they are missing here; None without advantage networks

    @property
    def keys(self) -> list[str]:
        """The names of the actions in data, which are those of `deepcfr strategy`; `names` are those on pages."""
        state = self.position.state
        return [state.name(action) for action in state.legal()]


def range_at(policy: Policy, position: Position, newest: Advantages | None = None) -> Range:
    """The strategy of `policy` at a position with all hands, and the advantages by `newest`.

    Raises Refusal if the hand has ended there, or cards are missing.
    """
    if position.over or position.missing:
        what = "the hand is over" if position.over else f"{position.missing} cards of the board are missing"
        raise Refusal(400, f"No player acts at this position: {what}.")
    game, legal = position.game, position.state.legal()
    if game.rules.hole_cards > 2:
        raise Refusal(409, f"Ranges need one or two hole cards, but {game.name} deals {game.rules.hole_cards}.")
    holes = free_holes(game.rules, position.board)
    player = position.state.actor
    _, reach = reach_after(policy, position.betting, holes, position.board, TREMBLE)
    weight, _, reached = pair_weights(holes, reach, player)
    own = np.where(reach[player] < ABSENT, 0, reach[player])
    strategy = hand_strategy(policy, game.state(position.node), holes, position.board)[:, legal]
    found = newest.at(game, position.node, holes, position.board) if newest else None
    advantages = None if found is None else found[:, legal]
    meaning = newest.meaning(game, position.node) if newest else None
    names = [position.name(action) for action in legal]
    return Range(game.rules, names, holes, own, weight, strategy, position, reached, advantages, meaning)


def cell_label(rules: PokerRules, hole: npt.NDArray[np.uint8]) -> str:
    """The kind of a hand: its class for two cards, its rank for one."""
    if rules.hole_cards == 2:
        return hand_class(rules, hole)
    return rules.rank_symbols[int(hole[0]) // rules.num_suits]


def grid_labels(rules: PokerRules) -> list[list[str]]:
    """The kinds of hands in the usual grid: pairs on the diagonal, suited above it; one row for one card."""
    ranks = rules.rank_symbols[::-1]
    if rules.hole_cards == 1:
        return [list(ranks)]
    return [
        [
            high + low if row == column else high + low + ("s" if row < column else "o")
            for column in range(len(ranks))
            for high, low in [(ranks[min(row, column)], ranks[max(row, column)])]
        ]
        for row in range(len(ranks))
    ]


def range_facts(agent: str, found: Range) -> dict[str, Any]:
    """A range as JSON values."""
    position, names = found.position, found.keys
    rules = position.game.rules
    return {
        "agent": agent,
        "game": rules.name,
        "unit": rules.unit,
        "betting": position.betting,
        "board": " ".join(card_text(rules, card) for card in position.board),
        "player": position.state.actor,
        "round": position.round_name,
        "pot": position.state.pot,
        "to_call": position.state.to_call,
        "actions": names,
        "reached": found.reached,
        "meaning": found.meaning,
        "whole": by_name(names, found.whole),
        "cells": [
            {
                "cell": cell.label,
                "hands": len(cell.members),
                "reach": cell.reach,
                "probabilities": by_name(names, cell.shares),
            }
            for cell in found.cells
        ],
        "hands": [hand_facts(found, index) for index in range(len(found.holes))],
    }


def hand_facts(found: Range, index: int) -> dict[str, Any]:
    """One hand of a range as JSON values."""
    advantages = found.advantages
    return {
        "hand": found.hand(index),
        "cell": found.labels[index],
        "reach": float(found.reach[index]),
        "weight": float(found.weight[index]),
        "probabilities": by_name(found.keys, found.strategy[index]),
        "advantages": None if advantages is None else by_name(found.keys, advantages[index]),
    }


def by_name(names: list[str], numbers: Doubles) -> dict[str, float]:
    """A number for each action, by name."""
    return dict(zip(names, numbers.tolist(), strict=True))


def range_csv(found: Range) -> str:
    """A range as CSV, one line for each hand."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    more = [] if found.advantages is None else [f"advantage {name}" for name in found.keys]
    writer.writerow(["hand", "cell", "reach", "weight", *found.keys, *more])
    for index in range(len(found.holes)):
        extra = [] if found.advantages is None else found.advantages[index].tolist()
        own = [found.hand(index), found.labels[index], found.reach[index], found.weight[index]]
        writer.writerow([*own, *found.strategy[index].tolist(), *extra])
    return file.getvalue()
