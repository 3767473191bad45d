"""Policy gradients by self-play with a regularised objective: PPO and magnetic mirror descent.

Every player has a policy network pi and a value network V of its own infosets. An iteration plays a batch of episodes and
then descends on

    - min(rho A, clip(rho, 1 - c, 1 + c) A) - alpha H(pi(I)) + kl KL(pi(I) || pi_old(I)) ,    rho = pi(I, a) / pi_old(I, a),

where A is the generalised advantage estimate (Schulman et al. 2016) and H the entropy. With a clip c > 0 it is PPO
(Schulman et al. 2017); with kl = 1 / eta and no clip it is magnetic mirror descent towards uniform play (Sokota et al.
2023). With alpha > 0 there is one equilibrium of the regularised game, and what is played in the end approaches it; alpha
falls over the run (Rudolph et al. 2025). There is no average: the last strategy is measured and played.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from deepcfr.config import PPOConfig
from deepcfr.memory.state import SavedState, State, Tensors
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.network import NetworkPerPlayer
from deepcfr.reinforcement.episodes import Episodes, Transitions, play_episodes
from deepcfr.reinforcement.learner import Learner, cosine
from deepcfr.reinforcement.players import CHUNK, PLAYERS, NetworkPlayer, mixed
from deepcfr.reinforcement.q_learning import outputs_at
from deepcfr.reinforcement.self_play import SelfPlay
from deepcfr.training.losses import masked_softmax
from deepcfr.types import Infosets


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

    def iterations(self, _average_due: object = None, /) -> Iterator[PolicyGradientRecord]:
        """Batches of episodes with updates, from the current state to the configured number of iterations."""
        while self.iteration < self.settings.iterations:
            yield self._iterate()

    def _iterate(self) -> PolicyGradientRecord:
        t, settings = self.iteration + 1, self.settings
        start = time.perf_counter()
        found = list(self._play(t))
        played = time.perf_counter()
        losses = list(self.workers.map(lambda player: self._learn(t, player, found), PLAYERS))
        steps = sum(settings.steps + settings.value_steps for player in PLAYERS if losses[player] is not None)
        self.iteration = t
        self.nodes_touched += (touched := sum(episodes.nodes_touched for episodes in found))
        return PolicyGradientRecord(
            iteration=t,
            episodes=settings.episodes,
            nodes_touched=touched,
            evaluated=sum(episodes.decisions for episodes in found),
            trained=settings.batch_size * steps,
            play_seconds=played - start,
            fit_seconds=time.perf_counter() - played,
            entropy_weight=entropy_weight(settings, t),
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
        settings, legal = self.settings, self.game.encoding.legal
        policy, value = self.policies[player], self.values[player]
        steps = [episodes.transitions[player] for episodes in found]
        if not sum(map(len, steps)):
            return None
        if not value.updates:
            value.network.scale.fill_(_payoff_unit(steps))
        seen = self._experience(player, steps)
        alpha, factor = entropy_weight(settings, t), cosine(t, settings.iterations)

        def policy_loss(index: torch.Tensor) -> torch.Tensor:
            infosets = seen.infosets[index]
            new = log_softmax(outputs_at(policy.network, infosets, self.game.encoding), legal[infosets.node])
            return regularised_loss(
                new,
                seen.policy[index],
                seen.action[index],
                seen.advantage[index],
                settings,
                alpha,
                legal[infosets.node],
            )

        def value_loss(index: torch.Tensor) -> torch.Tensor:
            predicted = outputs_at(value.network, seen.infosets[index], self.game.encoding)[:, 0]
            return (predicted - seen.returns[index]).square().mean()

        for learner, loss, count, rate, name in (
            (policy, policy_loss, settings.steps, settings.learning_rate, "policy"),
            (value, value_loss, settings.value_steps, settings.value_learning_rate, "value"),
        ):
            stream = self._stream(f"{name} steps", t, player)
            last = learner.descend(len(seen.action), loss, count, settings.batch_size, rate * factor, stream)
        return last * float(value.network.scale) ** 2

    @torch.no_grad()
    def _experience(self, player: int, steps: list[Transitions]) -> _Experience:
        encoding, value = self.game.encoding, self.values[player].network
        infosets = Infosets(
            torch.cat([part.infosets.node for part in steps]), torch.cat([part.infosets.cards for part in steps])
        )
        action, reward, terminal = (
            torch.cat([getattr(part, name) for part in steps]) for name in ("action", "reward", "terminal")
        )
        predicted = outputs_at(value, infosets, encoding)[:, 0]
        advantage = generalised_advantages(reward / value.scale, predicted, terminal, self.settings.trace)
        logits = outputs_at(self.policies[player].network, infosets, encoding)
        return _Experience(
            infosets, action, log_softmax(logits, encoding.legal[infosets.node]), advantage, predicted + advantage
        )

    def current_policy(self) -> Policy:
        """Each player's policy network."""
        networks = (self.policies[0].network, self.policies[1].network)
        return NetworkPerPlayer(self.game, networks, masked_softmax, "policy networks")

    def average_policy(self) -> Policy:
        """The same: there is no average."""
        return self.current_policy()

    def state(self, memories: bool) -> State:
        """The state for a checkpoint; without `memories` it can be played but not trained."""
        tensors: Tensors = {
            f"{name}.{part}": tensor.cpu().contiguous()
            for name, learner in self._learners(memories).items()
            for part, tensor in learner.tensors(training=memories).items()
        }
        facts = self._facts({name: learner.updates for name, learner in self._learners(memories).items() if memories})
        return State(facts, tensors, {})

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
        return Learner(self._new_network(*purpose), "adam", self.settings.clip)


def entropy_weight(settings: PPOConfig, t: int) -> float:
    """alpha in iteration t: from `entropy` to `entropy_end` by a constant factor for every iteration."""
    if settings.entropy_end == settings.entropy:
        return settings.entropy
    done = (t - 1) / max(1, settings.iterations - 1)
    return float(settings.entropy ** (1 - done) * settings.entropy_end**done)


def log_softmax(logits: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of legal actions, and 0 for the others, float32 [..., A]."""
    return logits.masked_fill(~legal, -torch.inf).log_softmax(-1).masked_fill(~legal, 0.0)


def regularised_loss(
    new: torch.Tensor,
    old: torch.Tensor,
    action: torch.Tensor,
    advantage: torch.Tensor,
    settings: PPOConfig,
    alpha: float,
    legal: torch.Tensor,
) -> torch.Tensor:
    """The mean of the module's objective over decisions; `new` and `old` are log-probabilities [I, A]."""
    ratio = (new - old).gather(1, action[:, None])[:, 0].exp()
    gain = ratio * advantage
    if settings.clip_ratio:
        clipped = ratio.clamp(1 - settings.clip_ratio, 1 + settings.clip_ratio)
        gain = torch.minimum(gain, clipped * advantage)
    probability = new.exp() * legal
    regular = (probability * (alpha * new + settings.kl * (new - old))).sum(1)
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


def _payoff_unit(steps: list[Transitions]) -> float:
    """The root mean square of payoffs, 1 if all are 0."""
    payoffs = torch.cat([part.reward[part.terminal] for part in steps]).double()
    return math.sqrt(float(payoffs.square().mean())) or 1.0
