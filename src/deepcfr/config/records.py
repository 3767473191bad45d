"""The settings of a run as plain records, with the paper's values as defaults; variants are values, never subclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Weighting = Literal["linear", "uniform", "quadratic"]  # the weight of iteration t: t, 1 or t^2
OPENSPIEL = "openspiel:"  # what the names of OpenSpiel's games begin with


@dataclass(frozen=True)
class CFRConfig:
    """Algorithm 1 and the data it collects."""

    iterations: int = 450  #: CFR iterations T
    traversals: int = 10_000  #: traversals K per iteration and player, of external or outcome sampling
    #: traversals that advance together, in one thread; decides the order of samples, and which ones a full memory keeps
    chunk: int = 4_096
    weighting: Literal["linear", "uniform"] = "linear"  #: weight of iteration t: t (Linear CFR) or 1
    #: weight of iteration t in the average strategy: that one, or t^2, as in Discounted CFR with gamma = 2
    average_weighting: Literal["same", "quadratic"] = "same"
    #: the average network is fitted to regret matching on the mean of the networks kept within this share of each
    #: iteration, before and after it, where fits are noisy; 0, or as long as none is kept, is to what was played
    average_smoothing: float = 0.0
    fallback: Literal["highest", "uniform"] = "highest"  #: what to play when no advantage is positive
    #: what a traversal samples: the opponent's actions (external), one whole history (outcome), or boards with all hands
    sampler: Literal["external", "outcome", "public-chance"] = "external"
    exploration: float = 0.6  #: outcome sampling: share of uniform play in the traverser's sampling policy
    #: external sampling: take off sampled payoffs the luck of the board, which is 0 in the mean
    remove_luck: bool = False
    #: whether a player's network is fitted before the other one's traversals begin (alternating), or both players' play the
    #: strategies of the iteration before (simultaneous), so that one's can run while the other's network is fitted
    updates: Literal["alternating", "simultaneous"] = "alternating"
    first_round: Literal["network", "table"] = "network"  #: what holds the first betting round's regrets and strategy
    keep_networks: int = 1  #: iterations between those whose networks are kept for SD-CFR; 0 keeps none

    @property
    def of_averages(self) -> Weighting:
        """How the iterations are weighted in the average strategy."""
        return self.weighting if self.average_weighting == "same" else self.average_weighting


@dataclass(frozen=True)
class PublicChanceConfig:
    """What one public-chance traversal samples, for one player in one iteration; `cfr.traversals` is not read then.

    Other samplers read none of it. Neither do they read what an example of hands is fitted by: `decisions`, `compress`.
    """

    boards: int = 100  #: boards of the first round that deals one; all if there are not more
    #: visit the same boards in every iteration, so that the memories hold the exact sums of their hands over iterations
    panel: bool = False
    later_boards: int = 1  #: boards of every later round, for each of the round before
    stratified: bool = True  #: spread the boards evenly over kinds of boards, or draw them independently of their kind
    #: private hands of each player that are played out on a board, about, in a game that deals all cards at once; 0 is all
    hands: int = 0
    samples: int = 500  #: hands of a board, of those played out, that go to the memories
    #: what a sample is: a hand with all decisions of a round, weighted by reach, or infosets drawn in proportion to reach
    record: Literal["hands", "infosets"] = "hands"


@dataclass(frozen=True)
class MemoryConfig:
    """Memories of samples: one of advantages for each player, one of strategies."""

    #: uniform over everything seen, or the newest samples. A panel of boards keeps all its hands and reads none of this
    kind: Literal["reservoir", "window"] = "reservoir"
    advantage_capacity: int = 40_000_000  #: samples in each player's advantage memory: infosets, or hands of each round
    strategy_capacity: int = 40_000_000  #: samples in the strategy memory; hands of each round and player
    #: equal parts of the traversals and of each memory, which may be in different processes. Results depend on how many
    #: there are, and not on where they are
    shards: int = 1
    #: a folder for the memories, which are files there and need no room elsewhere, on the machine of each shard; without
    #: one they are in memory. A run writes over what is there, and resumes from its checkpoints and not from these files
    files: str = ""


@dataclass(frozen=True)
class NetworkConfig:
    """The architecture of all networks."""

    kind: Literal["paper", "mlp"] = "paper"  #: section 5.1 and Appendix C, or a plain network for small games
    width: int = 64  #: features d in each hidden layer
    layers: int = 3  #: hidden layers of the mlp
    card_width: int = 3  #: hidden card layers are this many times wider than d; 1 is Appendix C as printed
    card_embedding: bool = False  #: an embedding for every single card beside rank and suit
    #: a learnt vector of each public decision beside the bets that led to it, for trees of many decisions
    node_embedding: bool = False
    outputs: int = 4  #: outputs of the paper network; those beyond the game's actions are ignored
    suits: Literal["canonical", "raw"] = "canonical"  #: inputs in canonical suits, or cards as dealt
    strength: bool = False  #: how strong the hand is beside its cards: domain knowledge, which the paper does without
    runouts: bool = False  #: with `strength`, also how it is spread over the board cards to come


@dataclass(frozen=True)
class FitConfig:
    """How one network is fitted to a memory."""

    steps: int = 4_000  #: mini-batch steps
    steps_per_million: int = 0  #: further steps for every million examples in the memory
    batch_size: int = 10_000  #: examples in a mini-batch, drawn with replacement
    #: examples are drawn alike, and their losses weighted; or they are drawn in proportion to their weights; or so and as
    #: many of every round, where river decisions outnumber the others. Memories of hands do not read it
    draw: Literal["uniform", "weighted", "balanced"] = "uniform"
    #: of each hand in a mini-batch, so many decisions of a round, drawn in proportion to how often they are reached; 0 is
    #: all. Memories of infosets do not read it
    decisions: int = 0
    batch_growth: float = 1.0  #: the last mini-batches are this many times larger than the first, in four stages
    #: Adam as in the paper; or Muon (Jordan et al. 2024), which orthogonalises the steps of hidden matrices, with Adam for
    #: the rest. On CUDA its steps are not graphs
    optimizer: Literal["adam", "muon"] = "adam"
    learning_rate: float = 1e-3  #: of the optimizer
    schedule: Literal["constant", "cosine"] = "constant"  #: learning rate over the fit; cosine decays to zero
    averaging: float = 0.0  #: decay of an exponential moving average of the weights that replaces them; 0 is off
    clip: float = 1.0  #: largest gradient norm
    refit: Literal["scratch", "fine-tune"] = "scratch"  #: start from random weights, or from the last fit's
    scale_targets: bool = True  #: fit advantages in units of their root mean square (never applied to probabilities)
    #: fit advantages as shares of the pot at their decision, in games of poker: regret matching reads only their
    #: proportions at one infoset, and in chips the largest pots, which are rare in play, are most of the loss
    pot_units: bool = False
    #: fit negative advantages on a logarithmic scale, in units of this many times the root mean square of positive ones:
    #: regret matching reads only their sign and order. Read where targets are the exact means of a panel, and only
    #: there: of noisy targets a curved scale would move the mean; 0 is off
    compress: float = 0.0
    #: replace each target by the weighted mean over its infoset's samples in the memory. Memories of hands do not read it
    merge_infosets: bool = False
    #: share of hands that are never trained on but watched: the weights with the smallest loss on them are kept. With a
    #: cosine schedule the loss falls to the end, so there let `patience` last for most of the fit
    held_out: float = 0.0
    check_every: int = 100  #: steps between looks at the held-out loss
    patience: int = 5  #: looks without a smaller held-out loss that end the fit
    precision: Literal["float32", "bfloat16"] = "float32"  #: of matrix products; weights stay in float32
    compile: bool = False  #: let torch compile the loss; on a CPU this takes a C++ compiler
    graphs: bool = True  #: on CUDA, replay whole steps as one graph; elsewhere it changes nothing


@dataclass(frozen=True)
class EvaluationConfig:
    """When to compute the exact exploitability of the average strategy (fitted first if a network); always at the end."""

    every: int = 0  #: iterations between evaluations; 0 is at the end only
    at: tuple[int, ...] = ()  #: further iterations to evaluate
    #: which strategy of Deep CFR is measured and played: its policy network, the exact average of the networks that were
    #: kept (SD-CFR), or regret matching on the mean of those of the later half, which must be fine-tuned from one another.
    #: The policy network is fitted in any case, so that the run is the same
    policy: Literal["average", "sd-cfr", "smoothed"] = "average"


@dataclass(frozen=True)
class RuntimeConfig:
    """Where and how a run is carried out.

    The results depend on `device` and `threads` only by rounding, but for Monte Carlo CFR in several threads, whose order
    of updates is not fixed.
    """

    device: str = "cpu"  #: a torch device
    threads: int = 2  #: CPU threads
    checkpoint_every: int = 10  #: iterations between checkpoints
    checkpoint_seconds: int = 0  #: least time between checkpoints, for iterations that are shorter than a save
    keep: int = 2  #: newest checkpoints to keep
    minutes: float = 0.0  #: the run ends after so long, if it does not end before; 0 is no limit


@dataclass(frozen=True)
class NFSPConfig:
    """Neural Fictitious Self-Play, which reads this section, `network`, `evaluation` and `runtime`.

    The defaults are those of Heinrich and Silver (2016) on Leduc, who count steps in the game: 2 updates of mini-batches of
    128 for every 128 steps. Their rate for action values is too large for the networks here, whose last features are
    normalised; what `train --solver nfsp` starts from has smaller ones, with Adam.
    """

    iterations: int = 100_000  #: batches of episodes, each followed by updates of all networks
    episodes: int = 64  #: episodes in a batch; in Leduc a player acts about 2.4 times in each
    anticipatory: float = 0.1  #: eta, the probability that a player responds to the opponent in an episode
    epsilon_start: float = 0.06  #: share of uniform play of a player that responds, in the first iteration
    epsilon_end: float = 0.0  #: the least share, which the linear schedule reaches in the last iteration
    epsilon_schedule: Literal["inverse-sqrt", "linear"] = "inverse-sqrt"  #: over iterations
    replay_capacity: int = 200_000  #: transitions in each player's replay memory, the newest ones
    reservoir_capacity: int = 2_000_000  #: of its own best responses in each player's reservoir
    q_steps: int = 2  #: updates of each action-value network in an iteration
    policy_steps: int = 2  #: updates of each average-policy network in an iteration
    batch_size: int = 128  #: examples in a mini-batch, drawn with replacement
    target_every: int = 300  #: updates of an action-value network between copies of it to its target network
    optimizer: Literal["sgd", "adam"] = "sgd"  #: plain stochastic gradient descent, or Adam
    q_learning_rate: float = 0.1  #: of action-value networks
    policy_learning_rate: float = 0.005  #: of average-policy networks
    schedule: Literal["constant", "cosine"] = "constant"  #: learning rates over the run; cosine decays to zero
    clip: float = 0.0  #: largest gradient norm; 0 is no limit


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run."""

    game: str = "fhp"  #: a preset, the path of a game definition, or openspiel:NAME
    seed: int = 0
    solver: Literal["deep-cfr", "nfsp"] = "deep-cfr"  #: nfsp reads a section of its own and not those of Deep CFR
    cfr: CFRConfig = field(default_factory=CFRConfig)
    public_chance: PublicChanceConfig = field(default_factory=PublicChanceConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    advantage: FitConfig = field(default_factory=FitConfig)
    average: FitConfig = field(default_factory=FitConfig)
    nfsp: NFSPConfig = field(default_factory=NFSPConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)

    @property
    def iterations(self) -> int:
        return self.nfsp.iterations if self.solver == "nfsp" else self.cfr.iterations


@dataclass(frozen=True)
class TabularConfig:
    """How a game is solved in tables: full-width CFR in one of its variants, or Monte Carlo CFR."""

    algorithm: Literal["cfr", "cfr+", "linear-cfr", "dcfr", "mccfr"] = "linear-cfr"
    iterations: int = 100  #: CFR iterations T
    alpha: float = 1.5  #: dcfr: positive regrets are multiplied by t^alpha / (t^alpha + 1)
    beta: float = 0.0  #: dcfr: negative regrets are multiplied by t^beta / (t^beta + 1)
    gamma: float = 2.0  #: dcfr: the average strategy is multiplied by (t / (t + 1))^gamma
    precision: Literal["float64", "float32", "int16"] = (
        "float32"  #: of tables; int16 is for full-width CFR on poker games
    )
    sampler: Literal["external", "outcome"] = "external"  #: mccfr
    #: mccfr: traversals K per iteration and player; the opponent's strategy stands still meanwhile, so small games want few
    traversals: int = 2_000
    weighting: Literal["linear", "uniform"] = "linear"  #: mccfr: weight of iteration t, t or 1
    exploration: float = 0.6  #: mccfr with outcome sampling: share of uniform play in the traverser's sampling policy
    abstraction: str = "lossless"  #: mccfr: the folder of an abstraction, texture (Lin 2024, figure 4), or lossless
    #: mccfr: least probability of every legal action in both players' strategies at the start; 0 is off. The next two are
    #: as in Lin (2024, section 6.2), who begins with 0.01
    exploration_start: float = 0.0
    exploration_slope: float = -2.5e-7  #: mccfr: what is added to it after every game, a traversal for each player
    exploration_end: int = 40_000  #: mccfr: games after which it is 0, at the latest
    #: mccfr: how much losses hurt, as a function of the loss in the game's unit (Lin 2024, section 6.3); y1 is as they are.
    #: Evaluation always takes the game as it is
    reward_shape: Literal["y1", "y2", "y3", "y4"] = "y1"
    reward_on: Literal["payoff", "regret"] = "payoff"  #: mccfr: what it shapes, chips won and lost or sampled regrets
    #: mccfr: what tables start from, all actions alike or probabilities by the simulated win rate of a hand's bucket (Lin
    #: 2024, section 7)
    initial: Literal["uniform", "win-rates"] = "uniform"
    #: mccfr: equal parts of the traversals, each with a copy of the tables that are merged after every epoch, so that they
    #: can be in different processes
    parts: int = 1
    epoch: int = 1  #: mccfr: iterations between merges of parts
    #: mccfr: with win rates, the sum of a row's regrets at the start, in the game's unit, and what the row counts in the
    #: average, where a visit in iteration 1 counts 1
    initial_weight: float = 1.0


@dataclass(frozen=True)
class SolveConfig:
    """Everything that decides a run of a tabular solver."""

    game: str = "fhp"  #: a preset, the path of a game definition, or openspiel:NAME
    seed: int = 0  #: of sampling and of random rounding
    solve: TabularConfig = field(default_factory=TabularConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)

    @property
    def iterations(self) -> int:
        return self.solve.iterations

    @property
    def abstraction_folder(self) -> Path | None:
        """Where the abstraction is that the settings name; None if they name none."""
        return None if self.solve.abstraction in ("lossless", "texture") else Path(self.solve.abstraction)


AnyConfig = RunConfig | SolveConfig
