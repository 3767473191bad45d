"""One mini-batch step of Adam or Muon, the same code run operation by operation or replayed as a CUDA graph.

A graph repeats its kernels on the same addresses. So everything that changes between steps is in tensors that are
overwritten in place: the examples and the learning rates of the next steps are written in blocks, and a counter on the
device says which of them is next. Nothing in a step is read back from the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from deepcfr.config import FitConfig
from deepcfr.errors import TrainingError
from deepcfr.parallel import Workers, flushed_denormals
from deepcfr.training.examples import Drawing, Examples
from deepcfr.training.losses import gradients
from deepcfr.training.muon import Muon, TorchMuon
from deepcfr.training.networks import SplitNetwork

Gradients = Callable[[SplitNetwork, Examples], Callable[[torch.Tensor], torch.Tensor]]
"""Makes, for a network and its examples, what sets the gradients of the mean loss of some, int64 [I], and returns it."""
Row = tuple[float, int]  # of one step: learning rate, steps in the mean loss
_CLIP = 1.0  # largest norm of a gradient (section 5.2)
_WARM_UP = 3  # steps before a capture, in which libraries allocate their workspaces and Adam its state


class Descent:
    """Adam on a network's weights, or Muon on its hidden matrices and Adam on the rest.

    `recent` is the mean loss of the last steps, on the device.
    """

    def __init__(
        self,
        network: SplitNetwork,
        examples: Examples,
        config: FitConfig,
        workers: Workers,
        set_gradients: Gradients | None = None,
    ) -> None:
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
        self._set_gradients = set_gradients(network, examples) if set_gradients else self._gradients_here
        self._in_graphs = self._cuda and not set_gradients
        self.recent = torch.zeros((), device=self.device)
        self._counter = torch.zeros(1, dtype=torch.int64, device=self.device)

    def make_room(self, block: int, batch: int) -> None:
        """Make room for up to `block` steps of `batch` examples each, before the first step."""
        self._index = torch.zeros(block, batch, dtype=torch.int64, device=self.device)
        self._schedule = torch.zeros(block, 2, dtype=torch.float64, device=self.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = 0

    def run(self, draw: Drawing, rows: Sequence[Row]) -> None:
        """Run one step for each of `rows`, at most a block, on examples from `draw`."""
        draw.fill(self._index[: len(rows)])
        self._schedule[: len(rows)] = torch.tensor(rows, dtype=torch.float64).to(self.device)
        self._counter.zero_()
        for row in rows:
            if self._muon:
                self._muon_rate = row[0]
                self.step()  # Muon reads its rate on the host, which a graph would repeat
            elif self._in_graphs:
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

    def _gradients_here(self, index: torch.Tensor) -> torch.Tensor:
        """Set the gradients of the mean loss of the examples `index`, int64 [I], and return that loss."""
        value = torch.zeros_like(self.recent)
        pieces = self._pieces(index)
        # one piece stays in this thread, which on CUDA is the one whose stream a graph is captured from
        results = self._workers.map(self._gradient, pieces) if len(pieces) > 1 else map(self._gradient, pieces)
        for loss, part in results:
            value += loss
            _accumulate(self.parameters, part)
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


def _accumulate(parameters: list[nn.Parameter], part: tuple[torch.Tensor | None, ...]) -> None:
    for parameter, gradient in zip(parameters, part, strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
