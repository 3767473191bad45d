"""Snapshots of a run's advantage networks in compact form, for SD-CFR (Steinberger 2019, "Single Deep CFR")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.config.records import Weighting
from deepcfr.training.networks import SplitNetwork

Tensors = dict[str, torch.Tensor]
_POWERS: dict[Weighting, int] = {"uniform": 0, "discounted": 0, "linear": 1, "quadratic": 2}


@dataclass(frozen=True)
class Snapshot:
    """Snapshot of sigma^t: the advantage networks before the updates of iteration t, and its weight in the average.

    With a snapshot every n iterations, each represents the n iterations up to it. Its weight is the sum of their
    weights.
    """

    iteration: int  # t
    weight: float
    networks: tuple[Tensors, Tensors]  # of players 0 and 1, in the form of `compact`
    first_round: npt.NDArray[np.float32] | None  # [E, U], where a table plays the first round


def iteration_weight(t: int, weighting: Weighting) -> float:
    """The weight of iteration t in averages: 1, t in Linear CFR, t^2 in Discounted CFR (Brown and Sandholm 2019)."""
    return float(t ** _POWERS[weighting])


def snapshot_weight(iteration: int, every: int, weighting: Weighting) -> float:
    """The weight of a snapshot that represents the `every` iterations up to `iteration`."""
    return sum(iteration_weight(t, weighting) for t in range(max(1, iteration - every + 1), iteration + 1))


def compact(network: SplitNetwork) -> Tensors:
    """A network's weights on the CPU in float16, except for the unit `scale` and weights that float16 cannot hold.

    float16 has 11 significant bits, bfloat16 only 8, and weights need no wide range.
    """
    small = {name: tensor.half().cpu() for name, tensor in network.state_dict().items()}
    return {
        name: small[name] if name != "scale" and bool(torch.isfinite(small[name]).all()) else tensor.cpu().clone()
        for name, tensor in network.state_dict().items()
    }


def expand(network: SplitNetwork, weights: Tensors) -> SplitNetwork:
    """Put compact weights into a network of the same architecture; returns it."""
    network.load_state_dict(weights)  # converts them to the network's precision
    return network


def thin(snapshots: list[Snapshot], every: int) -> list[Snapshot]:
    """Every `every`-th snapshot, counted back from the newest; each takes over the weights of those dropped before it.

    The result is empty if `every` is 0.
    """
    if every == 0:
        return []
    kept = []
    for last in range(len(snapshots) - 1, -1, -every):
        group = snapshots[max(0, last - every + 1) : last + 1]
        newest = group[-1]
        kept.append(Snapshot(newest.iteration, sum(i.weight for i in group), newest.networks, newest.first_round))
    return kept[::-1]


def snapshot_tensors(snapshots: list[Snapshot]) -> Tensors:
    """All snapshots as a few tensors by name, each stacked over the snapshots; empty without snapshots."""
    if not snapshots:
        return {}
    tensors = {
        f"iterates-{player}.{name}": torch.stack([snapshot.networks[player][name] for snapshot in snapshots])
        for player in (0, 1)
        for name in snapshots[0].networks[player]
    }
    tensors["iterates.iteration"] = torch.tensor([snapshot.iteration for snapshot in snapshots])
    tensors["iterates.weight"] = torch.tensor([snapshot.weight for snapshot in snapshots], dtype=torch.float64)
    tables = [torch.from_numpy(snapshot.first_round) for snapshot in snapshots if snapshot.first_round is not None]
    return tensors | ({"iterates.first_round": torch.stack(tables)} if tables else {})


def snapshots_from(tensors: Tensors) -> list[Snapshot]:
    """The snapshots that `snapshot_tensors` stacked; other tensors are ignored."""
    if "iterates.iteration" not in tensors:
        return []
    stacked = {name: tensor.cpu() for name, tensor in tensors.items() if name.startswith("iterates")}
    table = stacked.get("iterates.first_round")
    return [
        Snapshot(
            iteration=int(iteration),
            weight=float(stacked["iterates.weight"][i]),
            networks=(_at(stacked, 0, i), _at(stacked, 1, i)),
            first_round=None if table is None else table[i].numpy().copy(),
        )
        for i, iteration in enumerate(stacked["iterates.iteration"])
    ]


def _at(stacked: Tensors, player: int, index: int) -> Tensors:
    prefix = f"iterates-{player}."
    return {name.removeprefix(prefix): part[index].clone() for name, part in stacked.items() if name.startswith(prefix)}


def snapshot_bytes(snapshots: Iterable[Snapshot]) -> int:
    """Bytes of the networks and tables of snapshots."""
    networks = sum(part.nbytes for snapshot in snapshots for weights in snapshot.networks for part in weights.values())
    return networks + sum(snapshot.first_round.nbytes for snapshot in snapshots if snapshot.first_round is not None)
