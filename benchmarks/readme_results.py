"""Write the README's results from measured files: benchmarks/results/*.json and the shipped FHP run.

python benchmarks/readme_results.py
"""

from __future__ import annotations

import json
from math import ceil, floor
from pathlib import Path
from typing import Any

from deepcfr.runs.metrics import read_metrics

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def load(name: str) -> dict[str, Any]:
    """A recorded measurement."""
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text())


def agents_table() -> list[str]:
    """What training reaches, in exact figures."""
    small = load("small_games.json")
    lines = ["| game, command | exact result | time |", "|---|---|---|"]
    for game in ("kuhn", "leduc"):
        facts = small[game]
        seeds = ", ".join(f"{run['exploitability']:.2f}" for run in facts["runs"])
        lines.append(
            f"| {game.capitalize()}, `deepcfr train {game}` | NashConv/2 {facts['mean_exploitability']:.2f} mA/g "
            f"(mean of seeds 0, 1, 2: {seeds}) | {ceil(facts['mean_seconds'])} s |"
        )
    last = [line for line in read_metrics(ROOT / "models" / "fhp" / "metrics.jsonl") if "evaluation" in line][-1]
    result = last["evaluation"]
    lines.append(
        f"| FHP, `make run` (seed 0; a network of 41,348 parameters) | NashConv {result['nash_conv']:.2f} mbb/g, that is "
        f"exploitability {result['exploitability']:.2f} | {ceil(last['seconds'])} s, three exact evaluations included |"
    )
    return lines


def curve_table() -> list[str]:
    """The FHP curve in figures."""
    lines = ["| iteration | nodes touched | seconds | exact NashConv, mbb/g |", "|---|---|---|---|"]
    for line in read_metrics(ROOT / "models" / "fhp" / "metrics.jsonl"):
        if "evaluation" in line:
            figure = line["evaluation"]["nash_conv"]
            lines.append(
                f"| {line['iteration']} | {line['total_nodes_touched']:,} | {ceil(line['seconds'])} | {figure:.2f} |"
            )
    return lines


def speed_table() -> list[str]:
    """Speeds, as ratios against a peer where there is one."""
    peer, fhp, raw = load("openspiel.json"), load("fhp.json"), load("raw_suits.json")
    return [
        "| measure | figure |",
        "|---|---|",
        f"| traversals/s on Leduc against OpenSpiel's PyTorch Deep CFR, same run (`deepcfr bench openspiel`) | "
        f"{floor(peer['traversals_ratio'])} × ({peer['deepcfr']['traversals_per_second']:,.0f} against "
        f"{peer['openspiel']['traversals_per_second']:,.0f}) |",
        f"| time to OpenSpiel's own result after {peer['openspiel']['iterations']} iterations "
        f"({peer['openspiel']['exploitability']:.0f} mA/g) | {floor(peer['time_ratio'])} × less "
        f"({peer['deepcfr']['seconds']:.2f} s against {peer['openspiel']['seconds']:.1f} s) |",
        f"| FHP traversals/s with the default network of 98,948 parameters (`deepcfr bench fhp`) | "
        f"{floor(fhp['traversals_per_second']):,} |",
        f"| exact NashConv on FHP, that network, canonical suits | {fhp['exact_evaluation_seconds']:.1f} s, peak memory of "
        f"the whole benchmark {fhp['peak_memory_gb']:.2f} GB |",
        f"| exact NashConv on FHP, that network, raw suits, all {raw['boards']:,} flops (`benchmarks/raw_suits.py`) | "
        f"{ceil(raw['seconds'])} s, {raw['peak_memory_gb']:.2f} GB |",
        f"| bytes per stored FHP sample | {fhp['bytes_per_sample']} |",
    ]


def provenance() -> str:
    """Where each figure comes from: hardware, versions, and the commit of every measurement."""
    made = json.loads((ROOT / "models" / "fhp" / "environment.json").read_text())
    commits = {"`make run`": made["commit"]}
    notes = ""
    for name in ("small_games", "openspiel", "fhp", "raw_suits"):
        facts = load(f"{name}.json")
        commits[f"`{name}.json`"] = facts["environment"]["commit"]
        notes += f" `{name}.json`: {facts['note']}." if "note" in facts else ""
    listed = ", ".join(f"{name} {commit[:10]}{'+changes' * ('+' in commit)}" for name, commit in commits.items())
    return (
        f"Measured on {made['processor']}, {made['cores']} cores that other programs shared at times, torch "
        f"{made['versions']['torch']}, seed 0 unless said. Commits: {listed} (files in `benchmarks/results`).{notes}"
    )


def main() -> None:
    """Replace the README's section between the markers."""
    text = [
        provenance(),
        "",
        *agents_table(),
        "",
        "![exact NashConv of the FHP run](docs/fhp-quick.svg)",
        "",
        *curve_table(),
        "",
        *speed_table(),
    ]
    readme = (ROOT / "README.md").read_text()
    before, after = readme.split(BEGIN)[0], readme.split(END)[1]
    (ROOT / "README.md").write_text(before + BEGIN + "\n" + "\n".join(text) + "\n" + END + after)


if __name__ == "__main__":
    main()
