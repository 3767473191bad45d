"""Write docs/benchmarks.md from measured files: experiments/results/*.json and the shipped models.

python -m experiments.benchmarks_page
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
    """Load a recorded measurement."""
    recorded: dict[str, Any] = json.loads((ROOT / "experiments" / "results" / name).read_text())
    return recorded


def agents_table() -> list[str]:
    """The table of trained agents, with exact results where possible."""
    small = load("small_games.json")
    lines = ["| game, command | result | time |", "|---|---|---|"]
    for name, command in (
        ("kuhn", "deepcfr train kuhn"),
        ("leduc", "deepcfr train leduc"),
        ("leduc-external", "deepcfr train leduc --config leduc-external"),
    ):
        facts, game = small[name], name.split("-")[0]
        seeds = ", ".join(f"{run['exploitability']:.2f}" for run in facts["runs"])
        lines.append(
            f"| {game.capitalize()}, `{command}` | NashConv/2 {facts['mean_exploitability']:.2f} mA/g "
            f"(mean of seeds 0, 1, 2: {seeds}) | {_seconds(facts)} |"
        )
    measured = [line for line in read_metrics(ROOT / "models" / "fhp" / "metrics.jsonl") if "evaluation" in line]
    result = measured[-1]["evaluation"]
    lines.append(
        f"| FHP, the shipped agent `models/fhp` ({shipped_agent()}) | NashConv {up(result['nash_conv'], 2)} mbb/g, that is "
        f"exploitability {up(result['exploitability'], 2)} | {ceil(measured[-1]['seconds'] / 60)} min with the exact "
        f"evaluation{'s' if len(measured) > 1 else ''} |"
    )
    return [*lines, pot_line(), limit_line()]


def _seconds(facts: dict[str, Any]) -> str:
    if "mean_processor_seconds" in facts:
        return f"{ceil(facts['mean_processor_seconds'])} s of one processor"
    return f"{ceil(facts['mean_seconds'])} s"


def pot_line() -> str:
    """The result of training on flop hold'em with pot bets."""
    facts = load("fhp_pot.json")
    result = facts["result"]
    return (
        f"| FHP with pot bets, `{facts['environment']['command']}`, t = {result['iterations']} | NashConv "
        f"{up(result['nash_conv'], 2)} mbb/g | {ceil(result['seconds'] / 60)} min, {len(facts['curve'])} exact evaluations "
        "included |"
    )


def limit_line() -> str:
    """The gains of the shipped agent for limit hold'em in matches; this game has no exact evaluation."""
    last = read_metrics(ROOT / "models" / "hulh" / "metrics.jsonl")[-1]
    gains = "; ".join(
        f"{match['mean']:+.1f} ± {match['interval']:.1f} against `{name.partition(' of ')[0]}`"
        for name, match in load("hulh_model.json")["matches"].items()
    )
    return (
        "| HULH, the shipped agent `models/hulh` ([hulh.md](hulh.md); `mccfr-3e6` is Linear MCCFR on 200 buckets after "
        f"1,000 iterations) | not exact; matches of duplicate deals: {gains} mbb/g | {ceil(last['seconds'] / 60)} min |"
    )


def shipped_agent() -> str:
    """The shipped FHP agent: its seed, whether its networks see domain knowledge, and their size."""
    run = RunFolder.open(ROOT / "models" / "fhp")
    assert isinstance(run.config, RunConfig)
    network = build_network(run.game().encoding, run.config.network, generator(0))
    setting = "setting `strength` of [fhp.md](fhp.md), with domain knowledge; " if run.config.network.strength else ""
    return f"seed {run.config.seed}; {setting}a network of {count_parameters(network):,} parameters"


def speed_table() -> list[str]:
    """Speeds, as ratios against a peer where there is one."""
    peer, fhp, raw, nfsp = load("openspiel.json"), load("fhp.json"), load("raw_suits.json"), load("nfsp.json")
    return [
        "| measure | figure |",
        "|---|---|",
        f"| traversals/s on Leduc against OpenSpiel's PyTorch Deep CFR, same run "
        "(`python -m experiments bench openspiel`) | "
        f"{floor(peer['traversals_ratio'])} × ({floor(peer['deepcfr']['traversals_per_second']):,} against "
        f"{ceil(peer['openspiel']['traversals_per_second']):,}) |",
        f"| time to OpenSpiel's own result after {peer['openspiel']['iterations']} iterations "
        f"({peer['openspiel']['exploitability']:.0f} mA/g) | {floor(peer['time_ratio'])} × less "
        f"({up(peer['deepcfr']['seconds'], 2)} s against {down(peer['openspiel']['seconds'], 1)} s) |",
        "| NFSP episodes/s on Leduc against OpenSpiel's PyTorch NFSP, same run (`python -m experiments bench nfsp`), as "
        "many examples of an episode fitted | "
        f"{floor(nfsp['ratio'])} × ({floor(nfsp['ours']['episodes_per_second']):,} against "
        f"{ceil(nfsp['peer']['episodes_per_second']):,}) |",
        f"| FHP traversals/s with the default network of 98,948 parameters (`python -m experiments bench fhp`) | "
        f"{floor(fhp['traversals_per_second']):,} |",
        f"| exact NashConv on FHP, that network, canonical suits | {up(fhp['exact_evaluation_seconds'], 1)} s, peak memory "
        f"of the whole benchmark {up(fhp['peak_memory_gb'], 2)} GB |",
        f"| exact NashConv on FHP, that network, raw suits, all {raw['boards']:,} flops (`raw_suits.json`) | "
        f"{ceil(raw['seconds'])} s, {up(raw['peak_memory_gb'], 2)} GB |",
        f"| bytes per stored FHP sample | {fhp['bytes_per_sample']} |",
    ]


def up(value: float, digits: int) -> str:
    """A figure for which less is better, rounded up."""
    return f"{ceil(value * 10**digits) / 10**digits:,.{digits}f}"


def down(value: float, digits: int) -> str:
    """A figure for which more is better, rounded down."""
    return f"{floor(value * 10**digits) / 10**digits:,.{digits}f}"


def solved_table() -> list[str]:
    """Flop hold'em solved full-width, and the bounds on its value that follow."""
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
        f"{down(low, 2)} and {up(high, 2)} mbb/g. As the dealer the best of these strategies wins at least the first "
        "figure against any opponent; as the big blind it loses at most the second. Both are exact best responses over "
        "all boards, in double precision.",
    ]


def figure2_table() -> list[str]:
    """The curves of the abstractions of figure 2."""
    lines = ["| run | exact NashConv, mbb/g, at nodes touched |", "|---|---|"]
    for name, run in load("figure2.json").items():
        points = [p for i, p in enumerate(run["curve"]) if i % 2 == 1 or p is run["curve"][-1]]
        curve = ", ".join(f"{up(p['nash_conv'], 1)} at {p['nodes_touched'] / 1e6:,.0f} M" for p in points)
        lines.append(f"| `{name}` ({ceil(run['curve'][-1]['seconds'])} s in all) | {curve} |")
    return lines


def figure2_statements() -> list[str]:
    """The paper's statements on figure 2 beside the recorded runs of flop hold'em itself, one seed each."""
    runs = load("figure2.json")
    largest, lossless = (runs[f"figure2-{name}"]["curve"][-1] for name in ("b20000", "lossless"))
    recorded: list[dict[str, Any]] = json.loads((ROOT / "experiments" / "results" / "fhp_learning.json").read_text())
    best = min((row for row in recorded if row["setting"] == "faithful+"), key=lambda row: row["nash_conv"])
    theirs = sorted((row for row in recorded if row["setting"] == "paper"), key=lambda row: row["t"])
    last, below = theirs[-1], next(row for row in theirs if row["nash_conv"] <= lossless["nash_conv"])
    later = next(p for p in runs["figure2-b20000"]["curve"] if p["nodes_touched"] >= last["nodes_touched"])
    level = f"the largest abstraction ends at {up(largest['nash_conv'], 2)} mbb/g"
    return [
        "| statement of the paper (figure 2) | on flop hold'em here, one seed each | verdict |",
        "|---|---|---|",
        f"| Deep CFR ends about as exploitable as the largest abstraction | {level}, `faithful+` at "
        f"{up(best['nash_conv'], 2)} after {best['t']} iterations | the order is better than stated; one seed each shows "
        "nothing |",
        f"| Deep CFR gets there substantially faster, by nodes touched | in the paper's setting it has "
        f"{up(last['nash_conv'], 1)} mbb/g after {ceil(last['nodes_touched'] / 1e6)} million nodes, where its run ends; "
        f"the largest abstraction has {up(later['nash_conv'], 1)} after {later['nodes_touched'] / 1e6:,.0f} million | the "
        "order is as stated; one seed each shows nothing, and the run ends before that level |",
        f"| Deep CFR needs 2 to 3 orders of magnitude fewer samples than the lossless game | the lossless game has "
        f"{up(lossless['nash_conv'], 0)} mbb/g after {lossless['nodes_touched'] / 1e9:,.1f} billion nodes; in the paper's "
        f"setting Deep CFR has {up(below['nash_conv'], 0)} after {ceil(below['nodes_touched'] / 1e6)} million, "
        f"{lossless['nodes_touched'] // below['nodes_touched']} times fewer | the order is as stated; one seed each shows "
        "nothing |",
    ]


def tabular_table() -> list[str]:
    """Speeds of the tabular solvers, and the cost of abstractions."""
    facts, races, cards, plain = (load(f"{name}.json") for name in ("tabular", "races", "abstraction", "mccfr_python"))
    features = cards["features of all flop hands"]
    lines = [
        "| measure (`python -m experiments bench tabular` unless another is named) | figure |",
        "|---|---|",
        f"| Leduc, external-sampling MCCFR iterations/s against OpenSpiel's C++ | {floor(facts['mccfr_leduc_ratio'])} × |",
        f"| Leduc, CFR+ iterations/s against OpenSpiel's C++ (with suits merged there too) | "
        f"{floor(facts['cfr_plus_leduc_ratio'])} × ({floor(facts['cfr_plus_leduc_suit_isomorphism_ratio'])} ×) |",
        f"| liar's dice with 5 sides, goofspiel with 5 cards: CFR against OpenSpiel's C++ | "
        f"{floor(facts['liars_dice_cfr_ratio'])} ×, {floor(facts['goofspiel_cfr_ratio'])} × |",
        f"| FHP, Linear CFR in float32 | {up(facts['fhp_linear_cfr_seconds_per_iteration'], 2)} s an iteration, "
        f"{up(facts['fhp_linear_cfr_memory_gb'], 2)} GB |",
        f"| FHP, Linear CFR in 16 bits | {up(facts['fhp_linear_cfr_int16_seconds_per_iteration'], 2)} s, "
        f"{up(facts['fhp_linear_cfr_int16_memory_gb'], 2)} GB |",
        f"| FHP, lossless MCCFR | {down(facts['fhp_mccfr_nodes_per_second'] / 1e6, 1)} million nodes/s |",
        f"| HULH, MCCFR on 1,000 (random) buckets a round | {down(facts['hulh_mccfr_nodes_per_second'] / 1e6, 1)} million "
        "nodes/s |",
        f"| FHP, MCCFR on {plain['buckets']:,} (random) buckets, {plain['threads']} threads against plain Python and one "
        f"thread, same run (`python -m experiments bench threads`) | {floor(plain['python_ratio'])} ×, "
        f"{down(plain['threads_ratio'], 2)} × |",
        f"| features of all {features['hands']:,} flop hands of hold'em, exact over all runouts "
        f"(`abstraction.json`) | {ceil(features['seconds'])} s |",
    ]
    for name, part in cards.items():
        if isinstance(part, dict) and "buckets" in part:
            lines.append(f"| abstraction: {name} | {ceil(part['seconds'])} s, {up(part['peak_memory_gb'], 2)} GB |")
    for case in races["cases"]:
        lines.append(
            f"| {case['game']}, {case['sampler']} sampling, mean NashConv/2 of {races['seeds']} seeds, one thread against "
            f"two (`races.json`) | {case['one_thread']:.2f} and {case['two_threads']:.2f} mA/g, difference "
            f"{case['difference']:+.2f} ± {case['interval_95']:.2f} |"
        )
    return lines


def provenance() -> list[str]:
    """The commit of every measurement."""
    made, limit = (json.loads((ROOT / "models" / name / "environment.json").read_text()) for name in ("fhp", "hulh"))
    by = [limit["commit"], *(resumed["commit"] for resumed in limit.get("resumed", []))]
    commits = {"models/fhp": made["commit"], "models/hulh": " and ".join(by)}
    for name in (
        "small_games", "openspiel", "nfsp", "fhp", "raw_suits", "tabular", "abstraction", "races", "mccfr_python", "fhp_pot"
    ):  # fmt: skip
        commits[f"{name}.json"] = load(f"{name}.json")["environment"]["commit"]
    commits["small_games.json, leduc"] = load("small_games.json")["leduc"]["environment"]["commit"]
    for name in ("fhp_solve", "figure2"):
        made_by = sorted({run["commit"][:10] for run in load(f"{name}.json").values()})
        commits[f"{name}.json"] = " and ".join(made_by)
    return [
        f"{made['processor']}, {made['cores']} cores that other programs shared at times; torch "
        f"{made['versions']['torch']}; seed 0 unless another is named. Files are in `experiments/results`; *changed* means "
        "that the folder held results of other measurements that were not committed yet. Fields `note` in the files "
        "say more.",
        "",
        "| measurement | commit |",
        "|---|---|",
        *(f"| `{name}` | {short(commit)} |" for name, commit in commits.items()),
    ]


def short(commit: str) -> str:
    """The first ten digits of each commit, and a mark for uncommitted changes."""
    return " and ".join(part[:10] + ", changed" * ("+" in part) for part in commit.split(" and "))


def results() -> list[str]:
    """The sections of docs/benchmarks.md, line by line."""
    return [
        "",
        "## Trained agents",
        "",
        *agents_table(),
        "",
        "[fhp.md](fhp.md#results) has the learning curves of Deep CFR on flop hold'em.",
        "",
        "## Speed of Deep CFR and NFSP",
        "",
        *speed_table(),
        "",
        "## Flop hold'em solved in tables",
        "",
        *solved_table(),
        "",
        "## Card abstractions on flop hold'em",
        "",
        "Linear MCCFR on 200, 2,000 and 20,000 buckets and without an abstraction, as in the Deep CFR paper's figure 2.",
        "",
        "![exact NashConv of card abstractions, no abstraction, full-width CFR and the shipped agent](fig2.svg)",
        "",
        "`python -m experiments.figure2 --draw` draws it from `figure2.json`, `fhp_solve.json` and the metrics of "
        "`models/fhp`. That curve is of setting `strength` of [fhp.md](fhp.md): its networks see hand strength, which "
        "is domain knowledge, and its nodes, like those of full-width CFR, are hands on boards and not sampled "
        "histories. So only wall time can be compared between them and Monte Carlo CFR, and that depends on threads and "
        "other programs.",
        "",
        *figure2_table(),
        "",
        *figure2_statements(),
        "",
        "## Speed of tabular solvers and abstractions",
        "",
        *tabular_table(),
        "",
        "## Provenance",
        "",
        *provenance(),
    ]


def replaced(page: str, begin: str, end: str, lines: list[str]) -> str:
    """The text of a page with `lines` between the two markers; each marker must occur once."""
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return "\n".join([before + begin, *lines, end + after])


def main() -> None:
    """Replace the section of docs/benchmarks.md between the markers."""
    page = ROOT / "docs" / "benchmarks.md"
    page.write_text(replaced(page.read_text(encoding="utf-8"), BEGIN, END, results()), encoding="utf-8")


if __name__ == "__main__":
    main()
