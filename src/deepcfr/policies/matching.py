"""Strategies from advantages: regret matching, and its generalisations by other link functions."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from deepcfr.config.records import RunConfig
from deepcfr.training.losses import masked_softmax
from deepcfr.training.networks import SplitNetwork


def regret_matching(
    advantage: torch.Tensor, legal: torch.Tensor, fallback: str = "highest", power: float = 2.0
) -> torch.Tensor:
    """Probabilities proportional to positive advantages, [I, A], 0 for illegal actions.

    `advantage` is float [I, A], `legal` bool [I, A]. Where no advantage is positive, `fallback` "highest" plays the
    highest advantage; exact ties share the probability, so all-zero advantages give the uniform strategy. `fallback`
    "uniform" plays all legal actions with the same probability. Source: equation 4 and section 2.1. With another `power`
    than 2 probabilities are proportional to positive advantages to the power minus 1, the polynomial link of D'Orazio et
    al. (2020).
    """
    positive = advantage.clamp(min=0) * legal
    largest = positive.amax(-1, keepdim=True)
    if fallback == "uniform":
        other = legal.to(advantage.dtype)
    else:
        masked = advantage.masked_fill(~legal, -torch.inf)
        other = (masked == masked.amax(-1, keepdim=True)).to(advantage.dtype)
    # scaled by the largest, so that the sum neither underflows nor overflows
    weight = torch.where(largest > 0, (positive / largest).pow(power - 1), other)
    return weight / weight.sum(-1, keepdim=True)


@dataclass(frozen=True)
class Matching:
    """The link from a network's outputs to a strategy; source: D'Orazio et al. (2020).

    Arguments as in `CFRConfig`. If outputs are `means`, the softmax link multiplies them by their number of iterations.
    """

    fallback: str = "highest"
    power: float = 2.0
    temperature: float = 0.0
    means: bool = False

    @classmethod
    def of(cls, config: RunConfig) -> Matching:
        """The link of a run."""
        cfr = config.cfr
        return cls(cfr.fallback, cfr.link_power, cfr.link_temperature, config.advantage.target == "mean")

    @property
    def name(self) -> str:
        """The name of the link."""
        if self.temperature:
            return "softmax"
        return "regret matching" if self.power == 2 else "the polynomial link"

    def unit(self, network: SplitNetwork, iterations: int) -> torch.Tensor:
        """The factor from a network's outputs to sums over `iterations`, in the game's unit."""
        return network.scale * iterations if self.means else network.scale

    def __call__(self, outputs: torch.Tensor, legal: torch.Tensor, scale: torch.Tensor | float = 1.0) -> torch.Tensor:
        """Probabilities [I, A] from `outputs` [I, A] in units of `scale`, which only the softmax link reads."""
        if self.temperature:
            return masked_softmax(outputs * (scale / self.temperature), legal)
        return regret_matching(outputs, legal, self.fallback, self.power)


REGRET_MATCHING = Matching()
