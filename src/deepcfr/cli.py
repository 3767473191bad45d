"""The `deepcfr` command. Heavy libraries are imported by the command that needs them, not before."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from tyro.conf import Positional, subcommand

from deepcfr.config import (
    CFRConfig,
    EvaluationConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    default_config,
    load_config,
    validate_config,
)
from deepcfr.errors import ConfigError, DeepCFRError
from deepcfr.games.rules import PRESETS

if TYPE_CHECKING:
    from deepcfr.evaluation.exploitability import Exploitability

DESCRIPTION = "Deep Counterfactual Regret Minimization for poker-like games, with exact exploitability."
PolicyName = Literal["average", "network", "current"]


@dataclass
class Games:
    """List the games that can be played: sizes, unit, and whether exact evaluation is within reach."""

    definition: tuple[Path, ...] = ()  # ACPC game-definition files to list too
    json: bool = False  # print one JSON object


@dataclass
class Train:
    """Train Deep CFR on a game, with its exact exploitability where that is within reach.

    Settings start from the game's defaults, or from --config; every one of them can be overridden here.
    """

    game: Positional[str]  # a preset (kuhn, leduc, fhp, hulh) or a game-definition file
    out: Path  # the run folder to create
    config: Path | None = None  # a TOML file with settings
    json: bool = False  # print one JSON object, and progress to standard error
    seed: int = 0
    cfr: CFRConfig = field(default_factory=CFRConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    advantage: FitConfig = field(default_factory=FitConfig)
    average: FitConfig = field(default_factory=FitConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)

    def run_config(self) -> RunConfig:
        """The settings as one validated record."""
        sections = {f.name: getattr(self, f.name) for f in dataclasses.fields(RunConfig) if f.name != "game"}
        return validate_config(RunConfig(game=self.game, **sections))


@dataclass
class Resume:
    """Go on with a run where it stopped."""

    run: Positional[Path]  # a run folder
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class Exploit:
    """Compute the exact exploitability of a run's policy: a full-width best response of each player."""

    run: Positional[Path]  # a run folder or a shipped model
    policy: PolicyName = "average"  # the average strategy (its network), or the newest iteration's strategy
    threads: int = 2  # CPU threads
    json: bool = False  # print one JSON object, and progress to standard error


@dataclass
class StrategyQuery:
    """Ask a run's policy what it does, for example: deepcfr strategy models/fhp "As Kd / r / Qs 7h 2c"."""

    run: Positional[Path]  # a run folder or a shipped model
    situation: Positional[str]  # hole cards / betting of the first round / board cards / betting ...
    policy: PolicyName = "average"
    json: bool = False


@dataclass
class Play:
    """Play against a run's policy in the terminal, in both seats."""

    run: Positional[Path]  # a run folder or a shipped model
    hands: int | None = None  # stop after this many hands
    seed: int = 0  # of the cards and the agent's actions
    policy: PolicyName = "average"


@dataclass
class Export:
    """Copy a run without its memories: small and playable, but not resumable."""

    run: Positional[Path]  # a run folder
    out: Path  # the folder to create


@dataclass
class Report:
    """Draw the convergence curves of runs of one game: exact NashConv against time and nodes touched."""

    runs: Positional[tuple[Path, ...]]  # run folders or shipped models
    out: Path  # the picture to write, .svg or .png


@dataclass
class Bench:
    """Measure performance: against OpenSpiel in the same process, or our own speeds on FHP."""

    what: Positional[Literal["openspiel", "fhp"]]  # OpenSpiel's PyTorch Deep CFR on Leduc, or our own speeds on FHP
    iterations: int = 20  # CFR iterations of OpenSpiel
    seed: int = 0
    json: bool = False


def main() -> None:
    """Entry point: run a command; exit status 2 and plain sentences for anything the user can mend."""
    try:
        command = _parse(sys.argv[1:])
        handlers = dict(COMMANDS.values())
        handlers[type(command)](command)
    except DeepCFRError as error:
        for problem in error.problems:
            print(f"deepcfr: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("deepcfr: interrupted.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        print(f"deepcfr: '{error.filename}': {error.strerror or error}.", file=sys.stderr)
        sys.exit(2)


def _parse(arguments: list[str]) -> Any:
    """The command that the arguments name.

    The settings of `train` start from its --config or its game's defaults, so it is read twice: first for those two.
    """
    preset = next((word for word in arguments if word in PRESETS), None)  # whose defaults --help shows
    command = _read(arguments, default_config(preset) if preset else RunConfig())
    if isinstance(command, Train):
        base = load_config(command.config) if command.config else default_config(command.game)
        command = _read(arguments, base)
    return command


def _read(arguments: list[str], base: RunConfig) -> Any:
    sections = {f.name: getattr(base, f.name) for f in dataclasses.fields(RunConfig) if f.name != "game"}
    train = subcommand("train", default=Train(game=tyro.MISSING, out=tyro.MISSING, **sections))
    choices: list[Any] = [
        Annotated[kind, train if kind is Train else subcommand(name)] for name, (kind, _) in COMMANDS.items()
    ]
    return tyro.cli(reduce(or_, choices), args=arguments, prog="deepcfr", description=DESCRIPTION)


def _console(as_json: bool) -> Console:
    # no markup: names of runs and files may hold square brackets
    return Console(stderr=as_json, highlight=False, soft_wrap=True, markup=False)


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value))


def _warn(message: str) -> None:
    print(f"deepcfr: {message}", file=sys.stderr)


def _games(command: Games) -> None:
    from deepcfr.runs.listing import game_facts, show_games

    facts = game_facts([str(path) for path in command.definition])
    if command.json:
        _print_json({"games": facts})
    else:
        show_games(facts, _console(False))


def _train(command: Train) -> None:
    config = command.run_config()
    from deepcfr.games.presets import load_rules
    from deepcfr.runs.folder import RunFolder
    from deepcfr.runs.train import cost_notes

    cost_notes(config, load_rules(config.game))  # refuses what cannot fit before a folder is made
    _run(RunFolder.create(command.out, config), command.json)


def _resume(command: Resume) -> None:
    from deepcfr.runs.folder import RunFolder

    _run(RunFolder.open(command.run), command.json)


def _run(run: Any, as_json: bool) -> None:
    from deepcfr.runs.live import LiveObserver
    from deepcfr.runs.train import train

    console = _console(as_json)
    with LiveObserver(console) as observer:
        summary = train(run, observer)
    observer.conclude(run, summary)
    if as_json:
        facts = (
            _result_facts(summary.result) if summary.result else {"game": run.rules.name, "unit": run.rules.milli_unit}
        )
        _print_json(
            facts
            | {
                "iterations": summary.iterations,
                "nodes_touched": summary.nodes_touched,
                "seconds": summary.seconds,
                "finished": summary.finished,
                "run": str(run.path),
            }
        )


def _result_facts(result: Exploitability) -> dict[str, Any]:
    facts = dataclasses.asdict(result)
    facts["best_response_values"] = list(result.best_response_values)
    return facts


def _exploitability(command: Exploit) -> None:
    if command.threads < 1:
        raise ConfigError(f"--threads must be at least 1, but is {command.threads}.")
    from rich.progress import Progress

    from deepcfr.evaluation.exploitability import exploitability
    from deepcfr.runs.folder import RunFolder

    run = RunFolder.open(command.run)
    policy, solver = run.load_policy(command.policy, _warn)
    console = _console(command.json)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("boards", total=None)
        result = exploitability(
            policy,
            threads=command.threads,
            on_board=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if command.json:
        _print_json(_result_facts(result) | {"iterations": solver.iteration, "nodes_touched": solver.nodes_touched})
        return
    from deepcfr.runs.live import show_result

    show_result(console, result, solver.iteration)


def _strategy(command: StrategyQuery) -> None:
    from deepcfr.policies.query import query
    from deepcfr.runs.folder import RunFolder

    policy, _ = RunFolder.open(command.run).load_policy(command.policy, _warn)
    answer = query(policy, command.situation)
    if command.json:
        _print_json(answer.facts())
    else:
        _console(False).print(answer.describe())


def _play(command: Play) -> None:
    from deepcfr.games.poker import PokerGame
    from deepcfr.play import play
    from deepcfr.runs.folder import RunFolder

    policy, _ = RunFolder.open(command.run).load_policy(command.policy, _warn)
    assert isinstance(policy.game, PokerGame)
    play(policy.game, policy, Console(highlight=False), seed=command.seed, hands=command.hands)


def _export(command: Export) -> None:
    from deepcfr.runs.folder import RunFolder

    RunFolder.open(command.run).export(command.out, _warn)
    print(f"Exported to {command.out}.")


def _report(command: Report) -> None:
    from deepcfr.report.charts import draw_curves
    from deepcfr.runs.folder import RunFolder

    if not command.runs:
        raise ConfigError("Name at least one run to draw.")
    if command.out.suffix not in (".svg", ".png"):
        raise ConfigError(f"--out must end in .svg or .png, but is '{command.out}'.")
    draw_curves([RunFolder.open(path) for path in command.runs], command.out)
    print(f"Wrote {command.out}.")


def _bench(command: Bench) -> None:
    from deepcfr.report.bench import bench_fhp, bench_openspiel

    console = _console(command.json)
    if command.iterations < 1:
        raise ConfigError(f"--iterations must be at least 1, but is {command.iterations}.")
    if command.what == "openspiel":
        facts = bench_openspiel(command.iterations, command.seed, console.print)
    else:
        facts = bench_fhp(command.seed, console.print)
    if command.json:
        _print_json(facts)


COMMANDS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "games": (Games, _games),
    "train": (Train, _train),
    "resume": (Resume, _resume),
    "exploitability": (Exploit, _exploitability),
    "strategy": (StrategyQuery, _strategy),
    "play": (Play, _play),
    "export": (Export, _export),
    "report": (Report, _report),
    "bench": (Bench, _bench),
}

if __name__ == "__main__":
    main()
