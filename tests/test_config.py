"""Configurations: the paper's values by default, TOML there and back, and every mistake reported as a sentence."""

import dataclasses
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    EvaluationConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    NFSPConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
    TabularConfig,
    config_from_table,
    config_to_toml,
    load_config,
    validate_config,
)
from deepcfr.core.errors import ConfigError
from deepcfr.defaults import default_config

SECTIONS = (
    "cfr", "sampling", "memory", "network", "advantage", "average", "values", "nfsp", "ppo", "evaluation", "runtime",
)  # fmt: skip
BOARDS = {"kind": "public-chance"}


def problems_of(table: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        config_from_table(table)
    return caught.value.problems


def assert_sentences(problems: tuple[str, ...]) -> None:
    for problem in problems:
        assert problem.endswith("."), problem
        assert problem[0].isupper() or problem[0] == "'", problem
        assert len(problem.split()) > 4, problem


# Defaults


def test_defaults_are_the_papers() -> None:
    config = RunConfig()
    assert config.sampling.kind == "external"
    assert config.game == "fhp"
    # section 6 and figure 3: 10,000 traversals, Linear CFR, 450 iterations in figure 4
    assert (config.sampling.traversals, config.iterations, config.cfr.weighting) == (10_000, 450, "linear")
    # section 2.1: the highest regret when none is positive
    assert config.cfr.fallback == "highest"
    # section 5.2
    assert config.memory == MemoryConfig("reservoir", capacity=40_000_000)
    for fit in (config.advantage, config.average):
        assert (fit.steps, fit.batch_size, fit.learning_rate) == (4_000, 10_000, 0.001)
        assert fit.schedule == "constant"
    assert config.advantage.refit == "scratch"
    # section 5.1
    assert (config.network.kind, config.network.width) == ("paper", 64)


def test_nothing_said_is_the_default() -> None:
    assert config_from_table({}) == RunConfig()
    assert config_from_table({section: {} for section in SECTIONS}) == RunConfig()


def test_what_is_said_is_set_and_nothing_else() -> None:
    table = {
        "game": "leduc",
        "seed": 7,
        "cfr": {"weighting": "uniform"},
        "advantage": {"steps": 5, "learning_rate": 1},
        "evaluation": {"at": [3, 9]},
    }
    expected = RunConfig(
        game="leduc",
        seed=7,
        cfr=CFRConfig(weighting="uniform"),
        advantage=AdvantageFitConfig(steps=5, learning_rate=1.0),
        evaluation=EvaluationConfig(at=(3, 9)),
    )
    config = config_from_table(table)
    assert config == expected
    assert type(config.advantage.learning_rate) is float  # a whole number is a number


# There and back


def whole(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high) | st.sampled_from([low, high])


def real(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high) | st.sampled_from([low, high])


TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # a lone surrogate cannot be written in UTF-8
FITS: dict[str, st.SearchStrategy[Any]] = {
    "steps": whole(1, 100_000_000),
    "batch_size": whole(1, 10_000_000),
    "learning_rate": real(1e-12, 10.0),
    "schedule": st.sampled_from(["constant", "cosine"]),
    "draw": st.sampled_from(["uniform", "merged", "balanced"]),
}
CONFIGS = st.builds(
    RunConfig,
    game=TEXT,
    seed=whole(0, 2**63 - 1),
    iterations=whole(1, 100_000_000),
    cfr=st.builds(
        CFRConfig,
        weighting=st.sampled_from(["linear", "uniform"]),
        fallback=st.sampled_from(["highest", "uniform"]),
        first_round=st.sampled_from(["network", "table"]),
        keep_networks=whole(0, 1_000_000),
    ),
    sampling=st.builds(
        SamplingConfig,
        kind=st.sampled_from(["external", "outcome", "public-chance"]),
        traversals=whole(1, 100_000_000),
        boards=whole(1, 10_000_000),
        samples=whole(1, 1_000_000),
    ),
    memory=st.builds(
        MemoryConfig,
        kind=st.sampled_from(["reservoir", "window"]),
        capacity=whole(1, 10**10),
    ),
    network=st.builds(
        NetworkConfig,
        kind=st.sampled_from(["paper", "mlp"]),
        width=whole(1, 8192),
        layers=whole(1, 64),
        card_width=whole(1, 64),
        card_embedding=st.booleans(),
        node_embedding=st.booleans(),
        suits=st.sampled_from(["canonical", "raw"]),
        strength=st.booleans(),
    ),
    advantage=st.builds(
        AdvantageFitConfig,
        **FITS,
        refit=st.sampled_from(["scratch", "fine-tune"]),
        units=st.sampled_from(["chips", "pots", "log"]),
    ),
    average=st.builds(FitConfig, **FITS),
    evaluation=st.builds(
        EvaluationConfig, every=whole(0, 1_000_000), at=st.lists(st.integers(1, 10**9), max_size=4).map(tuple)
    ),
    runtime=st.builds(
        RuntimeConfig,
        device=st.sampled_from(["cpu", "cuda", "cuda:3"]),
        threads=whole(1, 1024),
    ),
)


TABLES_OF = st.builds(
    RunConfig,
    game=TEXT,
    solver=st.sampled_from(["mccfr"]),
    solve=st.builds(
        TabularConfig,
        precision=st.sampled_from(["float64", "float32"]),
        sampler=st.sampled_from(["external", "outcome"]),
        traversals=whole(1, 1_000_000_000),
        weighting=st.sampled_from(["linear", "uniform"]),
        exploration_start=real(0.0, 1.0),
        abstraction=TEXT,
    ),
)


@given(CONFIGS | TABLES_OF)
@example(RunConfig())
@example(default_config("fhp", "linear-cfr"))
@example(RunConfig(game='"\\\b\t\n\r\x00\x7f\x85\u2028é🂡#='))
def test_toml_there_and_back_is_the_same_configuration(config: RunConfig) -> None:
    text = config_to_toml(config)
    table = tomllib.loads(text)
    assert config_from_table(table) == config
    assert {"game", "seed", "solver", "iterations", *config.sections} <= set(table)
    assert validate_config(config) is config


def test_toml_names_every_setting() -> None:
    table = tomllib.loads(config_to_toml(RunConfig()))
    assert set(table) == {"game", "seed", "solver", "iterations", *RunConfig().sections}
    for section in set(RunConfig().sections) - {"sampling"}:
        assert set(table[section]) == {item.name for item in dataclasses.fields(getattr(RunConfig(), section))}
    assert set(table["sampling"]) == {"kind", "traversals", "actions"}


def test_toml_names_settings_that_the_solver_does_not_read_if_they_are_changed() -> None:
    config = RunConfig(nfsp=NFSPConfig(episodes=5), sampling=SamplingConfig(boards=7))
    table = tomllib.loads(config_to_toml(config))
    assert (table["nfsp"], table["sampling"]["boards"]) == ({"episodes": 5}, 7)


# Mistakes


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"sneed": 1}, ["'sneed'", "is not a setting", "seed", "runtime"]),
        ({"cfr": {"wait": 3}}, ["'cfr.wait'", "is not a setting", "weighting"]),
        ({"cfr": 3}, ["'cfr'", "section", "3"]),
        ({"game": 3}, ["'game'", "text", "3"]),
        ({"seed": "3"}, ["'seed'", "a whole number", "'3'"]),
        ({"seed": 3.0}, ["'seed'", "a whole number", "3.0"]),
        ({"seed": True}, ["'seed'", "a whole number", "True"]),
        ({"seed": {"a": 1}}, ["'seed'", "a whole number"]),
        ({"iterations": [1]}, ["'iterations'", "a whole number", "[1]"]),
        ({"cfr": {"fallback": "none"}}, ["'cfr.fallback'", "highest, uniform", "'none'"]),
        ({"cfr": {"fallback": ["highest"]}}, ["'cfr.fallback'", "highest, uniform", "['highest']"]),
        ({"advantage": {"learning_rate": "fast"}}, ["'advantage.learning_rate'", "a number", "'fast'"]),
        ({"advantage": {"learning_rate": False}}, ["'advantage.learning_rate'", "a number", "False"]),
        ({"network": {"strength": 1}}, ["'network.strength'", "true or false", "1"]),
        ({"evaluation": {"at": 3}}, ["'evaluation.at'", "a list of whole numbers", "3"]),
        ({"evaluation": {"at": [1, "2"]}}, ["'evaluation.at'", "a list of whole numbers", "'2'"]),
        ({"evaluation": {"at": [True]}}, ["'evaluation.at'", "a list of whole numbers", "True"]),
        ({"evaluation": {"at": [0]}}, ["'evaluation.at'", "from 1", "0"]),
        ({"seed": -1}, ["'seed'", "between 0 and", "-1"]),
        ({"seed": 2**63}, ["'seed'", "between 0 and"]),
        ({"sampling": {**BOARDS, "boards": 0}}, ["'sampling.boards'", "between 1 and", "is 0"]),
        ({"sampling": 3}, ["'sampling'", "section", "3"]),
        ({"sampling": {"kind": ["external"]}}, ["'sampling.kind'", "external, outcome, public-chance", "['external']"]),
        ({"sampling": {"kind": "all"}}, ["'sampling.kind'", "external, outcome, public-chance", "'all'"]),
        ({"evaluation": {"policy": "current"}}, ["'evaluation.policy'", "average, sd-cfr", "'current'"]),
        (
            {"evaluation": {"policy": "sd-cfr"}, "cfr": {"keep_networks": 0}},
            ["'evaluation.policy'", "sd-cfr", "'cfr.keep_networks'", "above 0"],
        ),
        ({"iterations": 0}, ["'iterations'", "between 1 and", "is 0"]),
        ({"memory": {"capacity": 0}}, ["'memory.capacity'", "between 1 and"]),
        ({"average": {"units": "log"}}, ["'average.units'", "is not a setting", "draw"]),
        ({"advantage": {"learning_rate": math.nan}}, ["'advantage.learning_rate'", "between", "nan"]),
        ({"ppo": {"episodes": -1}}, ["'ppo.episodes'", "between", "is -1"]),
        ({"runtime": {"minutes": math.inf}}, ["'runtime.minutes'", "between", "inf"]),
        ({"runtime": {"device": "tpu"}}, ["'runtime.device'", "cpu or cuda", "'tpu'"]),
        *(
            ({"runtime": {"device": device}}, ["'runtime.device'", "cpu or cuda", f"'{device}'"])
            for device in ("", "cuda:banana", "cuda:", "cpu:-7", "cuda:1:2")
        ),
        ({"iterations": 100_000_001}, ["between 1 and 100,000,000", "is 100,000,001"]),
        ({"cfr": {"iteratons": None}}, ["is not a setting"]),
    ],
)
def test_a_mistake_is_one_sentence_that_names_setting_value_and_what_is_allowed(
    table: dict[str, Any], words: list[str]
) -> None:
    problems = problems_of(table)
    assert len(problems) == 1
    assert_sentences(problems)
    assert all(word in problems[0] for word in words), problems[0]


NUMBERS = [
    f"{section}.{item.name}"
    for section in SECTIONS
    for item in dataclasses.fields(getattr(RunConfig(), section))
    if type(item.default) in (int, float)
]


def test_every_number_has_limits_at_both_ends() -> None:
    for name in ("seed", *NUMBERS):
        *sections, key = name.split(".")
        for value in (-1, 10**18 if name != "seed" else 2**63):
            table: dict[str, Any] = {key: value}
            (problem,) = problems_of({sections[0]: table} if sections else table)
            assert f"'{name}' must be between" in problem


def test_mistakes_of_every_kind_are_reported_together() -> None:
    table = {
        "sneed": 1, "game": 2, "memory": "big", "iterations": 0, "cfr": {"K": 3, "fallback": "best"},
        "average": {"steps": "yes"}, "evaluation": {"at": [-3, 5, 0]}, "runtime": {"device": "gpu", "minutes": -1},
    }  # fmt: skip
    problems = problems_of(table)
    assert_sentences(problems)
    assert sorted(problem.split("'")[1] for problem in problems) == [
        "average.steps", "cfr.K", "cfr.fallback", "evaluation.at", "evaluation.at", "game", "iterations", "memory",
        "runtime.device", "runtime.minutes", "sneed",
    ]  # fmt: skip


# Files


def file_problems(path: Path, text: str | bytes) -> tuple[str, ...]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return caught.value.problems


@pytest.mark.parametrize(
    "text", ["seed = ", "seed = 1\nseed = 2\n", "[cfr", "[cfr]\n[cfr]\n", b"\xff\xfe", b"game = '\xc3'", None]
)
def test_text_that_is_not_toml_is_one_sentence_with_the_place(tmp_path: Path, text: str | bytes | None) -> None:
    path = tmp_path / "run.toml"
    if text is None:
        path.mkdir()
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    (problem,) = caught.value.problems
    assert f"'{path}' cannot be read" in problem
    assert_sentences((problem,))


def test_files_are_read_as_written(tmp_path: Path) -> None:
    config = RunConfig(game="spiele/Größe.game", seed=3, runtime=RuntimeConfig(device="cuda:1"))
    path = tmp_path / "run.toml"
    path.write_text(config_to_toml(config), encoding="utf-8")
    assert load_config(path) == load_config(str(path)) == config
    path.write_text("sneed = 1\n[cfr]\niterations = 'x'\n")
    for name in (path, tmp_path / "missing.toml", "a\0b.toml"):
        with pytest.raises(ConfigError) as caught:
            load_config(name)
        assert all(problem.endswith(".") for problem in caught.value.problems)
        assert all(str(path) in problem for problem in caught.value.problems) == (name == path)


# Garbage

WORDS = ["game", "seed", "cfr", "iterations", "memory", "kind", "advantage", "steps", "evaluation", "at", "runtime"]
MARKS = [*"[]={}\"'.,#\n\\+-_:0123456789eExT ", "[[", "]]", '"""', "'''", "true", "nan", "inf", "0x", "\r\n", "\t"]
GARBAGE = (
    st.text(max_size=60)
    | st.lists(st.sampled_from([*WORDS, *MARKS]), max_size=40).map("".join)
    | st.lists(st.sampled_from(config_to_toml(RunConfig()).split("\n")), max_size=12).map("\n".join)
)


def read_or_complain(read: Callable[[], RunConfig]) -> None:
    """A file gives a valid configuration, or else every problem is a sentence."""
    problems = None
    try:
        config = read()
    except ConfigError as error:
        problems = error.problems
    if problems is None:
        assert validate_config(config) is config
    else:
        assert problems
        assert all(problem.endswith(".") for problem in problems)


@given(text=GARBAGE)
@example("seed = 1" + "0" * 400)
@example("seed = 1" + "0" * 5000)
@example("[advantage]\nlearning_rate = 1" + "0" * 400)
@example("game = 0x1" + "0" * 5000)
@example("game = " + "[" * 5000)
def test_garbage_text_gives_a_config_error_and_nothing_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "garbage.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    read_or_complain(lambda: load_config(path))


NAMES = {"": ["game", "seed", *SECTIONS, "x"]} | {
    section: [*(item.name for item in dataclasses.fields(getattr(RunConfig(), section))), "x"] for section in SECTIONS
}
VALUES = st.recursive(
    st.integers(-(2**63), 2**63) | st.floats() | st.booleans() | st.text(max_size=5) | st.just("uniform") | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=4,
)
TABLES = st.dictionaries(st.sampled_from(NAMES[""]), VALUES, max_size=4).flatmap(
    lambda top: st.fixed_dictionaries(
        {s: st.dictionaries(st.sampled_from(NAMES[s]), VALUES, max_size=3) for s in SECTIONS}
    ).map(lambda sections: sections | top)
)


@given(TABLES)
def test_tables_of_any_values_give_a_config_error_and_nothing_else(table: dict[str, Any]) -> None:
    read_or_complain(lambda: config_from_table(table))
