"""The configurations that runs start from when nothing is said: chosen by measurement on two cores.

The files in configs/ say the same and what to expect.
"""

from __future__ import annotations

from typing import Any

from deepcfr.config import OPENSPIEL, RunConfig, RuntimeConfig, SolveConfig, config_from_table


def default_solve_config() -> SolveConfig:
    """The configuration that `solve` starts from: iterations may be short or long, so checkpoints go by the clock."""
    return SolveConfig(runtime=RuntimeConfig(checkpoint_every=1, checkpoint_seconds=120))


def default_config(game: str) -> RunConfig:
    """The configuration that `train GAME` starts from: tuned on two cores where the game is known, else a modest one."""
    if game in _TUNED:
        return config_from_table({"game": game, **_TUNED[game]})
    if game.startswith(OPENSPIEL):
        return config_from_table({"game": game, **_TUNED["leduc"]})
    return config_from_table({"game": game, **_MODEST})


_SMALL_FIT = {"learning_rate": 3e-3, "schedule": "cosine", "merge_infosets": True}
_PANEL_FIT = {
    "batch_size": 384,
    "decisions": 12,
    "optimizer": "muon",
    "learning_rate": 0.01,
    "schedule": "cosine",
}
_TUNED: dict[str, dict[str, Any]] = {
    "fhp": {
        "cfr": {"iterations": 40, "sampler": "public-chance", "first_round": "table"},
        "public_chance": {"boards": 160, "panel": True, "samples": 1_176},
        "network": {"strength": True},
        "advantage": {"steps": 300, "refit": "fine-tune", "compress": 1.0, **_PANEL_FIT},
        "average": {"steps": 3_000, **_PANEL_FIT},
        "evaluation": {"at": [20]},
    },
    "kuhn": {
        "cfr": {"iterations": 100, "traversals": 1_500},
        "memory": {"advantage_capacity": 1_000_000, "strategy_capacity": 1_000_000},
        "network": {"kind": "mlp", "width": 32, "layers": 2},
        "advantage": {"steps": 100, "batch_size": 128, "refit": "fine-tune", **_SMALL_FIT},
        "average": {"steps": 1_000, "batch_size": 128, **_SMALL_FIT},
        "evaluation": {"every": 25},
        "runtime": {"threads": 1, "checkpoint_every": 25},
    },
    "leduc": {
        "cfr": {"iterations": 200, "traversals": 1_500},
        "memory": {"advantage_capacity": 2_000_000, "strategy_capacity": 2_000_000},
        "network": {"kind": "mlp", "width": 64, "layers": 3},
        "advantage": {"steps": 100, "batch_size": 256, "refit": "fine-tune", **_SMALL_FIT},
        "average": {"steps": 2_000, "batch_size": 256, **_SMALL_FIT},
        "evaluation": {"every": 50},
        "runtime": {"threads": 1, "checkpoint_every": 25},
    },
}
# External sampling, for poker games that nobody has tuned: it needs no list of all boards.
_MODEST: dict[str, Any] = {
    "cfr": {"iterations": 64, "traversals": 30_000},
    "memory": {"advantage_capacity": 4_000_000, "strategy_capacity": 4_000_000},
    "network": {"card_width": 1},
    "advantage": {
        "steps": 200,
        "batch_size": 4_096,
        "learning_rate": 3e-3,
        "schedule": "cosine",
        "refit": "fine-tune",
        "merge_infosets": True,
    },
    "average": {
        "steps": 1_500,
        "batch_size": 4_096,
        "learning_rate": 3e-3,
        "schedule": "cosine",
        "refit": "fine-tune",
        "merge_infosets": True,
    },
    "evaluation": {"at": [16, 32]},
    "runtime": {"checkpoint_every": 16},
}
