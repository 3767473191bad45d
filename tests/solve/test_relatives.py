"""Relatives of Deep CFR as settings: DREAM, ESCHER and bootstrapped advantages, with and without a baseline."""

from dataclasses import replace
from typing import Any, get_args

import pytest
import torch

from deepcfr.config import NamedSolver, SamplingConfig, unread_settings, validate_config
from deepcfr.core.types import TERMINAL, Infosets, Samples
from deepcfr.defaults import default_config, solver_of
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.presets import load_game
from deepcfr.network.examples import InfosetExamples, Objective, uniform_weights
from deepcfr.network.fit import FitResult, advantage_loss, value_loss
from deepcfr.network.memory import Memory
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.solve import deep_cfr
from deepcfr.solve.data import HistoryValues, history_encoding
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.first_round import bootstrapped, kept_share
from tables import finished, small_config

KUHN, LEDUC = load_game("kuhn"), load_game("leduc")
NAMES = {
    "rcfr": "RCFR",
    "double-neural": "Double Neural CFR",
    "dream": "DREAM",
    "escher": "ESCHER",
    "deep-cfr+": "DeepCFR+",
    "deep-dcfr+": "DeepDCFR+",
    "deep-pdcfr+": "DeepPDCFR+",
    "vr-deep-cfr+": "VR-DeepCFR+",
    "vr-deep-dcfr+": "VR-DeepDCFR+",
    "vr-deep-pdcfr+": "VR-DeepPDCFR+",
}


def test_every_name_of_the_command_line_is_a_valid_set_of_settings() -> None:
    assert set(get_args(NamedSolver)) == {"deep-cfr", "nfsp", "ppo", "mmd", *NAMES}
    for game in ("kuhn", "leduc", "fhp", "hulh", "openspiel:tic_tac_toe"):
        for name, method in NAMES.items():
            if name == "rcfr" and game in ("hulh", "openspiel:tic_tac_toe"):
                continue
            config = default_config(game, name)
            assert validate_config(config).method == method
            assert config.solver == solver_of(name) == "deep-cfr"
            assert not list(unread_settings(config))
    assert default_config("leduc").method == "Deep CFR"
    assert default_config("leduc", "nfsp").method == "NFSP"


# History values


def test_histories_are_encoded_by_node_and_both_players_cards() -> None:
    game = LEDUC
    encoding = history_encoding(game)
    assert encoding.card_groups == (1, 1, 1, 1)
    decisions = (game.actor != TERMINAL).nonzero()[:, 0]
    assert torch.equal(encoding.node_features[decisions], game.encoding.node_features[game.infoset[decisions]])
    assert torch.equal(encoding.legal, game.legal)
    values = HistoryValues(game, small_config("dream"))
    assert values.network.node_embedding is None
    without_cards = HistoryValues(load_openspiel_game("kuhn_poker"), small_config("dream"))
    assert without_cards.network.node_embedding is not None


def test_a_baseline_is_learnt_after_its_histories_and_other_values_before(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    traverse, fit, advantages = DeepCFR.traverse, HistoryValues.fit, DeepCFR.fit_advantages

    def noted_traverse(self: DeepCFR, t: int, player: int, purpose: str = "") -> Any:
        events.append("own" if purpose else "histories")
        return traverse(self, t, player, purpose)

    monkeypatch.setattr(DeepCFR, "traverse", noted_traverse)
    monkeypatch.setattr(HistoryValues, "fit", lambda *a: (events.append("values"), fit(*a))[1])
    monkeypatch.setattr(DeepCFR, "fit_advantages", lambda *a: (events.append("advantages"), advantages(*a))[1])
    next(DeepCFR(KUHN, small_config("dream")).iterations())
    assert events == ["histories", "advantages", "values"] * 2
    events.clear()
    next(DeepCFR(KUHN, small_config("escher")).iterations())
    assert events == ["own", "values", "histories", "advantages"] * 2


def test_values_have_no_loss_at_actions_that_were_not_taken() -> None:
    predicted = torch.tensor([[1.0, 5.0, 9.0], [2.0, 0.0, 0.0]], requires_grad=True)
    target = torch.tensor([[torch.nan, 2.0, torch.nan], [4.0, torch.nan, torch.nan]])
    loss = value_loss(predicted, target, torch.ones(2, 3, dtype=torch.bool), torch.tensor([1.0, 0.5]))
    assert float(loss.detach()) == pytest.approx(9 + 0.5 * 4)
    loss.backward()
    assert predicted.grad is not None
    assert predicted.grad.tolist() == [[0, 6, 0], [-2, 0, 0]]


# Bootstrapped advantages


def test_bootstrapped_targets_are_the_last_positive_part_and_the_new_sample() -> None:
    config = small_config("deep-dcfr+")
    network = build_network(KUHN.encoding, config.network, torch.Generator().manual_seed(3))
    network.scale.fill_(2.0)
    memory = Memory(KUHN.encoding, 10)
    infosets = Infosets(torch.tensor([0, 1, 2, 0]), torch.tensor([[0], [1], [2], [2]], dtype=torch.uint8))
    legal = KUHN.encoding.legal[infosets.node]
    fresh = torch.randn(legal.shape, generator=torch.Generator().manual_seed(1)) * legal
    memory.add(Samples(infosets, fresh, torch.full((4,), 5, dtype=torch.int32)), 0)
    for unit in (None, KUHN.pot):
        examples = InfosetExamples(
            memory, Objective(KUHN.encoding.legal, advantage_loss, uniform_weights, 5, unit), config.advantage
        )
        targets = bootstrapped(examples, network, 0.25)
        outputs = network(infosets).detach() * 2.0 * legal
        by = torch.ones(4) if unit is None else unit[infosets.node]
        torch.testing.assert_close(targets, fresh + 0.25 * outputs.clamp(min=0) * by[:, None])
        assert (outputs > 0).any()
        assert (outputs < 0).any()
        signed = bootstrapped(examples, network, 0.25, signed=True)
        torch.testing.assert_close(signed, fresh + 0.25 * outputs * by[:, None])


def test_bootstrapped_targets_of_several_decisions_of_a_hand() -> None:
    config = small_config("deep-cfr+")
    network = build_network(KUHN.encoding, config.network, torch.Generator().manual_seed(3))
    memory = Memory(KUHN.encoding, 10, decisions=2)
    infosets = Infosets(torch.tensor([[0, 1], [2, 3]]), torch.tensor([[0], [2]], dtype=torch.uint8))
    legal = KUHN.encoding.legal[infosets.node]
    fresh = torch.randn(legal.shape, generator=torch.Generator().manual_seed(1)) * legal
    memory.add(Samples(infosets, fresh, torch.full((2,), 5, dtype=torch.int32)), 0)
    objective = Objective(KUHN.encoding.legal, advantage_loss, uniform_weights, 5, KUHN.pot)
    targets = bootstrapped(InfosetExamples(memory, objective, config.advantage), network, 0.5)
    for hand in range(2):
        for place in range(2):
            node = infosets.node[hand, place : place + 1]
            alone = network(Infosets(node, infosets.cards[hand : hand + 1])).detach()[0].clamp(min=0)
            kept = alone * network.scale * legal[hand, place] * KUHN.pot[node]
            torch.testing.assert_close(targets[hand, place], fresh[hand, place] + 0.5 * kept)


def test_a_table_of_bootstrapped_sums_has_no_large_negative_ones() -> None:
    sampling = SamplingConfig(kind="public-chance", boards=3, samples=200, decisions=2)
    config = small_config("deep-cfr+", iterations=12, sampling=sampling, cfr={"first_round": "table"})
    solver = finished(DeepCFR(LEDUC, replace(config, game="leduc")))
    assert solver.table
    assert solver.table.regret.min() > -20  # plain sums fall to -199 in 30 iterations


def test_what_is_kept_of_earlier_iterations_depends_on_the_weighting() -> None:
    assert [kept_share(t, "uniform") for t in (1, 2, 9)] == [1.0, 1.0, 1.0]
    assert [kept_share(t, "linear") for t in (2, 3, 9)] == pytest.approx([1 / 2, 2 / 3, 8 / 9])
    assert [kept_share(t, "discounted") for t in (2, 5)] == pytest.approx([1 / 2, 8 / 9])


def test_a_prediction_adds_the_newest_samples_to_the_sums_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The targets of both fits of iteration 2: d_2 max(R^1, 0) + r, then d_3 max(R^2, 0) + r, with the same samples r."""
    solver = DeepCFR(KUHN, small_config("deep-pdcfr+", iterations=2))
    fits: list[tuple[SplitNetwork, torch.Tensor, torch.Tensor]] = []  # network, targets, positive part of the sums
    plain = deep_cfr.fit

    def fit(network: SplitNetwork, examples: InfosetExamples, *rest: Any) -> FitResult:
        sums, infosets = solver.sum_networks[1], examples.memory[slice(None)].infosets
        kept = sums(infosets).detach().clamp(min=0) * sums.scale * KUHN.encoding.legal[infosets.node]
        fits.append((network, examples.targets.clone(), kept))
        return plain(network, examples, *rest)

    monkeypatch.setattr(deep_cfr, "fit", fit)
    finished(solver)
    (summed, added, before), (predicted, again, after) = fits[-2:]
    assert (summed, predicted) == (solver.sum_networks[1], solver.advantage_networks[1])
    assert solver.matching().networks[1] is predicted
    fresh = added - kept_share(2, "discounted") * before
    torch.testing.assert_close(again, fresh + kept_share(3, "discounted") * after, atol=1e-5, rtol=1e-5)
    assert (before - after).abs().max() > 0.01


def test_a_network_of_sums_keeps_their_negative_part(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = DeepCFR(KUHN, small_config("double-neural", iterations=2, advantage={"draw": "uniform"}))
    kept: list[torch.Tensor] = []
    plain = deep_cfr.fit

    def fit(network: SplitNetwork, examples: InfosetExamples, *rest: Any) -> FitResult:
        fresh = examples.memory.filled("target")
        kept.append(examples.targets - fresh)
        infosets = examples.memory[slice(None)].infosets
        if len(kept) > 2:  # there are no sums before the first fits
            outputs = network(infosets).detach() * network.scale * KUHN.encoding.legal[infosets.node]
            torch.testing.assert_close(kept[-1], outputs, atol=1e-4, rtol=1e-4)
        return plain(network, examples, *rest)

    monkeypatch.setattr(deep_cfr, "fit", fit)
    finished(solver)
    assert kept[-1].min() < -0.01
    assert kept[-1].max() > 0.01


def test_robust_sampling_touches_fewer_histories() -> None:
    touched = []
    for actions in (0, 2, 1):
        config = small_config("double-neural", "leduc", 1, sampling={"actions": actions})
        (record,) = DeepCFR(LEDUC, config).iterations()
        touched.append(record.nodes_touched)
    assert touched[0] > 1.1 * touched[1] > 1.5 * touched[2]


def test_a_bootstrapped_fit_begins_with_the_outputs_of_the_last_network_and_forgets_its_samples() -> None:
    """Sums at infosets that an iteration does not meet must not change with the unit of its targets."""
    solver = DeepCFR(KUHN, small_config("deep-cfr+", iterations=2, advantage={"learning_rate": 1e-12}))
    decisions = (KUHN.actor != TERMINAL).nonzero()[:, 0]
    infosets = Infosets(KUHN.infoset[decisions], torch.ones(len(decisions), 1, dtype=torch.uint8))
    outputs, scales = [], []
    for record in solver.iterations():
        assert record.advantage_samples == (0, 0)
        assert record.strategy_samples > 0
        network = solver.advantage_networks[0]
        outputs.append(network(infosets).detach() * network.scale)
        scales.append(float(network.scale))
    assert scales[0] != scales[1]
    torch.testing.assert_close(outputs[1], outputs[0], atol=1e-4, rtol=1e-4)
