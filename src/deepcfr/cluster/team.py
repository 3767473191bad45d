"""Fitting one network in several processes, each with a share of every mini-batch (torch DistributedDataParallel)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from deepcfr.cluster.examples import ShardedExamples
from deepcfr.config import FitConfig
from deepcfr.parallel import Workers, flushed_denormals
from deepcfr.rng import key
from deepcfr.training.examples import Examples
from deepcfr.training.fit import FitResult, fit
from deepcfr.training.networks import SplitNetwork


@dataclass(frozen=True)
class Team:
    """Processes joined by torch.distributed; this one is number `rank` of `size`."""

    rank: int
    size: int

    def share(self, batch: int) -> int:
        """The number of a mini-batch's examples for each process: equal shares, rounded up."""
        return -(-batch // self.size)


def fit_together(
    network: SplitNetwork, examples: ShardedExamples, config: FitConfig, stream: int, team: Team
) -> FitResult:
    """`training.fit.fit` in every process of a team: each draws its share of every mini-batch, and all get equal weights.

    The loss in the result is over this process's examples.
    """
    own = key(stream, "rank", team.rank) if team.size > 1 else stream
    share = replace(config, batch_size=team.share(config.batch_size))
    result = fit(network, examples, share, own, Workers(1), _mean_gradients)
    return replace(result, examples=result.examples * team.size)


def _mean_gradients(network: SplitNetwork, examples: Examples) -> Callable[[torch.Tensor], torch.Tensor]:
    """A `training.step.Gradients`: gradients are means over all processes, the loss is of this process."""
    loss = DistributedDataParallel(_Loss(network, examples.loss), find_unused_parameters=True)

    def set_gradients(index: torch.Tensor) -> torch.Tensor:
        with flushed_denormals():
            mean: torch.Tensor = loss(index) / len(index)
        torch.autograd.backward(mean)
        return mean.detach()

    return set_gradients


class _Loss(nn.Module):
    def __init__(self, network: SplitNetwork, loss: Callable[[SplitNetwork, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.network, self._loss = network, loss

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self._loss(self.network, index)
