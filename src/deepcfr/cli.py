"""The `deepcfr` command. Heavy libraries are imported by the command that needs them, not before."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from tyro.conf import subcommand

from deepcfr.commands import (
    Abstract,
    Acpc,
    Bench,
    Budget,
    Exploit,
    Export,
    Games,
    Host,
    LowerBound,
    MatchUp,
    Play,
    Report,
    Reproduce,
    Resume,
    Rivals,
    Solve,
    StrategyQuery,
    Train,
)
from deepcfr.config import RunConfig, SolveConfig, load_config, load_solve_config
from deepcfr.defaults import default_config, default_solve_config
from deepcfr.errors import CheckpointError, ConfigError, DeepCFRError, GameError
from deepcfr.games.rules import PRESETS

if TYPE_CHECKING:
    from deepcfr.evaluation.result import Exploitability

DESCRIPTION = "Deep Counterfactual Regret Minimization for poker-like games, with exact exploitability."


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

    The settings of `train` and `solve` start from their --config or defaults, so these are read twice: first for those.
    """
    preset = next((word for word in arguments if word in PRESETS), None)  # whose defaults --help shows
    command = _read(arguments, default_config(preset) if preset else RunConfig(), default_solve_config())
    if isinstance(command, Train):
        base = load_config(command.config) if command.config else default_config(command.game, command.solver)
        return _read(arguments, base, default_solve_config())
    if isinstance(command, Solve) and command.config:
        return _read(arguments, RunConfig(), load_solve_config(command.config))
    return command


def _read(arguments: list[str], train: RunConfig, solve: SolveConfig) -> Any:
    defaults = {Train: Train(**_sections(train)), Solve: Solve(**_sections(solve))}
    choices: list[Any] = [
        Annotated[kind, subcommand(name, default=defaults[kind]) if kind in defaults else subcommand(name)]
        for name, (kind, _) in COMMANDS.items()
    ]
    return tyro.cli(reduce(or_, choices), args=arguments, prog="deepcfr", description=DESCRIPTION)


def _sections(config: RunConfig | SolveConfig) -> dict[str, Any]:
    """The settings as arguments of a command whose game and folder are still to be given."""
    sections = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    return sections | {"game": tyro.MISSING, "out": tyro.MISSING}


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
    _start(command.run_config(), command.out, command.json)


def _solve(command: Solve) -> None:
    _start(command.run_config(), command.out, command.json)


def _start(config: RunConfig | SolveConfig, out: Path, as_json: bool) -> None:
    from deepcfr.games.presets import load_source
    from deepcfr.runs.costs import cost_notes
    from deepcfr.runs.folder import RunFolder

    abstraction = config.abstraction_folder if isinstance(config, SolveConfig) else None
    cost_notes(config, load_source(config.game), abstraction)  # refuses what cannot be before a folder is made
    _run(RunFolder.create(out, config), as_json)


def _abstract(command: Abstract) -> None:
    import time

    from deepcfr.abstraction.files import save_abstraction
    from deepcfr.abstraction.make import make_abstraction
    from deepcfr.games.presets import load_rules

    if command.threads < 1:
        raise ConfigError(f"--threads must be at least 1, but is {command.threads}.")
    if command.seed < 0:
        raise ConfigError(f"--seed must not be negative, but is {command.seed}.")
    if command.out.exists() and (not command.out.is_dir() or any(command.out.iterdir())):
        raise CheckpointError(f"'{command.out}' is there already: choose another folder.")
    rules = load_rules(command.game)
    console = _console(command.json)
    start = time.perf_counter()
    made = make_abstraction(
        rules, command.buckets, command.seed, command.threads, command.features, lambda text: console.print(text)
    )
    seconds = time.perf_counter() - start
    asked = {"buckets": list(command.buckets), "features": command.features, "seed": command.seed}
    save_abstraction(command.out, made, asked)
    console.print(
        f"{rules.name}: {' + '.join(f'{n:,}' for n in made.counts)} buckets in {seconds:.0f} s, {command.out}"
    )
    if command.json:
        _print_json({"game": rules.name, "counts": list(made.counts), "seconds": seconds, "path": str(command.out)})


def _resume(command: Resume) -> None:
    from deepcfr.runs.folder import RunFolder

    run = RunFolder.open(command.run)
    if command.iterations is not None:
        run.extend(command.iterations)
    _run(run, command.json)


def _run(run: Any, as_json: bool) -> None:
    from deepcfr.runs.live import LiveObserver
    from deepcfr.runs.train import train

    console = _console(as_json)
    with LiveObserver(console) as observer:
        summary = train(run, observer)
    observer.conclude(run, summary)
    if as_json:
        unmeasured = {"game": run.source.name, "unit": run.source.milli_unit}
        facts = _result_facts(summary.result) if summary.result else unmeasured
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


def _error_budget(command: Budget) -> None:
    from rich.progress import Progress

    from deepcfr.evaluation.error_budget import BudgetSettings
    from deepcfr.report.budget import run_budget, show_budget
    from deepcfr.runs.folder import RunFolder

    settings = BudgetSettings(
        skip=frozenset(command.skip),
        solve_iterations=command.solve_iterations,
        steps=command.steps,
        examples=command.examples,
        deviate=command.deviate,
        threads=command.threads,
    )
    console = Console(stderr=True, highlight=False, markup=False)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("error budget", total=None)
        budget = run_budget(
            RunFolder.open(command.run),
            settings,
            _warn,
            lambda what, done, total: progress.update(task, description=what, completed=done, total=total),
        )
    if command.json:
        _print_json(budget.facts())
    else:
        show_budget(budget, _console(False))


def _strategy(command: StrategyQuery) -> None:
    from deepcfr.policies.query import query
    from deepcfr.runs.folder import RunFolder

    policy, _ = RunFolder.open(command.run).load_policy(command.policy, _warn)
    answer = query(policy, command.situation)
    if command.json:
        _print_json(answer.facts())
    else:
        _console(False).print(answer.describe())


def _match(command: MatchUp) -> None:
    from rich.progress import Progress

    from deepcfr.report.matches import Terms, describe_match, load_players

    terms = Terms(command.boards, command.hands, command.lines, command.seed, command.threads)
    names = (command.first, command.second)
    first, second = load_players(names, command.policy, _warn)
    console = _console(command.json)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("match", total=None)
        result = terms.play(first, second, lambda done, total: progress.update(task, completed=done, total=total))
    if command.json:
        _print_json(result.facts() | {"runs": list(names)})
    else:
        console.print(describe_match(result, names, terms))


def _tournament(command: Rivals) -> None:
    from rich.progress import Progress

    from deepcfr.report.matches import Terms, load_players, play_tournament, show_tournament

    terms = Terms(command.boards, command.hands, command.lines, command.seed, command.threads)
    policies = load_players(command.runs, command.policy, _warn)
    console = _console(command.json)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("matches", total=None)
        result = play_tournament(
            command.runs, policies, terms, lambda done, total: progress.update(task, completed=done, total=total)
        )
    if command.json:
        _print_json(result.facts())
    else:
        show_tournament(result, terms, console)


def _lbr(command: LowerBound) -> None:
    if command.threads < 1:
        raise ConfigError(f"--threads must be at least 1, but is {command.threads}.")
    if command.seed < 0:
        raise ConfigError(f"--seed must not be negative, but is {command.seed}.")
    if command.lines is not None and not isinstance(command.boards, int):
        raise ConfigError("--lines is for sampled boards: give --boards a number with it.")
    from rich.progress import Progress

    from deepcfr.evaluation.local_best_response import boards_within_reach, local_best_response
    from deepcfr.evaluation.match.boards import LINES
    from deepcfr.runs.folder import RunFolder

    policy, _ = RunFolder.open(command.run).load_policy(command.policy, _warn)
    boards = boards_within_reach(policy) if command.boards is None else command.boards
    console = _console(command.json)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("boards", total=None)
        result = local_best_response(
            policy,
            None if boards == "all" else boards,
            command.seed,
            threads=command.threads,
            rounds=command.rounds,
            lines=LINES if command.lines is None else command.lines,
            on_board=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if command.json:
        _print_json(result.facts() | {"run": str(command.run)})
    else:
        console.print(result.describe())


def _play(command: Play) -> None:
    from deepcfr.games.poker import PokerGame
    from deepcfr.play import play
    from deepcfr.runs.folder import RunFolder

    policy, _ = RunFolder.open(command.run).load_policy(command.policy, _warn)
    if not isinstance(policy.game, PokerGame):
        raise GameError(f"Only poker games are played in the terminal, and '{policy.game.name}' is not one.")
    play(policy.game, policy, Console(highlight=False), seed=command.seed, hands=command.hands)


def _acpc(command: Acpc) -> None:
    from deepcfr.protocols.host import join_match
    from deepcfr.runs.folder import RunFolder

    policy, _ = RunFolder.open(command.run).load_policy(command.policy, _warn)
    facts, words = join_match(
        policy,
        command.host,
        command.port,
        seed=command.seed,
        retries=command.retries,
        seconds=command.seconds,
        say=_warn,
    )
    if command.json:
        _print_json(facts)
    else:
        _console(False).print(words)


def _dealer(command: Host) -> None:
    from rich.progress import Progress

    from deepcfr.protocols.dealer import Terms
    from deepcfr.protocols.host import Records, host_match, seat_players

    terms = Terms(command.hands, command.seed, command.duplicate, command.seconds)
    table = seat_players((command.first, command.second), command.game, command.policy, _warn)
    console = _console(command.json)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("hands", total=terms.played)
        result = host_match(
            table, terms, Records(command.log, command.phh), console.print, command.host, command.port,
            lambda done, total: progress.update(task, completed=done, total=total),
        )  # fmt: skip
    if command.json:
        _print_json(result.facts())
    else:
        console.print(result.describe())
        print(result.line)


def _export(command: Export) -> None:
    from deepcfr.runs.folder import RunFolder

    RunFolder.open(command.run).export(command.out, _warn, command.keep_networks)
    print(f"Exported to {command.out}.")


def _reproduce(command: Reproduce) -> None:
    from deepcfr.report.studies import STUDIES, require_seeds

    require_seeds(command.seeds)
    console = _console(command.json)
    if command.what == "theorem1":
        from deepcfr.report.theorem import run_theorem

        run_theorem(command.out, command.seeds, console.print)
        facts: dict[str, Any] = {"finished": True}
    else:
        from deepcfr.report.reproduction import jobs_of
        from deepcfr.runs.live import LiveObserver
        from deepcfr.runs.study import run_grid

        jobs = jobs_of(command.out, STUDIES[command.what], command.budget, command.seeds)
        facts = dataclasses.asdict(run_grid(jobs, lambda: LiveObserver(console), console.print))
    if command.json:
        _print_json({"study": command.what, "budget": command.budget, "seeds": command.seeds} | facts)
    elif facts["finished"]:
        console.print("All runs are there. Write the report with: deepcfr report")
    else:
        console.print("Stopped. The same command goes on from here.")


def _report(command: Report) -> None:
    if command.what[:1] == ("fig2",):
        _report_figure(command)
        return
    if not command.what:
        _report_reproduction(command)
        return
    from deepcfr.report.charts import draw_curves
    from deepcfr.runs.folder import RunFolder

    if command.png:
        raise ConfigError("--png is for fig2; a picture of runs is a PNG if the name after --out ends in .png.")
    if command.out is None or command.out.suffix not in (".svg", ".png"):
        asked = "is missing" if command.out is None else f"is '{command.out}'"
        raise ConfigError(f"--out must name the picture to write, ending in .svg or .png, but {asked}.")
    draw_curves([RunFolder.open(Path(path)) for path in command.what], command.out)
    print(f"Wrote {command.out}.")


def _report_reproduction(command: Report) -> None:
    from deepcfr.report.reproduction_page import write_reproduction

    if command.png:
        raise ConfigError("--png is for fig2; the figures of the page are written as SVG and as PNG anyway.")
    for path in write_reproduction(command.studies, command.out or Path("docs"), _warn):
        print(f"Wrote {path}.")


def _report_figure(command: Report) -> None:
    from deepcfr.report.fig2 import write_figure

    runs = [Path(path) for path in command.what[1:]]
    for path in write_figure(runs, command.out or Path("runs/report"), command.png, _warn):
        print(f"Wrote {path}.")


def _bench(command: Bench) -> None:
    console = _console(command.json)
    if command.iterations < 1:
        raise ConfigError(f"--iterations must be at least 1, but is {command.iterations}.")
    if command.what == "tabular":
        from deepcfr.report.bench_tabular import bench_tabular

        facts = bench_tabular(command.seed, console.print)
    elif command.what == "nfsp":
        from deepcfr.report.bench_nfsp import bench_nfsp

        facts = bench_nfsp(command.seed, console.print)
    elif command.what == "threads":
        from deepcfr.report.bench_threads import bench_threads

        facts = bench_threads(command.seed, console.print)
    else:
        from deepcfr.report.bench import bench_fhp, bench_openspiel

        if command.what == "openspiel":
            facts = bench_openspiel(command.iterations, command.seed, console.print)
        else:
            facts = bench_fhp(command.seed, console.print)
    if command.json:
        _print_json(facts)


COMMANDS: dict[str, tuple[type, Callable[[Any], None]]] = {
    "games": (Games, _games),
    "train": (Train, _train),
    "solve": (Solve, _solve),
    "abstract": (Abstract, _abstract),
    "resume": (Resume, _resume),
    "exploitability": (Exploit, _exploitability),
    "error-budget": (Budget, _error_budget),
    "strategy": (StrategyQuery, _strategy),
    "match": (MatchUp, _match),
    "tournament": (Rivals, _tournament),
    "lbr": (LowerBound, _lbr),
    "play": (Play, _play),
    "acpc": (Acpc, _acpc),
    "dealer": (Host, _dealer),
    "export": (Export, _export),
    "reproduce": (Reproduce, _reproduce),
    "report": (Report, _report),
    "bench": (Bench, _bench),
}

if __name__ == "__main__":
    main()
