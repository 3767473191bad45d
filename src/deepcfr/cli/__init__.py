"""The `deepcfr` command. Heavy libraries are imported by the command that needs them, not before."""

from __future__ import annotations

import inspect
import logging
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Annotated, Any, NoReturn, cast

import tyro
from tyro.conf import subcommand

from deepcfr import __version__
from deepcfr.cli import measuring, player_records, playing, records, running
from deepcfr.cli.help import LONG, MAIN_OPTIONS, MARKERS, SHORT, rules_of_help
from deepcfr.cli.output import standard_output, warn
from deepcfr.config import NamedSolver, RunConfig, load_config
from deepcfr.core.errors import ConfigError, DeepCFRError, HiddenAgent
from deepcfr.core.signals import as_ctrl_c, received
from deepcfr.defaults import LOCAL_CLUSTER, default_config, solver_of

_as_python_does = warnings.showwarning
DESCRIPTION = f"""\
Deep Counterfactual Regret Minimization for poker-like games, with exact exploitability.

`deepcfr COMMAND --help` shows the options of a command that matter most, `deepcfr COMMAND {LONG}` all of them, and
`deepcfr --version` the version of the package."""

COMMANDS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "games": (records.Games, running.list_command),
    "models": (records.Models, running.list_command),
    "runs": (records.Runs, running.list_command),
    "train": (records.Train, running.start_command),
    "solve": (records.Solve, running.start_command),
    "abstract": (records.Abstract, running.abstract_command),
    "resume": (records.Resume, running.resume_command),
    "exploitability": (player_records.Exploit, measuring.exploitability_command),
    "error-budget": (player_records.Budget, measuring.error_budget_command),
    "strategy": (player_records.StrategyQuery, measuring.strategy_command),
    "spot": (player_records.SpotQuery, measuring.spot_command),
    "spots": (player_records.ManySpots, measuring.spots_command),
    "match": (player_records.MatchUp, measuring.match_command),
    "tournament": (player_records.Rivals, measuring.tournament_command),
    "lbr": (player_records.LowerBound, measuring.lbr_command),
    "play": (player_records.Play, playing.play_command),
    "review": (player_records.ReviewHands, playing.review_command),
    "hands": (player_records.OwnHands, playing.hands_command),
    "serve": (player_records.Serve, playing.serve_command),
    "api": (player_records.Api, playing.api_command),
    "acpc": (player_records.Acpc, playing.acpc_command),
    "slumbot": (player_records.SlumbotMatch, playing.slumbot_command),
    "dealer": (player_records.Host, playing.dealer_command),
    "export": (records.Export, running.export_command),
    "report": (records.Report, running.report_command),
}
NO_LIBRARY = ("models", "runs")  # commands that load neither torch nor numba
NO_TORCH = ("games", "spot")  # and those that load numba alone
_MAKE_RUNS = (["train"], ["solve"])


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
        for word in sys.argv[1:]:  # what names a file goes into pages and JSON too
            if not word.isascii() and word.encode(errors="replace") != word.encode(errors="surrogatepass"):
                raise ConfigError(f"{word!r} is not text in UTF-8: rename the file or folder.")
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
    """The record of the command in the arguments; exits with status 2 for invalid ones."""
    arguments = _with_address(arguments)
    makes_run = arguments[:1] in _MAKE_RUNS
    if makes_run and not {*SHORT, LONG} & {*arguments}:
        _announce_libraries(arguments[0])  # the game loads them, on which the defaults depend
    command = _read(arguments, _start(arguments))
    if makes_run and command.game != arguments[1]:
        places = (place for place, word in enumerate(arguments) if word == command.game)
        place = max(places, key=lambda i: not arguments[i - 1].startswith("--"))  # no value of an option
        arguments = [arguments[0], command.game, *arguments[1:place], *arguments[place + 1 :]]
        command = _read(arguments, _start(arguments))
    if not makes_run:
        _announce_libraries(arguments[0])
    return command


def _announce_libraries(command: str) -> None:
    """Say that a command loads libraries, unless they are there."""
    if command not in NO_LIBRARY and ("numba" if command in NO_TORCH else "torch") not in sys.modules:
        warn("loading libraries takes some seconds.")


def _start(arguments: list[str]) -> RunConfig:
    """The settings that the options of `train` and `solve` change: those of --config, or of the game and the solver."""
    words = [part for word in arguments for part in word.split("=", 1)]
    named, solves = dict(pairwise(words)), words[:1] == ["solve"]
    if words[:1] not in _MAKE_RUNS or words[1:2] == [] or words[1].startswith("-"):
        return default_config("", "linear-cfr") if solves else RunConfig()
    solver = cast("NamedSolver", named.get("--solver", "linear-cfr" if solves else "deep-cfr"))
    config = load_config(named["--config"]) if "--config" in named else default_config(words[1], solver)
    if config.tabular != solves:
        asked, other = named.get("--config", f"--solver {solver}"), "train" if solves else "solve"
        raise ConfigError(f"{asked} is for {config.method}, which 'deepcfr {other}' runs.")
    if "--config" in named and not solves and solver_of(solver) != solver:
        raise ConfigError(f"--solver {solver} is a set of settings, and --config is one: use one of them, not both.")
    if "--minutes" in named and solves and config.iterations == default_config("", config.solver).iterations:
        config = replace(config, iterations=records.MOST_ITERATIONS)
    if "--sampling.kind" in named:
        config = replace(config, sampling=config.sampling.of_kind(named["--sampling.kind"]))
    return config


def _with_address(arguments: list[str]) -> list[str]:
    """The arguments with the default value of `--ray` if no value follows it."""
    found = list(arguments)
    for place, word in enumerate(arguments):
        following = arguments[place + 1 : place + 2]
        if word == "--ray" and (not following or following[0].startswith("--")):
            found.insert(place + 1, LOCAL_CLUSTER)
            break
    return found


def _read(arguments: list[str], start: RunConfig) -> Any:
    """The record of the arguments; prints the help that they ask for, or what is wrong with them, and exits."""
    starting: Any = records.Solve if start.tabular else records.Train
    defaults = {starting: starting(tyro.MISSING, tyro.MISSING, solver=start.solver, settings=start)}
    name = arguments[0] if arguments else ""
    asked, _ = COMMANDS.get(name, (type(None), None))
    options = MAIN_OPTIONS.get(name) if {*SHORT} & {*arguments} else None
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
        registry=rules_of_help(asked, options, start),
    )
