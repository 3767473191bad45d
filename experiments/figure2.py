"""The runs of figure 2: card abstractions of flop hold'em solved by Linear Monte Carlo CFR, and no abstraction.

    python -m experiments.figure2 [BUCKETS ...]     # all runs, or only those of so many flop buckets; 0 is lossless
    python -m experiments.figure2 --draw            # only the figure

Makes the abstractions and the runs in runs/figure2-*, writes their curves to experiments/results/figure2.json, and
draws docs/fig2.svg from recorded results: these curves, full-width CFR of experiments/results/fhp_solve.json, and the
shipped agent.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from deepcfr.abstraction.buckets import round_classes
from deepcfr.games.betting import build_tree
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_rules
from deepcfr.ranges.rounds import round_trees
from deepcfr.report.charts import SAMPLED, SWEPT, CurvePoint, Line, Method, method_of, picture
from deepcfr.report.charts import curve as points_of
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.sampling.traversal_tree import table_layout

ROOT = Path(__file__).parents[1]
# per iteration and player; the opponent's strategy stands still meanwhile, so that early progress goes with iterations
TRAVERSALS = 10_000
AT = (50, 100, 200, 400, 800, 1_600, 3_200)  # iterations that are evaluated, besides the last
RUNS = {200: 6_400, 2_000: 3_200, 20_000: 6_400, 0: 6_400}  # iterations by buckets of the flop; 0 is lossless
RESULT = ROOT / "experiments" / "results" / "figure2.json"
SOLVED = RESULT.with_name("fhp_solve.json")
FULL_WIDTH = {"lcfr": "Linear CFR", "dcfr": "Discounted CFR"}  # by name in that file
PICTURE = ROOT / "docs" / "fig2.svg"


def name_of(buckets: int) -> str:
    """The run's folder."""
    return f"figure2-{f'b{buckets}' if buckets else 'lossless'}"


def deepcfr(command: str) -> None:
    """A command as a user would give it."""
    print(f"deepcfr {command}", flush=True)
    subprocess.run([sys.executable, "-m", "deepcfr.cli", *command.split()], check=True, cwd=ROOT)


def make(buckets: int) -> None:
    """Make the abstraction, if it is missing, and its run."""
    abstraction = ""
    if buckets:
        if not (ROOT / "runs" / f"b{buckets}").is_dir():
            deepcfr(f"abstract fhp --buckets {buckets} --out runs/b{buckets}")
        abstraction = f"--abstraction runs/b{buckets} "
    at = " ".join(str(iteration) for iteration in AT if iteration < RUNS[buckets])
    deepcfr(
        f"solve fhp --algorithm mccfr {abstraction}--traversals {TRAVERSALS} --iterations {RUNS[buckets]} "
        f"--evaluation.at {at} --out runs/{name_of(buckets)}"
    )


def curve(name: str) -> dict[str, Any]:
    """The exact evaluations of a run, and the command and commit that made it."""
    run = ROOT / "runs" / name
    made = json.loads((run / "environment.json").read_text())
    return {
        "command": made["command"],
        "commit": made["commit"],
        "curve": [
            {
                "iteration": line["iteration"],
                "nodes_touched": line["total_nodes_touched"],
                **line["evaluation"],
                "seconds": line["seconds"],
            }
            for line in read_metrics(run / "metrics.jsonl")
            if "evaluation" in line
        ],
    }


def drawing() -> bytes:
    """The figure as SVG, from recorded results only."""
    rules, shipped = load_rules("fhp"), RunFolder.open(ROOT / "models" / "fhp")
    classes = tuple(round_classes(rules, round_) for round_ in range(rules.num_rounds))
    method = method_of(shipped)
    lines = [Line(f"{method.label}: models/fhp, with hand strength", method, points_of(shipped))]
    for name, run in json.loads(RESULT.read_text()).items():
        buckets = next(buckets for buckets in RUNS if name_of(buckets) == name)
        size = table_layout(build_tree(rules), (classes[0], buckets) if buckets else classes).size
        what = f"{buckets:,} buckets" if buckets else "lossless"
        label = f"Linear MCCFR, {what} ({size:,} infoset-actions)"
        kind = Method(label, "buckets" if buckets else "lossless", SAMPLED)
        lines.append(Line(label, kind, [_point(point, point["nodes_touched"]) for point in run["curve"]]))
    # decisions and ends of all boards, once for each distinct hand and each player
    trees = zip(round_trees(PokerGame(rules)), classes, strict=True)
    nodes = 2 * sum((tree.num_slots - len(tree.exits)) * hands for tree, hands in trees)
    for name, label in FULL_WIDTH.items():
        points = [_point(point, nodes * point["iteration"]) for point in json.loads(SOLVED.read_text())[name]["curve"]]
        lines.append(Line(f"{label}, full width", Method(label, "full width", SWEPT), points))
    return picture(lines, shipped)


def _point(point: dict[str, Any], nodes: int) -> CurvePoint:
    return point["seconds"], nodes, point["nash_conv"]


def main(arguments: list[str]) -> None:
    """Make runs, record them and draw the figure; or only draw it."""
    if arguments != ["--draw"]:
        for size in map(int, arguments or RUNS):
            make(size)
        record()
    PICTURE.write_bytes(drawing())


def record() -> None:
    """Write the curves of all runs that are there."""
    names = [name_of(buckets) for buckets in RUNS if (ROOT / "runs" / name_of(buckets)).is_dir()]
    RESULT.write_text(json.dumps({name: curve(name) for name in names}, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
