"""Fitting a network to examples: mini-batch Adam as in section 5.2, with the variants of the configuration."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from deepcfr.config import FitConfig
from deepcfr.errors import TrainingError
from deepcfr.parallel import Workers, flushed_denormals
from deepcfr.training.examples import Examples
from deepcfr.training.networks import SplitNetwork
from deepcfr.training.step import Descent, Gradients, Row

_REPORT = 100  # losses are read from the device, and checked, this often
_BLOCK = 1 << 18  # examples whose numbers are drawn at a time


@dataclass(frozen=True)
class FitResult:
    """The result of a fit; losses are weighted means, in squared units of the targets."""

    loss: float  # of the last steps
    steps: int
    seconds: float
    examples: int  # drawn for mini-batches

    def __add__(self, other: FitResult) -> FitResult:
        """Two fits as one, with the loss of the second."""
        steps, examples = self.steps + other.steps, self.examples + other.examples
        return FitResult(other.loss, steps, self.seconds + other.seconds, examples)


def fit(
    network: SplitNetwork,
    examples: Examples,
    config: FitConfig,
    stream: int,
    workers: Workers,
    gradients: Gradients | None = None,
) -> FitResult:
    """Fit `network` in place to `examples`, with mini-batches drawn from `stream`.

    Every worker takes the gradient of an equal share of the mini-batch, in pieces of `examples.share` at most, unless
    `gradients` computes them differently. Raises TrainingError when the loss stops being a number.
    Source: Algorithm 1 and section 5.2.
    """
    start = time.perf_counter()
    batch = config.batch_size
    with flushed_denormals(), _rounded_products():
        network.scale.fill_(examples.scale())
        descent = Descent(network, examples, config, workers, gradients)
        blocks = list(_blocks(config.steps, batch))
        draw = examples.draw(stream, [batch * len(block) for block in blocks], descent.device)
        descent.make_room(max(map(len, blocks)), batch)
        for block in blocks:
            descent.run(draw, [_row(config, step) for step in block])
            if block.stop % _REPORT == 0 or block.stop == config.steps:
                _check(descent.recent, block.stop, config)
    loss = float(descent.recent * network.scale**2)
    return FitResult(loss, config.steps, time.perf_counter() - start, batch * config.steps)


@contextmanager
def _rounded_products() -> Iterator[None]:
    """Within this context, matrix products on CUDA read their factors with 11 significant bits (TF32); sums keep 24."""
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = True
    try:
        yield
    finally:
        settings.allow_tf32 = before


def _blocks(steps: int, batch: int) -> Iterator[range]:
    """Divide the steps of a fit into blocks whose examples are drawn together and that end where losses are checked."""
    room = max(1, min(_REPORT, _BLOCK // batch))
    first = 0
    while first < steps:
        last = min(steps, first + room, first - first % _REPORT + _REPORT)
        yield range(first, last)
        first = last


def _row(config: FitConfig, step: int) -> Row:
    """The learning rate of a step, and the number of steps in the mean loss."""
    rate = 1.0 if config.schedule == "constant" else 0.5 * (1 + math.cos(math.pi * step / config.steps))
    return config.learning_rate * rate, min(step + 1, _REPORT)


def _check(recent: torch.Tensor, done: int, config: FitConfig) -> None:
    if not bool(torch.isfinite(recent)):
        raise TrainingError(
            f"The loss is not a number after {done} of {config.steps} steps at learning rate {config.learning_rate:g}: "
            "lower the learning rate."
        )
