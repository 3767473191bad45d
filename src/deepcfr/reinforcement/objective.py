"""The regularised objective of policy gradients, and its advantage estimates.

With a policy pi and a value V of a player's own infosets, an update descends on

    - min(rho A, clip(rho, 1 - c, 1 + c) A) - alpha H(pi(I)) + kl KL(pi(I) || pi_old(I)) ,    rho = pi(I, a) / pi_old(I, a),

where A is the generalised advantage estimate (Schulman et al. 2016) and H the entropy. With a clip c > 0 it is PPO
(Schulman et al. 2017); with kl = 1 / eta and no clip it is magnetic mirror descent towards uniform play (Sokota et al.
2023). With alpha > 0 there is one equilibrium of the regularised game, and what is played in the end approaches it; alpha
falls over the run (Rudolph et al. 2025).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Objective:
    """The updates of a method; weights are in units of the root mean square payoff of the player's first episodes."""

    steps: int  # updates of each policy network in an iteration
    learning_rate: float  # of policy networks, which falls along a cosine to a tenth
    entropy: float  # alpha in iteration 1
    clip_ratio: float = 0.0  # c: up to this relative change of a probability in an iteration its gain counts; 0: always
    kl: float = 0.0  # weight of the divergence from the iteration's first policy


OBJECTIVES = {  # by trials on Leduc (docs/algorithms/ppo.md)
    "ppo": Objective(steps=4, learning_rate=5e-4, entropy=0.2, clip_ratio=0.1),
    "mmd": Objective(steps=8, learning_rate=0.003, entropy=0.3, kl=3.0),
}
_ENTROPY_END = 0.05  # alpha in the last iteration


def entropy_weight(first: float, t: int, iterations: int) -> float:
    """alpha in iteration t: from `first` to 0.05 by a constant factor for every iteration."""
    done = (t - 1) / max(1, iterations - 1)
    return float(first ** (1 - done) * _ENTROPY_END**done)


def regularised_loss(
    new: torch.Tensor,
    old: torch.Tensor,
    action: torch.Tensor,
    advantage: torch.Tensor,
    objective: Objective,
    alpha: float,
    legal: torch.Tensor,
) -> torch.Tensor:
    """The mean of the module's objective over decisions; `new` and `old` are log-probabilities [I, A], 0 if not legal."""
    ratio = (new - old).gather(1, action[:, None])[:, 0].exp()
    gain = ratio * advantage
    if objective.clip_ratio:
        clipped = ratio.clamp(1 - objective.clip_ratio, 1 + objective.clip_ratio)
        gain = torch.minimum(gain, clipped * advantage)
    probability = new.exp() * legal
    regular = (probability * (alpha * new + objective.kl * (new - old))).sum(1)
    return (regular - gain).mean()


def generalised_advantages(
    reward: torch.Tensor, value: torch.Tensor, terminal: torch.Tensor, trace: float
) -> torch.Tensor:
    """GAE with discount 1 (Schulman et al. 2016, equation 16) of decisions that stand game by game, float32 [I].

    `value` is V at each decision, and `reward` what follows it before the next decision, or the end where `terminal`.
    """
    following = torch.cat([value[1:], value[:1]]).masked_fill(terminal, 0.0)
    error = reward + following - value
    advantage = error
    for _ in range(_longest(terminal) - 1):
        later = torch.cat([advantage[1:], advantage[:1]]).masked_fill(terminal, 0.0)
        advantage = error + trace * later
    return advantage


def _longest(terminal: torch.Tensor) -> int:
    """The most decisions of one game."""
    ends = terminal.nonzero()[:, 0]
    return int(torch.diff(ends, prepend=ends.new_tensor([-1])).max())
