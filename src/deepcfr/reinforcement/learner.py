"""A network that is trained by a few gradient steps in every iteration."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import torch
from torch import nn

from deepcfr.errors import TrainingError
from deepcfr.memory.state import load_weights, part
from deepcfr.parallel import flushed_denormals
from deepcfr.rng import generator
from deepcfr.training.losses import gradients
from deepcfr.training.networks import SplitNetwork
from deepcfr.types import require_like

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
