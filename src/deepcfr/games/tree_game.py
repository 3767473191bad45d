"""A game as an `ExplicitTree`, its sequence form, and a `Game` whose nodes are histories."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.games.base import Deals
from deepcfr.games.explicit import CHANCE, ExplicitTree, sequence_form
from deepcfr.rng import addressed_uniforms
from deepcfr.types import TERMINAL, Encoding

MOST_HISTORIES = 20_000_000  # the most histories of a listed game


class TreeGame:
    """A game whose histories are listed, as an `ExplicitTree`, its sequence form, and a `Game`.

    Nodes of the `Game` are the decision and terminal histories. Chance outcomes are drawn from uniforms addressed by
    traversal and chance node, so that a deal determines them all. There are no cards: a player sees `features` [K, F] of
    its infoset; without any, networks cannot learn the game. The actions 0 .. A-1 are those of the source that occur, in
    ascending order, so that an action is the same output of a network at all infosets; `columns` maps the legal actions of
    `explicit` to them. Raises GameError for imperfect recall.
    """

    unit: str = "points"
    milli_unit: str = "mpoints/g"
    unit_chips = 1  # payoffs are in units

    def __init__(
        self, source: str, explicit: ExplicitTree, features: npt.NDArray[np.float32], device: str = "cpu"
    ) -> None:
        self.source = source  # the name that it is loaded by
        self.name = source
        self.device = device
        self.explicit = explicit
        self.sequences = sequence_form(explicit, source)
        self._place_columns()
        features_there = torch.from_numpy(features).to(device)
        self.encoding = Encoding(features_there, self.positions >= 0, card_groups=(), num_ranks=0, num_suits=0)
        self._place_nodes()
        self._place_chance()

    def action_name(self, action: int) -> str:
        """Return the name of an action, by default its number in the source."""
        return str(self.action_ids[action])

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.explicit.num_nodes:,} histories, {self.explicit.num_infosets:,} infosets"

    def _place_columns(self) -> None:
        ids, legal = self.explicit.infoset_action_ids, self.explicit.legal
        self.action_ids = np.unique(ids[legal])  # int64 [A], OpenSpiel's number of each action
        columns = np.where(legal, np.searchsorted(self.action_ids, ids), 0)
        infoset, position = np.nonzero(legal)
        positions = np.full((len(ids), len(self.action_ids)), -1)
        positions[infoset, columns[legal]] = position
        self.columns = torch.from_numpy(columns).to(self.device)  # int64 [K, L], 0 beyond the legal actions
        self.positions = torch.from_numpy(positions).to(
            self.device
        )  # int64 [K, A], inverse of `columns`; -1 if illegal

    def _place_nodes(self) -> None:
        tree, kept = self.explicit, self.explicit.actor != CHANCE
        self.actor = torch.from_numpy(tree.actor[kept]).to(self.device)
        self.round = torch.zeros_like(self.actor)
        self.infoset = torch.from_numpy(tree.infoset[kept].clip(min=0)).to(self.device)
        self.legal = self.encoding.legal[self.infoset] & (self.actor != TERMINAL)[:, None]
        self.deals_before = torch.from_numpy(self._chance_above()[kept]).to(self.device)
        self._first_child = torch.from_numpy(tree.first_child[kept]).to(self.device)
        self._payoff = torch.from_numpy(tree.payoff[kept]).float().to(self.device)

    def _chance_above(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The number of consecutive chance nodes right above every history, [N]."""
        tree = self.explicit
        above = np.where(tree.parent < 0, 0, tree.parent)
        count, drawn = np.zeros(tree.num_nodes, np.int64), tree.actor[above] == CHANCE
        drawn[0] = False
        while drawn.any():
            count += drawn
            drawn = drawn & (tree.parent[above] >= 0) & (tree.actor[tree.parent[above]] == CHANCE)
            above = np.where(drawn, tree.parent[above], above)
        return count

    def _place_chance(self) -> None:
        """Chance nodes in order, and their outcomes as intervals: those of the i-th node divide [i, i + 1)."""
        tree = self.explicit
        chance = tree.actor == CHANCE
        number = np.cumsum(chance) - 1
        outcome = np.flatnonzero(chance[tree.parent] & (tree.parent >= 0))
        parent = tree.parent[outcome]
        before = np.cumsum(tree.chance[outcome]) - tree.chance[outcome]
        start = before[np.searchsorted(outcome, tree.first_child[parent])]
        self._outcome = torch.from_numpy(outcome).to(self.device)
        self._lower = torch.from_numpy(number[parent] + before - start).to(self.device)
        # a history's node; at a chance node -1 minus the number of its interval
        self._node = torch.from_numpy(np.where(chance, -1 - number, np.cumsum(~chance) - 1)).to(self.device)

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        traversal = torch.arange(first, first + count, device=self.device)
        return Deals(traversal, torch.zeros(count, 2, 1, 0, dtype=torch.uint8, device=self.device), hidden=stream)

    def start(self, deals: Deals) -> torch.Tensor:
        return self._after_chance(torch.zeros_like(deals.traversal), deals.traversal, deals.hidden)

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        history = self._first_child[node] + self.positions[self.infoset[node], action]
        return self._after_chance(history, deals.traversal[row], deals.hidden)

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return self._payoff[node]

    def _after_chance(self, history: torch.Tensor, traversal: torch.Tensor, stream: int) -> torch.Tensor:
        """The nodes that follow histories of `explicit` [M] after chance has moved."""
        while True:
            node = self._node[history]
            at = (node < 0).nonzero()[:, 0]
            if not len(at):
                return node
            # the uniforms lie on a grid of 2^-24, so outcome probabilities are exact to 2^-24
            uniform = addressed_uniforms(stream, traversal[at], history[at]).double()
            outcome = torch.searchsorted(self._lower, uniform - 1 - node[at], right=True) - 1
            history = history.index_put((at,), self._outcome[outcome])
