"""Commands that measure and query policies: exploitability, error budgets, strategies, matches, bounds."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from deepcfr.cli.output import open_console, print_json, progress_of, tell, warn
from deepcfr.cli.player_records import Budget, Exploit, LowerBound, ManySpots, MatchUp, Rivals, SpotQuery, StrategyQuery
from deepcfr.cli.running import cluster_of
from deepcfr.config import DEFAULT_SEARCH
from deepcfr.core.errors import ConfigError, require_least
from deepcfr.core.files import text_of


def exploitability_command(command: Exploit) -> None:
    require_least(1, {"--threads": command.threads})
    from deepcfr.game.rules import PokerRules
    from deepcfr.measure.exploitability import exploitability
    from deepcfr.measure.limits import require_few_boards
    from deepcfr.run.folder import RunFolder
    from deepcfr.run.players import load_players, made_of, runs_of

    solver, runs = None, runs_of(command.run)
    for run in runs:  # before anything large is loaded
        if isinstance(source := RunFolder.open(Path(run)).source, PokerRules):
            require_few_boards(source)
    if len(runs) == 1:
        plain, solver = RunFolder.open(Path(runs[0])).load_policy(command.policy, warn)
        policy = made_of(command.run, plain, command.search)
    else:
        (policy,) = load_players((command.run,), command.policy, warn, search=command.search)
    console = open_console(command.json)
    with progress_of("exact evaluation", console) as update:
        result = exploitability(policy, threads=command.threads, on_board=update)
    if command.json:
        facts = {"iterations": solver.iteration, "nodes_touched": solver.nodes_touched} if solver else {}
        print_json(asdict(result) | facts)
        return
    from deepcfr.run.live import show_result

    show_result(console, result, solver.iteration if solver else None)


def error_budget_command(command: Budget) -> None:
    from deepcfr.run.error_budget import BudgetSettings, budget_lines, run_budget
    from deepcfr.run.folder import RunFolder

    asked = {item.name: getattr(command, item.name) for item in fields(BudgetSettings)}
    settings = BudgetSettings(**asked | {"skip": frozenset(command.skip)})
    console = Console(stderr=True, highlight=False, markup=False)
    with progress_of("error budget", console) as update:
        budget = run_budget(
            RunFolder.open(command.run),
            settings,
            warn,
            lambda what, done, total: update(done, total, what),
        )
    tell(command.json, budget.facts(), "\n".join(budget_lines(budget)))


def strategy_command(command: StrategyQuery) -> None:
    from deepcfr.game.tree_game import TreeGame
    from deepcfr.policy.base import Policy
    from deepcfr.policy.query import Answer, InfosetAnswer, query, query_infoset
    from deepcfr.run.players import load_players

    (policy,) = load_players((command.run,), command.policy, warn, search=command.search)
    answer: Answer | InfosetAnswer
    if isinstance(policy, Policy) and isinstance(policy.game, TreeGame):
        answer = query_infoset(policy, policy.game, command.situation)
    else:
        answer = query(policy, command.situation)
    tell(command.json, answer.facts(), answer.describe())


def spot_command(command: SpotQuery) -> None:
    from deepcfr.search.spot_solver import SpotSolver, check_limits, memory_for_spots

    if command.from_file:
        command = _with_parameters(command, command.from_file)
    check_limits(command.exploitability, command.iterations, command.threads)
    if command.board is None:
        raise ConfigError("A spot needs a board: give --board, or --from-file.")
    if command.out and command.out.exists():
        raise ConfigError(f"'{command.out}' exists: choose another file.")
    from deepcfr.core.files import require_writable, write_atomically
    from deepcfr.search.spot import SPOT_TEXTS, Spot
    from deepcfr.search.spot_file import COMPACT, write_solution

    policy = None
    if command.from_ or command.search != DEFAULT_SEARCH:  # which load_players refuses without an agent
        from deepcfr.run.players import load_players

        agents = (command.from_,) if command.from_ else ()
        (policy,) = load_players(agents, command.policy, warn, search=command.search)
    elif command.policy != "own":
        raise ConfigError(f"--policy {command.policy} needs --from, the agent whose policy it is.")
    ranges = {"dealer": _range(command.dealer), "big_blind": _range(command.big_blind)}
    spot = Spot.parse(policy=policy, **{name: getattr(command, name) for name in SPOT_TEXTS} | ranges)
    solver = SpotSolver(spot, memory_for_spots(), command.threads, _locks(command.lock))
    if command.out:
        require_writable(command.out)
    console = open_console(command.json)
    console.print(solver.describe())
    with progress_of("iterations", console) as update:
        solution = solver.solve(
            command.exploitability,
            command.iterations,
            lambda done, now: update(done, command.iterations, f"exploitability {now:.3g}% of the pot"),
        )
    if command.json:
        print_json(solution.facts(hands=False))
    else:
        console.print(solution.describe())
    if command.out:  # last, so that a disk that is full does not lose what was found
        if command.out.suffix == COMPACT:
            write_solution(command.out, solution)
        else:
            write_atomically(command.out, json.dumps(solution.facts()).encode())
        console.print(f"Wrote {command.out}.")


def spots_command(command: ManySpots) -> None:
    from deepcfr.run.spot_table import listed, show_spots
    from deepcfr.run.spots import REPORT, TABLE, SpotFolder, read_jobs, solve_jobs
    from deepcfr.search.flops import flop_subset

    cluster = cluster_of(command.ray, command.workers)
    if command.file is None:
        if not command.list or command.flops is None:
            raise ConfigError("Give a file of spots; without one, --list and --flops print a subset of the flops.")
        subset = flop_subset(command.flops)
        print(listed(zip(subset.texts(), subset.texts(), subset.weights.tolist(), strict=True)), end="")
        return
    jobs = read_jobs(command.file, command.flops, warn)
    if command.list:
        print(listed((job.name, job.values["board"], job.weight) for job in jobs), end="")
        return
    if command.out is None:
        raise ConfigError("Give --out, a folder for the solved spots; the same command goes on where it was stopped.")
    console, solved = open_console(command.json), 0
    try:
        with progress_of("spots", console) as update:

            def on_solved(done: int, total: int) -> None:
                nonlocal solved
                solved = done
                update(done, total)

            table = solve_jobs(
                jobs,
                SpotFolder(command.out),
                processes=command.processes,
                threads=command.threads,
                cluster=cluster,
                whole=command.solutions,
                on_solved=on_solved,
            )
    except KeyboardInterrupt:
        warn(f"{solved:,} of {len(jobs):,} spots are solved; the same command goes on with the others.")
        raise
    if command.json:
        print_json(table.facts())
    else:
        show_spots(table, console)
        console.print(f"Wrote {command.out / TABLE} and {command.out / REPORT}.")


def _range(text: str | None) -> str | None:
    """A range, which is in a file if it ends in .txt. Raises ConfigError for a file that is no text."""
    if not text or not text.lower().endswith(".txt"):
        return text
    return text_of(Path(text))


def _with_parameters(command: SpotQuery, path: Path) -> SpotQuery:
    """The command with the values of a parameter file of TexasSolver where it has the default ones."""
    from deepcfr.interop.texas_solver import read_parameters

    values, default = read_parameters(text_of(path)), SpotQuery()
    if (dump := values.pop("dump", None)) and not command.out:
        warn(f"'{dump}' of '{path}' is not written: give --out for the solution.")
    return replace(
        command, **{name: value for name, value in values.items() if getattr(command, name) == getattr(default, name)}
    )


def _locks(path: Path | None) -> list[dict[str, Any]]:
    """The decisions in a file that `deepcfr spot` plays as written. Raises ConfigError for what is no list."""
    if path is None:
        return []
    try:
        locks = json.loads(text_of(path), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"'{path}' is not JSON: {error}.") from error
    if not isinstance(locks, list):
        raise ConfigError(f"'{path}' must hold a list of decisions, as in 'decisions' of --out.")
    return locks


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError for a name that is twice in it, of which `dict` would keep the last."""
    names = [name for name, _ in pairs]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{repeated[0]!r} is twice in one object")
    return dict(pairs)


def match_command(command: MatchUp) -> None:
    from deepcfr.measure.match.tournament import TournamentTerms, describe_match
    from deepcfr.run.players import load_players

    terms = TournamentTerms(command.boards, command.hands, command.lines, command.seed, command.threads)
    names = (command.first, command.second)
    first, second = load_players(names, command.policy, warn, search=command.search)
    terms = terms.settled(first)
    with progress_of("match", open_console(command.json)) as update:
        result = terms.play(first, second, update)
    tell(command.json, result.facts() | {"runs": list(names)}, describe_match(result, names, terms))


def tournament_command(command: Rivals) -> None:
    from deepcfr.measure.match.tournament import TournamentTerms, play_tournament, show_tournament
    from deepcfr.run.players import load_players, with_styles

    terms = TournamentTerms(command.boards, command.hands, command.lines, command.seed, command.threads)
    names = with_styles(command.runs, command.styles)
    policies = load_players(names, command.policy, warn, search=command.search)
    terms = terms.settled(policies[0])
    console = open_console(command.json)
    with progress_of("matches", console) as update:
        result = play_tournament(names, policies, terms, update, command.against_first)
    if command.json:
        print_json(result.facts())
    else:
        show_tournament(result, terms, console)


def lbr_command(command: LowerBound) -> None:
    require_least(1, {"--threads": command.threads})
    require_least(0, {"--seed": command.seed})
    if command.lines is not None and not isinstance(command.boards, int):
        raise ConfigError("--lines is for sampled boards: give --boards a number with it.")
    if command.hands is not None and command.boards is not None:
        raise ConfigError("A bound is over boards or over hands: give a number of one of them, but not of both.")
    from deepcfr.measure.local_best_response import local_best_response, usual_sample
    from deepcfr.measure.match.boards import LINES
    from deepcfr.run.players import load_players

    (policy,) = load_players((command.run,), command.policy, warn, search=command.search)
    boards, hands = command.boards, command.hands
    if boards is None and hands is None:
        boards, hands = usual_sample(policy.game, command.sizes)
    with progress_of("boards or hands", open_console(command.json)) as update:
        result = local_best_response(
            policy,
            None if boards == "all" else boards,
            command.seed,
            hands=hands,
            threads=command.threads,
            rounds=command.rounds,
            sizes=command.sizes,
            lines=LINES if command.lines is None else command.lines,
            on_board=update,
        )
    tell(command.json, result.facts() | {"run": command.run}, result.describe())
