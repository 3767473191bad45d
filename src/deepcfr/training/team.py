"""Fitting one network in several processes, each with a share of every mini-batch (torch DistributedDataParallel)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from deepcfr.training.networks import SplitNetwork


@dataclass(frozen=True)
class Team:
    """Processes that torch.distributed has joined; this one is number `rank` of `size`."""

    rank: int
    size: int

    def share(self, batch: int) -> int:
        """How many of a mini-batch's examples each takes: as many as the others, so the last share may be rounded up."""
        return -(-batch // self.size)


class TeamLoss(nn.Module):
    """A loss whose gradients, after a backward pass in every process, are the means over all of them."""

    def __init__(self, network: SplitNetwork, loss: Callable[[SplitNetwork, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self._module = DistributedDataParallel(_Loss(network, loss), find_unused_parameters=True)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        """The loss of the examples `index`, which are this process's share."""
        value: torch.Tensor = self._module(index)
        return value


class _Loss(nn.Module):
    def __init__(self, network: SplitNetwork, loss: Callable[[SplitNetwork, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.network, self._loss = network, loss

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self._loss(self.network, index)
