"""The pages `docs/reproduction*.md`: results of the papers' experiments from run folders, with missing runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from deepcfr.core.errors import ConfigError
from deepcfr.core.files import write_atomically
from experiments.grid import flat_settings
from experiments.pages import bullets, command, made_by, not_run, paragraphs, sections_of, table
from experiments.reproduction.figures import study_picture, theorem_picture
from experiments.reproduction.quick_game import game_lines
from experiments.reproduction.results import ArmResult, StudyResult, at_equal_nodes, at_iteration, final, read_study
from experiments.reproduction.verdicts import arm_verdict, judge_statement, trends
from experiments.studies import STUDIES, Budget, Published, Statement, StudyName, change_of, shared_config
from experiments.theorem1.page import read_theorem, theorem_page
from experiments.theorem1.runs import GAMES
from experiments.theorem1.runs import NAME as THEOREM

PAGE, FHP_PAGE = "reproduction.md", "reproduction-fhp.md"
THEOREM_PAGE, FAMILY_PAGE = "reproduction-theorem1.md", "reproduction-family.md"
FIGURES = "figures"
SEARCH: StudyName = "family-search"  # the study that only searches a setting

_OPENING = """# Reproduction of the paper's experiments

`python -m experiments report` writes this page from the run folders of `python -m experiments reproduce NAME`.
*The paper* is Brown, Lerer, Gross and Sandholm, "Deep Counterfactual Regret Minimization", ICML 2019. Pages of their own
have its [setting on flop hold'em itself](reproduction-fhp.md), its [table 1](reproduction-table1.md) and its
[Theorem 1](reproduction-theorem1.md).

* NashConv is exact: over all hands and all boards. Exploitability is half of it.
* *Ours* is the mean over seeds with Student's 95 % interval, at the last iteration. *Ratio* is that mean over the
  reference arm's.
* *The paper* has values on FHP only, in mbb/g. On another game, compare ratios and not values. A cell is empty if
  neither the text nor a curve gives the value.
* A statement *holds* if the means have the stated order and the 95 % intervals do not overlap. This is stricter than
  a difference that is significant at 5 %. It *does not hold* if the means have the opposite order and the intervals
  do not overlap. All other cases are *not shown*, whatever the order of the means. For "not higher" and "levels off"
  the whole 95 % interval of the difference (Welch's) must be inside the allowed range.
* If an arm has more seeds than others, they may have been added because fewer seeds left a statement open. Its *holds* is
  then slightly less certain than the intervals say.
* Nodes touched are histories visited by traversals or episodes; full-width solvers count differently ([fhp.md](fhp.md)).
* A repeated run on the same machine has the same results, apart from Monte Carlo CFR in several threads. Only the tables
  under *Cost* change.
"""
_FHP_OPENING = """# The paper's setting on flop hold'em itself

`python -m experiments report` writes this page from the run folders of
`python -m experiments reproduce fhp --budget paper`. How statements are judged is on
[the page of the other figures](reproduction.md). These runs take hours to days on two cores, and minutes to half an
hour on an H100. A run that is not at its end counts as far as it was evaluated, and the end of each section says where it
stopped. *Seeds* and *ours* are of the runs that came furthest; the table by iteration has all of them. There is no ratio
until the reference is at its end. NashConv is exact: over all hands and all 22,100 flops, because suits are raw.
"""
_FAMILY_OPENING = """# Relatives of Deep CFR

`python -m experiments report` writes this page from the run folders of
`python -m experiments reproduce family --budget quick`, of equal iterations, and of
`family-leduc`, `family-fhp`, `family-search`, `family-mini` and `family-kuhn`, of equal time. NashConv
is exact, and exploitability is half of it. Intervals are Student's 95 % over seeds; how arms are compared is on
[the page of the figures](reproduction.md). A published value counts as one number: a result differs from it if its
interval does not contain it. The methods are on pages of their own: [DREAM](algorithms/dream.md),
[ESCHER](algorithms/escher.md), [bootstrapped advantages](algorithms/vr-deep-cfr.md),
[RCFR and Double Neural CFR](algorithms/regression-cfr.md), [SD-CFR](algorithms/sd-cfr.md),
[policy gradients](algorithms/ppo.md), [NFSP](algorithms/nfsp.md).
"""


def write_reproduction(root: Path, out: Path) -> list[Path]:
    """Write the pages and their figures into `out`, from the run folders under `root`; returns the files.

    Pages and sections without any run do not change, so runs of different machines may be reported one by one. But the
    pages of the relatives and of growing studies have only what is under `root`. Figures of studies without a finished run
    are not drawn. Raises ConfigError if there are no runs and a page would be lost.
    """
    every = [read_study(root, study, budget) for study in STUDIES.values() for budget in study.plans]
    family = [result for result in every if not result.study.figure and result.started]
    results = [result for result in every if result.study.figure and not result.study.growing]
    growing = [result for result in every if result.study.growing and result.study.figure and result.started]
    theorems = [read_theorem(root, game) for game in GAMES]
    pictures = {found.game: f"{FIGURES}/{THEOREM}-{found.game}.svg" for found in theorems if found.arms}
    started = any(result.started for result in results)
    pages: dict[str, Iterator[str]] = {}

    def old(page: str) -> str:
        return (out / page).read_text(encoding="utf-8") if (out / page).exists() else ""

    if growing:
        pages[FHP_PAGE] = chain([_FHP_OPENING], _overview(growing), *map(_study_section, growing))
    if family:
        pages[FAMILY_PAGE] = chain([_FAMILY_OPENING], _one_table(family), *map(_family_section, family))
    if pictures:
        pages[THEOREM_PAGE] = iter([theorem_page(theorems)])
    if not (started or pages) and (out / PAGE).exists():
        raise ConfigError(
            f"There are no runs under '{root}', and '{out / PAGE}' would be replaced by an empty page. "
            "'python -m experiments reproduce NAME' makes runs, --studies names another folder of them."
        )
    if started or not pages:
        pages[PAGE] = page_lines(results, root, old(PAGE))
    files = {name: ("\n".join(lines).rstrip("\n") + "\n").encode() for name, lines in sorted(pages.items())}
    for result in every:
        if result.started and result.study.name != SEARCH and any(arm.runs for arm in result.arms.values()):
            files[f"{FIGURES}/{_picture_name(result)}.svg"] = study_picture(result)
    for theorem in theorems:
        if theorem.arms:
            files[pictures[theorem.game]] = theorem_picture(theorem)
    for name, data in files.items():
        write_atomically(out / name, data)
    return [out / name for name in files]


def page_lines(results: Sequence[StudyResult], root: Path, old: str = "") -> Iterator[str]:
    """The page of the figures: a summary of all statements, the settings, and each study.

    A study without runs keeps its section of the page `old`, and its rows of the summary.
    """
    sections = sections_of(old)
    shown = [result for result in results if result.started or _title(result) in sections]
    yield _OPENING
    yield from _overview(shown, old.splitlines())
    if any(result.budget == "quick" for result in shown):
        yield from game_lines(root)
        yield from settings_lines("quick")
    for result in shown:
        if result.started:
            yield from _study_section(result)
        else:
            yield from sections[_title(result)]
    yield from not_run((_title(result), _command(result)) for result in results if result not in shown)


def _overview(results: Sequence[StudyResult], old: Sequence[str] = ()) -> Iterator[str]:
    yield from paragraphs("## Statements of the paper")
    if not results:
        yield from paragraphs("No study has been run yet.")
        return
    rows = chain.from_iterable(_verdicts(result, old) for result in results)
    yield from table(("study", "budget", "game", "statement", "verdict"), rows)


def _verdicts(result: StudyResult, old: Sequence[str]) -> Iterator[Sequence[str]]:
    """A study's rows of the summary, or those of the page `old` if it has no runs."""
    study = (result.study.name, result.budget, result.game)
    if not result.started:
        yield from (line.strip("| ").split(" | ") for line in old if line.startswith(f"| {' | '.join(study)} |"))
        return
    for statement in result.plan.statements:
        yield *study, statement.text, f"**{judge_statement(statement, result).outcome}**"


def settings_lines(budget: Budget) -> Iterator[str]:
    """The settings of a budget's studies that differ from those at the paper's scale."""
    here, there = (flat_settings(shared_config(one)) for one in (budget, "paper"))
    yield from paragraphs("The quick studies share these settings, which differ from those at the paper's scale:")
    rows = (
        (f"`{key}`", str(here[key]), str(there[key]))
        for key in sorted(here)
        if here[key] != there[key] and not key.startswith(("runtime.", "evaluation."))
    )
    yield from table(("setting", "quick", "paper"), rows)


def _study_section(result: StudyResult) -> Iterator[str]:
    arms = result.arms.values()
    runs = [run for arm in arms for run in arm.runs.values()]
    yield from paragraphs(f"## {_title(result)}", f"{result.study.about} Command: `{_command(result)}`.")
    if runs:
        yield from paragraphs(f"![{result.study.title}]({FIGURES}/{_picture_name(result)}.svg)")
    for number, statement in enumerate(result.plan.statements, start=1):
        found = judge_statement(statement, result)
        why = "" if found.outcome in ("holds", "cannot be said") else _why(statement, result)
        yield f"{number}. {statement.text} ({statement.source}) **{found.outcome.capitalize()}**: {found.words}.{why}"
    yield ""
    theirs = "the paper" if result.study.figure else "published"
    head = ("arm", "changed", "seeds", f"ours, {result.unit}", "ratio", theirs, "how read", "iterations",
            "nodes touched", "verdict")  # fmt: skip
    yield from table(head, (_result_row(name, result) for name in result.arms))
    if result.study.growing:
        yield from _curves(result)
    yield from paragraphs("Cost:")
    yield from table(("arm", "wall time of a run, min", "hardware", "commit", "command"), map(_cost_row, arms))
    hours = sum(run.seconds for run in runs) / 3600
    yield from paragraphs(f"All {len(runs)} runs of this study, one after another: {hours:.1f} hours.")
    if any(arm.missing for arm in arms):
        yield from paragraphs("Missing:")
        yield from bullets(_missing(result))


def _one_table(family: Sequence[StudyResult]) -> Iterator[str]:
    """Every method on every game."""
    results = [result for result in family if result.study.name != SEARCH]
    labels = {name: arm.arm.label for result in results for name, arm in result.arms.items()}
    heads, columns = ["method"], [labels]
    for result in results:
        heads.append(f"{result.game} ({result.study.name}), {result.unit}")
        columns.append({name: _ending(arm) for name, arm in result.arms.items()})
        nodes, equal = at_equal_nodes(result)
        if equal:
            heads.append(f"the same after {nodes:,} nodes")
            columns.append({name: str(value) for name, value in equal.items()})
    yield from paragraphs(
        "## Every method on every game",
        "Exact NashConv at the end of the runs of each study below. Where runs were evaluated before their ends, the next "
        "column is at equal nodes, those of the shortest run, interpolated between evaluations; it is empty for methods "
        "that were not evaluated before that, and for RCFR, which counts a node once for each hand of a board, against all "
        "hands of the opponent. Runs of `family` have 200 iterations, but PPO, MMD and NFSP have more and NFSP forty times "
        "the nodes. Others have equal time of one thread: 17 minutes on FHP, three on fhp-mini and one on Leduc and Kuhn "
        "poker; on the last three, runs are evaluated at their ends only. How settings were found is said below: "
        "sizes of an iteration were searched on fhp-mini, and only its runs use what was found. DREAM has SD-CFR's "
        "average, but its average network on FHP. Deep CFR samples histories here: the defaults of `deepcfr train leduc` "
        "and `deepcfr train fhp`, traversals of boards, have results of their own "
        "([Leduc](algorithms/regression-cfr.md#ours-against-theirs), [FHP](fhp.md#results)).",
    )
    yield from table(heads, ([column.get(name, "") for column in columns] for name in labels))


def _family_section(result: StudyResult) -> Iterator[str]:
    """A study of the relatives; the search has a row for each method instead of one for each arm."""
    if result.study.name != SEARCH:
        yield from _study_section(result)
        return
    yield from paragraphs(f"## {_title(result)}", f"{result.study.about} Command: `{_command(result)}`.")
    methods: dict[str, dict[str, ArmResult]] = {}
    for arm in result.arms.values():
        factor = arm.arm.name.rpartition("-x")[2]
        methods.setdefault(arm.arm.label.removesuffix(f" × {factor}"), {})[factor] = arm
    factors = list(dict.fromkeys(chain.from_iterable(methods.values())))
    rows = []
    for label, arms in methods.items():
        means = {factor: value.mean for factor, arm in arms.items() if (value := final(arm))}
        best = min(means, key=means.__getitem__) if len(means) == len(factors) else "missing"
        rows.append((label, *(_ending(arms[factor]) for factor in factors), best))
    yield from table(("method", *(f"× {factor}, {result.unit}" for factor in factors), "lowest at"), rows)
    runs = [run for arm in result.arms.values() for run in arm.runs.values()]
    _, commits, hardware = made_by(run.path for run in runs)
    hours = sum(run.seconds for run in runs) / 3600
    yield from paragraphs(f"{len(runs)} runs, {hours:.1f} hours one after another; {hardware}; commit {commits}.")


def _ending(arm: ArmResult) -> str:
    """NashConv at an arm's end."""
    value = final(arm)
    return str(value) if value else "missing"


def _curves(result: StudyResult) -> Iterator[str]:
    """NashConv at every evaluated iteration, as far as the runs have come, and the paper's."""
    found = {
        name: {point.iteration for run in arm.runs.values() for point in run.curve} for name, arm in result.arms.items()
    }
    read = {name: dict(arm.arm.published.curve) if arm.arm.published else {} for name, arm in result.arms.items()}
    columns = sorted(set().union(*found.values(), *read.values()))
    if not any(found.values()):
        return
    yield from paragraphs(f"Exact NashConv in {result.unit} by iteration:")
    rows = []
    for name, arm in result.arms.items():
        if found[name]:
            rows.append((arm.arm.label, *(str(at_iteration(arm, t) or "") for t in columns)))
        if read[name]:
            rows.append(
                (f"{arm.arm.label}, the paper", *(f"{read[name][t]:g}" if t in read[name] else "" for t in columns))
            )
    yield from table(("arm", *(f"t = {t}" for t in columns)), rows)


def _why(statement: Statement, result: StudyResult) -> str:
    """Possible reasons why a statement was not shown: the progress of the curves, and differences from the paper."""
    moves = list(trends(statement, result))
    moved = f" Between the last two evaluations NashConv went, on average, {', '.join(moves)}." if moves else ""
    return moved + (f" {statement.otherwise}" if statement.otherwise else "")


def _title(result: StudyResult) -> str:
    study = result.study
    figures = f"Figure{'s' * (' and ' in study.figure)} {study.figure}: " if study.figure else ""
    return f"{figures}{study.title} ({study.name}, {result.budget}, {result.game})"


def _picture_name(result: StudyResult) -> str:
    return f"{result.study.name}-{result.budget}"


def _command(result: StudyResult) -> str:
    return command(result.study.name, result.budget)


def _result_row(name: str, result: StudyResult) -> tuple[str, ...]:
    arm = result.arms[name]
    other = result.arms[result.plan.reference]
    value, reference = final(arm), final(other) if arm.ended and other.ended else None
    ratio = f"{value.mean / reference.mean:.2f}" if value and reference and reference.mean else ""
    runs = arm.furthest
    iterations = sorted({run.curve[-1].iteration for run in runs})
    nodes = sorted(run.curve[-1].nodes for run in runs)
    return (
        arm.arm.label,
        change_of(arm.arm),
        str(len(runs)),
        _ending(arm),
        ratio,
        *_published(arm.arm.published),
        ", ".join(f"{count:,}" for count in iterations),
        f"{sum(nodes) / len(nodes):,.0f}" if nodes else "",
        arm_verdict(name, result),
    )


def _published(published: Published | None) -> tuple[str, str]:
    if published is None:
        return "", ""
    if published.nash_conv is not None:
        return f"{published.nash_conv:g}", published.how
    return (f"{published.ratio:g} × the reference" if published.ratio is not None else ""), published.how


def _cost_row(arm: ArmResult) -> tuple[str, ...]:
    minutes = [run.seconds / 60 for run in arm.runs.values()]
    span = "" if not minutes else f"{min(minutes):.1f}" + (f" to {max(minutes):.1f}" if len(minutes) > 1 else "")
    commands, commits, hardware = made_by(run.path for run in arm.runs.values())
    return arm.arm.label, span, hardware, commits, commands


def _missing(result: StudyResult) -> Iterator[str]:
    """Every run that is not in the tables, with the reason; seeds of an arm with the same reason are joined."""
    for arm in result.arms.values():
        reasons: dict[str, list[str]] = {}
        for seed, reason in arm.missing.items():
            reasons.setdefault(reason, []).append(str(seed))
        for reason, seeds in reasons.items():
            yield f"{arm.arm.label}, seed {', '.join(seeds)}: {reason}."
