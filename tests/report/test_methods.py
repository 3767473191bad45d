"""Labels say what runs are, with sizes that can be counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deepcfr.abstraction.buckets import save_abstraction
from deepcfr.config import AnyConfig, ExternalSampling, RunConfig, SolveConfig, TabularConfig, load_config
from deepcfr.defaults import default_config
from deepcfr.games.presets import load_rules
from deepcfr.report.charts import method_of, methods_of
from deepcfr.runs.folder import RunFolder
from experiments.bench.tabular import random_abstraction

FLOP_CLASSES = 1_286_792  # of a hole and a flop up to suits (Waugh 2013, table 1)
FIRST_ROUND, FLOP = 21, 182  # decisions times actions of the public tree, in each round of FHP


def solve(**settings: object) -> SolveConfig:
    return SolveConfig("fhp", solve=TabularConfig(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("config", "label"),
    [
        (default_config("fhp"), "DeepCFR+, 222,592 parameters"),
        (RunConfig(), "Deep CFR, 98,948 parameters"),
        (default_config("fhp", "nfsp"), "NFSP, 48,004 parameters"),
        (
            solve(algorithm="mccfr"),
            f"Linear MCCFR, lossless ({169 * FIRST_ROUND + FLOP_CLASSES * FLOP:,} infoset-actions)",
        ),
        (
            solve(algorithm="mccfr", weighting="uniform", sampler="outcome"),
            "MCCFR by outcome sampling, lossless (234,199,693 infoset-actions)",
        ),
        (solve(algorithm="linear-cfr"), "Linear CFR, full width"),
        (solve(algorithm="cfr+", precision="int16"), "CFR+, full width, int16"),
        (SolveConfig("openspiel:kuhn_poker", solve=TabularConfig("dcfr")), "Discounted CFR, full width"),
        (SolveConfig("openspiel:kuhn_poker", solve=TabularConfig("mccfr")), "Linear MCCFR"),
        (default_config("openspiel:kuhn_poker"), "Deep CFR"),
    ],
)
def test_labels_come_from_the_configuration(tmp_path: Path, config: AnyConfig, label: str) -> None:
    assert method_of(RunFolder.create(tmp_path / "run", config)).label == label


def test_buckets_are_those_of_the_abstraction(tmp_path: Path) -> None:
    save_abstraction(tmp_path / "abstraction", random_abstraction(load_rules("fhp"), 200, seed=0), {})
    config = solve(algorithm="mccfr", abstraction=str(tmp_path / "abstraction"))
    method = method_of(RunFolder.create(tmp_path / "run", config))
    assert 169 * FIRST_ROUND + 200 * FLOP == 39_949
    assert method.label == "Linear MCCFR, 200 buckets (39,949 infoset-actions)"
    assert method.family == "buckets"


def test_what_is_counted_depends_on_the_solver(leduc_runs: dict[str, RunFolder], tmp_path: Path) -> None:
    nodes = {name: method_of(run).nodes for name, run in leduc_runs.items()}
    assert nodes["deep"] == nodes["lossless"] == nodes["bucketed"]
    listed = RunFolder.create(tmp_path / "tree", SolveConfig("openspiel:kuhn_poker", solve=TabularConfig("cfr")))
    assert len({nodes["deep"], nodes["full"], method_of(listed).nodes}) == 3


def test_public_chance_runs_count_hands_on_boards_as_full_width_runs_do(tmp_path: Path) -> None:
    public = load_config("fhp-faithful")
    public = replace(public, cfr=replace(public.cfr, weighting="linear"))
    external = replace(public, sampling=ExternalSampling())
    nfsp = replace(public, solver="nfsp")  # which does not read how Deep CFR samples
    nodes = [
        method_of(RunFolder.create(tmp_path / str(i), config)).nodes
        for i, config in enumerate((public, solve(algorithm="linear-cfr"), external, solve(algorithm="mccfr"), nfsp))
    ]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3] == nodes[4]
    assert "every visited board" in nodes[0]


def test_labels_name_the_settings_that_tell_runs_apart(tmp_path: Path) -> None:
    base = default_config("kuhn")
    longer = replace(base, seed=1, cfr=replace(base.cfr, iterations=999), runtime=replace(base.runtime, threads=2))
    other = replace(base, sampling=replace(base.sampling, traversals=77))
    runs = [RunFolder.create(tmp_path / str(i), config) for i, config in enumerate((base, longer))]
    assert len({method.label for method in methods_of(runs)}) == 1
    runs.append(RunFolder.create(tmp_path / "other", other))
    labels = [method.label for method in methods_of(runs)]
    assert labels[0] == labels[1]
    assert labels[0].endswith("; sampling.traversals = 1500")
    assert labels[2].endswith("; sampling.traversals = 77")
