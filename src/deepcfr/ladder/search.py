"""Search in raise-ladder games whose betting is too large to list: only what follows one line at a time is listed."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.config import SearchConfig
from deepcfr.games.betting import CALL
from deepcfr.games.ladder_betting import ROUND, LadderGame, round_starts
from deepcfr.games.listed_ladder import ListedLadder
from deepcfr.ladder.listed import ListedPolicy, SteppedPolicy
from deepcfr.policies.base import Policy
from deepcfr.search.policy import MOST_DEALS, ResolvingPolicy, searched_rounds
from deepcfr.types import Cards, Infosets, Ints

_KEPT_LINES = 32  # whose subgames are kept


class LadderSearch(Policy):
    """`policy` with the betting of some rounds solved anew when it gets there, as `ResolvingPolicy` does it.

    Every line of betting before the first searched round has a `ResolvingPolicy` of its own, for the game that begins with
    it. Raises what `ResolvingPolicy` raises.
    """

    most_deals = MOST_DEALS

    def __init__(self, policy: Policy, settings: SearchConfig) -> None:
        assert isinstance(policy.game, LadderGame)
        self.game: LadderGame = policy.game
        self.policy, self.initial = policy, policy.initial
        self._settings = settings
        self._first = searched_rounds(self.game.rules, settings)[0]
        self._on_line = lru_cache(maxsize=_KEPT_LINES)(self._search)
        # deepest stacks: refused now rather than in play if its subgames are too large
        self.kind = self._search_after([CALL, CALL] * self._first).kind

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        positions = self.game.positions(infosets.node.numpy())
        result = torch.empty(len(infosets), self.game.num_actions, dtype=torch.float64)
        late = positions[:, ROUND] >= self._first
        lines = np.where(late, round_starts(positions, self._first), -1)
        for line in np.unique(lines).tolist():
            some = torch.from_numpy(lines == line)
            policy = self.policy if line < 0 else self._on_line(line)
            result[some] = policy.probabilities(infosets[some]).double()
        return result

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        searched = self.game.positions(nodes)[0, ROUND] >= self._first
        return super().on_hands(nodes, cards) if searched else self.policy.on_hands(nodes, cards)

    def _search(self, line: int) -> SteppedPolicy:
        return self._search_after(self.game.paths(np.array([line]))[2].tolist())

    def _search_after(self, actions: list[int]) -> SteppedPolicy:
        """The policy with search in the game that begins with `actions`."""
        game = ListedLadder(self.game.source, self.game.suits, line=actions)
        return SteppedPolicy(ResolvingPolicy(ListedPolicy(self.policy, game), self._settings, share=1 / _KEPT_LINES))
