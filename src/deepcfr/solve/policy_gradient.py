"""Policy gradients by self-play with a regularised objective: PPO and magnetic mirror descent.

Every player has a policy network and a value network of its own infosets. An iteration plays a batch of episodes and then
descends on

    - min(rho A, clip(rho, 1 - c, 1 + c) A) - alpha H(pi(I)) + kl KL(pi(I) || pi_old(I)) ,    rho = pi(I, a) / pi_old(I, a),

where A is the generalised advantage estimate (Schulman et al. 2016) and H the entropy. With a clip c > 0 it is PPO
(Schulman et al. 2017); with kl = 1 / eta and no clip it is magnetic mirror descent towards uniform play (Sokota et al.
2023). With alpha > 0 there is one equilibrium of the regularised game, and what is played in the end approaches it; alpha
falls over the run (Rudolph et al. 2025). There is no average: the last strategy is measured and played.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from deepcfr.config import PPOConfig, RunConfig
from deepcfr.core.types import Infosets, joined
from deepcfr.game.base import Deals, Game
from deepcfr.network.fit import masked_log_softmax, masked_softmax
from deepcfr.policy.base import Policy
from deepcfr.policy.network import NetworkPerPlayer
from deepcfr.solve.base import PLAYERS, SavedState, SolverState, Tensors
from deepcfr.solve.self_play import (
    Episodes,
    Learner,
    NetworkPlayer,
    SelfPlay,
    SelfPlayRecord,
    Transitions,
    copies,
    cosine,
    outputs_at,
    payoff_unit,
)

_BATCH = 4_096  # decisions in a mini-batch, drawn with replacement from the iteration's
_VALUE_STEPS = 8  # updates of each value network in an iteration
_VALUE_RATE = 0.003  # their learning rate
_TRACE = 0.95  # lambda of generalised advantage estimates


@dataclass(frozen=True)
class PolicyObjective:
    """The updates of a method; weights are in units of the root mean square payoff of the player's first episodes."""

    steps: int  # updates of each policy network in an iteration
    learning_rate: float  # of policy networks, which falls along a cosine to a tenth
    entropy: float  # alpha in iteration 1
    clip_ratio: float = 0.0  # c: up to this relative change of a probability in an iteration its gain counts; 0: always
    kl: float = 0.0  # weight of the divergence from the iteration's first policy


OBJECTIVES = {  # by trials on Leduc (docs/algorithms/ppo.md)
    "ppo": PolicyObjective(steps=4, learning_rate=5e-4, entropy=0.2, clip_ratio=0.1),
    "mmd": PolicyObjective(steps=8, learning_rate=0.003, entropy=0.3, kl=3.0),
}


_ENTROPY_END = 0.05  # alpha in the last iteration


@dataclass(frozen=True)
class PolicyGradientRecord(SelfPlayRecord):
    """Figures of one iteration."""

    entropy_weight: float  # alpha
    value_loss: tuple[float, float]  # mean squared error of V, in squared units of the payoffs

    @property
    def loss(self) -> tuple[float, float]:
        return self.value_loss


@dataclass(frozen=True)
class _Experience:
    """One player's decisions of an iteration, I of them, with what its networks said then."""

    infosets: Infosets
    action: torch.Tensor  # int64 [I]
    policy: torch.Tensor  # float32 [I, A], log-probabilities, 0 for illegal actions
    advantage: torch.Tensor  # float32 [I], in units of V's scale
    returns: torch.Tensor  # float32 [I], in the same


class PolicyGradient(SelfPlay):
    """The solver; iterate over `iterations()` to advance it."""

    def __init__(self, game: Game, config: RunConfig) -> None:
        super().__init__(game, config)
        self.policies = (self._learner("policy", 0), self._learner("policy", 1))
        self.values = (self._learner("value", 0), self._learner("value", 1))
        with torch.no_grad():
            for learner in self.policies:  # uniform play at first, the magnet
                for parameter in learner.network.last_layer.parameters():
                    parameter.zero_()

    @property
    def settings(self) -> PPOConfig:
        return self.config.ppo

    @property
    def objective(self) -> PolicyObjective:
        """The objective that an update of policy networks descends on."""
        return OBJECTIVES[self.config.solver]

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
            entropy_weight=entropy_weight(self.objective.entropy, t, self.config.iterations),
            value_loss=(losses[0] or 0.0, losses[1] or 0.0),
        )

    def _kinds(self, t: int) -> list[tuple[NetworkPlayer]]:  # noqa: ARG002
        return [(NetworkPlayer.of(learner.network, masked_softmax),) for learner in self.policies]

    def modes(self, deals: Deals, t: int) -> torch.Tensor:  # noqa: ARG002
        """The only mode of every player in every game, int64 [B, P]."""
        return torch.zeros(len(deals), len(PLAYERS), dtype=torch.int64, device=deals.traversal.device)

    def _learn(self, t: int, player: int, found: list[Episodes]) -> float | None:
        """Update a player's networks; returns the mean squared error of V, None if the player never acts."""
        objective, last, legal = self.objective, self.config.iterations, self.game.encoding.legal
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
        tensors: Tensors = {
            f"{name}.{part}": tensor.cpu().contiguous()
            for name, learner in self._learners(memories).items()
            for part, tensor in learner.tensors(training=memories).items()
        }
        facts = self._facts(
            "ppo", {name: learner.updates for name, learner in self._learners(memories).items() if memories}
        )
        return SolverState(facts, tensors, {})

    def restore(self, saved: SavedState, memories: bool) -> None:
        self._restore_facts(saved)
        for name, learner in self._learners(memories).items():
            learner.load_tensors(saved.part(f"{name}."))

    def state_bytes(self, memories: bool) -> int:  # noqa: ARG002
        return 0

    @staticmethod
    def memory_bytes(game: Game, config: RunConfig) -> int:  # noqa: ARG004
        return 0

    def _learners(self, training: bool) -> dict[str, Learner]:
        """The networks by their names in a checkpoint, all of them for `training`."""
        pairs = {"policy": self.policies, **({"value": self.values} if training else {})}
        return {f"{name}-{player}": pair[player] for name, pair in pairs.items() for player in PLAYERS}


def entropy_weight(first: float, t: int, iterations: int) -> float:
    """alpha in iteration t: from `first` to 0.05 by a constant factor for every iteration."""
    done = (t - 1) / max(1, iterations - 1)
    return float(first ** (1 - done) * _ENTROPY_END**done)


def regularised_loss(
    new: torch.Tensor,
    old: torch.Tensor,
    action: torch.Tensor,
    advantage: torch.Tensor,
    objective: PolicyObjective,
    alpha: float,
    legal: torch.Tensor,
) -> torch.Tensor:
    """The mean of the module's objective over decisions; `new` and `old` are log-probabilities [I, A], 0 if not legal."""
    ratio = (new - old).gather(1, action[:, None])[:, 0].exp()
    gain = ratio * advantage
    if objective.clip_ratio:
        clipped = ratio.clamp(1 - objective.clip_ratio, 1 + objective.clip_ratio)
        gain = torch.minimum(gain, clipped * advantage)
    probability = new.exp() * legal
    regular = (probability * (alpha * new + objective.kl * (new - old))).sum(1)
    return (regular - gain).mean()


def generalised_advantages(
    reward: torch.Tensor, value: torch.Tensor, terminal: torch.Tensor, trace: float
) -> torch.Tensor:
    """GAE with discount 1 (Schulman et al. 2016, equation 16) of decisions that stand game by game, float32 [I].

    `value` is V at each decision, and `reward` what follows it before the next decision, or the end where `terminal`.
    """
    following = torch.cat([value[1:], value[:1]]).masked_fill(terminal, 0.0)
    error = reward + following - value
    advantage = error
    for _ in range(_longest(terminal) - 1):
        later = torch.cat([advantage[1:], advantage[:1]]).masked_fill(terminal, 0.0)
        advantage = error + trace * later
    return advantage


def _longest(terminal: torch.Tensor) -> int:
    """The most decisions of one game."""
    ends = terminal.nonzero()[:, 0]
    return int(torch.diff(ends, prepend=ends.new_tensor([-1])).max())
