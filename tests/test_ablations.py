"""Every ablation is one setting: any configuration takes it, and runs that differ in it differ in what it names only."""

import dataclasses
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from deepcfr import cli
from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    EvaluationConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
    config_problems,
    load_config,
    unread_settings,
)
from deepcfr.config.toml import RECIPES
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Infosets, Samples
from deepcfr.defaults import default_config
from deepcfr.game.base import by_infoset
from deepcfr.game.poker import PokerGame, poker_game
from deepcfr.game.presets import build_game, load_game, load_source
from deepcfr.network.memory import Memory
from deepcfr.run.costs import cost_notes
from deepcfr.run.folder import RunFolder
from deepcfr.run.train import train
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.memories import InfosetMemories
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
    for key, value in ABLATIONS:
        if applies(BASES[base], key, value):
            assert list(config_problems(with_key(BASES[base], key, value))) == [], (key, value)


@pytest.mark.parametrize("base", BASES)
def test_what_ships_is_read(base: str) -> None:
    assert list(unread_settings(BASES[base])) == []


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
        memory=replace(config.memory, advantage_capacity=5_000, strategy_capacity=5_000),
        # hand strength is a table of hold'em, and the paper's network needs cards
        network=replace(config.network, width=8, layers=1, strength=False, kind="mlp"),
        evaluation=EvaluationConfig(),
        runtime=RuntimeConfig(threads=1),
        **fits,
    )


@pytest.mark.parametrize("game", GAMES)
def test_every_ablation_of_every_base_trains(game: str) -> None:
    source = load_source(game)
    distinct = {repr(tiny(base, game)): tiny(base, game) for base in BASES.values()}
    if game.startswith("openspiel"):
        distinct = {name: config for name, config in distinct.items() if "'public-chance'" not in name}
        distinct = {name: config for name, config in distinct.items() if config.cfr.first_round == "network"}
    assert len(distinct) >= 2
    for config in distinct.values():
        for key, value in ABLATIONS:
            if not applies(config, key, value) or (game.startswith("openspiel") and (key, value) in NEED_CARDS):
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


def test_fhp_by_one_key_from_its_defaults() -> None:
    """The defaults draw boards for networks that keep sums; with mean targets each other sampler is one key away."""
    mean = with_key(default_config("fhp"), "advantage.target", "mean")
    small = replace(mean, memory=MemoryConfig("reservoir", 20_000, 20_000))
    small = replace(
        small,
        iterations=1,
        advantage=replace(small.advantage, steps=2),
        runtime=RuntimeConfig(threads=1),
    )
    for sampler in ("external", "outcome"):
        config = few(with_key(small, "sampling.kind", sampler), 25)
        solver = DeepCFR(load_game("fhp"), config)
        (record,) = solver.iterations()
        assert isinstance(solver.memories, InfosetMemories)
        assert record.traversals == 50
        assert min(record.advantage_samples) > 0
        assert min(record.advantage_loss) > 0


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
        "memory.advantage_capacity, memory.strategy_capacity: ignored, because a panel keeps all its hands",
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

FIT = FitConfig(steps=6, batch_size=32)
ADVANTAGE = AdvantageFitConfig(**vars(FIT))
BASE = RunConfig(
    game="leduc",
    iterations=2,
    sampling=SamplingConfig(traversals=40),
    memory=MemoryConfig(advantage_capacity=4_000, strategy_capacity=4_000),
    network=NetworkConfig(kind="mlp", width=8, layers=1),
    advantage=ADVANTAGE,
    average=FIT,
    runtime=RuntimeConfig(threads=1),
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


def every_infoset(game: PokerGame) -> Infosets:
    deals = game.deal(400, 9)
    node = torch.arange(400) % game.tree.num_decisions
    return Infosets(node, deals.visible_cards[torch.arange(400), game.actor[node], game.round[node]])


def test_the_fallback_changes_what_is_played_where_no_advantage_is_positive() -> None:
    highest, uniform = solved(iterations=1), solved("cfr.fallback", "uniform", 1)
    assert_same_first_pass(highest, uniform)
    assert same_weights(weights(highest, 0), weights(uniform, 0))  # fitted alike, since the first strategy is uniform
    infosets = every_infoset(poker_game(highest.game))
    legal = highest.game.encoding.legal[infosets.node.long()]
    with torch.no_grad():
        advantages = highest.advantage_networks[0](infosets)
    positive = ((advantages > 0) & legal).any(1)
    mine = by_infoset(highest.game, highest.game.actor)[infosets.node.long()] == 0
    played = [solver.current_policy().probabilities(infosets)[mine] for solver in (highest, uniform)]
    positive, legal = positive[mine], legal[mine]
    assert 0 < int(positive.sum()) < len(positive)
    assert torch.equal(played[0][positive], played[1][positive])
    assert bool((played[0][~positive].max(1).values == 1).all())
    assert torch.allclose(played[1][~positive], (legal / legal.sum(1, keepdim=True))[~positive].to(played[1]))


def test_the_weighting_changes_the_weights_in_fits() -> None:
    linear, uniform = solved(), solved("cfr.weighting", "uniform")
    assert_same_first_pass(linear, uniform)
    assert [i.weight for i in linear.snapshots.kept] == [1, 2]
    assert [i.weight for i in uniform.snapshots.kept] == [1, 1]
    assert same_weights(linear.snapshots.kept[0].networks[0], uniform.snapshots.kept[0].networks[0])
    # one memory, fitted from the same random weights with the same mini-batches: only weights differ
    losses = []
    for solver in (linear, uniform):
        again = DeepCFR(solver.game, solver.config)
        again.iteration, again.memories = 1, linear.memories
        again.fit_advantages(2, 0)
        losses.append(weights(again, 0))
    assert not same_weights(*losses)
    assert same_weights(losses[0], weights(linear, 0))


def test_discounted_sums_need_a_panel() -> None:
    config = replace(BASE, cfr=replace(BASE.cfr, weighting="discounted"))
    (problem,) = config_problems(config)
    assert problem.startswith("'cfr.weighting' is discounted, which needs a panel")
    for kind in ("outcome", "public-chance"):
        assert problem in config_problems(replace(config, sampling=replace(config.sampling, kind=kind)))
    panel = replace(config, sampling=SamplingConfig(kind="public-chance", panel=True))
    assert list(config_problems(panel)) == []


def test_the_refit_changes_where_later_fits_start() -> None:
    scratch, tuned = solved(iterations=1), solved("advantage.refit", "fine-tune", 1)
    assert_same_first_pass(scratch, tuned)
    assert all(same_weights(weights(scratch, p), weights(tuned, p)) for p in (0, 1))  # the first fit is from scratch
    again = solved(), solved("advantage.refit", "fine-tune")
    assert same(*(held(s.memories.advantages[0]) for s in again))  # player 0's second pass is of equal strategies
    assert not same_weights(weights(again[0], 0), weights(again[1], 0))
    # with a rate too small to move, one ends at new random weights and the other where it was
    for config, expected in ((BASE, again[0]._new_network("advantage", 2, 0)), (again[1].config, None)):
        solver = DeepCFR(scratch.game, replace(config, advantage=replace(config.advantage, learning_rate=1e-12)))
        next(solver.iterations())
        before = {name: weight.clone() for name, weight in weights(solver, 0).items()}
        solver.fit_advantages(2, 0)
        start = before if expected is None else expected.state_dict()
        moved = [(weights(solver, 0)[name] - start[name]).abs().max() for name in start if name != "scale"]
        assert max(moved) < 1e-8


def test_the_kind_of_memory_changes_which_samples_a_full_one_keeps() -> None:
    assert_same_runs(solved(), solved("memory.kind", "window"))  # nothing has been full
    small = replace(BASE, memory=MemoryConfig("reservoir", 150, 150))
    runs = [DeepCFR(load_game("leduc"), config) for config in (small, with_key(small, "memory.kind", "window"))]
    for solver in runs:
        for found in solver.traverse(1, 0):
            solver.memories.add(0, found)
    everything = first_pass(solved())[0]
    memories = [solver.memories.advantages[0] for solver in runs]
    assert [memory.seen for memory in memories] == [len(everything)] * 2
    assert len(everything) > 200
    newest = Counter(map(str, rows(everything[slice(len(everything) - 150, None)])))
    kept = [Counter(map(str, rows(held(memory)))) for memory in memories]
    assert kept[1] == newest
    assert kept[0] != newest
    assert kept[0] <= Counter(map(str, rows(everything)))


def rows(samples: Samples) -> list[tuple[int, tuple[int, ...], tuple[float, ...]]]:
    columns = samples.infosets.node.tolist(), samples.infosets.cards.tolist(), samples.target.tolist()
    return [(node, tuple(cards), tuple(target)) for node, cards, target in zip(*columns, strict=True)]


def assert_same_runs(one: DeepCFR, other: DeepCFR) -> None:
    for (name, mine), (_, theirs) in zip(one.memories.stores.items(), other.memories.stores.items(), strict=True):
        assert mine.seen == theirs.seen, name
        contents = theirs.contents()
        assert all(torch.equal(column, contents[key]) for key, column in mine.contents().items()), name
    assert all(same_weights(weights(one, player), weights(other, player)) for player in (0, 1))
    assert one.nodes_touched == other.nodes_touched


def test_more_traversals_add_to_the_same_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcfr.solve.data._CHUNK", 16)  # so order is alike too
    few, many = solved.__wrapped__("sampling.traversals", 16, 1), solved.__wrapped__(iterations=1)
    for mine, more in zip(first_pass(few), first_pass(many), strict=True):
        assert 16 <= len(mine) < len(more)
        assert same(mine, more[slice(0, len(mine))])


def test_the_steps_change_how_long_fits_go_on() -> None:
    short, long = solved(iterations=1), solved("advantage.steps", 12, 1)
    assert_same_first_pass(short, long)
    assert not same_weights(weights(short, 0), weights(long, 0))
    # the first steps are the same: a fit that is cut to 6 of its 12 steps is the short one
    cut = DeepCFR(long.game, with_key(long.config, "advantage.steps", 6))
    cut.memories = long.memories
    cut.fit_advantages(1, 0)
    assert same_weights(weights(cut, 0), weights(short, 0))


def test_the_width_changes_the_networks() -> None:
    narrow, wide = solved(iterations=1), solved("network.width", 12, 1)
    assert_same_first_pass(narrow, wide)
    assert weights(narrow, 0).keys() == weights(wide, 0).keys()
    shapes = [[tuple(weight.shape) for weight in weights(solver, 0).values()] for solver in (narrow, wide)]
    assert shapes[0] != shapes[1]
    assert all(max(a, default=0) <= max(b, default=0) for a, b in zip(*shapes, strict=True))


def test_the_suits_change_how_cards_are_shown() -> None:
    canonical, raw = solved(iterations=1), solved("network.suits", "raw", 1)
    seen = set()
    for mine, theirs in zip(first_pass(canonical), first_pass(raw), strict=True):
        assert torch.equal(mine.infosets.node, theirs.infosets.node)
        assert torch.equal(mine.target, theirs.target)
        suits = 2
        assert torch.equal(mine.infosets.cards[:, 0] // suits, theirs.infosets.cards[:, 0] // suits)  # equal ranks
        assert int((mine.infosets.cards[:, 0] % suits).max()) == 0  # the hole card comes first, in the first suit
        seen |= set((theirs.infosets.cards[:, 0] % suits).tolist())
    assert seen == {0, 1}
    new = [s._new_network("advantage", 1, 0).state_dict() for s in (canonical, raw)]
    assert same_weights(*new)


def test_outcome_sampling_follows_one_history_of_external_samplings() -> None:
    whole, single = solved(iterations=1), solved("sampling.kind", "outcome", 1)
    (advantages, strategies), (mine, theirs) = first_pass(whole), first_pass(single)
    infosets = {row[:2] for row in rows(advantages)}
    assert {row[:2] for row in rows(mine)} <= infosets  # the same deals, and the opponent's same actions
    # its strategy samples are some of external sampling's, with equal targets
    assert set(rows(theirs)) <= set(rows(strategies))
    assert len(set(rows(theirs))) < len(set(rows(strategies)))
    assert single.nodes_touched < whole.nodes_touched / 2
    assert same_weights(whole.snapshots.kept[0].networks[0], single.snapshots.kept[0].networks[0])
    roots = [int((s.infosets.node == 0).sum()) for s in (advantages, mine)]
    assert roots == [40, 40]  # every deal, once
    assert same_weights(*(s._new_network("advantage", 1, 0).state_dict() for s in (whole, single)))


def test_public_chance_sampling_keeps_the_networks_it_starts_from() -> None:
    histories, boards = solved(iterations=1), solved("sampling.kind", "public-chance", 1)
    assert isinstance(boards.memories, InfosetMemories)
    assert same_weights(histories.snapshots.kept[0].networks[0], boards.snapshots.kept[0].networks[0])
    assert same_weights(*(s._new_network("advantage", 1, 0).state_dict() for s in (histories, boards)))
    assert same_weights(*(s._new_network("average", 0).state_dict() for s in (histories, boards)))


def test_settings_of_hands_are_not_read_without_them() -> None:
    for sampler in ("external", "outcome"):
        base = with_key(BASE, "sampling.kind", sampler)
        other = replace(base, advantage=replace(ADVANTAGE, units="log"))
        runs = [DeepCFR(load_game("leduc"), config) for config in (base, other)]
        for solver in runs:
            next(solver.iterations())
        assert_same_runs(*runs)


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


class Silent:
    """An observer that says nothing."""

    def warn(self, message: str) -> None:
        raise AssertionError(message)

    def start(self, *_: Any) -> None: ...
    def iteration(self, *_: Any) -> None: ...
    def evaluating(self, *_: Any) -> None: ...
    def evaluated(self, *_: Any) -> None: ...
    def saved(self, *_: Any) -> None: ...


def test_the_policy_that_is_measured_changes_the_measurements_only(tmp_path: Path) -> None:
    base = replace(BASE, game="kuhn", iterations=4, evaluation=EvaluationConfig(2))
    lines, solvers = [], []
    for name in ("average", "sd-cfr"):
        run = RunFolder.create(tmp_path / name, with_key(base, "evaluation.policy", name))
        train(run, Silent())
        lines.append([json.loads(line) for line in run.metrics_path.read_text(encoding="utf-8").splitlines()])
        solvers.append(run.load_solver(Silent().warn, memories=True)[0])
        policy, _ = run.load_policy(name, Silent().warn)
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
        of_the_process = ("seconds", "resident_bytes")  # what no seed decides
        differing = {key for key in mine if not key.endswith(of_the_process) and mine[key] != theirs[key]}
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


def test_the_list_of_ablations_names_settings() -> None:
    for key, value in ABLATIONS:
        section, name = key.split(".")
        assert value is not None
        assert name in {item.name for item in dataclasses.fields(getattr(RunConfig(), section))}, key


def test_settings_that_a_tabular_solver_does_not_read_are_named() -> None:
    lin = tabular("linear-cfr", exploration_start=0.01, reward_shape="y2", initial="win-rates", traversals=500)
    assert list(unread_settings(tabular())) == []
    assert list(unread_settings(lin)) == [
        "solve.traversals, solve.exploration_start, solve.reward_shape, solve.initial: ignored, "
        "because linear-cfr visits all hands"
    ]
    assert list(unread_settings(replace(lin, solver="mccfr"))) == []
    idle = tabular("mccfr", reward_on="regret")
    assert list(unread_settings(idle)) == [
        "solve.reward_on: ignored, because 'solve.reward_shape' is y1",
    ]
    assert list(unread_settings(RunConfig(solver="nfsp"))) == []
    deep = RunConfig(solver="nfsp", cfr=CFRConfig(fallback="uniform"), memory=MemoryConfig(files=True))
    assert list(unread_settings(deep)) == ["cfr.fallback, memory.files: ignored, because 'solver' is nfsp"]
    source = load_source("kuhn")
    assert any("ignored" in note for note in cost_notes(lin, source))
    assert not any("ignored" in note for note in cost_notes(tabular(game="kuhn"), source))
