"""The page of all statements: verdicts come from the pages of the studies, and figures are on the pages named."""

from pathlib import Path
from typing import Any

import pytest

from deepcfr.core.errors import ConfigError
from experiments.statements import (
    judged_statements,
    statement_lines,
    write_statements,
)

DOCS = Path(__file__).parents[2] / "docs"
SECTION = """## Figure 2: one (fig2, quick, fhp-mini)

Some words. Command: `python -m experiments reproduce fig2 --budget quick`.

1. First. (section 6) **Holds**: 1.0 ± 0.1, 2.0 ± 0.1.
2. Second. (section 6) **Cannot be said**: no finished run.
"""


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


def test_a_statement_needs_one_verdict_of_the_known_ones() -> None:
    for wrong in ({"verdict": "maybe"}, {}, {"verdict": "holds", "judged": ["fig2 quick 1"]}):
        with pytest.raises(ConfigError, match="verdict"):
            list(statement_lines(paper(**wrong), {}))


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    for page in DOCS.glob("reproduction*.md"):
        (tmp_path / page.name).write_bytes(page.read_bytes())
    assert write_statements(tmp_path).read_text() == (DOCS / "statements.md").read_text()
