"""Neural Fictitious Self-Play (Heinrich and Silver 2016), Algorithm 1, in batches of episodes.

Every player has an action-value network Q, which learns a best response to the opponent from replayed transitions, and
an average-policy network Pi, which imitates the player's own best responses. In each episode a player plays its best
response with probability eta, and its average policy otherwise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import torch

from deepcfr.config import NFSPConfig
from deepcfr.games.base import Deals, Game
from deepcfr.memory.reservoir import (
    Memory,
    SavedState,
    SolverState,
    Store,
    Tensors,
    bytes_per_sample,
    load_weights,
    memory_arrays,
    restore_memories,
)
from deepcfr.parallel import Workers
from deepcfr.policies.base import Policy
from deepcfr.policies.network import NetworkPerPlayer
from deepcfr.reinforcement.episodes import Episodes, TransitionMemory, bytes_per_transition, payoff_unit, play_episodes
from deepcfr.reinforcement.learner import Learner, copies, cosine, epsilon_greedy, imitation_loss, outputs_at, q_loss
from deepcfr.reinforcement.self_play import CHUNK, EXPLORE, PLAYERS, NetworkPlayer, SelfPlay, mixed
from deepcfr.rng import addressed_uniforms
from deepcfr.training.fit import masked_softmax
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Samples

AVERAGE, RESPONSE = 0, 1  # modes of a player in a game, besides EXPLORE


@dataclass(frozen=True)
class NFSPRecord:
    """Figures of one iteration; pairs are for players 0 and 1."""

    iteration: int
    episodes: int
    nodes_touched: int
    evaluated: int  # infosets at which networks were evaluated
    trained: int  # examples in the mini-batches of all four networks
    play_seconds: float
    fit_seconds: float
    epsilon: float
    q_loss: tuple[float, float]  # mean squared error of the iteration's steps, in squared units of the payoffs
    policy_loss: tuple[float, float]  # mean cross-entropy
    replay_samples: tuple[int, int]  # in the memories
    reservoir_samples: tuple[int, int]

    def figures(self) -> str:
        """The figures that progress shows."""
        return (
            f"{self.episodes / max(self.play_seconds + self.fit_seconds, 1e-9):,.0f} episodes/s, "
            f"loss {self.q_loss[0]:.2f} {self.q_loss[1]:.2f}"
        )


@dataclass(frozen=True)
class AgentMemories:
    """Each player's replay memory M_RL of transitions and reservoir M_SL of its own best responses."""

    replay: tuple[TransitionMemory, TransitionMemory]
    reservoir: tuple[Memory, Memory]

    def named(self) -> list[tuple[str, Store]]:
        """Every memory with its name in a checkpoint."""
        replays = [(f"replay-{player}", memory) for player, memory in enumerate(self.replay)]
        return [*replays, *((f"reservoir-{player}", memory) for player, memory in enumerate(self.reservoir))]


@dataclass
class NFSP(SelfPlay):
    """The NFSP solver; iterate over `iterations()` to advance it."""

    values: tuple[Learner, Learner] = field(init=False)  # Q
    targets: tuple[SplitNetwork, SplitNetwork] = field(init=False)  # the last copy of Q
    averages: tuple[Learner, Learner] = field(init=False)  # Pi
    memories: AgentMemories = field(init=False)
    workers: Workers = field(init=False)

    def __post_init__(self) -> None:
        settings, game = self.settings, self.game
        self.values = (self._learner("value", 0), self._learner("value", 1))
        self.averages = (self._learner("average", 0), self._learner("average", 1))
        self.targets = (self._new_network("value", 0), self._new_network("value", 1))
        encoding, device = game.encoding, game.device
        replays = [TransitionMemory(encoding, settings.replay_capacity, device) for _ in PLAYERS]
        reservoirs = [Memory(encoding, settings.reservoir_capacity, "reservoir", device) for _ in PLAYERS]
        self.memories = AgentMemories((replays[0], replays[1]), (reservoirs[0], reservoirs[1]))
        self.workers = Workers(self.config.runtime.threads if device == "cpu" else 1)

    @property
    def settings(self) -> NFSPConfig:
        return self.config.nfsp

    def iterations(self) -> Iterator[NFSPRecord]:
        """Algorithm 1's loop over episodes, from the current state to the configured number of iterations."""
        while self.iteration < self.settings.iterations:
            yield self._iterate()

    def _iterate(self) -> NFSPRecord:
        t, settings = self.iteration + 1, self.settings
        start = time.perf_counter()
        touched = evaluated = 0
        for found in self._play(t):
            touched += found.nodes_touched
            evaluated += found.decisions
            self._remember(found, t)
        played = time.perf_counter()
        jobs = [*((self._learn_values, player) for player in PLAYERS)]
        jobs += [*((self._learn_average, player) for player in PLAYERS)]
        losses = list(self.workers.map(lambda job: job[0](t, job[1]), jobs))
        replay, reservoir = self.memories.replay, self.memories.reservoir
        value_steps = sum(settings.q_steps for memory in replay if len(memory))
        average_steps = sum(settings.policy_steps for memory in reservoir if len(memory))
        self.iteration = t
        self.nodes_touched += touched
        return NFSPRecord(
            iteration=t,
            episodes=settings.episodes,
            nodes_touched=touched,
            evaluated=evaluated,
            trained=settings.batch_size * (value_steps + average_steps),
            play_seconds=played - start,
            fit_seconds=time.perf_counter() - played,
            epsilon=exploration(settings, t),
            q_loss=(losses[0], losses[1]),
            policy_loss=(losses[2], losses[3]),
            replay_samples=(len(replay[0]), len(replay[1])),
            reservoir_samples=(len(reservoir[0]), len(reservoir[1])),
        )

    def _play(self, t: int) -> Iterator[Episodes]:
        """The episodes of an iteration in order, in chunks."""
        total, epsilon = self.settings.episodes, exploration(self.settings, t)
        values = [
            NetworkPlayer.of(learner.network, partial(epsilon_greedy, epsilon=epsilon)) for learner in self.values
        ]
        averages = [NetworkPlayer.of(learner.network, masked_softmax) for learner in self.averages]
        deal, act = self._stream("deal", t), self._stream("action", t)

        def run_chunk(first: int) -> Episodes:
            deals = self.game.deal(min(CHUNK, total - first), deal, first)
            modes = self.modes(deals, t)
            first_player, second = (
                mixed(self.game, deals, modes[:, player], player, (averages[player], values[player]))
                for player in PLAYERS
            )
            return play_episodes(self.game, deals, (first_player, second), modes, act)

        yield from self.workers.map(run_chunk, range(0, total, CHUNK))

    def modes(self, deals: Deals, t: int) -> torch.Tensor:
        """Draw what each player does in each game, int64 [B, P]: AVERAGE, RESPONSE with probability eta, or EXPLORE.

        In a share of the games of each player it explores, but never both at once.
        """
        players = torch.arange(len(PLAYERS), device=deals.traversal.device)
        chance = addressed_uniforms(self._stream("mode", t), deals.traversal[:, None], players)
        modes = torch.where(chance < self.settings.anticipatory, RESPONSE, AVERAGE)
        if share := self.settings.exploration:
            who = addressed_uniforms(self._stream("explorer", t), deals.traversal, torch.zeros_like(deals.traversal))
            modes[(who[:, None] / share).long() == players] = EXPLORE
        return modes

    def _remember(self, found: Episodes, t: int) -> None:
        """Add transitions to the replay memory, and best responses, without exploration, to the reservoir.

        A player's action values are against the opponent's strategy, so they do not learn from games in which it explores.
        """
        encoding = self.game.encoding
        for player in PLAYERS:
            transitions, (mode, opposing) = found.transitions[player], found.modes[player].unbind(1)
            self.memories.replay[player].add(transitions[opposing != EXPLORE], t)
            infosets = transitions.infosets[mode == RESPONSE]
            with torch.no_grad():
                values = outputs_at(self.values[player].network, infosets, encoding)
            response = epsilon_greedy(values, encoding.legal[infosets.node])
            times = torch.full((len(response),), t, dtype=torch.int32, device=response.device)
            reservoir = self.memories.reservoir[player]
            stream = self._stream("slot", t, player, reservoir.seen)
            reservoir.add(Samples(infosets, response, times), stream)

    def _learn_values(self, t: int, player: int) -> float:
        """Train Q towards r + max Q', and copy it to the target network when due; returns the mean loss."""
        learner, target, memory = self.values[player], self.targets[player], self.memories.replay[player]
        settings, encoding = self.settings, self.game.encoding
        if not len(memory) or not settings.q_steps:
            return 0.0
        if not learner.updates:
            unit = payoff_unit(memory.filled("reward"), memory.filled("terminal"))
            for network in (learner.network, target):
                network.scale.fill_(unit)

        def loss(index: torch.Tensor) -> torch.Tensor:
            if learner.updates % settings.target_every == 0:
                target.load_state_dict(learner.network.state_dict())
            return q_loss(learner.network, target, memory[index], encoding)

        rate, stream = settings.q_learning_rate * cosine(t, settings.iterations), self._stream("value steps", t, player)
        mean = learner.descend(len(memory), loss, settings.q_steps, settings.batch_size, rate, stream)
        return mean * float(learner.network.scale) ** 2

    def _learn_average(self, t: int, player: int) -> float:
        """Train Pi towards the player's own best responses; returns the mean loss."""
        learner, memory, settings = self.averages[player], self.memories.reservoir[player], self.settings
        encoding = self.game.encoding
        if not len(memory) or not settings.policy_steps:
            return 0.0

        def loss(index: torch.Tensor) -> torch.Tensor:
            batch = memory[index]
            logits = outputs_at(learner.network, batch.infosets, encoding)
            return imitation_loss(logits, batch.target, encoding.legal[batch.infosets.node])

        rate = settings.policy_learning_rate * cosine(t, settings.iterations)
        stream = self._stream("average steps", t, player)
        return learner.descend(len(memory), loss, settings.policy_steps, settings.batch_size, rate, stream)

    def average_policy(self) -> Policy:
        """Each player's average-policy network, the strategy that converges."""
        networks = copies(self.averages)
        return NetworkPerPlayer(self.game, networks, (masked_softmax, masked_softmax), "NFSP's average-policy networks")

    def current_policy(self) -> Policy:
        """Each player's newest best response, without exploration."""
        networks = copies(self.values)
        return NetworkPerPlayer(
            self.game, networks, (epsilon_greedy, epsilon_greedy), "greedy in NFSP's action-value networks"
        )

    def state(self, memories: bool) -> SolverState:
        """The state for a checkpoint, with or without `memories`."""
        tensors: Tensors = {}
        for player in PLAYERS:
            parts = {"value": self.values[player].tensors(), "average": self.averages[player].tensors()}
            parts["target"] = dict(self.targets[player].state_dict())
            for kind, items in parts.items():
                tensors |= {f"{kind}-{player}.{name}": tensor.cpu().contiguous() for name, tensor in items.items()}
        kept = self.memories.named() if memories else []
        facts = self._facts({name: memory.seen for name, memory in kept})
        return SolverState(facts, tensors, memory_arrays(kept))

    def restore(self, saved: SavedState, memories: bool) -> None:
        """Restore the state of a checkpoint, with or without `memories`."""
        self._restore_facts(saved)
        for player in PLAYERS:
            self.values[player].load_tensors(saved.part(f"value-{player}."))
            self.averages[player].load_tensors(saved.part(f"average-{player}."))
            load_weights(self.targets[player], saved.part(f"target-{player}."), f"target-{player}.")
        restore_memories(self.memories.named() if memories else [], saved)

    def memory_bytes(self, memories: bool) -> int:
        """Bytes of the memories in a saved state, 0 without `memories`."""
        return sum(memory.nbytes for _, memory in self.memories.named()) if memories else 0

    def _learner(self, *purpose: str | int) -> Learner:
        return Learner(self._new_network(*purpose))


def exploration(settings: NFSPConfig, t: int) -> float:
    """Epsilon in iteration t, in proportion to 1 / sqrt(t) as in the paper."""
    return settings.epsilon_start / math.sqrt(t)


def memory_bytes(game: Game, settings: NFSPConfig) -> int:
    """Bytes of a run's full memories."""
    replay = bytes_per_transition(game.encoding) * settings.replay_capacity
    return len(PLAYERS) * (replay + bytes_per_sample(game.encoding) * settings.reservoir_capacity)
