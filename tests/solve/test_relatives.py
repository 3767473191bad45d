"""Relatives of Deep CFR as settings: DREAM, ESCHER and bootstrapped advantages, with and without a baseline."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from deepcfr.config import (
    NamedSolver,
    NFSPConfig,
    RunConfig,
    SamplingConfig,
    config_problems,
    unread_settings,
    validate_config,
)
from deepcfr.core.errors import ConfigError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import TERMINAL, Infosets, Samples
from deepcfr.defaults import default_config, solver_of
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game, load_rules
from deepcfr.measure.exploitability import exploitability
from deepcfr.network.examples import InfosetExamples, Objective, uniform_weights
from deepcfr.network.fit import FitResult, advantage_loss, value_loss
from deepcfr.network.memory import Memory
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.run.folder import RunFolder
from deepcfr.solve import data, deep_cfr
from deepcfr.solve.base import SavedState
from deepcfr.solve.data import HistoryValues, history_encoding
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.first_round import bootstrapped, kept_share
from deepcfr.solve.memories import InfosetMemories

KUHN = load_game("kuhn")
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


def brief(name: NamedSolver, iterations: int = 3) -> RunConfig:
    """A short run of a relative on Kuhn."""
    config = default_config("kuhn", name)
    small = {"steps": 20, "batch_size": 64}
    sampling = config.sampling
    return replace(
        config,
        iterations=iterations,
        sampling=replace(sampling, traversals=200),
        memory=replace(config.memory, advantage_capacity=20_000, strategy_capacity=20_000),
        network=replace(config.network, width=32, layers=2),
        advantage=replace(config.advantage, **small),
        average=replace(config.average, steps=40, batch_size=64),
        values=replace(config.values, **small, capacity=2_000),
    )


def solved(solver: DeepCFR) -> DeepCFR:
    for _ in solver.iterations():
        pass
    return solver


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


@pytest.mark.parametrize("name", NAMES)
def test_a_short_run_is_far_less_exploitable_than_uniform_play(name: NamedSolver) -> None:
    solver = solved(DeepCFR(KUHN, brief(name, 30)))
    solver.fit_average()
    found = exploitability(solver.policy(solver.config.evaluation.policy)).nash_conv
    assert found < 230  # uniform play has 917


@pytest.mark.parametrize("name", NAMES)
def test_a_run_goes_on_bit_for_bit_from_its_saved_state(name: NamedSolver) -> None:
    config = brief(name)
    straight = solved(DeepCFR(KUHN, config))
    half = DeepCFR(KUHN, config)
    next(half.iterations())
    state = half.state(memories=True)
    arrays = dict(state.arrays)
    again = DeepCFR(KUHN, config)
    again.restore(SavedState(state.facts, {k: v.clone() for k, v in state.tensors.items()}, arrays.__getitem__), True)
    solved(again)
    for mine, other in zip(straight.advantage_networks, again.advantage_networks, strict=True):
        assert all(torch.equal(w, other.state_dict()[k]) for k, w in mine.state_dict().items())
    assert ("values" in straight._stores()) == straight.config.has_values
    for (label, memory), other in zip(straight._stores().items(), again._stores().values(), strict=True):
        assert memory.seen == other.seen
        for column, filled in memory.contents().items():
            assert torch.equal(filled.nan_to_num(7), other.contents()[column].nan_to_num(7)), (label, column)


def test_a_checkpoint_for_play_leaves_the_values_out() -> None:
    solver = solved(DeepCFR(KUHN, brief("dream")))
    assert not any(name.startswith("values") for name in solver.state(memories=False).tensors)
    assert any(name.startswith("values") for name in solver.state(memories=True).tensors)


# History values


def test_histories_are_encoded_by_node_and_both_players_cards() -> None:
    game = load_game("leduc")
    encoding = history_encoding(game)
    assert encoding.card_groups == (1, 1, 1, 1)
    decisions = (game.actor != TERMINAL).nonzero()[:, 0]
    assert torch.equal(encoding.node_features[decisions], game.encoding.node_features[game.infoset[decisions]])
    assert torch.equal(encoding.legal, game.legal)
    values = HistoryValues(game, brief("dream"))
    assert values.network.node_embedding is None
    without_cards = HistoryValues(load_openspiel_game("kuhn_poker"), brief("dream"))
    assert without_cards.network.node_embedding is not None


@pytest.mark.parametrize("name", ["dream", "escher"])
def test_learnt_values_approach_those_of_the_profile(name: NamedSolver) -> None:
    """Uniform play of Kuhn, whose values are known: the second player's mean payoff after each line of the betting."""
    config = replace(
        brief(name),
        values=replace(default_config("kuhn", name).values, steps=300, capacity=10_000),
        sampling=replace(brief(name).sampling, traversals=3_000),
    )
    solver = DeepCFR(KUHN, config)
    assert solver.values is not None
    for t in range(1, 5):
        for found in solver.traverse(t, 0):
            solver.values.add(found)
        solver.values.fit(t, 0, Workers(1))
    deals = KUHN.deal(400, 5)
    rows = torch.arange(400)
    at_root = solver.values.of(deals)(torch.zeros(400, dtype=torch.int64), rows)
    exact = torch.stack([uniform_value(KUHN, deals, int(child)) for child in KUHN.tree.child[0, 1:3]], 1)
    assert at_root[:, 1:3].sub(exact).abs().max() < 0.25
    assert exact.std(0).min() > 0.5  # the values differ between deals


def uniform_value(game: PokerGame, deals: object, node: int) -> torch.Tensor:
    """The value to player 0 of a node under uniform play in every deal, by plain recursion, float32 [B]."""
    if int(game.actor[node]) == TERMINAL:
        count = len(deals)  # type: ignore[arg-type]
        return game.payoff(torch.full((count,), node), torch.arange(count), deals)  # type: ignore[arg-type]
    children = [int(game.tree.child[node, a]) for a in game.legal[node].nonzero()[:, 0]]
    return torch.stack([uniform_value(game, deals, child) for child in children]).mean(0)


def test_a_baseline_is_learnt_after_its_histories_and_other_values_before(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    traverse, fit, advantages = DeepCFR.traverse, HistoryValues.fit, DeepCFR.fit_advantages

    def noted_traverse(self: DeepCFR, t: int, player: int, purpose: str = "") -> Any:
        events.append("own" if purpose else "histories")
        return traverse(self, t, player, purpose)

    monkeypatch.setattr(DeepCFR, "traverse", noted_traverse)
    monkeypatch.setattr(HistoryValues, "fit", lambda *a: (events.append("values"), fit(*a))[1])
    monkeypatch.setattr(DeepCFR, "fit_advantages", lambda *a: (events.append("advantages"), advantages(*a))[1])
    next(DeepCFR(KUHN, brief("dream")).iterations())
    assert events == ["histories", "advantages", "values"] * 2
    events.clear()
    next(DeepCFR(KUHN, brief("escher")).iterations())
    assert events == ["own", "values", "histories", "advantages"] * 2


def test_values_are_learnt_from_other_histories_than_the_advantages(monkeypatch: pytest.MonkeyPatch) -> None:
    streams: set[tuple[Any, ...]] = set()
    monkeypatch.setattr(data, "key", lambda *purpose: streams.add(purpose) or key(*purpose))
    solver = DeepCFR(KUHN, brief("escher"))
    found = []
    for purpose in ("values", ""):
        streams.clear()
        list(solver.traverse(1, 0, purpose))
        found.append(set(streams))
    seed = solver.config.seed
    assert {(seed, "values", "deal", 1, 0), (seed, "values", "action", 1, 0)} < found[0]
    assert {(seed, "deal", 1, 0), (seed, "action", 1, 0)} < found[1]
    assert not found[0] & found[1]


def test_values_have_no_loss_at_actions_that_were_not_taken() -> None:
    predicted = torch.tensor([[1.0, 5.0, 9.0], [2.0, 0.0, 0.0]], requires_grad=True)
    target = torch.tensor([[torch.nan, 2.0, torch.nan], [4.0, torch.nan, torch.nan]])
    loss = value_loss(predicted, target, torch.ones(2, 3, dtype=torch.bool), torch.tensor([1.0, 0.5]))
    assert float(loss.detach()) == pytest.approx(9 + 0.5 * 4)
    loss.backward()
    assert predicted.grad is not None
    assert predicted.grad.tolist() == [[0, 6, 0], [-2, 0, 0]]


def test_the_memory_of_values_is_counted_before_it_is_allocated() -> None:
    config = brief("dream")
    plain = replace(config, sampling=replace(config.sampling, estimate="payoffs"))
    solver = solved(DeepCFR(KUHN, config))
    assert solver.values is not None
    memory = solver.values.memory
    assert len(memory) == memory.capacity == 2_000
    assert DeepCFR.memory_bytes(KUHN, config) - DeepCFR.memory_bytes(KUHN, plain) == memory.nbytes


# Bootstrapped advantages


def test_bootstrapped_targets_are_the_last_positive_part_and_the_new_sample() -> None:
    config = brief("deep-dcfr+")
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
    config = brief("deep-cfr+")
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


def test_sums_in_networks_and_a_table_from_boards_that_are_drawn_anew() -> None:
    config = brief("deep-cfr+", 30)
    leduc = PokerGame(load_rules("leduc"))
    sampling = SamplingConfig(kind="public-chance", boards=3, samples=200, decisions=2)
    table = replace(config.cfr, first_round="table")
    average = replace(config.average, steps=300, batch_size=256)
    config = replace(config, game="leduc", sampling=sampling, cfr=table, average=average)
    solver = solved(DeepCFR(leduc, config))
    solver.fit_average()
    found = exploitability(solver.policy("average")).nash_conv
    assert found < 1_300  # uniform play has 4,747
    assert solver.table
    assert solver.table.regret.min() > -20  # plain sums end at -199


def test_what_is_kept_of_earlier_iterations_depends_on_the_weighting() -> None:
    assert [kept_share(t, "uniform") for t in (1, 2, 9)] == [1.0, 1.0, 1.0]
    assert [kept_share(t, "linear") for t in (2, 3, 9)] == pytest.approx([1 / 2, 2 / 3, 8 / 9])
    assert [kept_share(t, "discounted") for t in (2, 5)] == pytest.approx([1 / 2, 8 / 9])


def test_a_prediction_adds_the_newest_samples_to_the_sums_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The targets of both fits of iteration 2: d_2 max(R^1, 0) + r, then d_3 max(R^2, 0) + r, with the same samples r."""
    solver = DeepCFR(KUHN, brief("deep-pdcfr+", 2))
    fits: list[tuple[SplitNetwork, torch.Tensor, torch.Tensor]] = []  # network, targets, positive part of the sums
    plain = deep_cfr.fit

    def fit(network: SplitNetwork, examples: InfosetExamples, *rest: Any) -> FitResult:
        sums, infosets = solver.sum_networks[1], examples.memory[slice(None)].infosets
        kept = sums(infosets).detach().clamp(min=0) * sums.scale * KUHN.encoding.legal[infosets.node]
        fits.append((network, examples.targets.clone(), kept))
        return plain(network, examples, *rest)

    monkeypatch.setattr(deep_cfr, "fit", fit)
    solved(solver)
    (summed, added, before), (predicted, again, after) = fits[-2:]
    assert (summed, predicted) == (solver.sum_networks[1], solver.advantage_networks[1])
    assert solver.matching().networks[1] is predicted
    fresh = added - kept_share(2, "discounted") * before
    torch.testing.assert_close(again, fresh + kept_share(3, "discounted") * after, atol=1e-5, rtol=1e-5)
    assert (before - after).abs().max() > 0.01


def test_a_network_of_sums_keeps_their_negative_part(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = DeepCFR(KUHN, brief("double-neural", 2))
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
    config = solver.config.advantage
    solver.config = replace(solver.config, advantage=replace(config, draw="uniform"))
    solved(solver)
    assert kept[-1].min() < -0.01
    assert kept[-1].max() > 0.01


def test_robust_sampling_touches_fewer_histories() -> None:
    config = brief("double-neural", 1)
    touched = []
    for actions in (0, 2, 1):
        sampling = replace(config.sampling, actions=actions)
        (record,) = DeepCFR(load_game("leduc"), replace(config, game="leduc", sampling=sampling)).iterations()
        touched.append(record.nodes_touched)
    assert touched[0] > 1.1 * touched[1] > 1.5 * touched[2]


def test_a_bootstrapped_memory_holds_one_iteration() -> None:
    solver = DeepCFR(KUHN, brief("deep-cfr+"))
    for record in solver.iterations():
        assert isinstance(solver.memories, InfosetMemories)
        assert record.advantage_samples == (0, 0)  # forgotten after the fits
        assert record.strategy_samples > 0


def test_a_bootstrapped_fit_begins_with_the_outputs_of_the_last_network() -> None:
    """Sums at infosets that an iteration does not meet must not change with the unit of its targets."""
    config = brief("deep-cfr+", 2)
    solver = DeepCFR(KUHN, replace(config, advantage=replace(config.advantage, learning_rate=1e-12)))
    decisions = (KUHN.actor != TERMINAL).nonzero()[:, 0]
    infosets = Infosets(KUHN.infoset[decisions], torch.ones(len(decisions), 1, dtype=torch.uint8))
    outputs, scales = [], []
    for _ in solver.iterations():
        network = solver.advantage_networks[0]
        outputs.append(network(infosets).detach() * network.scale)
        scales.append(float(network.scale))
    assert scales[0] != scales[1]
    torch.testing.assert_close(outputs[1], outputs[0], atol=1e-4, rtol=1e-4)


# Bad input


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"sampling": SamplingConfig(kind="outcome", estimate="values"), "advantage": {"target": "bootstrap"}},
            "needs 'sampling.estimate' to be payoffs or baseline",
        ),
        (
            {"advantage": {"target": "bootstrap"}, "cfr": {"first_round": "table"}},
            "needs 'cfr.first_round' to be network, or 'sampling.kind' to be public-chance",
        ),
        (
            {
                "advantage": {"target": "predict"},
                "cfr": {"first_round": "table"},
                "sampling": SamplingConfig(kind="public-chance"),
            },
            "needs 'cfr.first_round' to be network: a table predicts nothing",
        ),
        (
            {"advantage": {"target": "sum"}, "cfr": {"weighting": "discounted"}},
            "'advantage.target' is sum, which needs 'cfr.weighting' to be uniform, but it is discounted",
        ),
        ({"values": {"capacity": 0}}, "'values.capacity' must be between"),
    ],
)
def test_settings_that_contradict_are_refused_with_a_sentence(change: dict[str, object], sentence: str) -> None:
    config = default_config("kuhn", "dream")
    changed = {
        name: replace(getattr(config, name), **new) if isinstance(new, dict) else new for name, new in change.items()
    }
    problems = list(config_problems(replace(config, **changed)))
    assert any(sentence in problem for problem in problems), problems


@pytest.mark.parametrize("game", ["openspiel:tic_tac_toe", "hulh"])
def test_regression_cfr_is_refused_where_no_panel_shows_all_hands(game: str) -> None:
    with pytest.raises(ConfigError, match=f"of which {game} has none or too many"):
        default_config(game, "rcfr")


def test_regression_cfr_is_what_its_settings_make() -> None:
    config = default_config("leduc", "rcfr")
    assert replace(config, cfr=replace(config.cfr, weighting="linear")).method == "Deep CFR"
    assert replace(config, cfr=replace(config.cfr, first_round="table")).method == "Deep CFR"
    assert replace(config, advantage=replace(config.advantage, units="log")).method == "Deep CFR"


def test_an_unknown_solver_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError, match=r"must be one of deep-cfr, nfsp, ppo, mmd, dream.*but is bogus"):
        default_config("leduc", "bogus")  # type: ignore[arg-type]


def test_a_checkpoint_belongs_to_the_estimate_target_and_capacity_that_made_it(tmp_path: Path) -> None:
    rules = load_rules("kuhn")
    configs = [default_config("kuhn", name) for name in ("dream", "deep-cfr+", "vr-deep-cfr+")]
    configs.append(replace(configs[0], values=replace(configs[0].values, capacity=5)))
    configs.append(default_config("kuhn"))
    assert len({RunFolder(tmp_path, config, rules).fingerprint for config in configs}) == len(configs)


def test_bootstrapped_targets_need_new_samples_in_every_iteration() -> None:
    config = default_config("leduc")
    changed = replace(config, advantage=replace(config.advantage, target="bootstrap"))
    assert any("set 'sampling.panel' to false" in problem for problem in config_problems(changed))


def test_settings_of_values_are_said_to_be_ignored_without_them() -> None:
    config = default_config("kuhn", "dream")
    plain = replace(config, sampling=SamplingConfig(kind="outcome"), nfsp=NFSPConfig())
    assert any("values.steps" in note for note in unread_settings(plain))
