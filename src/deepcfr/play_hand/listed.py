"""Hands of games whose public tree is listed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.base import infosets_at
from deepcfr.games.betting import ACTION_LETTERS, NOT_TERMINAL, SHOWDOWN
from deepcfr.games.isomorphism import pack_cards
from deepcfr.games.poker import PokerGame, payoff_table
from deepcfr.play_hand.hand import Cards, Choice, Floats, Hand, showdown_results
from deepcfr.policies import query
from deepcfr.policies.base import Policy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.external import sample_actions
from deepcfr.types import Infosets


class ListedHand(Hand):
    """A hand of a game whose public tree is listed; with `cards` they are not dealt from the seed."""

    def __init__(
        self, game: PokerGame, policy: Policy, seed: int, number: int, cards: npt.NDArray[np.uint8] | None = None
    ) -> None:
        dealt = game.deal_cards(1, key(seed, "play", number)) if cards is None else cards
        super().__init__(seed, number, dealt)
        self.game, self.policy, self.rules = game, policy, game.rules
        self._deals = game.deals_of(self.cards, torch.tensor([number]))
        self.node = int(game.start(self._deals)[0])

    @property
    def over(self) -> bool:
        return bool(self.game.tree.ended[self.node] != NOT_TERMINAL)

    @property
    def actor(self) -> int:
        return int(self.game.tree.actor[self.node])

    @property
    def round(self) -> int:
        return int(self.game.tree.round[self.node])

    @property
    def showdown(self) -> bool:
        return bool(self.game.tree.ended[self.node] == SHOWDOWN)

    @property
    def chips(self) -> tuple[float, float]:
        first, second = (self.game.tree.chips[self.node] / self.rules.unit_chips).tolist()
        return first, second

    @property
    def won(self) -> float:
        at = torch.tensor([self.node], device=self._deals.traversal.device)
        gained = float(self.game.payoff(at, torch.zeros_like(at), self._deals)[0])
        return gained if self.person == 0 else 0.0 - gained

    def choices(self) -> list[Choice]:
        game, node = self.game, self.node
        return [
            Choice(action, query.action_name(game, node, action), ACTION_LETTERS[action])
            for action in query.legal_actions(game, node)
        ]

    def read(self, text: str) -> int | None:
        action = query.ACTION_KEYS.get(text.strip().lower())
        return action if action in query.legal_actions(self.game, self.node) else None

    def probabilities(self) -> dict[int, float]:
        row = self._row(self.policy)[0].tolist()
        return {action: row[action] for action in query.legal_actions(self.game, self.node)}

    def again(self) -> ListedHand:
        return ListedHand(self.game, self.policy, self.seed, self.number, self.cards)

    def chances(self, holes: npt.NDArray[np.uint8], steps: int | None = None) -> Floats:
        result = np.ones(len(holes))
        for node, action in self.game.tree.path(self.node)[:steps]:
            if self.game.tree.actor[node] != self.person:
                board = self.board_at(int(self.game.tree.round[node]))
                result *= hand_strategy(self.policy, self.game, node, holes, board)[:, action]
        return result

    def wins(self, holes: npt.NDArray[np.uint8]) -> Floats:
        by_result = payoff_table(self.rules, self.game.tree)[self.node]
        if not self.showdown:
            return np.full(len(holes), by_result[0] if self.person == 0 else -by_result[0])
        result = showdown_results(self.rules, self.hole(self.person), holes, self.board)
        gains: Floats = by_result[result] if self.person == 0 else -by_result[2 - result]
        return gains

    def _row(self, policy: Policy) -> torch.Tensor:
        at = torch.tensor([self.node], device=self._deals.traversal.device)
        return policy.probabilities(infosets_at(self.game, at, torch.zeros_like(at), self._deals))

    def _draw(self) -> int:
        policy = self.policy
        if isinstance(policy, MixturePolicy):  # one of its policies from the first action of a hand to its last
            policy = policy.draw(key(self.seed, "play", "draw"), self.number)
        at = torch.tensor([self.node], device=self._deals.traversal.device)
        chance = addressed_uniforms(key(self.seed, "play", "agent"), self._deals.traversal, at)
        return int(sample_actions(self._row(policy), chance)[0])

    def _advance(self, action: int) -> None:
        self.node = int(self.game.tree.child[self.node, action])


def hand_strategy(policy: Policy, game: PokerGame, node: int, holes: npt.NDArray[np.uint8], board: Cards) -> Floats:
    """What `policy` does at `node` with each of `holes` (uint8 [H, hole cards]) on `board`, float64 [H, A]."""
    rows = game.views_of(holes, board)
    _, example, view = np.unique(pack_cards(rows), return_index=True, return_inverse=True)
    infosets = Infosets(game.infoset[[node]].expand(len(example)), torch.from_numpy(rows[example]).to(game.device))
    strategy: Floats = policy.probabilities(infosets).double().cpu().numpy()[view]
    return strategy
