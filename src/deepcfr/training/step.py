"""One mini-batch step of Adam or Muon, the same code run operation by operation or replayed as a CUDA graph.

A graph repeats its kernels on the same addresses. So all that changes from step to step lies in tensors which are
overwritten in place: the examples and the learning rates of the next steps are written in blocks, and a counter on the
device says which of them is next. Nothing in a step is read back from the device.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from os import environ

import torch
from torch import nn

from deepcfr.config import FitConfig
from deepcfr.errors import TrainingError
from deepcfr.parallel import Workers, flushed_denormals
from deepcfr.training.draw import Draw
from deepcfr.training.examples import Examples
from deepcfr.training.networks import SplitNetwork
from deepcfr.training.shards import BlockDraw
from deepcfr.training.team import Team, TeamLoss

Row = tuple[float, float, int]  # of one step: learning rate, rate of the weight average, steps in the mean loss
_WARM_UP = 3  # steps before a capture, in which libraries allocate their workspaces and Adam its state


class Descent:
    """Adam on a network's weights, or Muon on its hidden matrices and Adam on the rest.

    `recent` is the mean loss of the last steps, on the device; in a team it is that of this process's examples.
    """

    def __init__(
        self,
        network: SplitNetwork,
        examples: Examples,
        config: FitConfig,
        workers: Workers,
        team: Team | None = None,
    ) -> None:
        self._network, self._examples, self._config, self._workers = network, examples, config, workers
        self.parameters = list(network.parameters())
        self.device = self.parameters[0].device
        self._cuda = self.device.type == "cuda"
        # Adam's CUDA kernel reads a float32; on the CPU a float64 is what a Python number would be
        rate = torch.tensor(config.learning_rate, dtype=torch.float32 if self._cuda else torch.float64).to(self.device)
        matrices = network.hidden_matrices() if config.optimizer == "muon" else []
        others = [p for p in self.parameters if not any(p is matrix for matrix in matrices)]
        self._adam = torch.optim.Adam(others, lr=rate, fused=True, capturable=self._cuda)
        self._muon = _muon(matrices) if matrices else None
        self._rate: torch.Tensor = self._adam.param_groups[0]["lr"]
        self._average = [p.detach().clone() for p in self.parameters] if config.averaging else []
        self._loss = _compiled(examples.loss, self.device) if config.compile else examples.loss
        self._team_loss = TeamLoss(network, self._loss) if team else None
        self.recent = torch.zeros((), device=self.device)
        self._counter = torch.zeros(1, dtype=torch.int64, device=self.device)

    def start_stage(self, block: int, batch: int) -> None:
        """Make room for up to `block` steps of `batch` examples; a graph holds for one stage."""
        self._index = torch.zeros(block, batch, dtype=torch.int64, device=self.device)
        self._schedule = torch.zeros(block, 3, dtype=torch.float64, device=self.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = 0

    def run(self, draw: Draw | BlockDraw, rows: Sequence[Row]) -> None:
        """As many steps as there are `rows`, at most a block, on examples from `draw`."""
        draw.fill(self._index[: len(rows)])
        self._schedule[: len(rows)] = torch.tensor(rows, dtype=torch.float64).to(self.device)
        self._counter.zero_()
        for row in rows:
            if self._muon:
                self._muon.param_groups[0]["lr"] = row[0]
                self.step()  # Muon reads its rate on the host, which a graph would repeat
            elif self._cuda and self._config.graphs and not self._team_loss:
                self._replay()
            else:
                self.step()

    def step(self) -> None:
        """One step on the examples and with the rates that the counter names."""
        index = self._index.index_select(0, self._counter)[0]
        rate, average_rate, window = self._schedule.index_select(0, self._counter)[0].unbind()
        self._rate.copy_(rate)
        value = self._set_gradients(index)
        nn.utils.clip_grad_norm_(self.parameters, self._config.clip)
        self._adam.step()
        if self._muon:
            self._muon.step()  # type: ignore[no-untyped-call]
        for parameter in self.parameters:
            parameter.grad = None
        if self._average:
            _update_average(self._average, self.parameters, average_rate.float())
        self.recent += (value - self.recent) / window.float()
        self._counter += 1

    def _set_gradients(self, index: torch.Tensor) -> torch.Tensor:
        """The mean loss of the examples `index`, whose gradients the parameters then have."""
        if self._team_loss:
            with flushed_denormals(), self._precision():
                mean: torch.Tensor = self._team_loss(index) / len(index)
            torch.autograd.backward(mean)
            return mean.detach()
        value = torch.zeros_like(self.recent)
        pieces = self._pieces(index)
        # one piece stays in this thread, which on CUDA is the one whose stream a graph is captured from
        results = self._workers.map(self._gradient, pieces) if len(pieces) > 1 else map(self._gradient, pieces)
        for loss, gradients in results:
            value += loss
            _accumulate(self.parameters, gradients)
        return value

    def mean_loss(self, index: torch.Tensor) -> float:
        """The mean loss over the examples `index`, int64 [I]."""
        values = self._workers.map(self._value, self._pieces(index))
        return float(sum(values, start=torch.zeros_like(self.recent))) / len(index)

    def swap_average(self) -> None:
        """Exchange the weights and their running mean, if there is one."""
        with torch.no_grad():
            for parameter, mean in zip(self.parameters, self._average, strict=False):
                weight = parameter.clone()
                parameter.copy_(mean)
                mean.copy_(weight)

    def _pieces(self, index: torch.Tensor) -> list[torch.Tensor]:
        if self._cuda:
            return [index]  # a share is for the processor's cache
        parts = index.chunk(self._workers.count)
        return [piece for part in parts for piece in torch.split(part, self._examples.share)]

    def _gradient(self, index: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        with flushed_denormals():
            with self._precision():
                value = self._loss(self._network, index) / self._index.shape[1]
            return value.detach(), torch.autograd.grad(value, self.parameters, allow_unused=True)

    @torch.no_grad()
    def _value(self, index: torch.Tensor) -> torch.Tensor:
        with flushed_denormals(), self._precision():
            return self._examples.loss(self._network, index)

    def _precision(self) -> AbstractContextManager[object]:
        if self._config.precision == "float32":
            return nullcontext()
        # the cache of casts is shared by all threads, and in a graph it would outlive the weights that it was made from
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)

    def _replay(self) -> None:
        """One step from the graph; the first ones of a stage are run as they are, and then the graph is made."""
        if self._graph is None:
            side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            if self._warm < _WARM_UP:
                self._warm += 1
                self._step_on(side)
                return
            self._graph = self._captured(side)
        self._graph.replay()

    def _step_on(self, side: torch.cuda.Stream) -> None:
        """One step on a stream of its own, as torch's documentation asks of those before a capture."""
        current = torch.cuda.current_stream(self.device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            self.step()
        current.wait_stream(side)

    def _captured(self, side: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
        """The graph of a step, which is recorded and not carried out."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=side):
                self.step()
        except RuntimeError as error:
            raise TrainingError(
                f"A step cannot be captured as a CUDA graph, so set graphs = false: {error}."
            ) from error
        return graph


def _muon(matrices: list[nn.Parameter]) -> torch.optim.Muon:
    """Muon at Adam's rates: its steps have the root mean square that Adam's typically have.

    Three Newton-Schulz steps do as well here as the usual five, and momentum 0.9 a little better than 0.95.
    """
    return torch.optim.Muon(matrices, weight_decay=0.0, momentum=0.9, ns_steps=3, adjust_lr_fn="match_rms_adamw")


def _accumulate(parameters: list[nn.Parameter], gradients: tuple[torch.Tensor | None, ...]) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


def _update_average(average: list[torch.Tensor], parameters: list[nn.Parameter], rate: torch.Tensor) -> None:
    with torch.no_grad():
        for mean, parameter in zip(average, parameters, strict=True):
            mean.lerp_(parameter, rate)


_Loss = Callable[[SplitNetwork, torch.Tensor], torch.Tensor]


def _compiled(loss: _Loss, device: torch.device) -> _Loss:
    """`loss` compiled by torch, at its first call.

    Raises TrainingError where there is no compiler: torch itself says so only in the middle of the first step.
    """
    compiler = environ.get("CXX", "g++") if device.type == "cpu" else environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        raise TrainingError(f"Compiled fits need a compiler, and there is no '{compiler}': set compile = false.")
    compiled: _Loss = torch.compile(loss)
    return compiled
