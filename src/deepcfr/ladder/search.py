"""Search in raise-ladder games whose betting is too large to list: only what follows one line at a time is listed."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from deepcfr.config import SearchConfig
from deepcfr.games.betting import CALL
from deepcfr.games.ladder_betting import ROUND, line_actions, lines_before
from deepcfr.games.listed_ladder import ListedLadder
from deepcfr.ladder.listed import ListedPolicy, SteppedPolicy
from deepcfr.policies.base import LadderPolicy
from deepcfr.search.policy import MOST_DEALS, ResolvingPolicy, searched_rounds

Cards = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_KEPT_LINES = 32  # whose subgames are kept


class LadderSearch(LadderPolicy):
    """`policy` with the betting of some rounds solved anew when it gets there, as `ResolvingPolicy` does it.

    Every line of betting before the first searched round has a `ResolvingPolicy` of its own, for the game that begins with
    it. A view is that of `policy`, and then what both players see in every round. Raises what `ResolvingPolicy` raises, and
    GameError if `policy` draws one of several for each deal.
    """

    most_deals = MOST_DEALS

    def __init__(self, policy: LadderPolicy, settings: SearchConfig) -> None:
        self.game, self.policy, self.initial = policy.game, policy, policy.initial
        self._settings = settings
        self._first = searched_rounds(policy.game.rules.deck, settings)[0]
        self._on_line = lru_cache(maxsize=_KEPT_LINES)(self._search)
        # deepest stacks: refused now rather than in play if its subgames are too large
        self._any = self._search_after([CALL, CALL] * self._first)
        self.kind = self._any.kind
        self.width = policy.width + self._any.width

    def look(self, cards: Cards, numbers: Ints, stream: int) -> Ints:
        return np.concatenate(
            [self.policy.look(cards, numbers, stream), self._any.look(cards, numbers, stream)], axis=1
        )

    def look_in_round(self, cards: Cards, player: int, round_: int) -> Ints:
        if round_ >= self._first:
            return super().look_in_round(cards, player, round_)
        views = np.zeros((len(cards), self.width), np.int64)
        views[:, : self.policy.width] = self.policy.look_in_round(cards, player, round_)
        return views

    def probabilities(self, positions: Ints, views: Ints) -> Floats:
        plain, seen = (np.ascontiguousarray(part) for part in np.split(views, [self.policy.width], axis=1))
        result = np.empty((len(positions), self.game.num_actions))
        here = positions[:, ROUND] >= self._first
        early, late = np.flatnonzero(~here), np.flatnonzero(here)
        if len(early):
            result[early] = self.policy.probabilities(positions[early], plain[early])
        lines = lines_before(positions[late], self._first)
        for line in np.unique(lines).tolist():
            some = late[lines == line]
            result[some] = self._on_line(line).probabilities(positions[some], seen[some])
        return result

    def on_views(self, positions: Ints, views: Ints) -> Floats:
        if positions[0, ROUND] >= self._first:
            return super().on_views(positions, views)
        return self.policy.on_views(positions, np.ascontiguousarray(views[:, : self.policy.width]))

    def _search(self, line: int) -> SteppedPolicy:
        return self._search_after(line_actions(line, self._first))

    def _search_after(self, actions: list[int]) -> SteppedPolicy:
        """The policy with search in the game that begins with `actions`."""
        game = ListedLadder(self.game.rules, line=actions)
        return SteppedPolicy(ResolvingPolicy(ListedPolicy(self.policy, game), self._settings, share=1 / _KEPT_LINES))
