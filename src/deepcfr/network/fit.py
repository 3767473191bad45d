"""Fitting a network to examples: losses, mini-batch steps of Adam (section 5.2) or Muon, and their loop.

The losses of Algorithm 1 are weighted and masked. Muon (Jordan et al. 2024) is here in float32: `torch.optim.Muon`
orthogonalises in bfloat16, which processors without such instructions emulate and take many times longer, so only CUDA
uses torch's; both make the same steps but for rounding. A step runs operation by operation or is replayed as a CUDA
graph, which repeats its kernels on the same addresses. So everything that changes between steps is in tensors that are
overwritten in place: the examples and the learning rates of the next steps are written in blocks, and a counter on the
device says which of them is next. Nothing in a step is read back from the device.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import nn
from torch.nn import functional

from deepcfr.config import FitConfig
from deepcfr.core.errors import TrainingError
from deepcfr.core.parallel import Workers, flushed_denormals
from deepcfr.network.examples import Draw, Examples
from deepcfr.network.networks import SplitNetwork

Row = tuple[float, int]  # of one step: learning rate, steps in the mean loss
_CLIP = 1.0  # largest norm of a gradient (section 5.2)
_WARM_UP = 3  # steps before a capture, in which libraries allocate their workspaces and Adam its state


class Descent:
    """Adam on a network's weights, or Muon on its hidden matrices and Adam on the rest.

    `recent` is the mean loss of the last steps, on the device.
    """

    def __init__(self, network: SplitNetwork, examples: Examples, config: FitConfig, workers: Workers) -> None:
        self._network, self._examples, self._workers = network, examples, workers
        self.parameters = list(network.parameters())
        self.device = self.parameters[0].device
        self._cuda = self.device.type == "cuda"
        # Adam's CUDA kernel reads a float32; on the CPU a float64 is what a Python number would be
        rate = torch.tensor(config.learning_rate, dtype=torch.float32 if self._cuda else torch.float64).to(self.device)
        matrices = network.hidden_matrices() if config.optimizer == "muon" else []
        others = [p for p in self.parameters if not any(p is matrix for matrix in matrices)]
        self._adam = torch.optim.Adam(others, lr=rate, fused=True, capturable=self._cuda)
        self._muon = (TorchMuon if self._cuda else Muon)(matrices, workers) if matrices else None
        self._muon_rate = config.learning_rate
        self._rate: torch.Tensor = self._adam.param_groups[0]["lr"]
        self.recent = torch.zeros((), device=self.device)
        self._counter = torch.zeros(1, dtype=torch.int64, device=self.device)

    def make_room(self, block: int, batch: int) -> None:
        """Make room for up to `block` steps of `batch` examples each, before the first step."""
        self._index = torch.zeros(block, batch, dtype=torch.int64, device=self.device)
        self._schedule = torch.zeros(block, 2, dtype=torch.float64, device=self.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = 0

    def run(self, draw: Draw, rows: Sequence[Row]) -> None:
        """Run one step for each of `rows`, at most a block, on examples from `draw`."""
        draw.fill(self._index[: len(rows)])
        self._schedule[: len(rows)] = torch.tensor(rows, dtype=torch.float64).to(self.device)
        self._counter.zero_()
        for row in rows:
            if self._muon:
                self._muon_rate = row[0]
                self.step()  # Muon reads its rate on the host, which a graph would repeat
            elif self._cuda:
                self._replay()
            else:
                self.step()

    def step(self) -> None:
        """One step on the examples and with the rates that the counter names."""
        index = self._index.index_select(0, self._counter)[0]
        rate, window = self._schedule.index_select(0, self._counter)[0].unbind()
        self._rate.copy_(rate)
        value = self._set_gradients(index)
        nn.utils.clip_grad_norm_(self.parameters, _CLIP)
        self._adam.step()
        if self._muon:
            self._muon.step(self._muon_rate)
        for parameter in self.parameters:
            parameter.grad = None
        self.recent += (value - self.recent) / window.float()
        self._counter += 1

    def _set_gradients(self, index: torch.Tensor) -> torch.Tensor:
        """Set the gradients of the mean loss of the examples `index`, int64 [I], and return that loss."""
        value = torch.zeros_like(self.recent)
        pieces = self._pieces(index)
        # one piece stays in this thread, which on CUDA is the one whose stream a graph is captured from
        results = self._workers.map(self._gradient, pieces) if len(pieces) > 1 else map(self._gradient, pieces)
        for loss, part in results:
            value += loss
            for parameter, gradient in zip(self.parameters, part, strict=True):
                if gradient is not None:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        return value

    def _pieces(self, index: torch.Tensor) -> list[torch.Tensor]:
        if self._cuda:
            return [index]  # a share is for the processor's cache
        parts = index.chunk(self._workers.count)
        return [piece for part in parts for piece in torch.split(part, self._examples.share(self._network))]

    def _gradient(self, index: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor | None, ...]]:
        with flushed_denormals():
            value = self._examples.loss(self._network, index) / self._index.shape[1]
            return value.detach(), gradients(value, self.parameters)

    def _replay(self) -> None:
        """Run one step from the graph; the first steps run without it, then it is captured."""
        if self._graph is None:
            side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            if self._warm < _WARM_UP:
                self._warm += 1
                self._step_on(side)
                return
            self._graph = self._captured(side)
        self._graph.replay()

    def _step_on(self, side: torch.cuda.Stream) -> None:
        """Run one step on a side stream, as torch's documentation requires before a capture."""
        current = torch.cuda.current_stream(self.device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            self.step()
        current.wait_stream(side)

    def _captured(self, side: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        """Record the graph of a step without running it."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=side):
                self.step()
        except RuntimeError as error:
            raise TrainingError(f"A step cannot be captured as a CUDA graph: {error}.") from error
        return graph


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
) -> FitResult:
    """Fit `network` in place to `examples`, with mini-batches drawn from `stream`.

    Every worker takes the gradient of an equal share of the mini-batch, in pieces of `examples.share` at most. Raises
    TrainingError when the loss stops being a number. Source: Algorithm 1 and section 5.2.
    """
    start = time.perf_counter()
    batch = config.batch_size
    if config.passes:
        config = replace(config, steps=max(1, min(config.steps, round(config.passes * len(examples) / batch))))
    with flushed_denormals(), _rounded_products():
        network.scale.fill_(examples.scale())
        descent = Descent(network, examples, config, workers)
        blocks = list(_blocks(config.steps, batch))
        draw = Draw(examples, stream, descent.device)
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


def advantage_loss(
    predicted: torch.Tensor, advantage: torch.Tensor, legal: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """Sum over samples of w * sum over legal actions of (predicted - advantage)^2.

    `predicted`, `advantage` and `legal` are [I, A] or [I, k, A], `weight` is [I] or [I, 1]. Source: Algorithm 1, the
    loss of theta_p.
    """
    return (functional.mse_loss(predicted, advantage, reduction="none") * legal).sum(-1).mul(weight).sum()


def value_loss(predicted: torch.Tensor, value: torch.Tensor, legal: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """As `advantage_loss`, over the actions whose `value` is known, not NaN."""
    known = ~value.isnan() & legal
    return advantage_loss(predicted, value.nan_to_num(0.0), known, weight)


def strategy_loss(
    logits: torch.Tensor, strategy: torch.Tensor, legal: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """Sum over samples of w * sum over legal actions of (softmax(logits) - strategy)^2.

    Shapes as in `advantage_loss`. Source: Algorithm 1, the loss of theta_Pi, with logits as in section 5.1.
    """
    return functional.mse_loss(masked_softmax(logits, legal), strategy, reduction="none").sum(-1).mul(weight).sum()


def masked_log_softmax(logits: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Log-probabilities of the legal actions, and 0 elsewhere; shapes as in `masked_softmax`."""
    return logits.masked_fill(~legal, -torch.inf).log_softmax(-1).masked_fill(~legal, 0.0)


def masked_softmax(logits: torch.Tensor, legal: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Softmax over the legal actions, which lie along `dim`, exactly 0 elsewhere; any shapes that broadcast."""
    return logits.masked_fill(~legal, -torch.inf).softmax(dim)


def gradients(loss: torch.Tensor, parameters: Sequence[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    """The gradient of `loss` for each parameter, stored row by row; None for a parameter that it does not depend on.

    Torch's fused Adam pairs numbers by their place in memory. On a processor it silently applies a transposed gradient to
    the wrong weights, and on CUDA it raises an error. `torch.autograd.grad` returns some gradients transposed.
    """
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return tuple(None if gradient is None else gradient.contiguous() for gradient in found)


MOMENTUM = 0.9  # does a little better here than the usual 0.95
ITERATIONS = 3  # of Newton-Schulz; these do as well here as the usual 5
_QUINTIC = (3.4445, -4.7750, 2.0315)  # coefficients of s, s^3 and s^5 (Jordan et al. 2024)
_LEAST_NORM = 1e-7


class Muon:
    """Nesterov momentum whose steps are orthogonalised, for matrices; no weight decay.

    A step has the root mean square that Adam's typically has, so that one learning rate serves both (Liu et al. 2025,
    section 2.2: 0.2 sqrt(max(rows, columns)) times the orthogonal matrix).
    """

    def __init__(self, matrices: Sequence[nn.Parameter], workers: Workers) -> None:
        # the largest first, so that they do not wait for each other
        self._matrices = sorted(matrices, key=torch.numel, reverse=True)
        self._workers = workers
        self._momenta = [torch.zeros_like(matrix) for matrix in self._matrices]

    def step(self, learning_rate: float) -> None:
        """Move every matrix along its gradient, which it must have; `workers` move several at a time."""
        move = partial(_move, learning_rate)
        for _ in self._workers.map(move, zip(self._matrices, self._momenta, strict=True)):
            pass


@torch.no_grad()
def _move(learning_rate: float, pair: tuple[nn.Parameter, torch.Tensor]) -> None:
    """One step of a matrix with its momentum."""
    matrix, momentum = pair
    assert matrix.grad is not None
    with flushed_denormals():
        momentum.lerp_(matrix.grad, 1 - MOMENTUM)
        direction = orthogonalised(matrix.grad.lerp(momentum, MOMENTUM))
        matrix.add_(direction, alpha=-learning_rate * 0.2 * math.sqrt(max(matrix.shape)))


class TorchMuon:
    """The same steps by torch's own Muon, whose matrix products are in bfloat16; for CUDA."""

    def __init__(self, matrices: Sequence[nn.Parameter], workers: Workers) -> None:  # noqa: ARG002
        self._optimizer = torch.optim.Muon(
            matrices, weight_decay=0.0, momentum=MOMENTUM, ns_steps=ITERATIONS, adjust_lr_fn="match_rms_adamw"
        )

    def step(self, learning_rate: float) -> None:
        """Move every matrix along its gradient, which it must have."""
        self._optimizer.param_groups[0]["lr"] = learning_rate
        self._optimizer.step()  # type: ignore[no-untyped-call]


def orthogonalised(matrix: torch.Tensor, iterations: int = ITERATIONS) -> torch.Tensor:
    """The nearest orthogonal matrix U V^T of `matrix` = U S V^T, about, in the precision of `matrix` [M, N].

    Each iteration replaces a singular value s, at most 1 after division by the norm, by a s + b s^3 + c s^5. That drives s
    into about 0.7 to 1.2, not to 1 (Jordan et al. 2024); `iterations` says how small an s gets there.
    """
    a, b, c = _QUINTIC
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=_LEAST_NORM)
    for _ in range(iterations):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if matrix.shape[0] > matrix.shape[1] else x
