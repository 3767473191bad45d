"""Default configurations of runs: recipes of config/recipes, chosen by measurement on two cores, and relatives of them."""

from __future__ import annotations

from math import comb
from typing import Any, Literal, get_args

from deepcfr.config import NamedSolver, RunConfig, config_from_table, read_settings
from deepcfr.config.records import SolverName, TabularSolver
from deepcfr.config.toml import RECIPES
from deepcfr.core.errors import ConfigError
from deepcfr.game.presets import GameSource, cards_of, count_histories, is_poker, load_source
from deepcfr.game.rules import PokerRules

_FOUR_ROUND_NAMES = ("hulh", "hunl-pot", "hunl-200")
# The recipes of games, and of games of each size
_RECIPES = {
    "kuhn": "kuhn", "leduc": "leduc", "fhp": "fhp-quick", "fhp-pot": "fhp-pot",
    **dict.fromkeys(_FOUR_ROUND_NAMES, "four-rounds"),
}  # fmt: skip
_NFSP = {"tiny": "kuhn-nfsp", "small": "leduc-nfsp", "large": "large-nfsp"}
LOCAL_CLUSTER = "local"  # address that starts a cluster on this machine

Size = Literal["tiny", "small", "large"]
# The most histories of a game of each size. Kuhn poker has 54, Leduc hold'em 9,300.
_MOST = {"tiny": 3_000, "small": 20_000_000}

HANDS_EXPLOITABILITY, HANDS_ITERATIONS = "1%", 300  # which stops at either
HANDS_SIZES = "flop 50, turn 75, river 75, raise 100, cap 1"  # bets of `deepcfr hands`
SPOT_SIZES = "flop 75, turn 75, river 75, raise 100, allin"  # bets of `deepcfr spot`
SPOT_EXPLOITABILITY = 0.05  # percent of the pot
SPOT_ITERATIONS = 2_000


def solver_of(name: NamedSolver) -> SolverName:
    """The solver behind a name of `train --solver`: others are settings of Deep CFR."""
    return name if name in ("nfsp", "ppo", "mmd") else "deep-cfr"


def size_of(source: GameSource) -> Size:
    """Return the size of a game by its histories; one that is no poker and not tiny counts as small."""
    histories = count_histories(source, _MOST["small"])
    if histories <= _MOST["tiny"]:
        return "tiny"
    return "small" if histories <= _MOST["small"] or not is_poker(source) else "large"


def default_config(
    game: str, solver: NamedSolver | TabularSolver = "deep-cfr", source: GameSource | None = None
) -> RunConfig:
    """The default configuration of a game: tuned on two cores for known games, by the game's size for others.

    `source` is the game's, if it is loaded already. Raises ConfigError for an unknown solver, and GameError for games that
    `load_source` and `count_histories` refuse.
    """
    if solver in get_args(TabularSolver):
        return config_from_table({"game": game, "solver": solver, "iterations": 200 if solver == "cfr-d" else 100})
    if solver not in get_args(NamedSolver):
        known = ", ".join((*get_args(NamedSolver), *get_args(TabularSolver)))
        raise ConfigError(f"'solver' must be one of {known}, but is {solver}.")
    source = source or load_source(game)
    size = size_of(source)
    base = _recipe("large" if size == "large" else "leduc-external")
    if solver == "nfsp":
        return config_from_table({"game": game, **_recipe(_NFSP[size])})
    if solver in ("ppo", "mmd"):
        kept: dict[str, Any] = {name: base[name] for name in ("network", "runtime") if name in base}
        return config_from_table(
            {"game": game, "solver": solver, "evaluation": {"every": 150}, **_GRADIENTS[size], **kept}
        )
    if solver == "deep-cfr":
        known = _RECIPES.get(game, "kuhn" if size == "tiny" else "")
        return config_from_table({"game": game, **(_recipe(known) if known else base)})
    relative = _RELATIVES[solver]
    if solver == "rcfr":  # exact sums of all hands on a panel of boards
        if not is_poker(source) or game in _FOUR_ROUND_NAMES:
            raise ConfigError(
                f"rcfr keeps sums of all hands on a panel of boards, of which {game} has none or too many."
            )
        base = _recipe("panel" if size == "large" else "leduc")
        if size != "large" and game not in _RECIPES:
            base = base | {"sampling": _recipe("panel")["sampling"] | {"samples": _hands(cards_of(source))}}
    if relative.get("sampling", {}).get("kind") == "outcome":  # single histories
        base = base | (_POKER_HISTORIES if size == "large" else _SMALL_HISTORIES)
    if size == "tiny" and solver in _TINY_ITERATIONS:
        relative = relative | {"iterations": _TINY_ITERATIONS[solver]}
    sections = {name: base.get(name, {}) | own for name, own in relative.items() if isinstance(own, dict)}
    return config_from_table(base | relative | sections | {"game": game})


def _recipe(name: str) -> dict[str, Any]:
    """The settings of a recipe, without its game."""
    return {key: value for key, value in read_settings(RECIPES / f"{name}.toml").items() if key != "game"}


def _hands(rules: PokerRules) -> int:
    """The hands of a player on a board of the first round that deals one."""
    return comb(rules.num_cards - next((cards for cards in rules.board_cards if cards), 0), rules.hole_cards)


# Relatives of Deep CFR have its fits; those with values of histories sample single histories, four times as many.
# ESCHER has nothing but its values, which need longer fits to newer histories than a baseline.
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
    "rcfr": {"cfr": {"weighting": "uniform"}, "advantage": {"units": "chips"}},
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
_SHORT_GRADIENTS: dict[str, Any] = {"iterations": 600, "ppo": {"episodes": 16_384}}
_GRADIENTS: dict[Size, dict[str, Any]] = {
    "tiny": _SHORT_GRADIENTS,
    "small": _SHORT_GRADIENTS,
    "large": {"iterations": 1_000, "ppo": {"episodes": 65_536}},
}
