"""The configurations that runs start from when nothing is said: chosen by measurement on two cores.

The files in configs/ say the same and what to expect.
"""

from __future__ import annotations

from typing import Any

from deepcfr.config import OPENSPIEL, RunConfig, RuntimeConfig, SolveConfig, config_from_table

LOCAL_CLUSTER = "local"  # the address of a cluster that is begun on this machine


def default_solve_config() -> SolveConfig:
    """The configuration that `solve` starts from: iterations may be short or long, so checkpoints go by the clock."""
    return SolveConfig(runtime=RuntimeConfig(checkpoint_every=1, checkpoint_seconds=120))


def default_config(game: str, solver: str = "deep-cfr") -> RunConfig:
    """The configuration that `train GAME` starts from: tuned on two cores where the game is known, else a modest one."""
    if solver == "nfsp":
        small = game in ("kuhn", "leduc") or game.startswith(OPENSPIEL)
        settings = _NFSP["kuhn" if game == "kuhn" else "leduc" if small else "poker"]
        return config_from_table({"game": game, "solver": solver, **settings})
    if game in _TUNED:
        return config_from_table({"game": game, **_TUNED[game]})
    if game.startswith(OPENSPIEL):
        return config_from_table({"game": game, **_TUNED["leduc"]})
    return config_from_table({"game": game, **_MODEST})


def default_cluster_config(game: str) -> RunConfig:
    """The configuration that `train GAME --ray` starts from: external sampling, whose memories can be in many places."""
    tuned = _TUNED.get(game, _MODEST)
    if tuned.get("cfr", {}).get("sampler") == "public-chance":
        tuned = _EXTERNAL
    fits = {name: tuned.get(name, {}) | {"merge_infosets": False} for name in ("advantage", "average")}
    return config_from_table({"game": game, **tuned, **fits, "cfr": {**tuned["cfr"], "average_smoothing": 0.0}})


_SMALL_FIT = {"learning_rate": 3e-3, "schedule": "cosine", "merge_infosets": True}
_PANEL_FIT = {
    "batch_size": 384,
    "decisions": 12,
    "optimizer": "muon",
    "learning_rate": 0.01,
    "schedule": "cosine",
}
_ADAM_FIT = {"learning_rate": 3e-3, "schedule": "cosine"}
_HISTORY_FIT = {  # of infosets that histories come to, not whole hands
    "batch_size": 4_096,
    "draw": "balanced",
    "optimizer": "muon",
    "learning_rate": 2e-3,
    "schedule": "cosine",
    "refit": "fine-tune",
    "pot_units": True,
}
_WHOLE_HANDS = {"batch_size": 768, "decisions": 0}
_TUNED: dict[str, dict[str, Any]] = {
    "fhp": {
        "cfr": {"iterations": 40, "sampler": "public-chance", "first_round": "table"},
        "public_chance": {"boards": 160, "panel": True, "samples": 1_176},
        "network": {"strength": True},
        "advantage": {"steps": 300, "refit": "fine-tune", "compress": 1.0, **_PANEL_FIT},
        "average": {"steps": 3_000, **_PANEL_FIT},
        "evaluation": {"at": [20]},
    },
    # In proportion to fhp, but not tuned: a player has three decisions on the flop instead of 35, so a mini-batch has more
    # hands, and all of their decisions.
    "fhp-pot": {
        "cfr": {"iterations": 40, "sampler": "public-chance", "first_round": "table"},
        "public_chance": {"boards": 160, "panel": True, "samples": 1_176},
        "network": {"strength": True},
        "advantage": {"steps": 300, "refit": "fine-tune", "compress": 1.0, **_PANEL_FIT, **_WHOLE_HANDS},
        "average": {"steps": 1_500, **_PANEL_FIT, **_WHOLE_HANDS},
        "evaluation": {"at": [10, 20]},
    },
    # External sampling, which needs no list of all boards (docs/hulh.md).
    "hulh": {
        "cfr": {
            "iterations": 120,
            "traversals": 30_000,
            "chunk": 625,
            "remove_luck": True,
            "first_round": "table",
            "average_weighting": "quadratic",
            "average_smoothing": 0.33,
            "keep_networks": 4,
        },
        "memory": {"advantage_capacity": 20_000_000, "strategy_capacity": 20_000_000},
        "network": {"card_width": 1, "strength": True, "runouts": True, "node_embedding": True},
        "advantage": {"steps": 400, **_HISTORY_FIT},
        "average": {"steps": 12_000, "batch_size": 8_192, "draw": "balanced", **_ADAM_FIT},
        "runtime": {"checkpoint_every": 20},
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
# As hulh with half the training, not tuned. Chips grow threefold with every raise, so units of the pot matter all the more.
_TUNED["hunl-pot"] = _TUNED["hulh"] | {
    "cfr": _TUNED["hulh"]["cfr"] | {"iterations": 60},
    "average": _TUNED["hulh"]["average"] | {"steps": 6_000},
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
        "merge_infosets": True,
    },
    "evaluation": {"at": [16, 32]},
    "runtime": {"checkpoint_every": 16},
}
# Flop hold'em on a cluster: the paper's traversals, and fits as for heads-up limit hold'em. Not tuned.
_EXTERNAL: dict[str, Any] = {
    "cfr": {"iterations": 40, "traversals": 10_000, "chunk": 625, "remove_luck": True, "first_round": "table"},
    "memory": {"advantage_capacity": 10_000_000, "strategy_capacity": 10_000_000, "shards": 8},
    "network": {"card_width": 1, "strength": True},
    "advantage": {"steps": 300, **_HISTORY_FIT},
    "average": {"steps": 3_000, "batch_size": 4_096, "draw": "balanced", **_ADAM_FIT},
    "evaluation": {"at": [20]},
}
_NFSP_FIT = {"optimizer": "adam", "schedule": "cosine", "clip": 1.0}
# NFSP with large batches of episodes, and few, large mini-batches. Q is copied to its target network more often than in the
# paper, because an update stands for many more games. In Leduc the average follows late when Q does, so players respond
# often and explore much at first, and the replay memory holds what some fifty iterations add. Kuhn's settings reach 40 mA/g
# (one seed), Leduc's what configs/leduc-nfsp.toml says; those of poker games are not tuned.
_NFSP: dict[str, dict[str, Any]] = {
    "kuhn": {
        "nfsp": {
            "iterations": 300,
            "episodes": 512,
            "anticipatory": 0.2,
            "epsilon_start": 0.2,
            "replay_capacity": 10_000,
            "q_steps": 4,
            "policy_steps": 2,
            "q_learning_rate": 0.01,
            "policy_learning_rate": 0.01,
            **_NFSP_FIT,
        },
        "network": {"kind": "mlp", "width": 32, "layers": 1},
        "evaluation": {"every": 100},
        "runtime": {"threads": 1, "checkpoint_every": 100},
    },
    "leduc": {
        "nfsp": {
            "iterations": 4_000,
            "episodes": 4_096,
            "anticipatory": 0.3,
            "epsilon_start": 0.5,
            "replay_capacity": 500_000,
            "q_steps": 24,
            "policy_steps": 12,
            "batch_size": 1_024,
            "target_every": 24,
            "q_learning_rate": 2e-3,
            "policy_learning_rate": 2e-3,
            **_NFSP_FIT,
        },
        "network": {"kind": "mlp", "width": 64, "layers": 3},
        "evaluation": {"every": 500},
        "runtime": {"checkpoint_every": 500},
    },
    "poker": {
        "nfsp": {
            "iterations": 4_000,
            "episodes": 8_192,
            "replay_capacity": 600_000,
            "reservoir_capacity": 10_000_000,
            "q_steps": 16,
            "policy_steps": 8,
            "batch_size": 2_048,
            "target_every": 16,
            "q_learning_rate": 1e-3,
            "policy_learning_rate": 1e-3,
            **_NFSP_FIT,
        },
        "network": {"card_width": 1},
        "evaluation": {"at": [1_000, 2_000]},
        "runtime": {"checkpoint_every": 250},
    },
}
