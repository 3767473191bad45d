"""The small game of studies at the quick budget: its description, and its equilibrium from a tabular solver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deepcfr.boards.boards import count_boards
from deepcfr.config import RunConfig, RuntimeConfig
from deepcfr.game.board_index import count_classes
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_rules
from deepcfr.game.rules import PokerRules
from deepcfr.run.metrics import read_metrics
from experiments.grid import Job
from experiments.pages import paragraphs, why_missing
from experiments.studies import SHARED

GAME: str = SHARED["quick"]["game"]
_ITERATIONS = 1_000  # of discounted CFR: a minute


def equilibrium_job(root: Path) -> Job:
    """The run whose average strategy is nearly an equilibrium of the quick studies' game."""
    config = RunConfig(game=GAME, solver="dcfr", iterations=_ITERATIONS, runtime=RuntimeConfig(threads=1))
    return Job(root / f"equilibrium-{GAME}", config)


def game_lines(root: Path) -> Iterator[str]:
    """The section of the report, with a remark if the run is missing."""
    rules = load_rules(GAME)
    yield from paragraphs(
        f"## The game of the quick studies: {GAME}",
        f"`{GAME}` is flop hold'em (`fhp`) with {rules.num_ranks} ranks instead of {load_rules('fhp').num_ranks}: the same "
        f"betting, hands of two cards and flops of three. There are {count_boards(rules, merge=False)[-1]:,} flops and "
        f"{count_infosets(rules):,} infosets up to renaming of suits, against {count_infosets(load_rules('fhp')):,} of "
        f"`fhp`. {_equilibrium(root)}",
    )


def count_infosets(rules: PokerRules) -> int:
    """Infosets up to renaming of suits: of every decision, the classes of its hole cards and board."""
    game, total = PokerGame(rules), 0
    for round_ in range(rules.num_rounds):
        board = sum(rules.board_cards[: round_ + 1])
        groups = (rules.hole_cards, board) if board else (rules.hole_cards,)
        decisions = int((game.round[: game.tree.num_decisions] == round_).sum())
        total += decisions * count_classes(rules.num_ranks, rules.num_suits, groups)
    return total


def _equilibrium(root: Path) -> str:
    job = equilibrium_job(root)
    if problem := why_missing(job):
        return f"The equilibrium is missing: `{job.path.name}`: {problem}."
    found = read_metrics(job.path / "metrics.jsonl")[-1]["evaluation"]
    nash_conv = f"{found['nash_conv']:,.2f}"
    return (
        f"After {job.config.iterations:,} iterations of discounted CFR in tables NashConv is {nash_conv} "
        f"{found['unit']}, so in equilibrium the first player's value is {found['value']:+.1f} ± {nash_conv}."
    )
