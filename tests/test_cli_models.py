"""`deepcfr models` lists the shipped models with what their files and cards say."""

import shlex
import shutil
from pathlib import Path

import pytest

from command_line import deepcfr, problem
from deepcfr.cli import parse_command
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.run import record
from deepcfr.run.folder import RunFolder
from deepcfr.run.listing import model_facts
from deepcfr.run.metrics import read_metrics
from deepcfr.run.record import shipped_agents
from deepcfr.web.site import open_site

MODELS = Path(__file__).parents[1] / "models"
NAMES = ["fhp", "fhp-cfr-d", "fhp-faithful", "fhp-paper", "hulh", "hunl-200", "kuhn", "leduc"]
BY_INTEREST = ["hunl-200", "hulh", "fhp-cfr-d", "fhp", "fhp-faithful", "fhp-paper", "leduc", "kuhn"]


def test_every_shipped_model_is_listed_with_its_figures_and_its_card() -> None:
    listed = deepcfr("models", MODELS, "--json").json["models"]
    assert [Path(facts["model"]).name for facts in listed] == BY_INTEREST
    for facts in listed:
        path = Path(facts["model"])
        assert (path / "card.md").read_text().startswith(f"# {path.name}\n")
        last = read_metrics(path / "metrics.jsonl")[-1]
        assert (facts["iterations"], facts["nodes_touched"]) == (last["iteration"], last["total_nodes_touched"])
        card = facts["card"]
        command = "train" if card["policy"].startswith("average network") else "solve"
        assert facts["recipe"].startswith(f"deepcfr {command} {facts['game']} ")
        assert f"--config models/{path.name}/config.toml --out runs/{path.name}`" in card["recipe"]
        assert facts["command"] in card["made with"]
        assert card["size"].startswith(f"{facts['size'] / 1e6:.2f} MB")
        if facts["game"] in ("hulh", *BET_SIZE_GAMES):  # no exact evaluation
            assert facts["nash_conv"] is None
            stated = "{:g} ± {:g} mbb/g".format(*facts["at_least"])
            assert card["a local best response gains"].startswith(f"{stated} a seat")
            assert f"(local best response {stated})" in facts["strength"]
            assert "exact NashConv" not in card
            continue
        assert facts["nash_conv"] == last["evaluation"]["nash_conv"]
        assert f"(exploitability {facts['nash_conv'] / 2:.2f} {facts['unit']}, exact)" in facts["strength"]
        assert card["exact NashConv"] == f"{float(card['exact NashConv'].split()[0]):.3f} {facts['unit']}"
        assert float(card["exact NashConv"].split()[0]) == pytest.approx(facts["nash_conv"], abs=0.01)


def test_shipped_agents_have_names_that_need_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [facts["model"] for facts in deepcfr("models", "--json").json["models"]] == BY_INTEREST
    exact = deepcfr("exploitability", "kuhn", "--json").json
    assert exact["nash_conv"] == pytest.approx(
        read_metrics(MODELS / "kuhn/metrics.jsonl")[-1]["evaluation"]["nash_conv"]
    )
    assert list(open_site((), "own", pytest.fail).runs) == NAMES
    refused = problem(deepcfr("exploitability", "nobody"))
    assert "does not hold a run" in refused
    assert f"Shipped agents are {', '.join(NAMES)}." in refused


def test_an_agent_of_the_larger_package_is_named_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("deepcfr.run.record.shipped_agents", lambda: {"kuhn": MODELS / "kuhn"})
    monkeypatch.setattr(record, "shipped_agents", lambda: {"kuhn": MODELS / "kuhn"})
    for name in record.LARGER:
        refused = problem(deepcfr("exploitability", name))
        assert f"'{name}' is in the package of larger agents: pip install ./packages/agents in a clone." in refused
    assert "larger" not in problem(deepcfr("exploitability", "nobody"))
    made = (MODELS.parent / "packages/agents/setup.py").read_text()
    assert f"AGENTS = {record.LARGER!r}".replace("'", '"') in made


def test_agents_of_other_packages_are_added_and_hide_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("kuhn", "another"):
        shutil.copytree(MODELS / "leduc", tmp_path / name)
    monkeypatch.setattr(record, "_other_folders", lambda: [tmp_path, tmp_path / "nowhere"])
    found = shipped_agents()
    assert list(found) == sorted([*NAMES, "another"])
    assert (found["another"], found["kuhn"]) == (tmp_path / "another", MODELS / "kuhn")


def test_a_folder_with_the_name_of_a_shipped_agent_wins_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(MODELS / "kuhn", tmp_path / "leduc")
    monkeypatch.chdir(tmp_path)
    found = deepcfr("strategy", "leduc", "K", "--json")
    assert found.json["game"] == "kuhn"
    assert found.err == "deepcfr: 'leduc' is the folder here, and not the shipped agent of that name.\n"
    assert deepcfr("strategy", "kuhn", "K", "--json").err == ""


def test_the_table_names_game_figure_and_recipe() -> None:
    shown = deepcfr("models", MODELS).out
    for facts in model_facts(MODELS):
        (row,) = (line for line in shown.splitlines() if line.startswith("│") and f"{facts['model']} " in line)
        figure = "not measured" if facts["nash_conv"] is None else f"{facts['nash_conv']:.2f} {facts['unit']}"
        assert figure in row
        assert f"{facts['iterations']:,}" in row
        assert f"{facts['model']}: {facts['title']} ({facts['about']})." in shown
        assert all(facts[part] in shown for part in ("strength", "made", "recipe"))


def test_the_recipe_of_a_model_is_a_command_of_this_version_and_its_checkpoint_is_valid(tmp_path: Path) -> None:
    folder = tmp_path / "models of others"  # a name that the shell splits
    folder.mkdir()
    for name in NAMES:
        (folder / name).symlink_to(MODELS / name)
    for facts in (*model_facts(MODELS), *model_facts(folder)):
        name = Path(facts["model"]).name
        command = parse_command(shlex.split(facts["recipe"])[1:])
        run = RunFolder.open(MODELS / name)
        assert command.run_config() == run.config
        assert command.out == Path("runs") / name
        assert run.checkpoint(pytest.fail).iteration == read_metrics(run.metrics_path)[-1]["iteration"]


def test_what_a_perfect_opponent_wins_is_told_in_the_unit_of_the_game(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "hulh", tmp_path / "hulh")
    card = tmp_path / "hulh" / "card.md"
    card.write_text(card.read_text().replace("64.2 ± 25.3", "20.2 ± 25.3"))  # which may be 0
    assert "is not known (local best response 20.2 ± 25.3 mbb/g)" in model_facts(tmp_path)[0]["strength"]
    told = {facts["game"]: facts["strength"] for facts in model_facts(MODELS)}
    assert told["kuhn"] == (
        "A perfect opponent wins 0.52 antes in 100 hands from it (exploitability 5.21 mA/g, exact). "
        "Always folding loses 100."
    )
    assert told["hulh"] == (
        "A perfect opponent wins about 6.42 big blinds or more in 100 hands from it "
        "(local best response 64.2 ± 25.3 mbb/g). Always folding loses 75."
    )
    assert told["hunl-200"] == (  # a bound below zero tells nothing
        "How much a perfect opponent wins from it is not known (local best response -19 ± 88 mbb/g). "
        "Always folding loses 75."
    )


def test_a_model_without_evaluation_card_and_environment_is_listed_too(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "kuhn", tmp_path / "kuhn")
    for name in ("card.md", "environment.json", "metrics.jsonl"):
        (tmp_path / "kuhn" / name).unlink()
    (facts,) = model_facts(tmp_path)
    assert (facts["nash_conv"], facts["command"], facts["card"], facts["iterations"]) == (None, None, {}, 0)
    shown = deepcfr("models", tmp_path).out
    assert "not measured" in shown
    assert "How much a perfect opponent wins from it was not measured." in shown
