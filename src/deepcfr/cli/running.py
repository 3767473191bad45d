"""Commands that make runs: training, solving, abstractions, resuming, exporting; and lists and pages of what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from deepcfr.cli.output import open_console, print_json, warn
from deepcfr.cli.records import (
    DEFAULT_WORKERS,
    Abstract,
    Export,
    Games,
    Models,
    Report,
    Resume,
    Runs,
    Solve,
    Train,
    check_minutes,
)
from deepcfr.config import read_settings
from deepcfr.core.errors import CheckpointError, ClusterError, ConfigError, GameError, require_least

if TYPE_CHECKING:
    from deepcfr.cluster.ray_cluster import RayCluster


def list_command(command: Games | Models | Runs) -> None:
    from deepcfr.run import listing

    show: Callable[[list[dict[str, Any]], Console], None]
    if isinstance(command, Games):
        name, show = "games", listing.show_games
        facts = listing.game_facts([str(path) for path in command.definition])
    elif isinstance(command, Models):
        name, show, facts = "models", listing.show_models, listing.model_facts(command.folder)
    else:
        name, show, facts = "runs", listing.show_runs, listing.run_facts(command.folder)
    if command.json:
        print_json({name: facts})
    else:
        show(facts, open_console(False))


def cluster_of(ray: str | None, workers: int | None) -> RayCluster | None:
    """The cluster that --ray and --workers ask for; None: the work is done by this machine."""
    if ray is None:
        if workers is not None:
            raise ConfigError("--workers is for runs on a Ray cluster: also give --ray.")
        return None
    try:
        from deepcfr.cluster.ray_cluster import RayCluster
    except ImportError as error:
        raise ClusterError("--ray needs Ray, which is not installed: pip install 'deepcfr[ray]'.") from error
    return RayCluster(ray, DEFAULT_WORKERS if workers is None else workers)


def start_command(command: Train | Solve) -> None:
    config = command.run_config()
    cluster = cluster_of(command.ray, command.workers) if isinstance(command, Train) else None
    if command.config:
        game = read_settings(command.config).get("game", command.game)
        if game != command.game:
            warn(f"{command.config} has settings for {game}; they are used for {command.game}.")
    from deepcfr.run.folder import RunFolder

    run = RunFolder.plan(command.out, config)
    run.cost_notes()  # refuses what does not fit
    if cluster:
        cluster.connect()
    run.begin()
    try:
        _run(run, command.json, cluster)
    except (ConfigError, GameError):
        if not run.metrics_path.exists():  # the settings do not suit the game, so nothing has been trained
            run.withdraw()
        raise


def abstract_command(command: Abstract) -> None:
    import time

    from deepcfr.buckets.buckets import save_abstraction
    from deepcfr.buckets.make import make_abstraction
    from deepcfr.game.presets import cards_of, load_source

    require_least(1, {"--threads": command.threads})
    require_least(0, {"--seed": command.seed})
    if command.out.exists() and (not command.out.is_dir() or any(command.out.iterdir())):
        raise CheckpointError(f"'{command.out}' already exists: choose another folder.")
    rules = cards_of(load_source(command.game))
    console = open_console(command.json)
    start = time.perf_counter()
    made = make_abstraction(rules, command.buckets, command.seed, command.threads, lambda text: console.print(text))
    seconds = time.perf_counter() - start
    asked = {"buckets": list(command.buckets), "seed": command.seed}
    save_abstraction(command.out, made, asked)
    console.print(
        f"{rules.name}: {' + '.join(f'{n:,}' for n in made.counts)} buckets in {seconds:.0f} s, {command.out}"
    )
    if command.json:
        print_json({"game": rules.name, "counts": list(made.counts), "seconds": seconds, "path": str(command.out)})


def resume_command(command: Resume) -> None:
    from deepcfr.run.folder import RunFolder
    from deepcfr.run.listing import restart
    from deepcfr.run.record import checkpoint_folders

    run, cluster = RunFolder.open(command.run), cluster_of(command.ray, command.workers)
    if not checkpoint_folders(run.path):
        raise CheckpointError(
            f"'{run.path}' has no checkpoint to go on from: begin again with '{restart(run.path, run.config)}'."
        )
    if command.iterations is not None:
        run.extend(command.iterations)
    if command.minutes is not None:
        check_minutes(command.minutes)
        run.allow(command.minutes)
    _run(run, command.json, cluster)


def _run(run: Any, as_json: bool, cluster: RayCluster | None = None) -> None:
    from deepcfr.run.page import ReportingObserver
    from deepcfr.run.train import train

    console = open_console(as_json)
    with ReportingObserver(console) as observer:
        summary = train(run, observer, cluster)
    observer.conclude(run, summary)
    if as_json:
        unmeasured = {"game": run.source.name, "unit": run.source.milli_unit}
        facts = asdict(summary.result) if summary.result else unmeasured
        print_json(
            facts
            | {
                "iterations": summary.iterations,
                "nodes_touched": summary.nodes_touched,
                "seconds": summary.seconds,
                "finished": summary.finished,
                "run": str(run.path),
            }
        )


def export_command(command: Export) -> None:
    from deepcfr.run.folder import RunFolder, export

    export(RunFolder.open(command.run), command.out, warn, command.keep_networks)
    print(f"Exported to {command.out}.")


def report_command(command: Report) -> None:
    if command.run:
        _report_runs(command)
        return
    from deepcfr.run.curves import draw_curves

    if not command.what:
        raise ConfigError("report needs runs: name those whose curves it draws, or those of a page after --run.")
    if command.out is None or command.out.suffix != ".svg":
        asked = "is missing" if command.out is None else f"is '{command.out}'"
        raise ConfigError(f"--out must name the picture to write, ending in .svg, but {asked}.")
    draw_curves([Path(path) for path in command.what], command.out)
    print(f"Wrote {command.out}.")


def _report_runs(command: Report) -> None:
    from deepcfr.run.page import write_comparison, write_report

    if command.what:
        raise ConfigError("--run writes a page of runs: give all runs after it, and no other arguments except --out.")
    if command.out is not None and command.out.suffix != ".html":
        raise ConfigError(f"With --run, --out must name the page to write, ending in .html, but is '{command.out}'.")
    if command.out is not None:
        path = write_comparison(command.run, command.out)
    elif len(command.run) == 1:
        path = write_report(command.run[0])
    else:
        raise ConfigError("--out must name the page of several runs, ending in .html, but is missing.")
    print(f"Wrote {path}.")
