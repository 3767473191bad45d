"""After a short run every solver is far less exploitable than uniform play."""

from __future__ import annotations

import pytest

from deepcfr.config import RunConfig, SamplingConfig
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import build_game, load_source
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.run.build import build_solver
from openspiel_poker import small_fhp
from tables import changed, finished, small_config, tabular

QUICK = {"learning_rate": 5e-3, "schedule": "cosine", "draw": "merged"}
DEEP = small_config(advantage=QUICK, average=QUICK | {"steps": 150}, iterations=6)
LARGE = {"replay_capacity": 20_000, "reservoir_capacity": 100_000}
LIARS_DICE = "openspiel:liars_dice(dice_sides=3)"
GOOFSPIEL = "openspiel:goofspiel(num_cards=4,imp_info=True,points_order=descending)"
ON_BOARDS = SamplingConfig(kind="public-chance", boards=3, samples=60)
LEDUC = changed(DEEP, game="leduc", iterations=8, sampling=ON_BOARDS, cfr={"first_round": "table"})
CONFIGS: dict[str, tuple[RunConfig, float]] = {  # and the share of uniform play's exploitability that may be left
    "deep-cfr": (DEEP, 0.2),
    "outcome sampling": (changed(DEEP, sampling=SamplingConfig(kind="outcome", traversals=400), iterations=8), 0.3),
    "boards": (changed(LEDUC, sampling={"decisions": 8}), 0.55),
    "panel": (changed(LEDUC, sampling={"panel": True}), 0.45),
    "strength": (
        changed(DEEP, game="small flop", iterations=4, network={"strength": True}, sampling={"traversals": 500}), 0.4,
    ),
    "liar's dice": (changed(DEEP, game=LIARS_DICE), 0.5),
    "goofspiel": (changed(DEEP, game=GOOFSPIEL), 0.9),
    **{
        name: (small_config(name, iterations=iterations, average={"steps": 150}), 0.4)  # type: ignore[arg-type]
        for name, iterations in {"dream": 5, "escher": 7, "rcfr": 8, "double-neural": 10, "vr-deep-pdcfr+": 7}.items()
    },
    "nfsp": (small_config("nfsp", iterations=50, nfsp=LARGE | {"episodes": 300}), 0.5),
    "ppo": (small_config("ppo", iterations=30, ppo={"episodes": 1_000}), 0.7),
    "mmd": (small_config("mmd", iterations=10, ppo={"episodes": 2_000}), 0.5),
    "mmd of OpenSpiel": (small_config("mmd", "openspiel:kuhn_poker", 8, ppo={"episodes": 2_000}), 0.6),
    "mccfr": (tabular("mccfr", 300, game="leduc", traversals=200, initial="win-rates"), 0.05),
    "mccfr, floor, shape, two threads": (
        tabular("mccfr", 150, game="leduc", traversals=1_000, exploration_start=0.01, reward_shape="y2", threads=2), 0.3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_short_run_is_far_less_exploitable_than_uniform_play(name: str) -> None:
    config, share = CONFIGS[name]
    small = config.game == "small flop"
    game = PokerGame(small_fhp(3, (1, 1), (0, 1), num_suits=3)) if small else build_game(load_source(config.game))
    solver = finished(build_solver(game, config))
    solver.fit_average()
    solver.close()
    found = exploitability(solver.policy(config.evaluation.policy)).nash_conv
    assert 0 < found < share * exploitability(UniformPolicy(game)).nash_conv
