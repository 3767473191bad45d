"""The pages `docs/reproduction*.md`: results of the papers' experiments from run folders, with missing runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from deepcfr.core.errors import ConfigError
from deepcfr.core.files import write_atomically
from experiments.filled import load
from experiments.grid import flat_settings
from experiments.intervals import Interval, interval_of
from experiments.pages import NOT_THERE, bullets, command, paragraphs, sections_of, table
from experiments.reproduction.figures import study_picture, theorem_picture
from experiments.reproduction.quick_game import game_lines
from experiments.reproduction.results import (
    ArmResult,
    Point,
    StudyResult,
    at_equal_nodes,
    at_iteration,
    final,
    read_study,
)
from experiments.reproduction.verdicts import judge_statement
from experiments.studies import LEAST_SEEDS, STUDIES, Budget, Published, StudyName, shared_config
from experiments.theorem1.page import read_theorem, theorem_page
from experiments.theorem1.runs import GAMES, NAME as THEOREM

PAGE, FHP_PAGE = "reproduction.md", "reproduction-fhp.md"
THEOREM_PAGE, FAMILY_PAGE = "reproduction-theorem1.md", "reproduction-family.md"
FIGURES = "figures"
SEARCH: StudyName = "family-search"  # the study that only searches a setting

_OPENING = """# Experiments of the Deep CFR paper

The figures of *the paper* (Brown, Lerer, Gross and Sandholm, "Deep Counterfactual Regret Minimization", ICML 2019), run
again on a small flop hold'em, `fhp-mini`. Other pages have its [setting on flop hold'em itself](reproduction-fhp.md), its
[table 1](hulh.md#table-1), its [Theorem 1](reproduction-theorem1.md) and
[relatives of Deep CFR](reproduction-family.md). `python -m experiments report` writes this page from the runs.

* NashConv is exact. Exploitability is half of it.
* *Ours* is the mean over seeds with Student's 95 % interval, at the last iteration. *Ratio* is that mean over the
  reference arm's.
* *The paper* has values on FHP only, in mbb/g, from its text or read off a curve. Here compare ratios and not values.
* A statement *holds* if the means have the stated order and the 95 % intervals do not overlap. It *does not hold* if
  they have the opposite order and do not overlap, in a study that is like the paper in what matters. All other cases are
  *not shown*. For "not higher" and "levels off" the whole 95 % interval of the difference (Welch's) must be inside the
  allowed range. Arms with the same iterates are judged by their differences, seed by seed. For "fewer nodes" every run
  must need so many.
* Nodes touched are histories visited by traversals or episodes; full-width solvers count differently
  ([fhp.md](fhp.md#how-costs-are-counted)).
* `experiments/studies` has the settings of every arm, `experiments/results/records` the runs with commit, hardware and
  metrics.
"""
_FHP_OPENING = """# The paper's setting on flop hold'em itself

External sampling, cards as dealt, fits from scratch, as in sections 5.1 and 5.2 of the paper, without hand strength.
The rules for statements are on [the page of the other figures](reproduction.md). No run came to the paper's 450
iterations: a run counts as far as it was evaluated. The first table has the runs that came furthest, beside the paper's
values at its end; compare equal t in the second. A figure without an interval is of one seed. NashConv is exact.

**Two curves of the paper.** One has 10,000 traversals an iteration (figure 3, left), one 4,000 SGD steps a fit (figure
3, middle), which section 5.2 gives for all of FHP. They do not agree: 154 against 75 at t = 50, 40 against 65 at the
end, where the first one is like 8,000 to 16,000 steps of the second (43 and 37). So the second has more traversals, it
seems, and the first more steps. The values are those that the notes of github.com/romaf5/headsup-poker read off the
figures; the paper prints none.

**At equal t ours is 1.5 to 2.5 times the first curve.** By figure 2 an iteration of it touches 0.94 to 1.23 million
nodes, one of ours 0.47 to 0.57 million. At equal nodes ours is 0.9 to 1.2 times the paper's where that is at t = 50,
and 1.3 to 1.7 times where it is at t = 100: the gap grows.

**More traversals close most of it at t = 50, and little at t = 100.** 25,000 touch 1.1 to 1.2 million nodes an
iteration, and three seeds of them are clearly lower at t = 20. One seed went on with 1,000 steps: 1.15 times the
paper's at t = 50, where 10,000 traversals have 1.46 times, but 1.8 times (125.2, predicted 98) at t = 100, where 10,000
have 2.0 times. By then the steps of a fit limit, it seems: in figure 3, middle, 1,000 of them end at 110.

**Tables (figure 2).** At t = 20 tables have touched as many nodes. There 1,000 steps are ahead of 2,000 buckets, far ahead
of 20,000 and of no abstraction, and behind 200 buckets, which end highest of the three.

**Early fits learn their samples by heart.** To t = 20, fits of at most 10 passes over the memory (`advantage.passes`)
have half the steps of 1,000 a fit, and the one seed is below 1,000 and 4,000 steps. With 25,000 traversals 2 passes are
no better than 1,000 steps at t = 20. Targets in chips, which are fitted less closely, come to [a tenth
less](levers.md) in one seed of 1,000 steps, no more than a run differs from its repetition.

**The average loses little.** In one run with Appendix C's network at t = 20, and in the game that deals 1,000 of the
22,100 flops, the policy network has 352.0 mbb/g (352.8 on all), the exact average of its iterates (SD-CFR) 354.1, and a
policy fit of 20,000 steps of 20,000 345.6; predicted was a tenth at most (`experiments/results/averages.json`).
"""
_FAMILY_OPENING = """# Relatives of Deep CFR compared

Fifteen methods on four games (SD-CFR on three), by exact NashConv (exploitability is half of it), without hand
strength. Intervals are Student's 95 % over seeds; a figure without one is of one seed. *Published* is of others.
`python -m experiments report` writes this page; `experiments/results/records` has every run. Pages of the methods:
[DREAM](algorithms/dream.md), [ESCHER](algorithms/escher.md), [bootstrapped advantages](algorithms/vr-deep-cfr.md),
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
        pages[FHP_PAGE] = chain([_FHP_OPENING], *map(_study_section, growing))
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
    """The page of the figures: the settings, and each study. A study without runs keeps its section of the page `old`."""
    sections = sections_of(old)
    shown = [result for result in results if result.started or _title(result) in sections]
    yield _OPENING
    if not shown:
        yield from paragraphs("No study has been run yet.")
    if any(result.budget == "quick" for result in shown):
        yield from game_lines(root)
        yield from settings_lines("quick")
    for result in shown:
        if result.started:
            yield from _study_section(result)
        else:
            yield from sections[_title(result)]
    if waiting := [f"{result.study.name} {result.budget}" for result in results if result not in shown]:
        yield from paragraphs("## Not run", f"These studies have no runs: {', '.join(waiting)}.")


def settings_lines(budget: Budget) -> Iterator[str]:
    """The settings of a budget's studies that differ from those at the paper's scale."""
    here, there = (flat_settings(shared_config(one)) for one in (budget, "paper"))
    changes = (
        f"`{key}` {here[key]} ({there[key]})"
        for key in sorted(here)
        if here[key] != there[key] and not key.startswith(("runtime.", "evaluation."))
    )
    yield from paragraphs(f"Settings of the quick studies, and those at the paper's scale: {', '.join(changes)}.")


def _study_section(result: StudyResult) -> Iterator[str]:
    yield from _heading(result)
    yield from _statements(result)
    head = ("arm", "seeds", f"ours, {result.unit}", "ratio", "the paper", "nodes touched", "iterations")
    rows = [_result_row(name, result) for name in result.arms]
    columns = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    yield from table([column[0] for column in columns], zip(*(column[1:] for column in columns), strict=True))
    if result.study.growing:
        yield from _curves(result)
        yield from _predictions(result)
    if missing := list(_missing(result)):
        yield from paragraphs("Missing:")
        yield from bullets(missing)


def _statements(result: StudyResult) -> Iterator[str]:
    """The statements that the study tests, numbered, and an empty line; nothing if there are none."""
    for number, statement in enumerate(result.plan.statements, start=1):
        found = judge_statement(statement, result)
        why = (
            f" {statement.otherwise}"
            if statement.otherwise and found.outcome not in ("holds", "cannot be said")
            else ""
        )
        missing = found.outcome == "cannot be said" and result.study.growing  # as the list of missing runs says
        words = "" if missing else f": {found.words}"
        yield f"{number}. {statement.text} **{found.outcome.capitalize()}**{words}.{why}"
    if result.plan.statements:
        yield ""


def _heading(result: StudyResult) -> Iterator[str]:
    """Return what a study is about, its command and the time of its runs, and its picture."""
    runs = [run for arm in result.arms.values() for run in arm.runs.values()]
    hours = f": {len(runs)} runs, {sum(run.seconds for run in runs) / 3600:.1f} hours." if runs else "."
    yield from paragraphs(f"## {_title(result)}", f"{result.study.about} `{_command(result)}`{hours}")
    if runs and result.study.name != SEARCH:
        yield from paragraphs(f"![{result.study.title}]({FIGURES}/{_picture_name(result)}.svg)")


def _one_table(family: Sequence[StudyResult]) -> Iterator[str]:
    """Every method on every game."""
    results = [result for result in family if result.study.name != SEARCH]
    labels = {name: arm.arm.label for result in results for name, arm in result.arms.items()}
    labels |= {"default": "default of `deepcfr train`: Deep CFR on boards (on fhp with hand strength)"}
    defaults = _defaults()
    heads, columns = ["method"], [labels]
    for result in results:
        heads.append(f"{result.game} ({result.study.name}), {result.unit}")
        columns.append({name: _ending(arm) for name, arm in result.arms.items()})
        if result.study.name == f"family-{result.game}":
            columns[-1]["default"] = defaults.get(result.game, "")
        if any(arm.arm.published for arm in result.arms.values()):
            heads.append("published")
            theirs = {name: arm.arm.published for name, arm in result.arms.items()}
            columns.append({name: f"{one.nash_conv:g}" for name, one in theirs.items() if one and one.nash_conv})
        nodes, equal = at_equal_nodes(result)
        if equal:
            heads.append(f"the same after {nodes:,} nodes")
            columns.append({name: _cell(value) for name, value in equal.items()})
    yield from paragraphs(
        "## Every method on every game",
        "NashConv at the end of the runs. Where runs were evaluated before, the next column is at equal nodes, those of "
        "the shortest run; it is empty for methods without an evaluation before that, and for RCFR, whose nodes are "
        "counted for each hand of a board. Deep CFR samples histories here, but for the last row; hand strength is domain "
        "knowledge. NFSP was tuned on Kuhn and Leduc; PPO, MMD and ESCHER's values on Leduc; nothing on fhp.",
    )
    yield from table(heads, ([column.get(name, "") for column in columns] for name in labels))


def _defaults() -> dict[str, str]:
    """Return what the default agents of games have, and the time of their runs."""
    small, large = load("small_games.json"), load("make_run.json")
    found = {large["command"].split()[2]: f"{large['nash_conv']:,.1f} ({large['seconds']} s of two cores)"}
    for game in ("kuhn", "leduc"):
        runs = small[game]["runs"]
        seconds = [run.get("processor_seconds", run["seconds"]) for run in runs]
        value = interval_of([2 * run["exploitability"] for run in runs])
        found[game] = f"{value} ({sum(seconds) / len(seconds):,.0f} s of a core)"
    return found


def _family_section(result: StudyResult) -> Iterator[str]:
    """A study of the relatives, whose results are in the one table; the search says which size was lowest."""
    yield from _heading(result)
    yield from _statements(result)
    if result.study.name != SEARCH:
        return
    methods: dict[str, dict[str, ArmResult]] = {}
    for arm in result.arms.values():
        factor = arm.arm.name.rpartition("-x")[2]
        methods.setdefault(arm.arm.label.removesuffix(f" × {factor}"), {})[factor] = arm
    lowest: dict[str, list[str]] = {}
    for label, arms in methods.items():
        means = {factor: value.mean for factor, arm in arms.items() if (value := final(arm))}
        lowest.setdefault(min(means, key=means.__getitem__) if len(means) == len(arms) else "missing", []).append(label)
    yield from bullets(f"lowest × {factor}: {', '.join(labels)}." for factor, labels in lowest.items())


def _ending(arm: ArmResult) -> str:
    """NashConv at an arm's end."""
    value = final(arm)
    return _cell(value) if value else "missing"


def _cell(value: Interval) -> str:
    """A mean with its interval if there are several seeds."""
    return str(value).removesuffix(" (one seed)")


def _curves(result: StudyResult) -> Iterator[str]:
    """NashConv at every iteration where a run with networks was evaluated, and the paper's."""
    found = {
        name: {point.iteration for run in arm.runs.values() for point in run.curve} for name, arm in result.arms.items()
    }
    networks = (found[name] for name, arm in result.arms.items() if not arm.arm.tabular)
    read = {name: arm.arm.published.curves if arm.arm.published else () for name, arm in result.arms.items()}
    theirs = (point for curves in read.values() for curve in curves for point in curve.points)
    columns = sorted(set().union(*networks, (t for t, _ in theirs)))
    if not any(found.values()):
        return
    yield from paragraphs(f"Exact NashConv in {result.unit} by iteration:")
    rows = []
    for name, arm in result.arms.items():
        if len(found[name]) > 1 or read[name]:
            values = [at_iteration(arm, t) for t in columns]
            rows.append((arm.arm.label, *(_cell(value) if value else "" for value in values)))
        for curve in read[name]:
            points = dict(curve.points)
            rows.append((curve.label, *(f"{points[t]:g}" if t in points else "" for t in columns)))
    yield from table(("arm", *(f"t = {t}" for t in columns)), rows)


def _predictions(result: StudyResult) -> Iterator[str]:
    """The arms with a prediction, and what they came to."""
    rows = []
    for arm in result.arms.values():
        for t, text in arm.arm.predicted.items():
            there = [point for run in arm.runs.values() for point in run.curve if point.iteration == t]
            if not (value := at_iteration(arm, t)):
                continue
            nodes, hours = (sum(values) / len(there) for values in _sizes(there))
            found = (_cell(value), str(len(there)), f"{nodes:,.0f}", f"{hours:.1f}")
            rows.append((arm.arm.label, str(t), text, *found))
    if rows:
        yield from paragraphs("Predictions from before the runs, where there are runs. Hours include evaluations:")
        yield from table(("arm", "t", f"predicted, {result.unit}", "found", "seeds", "nodes touched", "hours"), rows)


def _sizes(points: Sequence[Point]) -> tuple[list[int], list[float]]:
    """The nodes and hours of points."""
    return [point.nodes for point in points], [point.seconds / 3600 for point in points]


def _title(result: StudyResult) -> str:
    study = result.study
    figures = f"Figure{'s' * (' and ' in study.figure)} " if study.figure[:1].isdigit() else ""
    figures += f"{study.figure}: " if study.figure else ""
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
    nodes = sorted(run.curve[-1].nodes for run in runs)
    return (
        arm.arm.label,
        str(len(runs)),
        _ending(arm),
        ratio,
        _published(arm.arm.published),
        f"{sum(nodes) / len(nodes):,.0f}" if nodes else "",
        _iterations(arm) if result.study.growing else "",
    )


def _iterations(arm: ArmResult) -> str:
    """The iterations at which an arm's furthest runs were last evaluated."""
    return ", ".join(f"{count:,}" for count in sorted({run.curve[-1].iteration for run in arm.furthest}))


def _published(published: Published | None) -> str:
    if published is None:
        return ""
    if published.nash_conv is not None:
        return f"{published.nash_conv:g}; {published.how}"
    return f"{published.ratio:g} × the reference; {published.how}" if published.ratio is not None else published.how


def _missing(result: StudyResult) -> Iterator[str]:
    """Every run that is not in the tables, by reason, but further seeds of an arm that has enough for an interval."""
    found: dict[str, list[str]] = {}
    for arm in result.arms.values():
        reasons: dict[str, list[str]] = {}
        for seed, reason in arm.missing.items():
            if seed not in arm.runs and (reason != NOT_THERE or len(arm.runs) < LEAST_SEEDS):
                reasons.setdefault(reason, []).append(str(seed))
        for reason, seeds in reasons.items():
            found.setdefault(f"seed {', '.join(seeds)} {reason}", []).append(arm.arm.label)
    yield from (f"{what}: {'; '.join(labels)}." for what, labels in found.items())
