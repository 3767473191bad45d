"""Golden records: what fixed commands answer, to the last digit, before a change and after.

`python tests/golden.py` runs the commands that tests/golden.json names and prints every value that differs;
`--write` takes today's answers instead. WORDS choose the commands that contain one of them. On another processor the last
digits differ, because it adds in another order: `--close` allows a relative difference of 1e-4.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "tests" / "golden.json"
_TIMES = {
    "seconds",
    "fit_seconds",
    "run",
    "runs",
    "out",
    "file",
    "path",
    "log",
    "phh",
    "resident_bytes",
    "games_per_second",
}

_SHORT = "--sampling.traversals 60 --memory.capacity 2000"
_FIT = "--advantage.steps 20 --average.steps 40"
_BOARDS = "--iterations 3 --advantage.steps 20 --average.steps 40"
_MCCFR = "solve leduc --solver mccfr --runtime.threads 1"  # several have no fixed order of updates
_RIVER = '--board "2h 7d 9s Tc Jd" --pot 10 --stacks 30 --sizes "river 50 100, raise 60, allin" --exploitability 0.1%'
_WIDE = '--dealer "22+,A2s+,KTs+,QTs+,ATo+,KQo" --big-blind "TT-22,A9s-A2s,KJs,QJs,T9s,AJo-A9o"'
COMMANDS = (
    # Exact NashConv of the shipped agents, and what stands for it where the game is too large
    "exploitability {models}/kuhn",
    "exploitability {models}/leduc",
    "exploitability {models}/fhp",
    "exploitability {models}/fhp-faithful",
    "match {models}/fhp-paper {models}/fhp --boards 20 --seed 1",
    "match {models}/hulh {models}/hulh --hands 300 --seed 1",
    "match {models}/hunl-200 scripted:call --hands 300 --seed 1",
    "strategy {models}/hulh 'Qs Qh / rc / Ks Qd 2h / cr'",
    "strategy {models}/hunl-200 'As Ks'",
    # Short runs of every solver
    f"train kuhn --config kuhn --seed 1 --iterations 3 {_FIT}",
    f"train leduc --config leduc --seed 1 {_BOARDS}",
    f"train leduc --config leduc-external --seed 1 --iterations 3 {_SHORT} {_FIT}",
    f"train leduc --seed 1 --sampling.no-panel --sampling.boards 4 --advantage.target bootstrap {_BOARDS}",
    f"train fhp-mini --config fhp-paper --seed 1 --iterations 2 {_SHORT} {_FIT}",
    f"train fhp-mini --config fhp-quick --seed 1 --sampling.boards 10 {_BOARDS}",
    f"train fhp-mini --config fhp-strength --seed 1 --sampling.boards 20 {_BOARDS}",
    f"train fhp-mini --config fhp-faithful --seed 1 --sampling.boards 20 {_BOARDS}",
    f"train hulh --config four-rounds --seed 1 --sampling.boards 4 {_BOARDS}",
    f"train hunl-pot --config four-rounds --seed 1 --sampling.boards 4 {_BOARDS}",
    "train leduc --config leduc-nfsp --seed 1 --iterations 60",
    "train kuhn --solver ppo --seed 1 --iterations 5",
    "train kuhn --solver mmd --seed 1 --iterations 5",
    *(
        f"train kuhn --solver {solver} --seed 1 --iterations 3"
        for solver in (
            "dream", "escher", "rcfr", "double-neural", "deep-cfr+", "deep-dcfr+", "deep-pdcfr+", "vr-deep-cfr+",
            "vr-deep-dcfr+", "vr-deep-pdcfr+",
        )
    ),
    *(
        f"solve leduc --solver {algorithm} --iterations 20"
        for algorithm in ("cfr", "cfr+", "pcfr+", "linear-cfr", "dcfr")
    ),
    f"{_MCCFR} --iterations 20",
    f"{_MCCFR} --sampler outcome --iterations 5 --traversals 500",
    "solve leduc --solver linear-cfr --precision int16 --iterations 20",
    "solve fhp-mini --solver dcfr --iterations 3",
    "solve openspiel:kuhn_poker --solver xfp --iterations 20",
    "solve openspiel:leduc_poker --solver egt --iterations 20",
    "solve openspiel:leduc_poker --solver dcfr --iterations 20",
    "solve hunl-ladder --config lin --iterations 2 --traversals 2000 --runtime.threads 1",
    # Spots
    f"spot {_RIVER} {_WIDE}",
    f"spot {_RIVER} {_WIDE} --rake 5 --cap 2",
    'spot --board "2c 7d 9s 4c 5d" --pot 10 --stacks 10 --dealer AsAh,KcKd --big-blind AsAd --sizes allin',
    f'spot --board "2h 7d 9s Tc" --pot 10 --stacks 20 {_WIDE} --sizes "turn 75, river 75, allin" --exploitability 0.5%',
    'spot --board "2h 7d 9s" --pot 10 --stacks 10 --dealer "AA,KK,AKs" --big-blind "QQ,JJ,A9s" --sizes "allin" '
    "--exploitability 0.5%",
    # A match, bounds, hand histories, and a match over the ACPC protocol
    "match {models}/leduc {models}/leduc --boards all",
    "match resolve:{models}/fhp {models}/fhp --boards 2 --seed 1",
    "lbr {models}/fhp --boards 3 --seed 1",
    "lbr {models}/hunl-200 --hands 40 --seed 1",
    "dealer {models}/hulh {models}/hulh --hands 20 --seed 1 --duplicate --phh {run}/phh --log {run}/log --port 0",
    "dealer {models}/hunl-200 random:{models}/hunl-200 --hands 20 --seed 1 --phh {run}/phh --log {run}/log --port 0",
)  # fmt: skip


def answer(command: str, folder: Path) -> dict[str, Any]:
    """Run one command and return what it prints with --json, without times; files that it writes as their digests."""
    from command_line import deepcfr

    (folder / "models").symlink_to(ROOT / "models")  # names in logs are then the same in every clone
    arguments = [word.format(models="models", run=folder) for word in shlex.split(command)]
    if arguments[0] in ("train", "solve"):
        arguments += ["--out", str(folder / "run")]
    if arguments[0] == "spot":
        arguments += ["--out", str(folder / "spot.json")]
    found = dict(_lasting(deepcfr(*arguments, "--json").json))
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".phh" or path.name == "log":
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        if path.name == "spot.json":
            found["decisions"] = dict(_summed(json.loads(path.read_text())["decisions"]))
    return found


def _lasting(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if name not in _TIMES and not name.endswith("_seconds"):
            yield name, dict(_lasting(part)) if isinstance(part, dict) else part


def _summed(decisions: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """For every decision of a spot the sum of all strategies and values, each hand with a weight of its own."""
    for decision in decisions:
        sums = [
            math.fsum((1 + i % 7) * x for i, row in enumerate(decision[part].values()) for x in row)
            for part in ("hands", "values")
        ]
        yield decision["line"], sums


def differences(before: Any, after: Any, tolerance: float, where: str = "") -> Iterator[str]:
    """Name every value that is not as before."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from differences(before.get(name), after.get(name), tolerance, f"{where} {name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, tolerance, f"{where} {number}")
    elif isinstance(before, float) and isinstance(after, float):
        if not math.isclose(before, after, rel_tol=tolerance, abs_tol=tolerance):
            yield f"{where}: {before} is now {after}"
    elif before != after:
        yield f"{where}: {before} is now {after}"


def main() -> int:
    """Compare, or write, and return the exit status: 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--close", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    records = json.loads(RECORDS.read_text()) if RECORDS.is_file() else {}
    different = 0
    for command in COMMANDS:
        if options.words and not any(word in command for word in options.words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found = answer(command, Path(folder))
            os.chdir(ROOT)
        if options.write:
            records[command] = found
            RECORDS.write_text(json.dumps({c: records[c] for c in COMMANDS if c in records}, indent=1) + "\n")
            print("wrote", command, flush=True)
            continue
        wrong = list(differences(records.get(command), found, 1e-4 if options.close else 0.0))
        print("differs" if wrong else "same   ", command, *wrong[:10], sep="\n    " if wrong else " ", flush=True)
        different += bool(wrong)
    print(f"{different} of {len(COMMANDS)} differ" if not options.write else f"{len(records)} records")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
