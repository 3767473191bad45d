"""What an agent does with every hand at a position, and the same by kinds of hands."""

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
from deepcfr.play_hand import Floats, free_holes, hand_strategy
from deepcfr.policies.base import Policy
from deepcfr.web.advantages import Advantages
from deepcfr.web.position import Position
from deepcfr.web.site import Refusal


@dataclass(frozen=True)
class Cell:
    """A kind of hand, and its place on the grid."""

    label: str
    row: int
    column: int
    members: npt.NDArray[np.int64]  # positions of its hands
    reach: float  # the mean of theirs
    shares: Floats  # [A] their mean strategy, by reach


@dataclass(frozen=True)
class Range:
    """The player to act at a decision with each of H hands that the board leaves possible."""

    position: Position
    holes: npt.NDArray[np.uint8]  # [H, hole cards]
    reach: Floats  # [H] the probability with which the player's own actions lead here
    strategy: Floats  # [H, A] of the legal actions
    advantages: Floats | None  # [H, A] of the legal actions; `meaning` says what they are
    meaning: str | None  # of the advantages, or why there are none here; None of an agent without networks of them

    @cached_property
    def names(self) -> list[str]:
        """The legal actions."""
        return [self.position.name(action) for action in self.position.actions()]

    @cached_property
    def labels(self) -> list[str]:
        """The kind of each hand."""
        rules = self.position.game.rules
        return [cell_label(rules, hole) for hole in self.holes]

    def hand(self, index: int) -> str:
        """A hand as text, the higher card first."""
        return cards_text(self.position.game.rules, self.holes[index][::-1])

    def mean(self, members: npt.NDArray[np.int64]) -> Floats:
        """The mean strategy of some hands, weighted by reach; by number where none has any, [A]."""
        weight = self.reach[members]
        if weight.sum() <= 0:
            weight = np.ones(len(members))
        mean: Floats = weight @ self.strategy[members] / weight.sum()
        return mean

    @cached_property
    def whole(self) -> Floats:
        """The mean strategy of all hands, by reach, [A]."""
        return self.mean(np.arange(len(self.holes)))

    @cached_property
    def cells(self) -> list[Cell]:
        """All kinds that have hands, row by row."""
        members: dict[str, list[int]] = {}
        for index, label in enumerate(self.labels):
            members.setdefault(label, []).append(index)
        found = []
        for row, labels in enumerate(grid_labels(self.position.game.rules)):
            for column, label in enumerate(labels):
                if label in members:
                    of = np.array(members[label])
                    found.append(Cell(label, row, column, of, float(self.reach[of].mean()), self.mean(of)))
        return found

    def cell(self, label: str) -> Cell | None:
        """The kind of that name, if it has hands."""
        return next((cell for cell in self.cells if cell.label == label), None)


def range_at(policy: Policy, position: Position, newest: Advantages | None = None) -> Range:
    """What `policy` does at a position with all hands, and the advantages of `newest` there.

    Raises Refusal if nobody acts, or cards are missing.
    """
    if position.over or position.missing:
        what = "the hand is over" if position.over else f"{position.missing} cards of the board are missing"
        raise Refusal(400, f"Nobody acts at this position: {what}.")
    game, legal = position.game, position.actions()
    if game.rules.hole_cards > 2:
        raise Refusal(409, f"Ranges are shown of one or two hole cards, but {game.name} deals {game.rules.hole_cards}.")
    holes = free_holes(game.rules, position.board)
    reach = np.ones(len(holes))
    for before, action in position.path():
        if before.actor == position.actor:
            reach *= hand_strategy(policy, game, before.node, holes, before.board)[:, action]
    strategy = hand_strategy(policy, game, position.node, holes, position.board)[:, legal]
    found = newest.at(game, position.node, holes, position.board) if newest else None
    advantages = None if found is None else found[:, legal]
    return Range(position, holes, reach, strategy, advantages, newest.meaning(game, position.node) if newest else None)


def cell_label(rules: PokerRules, hole: npt.NDArray[np.uint8]) -> str:
    """The kind of a hand: its class for two cards, its rank for one."""
    if rules.hole_cards == 2:
        return hand_class(rules, hole)
    return rules.rank_symbols[int(hole[0]) // rules.num_suits]


def grid_labels(rules: PokerRules) -> list[list[str]]:
    """The kinds of hands as players lay them out: pairs on the diagonal, suited above it; one row for one card."""
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
    """A range as JSON can hold it."""
    position, names = found.position, found.names
    rules = position.game.rules
    return {
        "agent": agent,
        "game": rules.name,
        "unit": rules.unit,
        "betting": position.betting,
        "board": " ".join(card_text(rules, card) for card in position.board),
        "player": position.actor,
        "round": position.round_name,
        "pot": position.pot,
        "to_call": position.to_call,
        "actions": names,
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
    """One hand of a range as JSON can hold it."""
    advantages = found.advantages
    return {
        "hand": found.hand(index),
        "cell": found.labels[index],
        "reach": float(found.reach[index]),
        "probabilities": by_name(found.names, found.strategy[index]),
        "advantages": None if advantages is None else by_name(found.names, advantages[index]),
    }


def by_name(names: list[str], numbers: Floats) -> dict[str, float]:
    """Numbers of actions by name."""
    return dict(zip(names, numbers.tolist(), strict=True))


def range_csv(found: Range) -> str:
    """A range as a table, one line for each hand."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    more = [] if found.advantages is None else [f"advantage {name}" for name in found.names]
    writer.writerow(["hand", "cell", "reach", *found.names, *more])
    for index in range(len(found.holes)):
        extra = [] if found.advantages is None else found.advantages[index].tolist()
        writer.writerow(
            [found.hand(index), found.labels[index], found.reach[index], *found.strategy[index].tolist(), *extra]
        )
    return file.getvalue()
