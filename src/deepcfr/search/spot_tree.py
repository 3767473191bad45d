"""All streets of a solved spot: the street on which a line ends, and one decision over all next cards.

A line has the actions of each street and the cards between, such as `check, check / 9d / bet 5`. The strategies of later
streets are those that were solved; what they are worth is computed when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcfr.boards.boards import Board, SampledBoards
from deepcfr.boards.kernels import TREMBLE
from deepcfr.boards.rounds import RoundTree
from deepcfr.core.errors import ConfigError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Doubles, Floats, Ints
from deepcfr.game.cards import canonical_cards, card_text, cards_text, parse_card
from deepcfr.game.poker import PokerGame
from deepcfr.search.spot import NAMES, Spot
from deepcfr.search.spot_ranges import HOLDEM, hand_rows
from deepcfr.search.spot_solution import ANY, BETWEEN, Path, SolvedDecision, decision_at, read_path
from deepcfr.search.subgame import IF_ABSENT, PLAYERS, RootAims, subgame, values_at_root

if TYPE_CHECKING:
    from deepcfr.search.spot_solver import SpotSolver

_LEAST = 1e-9  # weight of a hand that a range still has
_MOST_STREETS = 64  # that are kept
_PLAYED: RootAims = [(0, IF_ABSENT), (1, IF_ABSENT)]
Strategy = Callable[[str], Floats]
"""The strategy of all edges of a board's round, [E, U], by the board's name, as `board_name` gives it."""


@dataclass(frozen=True)
class Street:
    """A street on one board after one line."""

    board: Board
    tree: RoundTree  # its betting
    strategy: Floats  # [E, U]
    reach: Doubles  # of both players at the round's leaves, [P, X, U]
    leaves: Ints  # [X] their places among the leaves of the whole round
    values: Doubles  # of both players, [P, S, U], as `values_at_root` gives them
    equities: Doubles  # of both players, [P, n, U]
    decisions: tuple[SolvedDecision, ...]


@dataclass(frozen=True)
class NextCard:
    """A decision after one of all next cards."""

    card: str
    frequencies: dict[str, float]
    values: tuple[
        float, float
    ]  # what each player's range wins in the mean from there on; nan if no two hands get there
    equities: tuple[float, float]  # share of the pot if nobody bets again


@dataclass(frozen=True)
class Runouts:
    """One decision over all next cards, in the order of cards, deuces first."""

    line: str  # with ANY for the card
    player: int
    cards: tuple[NextCard, ...]

    def facts(self) -> dict[str, Any]:
        """The report as a dictionary for JSON (docs/spots.md)."""
        cards = {
            each.card: {
                "frequencies": each.frequencies,
                "values": None if isnan(each.values[0]) else dict(zip(NAMES, each.values, strict=True)),
                "equities": None if isnan(each.equities[0]) else dict(zip(NAMES, each.equities, strict=True)),
            }
            for each in self.cards
        }
        return {"line": self.line, "player": NAMES[self.player], "cards": cards}


def board_name(game: PokerGame, board: Board) -> str:
    """The cards of a board, by street and ascending, in canonical suits where the game merges suits."""
    cards = np.array([board.cards], np.uint8)
    if game.suits == "canonical":
        cards = canonical_cards(cards, board.groups, HOLDEM.num_suits)
    parts = np.split(cards[0], np.cumsum(board.groups)[:-1])
    return cards_text(HOLDEM, np.concatenate([np.sort(part) for part in parts]))


class SpotTree:
    """All streets of a solved spot, whose `strategy` on the boards `names` is that of a solver or of a file."""

    def __init__(self, solver: SpotSolver, names: Sequence[str], strategy: Strategy, first: Street) -> None:
        self.solver, self.names, self.strategy = solver, names, strategy
        self._boards = SampledBoards(solver.game, solver.rounds)
        self._streets: dict[Path, Street] = {(): first}

    def ends(self, path: Path = ()) -> dict[str, int]:
        """The actions that end the street after a path, if more is to be decided, each with its place in `Street.reach`."""
        street = self.street(path)
        place = {int(node): x for x, node in enumerate(street.tree.round_leaves)}
        found = {}
        for node, (line, _, names) in enumerate(self.solver.actions(street.tree)):
            for edge, name in enumerate(names, int(street.tree.first_edge[node])):
                x = place.get(int(street.tree.edge_child[edge]))
                if x is not None and self._decided_later(street, x):
                    found[f"{line}, {name}".removeprefix(", ")] = x
        return found

    def _decided_later(self, street: Street, x: int) -> bool:
        """Whether a round leaf leads to a decision; nobody has one after both are all-in."""
        if street.board.round + 1 == len(self.solver.rounds):
            return False
        later = self.solver.rounds[street.board.round + 1]
        return bool(later.roots[street.leaves[x]] < len(later.nodes))

    def _end(self, path: Path) -> int:
        """The place in `Street.reach` of the actions at the end of a path. Raises ConfigError if no card is dealt there."""
        *before, actions = path
        if self.street(tuple(before)).board.round + 1 == len(self.solver.rounds):
            raise ConfigError("No card is dealt after the river.")
        x = self.ends(tuple(before)).get(actions)
        if x is None:
            raise ConfigError(
                f"No decision comes after {actions!r} and a card: no street ends there, or both are all-in."
            )
        return x

    def street(self, path: Path) -> Street:
        """The street after the actions and cards of a path. Raises ConfigError if there is none."""
        if path not in self._streets:
            found = self._solved(path)
            while len(self._streets) >= _MOST_STREETS:  # the first one stays
                del self._streets[next(key for key in self._streets if key)]
            self._streets[path] = found
        return self._streets[path]

    def _solved(self, path: Path) -> Street:
        before, card, x = self.street(path[:-2]), path[-1], self._end(path[:-1])
        new = parse_card(HOLDEM, card)
        if new in before.board.cards:
            raise ConfigError(f"The card {card} is on the board.")
        board, rounds, solver = self._boards.after(before.board, (new,)), self.solver.rounds, self.solver
        reach = np.ascontiguousarray(before.reach[:, [x]][:, :, board.up])
        roots = first = before.leaves[[x]]
        edges, leaves = {}, []
        for round_ in range(board.round, len(rounds)):
            part = rounds[round_].only(roots)
            edges[round_], roots = part.edges, part.round_leaves
            leaves.append(roots)

        def strategy(_: RoundTree, on: Board) -> Floats:
            return np.asarray(self.strategy(board_name(solver.game, on))[edges[on.round]], np.float64)

        inside = subgame(solver.game, rounds, board, first)
        with Workers(solver.threads) as workers:
            values = values_at_root(inside, strategy, reach, _PLAYED, workers, whole_round=True, tremble=TREMBLE)
            return solver.street(inside, reach, strategy, values, workers, leaves[0])

    def spot(self, path: Path) -> Spot:
        """The spot at the beginning of a later street, with both ranges there; each one's largest weight is 1.

        Raises ConfigError if no two hands of the ranges are possible together there.
        """
        street, whole, rules = self.street(path), self.solver.spot, self.solver.game.rules
        if street.decisions[0].range_values is None:
            raise ConfigError(f"No two hands of the ranges come to '{line_of(path)}'.")
        chips = float(self.solver.game.tree.chips[street.tree.root_nodes[0], 0])
        reach = self.street(path[:-2]).reach[:, self._end(path[:-1]), street.board.up]
        shares = (reach / reach.max(1, keepdims=True))[:, street.board.canonical]
        ranges = np.zeros((len(PLAYERS), len(whole.ranges[0])))
        ranges[:, hand_rows(street.board.holes)] = np.where(shares < _LEAST, 0, shares)
        return replace(
            whole,
            board=street.board.cards,
            pot=2 * chips / rules.unit_chips,
            stacks=(rules.stack - chips) / rules.unit_chips,
            ranges=(ranges[0], ranges[1]),
            aggressor=self._aggressor(path),
            remarks=(),
        )

    def _aggressor(self, path: Path) -> str | None:
        """The player who bet last on the street before."""
        players = {line: player for line, player, _ in self.solver.actions(self.street(path[:-2]).tree)}
        taken = path[-2].split(", ")
        bets = [place for place, name in enumerate(taken) if name not in ("check", "call")]
        return NAMES[players[", ".join(taken[: bets[-1]])]] if bets else None

    def runouts(self, line: str) -> Runouts:
        """One decision over all next cards: that after a line with `*` for the card, such as `check, check / * / check`.

        Raises ConfigError if there is no such decision.
        """
        path, actions = read_path(line)
        if path[-1:] != (ANY,):
            raise ConfigError(f"A line of all next cards has {ANY} for the last card, as in 'check, check / {ANY}'.")
        self._end(path[:-1])
        cards, found, player = [], dict[str, NextCard](), 0
        board = self.street(path[:-2]).board
        for card in range(HOLDEM.num_cards):
            if card in board.cards:
                continue
            name, text = board_name(self.solver.game, self._boards.after(board, (card,))), card_text(HOLDEM, card)
            if name not in found:  # cards that differ by a renaming of suits give the same
                here = decision_at(self.street((*path[:-1], text)).decisions, actions)
                nobody = (np.nan, np.nan)
                values, equities = here.range_values or nobody, here.range_equities or nobody
                found[name], player = NextCard(text, here.frequencies(), values, equities), here.player
            cards.append(replace(found[name], card=text))
        return Runouts(line, player, tuple(cards))


def line_of(path: Path, actions: str = "") -> str:
    """The line of a path and the actions after it, as `read_path` reads it."""
    return BETWEEN.join([*path, actions] if actions else path)
