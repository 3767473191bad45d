"""Search in no-limit poker: the subgame has the bets that were made, whatever their size, in place of translated ones.

An agent with a few bet sizes takes a bet of another size for one of its own (`deepcfr.policy.translation`). Where it
searches it need not: a subgame begins with the real pot, and a decision in it has the sizes of the agent's game and, on
the way to the decision that is asked for, the real bet. Whenever there is another bet the round is solved again from its
beginning (Brown and Sandholm 2017, "Safe and nested subgame solving for imperfect-information games", section 6.1). The
ranges at the beginning of the first searched round are those of the agent's own betting; from there on they follow from
what this search plays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board
from deepcfr.boards.rounds import PartialRound
from deepcfr.config import SearchConfig
from deepcfr.core.types import Cards, Doubles, Floats, Infosets, Ints
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.betting import (
    CALL,
    FEWER_SIZES,
    NOT_TERMINAL,
    RAISE,
    BettingState,
    first_state,
    legal_actions,
    next_state,
    raise_range,
    raise_to,
    raised,
    unroll,
)
from deepcfr.game.poker import Poker, PokerGame
from deepcfr.game.public_state import PublicState
from deepcfr.game.rules import PokerRules
from deepcfr.policy.base import Policy
from deepcfr.policy.translation import Shadow, Translation
from deepcfr.search.policy import ResolvingPolicy
from deepcfr.search.subgame import PLAYERS

KEPT_LINES = 32  # whose subgames are kept


class RealSizes:
    """A searching agent's play in no-limit poker from round `first` on; thread-safe.

    `policy` is the agent without search.
    """

    def __init__(self, policy: Policy, settings: SearchConfig, first: int) -> None:
        assert isinstance(policy.game, Poker)
        self.policy, self.game, self.settings, self.first = policy, policy.game, settings, first
        self._on = lru_cache(maxsize=KEPT_LINES)(self._search)

    def strategy(
        self, rules: PokerRules, begin: PublicState, real: BettingState, holes: Cards, board: Sequence[int]
    ) -> dict[int, Doubles]:
        """The probability of each action of the no-limit game `rules` at `real` with each of `holes` [H, 2], each [H].

        `begin` is where the agent's own betting was when round `first` began. Raises GameError for subgames that do not
        fit in memory.
        """
        search = self._on(rules, self.game.node_of(begin), real)
        cards = torch.from_numpy(self.game.visible_cards(holes, board))
        infosets = Infosets(torch.full((len(holes),), search.betting.node[real]), cards)
        rows = search.probabilities(infosets).double().numpy()
        edges = search.betting.after(real)
        return {real_action(real, action, after): rows[:, action] for action, after in edges.items()}

    def _search(self, rules: PokerRules, begin: int, real: BettingState) -> RealSearch:
        """The search in the real betting up to `real`, after the agent's own up to the node `begin`."""
        states = [*_before(rules, real), real]
        start = next(state for state in states if state.round == self.first)
        last = [state for state in states if self.first <= state.round < real.round][-1:]
        earlier = self._on(rules, begin, *last) if last else None
        betting = RealBetting(self.game, rules, begin, start, real)
        return RealSearch(self.policy, self.settings, betting, earlier)


def _before(rules: PokerRules, real: BettingState) -> list[BettingState]:
    """The positions before a real one."""
    state, states = first_state(rules), []
    for amount in (amount for actions in real.actions for amount in actions):
        states.append(state)
        state = next_state(rules, state, _action(state, amount))
    return states


def _action(state: BettingState, amount: float) -> int:
    """The action of no-limit poker by which the actor puts in so many chips more and does not fold."""
    return CALL if amount == state.to_call else int(state.chips[state.actor] + amount)


def real_action(state: BettingState, action: int, after: BettingState) -> int:
    """An action of a listed betting as one of no-limit poker, where a raise is its total."""
    return action if action < RAISE else after.chips[state.actor]


@dataclass(frozen=True)
class _OwnLine(BettingState):
    """A position of the agent's own betting before the first searched round, which goes on in one way."""

    place: int = 0


class RealBetting:
    """The betting of a search: the agent's own up to its node `begin`, then the real one from `start` on.

    The real betting has one line up to the round of `real`, from there on the sizes of `game` and the bets on the way to
    `real`.
    """

    def __init__(self, game: Poker, rules: PokerRules, begin: int, start: BettingState, real: BettingState) -> None:
        self.own, self.rules, self.start, self.real, self.begin = game, rules, start, real, begin
        self.round = real.round
        _, nodes, actions = game.paths(np.array([begin]))
        self.nodes, self.actions = nodes.tolist(), actions.tolist()
        at = torch.from_numpy(nodes)
        self._places = list(zip(game.round[at].tolist(), game.actor[at].tolist(), strict=True))
        most = game.encoding.num_actions + 1  # the real bet is one more
        self.tree = unroll(self._line(0), self.after, rules, most, FEWER_SIZES)

    def _line(self, place: int) -> BettingState:
        if place == len(self.nodes):
            return self.start
        round_, actor = self._places[place]
        return _OwnLine(round=round_, actor=actor, chips=(0, 0), actions=((),) * (round_ + 1), place=place)

    def after(self, state: BettingState) -> dict[int, BettingState]:
        """The positions after one, by action: fold, call, and RAISE + i for the raises by size."""
        if isinstance(state, _OwnLine):
            return {self.actions[state.place]: self._line(state.place + 1)}
        totals, real = self._totals(state), self._real(state)
        if real is not None and real >= RAISE:
            totals |= {real}
        ways = [action for action in legal_actions(self.rules, state) if action < RAISE] + sorted(totals)
        found = {}
        for place, action in enumerate(ways):
            if state.round >= self.round or action == real:
                number = action if action < RAISE else RAISE + place - sum(way < RAISE for way in ways)
                found[number] = raised(state, action) if action >= RAISE else next_state(self.rules, state, action)
        return found

    def _real(self, state: BettingState) -> int | None:
        """The real action at a position on the way to `real`, None at others."""
        known, done = self.real.actions, state.actions
        now = known[state.round] if state.round < len(known) else ()
        if done != (*known[: state.round], now[: len(done[-1])]) or len(done[-1]) >= len(now):
            return None
        return _action(state, now[len(done[-1])])

    def _totals(self, state: BettingState) -> set[int]:
        """The chips that the actor has put in after each raise that the agent's game has here."""
        if RAISE not in legal_actions(self.rules, state):
            return set()
        called, (least, most) = max(state.chips), raise_range(self.rules, state)
        if not isinstance(self.own, BetSizePoker):
            can = state.raises < self.own.rules.max_raises[state.round]
            return {min(raise_to(self.own.rules, state), most)} if can else set()
        source, round_, before = self.own.source, state.round, called - state.last_raise
        if state.raises >= source.max_raises[round_]:
            return set()
        totals = {most} if source.all_in[round_] else set()
        for size in source.bet_sizes[round_]:
            of_pot = source.measure[round_] == "pot"
            total = min(called + 2 * called * size // 100 if of_pot else size, most)
            # sizes ascend in a round
            higher = not (of_pot and state.raises) or 2 * before * size // 100 > state.last_raise
            totals |= {total} if higher and total >= least else set()
        return totals

    @cached_property
    def decisions(self) -> dict[int, tuple[BettingState, dict[int, BettingState]]]:
        """Each decision of the real betting by its node, with what may follow by action; parents come first."""
        node = 0
        for action in self.actions:
            node = int(self.tree.child[node, action])
        found: dict[int, tuple[BettingState, dict[int, BettingState]]] = {}
        stack = [(node, self.start)]
        while stack:
            node, state = stack.pop()
            if state.ended == NOT_TERMINAL:
                found[node] = state, self.after(state)
                stack += [(int(self.tree.child[node, action]), after) for action, after in found[node][1].items()]
        return found

    @cached_property
    def node(self) -> dict[BettingState, int]:
        """The node of each decision of the real betting."""
        return {state: node for node, (state, _) in self.decisions.items()}


class _Translated(Policy):
    """The agent without search in a `RealBetting`, whose bets it takes for the likeliest ones of its own."""

    game: PokerGame

    def __init__(self, policy: Policy, game: PokerGame, betting: RealBetting, begin: PublicState) -> None:
        self.policy, self.game, self.kind, self.initial = policy, game, policy.kind, policy.initial
        width = betting.own.encoding.num_actions
        count, translation = game.tree.num_decisions, Translation(policy, betting.rules, 0)
        self._node = np.full(count, -1)  # in the agent's game; -1 where it only checks and calls
        self._action = np.full((count, width), -1)  # of this game for each of the agent's own
        node = 0
        for own, action in zip(betting.nodes, betting.actions, strict=True):
            self._node[node], self._action[node] = own, np.arange(width)
            node = int(game.tree.child[node, action])
        shadows = {node: Shadow(begin, (begin,))}
        for node, (state, after) in betting.decisions.items():
            shadow, ways = shadows[node], {real_action(state, action, to): action for action, to in after.items()}
            if not shadow.lost:
                self._node[node] = betting.own.node_of(shadow.own)
                for own, action in translation.choices(shadow, state).items():
                    near = min(
                        ways, key=lambda way: (way != action, (way < RAISE) != (action < RAISE), abs(way - action))
                    )
                    self._action[node, own] = ways[near]
            for way, action in ways.items():
                likeliest = max(translation.ways(shadow, state, way, mine=True), key=lambda found: found[0])
                shadows[int(game.tree.child[node, action])] = likeliest[1]

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        result = np.zeros((len(nodes), len(cards), self.game.encoding.num_actions))
        known = np.flatnonzero(self._node[nodes] >= 0)
        result[self._node[nodes] < 0, :, CALL] = 1
        if len(known):
            rows = self.policy.on_hands(self._node[nodes[known]], cards)
            for row, place in enumerate(known.tolist()):
                for own, action in enumerate(self._action[nodes[place]].tolist()):
                    if action >= 0:
                        result[place, :, action] += rows[row, :, own]
        return result

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes, cards = infosets.node.numpy(), infosets.cards.numpy()
        result = np.zeros((len(nodes), self.game.encoding.num_actions))
        for node in np.unique(nodes):
            some = nodes == node
            result[some] = self.on_hands(np.array([node]), cards[some])[0]
        return torch.from_numpy(result)


class RealSearch(ResolvingPolicy):
    """Search in one real betting; what it plays in the searched rounds before that of `betting` is as in `earlier`."""

    def __init__(
        self, policy: Policy, settings: SearchConfig, betting: RealBetting, earlier: RealSearch | None
    ) -> None:
        self.betting, self.earlier = betting, earlier
        assert isinstance(policy.game, Poker)
        game = PokerGame(betting.rules, policy.game.suits, tree=betting.tree)
        begin = policy.game.state()
        for action in betting.actions:
            begin = begin.after(action)
        super().__init__(_Translated(policy, game, betting, begin), settings, share=1 / KEPT_LINES)

    def _strategy(self, part: PartialRound, board: Board, roots: Ints, players: tuple[int, ...] = PLAYERS) -> Floats:
        if self.earlier is None or not self.earlier.betting.start.round <= board.round < self.betting.round:
            return super()._strategy(part, board, roots, players)
        return self.earlier.on_line(self, part, board)

    def on_line(self, later: RealSearch, part: PartialRound, board: Board) -> Floats:
        """The strategy at the edges of `part` of an earlier round of `later`, which lie on its only line, [E, U]."""
        if board.round < self.betting.round:
            assert self.earlier
            return self.earlier.on_line(later, part, board)
        tree = self._boards.rounds[board.round]
        own = self._runout(board.cards)[board.round]
        strategy = super()._strategy(self._whole[board.round], own, np.arange(len(tree.roots)))
        result = np.zeros((part.tree.num_edges, len(board)), np.float32)
        for edge, (place, action) in enumerate(zip(part.tree.edge_node, part.tree.edge_action, strict=True)):
            state, ways = later.betting.decisions[int(part.tree.nodes[place])]
            after = ways[int(action)]
            same = next(number for number, found in self.betting.after(state).items() if found == after)
            here = int(np.searchsorted(tree.nodes, self.betting.node[state]))
            result[edge] = strategy[tree.edge_of[here, same]]
        return result
