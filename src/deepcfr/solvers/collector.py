"""What an iteration of Deep CFR needs besides its fits: traversals in, samples out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from deepcfr.config import FitConfig, RunConfig
from deepcfr.games.base import Game
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import FirstRound, WithFirstRound
from deepcfr.policies.network import RegretMatchingPolicy
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.memories import Memories
from deepcfr.training.fit import FitResult
from deepcfr.training.networks import SplitNetwork
from deepcfr.training.shards import AnyExamples


@dataclass(frozen=True)
class Current:
    """sigma^t: regret matching on a network for each player, and a table for the first round where there is one."""

    matching: RegretMatchingPolicy
    first_round: FirstRound | None

    def policy(self) -> Policy:
        """The whole strategy as one policy."""
        return WithFirstRound(self.matching, self.first_round) if self.first_round else self.matching


@dataclass(frozen=True)
class Collected:
    """What one player's traversals in one iteration did."""

    traversals: int  # histories from a deal, or boards
    nodes_touched: int
    evaluated: int  # infosets at which networks were asked for a strategy


class Fitting(Protocol):
    """What fits a network to examples: `training.fit.fit`, or the same in other processes."""

    def __call__(
        self, network: SplitNetwork, examples: AnyExamples, config: FitConfig, stream: int, workers: Workers
    ) -> FitResult: ...


class Collector(Protocol):
    """Runs traversals somewhere, keeps what they find in memories there, and has networks fitted to these."""

    memories: Memories
    fit: Fitting
    side_by_side: int  # fits that can run beside traversals and each other; 0 where traversals end before anything else

    def begin(self, t: int, traverser: int, current: Current) -> Callable[[], Collected]:
        """Begin all of iteration t's traversals for one player, who finds advantages, and return what waits for their end.

        They play what networks and table are now, whatever becomes of these. What they find is in the memories of the
        player's own advantages and of strategies when they have ended, and may come there before.
        """

    def changed(self, player: int) -> None:
        """The player's network is another from now on."""

    def close(self) -> None:
        """End what was begun elsewhere; nothing can be collected any more."""


Collecting = Callable[[Game, RunConfig, FirstRoundTable | None], Collector]
"""What makes the collector of a run; the table is the run's own, which the collector adds to."""
