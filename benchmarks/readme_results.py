"""Write the README's results from measured files: benchmarks/results/*.json and the shipped FHP run.

python benchmarks/readme_results.py
"""

from __future__ import annotations

import json
from math import ceil, floor
from pathlib import Path
from typing import Any

from deepcfr.config import RunConfig
from deepcfr.rng import generator
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import read_metrics
from deepcfr.training.networks import build_network, count_parameters

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
    measured = [line for line in read_metrics(ROOT / "models" / "fhp" / "metrics.jsonl") if "evaluation" in line]
    result = measured[-1]["evaluation"]
    lines.append(
        f"| FHP, the shipped agent `models/fhp` ({shipped_agent()}) | NashConv {up(result['nash_conv'], 2)} mbb/g, that is "
        f"exploitability {up(result['exploitability'], 2)} | {ceil(measured[-1]['seconds'] / 60)} min, {len(measured)} "
        "exact evaluations included |"
    )
    return [*lines, *quick_lines(), pot_line(), limit_line()]


def pot_line() -> str:
    """What training on flop hold'em with pot bets reached."""
    facts = load("fhp_pot.json")
    result = facts["result"]
    return (
        f"| FHP with pot bets, `{facts['environment']['command']}`, t = {result['iterations']} | NashConv "
        f"{up(result['nash_conv'], 2)} mbb/g | {ceil(result['seconds'] / 60)} min, {len(facts['curve'])} exact evaluations "
        "included |"
    )


def limit_line() -> str:
    """What the shipped agent for limit hold'em gains in matches, for there is no exact evaluation of it."""
    last = read_metrics(ROOT / "models" / "hulh" / "metrics.jsonl")[-1]
    gains = "; ".join(
        f"{match['mean']:+.1f} ± {match['interval']:.1f} against `{name.partition(' of ')[0]}`"
        for name, match in load("hulh_model.json")["matches"].items()
    )
    return (
        "| HULH, the shipped agent `models/hulh` (docs/hulh.md; `mccfr-1000` is one minute of Linear MCCFR on 1,000 "
        f"buckets) | not exact, matches of duplicate deals: {gains} mbb/g | {ceil(last['seconds'] / 60)} min |"
    )


def quick_lines() -> list[str]:
    """What `make run` reached when it was measured."""
    rows = [row for row in load("fhp_learning.json") if "configs/fhp-quick.toml" in row["command"]]
    return [
        f"| FHP, `make run` (seed {row['seed']}; setting `{row['setting']}` of docs/fhp.md), t = {row['t']} | NashConv "
        f"{up(row['nash_conv'], 2)} mbb/g | {ceil(row['seconds'])} s without exact evaluations |"
        for row in rows
    ]


def shipped_agent() -> str:
    """What the shipped FHP agent is: its seed, whether its networks see domain knowledge, and how large they are."""
    run = RunFolder.open(ROOT / "models" / "fhp")
    assert isinstance(run.config, RunConfig)
    network = build_network(run.game().encoding, run.config.network, generator(0))
    setting = "setting `strength` of docs/fhp.md; " if run.config.network.strength else ""
    return f"seed {run.config.seed}; {setting}a network of {count_parameters(network):,} parameters"


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
    peer, fhp, raw, nfsp = load("openspiel.json"), load("fhp.json"), load("raw_suits.json"), load("nfsp.json")
    return [
        "| measure | figure |",
        "|---|---|",
        f"| traversals/s on Leduc against OpenSpiel's PyTorch Deep CFR, same run (`deepcfr bench openspiel`) | "
        f"{floor(peer['traversals_ratio'])} × ({peer['deepcfr']['traversals_per_second']:,.0f} against "
        f"{peer['openspiel']['traversals_per_second']:,.0f}) |",
        f"| time to OpenSpiel's own result after {peer['openspiel']['iterations']} iterations "
        f"({peer['openspiel']['exploitability']:.0f} mA/g) | {floor(peer['time_ratio'])} × less "
        f"({peer['deepcfr']['seconds']:.2f} s against {peer['openspiel']['seconds']:.1f} s) |",
        "| NFSP episodes/s on Leduc against OpenSpiel's PyTorch NFSP, same run (`deepcfr bench nfsp`), as many examples "
        f"of an episode fitted | {floor(nfsp['ratio'])} × ({nfsp['ours']['episodes_per_second']:,.0f} against "
        f"{nfsp['peer']['episodes_per_second']:,.0f}) |",
        f"| FHP traversals/s with the default network of 98,948 parameters (`deepcfr bench fhp`) | "
        f"{floor(fhp['traversals_per_second']):,} |",
        f"| exact NashConv on FHP, that network, canonical suits | {fhp['exact_evaluation_seconds']:.1f} s, peak memory of "
        f"the whole benchmark {fhp['peak_memory_gb']:.2f} GB |",
        f"| exact NashConv on FHP, that network, raw suits, all {raw['boards']:,} flops (`benchmarks/raw_suits.py`) | "
        f"{ceil(raw['seconds'])} s, {raw['peak_memory_gb']:.2f} GB |",
        f"| bytes per stored FHP sample | {fhp['bytes_per_sample']} |",
    ]


def up(value: float, digits: int) -> str:
    """A figure of which less is better, never rounded down."""
    return f"{ceil(value * 10**digits) / 10**digits:,.{digits}f}"


def down(value: float, digits: int) -> str:
    """A figure of which more is better, never rounded up."""
    return f"{floor(value * 10**digits) / 10**digits:,.{digits}f}"


def solved_table() -> list[str]:
    """Flop hold'em solved full-width, and what is then known of its value."""
    runs = load("fhp_solve.json")
    lines = [
        "| FHP, full width | exact NashConv, mbb/g, at iteration (seconds, evaluations included) | seconds an iteration |",
        "|---|---|---|",
    ]
    for run in runs.values():
        curve = ", ".join(f"{up(p['nash_conv'], 2)} at {p['iteration']} ({ceil(p['seconds'])} s)" for p in run["curve"])
        note = f" ({run['note']})" if "note" in run else ""
        lines.append(f"| `{run['command']}` | {curve} | {up(run['seconds_per_iteration'], 2)}{note} |")
    best = min((point for run in runs.values() for point in run["curve"]), key=lambda point: point["nash_conv"])
    high, low = best["best_response_values"][0], -best["best_response_values"][1]
    return [
        *lines,
        "",
        "**The value of flop hold'em** to the dealer, who is the small blind, lies between "
        f"{down(low, 2)} and {up(high, 2)} mbb/g: the best of these strategies wins at least "
        "the one as the dealer against anybody, and loses at most the other as the big blind (exact best responses over "
        "all boards, in double precision).",
    ]


def figure2_table() -> list[str]:
    """Where the abstractions of figure 2 begin and end."""
    lines = ["| run | exact NashConv, mbb/g, at nodes touched |", "|---|---|"]
    for name, run in load("figure2.json").items():
        points = [p for i, p in enumerate(run["curve"]) if i % 2 == 1 or p is run["curve"][-1]]
        curve = ", ".join(f"{up(p['nash_conv'], 1)} at {p['nodes_touched'] / 1e6:,.0f} M" for p in points)
        lines.append(f"| `{name}` ({ceil(run['curve'][-1]['seconds'])} s in all) | {curve} |")
    return lines


def tabular_table() -> list[str]:
    """Speeds of the tabular solvers, and what abstraction takes."""
    facts, races, cards, plain = (load(f"{name}.json") for name in ("tabular", "races", "abstraction", "mccfr_python"))
    features = cards["features of all flop hands"]
    lines = [
        "| tabular (`deepcfr bench tabular` unless said) | figure |",
        "|---|---|",
        f"| Leduc, external-sampling MCCFR iterations/s against OpenSpiel's C++ | {floor(facts['mccfr_leduc_ratio'])} × |",
        f"| Leduc, CFR+ iterations/s against OpenSpiel's C++ (with suits merged there too) | "
        f"{floor(facts['cfr_plus_leduc_ratio'])} × ({floor(facts['cfr_plus_leduc_suit_isomorphism_ratio'])} ×) |",
        f"| liar's dice with 5 sides, goofspiel with 5 cards: CFR against OpenSpiel's C++ | "
        f"{floor(facts['liars_dice_cfr_ratio'])} ×, {floor(facts['goofspiel_cfr_ratio'])} × |",
        f"| FHP, Linear CFR in float32 | {up(facts['fhp_linear_cfr_seconds_per_iteration'], 2)} s an iteration, "
        f"{up(facts['fhp_linear_cfr_memory_gb'], 2)} GB |",
        f"| the same in 16 bits | {up(facts['fhp_linear_cfr_int16_seconds_per_iteration'], 2)} s, "
        f"{up(facts['fhp_linear_cfr_int16_memory_gb'], 2)} GB |",
        f"| FHP, lossless MCCFR | {down(facts['fhp_mccfr_nodes_per_second'] / 1e6, 1)} million nodes/s |",
        f"| HULH, MCCFR on 1,000 (random) buckets a round | {down(facts['hulh_mccfr_nodes_per_second'] / 1e6, 1)} million "
        "nodes/s |",
        f"| FHP, MCCFR on {plain['buckets']:,} (random) buckets, {plain['threads']} threads against plain Python and one "
        f"thread, same run (`benchmarks/mccfr_python.py`) | {floor(plain['python_ratio'])} ×, "
        f"{down(plain['threads_ratio'], 2)} × |",
        f"| features of all {features['hands']:,} flop hands of hold'em, exact over all runouts "
        f"(`benchmarks/abstraction.py`) | {ceil(features['seconds'])} s |",
    ]
    for name, part in cards.items():
        if isinstance(part, dict) and "buckets" in part:
            lines.append(f"| abstraction: {name} | {ceil(part['seconds'])} s, {up(part['peak_memory_gb'], 2)} GB |")
    for case in races["cases"]:
        lines.append(
            f"| {case['game']}, {case['sampler']} sampling, mean NashConv/2 of {races['seeds']} seeds, one thread against "
            f"two (`benchmarks/races.py`) | {case['one_thread']:.2f} and {case['two_threads']:.2f} mA/g, difference "
            f"{case['difference']:+.2f} ± {case['interval_95']:.2f} |"
        )
    return lines


def provenance() -> str:
    """Where each figure comes from: hardware, versions, and the commit of every measurement."""
    made, limit = (json.loads((ROOT / "models" / name / "environment.json").read_text()) for name in ("fhp", "hulh"))
    by = [limit["commit"], *(resumed["commit"] for resumed in limit.get("resumed", []))]
    commits = {"`models/fhp`": made["commit"], "`models/hulh`": " and ".join(by)}
    notes = ""
    for name in ("small_games", "openspiel", "nfsp", "fhp", "raw_suits"):
        facts = load(f"{name}.json")
        commits[f"`{name}.json`"] = facts["environment"]["commit"]
        notes += f" `{name}.json`: {facts['note']}." if "note" in facts else ""
    for name in ("tabular", "abstraction", "races", "mccfr_python", "fhp_pot"):
        commits[f"`{name}.json`"] = load(f"{name}.json")["environment"]["commit"]
    for name in ("fhp_solve", "figure2"):
        made_by = sorted({run["commit"][:10] for run in load(f"{name}.json").values()})
        commits[f"`{name}.json`"] = " and ".join(made_by)
    listed = ", ".join(f"{name} {short(commit)}" for name, commit in commits.items())
    return (
        f"Measured on {made['processor']}, {made['cores']} cores that other programs shared at times, torch "
        f"{made['versions']['torch']}, seed 0 unless said. Commits: {listed} (files in `benchmarks/results`; +changes are "
        f"results of other measurements in the same folder).{notes}"
    )


def short(commit: str) -> str:
    """Ten digits of each commit, and whether there were changes on top."""
    return " and ".join(part[:10] + "+changes" * ("+" in part) for part in commit.split(" and "))


def results() -> list[str]:
    """The README's results, line by line."""
    return [
        provenance(),
        "",
        *agents_table(),
        "",
        "![exact NashConv of Deep CFR on FHP by iteration, nodes and time](docs/fhp.svg)",
        "",
        *curve_table(),
        "",
        *speed_table(),
        "",
        *solved_table(),
        "",
        "![exact NashConv of card abstractions, no abstraction and Deep CFR](docs/fig2.svg)",
        "",
        *figure2_table(),
        "",
        *tabular_table(),
    ]


def replaced(page: str, begin: str, end: str, lines: list[str]) -> str:
    """The text of a page with `lines` between the two markers, each of which it must have once."""
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return "\n".join([before + begin, *lines, end + after])


def main() -> None:
    """Replace the README's section between the markers."""
    readme = ROOT / "README.md"
    readme.write_text(replaced(readme.read_text(encoding="utf-8"), BEGIN, END, results()), encoding="utf-8")


if __name__ == "__main__":
    main()
