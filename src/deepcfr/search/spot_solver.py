"""Solve spots of hold'em to an exact exploitability, with decisions that are locked, and say what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil, comb, inf
from numbers import Integral
from typing import Any

import numpy as np

from deepcfr.boards.boards import Board, Boards, OnBoard, SampledBoards, count_hands
from deepcfr.boards.kernels import ABSENT, TREMBLE, pair_weights
from deepcfr.boards.rounds import RoundTree, round_trees
from deepcfr.boards.sweep import BoardStrategy, RoundPass, Scratch
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.machine import usable_memory
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Bools, Doubles, Floats, Ints
from deepcfr.game.betting import CALL, FOLD
from deepcfr.game.poker import PokerGame
from deepcfr.search.spot import NAMES, Spot
from deepcfr.search.spot_locks import locked_nodes
from deepcfr.search.spot_ranges import HOLDEM, hand_rows
from deepcfr.search.spot_sizes import amount_text
from deepcfr.search.spot_solution import Solution, SolvedDecision, shares_at
from deepcfr.search.spot_tree import SpotTree, Street, board_name
from deepcfr.search.subgame import (
    IF_ABSENT,
    PLAYERS,
    RootAims,
    SubgameSolver,
    against,
    complete,
    equities_at_root,
    subgame,
    subgame_bytes,
    values_at_root,
)
from deepcfr.solve.full_width import Discounting

OnIteration = Callable[[int, float], bool | None]
"""(iterations so far, newest exploitability in percent of the pot) after every iteration, on a river after some, and about
every second within one on a flop or a turn; it answers True to stop there."""

# best responses of both players, and what their strategies are worth
_WORTH: RootAims = [(0, True), (1, True), (0, IF_ABSENT), (1, IF_ABSENT)]
_LOST = 1e-6  # of the weight of all pairs of hands, by which the sum over those whose values are known may differ
# Discounted CFR with these numbers takes fewer iterations on most spots than with those of its paper (`test_spot.py`).
_VARIANT = Discounting(1.3, 0.25, 3.0)
_TOGETHER = 16  # iterations on a river between reports
_EVERY = 0.5  # seconds between reports within an iteration
_FIRST = 10  # iterations until the exploitability is measured for the first time; on a river twice those together
_MOST_GROWTH = 2.0  # of the iterations from one measurement, which takes as long as three, to the next


def memory_for_spots() -> float:
    """The bytes that a spot may take: three quarters of the memory that is free."""
    usable = usable_memory()
    return inf if usable is None else 0.75 * usable


def goal_of(exploitability: float | str) -> float:
    """Return an exploitability in percent of the pot, from a number or a text such as `0.5%`.

    Raises ConfigError for anything else, and below 0.
    """
    text = str(exploitability).strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise ConfigError(
            f"The exploitability {exploitability!r} is no percentage of the pot such as 0.5 or 0.5%."
        ) from None
    if not 0 <= number < inf:
        raise ConfigError(f"The exploitability must be at least 0 and finite, but is {text}.")
    return number


def check_limits(exploitability: float | str, iterations: int, threads: int) -> None:
    """Raise ConfigError for an exploitability that `goal_of` refuses, and for less than one iteration or thread."""
    goal_of(exploitability)
    for name, value in (("iteration", iterations), ("thread", threads)):
        if not isinstance(value, Integral) or value < 1:
            raise ConfigError(f"A spot needs at least 1 {name}, but {value!r} are given.")


class _Stopped(Exception):
    """Progress was answered by True."""


class SpotSolver:
    """A spot, the memory that it takes, and decisions that are locked: played as given, while the rest is solved.

    `locks` are decisions of the spot's board in the form of `Solution.facts`: their line, and either the frequencies of
    all hands or the probabilities of single hands. Raises GameError if the spot needs more than `most` bytes, and
    ConfigError for locks that do not fit.
    """

    def __init__(self, spot: Spot, most: float, threads: int = 1, locks: Sequence[dict[str, Any]] = ()) -> None:
        if not isinstance(locks, Sequence) or not all(isinstance(lock, dict) for lock in locks):
            raise ConfigError("Locks must be a list of decisions, as in 'decisions' of a solved spot.")
        self.spot = spot
        self.game = spot.game(merge=not any(lock.get("hands") for lock in locks))
        self.rounds = [
            tree.raked(spot.rake / 100, inf if spot.cap is None else spot.cap) for tree in round_trees(self.game)
        ]
        self.board = _board(spot, self.game, self.rounds)
        hands = count_hands(self.board, self.game.rules, merge=self.game.suits == "canonical")
        for self.compact in (False, True):  # 16 bits take more time, so only what does not fit otherwise has them
            kept, tables = subgame_bytes(self.rounds, spot.round, hands, compact=self.compact)
            self.bytes = kept + int(tables[0])
            if self.bytes <= most:
                break
        else:
            raise GameError(
                f"The spot needs up to {self.bytes / 1e9:.1f} GB, and {most / 1e9:.1f} GB are allowed: give fewer sizes, "
                "or begin on a later street."
            )
        self.threads = threads
        rows = hand_rows(self.board.holes[self.board.example])
        self.reach = np.stack([weights[rows] for weights in spot.ranges])[:, None]  # [P, 1, U]
        if not (self.reach[0, 0] * (against(self.board, self.reach[1])[0] > 0)).any():
            raise ConfigError("No hand of the dealer's range is possible with one of the big blind's.")
        self.reach *= np.stack([against(self.board, self.reach[1 - player]) for player in PLAYERS]) > 0
        self._given = tuple({name: value for name, value in lock.items() if value is not None} for lock in locks)
        lines = self.actions(self.rounds[spot.round])
        self._locks = list(locked_nodes(lines, self.board, spot.ranges, self._given)) if locks else []

    @property
    def rows(self) -> int:
        """The number of strategies in a solution: decisions of the board's round, each with every hand."""
        return len(self.rounds[self.spot.round].nodes) * len(self.board.holes)

    def lines(self) -> list[tuple[str, str, list[str]]]:
        """The line, the player's name and the actions of each decision of a solution, parents first."""
        return [(line, NAMES[player], actions) for line, player, actions in self.actions(self.rounds[self.spot.round])]

    def describe(self) -> str:
        """The size of the spot in a sentence."""
        tree, suits = self.game.tree, "suits are merged" if self.game.suits == "canonical" else "suits are not merged"
        boards = comb(HOLDEM.num_cards - len(self.spot.board), sum(HOLDEM.board_cards) - len(self.spot.board))
        quiet = self.spot.sizes.quiet(self.spot.round)
        return (
            f"no bets on the {' and the '.join(quiet)}, for which no sizes are given; "
            * bool(quiet)
            + f"{tree.num_decisions:,} decisions, {len(self.board.holes):,} hands, {boards:,} runouts, {suits}; "
            f"about {self.bytes / 1e9:.2f} GB of memory"
            + ", tables in 16 bits" * self.compact
            + "".join(f"\n{note}" for note in self.spot.notes)
        )

    def solve_to_end(self, exploitability: float | str, iterations: int) -> Solution:
        """Solve as `solve` does, but raise KeyboardInterrupt if it is stopped before: one of many is solved or not."""
        found = self.solve(exploitability, iterations)
        if found.exploitability > found.goal and found.iterations < iterations:
            raise KeyboardInterrupt
        return found

    def solve(self, exploitability: float | str, iterations: int, on_progress: OnIteration | None = None) -> Solution:
        """Iterate to an exploitability as in `goal_of`, or so many `iterations`, or Ctrl-C.

        Raises ConfigError if `on_progress` ends it before the first iteration is done.
        """
        start, goal = time.perf_counter(), goal_of(exploitability)
        board, reach = self.board, self.reach
        inside = subgame(self.game, self.rounds, board, np.array([0]))
        tree = inside.rounds[self.spot.round]
        quick = tree is inside.rounds[-1]
        now, due, reported = inf, float(2 * _TOGETHER if quick else _FIRST), start

        def report() -> None:
            nonlocal reported, start
            asked = time.perf_counter()
            stopped = on_progress and on_progress(solver.iteration, now)
            reported = time.perf_counter()
            start += reported - asked  # it may have paused
            if stopped:
                raise _Stopped

        def on_board(*_: int) -> None:
            if time.perf_counter() - reported > _EVERY:
                report()

        def worth(strategy: BoardStrategy, locked: Bools, watch: OnBoard | None = None) -> Doubles:
            return values_at_root(
                inside, strategy, reach, _WORTH, workers, locked, whole_round=True, tremble=TREMBLE, on_board=watch
            )

        with Workers(self.threads) as workers:
            solver = SubgameSolver(
                inside, reach, workers=workers, variant=_VARIANT, compact=self.compact, trembling=True
            )
            for node, fixed in self._locks:
                solver.lock(node, fixed)
            values = None  # of the newest iteration
            try:
                while now > goal and solver.iteration < iterations:
                    values = None
                    most = iterations - solver.iteration if quick else 1
                    solver.run(min(most, max(ceil(due) - solver.iteration, 1), _TOGETHER), on_board)
                    if solver.iteration >= due:
                        values = worth(solver.played, solver.locked, on_board)
                        now = self._percent(solver, values[:, tree.roots])
                        # it falls a little slower than 1 / t^2, so it does not reach its goal sooner
                        growth = min(_MOST_GROWTH, (now / goal) ** 0.5) if goal > 0 else _MOST_GROWTH
                        due = growth * solver.iteration
                    report()
            except (KeyboardInterrupt, _Stopped) as error:
                if not solver.iteration and isinstance(error, KeyboardInterrupt):
                    raise
                if not solver.iteration:
                    raise ConfigError(
                        "The spot was stopped before its first iteration, so there is no result."
                    ) from None
            values = worth(solver.played, solver.locked) if values is None else values
            every = np.arange(len(tree.round_leaves))
            street = self.street(inside, reach, solver.played, values[2:], workers, every, solver.locked)
        decisions, boards = street.decisions, {board_name(self.game, on): on for kept in inside.kept for on in kept}

        def strategy(name: str) -> Floats:
            on = boards[name]  # that of the first board has its best replies
            return street.strategy if on is inside.root else solver.played(inside.rounds[on.round], on)

        return Solution(
            spot=self.spot,
            iterations=solver.iteration,
            goal=goal,
            exploitability=self._percent(solver, values[:, tree.roots]),
            seconds=time.perf_counter() - start,
            bytes=self.bytes,
            holes=board.holes,
            decisions=decisions,
            locks=self._given,
            **shares_at(self.spot, decisions[0]),
            tree=SpotTree(self, list(boards), strategy, street),
        )

    def street(
        self,
        inside: Boards,
        reach: Doubles,
        strategy: BoardStrategy,
        values: Doubles,
        workers: Workers,
        leaves: Ints,
        locked: Bools | None = None,
    ) -> Street:
        """The street of the first board of `inside`, to which both players come with `reach` [P, 1, U].

        `values` [P, S, U] are those of `strategy`, by which hands that do not come play best replies but where they are
        `locked`; `leaves` [X] are the places of its leaves in the whole round.
        """
        tree, board = inside.rounds[inside.root.round], inside.root
        play = RoundPass(tree, board, reach, Scratch())
        play.down(strategy(tree, board), TREMBLE)
        complete(play, values, locked)
        play.down(played := play.sigma, TREMBLE)
        rows = np.stack([play.rows[player][tree.row[player, : len(tree.nodes)]] for player in PLAYERS])
        here = equities_at_root(inside, rows, workers)
        # the same, but also against what is shown of an opponent that does not come
        shown = values_at_root(
            inside,
            lambda part, board: played if board is inside.root else strategy(part, board),
            reach,
            [(player, False) for player in PLAYERS],
            workers,
            whole_round=True,
            tremble=TREMBLE,
            completed=True,
        )
        return self.street_of(inside, reach, played, leaves, shown, here)

    def street_of(
        self, inside: Boards, reach: Doubles, strategy: Floats, leaves: Ints, values: Doubles, equities: Doubles
    ) -> Street:
        """The street of the first board of `inside` by what is known of it, as `Street` has it."""
        tree, board = inside.rounds[inside.root.round], inside.root
        play = RoundPass(tree, board, reach, Scratch())
        play.down(strategy, TREMBLE)
        rows = np.stack([play.rows[player][tree.row[player, : len(tree.nodes)]] for player in PLAYERS])
        decisions = tuple(self._decisions(tree, board, reach[:, 0] > 0, strategy, values, rows, equities))
        ends = np.asarray(play.reach_at_leaves(), np.float64)
        return Street(board, tree, strategy, ends, leaves, values, equities, decisions)

    def _percent(self, solver: SubgameSolver, values: Doubles) -> float:
        """The exploitability in percent of the pot."""
        return max(100 * float(solver.nash_conv(values)[0]) / (2 * self.spot.pot), 0.0)  # rounding may leave less

    def actions(self, tree: RoundTree) -> Iterator[tuple[str, int, list[str]]]:
        """The line, the player and the actions of each decision of the board's round, parents first."""
        lines, before = {0: ""}, int(self.game.tree.chips[tree.root_nodes[0], 0])
        for node, start in enumerate(tree.nodes.tolist()):
            edges = slice(tree.first_edge[node], tree.first_edge[node + 1])
            names = [self._name(start, action, before) for action in tree.edge_action[edges].tolist()]
            lines |= {
                child: f"{lines[node]}, {name}".removeprefix(", ")
                for child, name in zip(tree.edge_child[edges].tolist(), names, strict=True)
            }
            yield lines[node], int(tree.actor[node]), names

    def _decisions(
        self,
        tree: RoundTree,
        board: Board,
        held: Bools,
        strategy: Floats,
        values: Floats,
        reach: Doubles,
        equities: Doubles,
    ) -> Iterator[SolvedDecision]:
        """The decisions of a board's round, parents first.

        They have the hands that are `held` at its root [P, U], a strategy [E, U], its values [P, S, U], and each
        decision's reach and equities [P, n, U].
        """
        hands, nodes = board.canonical, len(tree.nodes)
        most = np.maximum(reach.max(2, keepdims=True), np.finfo(np.float64).tiny)
        own = (reach / most)[:, :, hands]
        cards = (1 << board.holes.astype(np.int64)).sum(1)
        apart = (cards[:, None] & cards == 0).astype(np.float64)
        met = np.stack([against(board, reach[1 - player]) for player in PLAYERS])
        met[met == 0] = np.nan
        chips = self.game.tree.chips[tree.nodes].T / self.game.rules.unit_chips
        here = (values[:, :nodes] / met + chips[:, :, None])[:, :, hands]
        weights, equities = own * np.nan_to_num(met / most[::-1])[:, :, hands], equities[:, :, hands]
        # none if no two hands meet, or if some that do are lost in rounding: weights then add up to less than the pairs
        pairs, total = ((own[0] @ apart) * own[1]).sum(1), weights.sum(2)
        known = (pairs > 0) & np.isclose(total, pairs, rtol=_LOST, atol=0).all(0)
        with np.errstate(invalid="ignore"):
            means = [((weights * np.nan_to_num(part)).sum(2) / total).T.tolist() for part in (here, equities)]
        for node, (line, player, names) in enumerate(self.actions(tree)):
            edges = np.arange(tree.first_edge[node], tree.first_edge[node + 1])
            weight, may_meet, reached = pair_weights(board.holes, reach[:, node][:, hands], player)
            range_values, range_equities = ((*part[node],) if known[node] else None for part in means)
            yield SolvedDecision(
                line=line,
                player=player,
                actions=tuple(names),
                pot=float(chips[:, node].sum()),
                to_call=float(chips[:, node].max() - chips[player, node]),
                reach=np.where(reach[player, node] < ABSENT, 0, reach[player, node])[hands],
                weight=weight,
                reached=reached,
                shown=held[player, hands] & (may_meet > 0),
                strategy=strategy[edges][:, hands].T,
                values=(values[player, tree.edge_child[edges]] / met[player, node] + chips[player, node])[:, hands].T,
                hand_values=here[:, node],
                hand_equities=equities[:, node],
                range_values=range_values,
                range_equities=range_equities,
            )

    def _name(self, node: int, action: int, before: int) -> str:
        """An action's name; amounts are without the chips that a player has put in `before` the round."""
        tree, rules = self.game.tree, self.game.rules
        chips, after = tree.chips[node], tree.chips[tree.child[node, action]]
        player = tree.actor[node]
        facing = chips.max() > chips[player]
        if action in (FOLD, CALL):
            return "fold" if action == FOLD else "call" if facing else "check"
        if after[player] == rules.stack:
            return "all-in"
        return f"{'raise to' if facing else 'bet'} {amount_text((after[player] - before) / rules.unit_chips)}"


def _board(spot: Spot, game: PokerGame, rounds: list[RoundTree]) -> Board:
    """The spot's board, with the hands of either range only."""
    boards, start = SampledBoards(game, rounds), 0
    board = boards.root
    for new in game.rules.board_cards[: spot.round + 1]:
        if board.round + 1 == spot.round:
            held = np.any(spot.ranges, axis=0)
            board = replace(board, canonical_of=np.where(held, board.canonical_of, -1))
        board = boards.after(board, spot.board[start : start + new])
        start += new
    return board
