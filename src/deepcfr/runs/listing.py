"""The facts of every preset game, for `deepcfr games`."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from deepcfr.errors import GameError
from deepcfr.evaluation.limits import refusal
from deepcfr.games.betting import PublicTree, build_tree
from deepcfr.games.ladder import LADDERS, LadderRules
from deepcfr.games.ladder_tree import ladder_tree
from deepcfr.games.presets import ClassSource, OpenSpielSource, load_source
from deepcfr.games.rules import PRESETS, PokerRules


def game_facts(definitions: list[str]) -> list[dict[str, Any]]:
    """Sizes, unit and reach of exact evaluation, one record for each preset and each game-definition file.

    A betting tree that is too large to list has None as its number of decisions.
    """
    facts = []
    for name in [*PRESETS, *LADDERS, *definitions]:
        source = load_source(name)
        if isinstance(source, OpenSpielSource | ClassSource):
            raise GameError(f"'{name}' is no game definition.")
        rules, tree = source.deck, _tree(source)
        facts.append(
            {
                "game": rules.name,
                "unit": rules.milli_unit,
                "deck": f"{rules.num_ranks}x{rules.num_suits}",
                "hole_cards": rules.hole_cards,
                "board_cards": list(rules.board_cards),
                "betting_decisions": tree.num_decisions if tree else None,
                "boards": rules.count_boards()[-1],
                "exact_evaluation": tree is not None and refusal(rules) is None,
            }
        )
    return facts


def _tree(source: PokerRules | LadderRules) -> PublicTree | None:
    """The betting tree; None if it is too large to list."""
    try:
        return build_tree(source) if isinstance(source, PokerRules) else ladder_tree(source)
    except GameError:
        return None


def show_games(facts: list[dict[str, Any]], console: Console) -> None:
    """The facts as a table."""
    table = Table("game", "deck", "hole", "board", "decisions", "boards", "unit", "exact")
    for f in facts:
        decisions = f["betting_decisions"]
        table.add_row(
            f["game"], f["deck"], str(f["hole_cards"]), "+".join(map(str, f["board_cards"])),
            "many" if decisions is None else f"{decisions:,}", f"{f['boards']:,}", f["unit"],
            "yes" if f["exact_evaluation"] else "no",
        )  # fmt: skip
    console.print(table)
