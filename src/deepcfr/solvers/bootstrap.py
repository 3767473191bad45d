"""Bootstrapped advantages (Xu et al. 2025, "Deep (Predictive) Discounted CFR"): sums kept by the last network.

A network R^t is fitted to the samples r of iteration t alone, with targets

    d_t max(R^(t-1)(I, .), 0) + r ,

so it is the positive part of a cumulative advantage as in CFR+, discounted by d_t. Predictive CFR+ (Farina et al. 2021)
plays d_(t+1) max(R^t(I, .), 0) + r in iteration t + 1, as if the next samples were like the last ones; another network is
fitted to that. Double Neural CFR (Li et al. 2020) keeps the negative part too, and discounts nothing: R^(t-1)(I, .) + r.
"""

from __future__ import annotations

import torch

from deepcfr.config.records import Weighting
from deepcfr.solvers.tabular import Discounting
from deepcfr.training.examples import InfosetExamples
from deepcfr.training.networks import SplitNetwork

_BY_WEIGHTING: dict[Weighting, float] = {"uniform": float("inf"), "linear": 1.0, "discounted": 1.5}  # alpha
_AT_ONCE = 1 << 16  # infosets that the network is asked for


def kept_share(t: int, weighting: Weighting) -> float:
    """d_t, the share of earlier advantages that stays when iteration t adds to them: (t-1)^alpha / ((t-1)^alpha + 1)."""
    return Discounting(_BY_WEIGHTING[weighting], 0.0, 0.0).factors(t)[0]


@torch.no_grad()
def bootstrapped(examples: InfosetExamples, network: SplitNetwork, share: float, signed: bool = False) -> torch.Tensor:
    """The targets of `examples` and `share` times the outputs of `network`, float32 [samples, ..., A].

    Only positive outputs count if they are not `signed`.
    """
    parts, many = [], max(1, _AT_ONCE // examples.targets[0, ..., 0].numel())  # a sample may have several decisions
    for first in range(0, len(examples), many):
        infosets = examples.memory[slice(first, first + many)].infosets
        outputs = network(infosets)
        kept = outputs if signed else outputs.clamp(min=0)
        kept = kept * network.scale * examples.objective.legal[infosets.node]
        unit = examples.objective.unit
        parts.append(kept if unit is None else kept * unit[infosets.node][..., None])
    return examples.targets + share * torch.cat(parts)
