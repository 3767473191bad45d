"""The page of all statements: verdicts are of the studies' pages, of records that are compared, or of tests."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from deepcfr.core.errors import ConfigError
from experiments.filled import ROOT
from experiments.intervals import contrast, interval_of
from experiments.kept_runs import KEPT
from experiments.reproduction.results import final, read_study
from experiments.statements import (
    compared,
    judged_statements,
    papers,
    statement_lines,
    write_statements,
)
from experiments.studies import STUDIES

DOCS = Path(__file__).parents[2] / "docs"
SECTION = """## Figure 2: one (fig2, quick, fhp-mini)

Some words. Command: `python -m experiments reproduce fig2 --budget quick`.

1. First. (section 6) **Holds**: 1.0 ± 0.1, 2.0 ± 0.1.
2. Second. (section 6) **Cannot be said**: no finished run.
"""
STATEMENTS = [statement for paper in papers() for statement in paper["statement"]]


def paper(**statement: Any) -> list[dict[str, Any]]:
    return [{"name": "P", "about": "A.", "statement": [{"where": "6", "text": "T.", **statement}]}]


def test_verdicts_are_those_of_the_studies_pages(tmp_path: Path) -> None:
    (tmp_path / "reproduction.md").write_text(SECTION)
    found = judged_statements(tmp_path)
    assert [(name, one.verdict, one.game) for name, one in found.items()] == [
        ("fig2 quick 1", "holds", "on fhp-mini"), ("fig2 quick 2", "not shown", "on fhp-mini"),
    ]  # fmt: skip
    assert found["fig2 quick 1"].link == "reproduction.md#figure-2-one-fig2-quick-fhp-mini"
    lines = list(statement_lines(paper(judged=["fig2 quick 1", "fig2 quick 2"], evidence="E"), found))
    assert {"| holds | 0 |", "| not shown | 1 |", "| all | 1 |"} < set(lines)
    link = "(reproduction.md#figure-2-one-fig2-quick-fhp-mini)"
    assert lines[-2] == (f"| 6 | T. | **holds** on fhp-mini; **not shown** on fhp-mini | [fig2]{link}; E |")


def test_a_study_that_has_not_been_run_shows_nothing() -> None:
    assert list(statement_lines(paper(judged=["fig2 quick 1"]), {}))[-2] == (
        "| 6 | T. | **not shown** | fig2 quick 1 (not run) |"
    )


def test_a_statement_has_one_source_and_by_hand_nothing_holds() -> None:
    for wrong in ({"verdict": "maybe"}, {}, {"verdict": "not shown", "judged": ["fig2 quick 1"]}, {"verdict": "holds"}):
        with pytest.raises(ConfigError, match="verdict"):
            list(statement_lines(paper(**wrong), {}))


@pytest.mark.parametrize(
    ("less", "than", "options", "outcome"),
    [
        ([1.0, 2.0], [3.0, 4.0], {"chance": False}, "holds"),
        ([1.0, 5.0], [3.0, 4.0], {"chance": False}, "not shown"),
        ([5.0], [3.0], {"chance": False}, "does not hold"),
        ([5.0], [3.0], {"chance": False, "times": 2.0}, "holds"),
        ([1.0, 1.1, 1.2], [2.0, 2.1, 2.2], {}, "holds"),
        ([2.0, 2.1, 2.2], [1.0, 1.1, 1.2], {}, "does not hold"),
        ([1.0, 2.0, 3.0], [2.0, 2.1, 2.2], {}, "not shown"),
        ([1.0], [2.0, 2.1, 2.2], {}, "not shown"),  # one seed
        ([10.0, 10.1, 10.2], ["equal"], {"margin": 0.15}, "holds"),
        ([10.0, 11.0, 12.0], ["equal"], {"margin": 0.15}, "not shown"),
    ],
)
def test_figures_are_compared_by_the_rule_of_the_page(
    less: list[Any], than: list[Any], options: dict[str, Any], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = {f"r{index}": value for index, value in enumerate([*less, *than])}
    monkeypatch.setattr("experiments.statements.RECORDS", figures)
    names = list(figures)
    stated = [10.0] if than == ["equal"] else names[len(less) :]
    assert compared(names[: len(less)], stated, **options).outcome == outcome  # type: ignore[arg-type]


def test_every_verdict_has_records_or_a_test() -> None:
    studies = {name.split()[0] for one in STATEMENTS for name in one.get("judged", ())}
    kept = {path.name for path in KEPT.iterdir()}
    assert studies <= kept
    for name in (one["test"] for one in STATEMENTS if "test" in one):
        file, _, function = name.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    for page in DOCS.glob("reproduction*.md"):
        (tmp_path / page.name).write_bytes(page.read_bytes())
    assert write_statements(tmp_path).read_text() == (DOCS / "statements.md").read_text()


def test_figures_of_evidence_stand_on_the_linked_pages_or_follow_from_records() -> None:
    base = read_study(KEPT, STUDIES["fig2"], "quick").arms["base"]
    ablations = read_study(KEPT, STUDIES["fig4-left"], "quick").arms
    scratch, tuned = final(ablations["base"]), final(ablations["fine-tune"])
    assert scratch
    assert tuned
    less = contrast((1.5, scratch), (-1, tuned))
    fits = interval_of([run.fit_share / (1 - run.fit_share) for run in base.runs.values()])
    computed = {f"{fits}", f"{less.mean:.0f} ± {less.half:.0f}", "754 ± 87"}  # the last one is in search.json
    checked = 0
    for statement in STATEMENTS:
        evidence = statement.get("evidence", "")
        pages = "".join((DOCS / name).read_text(encoding="utf-8") for name in re.findall(r"\]\(([^)#]+)", evidence))
        for figure in re.findall(r"\d[\d,.]* ± \d[\d,.]*\d|\d ± \d", evidence):
            assert figure in computed or figure in pages.replace(".0 ±", " ±") or figure in pages, (
                figure,
                statement["text"],
            )
            checked += 1
    assert checked >= 15
