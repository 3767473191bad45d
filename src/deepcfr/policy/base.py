"""The contract of policies, the uniform policy, and what a game offers that computes exact values of policies itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, TypeGuard

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board, Boards
from deepcfr.boards.rounds import RoundTree
from deepcfr.core.types import Cards, Doubles, Infosets, Ints
from deepcfr.game.base import Game
from deepcfr.game.betting import BettingState
from deepcfr.game.poker import Poker, PokerGame
from deepcfr.game.public_state import PublicState
from deepcfr.game.rules import PokerRules

RowStrategy = Callable[[Ints, Ints], npt.NDArray[np.floating]]
"""(node [M], hand [M]) to probabilities [M, A]; hands are indices into the cards given to `Policy.row_strategy`."""


def fewest_deals(policies: Sequence[Policy]) -> int | None:
    """The most deals of a match that all of some policies can play together; None for any."""
    return min((policy.most_deals for policy in policies if policy.most_deals), default=None)


class PlaysRealSizes(Protocol):
    """A policy's play in no-limit poker with bets of any size from a round on, in place of translated bets."""

    first: int  # the round

    def strategy(
        self, rules: PokerRules, begin: PublicState, real: BettingState, holes: Cards, board: Sequence[int]
    ) -> dict[int, Doubles]:
        """The probability of each action of the game `rules` at `real` with each of `holes` [H, hole cards], each [H].

        `begin` is where the policy's own betting was when the round began.
        """
        ...


class Policy(ABC):
    """A behaviour strategy of both players. A subclass sets `game` and `kind` and implements `probabilities`.

    Full-width passes over poker games need all hands of a board at once. `on_hands`, `on_board` and `row_strategy`
    compute them from `probabilities`; a subclass overrides those that it can compute faster.
    """

    game: Game  # the game whose infosets it accepts
    kind: str  # a short description for reports
    initial: Callable[[], Policy] | None = None  # makes the policy before training; None if that is uniform
    boards: Boards | None = None  # the only boards that `on_board` accepts; None if it accepts any
    whole_rounds = False  # whether `on_board` needs the whole tree of a round, not only some of its lines
    real_sizes: PlaysRealSizes | None = None  # None if bets of other sizes than its game's are translated in all rounds
    most_deals: int | None = (
        None  # of a match to be played together, for a policy that keeps what it finds; None for any
    )

    @abstractmethod
    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        """Action probabilities, float [I, A]: 0 for illegal actions, rows sum to 1."""

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        """Probabilities [n, U, A] of hands `cards` (uint8 [U, C], in the game's encoding) at `nodes` [n] of one round."""
        device = self.game.device
        node = torch.from_numpy(nodes).to(device).repeat_interleave(len(cards))
        rows = torch.from_numpy(cards).to(device).repeat(len(nodes), 1)
        return self.probabilities(Infosets(node, rows)).cpu().numpy().reshape(len(nodes), len(cards), -1)

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        """The probability of every edge of the round with every hand of the board, [E, U]: a `BoardStrategy`."""
        if not len(tree.nodes):  # both players are all-in on all lines
            return np.empty((0, len(board.visible_cards)))
        return self.on_hands(tree.nodes, board.visible_cards)[tree.edge_node, :, tree.edge_action]

    def row_strategy(self, player: int, round_: int, cards: Cards) -> RowStrategy:  # noqa: ARG002
        """The policy for single pairs of a node of `player` in a round and one of the hands `cards`, uint8 [U, C]."""
        device = self.game.device

        def ask(node: Ints, hand: Ints) -> npt.NDArray[np.floating]:
            infosets = Infosets(torch.from_numpy(node).to(device), torch.from_numpy(cards[hand]).to(device))
            return self.probabilities(infosets).cpu().numpy()

        return ask


def boards_for(policy: Policy) -> Boards:
    """The boards for evaluating a policy of poker: its own, otherwise all, merged if the game has canonical suits."""
    game = policy.game
    assert isinstance(game, PokerGame)
    return policy.boards or Boards(game, merge=game.suits == "canonical")


OnPart = Callable[[int, int], None]
"""Reports progress: (done, total)."""
Payoffs = tuple[tuple[float, float], tuple[float, float]]


class MeasuredGame(Game, Protocol):
    """A game too large to list that computes exact values of its policies, which it knows best how to: `examples/`."""

    def exact_payoffs(self, first: Policy, second: Policy, threads: int = 1, on_part: OnPart | None = None) -> Payoffs:
        """For each player its mean payoffs against `second` in the other seat: by a best response, and by `first`."""
        ...

    def average(self, policies: Sequence[Policy], weights: npt.NDArray[np.float64], kind: str) -> Policy:
        """The average of policies by own reach times `weights`, as in `policy.mixture`; plain where nobody gets to."""
        ...


def measures_itself(game: object) -> TypeGuard[MeasuredGame]:
    """Whether a game has the optional methods `exact_payoffs` and `average`."""
    return callable(getattr(game, "exact_payoffs", None))


def legal_at(game: Game, node: torch.Tensor) -> torch.Tensor:
    """The legal actions at public indices of infosets `node` [I], bool [I, A]; those of poker are its nodes."""
    return game.legal[node] if isinstance(game, Poker) else game.encoding.legal[node]


class UniformPolicy(Policy):
    """Plays every legal action with the same probability."""

    kind = "uniform"

    def __init__(self, game: Game) -> None:
        self.game = game

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        legal = legal_at(self.game, infosets.node.long()).double()
        return legal / legal.sum(1, keepdim=True)

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        legal = legal_at(self.game, torch.from_numpy(nodes)).cpu().double().numpy()
        share = legal / legal.sum(1, keepdims=True)
        return np.broadcast_to(share[:, None], (len(nodes), len(cards), share.shape[1]))
