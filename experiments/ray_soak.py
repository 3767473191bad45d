"""Compare runs on a local Ray cluster whose processes are killed at random times with an undisturbed run.

    python -m experiments.ray_soak        # writes experiments/results/ray_soak.json, half an hour
    python -m experiments.ray_soak --times 3 --out /tmp/ray_soak.json

In every run a process is killed, and later another one, if the run lasts that long. The run must survive the loss of
workers (one of two, or a source: the worker from which learners draw), of learners, and of actors and tasks between driver
and learners (helpers: that of fit requests, and those of Ray Train). After the loss of the driver, `deepcfr resume`
continues the run. At the end all networks, all samples and the counts of samples added to memories must equal those of the
undisturbed run of the same settings, byte for byte.

Runs whose helpers are killed have two learners, and so one core more than a machine of two has. Helpers are drawn by kind.
Ray's own processes (raylet, control store, agents) are not killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.files import checksum, read_json
from deepcfr.runs.metrics import environment
from deepcfr.runs.record import checkpoint_folders

RUN = [
    "leduc", "--memory.shards", "4", "--sampling.traversals", "600",
    "--sampling.chunk", "64", "--memory.advantage-capacity", "20000", "--memory.strategy-capacity", "20000",
    "--advantage.steps", "60", "--average.steps", "200", "--runtime.checkpoint-every", "5",
    "--cfr.keep-networks", "0",
]  # fmt: skip
LONG = ["--cfr.iterations", "20"]
LEARNER = ["--cfr.iterations", "12", "--evaluation.every", "6"]
ALONE, TAUGHT = ([*RUN, *LONG], ["--workers", "2"]), ([*RUN, *LEARNER], ["--workers", "1", "--learners", "1"])
TAUGHT_BY_TWO = ([*RUN, *LEARNER], ["--workers", "1", "--learners", "2"])
RUNS = {
    "worker": ALONE,
    "driver": ALONE,
    "source": TAUGHT,
    "learner": TAUGHT,
    "helper": TAUGHT_BY_TWO,
}  # of each victim
KINDS = {"worker": "_Worker", "source": "_Worker", "learner": "RayTrainWorker"}  # helpers are all other ones but these:
RAYS_OWN = ("IDLE", "DashboardAgent", "RuntimeEnvAgent")
CORES = 3  # number of cores of a cluster
KILLS = 2  # kills in a run, one after the other
PATIENCE = 600.0  # seconds


@dataclass
class Usual:
    """An undisturbed run: its final state, and the times at which its processes can be killed."""

    state: dict[str, str]
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/ray_soak.json"))
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        usual = {
            victim: found for runs in (ALONE, TAUGHT, TAUGHT_BY_TWO) for victim, found in undisturbed(folder, runs)
        }
        runs: list[dict[str, Any]] = []
        while (left := asked.times - sum(len(run["kills"]) for run in runs)) > 0:
            runs.append(one(folder / str(len(runs)), draw, usual, min(left, KILLS)))
    facts = {
        "environment": environment("cpu", 2),
        "undisturbed_seconds": {victim: found.seconds for victim, found in usual.items()},
        **summary(runs),
        "runs_in_turn": runs,
    }
    asked.out.write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(summary(runs)))


def undisturbed(folder: Path, runs: tuple[list[str], list[str]]) -> Iterator[tuple[str, Usual]]:
    """The undisturbed run with which runs of each victim are compared."""
    victims = [victim for victim, its in RUNS.items() if its is runs]
    run = folder / "-".join(victims)
    seen: dict[str, float] = {}
    process = _deepcfr(run, *_command(victims[0], run))
    while process.poll() is None:
        seen |= {victim: time.monotonic() for victim in victims if victim not in seen and _pids(victim, process)}
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"An undisturbed run failed: {_said(run)}")
    for victim in victims:
        yield victim, Usual(state(run), time.monotonic() - seen[victim])


def one(run: Path, draw: random.Random, usual: dict[str, Usual], most: int) -> dict[str, Any]:
    """A run in which up to `most` processes are killed; returns the events.

    Raises SystemExit if it cannot be resumed, or if its final state differs.
    """
    victim = draw.choice(list(RUNS))
    process, kills = _deepcfr(run, *_command(victim, run)), list[dict[str, Any]]()
    for _ in range(most):
        _wait_for(victim, process)
        after = draw.uniform(0, 0.95) * usual[victim].seconds
        time.sleep(after)
        killed = _kill(victim, process, draw)
        if not killed or (victim == "driver" and _wait(process, run) != -signal.SIGKILL):
            break  # it has ended
        kills.append({"process": killed, "after": after})
        if victim == "driver":
            saved = bool(checkpoint_folders(run))
            if not saved:
                shutil.rmtree(run, ignore_errors=True)
            again = ["resume", str(run), "--ray", *RUNS[victim][1]] if saved else _command(victim, run)
            process = _deepcfr(run, *again)
    what = (
        f"{run.name}: a {victim} killed: {', '.join('{process} after {after:.1f} s'.format(**kill) for kill in kills)}"
    )
    if _wait(process, run):
        raise SystemExit(f"{what}; then the run ended: {_said(run)}")
    found, expected, losses = state(run), usual[victim].state, read_json(run / "environment.json").get("losses", [])
    if found != expected:
        different = sorted(name for name in expected if found.get(name) != expected[name])
        raise SystemExit(f"{what}; then these differ: {', '.join(different)}.")
    print(f"{what}; {losses}", flush=True)
    return {"victim": victim, "kills": kills, "losses": losses, "same": True}


def _wait_for(victim: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process of the kind exists, or the run has ended."""
    end = time.monotonic() + PATIENCE
    while not _pids(victim, process) and process.poll() is None:
        if time.monotonic() > end:
            raise SystemExit(f"There was no {victim} after {PATIENCE:.0f} seconds.")
        time.sleep(0.05)


def _command(victim: str, run: Path) -> list[str]:
    settings, cluster = RUNS[victim]
    return ["train", *settings, "--ray", *cluster, "--out", str(run)]


def _wait(process: subprocess.Popen[bytes], run: Path) -> int:
    """Wait for the end of a run; returns its exit status. Raises SystemExit after PATIENCE seconds."""
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise SystemExit(f"A run did not end within {PATIENCE:.0f} seconds: {_said(run)}") from error


def _kill(victim: str, driver: subprocess.Popen[bytes], draw: random.Random) -> str | None:
    """Kill one process and return its kind; None if there is none."""
    pids = _pids(victim, driver)
    if not pids:
        return None
    kind = draw.choice(sorted(set(pids.values())))
    try:
        os.kill(draw.choice([pid for pid in sorted(pids) if pids[pid] == kind]), signal.SIGKILL)
    except ProcessLookupError:
        return None
    return kind


def _pids(victim: str, driver: subprocess.Popen[bytes]) -> dict[int, str]:
    """The current processes of the run that may be killed, each with its kind: its actor or its task."""
    if driver.poll() is not None:
        return {}
    if victim == "driver":
        return {driver.pid: "driver"}
    kinds = dict(_actors_and_tasks(driver.pid))
    if victim == "helper":
        return {pid: kind for pid, kind in kinds.items() if not kind.startswith((*KINDS.values(), *RAYS_OWN))}
    return {pid: kind for pid, kind in kinds.items() if kind == KINDS[victim]}


def _actors_and_tasks(pid: int) -> Iterator[tuple[int, str]]:
    """The actors and tasks among the descendants of a process, by their titles. Source: proc_pid_task(5)."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended in the meantime
            for child in map(int, children.read_text().split()):
                title = Path(f"/proc/{child}/cmdline").read_bytes().rstrip(b"\0 ").decode(errors="replace")
                if title.startswith("ray::"):
                    yield child, title.removeprefix("ray::").partition(".")[0]
                yield from _actors_and_tasks(child)


def _deepcfr(run: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deepcfr.cli", *arguments]
    variables = os.environ | {"RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": CORES})}
    with _log(run).open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=variables)


def _log(run: Path) -> Path:
    return run.with_suffix(".log")


def _said(run: Path) -> str:
    """The end of what the run wrote."""
    return _log(run).read_text(errors="replace")[-2_000:]


def state(run: Path) -> dict[str, str]:
    """Checksums of all networks and columns of memories at a run's end, and its counters of samples and nodes."""
    folder = max((run / "checkpoints").glob("[0-9]" * 7))
    found = {path.name: checksum(path) for path in folder.iterdir() if path.suffix in (".npy", ".safetensors")}
    counts = read_json(folder / "state.json")
    return found | {name: str(counts[name]) for name in ("iteration", "nodes_touched", "memories")}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The number of kills, and the number of runs with the same end."""
    kills = [(run["victim"], kill["process"]) for run in runs for kill in run["kills"]]
    losses = [loss for run in runs for loss in run["losses"]]
    return {
        "kills": len(kills),
        "killed": dict(Counter(victim for victim, _ in kills)),
        "helpers": dict(Counter(process for victim, process in kills if victim == "helper")),
        "losses": len(losses),
        "iterations_done_again": sum(loss["done_again"] for loss in losses),
        "runs": len(runs),
        "same": sum(run["same"] for run in runs),
    }


if __name__ == "__main__":
    main()
