"""Policies of raise-ladder games between their two forms: by listed nodes, as networks have them, and by positions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.compiled import nb
from deepcfr.errors import GameError
from deepcfr.games.ladder_betting import ACTOR, ROUND
from deepcfr.games.listed_ladder import ListedLadder, listed_game
from deepcfr.policies.base import LadderPolicy, Player, Policy
from deepcfr.types import NO_CARD, Infosets

Cards = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_ROWS = 1 << 16  # decisions of single hands that are asked for at a time


class SteppedPolicy(LadderPolicy):
    """A policy of listed nodes at positions of the betting machine. A view is what both players see in every round."""

    def __init__(self, policy: Policy) -> None:
        assert isinstance(policy.game, ListedLadder)
        self.policy, self.listed = policy, policy.game
        self.game, self.kind, self.most_deals = policy.game.stepped, policy.kind, policy.most_deals
        before = policy.initial
        self.initial = (lambda: SteppedPolicy(before())) if before else None
        self._seen = sum(policy.game.card_groups)
        self.width = 2 * policy.game.rules.num_rounds * self._seen

    def look(self, cards: Cards, numbers: Ints, stream: int) -> Ints:  # noqa: ARG002
        views = self.listed.deals_of(np.ascontiguousarray(cards)).views.cpu().numpy()
        return views.reshape(len(cards), self.width).astype(np.int64)

    def probabilities(self, positions: Ints, views: Ints) -> Floats:
        rounds, device = self.game.rules.num_rounds, self.listed.device
        seen = views.reshape(len(views), 2, rounds, self._seen)
        own = seen[np.arange(len(views)), positions[:, ACTOR], positions[:, ROUND]].astype(np.uint8)
        nodes = self.listed.nodes_at(positions)
        infosets = Infosets(torch.from_numpy(nodes).to(device), torch.from_numpy(own).to(device))
        strategy: Floats = self.policy.probabilities(infosets).double().cpu().numpy()
        return strategy


class ListedPolicy(Policy):
    """A policy of positions as one of listed nodes. Raises GameError for one that is drawn for each deal."""

    game: ListedLadder

    def __init__(self, policy: LadderPolicy, game: ListedLadder) -> None:
        if policy.draws:
            raise GameError(
                f"The policy ({policy.kind}) draws one of {policy.draws} policies for each game, so it has no strategy at "
                "an infoset: take its members or an ensemble by sum."
            )
        self.policy, self.game, self.kind = policy, game, policy.kind
        before = policy.initial
        self.initial = (lambda: ListedPolicy(before(), game)) if before else None

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        positions = self.game.positions[infosets.node.cpu().numpy()]
        deals = self._deals(infosets.cards.cpu().numpy(), positions[:, ACTOR])
        views = self.policy.look(deals, np.zeros(len(deals), np.int64), 0)
        return torch.from_numpy(self.policy.probabilities(positions, views)).to(infosets.node.device)

    def on_hands(self, nodes: Ints, cards: Cards) -> Floats:
        rows = np.empty((len(nodes), len(cards), self.game.encoding.num_actions))
        positions = self.game.positions[nodes]
        for player in np.unique(positions[:, ACTOR]):
            here = np.flatnonzero(positions[:, ACTOR] == player)
            deals = self._deals(cards, np.full(len(cards), player))  # the same at all nodes of a player
            views = self.policy.look_in_round(deals, int(player), int(positions[0, ROUND]))
            for some in np.array_split(here, 1 + len(here) * len(cards) // _ROWS):
                rows[some] = self.policy.on_views(positions[some], views)
        return rows

    def _deals(self, cards: Cards, actor: Ints) -> Cards:
        """Deals with what each actor [I] sees, uint8 [I, C]."""
        rules = self.game.rules
        deals = np.empty((len(cards), 2 * rules.hole_cards + sum(rules.board_cards)), np.uint8)
        _complete(cards, actor, rules.hole_cards, rules.num_cards, deals)
        return deals


@nb.njit(cache=True, nogil=True)
def _complete(cards: Cards, actor: Ints, hole: int, num_cards: int, deals: Cards) -> None:
    """Fill `deals` [I, slots] with what each actor sees, and what it does not see with the lowest other cards."""
    taken = np.empty(num_cards, np.bool_)
    for row in range(len(cards)):
        taken[:] = False
        for card in cards[row]:
            if card != NO_CARD:
                taken[card] = True
        free = 0
        for slot in range(deals.shape[1]):
            own = slot - hole * actor[row]  # the place in the actor's hand
            place = own if 0 <= own < hole else slot - hole if slot >= 2 * hole else -1
            card = cards[row, place] if place >= 0 else NO_CARD
            if card == NO_CARD:
                while taken[free]:
                    free += 1
                card = np.uint8(free)
                taken[free] = True
            deals[row, slot] = card


def stepped(player: Player) -> Player:
    """The form of a player for play: by positions in a raise-ladder game, unchanged in other games."""
    return SteppedPolicy(player) if isinstance(player, Policy) and isinstance(player.game, ListedLadder) else player


def listed(player: Player) -> Policy:
    """The form of a player that has a list of nodes. Raises GameError for a raise-ladder game that is too large to list."""
    if isinstance(player, SteppedPolicy):
        return player.policy
    return ListedPolicy(player, listed_game(player.game.rules)) if isinstance(player, LadderPolicy) else player
