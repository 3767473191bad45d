"""Local best response: a lower bound on the exploitability of a poker policy (Lisy and Bowling 2017).

Source: "Eqilibrium Approximation Quality of Current No-Limit Poker Bots" (spelt so; arXiv 1612.07547). The responder
knows the policy and so the opponent's range: the probability of each private hand after the opponent's actions. It
assumes that the opponent may fold to its next raise and that both players check and call from then on, and takes the
best action under this assumption. Its gain never exceeds that of a best response.

The paper plays single hands. But the rule depends only on public cards, public actions and the responder's hand, so
here it is a strategy for all hands at once, whose value on a board comes from an exact pass over the betting tree. The
only randomness is the choice of boards, and of lines where those are sampled (docs/lbr.md). `hand_responses` plays
single hands where the betting is too large to list.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from deepcfr.boards.boards import Board, Deal, OnBoard
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import RoundPass, Scratch
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import Doubles, Floats
from deepcfr.game.base import Game
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.betting import CALL, FOLD
from deepcfr.game.poker import Poker, PokerGame, poker_game
from deepcfr.measure.check_down import CheckDown
from deepcfr.measure.hand_responses import Responder
from deepcfr.measure.intervals import NORMAL_95
from deepcfr.measure.limits import too_many_boards
from deepcfr.measure.match.boards import LINES, Runouts, half_interval, require_boards
from deepcfr.measure.match.exact import Later, ProfilePass, strategy_on
from deepcfr.measure.match.record import in_both_seats
from deepcfr.policy.base import Policy, boards_for
from deepcfr.policy.styles import scripted_policy
from deepcfr.search.spot_sizes import Sizes

DEFAULT_BOARDS = 100  # boards to sample if there are too many to enumerate
DEFAULT_HANDS = 1_000  # deals in games with a few bet sizes


@dataclass(frozen=True)
class LocalBestResponse:
    """The gain of a local best response against a policy, in thousandths of the game's unit.

    `mean` is a lower bound on NashConv / 2, and the sum of `seats` is a lower bound on NashConv. With sampled boards or
    hands `mean` is an estimate, and `mean - interval` is a lower bound with probability 97.5 %.
    """

    game: str
    unit: str  # the milli unit, such as mbb/g
    mean: float  # of both seats
    interval: float  # half the width of the 95 % confidence interval of `mean`, 0 if exact
    seats: tuple[float, float]  # as player 0, as player 1
    seat_intervals: tuple[float, float]
    rounds: tuple[int, ...]  # rounds, from 0, in which it follows its rule; in others it checks and calls
    sizes: (
        str | None
    )  # its bets and raises in the words of `deepcfr spot`, `none` for no bets; None for the policy's own
    boards: int  # runouts sampled, with all hands on each; 0 if all were enumerated
    hands: int  # deals sampled, each played in both seats; 0 if all hands were played
    exact: bool  # whether the gain is exact and not an estimate
    seconds: float
    policy: str  # the policy's kind

    def facts(self) -> dict[str, Any]:
        """The result as data for JSON."""
        return asdict(self)

    def describe(self) -> str:
        """The result in one sentence."""
        margin = "" if self.exact else f" +- {self.interval:.3f} (95 %)"
        over = "all boards" if self.exact else f"all hands on {self.boards:,} sampled boards"
        over = f"{self.hands:,} deals in both seats" if self.hands else over
        sizes = "" if self.sizes is None else f" with sizes '{self.sizes}'"
        return (
            f"{self.game}: a local best response in rounds {', '.join(map(str, self.rounds))}{sizes} gains "
            f"{self.mean:+.3f}{margin} {self.unit} from the policy ({self.policy}; {over}; "
            f"{self.seats[0]:+.3f} as player 0, {self.seats[1]:+.3f} as player 1): a lower bound on its exploitability."
        )


def local_best_response(
    policy: Policy,
    boards: int | None,
    seed: int = 0,
    *,
    hands: int | None = None,
    threads: int = 1,
    rounds: Sequence[int] | None = None,
    sizes: str | None = None,
    lines: int | None = LINES,
    on_board: OnBoard | None = None,
) -> LocalBestResponse:
    """The gain of a local best response against `policy` in both seats, over `boards` sampled runouts or all (None).

    All hands are played on every runout; if `hands` is given, so many sampled deals are played instead. The responder
    follows its rule in `rounds`, by default all. It bets as the policy may, or by `sizes` in the words of
    `Sizes.everywhere`, such as `100 allin`, on deals; with `none` it folds and calls only. If a round begins after more
    than `lines` public action sequences, `lines` of them are sampled, as in `boards_match`; None plays all. A mixture
    plays its exact average. The result
    does not depend on `threads`. `on_board(done, total)` reports progress. Sets torch to one thread in this process.
    Raises GameError for games other than poker, for too many boards to enumerate, and for boards where the betting is
    too large to list. Raises ConfigError for fewer than two boards or hands, less than one line, rounds that the game
    does not have, what is no sizes, and sizes on boards.
    """
    start = time.perf_counter()
    game = policy.game
    if not isinstance(game, Poker):
        raise GameError(f"A local best response plays poker games only, but '{game.name}' is not one.")
    chosen = _checked_rounds(game.name, game.rules.num_rounds, rounds)
    own = None if sizes is None else Sizes.everywhere(sizes)
    made = partial(_bound, policy, chosen, own, start)
    if hands is not None:
        if hands < 2:
            raise ConfigError(
                f"A local best response needs at least 2 hands for its interval, but {hands} were asked for."
            )
        won = in_both_seats(Responder(policy, chosen, seed, own).gains, hands, threads, on_board)
        zero, one, mean = (NORMAL_95 * float(part.std(ddof=1)) / np.sqrt(hands) for part in (*won, won.mean(0)))
        first, second = won.mean(1).tolist()
        return made((first, second), (zero, one, mean), hands=hands)
    if own and not own.none:
        raise ConfigError(f"A local best response with sizes of its own ({own}) is played on deals: give hands.")
    game = poker_game(game)
    passes = ResponsePass(game, chosen, bets=own is None)
    if boards is None:
        return made(_over_all_boards(policy, game, passes, threads, on_board), (0.0, 0.0, 0.0))
    require_boards("A local best response", boards, lines)
    stream, calls = key(seed, "local best response"), scripted_policy("call", game)
    runouts = Runouts(calls, policy, boards, stream, lines, passes)
    gains = in_both_seats(runouts.gains, boards, threads, on_board)
    first, second = gains.mean(1).tolist()
    zero, one, mean = (half_interval(part, runouts.sampler.stratum) for part in (*gains, gains.mean(0)))
    return made((first, second), (zero, one, mean), boards=boards)


def _bound(
    policy: Policy,
    rounds: tuple[int, ...],
    sizes: Sizes | None,
    start: float,
    seats: tuple[float, float],
    margins: tuple[float, float, float],
    *,
    boards: int = 0,
    hands: int = 0,
) -> LocalBestResponse:
    """The result for `seats`, the gains in both seats, and `margins`, the half intervals of each and of their mean.

    All are in the game's unit.
    """
    return LocalBestResponse(
        game=policy.game.name,
        unit=policy.game.milli_unit,
        mean=1000 * (seats[0] + seats[1]) / 2,
        interval=1000 * margins[2],
        seats=(1000 * seats[0], 1000 * seats[1]),
        seat_intervals=(1000 * margins[0], 1000 * margins[1]),
        rounds=rounds,
        sizes=None if sizes is None else "none" if sizes.none else str(sizes),
        boards=boards,
        hands=hands,
        exact=not boards and not hands,
        seconds=time.perf_counter() - start,
        policy=policy.kind,
    )


def usual_sample(game: Game, sizes: str | None = None) -> tuple[int | None, int | None]:
    """The default number of boards, None for all where exact evaluation is possible, and of hands with a few bet sizes or
    with a responder's own `sizes`."""
    if isinstance(game, BetSizePoker) or (sizes is not None and not Sizes.everywhere(sizes).none):
        return None, DEFAULT_HANDS
    return (DEFAULT_BOARDS if isinstance(game, PokerGame) and too_many_boards(game.rules) else None), None


def _checked_rounds(name: str, num_rounds: int, rounds: Sequence[int] | None) -> tuple[int, ...]:
    """The rounds in which a responder follows its rule, in order; all for None. Raises ConfigError for unknown rounds."""
    chosen = tuple(range(num_rounds)) if rounds is None else tuple(sorted(set(rounds)))
    if not chosen:
        raise ConfigError("A local best response needs a round in which it follows its rule, but no round was given.")
    for round_ in chosen:
        if not 0 <= round_ < num_rounds:
            raise ConfigError(f"The rounds of {name} are 0 to {num_rounds - 1}, but {round_} was given.")
    return chosen


def _over_all_boards(
    policy: Policy, game: PokerGame, passes: ResponsePass, threads: int, on_board: OnBoard | None
) -> tuple[float, float]:
    """Exact gains in both seats."""
    reason = too_many_boards(game.rules)
    if reason:
        raise GameError(f"{reason} Boards can be sampled (--boards N).")
    boards = boards_for(policy)
    calls = strategy_on(boards, scripted_policy("call", game))
    theirs = strategy_on(boards, policy)

    def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
        # `visit_all` starts from one profile; the reach carried from there on is that of both players in both profiles
        both = np.broadcast_to(reach.reshape(-1, 2, *reach.shape[1:]), (2, 2, *reach.shape[1:]))
        tree = boards.rounds[board.round]
        strategies = calls(tree, board), theirs(tree, board)
        return passes.values(tree, board, strategies, both, lambda at: deal(at.reshape(4, *at.shape[2:])))

    with Workers(threads) as workers:
        values = boards.visit_all(visit, workers, on_board).tolist()
    return values[0], -values[1]


class ResponsePass(ProfilePass):
    """Passes over single rounds with the responder as the first policy: in `rounds` its rule replaces the given
    strategy. Without `bets` it folds and calls only, and raises where it may not call.

    The second policy is the opponent in both profiles: player 1 in profile 0, and player 0 in profile 1.
    """

    def __init__(self, game: PokerGame, rounds: Sequence[int], *, bets: bool = True) -> None:
        super().__init__()
        self._bets = bets
        self._tree = game.tree
        self._chips = game.tree.chips / game.rules.unit_chips
        self._rounds = frozenset(rounds)
        self._check_down = CheckDown(game.rules)
        self._working = Scratch()

    def values(
        self, tree: RoundTree, board: Board, strategies: tuple[Floats, Floats], reach: Floats, later: Later
    ) -> Doubles:
        """Values as in `ProfilePass.values`, with the rule as the first strategy in `rounds`."""
        first, opponent = strategies
        if board.round in self._rounds:
            first = self.response(tree, board, opponent, reach)
        return super().values(tree, board, (first, opponent), reach, later)

    def response(self, tree: RoundTree, board: Board, opponent: Floats, reach: Floats) -> Doubles:
        """The responder's strategy [E, U] in both seats against the opponent's [E, U]; the next call overwrites it.

        `reach` [2, P, X', U] is the reach at the round's roots in both profiles.
        """
        play = RoundPass(tree, board, np.stack([reach[1, 0], reach[0, 1]]), self._working)
        play.down(opponent)
        strategy = self._working.array("response", opponent.shape)
        strategy[:] = 0
        for seat in (0, 1):
            self._respond(seat, tree, board, play.rows[1 - seat], strategy)
        return strategy

    def _respond(self, seat: int, tree: RoundTree, board: Board, reach: Floats, strategy: Doubles) -> None:
        """Write the best actions at all decisions of one seat to `strategy`, from the opponent's `reach` [rows, U]."""
        nodes = np.flatnonzero(tree.actor == seat)
        edges = np.flatnonzero(tree.actor[tree.edge_node] == seat)
        if not len(edges):
            return
        before = tree.row[1 - seat, nodes]
        fold_row = {int(edge): _row_after_fold(tree, int(edge)) for edge in edges if _is_raise(tree, int(edge))}
        used = np.unique(np.concatenate([before, np.array(list(fold_row.values()), np.int64)]))
        ranges = self._working.array("ranges", (len(used), len(board)))
        np.take(reach, used, axis=0, out=ranges)
        anyone, ahead = self._check_down.against(board, ranges)
        position = {int(row): place for place, row in enumerate(used)}
        for node, row in zip(nodes, before, strict=True):
            k = position[int(row)]
            best, choice = np.full(len(board), -np.inf), np.zeros(len(board), np.int64)
            for edge in self._choices(tree, int(node)):
                after_fold = position[fold_row[edge]] if edge in fold_row else None
                value = self._utility(seat, tree, edge, k, after_fold, anyone, ahead)
                better = value > best
                best[better], choice[better] = value[better], edge
            strategy[choice, np.arange(len(board))] = 1.0

    def _choices(self, tree: RoundTree, node: int) -> list[int]:
        """A decision's edges for the rule, in the order that breaks ties: check or call, raises, fold."""
        edges = list(range(tree.first_edge[node], tree.first_edge[node + 1]))
        ordered = sorted(edges, key=lambda edge: (tree.edge_action[edge] == FOLD, _is_raise(tree, edge), edge))
        if self._bets:
            return ordered
        return [ordered[0], *(edge for edge in ordered[1:] if not _is_raise(tree, edge))]

    def _utility(
        self, seat: int, tree: RoundTree, edge: int, k: int, folded: int | None, anyone: Floats, ahead: Floats
    ) -> Floats:
        """Each canonical hand's mean gain after an action if both then check and call, times the opponent's reach, [U].

        The opponent's range is row `k` of `anyone` and `ahead` [K, U]; row `folded` is its range that folds to a raise.
        As in the paper, but gains are counted from the beginning of the game.
        """
        node, action = int(tree.nodes[tree.edge_node[edge]]), int(tree.edge_action[edge])
        before = float(self._chips[node, seat])
        after = float(self._chips[self._tree.child[node, action], seat])
        theirs = float(self._chips[node, 1 - seat])
        value: Floats
        if action == FOLD:
            value = -before * anyone[k]
        elif folded is None:
            value = after * ahead[k]
        else:
            value = theirs * anyone[folded] + after * (ahead[k] - ahead[folded])
        return value


def _is_raise(tree: RoundTree, edge: int) -> bool:
    return int(tree.edge_action[edge]) not in (FOLD, CALL)


def _row_after_fold(tree: RoundTree, edge: int) -> int:
    """The opponent's row of reach after it folds to the raise `edge`."""
    answer = int(tree.edge_child[edge])
    answers = range(tree.first_edge[answer], tree.first_edge[answer + 1])
    return int(next(tree.edge_row[e] for e in answers if tree.edge_action[e] == FOLD))
