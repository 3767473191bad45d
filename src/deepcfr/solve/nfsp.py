"""Neural Fictitious Self-Play (Heinrich and Silver 2016), Algorithm 1, in batches of episodes.

Every player has an action-value network Q, which learns a best response to the opponent from replayed transitions, and
an average-policy network Pi, which imitates the player's own best responses. In each episode a player plays its best
response with probability eta, and its average policy otherwise.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from deepcfr.config import NFSPConfig, RunConfig
from deepcfr.core.rng import addressed_uniforms
from deepcfr.core.types import Encoding, Infosets, Samples
from deepcfr.game.base import Deals, Game
from deepcfr.network.fit import masked_log_softmax, masked_softmax
from deepcfr.network.memory import Memory, Store, bytes_per_sample, node_type
from deepcfr.network.networks import SplitNetwork
from deepcfr.policy.base import Policy
from deepcfr.policy.network import NetworkPerPlayer
from deepcfr.solve.base import (
    PLAYERS,
    SavedState,
    SolverState,
    Tensors,
    load_weights,
    memory_arrays,
    restore_memories,
)
from deepcfr.solve.self_play import (
    EXPLORE,
    Episodes,
    NetworkPlayer,
    SelfPlay,
    SelfPlayRecord,
    Transitions,
    copies,
    cosine,
    outputs_at,
    payoff_unit,
)

AVERAGE, RESPONSE = 0, 1  # modes of a player in a game, besides EXPLORE


@dataclass(frozen=True)
class NFSPRecord(SelfPlayRecord):
    """Figures of one iteration."""

    epsilon: float
    q_loss: tuple[float, float]  # mean squared error of the iteration's steps, in squared units of the payoffs
    policy_loss: tuple[float, float]  # mean cross-entropy
    replay_samples: tuple[int, int]  # in the memories
    reservoir_samples: tuple[int, int]

    @property
    def loss(self) -> tuple[float, float]:
        return self.q_loss


class NFSP(SelfPlay):
    """The NFSP solver; iterate over `iterations()` to advance it."""

    def __init__(self, game: Game, config: RunConfig) -> None:
        super().__init__(game, config)
        self.values = (self._learner("value", 0), self._learner("value", 1))  # Q
        self.averages = (self._learner("average", 0), self._learner("average", 1))  # Pi
        self.targets = (self._new_network("value", 0), self._new_network("value", 1))  # the last copy of Q
        encoding, device, settings = game.encoding, game.device, self.settings
        self.replay = [TransitionMemory(encoding, settings.replay_capacity, device) for _ in PLAYERS]  # M_RL
        self.reservoir = [Memory(encoding, settings.reservoir_capacity, "reservoir", device) for _ in PLAYERS]  # M_SL

    @property
    def stores(self) -> dict[str, Store]:
        """Every memory by its name in a checkpoint: transitions, and the player's own best responses."""
        replays = {f"replay-{player}": memory for player, memory in enumerate(self.replay)}
        return {**replays, **{f"reservoir-{player}": memory for player, memory in enumerate(self.reservoir)}}

    @property
    def settings(self) -> NFSPConfig:
        return self.config.nfsp

    def _iterate(self) -> NFSPRecord:
        t, settings = self.iteration + 1, self.settings
        start = time.perf_counter()
        touched = evaluated = 0
        for found in self._play(t):
            touched += found.nodes_touched
            evaluated += found.decisions
            self._remember(found, t)
        played = time.perf_counter()
        jobs = [(learn, player) for learn in (self._learn_values, self._learn_average) for player in PLAYERS]
        losses = list(self.workers.map(lambda job: job[0](t, job[1]), jobs))
        replay, reservoir = self.replay, self.reservoir
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

    def _kinds(self, t: int) -> list[tuple[NetworkPlayer, NetworkPlayer]]:
        """Each player's average policy, and its best response with exploration."""
        greedy = partial(epsilon_greedy, epsilon=exploration(self.settings, t))
        return [
            (NetworkPlayer.of(average.network, masked_softmax), NetworkPlayer.of(value.network, greedy))
            for average, value in zip(self.averages, self.values, strict=True)
        ]

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
            self.replay[player].add(transitions[opposing != EXPLORE], t)
            infosets = transitions.infosets[mode == RESPONSE]
            with torch.no_grad():
                values = outputs_at(self.values[player].network, infosets, encoding)
            response = epsilon_greedy(values, encoding.legal[infosets.node])
            times = torch.full((len(response),), t, dtype=torch.int32, device=response.device)
            reservoir = self.reservoir[player]
            stream = self._stream("slot", t, player, reservoir.seen)
            reservoir.add(Samples(infosets, response, times), stream)

    def _learn_values(self, t: int, player: int) -> float:
        """Train Q towards r + max Q', and copy it to the target network when due; returns the mean loss."""
        learner, target, memory = self.values[player], self.targets[player], self.replay[player]
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

        rate = settings.q_learning_rate * cosine(t, self.config.iterations)
        stream = self._stream("value steps", t, player)
        mean = learner.descend(len(memory), loss, settings.q_steps, settings.batch_size, rate, stream)
        return mean * float(learner.network.scale) ** 2

    def _learn_average(self, t: int, player: int) -> float:
        """Train Pi towards the player's own best responses; returns the mean loss."""
        learner, memory, settings = self.averages[player], self.reservoir[player], self.settings
        encoding = self.game.encoding
        if not len(memory) or not settings.policy_steps:
            return 0.0

        def loss(index: torch.Tensor) -> torch.Tensor:
            batch = memory[index]
            logits = outputs_at(learner.network, batch.infosets, encoding)
            return imitation_loss(logits, batch.target, encoding.legal[batch.infosets.node])

        rate = settings.policy_learning_rate * cosine(t, self.config.iterations)
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
        tensors: Tensors = {}
        for player in PLAYERS:
            parts = {"value": self.values[player].tensors(), "average": self.averages[player].tensors()}
            parts["target"] = dict(self.targets[player].state_dict())
            for kind, items in parts.items():
                tensors |= {f"{kind}-{player}.{name}": tensor.cpu().contiguous() for name, tensor in items.items()}
        kept = self.stores if memories else {}
        facts = self._facts("nfsp", {name: memory.seen for name, memory in kept.items()})
        return SolverState(facts, tensors, memory_arrays(kept))

    def restore(self, saved: SavedState, memories: bool) -> None:
        self._restore_facts(saved)
        for player in PLAYERS:
            self.values[player].load_tensors(saved.part(f"value-{player}."))
            self.averages[player].load_tensors(saved.part(f"average-{player}."))
            load_weights(self.targets[player], saved.part(f"target-{player}."), f"target-{player}.")
        restore_memories(self.stores if memories else {}, saved)

    def state_bytes(self, memories: bool) -> int:
        return sum(memory.nbytes for memory in self.stores.values()) if memories else 0

    @staticmethod
    def memory_bytes(game: Game, config: RunConfig) -> int:
        replay = bytes_per_transition(game.encoding) * config.nfsp.replay_capacity
        return len(PLAYERS) * (replay + bytes_per_sample(game.encoding) * config.nfsp.reservoir_capacity)


def exploration(settings: NFSPConfig, t: int) -> float:
    """Epsilon in iteration t, in proportion to 1 / sqrt(t) as in the paper."""
    return settings.epsilon_start / math.sqrt(t)


def bytes_per_transition(encoding: Encoding) -> int:
    """Bytes of a transition in a replay memory."""
    node = torch.empty(0, dtype=node_type(encoding)).element_size()
    return 2 * (node + sum(encoding.card_groups)) + 2 + 4 + 1 + 4


class TransitionMemory(Store):
    """The newest `capacity` transitions of one player (Mnih et al. 2015; M_RL of Heinrich and Silver 2016)."""

    def __init__(self, encoding: Encoding, capacity: int, device: str = "cpu") -> None:
        cards, nodes = sum(encoding.card_groups), node_type(encoding)
        columns = {
            "node": torch.empty(capacity, dtype=nodes, device=device),
            "cards": torch.empty(capacity, cards, dtype=torch.uint8, device=device),
            "action": torch.empty(capacity, dtype=torch.int16, device=device),
            "reward": torch.empty(capacity, dtype=torch.float32, device=device),
            "next_node": torch.empty(capacity, dtype=nodes, device=device),
            "next_cards": torch.empty(capacity, cards, dtype=torch.uint8, device=device),
            "terminal": torch.empty(capacity, dtype=torch.bool, device=device),
            "iteration": torch.empty(capacity, dtype=torch.int32, device=device),
        }
        super().__init__(columns, capacity, "window")

    def add(self, transitions: Transitions, iteration: int) -> None:
        """Add `transitions` of an iteration in order, in place of the oldest ones."""
        times = torch.full((len(transitions),), iteration, dtype=torch.int32, device=transitions.action.device)
        following = {"next_node": transitions.following.node, "next_cards": transitions.following.cards}
        rows = vars(transitions) | vars(transitions.infosets) | following | {"iteration": times}
        self.put(rows, stream=0)  # a window needs no random numbers

    def __getitem__(self, index: torch.Tensor | slice) -> Transitions:
        columns = {name: self.rows(name, index) for name in self.columns if name != "iteration"}
        return Transitions(
            infosets=Infosets(columns["node"].int(), columns["cards"]),
            action=columns["action"].long(),
            reward=columns["reward"],
            following=Infosets(columns["next_node"].int(), columns["next_cards"]),
            terminal=columns["terminal"],
        )


@torch.no_grad()
def q_targets(target: SplitNetwork, transitions: Transitions, encoding: Encoding) -> torch.Tensor:
    """r + max over legal a' of Q(s', a' | theta^Q'), or r without a further decision; float32 [I].

    `target` is the target network; the result is in units of `target.scale`. There is no discount.
    Source: Algorithm 1, the loss of theta^Q.
    """
    following = transitions.following
    illegal = ~encoding.legal[following.node]
    values = outputs_at(target, following, encoding).masked_fill(illegal, -torch.inf).amax(1)
    return transitions.reward / target.scale + values.masked_fill(transitions.terminal, 0.0)


def q_loss(network: SplitNetwork, target: SplitNetwork, transitions: Transitions, encoding: Encoding) -> torch.Tensor:
    """Mean over transitions of (Q(s, a | theta^Q) - target)^2; Algorithm 1, the loss of theta^Q."""
    values = outputs_at(network, transitions.infosets, encoding).gather(1, transitions.action[:, None])[:, 0]
    return (values - q_targets(target, transitions, encoding)).square().mean()


def imitation_loss(logits: torch.Tensor, strategy: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Mean over samples of -sum over legal actions of strategy * log Pi; Algorithm 1, the loss of theta^Pi.

    All are [I, A]; `strategy` is 1 for the chosen action.
    """
    return -(strategy * masked_log_softmax(logits, legal)).sum(1).mean()


def epsilon_greedy(values: torch.Tensor, legal: torch.Tensor, epsilon: float = 0.0) -> torch.Tensor:
    """The action of largest value with probability 1 - epsilon, otherwise a uniform legal action; [..., A].

    `values` and `legal` are [I, A], or any shapes that broadcast. Ties go to the first action.
    """
    best = values.masked_fill(~legal, -torch.inf).argmax(-1)
    greedy = functional.one_hot(best, values.shape[-1]).to(values.dtype)
    return (1 - epsilon) * greedy + epsilon * legal / legal.sum(-1, keepdim=True)
