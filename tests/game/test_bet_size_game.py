"""Games with bet sizes with a list of nodes: the tree, policies in both forms, Deep CFR and search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bet_size_games import ONE_ROUND, TWO_ROUNDS, Enumeration, decisions, random_table, rows_at
from deepcfr.config import config_from_table
from deepcfr.core.errors import GameError
from deepcfr.core.types import TERMINAL
from deepcfr.game import bet_size_betting, bet_size_game
from deepcfr.game.bet_size_betting import CHIPS, ENDED, HISTORY, can_be_listed, count_positions, gains
from deepcfr.game.bet_size_game import ExplicitPoker, ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, BetSizeRules
from deepcfr.game.betting import FOLD, FOLDED, NOT_TERMINAL
from deepcfr.game.presets import build_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match.tournament import BET_SIZE_DEALS, TournamentTerms
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.solve.deep_cfr import DeepCFR
from tables import finished


def positions_of(game: ExplicitPoker) -> np.ndarray:
    """The positions of all decisions."""
    return game.positions(np.arange(game.tree.num_decisions))


@pytest.mark.parametrize("rules", [ONE_ROUND, TWO_ROUNDS], ids=lambda rules: rules.name)
def test_the_tree_has_the_positions_of_the_betting_machine(rules: BetSizeRules) -> None:
    game = ExplicitPoker(rules)
    machine = {tuple(row) for row in decisions(game)}
    positions = game.positions(np.arange(game.tree.num_nodes))
    assert {tuple(row) for row in positions_of(game)} == machine
    assert len(machine) == game.tree.num_decisions
    assert count_positions(game.bets, positions[0], 10**6) == game.tree.num_nodes
    assert count_positions(game.bets, positions[1], 10**6) < game.tree.num_nodes
    assert count_positions(game.bets, positions[0], 20) > 20
    np.testing.assert_array_equal(game.listed(game.computed), np.arange(game.tree.num_nodes))
    np.testing.assert_array_equal(game.tree.chips, positions[:, CHIPS : CHIPS + 2])
    np.testing.assert_array_equal(game.tree.ended, positions[:, ENDED])
    ends = np.flatnonzero(game.tree.ended != NOT_TERMINAL)
    for result in (0, 1, 2):
        paid = gains(positions[ends], np.full(len(ends), result))
        unit = rules.unit_chips
        np.testing.assert_allclose(game._payoff[ends, result], paid / unit)
    folded = game.tree.ended == FOLDED
    parents = game.tree.parent[folded]
    assert (game.tree.child[parents, FOLD] == np.flatnonzero(folded)).all()
    assert (game.tree.winner[folded] == 1 - game.tree.actor[parents]).all()


def test_histories_tell_lines_apart_that_have_the_same_stacks() -> None:
    game = ExplicitPoker(BET_SIZE_GAMES["hunl-200"])
    assert (game.tree.num_decisions, game.tree.num_nodes) == (2_898, 7_080)
    same = np.delete(positions_of(game), HISTORY, axis=1)
    assert len(np.unique(same, axis=0)) < game.tree.num_decisions
    assert len(np.unique(game.computed)) == game.tree.num_nodes


def test_a_game_with_too_many_lines_is_refused() -> None:
    with pytest.raises(
        GameError, match="has more than 200,000 nodes: networks, search and exact evaluation need fewer"
    ):
        ExplicitPoker(BET_SIZE_GAMES["hunl-ladder"])
    assert not can_be_listed(BET_SIZE_GAMES["hunl-ladder"])
    assert isinstance(build_game(BET_SIZE_GAMES["hunl-ladder"]), ImplicitPoker)
    assert isinstance(build_game(BET_SIZE_GAMES["hunl-200"]), ExplicitPoker)


@pytest.mark.parametrize("suits", ["canonical", "raw"])
def test_a_table_keeps_its_strategy_in_both_forms(suits: str) -> None:
    game = ExplicitPoker(TWO_ROUNDS, suits)  # type: ignore[arg-type]
    table, there = random_table(3), random_table(3, game)
    cards = np.tile(game.deal_cards(30, 4), (game.tree.num_decisions, 1))
    positions = np.repeat(positions_of(game), 30, axis=0)
    rows = [rows_at(policy, positions, cards) for policy in (table, there)]
    np.testing.assert_allclose(rows[0], rows[1])
    assert exploitability(there).nash_conv == pytest.approx(Enumeration(table).nash_conv())
    nodes = np.flatnonzero(game.tree.round[: game.tree.num_decisions] == 1)
    seen = game.visible_cards(np.array([[0], [3], [5]], np.uint8), (2,))
    plain = Policy.on_hands(there, nodes, seen)  # through `probabilities`
    np.testing.assert_array_equal(there.on_hands(nodes, seen), plain)


def test_deep_cfr_learns_and_its_exact_value_is_that_of_all_deals() -> None:
    fit = {"batch_size": 256, "learning_rate": 0.003}
    table = {
        "game": "two", "iterations": 3, "sampling": {"traversals": 200}, "advantage": fit | {"steps": 40},
        "network": {"kind": "mlp", "width": 32, "layers": 2}, "average": fit | {"steps": 100}, "runtime": {"threads": 1},
    }  # fmt: skip
    solver = finished(DeepCFR(ExplicitPoker(TWO_ROUNDS), config_from_table(table)))
    solver.fit_average()
    policy = solver.average_policy()
    found = exploitability(policy).nash_conv
    assert found < 0.8 * exploitability(UniformPolicy(solver.game)).nash_conv
    assert Enumeration(policy).nash_conv() == pytest.approx(found, rel=1e-4)


def test_matches_are_the_same_in_either_form() -> None:
    games = ExplicitPoker(TWO_ROUNDS), ImplicitPoker(TWO_ROUNDS)
    matches = [TournamentTerms(hands=500).play(random_table(1, game), UniformPolicy(game)) for game in games]
    assert matches[0].value == matches[1].value
    table = random_table(1, games[0])
    assert TournamentTerms().settled(table).hands == BET_SIZE_DEALS
    assert TournamentTerms(boards="all").play(table, UniformPolicy(games[0])).exact
    rivals = replace(TWO_ROUNDS, bet_sizes=((4, 6), (50, 100)))
    with pytest.raises(GameError, match="differ in bet_sizes"):
        TournamentTerms(boards="all").play(table, UniformPolicy(ExplicitPoker(rivals)))


def test_no_place_is_asked_of_a_node_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def filled(bets: Any, nodes: Any) -> Any:
        before, actions, count = bet_size_betting.paths(bets, nodes)
        before[np.arange(before.shape[1]) >= count[:, None]] = -1  # memory that the kernel leaves as it was
        return before, actions, count

    def checked(bets: Any, nodes: Any) -> Any:
        assert (nodes >= 0).all()
        return bet_size_betting.places(bets, nodes)

    game = ExplicitPoker(TWO_ROUNDS)
    same, nodes = ImplicitPoker(TWO_ROUNDS), torch.from_numpy(game.computed)
    monkeypatch.setattr(bet_size_game, "places", checked)
    monkeypatch.setattr(bet_size_game, "paths", filled)
    assert torch.equal(same.deals_before[nodes], game.deals_before)


def test_a_computed_node_is_the_game_that_is_listed() -> None:
    game = ExplicitPoker(replace(TWO_ROUNDS, all_in=(True, True)))
    same, nodes = ImplicitPoker(game.source), torch.from_numpy(game.computed)
    for name in ("actor", "legal", "round", "deals_before"):
        assert torch.equal(getattr(same, name)[nodes], getattr(game, name)), name
    every = np.arange(game.tree.num_nodes)
    np.testing.assert_array_equal(same.chips(game.computed), game.chips(every))
    np.testing.assert_array_equal(same.place(nodes), game.place(torch.from_numpy(every)))
    deals = game.deal(50, 3)
    assert torch.equal(deals.visible_cards, same.deal(50, 3).visible_cards)
    row, before, action = game.paths(np.arange(game.tree.num_nodes))
    there = np.lexsort((before, row))
    paths = same.paths(game.computed)
    order = np.lexsort((game.listed(paths[1]), paths[0]))
    for mine, theirs in zip((row, game.computed[before], action), paths, strict=True):
        np.testing.assert_array_equal(mine[there], theirs[order])
    node, action = torch.from_numpy(before), torch.from_numpy(action)
    after = game.step(node, action, node, deals)
    assert torch.equal(same.step(nodes[node], action, node, deals), nodes[after])
    ends = (game.actor == TERMINAL).nonzero()[:, 0]
    for traversal in range(3):
        rows = torch.full_like(ends, traversal)
        torch.testing.assert_close(same.payoff(nodes[ends], rows, deals), game.payoff(ends, rows, deals))
