"""Runs on a Ray cluster of this machine whose processes are killed at random times, against a run that nothing happens to.

    python benchmarks/ray_soak.py        # writes benchmarks/results/ray_soak.json, half an hour
    python benchmarks/ray_soak.py --times 3 --out /tmp/ray_soak.json

Every time one process is killed: a worker or a learner, which the run survives, or the driver, after which `deepcfr resume`
goes on. In the end all networks, all samples and the counts of what memories have been offered must be those of the
undisturbed run with the same learners, byte for byte. A run that ended before its time came is made again.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepcfr.files import checksum, read_json
from deepcfr.runs.metrics import environment

RUN = [
    "leduc", "--memory.shards", "4", "--cfr.iterations", "30", "--cfr.traversals", "600",
    "--cfr.chunk", "64", "--memory.advantage-capacity", "20000", "--memory.strategy-capacity", "20000",
    "--advantage.steps", "60", "--average.steps", "200", "--evaluation.every", "0", "--runtime.checkpoint-every", "5",
    "--cfr.keep-networks", "0",
]  # fmt: skip
WORKERS, LEARNER = ["--ray", "--workers", "2"], ["--ray", "--workers", "1", "--learners", "1"]
VICTIMS = {"worker": WORKERS, "driver": WORKERS, "learner": LEARNER}  # and the processes of their run
TITLES = {"worker": b"ray::_Worker", "learner": b"ray::RayTrainWorker"}
PATIENCE = 300.0  # seconds


@dataclass(frozen=True)
class Usual:
    """A run that nothing happens to: what it ends with, and how long a victim's process is there."""

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
        usual = {victim: undisturbed(folder / victim, victim) for victim in VICTIMS}
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
        "undisturbed_seconds": {victim: found.seconds for victim, found in usual.items()},
        **summary(times),
        "ended_before_their_time": missed,
        "times": times,
    }
    asked.out.write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(summary(times)))


def undisturbed(run: Path, victim: str) -> Usual:
    """Seconds are from when the first of the processes that could be killed is there to the run's end."""
    process = _deepcfr("train", *RUN, *VICTIMS[victim], "--out", str(run))
    _await(lambda: bool(_pids(victim, process)), process)
    start = time.monotonic()
    if process.wait(PATIENCE):
        raise SystemExit("An undisturbed run failed.")
    return Usual(state(run), time.monotonic() - start)


def one(run: Path, draw: random.Random, usual: dict[str, Usual]) -> dict[str, Any] | None:
    """A run of which one process is killed; returns what happened, None if it had ended by then.

    Raises SystemExit if it cannot be carried on, or its end is another.
    """
    victim, share = draw.choice(list(VICTIMS)), draw.uniform(0, 0.95)
    after, expected = share * usual[victim].seconds, usual[victim].state
    process = _deepcfr("train", *RUN, *VICTIMS[victim], "--out", str(run))
    _await(lambda: bool(_pids(victim, process)), process)
    time.sleep(after)
    pids = _pids(victim, process)
    if not pids:
        process.wait(PATIENCE)
        return None
    os.kill(draw.choice(pids), signal.SIGKILL)
    process.wait(PATIENCE)
    if process.returncode:
        again = _deepcfr("resume", str(run), *VICTIMS[victim]) if (run / "config.toml").exists() else None
        again = again or _deepcfr("train", *RUN, *VICTIMS[victim], "--out", str(run))  # it had not begun
        if again.wait(PATIENCE):
            raise SystemExit(f"After a {victim} was killed at {after:.1f} s, the run could not be carried on.")
    found, losses = state(run), read_json(run / "environment.json").get("losses", [])
    if found != expected:
        different = sorted(name for name in expected if found.get(name) != expected[name])
        raise SystemExit(f"After a {victim} was killed at {after:.1f} s, these differ: {', '.join(different)}.")
    print(f"{run.name}: {victim} killed after {after:.1f} s, {losses}", flush=True)
    return {"victim": victim, "after": after, "driver_ended": process.returncode != 0, "losses": losses, "same": True}


def _await(is_so: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)


def _pids(victim: str, driver: subprocess.Popen[bytes]) -> list[int]:
    """The processes of the kind to be killed that are there now."""
    if driver.poll() is not None:
        return []
    if victim == "driver":
        return [driver.pid]
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes().startswith(TITLES[victim]):
                found.append(int(entry.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def _deepcfr(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deepcfr.cli", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


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
        "iterations_done_again": sum(loss["done_again"] for t in times for loss in t["losses"]),
        "same": sum(t["same"] for t in times),
    }


if __name__ == "__main__":
    main()
