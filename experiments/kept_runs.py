"""Keep the records of study runs, without their checkpoints, in experiments/results/records.

python -m experiments.kept_runs [runs/studies]
python -m experiments report     # the pages, from all records that were kept
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from deepcfr.run.metrics import read_metrics
from experiments.filled import ROOT

KEPT = ROOT / "experiments" / "results" / "records"
_FACTS = ("config.toml", "game.json", "environment.json")
_HOME = re.compile(r"(?<= )/\S*/(?=runs/)")  # what comes before the folder `runs` in a command
_MOST_LINES = 150  # of longer metrics, such as NFSP's, only the evaluations and the last line are kept


def keep(root: Path, kept: Path = KEPT) -> list[Path]:
    """Copy the facts and metrics of every run below `root`; returns the copies' folders."""
    folders = []
    for found in sorted(root.rglob("metrics.jsonl")):
        lines, texts = read_metrics(found), found.read_text().splitlines(keepends=True)
        if len(lines) > _MOST_LINES:
            last = len(lines) - 1
            texts = [texts[i] for i, line in enumerate(lines) if "evaluation" in line or i == last]
        target = kept / found.parent.relative_to(root)
        target.mkdir(parents=True, exist_ok=True)
        for name in _FACTS:
            (target / name).write_text(_HOME.sub("", (found.parent / name).read_text()))
        (target / "metrics.jsonl").write_text("".join(texts))
        folders.append(target)
    return folders


if __name__ == "__main__":
    for folder in keep(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/studies")):
        print(folder.relative_to(ROOT))
