"""The commands that make runs and reports as records: fields are the arguments, docstrings and comments the text of --help.

Those that measure and play agents are in `player_records`; `help` says which options --help shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from deepcfr.config import NamedSolver, RunConfig, validate_config
from deepcfr.config.records import TabularSolver
from deepcfr.core.errors import ConfigError
from deepcfr.defaults import solver_of

Folder = Annotated[Path, arg(metavar="FOLDER")]
Settings = Annotated[RunConfig, arg(name="")]  # those that the command offers: `help`
Cluster = Annotated[str | None, arg(metavar="HOST:PORT")]
MOST_ITERATIONS = 100_000_000  # the limit of a run that is limited by time
DEFAULT_WORKERS = 2  # of a cluster


def check_minutes(minutes: float) -> None:
    """Raise ConfigError unless `minutes` is above 0."""
    if not minutes > 0:
        raise ConfigError(f"--minutes must be above 0, but is {minutes:g}.")


@dataclass
class Games:
    """List the games: sizes, unit, and whether exact evaluation is feasible."""

    definition: tuple[Path, ...] = ()  # additional ACPC game-definition files to list
    json: bool = False  # print one JSON object


@dataclass
class Models:
    """List trained models: game, recipe, exact NashConv and size, from their model cards."""

    folder: Positional[Path | None] = None  # a folder of run folders (default: the shipped agents)
    json: bool = False  # print one JSON object


@dataclass
class Runs:
    """List the runs of a folder: state, exact NashConv, age, and the command that goes on with each."""

    folder: Positional[Path] = Path("runs")  # a folder with run folders in it, at any depth
    json: bool = False  # print one JSON object


@dataclass
class Train:
    """Train networks on a game by Deep CFR or another solver, and compute the exact exploitability where that is feasible.

    Settings have the game's defaults or the values of --config; options override them.
    """

    #: a preset (kuhn, leduc, fhp, fhp-mini, hulh, fhp-pot, hunl-pot, hunl-200), a game-definition file (.toml for bet
    #: sizes), openspiel:NAME, or module:Class
    game: Positional[str]
    out: Folder  # the run folder to create
    config: Path | None = None  # a TOML file with settings, or the name of a recipe that comes with the package
    json: bool = False  # print one JSON object; progress goes to standard error
    ray: Cluster = None  # run traversals on the Ray cluster at HOST:PORT; without a value, on a new local one
    workers: int | None = None  # processes of the cluster that run traversals (default: 2)
    #: nfsp, and ppo with mmd, have sections of their own and not those of Deep CFR; the other names are relatives of Deep
    #: CFR, as settings of it
    solver: NamedSolver = "deep-cfr"
    settings: Settings = field(default_factory=RunConfig)

    def run_config(self) -> RunConfig:
        """The settings as one validated record."""
        if self.ray is not None and self.solver != "deep-cfr":
            raise ConfigError(f"--ray is for Deep CFR, but the solver is {self.solver}.")
        return validate_config(replace(self.settings, game=self.game, solver=solver_of(self.solver)))


@dataclass
class Solve:
    """Solve a game in tables: full-width CFR, or Monte Carlo CFR on a card abstraction.

    Settings have their defaults or the values of --config; options override them.
    """

    #: a preset (kuhn, leduc, fhp, fhp-mini, hulh, fhp-pot, hunl-pot, hunl-ladder, hunl-200), a game-definition file (.toml
    #: for a game with bet sizes), openspiel:NAME, or module:Class
    game: Positional[str]
    out: Folder  # the run folder to create
    config: Path | None = None  # a TOML file with settings, or the name of a recipe that comes with the package
    minutes: float | None = None  # time limit, which replaces --iterations unless that is also given
    json: bool = False  # print one JSON object; progress goes to standard error
    #: full-width CFR in one of its variants; cfr-d, which plays a sample of the boards and searches on all; or Monte Carlo
    #: CFR (mccfr). xfp, full-width fictitious play, and egt, the excessive gap technique, are for games of OpenSpiel
    solver: TabularSolver = "linear-cfr"
    settings: Settings = field(default_factory=RunConfig)

    def run_config(self) -> RunConfig:
        """The settings as one validated record."""
        config = replace(self.settings, game=self.game, solver=self.solver)
        if self.minutes is not None:
            check_minutes(self.minutes)
            config = replace(config, runtime=replace(config.runtime, minutes=self.minutes))
        return validate_config(config)


@dataclass
class Abstract:
    """Group the private hands of a game into buckets, for Monte Carlo CFR on a card abstraction."""

    #: a preset (kuhn, leduc, fhp, fhp-mini, hulh, fhp-pot, hunl-pot, hunl-ladder, hunl-200) or a game-definition file
    #: (.toml for a game with bet sizes)
    game: Positional[str]
    buckets: tuple[int, ...]  # one number for every round with board cards, or one for each round
    out: Folder  # the folder to create
    threads: int = 2  # number of CPU threads
    seed: int = 0  # seed of the clustering
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass
class Resume:
    """Resume a run from its newest checkpoint."""

    run: Positional[Path]  # a run folder
    iterations: int | None = None  # new total of iterations, more than the run was to have
    minutes: float | None = None  # new time limit of the whole run, longer than it has taken
    ray: Cluster = None  # run traversals on the Ray cluster at HOST:PORT; without a value, on a new local one
    workers: int | None = None  # processes of the cluster that run traversals (default: 2)
    json: bool = False  # print one JSON object; progress goes to standard error


@dataclass
class Export:
    """Copy a run without its memories, Deep CFR's weights in 16 bits: small and playable, but not resumable."""

    run: Positional[Path]  # a run folder
    out: Folder  # the folder to create
    keep_networks: int = 1  # keep every n-th snapshot for --policy sd-cfr; 0: none


@dataclass
class Report:
    """Draw convergence curves of runs of one game, or write the page of a run.

    `deepcfr report RUNS --out curves.svg` draws exact NashConv against time and nodes touched; `deepcfr report --run RUN`
    writes the page report.html of a run folder again, and with several runs a page that compares them.
    """

    what: Positional[Annotated[tuple[str, ...], arg(help_behavior_hint="")]]  # runs and models whose curves are drawn
    run: tuple[Path, ...] = ()  # write the page of this run, or one page of several runs
    #: the output: an .svg file for curves of runs, an .html file with --run (default RUN/report.html)
    out: Path | None = None
