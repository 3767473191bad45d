"""Snapshots of a run's advantage networks, and their policy: the SD-CFR average (Steinberger 2019, "Single Deep CFR")."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from deepcfr.config import RunConfig
from deepcfr.errors import NoPolicy
from deepcfr.games.base import Game
from deepcfr.memory.reservoir import SavedState, Tensors
from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import FirstRound, WithFirstRound, first_board
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.network import RegretMatchingPolicy
from deepcfr.policies.snapshots import (
    Snapshot,
    compact,
    expand,
    snapshot_bytes,
    snapshot_tensors,
    snapshot_weight,
    snapshots_from,
    thin,
)
from deepcfr.ranges.boards import Board
from deepcfr.ranges.rounds import RoundTree
from deepcfr.rng import generator, key
from deepcfr.training.networks import SplitNetwork, build_network
from deepcfr.types import require_like


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
        """All snapshots as a few tensors by name."""
        return snapshot_tensors(self.kept)

    def restore(self, saved: SavedState, first_round: FirstRound | None) -> None:
        """Restore the result of `tensors`. Raises CheckpointError for other shapes and types than the solver's own."""
        stacked = {name: tensor.cpu() for name, tensor in saved.tensors.items() if name.startswith("iterates")}
        if stacked:
            count = stacked["iterates.iteration"].numel()
            require_like("iterates.iteration", stacked["iterates.iteration"], torch.empty(count, dtype=torch.int64))
            require_like("iterates.weight", stacked["iterates.weight"], torch.empty(count, dtype=torch.float64))
            if first_round is not None:
                table = torch.from_numpy(first_round.probabilities)
                require_like("iterates.first_round", stacked["iterates.first_round"], table.expand(count, *table.shape))
            self._require_networks(stacked, count)
        self.kept = snapshots_from(saved.tensors)

    def _require_networks(self, stacked: Tensors, count: int) -> None:
        own = self._new_network().state_dict()
        for name in (f"iterates-{player}.{weight}" for player in (0, 1) for weight in own):
            like, found = own[name.partition(".")[2]].cpu(), stacked[name]
            like = like.half() if found.dtype == torch.float16 else like
            require_like(name, found, like.expand(count, *like.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of the snapshots."""
        return snapshot_bytes(self.kept)

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
        policy = self._matching(snapshot)
        if first is None or snapshot.first_round is None:
            return policy
        return WithFirstRound(policy, FirstRound(first[0], first[1].view_cards, snapshot.first_round))

    def _matching(self, snapshot: Snapshot) -> RegretMatchingPolicy:
        networks = [expand(self._new_network(), weights) for weights in snapshot.networks]
        return RegretMatchingPolicy(self._game, (networks[0], networks[1]), self._config.cfr.fallback)

    def _new_network(self) -> SplitNetwork:
        """A network whose weights the caller overwrites."""
        stream = key(self._config.seed, "network", "snapshot")
        return build_network(self._game.encoding, self._config.network, generator(stream))
