"""Fitting a network to a memory: mini-batch Adam, as in section 5.2, with the options that the configuration names."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from deepcfr.config import FitConfig
from deepcfr.errors import TrainingError
from deepcfr.memory.reservoir import Memory
from deepcfr.parallel import Workers
from deepcfr.rng import generator
from deepcfr.training.networks import SplitNetwork

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
_REPORT = 100  # losses are read from the device, and checked, this often
_SCALE_SAMPLES = 1 << 20


@dataclass(frozen=True)
class FitResult:
    """What a fit did; `loss` is the weighted mean of the last steps, in squared units of the targets."""

    loss: float
    steps: int
    seconds: float


def linear_weights(iteration: torch.Tensor, newest: int) -> torch.Tensor:
    """Linear CFR's sample weights, 2 t / T for a sample of iteration t (section 5.3), float32 [I]."""
    return iteration.float() * (2.0 / newest)


def uniform_weights(iteration: torch.Tensor, newest: int) -> torch.Tensor:  # noqa: ARG001
    """Every iteration alike, float32 [I]."""
    return torch.ones(len(iteration), device=iteration.device)


WEIGHTS = {"linear": linear_weights, "uniform": uniform_weights}


def fit(
    network: SplitNetwork,
    memory: Memory,
    legal: torch.Tensor,
    loss: Loss,
    config: FitConfig,
    weights: Callable[[torch.Tensor, int], torch.Tensor],
    iteration: int,
    stream: int,
    workers: Workers,
) -> FitResult:
    """Fit `network` in place to the samples in `memory`, with mini-batches drawn from `stream`.

    `legal` is bool [K, A]; `weights(sample iterations, iteration)` gives the weight of each sample. Every worker takes
    the gradient of an equal share of the mini-batch.
    With `merge_infosets` every sample's target is first replaced by the weighted mean target of all samples of the same
    infoset: the loss changes by a constant only, so the minimiser is the same, but mini-batches lose the sampling noise.
    Raises TrainingError when the loss stops being a number. Source: Algorithm 1 and section 5.2.
    """
    start = time.perf_counter()
    targets = memory.filled("target")
    if config.merge_infosets:
        targets = memory.mean_targets(weights(memory.filled("iteration"), iteration))
    network.scale.fill_(_root_mean_square(memory, targets, legal) if config.scale_targets else 1.0)
    parameters = list(network.parameters())
    adam = torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)
    average = [p.detach().clone() for p in parameters] if config.averaging else []
    draw = generator(stream, str(legal.device))
    recent = torch.zeros((), device=legal.device)

    def gradient(index: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        batch = memory[index]
        weight = weights(batch.iteration, iteration) * (len(index) / config.batch_size)
        value = loss(network(batch.infosets), targets[index] / network.scale, legal[batch.infosets.node], weight)
        return value.detach(), torch.autograd.grad(value, parameters, allow_unused=True)

    for step in range(config.steps):
        for group in adam.param_groups:
            group["lr"] = config.learning_rate * _rate(config, step)
        index = torch.randint(len(memory), (config.batch_size,), generator=draw, device=legal.device)
        value = torch.zeros_like(recent)
        for share, gradients in workers.map(gradient, index.chunk(workers.count)):
            value += share
            _accumulate(parameters, gradients)
        nn.utils.clip_grad_norm_(parameters, config.clip)
        adam.step()
        adam.zero_grad()
        if average:
            _update_average(average, parameters, config.averaging, step)
        recent += (value - recent) / min(step + 1, _REPORT)
        if (step + 1) % _REPORT == 0 or step + 1 == config.steps:
            _check(recent, step, config)
    if average:
        with torch.no_grad():
            for parameter, mean in zip(parameters, average, strict=True):
                parameter.copy_(mean)
    return FitResult(float(recent * network.scale**2), config.steps, time.perf_counter() - start)


def _accumulate(parameters: list[nn.Parameter], gradients: tuple[torch.Tensor | None, ...]) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


def _root_mean_square(memory: Memory, targets: torch.Tensor, legal: torch.Tensor) -> float:
    """The root mean square of legal targets, from an even subset of a large memory; 1 when all are 0."""
    some = slice(0, None, 1 + len(memory) // _SCALE_SAMPLES)
    mask = legal[memory.filled("node")[some].int()]
    mean = float(targets[some][mask].double().square().mean())
    return math.sqrt(mean) if mean > 0 else 1.0


def _rate(config: FitConfig, step: int) -> float:
    return 1.0 if config.schedule == "constant" else 0.5 * (1 + math.cos(math.pi * step / config.steps))


def _update_average(average: list[torch.Tensor], parameters: list[nn.Parameter], decay: float, step: int) -> None:
    """Move the running mean; the early steps count evenly, so that the random start leaves no trace."""
    rate = max(1 - decay, 1 / (step + 1))
    with torch.no_grad():
        for mean, parameter in zip(average, parameters, strict=True):
            mean.lerp_(parameter, rate)


def _check(recent: torch.Tensor, step: int, config: FitConfig) -> None:
    if not bool(torch.isfinite(recent)):
        raise TrainingError(
            f"The loss is not a number after {step + 1} of {config.steps} steps at learning rate {config.learning_rate:g}: "
            "lower the learning rate or the gradient clip."
        )
