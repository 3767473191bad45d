"""Several policies of one game played as one: Lin's sum of probabilities, and two readings of their mixture.

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker", 6.4)
adds up the members' probabilities at every infoset. That is not a mixture of strategies: a member has the same weight
where it never plays to as where it always does. The mixture weights members by their own reach (see
`deepcfr.policies.mixture`). Drawing one member for each game and playing it to the end is the same strategy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Game
from deepcfr.games.class_game import ClassGame
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.openspiel_tree import same_game
from deepcfr.games.poker import Poker
from deepcfr.policies.base import Policy, fewest_deals, measures_itself
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.ranges.boards import Board
from deepcfr.ranges.rounds import RoundTree
from deepcfr.types import Infosets

RULES = ("sum", "mixture", "member")  # ways to combine the members into one policy


def ensemble(policies: Sequence[Policy], rule: str) -> Policy:
    """Combine `policies` with equal weights into one policy; an ensemble of one is its member.

    `sum` adds their probabilities. `mixture` plays their average by own reach. `member` draws one policy for each game;
    its probabilities are the same average. The initial policy is that of the first policy. Raises GameError for an
    unknown rule, for no policies, and for policies that do not see the same game.
    """
    if rule not in RULES:
        raise GameError(f"'{rule}' is not an ensemble rule. Choose one of {', '.join(RULES)}.")
    if not policies:
        raise GameError("An ensemble needs at least one policy, but none was given.")
    for policy in policies[1:]:
        _require_same_view(policies[0].game, policy.game)
    if len(policies) == 1:
        return policies[0]
    if rule == "sum":
        return SumPolicy(policies)
    # the average of many nodes by own reach takes long where it is not kept by board, and the draw plays it, too
    drawn = rule == "member" or isinstance(policies[0].game, LadderGame)
    kind = f"{'one' if drawn else 'mixture'} of {len(policies)} policies"
    members = MixturePolicy(policies[0].game, policies, [1.0] * len(policies), kind)
    members.initial = policies[0].initial
    return members if drawn else AveragedPolicy(members)


class SumPolicy(Policy):
    """The sum of the members' probabilities at every infoset, normalised. Source: Lin 2024, section 6.4 and figure 6."""

    whole_rounds = True

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.game: Game = policies[0].game
        self.kind = f"sum of {len(policies)} policies"
        self.policies = list(policies)
        self.initial = policies[0].initial
        # all members that store tables by board have the same boards
        self.boards = next((policy.boards for policy in policies if policy.boards), None)
        self.most_deals = fewest_deals(policies)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        total = self.policies[0].probabilities(infosets).double()
        for policy in self.policies[1:]:
            total = total + policy.probabilities(infosets)
        return total / total.sum(1, keepdim=True)

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        total = self.policies[0].on_board(tree, board).astype(np.float64)
        for policy in self.policies[1:]:
            total += policy.on_board(tree, board)
        total /= np.add.reduceat(total, tree.first_edge[:-1])[tree.edge_node]
        return total


class AveragedPolicy(Policy):
    """A mixture that plays its average at every infoset instead of drawing a member for each game."""

    whole_rounds = True

    def __init__(self, mixture: MixturePolicy) -> None:
        self.game, self.kind, self.mixture, self.initial = mixture.game, mixture.kind, mixture, mixture.initial
        self.most_deals = mixture.most_deals

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self.mixture.probabilities(infosets)

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        return self.mixture.on_board(tree, board)


def _require_same_view(first: Game, second: Game) -> None:
    """Raise GameError unless policies of the second game accept infosets of the first."""
    if isinstance(first, Poker) and isinstance(second, Poker):
        same = (type(first), first.source, first.suits) == (type(second), second.source, second.suits)
    elif isinstance(first, OpenSpielGame) and isinstance(second, OpenSpielGame):
        same = same_game(first.spiel_game, second.spiel_game)
    elif isinstance(first, ClassGame) or measures_itself(first):
        same = type(first) is type(second) and first.name == second.name
    else:
        same = first is second
    if not same:
        raise GameError(
            f"The policies of an ensemble must see the same game in the same way, but one sees {_view(first)} and another "
            f"{_view(second)}."
        )


def _view(game: Game) -> str:
    return f"{game.name} in {game.suits} suits" if isinstance(game, Poker) else game.name
