"""The command line as data: one record for each command, its fields the arguments, their comments the help."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from deepcfr.config import (
    CFRConfig,
    EvaluationConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    NFSPConfig,
    PublicChanceConfig,
    RunConfig,
    RuntimeConfig,
    SolveConfig,
    TabularConfig,
    validate_config,
)
from deepcfr.errors import ConfigError
from deepcfr.report.studies import StudyName
from deepcfr.report.studies.lin import LinName

MOST_ITERATIONS = 100_000_000  # what a run by the clock does not come to
DEFAULT_SHARDS = 8  # of memories on a cluster
DEFAULT_WORKERS = 2  # of a cluster
BudgetPart = Literal["tabular", "architecture", "sd-cfr", "average", "current", "panel", "deviations"]
PolicyName = Literal["own", "average", "network", "current", "sd-cfr", "smoothed"]


def check_minutes(minutes: float) -> None:
    """Raise ConfigError unless a run can last so long."""
    if not minutes > 0:
        raise ConfigError(f"--minutes must be above 0, but is {minutes:g}.")


@dataclass
class Games:
    """List the games that can be played: sizes, unit, and whether exact evaluation is within reach."""

    definition: tuple[Path, ...] = ()  # ACPC game-definition files to list too
    json: bool = False  # print one JSON object


@dataclass
class Models:
    """List trained models with what their cards say: game, recipe, exact NashConv, size."""

    folder: Positional[Path] = Path("models")  # a folder of run folders
    json: bool = False  # print one JSON object


@dataclass
class Train:
    """Train Deep CFR or NFSP on a game, with its exact exploitability where that is within reach.

    Settings start from the game's defaults, or from --config; every one of them can be overridden here.
    """

    #: a preset (kuhn, leduc, fhp, fhp-mini, hulh, fhp-pot, hunl-pot), a game-definition file, or openspiel:NAME
    game: Positional[str]
    out: Path  # the run folder to create
    config: Path | None = None  # a TOML file with settings
    json: bool = False  # print one JSON object, and progress to standard error
    ray: str | None = None  # run traversals on the Ray cluster at HOST:PORT, or without a value on one on this machine
    workers: int | None = None  # processes of such a cluster that run traversals and keep memories; 2 unless given
    learners: int | None = None  # further ones that fit networks together; 0, unless given, is in this process
    seed: int = 0
    solver: Literal["deep-cfr", "nfsp"] = "deep-cfr"  # nfsp reads its own section and not those of Deep CFR
    cfr: CFRConfig = field(default_factory=CFRConfig)
    public_chance: PublicChanceConfig = field(default_factory=PublicChanceConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    advantage: FitConfig = field(default_factory=FitConfig)
    average: FitConfig = field(default_factory=FitConfig)
    nfsp: NFSPConfig = field(default_factory=NFSPConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)

    def run_config(self) -> RunConfig:
        """The settings as one validated record; on a cluster memories are in several shards."""
        sections = {f.name: getattr(self, f.name) for f in dataclasses.fields(RunConfig) if f.name != "game"}
        if self.ray is not None and self.solver != "deep-cfr":
            raise ConfigError(f"--ray is for Deep CFR, and the solver is {self.solver}.")
        if self.ray is not None and self.memory.shards == 1:
            sections["memory"] = dataclasses.replace(self.memory, shards=max(DEFAULT_SHARDS, self.workers or 0))
        return validate_config(RunConfig(game=self.game, **sections))


@dataclass
class Solve:
    """Solve a game in tables: full-width CFR, or Monte Carlo CFR on a card abstraction.

    Settings start from their defaults, or from --config; every one of them can be overridden here.
    """

    #: a preset (kuhn, leduc, fhp, fhp-mini, hulh, fhp-pot, hunl-pot, hunl-ladder), a game-definition file (.toml for a
    #: raise ladder), or openspiel:NAME
    game: Positional[str]
    out: Path  # the run folder to create
    config: Path | None = None  # a TOML file with settings
    minutes: float | None = None  # stop by the clock, and not after --iterations unless that is given too
    json: bool = False  # print one JSON object, and progress to standard error
    ray: str | None = None  # run traversals on the Ray cluster at HOST:PORT, or without a value on one on this machine
    workers: int | None = None  # processes of such a cluster that run traversals; 2 unless given
    seed: int = 0
    solve: Annotated[TabularConfig, arg(name="")] = field(default_factory=TabularConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)

    def run_config(self) -> SolveConfig:
        """The settings as one validated record."""
        sections = {f.name: getattr(self, f.name) for f in dataclasses.fields(SolveConfig) if f.name != "game"}
        if self.minutes is not None:
            check_minutes(self.minutes)
            sections["runtime"] = dataclasses.replace(self.runtime, minutes=self.minutes)
            if self.solve.iterations == TabularConfig().iterations:  # which nobody asked for
                sections["solve"] = dataclasses.replace(self.solve, iterations=MOST_ITERATIONS)
        if self.ray is not None:
            if self.solve.algorithm != "mccfr":
                raise ConfigError(
                    f"--ray is for mccfr, whose traversals are apart, and not for {self.solve.algorithm}."
                )
            parts = (self.workers or DEFAULT_WORKERS) if self.solve.parts == 1 else self.solve.parts
            sections["solve"] = dataclasses.replace(sections["solve"], parts=parts)
        return validate_config(SolveConfig(game=self.game, **sections))


@dataclass
class Abstract:
    """Group the private hands of a game into buckets, for Monte Carlo CFR on a card abstraction."""

    #: a preset (kuhn, leduc, fhp, fhp-mini, hulh, fhp-pot, hunl-pot, hunl-ladder) or a game-definition file (.toml for a
    #: raise ladder)
    game: Positional[str]
    buckets: tuple[int, ...]  # for every round with board cards, or one number for each round
    out: Path  # the folder to create
    features: Literal["auto", "ochs", "histogram", "ehs"] = "auto"  # what hands are compared by
    threads: int = 2  # CPU threads
    seed: int = 0
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class Resume:
    """Go on with a run where it stopped."""

    run: Positional[Path]  # a run folder
    iterations: int | None = None  # go on to so many iterations, more than were asked for at first
    minutes: float | None = None  # go on until the run has had so many minutes in all, more than it has had
    ray: str | None = None  # run traversals on the Ray cluster at HOST:PORT, or without a value on one on this machine
    workers: int | None = None  # processes of such a cluster that run traversals and keep memories; 2 unless given
    learners: int | None = None  # further ones that fit networks together; 0, unless given, is in this process
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class Exploit:
    """Compute the exact exploitability of a run's policy: a full-width best response of each player."""

    run: Positional[Path]  # a run folder or a shipped model
    # its own (what evaluation.policy names), average strategy (its network), newest iteration's, exact average of all, or
    # regret matching on the mean of the later half of the networks
    policy: PolicyName = "own"
    threads: int = 2  # CPU threads
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class Budget:
    """Say which part of a Deep CFR run limits: exact NashConv of each part, and what deviations gain by decision."""

    run: Positional[Path]  # a run folder or a shipped model of a poker game
    skip: tuple[BudgetPart, ...] = ()  # parts to leave out
    solve_iterations: int | None = None  # of the solved game; by default twice those of the run, at least 100
    steps: int | None = None  # of the network fitted to the solved game; by default as the run's average network
    examples: int | None = None  # drawn from it, at most; by default 4,000,000 infosets or 1,000,000 hands
    deviate: Literal["average", "sd-cfr", "current"] = "average"  # the policy whose deviations are valued
    threads: int = 2  # CPU threads
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class StrategyQuery:
    """Ask a run's policy what it does, for example: deepcfr strategy models/fhp "As Kd / r / Qs 7h 2c".

    STYLE:RUN is a run in another style, and ensemble:RULE:RUN,RUN several as one, as for deepcfr match.
    """

    run: Positional[str]  # a run folder, a shipped model, or what is made of them
    situation: Positional[str]  # hole cards / betting of the first round / board cards / betting ...
    policy: PolicyName = "own"
    json: bool = False


@dataclass
class MatchUp:
    """Play two runs of one game against each other in both seats: exactly, over sampled boards, or over sampled hands.

    A run is a folder, a shipped model, or a scripted style: scripted:uniform, scripted:call or scripted:raise. STYLE:RUN is
    a run in another style (aggressive, tight, random, calling-machine, tight-aggressive, deterministic, initial), and
    ensemble:RULE:RUN,RUN several as one (sum, mixture, member).
    """

    first: Positional[str]  # a run
    second: Positional[str]  # another one
    boards: int | Literal["all"] | None = None  # runouts to sample, with all hands on each; all, or nothing, is exact
    hands: int | None = None  # deals to sample, each played in both seats; of a raise-ladder game 100,000 unless named
    lines: int | None = None  # with --boards: action sequences of a round that are played out; 256 by default
    seed: int = 0  # of the boards, or of the deals and the actions
    policy: PolicyName = "own"  # of both
    threads: int = 2  # CPU threads
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class Rivals:
    """Play every one of several runs of one game against every other one, or the first against all others.

    A run is a folder, a shipped model, or a scripted style: scripted:uniform, scripted:call or scripted:raise. STYLE:RUN is
    a run in another style (aggressive, tight, random, calling-machine, tight-aggressive, deterministic, initial), and
    ensemble:RULE:RUN,RUN several as one (sum, mixture, member).
    """

    runs: Positional[tuple[str, ...]]
    styles: tuple[str, ...] = ()  # every run also in these styles, or in all of them with: all
    against_first: bool = False  # only the first run named meets the others, as it is
    boards: int | Literal["all"] | None = None  # runouts to sample, with all hands on each; all, or nothing, is exact
    hands: int | None = None  # deals to sample, each played in both seats; of a raise-ladder game 100,000 unless named
    lines: int | None = None  # with --boards: action sequences of a round that are played out; 256 by default
    seed: int = 0  # of the boards, or of the deals and the actions; the same ones in every match
    policy: PolicyName = "own"  # of all of them
    threads: int = 2  # CPU threads
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class LowerBound:
    """Bound a run's exploitability from below by what a local best response gains from its policy, in both seats.

    STYLE:RUN is a run in another style, and ensemble:RULE:RUN,RUN several as one, as for deepcfr match.
    """

    run: Positional[str]  # a run folder or a shipped model of a poker game, or what is made of them
    boards: int | Literal["all"] | None = None  # runouts to sample; by default all if that is within reach, else 100
    rounds: tuple[int, ...] | None = None  # in which it acts by its rule, 0 is the first; it checks and calls in others
    lines: int | None = None  # with --boards N: action sequences of a round that are played out; 256 by default
    hands: int | None = None  # of a raise-ladder game: deals, each played in both seats; 1,000 unless named
    seed: int = 0  # of the boards and the action sequences, or of the deals
    policy: PolicyName = "own"
    threads: int = 2  # CPU threads
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class Play:
    """Play against a run's policy in the terminal, in both seats.

    STYLE:RUN is a run in another style, and ensemble:RULE:RUN,RUN several as one, as for deepcfr match.
    """

    run: Positional[str]  # a run folder, a shipped model, or what is made of them
    hands: int | None = None  # stop after this many hands
    seed: int = 0  # of the cards and the agent's actions
    policy: PolicyName = "own"


@dataclass
class Serve:
    """Serve pages on this machine: play agents, look at their strategy, watch runs; and the same as JSON.

    For example: deepcfr serve models/fhp, or deepcfr serve runs/a runs/b tight:runs/b (STYLE:RUN, as for deepcfr match)
    """

    runs: Positional[tuple[str, ...]]  # run folders or shipped models, as they are or in a style
    host: str = "127.0.0.1"  # an address of this machine; other machines reach only what is not loopback
    port: int = 8321  # 0 for any free one
    policy: PolicyName = "own"  # that is played and shown
    matches: tuple[Path, ...] = ()  # what tournaments and matches have printed with --json, for the page of matches


@dataclass
class Api:
    """Print the description of the JSON endpoints of `deepcfr serve`, in the form of OpenAPI."""


@dataclass
class Acpc:
    """Play a match as a client of a dealer that speaks the ACPC protocol, version 2.0.0."""

    run: Positional[Path]  # a run folder or a shipped model of the dealer's game
    port: int  # where the dealer listens for this player
    host: str = "127.0.0.1"
    seed: int = 0  # of the agent's actions
    policy: PolicyName = "own"
    retries: int = 5  # attempts to connect again, with pauses that double
    seconds: float = 7.0  # the dealer's limit for an answer; slower ones are reported
    json: bool = False  # print one JSON object


@dataclass
class Host:
    """Deal a match of two players over the ACPC protocol: runs, scripted:STYLE, or - for a bot that connects itself."""

    first: Positional[str]  # a run, scripted:uniform, scripted:call or scripted:raise, or - for a bot from outside
    second: Positional[str]  # another one
    hands: int  # deals
    game: str | None = None  # the game of bots from outside, if no run says it
    duplicate: bool = False  # play every deal once more with the seats exchanged, after all others
    seed: int = 0  # of the cards, and of the actions of runs
    phh: Path | None = None  # a folder for hand histories, each hand refereed by pokerkit
    log: Path | None = None  # a file for all hands as the dealer writes them
    host: str = "127.0.0.1"  # where bots from outside connect
    port: int = 0  # the first such bot's port, and the next one for a second bot; 0 for any free ones
    seconds: float = 60.0  # for every answer, and to connect
    policy: PolicyName = "own"  # of both runs
    json: bool = False  # print one JSON object, and everything else to standard error


@dataclass
class Export:
    """Copy a run without its memories: small and playable, but not resumable."""

    run: Positional[Path]  # a run folder
    out: Path  # the folder to create
    keep_networks: int = 1  # of the networks kept for --policy sd-cfr every n-th, or none with 0


@dataclass
class Reproduce:
    """Run one of the paper's experiments: every arm and seed as a run folder; finished ones stay, others go on."""

    #: a figure of the Deep CFR paper; its bound on average regret; its matches of heads-up limit hold'em; or a figure of
    #: Lin's (2024), and what Lin's improvements do to exact exploitability
    what: Positional[Literal[StudyName, "theorem1", "table1", LinName]]
    budget: Literal["quick", "paper"] = "quick"  # a small cousin of FHP on two cores, or the paper's own scale on a GPU
    #: seeds 0 .. n-1 of every arm; unless named 3, but 1 of table1 at the quick budget, where each takes more than an hour
    seeds: int | None = None
    arms: tuple[str, ...] = ()  # of a figure only these arms, by the names of their folders; none for all
    out: Path = Path("runs/studies")  # the folder of all studies
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class Report:
    """Write the pages docs/reproduction*.md from the runs of `reproduce`, or draw convergence curves of runs of one game.

    `deepcfr report` writes those pages that have runs, and their figures; `deepcfr report RUNS --out curves.svg` draws
    exact NashConv against time and nodes touched; `deepcfr report fig2 [RUNS]` writes a page of such curves, with a table;
    `deepcfr report --run RUN` writes report.html again, the page of a run that every run folder has.
    """

    what: Positional[tuple[str, ...]]  # nothing; runs or models; or fig2, alone for all runs of FHP, or before runs
    run: tuple[Path, ...] = ()  # write the page of this run, or of several over each other
    #: of the page a folder, docs unless named; of runs a picture, .svg or .png; of fig2 a folder, runs/report unless named;
    #: with --run an .html file, RUN/report.html unless named
    out: Path | None = None
    png: bool = False  # fig2: write fig2.png too
    studies: Path = Path("runs/studies")  # where the runs of `reproduce` are


@dataclass
class Bench:
    """Measure performance: against OpenSpiel in the same process, and our own speeds on hold'em games."""

    #: Deep CFR against OpenSpiel's, or on FHP; tabular solvers; NFSP against OpenSpiel's; MCCFR against plain Python; Ray
    #: workers against threads
    what: Positional[Literal["openspiel", "fhp", "tabular", "nfsp", "threads", "scale"]]
    iterations: int = 20  # openspiel: CFR iterations of OpenSpiel
    seed: int = 0
    json: bool = False
