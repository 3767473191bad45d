"""Search for policies of any poker game: in its own betting, listed at once or by lines, and in no-limit poker."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.config import SearchConfig
from deepcfr.core.types import Cards, Infosets, Ints
from deepcfr.game.bet_size_betting import ROUND, round_starts
from deepcfr.game.bet_size_game import ExplicitPoker, ImplicitPoker
from deepcfr.game.betting import CALL
from deepcfr.policy.base import Policy
from deepcfr.search.policy import MOST_DEALS, ResolvingPolicy, searched_rounds
from deepcfr.search.real_sizes import KEPT_LINES, RealSizes


def searching(policy: Policy, settings: SearchConfig) -> Policy:
    """`policy` with search, listing the betting after one line at a time where there is too much to list at once.

    Raises what `ResolvingPolicy` raises.
    """
    found = (LineSearch if isinstance(policy.game, ImplicitPoker) else ResolvingPolicy)(policy, settings)
    if found.game.rules.betting != "limit" and settings.sizes == "real":
        found.real_sizes = RealSizes(policy, settings, searched_rounds(found.game.rules, settings)[0])
    return found


class LineSearch(Policy):
    """As `ResolvingPolicy`, for a game whose betting is too large to list.

    Every line of betting before the first searched round has a `ResolvingPolicy` of its own, for the game that begins
    with it.
    """

    most_deals = MOST_DEALS

    def __init__(self, policy: Policy, settings: SearchConfig) -> None:
        assert isinstance(policy.game, ImplicitPoker)
        self.game: ImplicitPoker = policy.game
        self.policy, self.initial = policy, policy.initial
        self._settings = settings
        self._first = searched_rounds(self.game.rules, settings)[0]
        self._on_line = lru_cache(maxsize=KEPT_LINES)(self._search)
        # deepest stacks: refused now rather than in play if its subgames are too large
        self.kind = self._search_after([CALL, CALL] * self._first)[1].kind

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = infosets.node.numpy()
        positions = self.game.positions(nodes)
        result = torch.empty(len(infosets), self.game.encoding.num_actions, dtype=torch.float64)
        late = positions[:, ROUND] >= self._first
        part = np.where(late, round_starts(positions, self._first), -1)
        for line in np.unique(part).tolist():
            some = part == line
            asked = infosets[torch.from_numpy(some)]
            if line < 0:
                result[some] = self.policy.probabilities(asked).double()
                continue
            game, policy = self._on_line(line)
            result[some] = policy.probabilities(
                Infosets(torch.from_numpy(game.listed(nodes[some])), asked.cards)
            ).double()
        return result

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        searched = self.game.positions(nodes[:1])[0, ROUND] >= self._first
        return super().on_hands(nodes, cards) if searched else self.policy.on_hands(nodes, cards)

    def _search(self, line: int) -> tuple[ExplicitPoker, Policy]:
        return self._search_after(self.game.paths(np.array([line]))[2].tolist())

    def _search_after(self, actions: list[int]) -> tuple[ExplicitPoker, Policy]:
        """The game that begins with `actions`, with a list of its nodes, and the policy with search there."""
        game = ExplicitPoker(self.game.source, self.game.suits, line=actions)
        return game, ResolvingPolicy(_AfterLine(self.policy, game), self._settings, share=1 / KEPT_LINES)


class _AfterLine(Policy):
    """A policy of a game with computed nodes, in the list of those after a line."""

    game: ExplicitPoker

    def __init__(self, policy: Policy, game: ExplicitPoker) -> None:
        self.policy, self.game, self.kind = policy, game, policy.kind

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = torch.from_numpy(self.game.computed[infosets.node.numpy()])
        return self.policy.probabilities(Infosets(nodes, infosets.cards))

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        return self.policy.on_hands(self.game.computed[nodes], cards)
