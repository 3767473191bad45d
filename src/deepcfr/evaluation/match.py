"""Two policies of one game against each other in both seats: exactly where that is within reach, or over sampled deals.

Sampled matches are duplicate ones: every deal is played twice, with the seats exchanged, and what a policy gains from a
deal is the mean of its two games. Its luck with the cards then mostly cancels, and policies that act alike draw exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import ConfigError, GameError
from deepcfr.evaluation.exploitability import refusal_of
from deepcfr.games.base import Deals, Game, infosets_at
from deepcfr.games.isomorphism import canonical_cards, pack_cards
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.games.sequence_form import realization
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy, board_strategy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.tree import table_of
from deepcfr.ranges.boards import Board, Boards, Deal, OnBoard, RoundTree
from deepcfr.ranges.kernels import pull_values, push_both
from deepcfr.ranges.scratch import Scratch
from deepcfr.ranges.sweep import BoardStrategy, fill_leaves, reach_at_exits, reach_rows
from deepcfr.rng import key
from deepcfr.sampling.external import Strategy
from deepcfr.sampling.selfplay import play_games
from deepcfr.types import Infosets

CHUNK = 16_384  # deals played together
_NORMAL_95 = 1.959964  # standard errors on either side that hold 95 % of a normal distribution
_WORDS = ("name", "rank_symbols", "suit_symbols")  # fields of rules that change how a game is written, not the game


@dataclass(frozen=True)
class Match:
    """What the first of two policies gains against the second; values are in thousandths of the game's unit."""

    game: str
    unit: str  # the milli unit, such as mbb/g
    value: float  # mean of both seats
    seats: tuple[float, float]  # as player 0, as player 1
    interval: float  # half the width of the 95 % confidence interval of `value`, 0 if exact
    hands: int  # deals played, each of them twice; 0 if exact
    exact: bool
    seconds: float
    policies: tuple[str, str]  # what the first and the second are


# Exact matches ----------------------------------------------------------------------------------------------------------


def exact_match(first: Policy, second: Policy, threads: int = 1, on_board: OnBoard | None = None) -> Match:
    """What `first` gains on average against `second`, in poker with card removal and over all boards.

    Boards that differ by a renaming of suits are merged if both policies see canonical suits, and all are enumerated
    otherwise. `on_board(done, total)` reports progress. Torch is set to one thread in this process from then on.
    Raises GameError for policies of different games, and for games out of reach of exact evaluation.
    """
    start = time.perf_counter()
    _require_same_game(first.game, second.game)
    reason = refusal_of(first.game)
    if reason:
        raise GameError(reason)
    if isinstance(first.game, PokerGame):
        gains = _gains_on_boards(first, second, threads, on_board)
    else:
        gains = _gains_on_tree(first, second)
    return _match(first, second, gains, 0.0, 0, start)


def _match(
    first: Policy, second: Policy, gains: tuple[float, float], interval: float, hands: int, start: float
) -> Match:
    """The record of a match, from `gains` in each seat and half an interval in the game's unit."""
    return Match(
        game=first.game.name,
        unit=first.game.milli_unit,
        value=1000 * (gains[0] + gains[1]) / 2,
        seats=(1000 * gains[0], 1000 * gains[1]),
        interval=1000 * interval,
        hands=hands,
        exact=hands == 0,
        seconds=time.perf_counter() - start,
        policies=(first.kind, second.kind),
    )


def _gains_on_tree(first: Policy, second: Policy) -> tuple[float, float]:
    """Gains in both seats in a game of OpenSpiel, from the realization plans of both policies."""
    assert isinstance(first.game, OpenSpielGame)
    form = first.game.sequences
    mine, theirs = (realization(table_of(policy), form.parent, form.num_actions) for policy in (first, second))
    zero, one = form.sequences
    return float((form.payoff * mine[zero] * theirs[one]).sum()), -float((form.payoff * theirs[zero] * mine[one]).sum())


def _gains_on_boards(first: Policy, second: Policy, threads: int, on_board: OnBoard | None) -> tuple[float, float]:
    """Gains in both seats in a poker game, from one full-width pass.

    The first policy's values need only the second one's reach and its own probabilities, so one pass serves both seats.
    """
    boards = _common_boards(first, second)
    mine, theirs = _strategy_on(boards, first), _strategy_on(boards, second)
    scratch = Scratch()

    def visit(board: Board, reach: npt.NDArray[np.floating], deal: Deal) -> npt.NDArray[np.floating]:
        tree = boards.rounds[board.round]
        rows = reach_rows(tree, board.round, reach, scratch)
        opposing = np.ascontiguousarray(theirs(tree, board), np.float64)
        push_both(tree.actor, tree.first_edge, tree.edge_row, tree.row, opposing, *rows)
        own = np.ascontiguousarray(mine(tree, board), np.float64)
        values = scratch.array(f"values {board.round}", (2, tree.num_slots, len(board)))
        for seat in (0, 1):
            fill_leaves(tree, board, seat, rows[1 - seat], values[seat], scratch)
        if len(tree.exits):
            values[:, tree.exits] = deal(reach_at_exits(tree, rows))
        for seat in (0, 1):
            pull_values(tree.actor, tree.first_edge, tree.edge_slot, seat, False, own, values[seat])
        return values[:, tree.entries]

    workers = Workers(threads)
    try:
        gains = boards.visit_all(visit, workers, on_board=on_board).tolist()
    finally:
        workers.shutdown()
    return gains[0], gains[1]


def _common_boards(first: Policy, second: Policy) -> Boards:
    """Boards that are right for both policies: all of them if one sees raw suits, which merged boards would be wrong for.

    Boards that a policy keeps its tables by are used themselves.
    """
    policies = [policy for policy in (first, second) if _poker(policy).suits == "raw"] or [first, second]
    for policy in policies:
        kept: Boards | None = getattr(policy, "boards", None)
        if kept is not None:
            return kept
    game = _poker(policies[0])
    return Boards(game, merge=game.suits == "canonical")


def _poker(policy: Policy) -> PokerGame:
    assert isinstance(policy.game, PokerGame)
    return policy.game


def _strategy_on(boards: Boards, policy: Policy) -> BoardStrategy:
    """The policy as a pass over `boards` asks for it: in canonical suits if it sees those and the boards are raw."""
    game, ask = _poker(policy), board_strategy(policy)
    if game.suits == boards.game.suits:
        return ask
    kept: Boards | None = getattr(policy, "boards", None)
    representatives = _by_class(kept) if kept is not None else None

    def on_board(tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        cards = game.views_of(board.holes[board.example], board.cards)
        _, example, view = np.unique(pack_cards(cards), return_index=True, return_inverse=True)
        if representatives is not None:  # equal suits, equal views: in the same order, so columns fit
            return ask(tree, representatives[_class_of(board, game.rules)])[:, view]
        # a policy without boards of its own goes by the cards in view alone
        return ask(tree, replace(board, view_cards=cards[example]))[:, view]

    return on_board


def _by_class(boards: Boards) -> dict[tuple[int, bytes], Board]:
    """Kept boards by their class under all renamings of suits."""
    return {_class_of(board, boards.game.rules): board for round_ in boards.kept for board in round_}


def _class_of(board: Board, rules: PokerRules) -> tuple[int, bytes]:
    cards = np.array([board.cards], np.uint8)
    return board.round, canonical_cards(cards, board.groups, rules.num_suits).tobytes()


# Sampled matches --------------------------------------------------------------------------------------------------------


def sampled_match(
    first: Policy,
    second: Policy,
    hands: int,
    seed: int,
    *,
    threads: int = 1,
    chunk: int = CHUNK,
    on_hands: Callable[[int, int], None] | None = None,
) -> Match:
    """What `first` gains on average against `second` in `hands` deals of any game, each played in both seats.

    The interval comes from the standard error over deals, because the two games of a deal share its cards; they share the
    uniforms that pick actions too. A mixture draws one of its policies for each deal, and plays it in both seats: the
    expected value is that of its exact average. Results depend neither on `threads` nor on `chunk`, the deals played
    together.
    `on_hands(done, total)` reports progress. Torch is set to one thread in this process from then on.
    Raises GameError for policies of different games, and ConfigError for fewer than two hands.
    """
    start = time.perf_counter()
    _require_same_game(first.game, second.game)
    if hands < 2:
        raise ConfigError(f"A sampled match needs at least 2 hands for its interval, but {hands} were asked for.")
    workers = Workers(threads)

    def play(begin: int) -> npt.NDArray[np.float32]:
        return _play_deals(first, second, min(chunk, hands - begin), seed, begin)

    gains = np.empty((2, hands), np.float32)
    try:
        for index, part in enumerate(workers.map(play, range(0, hands, chunk))):
            done = index * chunk + part.shape[1]
            gains[:, index * chunk : done] = part
            if on_hands:
                on_hands(done, hands)
    finally:
        workers.shutdown()
    seats = gains.mean(1, dtype=np.float64).tolist()
    error = gains.mean(0, dtype=np.float64).std(ddof=1) / np.sqrt(hands)
    return _match(first, second, (seats[0], seats[1]), float(_NORMAL_95 * error), hands, start)


def _play_deals(first: Policy, second: Policy, count: int, seed: int, begin: int) -> npt.NDArray[np.float32]:
    """What the first policy gains as player 0 and as player 1 in the deals `begin` .. `begin + count - 1`, [P, count]."""
    game, dealt = first.game, key(seed, "match", "deal")
    deals = game.deal(count, dealt, begin)
    # the same cards in the other policy's encoding
    others = deals if second.game is game else second.game.deal(count, dealt, begin)
    # draws of their own, because two mixtures of the same policies must not draw the same ones
    mine = _sampled_strategy(first, deals, key(seed, "match", "draw", 0))
    theirs = _sampled_strategy(second, others, key(seed, "match", "draw", 1))
    actions = key(seed, "match", "action")
    as_zero = play_games(game, deals, (mine, theirs), actions)
    as_one = -play_games(game, deals, (theirs, mine), actions)
    return torch.stack([as_zero, as_one]).cpu().numpy()


def _sampled_strategy(policy: Policy, deals: Deals, stream: int) -> Strategy:
    """The policy at histories of `deals`, which are in its own game's encoding; nodes may be on another device.

    A mixture draws a policy for each deal in `stream`.
    """
    game = policy.game
    if isinstance(policy, MixturePolicy):
        drawn = policy.draw_for(stream, deals.traversal)

    def ask(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        here = row.to(game.device)
        infosets: Infosets = infosets_at(game, node.to(game.device), here, deals)
        if not isinstance(policy, MixturePolicy):
            return policy.probabilities(infosets).to(node.device)
        result = torch.empty(len(infosets), game.encoding.num_actions, dtype=torch.float64, device=game.device)
        mine = drawn[row.cpu().numpy()]
        for index in np.unique(mine):
            same = torch.from_numpy(np.flatnonzero(mine == index)).to(game.device)
            result[same] = policy.policies[index].probabilities(infosets[same]).double()
        return result.to(node.device)

    return ask


# Games ------------------------------------------------------------------------------------------------------------------


def _require_same_game(first: Game, second: Game) -> None:
    """Raise GameError unless policies of the two games can play each other; how cards are shown may differ."""
    if first is second:
        return
    if isinstance(first, PokerGame) and isinstance(second, PokerGame):
        different = _different_rules(first.rules, second.rules)
        if not different:
            return
        names = f"'{first.name}' and '{second.name}' differ in {', '.join(different)}"
    elif isinstance(first, OpenSpielGame) and isinstance(second, OpenSpielGame):
        if str(first.spiel_game) == str(second.spiel_game):  # which spells out all parameters
            return
        names = f"'{first.name}' and '{second.name}' are two games of OpenSpiel"
    else:
        names = (
            f"'{first.name}' ({type(first).__name__}) and '{second.name}' ({type(second).__name__}) are not the same"
        )
    raise GameError(f"A match needs two policies of one game, but {names}.")


def _different_rules(first: PokerRules, second: PokerRules) -> list[str]:
    names = [field.name for field in fields(PokerRules) if field.name not in _WORDS]
    return [name for name in names if getattr(first, name) != getattr(second, name)]
