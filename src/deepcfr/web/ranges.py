"""Positions, read from an address, and an agent's strategy there with every hand and by kinds of hands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from deepcfr.boards.kernels import ABSENT, TREMBLE, pair_weights
from deepcfr.core.errors import ConfigError
from deepcfr.core.files import csv_text
from deepcfr.core.types import CardTuple, Doubles
from deepcfr.game.betting import CALL, FOLD
from deepcfr.game.cards import card_text, cards_text, free_holes, hand_class, read_board
from deepcfr.game.poker import PokerGame
from deepcfr.game.public_state import PublicState
from deepcfr.game.rules import PokerRules
from deepcfr.policy.base import Policy
from deepcfr.policy.query import hand_strategy, reach_after, read_line, round_name
from deepcfr.search.spot import NAMES
from deepcfr.search.spot_ranges import is_holdem
from deepcfr.web.site import Advantages, RequestError, shorten


@dataclass(frozen=True)
class Cell:
    """A kind of hand."""

    label: str
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
    weight: Doubles  # [H] chance of the hand here, up to a factor (`boards.kernels.pair_weights`)
    strategy: Doubles  # [H, A]
    kinds: Mapping[str, npt.NDArray[np.intp]] = field(
        default_factory=dict, kw_only=True
    )  # rows of hands by other names

    def only(self, members: npt.NDArray[np.intp]) -> HandTable:
        """The table of some of the hands, without other names."""
        reach, weight, strategy = (part[members] for part in (self.reach, self.weight, self.strategy))
        return HandTable(self.rules, self.names, self.holes[members], reach, weight, strategy)

    @cached_property
    def labels(self) -> list[str]:
        """The kind of each hand: its class for two cards, its rank for one."""
        rules = self.rules
        if rules.hole_cards == 2:
            return [hand_class(rules, hole) for hole in self.holes]
        return [rules.rank_symbols[int(hole[0]) // rules.num_suits] for hole in self.holes]

    def hand(self, index: int) -> str:
        """A hand as text, the higher card first."""
        return cards_text(self.rules, self.holes[index][::-1])

    def mean(self, members: npt.NDArray[np.int64]) -> Doubles:
        """The mean strategy of some hands, [A], by their weight; unweighted if none of them gets here."""
        weight = self.weight[members]
        if weight.sum() <= 0:
            weight = np.ones(len(members))
        return weight @ self.strategy[members] / weight.sum()

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
        return [
            self._cell(label, np.array(members[label]))
            for labels in grid_labels(self.rules)
            for label in labels
            if label in members
        ]

    def cell(self, label: str) -> Cell | None:
        """The kind with the name `label`, which may be one of `kinds`; None if it has no hands."""
        if label in self.kinds:
            return self._cell(label, self.kinds[label])
        return next((cell for cell in self.cells if cell.label == label), None)

    def _cell(self, label: str, members: npt.NDArray[np.intp]) -> Cell:
        return Cell(label, members, float(self.reach[members].mean()), self.mean(members))


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
        raise RequestError(400, f"No player acts at this position: {what}.")
    game, legal = position.game, position.state.legal()
    if game.rules.hole_cards > 2:
        raise RequestError(409, f"Ranges need one or two hole cards, but {game.name} deals {game.rules.hole_cards}.")
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
        "hands": [
            {
                "hand": found.hand(index),
                "cell": label,
                "reach": float(found.reach[index]),
                "weight": float(found.weight[index]),
                "probabilities": by_name(names, found.strategy[index]),
                "advantages": None if found.advantages is None else by_name(names, found.advantages[index]),
            }
            for index, label in enumerate(found.labels)
        ],
    }


def by_name(names: list[str], numbers: Doubles) -> dict[str, float]:
    """A number for each action, by name."""
    return dict(zip(names, numbers.tolist(), strict=True))


def range_csv(found: Range) -> str:
    """A range as CSV, one line for each hand."""
    more = [] if found.advantages is None else [f"advantage {name}" for name in found.keys]
    numbers = found.strategy if found.advantages is None else np.hstack([found.strategy, found.advantages])
    hands = zip(map(found.hand, range(len(found.holes))), found.labels, found.reach, found.weight, strict=True)
    rows = ([*hand, *row] for hand, row in zip(hands, numbers.tolist(), strict=True))
    return csv_text([["hand", "cell", "reach", "weight", *found.keys, *more], *rows])


@dataclass(frozen=True)
class Position:
    """A node of the public tree and the known public cards, which may be fewer or more than those of its round."""

    game: PokerGame
    node: int
    known: CardTuple

    @property
    def state(self) -> PublicState:
        """The public state of the betting."""
        return self.game.state(self.node)

    @property
    def round(self) -> int:
        """The betting round, from 0."""
        return self.state.round

    @property
    def over(self) -> bool:
        """Whether the hand has ended here."""
        return self.state.over

    @property
    def dealt(self) -> int:
        """The number of public cards in the position's round."""
        return sum(self.game.rules.board_cards[: self.round + 1])

    @property
    def board(self) -> CardTuple:
        """The known public cards of its round."""
        return self.known[: self.dealt]

    @property
    def missing(self) -> int:
        """The number of cards to choose next, for one round; 0 if all are known."""
        totals = accumulate(self.game.rules.board_cards[: self.round + 1])
        return next((total - len(self.known) for total in totals if total > len(self.known)), 0)

    @property
    def betting(self) -> str:
        """The actions so far as letters; `/` separates rounds."""
        return "/".join(self.state.betting)

    @property
    def board_text(self) -> str:
        """All known public cards as text without spaces."""
        return "".join(card_text(self.game.rules, card) for card in self.known)

    @property
    def round_name(self) -> str:
        """The name of the round, such as `flop`."""
        return round_name(self.game.rules, self.round)

    def after(self, action: int) -> Position:
        """The position after a legal action."""
        return replace(self, node=int(self.game.tree.child[self.node, action]))

    def path(self) -> list[tuple[Position, int]]:
        """The decisions that lead here, each with its action."""
        return [(replace(self, node=node), action) for node, action in self.game.tree.path(self.node)]

    def with_board(self, known: CardTuple) -> Position:
        """The same betting with other public cards."""
        return replace(self, known=known)

    def name(self, action: int) -> str:
        """The name of an action; a bet or raise has the round's total to which it leads."""
        words = self.state.name(action)
        if action in (FOLD, CALL) or self.state.size(action):
            return words
        tree, start = self.game.tree, self.node
        while tree.parent[start] >= 0 and tree.round[tree.parent[start]] == self.round:
            start = int(tree.parent[start])
        small, big = self.game.rules.blinds
        # players count blinds as bets, but not antes
        before = 0 if tree.parent[start] < 0 and small != big else int(tree.chips[start].max())
        after = int(tree.chips[int(tree.child[self.node, action]), self.state.actor])
        total = (after - before) / self.game.rules.unit_chips
        return f"{words} {total:g}" if words == "bet" else f"{words} to {total:g}"


def seat_name(rules: PokerRules, player: int) -> str:
    """The name of a seat: the dealer's or the big blind's, as of a spot, if the blinds differ; else a number."""
    small, big = rules.blinds
    return NAMES[player] if small < big else f"Player {player}"


def read_position(game: PokerGame, betting: str, board: str) -> Position:
    """Read a position from an address, such as the betting `rc/c` and the board `Qs7h2c`.

    Raises ConfigError for an illegal action, and for too many, unknown or repeated cards.
    """
    state, cards, most = game.state(), read_board(game.rules, board), sum(game.rules.board_cards)
    if len(cards) > most:
        raise ConfigError(f"The board {shorten(board)!r} has more than the {most} cards of {game.rules.name}.")
    for before, action in read_line(state, betting):
        state = before.after(action)
    return Position(game, game.node_of(state), cards)


def address(name: str, position: Position, *, cell: str = "", other: str = "", prefix: str = "/strategy") -> str:
    """The address of a position."""
    named = {"betting": position.betting, "board": position.board_text, "cell": cell, "with": other}
    query = urlencode({key: value for key, value in named.items() if value.strip("/")}, safe="/")
    return f"{prefix}/{name}" + (f"?{query}" if query else "")


def as_spot(name: str, position: Position) -> str | None:
    """The address of the form of a spot with an agent's ranges at the beginning of a street; None before the flop."""
    if position.over or position.missing or not position.round or not is_holdem(position.game.rules):
        return None
    line = position.betting.rpartition("/")[0]
    board = " ".join(card_text(position.game.rules, card) for card in position.board)
    return "/spots?" + urlencode({"agent": name, "line": line, "board": board})
