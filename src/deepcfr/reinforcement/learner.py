"""A network that is trained by a few gradient steps in every iteration, and the losses of its methods.

Neural Fictitious Self-Play has two (Heinrich and Silver 2016, Algorithm 1): action values and imitation. Policy
gradients, with a policy pi and a value V of a player's own infosets, descend on

    - min(rho A, clip(rho, 1 - c, 1 + c) A) - alpha H(pi(I)) + kl KL(pi(I) || pi_old(I)) ,    rho = pi(I, a) / pi_old(I, a),

where A is the generalised advantage estimate (Schulman et al. 2016) and H the entropy. With a clip c > 0 it is PPO
(Schulman et al. 2017); with kl = 1 / eta and no clip it is magnetic mirror descent towards uniform play (Sokota et al.
2023). With alpha > 0 there is one equilibrium of the regularised game, and what is played in the end approaches it; alpha
falls over the run (Rudolph et al. 2025).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from deepcfr.errors import TrainingError
from deepcfr.games.base import card_codes, distinct
from deepcfr.memory.reservoir import load_weights, part
from deepcfr.parallel import flushed_denormals
from deepcfr.reinforcement.episodes import Transitions
from deepcfr.rng import generator
from deepcfr.training.fit import gradients, masked_log_softmax
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import Encoding, Infosets, require_like

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
        return network(infosets)  # type: ignore[no-any-return]
    code = card_codes(infosets.cards, encoding) * len(encoding.legal) + infosets.node
    example, place = distinct(code)
    return functional.embedding(place, network(infosets[example]))


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
