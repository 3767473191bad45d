"""The iterates of a run, kept compactly for SD-CFR (Steinberger 2019, "Single Deep CFR")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.config.records import Weighting
from deepcfr.errors import TrainingError
from deepcfr.training.networks import SplitNetwork

Weights = dict[str, torch.Tensor]
_POWERS: dict[Weighting, int] = {"uniform": 0, "linear": 1, "quadratic": 2}


@dataclass(frozen=True)
class Iterate:
    """sigma^t: the advantage networks as they stood before iteration t's updates, and its share of the average.

    An iterate that is kept every n iterations stands for the n up to it: its weight is the sum of theirs, t each in Linear
    CFR or 1 each.
    """

    iteration: int  # t
    weight: float
    networks: tuple[Weights, Weights]  # of players 0 and 1, see `compact`
    first_round: npt.NDArray[np.float32] | None  # [E, U], where a table plays the first round


def iteration_weight(t: int, weighting: Weighting) -> float:
    """The weight of iteration t: t in Linear CFR, 1, or the t^2 of averages in Discounted CFR (Brown and Sandholm 2019)."""
    return float(t ** _POWERS[weighting])


def iterate_weight(iteration: int, every: int, weighting: Weighting) -> float:
    """The weight of an iterate that stands for the `every` iterations up to `iteration`."""
    return sum(iteration_weight(t, weighting) for t in range(max(1, iteration - every + 1), iteration + 1))


def compact(network: SplitNetwork) -> Weights:
    """A network's weights on the CPU in 16 bits, but for the unit `scale`.

    float16 has 11 significant bits where bfloat16 has 8, and weights need no wide range. Raises TrainingError for a weight
    that float16 cannot hold.
    """
    state = network.state_dict()
    found = {name: (tensor if name == "scale" else tensor.half()).cpu().clone() for name, tensor in state.items()}
    for name, tensor in found.items():
        if not bool(torch.isfinite(tensor).all()):
            raise TrainingError(
                f"The weights '{name}' of an advantage network reach {float(state[name].abs().max()):g}, which 16 bits "
                "cannot hold: set cfr.keep_networks to 0 to train without keeping networks for SD-CFR."
            )
    return found


def expand(network: SplitNetwork, weights: Weights) -> SplitNetwork:
    """Put compact weights into a network of the same architecture; returns it."""
    network.load_state_dict(weights)  # which converts them to the network's own precision
    return network


def thin(iterates: list[Iterate], every: int) -> list[Iterate]:
    """Every `every`-th iterate counted back from the newest, with the weights of those dropped before it; none if 0."""
    if every == 0:
        return []
    kept = []
    for last in range(len(iterates) - 1, -1, -every):
        group = iterates[max(0, last - every + 1) : last + 1]
        newest = group[-1]
        kept.append(Iterate(newest.iteration, sum(i.weight for i in group), newest.networks, newest.first_round))
    return kept[::-1]


def mean_weights(iterates: list[Iterate], player: int) -> Weights:
    """The plain means of the weights of a player's networks, as in stochastic weight averaging (Izmailov et al. 2018).

    They mean something only for networks that were fine-tuned from one another.
    """

    def mean(name: str) -> torch.Tensor:
        every = torch.stack([iterate.networks[player][name] for iterate in iterates])
        return every.float().mean(0).to(every.dtype)

    return {name: mean(name) for name in iterates[-1].networks[player]}


def mean_iterate(iterates: list[Iterate]) -> Iterate:
    """The mean of the networks of those iterates, of any, that are from the later half of all iterations."""
    newest = iterates[-1]
    later = [iterate for iterate in iterates if 2 * iterate.iteration > newest.iteration]
    networks = (mean_weights(later, 0), mean_weights(later, 1))
    return Iterate(newest.iteration, sum(i.weight for i in later), networks, None)


def around(iterates: list[Iterate], iteration: int, share: float) -> list[Iterate]:
    """Those kept iterates that are within `share` of an iteration, before or after it; the nearest one at least."""
    near = [iterate for iterate in iterates if abs(iterate.iteration - iteration) <= share * iteration]
    return near or [min(iterates, key=lambda iterate: abs(iterate.iteration - iteration))]


def iterate_tensors(iterates: list[Iterate]) -> Weights:
    """All iterates as a few tensors by name, each stacked over the iterates; none if there are no iterates."""
    if not iterates:
        return {}
    tensors = {
        f"iterates-{player}.{name}": torch.stack([iterate.networks[player][name] for iterate in iterates])
        for player in (0, 1)
        for name in iterates[0].networks[player]
    }
    tensors["iterates.iteration"] = torch.tensor([iterate.iteration for iterate in iterates])
    tensors["iterates.weight"] = torch.tensor([iterate.weight for iterate in iterates], dtype=torch.float64)
    tables = [torch.from_numpy(iterate.first_round) for iterate in iterates if iterate.first_round is not None]
    return tensors | ({"iterates.first_round": torch.stack(tables)} if tables else {})


def iterates_from(tensors: Weights) -> list[Iterate]:
    """The iterates that `iterate_tensors` stacked; other tensors are passed over."""
    if "iterates.iteration" not in tensors:
        return []
    stacked = {name: tensor.cpu() for name, tensor in tensors.items() if name.startswith("iterates")}
    table = stacked.get("iterates.first_round")
    return [
        Iterate(
            iteration=int(iteration),
            weight=float(stacked["iterates.weight"][i]),
            networks=(_at(stacked, 0, i), _at(stacked, 1, i)),
            first_round=None if table is None else table[i].numpy().copy(),
        )
        for i, iteration in enumerate(stacked["iterates.iteration"])
    ]


def _at(stacked: Weights, player: int, index: int) -> Weights:
    prefix = f"iterates-{player}."
    return {name.removeprefix(prefix): part[index].clone() for name, part in stacked.items() if name.startswith(prefix)}


def iterate_bytes(iterates: Iterable[Iterate]) -> int:
    """What the networks and tables of iterates take."""
    networks = sum(part.nbytes for iterate in iterates for weights in iterate.networks for part in weights.values())
    return networks + sum(iterate.first_round.nbytes for iterate in iterates if iterate.first_round is not None)
