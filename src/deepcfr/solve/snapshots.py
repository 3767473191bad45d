"""Snapshots of a run's advantage networks, and their policy: the SD-CFR average (Steinberger 2019, "Single Deep
CFR").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board
from deepcfr.boards.rounds import RoundTree
from deepcfr.config import RunConfig
from deepcfr.config.records import Weighting
from deepcfr.core.errors import NoPolicy
from deepcfr.core.rng import generator, key
from deepcfr.core.types import require_like
from deepcfr.game.base import Game
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.policy.base import Policy
from deepcfr.policy.mixture import MixturePolicy
from deepcfr.policy.network import FirstRound, RegretMatchingPolicy, WithFirstRound, first_board
from deepcfr.solve.base import PLAYERS, SavedState, Tensors, part

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


class Snapshots:
    """sigma^t of every `cfr.keep_networks`-th iteration t, oldest first in `kept`."""

    def __init__(self, game: Game, config: RunConfig) -> None:
        self._game, self._config = game, config
        self.kept: list[Snapshot] = []

    def is_due(self, t: int) -> bool:
        """Whether sigma^t is to be kept."""
        every = self._config.cfr.keep_networks
        return every > 0 and t % every == 0

    def keep(self, t: int, networks: Sequence[SplitNetwork], first_round: FirstRound | None) -> None:
        """Keep sigma^t, from the networks and the first round's table as they are before iteration t."""
        cfr = self._config.cfr
        self.kept.append(
            Snapshot(
                iteration=t,
                weight=snapshot_weight(t, cfr.keep_networks, cfr.of_averages),
                networks=(compact(networks[0]), compact(networks[1])),
                first_round=None if first_round is None else first_round.probabilities,
            )
        )

    def thin(self, every: int) -> None:
        """Keep every `every`-th snapshot, or none if that is 0."""
        self.kept = thin(self.kept, every)

    def tensors(self) -> Tensors:
        """All snapshots as a few tensors by name, each stacked over the snapshots; empty without snapshots."""
        if not self.kept:
            return {}
        tensors = {
            f"iterates-{player}.{name}": torch.stack([snapshot.networks[player][name] for snapshot in self.kept])
            for player in PLAYERS
            for name in self.kept[0].networks[player]
        }
        tensors["iterates.iteration"] = torch.tensor([snapshot.iteration for snapshot in self.kept])
        tensors["iterates.weight"] = torch.tensor([snapshot.weight for snapshot in self.kept], dtype=torch.float64)
        tables = [torch.from_numpy(snapshot.first_round) for snapshot in self.kept if snapshot.first_round is not None]
        return tensors | ({"iterates.first_round": torch.stack(tables)} if tables else {})

    def restore(self, saved: SavedState, first_round: FirstRound | None) -> None:
        """Restore the result of `tensors`. Raises CheckpointError for other shapes and types than the solver's own."""
        stacked = {name: tensor.cpu() for name, tensor in saved.tensors.items() if name.startswith("iterates")}
        self.kept = []
        if not stacked:
            return
        count, table = stacked["iterates.iteration"].numel(), stacked.get("iterates.first_round")
        require_like("iterates.iteration", stacked["iterates.iteration"], torch.empty(count, dtype=torch.int64))
        require_like("iterates.weight", stacked["iterates.weight"], torch.empty(count, dtype=torch.float64))
        if first_round is not None:
            like = torch.from_numpy(first_round.probabilities)
            require_like("iterates.first_round", stacked["iterates.first_round"], like.expand(count, *like.shape))
        self._require_networks(stacked, count)
        self.kept = [
            Snapshot(
                iteration=int(iteration),
                weight=float(stacked["iterates.weight"][i]),
                networks=(_at(stacked, 0, i), _at(stacked, 1, i)),
                first_round=None if table is None else table[i].numpy().copy(),
            )
            for i, iteration in enumerate(stacked["iterates.iteration"])
        ]

    def _require_networks(self, stacked: Tensors, count: int) -> None:
        own = self._new_network().state_dict()
        for name in (f"iterates-{player}.{weight}" for player in PLAYERS for weight in own):
            like, found = own[name.partition(".")[2]].cpu(), stacked[name]
            like = like.half() if found.dtype == torch.float16 else like
            require_like(name, found, like.expand(count, *like.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of the networks and tables of the snapshots."""
        networks = sum(tensor.nbytes for one in self.kept for weights in one.networks for tensor in weights.values())
        return networks + sum(one.first_round.nbytes for one in self.kept if one.first_round is not None)

    def sd_cfr_policy(self) -> MixturePolicy:
        """The exact average of the snapshots. Raises NoPolicy if there are none."""
        kept = self.kept
        if not kept:
            raise NoPolicy(
                "has kept no networks for the average of SD-CFR: runs keep them every cfr.keep_networks iterations, and "
                "exports those of --keep-networks."
            )
        kind = f"exact average of {len(kept)} snapshots up to {kept[-1].iteration} (SD-CFR)"
        first = first_board(self._game) if kept[0].first_round is not None else None
        policies = [self._policy_of(snapshot, first) for snapshot in kept]
        return MixturePolicy(self._game, policies, [snapshot.weight for snapshot in kept], kind)

    def _policy_of(self, snapshot: Snapshot, first: tuple[RoundTree, Board] | None) -> Policy:
        networks = (self._new_network(), self._new_network())
        for network, weights in zip(networks, snapshot.networks, strict=True):
            network.load_state_dict(weights)  # converts them to the network's precision
        policy = RegretMatchingPolicy(self._game, networks, self._config.cfr.fallback)
        if first is None or snapshot.first_round is None:
            return policy
        return WithFirstRound(policy, FirstRound(first[0], first[1].visible_cards, snapshot.first_round))

    def _new_network(self) -> SplitNetwork:
        """A network whose weights the caller overwrites."""
        stream = key(self._config.seed, "network", "snapshot")
        return build_network(self._game.encoding, self._config.network, generator(stream))


def _at(stacked: Tensors, player: int, index: int) -> Tensors:
    return {name: tensor[index].clone() for name, tensor in part(stacked, f"iterates-{player}.").items()}
