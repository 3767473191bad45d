"""Every ablation is one setting: any configuration takes it, and runs that differ in it differ in what it names only."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from deepcfr import cli
from deepcfr.config import (
    CFRConfig,
    EvaluationConfig,
    MemoryConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
    config_problems,
    load_config,
    unread_settings,
)
from deepcfr.config.toml import RECIPES
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Samples
from deepcfr.defaults import default_config
from deepcfr.game.base import by_infoset
from deepcfr.game.presets import build_game, load_game, load_source
from deepcfr.network.memory import Memory
from deepcfr.run.costs import cost_notes
from deepcfr.solve.deep_cfr import DeepCFR
from small_runs import metrics, small_config, start
from tables import tabular

ABLATIONS: list[tuple[str, Any]] = [
    ("cfr.fallback", "uniform"),
    ("cfr.fallback", "highest"),
    ("cfr.weighting", "linear"),
    ("cfr.weighting", "uniform"),
    ("advantage.refit", "scratch"),
    ("advantage.refit", "fine-tune"),
    ("memory.kind", "reservoir"),
    ("memory.kind", "window"),
    ("sampling.traversals", 20),
    ("advantage.steps", 7),
    ("network.width", 12),
    ("network.suits", "raw"),
    ("network.suits", "canonical"),
    ("sampling.kind", "external"),
    ("sampling.kind", "outcome"),
    ("sampling.kind", "public-chance"),
    ("cfr.first_round", "table"),
    ("cfr.first_round", "network"),
    ("evaluation.policy", "average"),
    ("evaluation.policy", "sd-cfr"),
]
NEED_CARDS = {("sampling.kind", "public-chance"), ("cfr.first_round", "table")}  # not of OpenSpiel's games


def with_key(config: RunConfig, key: str, value: Any) -> RunConfig:
    section, name = key.split(".")
    if key == "sampling.kind":
        return replace(config, sampling=config.sampling.of_kind(value))
    return replace(config, **{section: replace(getattr(config, section), **{name: value})})  # type: ignore[arg-type]


def few(config: RunConfig, traversals: int = 30) -> RunConfig:
    """The configuration with little to sample."""
    sampling = config.sampling
    if sampling.kind == "public-chance":
        return replace(config, sampling=replace(sampling, boards=2, samples=8))
    return replace(config, sampling=replace(sampling, traversals=traversals))


def applies(config: RunConfig, key: str, value: Any) -> bool:
    """Whether a configuration takes the setting: some sums are for boards, which have no traversals of histories."""
    kept = config.advantage.bootstrapped and config.cfr.first_round == "table"
    on_boards = config.cfr.weighting == "discounted" or kept
    if key == "sampling.kind" and on_boards:
        return value == "public-chance"
    return key != "sampling.traversals" or config.sampling.kind != "public-chance"


def is_deep_cfr(path: Path) -> bool:
    return load_config(path).solver == "deep-cfr"


BASES = {
    **{f"{game} defaults": default_config(game) for game in ("fhp", "kuhn", "leduc", "hulh", "openspiel:leduc_poker")},
    **{path.name: load_config(path) for path in sorted(RECIPES.glob("*.toml")) if is_deep_cfr(path)},
}
GAMES = ("kuhn", "leduc", "openspiel:leduc_poker")  # small enough to play in every base


# Any configuration takes any of them


@pytest.mark.parametrize("base", BASES)
def test_no_ablation_contradicts_another_setting(base: str) -> None:
    assert list(config_problems(BASES[base])) == []
    assert list(unread_settings(BASES[base])) == []  # what ships is read
    for key, value in ABLATIONS:
        if applies(BASES[base], key, value):
            assert list(config_problems(with_key(BASES[base], key, value))) == [], (key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("sampling.kind", "external"), ("memory.kind", "window"), ("cfr.first_round", "network"), ("advantage.steps", 7)],
)
def test_an_ablation_is_one_option_of_the_command_line(key: str, value: Any) -> None:
    option = f"--{key.replace('_', '-')}"
    base, first = default_config("fhp"), []
    if key == "sampling.kind":  # other samplers cannot keep sums beside a table
        base, first = with_key(base, "advantage.target", "mean"), ["--advantage.target", "mean"]
    command = cli.parse_command(["train", "fhp", "--out", "runs/x", *first, option, str(value)])
    assert command.run_config() == with_key(base, key, value)


def test_networks_that_keep_sums_beside_a_table_need_boards() -> None:
    command = cli.parse_command(["train", "fhp", "--out", "runs/x", "--sampling.kind", "external"])
    with pytest.raises(ConfigError, match=r"'sampling.kind' to be public-chance; or set 'advantage.target' to mean\."):
        command.run_config()


def tiny(config: RunConfig, game: str) -> RunConfig:
    """The configuration on a small game, with one short iteration: kinds and switches stay as they are."""
    fits = {name: replace(getattr(config, name), steps=2, batch_size=16) for name in ("advantage", "average")}
    return replace(
        config,
        game=game,
        iterations=1,
        sampling=few(config).sampling,
        memory=replace(config.memory, capacity=5_000),
        # hand strength is a table of hold'em, and the paper's network needs cards
        network=replace(config.network, width=8, layers=1, strength=False, kind="mlp"),
        evaluation=EvaluationConfig(),
        runtime=RuntimeConfig(threads=1),
        **fits,
    )


@pytest.mark.parametrize("game", GAMES)
def test_every_ablation_of_every_base_trains(game: str) -> None:
    """Each in one of the games at least."""
    source = load_source(game)
    distinct = {repr(tiny(base, game)): tiny(base, game) for base in BASES.values()}
    if game.startswith("openspiel"):
        distinct = {name: config for name, config in distinct.items() if "'public-chance'" not in name}
        distinct = {name: config for name, config in distinct.items() if config.cfr.first_round == "network"}
    assert len(distinct) >= 2
    for i, config in enumerate(distinct.values()):
        for j, (key, value) in enumerate(ABLATIONS):
            if (
                (i + j) % len(GAMES) != GAMES.index(game)
                or not applies(config, key, value)
                or (game.startswith("openspiel") and (key, value) in NEED_CARDS)
            ):
                continue
            ablated = with_key(config, key, value)
            ablated = few(ablated) if key == "sampling.kind" else ablated
            solver = DeepCFR(build_game(source, ablated.network.suits), ablated)
            (record,) = solver.iterations()
            assert record.nodes_touched > 0
            # a table takes all of Kuhn, which has a single round, and networks that keep sums forget their samples
            table = ablated.cfr.first_round == "table" and game == "kuhn"
            assert bool(sum(record.advantage_samples)) is not (table or ablated.advantage.bootstrapped)
            assert bool(record.trained) is not table


# Settings without effect are named


def test_settings_that_another_sampler_reads_are_named_at_the_start() -> None:
    config, source = load_config("fhp-strength"), load_source("fhp")  # a panel
    silent = cost_notes(config, source)
    external = cost_notes(with_key(config, "sampling.kind", "external"), source)
    assert not any("ignored" in note for note in silent)
    assert [note for note in external if "ignored" in note] == [
        "advantage.units: ignored, because only a panel has exact mean targets",
    ]
    fresh = with_key(config, "sampling.panel", False)
    assert list(unread_settings(fresh)) == ["advantage.units: ignored, because only a panel has exact mean targets"]
    assert list(unread_settings(with_key(config, "memory.kind", "window"))) == [
        "memory.kind: ignored, because a panel keeps all its hands"
    ]
    leduc = with_key(with_key(load_config("leduc-external"), "sampling.kind", "public-chance"), "sampling.panel", True)
    assert list(unread_settings(leduc)) == [
        "memory.capacity: ignored, because a panel keeps all its hands",
        "advantage.draw: ignored, because the examples of 'advantage.batch_size' are hands",
        "average.draw: ignored, because the examples of 'average.batch_size' are hands",
    ]
    hands = with_key(with_key(config, "sampling.decisions", 3), "sampling.hands", 9)
    assert list(unread_settings(hands)) == [
        "sampling.decisions, sampling.hands: ignored, because a panel plays and records whole hands"
    ]
    by_pot = list(unread_settings(with_key(config, "advantage.units", "pots")))
    assert "advantage.units: ignored, because the decisions of a hand have different pots" in by_pot


# Two runs that differ in one setting

BASE = small_config(
    "leduc",
    2,
    sampling={"traversals": 40},
    memory={"capacity": 4_000},
    advantage={"steps": 6, "batch_size": 32},
)


@cache
def solved(key: str = "seed", value: Any = 0, iterations: int = 2) -> DeepCFR:
    """A run of BASE with one setting changed, after so many iterations."""
    config = BASE if key == "seed" else with_key(BASE, key, value)
    config = few(config, 40) if key == "sampling.kind" else config
    solver = DeepCFR(load_game("leduc", config.network.suits), config)
    for _ in range(iterations):
        next(solver.iterations())
    return solver


def held(memory: Memory) -> Samples:
    return memory[slice(0, None)]


def first_pass(solver: DeepCFR) -> tuple[Samples, Samples]:
    """The samples of player 0's traversals of iteration 1, before any network was fitted: advantages, strategies."""
    advantages, strategies = held(solver.memories.advantages[0]), held(solver.memories.strategies)
    theirs = by_infoset(solver.game, solver.game.actor)[strategies.infosets.node.long()] == 1
    return advantages[advantages.iteration == 1], strategies[(strategies.iteration == 1) & theirs]


def same(one: Samples, other: Samples) -> bool:
    columns = (
        (one.infosets.node, other.infosets.node),
        (one.infosets.cards, other.infosets.cards),
        (one.target, other.target),
        (one.iteration, other.iteration),
    )
    return all(torch.equal(a, b) for a, b in columns)


def assert_same_first_pass(one: DeepCFR, other: DeepCFR) -> None:
    for mine, theirs in zip(first_pass(one), first_pass(other), strict=True):
        assert len(mine) >= 40
        assert same(mine, theirs)


def weights(solver: DeepCFR, player: int) -> dict[str, torch.Tensor]:
    return solver.advantage_networks[player].state_dict()


def same_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return set(one) == set(other) and all(torch.equal(weight, other[name]) for name, weight in one.items())


def test_discounted_sums_need_a_panel() -> None:
    config = replace(BASE, cfr=replace(BASE.cfr, weighting="discounted"))
    (problem,) = config_problems(config)
    assert problem.startswith("'cfr.weighting' is discounted, which needs a panel")
    for kind in ("outcome", "public-chance"):
        assert problem in config_problems(replace(config, sampling=replace(config.sampling, kind=kind)))
    panel = replace(config, sampling=SamplingConfig(kind="public-chance", panel=True))
    assert list(config_problems(panel)) == []


@pytest.mark.parametrize(
    ("key", "value", "same_at"),
    [
        ("cfr.fallback", "uniform", [True, False]),  # the first strategy is uniform
        ("cfr.weighting", "uniform", [True, False]),
        ("advantage.refit", "fine-tune", [True, False]),  # the first fit is from scratch
        ("advantage.steps", 12, [False, False]),
        ("network.width", 12, [False, False]),
        ("memory.kind", "window", [True, True]),  # nothing has been full
        ("advantage.units", "log", [True, True]),  # only a panel reads it
        ("evaluation.policy", "sd-cfr", [True, True]),
    ],
)
def test_runs_that_differ_in_one_setting_are_the_same_until_it_counts(
    key: str, value: Any, same_at: list[bool]
) -> None:
    """The networks of player 0 after iterations 1 and 2."""
    one, other = solved(), solved(key, value)
    assert_same_first_pass(one, other)
    after_1 = [solver.snapshots.kept[1].networks[0] for solver in (one, other)]  # what iteration 2 began with
    assert [same_weights(*after_1), same_weights(weights(one, 0), weights(other, 0))] == same_at
    weight = 2 if key != "cfr.weighting" else 1
    assert [snapshot.weight for snapshot in other.snapshots.kept] == [1, weight]


def assert_same_runs(one: DeepCFR, other: DeepCFR) -> None:
    for (name, mine), (_, theirs) in zip(one.memories.stores.items(), other.memories.stores.items(), strict=True):
        assert mine.seen == theirs.seen, name
        contents = theirs.contents()
        assert all(torch.equal(column, contents[key]) for key, column in mine.contents().items()), name
    assert all(same_weights(weights(one, player), weights(other, player)) for player in (0, 1))
    assert one.nodes_touched == other.nodes_touched


@pytest.mark.parametrize("panel", [False, True])
def test_negative_advantages_are_compressed_on_a_panel_only(panel: bool) -> None:
    base = with_key(few(with_key(BASE, "sampling.kind", "public-chance")), "sampling.panel", panel)
    runs = [DeepCFR(load_game("leduc"), config) for config in (base, with_key(base, "advantage.units", "log"))]
    for solver in runs:
        next(solver.iterations())
    assert same_weights(*(weights(solver, 0) for solver in runs)) is not panel


def test_a_table_takes_the_first_round_from_the_networks() -> None:
    networks, table = solved(iterations=1), solved("cfr.first_round", "table", 1)
    assert table.table is not None
    for mine, all_rounds in zip(first_pass(table), first_pass(networks), strict=True):
        later = networks.game.round[all_rounds.infosets.node.long()] > 0
        assert 0 < int(later.sum()) < len(later)
        assert same(mine, all_rounds[later])
    assert same_weights(*(s._new_network("advantage", 1, 0).state_dict() for s in (networks, table)))


# Which average a run reports


def test_the_policy_that_is_measured_changes_the_measurements_only(tmp_path: Path) -> None:
    base = replace(BASE, game="kuhn", iterations=4, evaluation=EvaluationConfig(2))
    lines, solvers = [], []
    for name in ("average", "sd-cfr"):
        run, _ = start(tmp_path / name, with_key(base, "evaluation.policy", name))
        lines.append(metrics(run.path))
        solvers.append(run.load_solver(pytest.fail, memories=True)[0])
        policy, _ = run.load_policy(name, pytest.fail)
        last = lines[-1][-1]["evaluation"]
        assert last["policy"] == policy.kind
    assert_same_runs(*solvers)
    averages = [solver.average_network.state_dict() for solver in solvers]
    assert same_weights(*averages)
    assert [[line.get("evaluated_policy") for line in run] for run in lines] == [
        [None, "average", None, "average"],
        [None, "sd-cfr", None, "sd-cfr"],
    ]
    for mine, theirs in zip(*lines, strict=True):
        differing = {key for key in mine if mine[key] != theirs[key]}
        assert differing == ({"evaluated_policy", "evaluation"} if "evaluation" in mine else set())
    assert lines[0][-1]["evaluation"]["nash_conv"] != lines[1][-1]["evaluation"]["nash_conv"]


@pytest.mark.parametrize(
    ("cfr", "evaluation", "words"),
    [
        ({"keep_networks": 0}, {}, "'cfr.keep_networks' to be above 0"),
        ({"keep_networks": 5}, {"at": (4,)}, "before iteration 5"),
        ({"keep_networks": 3}, {"every": 2}, "iteration 2 is to be evaluated"),
        ({"keep_networks": 3}, {"at": (2,)}, "iteration 2 is to be evaluated"),
    ],
)
def test_an_average_of_no_networks_is_refused(cfr: dict[str, int], evaluation: dict[str, Any], words: str) -> None:
    config = replace(RunConfig(), cfr=replace(CFRConfig(), **cfr))
    config = replace(config, evaluation=EvaluationConfig(policy="sd-cfr", **evaluation))
    (problem,) = config_problems(config)
    assert words in problem
    assert list(config_problems(with_key(config, "evaluation.policy", "average"))) == []


def test_settings_that_a_tabular_solver_does_not_read_are_named() -> None:
    lin = tabular("linear-cfr", exploration_start=0.01, reward_shape="y2", initial="win-rates", traversals=500)
    assert list(unread_settings(tabular())) == []
    assert list(unread_settings(lin)) == [
        "solve.traversals, solve.exploration_start, solve.reward_shape, solve.initial: ignored, "
        "because linear-cfr visits all hands"
    ]
    assert list(unread_settings(replace(lin, solver="mccfr"))) == []
    assert list(unread_settings(RunConfig(solver="nfsp"))) == []
    deep = RunConfig(solver="nfsp", cfr=CFRConfig(fallback="uniform"), memory=MemoryConfig(capacity=9))
    assert list(unread_settings(deep)) == ["cfr.fallback, memory.capacity: ignored, because 'solver' is nfsp"]
    source = load_source("kuhn")
    assert any("ignored" in note for note in cost_notes(lin, source))
    assert not any("ignored" in note for note in cost_notes(tabular(game="kuhn"), source))
