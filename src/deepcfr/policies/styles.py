"""Styles of play: what any policy becomes when its player is braver, more timid, random or plain.

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker", section 8)
plays a bot against such variants of itself and describes them in words; the numbers below are ours. Legal actions have an
order: fold, check or call, then raises, the smaller ones first. A step up moves a share of every action's probability to
the next legal one of this order, and a step down to the one before; what is already at the end stays. So the styles change
a pure strategy as well as a mixed one, and rows remain distributions over legal actions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.betting import CALL
from deepcfr.games.poker import PokerGame
from deepcfr.games.strength import HandStrengths, strength_tables
from deepcfr.games.strength_kernels import UNIT
from deepcfr.policies.base import Policy, UniformPolicy, board_strategy
from deepcfr.ranges.boards import Board, Boards, RoundTree
from deepcfr.types import Infosets

STYLES = ("aggressive", "tight", "random", "calling-machine", "tight-aggressive", "deterministic", "initial")
STEP = 0.5  # share of an action's probability that a step moves
CALLING = 0.75  # least probability with which a calling machine calls; above a half, so above any other action's
STRONG = 0.5  # win rate against a random hand above which tight-aggressive play is aggressive
_CARDS_ONLY = (
    "aggressive",
    "tight",
    "calling-machine",
    "tight-aggressive",
)  # styles that know actions by their meaning

Floats = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]


def styled(policy: Policy, style: str, initial: Policy | None = None) -> Policy:
    """`policy` played in a style; `initial` is what its training started from, by default what `policy` says itself.

    A policy that says nothing of it started from all legal actions alike.
    Raises GameError for a style that is none of STYLES, for one that needs a poker game in another game, and for
    tight-aggressive play in a game with more than two hole cards.
    """
    game = policy.game
    if style not in STYLES:
        raise GameError(f"'{style}' is no style of play: {', '.join(STYLES)} are.")
    if style in _CARDS_ONLY and not isinstance(game, PokerGame):
        raise GameError(f"The style {style} is of poker games, and '{game.name}' is not one.")
    if style == "random":
        return UniformPolicy(game)
    if style == "initial":
        begin = initial_of(policy)
        return initial or (begin() if begin else UniformPolicy(game))
    if style == "tight-aggressive" and isinstance(game, PokerGame) and game.rules.hole_cards > 2:
        raise GameError(f"Win rates need one or two hole cards, but {game.name} deals {game.rules.hole_cards}.")
    return StyledPolicy(policy, style)


@runtime_checkable
class Started(Protocol):
    """A policy that knows what its training started from."""

    @property
    def initial(self) -> Callable[[], Policy] | None:
        """Makes it; None if that was all legal actions alike."""
        ...


def initial_of(policy: Policy) -> Callable[[], Policy] | None:
    """Makes what a policy's training started from; None if that was all legal actions alike, or is not said."""
    return policy.initial if isinstance(policy, Started) else None


class StyledPolicy:
    """A policy in one of the styles that look at it; see `styled`."""

    def __init__(self, policy: Policy, style: str) -> None:
        self.game: Game = policy.game
        self.kind = f"{policy.kind}, {style}"
        self.policy, self.style = policy, style
        self.initial = initial_of(policy)
        self._legal = policy.game.encoding.legal.cpu().numpy()

    @property
    def boards(self) -> Boards | None:
        """Those that the policy keeps its tables by, if it does."""
        boards: Boards | None = getattr(self.policy, "boards", None)
        return boards

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        plain = self.policy.probabilities(infosets).double().cpu().numpy()
        strong = self._is_strong(infosets.cards.cpu()) if self.style == "tight-aggressive" else None
        legal = self._legal[infosets.node.cpu().numpy().astype(np.int64)]
        return torch.from_numpy(play_style(self.style, plain, legal, strong)).to(self.game.device)

    def on_board(self, tree: RoundTree, board: Board) -> Floats:
        """The probability of every edge of the round with every view of the board, [E, U]."""
        plain = np.zeros((len(tree.nodes), len(board), self._legal.shape[1]))
        plain[tree.edge_node, :, tree.edge_action] = board_strategy(self.policy)(tree, board)
        cards = torch.from_numpy(board.view_cards)
        strong = self._is_strong(cards) if self.style == "tight-aggressive" else None
        played = play_style(self.style, plain, self._legal[tree.nodes][:, None], strong)
        return played[tree.edge_node, :, tree.edge_action]

    def _is_strong(self, cards: torch.Tensor) -> Flags:
        """Whether a hand beats a random one more often than not, all cards to come considered, bool [I] of uint8 [I, C]."""
        strong: Flags = (self._strengths(cards)[:, 0] > STRONG + 1 / UNIT).numpy()  # the table rounds to whole units
        return strong

    @cached_property
    def _strengths(self) -> HandStrengths:
        encoding = self.game.encoding
        return HandStrengths(strength_tables(encoding.card_groups, encoding.num_ranks, encoding.num_suits))


def play_style(style: str, plain: Floats, legal: Flags, strong: Flags | None) -> Floats:
    """Probabilities [..., A] in a style; `legal` and `strong`, which is without the last axis, broadcast against them.

    Of equal probabilities, deterministic play takes the first one's action.
    """
    if style == "deterministic":
        return _one_action(np.where(legal, plain, -1.0).argmax(-1), plain.shape[-1])
    if style == "calling-machine":
        calls = _one_action(np.full(plain.shape[:-1], CALL), plain.shape[-1])
        return np.where(legal[..., CALL, None], CALLING * calls + (1 - CALLING) * plain, plain)
    if style == "aggressive":
        return _step(plain, legal)
    tight = np.ascontiguousarray(
        _step(plain[..., ::-1], legal[..., ::-1])[..., ::-1]
    )  # torch takes no negative strides
    if style == "tight":
        return tight
    assert strong is not None
    return np.where(strong[..., None], _step(plain, legal), tight)


def _one_action(action: npt.NDArray[np.int64], num_actions: int) -> npt.NDArray[np.float64]:
    """Rows [..., A] that play `action` [...] for sure."""
    rows: npt.NDArray[np.float64] = (action[..., None] == np.arange(num_actions)).astype(np.float64)
    return rows


def _step(plain: Floats, legal: Flags) -> Floats:
    """Move a share of every legal action's probability to the next legal one; the last one keeps its own."""
    moved = plain.copy()
    carried = np.zeros(plain.shape[:-1])
    for action in range(plain.shape[-1]):
        leaves = np.where(legal[..., action], STEP * plain[..., action], 0.0)
        after = legal[..., action + 1 :].any(-1)
        moved[..., action] += np.where(legal[..., action], carried, 0.0) - np.where(after, leaves, 0.0)
        carried = np.where(legal[..., action], leaves, carried)
    return moved
