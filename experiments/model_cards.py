"""Write the cards of shipped models from their files, with new measurements.

    python -m experiments.model_cards                      # all whose game has an exact evaluation
    python -m experiments.model_cards hulh --rivals runs/mccfr-3e6 --results hulh_model.json
    python -m experiments.model_cards hunl-200 --results hunl_200_model.json

A model of a game without exact evaluation is measured by matches against scripted styles and `--rivals` (runs of the
same game), by the first seat's value, and by a local best response; a bot of a game with bet sizes by matches against
scripted and its own styles, a local best response, its memory and the time of its answers. The rows of such a card are
also in experiments/results.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deepcfr.core.files import json_bytes, write_atomically
from deepcfr.core.machine import resident_memory
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.rules import PokerRules
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.limits import too_many_boards
from deepcfr.measure.local_best_response import local_best_response
from deepcfr.measure.match import sampled_match
from deepcfr.measure.match.boards import dealer_value
from deepcfr.measure.match.tournament import TournamentTerms
from deepcfr.play.hand import Hand
from deepcfr.policy.base import Policy
from deepcfr.policy.styles import scripted_policy, styled
from deepcfr.run.folder import RunFolder
from deepcfr.run.listing import recipe

ROOT = Path(__file__).parents[1]
MODELS, RESULTS = ROOT / "models", ROOT / "experiments" / "results"
STYLES = ("uniform", "call")
DEALS, SEED, THREADS = 1_000_000, 0, 2
BET_SIZE_DEALS, BET_SIZE_STYLES, ANSWER_HANDS = 200_000, ("deterministic", "aggressive", "tight"), 200


def main() -> None:
    """Write the cards of the named models, or of all models with an exact evaluation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names of folders in models/")
    parser.add_argument(
        "--rivals", nargs="*", type=Path, default=[], help="runs to play in games without exact evaluation"
    )
    parser.add_argument(
        "--boards", type=int, default=200, help="runouts for the first seat's value and the lower bound"
    )
    parser.add_argument("--results", help="a file in experiments/results for what was measured by matches")
    options = parser.parse_args()
    paths = sorted(path.parent for path in MODELS.glob("*/config.toml"))
    for path in paths:
        if path.name not in (options.models or [p.name for p in paths if _has_exact(p)]):
            continue
        (path / "card.md").write_text(card(path, options), encoding="utf-8")


def card(path: Path, options: argparse.Namespace) -> str:
    """The card of one model."""
    run = RunFolder.open(path)
    policy, solver = run.load_policy("own", print)
    measure = _of_bet_sizes if isinstance(policy.game, BetSizePoker) else _of_listed
    rows = [
        ("game", f"{run.source.name}, measured in {policy.game.milli_unit}"),
        ("policy", f"{policy.kind} after {solver.iteration} iterations, {solver.nodes_touched:,} nodes touched"),
        *measure(path, policy, options),
        *_made(path, run),
    ]
    text = "\n".join(f"| {name} | {value} |" for name, value in rows)
    check = "exploitability" if _has_exact(path) else "lbr"
    return f"# {path.name}\n\n| | |\n|---|---|\n{text}\n\nCheck it with `deepcfr {check} models/{path.name}`.\n"


def _has_exact(path: Path) -> bool:
    source = RunFolder.open(path).source
    return not isinstance(source, BetSizeRules) and not (isinstance(source, PokerRules) and too_many_boards(source))


def _of_listed(path: Path, policy: Policy, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    return _exact(policy) if _has_exact(path) else _by_matches(path, policy, options)


def _exact(policy: Policy) -> Iterator[tuple[str, str]]:
    result = exploitability(policy, threads=THREADS)
    first, second = result.best_response_values
    yield "**exact NashConv**", f"**{result.nash_conv:.3f} {result.unit}**"
    yield "exploitability, NashConv / 2", f"{result.exploitability:.3f} {result.unit}"
    yield "best-response values", f"{first:.3f} as player 0, {second:.3f} as player 1"
    yield "value to player 0", f"{result.value:.3f} {result.unit}"
    yield "boards", f"{result.boards:,}: {result.boards_used}"


def _by_matches(path: Path, policy: Policy, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    unit, boards = policy.game.milli_unit, options.boards
    others: list[tuple[str, Policy]] = [(f"scripted:{style}", scripted_policy(style, policy.game)) for style in STYLES]
    others += [(_title(rival), RunFolder.open(rival).load_policy("own", print)[0]) for rival in options.rivals]
    found: dict[str, Any] = {"environment": json.loads((path / "environment.json").read_text()), "matches": {}}
    for name, other in others:
        match = sampled_match(policy, other, DEALS, SEED, threads=THREADS)
        found["matches"][name] = match.facts()
        value = f"{match.value:+.1f} ± {match.interval:.1f} {unit}"
        yield f"gains against `{name}`", f"{value}, {DEALS:,} duplicate deals, seed {SEED}"
    mean, interval = dealer_value(policy, boards, SEED, threads=THREADS)
    found["dealer_value"] = {"mean": mean, "interval": interval, "boards": boards}
    yield "value to player 0 against itself", f"{mean:+.1f} ± {interval:.1f} {unit}, {boards} runouts"
    bound = local_best_response(policy, boards, SEED, threads=THREADS)
    found["local_best_response"] = bound.facts()
    yield "a local best response gains", f"{bound.mean:.1f} ± {bound.interval:.1f} {unit} a seat, {boards} runouts"
    if options.results:
        write_atomically(RESULTS / options.results, json_bytes(found))


def _of_bet_sizes(path: Path, policy: Policy, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    unit, terms = policy.game.milli_unit, TournamentTerms(hands=BET_SIZE_DEALS, seed=SEED, threads=THREADS)
    found: dict[str, Any] = {"environment": json.loads((path / "environment.json").read_text()), "matches": {}}
    found["answers"] = answers = _answer_times(policy)
    found["resident_bytes"] = resident_memory()  # before rivals are loaded
    others: list[tuple[str, Policy]] = [
        *((f"scripted:{style}", scripted_policy(style, policy.game)) for style in (*STYLES, "raise")),
        *((f"{style}:{path.name}", styled(policy, style)) for style in BET_SIZE_STYLES),
    ]
    others += [(_title(rival), RunFolder.open(rival).load_policy("own", print)[0]) for rival in options.rivals]
    for name, other in others:
        match = terms.play(policy, other)
        found["matches"][name] = match.facts()
        value = f"{match.value:+.0f} ± {match.interval:.0f} {unit}"
        yield f"gains against `{name}`", f"{value}, {BET_SIZE_DEALS:,} duplicate deals, seed {SEED}"
    yield "an answer takes", f"{answers['median_ms']:.1f} ms in the median, {answers['most_ms']:.0f} ms at most"
    yield "memory", f"{found['resident_bytes'] / 1e9:.2f} GB resident, with Python and the libraries"
    bound = local_best_response(policy, options.boards, SEED, threads=THREADS)
    found["local_best_response"] = bound.facts()
    value = f"{bound.mean:.0f} ± {bound.interval:.0f} {unit} a seat"
    yield "a local best response gains", f"{value}, all hands on {bound.boards} runouts"
    if options.results:
        write_atomically(RESULTS / options.results, json_bytes(found))


def _answer_times(policy: Policy) -> dict[str, float]:
    """Milliseconds of the answers in some hands against bets of the usual sizes."""
    taken: list[float] = []
    random = np.random.default_rng(SEED)
    for number in range(ANSWER_HANDS):
        hand = Hand(policy, SEED, number)
        while not hand.over:
            if hand.persons_turn:
                hand.act(int(random.choice(hand.state.legal()[1:])))
                continue
            start = time.perf_counter()
            hand.act_for_agent()
            taken.append(1000 * (time.perf_counter() - start))
    return {"median_ms": float(np.median(taken[1:])), "most_ms": max(taken[1:]), "answers": len(taken) - 1}


def _title(path: Path) -> str:
    return f"{path.name} of {json.loads((path / 'environment.json').read_text())['command']}"


def _made(path: Path, run: RunFolder) -> Iterator[tuple[str, str]]:
    made = json.loads((path / "environment.json").read_text())
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and file.name != "card.md")
    yield "recipe", f"`{recipe(path, run.config)}`, seed {run.config.seed}; all settings are in `config.toml`"
    threads = "1 thread" if made["threads"] == 1 else f"{made['threads']} threads"
    versions = f"torch {made['versions']['torch']}, {made['processor']}, {threads}"
    if made["device"] != "cpu":
        versions += f", fits on {made['device']}"
    resumed = ", ".join(str(again["iteration"]) for again in made.get("resumed", []))
    later = f", resumed at iterations {resumed} (commits in `environment.json`)" if resumed else ""
    commit = made["commit"].replace("+changes", " with changes that it does not have")
    yield "made with", f"`{made['command']}` at commit {commit}{later}, {versions}"
    yield "size", f"{size / 1e6:.2f} MB, without memories: it plays and is measured, but cannot be trained on"


if __name__ == "__main__":
    main()
