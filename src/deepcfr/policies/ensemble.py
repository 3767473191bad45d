"""Several policies of one game played as one: Lin's sum of probabilities, and two readings of their mixture.

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker", 6.4) adds
up the members' probabilities at every infoset. That is no mixture of strategies: a member counts as much where it never
comes as where it always does. The mixture weighs members by their own reach (see `deepcfr.policies.mixture`), and playing
one member from the first action to the last, drawn anew for each game, is the same strategy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.poker import PokerGame
from deepcfr.policies.base import Policy, board_strategy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.styles import initial_of
from deepcfr.ranges.boards import Board, Boards, RoundTree
from deepcfr.types import Infosets

RULES = ("sum", "mixture", "member")  # how an ensemble makes one policy of its members


def ensemble(policies: Sequence[Policy], rule: str) -> Policy:
    """`policies`, all with the same weight, as one; an ensemble of one is its member.

    `sum` adds their probabilities, `mixture` plays their average by own reach, and `member` draws one of them for each
    game: whoever plays games asks it for the draw, and as a policy it is the same average. What training started from is
    what that of the first policy did.
    Raises GameError for another rule, for no policies, and for policies that do not see the same game.
    """
    if rule not in RULES:
        raise GameError(f"'{rule}' is no rule of an ensemble: {', '.join(RULES)} are.")
    if not policies:
        raise GameError("An ensemble needs at least one policy, and none was given.")
    for policy in policies[1:]:
        _require_same_view(policies[0].game, policy.game)
    if len(policies) == 1:
        return policies[0]
    if rule == "sum":
        return SumPolicy(policies)
    kind = f"{'one' if rule == 'member' else 'mixture'} of {len(policies)} policies"
    members = MixturePolicy(policies[0].game, policies, [1.0] * len(policies), kind)
    members.initial = initial_of(policies[0])
    return members if rule == "member" else AveragedPolicy(members)


class SumPolicy:
    """The sum of the members' probabilities at every infoset, normalised. Source: Lin 2024, section 6.4 and figure 6."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.game: Game = policies[0].game
        self.kind = f"sum of {len(policies)} policies"
        self.policies = list(policies)
        self.initial = initial_of(policies[0])

    @property
    def boards(self) -> Boards | None:
        """Those that a member keeps its tables by, if one does: boards of a game are the same for all of them."""
        return next(filter(None, (getattr(policy, "boards", None) for policy in self.policies)), None)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        total = self.policies[0].probabilities(infosets).double()
        for policy in self.policies[1:]:
            total = total + policy.probabilities(infosets)
        return total / total.sum(1, keepdim=True)

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        """The probability of every edge of the round with every view of the board, [E, U]."""
        total = board_strategy(self.policies[0])(tree, board).astype(np.float64)
        for policy in self.policies[1:]:
            total += board_strategy(policy)(tree, board)
        total /= np.add.reduceat(total, tree.first_edge[:-1])[tree.edge_node]
        return total


class AveragedPolicy:
    """A mixture played as its average at every infoset, action by action, and not by drawing a member for each game."""

    def __init__(self, mixture: MixturePolicy) -> None:
        self.game, self.kind, self.mixture, self.initial = mixture.game, mixture.kind, mixture, mixture.initial

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self.mixture.probabilities(infosets)

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        """The probability of every edge of the round with every view of the board, [E, U]."""
        return self.mixture.on_board(tree, board)


def _require_same_view(first: Game, second: Game) -> None:
    """Raise GameError unless infosets of the first game can be given to policies of the second."""
    if isinstance(first, PokerGame) and isinstance(second, PokerGame):
        same = (first.rules, first.suits) == (second.rules, second.suits)
    elif isinstance(first, OpenSpielGame) and isinstance(second, OpenSpielGame):
        same = str(first.spiel_game) == str(second.spiel_game)
    else:
        same = first is second
    if not same:
        raise GameError(
            f"The policies of an ensemble must see the same game in the same way, but one sees {_view(first)} and another "
            f"{_view(second)}."
        )


def _view(game: Game) -> str:
    return f"{game.name} in {game.suits} suits" if isinstance(game, PokerGame) else game.name
