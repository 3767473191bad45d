"""The noise of single fits: distances are those of plain refits, and vanish where fits do not differ."""

import copy
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch

from command_line import deepcfr
from deepcfr.config import (
    AdvantageFitConfig,
    CFRConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
)
from deepcfr.core.errors import TrainingError
from deepcfr.core.rng import generator, key
from deepcfr.game.base import by_infoset
from deepcfr.game.presets import load_game
from deepcfr.network.examples import WEIGHTS
from deepcfr.network.fit import fit
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.policy.network import regret_matching
from deepcfr.run.folder import RunFolder
from deepcfr.solve.deep_cfr import DeepCFR
from experiments.fit_noise import FitNoise, fit_noise, main

EXTERNAL = SamplingConfig(traversals=60)
PANEL = SamplingConfig(kind="public-chance", boards=6, panel=True, samples=10)
LINEAR = CFRConfig()


def trained(sampling: Any, cfr: CFRConfig = LINEAR, **advantage: Any) -> DeepCFR:
    config = RunConfig(
        game="leduc",
        iterations=3,
        cfr=cfr,
        sampling=sampling,
        memory=MemoryConfig(advantage_capacity=3_000, strategy_capacity=3_000),
        network=NetworkConfig(kind="mlp", width=8, layers=1),
        advantage=AdvantageFitConfig(**({"steps": 12, "batch_size": 16, "refit": "fine-tune"} | advantage)),
        runtime=RuntimeConfig(threads=1),
    )
    solver = DeepCFR(load_game("leduc", config.network.suits), config)
    for _ in solver.iterations():
        pass
    return solver


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


@pytest.mark.parametrize("refit", ["fine-tune", "scratch"])
def test_distances_are_those_of_plain_refits_to_samples(refit: str) -> None:
    solver = trained(EXTERNAL, refit=refit)
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


def test_samples_of_several_decisions_count_each_of_them() -> None:
    solver = trained(SamplingConfig(kind="public-chance", boards=4, samples=20, decisions=2))
    found = fit_noise(solver, fits=2)
    rounds = by_infoset(solver.game, solver.game.round)
    for player in (0, 1):
        networks = refits(solver, player, 2)
        rows = solver.memories.stores[f"advantage-{player}"][slice(None)]  # type: ignore[index]
        assert rows.infosets.node.shape == (len(rows), 2)
        apart: dict[int, list[float]] = {}
        mass: dict[int, list[float]] = {}
        for sample in range(len(rows)):
            infosets = rows.infosets[slice(sample, sample + 1)]
            with torch.no_grad():
                outputs = [network(infosets)[0] for network in networks]  # [2, A]
            legal = solver.game.encoding.legal[infosets.node[0].long()]
            played = [regret_matching(output, legal) for output in outputs]
            for place, node in enumerate(infosets.node[0].tolist()):
                weight = float(rows.iteration[sample])
                apart.setdefault(int(rounds[node]), []).append(
                    weight * total_variation(played[0][place], played[1][place])
                )
                mass.setdefault(int(rounds[node]), []).append(weight)
        for round_, noise in by_round(found, player).items():
            assert noise.between[1] == pytest.approx(sum(apart[round_]) / sum(mass[round_]), rel=1e-4)


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


def test_noise_needs_two_fits_and_a_memory() -> None:
    with pytest.raises(TrainingError, match="at least 2 fits, but there are 1"):
        fit_noise(trained(EXTERNAL), 1)
    config = replace(trained(EXTERNAL).config)
    with pytest.raises(TrainingError, match="memory of player 0 is empty"):
        fit_noise(DeepCFR(load_game("leduc", config.network.suits), config))


def test_the_command_prints_the_noise_of_a_run_with_memories_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = (
        "--iterations", 2, "--sampling.kind", "external", "--sampling.traversals", 20, "--network.kind", "mlp",
        "--network.width", 8, "--advantage.steps", 4, "--average.steps", 4, "--runtime.threads", 1, "--json",
    )  # fmt: skip
    assert deepcfr("train", "leduc", "--cfr.weighting", "linear", "--out", tmp_path / "run", *tiny).status == 0
    main(tmp_path / "run")
    shown = capsys.readouterr().out
    solver, _ = RunFolder.open(tmp_path / "run").load_solver(pytest.fail, memories=True)
    for one in fit_noise(solver):  # type: ignore[arg-type]
        assert f"player {one.player}, {one.name}" in shown
        assert all(f"{1000 * value:.1f}" in shown for value in one.between.values())
    assert deepcfr("train", "leduc", "--solver", "deep-cfr+", "--out", tmp_path / "plus", *tiny).status == 0
    with pytest.raises(SystemExit, match="no run of Deep CFR whose memory has all iterations"):
        main(tmp_path / "plus")
