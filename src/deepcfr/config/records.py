"""The settings of a run as plain records, with the paper's values as defaults; variants are values, never subclasses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Weighting = Literal["linear", "uniform", "quadratic", "discounted"]  # the weight of iteration t: t, 1, t^2, or DCFR's
_PLUS = {"uniform": "CFR", "linear": "LinearCFR", "discounted": "DCFR"}  # clipped variants, by weighting
PolicyName = Literal["own", "average", "current", "sd-cfr"]  # a strategy of a run; own is what evaluation.policy names
OPENSPIEL = "openspiel:"  # prefix of the names of OpenSpiel games
_CLASS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def names_class(game: str) -> bool:
    """Whether a game's name is `module:Class`, a game written in Python."""
    return bool(_CLASS.fullmatch(game)) and not game.startswith(OPENSPIEL)


@dataclass(frozen=True)
class CFRConfig:
    """The iterations of CFR (Algorithm 1)."""

    #: weight of iteration t: t (Linear CFR) or 1; or discounted: sums are discounted by their sign, as in Discounted CFR
    #: with alpha = 1.5 and beta = 0 (Brown and Sandholm 2019), which needs a panel's exact sums or bootstrapped targets
    weighting: Literal["linear", "uniform", "discounted"] = "linear"
    #: weight of iteration t in the average strategy: `weighting`; t as in CFR+; or t^2 as in Discounted CFR with gamma = 2.
    #: The same for discounted sums is t^2, too
    average_weighting: Literal["same", "linear", "quadratic"] = "same"
    fallback: Literal["highest", "uniform"] = "highest"  #: action when no advantage is positive
    first_round: Literal["network", "table"] = "network"  #: store of the first betting round's regrets and strategy
    keep_networks: int = 1  #: iterations between snapshots of the networks, for SD-CFR; 0 keeps none

    @property
    def of_averages(self) -> Weighting:
        """The weighting of iterations in the average strategy."""
        if self.average_weighting != "same":
            return self.average_weighting
        return "quadratic" if self.weighting == "discounted" else self.weighting


@dataclass(frozen=True)
class SamplingConfig:
    """The traversals of Deep CFR. Each kind reads its own settings of these."""

    #: external (Algorithm 2): a traversal takes all actions of the traverser, and samples chance and the opponent's
    #: actions; outcome: it samples all actions of both players, so it is one history (section 4); public-chance: it samples
    #: boards, and plays out all hands of both players on them
    kind: Literal["external", "outcome", "public-chance"] = "external"
    traversals: int = 10_000  #: external, outcome: traversals K per iteration and player
    #: external: actions that the traverser takes at each of its decisions, drawn alike without replacement (robust
    #: sampling, Li et al. 2020); 0 is all
    actions: int = 0
    #: outcome: the source of sampled advantages: payoffs with importance weights; the same with learnt history values as a
    #: baseline, as in DREAM; or history values alone, without importance weights, as in ESCHER
    estimate: Literal["payoffs", "baseline", "values"] = "payoffs"
    #: public-chance: boards of the first round that deals one, all if there are not more; each is followed by one of every
    #: later round
    boards: int = 100
    #: public-chance: visit the same boards in every iteration; the memories then hold exact sums over iterations
    panel: bool = False
    #: public-chance: hands that a board adds to the memories. Without a panel they are so many in every round if both
    #: players play uniformly, because infosets are recorded in proportion to reach
    samples: int = 500
    decisions: int = 1  #: public-chance: infosets of each recorded hand; a panel records all of its round
    #: public-chance: hands that both players may have on each board, drawn at random; 0 for all. Only for games whose
    #: boards are not kept
    hands: int = 0

    @property
    def read(self) -> tuple[str, ...]:
        """The names of the settings that the kind reads."""
        if self.kind == "public-chance":
            return ("kind", "boards", "panel", "samples", "decisions", "hands")
        return ("kind", "traversals", "actions" if self.kind == "external" else "estimate")

    def of_kind(self, kind: Any) -> SamplingConfig:
        """Settings of another kind: the defaults, but for traversals where both have them; itself if it is that kind."""
        if kind == self.kind:
            return self
        return SamplingConfig(kind) if kind == "public-chance" else SamplingConfig(kind, self.traversals)

    @property
    def on_panel(self) -> bool:
        """Whether every iteration visits the same boards."""
        return self.kind == "public-chance" and self.panel

    @property
    def exploration(self) -> float:
        """The share of uniform play in the traverser's policy of outcome sampling: half as in DREAM, all as in ESCHER."""
        return 1.0 if self.estimate == "values" else 0.5


@dataclass(frozen=True)
class MemoryConfig:
    """Memories of samples: one of advantages for each player, one of strategies."""

    #: a uniform sample of all samples seen, or the newest ones. A panel of boards keeps all hands and ignores this section
    kind: Literal["reservoir", "window"] = "reservoir"
    capacity: int = 40_000_000  #: samples in each of the three: infosets, or hands of each round


@dataclass(frozen=True)
class NetworkConfig:
    """The architecture of all networks."""

    #: paper: section 5.1 and Appendix C; mlp: a plain network for small games; two-tower: wide layers for the cards, whose
    #: features meet a vector of each action in an inner product
    kind: Literal["paper", "mlp", "two-tower"] = "paper"
    width: int = 64  #: features d in each hidden layer
    layers: int = 3  #: hidden layers of the mlp, and of the card tower after its first
    #: hidden card layers are this many times wider than d; 1 is the width in Appendix C, whose listing also has
    #: `card_embedding`
    card_width: int = 3
    card_embedding: bool = False  #: an embedding for every single card in addition to rank and suit
    #: a learnt vector for each public decision in addition to its bets, for trees with many decisions
    node_embedding: bool = False
    suits: Literal["canonical", "raw"] = "canonical"  #: inputs in canonical suits, or cards as dealt
    #: hand strength as an additional input, and in games of several boards its distribution over future board cards: domain
    #: knowledge that the paper does not use
    strength: bool = False


@dataclass(frozen=True)
class FitConfig:
    """The fit of one network to a memory."""

    steps: int = 4_000  #: mini-batch steps
    #: fewer steps while the memory is small: at most so many passes over its examples; 0 for no such limit
    passes: float = 0.0
    batch_size: int = 10_000  #: examples in a mini-batch, drawn with replacement
    #: uniform: draw all examples alike and weight their losses; merged: the same, with each target replaced by the weighted
    #: mean over its infoset's samples in the memory; balanced: draw in proportion to the weights, and equally from every
    #: round, because river decisions outnumber the others. Memories of hands ignore it
    draw: Literal["uniform", "merged", "balanced"] = "uniform"
    #: Adam as in the paper; or Muon (Jordan et al. 2024), which orthogonalises the steps of hidden matrices, with Adam for
    #: the rest. Steps of Muon do not run as CUDA graphs
    optimizer: Literal["adam", "muon"] = "adam"
    learning_rate: float = 1e-3  #: learning rate of the optimizer
    schedule: Literal["constant", "cosine"] = "constant"  #: learning rate over the fit; cosine decays to zero


@dataclass(frozen=True)
class AdvantageFitConfig(FitConfig):
    """The fit of an advantage network: the settings of any fit, its first weights, and the unit and scale of advantages."""

    refit: Literal["scratch", "fine-tune"] = "scratch"  #: start from random weights, or from the last fit's
    #: pots: in poker, fit advantages in units of the pot at their decision: regret matching uses only ratios within an
    #: infoset, and in chips the largest pots, which are rare in play, dominate the loss. log: fit negative advantages on a
    #: logarithmic scale, in units of the root mean square of positive ones: regret matching uses only their sign and order;
    #: only for the exact means of a panel, because it would bias the mean of noisy targets
    units: Literal["chips", "pots", "log"] = "chips"
    #: mean: the weighted mean of all samples in the memory; bootstrap: this iteration's samples added to the positive part
    #: of the last network, so that a memory holds one iteration only (Xu et al. 2025). `cfr.weighting` discounts that part.
    #: predict: bootstrap in a network of its own, and what is played adds this iteration's samples to it once more. sum:
    #: this iteration's samples added to the last network, whose negative part stays (Li et al. 2020), with uniform weights
    target: Literal["mean", "bootstrap", "predict", "sum"] = "mean"

    @property
    def bootstrapped(self) -> bool:
        """Whether a network keeps the sums of earlier iterations, and not a memory."""
        return self.target != "mean"


@dataclass(frozen=True)
class ValueFitConfig:
    """The fits of the network of history values, which go on from the last weights; only some estimates need it."""

    steps: int = 4_000  #: mini-batch steps
    batch_size: int = 10_000  #: examples in a mini-batch, drawn alike with replacement
    capacity: int = 200_000  #: steps of sampled histories in its memory, the newest ones

    @property
    def fit(self) -> FitConfig:
        """The settings of a fit: Muon, with a rate that decays from 0.01."""
        return FitConfig(
            self.steps, batch_size=self.batch_size, optimizer="muon", learning_rate=0.01, schedule="cosine"
        )


@dataclass(frozen=True)
class EvaluationConfig:
    """When to compute the exact exploitability; always at the end. An average network is fitted before."""

    every: int = 0  #: iterations between evaluations; 0: only at the end
    at: tuple[int, ...] = ()  #: additional iterations to evaluate
    #: the strategy of Deep CFR that is measured and played: its policy network, or the exact average of the snapshots
    #: (sd-cfr). The policy network is fitted in either case
    policy: Literal["average", "sd-cfr"] = "average"
    #: actions to which the average strategy gives less are not played, unless none is as probable (thresholding, Ganzfried,
    #: Sandholm and Waugh 2012): a softmax leaves a little to every action. Training does not change. 0 is off; above 1/2
    #: only the most probable action is left
    threshold: float = 0.0

    def is_due(self, iteration: int) -> bool:
        """Whether to evaluate after an iteration that is not the last one."""
        return iteration in self.at or bool(self.every and iteration % self.every == 0)

    def number_due(self, done: int, last: int) -> int:
        """The number of evaluations after iteration `done`, up to that at the end of the `last` one."""
        named = sum(done < t < last and not (self.every and t % self.every == 0) for t in set(self.at))
        regular = max(last - 1, done) // self.every - done // self.every if self.every else 0
        return named + regular + (done < last)


@dataclass(frozen=True)
class RuntimeConfig:
    """The machine and the checkpoints of a run.

    `device` and `threads` change results only by rounding, except in Monte Carlo CFR with several threads, whose order of
    updates is not fixed.
    """

    device: str = "cpu"  #: a torch device
    threads: int = 2  #: number of CPU threads
    #: seconds between checkpoints, each at the end of an iteration; 0: after every iteration
    checkpoint_seconds: int = 120
    minutes: float = 0.0  #: time limit of the run; 0 is no limit


@dataclass(frozen=True)
class NFSPConfig:
    """Neural Fictitious Self-Play, which reads this section, `network`, `evaluation` and `runtime`.

    The defaults are those of Heinrich and Silver (2016) on Leduc, who count steps in the game: 2 updates of mini-batches of
    128 for every 128 steps. Their learning rate of action values, for plain gradient descent, is too large for the networks
    here, whose last features are normalised, and for Adam; the defaults of `train --solver nfsp` are smaller.
    """

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
    """Policy gradients by self-play: proximal policy optimisation (ppo, Schulman et al. 2017) and magnetic mirror descent
    (mmd, Sokota et al. 2023), which read this section, `network`, `evaluation` and `runtime`.

    The updates of each method, found by trials on Leduc (docs/algorithms/ppo.md), are in `solve.policy_gradient`.
    """

    episodes: int = 16_384  #: episodes in a batch


@dataclass(frozen=True)
class TabularConfig:
    """Tabular solvers: full-width CFR in one of its variants, CFR-D, or Monte Carlo CFR (mccfr)."""

    #: number type of tables; int16 is for full-width CFR on poker games
    precision: Literal["float64", "float32", "int16"] = "float32"
    boards: int = 1_000  #: cfr-d: boards that are played in every iteration, all if there are not more
    sampler: Literal["external", "outcome"] = "external"  #: mccfr: how actions are sampled
    #: mccfr: traversals K per iteration and player; the opponent's strategy is fixed during them, so small games need few
    traversals: int = 2_000
    weighting: Literal["linear", "uniform"] = "linear"  #: mccfr: weight of iteration t, t or 1
    abstraction: str = "lossless"  #: mccfr: the folder of an abstraction, texture (Lin 2024, figure 4), or lossless
    #: mccfr: least probability of every legal action in both players' strategies at the start; 0 is off. It falls as in Lin
    #: (2024, section 6.2), who starts with 0.01: by 2.5e-7 after every game, and to 0 after 40,000 games
    exploration_start: float = 0.0
    #: mccfr: function applied to losses in the game's unit (Lin 2024, section 6.3); y1 leaves them unchanged. Evaluation
    #: always uses the real payoffs
    reward_shape: Literal["y1", "y2", "y3", "y4"] = "y1"
    #: mccfr: initial strategy of the tables: uniform, or by the simulated win rate of a hand's bucket (Lin 2024, section 7)
    initial: Literal["uniform", "win-rates"] = "uniform"

    @property
    def abstraction_folder(self) -> Path | None:
        """The folder of the abstraction; None for lossless and texture."""
        return None if self.abstraction in ("lossless", "texture") else Path(self.abstraction)


NetworkSolver = Literal["deep-cfr", "nfsp", "ppo", "mmd"]
TabularSolver = Literal["cfr", "cfr+", "pcfr+", "linear-cfr", "dcfr", "cfr-d", "mccfr", "xfp", "egt"]
SolverName = Literal[NetworkSolver, TabularSolver]
#: names of `train --solver`: solvers, and relatives of Deep CFR, which are settings of it (`deepcfr.defaults`)
NamedSolver = Literal[
    "deep-cfr", "nfsp", "ppo", "mmd", "dream", "escher", "rcfr", "double-neural",
    "deep-cfr+", "deep-dcfr+", "deep-pdcfr+", "vr-deep-cfr+", "vr-deep-dcfr+", "vr-deep-pdcfr+",
]  # fmt: skip
_METHODS: dict[SolverName, str] = {
    "nfsp": "NFSP",
    "ppo": "PPO",
    "mmd": "MMD",
    "mccfr": "Monte Carlo CFR",
    "cfr": "CFR",
    "cfr+": "CFR+",
    "pcfr+": "Predictive CFR+",
    "linear-cfr": "Linear CFR",
    "dcfr": "Discounted CFR",
    "cfr-d": "CFR-D",
    "xfp": "Fictitious play",
    "egt": "Excessive gap technique",
}


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run: a section for each solver, and sections that several read."""

    game: str = "fhp"  #: a preset, the path of a game definition, openspiel:NAME, or module:Class
    seed: int = 0  #: seed of everything random in the run
    solver: SolverName = "deep-cfr"  #: it reads the sections in `sections`
    #: iterations T of CFR; of nfsp, ppo and mmd: batches of episodes, each followed by updates of all networks
    iterations: int = 450
    cfr: CFRConfig = field(default_factory=CFRConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    advantage: AdvantageFitConfig = field(default_factory=AdvantageFitConfig)
    average: FitConfig = field(default_factory=FitConfig)
    values: ValueFitConfig = field(default_factory=ValueFitConfig)
    nfsp: NFSPConfig = field(default_factory=NFSPConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    solve: TabularConfig = field(default_factory=TabularConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)

    @property
    def family(self) -> Literal["deep-cfr", "nfsp", "ppo", "tabular"]:
        """The kind of the solver; mmd is of ppo."""
        if self.solver in ("deep-cfr", "nfsp"):
            return self.solver
        return "ppo" if self.solver in ("ppo", "mmd") else "tabular"

    @property
    def tabular(self) -> bool:
        """Whether the solver keeps tables instead of networks."""
        return self.family == "tabular"

    @property
    def sections(self) -> tuple[str, ...]:
        """The sections that the solver reads."""
        own = {"tabular": ("solve",), "nfsp": ("network", "nfsp"), "ppo": ("network", "ppo")}
        deep = ("cfr", "sampling", "memory", "network", "advantage", "average", *(("values",) * self.has_values))
        return (*own.get(self.family, deep), "evaluation", "runtime")

    @property
    def plays_all_hands(self) -> bool:
        """Whether all hands are played out at once, instead of single histories."""
        deep = self.solver == "deep-cfr" and self.sampling.kind == "public-chance"
        return self.solver != "mccfr" if self.tabular else deep

    @property
    def has_values(self) -> bool:
        """Whether the run estimates advantages with learnt values of histories."""
        return self.solver == "deep-cfr" and self.sampling.kind == "outcome" and self.sampling.estimate != "payoffs"

    @property
    def method(self) -> str:
        """The name of the algorithm that the settings make."""
        if self.solver != "deep-cfr":
            return _METHODS[self.solver]
        varied = "VR-" if self.has_values else ""
        if self.advantage.target == "sum":
            return f"{varied}Double Neural CFR"
        if self.advantage.bootstrapped:
            predictive = "P" if self.advantage.target == "predict" else ""
            return f"{varied}Deep{predictive}{_PLUS[self.cfr.weighting]}+"
        if self.has_values:
            return "DREAM" if self.sampling.estimate == "baseline" else "ESCHER"
        exact = self.sampling.on_panel and self.advantage.units != "log"
        networks_alone = self.cfr.first_round == "network"
        return "RCFR" if exact and networks_alone and self.cfr.weighting == "uniform" else "Deep CFR"


SearchKind = Literal["gadget", "unsafe"]
SearchSizes = Literal["real", "translated"]


@dataclass(frozen=True)
class SearchConfig:
    """Search at play time, for players named resolve:RUN."""

    #: how the opponent's range is treated: as it is (unsafe), or so that no range gains (gadget)
    kind: SearchKind = "gadget"
    #: rounds, counted from 0, that are solved when play gets there (default: the last one)
    rounds: tuple[int, ...] = ()
    iterations: int = 100  #: iterations of Discounted CFR for each subgame
    #: CPU threads that share the later boards of one subgame; in the last round there is only one board
    threads: int = 1
    #: no-limit bets that the agent's game lacks, in searched rounds: solved as they are (real) or taken for its own
    sizes: SearchSizes = "real"


DEFAULT_SEARCH = SearchConfig()
