"""Predictive CFR+ (Farina, Kroer and Sandholm 2021) on OpenSpiel's traversal, a second implementation for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from open_spiel.python.algorithms import cfr, get_all_states


class PredictiveCFRPlus(cfr._CFRSolver):
    """OpenSpiel's CFR with alternating updates, whose strategies come from sums with the newest regret once more."""

    def __init__(self, game: Any) -> None:
        super().__init__(game, alternating_updates=True, linear_averaging=True, regret_matching_plus=True)
        self._matched = {name: dict(node.cumulative_regret) for name, node in self._info_state_nodes.items()}
        states = get_all_states.get_all_states(game, include_terminals=False, include_chance_states=False)
        self._actor = {state.information_state_string(): state.current_player() for state in states.values()}
        self._done = 0

    def evaluate_and_update_policy(self) -> None:
        """One iteration; its strategies weigh t² in the average."""
        self._done += 1
        self._iteration = self._done**2  # the weight that the base class uses
        nodes = self._info_state_nodes
        for player in range(2):
            before = {name: dict(node.cumulative_regret) for name, node in nodes.items()}
            self._compute_counterfactual_regret_for_player(self._root_node, None, np.ones(3), player)
            for name, node in nodes.items():
                newest = {a: node.cumulative_regret[a] - before[name].get(a, 0.0) for a in node.legal_actions}
                for action in node.legal_actions:
                    node.cumulative_regret[action] = max(node.cumulative_regret[action], 0.0)
                if self._actor[name] == player:
                    sums = node.cumulative_regret
                    self._matched[name] = {action: sums[action] + newest[action] for action in node.legal_actions}
            sums_of = {name: dict(node.cumulative_regret) for name, node in nodes.items()}
            for name, node in nodes.items():
                node.cumulative_regret.update(self._matched[name])
            cfr._update_current_policy(self._current_policy, nodes)
            for name, node in nodes.items():
                node.cumulative_regret.update(sums_of[name])
