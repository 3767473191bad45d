"""Styles of play: variants of any policy that are more aggressive, tighter, random or deterministic.

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker", section
8) plays a bot against such variants of itself and describes them in words. We chose the numbers below. Legal actions
are ordered: fold, check or call, then raises, smallest first. A step up moves a share of every action's probability to
the next legal action in this order, a step down to the previous one; the last action keeps its probability. So styles
also change pure strategies, and rows remain distributions over legal actions.

Scripted policies, reference opponents that ignore the cards, are here too, and thresholds, which leave out the actions
that a strategy rarely plays (Ganzfried, Sandholm and Waugh 2012, section 3).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board
from deepcfr.boards.rounds import RoundTree
from deepcfr.buckets.buckets import lossless
from deepcfr.buckets.texture import Buckets, TextureBuckets
from deepcfr.core.errors import GameError
from deepcfr.core.types import Bools, Cards, Floats, Infosets, Ints
from deepcfr.game.base import Game
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.betting import CALL, FOLD, RAISE
from deepcfr.game.hands import UNIT
from deepcfr.game.poker import Poker, PokerGame
from deepcfr.game.strength import HandStrengths, strength_tables
from deepcfr.policy.base import Policy, RowStrategy, UniformPolicy, legal_at
from deepcfr.sample.initial import win_rates
from deepcfr.sample.traversal_tree import seen_buckets

STYLES = ("aggressive", "tight", "random", "calling-machine", "tight-aggressive", "deterministic", "initial")
STEP = 0.5  # share of an action's probability that one step moves
CALLING = 0.75  # minimal call probability of a calling machine; above 1/2, so larger than any other action's
STRONG = 0.5  # win rate against a random hand above which tight-aggressive play is aggressive
# styles that depend on the meaning of actions
_CARDS_ONLY = ("aggressive", "tight", "calling-machine", "tight-aggressive")


def styled(policy: Policy, style: str) -> Policy:
    """`policy` played in a style; `initial` is its policy before training, uniform if it does not say which.

    Raises GameError for an unknown style, for a poker style in another
    game, and for tight-aggressive play in a game with more than two hole cards.
    """
    game = policy.game
    if style not in STYLES:
        raise GameError(f"'{style}' is not a style of play. Choose one of {', '.join(STYLES)}.")
    if style in _CARDS_ONLY and not isinstance(game, Poker):
        raise GameError(f"The style {style} is for poker games only, but '{game.name}' is not one.")
    if style == "random":
        return UniformPolicy(game)
    if style == "initial":
        return policy.initial() if policy.initial else UniformPolicy(game)
    if style == "tight-aggressive" and isinstance(game, PokerGame) and game.rules.hole_cards > 2:
        raise GameError(f"Win rates need one or two hole cards, but {game.name} deals {game.rules.hole_cards}.")
    return StyledPolicy(policy, style)


class StyledPolicy(Policy):
    """A policy played in one of the styles that transform its probabilities."""

    whole_rounds = True

    def __init__(self, policy: Policy, style: str) -> None:
        self.game: Game = policy.game
        self.kind = f"{policy.kind}, {style}"
        self.policy, self.style = policy, style
        self.initial, self.boards, self.most_deals = policy.initial, policy.boards, policy.most_deals

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        plain = self.policy.probabilities(infosets).double().cpu().numpy()
        strong = self._is_strong(infosets.node, infosets.cards.cpu())
        return torch.from_numpy(self._played(plain, infosets.node, strong)).to(self.game.device)

    def on_board(self, tree: RoundTree, board: Board) -> Floats:
        plain = np.zeros((len(tree.nodes), len(board), self.game.encoding.num_actions))
        plain[tree.edge_node, :, tree.edge_action] = self.policy.on_board(tree, board)
        nodes = torch.from_numpy(tree.nodes)
        strong = self._is_strong(nodes[:1], torch.from_numpy(board.visible_cards))
        return self._played(plain, nodes[:, None], strong)[tree.edge_node, :, tree.edge_action]

    def _played(self, plain: Floats, node: torch.Tensor, strong: Bools | None) -> Floats:
        """The strategies `plain` [..., A] at `node` [...] in the style."""
        legal = legal_at(self.game, node.flatten().long().to(self.game.device)).cpu().numpy()
        return play_style(self.style, plain, legal.reshape(*node.shape, -1), strong)

    def _is_strong(self, node: torch.Tensor, cards: torch.Tensor) -> Bools | None:
        """Whether a hand wins more than half of all showdowns against random hands, bool [I], for uint8 [I, C].

        `node` is that of each or of all. None for styles to which it does not matter. In a game with bet sizes it is
        the simulated win rate of the hand's texture bucket (Lin 2024, sections 7 and 8), or of its own bucket in games
        without exactly two hole cards.
        """
        if self.style != "tight-aggressive":
            return None
        if isinstance(self.game, BetSizePoker):
            buckets, rates = self._rates
            rounds = np.broadcast_to(self.game.round[node].numpy(), len(cards))
            strong = np.empty(len(cards), bool)
            for round_ in np.unique(rounds).tolist():
                here = rounds == round_
                strong[here] = rates[round_][seen_buckets(buckets, round_, cards.numpy()[here])] > STRONG
            return strong
        return (self._strengths(cards)[:, 0] > STRONG + 1 / UNIT).numpy()  # the table rounds to whole units

    @cached_property
    def _strengths(self) -> HandStrengths:
        encoding = self.game.encoding
        return HandStrengths(strength_tables(encoding.card_groups, encoding.num_ranks, encoding.num_suits))

    @cached_property
    def _rates(self) -> tuple[Buckets, list[Floats]]:
        """Buckets of a game with bet sizes, and the win rates of those of each round."""
        assert isinstance(self.game, BetSizePoker)
        deck = self.game.source.deck
        buckets = TextureBuckets(deck) if deck.hole_cards == 2 else lossless(deck)
        return buckets, [*win_rates(buckets)]


def play_style(style: str, plain: Floats, legal: Bools, strong: Bools | None) -> Floats:
    """Probabilities [..., A] in a style; `legal` [..., A] and `strong` [...] broadcast against them.

    Deterministic play takes the first action of equal probabilities.
    """
    if style == "deterministic":
        return _one_action(np.where(legal, plain, -1.0).argmax(-1), plain.shape[-1])
    if style == "calling-machine":
        calls = _one_action(np.full(plain.shape[:-1], CALL), plain.shape[-1])
        return np.where(legal[..., CALL, None], CALLING * calls + (1 - CALLING) * plain, plain)
    if style == "aggressive":
        return _step(plain, legal)
    # torch does not accept negative strides
    tight = np.ascontiguousarray(_step(plain[..., ::-1], legal[..., ::-1])[..., ::-1])
    if style == "tight":
        return tight
    assert strong is not None
    return np.where(strong[..., None], _step(plain, legal), tight)


def _one_action(action: Ints, num_actions: int) -> npt.NDArray[np.float64]:
    """Rows [..., A] that play `action` [...] with probability 1."""
    return (action[..., None] == np.arange(num_actions)).astype(np.float64)


def _step(plain: Floats, legal: Bools) -> Floats:
    """Move a share of every legal action's probability to the next legal action; the last action keeps its own."""
    moved = plain.copy()
    carried = np.zeros(plain.shape[:-1])
    for action in range(plain.shape[-1]):
        leaves = np.where(legal[..., action], STEP * plain[..., action], 0.0)
        after = legal[..., action + 1 :].any(-1)
        moved[..., action] += np.where(legal[..., action], carried, 0.0) - np.where(after, leaves, 0.0)
        carried = np.where(legal[..., action], leaves, carried)
    return moved


# each style plays the first of its actions that is legal
_PREFERENCES: dict[str, tuple[int, ...]] = {"call": (CALL, RAISE, FOLD), "raise": (RAISE, CALL, FOLD)}
SCRIPTS = ("uniform", *_PREFERENCES)


class ScriptedPolicy(Policy):
    """Plays one action with probability 1 at every decision of a poker game: the first legal one of `preference`."""

    def __init__(self, game: Poker, preference: tuple[int, ...], kind: str) -> None:
        self.game, self.preference, self.kind = game, preference, kind

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        legal = legal_at(self.game, infosets.node.long())
        lowest = RAISE + legal[:, RAISE:].int().argmax(1)  # of several raises
        order = torch.stack([lowest if a == RAISE else torch.full_like(lowest, a) for a in self.preference], 1)
        first = legal.gather(1, order).int().argmax(1, keepdim=True)
        return torch.zeros(legal.shape, dtype=torch.float64, device=legal.device).scatter_(
            1, order.gather(1, first), 1.0
        )

    def on_hands(self, nodes: npt.NDArray[np.int64], cards: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
        node = torch.from_numpy(nodes).to(self.game.device)
        rows = self.probabilities(Infosets(node, torch.empty(len(nodes), 0))).cpu().numpy()
        return np.broadcast_to(rows[:, None], (len(nodes), len(cards), rows.shape[1]))


def scripted_policy(style: str, game: Game) -> Policy:
    """The policy of a style: `uniform` plays all legal actions equally, `call` always calls, `raise` raises if legal.

    Raises GameError for unknown styles, and for games other than poker.
    """
    if style not in SCRIPTS:
        raise GameError(f"'{style}' is not a scripted style. Choose one of {', '.join(SCRIPTS)}.")
    if not isinstance(game, Poker):
        raise GameError(f"Scripted styles play poker games only, but '{game.name}' is not one.")
    if style == "uniform":
        return UniformPolicy(game)
    return ScriptedPolicy(game, _PREFERENCES[style], f"always {style}")


def without_rare(strategies: torch.Tensor, threshold: float) -> torch.Tensor:
    """Strategies [..., A] without actions below `threshold`, unless no action of a row is as probable."""
    least = strategies.amax(-1, keepdim=True).clamp(max=threshold)
    kept = torch.where(strategies >= least, strategies, 0)
    return kept / kept.sum(-1, keepdim=True)


class ThresholdPolicy(Policy):
    """A policy without the actions that it plays less often than `threshold`."""

    def __init__(self, policy: Policy, threshold: float) -> None:
        self.game, self.policy, self.threshold = policy.game, policy, threshold
        self.kind = f"{policy.kind}, threshold {threshold:g}"
        self.initial, self.boards, self.most_deals = policy.initial, policy.boards, policy.most_deals

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return without_rare(self.policy.probabilities(infosets), self.threshold)

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        return without_rare(torch.from_numpy(self.policy.on_hands(nodes, cards)), self.threshold).numpy()

    def row_strategy(self, player: int, round_: int, cards: Cards) -> RowStrategy:
        ask = self.policy.row_strategy(player, round_, cards)
        return lambda node, hand: without_rare(torch.from_numpy(ask(node, hand)), self.threshold).numpy()
