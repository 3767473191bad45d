"""The settings of solvers by self-play: NFSP and policy gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class NFSPConfig:
    """Neural Fictitious Self-Play, which reads this section, `network`, `evaluation` and `runtime`.

    The defaults are those of Heinrich and Silver (2016) on Leduc, who count steps in the game: 2 updates of mini-batches of
    128 for every 128 steps. Their learning rate of action values, for plain gradient descent, is too large for the networks
    here, whose last features are normalised, and for Adam; the defaults of `train --solver nfsp` are smaller.
    """

    iterations: int = 100_000  #: batches of episodes, each followed by updates of all networks
    episodes: int = 64  #: episodes in a batch; in Leduc a player acts about 2.4 times in each
    anticipatory: float = 0.1  #: eta, the probability that a player responds to the opponent in an episode
    #: probability of a uniformly random action of a best response in iteration 1; in iteration t it is divided by sqrt(t)
    epsilon_start: float = 0.06
    #: share of the games in which a player explores: it plays its average policy with half of the actions at random, and
    #: the opponent does not learn from the game; 0 explores by epsilon only, as in the paper
    exploration: float = 0.0
    replay_capacity: int = 200_000  #: transitions in each player's replay memory, the newest ones
    reservoir_capacity: int = 2_000_000  #: best-response samples in each player's reservoir
    q_steps: int = 2  #: updates of each action-value network in an iteration
    policy_steps: int = 2  #: updates of each average-policy network in an iteration
    batch_size: int = 128  #: examples in a mini-batch, drawn with replacement
    target_every: int = 300  #: updates of an action-value network between copies to its target network
    q_learning_rate: float = 0.1  #: learning rate of action-value networks, by Adam; it falls along a cosine to a tenth
    policy_learning_rate: float = 0.005  #: the same of average-policy networks


@dataclass(frozen=True)
class PPOConfig:
    """Policy gradients by self-play, which read this section, `network`, `evaluation` and `runtime`.

    The updates of each method, found by trials on Leduc (docs/algorithms/ppo.md), are in `reinforcement.policy_gradient`.
    """

    iterations: int = 500  #: batches of episodes, each followed by updates of all networks
    episodes: int = 16_384  #: episodes in a batch
    #: proximal policy optimisation (Schulman et al. 2017), or magnetic mirror descent (Sokota et al. 2023)
    method: Literal["ppo", "mmd"] = "ppo"
