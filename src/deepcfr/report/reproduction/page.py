"""The pages `docs/reproduction*.md`: the papers' experiments as the run folders have them, with what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import get_args

from deepcfr.errors import ConfigError
from deepcfr.files import write_atomically
from deepcfr.report.charts import require_matplotlib
from deepcfr.report.lin.figures import lin_picture
from deepcfr.report.lin.page import lin_page, picture_name, read_all_lin
from deepcfr.report.reproduction.figures import Kind, study_picture, theorem_picture
from deepcfr.report.reproduction.quick_game import game_lines
from deepcfr.report.reproduction.results import ArmResult, StudyResult, Warn, final, read_study
from deepcfr.report.reproduction.verdicts import arm_verdict, judge_statement, trends
from deepcfr.report.studies import BUDGETS, STUDIES, Budget, Published, Statement, change_of, shared_config
from deepcfr.report.table1.page import read_tables, table_page
from deepcfr.report.theorem1.page import read_theorem, theorem_section
from deepcfr.report.theorem1.runs import NAME as THEOREM
from deepcfr.runs.study import flat_settings

PAGE, TABLE_PAGE, LIN_PAGE = "reproduction.md", "reproduction-table1.md", "reproduction-lin.md"
FIGURES = "figures"

_OPENING = """# Reproduction of the paper's experiments

Written by `deepcfr report` from run folders alone, which `deepcfr reproduce NAME` makes. *The paper* is Brown, Lerer, Gross
and Sandholm, "Deep Counterfactual Regret Minimization", ICML 2019. Its table 1 has
[a page of its own](reproduction-table1.md).

* NashConv is exact: over all hands and all boards. Exploitability is half of it.
* *Ours* is the mean over seeds with Student's 95 % interval, at the last iteration. *Ratio* is that mean over the
  reference arm's.
* *The paper* has values on FHP only, in mbb/g; on another game they compare by ratio, not by value. What neither its text
  nor a curve that was read tells is left empty.
* A statement *holds* if every order that it asks for is there and the 95 % intervals do not meet, which is more than a
  difference that is significant at 5 %. It *does not hold* if the opposite order is there and they do not meet. Everything
  between is *not shown*, whichever way round the means are. Of "not higher" and "levels off" the whole 95 % interval of the
  difference (Welch's) must be on the right side of what is allowed.
* Where an arm has more seeds than others, they may have been added because fewer had left a statement open; its *holds* is
  then a little less certain than the intervals say.
* Nodes touched are histories visited by traversals or episodes; full-width solvers count something else ([fhp.md](fhp.md)).
* Results are the same whenever a run is repeated on a machine, but for Monte Carlo CFR in several threads; only the tables
  under *Cost* are of the day.
"""


def write_reproduction(root: Path, out: Path, warn: Warn) -> list[Path]:
    """Write the pages and their figures (SVG and PNG) into `out`, from the run folders under `root`; returns the files.

    A page without any run behind it is left as it is, so runs of different machines may be reported one by one. Figures of
    studies without a finished run are not drawn. Raises ConfigError if matplotlib is missing, or if there is no run at all
    to report and a page that would be lost.
    """
    require_matplotlib()
    results = [read_study(root, study, budget, warn) for study in STUDIES.values() for budget in BUDGETS]
    theorem, tables, lin = read_theorem(root), read_tables(root), read_all_lin(root)
    started = bool(theorem.arms) or any(result.started for result in results)
    pages: dict[str, Iterator[str]] = {}
    if tables:
        pages[TABLE_PAGE] = table_page(tables)
    if any(found.started for found in lin):
        pages[LIN_PAGE] = lin_page(lin, FIGURES)
    if not (started or pages) and (out / PAGE).exists():
        raise ConfigError(
            f"There are no runs under '{root}', and '{out / PAGE}' would be replaced by an empty page. "
            "'deepcfr reproduce NAME' makes runs, --studies names another folder of them."
        )
    if started or not pages:
        picture = f"{FIGURES}/{THEOREM}.svg" if theorem.arms else None
        pages[PAGE] = chain(page_lines(results, root), theorem_section(theorem, picture))
    files = {name: ("\n".join(lines).rstrip("\n") + "\n").encode() for name, lines in sorted(pages.items())}
    for kind in get_args(Kind):
        for result in results:
            if result.started and any(arm.runs for arm in result.arms.values()):
                files[f"{FIGURES}/{_picture_name(result)}.{kind}"] = study_picture(result, kind)
        if theorem.arms:
            files[f"{FIGURES}/{THEOREM}.{kind}"] = theorem_picture(theorem, kind)
        for found in lin:
            if found.started:
                files[f"{FIGURES}/{picture_name(found)}.{kind}"] = lin_picture(found, kind)
    for name, data in files.items():
        write_atomically(out / name, data)
    return [out / name for name in files]


def page_lines(results: Sequence[StudyResult], root: Path) -> Iterator[str]:
    """The page up to the theorem: statements of all studies at a glance, what they stand on, and each study."""
    yield _OPENING
    started = [result for result in results if result.started]
    yield from _overview(started)
    if any(result.budget == "quick" for result in started):
        yield from game_lines(root)
        yield from settings_lines("quick")
    for result in started:
        yield from _study_section(result)
    absent = [result for result in results if not result.started]
    if absent:
        yield "## Not run"
        yield ""
        yield from (f"* {_title(result)}: `{_command(result)}`" for result in absent)
        yield ""


def _overview(results: Sequence[StudyResult]) -> Iterator[str]:
    yield "## Statements of the paper"
    yield ""
    if not results:
        yield "No study has been run yet."
    else:
        yield "| study | budget | game | statement | verdict |"
        yield "|---|---|---|---|---|"
    for result in results:
        for statement in result.plan.statements:
            outcome = judge_statement(statement, result).outcome
            yield f"| {result.study.name} | {result.budget} | {result.game} | {statement.text} | **{outcome}** |"
    yield ""


def settings_lines(budget: Budget) -> Iterator[str]:
    """What all studies of a budget have otherwise than those at the paper's scale, setting by setting."""
    here, there = (flat_settings(shared_config(one)) for one in (budget, "paper"))
    yield "What the quick studies share, where it is not what the studies at the paper's scale have:"
    yield ""
    yield "| setting | quick | paper |"
    yield "|---|---|---|"
    for key in sorted(here):
        if here[key] != there[key] and not key.startswith(("runtime.", "evaluation.")):
            yield f"| `{key}` | {here[key]} | {there[key]} |"
    yield ""


def _study_section(result: StudyResult) -> Iterator[str]:
    yield f"## {_title(result)}"
    yield ""
    yield f"{result.study.about} Command: `{_command(result)}`."
    yield ""
    if any(arm.runs for arm in result.arms.values()):
        yield f"![{result.study.title}]({FIGURES}/{_picture_name(result)}.svg)"
        yield ""
    for number, statement in enumerate(result.plan.statements, start=1):
        found = judge_statement(statement, result)
        why = "" if found.outcome in ("holds", "cannot be said") else _why(statement, result)
        yield f"{number}. {statement.text} ({statement.source}) **{found.outcome.capitalize()}**: {found.words}.{why}"
    yield ""
    ours = f"ours, {result.unit}"
    yield f"| arm | changed | seeds | {ours} | ratio | the paper | how read | iterations | nodes touched | verdict |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    yield from (_result_row(name, result) for name in result.arms)
    yield ""
    yield "Cost:"
    yield ""
    yield "| arm | wall time of a run, min | hardware | commit | command |"
    yield "|---|---|---|---|---|"
    yield from (_cost_row(arm) for arm in result.arms.values())
    yield ""
    rows = [run.row for arm in result.arms.values() for run in arm.runs.values()]
    yield f"All {len(rows)} runs of this study, one after another: {sum(row.seconds for row in rows) / 3600:.1f} hours."
    yield ""
    yield from _missing(result)


def _why(statement: Statement, result: StudyResult) -> str:
    """What may be behind a statement that is not seen: how far the curves had come, and what differs from the paper."""
    moves = list(trends(statement, result))
    moved = f" Between the last two evaluations NashConv went, on average, {', '.join(moves)}." if moves else ""
    return moved + (f" {statement.otherwise}" if statement.otherwise else "")


def _title(result: StudyResult) -> str:
    return f"Figure {result.study.figure}: {result.study.title} ({result.study.name}, {result.budget}, {result.game})"


def _picture_name(result: StudyResult) -> str:
    return f"{result.study.name}-{result.budget}"


def _command(result: StudyResult) -> str:
    return f"deepcfr reproduce {result.study.name} --budget {result.budget}"


def _result_row(name: str, result: StudyResult) -> str:
    arm = result.arms[name]
    value, reference = final(arm), final(result.arms[result.plan.reference])
    ratio = f"{value.mean / reference.mean:.2f}" if value and reference and reference.mean else ""
    runs = arm.runs.values()
    iterations = sorted({run.row.iterations for run in runs})
    nodes = sorted(run.row.nodes_touched for run in runs)
    cells = (
        arm.arm.label,
        change_of(arm.arm),
        str(len(runs)),
        str(value) if value else "missing",
        ratio,
        *_published(arm.arm.published),
        ", ".join(f"{count:,}" for count in iterations),
        f"{sum(nodes) / len(nodes):,.0f}" if nodes else "",
        arm_verdict(name, result),
    )
    return _row(cells)


def _published(published: Published | None) -> tuple[str, str]:
    if published is None:
        return "", ""
    if published.nash_conv is not None:
        return f"{published.nash_conv:g}", published.how
    return (f"{published.ratio:g} × the reference" if published.ratio is not None else ""), published.how


def _cost_row(arm: ArmResult) -> str:
    rows = [run.row for run in arm.runs.values()]
    minutes = [row.seconds / 60 for row in rows]
    span = "" if not rows else f"{min(minutes):.1f}" + (f" to {max(minutes):.1f}" if len(rows) > 1 else "")
    cells = (
        arm.arm.label,
        span,
        _distinct([row.hardware for row in rows]),
        _distinct([row.commit[:10] + ("+changes" if row.commit.endswith("+changes") else "") for row in rows]),
        _distinct([f"`{row.command}`" for row in rows]),
    )
    return _row(cells)


def _distinct(texts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(texts))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _missing(result: StudyResult) -> Iterator[str]:
    """Every run that is not in the tables, and why; seeds of an arm that say the same together."""
    said = []
    for arm in result.arms.values():
        reasons: dict[str, list[str]] = {}
        for seed, reason in arm.missing.items():
            reasons.setdefault(reason, []).append(str(seed))
        said += [
            f"* {arm.arm.label}, seed {', '.join(seeds)}: {reason.rstrip('.')}." for reason, seeds in reasons.items()
        ]
    if said:
        yield "Missing:"
        yield ""
        yield from said
        yield ""
