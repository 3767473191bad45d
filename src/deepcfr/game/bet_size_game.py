"""Poker with a few bet sizes as a `Game`: with an explicit betting tree, or an implicit one where it is too large to list.

The nodes of an implicit tree are computed: a number has all actions before the node (`bet_size_betting.node_at`), and a
position, a row of the betting machine, is found from it by replay. An explicit tree has the positions of its nodes in an
array.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from deepcfr.core.types import Encoding, Ints
from deepcfr.game.base import Deals, NodeFunction
from deepcfr.game.bet_size_betting import (
    ACTOR,
    ALL_IN,
    BET,
    BETS,
    CHIPS,
    ENDED,
    ROUND,
    START,
    BetSizes,
    advance,
    bet_size_tree,
    compile_sizes,
    first_positions,
    gains,
    legal_actions,
    node_at,
    nodes_of,
    paths,
    places,
    positions_at,
    positions_in,
    raise_total,
    step_all,
)
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.betting import NOT_TERMINAL
from deepcfr.game.poker import Poker, PokerGame, Suits
from deepcfr.game.public_state import PublicState
from deepcfr.game.rules import PokerRules, no_limit


class BetSizePoker(Poker):
    """Poker with a few bet sizes: its rules are those of no-limit poker with its stacks, its actions those of `bets`."""

    source: BetSizeRules
    bets: BetSizes

    @abstractmethod
    def positions(self, nodes: Ints) -> Ints:
        """The positions of nodes [n], int64 [n, ENTRIES]."""

    def state(self) -> BetSizeState:
        return BetSizeState(self, first_positions(self.bets, 1)[0])


class ImplicitPoker(BetSizePoker):
    """A game whose betting tree may be too large to list: a node is computed from the actions before it."""

    def __init__(self, rules: BetSizeRules, suits: Suits = "canonical", device: str = "cpu") -> None:
        super().__init__(no_limit(rules.deck, rules.stack), suits, device, rules)
        self.bets = compile_sizes(rules)
        num_actions = int(BET + self.bets.sizes.shape[1])  # fold, call and the most sizes of a round
        features, none = torch.empty(0, 0), torch.empty(0, num_actions, dtype=torch.bool)
        self.encoding = Encoding(features, none, self.card_groups, rules.num_ranks, rules.num_suits)
        self.actor = NodeFunction(lambda node: self._place(node, 0))
        self.round = NodeFunction(lambda node: self._place(node, 1))
        self.infoset = NodeFunction(lambda node: node)
        self.legal = NodeFunction(lambda node: torch.from_numpy(legal_actions(self.bets, self.positions(node.numpy()))))
        self.deals_before = NodeFunction(self._deals_before)

    def positions(self, nodes: Ints) -> Ints:
        return positions_at(self.bets, nodes)

    def _place(self, node: torch.Tensor, entry: int) -> torch.Tensor:
        return torch.from_numpy(places(self.bets, node.numpy())[entry])

    def _deals_before(self, node: torch.Tensor) -> torch.Tensor:
        before, _, count = paths(self.bets, node.numpy())
        first = torch.from_numpy(count == 0)
        parents = torch.from_numpy(before[np.arange(len(before)), np.maximum(count, 1) - 1])
        parents = torch.where(first, node, parents)  # before the first decision `before` holds nothing
        return torch.where(first, 1, self.round[node] - self.round[parents])

    def place(self, node: torch.Tensor) -> torch.Tensor:
        return self._place(node, 2)

    def node_of(self, state: PublicState) -> int:
        assert isinstance(state, BetSizeState)
        return int(node_at(state.position))

    def chips(self, nodes: Ints) -> Ints:
        return self.positions(nodes)[:, CHIPS : CHIPS + 2]

    def paths(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        before, actions, count = paths(self.bets, nodes)
        row, place = np.nonzero(np.arange(before.shape[1]) < count[:, None])
        return row, before[row, place], actions[row, place]

    def start(self, deals: Deals) -> torch.Tensor:
        return torch.zeros_like(deals.traversal)

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return torch.from_numpy(step_all(self.bets, node.numpy(), action.numpy()))

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        won = gains(self.positions(node.numpy()), deals.hidden[row].numpy())
        return torch.from_numpy(won / self.rules.unit_chips).float()


class ExplicitPoker(BetSizePoker, PokerGame):
    """A game with a list of nodes; `computed` [N] are their numbers in a `ImplicitPoker`.

    It begins with the actions `line`: only what follows them is listed, and nothing else can be played before. Raises
    GameError for more positions than `betting.MOST_NODES`.
    """

    def __init__(
        self, rules: BetSizeRules, suits: Suits = "canonical", device: str = "cpu", line: Sequence[int] = ()
    ) -> None:
        self.bets = compile_sizes(rules)
        PokerGame.__init__(self, no_limit(rules.deck, rules.stack), suits, device, bet_size_tree(rules, line), rules)
        self._positions: Ints = positions_in(self.bets, self.tree.child)
        self.computed: Ints = nodes_of(self._positions)
        self._order = np.argsort(self.computed)

    def positions(self, nodes: Ints) -> Ints:
        return self._positions[nodes]

    def place(self, node: torch.Tensor) -> torch.Tensor:
        numbers = places(self.bets, self.computed[node.cpu().numpy()])[2]
        return torch.from_numpy(numbers).to(self.device)

    def state(self, node: int = 0) -> BetSizeState:
        state = super().state()
        for _, action in self.tree.path(node):
            state = state.after(action)
        return state

    def node_of(self, state: PublicState) -> int:
        assert isinstance(state, BetSizeState)
        return int(self.listed(np.array([node_at(state.position)]))[0])

    def listed(self, computed: Ints) -> Ints:
        """The nodes [n] in the list for computed ones, [n]."""
        return self._order[np.searchsorted(self.computed, computed, sorter=self._order)]


@dataclass(frozen=True)
class BetSizeState(PublicState):
    """The public state of a game with bet sizes: a position of the state machine with the actions so far.

    In text a raise has its size: the total in units for a size in chips (`r4` is a raise to four big blinds), the share
    of the pot for a size as a share of the pot (`b0.5`); `a` is all-in.
    """

    game: BetSizePoker
    position: Ints  # [ENTRIES]
    betting: tuple[str, ...] = ("",)
    place: int = 0  # number of actions so far

    @property
    def rules(self) -> PokerRules:
        return self.game.rules

    @property
    def round(self) -> int:
        return int(self.position[ROUND])

    @property
    def actor(self) -> int:
        return int(self.position[ACTOR])

    @property
    def ended(self) -> int:
        return int(self.position[ENDED])

    @property
    def winner(self) -> int:
        return int(self.position[ACTOR])

    @property
    def chips(self) -> tuple[int, int]:
        first, second = self.position[CHIPS : CHIPS + 2].tolist()
        return first, second

    @property
    def raised(self) -> bool:
        return bool(self.position[BETS] > 0)

    def legal(self) -> list[int]:
        return np.flatnonzero(legal_actions(self.game.bets, self.position[None])[0]).tolist()

    def after(self, action: int) -> BetSizeState:
        betting = (*self.betting[:-1], f"{self.betting[-1]} {self.token(action)}".strip())
        position = self.position.copy()
        advance(self.game.bets, position, action)
        if position[ENDED] == NOT_TERMINAL and position[ROUND] > self.round:
            betting = (*betting, "")
        return BetSizeState(self.game, position, betting, self.place + 1)

    def token(self, action: int) -> str:
        if action < BET:
            return "fc"[action]
        size, of_pot = self._size(action)
        return "a" if size == ALL_IN else f"r{size / (100 if of_pot else self.rules.unit_chips):g}"

    def understands(self, token: str) -> bool:
        return re.fullmatch(r"[fcka]|[rb]\d+(\.\d+)?", token.lower()) is not None

    def read(self, token: str) -> int | None:
        simple = token.lower().replace("b", "r", 1).replace("k", "c", 1)
        if re.fullmatch(r"r\d+(\.\d+)?", simple):
            simple = f"r{float(simple[1:]):g}"
        return next((action for action in self.legal() if self.token(action) == simple), None)

    def size(self, action: int) -> str:
        size, of_pot = self._size(action)
        earlier = self.position[START] if self.round else 0  # amounts are those of the round, as players name them
        total = (raise_total(self.game.bets, self.position, action - BET) - earlier) / self.rules.unit_chips
        if size != ALL_IN and of_pot:
            return f" {size / 100:g} pot (to {total:g})"
        return f" to {total:g}{' all-in' if size == ALL_IN else ''}"

    def _size(self, action: int) -> tuple[int, bool]:
        bets = self.game.bets
        return int(bets.sizes[self.round, action - BET]), bool(bets.of_pot[self.round])
