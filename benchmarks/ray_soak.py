"""Runs on a Ray cluster of this machine whose processes are killed at random times, against a run that nothing happens to.

    python benchmarks/ray_soak.py        # writes benchmarks/results/ray_soak.json, half an hour
    python benchmarks/ray_soak.py --times 3 --out /tmp/ray_soak.json

Every time one process is killed. A run has to survive the loss of a worker (one of two, or a source: the one from which
learners draw), of a learner, and of an actor or task between driver and learners (a helper: the desk where fits are asked
for, and Ray Train's own). If it was the driver, `deepcfr resume` goes on. In the end all networks, all samples and the
counts of what memories have been offered must be those of the undisturbed run of the same settings, byte for byte. A run
that ended before its time came is made again.

Those with learners have simultaneous updates, and fit the average network with the others. Where helpers are killed two
learners fit side by side, on one core more than a machine of two has. Helpers are drawn by their kind, of those that there
are. Ray's own processes (raylet, control store, agents) are not killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
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

RUN = [
    "leduc", "--memory.shards", "4", "--cfr.traversals", "600",
    "--cfr.chunk", "64", "--memory.advantage-capacity", "20000", "--memory.strategy-capacity", "20000",
    "--advantage.steps", "60", "--average.steps", "200", "--runtime.checkpoint-every", "5",
    "--cfr.keep-networks", "0",
]  # fmt: skip
LONG = ["--cfr.iterations", "20"]
LEARNER = ["--cfr.iterations", "12", "--cfr.updates", "simultaneous", "--evaluation.every", "6"]
ALONE, TAUGHT = ([*RUN, *LONG], ["--workers", "2"]), ([*RUN, *LEARNER], ["--workers", "1", "--learners", "1"])
SIDE_BY_SIDE = ([*RUN, *LEARNER], ["--workers", "1", "--learners", "2"])
RUNS = {"worker": ALONE, "driver": ALONE, "source": TAUGHT, "learner": TAUGHT, "helper": SIDE_BY_SIDE}  # of each victim
KINDS = {"worker": "_Worker", "source": "_Worker", "learner": "RayTrainWorker"}  # helpers are all other ones but these:
RAYS_OWN = ("IDLE", "DashboardAgent", "RuntimeEnvAgent")
CORES = 3  # that clusters are told to have
PATIENCE = 600.0  # seconds


@dataclass
class Usual:
    """Runs that nothing happens to: what they end with, and the shortest time for which what could be killed is there."""

    state: dict[str, str]
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ray_soak.json"))
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        usual = {victim: undisturbed(folder / victim, victim) for victim in RUNS}
        times: list[dict[str, Any]] = []
        missed = 0
        while len(times) < asked.times:
            found = one(folder / str(len(times) + missed), draw, usual)
            if found:
                times.append(found)
            else:
                missed += 1
    facts = {
        "environment": environment("cpu", 2),
        "shortest_undisturbed_seconds": {victim: found.seconds for victim, found in usual.items()},
        **summary(times),
        "ended_before_their_time": missed,
        "times": times,
    }
    asked.out.write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(summary(times)))


def undisturbed(run: Path, victim: str) -> Usual:
    process = _train(victim, run)
    start = time.monotonic()
    if _wait(process, run):
        raise SystemExit(f"An undisturbed run failed: {_said(run)}")
    return Usual(state(run), time.monotonic() - start)


def one(run: Path, draw: random.Random, usual: dict[str, Usual]) -> dict[str, Any] | None:
    """A run of which one process is killed; returns what happened, None if it had ended by then.

    Raises SystemExit if it cannot be carried on, or its end is another.
    """
    victim, share = draw.choice(list(RUNS)), draw.uniform(0, 0.95)
    after, expected = share * usual[victim].seconds, usual[victim].state
    process = _train(victim, run)
    start = time.monotonic()
    time.sleep(after)
    killed = _kill(victim, process, draw)
    if not killed:
        if _wait(process, run):
            raise SystemExit(f"A run failed before anything was killed: {_said(run)}")
        usual[victim].seconds = min(usual[victim].seconds, time.monotonic() - start)
        return None
    if victim == "driver":
        if _wait(process, run) != -signal.SIGKILL:
            return None  # it had just ended
        command = ["resume", str(run), "--ray", *RUNS[victim][1]]
        if not (run / "config.toml").exists():  # it had not begun
            command = _command(victim, run)
        if _wait(_deepcfr(run, *command), run):
            raise SystemExit(f"After the driver was killed at {after:.1f} s, no run could be carried on: {_said(run)}")
    elif _wait(process, run):
        raise SystemExit(f"After a {victim} ({killed}) was killed at {after:.1f} s, the run ended: {_said(run)}")
    found, losses = state(run), read_json(run / "environment.json").get("losses", [])
    if found != expected:
        different = sorted(name for name in expected if found.get(name) != expected[name])
        raise SystemExit(
            f"After a {victim} ({killed}) was killed at {after:.1f} s, these differ: {', '.join(different)}."
        )
    print(f"{run.name}: {victim} ({killed}) killed after {after:.1f} s, {losses}", flush=True)
    return {"victim": victim, "process": killed, "after": after, "losses": losses, "same": True}


def _train(victim: str, run: Path) -> subprocess.Popen[bytes]:
    """A run that has begun: what could be killed is there, or it has ended."""
    process = _deepcfr(run, *_command(victim, run))
    end = time.monotonic() + PATIENCE
    while not _pids(victim, process) and process.poll() is None:
        if time.monotonic() > end:
            raise SystemExit(f"There was no {victim} after {PATIENCE:.0f} seconds.")
        time.sleep(0.05)
    return process


def _command(victim: str, run: Path) -> list[str]:
    settings, cluster = RUNS[victim]
    return ["train", *settings, "--ray", *cluster, "--out", str(run)]


def _wait(process: subprocess.Popen[bytes], run: Path) -> int:
    """How it ended, after it has. Raises SystemExit if it does not."""
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise SystemExit(f"A run did not end within {PATIENCE:.0f} seconds: {_said(run)}") from error


def _kill(victim: str, driver: subprocess.Popen[bytes], draw: random.Random) -> str | None:
    """Kill one, and return its kind; None if there is none."""
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
    """The processes of the run that may be killed and are there now, each with its kind: its actor, or its task."""
    if driver.poll() is not None:
        return {}
    if victim == "driver":
        return {driver.pid: "driver"}
    kinds = dict(_actors_and_tasks(driver.pid))
    if victim == "helper":
        return {pid: kind for pid, kind in kinds.items() if not kind.startswith((*KINDS.values(), *RAYS_OWN))}
    return {pid: kind for pid, kind in kinds.items() if kind == KINDS[victim]}


def _actors_and_tasks(pid: int) -> Iterator[tuple[int, str]]:
    """Of the processes that descend from one, by their titles. Source: proc_pid_task(5)."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended meanwhile
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
    """Checksums of all networks and columns of memories at a run's end, and what counts samples and nodes."""
    folder = max((run / "checkpoints").glob("[0-9]" * 7))
    found = {path.name: checksum(path) for path in folder.iterdir() if path.suffix in (".npy", ".safetensors")}
    counts = read_json(folder / "state.json")
    return found | {name: str(counts[name]) for name in ("iteration", "nodes_touched", "memories")}


def summary(times: list[dict[str, Any]]) -> dict[str, Any]:
    """How often what was killed, and how many ended the same."""
    return {
        "runs": len(times),
        "killed": dict(Counter(t["victim"] for t in times)),
        "helpers": dict(Counter(t["process"] for t in times if t["victim"] == "helper")),
        "without_a_loss": dict(Counter(t["victim"] for t in times if t["victim"] != "driver" and not t["losses"])),
        "iterations_done_again": sum(loss["done_again"] for t in times for loss in t["losses"]),
        "same": sum(t["same"] for t in times),
    }


if __name__ == "__main__":
    main()
