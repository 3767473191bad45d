"""Default configurations of runs, chosen by measurement on two cores.

The recipes in config/recipes have the same settings and state the expected results.
"""

from __future__ import annotations

from math import comb
from typing import Any, Literal, get_args

from deepcfr.config import OPENSPIEL, NamedSolver, RunConfig, RuntimeConfig, SolveConfig, config_from_table
from deepcfr.config.records import NetworkSolver
from deepcfr.errors import ConfigError
from deepcfr.games.presets import GameSource, cards_of, count_histories, is_poker, load_source
from deepcfr.games.rules import PokerRules

_FOUR_ROUND_NAMES = ("hulh", "hunl-pot", "hunl-200")
LOCAL_CLUSTER = "local"  # address that starts a cluster on this machine

Size = Literal["tiny", "small", "large"]
# The most histories of a game of each size. Kuhn poker has 54, Leduc hold'em 9,300.
_MOST = {"tiny": 3_000, "small": 20_000_000}

SPOT_SIZES = "flop 75, turn 75, river 75, raise 100, allin"  # bets of `deepcfr spot`
SPOT_GAP = 10.0  # thousandths of the unit of the pot
SPOT_ITERATIONS = 2_000


def default_solve_config() -> SolveConfig:
    """The default configuration of `solve`: iterations may be short or long, so checkpoints are timed in seconds."""
    return SolveConfig(runtime=RuntimeConfig(checkpoint_every=1, checkpoint_seconds=120))


def network_solver(name: NamedSolver) -> NetworkSolver:
    """The solver behind a name of `train --solver`: others are settings of one."""
    if name in ("ppo", "mmd"):
        return "ppo"
    return "nfsp" if name == "nfsp" else "deep-cfr"


def size_of(source: GameSource) -> Size:
    """Return the size of a game by its histories; one that is no poker and not tiny counts as small."""
    histories = count_histories(source, _MOST["small"])
    if histories <= _MOST["tiny"]:
        return "tiny"
    return "small" if histories <= _MOST["small"] or not is_poker(source) else "large"


def default_config(game: str, solver: NamedSolver = "deep-cfr", source: GameSource | None = None) -> RunConfig:
    """The default configuration of `train GAME`: tuned on two cores for known games, by the game's size for others.

    `source` is the game's, if it is loaded already. Raises ConfigError for an unknown solver, and GameError for games that
    `load_source` and `count_histories` refuse.
    """
    if solver not in get_args(NamedSolver):
        raise ConfigError(f"'solver' must be one of {', '.join(get_args(NamedSolver))}, but is {solver}.")
    source = source or load_source(game)
    size = size_of(source)
    base = _MODEST if size == "large" else _SMALL
    if solver == "nfsp":
        return config_from_table({"game": game, "solver": solver, **_NFSP[size]})
    if solver in ("ppo", "mmd"):
        own = {"method": solver, **_GRADIENTS[size]}
        kept = {name: base[name] for name in ("network", "runtime")}
        return config_from_table({"game": game, "solver": "ppo", "ppo": own, "evaluation": {"every": 150}, **kept})
    if game.startswith(f"{OPENSPIEL}phantom_ttt"):
        base = base | _MANY_ACTIONS
    if solver == "deep-cfr":
        known = game if game in _TUNED else "kuhn" if size == "tiny" else ""
        return config_from_table({"game": game, **_TUNED.get(known, base)})
    relative = _RELATIVES[solver]
    if solver == "rcfr":  # exact sums of all hands on a panel of boards
        if not is_poker(source) or game in _FOUR_ROUND_NAMES:
            raise ConfigError(
                f"rcfr keeps sums of all hands on a panel of boards, of which {game} has none or too many."
            )
        base = _PANEL if size == "large" else _TUNED["leduc"]
        if size != "large" and game not in _TUNED:
            base = base | {"sampling": _PANEL["sampling"] | {"samples": _hands(cards_of(source))}}
    if relative.get("sampling", {}).get("kind") == "outcome":  # single histories
        base = base | (_POKER_HISTORIES if size == "large" else _SMALL_HISTORIES)
    tables = {name: base.get(name, {}) | relative.get(name, {}) for name in base | relative}
    if size == "tiny" and solver in _TINY_ITERATIONS:
        tables["cfr"] = tables["cfr"] | {"iterations": _TINY_ITERATIONS[solver]}
    return config_from_table({"game": game} | tables)


def _hands(rules: PokerRules) -> int:
    """The hands of a player on a board of the first round that deals one."""
    return comb(rules.num_cards - next((cards for cards in rules.board_cards if cards), 0), rules.hole_cards)


def default_cluster_config(game: str) -> RunConfig:
    """The default configuration of `train GAME --ray`: that of `train GAME`, as far as shards support it."""
    config = default_config(game)
    if config.sampling.kind != "public-chance":
        return config
    sampled = {"leduc": _SMALL} | dict.fromkeys(_FOUR_ROUND_NAMES, _EXTERNAL_FOUR_ROUNDS)
    return config_from_table({"game": game, **sampled.get(game, _EXTERNAL)})


def cluster_notes(game: str) -> list[str]:
    """A sentence for each difference of `train GAME --ray` from `train GAME`, where shards do not support a setting."""
    if default_config(game).sampling.kind != "public-chance":
        return []
    return [
        f"With --ray {game} starts from settings of its own, with external sampling, because public-chance traversals run "
        "in one process."
    ]


_MERGED_FIT = {"learning_rate": 3e-3, "schedule": "cosine", "draw": "merged"}
_PANEL_FIT = {
    "batch_size": 128,
    "optimizer": "muon",
    "learning_rate": 0.01,
    "schedule": "cosine",
}
_TOWER_FIT = _PANEL_FIT | {"batch_size": 384, "learning_rate": 0.02}
_ADAM_FIT = {"learning_rate": 3e-3, "schedule": "cosine"}
_HISTORY_FIT = {  # fits to infosets of sampled histories, not to whole hands
    "batch_size": 4_096,
    "draw": "balanced",
    "optimizer": "muon",
    "learning_rate": 2e-3,
    "schedule": "cosine",
    "refit": "fine-tune",
    "pot_units": True,
}
_WHOLE_HANDS = {"batch_size": 768}
_BOARD_FIT = {"batch_size": 2_048, "optimizer": "muon", "learning_rate": 5e-3, "schedule": "cosine"}
_DRAWN_BOARDS = {"kind": "public-chance", "boards": 200, "samples": 64, "hands": 64, "decisions": 8}
_TOWERS = {"kind": "two-tower", "width": 256, "layers": 2, "strength": True}
_FOUR_ROUNDS = {"card_width": 1, "card_embedding": True, "strength": True, "node_embedding": True}
# Drawn boards with some hands each, and networks that keep sums (docs/hulh.md).
_FOUR_ROUND_GAME: dict[str, Any] = {
    "cfr": {
        "iterations": 262,
        "weighting": "uniform",
        "first_round": "table",
        "average_weighting": "quadratic",
        "average_threshold": 0.05,
        "keep_networks": 4,
    },
    "sampling": _DRAWN_BOARDS,
    "memory": {"advantage_capacity": 200_000, "strategy_capacity": 6_000_000},
    "network": _FOUR_ROUNDS | _TOWERS,
    "advantage": {"steps": 120, "target": "bootstrap", **_HISTORY_FIT, "batch_size": 2_048, "learning_rate": 5e-3},
    "average": {"steps": 9_000, "draw": "balanced", **_BOARD_FIT},
    "runtime": {"checkpoint_every": 20},
}
_TUNED: dict[str, dict[str, Any]] = {
    "fhp": {
        "cfr": {"iterations": 60, "average_weighting": "quadratic", "weighting": "uniform", "first_round": "table"},
        "sampling": {"kind": "public-chance", "boards": 100, "samples": 256, "decisions": 16},
        "memory": {"advantage_capacity": 200_000, "strategy_capacity": 2_000_000},
        "network": _TOWERS,
        "advantage": {"steps": 120, "refit": "fine-tune", "target": "bootstrap", **_TOWER_FIT},
        "average": {"steps": 4_000, **_TOWER_FIT},
    },
    # Scaled from an earlier recipe of fhp, not tuned: a player has three decisions on the flop instead of 35, so a
    # mini-batch has more hands, and all of their decisions.
    "fhp-pot": {
        "cfr": {"iterations": 40, "first_round": "table"},
        "sampling": {"kind": "public-chance", "boards": 160, "panel": True, "samples": 1_176},
        "network": {"strength": True},
        "advantage": {"steps": 300, "refit": "fine-tune", "compress": 1.0, **_PANEL_FIT, **_WHOLE_HANDS},
        "average": {"steps": 1_500, **_PANEL_FIT, **_WHOLE_HANDS},
        "evaluation": {"at": [10, 20]},
    },
    "hulh": _FOUR_ROUND_GAME,
    "hunl-pot": _FOUR_ROUND_GAME | {"cfr": _FOUR_ROUND_GAME["cfr"] | {"iterations": 412}},
    # As hulh with sums of all iterations in the memory (docs/levers.md). Not tuned.
    "hunl-200": {
        "cfr": {"iterations": 80, "first_round": "table", "average_weighting": "quadratic"},
        "sampling": _DRAWN_BOARDS,
        "memory": {"advantage_capacity": 6_000_000, "strategy_capacity": 6_000_000},
        "network": _FOUR_ROUNDS | _TOWERS,
        "advantage": {"steps": 120, "refit": "fine-tune", "pot_units": True, **_BOARD_FIT},
        "average": {"steps": 3_000, **_BOARD_FIT},
        "runtime": {"checkpoint_every": 20},
    },
    "kuhn": {
        "cfr": {"iterations": 100},
        "sampling": {"traversals": 1_500},
        "memory": {"advantage_capacity": 1_000_000, "strategy_capacity": 1_000_000},
        "network": {"kind": "mlp", "width": 32, "layers": 2},
        "advantage": {"steps": 100, "batch_size": 128, "refit": "fine-tune", **_MERGED_FIT},
        "average": {"steps": 1_000, "batch_size": 128, **_MERGED_FIT},
        "evaluation": {"every": 25},
        "runtime": {"threads": 1, "checkpoint_every": 25},
    },
    # Six boards are all that Leduc has, each with all of its ten hands.
    "leduc": {
        "cfr": {"iterations": 200, "weighting": "discounted"},
        "sampling": {"kind": "public-chance", "boards": 6, "panel": True, "samples": 10},
        "network": {"kind": "mlp", "width": 64, "layers": 3},
        "advantage": {"steps": 50, "batch_size": 40, "refit": "fine-tune", "compress": 1.0, **_ADAM_FIT},
        "average": {**_PANEL_FIT, "steps": 4_000, "batch_size": 40},
        "evaluation": {"every": 100},
        "runtime": {"threads": 1, "checkpoint_every": 25},
    },
}
# External sampling for Leduc on a cluster and for other small games, which have no boards to visit.
_SMALL: dict[str, Any] = {
    "cfr": {"iterations": 200},
    "sampling": {"traversals": 1_500},
    "memory": {"advantage_capacity": 2_000_000, "strategy_capacity": 2_000_000},
    "network": {"kind": "mlp", "width": 64, "layers": 3},
    "advantage": {"steps": 100, "batch_size": 256, "refit": "fine-tune", **_MERGED_FIT},
    "average": {"steps": 2_000, "batch_size": 256, **_MERGED_FIT},
    "evaluation": {"every": 50},
    "runtime": {"threads": 1, "checkpoint_every": 25},
}
# A panel of boards for other poker games, not tuned.
_PANEL: dict[str, Any] = {
    "cfr": {"iterations": 40},
    "sampling": {"kind": "public-chance", "boards": 160, "panel": True, "samples": 1_176},
    "advantage": {"steps": 300, "refit": "fine-tune", **_PANEL_FIT},
    "average": {"steps": 1_500, **_PANEL_FIT},
}
# External sampling for other poker games, not tuned: it needs no list of all boards.
_MODEST: dict[str, Any] = {
    "cfr": {"iterations": 64},
    "sampling": {"traversals": 30_000},
    "memory": {"advantage_capacity": 4_000_000, "strategy_capacity": 4_000_000},
    "network": {"card_width": 1, "card_embedding": True},
    "advantage": {"steps": 200, "batch_size": 4_096, "refit": "fine-tune", **_MERGED_FIT},
    "average": {"steps": 1_500, "batch_size": 4_096, **_MERGED_FIT},
    "evaluation": {"at": [16, 32]},
    "runtime": {"checkpoint_every": 16},
}
# Flop hold'em on a cluster: the paper's traversals, and fits as for heads-up limit hold'em. Not tuned.
_EXTERNAL: dict[str, Any] = {
    "cfr": {"iterations": 40, "first_round": "table"},
    "memory": {"advantage_capacity": 10_000_000, "strategy_capacity": 10_000_000, "shards": 8},
    "network": {"card_width": 1, "strength": True},
    "advantage": {"steps": 300, **_HISTORY_FIT},
    "average": {"steps": 3_000, "batch_size": 4_096, "draw": "balanced", **_ADAM_FIT},
    "evaluation": {"at": [20]},
}
# The same for games of four rounds. Not tuned.
_EXTERNAL_FOUR_ROUNDS: dict[str, Any] = {
    "cfr": {"iterations": 120, "first_round": "table", "average_weighting": "quadratic", "keep_networks": 4},
    "sampling": {"traversals": 30_000},
    "memory": {"advantage_capacity": 20_000_000, "strategy_capacity": 20_000_000},
    "network": _FOUR_ROUNDS,
    "advantage": {"steps": 400, **_HISTORY_FIT},
    "average": {"steps": 6_000, "batch_size": 8_192, "draw": "balanced", **_ADAM_FIT},
    "runtime": {"checkpoint_every": 20},
}
# Relatives of Deep CFR have its fits; those with values of histories sample single histories, four times as many.
# ESCHER has nothing but its values, which need longer fits to newer histories than a baseline.
# All tries of one player are some 165,000 histories in a traversal of phantom tic-tac-toe. Not tuned.
_MANY_ACTIONS: dict[str, Any] = {"sampling": {"traversals": 6_000, "actions": 2}}
_SMALL_HISTORIES: dict[str, Any] = {
    "sampling": {"traversals": 6_000},
    "values": {"steps": 100, "batch_size": 512, "capacity": 30_000},
}
_POKER_HISTORIES: dict[str, Any] = {
    "sampling": {"traversals": 120_000},
    "values": {"steps": 200, "batch_size": 4_096, "capacity": 1_000_000},
}
_BASELINE = {"kind": "outcome", "estimate": "baseline"}
_RELATIVES: dict[str, dict[str, Any]] = {
    "dream": {"sampling": _BASELINE, "evaluation": {"policy": "sd-cfr"}},
    "escher": {"sampling": {"kind": "outcome", "estimate": "values"}, "values": {"steps": 400}},
    "rcfr": {"cfr": {"weighting": "uniform"}, "advantage": {"compress": 0.0}},
    "double-neural": {
        "cfr": {"weighting": "uniform"},
        "sampling": {"kind": "external", "actions": 2},
        "advantage": {"target": "sum"},
    },
    "deep-cfr+": {"cfr": {"weighting": "uniform", "average_weighting": "linear"}, "advantage": {"target": "bootstrap"}},
    "deep-dcfr+": {"cfr": {"weighting": "discounted"}, "advantage": {"target": "bootstrap"}},
    "deep-pdcfr+": {"cfr": {"weighting": "discounted"}, "advantage": {"target": "predict"}},
}
_RELATIVES |= {f"vr-{name}": own | {"sampling": _BASELINE} for name, own in _RELATIVES.items() if name.endswith("+")}
# On Kuhn poker an iteration of these takes 1 to 4 s of a core, so a run takes two to three minutes.
_TINY_ITERATIONS: dict[str, int] = {
    "dream": 120,
    "escher": 40,
    "deep-pdcfr+": 140,
    "vr-deep-cfr+": 110,
    "vr-deep-dcfr+": 100,
    "vr-deep-pdcfr+": 75,
}
_SHORT_GRADIENTS = {"iterations": 600, "episodes": 16_384}
_GRADIENTS: dict[Size, dict[str, int]] = {
    "tiny": _SHORT_GRADIENTS,
    "small": _SHORT_GRADIENTS,
    "large": {"iterations": 1_000, "episodes": 65_536},
}
# NFSP with large batches of episodes, and few, large mini-batches. Q is copied to its target network more often than in the
# paper, because an update covers many more games. A slow Q delays the average policy, so Leduc's replay memory holds the
# transitions of some thirteen iterations only. Kuhn's settings reach 40 mA/g (one seed), Leduc's the figure in
# the recipe leduc-nfsp; those of poker games are not tuned.
_NFSP: dict[Size, dict[str, Any]] = {
    "tiny": {
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
        },
        "network": {"kind": "mlp", "width": 32, "layers": 1},
        "evaluation": {"every": 100},
        "runtime": {"threads": 1, "checkpoint_every": 100},
    },
    "small": {
        "nfsp": {
            "iterations": 4_500,
            "episodes": 16_384,
            "epsilon_start": 1.0,
            "exploration": 0.2,
            "replay_capacity": 300_000,
            "reservoir_capacity": 4_000_000,
            "q_steps": 12,
            "policy_steps": 6,
            "batch_size": 4_096,
            "target_every": 6,
            "q_learning_rate": 1e-3,
            "policy_learning_rate": 3e-3,
        },
        "network": {"kind": "mlp", "width": 64, "layers": 3},
        "evaluation": {"every": 500},
        "runtime": {"checkpoint_every": 500},
    },
    "large": {
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
        },
        "network": {"card_width": 1, "card_embedding": True},
        "evaluation": {"at": [1_000, 2_000]},
        "runtime": {"checkpoint_every": 250},
    },
}
