"""Search in implicit betting trees: the lines of earlier rounds, and policies beside those of explicit trees."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch

from bet_size_games import ONE_ROUND, TWO_ROUNDS, decisions, random_table, rows_at
from deepcfr.config import SearchConfig
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import Infosets
from deepcfr.game.base import Deals
from deepcfr.game.bet_size_betting import (
    BET,
    ENDED,
    ROUND,
    advance,
    first_positions,
    legal_actions,
    node_at,
    round_starts,
)
from deepcfr.game.bet_size_game import ExplicitPoker, ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, BetSizeRules
from deepcfr.game.betting import CALL, FOLD, NOT_TERMINAL
from deepcfr.measure.local_best_response import local_best_response
from deepcfr.measure.match.record import Match
from deepcfr.measure.match.tournament import TournamentTerms
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.mixture import ensemble
from deepcfr.policy.styles import StyledPolicy, scripted_policy, styled
from deepcfr.search.policy import LineSearch, ResolvingPolicy, searching

# two rounds of up to three raises each, the last one all-in
ALL_IN = replace(TWO_ROUNDS, name="all-in", bet_sizes=((4, 8), (50,)), max_raises=(3, 2), all_in=(True, True))
THREE_ROUNDS = replace(
    TWO_ROUNDS, name="three", bet_sizes=((4,), (50,), (100,)), measure=("chips", "pot", "pot"), max_raises=(1, 1, 1),
    all_in=(False, False, False), first_player=(0, 1, 1), board_cards=(0, 1, 1), num_ranks=4,
)  # fmt: skip


def paths(game: ImplicitPoker) -> list[tuple[list[list[int]], np.ndarray]]:
    """Every decision of a game with the actions of each round that lead to it."""
    found = []
    stack = [([[]], first_positions(game.bets, 1)[0])]
    while stack:
        actions, position = stack.pop()
        found.append((actions, position))
        for action in np.flatnonzero(legal_actions(game.bets, position[None])[0]).tolist():
            after = position.copy()
            advance(game.bets, after, action)
            if after[ENDED] == NOT_TERMINAL:
                new = [[]] if after[ROUND] > position[ROUND] else []
                stack.append(([*actions[:-1], [*actions[-1], action], *new], after))
    return found


@pytest.mark.parametrize("rules", [TWO_ROUNDS, ALL_IN, THREE_ROUNDS], ids=lambda rules: rules.name)
def test_a_position_knows_the_betting_of_earlier_rounds(rules: BetSizeRules) -> None:
    game = ImplicitPoker(rules)
    reached = paths(game)
    for actions, position in reached:
        for round_ in range(position[ROUND] + 1):
            assert game.paths(round_starts(position[None], round_))[2].tolist() == list(chain(*actions[:round_]))
    assert max(position[ROUND] for _, position in reached) == rules.num_rounds - 1


def test_a_line_is_listed_with_what_follows_it() -> None:
    line = [BET, CALL]  # the dealer raises to 4 chips, and the big blind calls
    whole, part = ExplicitPoker(TWO_ROUNDS), ExplicitPoker(TWO_ROUNDS, line=line)
    assert part.tree.legal.sum(1)[:2].tolist() == [1, 1]
    there = whole.listed(part.computed)
    np.testing.assert_array_equal(whole.computed[there], part.computed)
    last = there[2]
    after = {last}
    for node in range(last, whole.tree.num_decisions):
        after |= set(whole.tree.child[node][whole.tree.legal[node]].tolist()) if node in after else set()
    # all that follows the line is there, and before it only the line
    assert set(there.tolist()) == after | set(there[:2].tolist())


@pytest.mark.parametrize("kind", ["unsafe", "gadget", "maxmargin"])
@pytest.mark.parametrize(("rules", "rounds"), [(TWO_ROUNDS, ()), (THREE_ROUNDS, ()), (THREE_ROUNDS, (1, 2))])
def test_search_on_lines_finds_what_search_in_the_listed_game_finds(
    rules: BetSizeRules, rounds: tuple[int, ...], kind: str
) -> None:
    settings = SearchConfig(kind=kind, iterations=30, rounds=rounds)  # type: ignore[arg-type]
    game = ImplicitPoker(rules)
    table = random_table(3, game)
    searched = searching(table, settings)
    assert isinstance(searched, LineSearch)
    listed = ResolvingPolicy(random_table(3, ExplicitPoker(rules)), settings)
    assert searched.kind == listed.kind
    positions = np.array(decisions(game))
    for deal in game.deal_cards(4, 5):
        found, wanted, tabled = (
            rows_at(policy, positions, np.tile(deal, (len(positions), 1))) for policy in (searched, listed, table)
        )
        np.testing.assert_allclose(found, wanted, atol=2e-4)
        # the first round is not searched, and what is searched differs from the table
        before = positions[:, ROUND] < (min(rounds) if rounds else rules.num_rounds - 1)
        np.testing.assert_array_equal(found[before], tabled[before])
        assert abs(found[~before] - tabled[~before]).max() > 0.1


def test_all_hands_of_a_decision_are_played_as_each_alone() -> None:
    table = random_table(3)
    game, holes = table.game, np.array([[0], [3], [5]], np.uint8)
    searched = LineSearch(table, SearchConfig(kind="unsafe", iterations=5))
    styles = [styled(policy, style) for policy in (table, searched) for style in ("tight-aggressive", "tight")]
    for policy in (table, searched, *styles, ensemble([table, random_table(4)], "sum")):
        for position in decisions(game):
            seen = game.visible_cards(holes, (2,) if position[ROUND] else ())
            nodes = np.full(3, node_at(position))
            alone = policy.probabilities(Infosets(torch.from_numpy(nodes), torch.from_numpy(seen)))
            np.testing.assert_array_equal(policy.on_hands(nodes[:1], seen)[0], alone)


def test_search_makes_a_table_harder_to_exploit_on_the_last_round() -> None:
    table = random_table(2)
    bounds = [
        local_best_response(policy, None, hands=400, seed=1, rounds=[1]).mean
        for policy in (table, LineSearch(table, SearchConfig(kind="gadget", iterations=100)))
    ]
    assert bounds[1] < 0.7 * bounds[0]


def test_the_large_game_is_searched_on_the_river() -> None:
    game = ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])
    searched = LineSearch(UniformPolicy(game), SearchConfig(kind="unsafe", iterations=10))
    positions = first_positions(game.bets, 3)
    for actions in ([CALL, CALL, CALL, CALL, CALL, CALL], [BET + 2, CALL, CALL, BET, CALL, CALL, CALL]):
        for action in actions:
            advance(game.bets, positions[len(actions) - 6], action)
    assert positions[:, ROUND].tolist() == [3, 3, 0]
    cards = game.deal_cards(3, 1)
    found = rows_at(searched, positions, cards)
    legal = legal_actions(game.bets, positions)
    np.testing.assert_allclose(found.sum(1), 1)
    assert (found[~legal] == 0).all()
    np.testing.assert_allclose(found[2], legal[2] / legal[2].sum())  # before the flop it is the uniform policy
    # the answer does not depend on what was asked before, nor on the other questions
    again = LineSearch(UniformPolicy(game), SearchConfig(kind="unsafe", iterations=10))
    for row in (1, 0):
        one = rows_at(again, positions[row : row + 1], cards[row : row + 1])
        np.testing.assert_array_equal(one[0], found[row])


def test_a_match_has_search_in_a_game_that_is_implicit() -> None:
    table = random_table(1)
    settings = SearchConfig(kind="unsafe", iterations=30)
    listed = ResolvingPolicy(random_table(1, ExplicitPoker(TWO_ROUNDS)), settings)
    matches: list[Match] = [
        TournamentTerms(hands=400).play(policy, scripted_policy("uniform", policy.game))
        for policy in (LineSearch(table, settings), listed, table)
    ]
    assert matches[0].value == pytest.approx(matches[1].value)
    assert matches[0].value != matches[2].value


def test_a_match_with_search_plays_few_deals_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(1)
    searched = LineSearch(table, SearchConfig(kind="unsafe", iterations=5))
    listed = ResolvingPolicy(random_table(1, ExplicitPoker(TWO_ROUNDS)), SearchConfig(iterations=5))
    few = [64, 64, 22]
    styles = (styled(searched, "tight"), StyledPolicy(listed, "tight"))
    for policy, expected in ((searched, few), (listed, few), (styles[0], few), (styles[1], few), (table, [150])):
        dealt: list[int] = []
        deal = policy.game.deal

        def count(size: int, *rest: int, deal: Any = deal, dealt: list[int] = dealt) -> Deals:
            dealt.append(size)
            return deal(size, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(policy.game, "deal", count)
            TournamentTerms(hands=150, threads=1).play(UniformPolicy(policy.game), policy)
        assert dealt == expected


def test_lines_share_the_memory_for_solved_subgames(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(1)
    settings = SearchConfig(kind="unsafe", iterations=2)
    line = [BET, CALL]
    positions = np.repeat(first_positions(table.game.bets, 1), 6, axis=0)
    for position in positions:
        for action in line:
            advance(table.game.bets, position, action)
    cards = np.array([[(board + 1) % 6, (board + 2) % 6, board] for board in range(6)], np.uint8)
    kept = []
    for most in (500_000_000, 1_000):  # the strategies of one subgame take more than a 32nd of 1,000 bytes
        monkeypatch.setattr("deepcfr.search.policy._KEPT_BYTES", most)
        searched = LineSearch(table, settings)
        rows_at(searched, positions, cards)
        played = searched._on_line(int(round_starts(positions, 1)[0]))[1]
        assert isinstance(played, ResolvingPolicy)
        kept.append(len(played._solved))
    assert kept[0] > 2
    assert kept[1] == 1
    assert sum(strategy.nbytes for strategy in played._solved.values()) < 1_000


def test_the_policy_before_training_is_that_of_the_table() -> None:
    table = random_table(1)
    assert LineSearch(table, SearchConfig(iterations=1)).initial is None
    first = UniformPolicy(table.game)
    table.initial = lambda: first
    begin = LineSearch(table, SearchConfig(iterations=1)).initial
    assert begin is not None
    assert begin() is first


def test_what_cannot_be_searched_is_refused() -> None:
    table = random_table(1)
    with pytest.raises(ConfigError, match="rounds of two-rounds are 0 to 1, but 'search"):
        LineSearch(table, SearchConfig(rounds=(2,)))
    whole = LineSearch(random_table(1, ImplicitPoker(ONE_ROUND)), SearchConfig(iterations=5))
    first = first_positions(whole.game.bets, 1)
    assert rows_at(whole, first, whole.game.deal_cards(1, 5))[0, FOLD] == 0
    with pytest.raises(GameError, match="has more than 200,000 nodes"):
        LineSearch(UniformPolicy(ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])), SearchConfig(rounds=(0, 1, 2, 3)))
