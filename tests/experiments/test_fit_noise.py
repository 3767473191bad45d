"""The noise of single fits: distances are those of plain refits, and vanish where fits do not differ."""

import copy
from itertools import combinations
from typing import Any

import pytest
import torch

from deepcfr.config import (
    SamplingConfig,
)
from deepcfr.core.rng import generator, key
from deepcfr.game.base import by_infoset
from deepcfr.game.presets import load_game
from deepcfr.network.examples import WEIGHTS
from deepcfr.network.fit import fit
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.policy.network import regret_matching
from deepcfr.solve.deep_cfr import DeepCFR
from experiments.fit_noise import FitNoise, fit_noise
from small_runs import small_config
from tables import finished

EXTERNAL = SamplingConfig(traversals=60)
PANEL = SamplingConfig(kind="public-chance", boards=6, panel=True, samples=10)


def trained(sampling: Any, **advantage: Any) -> DeepCFR:
    config = small_config(
        "leduc",
        3,
        memory={"capacity": 3_000},
        sampling=sampling,
        advantage={"steps": 12, "refit": "fine-tune", **advantage},
    )
    return finished(DeepCFR(load_game("leduc", config.network.suits), config))


def refits(solver: DeepCFR, player: int, count: int) -> list[SplitNetwork]:
    weights, config = WEIGHTS[solver.config.cfr.weighting], solver.config.advantage
    found = []
    for number in range(count):
        stream = key(solver.config.seed, "fit noise", solver.iteration, player, number)
        network = copy.deepcopy(solver.advantage_networks[player])
        if config.refit == "scratch":
            network = build_network(solver.game.encoding, solver.config.network, generator(stream))
        fit(network, solver.memories.advantage_examples(player, weights, 3, config), config, stream, solver.workers)
        found.append(network)
    return found


def total_variation(one: torch.Tensor, other: torch.Tensor) -> float:
    return sum(abs(float(x) - float(y)) for x, y in zip(one, other, strict=True)) / 2


def by_round(found: list[FitNoise], player: int) -> dict[int, FitNoise]:
    return {one.round: one for one in found if one.player == player}


def test_distances_are_those_of_plain_refits_to_samples() -> None:
    solver = trained(EXTERNAL, refit="scratch")
    found = fit_noise(solver, fits=4)
    rounds = by_infoset(solver.game, solver.game.round)
    for player in (0, 1):
        rows = solver.memories.stores[f"advantage-{player}"][slice(None)]  # type: ignore[index]
        outputs = [network(rows.infosets).detach() for network in refits(solver, player, 4)]
        legal = solver.game.encoding.legal[rows.infosets.node.long()]
        for round_, noise in by_round(found, player).items():
            here = [i for i, node in enumerate(rows.infosets.node.tolist()) if rounds[node] == round_]
            for size in (1, 2):
                means = [torch.stack(outputs[i : i + size]).mean(0) for i in range(0, 4, size)]
                played = [regret_matching(mean, legal) for mean in means]
                expected = 0.0
                pairs = list(combinations(played, 2))
                for one, other in pairs:
                    weights = [float(rows.iteration[i]) for i in here]
                    distances = [total_variation(one[i], other[i]) for i in here]
                    expected += sum(w * d for w, d in zip(weights, distances, strict=True)) / sum(weights) / len(pairs)
                assert noise.between[size] == pytest.approx(expected, rel=1e-4)
            assert set(noise.between) == {1, 2}
            assert noise.to_target == {}
        assert set(by_round(found, player)) == {0, 1}


def test_distances_on_a_panel_are_weighted_by_reach_and_reach_exact_targets() -> None:
    solver = trained(PANEL)
    found = fit_noise(solver, fits=2)
    memories = solver.memories.stores
    for player in (0, 1):
        networks = refits(solver, player, 2)
        examples = solver.memories.advantage_examples(player, WEIGHTS["linear"], 3, solver.config.advantage)
        for round_, part in enumerate(examples.parts):  # type: ignore[attr-defined]
            hands = memories[f"advantage-{player}-round-{round_}"][slice(None)]  # type: ignore[index]
            between = target = mass = 0.0
            for hand in range(len(hands)):
                for n, node in enumerate(part.nodes.tolist()):
                    legal, cards = part.legal[n], hands.cards[hand][None]
                    with torch.no_grad():
                        outputs = [v.joint(v.encode_cards(cards), v.encode_nodes()[node]) * v.scale for v in networks]
                    played = [regret_matching(output, legal) for output in outputs]
                    sums = torch.zeros(part.legal.shape[1])
                    for edge, place in enumerate(part.place.tolist()):
                        if place // part.legal.shape[1] == n:
                            sums[place % part.legal.shape[1]] = hands.values[hand, edge]
                    weight = float(hands.reach[hand, n])
                    exact = regret_matching(sums[None] / max(weight, 1e-9), legal)
                    between += weight * total_variation(played[0][0], played[1][0])
                    target += weight * sum(total_variation(one[0], exact[0]) for one in played) / 2
                    mass += weight
            noise = by_round(found, player)[round_]
            assert noise.between == pytest.approx({1: between / mass}, rel=1e-3, abs=1e-6)
            assert noise.to_target[1] == pytest.approx(target / mass, rel=1e-3)
            assert set(noise.to_target) == {1, 2}


def test_fits_that_hardly_move_do_not_differ_and_the_run_is_left_alone() -> None:
    solver = trained(EXTERNAL, learning_rate=1e-12)
    before = [copy.deepcopy(network.state_dict()) for network in solver.advantage_networks]
    told: list[tuple[int, int]] = []
    found = fit_noise(solver, 2, progress=lambda done, total: told.append((done, total)))
    assert all(one.between[1] < 1e-6 for one in found)
    assert fit_noise(trained(EXTERNAL), 2)[0].between[1] > 1e-4
    for network, state in zip(solver.advantage_networks, before, strict=True):
        assert all(torch.equal(state[name], tensor) for name, tensor in network.state_dict().items())
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
