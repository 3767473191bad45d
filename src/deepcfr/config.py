"""The configuration of a run: plain records with the paper's values as defaults, read from TOML, validated once.

Variants of the algorithm are values here, never subclasses. This module imports neither torch nor numba.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from deepcfr.errors import ConfigError

OPENSPIEL = "openspiel:"  # what the names of OpenSpiel's games begin with


@dataclass(frozen=True)
class CFRConfig:
    """Algorithm 1 and the data it collects."""

    iterations: int = 450  #: CFR iterations T
    traversals: int = 10_000  #: external-sampling traversals K per iteration and player
    #: traversals that advance together, in one thread; decides the order of samples, and which ones a full memory keeps
    chunk: int = 4_096
    weighting: Literal["linear", "uniform"] = "linear"  #: weight of iteration t: t (Linear CFR) or 1
    fallback: Literal["highest", "uniform"] = "highest"  #: what to play when no advantage is positive
    sampler: Literal["external", "public-chance"] = "external"  #: sample histories, or boards with all their hands
    first_round: Literal["network", "table"] = "network"  #: what holds the first betting round's regrets and strategy
    keep_networks: int = 1  #: iterations between those whose networks are kept for SD-CFR; 0 keeps none


@dataclass(frozen=True)
class PublicChanceConfig:
    """What one public-chance traversal samples, for one player in one iteration; `cfr.traversals` is not read then."""

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

    kind: Literal["reservoir", "window"] = "reservoir"  #: uniform over everything seen, or the newest samples
    advantage_capacity: int = 40_000_000  #: samples in each player's advantage memory: infosets, or hands of each round
    strategy_capacity: int = 40_000_000  #: samples in the strategy memory; hands of each round and player


@dataclass(frozen=True)
class NetworkConfig:
    """The architecture of all networks."""

    kind: Literal["paper", "mlp"] = "paper"  #: section 5.1 and Appendix C, or a plain network for small games
    width: int = 64  #: features d in each hidden layer
    layers: int = 3  #: hidden layers of the mlp
    card_width: int = 3  #: hidden card layers are this many times wider than d; 1 is Appendix C as printed
    card_embedding: bool = False  #: an embedding for every single card beside rank and suit
    outputs: int = 4  #: outputs of the paper network; those beyond the game's actions are ignored
    suits: Literal["canonical", "raw"] = "canonical"  #: inputs in canonical suits, or cards as dealt
    strength: bool = False  #: how strong the hand is beside its cards: domain knowledge, which the paper does without


@dataclass(frozen=True)
class FitConfig:
    """How one network is fitted to a memory."""

    steps: int = 4_000  #: mini-batch steps
    steps_per_million: int = 0  #: further steps for every million examples in the memory
    batch_size: int = 10_000  #: examples in a mini-batch, drawn with replacement
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
    #: fit negative advantages on a logarithmic scale, in units of this many times the root mean square of positive ones:
    #: regret matching reads only their sign and order. For the exact means of a panel; 0 is off
    compress: float = 0.0
    merge_infosets: bool = False  #: replace each target by the weighted mean over its infoset's samples in the memory
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


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run."""

    game: str = "fhp"  #: a preset, the path of a game definition, or openspiel:NAME
    seed: int = 0
    cfr: CFRConfig = field(default_factory=CFRConfig)
    public_chance: PublicChanceConfig = field(default_factory=PublicChanceConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    advantage: FitConfig = field(default_factory=FitConfig)
    average: FitConfig = field(default_factory=FitConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)

    @property
    def iterations(self) -> int:
        return self.cfr.iterations


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
    abstraction: str = "lossless"  #: mccfr: the folder of an abstraction, or lossless


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
        return None if self.solve.abstraction == "lossless" else Path(self.solve.abstraction)


AnyConfig = RunConfig | SolveConfig


# Smallest and largest allowed value of every number, by section (or class) and name.
_LIMITS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "cfr.iterations": (1, 1_000_000),
    "cfr.traversals": (1, 100_000_000),
    "cfr.chunk": (1, 10_000_000),
    "cfr.keep_networks": (0, 1_000_000),
    "public_chance.boards": (1, 10_000_000),
    "public_chance.later_boards": (1, 10_000),
    "public_chance.hands": (0, 10_000),
    "public_chance.samples": (1, 1_000_000),
    "memory.advantage_capacity": (1, 10**10),
    "memory.strategy_capacity": (1, 10**10),
    "network.width": (1, 8192),
    "network.layers": (1, 64),
    "network.card_width": (1, 64),
    "network.outputs": (1, 1024),
    "fit.steps": (1, 100_000_000),
    "fit.steps_per_million": (0, 100_000_000),
    "fit.batch_size": (1, 10_000_000),
    "fit.decisions": (0, 1_000_000),
    "fit.batch_growth": (1.0, 64.0),
    "fit.learning_rate": (1e-12, 10.0),
    "fit.averaging": (0.0, 0.999999),
    "fit.compress": (0.0, 1e6),
    "fit.clip": (1e-9, 1e9),
    "fit.held_out": (0.0, 0.5),
    "fit.check_every": (1, 100_000_000),
    "fit.patience": (1, 100_000_000),
    "solve.iterations": (1, 100_000_000),
    "solve.alpha": (-30.0, 30.0),
    "solve.beta": (-30.0, 30.0),
    "solve.gamma": (0.0, 30.0),
    "solve.traversals": (1, 1_000_000_000),
    "solve.exploration": (0.0, 1.0),
    "evaluation.every": (0, 100_000_000),
    "runtime.threads": (1, 1024),
    "runtime.checkpoint_every": (1, 100_000_000),
    "runtime.checkpoint_seconds": (0, 1_000_000),
    "runtime.keep": (1, 1000),
}


def load_config(path: str | Path) -> RunConfig:
    """Read a TOML file into a validated `RunConfig`; what the file leaves out has the default.

    Raises ConfigError with every problem in the file: unreadable or malformed text, unknown sections and keys, values of
    the wrong type, numbers out of range.
    """
    config = load_any_config(path)
    if not isinstance(config, RunConfig):
        raise ConfigError(
            f"In '{path}': the section 'solve' is of a tabular solver, and this is no setting of Deep CFR."
        )
    return config


def load_solve_config(path: str | Path) -> SolveConfig:
    """As `load_config`, for a tabular solver."""
    config = load_any_config(path)
    if not isinstance(config, SolveConfig):
        raise ConfigError(f"In '{path}': a section 'solve' is missing, so these are no settings of a tabular solver.")
    return config


def load_any_config(path: str | Path) -> AnyConfig:
    """As `load_config`, and a file with a section `solve` is a `SolveConfig`."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"The configuration '{path}' cannot be read: {error}.") from error
    try:
        return config_from_table(table) if "solve" not in table else solve_config_from_table(table)
    except ConfigError as error:
        raise ConfigError([f"In '{path}': {problem}" for problem in error.problems]) from None


def config_from_table(table: dict[str, Any]) -> RunConfig:
    """A validated `RunConfig` from nested dictionaries; see `load_config` for the errors."""
    config: RunConfig = _from_table(RunConfig, table)
    return config


def solve_config_from_table(table: dict[str, Any]) -> SolveConfig:
    """A validated `SolveConfig` from nested dictionaries; see `load_config` for the errors."""
    config: SolveConfig = _from_table(SolveConfig, table)
    return config


def _from_table(record: type, table: dict[str, Any]) -> Any:
    problems: list[str] = []
    config = _build(record, table, "", problems)
    problems += config_problems(config)
    if problems:
        raise ConfigError(problems)
    return config


_Config = TypeVar("_Config", RunConfig, SolveConfig)


def validate_config(config: _Config) -> _Config:
    """Return `config`, or raise ConfigError with every number that is out of range."""
    problems = list(config_problems(config))
    if problems:
        raise ConfigError(problems)
    return config


def _build(record: type, table: dict[str, Any], prefix: str, problems: list[str]) -> Any:
    hints = get_type_hints(record)
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in hints:
            problems.append(f"'{prefix}{name}' is not a setting; there are {', '.join(hints)}.")
        elif not dataclasses.is_dataclass(hints[name]):
            known = len(problems)
            converted = _convert(hints[name], value, prefix + name, problems)
            if len(problems) == known:
                values[name] = converted
        elif isinstance(value, dict):
            values[name] = _build(hints[name], value, f"{prefix}{name}.", problems)
        else:
            problems.append(f"'{prefix}{name}' must be a section, but is {_shown(value)}.")
    return record(**values)


def _convert(hint: Any, value: Any, name: str, problems: list[str]) -> Any:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            problems.append(f"'{name}' must be one of {', '.join(get_args(hint))}, but is {_shown(value)}.")
        return value
    if get_origin(hint) is tuple:
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            problems.append(f"'{name}' must be a list of whole numbers, but is {_shown(value)}.")
            return ()
        return tuple(value)
    if hint is float and type(value) is int and abs(value) < 10**30:
        return float(value)
    if type(value) is not hint:
        kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        problems.append(f"'{name}' must be {kinds[hint]}, but is {_shown(value)}.")
    return value


def config_problems(config: AnyConfig) -> Iterator[str]:
    """One sentence for every setting that is out of range."""
    for name, limit_name, value in _numbers(config):
        low, high = _LIMITS[limit_name]
        if not low <= value <= high:  # also true of NaN
            yield f"'{name}' must be between {_number(low)} and {_number(high)}, but is {_number(value)}."
    for iteration in config.evaluation.at:
        if iteration < 1:
            yield f"'evaluation.at' must name iterations from 1, but names {iteration}."
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", str(config.runtime.device)):
        yield f"'runtime.device' must be cpu or cuda (or cuda:N), but is '{config.runtime.device}'."
    elif isinstance(config, SolveConfig) and config.runtime.device != "cpu":
        yield f"'runtime.device' must be cpu for tabular solvers, but is '{config.runtime.device}'."
    if isinstance(config, SolveConfig):
        yield from _solve_problems(config.solve)
    else:
        yield from _public_chance_problems(config)
        yield from _fit_problems("advantage", config.advantage)
        yield from _fit_problems("average", config.average)


def _public_chance_problems(config: RunConfig) -> Iterator[str]:
    """One sentence for every setting that contradicts how boards are sampled and what is recorded on them."""
    sampled, settings = config.cfr.sampler == "public-chance", config.public_chance
    if settings.panel and not sampled:
        yield f"'public_chance.panel' needs 'cfr.sampler' to be public-chance, but it is {config.cfr.sampler}."
    if 0 < config.advantage.compress <= _LIMITS["fit.compress"][1] and not settings.panel:
        # targets of single iterations scatter around the mean, and a curved scale would move it
        yield f"'advantage.compress' is {config.advantage.compress}, which needs 'public_chance.panel'."
    if settings.panel and settings.record != "hands":
        yield f"'public_chance.panel' needs 'public_chance.record' to be hands, but it is {settings.record}."
    if settings.panel and config.memory.kind != "reservoir":
        # there is nothing to choose: every hand of the panel is kept
        yield f"'public_chance.panel' needs 'memory.kind' to be reservoir, but it is {config.memory.kind}."
    if not sampled or settings.record != "hands":
        return
    for section in ("advantage", "average"):
        if getattr(config, section).merge_infosets:
            yield f"'{section}.merge_infosets' merges samples of infosets, and 'public_chance.record' is hands."
    if config.average.held_out > 0 and not settings.panel:
        yield (
            f"'average.held_out' is {config.average.held_out}, but hands of both players are drawn together, and they are "
            "the same hands only with 'public_chance.panel'."
        )


def _fit_problems(section: str, settings: FitConfig) -> Iterator[str]:
    if settings.held_out > 0 and settings.refit == "fine-tune":
        # every fit holds out other hands, so the network has been trained on them before
        yield f"'{section}.held_out' is {settings.held_out}, which needs '{section}.refit' to be scratch."


def _solve_problems(settings: TabularConfig) -> Iterator[str]:
    """One sentence for every setting that contradicts the algorithm; those that only other algorithms read are ignored."""
    if settings.algorithm != "mccfr":
        if settings.abstraction != "lossless":
            yield f"{settings.algorithm} is full-width and takes no abstraction: mccfr does."
        return
    if settings.precision == "int16":
        yield "Monte Carlo CFR keeps its tables in float32 or float64, and 'int16' was asked for."
    if settings.sampler == "outcome" and settings.exploration == 0:
        yield "'exploration' must be above 0 with outcome sampling, but is 0.0."


def _shown(value: object) -> str:
    return _number(value) if isinstance(value, int) and not isinstance(value, bool) else repr(value)


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**30 else f"a number of {value.bit_length()} bits"
    return f"{value:,.0f}" if value == value // 1 and abs(value) < 1e15 else repr(value)


def _numbers(config: AnyConfig) -> Iterator[tuple[str, str, float]]:
    yield "seed", "seed", config.seed
    for section in dataclasses.fields(config):
        record = getattr(config, section.name)
        if dataclasses.is_dataclass(record):
            owner = "fit" if isinstance(record, FitConfig) else section.name
            for item in dataclasses.fields(record):
                value = getattr(record, item.name)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    yield f"{section.name}.{item.name}", f"{owner}.{item.name}", value


def config_to_toml(config: AnyConfig) -> str:
    """The configuration as TOML text that `load_config` or `load_any_config` reads back to an equal record."""
    lines = [f"{name} = {_toml(getattr(config, name))}" for name in ("game", "seed")]
    for section in dataclasses.fields(config):
        record = getattr(config, section.name)
        if dataclasses.is_dataclass(record):
            lines += ["", f"[{section.name}]"]
            lines += [f"{item.name} = {_toml(getattr(record, item.name))}" for item in dataclasses.fields(record)]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = "".join(
            c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}"
            for c in value.replace("\\", "\\\\").replace('"', '\\"')
        )
        return f'"{escaped}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)
