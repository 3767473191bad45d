"""What iterations would have played without the noise of single fits: the targets of a smoothed average network."""

from __future__ import annotations

import torch

from deepcfr.games.base import Game
from deepcfr.memory.reservoir import Memory
from deepcfr.policies.iterates import Iterate, around, expand, mean_weights
from deepcfr.policies.network import infoset_owner
from deepcfr.policies.regret_matching import regret_matching
from deepcfr.training.networks import SplitNetwork

_SAMPLES = 1 << 14  # asked of a network at a time


@torch.no_grad()
def smoothed_strategies(
    game: Game, memory: Memory, iterates: list[Iterate], share: float, network: SplitNetwork, fallback: str
) -> torch.Tensor:
    """What a strategy memory would hold if iterations had been played by means of the networks kept around them.

    That is regret matching at every sample, float32 [samples, A], on the mean of the acting player's networks that
    `around` names for the kept iteration nearest to the sample's. `network` is overwritten.
    """
    result = memory.filled("target").clone()
    kept = torch.tensor([iterate.iteration for iterate in iterates], device=game.device)
    nearest = torch.bucketize(memory.filled("iteration").float(), (kept[1:] + kept[:-1]) / 2)
    owner = infoset_owner(game)[memory.filled("node").long()]
    for place, iterate in enumerate(iterates):
        near = around(iterates, iterate.iteration, share)
        for player in (0, 1):
            expand(network, mean_weights(near, player))
            chosen = ((nearest == place) & (owner == player)).nonzero()[:, 0]
            for part in torch.split(chosen, _SAMPLES):
                infosets = memory[part].infosets
                legal = game.encoding.legal[infosets.node.long()]
                result[part] = regret_matching(network(infosets), legal, fallback)
    return result
