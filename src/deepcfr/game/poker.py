"""Poker games as `Game`s: deals and what players see of them, and the nodes and payoffs of a listed public tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from deepcfr.core.compiled import nb
from deepcfr.core.errors import GameError
from deepcfr.core.types import NO_CARD, Encoding, Ints
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.betting import FOLDED, SHOWDOWN, PublicTree, build_tree, too_large
from deepcfr.game.cards import MAX_GROUPS, canonical_cards, canonicalise_row, deal_cards, sort_groups
from deepcfr.game.hands import hand_problem, strength
from deepcfr.game.public_state import ListedState, PublicState
from deepcfr.game.rules import PokerRules

if TYPE_CHECKING:
    import torch

    from deepcfr.game.base import AtNodes, Deals, Game

Suits = Literal["canonical", "raw"]


class Poker(ABC):
    """A poker game as a `Game`, but for its nodes: a deal is both hands and the whole board.

    With `suits="canonical"` players see suit-canonical cards, so that anything learned is symmetric in the suits; with
    `"raw"` they see the cards as dealt. `source` are the rules that tell games apart, with their bet sizes if they name
    any. Raises GameError for more cards or groups of cards than are supported.
    """

    encoding: Encoding
    actor: AtNodes
    round: AtNodes
    infoset: AtNodes
    legal: AtNodes
    deals_before: AtNodes

    def __init__(
        self, rules: PokerRules, suits: Suits = "canonical", device: str = "cpu", source: BetSizeRules | None = None
    ) -> None:
        groups = 1 + sum(cards > 0 for cards in rules.board_cards)
        problems = [problem] if (problem := hand_problem(rules)) else []
        if groups > MAX_GROUPS:
            problems.append(f"{rules.name} deals cards {groups} times, and at most {MAX_GROUPS} times are supported.")
        if problems:
            raise GameError(problems)
        self.rules, self.source = rules, source or rules
        self.suits: Suits = suits
        self.device = device
        self.name, self.unit, self.milli_unit = rules.name, rules.unit, rules.milli_unit
        self.card_groups = (rules.hole_cards, *(size for size in rules.board_cards if size))

    @abstractmethod
    def state(self) -> PublicState:
        """The public state before the first action."""

    @abstractmethod
    def node_of(self, state: PublicState) -> int:
        """The node of a public state of this game."""

    @abstractmethod
    def chips(self, nodes: Ints) -> Ints:
        """The chips that each player has put in at nodes [I], int64 [I, P]."""

    def place(self, node: torch.Tensor) -> torch.Tensor:
        """The numbers that address the random choice of an action at nodes [M], int64 [M]."""
        return node

    @abstractmethod
    def paths(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        """The decisions before `nodes` [I]: for each the place of its node in `nodes`, itself and its action, [M]."""

    @abstractmethod
    def start(self, deals: Deals) -> torch.Tensor: ...

    @abstractmethod
    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor: ...

    @abstractmethod
    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor: ...

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        return self.deals_of(self.deal_cards(count, stream, first), first)

    def deal_cards(self, count: int, stream: int, first: int = 0) -> npt.NDArray[np.uint8]:
        """The cards of the deals of `deal`, uint8 [B, 2 * hole + board] in the order of `deals_of`."""
        slots = 2 * self.rules.hole_cards + sum(self.rules.board_cards)
        return deal_cards(count, np.uint64(stream), first, self.rules.num_cards, slots)

    def deals_of(self, cards: npt.NDArray[np.uint8], first: int = 0) -> Deals:
        """Deals with given cards, uint8 [B, 2 * hole + board]: player 0's hand, player 1's hand, the board in order.

        Their traversals are numbered from `first`.
        """
        from deepcfr.game.base import Deals

        visible, result = _cards_and_results(
            cards,
            self.rules.hole_cards,
            np.array(self.rules.board_cards, np.int64),
            np.array(self.card_groups, np.int64),
            self.rules.num_suits,
            self.suits == "canonical",
        )
        numbers = np.arange(first, first + len(cards))
        return Deals(self.tensor(numbers), self.tensor(visible), self.tensor(result))

    def tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Return an array as a tensor on the game's device. It imports torch, which passes over all hands do without."""
        import torch

        return torch.from_numpy(array).to(self.device)

    def visible_cards(self, holes: npt.NDArray[np.uint8], board: Sequence[int]) -> npt.NDArray[np.uint8]:
        """The visible cards of holders of `holes` (uint8 [H, hole cards]) after `board` is dealt, uint8 [H, C]."""
        rows = np.full((len(holes), sum(self.card_groups)), NO_CARD, np.uint8)
        rows[:, : holes.shape[1]] = holes
        rows[:, holes.shape[1] : holes.shape[1] + len(board)] = np.array(board, np.uint8)
        if self.suits == "canonical":
            return canonical_cards(rows, self.card_groups, self.rules.num_suits)
        for start, end in pairwise(np.cumsum((0, *self.card_groups))):
            rows[:, start:end].sort(axis=1)
        return rows


class PokerGame(Poker):
    """`PokerRules` as a `Game` whose nodes are listed: those of the rules' public tree, or those of `tree`.

    Tensors are made when they are first used, as passes over all hands use none. Type checkers take such properties for
    read-only.
    """

    def __init__(
        self,
        rules: PokerRules,
        suits: Suits = "canonical",
        device: str = "cpu",
        tree: PublicTree | None = None,
        source: BetSizeRules | None = None,
    ) -> None:
        super().__init__(rules, suits, device, source)
        self.tree = tree or build_tree(rules)

    @cached_property
    def actor(self) -> torch.Tensor:  # type: ignore[override]
        return self.tensor(self.tree.actor)

    @cached_property
    def round(self) -> torch.Tensor:  # type: ignore[override]
        return self.tensor(self.tree.round)

    @cached_property
    def infoset(self) -> torch.Tensor:  # type: ignore[override]
        return self.tensor(np.arange(self.tree.num_nodes))

    @cached_property
    def legal(self) -> torch.Tensor:  # type: ignore[override]
        return self.tensor(self.tree.legal)

    @cached_property
    def pot(self) -> torch.Tensor:
        """The pot before each decision in units, float32 [decisions]."""
        chips = self.tree.chips[: self.tree.num_decisions].sum(1)
        return self.tensor((chips / self.rules.unit_chips).astype(np.float32))

    @cached_property
    def encoding(self) -> Encoding:  # type: ignore[override]
        return Encoding(
            node_features=self.tensor(bet_features(self.rules, self.tree)),
            legal=self.legal[: self.tree.num_decisions],
            card_groups=self.card_groups,
            num_ranks=self.rules.num_ranks,
            num_suits=self.rules.num_suits,
        )

    @cached_property
    def deals_before(self) -> torch.Tensor:  # type: ignore[override]
        parents = np.maximum(self.tree.parent, 0)
        return self.tensor(np.where(self.tree.parent < 0, 1, self.tree.round - self.tree.round[parents]))

    @cached_property
    def _child(self) -> torch.Tensor:
        return self.tensor(self.tree.child)

    @cached_property
    def _payoff(self) -> torch.Tensor:
        return self.tensor(payoff_table(self.rules, self.tree).astype(np.float32))

    def state(self, node: int = 0) -> PublicState:
        """The public state of a node, by default of the root."""
        return ListedState(self.rules, self.tree, node)

    def node_of(self, state: PublicState) -> int:
        assert isinstance(state, ListedState)
        return state.node

    def chips(self, nodes: Ints) -> Ints:
        return self.tree.chips[nodes]

    def paths(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        rows, before, actions = [np.empty(0, np.int64)], [], []
        for node in np.unique(nodes):
            here = np.flatnonzero(nodes == node)
            for earlier, action in self.tree.path(int(node)):
                rows.append(here)
                before += [earlier] * len(here)
                actions += [action] * len(here)
        return np.concatenate(rows), np.array(before, np.int64), np.array(actions, np.int64)

    def start(self, deals: Deals) -> torch.Tensor:
        return deals.traversal.new_zeros(len(deals))

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return self._child[node, action]

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        return self._payoff[node, deals.hidden[row]]


_NEEDS = "Public-chance traversals, a table for the first round and targets in units of the pot need a poker game"


def poker_game(game: Game, needs: str = _NEEDS) -> PokerGame:
    """The game, if it is a poker game with a list of its nodes. Raises GameError that begins with `needs` otherwise."""
    if isinstance(game, PokerGame):
        return game
    if isinstance(game, Poker):
        raise too_large(game.name)
    raise GameError(f"{needs}, but '{game.name}' is not one.")


def payoff_table(rules: PokerRules, tree: PublicTree) -> npt.NDArray[np.float64]:
    """Payoffs of player 0 at every node for a lost, tied and won showdown, float64 [N, 3] in units; 0 at decision nodes."""
    lose, win = -tree.chips[:, 0], tree.chips[:, 1]
    table = np.zeros((tree.num_nodes, 3))
    table[tree.ended == SHOWDOWN] = np.stack([lose, np.zeros_like(lose), win], axis=1)[tree.ended == SHOWDOWN]
    folded = tree.ended == FOLDED
    table[folded] = np.where(tree.winner == 0, win, lose)[folded, None]
    return table / rules.unit_chips


def bet_features(rules: PokerRules, tree: PublicTree) -> npt.NDArray[np.float32]:
    """Features of the betting for networks: a few numbers for every place of an action, float32 [decisions, F].

    In limit games two: the action's chips in units, and whether it occurred. In pot betting, where chips grow
    exponentially, three: the chips as a share of the pot before the action, whether it occurred, and whether it is the
    one to be chosen now. Source: section 5.1 of the ICML paper, and of its first version.
    """
    bets = tree.bets[: tree.num_decisions]
    occurred = bets >= 0
    if rules.betting == "limit":
        return np.concatenate([np.where(occurred, bets / rules.unit_chips, 0), occurred], axis=1).astype(np.float32)
    chips = np.where(occurred, bets, 0).astype(np.float64)
    before = sum(rules.blinds) + np.cumsum(chips, axis=1) - chips
    current = np.zeros_like(occurred)
    rounds = occurred.reshape(len(bets), rules.num_rounds, tree.positions)
    rows, round_ = np.arange(len(bets)), tree.round[: tree.num_decisions]
    current[rows, round_ * tree.positions + rounds.sum(2)[rows, round_]] = True
    return np.concatenate([chips / before, occurred, current], axis=1).astype(np.float32)


@nb.njit(cache=True, nogil=True)
def _cards_and_results(
    cards: npt.NDArray[np.uint8],
    hole: int,
    board_cards: Ints,
    groups: Ints,
    num_suits: int,
    canonical: bool,
) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Visible cards by player and round, uint8 [B, 2, R, C], and 0, 1, 2 for a lost, tied, won showdown of player 0."""
    count = cards.shape[0]
    rounds = len(board_cards)
    board = cards.shape[1] - 2 * hole
    slots = hole + board
    visible = np.full((count, 2, rounds, slots), NO_CARD, np.uint8)
    result = np.empty(count, np.int64)
    best = np.empty(2, np.int64)
    hand = np.empty(slots, np.uint8)
    for row in range(count):
        for player in range(2):
            hand[:hole] = cards[row, player * hole : (player + 1) * hole]
            hand[hole:] = cards[row, 2 * hole :]
            best[player] = strength(hand, num_suits)
            seen = hole
            for round_ in range(rounds):
                seen += board_cards[round_]
                cards_seen = visible[row, player, round_]
                cards_seen[:seen] = hand[:seen]
                if canonical:
                    canonicalise_row(cards_seen, groups, num_suits)
                else:
                    sort_groups(cards_seen, groups)
        result[row] = 1 + (best[0] > best[1]) - (best[0] < best[1])
    return visible, result
