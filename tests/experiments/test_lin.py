"""Lin's studies on small games: runs and matches are made once, and the tables say what they are and what Lin has."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from command_line import experiments, problem
from deepcfr.config import SolveConfig
from deepcfr.evaluation.exploitability import exploitability
from deepcfr.evaluation.intervals import interval_of
from deepcfr.ladder.policies import LadderTable
from deepcfr.policies.styles import STYLES
from deepcfr.report.matches import TournamentTerms
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.players import load_players
from experiments.lin.figures import lin_picture
from experiments.lin.page import LinResult, exact_values, gain, lin_page, read_lin, study_lines
from experiments.lin.runs import Progress, bot_config, jobs_of_seed, measures_of, recorded, run_lin
from experiments.studies import BUDGETS
from experiments.studies.lin import ENSEMBLES, LIN_STUDIES, MEMBERS, PROFITS, LinStudy
from ladder_games import TWO_ROUNDS
from report.conftest import Silent  # type: ignore[import-not-found]

DEALS = 60


class Watching(Silent):
    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None: ...


def tiny(folder: Path) -> dict[str, LinStudy]:
    """The studies with a small ladder game, whose hands lossless buckets tell apart, and with Leduc."""
    fields = {name: value for name, value in asdict(TWO_ROUNDS).items() if name != "name"}
    (folder / "two.toml").write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items()))
    ladder = {
        "game": str(folder / "two.toml"),
        "solve.abstraction": "lossless",
        "solve.iterations": 4,
        "solve.traversals": 20,
    }
    exact = {"game": "leduc", "solve.iterations": 80, "solve.traversals": 20, "evaluation.at": [20, 50]}
    studies = {}
    for name, study in LIN_STUDIES.items():
        plan = study.plans["quick"]
        bots, members = plan.bots, plan.members
        if study.kind == "exact":
            bots = tuple(bot for bot in bots if bot.name != "texture")  # which takes two hole cards
            members = tuple(replace(bot, changes={**bot.changes, "solve.iterations": 20}) for bot in members)
        size = exact if study.kind == "exact" else ladder
        small = replace(
            plan, settings={**plan.settings, **size}, bots=bots, members=members, deals=min(plan.deals, DEALS)
        )
        studies[name] = replace(study, plans={"quick": small})
    return studies


def made(root: Path, studies: dict[str, LinStudy], name: str, seeds: int) -> Progress:
    return run_lin(root, name, "quick", seeds, lambda _: Watching(), lambda _: None, studies)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, LinStudy]]:
    """A folder with all studies, two seeds of each."""
    root = tmp_path_factory.mktemp("lin")
    studies = tiny(root)
    for name, seeds in (("lin-fig5", 2), ("lin-fig7", 2), ("lin-fig8", 2), ("lin-exact", 2)):
        assert made(root, studies, name, seeds).finished  # type: ignore[arg-type]
    return root, studies


def read(place: tuple[Path, dict[str, LinStudy]], name: str) -> LinResult:
    return read_lin(place[0], name, "quick", place[1])


def text_of(result: LinResult) -> str:
    return "\n".join(study_lines(result, "picture.svg"))


# Running


def test_what_is_there_is_not_made_again(place: tuple[Path, dict[str, LinStudy]]) -> None:
    root, studies = place
    assert made(root, studies, "lin-fig5", 2) == Progress(ran=0, there=8, measured=0, finished=True)
    assert made(root, studies, "lin-fig8", 2) == Progress(
        ran=0, there=8, measured=0, finished=True
    )  # those of figure 7
    file = root / "lin-fig5" / "quick" / "measured" / "s1-y1-against-y3.json"
    before = file.read_text()
    file.unlink()
    assert made(root, studies, "lin-fig5", 2).measured == 1
    assert json.loads(file.read_text())["result"]["value"] == json.loads(before)["result"]["value"]
    file.write_text(before.replace(f'"deals": {DEALS}', '"deals": 5'))  # a match on other terms
    assert made(root, studies, "lin-fig5", 2).measured == 1


def test_what_is_recorded_is_what_the_players_gain(place: tuple[Path, dict[str, LinStudy]]) -> None:
    root, studies = place
    lin = root / "lin" / "quick"
    five, seven, eight = (TournamentTerms(hands=DEALS, seed=seed) for seed in (1, 1, 6))  # that of the bots
    y2, y4 = load_players([str(lin / f"{name}-s1") for name in ("y2", "y4")], "average", pytest.fail)
    found = recorded(root, studies["lin-fig5"], "quick", 1, ("y2", "y4"))
    assert found is not None
    assert found["value"] == pytest.approx(five.play(y2, y4).value)
    members = ",".join(str(lin / f"y1-s{seed}") for seed in range(4, 8))
    names = [
        f"ensemble:sum:{members}",
        f"aggressive:ensemble:sum:{members}",
        f"tight:{lin / 'y1-s6'}",
        str(lin / "y1-s6"),
    ]
    four, braver, tight, one = load_players(names, "average", pytest.fail)
    found = recorded(root, studies["lin-fig7"], "quick", 1, ("aggressive",))
    assert found is not None
    assert found["value"] == pytest.approx(seven.play(four, braver).value)
    found = recorded(root, studies["lin-fig8"], "quick", 1, ("2", "tight"))
    assert found is not None
    assert found["value"] == pytest.approx(eight.play(one, tight).value)
    assert isinstance(one, LadderTable)
    assert one.initial is not None  # the bots start from win rates, as Lin's


def test_ensembles_are_measured_at_equal_nodes(place: tuple[Path, dict[str, LinStudy]]) -> None:
    root, studies = place
    folder = root / "lin-exact" / "quick"
    members = ",".join(str(folder / f"member-s{seed}") for seed in range(4))
    (four,) = load_players([f"ensemble:mixture:{members}"], "average", pytest.fail)
    found = recorded(root, studies["lin-exact"], "quick", 0, ("ensemble-mixture",))
    assert found is not None
    assert found["nash_conv"] == pytest.approx(exploitability(four).nash_conv)  # type: ignore[arg-type]
    member, whole = (RunFolder.open(folder / name).config for name in ("member-s3", "none-s0"))
    assert MEMBERS * member.iterations == whole.iterations
    result = read(place, "lin-exact")
    values = exact_values(result)
    # what a best response gains from a mixture is at most the members' mean
    mixed = recorded(root, studies["lin-exact"], "quick", 0, ("ensemble-mixture",))
    assert mixed is not None
    alone = [result.metrics["member"][seed][-1]["evaluation"]["nash_conv"] for seed in range(4)]
    assert mixed["nash_conv"] <= sum(alone) / 4 + 1e-6
    assert values["member"].count == 8
    assert values["ensemble-sum"].count == values["none"].count == 2


# The report


def test_figure_5_has_ours_beside_lins_in_all_cells(place: tuple[Path, dict[str, LinStudy]]) -> None:
    result = read(place, "lin-fig5")
    page = text_of(result)
    found = gain(result, ("y1", "y2"))
    assert found is not None
    values = [recorded(*(place[0], place[1]["lin-fig5"]), "quick", seed, ("y1", "y2"))["value"] for seed in range(2)]  # type: ignore[index]
    assert found == interval_of(values)
    assert f"| y1 | - | {found.mean:+,.0f} ± {found.half:,.0f} (-300) |" in page
    assert f"| y2 | {-found.mean:+,.0f} ± {found.half:,.0f} (+300) | - |" in page
    assert "| y4 |" in page
    assert "9 runs, one after another" in page  # a third run of y1 is there from figure 7
    assert lin_picture(result).startswith(b"<svg ")


def test_figures_7_and_8_have_all_styles(place: tuple[Path, dict[str, LinStudy]]) -> None:
    seven, eight = read(place, "lin-fig7"), read(place, "lin-fig8")
    for style in STYLES:
        assert f"\n| {style} | " in text_of(seven)
        assert f"\n| {style} | " in text_of(eight)
    assert "| 2 | +1,749 |" in text_of(seven)
    value = gain(seven, ("initial",))
    assert value is not None
    assert f"| initial | {value.mean:+,.0f} ± {value.half:,.0f} | 2 |  |" in text_of(seven)
    assert "* Seed 2: 7 not measured." in text_of(seven)
    (row,) = [line for line in text_of(eight).splitlines() if line.startswith("| random |")]
    assert row.split(" | ")[2] == "8"  # bots
    assert "Run `y1-s8`: not run." in text_of(eight)


def test_the_exact_table_compares_every_change_with_none(place: tuple[Path, dict[str, LinStudy]]) -> None:
    result = read(place, "lin-exact")
    page = text_of(result)
    values = exact_values(result)
    last = [lines[-1]["evaluation"]["nash_conv"] for lines in result.metrics["decay"].values()]
    assert values["decay"] == interval_of(last)
    # in Leduc nobody loses 26.6 antes, so y4 is y1 there
    assert values["y4"] == values["none"]
    assert "| y4 on payoffs | " in page
    assert "| +0.0 ± " in next(line for line in page.splitlines() if line.startswith("| y4 on payoffs"))
    for arm in ENSEMBLES:
        assert f"| {ENSEMBLES[arm].label} | {values[arm]} | " in page
    assert math.isfinite(values["all"].half)
    early = exact_values(result, early=True)
    assert early["none"].mean > values["none"].mean
    assert "all" not in early
    assert lin_picture(result).startswith(b"<svg ")


def test_what_was_not_run_is_named_with_its_command(tmp_path: Path) -> None:
    studies = tiny(tmp_path)
    results = [read_lin(tmp_path, name, "quick", studies) for name in studies]
    page = "\n".join(lin_page(results, "figures"))
    for name in LIN_STUDIES:
        assert f"`python -m experiments reproduce {name} --budget quick`" in page
    assert "|---" not in page


def test_a_study_without_runs_here_keeps_its_section_of_the_page(
    place: tuple[Path, dict[str, LinStudy]], tmp_path: Path
) -> None:
    whole = "\n".join(lin_page([read(place, name) for name in ("lin-fig5", "lin-exact")], "figures"))
    there = [read(place, "lin-fig5"), read_lin(tmp_path, "lin-exact", "quick", place[1])]
    assert "\n".join(lin_page(there, "figures", whole)) == whole
    assert "\n".join(lin_page(there, "figures")) != whole


# The plans


def test_plans_are_valid_and_arms_differ_by_their_change() -> None:
    for study in LIN_STUDIES.values():
        for budget in BUDGETS:
            plan = study.plans[budget]
            configs = [job.config for job in jobs_of_seed(Path("r"), study, budget, 1)]
            assert all(isinstance(config, SolveConfig) for config in configs)
            assert len(set(map(repr, configs))) == len(configs)
            assert all(bot_config(plan, bot, 0).runtime.threads == 1 for bot in (*plan.bots, *plan.members))
            assert len(measures_of(Path("r"), study, budget, 0)) == {
                "shapes": len(PROFITS), "ensemble": len(STYLES), "members": MEMBERS * len(STYLES),
                "exact": len(ENSEMBLES),
            }[study.kind]  # fmt: skip
            assert all(config.solve.weighting == ("uniform" if study.name.endswith("-plain") else "linear")
                       for config in configs if isinstance(config, SolveConfig))  # fmt: skip
    runs = {name: {job.path for job in jobs_of_seed(Path("r"), LIN_STUDIES[name], "quick", 0)} for name in LIN_STUDIES}
    assert runs["lin-fig7"] == runs["lin-fig8"]
    assert runs["lin-fig7-plain"] == runs["lin-fig8-plain"]
    assert not runs["lin-fig7"] & runs["lin-fig7-plain"]
    together = bot_config(
        LIN_STUDIES["lin-all"].plans["quick"], LIN_STUDIES["lin-all"].plans["quick"].members[0], 0
    ).solve
    assert (together.reward_shape, together.initial, together.exploration_start) == ("y2", "win-rates", 0.01)


def test_the_command_refuses_what_it_cannot_run(tmp_path: Path) -> None:
    outcome = experiments("reproduce", "lin-fig5", "--seeds", 0, "--out", tmp_path)
    assert "--seeds must be between 1 and 1,000, but is 0." in problem(outcome)
