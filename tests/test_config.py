"""Configurations: the paper's values by default, TOML there and back, and every mistake reported as a sentence."""

import dataclasses
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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
    config_from_table,
    config_problems,
    config_to_toml,
    load_config,
    validate_config,
)
from deepcfr.core.errors import ConfigError

SECTIONS = (
    "cfr",
    "sampling",
    "memory",
    "network",
    "advantage",
    "average",
    "values",
    "nfsp",
    "ppo",
    "evaluation",
    "runtime",
)


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
    assert config.memory == MemoryConfig("reservoir", advantage_capacity=40_000_000, strategy_capacity=40_000_000)
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
        advantage_capacity=whole(1, 10**10),
        strategy_capacity=whole(1, 10**10),
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
        keep=whole(1, 1000),
    ),
)


@given(CONFIGS)
@example(RunConfig())
@example(RunConfig(game='"\\\b\t\n\r\x00\x7f\x85\u2028é🂡#='))
def test_toml_there_and_back_is_the_same_configuration(config: RunConfig) -> None:
    text = config_to_toml(config)
    assert config_from_table(tomllib.loads(text)) == config
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


def test_files_are_read_as_written(tmp_path: Path) -> None:
    config = RunConfig(game="spiele/Größe.game", seed=3, runtime=RuntimeConfig(device="cuda:1"))
    path = tmp_path / "run.toml"
    path.write_text(config_to_toml(config), encoding="utf-8")
    assert load_config(path) == config
    assert load_config(str(path)) == config


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
        ({"memory": {"advantage_capacity": 0}}, ["'memory.advantage_capacity'", "between 1 and"]),
        ({"average": {"units": "log"}}, ["'average.units'", "is not a setting", "draw"]),
        ({"advantage": {"learning_rate": math.nan}}, ["'advantage.learning_rate'", "between", "nan"]),
        ({"ppo": {"episodes": -1}}, ["'ppo.episodes'", "between", "is -1"]),
        ({"runtime": {"minutes": math.inf}}, ["'runtime.minutes'", "between", "inf"]),
        ({"runtime": {"device": "tpu"}}, ["'runtime.device'", "cpu or cuda", "'tpu'"]),
        ({"runtime": {"device": ""}}, ["'runtime.device'", "cpu or cuda", "''"]),
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


@pytest.mark.parametrize("name", ["seed", *NUMBERS])
def test_every_number_has_limits_at_both_ends(name: str) -> None:
    *sections, key = name.split(".")
    for value in (-1, 10**18 if name != "seed" else 2**63):
        table: dict[str, Any] = {key: value}
        problems = problems_of({sections[0]: table} if sections else table)
        assert len(problems) == 1
        assert f"'{name}' must be between" in problems[0]


@pytest.mark.parametrize(
    "table",
    [
        {"sampling": BOARDS, "memory": {"kind": "window"}},
        {"sampling": {**BOARDS, "panel": True}, "memory": {"kind": "window"}},
        {"sampling": BOARDS, "advantage": {"draw": "merged", "units": "log"}},
        {"advantage": {"units": "log"}},
    ],
)
def test_ways_of_sampling_that_agree_are_accepted(table: dict[str, Any]) -> None:
    assert list(config_problems(config_from_table(table))) == []


def test_an_unknown_setting_without_a_value_is_refused() -> None:
    assert len(problems_of({"cfr": {"iteratons": None}})) == 1


def test_unknown_names_and_wrong_types_are_reported_together() -> None:
    table = {
        "sneed": 1,
        "game": 2,
        "memory": "big",
        "iterations": "many",
        "cfr": {"K": 3, "fallback": "best"},
        "average": {"steps": "yes"},
        "evaluation": {"at": ["end"]},
    }
    problems = problems_of(table)
    assert_sentences(problems)
    names = [
        "sneed", "game", "memory", "iterations", "cfr.K", "cfr.fallback", "average.steps", "evaluation.at",
    ]  # fmt: skip
    assert [problem.split("'")[1] for problem in problems] == names


def test_all_values_out_of_range_are_reported_together() -> None:
    problems = problems_of(
        {
            "seed": -1,
            "iterations": 0,
            "sampling": {"traversals": 0},
            "advantage": {"learning_rate": math.nan},
            "average": {"steps": 0},
            "evaluation": {"at": [-3, 5, 0]},
            "runtime": {"device": "gpu", "keep": 0},
        }
    )
    assert_sentences(problems)
    assert sorted(problem.split("'")[1] for problem in problems) == [
        "advantage.learning_rate", "average.steps", "evaluation.at", "evaluation.at", "iterations", "runtime.device",
        "runtime.keep", "sampling.traversals", "seed",
    ]  # fmt: skip


def test_mistakes_of_every_kind_are_reported_together() -> None:
    problems = problems_of(
        {"sneed": 1, "iterations": 0, "sampling": {"traversals": "big"}, "runtime": {"device": "tpu"}}
    )
    names = {problem.split("'")[1] for problem in problems}
    assert names == {"sneed", "iterations", "sampling.traversals", "runtime.device"}


def test_a_value_just_out_of_range_looks_out_of_range() -> None:
    (problem,) = problems_of({"iterations": 100_000_001})
    low, high, value = (float(word.strip(".,").replace(",", "")) for word in problem.split() if word[0].isdigit())
    assert not low <= value <= high


@pytest.mark.parametrize("device", ["cuda:banana", "cuda:", "cpu:-7", "cuda:1:2"])
def test_devices_that_torch_cannot_name_are_refused(device: str) -> None:
    assert "'runtime.device'" in problems_of({"runtime": {"device": device}})[0]


# Files


def file_problems(path: Path, text: str | bytes) -> tuple[str, ...]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return caught.value.problems


def test_problems_in_a_file_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    problems = file_problems(path, "sneed = 1\n[cfr]\niterations = 'x'\n")
    assert len(problems) == 2
    assert all(str(path) in problem for problem in problems)
    assert_sentences(problems)


@pytest.mark.parametrize(
    "text",
    [
        "seed = ",
        "seed = 1\nseed = 2\n",
        "[cfr",
        "= 3",
        "[cfr]\n[cfr]\n",
        "seed = 1979-13-45",
        b"\xff\xfe",
        b"game = '\xc3'",
    ],
)
def test_text_that_is_not_toml_is_one_sentence_with_the_place(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "run.toml"
    problems = file_problems(path, text)
    assert len(problems) == 1
    assert f"'{path}' cannot be read" in problems[0]
    assert_sentences(problems)


def test_files_that_cannot_be_read_are_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            load_config(path)
        assert_sentences(caught.value.problems)


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
def test_garbage_text_gives_a_config_error_and_nothing_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "garbage.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    read_or_complain(lambda: load_config(path))


@given(at=st.integers(0, 2000), length=st.integers(0, 30), new=st.binary(max_size=10))
def test_damaged_files_give_a_config_error_and_nothing_else(tmp_path: Path, at: int, length: int, new: bytes) -> None:
    path = tmp_path / "damaged.toml"
    good = config_to_toml(RunConfig()).encode()
    path.write_bytes(good[:at] + new + good[at + length :])
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


@pytest.mark.parametrize(
    "text",
    [
        "seed = 1" + "0" * 400,
        "[advantage]\nlearning_rate = 1" + "0" * 400,
        "seed = 1" + "0" * 5000,
        "game = 0x1" + "0" * 5000,
        "game = " + "[" * 5000,
    ],
    ids=["seed of 400 digits", "rate of 400 digits", "5000 digits", "5000 hex digits", "deep nesting"],
)
def test_enormous_values_give_a_config_error_and_nothing_else(tmp_path: Path, text: str) -> None:
    file_problems(tmp_path / "enormous.toml", text)


def test_a_path_that_cannot_exist_gives_a_config_error() -> None:
    with pytest.raises(ConfigError):
        load_config("a\0b.toml")
