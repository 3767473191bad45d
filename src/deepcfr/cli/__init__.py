"""The `deepcfr` command. Heavy libraries are imported by the command that needs them, not before."""

from __future__ import annotations

import dataclasses
import inspect
import logging
import signal
import sys
import warnings
from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from operator import or_
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import tyro
from tyro.conf import subcommand

from deepcfr import __version__
from deepcfr.cli import measuring, player_records, playing, records, running
from deepcfr.cli.help import LONG, MARKERS, SHORT, main_options, rules_of_help
from deepcfr.cli.output import standard_output, warn
from deepcfr.config import (
    SAMPLINGS,
    NamedSolver,
    RunConfig,
    SolveConfig,
    TabularConfig,
    load_config,
    load_solve_config,
    sampling_of,
)
from deepcfr.defaults import (
    LOCAL_CLUSTER,
    default_config,
    default_solve_config,
    network_solver,
)
from deepcfr.errors import ConfigError, DeepCFRError, HiddenAgent
from deepcfr.signals import as_ctrl_c, received

_as_python_does = warnings.showwarning
DESCRIPTION = f"""\
Deep Counterfactual Regret Minimization for poker-like games, with exact exploitability.

`deepcfr COMMAND --help` shows the options of a command that matter most, `deepcfr COMMAND {LONG}` all of them, and
`deepcfr --version` the version of the package."""

COMMANDS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "games": (records.Games, running.games_command),
    "models": (records.Models, running.models_command),
    "runs": (records.Runs, running.runs_command),
    "train": (records.Train, running.train_command),
    "solve": (records.Solve, running.solve_command),
    "abstract": (records.Abstract, running.abstract_command),
    "resume": (records.Resume, running.resume_command),
    "exploitability": (player_records.Exploit, measuring.exploitability_command),
    "error-budget": (player_records.Budget, measuring.error_budget_command),
    "strategy": (player_records.StrategyQuery, measuring.strategy_command),
    "spot": (player_records.SpotQuery, measuring.spot_command),
    "match": (player_records.MatchUp, measuring.match_command),
    "tournament": (player_records.Rivals, measuring.tournament_command),
    "lbr": (player_records.LowerBound, measuring.lbr_command),
    "play": (player_records.Play, playing.play_command),
    "review": (player_records.ReviewHands, playing.review_command),
    "serve": (player_records.Serve, playing.serve_command),
    "api": (player_records.Api, playing.api_command),
    "acpc": (player_records.Acpc, playing.acpc_command),
    "slumbot": (player_records.SlumbotMatch, playing.slumbot_command),
    "dealer": (player_records.Host, playing.dealer_command),
    "export": (records.Export, running.export_command),
    "report": (records.Report, running.report_command),
}
NO_LIBRARY = ("models", "runs")  # commands that load neither torch nor numba
NO_TORCH = ("games",)  # and those that load numba alone


def main() -> None:
    """Entry point of `deepcfr`."""
    run_as_command(_run, goes_on=_saves(sys.argv[1:]))


def run_as_command(run: Callable[[list[str]], None], *, goes_on: bool) -> None:
    """Run on the process's arguments; exit status 2 and plain sentences for anything the user can mend.

    A command that `goes_on` saves its work if the reader of standard output has gone.
    """
    warnings.showwarning = _show_warning
    log = logging.getLogger("deepcfr")
    log.setLevel(logging.INFO)
    log.handlers = [_Notes()]
    try:
        _require_text(sys.argv[1:])
        with standard_output(goes_on=goes_on), as_ctrl_c():
            run(sys.argv[1:])
        if received:  # and the command has saved what it keeps
            _exit_by_signal()
    except DeepCFRError as error:
        for problem in error.problems:
            print(f"deepcfr: {problem}", file=sys.stderr)
        sys.exit(2)
    except MemoryError as error:
        print(f"deepcfr: This needs more memory than there is: {str(error) or 'it is used up'}.", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        _exit_by_signal()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        where = f"'{error.filename}': " if error.filename else ""
        print(f"deepcfr: {where}{error.strerror or error}.", file=sys.stderr)
        sys.exit(2)


def _saves(arguments: list[str]) -> bool:
    """Whether a command writes files, beside what it prints."""
    options = {word.partition("=")[0] for word in arguments}
    return "--out" in options or arguments[:1] in (["resume"], ["report"])


def _run(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        print(f"deepcfr {__version__}")
        return
    command = parse_command(arguments)
    dict(COMMANDS.values())[type(command)](command)


def _exit_by_signal() -> NoReturn:
    """Say what ended the command, and exit with 128 and the signal's number."""
    number = received[0] if received else signal.SIGINT
    print(f"deepcfr: {f'ended by {signal.Signals(number).name}' if received else 'interrupted'}.", file=sys.stderr)
    sys.exit(128 + number)


def _require_text(arguments: list[str]) -> None:
    """Raise ConfigError for an argument that is not UTF-8: what names a file goes into pages and JSON too."""
    for word in arguments:
        if not word.isascii() and word.encode(errors="replace") != word.encode(errors="surrogatepass"):
            raise ConfigError(f"{word!r} is not text in UTF-8: rename the file or folder.")


class _Notes(logging.Handler):
    """Prints what the library logs, such as the progress of a long start, as sentences on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        warn(record.getMessage())


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print our own warnings as sentences, and those of others as Python does."""
    if issubclass(category, HiddenAgent):
        warn(str(message))
    else:
        _as_python_does(message, category, *place, **more)


def parse_command(arguments: list[str]) -> Any:
    """The record of the command in the arguments; exits with status 2 for invalid ones.

    The defaults of `train` and `solve` depend on --config and the game, so their arguments are parsed twice.
    """
    arguments = _with_address(arguments)
    train, solve = _shown(arguments) if {*SHORT, LONG} & {*arguments} else (RunConfig(), default_solve_config())
    command = _read(_without_sampling(arguments), with_kind(train, arguments), solve)
    if arguments[0] not in NO_LIBRARY and ("numba" if arguments[0] in NO_TORCH else "torch") not in sys.modules:
        warn("loading libraries takes some seconds.")
    if isinstance(command, records.Train):
        if command.config and command.solver != network_solver(command.solver):
            raise ConfigError(
                f"--solver {command.solver} is a set of settings, and --config is one: use one of them, not both."
            )
        base = load_config(command.config) if command.config else default_config(command.game, command.solver)
        return _read(arguments, with_kind(base, arguments), default_solve_config())
    if isinstance(command, records.Solve):
        tables = load_solve_config(command.config) if command.config else default_solve_config()
        if command.minutes is not None and tables.iterations == TabularConfig().iterations:
            most = dataclasses.replace(tables.solve, iterations=records.MOST_ITERATIONS)
            tables = dataclasses.replace(tables, solve=most)
        return _read(arguments, RunConfig(), tables)
    return command


def _shown(arguments: list[str]) -> tuple[RunConfig, SolveConfig]:
    """The settings that --help shows as the defaults of `train` and `solve`: those of the game, solver and file named."""
    words = [part for word in arguments for part in word.split("=", 1)]
    named = dict(pairwise(words))
    train, solve, file = RunConfig(), default_solve_config(), named.get("--config")
    if words[0] == "train" and file:
        train = load_config(Path(file))
    elif words[0] == "train" and not words[1].startswith("-"):
        train = default_config(words[1], cast("NamedSolver", named.get("--solver", "deep-cfr")))
    elif words[0] == "solve" and file:
        solve = load_solve_config(Path(file))
    return train, solve


def with_kind(config: RunConfig, arguments: list[str]) -> RunConfig:
    """The settings with the sampling of --sampling.kind, and the settings that both kinds share. Raises ConfigError."""
    words = [part for word in arguments for part in word.split("=", 1)]
    if "--sampling.kind" not in words[:-1]:
        return config
    kind = words[words.index("--sampling.kind") + 1]
    if kind not in SAMPLINGS:
        raise ConfigError(f"--sampling.kind must be one of {', '.join(SAMPLINGS)}, but is {kind}.")
    return dataclasses.replace(config, sampling=sampling_of(kind, config.sampling))


def _without_sampling(arguments: list[str]) -> list[str]:
    """The arguments without --sampling options, which are valid or not depending on the settings."""
    flags = {"panel", "no-panel"}
    found, skipped = [], False
    for word in arguments:
        if word.startswith("--sampling."):
            skipped = "=" not in word and word.removeprefix("--sampling.").replace("_", "-") not in flags
        elif skipped:
            skipped = False
        else:
            found.append(word)
    return found


def _with_address(arguments: list[str]) -> list[str]:
    """The arguments with the default value of `--ray` if no value follows it."""
    found = list(arguments)
    for place, word in enumerate(arguments):
        following = arguments[place + 1 : place + 2]
        if word == "--ray" and (not following or following[0].startswith("--")):
            found.insert(place + 1, LOCAL_CLUSTER)
            break
    return found


def _read(arguments: list[str], train: RunConfig, solve: SolveConfig) -> Any:
    """The record of the arguments; prints the help that they ask for, or what is wrong with them, and exits."""
    defaults = {records.Train: records.Train(**_sections(train)), records.Solve: records.Solve(**_sections(solve))}
    name = arguments[0] if arguments else ""
    asked, _ = COMMANDS.get(name, (type(None), None))
    options = main_options(name, train) if {*SHORT} & {*arguments} else None
    more = f"\n\nMore options: deepcfr {name} {LONG}" if options else ""
    choices: list[Any] = []
    for word, (kind, _) in COMMANDS.items():
        text = inspect.getdoc(kind) or ""
        text = text + more if kind is asked else text.partition("\n\n")[0]
        default = defaults.get(kind, tyro.constructors.MISSING_NONPROP)
        choices.append(Annotated[kind, subcommand(word, default=default, description=text)])
    return tyro.cli(
        reduce(or_, choices),
        args=["--help" if word == LONG else word for word in arguments],
        prog="deepcfr",
        description=DESCRIPTION,
        config=MARKERS,
        registry=rules_of_help(asked, options),
    )


def _sections(config: RunConfig | SolveConfig) -> dict[str, Any]:
    """The settings as defaults of a command whose game and folder are required arguments."""
    sections = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    return sections | {"game": tyro.MISSING, "out": tyro.MISSING}
