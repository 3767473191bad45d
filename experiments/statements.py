"""The page `docs/statements.md`: every statement of the papers and its verdict.

The statements are in experiments/statements.toml. A verdict is that of a study's page, of figures of records that are
compared here, or of a test of the suite. By hand a row can only be "not shown" or "out of reach".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from deepcfr.core.errors import ConfigError
from deepcfr.core.files import write_atomically
from experiments.filled import RECORDS, Filler
from experiments.intervals import Interval, contrast, interval_of
from experiments.kept_runs import KEPT
from experiments.pages import paragraphs, table
from experiments.reproduction.page import THEOREM_PAGE
from experiments.reproduction.verdicts import Judgement, Outcome
from experiments.studies import LEAST_SEEDS
from experiments.theorem1.page import read_theorem
from experiments.theorem1.runs import GAMES

PAGE = "statements.md"
LIST = Path(__file__).with_name("statements.toml")
VERDICTS = ("does not hold", "out of reach", "not shown", "holds")  # a row with several counts as the first of them
_BY_HAND = ("not shown", "out of reach")
_COMPARED = ("less", "than", "times", "margin", "chance", "unit")
_UNSAID = "cannot be said"  # of a study whose runs are missing

_OPENING = """# Every statement of the papers

Does what the papers say hold here? Each row has a statement, our verdict, and what we measured, with a link to the
figures. **Holds** and **does not hold** need three seeds or more and 95 % intervals that do not overlap, if runs are random
([rules](reproduction.md)); everything else is **not shown**, a single run above all. *Out of reach* means that a test needs
more than this project has had. A small game can show that a statement holds; only a study like the paper's in what matters
can refute it, so little is refuted here. Several verdicts in a row are of the parts of a statement, or of games, in that
order; the worst one counts. Names such as *fig2* are studies, at their quick budget unless *paper* is added.
`python -m experiments report` writes this page.
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
    judged = judged_statements(docs) | theorem_statements()
    text = "\n".join(statement_lines(papers(), judged))
    write_atomically(path, (text.rstrip("\n") + "\n").encode())
    return path


def papers() -> list[dict[str, Any]]:
    """The papers of the list, each with its statements."""
    return tomllib.loads(LIST.read_text(encoding="utf-8"))["paper"]


def theorem_statements() -> dict[str, Judged]:
    """Whether the measured regret stays below the bound of Theorem 1: of tables (1) and of Deep CFR (2), by game.

    Only where the bound is below the regret of uniform play, which a solver that never learns has.
    """
    found = {}
    for game in GAMES:
        result = read_theorem(KEPT, game)
        for number, arm in enumerate(arm for arm in result.arms if arm.points[-1].bound is not None):
            shown = arm.seeds >= LEAST_SEEDS and (arm.tested or arm.broken)
            verdict = "not shown" if not shown else "does not hold" if arm.broken else "holds"
            found[f"theorem1 {game} {number + 1}"] = Judged(verdict, f"on {game}", f"{THEOREM_PAGE}#on-{game}")
    return found


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
    kinds = [kind for kind in ("verdict", "judged", "less", "test") if kind in statement]
    if len(kinds) != 1:
        raise ConfigError(f"The statement '{statement['text']}' needs one of a verdict, studies, figures and a test.")
    evidence = [statement["evidence"]] if "evidence" in statement else []
    if "judged" in statement:
        found = {name: judged.get(name, _NOT_RUN) for name in statement["judged"]}
        verdicts = [one.verdict for one in found.values()]
        words = [f"**{one.verdict}** {one.game}".rstrip() for one in found.values()]
        links = {one.link or name: (name, one.link) for name, one in reversed(found.items())}  # one for each section
        shown = (f"[{_short(name)}]({link})" if link else f"{name} (not run)" for name, link in links.values())
        evidence.insert(0, ", ".join(reversed(list(shown))))
    else:
        if "less" in statement:
            judgement = compared(**{key: statement[key] for key in _COMPARED if key in statement})
            verdict, first = judgement.outcome, [judgement.words]
        elif "test" in statement:
            verdict, first = "holds", [f"`{statement['test'].partition('::')[0]}`"]
        else:
            verdict, first = statement["verdict"], []
            if verdict not in _BY_HAND:
                raise ConfigError(f"'{verdict}' is no verdict by hand on '{statement['text']}'.")
        evidence = [*first, *evidence]
        verdicts, words = [verdict], [f"**{verdict}**"]
    if unknown := set(verdicts) - set(VERDICTS):
        raise ConfigError(f"'{unknown.pop()}' is no verdict on '{statement['text']}': {', '.join(VERDICTS)} are.")
    return verdicts, (statement["where"], statement["text"], "; ".join(dict.fromkeys(words)), "; ".join(evidence))


def compared(
    less: list[str | float],
    than: list[str | float],
    times: float = 1.0,
    margin: float = 0.0,
    chance: bool = True,
    unit: str = "",
) -> Judgement:
    """The claim that the figures `less` are below `than` times a factor: fields of records (`filled.py`), or numbers.

    Without `chance`, as of solvers that sample nothing, they are compared one by one, and the claim holds if all are below.
    Otherwise they are of seeds, and judged as in studies; one number is stated and has no interval. With a `margin` the
    claim is that of `NotAbove`.
    """
    low, high = ([_figure(field) for field in fields] for fields in (less, than))
    high = [times * value for value in high]
    if not chance:
        below = [own < other for own, other in zip(low, high, strict=True)]
        outcome: Outcome = "holds" if all(below) else "not shown" if any(below) else "does not hold"
        figures = (", ".join(f"{v:,.0f}" if v >= 1000 else f"{v:.3g}" for v in values) for values in (low, high))
        return Judgement(outcome, " against ".join(figures) + f" {unit}".rstrip())
    stated = isinstance(than[0], int | float)
    own, other = interval_of(low), Interval(high[0], 0.0, LEAST_SEEDS) if stated else interval_of(high)
    against = f"{high[0]:,g}" if stated else str(other)
    words = f"{own} against {against} {unit}".rstrip()
    if min(own.count, other.count) < LEAST_SEEDS:
        return Judgement("not shown", words)
    gap = contrast((1, own), (-1 - margin, other))
    outcome = "holds" if gap.mean + gap.half < 0 else "does not hold" if gap.mean - gap.half > 0 else "not shown"
    if not margin and own.meets(other):
        outcome = "not shown"
    return Judgement(outcome, words)


def _figure(field: str | float) -> float:
    """A number of a record, or the number itself."""
    return float(Filler().get_field(field, (), RECORDS)[0] if isinstance(field, str) else field)
