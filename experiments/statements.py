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
from experiments.filled import load
from experiments.pages import paragraphs, table

PAGE = "statements.md"
LIST = Path(__file__).with_name("statements.toml")
VERDICTS = ("does not hold", "out of reach", "not shown", "holds")  # a row with several counts as the first of them
_UNSAID = "cannot be said"  # of a study whose runs are missing

_OPENING = """# Every statement of the papers

Does what the papers say hold here? Each row has a statement, our verdict, and what we measured, with a link to the
figures. No other page decides. **Holds** and **does not hold** need 95 % intervals that do not overlap, if runs are random
([rules](reproduction.md)); everything else is **not shown**. *Out of reach* means that a test needs more than this project
has had. Several verdicts in a row are of the parts of a statement, or of games, in that order; the worst one counts.
Names such as *fig2* are studies, at their quick budget unless *paper* is added. `python -m experiments report`
writes this page.
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
    judged = judged_statements(docs) | recorded_statements()
    text = "\n".join(statement_lines(tomllib.loads(LIST.read_text(encoding="utf-8"))["paper"], judged))
    write_atomically(path, (text.rstrip("\n") + "\n").encode())
    return path


def recorded_statements() -> dict[str, Judged]:
    """The statements of studies that are kept as a record only, by study, budget and number, such as `lin-fig5 quick 1`."""
    studies = {name: study for name, study in load("lin_studies.json").items() if name != "note"}
    return {
        f"{name} {number}": Judged(verdict, f"on {study['game']}", study["link"])
        for name, study in studies.items()
        for number, verdict in enumerate(study["verdicts"], start=1)
    }


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
    counts = [(verdict, str(worst.count(verdict))) for verdict in reversed(VERDICTS)]
    yield from table(("verdict", "statements"), [*counts, ("all", str(len(worst)))])
    for paper, some in zip(papers, rows, strict=True):
        yield from paragraphs(f"## {paper['name']}", paper["about"])
        yield from table(("section", "statement", "verdict", "what we measured"), (cells for _, cells in some))


def _short(name: str) -> str:
    """A study's name in a link: without the number of the statement, and without the quick budget."""
    return name.rpartition(" ")[0].removesuffix(" quick")


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
        links = {one.link or name: (name, one.link) for name, one in reversed(found.items())}  # one for each section
        shown = (f"[{_short(name)}]({link})" if link else f"{name} (not run)" for name, link in links.values())
        evidence.insert(0, ", ".join(reversed(list(shown))))
    if unknown := set(verdicts) - set(VERDICTS):
        raise ConfigError(f"'{unknown.pop()}' is no verdict on '{statement['text']}': {', '.join(VERDICTS)} are.")
    return verdicts, (statement["where"], statement["text"], "; ".join(dict.fromkeys(words)), "; ".join(evidence))
