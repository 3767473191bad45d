"""Runs on a Ray cluster of this machine whose processes are killed at random times, against a run that nothing happens to.

    python benchmarks/ray_soak.py        # writes benchmarks/results/ray_soak.json, half an hour
    python benchmarks/ray_soak.py --times 3 --out /tmp/ray_soak.json

Every time one process is killed: a worker, which the run survives, or the driver, after which `deepcfr resume` goes on. In
the end all networks and all samples must be those of the undisturbed run, byte for byte.
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
from pathlib import Path
from typing import Any

from deepcfr.files import checksum, read_json
from deepcfr.runs.metrics import environment

RUN = [
    "leduc", "--ray", "--workers", "2", "--memory.shards", "4", "--cfr.iterations", "30", "--cfr.traversals", "600",
    "--cfr.chunk", "64", "--memory.advantage-capacity", "20000", "--memory.strategy-capacity", "20000",
    "--advantage.steps", "60", "--average.steps", "200", "--evaluation.every", "0", "--runtime.checkpoint-every", "5",
    "--cfr.keep-networks", "0",
]  # fmt: skip
PATIENCE = 300.0  # seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ray_soak.json"))
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.monotonic()
        if _deepcfr("train", *RUN, "--out", str(folder / "undisturbed")).wait(PATIENCE):
            raise SystemExit("The undisturbed run failed.")
        usual = time.monotonic() - start
        expected = state(folder / "undisturbed")
        times = [one(folder / str(n), draw, usual, expected) for n in range(asked.times)]
    facts = {"environment": environment("cpu", 2), "undisturbed_seconds": usual, "times": times, **summary(times)}
    asked.out.write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(summary(times)))


def one(run: Path, draw: random.Random, usual: float, expected: dict[str, str]) -> dict[str, Any]:
    """A run of which one process is killed; returns what happened. Raises SystemExit if its end is another."""
    victim, after = draw.choice(("worker", "driver")), draw.uniform(0.1, 0.95) * usual
    process = _deepcfr("train", *RUN, "--out", str(run))
    time.sleep(after)
    killed = _kill(victim, process, draw)
    process.wait(PATIENCE)
    if process.returncode:
        again = _deepcfr("resume", str(run), "--ray", "--workers", "2") if (run / "config.toml").exists() else None
        again = again or _deepcfr("train", *RUN, "--out", str(run))  # it had not begun
        if again.wait(PATIENCE):
            raise SystemExit(f"After a {victim} was killed at {after:.1f} s, the run could not be carried on.")
    found, losses = state(run), read_json(run / "environment.json").get("losses", [])
    if found != expected:
        different = sorted(name for name in expected if found.get(name) != expected[name])
        raise SystemExit(f"After a {victim} was killed at {after:.1f} s, these differ: {', '.join(different)}.")
    print(
        f"{run.name}: {victim} after {after:.1f} s, {'killed' if killed else 'nothing to kill'}, {losses}", flush=True
    )
    return {"victim": victim, "after": after, "killed": killed, "losses": losses, "same": True}


def _kill(victim: str, process: subprocess.Popen[bytes], draw: random.Random) -> bool:
    pids = [process.pid] if victim == "driver" else _workers()
    if process.poll() is not None or not pids:
        return False
    os.kill(draw.choice(pids), signal.SIGKILL)
    return True


def _workers() -> list[int]:
    """The processes of actors with shards."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"ray::_Worker" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def _deepcfr(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deepcfr.cli", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def state(run: Path) -> dict[str, str]:
    """Checksums of all networks and all columns of memories at a run's end."""
    folder = run / "checkpoints" / (run / "checkpoints" / "latest").read_text().strip()
    return {path.name: checksum(path) for path in folder.iterdir() if path.suffix in (".npy", ".safetensors")}


def summary(times: list[dict[str, Any]]) -> dict[str, Any]:
    """How often what was killed, and how many ended the same."""
    return {
        "runs": len(times),
        "killed": {
            victim: sum(t["killed"] and t["victim"] == victim for t in times) for victim in ("worker", "driver")
        },
        "iterations_done_again": sum(loss["done_again"] for t in times for loss in t["losses"]),
        "same": sum(t["same"] for t in times),
    }


if __name__ == "__main__":
    main()
