"""The advantages of hands by the newest advantage networks of a run, and the meaning of these numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.poker import PokerGame
from deepcfr.play.hand import Cards
from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import WithFirstRound
from deepcfr.policies.network import RegretMatchingPolicy
from deepcfr.types import Doubles, Infosets


@dataclass(frozen=True)
class Advantages:
    """The advantage networks of a run's newest iteration."""

    policy: RegretMatchingPolicy
    table: bool  # whether a table, not a network, has the first round's regrets

    def at(self, game: PokerGame, node: int, holes: npt.NDArray[np.uint8], board: Cards) -> Doubles | None:
        """The advantages at `node` with each of `holes` on `board`, [H, A] in units; None in a round of the table.

        In runs that compress targets, negative numbers are nearer to 0 than the true advantages.
        """
        if self._in_table(game, node):
            return None
        network = self.policy.networks[int(game.tree.actor[node])]
        cards = torch.from_numpy(game.views_of(holes, board)).to(game.device)
        with torch.no_grad():
            outputs = network(Infosets(game.infoset[[node]].expand(len(holes)), cards)) * network.scale
        if self.policy.pot_units:
            outputs = outputs * game.pot[node]
        found: Doubles = outputs.double().cpu().numpy()
        return found

    def meaning(self, game: PokerGame, node: int) -> str:
        """A sentence on the meaning of the numbers of `at`."""
        if self._in_table(game, node):
            return "There are no advantages here: this run keeps the regrets of the first round in a table."
        said = f"what the newest advantage network gives each action, in {game.rules.unit}."
        if self.policy.compressed:
            said += (
                " Negative ones are on a logarithmic scale (advantage.units), nearer to 0 than they are: they keep their"
                " order, and regret matching reads no more of them."
            )
        return said

    def _in_table(self, game: PokerGame, node: int) -> bool:
        return self.table and int(game.tree.round[node]) == 0


def advantages_of(policy: Policy) -> Advantages | None:
    """The advantage networks of a policy; None if it has no fitted ones."""
    table = isinstance(policy, WithFirstRound)
    matching = policy.policy if isinstance(policy, WithFirstRound) else policy
    if isinstance(matching, RegretMatchingPolicy) and not all(network.is_zero() for network in matching.networks):
        return Advantages(matching, table)
    return None
