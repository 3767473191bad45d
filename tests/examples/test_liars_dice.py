"""Liar's dice by public positions: OpenSpiel's rules, and the values and solutions of the same game as a list."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

import liars_dice
from command_line import deepcfr, problem
from deepcfr.core.errors import GameError
from deepcfr.core.rng import key
from deepcfr.core.types import TERMINAL, Infosets
from deepcfr.game.base import check_game
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.interop.openspiel import to_openspiel
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match.exact import exact_match
from deepcfr.measure.match.hands import sampled_match
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import MixturePolicy, ensemble
from deepcfr.solve.sequence_form import TreeCFR
from liars_dice import LiarsDice, LiarsDiceCFR, LiarsDiceTable, match_weights, table_of
from openspiel_policies import on_histories
from tables import finished, tabular

LARGE = "liars_dice(numdice=2,dice_sides=4)"
SMALL = ("liars_dice(dice_sides=4)", "liars_dice(numdice=2,dice_sides=2)")


class TwoFaces(LiarsDice):
    """The game with few faces, for a quick test."""

    def __init__(self) -> None:
        super().__init__("liars_dice(numdice=2,dice_sides=2)")


def random_policy(game: LiarsDice, seed: int) -> LiarsDiceTable:
    weights = np.random.default_rng(seed).normal(size=(2 << game.num_bids, len(game.hands))) + 0.5
    return LiarsDiceTable(game, match_weights(weights))


def acted(game: LiarsDice) -> list[int]:
    """The nodes that an action leads to: not the first one, nor the call before the first bid."""
    return [node for node in range(1, 2 << game.num_bids) if node != 1 << game.num_bids]


@pytest.mark.parametrize("name", [LARGE, "liars_dice(numdice=2,dice_sides=3,bidding_rule=reset-quantity)"])
def test_random_games_go_as_openspiels(name: str) -> None:
    game, chance = LiarsDice(name), random.Random(0)
    check_game(game)
    deals = game.deal(40, key(0, "dice"))
    for row in range(len(deals)):
        state, at = game.spiel_game.new_initial_state(), torch.tensor([row])
        node = game.start(deals)[at]
        for player in (0, 1):
            for face in deals.visible_cards[row, player, 0].tolist():
                state.apply_action(face)
        assert game.deals_before[node].tolist() == [len(state.history())]
        while not state.is_terminal():
            assert game.actor[node].item() == state.current_player()
            assert torch.nonzero(game.legal[node[0]])[:, 0].tolist() == state.legal_actions()
            seen = game.infoset_of(state, state.current_player())
            assert seen.node.tolist() == game.infoset[node].tolist()
            assert torch.equal(seen.cards, deals.visible_cards[at, state.current_player(), 0])
            action = chance.choice(state.legal_actions())
            node = game.step(node, torch.tensor([action]), at, deals)
            state.apply_action(action)
        assert game.actor[node].item() == TERMINAL
        assert game.payoff(node, at, deals).item() == state.returns()[0]


def test_rolls_are_as_likely_as_they_should_be() -> None:
    game = LiarsDice("liars_dice(numdice=2,dice_sides=3)")
    assert game.hands.tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    np.testing.assert_allclose(game.chance, np.array([1, 2, 2, 1, 2, 1]) / 9)
    count = 30_000
    hand = game.deal(count, key(1, "rolls")).hidden.numpy()
    pairs = np.zeros((6, 6))
    np.add.at(pairs, (hand[:, 0], hand[:, 1]), 1 / count)
    expected = game.chance[:, None] * game.chance
    assert (np.abs(pairs - expected) < 5 * np.sqrt(expected / count)).all()


@pytest.mark.parametrize("name", ["liars_dice(dice_sides=3)", SMALL[1]])
def test_values_matches_and_averages_are_those_of_the_listed_game(name: str) -> None:
    game, listed = LiarsDice(name), load_openspiel_game(name)
    first, second = random_policy(game, 0), random_policy(game, 1)
    second.table[:] = match_weights((second.table > 0.3).astype(float))  # never comes to most positions
    on_list = [on_histories(listed, policy) for policy in (first, second)]
    ours, theirs = exploitability(first), exploitability(on_list[0])
    np.testing.assert_allclose(ours.best_response_values, theirs.best_response_values, atol=1e-3)
    assert ours.value == pytest.approx(theirs.value, abs=1e-3)
    assert ours.nash_conv > 100
    match = exact_match(first, second)
    np.testing.assert_allclose(match.seats, exact_match(*on_list).seats, atol=1e-3)
    played = sampled_match(first, second, 20_000, seed=0)
    assert abs(played.value - match.value) < 2 * played.interval
    mixed = exploitability(MixturePolicy(game, [first, second], [1, 3]))
    expected = exploitability(MixturePolicy(listed, on_list, [1, 3]))
    np.testing.assert_allclose(mixed.best_response_values, expected.best_response_values, atol=1e-3)
    assert expected.nash_conv != pytest.approx(ours.nash_conv, abs=10)


def test_a_table_answers_for_infosets_and_for_hands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liars_dice, "_AT_ONCE", 7)
    game = LiarsDice(SMALL[0])
    policy = random_policy(game, 3)
    rows = policy.on_hands(np.arange(len(game.encoding.legal)), game.hands)
    np.testing.assert_allclose(rows.sum(2), 1, atol=1e-6)
    assert not rows[~np.broadcast_to(game.encoding.legal.numpy()[:, None], rows.shape)].any()
    node, cards = torch.tensor([200, 0, 77]), torch.from_numpy(game.hands)[[2, 0, 3]]
    np.testing.assert_array_equal(policy.probabilities(Infosets(node, cards)).numpy(), rows[[200, 0, 77], [2, 0, 3]])
    again = table_of(_Asked(policy))
    np.testing.assert_allclose(again[acted(game)], policy.table[acted(game)], atol=1e-6)


class _Asked(Policy):
    """A policy of which only the answers are known."""

    kind = "asked"

    def __init__(self, inner: LiarsDiceTable) -> None:
        self.game, self._inner = inner.game, inner

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self._inner.probabilities(infosets)


def test_an_average_that_is_never_reached_is_plain() -> None:
    game = LiarsDice(SMALL[0])
    calls = np.zeros_like(random_policy(game, 6).table)
    calls[1], calls[1 << game.num_bids :] = 1, 1  # the lowest bid, then a call
    always = LiarsDiceTable(game, calls)
    average = MixturePolicy(game, [always, always], [1, 1])
    assert average.probabilities(Infosets(torch.tensor([0b110]), torch.tensor([[0]], dtype=torch.uint8)))[0, -1] == 1


def test_policies_of_two_games_of_the_class_are_added_up_if_it_is_the_same_one() -> None:
    first, second = LiarsDice(SMALL[0]), LiarsDice(SMALL[0])
    both = ensemble([UniformPolicy(first), UniformPolicy(second)], "sum")
    infosets = Infosets(torch.tensor([0]), torch.tensor([[2]], dtype=torch.uint8))
    torch.testing.assert_close(both.probabilities(infosets), UniformPolicy(first).probabilities(infosets))
    exact_match(UniformPolicy(first), UniformPolicy(second))
    other = UniformPolicy(LiarsDice("liars_dice(dice_sides=3)"))
    with pytest.raises(GameError, match=r"one sees .* and another liars_dice\(dice_sides=3\)"):
        ensemble([UniformPolicy(first), other], "sum")
    with pytest.raises(GameError, match=r"and 'liars_dice\(dice_sides=3\)' are two different classes\."):
        exact_match(UniformPolicy(first), other)


def test_openspiels_states_are_answered_and_those_of_other_games_refused() -> None:
    policy = to_openspiel(UniformPolicy(LiarsDice("liars_dice")))
    state = policy.game.new_initial_state()
    state.apply_action(0)
    state.apply_action(1)
    assert policy.action_probabilities(state) == pytest.approx(dict.fromkeys(range(12), 1 / 12))
    with pytest.raises(GameError, match="Player 1 is not to act"):
        policy.action_probabilities(state, 1)
    with pytest.raises(GameError, match=r"'liars_dice\(numdice=3\)' has 36 bids, and at most 22 are supported\."):
        LiarsDice("liars_dice(numdice=3)")
    foreign = load_openspiel_game("kuhn_poker").spiel_game.new_initial_state()
    with pytest.raises(GameError, match="The state is one of kuhn_poker"):
        policy.action_probabilities(foreign)


def solved(algorithm: str, iterations: int, made: type[LiarsDiceCFR] | type[TreeCFR] = LiarsDiceCFR) -> LiarsDiceCFR:
    game = LiarsDice(SMALL[0]) if made is LiarsDiceCFR else load_openspiel_game(SMALL[0])
    return finished(made(game, tabular(algorithm, iterations)))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("algorithm", ["cfr+", "dcfr", "pcfr+"])
def test_strategies_are_those_of_the_listed_game(algorithm: str) -> None:
    # the tables are in single precision, which decides ties in another way after some more iterations
    ours, theirs = solved(algorithm, 12), solved(algorithm, 12, TreeCFR)
    for mine, other in (
        (ours.average_policy(), theirs.average_policy()),
        (ours.current_policy(), theirs.current_policy()),
    ):
        found, expected = exploitability(mine), exploitability(other)
        assert found.nash_conv == pytest.approx(expected.nash_conv, rel=1e-3)
        assert found.value == pytest.approx(expected.value, abs=0.1)


def test_the_value_of_a_small_game_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["liars_dice.py", "--rules", SMALL[0], "--iterations", "200", "--at", "100"]
    monkeypatch.setattr("sys.argv", words)
    liars_dice.main()
    first, _, last = capsys.readouterr().out.splitlines()
    assert first == f"dcfr on {SMALL[0]}: 200 iterations, float32, 256 public positions, 1,024 infosets"
    nash_conv, low, high = (float(word.strip(",")) for word in last.split() if word.strip(",").count("."))
    assert high - low == pytest.approx(nash_conv, abs=0.01)
    assert nash_conv < 2
    assert low < 62.5 < high  # 1/16: 62.500 after 5,000 iterations on the list of histories


def test_it_is_learned_measured_and_matched_by_the_command_line(tmp_path: Path) -> None:
    game, trained, dream = "test_liars_dice:TwoFaces", tmp_path / "trained", tmp_path / "dream"
    small = ("--sampling.traversals", 20, "--advantage.steps", 4, "--average.steps", 4, "--iterations", 2)
    small += ("--advantage.batch-size", 32, "--average.batch-size", 32)
    outcome = deepcfr("train", game, "--out", trained, *small, "--cfr.keep-networks", 1)
    assert outcome.status == 0
    assert "256 public positions, 768 infosets" in outcome.out
    exact = deepcfr("exploitability", trained, "--json").json
    assert exact["game"] == "liars_dice(numdice=2,dice_sides=2)"
    assert exact["boards_used"] == "no boards: all histories"
    assert -exact["best_response_values"][1] < exact["value"] < exact["best_response_values"][0]
    average = deepcfr("exploitability", trained, "--policy", "sd-cfr", "--json").json
    assert average["nash_conv"] != exact["nash_conv"] > 150
    few = (*small, "--values.steps", 4)
    assert deepcfr("train", game, "--solver", "dream", "--out", dream, *few, "--json").json["nash_conv"] > 150
    assert deepcfr("match", trained, dream, "--json").json["exact"]
    refused = problem(deepcfr("solve", game, "--out", tmp_path / "solved"))
    assert refused == f"Tabular solvers need a list of histories, and '{exact['game']}' has too many: use train."
