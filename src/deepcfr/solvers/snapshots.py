"""Snapshots of a run's advantage networks and their policies: the SD-CFR average (Steinberger 2019, "Single Deep
CFR"), the smoothed policy, and smoothed targets for the average network.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from deepcfr.config import RunConfig
from deepcfr.errors import NoPolicy, TrainingError
from deepcfr.games.base import Game
from deepcfr.memory.reservoir import Memory
from deepcfr.memory.state import SavedState, Tensors
from deepcfr.policies.base import Policy
from deepcfr.policies.first_round import FirstRound, WithFirstRound, first_board
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.network import RegretMatchingPolicy, infoset_owner, regret_matching
from deepcfr.policies.snapshots import (
    Snapshot,
    around,
    compact,
    expand,
    mean_snapshot,
    mean_weights,
    snapshot_bytes,
    snapshot_tensors,
    snapshot_weight,
    snapshots_from,
    thin,
)
from deepcfr.ranges.boards import Board
from deepcfr.ranges.rounds import RoundTree
from deepcfr.rng import generator, key
from deepcfr.training.examples import Examples, InfosetExamples, first_nodes
from deepcfr.training.networks import SplitNetwork, build_network

_SAMPLES = 1 << 14  # samples in one call of a network


class Snapshots:
    """sigma^t of every `cfr.keep_networks`-th iteration t, oldest first in `kept`.

    `mean` is their `mean_snapshot` in an export that left them out.
    """

    def __init__(self, game: Game, config: RunConfig) -> None:
        self._game, self._config = game, config
        self.kept: list[Snapshot] = []
        self.mean: Snapshot | None = None

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
        """Keep every `every`-th snapshot, or none if that is 0. A run that plays the smoothed policy keeps its mean."""
        if self.kept and self._config.evaluation.policy == "smoothed":
            self.mean = mean_snapshot(self.kept)
        self.kept = thin(self.kept, every)

    def require(self, policy: str) -> None:
        """Raise NoPolicy if there are none for `policy`, which is "sd-cfr" or "smoothed"."""
        if not self.kept and not (policy == "smoothed" and self.mean):
            what = {"sd-cfr": "the average of SD-CFR", "smoothed": "a smoothed policy"}[policy]
            raise NoPolicy(
                f"has kept no networks for {what}: runs keep them every cfr.keep_networks iterations, and exports those of "
                "--keep-networks."
            )

    def tensors(self) -> Tensors:
        """All snapshots as a few tensors by name."""
        networks = self.mean.networks if self.mean else ({}, {})
        return snapshot_tensors(self.kept) | {
            f"smoothed-{player}.{name}": weight for player in (0, 1) for name, weight in networks[player].items()
        }

    def restore(self, saved: SavedState) -> None:
        """Restore the result of `tensors`."""
        self.kept = snapshots_from(saved.tensors)
        smoothed = [saved.part(f"smoothed-{player}.") for player in (0, 1)]
        if all(smoothed):
            self.mean = Snapshot(int(saved.facts["iteration"]), 1.0, (smoothed[0], smoothed[1]), None)

    @property
    def nbytes(self) -> int:
        """Bytes of the snapshots."""
        return snapshot_bytes(self.kept)

    def sd_cfr_policy(self) -> MixturePolicy:
        """The exact average of the snapshots; there must be one."""
        kept = self.kept
        kind = f"exact average of {len(kept)} snapshots up to {kept[-1].iteration} (SD-CFR)"
        first = first_board(self._game) if kept[0].first_round is not None else None
        policies = [self._policy_of(snapshot, first) for snapshot in kept]
        return MixturePolicy(self._game, policies, [snapshot.weight for snapshot in kept], kind)

    def smoothed_policy(self, first_round: FirstRound | None) -> Policy:
        """Regret matching on the mean of the networks of the later half of the run; a snapshot must have been kept.

        Fit noise varies between iterations; averaging the weights reduces it. `first_round` plays the first round if there
        is one. Raises TrainingError for networks that are fitted from scratch, whose weights have no meaningful mean.
        """
        if self._config.advantage.refit != "fine-tune":
            raise TrainingError(
                "The smoothed policy needs networks that are fine-tuned from one another, but 'advantage.refit' is scratch."
            )
        mean = self.mean or mean_snapshot(self.kept)
        policy = self._matching(mean)
        policy.kind = f"regret matching on the mean of the advantage networks of the later half of {mean.iteration}"
        return WithFirstRound(policy, first_round) if first_round else policy

    def smooth(self, examples: Examples) -> None:
        """Replace the targets of a strategy memory, if `cfr.average_smoothing` asks for it.

        It needs snapshots that were fine-tuned from one another and a memory of infosets in one shard; otherwise it does
        nothing.
        """
        share, fine_tuned = self._config.cfr.average_smoothing, self._config.advantage.refit == "fine-tune"
        if share and self.kept and fine_tuned and isinstance(examples, InfosetExamples):
            examples.replace_targets(self.smoothed_strategies(examples.memory, share))

    @torch.no_grad()
    def smoothed_strategies(self, memory: Memory, share: float) -> torch.Tensor:
        """Targets of a strategy memory as if the means of neighbouring snapshots had played the iterations.

        That is regret matching at every sample, float32 [samples, A], on the mean of the acting player's networks that
        `around` names for the snapshot nearest to the sample's iteration.
        """
        game, fallback, network = self._game, self._config.cfr.fallback, self._new_network()
        result = memory.filled("target").clone()
        kept = torch.tensor([snapshot.iteration for snapshot in self.kept], device=game.device)
        nearest = torch.bucketize(memory.filled("iteration").float(), (kept[1:] + kept[:-1]) / 2)
        owner = infoset_owner(game)[first_nodes(memory).long()]
        for place, snapshot in enumerate(self.kept):
            near = around(self.kept, snapshot.iteration, share)
            for player in (0, 1):
                expand(network, mean_weights(near, player))
                chosen = ((nearest == place) & (owner == player)).nonzero()[:, 0]
                for part in torch.split(chosen, _SAMPLES):
                    infosets = memory[part].infosets
                    legal = game.encoding.legal[infosets.node.long()]
                    result[part] = regret_matching(network(infosets), legal, fallback)
        return result

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
