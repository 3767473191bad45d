"""The figures of docs/fhp.md: rows become tables, and the pages show what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import fhp_learning as learning

ROOT = Path(__file__).parents[2]


def row(setting: str, t: int, nash_conv: float, **others: Any) -> dict[str, Any]:
    """A recorded row."""
    return {
        "setting": setting, "recipe": "aa", "hardware": "Abacus, 1 of 2 cores", "seed": 0, "commit": "c" * 40,
        "command": "deepcfr train fhp", "torch": "2.0", "note": "", "t": t, "nodes_touched": 12_340_001,
        "evaluated": 5_600_000, "sgd_samples": 78_900_000, "seconds": 90.0, "nash_conv": nash_conv, **others,
    }  # fmt: skip


def test_seeds_of_one_recipe_are_averaged_and_other_recipes_are_not() -> None:
    seeds = [row("strength", 40, nash_conv, seed=seed) for seed, nash_conv in enumerate((30.0, 33.0, 36.0))]
    slow = row("strength", 40, 20.0, recipe="bb", seconds=600.0)
    first, second = learning.learning_table([*seeds, slow])[2:4]
    assert first.startswith("| strength (1), 3 seeds | 40 |")
    assert first.endswith("| 33.00 (30.00 to 36.00) | – |")
    assert second.startswith("| strength (2) | 40 |")
    assert "| 10.0 | Abacus, 1 of 2 cores | 20.00 |" in second


def test_of_a_seed_measured_at_two_commits_the_newest_counts() -> None:
    old = [row("strength", 20, 60.0), row("strength", 40, 50.0)]
    new = row("strength", 40, 45.0, commit="d" * 40)
    lines = learning.learning_table([*old, new])
    assert [line for line in lines if line.startswith("| strength")] == [
        "| strength | 40 | 12.4 | 1.5 | Abacus, 1 of 2 cores | 45.00 | – |"
    ]


def test_the_pages_show_what_is_recorded() -> None:
    for path, text in learning.pages(ROOT / "docs").items():
        assert path.read_text(encoding="utf-8") == text
