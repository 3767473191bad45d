"""Any game that is stepped from node to node as an environment of PettingZoo, for learners and agents of other libraries.

Source of the interface: PettingZoo's AEC API (Terry et al. 2021).
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete, Space
from pettingzoo import AECEnv
from pettingzoo.utils.env import AECIterable

from deepcfr.core.errors import GameError
from deepcfr.core.rng import key
from deepcfr.core.types import NO_CARD, TERMINAL, Infosets
from deepcfr.game.base import Game, infosets_at
from deepcfr.game.poker import Poker, poker_game
from deepcfr.policy.base import Policy

AGENTS = ("player_0", "player_1")


class GameEnv(AECEnv):  # type: ignore[misc]
    """Hands of a two-player game; every `reset` deals a new one.

    An observation has `observation`, float32 [F + C * D]: the F public features of the game's encoding, then for each of C
    card slots one of D cards, or zeros for a card that is not in view; and `action_mask`, int8 [A]. That of a player who is
    not to act is the one of the player's last decision, with no action. Rewards are payoffs in the game's unit, at the end.
    """

    metadata = {"name": "deepcfr", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, game: Game, seed: int = 0) -> None:
        """Make the environment; `seed` decides the deals until `reset` is given another one."""
        super().__init__()
        if isinstance(game, Poker):
            poker_game(game)  # or there is nothing to observe
        self.game, self.render_mode = game, None
        self.possible_agents = list(AGENTS)
        encoding = game.encoding
        self._cards = encoding.num_ranks * encoding.num_suits
        self._width = encoding.node_features.shape[1] + self._cards * sum(encoding.card_groups)
        low, high = float(encoding.node_features.min()), float(encoding.node_features.max())
        bounds = min(low, 0.0), max(high, 1.0)
        self.action_spaces: dict[str, Space[Any]] = {agent: Discrete(encoding.num_actions) for agent in AGENTS}
        self.observation_spaces: dict[str, Space[dict[str, Any]]] = {
            agent: Dict(
                {
                    "observation": Box(*bounds, (self._width,), np.float32),
                    "action_mask": Box(0, 1, (encoding.num_actions,), np.int8),
                }
            )
            for agent in AGENTS
        }
        self._stream, self._number = _stream_of(seed), 0
        self.agents: list[str] = []  # until the first reset

    def observation_space(self, agent: str) -> Space[dict[str, Any]]:
        """The space of a player's observations."""
        return self.observation_spaces[_player(agent)]

    def action_space(self, agent: str) -> Space[Any]:
        """The space of a player's actions, legal or not."""
        return self.action_spaces[_player(agent)]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:  # noqa: ARG002
        """Deal the next hand; with a seed, the first one of that seed."""
        if seed is not None:
            self._stream, self._number = _stream_of(seed), 0
        self._deals = self.game.deal(1, self._stream, self._number)
        self._number += 1
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in AGENTS}
        self._seen = {agent: np.zeros(self._width, np.float32) for agent in AGENTS}
        self._arrive(self.game.start(self._deals))

    def step(self, action: int | None) -> None:
        """Play an action of the player to act, None after the end. Raises GameError for an illegal one."""
        self._require_reset()
        if not self.agents:
            raise GameError("The hand is over: reset the environment.")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        known = isinstance(action, Integral) and self.action_spaces[agent].contains(int(action))
        if action is None or not known or not self.observe(agent)["action_mask"][action]:
            raise GameError(f"Action {action} is not legal for {agent} here.")
        chosen = torch.tensor([action], device=self.game.device)
        self._arrive(self.game.step(self._node, chosen, self._row, self._deals))
        self._accumulate_rewards()

    def observe(self, agent: str) -> dict[str, Any]:
        """The observation of a player, as the class describes it. Raises GameError for others, and before `reset`."""
        _player(agent)
        self._require_reset()
        mask = np.zeros(self.game.encoding.num_actions, np.int8)
        if agent == self.agent_selection and not self._over:
            mask[:] = self.game.legal[self._node][0].cpu().numpy()
        return {"observation": self._seen[agent], "action_mask": mask}

    def strategy(self, player: Policy) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The probability [A] of each action by a policy of this game for the player to act.

        Raises GameError for a policy of another game or with another encoding of cards, and after the end of the hand.
        """
        self._require_reset()
        if not isinstance(player, Policy):
            raise GameError(f"A strategy is that of a policy, as load('kuhn').policy is one, but {player!r} is given.")
        if player.game.name != self.game.name:
            raise GameError(f"The policy plays {player.game.name}, and the environment {self.game.name}.")
        if getattr(player.game, "suits", None) != getattr(self.game, "suits", None):
            raise GameError(f"The policy sees {player.game.name} in other suits: make the environment from its agent.")
        if self._over:
            raise GameError("The hand is over.")
        row = player.probabilities(self._infosets())[0].double()
        return (row / row.sum()).cpu().numpy()

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable:
        """The players in the order in which they act. Raises GameError before `reset`."""
        self._require_reset()
        return super().agent_iter(max_iter)

    def last(self, observe: bool = True) -> tuple[dict[str, Any] | None, float, bool, bool, dict[str, Any]]:
        """Observe the player to act, as PettingZoo defines it. Raises GameError before `reset`."""
        self._require_reset()
        return super().last(observe)

    def _require_reset(self) -> None:
        if not hasattr(self, "_deals"):
            raise GameError("No hand has been dealt: reset the environment first.")

    @property
    def _over(self) -> bool:
        return self.terminations.get(self.agent_selection, True)  # players leave it one by one after the end

    @property
    def _row(self) -> torch.Tensor:
        return torch.zeros(1, dtype=torch.int64, device=self.game.device)

    def _infosets(self) -> Infosets:
        return infosets_at(self.game, self._node, self._row, self._deals)

    def _arrive(self, node: torch.Tensor) -> None:
        """Go to a node, int64 [1]: the next decision, or the end with its payoffs."""
        self._node = node
        actor = int(self.game.actor[node])
        if actor == TERMINAL:
            payoff = float(self.game.payoff(node, self._row, self._deals))
            self.rewards = dict(zip(AGENTS, (payoff, -payoff), strict=True))
            self.terminations = dict.fromkeys(AGENTS, True)
            self.agent_selection = AGENTS[0]
            return
        self.agent_selection = AGENTS[actor]
        found = self._infosets()
        features = self.game.encoding.node_features[found.node].reshape(-1).cpu().numpy()
        cards = found.cards.reshape(-1).cpu().numpy()
        shown = np.zeros((len(cards), self._cards), np.float32)
        dealt = np.flatnonzero(cards != NO_CARD)
        shown[dealt, cards[dealt]] = 1
        self._seen[AGENTS[actor]] = np.concatenate([features, shown.reshape(-1)])


def _player(name: object) -> str:
    if not isinstance(name, str) or name not in AGENTS:
        raise GameError(f"A player is {' or '.join(AGENTS)}, but {name!r} is named.")
    return name


def _stream_of(seed: int) -> int:
    if not isinstance(seed, Integral):
        raise GameError(f"A seed is a whole number, but is {seed!r}.")
    return key(int(seed), "environment")
