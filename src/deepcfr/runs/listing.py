"""What can be played: the facts of every preset, for `deepcfr games`."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from deepcfr.evaluation.exploitability import count_boards, refusal
from deepcfr.games.betting import build_tree
from deepcfr.games.presets import load_rules
from deepcfr.games.rules import PRESETS


def game_facts(definitions: list[str]) -> list[dict[str, Any]]:
    """Sizes, unit and reach of exact evaluation, one record for each preset and each game-definition file."""
    facts = []
    for name in [*PRESETS, *definitions]:
        rules = load_rules(name)
        tree = build_tree(rules)
        facts.append(
            {
                "game": rules.name,
                "unit": rules.milli_unit,
                "deck": f"{rules.num_ranks}x{rules.num_suits}",
                "hole_cards": rules.hole_cards,
                "board_cards": list(rules.board_cards),
                "betting_decisions": tree.num_decisions,
                "boards": count_boards(rules),
                "exact_evaluation": refusal(rules) is None,
            }
        )
    return facts


def show_games(facts: list[dict[str, Any]], console: Console) -> None:
    """The facts as a table."""
    table = Table("game", "deck", "hole", "board", "decisions", "boards", "unit", "exact")
    for f in facts:
        table.add_row(
            f["game"], f["deck"], str(f["hole_cards"]), "+".join(map(str, f["board_cards"])),
            f"{f['betting_decisions']:,}", f"{f['boards']:,}", f["unit"], "yes" if f["exact_evaluation"] else "no",
        )  # fmt: skip
    console.print(table)
