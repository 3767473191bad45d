"""The page `docs/statements.md`: every statement of the papers and its verdict.

The statements are in experiments/statements.toml. A statement that a study tests has the verdict of the study's page; the
others have one of their own, with the pages that show it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from deepcfr.core.errors import ConfigError
from deepcfr.core.files import write_atomically
from experiments.pages import paragraphs, table

PAGE = "statements.md"
LIST = Path(__file__).with_name("statements.toml")
VERDICTS = ("does not hold", "out of reach", "not shown", "holds")  # a row with several counts as the first of them
_UNSAID = "cannot be said"  # of a study whose runs are missing

_OPENING = """# Every statement of the papers

`python -m experiments report` writes this page from `experiments/statements.toml` and from the pages of the experiments,
whose rules for verdicts are on [their page](reproduction.md). *fig2 quick 1* is the first statement of study `fig2` at its
quick budget.
*Out of reach* means that a test at the paper's size needs more than this project has had; the estimate says how much.
"""


class Judged(NamedTuple):
    """The verdict of a study's page on one statement."""

    verdict: str
    game: str  # "on" a game
    link: str  # to the section, from another page


_NOT_RUN = Judged("not shown", "", "")


def write_statements(docs: Path) -> Path:
    """Write the page from the pages in `docs`; returns it."""
    path = docs / PAGE
    text = "\n".join(statement_lines(tomllib.loads(LIST.read_text(encoding="utf-8"))["paper"], judged_statements(docs)))
    write_atomically(path, (text.rstrip("\n") + "\n").encode())
    return path


def judged_statements(docs: Path) -> dict[str, Judged]:
    """The numbered statements of the pages of the experiments, by study, budget and number, such as `fig2 quick 1`."""
    found = {}
    for page in sorted(docs.glob("reproduction*.md")):
        study = game = anchor = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if heading := re.fullmatch(r"## (.*)", line):
                anchor = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
                game = "on " + heading[1].rpartition(", ")[2].removesuffix(")")
            if command := re.search(r"`python -m experiments reproduce (\S+) --budget (\w+)`", line):
                study = f"{command[1]} {command[2]}"
            if number := re.match(r"(\d+)\. .*?\*\*(.+?)\*\*", line):
                verdict = number[2].lower()
                said = "not shown" if verdict == _UNSAID else verdict
                found[f"{study} {number[1]}"] = Judged(said, game, f"{page.name}#{anchor}")
    return found


def statement_lines(papers: list[dict[str, Any]], judged: dict[str, Judged]) -> Iterator[str]:
    """The page, given the papers of the list and the verdicts of the studies."""
    yield from paragraphs(_OPENING.rstrip("\n"))
    rows = [[_row(statement, judged) for statement in paper["statement"]] for paper in papers]
    worst = [min(verdicts, key=VERDICTS.index) for some in rows for verdicts, _ in some]
    counts = (f"{worst.count(verdict)} {verdict}" for verdict in reversed(VERDICTS))
    yield from paragraphs(f"Of {len(worst)} statements: {', '.join(counts)}.")
    for paper, some in zip(papers, rows, strict=True):
        yield from paragraphs(f"## {paper['name']}", paper["about"])
        yield from table(("section", "statement", "verdict", "evidence"), (cells for _, cells in some))


def _row(statement: dict[str, Any], judged: dict[str, Judged]) -> tuple[list[str], tuple[str, ...]]:
    """The verdicts of a statement, and the cells of its row."""
    if ("verdict" in statement) == ("judged" in statement):
        raise ConfigError(f"The statement '{statement['text']}' needs either a verdict or studies that judge it.")
    evidence = [statement["evidence"]] if "evidence" in statement else []
    if "verdict" in statement:
        verdicts, words = [statement["verdict"]], [f"**{statement['verdict']}**"]
    else:
        found = {name: judged.get(name, _NOT_RUN) for name in statement["judged"]}
        verdicts = [one.verdict for one in found.values()]
        words = [f"**{one.verdict}** {one.game}".rstrip() for one in found.values()]
        links = (f"[{name}]({one.link})" if one.link else f"{name} (not run)" for name, one in found.items())
        evidence.insert(0, ", ".join(links))
    if unknown := set(verdicts) - set(VERDICTS):
        raise ConfigError(f"'{unknown.pop()}' is no verdict on '{statement['text']}': {', '.join(VERDICTS)} are.")
    return verdicts, (statement["where"], statement["text"], "; ".join(dict.fromkeys(words)), "; ".join(evidence))
