"""A policy with search: in some rounds it plays what `search.subgame` finds, in the others what the plain policy plays."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cache, lru_cache
from math import comb
from typing import get_args

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board, Boards, SampledBoards
from deepcfr.boards.rounds import PartialRound, RoundTree
from deepcfr.boards.sweep import BoardStrategy, RoundPass, Scratch
from deepcfr.config import SearchConfig, SearchKind
from deepcfr.core.errors import ConfigError, GameError, require_least
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Doubles, Floats, Infosets, Ints
from deepcfr.game.cards import canonical_cards, pack_cards
from deepcfr.game.poker import PokerGame, poker_game
from deepcfr.game.rules import PokerRules
from deepcfr.policy.base import Policy
from deepcfr.search.subgame import (
    PLAYERS,
    Gadget,
    SubgameSolver,
    subgame,
    subgame_bytes,
    values_at_root,
)

State = tuple[int, int, int, tuple[int, ...]]
"""A player at a public state: player, round, round root of the round, public cards."""
_MOST_BYTES = 2e9  # of one subgame
_KEPT_BYTES = 500_000_000  # of solved subgames
_ENTERS = 0.5  # least chance that the opponent's likeliest hand enters a gadget; of others in proportion to their reach
MOST_DEALS = 64  # of a match at a time: their subgames fit into what is kept, until the hand ends


class ResolvingPolicy(Policy):
    """`policy` with the betting of some rounds solved again when it gets there.

    A subgame begins where a round does, and has its cards, its betting line and both ranges by Bayes' rule: they follow
    from what this policy itself plays, searched rounds included. The opponent's alternative is the value of its best
    response to the plain policy. Every subgame is solved once and kept,
    by its public state, and the result does not depend on the order of questions. Solved subgames may take `share` of
    the memory for them. Raises GameError for games that are not poker, policies that know only some boards, and
    subgames that do not fit in memory; ConfigError for rounds that the game does not have.
    """

    most_deals = MOST_DEALS

    def __init__(self, policy: Policy, settings: SearchConfig, share: float = 1.0) -> None:
        game = poker_game(policy.game, "Search is for poker games")
        if settings.kind not in get_args(SearchKind):
            raise ConfigError(
                f"'{settings.kind}' is not a kind of search: choose one of {', '.join(get_args(SearchKind))}."
            )
        require_least(1, {"'search.iterations'": settings.iterations, "'search.threads'": settings.threads})
        if policy.boards:
            raise GameError(f"Search asks for any board, but the policy ({policy.kind}) knows only its own boards.")
        self.game: PokerGame = game
        self.policy, self.settings, self.initial = policy, settings, policy.initial
        self._boards = SampledBoards(game)
        self._whole = [tree.only(np.arange(len(tree.roots))) for tree in self._boards.rounds]
        self._position = [_positions(tree.root_nodes, game.tree.num_nodes) for tree in self._boards.rounds]
        self._searched = searched_rounds(game.rules, settings)
        self._sizes = {r: _table_bytes(game, self._boards.rounds, r) for r in self._searched}
        self.kind = f"{policy.kind}, {settings.kind} search"
        self._solved: OrderedDict[State, Floats] = OrderedDict()
        self._bytes, self._most_kept = 0, share * _KEPT_BYTES
        self._lock = threading.Lock()
        self._scratch = Scratch()
        self._workers = _workers(settings.threads) if settings.threads > 1 else None
        self._runout = lru_cache(maxsize=64)(self._boards_before)

    def on_board(self, tree: RoundTree, board: Board) -> Floats:
        if not len(tree.nodes):
            return np.empty((0, len(board)))
        own = self._runout(board.cards)[board.round]
        if not np.array_equal(own.visible_cards, board.visible_cards):
            raise GameError("Search needs boards with all hands.")
        roots = self._roots(tree, board.round)
        return self._strategy(self._part(board.round, roots), own, roots)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        tree, nodes = self.game.tree, infosets.node.cpu().numpy().astype(np.int64)
        result = self.policy.probabilities(infosets).double()
        cards = infosets.cards.cpu().numpy()
        for round_ in self._searched:
            here = np.flatnonzero(tree.round[nodes] == round_)
            if not len(here):
                continue
            part = self._boards.rounds[round_]
            root = part.root_of[np.searchsorted(part.nodes, nodes[here])]
            public = self._public_cards(cards[here], round_).astype(np.int64)
            states = np.concatenate([root[:, None], tree.actor[nodes[here]][:, None], public], axis=1)
            for state in np.unique(states, axis=0):
                some = here[(states == state).all(1)]
                rows = torch.from_numpy(self._on_infosets(round_, state, nodes[some], cards[some]))
                result[torch.from_numpy(some).to(result.device)] = rows.to(result.device)
        return result

    def _on_infosets(self, round_: int, state: Ints, nodes: Ints, cards: npt.NDArray[np.uint8]) -> Doubles:
        """Probabilities [m, A] of `nodes` [m] and `cards` [m, C] of one state: round root, player, public cards."""
        board = self._runout(tuple(state[2:].tolist()))[round_]
        part = self._part(round_, state[:1])
        strategy = self._strategy(part, board, state[:1], (int(state[1]),))
        column = np.searchsorted(pack_cards(board.visible_cards), pack_cards(cards))
        result = np.zeros((len(nodes), self.game.encoding.num_actions))
        edge = part.tree.edge_of[np.searchsorted(part.tree.nodes, nodes)]
        row, action = np.nonzero(edge >= 0)
        result[row, action] = strategy[edge[row, action], column[row]]
        return result

    def _public_cards(self, cards: npt.NDArray[np.uint8], round_: int) -> npt.NDArray[np.uint8]:
        """The public cards of infosets in a round, in one form for all that differ by a renaming of suits only."""
        rules, groups = self.game.rules, self.game.card_groups
        dealt = [n for n in rules.board_cards[: round_ + 1] if n]
        public = cards[:, groups[0] : groups[0] + sum(dealt)]
        return canonical_cards(public, tuple(dealt), rules.num_suits) if self.game.suits == "canonical" else public

    def _boards_before(self, cards: tuple[int, ...]) -> list[Board]:
        """The boards of all rounds up to the one that has the public `cards`."""
        new = self.game.rules.board_cards
        dealt = [sum(new[: round_ + 1]) for round_ in range(len(new))]
        # the boards before them are shared with other questions
        known = max((end for end in dealt if end < len(cards)), default=0)
        boards = list(self._runout(cards[:known])) if cards else []
        for round_ in range(len(boards), len(new)):
            if dealt[round_] > len(cards):
                break
            before = boards[-1] if boards else self._boards.root
            boards.append(self._boards.after(before, cards[dealt[round_] - new[round_] : dealt[round_]]))
        return boards

    def _part(self, round_: int, roots: Ints) -> PartialRound:
        whole = self._whole[round_]
        return whole if len(roots) == len(whole.tree.roots) else self._boards.rounds[round_].only(roots)

    def _strategy(self, part: PartialRound, board: Board, roots: Ints, players: tuple[int, ...] = PLAYERS) -> Floats:
        """The strategy of `players` on a board after `roots`, whose part of the round is `part`, [E, U]."""
        if board.round not in self._searched:
            return self._plain(part, board)
        tree = part.tree
        owner, actor = tree.root_of[tree.edge_node], tree.actor[tree.edge_node]
        result = np.zeros((tree.num_edges, len(board)), np.float32)
        size = self._sizes[board.round]
        for player in players:
            # nothing is decided after a round root at which both players are all-in
            known = {e: self._find((player, board.round, e, board.cards)) for e in roots.tolist() if size[e]}
            missing = np.array([root for root, strategy in known.items() if strategy is None], np.int64)
            batch = np.cumsum(size[missing]) // _MOST_BYTES
            for some in np.unique(batch):
                known |= self._solve(board, missing[batch == some], player)
            for place, root in enumerate(roots.tolist()):
                if root in known:
                    result[(owner == place) & (actor == player)] = known[root]
        return result

    def _plain(self, part: PartialRound, board: Board) -> Floats:
        if self.policy.whole_rounds:
            return self.policy.on_board(self._whole[board.round].tree, board)[part.edges]
        return self.policy.on_board(part.tree, board)

    def _find(self, state: State) -> Floats | None:
        with self._lock:
            if state in self._solved:
                self._solved.move_to_end(state)
            return self._solved.get(state)

    def _keep(self, state: State, strategy: Floats) -> None:
        with self._lock:
            self._bytes += 0 if state in self._solved else strategy.nbytes
            self._solved[state] = strategy
            while self._bytes > self._most_kept and len(self._solved) > 1:
                self._bytes -= self._solved.popitem(last=False)[1].nbytes

    def _solve(self, board: Board, roots: Ints, player: int) -> dict[int, Floats]:
        """Solve the subgames after `roots` for a player, and keep its strategies: [its edges after a root, U] each."""
        tree = self._part(board.round, roots).tree
        strategy = self._in_subgame(board, roots, player)
        owner, actor = tree.root_of[tree.edge_node], tree.actor[tree.edge_node]
        both = self.settings.kind == "unsafe"  # one solution serves both players
        for place, root in enumerate(roots.tolist()):
            for p in PLAYERS if both else (player,):
                self._keep((p, board.round, root, board.cards), strategy[(owner == place) & (actor == p)])
        return {e: strategy[(owner == place) & (actor == player)] for place, e in enumerate(roots.tolist())}

    def _in_subgame(self, board: Board, roots: Ints, player: int) -> Floats:
        """The strategy on `board`, [E, U], by solving the subgames after `roots` for a player."""
        reach = self._reach(board, roots)
        inside = subgame(self.game, self._boards.rounds, board, roots)
        tree = inside.rounds[board.round]
        plain = self._plain_inside(tree, board)

        def as_trained(part: RoundTree, on: Board) -> Floats:
            return plain if part is tree else self._plain_inside(part, on)

        gadget = self._gadget(inside, as_trained, reach, player)
        solver = SubgameSolver(inside, reach, gadget, workers=self._workers)
        solver.run(self.settings.iterations)
        return solver.on_first_board(plain)

    def _gadget(self, inside: Boards, as_trained: BoardStrategy, reach: Floats, resolver: int) -> Gadget | None:
        """The opponent's choice before a subgame that is to be safe; `as_trained` is the plain policy inside."""
        if self.settings.kind == "unsafe":
            return None
        opponent = 1 - resolver
        (alternative,) = values_at_root(inside, as_trained, reach, [(opponent, True)], self._workers)
        most = reach[opponent].max(1, keepdims=True)
        least = np.divide(_ENTERS * reach[opponent], most, out=np.zeros_like(alternative), where=most > 0)
        return Gadget(opponent, alternative, inside.root.size, least)

    def _plain_inside(self, tree: RoundTree, board: Board) -> Floats:
        """The plain policy in a part of a round, [E, U]."""
        if not len(tree.nodes):
            return np.empty((0, len(board)))
        return self._plain(self._part(board.round, self._roots(tree, board.round)), board)

    def _roots(self, tree: RoundTree, round_: int) -> Ints:
        """The positions of a part's round roots in the whole round, ascending."""
        return self._position[round_][tree.root_nodes]

    def _reach(self, board: Board, roots: Ints) -> Doubles:
        """Both players' reach at `roots` of the board's round by what this policy plays before it, [2, X, U]."""
        if board.round == 0:
            return np.ones((2, len(roots), len(board)))
        before = self._runout(board.cards)[board.round - 1]
        earlier = self._boards.rounds[board.round - 1]
        lead = np.unique(earlier.root_of[earlier.round_leaves[roots]])
        part = self._part(before.round, lead)
        play = RoundPass(part.tree, before, self._reach(before, lead), self._scratch)
        play.down(self._strategy(part, before, lead))
        at_leaves = play.reach_at_leaves()[:, np.searchsorted(part.round_leaves, roots)]
        return np.ascontiguousarray(at_leaves[:, :, board.up])


@cache
def _workers(count: int) -> Workers:
    """Threads for subgames, shared by all policies of this process."""
    return Workers(count)


def _positions(root_nodes: Ints, num_nodes: int) -> Ints:
    """The position of each public node among the round roots of a round, -1 for others, [N]."""
    position = np.full(num_nodes, -1)
    position[root_nodes] = np.arange(len(root_nodes))
    return position


def searched_rounds(rules: PokerRules, settings: SearchConfig) -> tuple[int, ...]:
    """The rounds that are solved when they begin, ascending. Raises ConfigError for unknown rounds and for gaps."""
    last = rules.num_rounds - 1
    rounds = tuple(sorted(set(settings.rounds))) or (last,)
    for round_ in rounds:
        if not 0 <= round_ <= last:
            raise ConfigError(f"The rounds of {rules.name} are 0 to {last}, but 'search.rounds' names {round_}.")
    if len(rounds) != last + 1 - rounds[0]:
        raise ConfigError(
            f"Subgames reach to the end of the hand, so 'search.rounds' must name every round from {rounds[0]} to {last}."
        )
    return rounds


def _table_bytes(game: PokerGame, rounds: list[RoundTree], first: int) -> Ints:
    """Bytes of the tables after each root of a round, [X]. Raises GameError if a subgame needs too much memory."""
    rules, left = game.rules, game.rules.num_cards - sum(game.rules.board_cards[: first + 1])
    boards, hands = 1, [comb(left, rules.hole_cards)]
    for new in rules.board_cards[first + 1 :]:
        boards, left = boards * comb(left, new), left - new
        hands.append(boards * comb(left, rules.hole_cards))
    kept, tables = subgame_bytes(rounds, first, hands)
    most = kept + int(tables.max())
    if most > _MOST_BYTES:
        raise GameError(
            f"A subgame of {game.rules.name} from round {first} on takes up to {most / 1e9:.1f} GB, and at most "
            f"{_MOST_BYTES / 1e9:.0f} GB are allowed: name later rounds in 'search.rounds'."
        )
    return tables
