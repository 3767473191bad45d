"""The shared parts of solvers by self-play: episodes and their transitions, learners, and networks as players.

All games of a batch advance together, as in `sample.external`. Then each player's decisions are sorted by game, so
the transitions are the same as if the games had been played one after another.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from deepcfr.config import NFSPConfig, PPOConfig, RunConfig
from deepcfr.core.errors import TrainingError
from deepcfr.core.parallel import Workers, flushed_denormals
from deepcfr.core.rng import addressed_uniforms, generator, key
from deepcfr.core.types import TERMINAL, Encoding, Infosets, require_like
from deepcfr.game.base import Deals, Game, card_codes, distinct, infosets_at
from deepcfr.network.fit import gradients
from deepcfr.network.networks import NodeParts, SplitNetwork, build_network, count_parameters
from deepcfr.policy.network import ToStrategy
from deepcfr.sample.external import Strategy, sample_actions
from deepcfr.solve.base import PLAYERS, Record, Solver, load_weights, part


@dataclass(frozen=True)
class Transitions:
    """Steps of one player from a decision to its next one, or to the end of the game."""

    infosets: Infosets  # [I]
    action: torch.Tensor  # int64 [I]
    reward: torch.Tensor  # float32 [I], to the player, from its action until its next decision or the end
    following: Infosets  # [I], the player's next decision; `infosets` again where there is none
    terminal: torch.Tensor  # bool [I], whether the player has no further decision

    def __len__(self) -> int:
        return len(self.infosets)

    def __getitem__(self, some: torch.Tensor) -> Transitions:
        return Transitions(
            self.infosets[some], self.action[some], self.reward[some], self.following[some], self.terminal[some]
        )


def payoff_unit(reward: torch.Tensor, terminal: torch.Tensor) -> float:
    """The root mean square of the payoffs of games that end where `terminal`, [I] each; 1 if all are 0."""
    mean = float(reward[terminal].double().square().mean())
    return math.sqrt(mean) if mean > 0 else 1.0


@dataclass(frozen=True)
class Episodes:
    """Results of a batch of games."""

    transitions: tuple[
        Transitions, Transitions
    ]  # of players 0 and 1; game after game, each from first decision to last
    modes: tuple[torch.Tensor, torch.Tensor]  # int64 [I, 2], the modes of the player and of its opponent in the game
    payoffs: torch.Tensor  # float32 [B], to player 0
    nodes_touched: int  # decision and terminal histories visited, plus deals

    @property
    def decisions(self) -> int:
        """Number of decisions of both players."""
        return len(self.transitions[0]) + len(self.transitions[1])


def play_episodes(
    game: Game, deals: Deals, strategies: tuple[Strategy, Strategy], modes: torch.Tensor, stream: int
) -> Episodes:
    """Play one game for every deal.

    `strategies[p]` is player p's strategy; actions use the uniforms addressed by (traversal, node) in `stream`.
    `modes`, int64 [B, P], are the players' modes and only recorded. Games pay at their ends, so the reward of a
    transition that leads to another decision is 0.
    """
    node, row = game.start(deals), torch.arange(len(deals), device=deals.traversal.device)
    end, visits, touched = node.clone(), [], 0
    while True:
        touched += len(node) + int(game.deals_before[node].sum())
        end[row] = node
        live = (game.actor[node] != TERMINAL).nonzero()[:, 0]
        if not len(live):
            break
        node, row = node[live], row[live]
        action = _actions(game, deals, strategies, stream, node, row)
        visits.append((node, row, action))
        node = game.step(node, action, row, deals)
    nodes, rows, actions = (torch.cat(parts) for parts in zip(*visits, strict=True)) if visits else [row[:0]] * 3
    payoffs = game.payoff(end, torch.arange(len(deals), device=end.device), deals)
    transitions, of_decisions = [], []
    for player in PLAYERS:
        mine = (game.actor[nodes] == player).nonzero()[:, 0]
        mine = mine[rows[mine].argsort(stable=True)]  # levels are in order of depth, so each game's decisions stay so
        reward = payoffs if player == 0 else -payoffs
        transitions.append(_transitions(game, deals, nodes[mine], rows[mine], actions[mine], reward))
        of_decisions.append(modes[rows[mine]][:, [player, 1 - player]])
    return Episodes((transitions[0], transitions[1]), (of_decisions[0], of_decisions[1]), payoffs, touched)


def _actions(
    game: Game,
    deals: Deals,
    strategies: tuple[Strategy, Strategy],
    stream: int,
    node: torch.Tensor,
    row: torch.Tensor,
) -> torch.Tensor:
    """The action taken in every live game, int64 [M]."""
    action, actor = torch.empty_like(node), game.actor[node]
    chance = addressed_uniforms(stream, deals.traversal[row], node)
    for player in PLAYERS:
        here = (actor == player).nonzero()[:, 0]
        if len(here):
            action[here] = sample_actions(strategies[player](node[here], row[here]), chance[here])
    return action


def _transitions(
    game: Game, deals: Deals, node: torch.Tensor, row: torch.Tensor, action: torch.Tensor, payoff: torch.Tensor
) -> Transitions:
    """The transitions of a player's decisions, ordered by game and depth; `payoff` [B] is the player's."""
    terminal = torch.ones_like(row, dtype=torch.bool)
    terminal[:-1] = row[1:] != row[:-1]
    infosets = infosets_at(game, node, row, deals)
    after = torch.arange(len(row), device=row.device) + ~terminal
    return Transitions(
        infosets=infosets,
        action=action,
        reward=payoff[row].masked_fill(~terminal, 0.0),
        following=infosets[after],
        terminal=terminal,
    )


_LEAST_RATE = 0.1  # where a cosine ends, as a share of the rate: with a Q that no longer learns an average would drift
_CLIP = 1.0  # largest norm of a gradient
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # Adam's state of each parameter


def cosine(t: int, last: int) -> float:
    """The factor on a learning rate in iteration t of `last`, which falls along a cosine to a tenth."""
    return _LEAST_RATE + (1 - _LEAST_RATE) * 0.5 * (1 + math.cos(math.pi * (t - 1) / last))


def copies(learners: Sequence[Learner]) -> tuple[SplitNetwork, SplitNetwork]:
    """Copies of both players' networks, which training does not change."""
    shared = {id(learner.network.node_features): learner.network.node_features for learner in learners}
    return copy.deepcopy(learners[0].network, dict(shared)), copy.deepcopy(learners[1].network, dict(shared))


class Learner:
    """A network and its Adam, whose state is kept between iterations."""

    def __init__(self, network: SplitNetwork) -> None:
        self.network = network
        self.updates = 0  # steps taken
        self._parameters = list(network.parameters())
        self._optimizer = torch.optim.Adam(self._parameters, fused=True)

    def descend(
        self,
        examples: int,
        loss: Callable[[torch.Tensor], torch.Tensor],
        steps: int,
        batch_size: int,
        learning_rate: float,
        stream: int,
    ) -> float:
        """Take `steps` on mini-batches drawn with replacement from `examples`, and return their mean loss.

        `loss(index)` is the mean loss of the examples `index`, int64 [batch_size]. Raises TrainingError if it is
        not a number.
        """
        device = self._parameters[0].device
        index = torch.randint(examples, (steps, batch_size), generator=generator(stream, str(device)), device=device)
        total = torch.zeros((), device=device)
        self._optimizer.param_groups[0]["lr"] = learning_rate
        with flushed_denormals():
            for some in index:
                total += self._step(loss(some))
        mean = float(total) / steps
        if not mean < float("inf"):  # also true for NaN
            raise TrainingError(
                f"The loss is not a number after {self.updates} steps at learning rate {learning_rate:g}: "
                "lower the learning rate."
            )
        return mean

    def _step(self, loss: torch.Tensor) -> torch.Tensor:
        for parameter, gradient in zip(self._parameters, gradients(loss, self._parameters), strict=True):
            parameter.grad = gradient
        nn.utils.clip_grad_norm_(self._parameters, _CLIP)
        self._optimizer.step()
        self.updates += 1
        return loss.detach()

    def tensors(self, *, training: bool = True) -> dict[str, torch.Tensor]:
        """The tensors of a checkpoint: weights, the number of steps, and for `training` the optimizer's state."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        for position, parameter in enumerate(self._parameters if training else []):
            for name, tensor in self._optimizer.state[parameter].items():
                tensors[f"optimizer.{position}.{name}"] = tensor
        return tensors | {"updates": torch.tensor(self.updates)}

    def load_tensors(self, tensors: dict[str, torch.Tensor]) -> None:
        """Restore the state from the result of `tensors`. Raises CheckpointError for other shapes and types."""
        load_weights(self.network, part(tensors, "network."), "network.")
        require_like("updates", tensors["updates"], torch.tensor(0))
        self.updates = int(tensors["updates"])
        if "optimizer.0.step" not in tensors:
            return
        moments = {
            position: {name: tensors[f"optimizer.{position}.{name}"] for name in _MOMENTS}
            for position in range(len(self._parameters))
            if f"optimizer.{position}.step" in tensors
        }
        for position, state in moments.items():
            for name, tensor in state.items():
                like = torch.tensor(0.0) if name == "step" else self._parameters[position]
                require_like(f"optimizer.{position}.{name}", tensor, like)
        self._optimizer.load_state_dict(self._optimizer.state_dict() | {"state": moments})


def outputs_at(network: SplitNetwork, infosets: Infosets, encoding: Encoding) -> torch.Tensor:
    """The network's outputs in units of its `scale`, float32 [I, A]; a CPU computes each distinct infoset once.

    In small games most infosets occur many times in a mini-batch. On a GPU finding the repetitions costs more than it
    saves.
    """
    if infosets.cards.device.type != "cpu":
        return network(infosets)
    code = card_codes(infosets.cards, encoding) * len(encoding.legal) + infosets.node
    example, place = distinct(code)
    return functional.embedding(place, network(infosets[example]))


@dataclass(frozen=True)
class SelfPlayRecord:
    """Figures of one iteration; pairs are for players 0 and 1."""

    iteration: int
    episodes: int
    nodes_touched: int
    evaluated: int  # infosets at which networks were evaluated
    trained: int  # examples in the mini-batches of all four networks
    play_seconds: float
    fit_seconds: float

    @property
    @abstractmethod
    def loss(self) -> tuple[float, float]:
        """The losses that the progress display shows."""

    def figures(self) -> str:
        """The figures for the progress display."""
        rate = self.episodes / max(self.play_seconds + self.fit_seconds, 1e-9)
        return f"{rate:,.0f} episodes/s, loss {self.loss[0]:.2f} {self.loss[1]:.2f}"


class SelfPlay(Solver):
    """A solver whose iterations are batches of episodes, each followed by updates of all networks.

    Every random stream is derived from (seed, purpose, iteration, player), so there is no generator state to save.
    """

    def __init__(self, game: Game, config: RunConfig) -> None:
        self.game, self.config = game, config
        self.workers = Workers(config.runtime.threads if game.device == "cpu" else 1)

    @property
    @abstractmethod
    def settings(self) -> NFSPConfig | PPOConfig:
        """The solver's own section of the configuration."""

    @abstractmethod
    def _iterate(self) -> Record:
        """One iteration."""

    def iterations(self) -> Iterator[Record]:
        while self.iteration < self.config.iterations:
            yield self._iterate()

    def describe(self) -> str:
        return (
            f"{self.config.method} on {self.game.name}: {self.config.iterations:,} iterations of "
            f"{self.settings.episodes:,} episodes, networks of {count_parameters(self._new_network('size')):,} parameters, "
            f"seed {self.config.seed}"
        )

    @abstractmethod
    def _kinds(self, t: int) -> Sequence[Sequence[NetworkPlayer]]:
        """The strategies that each player may play in iteration t."""

    @abstractmethod
    def modes(self, deals: Deals, t: int) -> torch.Tensor:
        """The strategy that each player plays in each game, int64 [B, P]: its place among `_kinds`, or EXPLORE."""

    def _play(self, t: int) -> Iterator[Episodes]:
        """The episodes of an iteration in order, in chunks."""
        total, kinds = self.settings.episodes, self._kinds(t)
        deal, act = self._stream("deal", t), self._stream("action", t)

        def run_chunk(first: int) -> Episodes:
            deals = self.game.deal(min(CHUNK, total - first), deal, first)
            drawn = self.modes(deals, t)
            mine, theirs = (mixed(self.game, deals, drawn[:, player], player, kinds[player]) for player in PLAYERS)
            return play_episodes(self.game, deals, (mine, theirs), drawn, act)

        yield from self.workers.map(run_chunk, range(0, total, CHUNK))

    def _learner(self, *purpose: str | int) -> Learner:
        return Learner(self._new_network(*purpose))

    def _new_network(self, *purpose: str | int) -> SplitNetwork:
        return build_network(self.game.encoding, self.config.network, generator(self._stream("network", *purpose)))

    def _stream(self, *purpose: str | int) -> int:
        return key(self.config.seed, self.config.family, *purpose)


EXPLORE = -1  # the mode of a player in a game in which it plays the first of its players, with random actions between
_RANDOM = 0.5  # probability of a random action then
CHUNK = 4096  # episodes that advance together in one thread, so that their data fits in the cache


@dataclass(frozen=True)
class NetworkPlayer:
    """A network with its encoded nodes, and the function that turns its outputs into a strategy."""

    network: SplitNetwork
    nodes: NodeParts
    to_strategy: ToStrategy

    @staticmethod
    @torch.no_grad()
    def of(network: SplitNetwork, to_strategy: ToStrategy) -> NetworkPlayer:
        """The network as it is."""
        return NetworkPlayer(network, network.node_parts(), to_strategy)

    def probabilities(self, hands: torch.Tensor, nodes: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        """The strategy [..., A] from card parts and node parts that broadcast."""
        return self.to_strategy(self.network.joint(hands, nodes), legal)


@torch.no_grad()
def mixed(game: Game, deals: Deals, modes: torch.Tensor, player: int, kinds: Sequence[NetworkPlayer]) -> Strategy:
    """One player's strategy in some episodes: in each it plays the one of `kinds` that `modes`, int64 [B], names.

    With mode EXPLORE it plays the first one with random actions.
    """
    rounds, legal = deals.visible_cards.shape[2], game.encoding.legal
    cards = deals.visible_cards[:, player].flatten(0, 1)
    # many deals share a hand before the board, so distinct canonical hands are encoded once
    example, canonical = distinct(card_codes(cards, game.encoding))
    hands = [kind.network.encode_cards(cards[example]) for kind in kinds]
    # in a small game each pair of a canonical hand and a node occurs many times, so all pairs are evaluated once
    small = len(example) * len(legal) < len(deals)
    tables = []
    if small:
        every = torch.arange(len(legal), device=legal.device)
        tables = [
            kind.probabilities(mine[:, None], kind.nodes[every], legal) for kind, mine in zip(kinds, hands, strict=True)
        ]

    @torch.no_grad()
    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        mode, at, hand = modes[row], game.infoset[node], canonical[row * rounds + game.round[node]]
        result = torch.empty(len(node), legal.shape[1], device=node.device)
        for number, kind in enumerate(kinds):
            some = (mode.clamp(min=0) == number).nonzero()[:, 0]
            if small:
                result[some] = tables[number][hand[some], at[some]]
            elif len(some):
                places = at[some]
                result[some] = kind.probabilities(hands[number][hand[some]], kind.nodes[places], legal[places])
        options = legal[at]
        explored = torch.lerp(result, options / options.sum(1, keepdim=True), _RANDOM)
        return torch.where((mode == EXPLORE)[:, None], explored, result)

    return strategy
