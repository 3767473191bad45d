"""Descriptions of runs from their configurations: labels of curves, and the nodes that their methods count."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from deepcfr.abstraction.buckets import round_classes
from deepcfr.abstraction.files import read_description
from deepcfr.config import (
    NetworkConfig,
    RunConfig,
    TabularConfig,
    settings_by_name,
)
from deepcfr.games.betting import build_tree
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.rng import generator, key
from deepcfr.runs.folder import RunFolder
from deepcfr.sampling.traversal_tree import table_layout
from deepcfr.training.networks import build_network

Family = Literal["deep", "buckets", "lossless", "full width"]
FAMILIES: tuple[Family, ...] = ("deep", "buckets", "lossless", "full width")  # order of charts and tables

SAMPLED = "histories that sampled traversals visited, at decisions and at the end, and the deals on the way"
SWEPT = (
    "decisions and ends of every visited board, once for every distinct hand there and each traversing player; "
    "each stands for many histories at once"
)
_LISTED = "all histories of the game, once for each traversing player"


@dataclass(frozen=True)
class Method:
    """The description of a run's method."""

    label: str
    family: Family
    nodes: str  # definition of its nodes touched


def method_of(run: RunFolder) -> Method:
    """The method of a run; sizes are computed for poker games only, from their rules.

    Raises CheckpointError if the run's abstraction cannot be read.
    """
    rules = run.source if isinstance(run.source, PokerRules) else None
    if isinstance(run.config, RunConfig):
        size = _parameters(rules, run.config.network) if rules else 0
        nodes = SWEPT if run.config.plays_all_hands else SAMPLED
        name = run.config.method
        return Method(f"{name}, {size:,} parameters" if size else name, "deep", nodes)
    solve = run.config.solve
    if solve.algorithm == "mccfr":
        return _monte_carlo(run, solve, rules)
    bits = "" if solve.precision == "float32" or rules is None else f", {solve.precision}"
    label = f"{run.config.method}, full width{bits}"
    return Method(label, "full width", SWEPT if rules else _LISTED)


def _monte_carlo(run: RunFolder, solve: TabularConfig, rules: PokerRules | None) -> Method:
    name = "Linear MCCFR" if solve.weighting == "linear" else "MCCFR"
    if solve.sampler == "outcome":
        name += " by outcome sampling"
    if rules is None:
        return Method(name, "lossless", SAMPLED)
    path = run.abstraction_path
    whole = tuple(round_classes(rules, round_) for round_ in range(rules.num_rounds))
    counts = whole if path is None else tuple(read_description(path)["counts"])
    size = table_layout(build_tree(rules), counts).size
    what = "lossless" if path is None else _buckets(counts, whole)
    return Method(f"{name}, {what} ({size:,} infoset-actions)", "buckets" if path else "lossless", SAMPLED)


def _buckets(counts: tuple[int, ...], whole: tuple[int, ...]) -> str:
    """The numbers of buckets by round, without lossless rounds such as the first one of FHP."""
    merged = [f"{count:,}" for count, all_of_them in zip(counts, whole, strict=True) if count < all_of_them]
    return f"{' + '.join(merged)} buckets" if merged else "buckets without loss"


@lru_cache
def _parameters(rules: PokerRules, config: NetworkConfig) -> int:
    encoding = PokerGame(rules, config.suits).encoding
    network = build_network(encoding, config, generator(key(0, "report")))
    return sum(weights.numel() for weights in network.parameters())


def methods_of(runs: Sequence[RunFolder]) -> list[Method]:
    """The methods of several runs. Runs that differ only by seed, length, threads and evaluations have the same label.

    If other settings differ between runs of one label, the label names them.
    """
    methods = [method_of(run) for run in runs]
    settings = [_settings(run) for run in runs]
    labelled = []
    for method, own in zip(methods, settings, strict=True):
        rivals = [other for m, other in zip(methods, settings, strict=True) if m.label == method.label]
        differing = [name for name in own if any(other.get(name) != own[name] for other in rivals)]
        said = ", ".join(f"{name} = {own[name]}" for name in differing)
        labelled.append(dataclasses.replace(method, label=f"{method.label}; {said}") if said else method)
    return labelled


def _settings(run: RunFolder) -> dict[str, object]:
    """The settings that determine a run's curve, without the seed, by their names in configuration files."""
    return {
        name: value
        for name, value in settings_by_name(run.config).items()
        if "." in name and not name.startswith(("evaluation.", "runtime.")) and not name.endswith(".iterations")
    }
