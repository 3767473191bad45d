"""Hands of raise-ladder games, whose tree is too large to list and is stepped instead."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import ConfigError
from deepcfr.games.betting import NOT_TERMINAL, SHOWDOWN
from deepcfr.games.ladder_betting import (
    ACTOR,
    CHIPS,
    ENDED,
    ROUND,
    LadderGame,
    advance,
    first_positions,
    gain,
)
from deepcfr.play_hand.hand import Choice, Floats, Hand, showdown_results
from deepcfr.policies import ladder_query
from deepcfr.policies.ladder import LadderPolicy
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.ladder import draw
from deepcfr.sampling.walk_tree import deal_cards, showdowns


class LadderHand(Hand):
    """A hand of a raise-ladder game."""

    def __init__(self, policy: LadderPolicy, seed: int, number: int) -> None:
        game: LadderGame = policy.game
        deck = game.rules.deck
        super().__init__(
            seed, number, deal_cards(1, np.uint64(key(seed, "play", number)), 0, deck.num_cards, game.slots)
        )
        self.game, self.policy, self.rules = game, policy, deck
        self._views = policy.look(self.cards, np.array([number]), key(seed, "play", "draw"))
        self.position = first_positions(game.ladder, 1)[0]

    @property
    def over(self) -> bool:
        return bool(self.position[ENDED] != NOT_TERMINAL)

    @property
    def actor(self) -> int:
        return int(self.position[ACTOR])

    @property
    def round(self) -> int:
        return int(self.position[ROUND])

    @property
    def showdown(self) -> bool:
        return bool(self.position[ENDED] == SHOWDOWN)

    @property
    def chips(self) -> tuple[float, float]:
        first, second = (self.position[CHIPS : CHIPS + 2] / self.game.rules.unit_chips).tolist()
        return first, second

    @property
    def won(self) -> float:
        result = int(showdowns(self.cards, self.rules.hole_cards, self.rules.num_suits)[0])
        return float(gain(self.position, self.person, result)) / self.game.rules.unit_chips

    def choices(self) -> list[Choice]:
        if self.over:
            return []
        game, at = self.game, self.position
        return [
            Choice(action, ladder_query.action_name(game, at, action), ladder_query.action_token(game, at, action))
            for action in ladder_query.legal_of(game, at)
        ]

    def read(self, text: str) -> int | None:
        if self.over:
            return None
        try:
            return ladder_query.read_action(self.game, self.position, text.strip())
        except ConfigError:
            return None

    def again(self) -> LadderHand:
        return LadderHand(self.policy, self.seed, self.number)

    def chances(self, holes: npt.NDArray[np.uint8], steps: int | None = None) -> Floats:
        held, result = self.rules.hole_cards, np.ones(len(holes))
        deals = np.repeat(self.cards, len(holes), axis=0)
        agent = 1 - self.person
        deals[:, agent * held : (agent + 1) * held] = holes
        # the numbers of all deals are this hand's, so that an ensemble draws what it has drawn in it
        views = self.policy.look(deals, np.full(len(holes), self.number), key(self.seed, "play", "draw"))
        position = first_positions(self.game.ladder, 1)[0]
        for step in self.steps[:steps]:
            if step.player == agent:
                positions = np.repeat(position[None], len(holes), axis=0)
                result *= self.policy.probabilities(positions, views)[:, step.action]
            advance(self.game.ladder, position, step.action)
        return result

    def wins(self, holes: npt.NDArray[np.uint8]) -> Floats:
        if not self.showdown:
            return np.full(len(holes), self.won)
        by_result = np.array([gain(self.position, self.person, result) for result in range(3)])
        result = showdown_results(self.rules, self.hole(self.person), holes, self.board)
        if self.person == 1:
            result = 2 - result
        gains: Floats = by_result[result] / self.game.rules.unit_chips
        return gains

    def probabilities(self) -> dict[int, float]:
        row = self.policy.probabilities(self.position[None], self._views)[0]
        return {action: float(row[action]) for action in ladder_query.legal_of(self.game, self.position)}

    def _draw(self) -> int:
        strategy = self.policy.probabilities(self.position[None], self._views)[0]
        address = torch.tensor([self.number]), torch.tensor([len(self.steps)])
        chance = addressed_uniforms(key(self.seed, "play", "agent"), *address)
        return int(draw(strategy, len(strategy), float(chance[0])))

    def _advance(self, action: int) -> None:
        advance(self.game.ladder, self.position, action)
