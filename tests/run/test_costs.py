"""A run says what it will cost before it begins, and one that does not fit is refused with the figures."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from deepcfr.config import NetworkConfig, RunConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.files import cache_folder
from deepcfr.defaults import default_config
from deepcfr.game.betting import build_tree
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import build_game, load_rules, load_source
from deepcfr.network.networks import build_network, count_parameters, number_of_weights
from deepcfr.run import costs
from deepcfr.run.costs import cost_notes
from deepcfr.run.folder import RunFolder
from deepcfr.run.record import checkpoint_folders
from deepcfr.run.train import train
from deepcfr.solve.vector_cfr import VectorCFR
from small_runs import Crash, Recorder, crash, make_places, small_config, start, with_sections
from tables import tabular

BOARDS = small_config(
    "leduc",
    cfr={"first_round": "table"},
    sampling={"kind": "public-chance", "boards": 2, "samples": 9, "decisions": 8, "traversals": 10_000},
    memory={"capacity": 10**6},
)
HUGE = {"capacity": 10**10}


def notes(config: RunConfig) -> list[str]:
    return cost_notes(config, load_source(config.game))


def first_notes(path: Path, config: RunConfig) -> list[str]:
    """The lines before the first iteration."""
    observer = Recorder(at=1, do=crash)
    with pytest.raises(Crash):
        start(path, config, observer)
    return observer.notes


# Refusals: what a machine with so many bytes says

LISTED = small_config(
    "openspiel:kuhn_poker", memory={"capacity": 10**9}
)  # 2 bytes for the node, 4 for the iteration and 2 times 4 for the targets
WIDE = NetworkConfig(kind="mlp", width=8192, layers=64)
STRENGTH = replace(
    small_config("fhp", runtime={"device": "cuda"}, memory={"capacity": 10**5}),
    network=NetworkConfig(strength=True, width=8),
)  # whose table takes 20.56 MB, which a processor maps from a file


@pytest.mark.parametrize(
    ("bytes_there", "config", "sentence"),
    [
        # Kuhn takes 2 bytes for the node, 1 for the card, 4 for the iteration and 3 times 4 for the targets.
        (63_300_000_000, small_config(memory=HUGE), r"need up to 570\.0 GB, and there are 63\.3 GB: lower memory\.cap"),
        (40_300_000_000, LISTED, r"need up to 42\.0 GB, and there are 40\.3 GB: lower memory\.capacity"),
        (10**9, small_config("leduc", memory=HUGE), r"lower memory.capacity\.$"),
        (
            10**9,
            small_config("leduc", memory=HUGE, sampling={"kind": "outcome", "estimate": "baseline"}),
            r"lower memory.capacity or values.capacity\.$",
        ),
        (
            20_000_000_000,
            small_config(network=WIDE),
            r"The networks need up to \d+\.\d GB, and there are 20\.0 GB: low",
        ),
        (24_000_000, STRENGTH, r"and there are 0\.0 GB: lower"),
        (
            10**11,
            with_sections(BOARDS, game="hulh", sampling={"panel": True}),
            "hulh has too many boards to keep, and a panel keeps its boards",
        ),
        (
            10**9,
            tabular("cfr+", game="fhp", precision="float64"),
            r"tables of fhp in float64 need \d+\.\d GB, and there are 1\.0",
        ),
        (
            10**9,
            tabular("mccfr", game="hulh"),
            r"tables of hulh in float32 need [\d,.]+ GB, and there are 1\.0 GB",
        ),
    ],
)
def test_what_cannot_fit_is_refused_with_the_figures(
    bytes_there: int, config: RunConfig, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "usable_memory", lambda: bytes_there)
    monkeypatch.setattr(costs, "_memory_of", lambda _device: bytes_there)
    with pytest.raises(ConfigError, match=sentence):
        notes(config)


def test_a_run_that_cannot_fit_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = str(make_places(tmp_path).abstraction)
    monkeypatch.setattr(costs, "usable_memory", lambda: 100)
    for config in (small_config(network=WIDE), tabular("mccfr", game="leduc", abstraction=buckets)):
        with pytest.raises(ConfigError, match="GB"):
            train(RunFolder.create(tmp_path / config.solver, config), Recorder())


# Figures


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with room for everything."""
    monkeypatch.setattr(costs, "usable_memory", lambda: 10**12)


@pytest.mark.parametrize("solver, copies", [("deep-cfr", 6), ("nfsp", 18), ("ppo", 16), ("escher", 7)])
def test_networks_are_counted_with_gradients_and_moments(solver: Any, copies: int) -> None:
    config = replace(with_sections(default_config("kuhn", solver), cfr={"keep_networks": 0}), network=WIDE)
    weights = 63 * 8192 * 8193  # and the first and the last layer
    assert costs.network_bytes(build_game(load_source("kuhn")), config) == pytest.approx(4 * copies * weights, rel=0.01)


def test_snapshots_of_networks_are_counted() -> None:
    game = build_game(load_source("kuhn"))
    none, kept = (small_config(iterations=100, cfr={"keep_networks": every}) for every in (0, 5))
    weights = number_of_weights(game.encoding, kept.network)
    assert weights == count_parameters(build_network(game.encoding, kept.network, torch.Generator()))
    assert costs.network_bytes(game, kept) - costs.network_bytes(game, none) == 20 * 2 * 2 * weights


@pytest.mark.usefixtures("room")
def test_the_cost_is_said_before_it_is_paid(tmp_path: Path) -> None:
    memory = {"capacity": 10**6}  # 3 million of 19 bytes
    said = "memories take up to 0.06 GB, and a checkpoint as much on disk"
    assert notes(small_config(memory=memory)) == [said]
    assert notes(LISTED)[1] == "memories take up to 42.00 GB, and a checkpoint as much on disk"
    assert first_notes(tmp_path / "run", small_config()) == notes(small_config())


@pytest.mark.usefixtures("room")
def test_the_cost_of_boards_is_said() -> None:
    # each of three memories keeps 2 cards, the iteration, and for 8 decisions a node in 2 bytes and 3 actions in 4 each:
    # 118 bytes a hand
    assert notes(BOARDS) == [
        "memories take up to 0.35 GB, and a checkpoint as much on disk",
        "boards take up to 0.00 GB",
    ]
    ignored = "sampling.hands: ignored, because all boards of leduc are kept with all their hands"
    assert notes(with_sections(BOARDS, sampling={"hands": 3}))[2:] == [ignored]
    large = with_sections(BOARDS, game="hulh", sampling={"hands": 3, "decisions": 1})
    found = notes(large)
    assert "each thread takes up to 0.59 GB for a drawn board" in found
    assert not any("ignored" in note for note in found)
    seen = NetworkConfig(kind="two-tower", strength=True)
    table = "the table of hand strengths takes"
    assert f"{table} 2.01 GB, kept in {cache_folder()}" in notes(replace(large, network=seen))
    assert f"{table} 0.00 GB" in notes(replace(BOARDS, network=seen))
    assert f"{table} 0.02 GB" in notes(with_sections(STRENGTH, runtime={"device": "cpu"}))


@pytest.mark.parametrize("precision, size", [("float64", 8), ("float32", 4), ("int16", 2)])
def test_the_memory_of_flop_holdem_is_that_of_all_its_hands(precision: str, size: int) -> None:
    # 169 hands before the flop and 1,286,792 with it differ by more than suits; 1,755 flops, 80 bytes for each of 1,326.
    rules = load_rules("fhp")
    tree = build_tree(rules)
    actions = [int(tree.legal[: tree.num_decisions][tree.round[: tree.num_decisions] == r].sum()) for r in (0, 1)]
    expected = 2 * size * (169 * actions[0] + 1_286_792 * actions[1]) + 1326 * 80 * (1 + 1755)
    note, *_ = cost_notes(tabular("dcfr", game="fhp", precision=precision), rules)
    assert f"take {expected / 1e9:.2f} GB" in note


@pytest.mark.parametrize("solver, precision", [("cfr", "float64"), ("dcfr", "float32"), ("linear-cfr", "int16")])
def test_tables_are_said_before_the_first_iteration(tmp_path: Path, solver: Any, precision: str) -> None:
    config = tabular(solver, 3, game="leduc", precision=precision)
    memory, *_ = first_notes(tmp_path / "crashed", config)
    assert re.fullmatch(r"tables .*take 0\.00 GB, and a checkpoint about as much on disk", memory)
    whole, _ = start(tmp_path / "whole", config)
    (saved,) = checkpoint_folders(whole.path)
    array_bytes = sum(np.load(file).nbytes for file in saved.glob("*.npy"))
    assert 0 < array_bytes <= VectorCFR.memory_bytes(PokerGame(load_rules("leduc")), config)


def test_a_monte_carlo_run_says_its_memory_first(tmp_path: Path) -> None:
    buckets = str(make_places(tmp_path).abstraction)
    runs = {
        "plain": tabular("mccfr", 7, game="leduc"),
        "buckets": tabular("mccfr", 7, game="leduc", sampler="outcome", abstraction=buckets),
        "openspiel": tabular("mccfr", 7, game="openspiel:leduc_poker"),
    }
    said = {name: "\n".join(first_notes(tmp_path / name, config)) for name, config in runs.items()}
    assert all("tables take 0.00 GB" in text for text in said.values())
    assert "the abstraction takes 0.00 GB" in said["buckets"]
