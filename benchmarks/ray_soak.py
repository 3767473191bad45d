"""Runs on a Ray cluster of this machine whose processes are killed at random times, against a run that nothing happens to.

    python benchmarks/ray_soak.py        # writes benchmarks/results/ray_soak.json, half an hour
    python benchmarks/ray_soak.py --times 3 --out /tmp/ray_soak.json

Every time one process is killed: a worker, a learner or one of the actors and tasks between driver and learners (a helper:
the desk where fits are asked for, and Ray Train's own), which the run has to survive, or the driver, after which `deepcfr
resume` goes on. In the end all networks, all samples and the counts of what memories have been offered must be those of
the undisturbed run of the same settings, byte for byte. A run that ended before its time came is made again. Those with
learners have simultaneous updates, and fit the average network with the others. Helpers are drawn by their kind, of those
that there are. Ray's own processes (raylet, control store, agents) are not killed.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.files import checksum, read_json
from deepcfr.runs.metrics import environment

RUN = [
    "leduc", "--memory.shards", "4", "--cfr.iterations", "20", "--cfr.traversals", "600",
    "--cfr.chunk", "64", "--memory.advantage-capacity", "20000", "--memory.strategy-capacity", "20000",
    "--advantage.steps", "60", "--average.steps", "200", "--runtime.checkpoint-every", "5",
    "--cfr.keep-networks", "0",
]  # fmt: skip
LEARNER = ["--cfr.updates", "simultaneous", "--evaluation.every", "10"]
SETTINGS = {
    "worker": RUN,
    "driver": RUN,
    "learner": [*RUN, *LEARNER],
    "helper": [*RUN, *LEARNER],
}  # of the victim's run
TWO, ONE = ["--ray", "--workers", "2"], ["--ray", "--workers", "1", "--learners", "1"]
CLUSTER = {"worker": TWO, "driver": TWO, "learner": ONE, "helper": ONE}
KINDS = {"worker": "_Worker", "learner": "RayTrainWorker"}  # helpers are all other ones but these:
RAYS_OWN = ("IDLE", "DashboardAgent", "RuntimeEnvAgent")
PATIENCE = 300.0  # seconds


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
        usual = {victim: undisturbed(folder / victim, victim) for victim in SETTINGS}
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
    if process.wait(PATIENCE):
        raise SystemExit(f"An undisturbed run failed: {_said(run)}")
    return Usual(state(run), time.monotonic() - start)


def one(run: Path, draw: random.Random, usual: dict[str, Usual]) -> dict[str, Any] | None:
    """A run of which one process is killed; returns what happened, None if it had ended by then.

    Raises SystemExit if it cannot be carried on, or its end is another.
    """
    victim, share = draw.choice(list(SETTINGS)), draw.uniform(0, 0.95)
    after, expected = share * usual[victim].seconds, usual[victim].state
    process = _train(victim, run)
    start = time.monotonic()
    time.sleep(after)
    killed = _kill(victim, process, draw)
    if not killed:
        if process.wait(PATIENCE):
            raise SystemExit(f"A run failed before anything was killed: {_said(run)}")
        usual[victim].seconds = min(usual[victim].seconds, time.monotonic() - start)
        return None
    if process.wait(PATIENCE):
        if victim != "driver":
            raise SystemExit(f"After a {victim} ({killed}) was killed at {after:.1f} s, the run ended: {_said(run)}")
        command = ["resume", str(run), *CLUSTER[victim]]
        if not (run / "config.toml").exists():  # it had not begun
            command = ["train", *SETTINGS[victim], *CLUSTER[victim], "--out", str(run)]
        if _deepcfr(run, *command).wait(PATIENCE):
            raise SystemExit(f"After the driver was killed at {after:.1f} s, no run could be carried on: {_said(run)}")
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
    process = _deepcfr(run, "train", *SETTINGS[victim], *CLUSTER[victim], "--out", str(run))
    end = time.monotonic() + PATIENCE
    while not _pids(victim, process) and process.poll() is None:
        if time.monotonic() > end:
            raise SystemExit(f"There was no {victim} after {PATIENCE:.0f} seconds.")
        time.sleep(0.05)
    return process


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
    of_run, found = {driver.pid}, dict(_processes())
    while more := {pid for pid, (parent, _) in found.items() if parent in of_run} - of_run:
        of_run |= more
    titles = {pid: found[pid][1] for pid in of_run & set(found) if found[pid][1].startswith("ray::")}
    kinds = {pid: title.removeprefix("ray::").partition(".")[0] for pid, title in titles.items()}
    if victim == "helper":
        return {pid: kind for pid, kind in kinds.items() if not kind.startswith((*KINDS.values(), *RAYS_OWN))}
    return {pid: kind for pid, kind in kinds.items() if kind == KINDS[victim]}


def _processes() -> Iterator[tuple[int, tuple[int, str]]]:
    """Every process there is, its parent and its title. Source: proc_pid_status(5)."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines())
            title = (entry / "cmdline").read_bytes().rstrip(b"\0 ").decode(errors="replace")
            yield int(entry.name), (int(status["PPid"]), title)
        except OSError:  # it has ended meanwhile
            continue


def _deepcfr(run: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deepcfr.cli", *arguments]
    with _log(run).open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def _log(run: Path) -> Path:
    return run.with_suffix(".log")


def _said(run: Path) -> str:
    """The end of what the run wrote."""
    return _log(run).read_text(errors="replace")[-2_000:]


def state(run: Path) -> dict[str, str]:
    """Checksums of all networks and columns of memories at a run's end, and what counts samples and nodes."""
    folder = run / "checkpoints" / (run / "checkpoints" / "latest").read_text().strip()
    found = {path.name: checksum(path) for path in folder.iterdir() if path.suffix in (".npy", ".safetensors")}
    counts = read_json(folder / "state.json")
    return found | {name: str(counts[name]) for name in ("iteration", "nodes_touched", "memories")}


def summary(times: list[dict[str, Any]]) -> dict[str, Any]:
    """How often what was killed, and how many ended the same."""
    return {
        "runs": len(times),
        "killed": dict(Counter(t["victim"] for t in times)),
        "helpers": dict(Counter(t["process"] for t in times if t["victim"] == "helper")),
        "iterations_done_again": sum(loss["done_again"] for t in times for loss in t["losses"]),
        "same": sum(t["same"] for t in times),
    }


if __name__ == "__main__":
    main()
