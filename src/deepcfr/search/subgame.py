"""Solve a subgame: the rest of a hand after a public state, with the ranges of both players there.

Full-width CFR runs over all boards and all hands that remain, for several betting lines of one board at once. In the
unsafe kind both ranges are fixed. With a gadget one player, the resolver, is to be safe: the opponent enters the
subgame as it likes and compares it with what it had without search, its alternative. So the resolver's new strategy
keeps the opponent's gain low whatever range the opponent brings.

Sources: Burch, Johanson and Bowling (2014, "Solving imperfect information games using decomposition") for the gadget;
Kubíček, Lisý and Sandholm (2026, "Equilibrium refinements improve subgame solving in imperfect-information games") for
its least chances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from deepcfr.boards.boards import Board, Boards, Deal, OnBoard, Visit
from deepcfr.boards.kernels import TREMBLE, best_replies, reach_against
from deepcfr.boards.last_round import LastRound
from deepcfr.boards.regret_kernels import drop_rare, fade
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import EVERYTHING, BoardStrategy, RoundPass, Scratch, showdowns
from deepcfr.boards.tables import BoardTables, Int16Table
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Bools, Doubles, Floats, Ints
from deepcfr.game.poker import PokerGame
from deepcfr.solve.full_width import DISCOUNTED, Discounting, update

if TYPE_CHECKING:
    from deepcfr.policy.tables import RangePolicy

PLAYERS = (0, 1)
_LOCKED = 1e20  # regrets so large that nothing changes their proportions
IF_ABSENT: Final = "if absent"
RootAims = Sequence[tuple[int, bool | Bools | Literal["if absent"]]]
"""Players and whether each plays a best response, its strategy, or the best action with hands that do not come by it."""
_TIED = 1e-9  # of the largest payoff; actions whose values differ by less are equally good
_TREMBLE = 1e-7  # the least probability of an action while learning
# Iterations after which what nobody comes to any more is scaled down. After later ones it would also scale down what
# keeps the opponent from coming, and the exploitability of a river rose tenfold (after 512 iterations).
_FADES = (8, 32)
_RARE = 0.01  # most probability, times the number of actions, that counts as left over from early iterations
_BYTES_OF_BOARD = 120  # upper bound, for every hand; the last round's boards are stored twice
_BYTES_OF_EDGE = 8  # a regret and a sum of strategies, for every hand; half of it in 16 bits
_BYTES_OF_WORK = 64  # strategy, reach and up to four values in 64 bits, for every hand and edge


def subgame(game: PokerGame, rounds: list[RoundTree], board: Board, roots: Ints, *, keep: bool = True) -> Boards:
    """The boards from `board` on, all of which it keeps if `keep`, with betting after `roots` [X] of its round only.

    `rounds` are those of the whole game.
    """
    trees = list(rounds)
    for round_ in range(board.round, len(rounds)):
        part = rounds[round_].only(roots)
        trees[round_], roots = part.tree, part.round_leaves
    return Boards(game, merge=game.suits == "canonical", keep=keep, root=replace(board, index=0), rounds=trees)


def subgame_bytes(
    rounds: list[RoundTree], first: int, hands: Sequence[int], *, compact: bool = False
) -> tuple[int, Ints]:
    """Bytes of the boards after one board of round `first`, and of the tables after each round root there, [X].

    `hands` are the canonical hands of all boards of round `first` and of each later one, as `count_hands` has them. Tables
    include the working memory of a thread on a board; those of later rounds are in 16 bits if `compact`.
    """
    owner = np.arange(len(rounds[first].roots))
    tables = np.zeros(len(owner), np.int64)
    for tree, held in zip(rounds[first:], hands, strict=True):
        edges = np.bincount(owner[tree.root_of[tree.edge_node]], minlength=len(tables))
        stored = _BYTES_OF_EDGE // 2 if compact and tree is not rounds[first] else _BYTES_OF_EDGE
        tables += (stored * held + _BYTES_OF_WORK * hands[0]) * edges
        owner = owner[tree.root_of[tree.round_leaves]]
    return sum(hands) * _BYTES_OF_BOARD, tables


def values_at_root(
    boards: Boards,
    strategy: BoardStrategy,
    reach: Floats,
    objectives: RootAims,
    workers: Workers | None = None,
    locked: Bools | None = None,
    *,
    whole_round: bool = False,
    tremble: float = 0.0,
    completed: bool = False,
    on_board: OnBoard | None = None,
) -> Doubles:
    """Values of `objectives` at the round roots of the first board's round, [K, X, U], where both players have `reach`
    [2, X, U].

    With `whole_round` they are at all nodes of that round, [K, S, U]. As everywhere in `boards`, they are sums over the
    opponent's hands, weighted by its reach. A best response follows the strategy where the first board is `locked` [n,
    U]. Both players take every action with a probability of `tremble` at least. With `completed` the strategy of later
    boards has best replies as in `complete`, so both players' values are of one pair of strategies and add up to the
    pot. `on_board(done, total)` is called after each board of the next round, and may raise to end this.
    """
    scratch = Scratch()

    def free(play: RoundPass, player: int, best: bool | Bools | str, first: bool) -> bool | Bools:
        hands = play.absent(player) if isinstance(best, str) else best
        return hands & ~locked if first and locked is not None else hands

    def visit(board: Board, at_roots: Floats, deal: Deal) -> Floats:
        tree, first = boards.rounds[board.round], board.round == boards.root.round
        play = RoundPass(tree, board, at_roots, scratch)
        play.down(strategy(tree, board), tremble)
        if completed and not first:
            absent = [(player, play.absent(player)) for player in PLAYERS]
            complete(play, play.up(absent, deal))
            play.down(play.sigma, tremble)
        values = play.up([(player, free(play, player, best, first)) for player, best in objectives], deal)
        return values if first and whole_round else values[:, tree.roots]

    return np.array(_visit_root(boards, visit, reach, workers, on_board))


def complete(play: RoundPass, values: Doubles, locked: Bools | None = None) -> None:
    """Put best replies by `values` [P, S, U] into a pass's strategy, for hands that do not come by their own actions.

    Ties are shared. Hands stay as they are where they are `locked` [n, U] and where they meet nobody.
    """
    tree, most = play.tree, np.abs(play.tree.leaf_payoff).max()
    for player in PLAYERS:
        own = np.flatnonzero(tree.actor == player)
        met = against(play.board, play.rows[1 - player][tree.row[1 - player, own]])
        free = play.absent(player)[own] & (met > 0)
        if locked is not None:
            free &= ~locked[own]
        best_replies(own, tree.arrays, free, _TIED * most * met, values[player], play.sigma)


def equities_at_root(boards: Boards, reach: Floats, workers: Workers | None = None) -> Doubles:
    """Each player's equity with every canonical hand of the first board, [2, X, U], where both have `reach` [2, X, U].

    That is its share of the pot if nobody bets again: the mean over the opponent's hands, weighted by their reach, and
    over all cards to come; nan against no hand.
    """
    scratch = Scratch()

    def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
        if board.round < len(boards.rounds) - 1:
            return deal(reach)
        return np.stack([showdowns(board, reach[1 - player], scratch) for player in PLAYERS])

    won = np.asarray(_visit_root(boards, visit, reach, workers), np.float64)
    met = np.stack([against(boards.root, reach[1 - player]) for player in PLAYERS])
    return np.clip((_shares(won, met, np.nan) + 1) / 2, 0, 1)


def _visit_root(
    boards: Boards, visit: Visit, reach: Floats, workers: Workers | None, on_board: OnBoard | None = None
) -> Floats:
    return visit(boards.root, reach, lambda at_leaves: boards.deal(visit, boards.root, at_leaves, workers, on_board))


class Gadget:
    """The opponent's choice before a subgame: with every hand it enters as often as that pays against its alternative.

    `alternative` [X, U] are the values that `player`, the opponent, has without search at each round root; `size` [U]
    is the number of hands in each canonical hand. With each hand it enters with a chance of `least` [X, U] at least: of
    the gadget's equilibria that finds one which is good against the hands that arrive.
    """

    def __init__(self, player: int, alternative: Doubles, size: Ints, least: Doubles | None = None) -> None:
        self.player, self.alternative, self.size = player, alternative, size
        self._least = np.zeros_like(alternative) if least is None else least
        self._regret = np.zeros((2, *alternative.shape))  # of entering and of the alternative
        self._sum, self._weight = np.zeros_like(alternative), 0.0

    @property
    def average(self) -> Doubles:
        """The average reach over the iterations, [X, U]."""
        return self._sum / self._weight

    def reach(self) -> Doubles:
        """The reach with which the opponent enters, [X, U]."""
        enter, stay = np.maximum(self._regret, 0)
        return self._least + (1 - self._least) * _shares(enter, enter + stay, 0.5)

    def learn(self, values: Doubles, variant: Discounting, t: int) -> None:
        """Update the average and the regrets after iteration t, with the opponent's `values` [X, U] inside."""
        positive, negative, keep = variant.factors(t)
        chance = self.reach()
        self._sum, self._weight = keep * self._sum + chance, keep * self._weight + 1
        mean = chance * values + (1 - chance) * self.alternative
        self._regret *= np.where(self._regret > 0, positive, negative)
        self._regret += np.stack([values, self.alternative]) - mean

    def gain(self, best: Doubles, mean: Doubles) -> Doubles:
        """The gain of the best choice over the average one, [X], summed over all hands.

        `best` and `mean` [X, U] are the opponent's values inside by a best response and by its strategy.
        """
        chance = self.average
        now = chance * mean + (1 - chance) * self.alternative
        most = self._least * best + (1 - self._least) * np.maximum(best, self.alternative)
        return (most - now) @ self.size


class SubgameSolver:
    """CFR in a subgame with `reach` [2, X, U] of both players at its round roots; `run` goes on from the state it has.

    With a `gadget` the opponent's reach is not given but chosen by it in every iteration. Sums shrink as in `variant`.
    Passes are in 32 bits, the NashConv is in 64. The tables of all boards after the first are in 16 bits if `compact`.

    If `trembling`, both players take every action at least once in ten million times while they learn, so they learn to
    play where the opponent, or they themselves, do not come. What early iterations learnt there would outweigh that for
    ever, so after some iterations it is scaled down, which does not change the strategies.
    """

    def __init__(
        self,
        boards: Boards,
        reach: Floats,
        gadget: Gadget | None = None,
        workers: Workers | None = None,
        *,
        variant: Discounting = DISCOUNTED,
        compact: bool = False,
        trembling: bool = False,
    ) -> None:
        self.boards, self.gadget, self._variant = boards, gadget, variant
        self._tremble = _TREMBLE if trembling else 0.0
        self.iteration = 0
        self._reach = np.array(reach, np.float64)
        self._workers, self._scratch = workers, Scratch(np.float32)
        self._tables: tuple[list[BoardTables], list[BoardTables]] = ([], [])  # regrets and averages, by round
        for round_, (tree, kept) in enumerate(zip(boards.rounds, boards.kept, strict=True)):
            small = compact and round_ > boards.root.round
            for tables in self._tables:
                tables.append(Int16Table(tree, kept) if small else BoardTables(tree, kept, np.float32))
        root = boards.root
        self._last = (
            None if compact and boards.rounds[root.round] is not boards.rounds[-1] else LastRound(boards, workers)
        )
        self.locked = np.zeros((len(boards.rounds[root.round].nodes), len(root)), np.bool_)
        self._locks: list[tuple[int, Floats]] = []

    def lock(self, node: int, strategy: Floats) -> None:
        """Fix the strategy [actions, U] at a node of the first board but where it is nan; call it before `run`."""
        board = self.boards.root
        tree, regrets = self.boards.rounds[board.round], self._tables[0][board.round].load(board)
        regrets[tree.first_edge[node] : tree.first_edge[node + 1]] = np.nan_to_num(strategy) * _LOCKED
        self.locked[node] = ~np.isnan(strategy).any(0)
        self._locks.append((node, strategy))

    def run(self, iterations: int, on_board: OnBoard | None = None) -> None:
        """Do so many more iterations of both players.

        `on_board(done, total)` is called after each board of the next round. It may raise to end an iteration, which
        then does not count; what it learnt on some boards stays.
        """
        end = self.iteration + iterations
        while self.iteration < end:
            t = self.iteration + 1
            if self._last and self._last.alone and not self.gadget:
                until = min([end, *(fade for fade in _FADES if fade >= t)])
                steps = [self._variant.step(now, self._tremble) for now in range(t, until + 1)]
                regrets, averages = (tables[-1] for tables in self._tables)
                self._last.iterate(self._reach.astype(np.float32), (regrets, averages), steps)
                t = until
            else:
                self._iterate(t, on_board)
            self.iteration = t
            if self._tremble and t in _FADES:
                self._fade()

    def _iterate(self, t: int, on_board: OnBoard | None) -> None:
        for player in PLAYERS:
            if self.gadget:
                self._reach[self.gadget.player] = self.gadget.reach()
            values = self._learn(player, t, on_board)
            if self.gadget and self.gadget.player == player:
                self.gadget.learn(values[0], self._variant, t)

    def follow(self, ranges: Floats) -> None:
        """Do T iterations in which both players' reach is as in `ranges` [T + 1, 2, X, U]: what CFR found before here.

        Updates alternate, so player 1 learns from player 0's reach of the next iteration.
        """
        for t, (now, new) in enumerate(pairwise(ranges), self.iteration + 1):
            for player, reach in ((0, now), (1, np.stack([new[0], now[1]]))):
                self._reach = np.array(reach, np.float64)
                self._learn(player, t)
            self.iteration = t

    def _learn(self, player: int, t: int, on_board: OnBoard | None = None) -> Floats:
        visit = update(
            self.boards.rounds, self._tables, player, self._variant, t, self._scratch,
            tremble=self._tremble, last=self._last, on_board=on_board,
        )  # fmt: skip
        return _visit_root(self.boards, visit, self._reach.astype(np.float32), self._workers, on_board)

    def _fade(self) -> None:
        """Scale down what was learnt of situations that are not come to any more, on all boards."""
        scratch = Scratch()

        def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
            tree = self.boards.rounds[board.round]
            play = RoundPass(tree, board, reach, scratch)
            play.down(self.played(tree, board), TREMBLE)
            regret, average = (tables[board.round].load(board) for tables in self._tables)
            fade(tree.arrays, _TREMBLE, *play.rows, regret, average)
            for player in PLAYERS:
                for tables, numbers in zip(self._tables, (regret, average), strict=True):
                    tables[board.round].store(board, numbers, player)
            if len(tree.round_leaves):
                deal(play.reach_at_leaves())
            return np.zeros((1, len(tree.roots), len(board)))

        _visit_root(self.boards, visit, self._reach, self._workers)

    def policy(self, *, current: bool = False) -> RangePolicy:
        """The average strategy on the boards of the subgame, or the current one."""
        from deepcfr.policy.tables import RangePolicy

        return RangePolicy(self.boards, self._tables[0 if current else 1], "subgame")

    def _average(self, _: RoundTree, board: Board) -> Floats:
        return self._tables[1][board.round].strategy(board)

    def played(self, tree: RoundTree, board: Board) -> Floats:
        """The average strategy on a board, [E, U], without what only early iterations did.

        Iteration t has a weight of about t^2 or more, so actions that are not played any more keep a share of about T^-1.5
        at most; smaller ones become 0. Locked decisions are as given.
        """
        strategy: Floats = np.array(self._average(tree, board), np.float64)
        drop_rare(tree.first_edge, max(min(_RARE, self.iteration**-1.5), 20 * _TREMBLE), strategy)
        for node, fixed in self._locks if board is self.boards.root else ():
            rows = slice(tree.first_edge[node], tree.first_edge[node + 1])
            strategy[rows] = np.where(np.isnan(fixed), strategy[rows], fixed)
        return strategy

    def on_first_board(self, otherwise: Floats) -> Floats:
        """The average strategy on the first board, [E, U], and `otherwise` at decisions of which nothing was learnt.

        These are decisions that a hand does not come to by its own range, or that no hand of the opponent comes to.
        """
        board = self.boards.root
        tree = self.boards.rounds[board.round]
        learnt = [
            np.add.reduceat(np.abs(table[board.round].load(board)), tree.first_edge[:-1], axis=0) > 0
            for table in self._tables
        ]
        return np.where((learnt[0] & learnt[1])[tree.edge_node], self._average(tree, board), otherwise)

    def nash_conv(self, values: Doubles | None = None) -> Doubles:
        """The gains of both players by best responses, added, at each round root, [X].

        `values` [4, X, U] are best responses and means of the players, as in `EVERYTHING`, by default those of the
        average strategy.

        It is 0 in an equilibrium of the game that is solved, which begins with the opponent's choice if there is a
        gadget. Best responses follow what is locked. In the game's unit, a mean over pairs of hands by their reach
        (with a gadget the resolver's only).
        """
        boards, gadget = self.boards, self.gadget
        size, reach = boards.root.size, self._reach.copy()
        if gadget:
            reach[gadget.player] = gadget.average
        if values is None:
            values = values_at_root(boards, self._average, reach, EVERYTHING, self._workers, self.locked)
        gains = np.zeros(reach.shape[1])
        for player, best, mean in zip(PLAYERS, values[:2], values[2:], strict=True):
            if gadget and gadget.player == player:
                gains += gadget.gain(best, mean)
            else:
                gains += (reach[player] * (best - mean)) @ size
        if gadget:
            reach[gadget.player] = 1
        total = (reach[0] * against(boards.root, reach[1])) @ size
        return _shares(gains, total, 0.0)


def against(board: Board, reach: Doubles) -> Doubles:
    """The sum of `reach` [X, U] over all hands that share no card with each canonical hand, [X, U]."""
    return reach_against(reach, board.holes, board.canonical)


def _shares(part: Doubles, whole: Floats | Ints, otherwise: float | Doubles) -> Doubles:
    """`part` / `whole`, and `otherwise` where `whole` is not positive."""
    shares = np.full_like(part, otherwise)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares
