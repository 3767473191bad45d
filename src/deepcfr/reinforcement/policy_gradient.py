"""Policy gradients by self-play with a regularised objective: PPO and magnetic mirror descent.

Every player has a policy network and a value network of its own infosets. An iteration plays a batch of episodes and then
descends on the objective of `reinforcement.objective`. There is no average: the last strategy is measured and played.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from deepcfr.config import PPOConfig
from deepcfr.memory.reservoir import SavedState, SolverState, Tensors
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.network import NetworkPerPlayer
from deepcfr.reinforcement.episodes import Episodes, Transitions, payoff_unit, play_episodes
from deepcfr.reinforcement.learner import (
    OBJECTIVES,
    Learner,
    PolicyObjective,
    copies,
    cosine,
    entropy_weight,
    generalised_advantages,
    outputs_at,
    regularised_loss,
)
from deepcfr.reinforcement.self_play import CHUNK, PLAYERS, NetworkPlayer, SelfPlay, mixed
from deepcfr.training.fit import masked_log_softmax, masked_softmax
from deepcfr.types import Infosets, joined

_BATCH = 4_096  # decisions in a mini-batch, drawn with replacement from the iteration's
_VALUE_STEPS = 8  # updates of each value network in an iteration
_VALUE_RATE = 0.003  # their learning rate
_TRACE = 0.95  # lambda of generalised advantage estimates


@dataclass(frozen=True)
class PolicyGradientRecord:
    """Figures of one iteration; pairs are for players 0 and 1."""

    iteration: int
    episodes: int
    nodes_touched: int
    evaluated: int  # infosets at which networks were evaluated
    trained: int  # examples in the mini-batches of all four networks
    play_seconds: float
    fit_seconds: float
    entropy_weight: float  # alpha
    value_loss: tuple[float, float]  # mean squared error of V, in squared units of the payoffs

    def figures(self) -> str:
        """The figures that progress shows."""
        return (
            f"{self.episodes / max(self.play_seconds + self.fit_seconds, 1e-9):,.0f} episodes/s, "
            f"loss {self.value_loss[0]:.2f} {self.value_loss[1]:.2f}"
        )


@dataclass(frozen=True)
class _Experience:
    """One player's decisions of an iteration, I of them, with what its networks said then."""

    infosets: Infosets
    action: torch.Tensor  # int64 [I]
    policy: torch.Tensor  # float32 [I, A], log-probabilities, 0 for illegal actions
    advantage: torch.Tensor  # float32 [I], in units of V's scale
    returns: torch.Tensor  # float32 [I], in the same


@dataclass
class PolicyGradient(SelfPlay):
    """The solver; iterate over `iterations()` to advance it."""

    policies: tuple[Learner, Learner] = field(init=False)
    values: tuple[Learner, Learner] = field(init=False)
    workers: Workers = field(init=False)

    def __post_init__(self) -> None:
        self.policies = (self._learner("policy", 0), self._learner("policy", 1))
        self.values = (self._learner("value", 0), self._learner("value", 1))
        with torch.no_grad():
            for learner in self.policies:  # uniform play at first, the magnet
                for parameter in learner.network.last_layer.parameters():
                    parameter.zero_()
        self.workers = Workers(self.config.runtime.threads if self.game.device == "cpu" else 1)

    @property
    def settings(self) -> PPOConfig:
        return self.config.ppo

    @property
    def objective(self) -> PolicyObjective:
        """The objective that an update of policy networks descends on."""
        return OBJECTIVES[self.settings.method]

    def iterations(self) -> Iterator[PolicyGradientRecord]:
        """Batches of episodes with updates, from the current state to the configured number of iterations."""
        while self.iteration < self.settings.iterations:
            yield self._iterate()

    def _iterate(self) -> PolicyGradientRecord:
        t, settings = self.iteration + 1, self.settings
        start = time.perf_counter()
        found = list(self._play(t))
        played = time.perf_counter()
        losses = list(self.workers.map(lambda player: self._learn(t, player, found), PLAYERS))
        steps = sum(self.objective.steps + _VALUE_STEPS for player in PLAYERS if losses[player] is not None)
        self.iteration = t
        self.nodes_touched += (touched := sum(episodes.nodes_touched for episodes in found))
        return PolicyGradientRecord(
            iteration=t,
            episodes=settings.episodes,
            nodes_touched=touched,
            evaluated=sum(episodes.decisions for episodes in found),
            trained=_BATCH * steps,
            play_seconds=played - start,
            fit_seconds=time.perf_counter() - played,
            entropy_weight=entropy_weight(self.objective.entropy, t, settings.iterations),
            value_loss=(losses[0] or 0.0, losses[1] or 0.0),
        )

    def _play(self, t: int) -> Iterator[Episodes]:
        """The episodes of an iteration in order, in chunks."""
        total = self.settings.episodes
        players = [NetworkPlayer.of(learner.network, masked_softmax) for learner in self.policies]
        deal, act = self._stream("deal", t), self._stream("action", t)

        def run_chunk(first: int) -> Episodes:
            deals = self.game.deal(min(CHUNK, total - first), deal, first)
            modes = torch.zeros(len(deals), len(PLAYERS), dtype=torch.int64, device=deals.traversal.device)
            mine, theirs = (mixed(self.game, deals, modes[:, p], p, (players[p],)) for p in PLAYERS)
            return play_episodes(self.game, deals, (mine, theirs), modes, act)

        yield from self.workers.map(run_chunk, range(0, total, CHUNK))

    def _learn(self, t: int, player: int, found: list[Episodes]) -> float | None:
        """Update a player's networks; returns the mean squared error of V, None if the player never acts."""
        objective, last, legal = self.objective, self.settings.iterations, self.game.encoding.legal
        policy, value = self.policies[player], self.values[player]
        steps = joined([episodes.transitions[player] for episodes in found])
        if not len(steps):
            return None
        if not value.updates:
            value.network.scale.fill_(payoff_unit(steps.reward, steps.terminal))
        seen = self._experience(player, steps)
        alpha, factor = entropy_weight(objective.entropy, t, last), cosine(t, last)

        def policy_loss(index: torch.Tensor) -> torch.Tensor:
            infosets, before = seen.infosets[index], (seen.policy[index], seen.action[index], seen.advantage[index])
            allowed = legal[infosets.node]
            new = masked_log_softmax(outputs_at(policy.network, infosets, self.game.encoding), allowed)
            return regularised_loss(new, *before, objective, alpha, allowed)

        def value_loss(index: torch.Tensor) -> torch.Tensor:
            predicted = outputs_at(value.network, seen.infosets[index], self.game.encoding)[:, 0]
            return (predicted - seen.returns[index]).square().mean()

        for learner, loss, count, rate, name in (
            (policy, policy_loss, objective.steps, objective.learning_rate, "policy"),
            (value, value_loss, _VALUE_STEPS, _VALUE_RATE, "value"),
        ):
            stream = self._stream(f"{name} steps", t, player)
            mean = learner.descend(len(seen.action), loss, count, _BATCH, rate * factor, stream)
        return mean * float(value.network.scale) ** 2

    @torch.no_grad()
    def _experience(self, player: int, steps: Transitions) -> _Experience:
        encoding, value, infosets = self.game.encoding, self.values[player].network, steps.infosets
        predicted = outputs_at(value, infosets, encoding)[:, 0]
        logits = outputs_at(self.policies[player].network, infosets, encoding)
        gains = generalised_advantages(steps.reward / value.scale, predicted, steps.terminal, _TRACE)
        old = masked_log_softmax(logits, encoding.legal[infosets.node])
        return _Experience(infosets, steps.action, old, gains, predicted + gains)

    def current_policy(self) -> Policy:
        """Each player's policy network."""
        networks = copies(self.policies)
        return NetworkPerPlayer(self.game, networks, (masked_softmax, masked_softmax), "policy networks")

    def average_policy(self) -> Policy:
        """The same: there is no average."""
        return self.current_policy()

    def state(self, memories: bool) -> SolverState:
        """The state for a checkpoint; without `memories` it can be played but not trained."""
        tensors: Tensors = {
            f"{name}.{part}": tensor.cpu().contiguous()
            for name, learner in self._learners(memories).items()
            for part, tensor in learner.tensors(training=memories).items()
        }
        facts = self._facts({name: learner.updates for name, learner in self._learners(memories).items() if memories})
        return SolverState(facts, tensors, {})

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore the state of a checkpoint; without `memories` only what play needs."""
        self._restore_facts(saved)
        for name, learner in self._learners(memories).items():
            learner.load_tensors(saved.part(f"{name}."))

    def memory_bytes(self, memories: bool) -> int:  # noqa: ARG002
        """0: there are no memories."""
        return 0

    def _learners(self, training: bool) -> dict[str, Learner]:
        """The networks by their names in a checkpoint, all of them for `training`."""
        pairs = {"policy": self.policies, **({"value": self.values} if training else {})}
        return {f"{name}-{player}": pair[player] for name, pair in pairs.items() for player in PLAYERS}

    def _learner(self, *purpose: str | int) -> Learner:
        return Learner(self._new_network(*purpose))
