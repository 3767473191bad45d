"""Search in raise-ladder games that are stepped: the lines of earlier rounds, and policies beside those of listed games."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest

from deepcfr.config import SearchConfig
from deepcfr.errors import ConfigError, GameError
from deepcfr.evaluation.match.record import Match
from deepcfr.games.betting import CALL, FOLD, NOT_TERMINAL
from deepcfr.games.cards import deal_cards
from deepcfr.games.ladder import LADDERS, LadderRules
from deepcfr.games.ladder_betting import (
    ACTOR,
    ENDED,
    ROUND,
    RUNG,
    LadderGame,
    advance,
    first_positions,
    legal_actions,
    line_actions,
    lines_before,
)
from deepcfr.games.listed_ladder import ListedLadder
from deepcfr.ladder.best_response import ladder_best_response
from deepcfr.ladder.listed import ListedPolicy, SteppedPolicy
from deepcfr.ladder.policies import LadderUniform, ladder_ensemble, ladder_scripted, ladder_style
from deepcfr.ladder.search import LadderSearch
from deepcfr.policies.styles import StyledPolicy
from deepcfr.report.matches import Terms
from deepcfr.search.policy import ResolvingPolicy
from ladder_games import ONE_ROUND, TWO_ROUNDS, decisions, random_table

# two rounds of up to three raises each, the last one all-in
ALL_IN = replace(TWO_ROUNDS, name="all-in", ladder=((4, 8), (50,)), max_raises=(3, 2), all_in=(True, True))
THREE_ROUNDS = replace(
    TWO_ROUNDS, name="three", ladder=((4,), (50,), (100,)), measure=("chips", "pot", "pot"), max_raises=(1, 1, 1),
    all_in=(False, False, False), first_player=(0, 1, 1), board_cards=(0, 1, 1), num_ranks=4,
)  # fmt: skip


def paths(game: LadderGame) -> list[tuple[list[list[int]], np.ndarray]]:
    """Every decision of a game with the actions of each round that lead to it."""
    found = []
    stack = [([[]], first_positions(game.ladder, 1)[0])]
    while stack:
        actions, position = stack.pop()
        found.append((actions, position))
        for action in np.flatnonzero(legal_actions(game.ladder, position[None])[0]).tolist():
            after = position.copy()
            advance(game.ladder, after, action)
            if after[ENDED] == NOT_TERMINAL:
                new = [[]] if after[ROUND] > position[ROUND] else []
                stack.append(([*actions[:-1], [*actions[-1], action], *new], after))
    return found


@pytest.mark.parametrize("rules", [TWO_ROUNDS, ALL_IN, THREE_ROUNDS], ids=lambda rules: rules.name)
def test_a_position_knows_the_betting_of_earlier_rounds(rules: LadderRules) -> None:
    reached = paths(LadderGame(rules))
    for actions, position in reached:
        for round_ in range(position[ROUND] + 1):
            line = int(lines_before(position[None], round_)[0])
            assert line_actions(line, round_) == list(chain(*actions[:round_]))
    assert max(position[ROUND] for _, position in reached) == rules.num_rounds - 1


def test_a_line_is_listed_with_what_follows_it() -> None:
    line = [RUNG, CALL]  # the dealer raises to 4 chips, and the big blind calls
    whole, part = ListedLadder(TWO_ROUNDS), ListedLadder(TWO_ROUNDS, line=line)
    assert part.tree.legal.sum(1)[:2].tolist() == [1, 1]
    there = whole.nodes_at(part.positions)
    np.testing.assert_array_equal(whole.positions[there], part.positions)
    last = whole.nodes_at(part.positions[2:3])[0]
    after = {last}
    for node in range(last, whole.tree.num_decisions):
        after |= set(whole.tree.child[node][whole.tree.legal[node]].tolist()) if node in after else set()
    # all that follows the line is there, and before it only the line
    assert set(there.tolist()) == after | set(whole.nodes_at(part.positions[:2]).tolist())


@pytest.mark.parametrize("kind", ["unsafe", "gadget", "maxmargin"])
@pytest.mark.parametrize(("rules", "rounds"), [(TWO_ROUNDS, ()), (THREE_ROUNDS, ()), (THREE_ROUNDS, (1, 2))])
def test_search_on_lines_finds_what_search_in_the_listed_game_finds(
    rules: LadderRules, rounds: tuple[int, ...], kind: str
) -> None:
    settings = SearchConfig(kind=kind, iterations=30, rounds=rounds)  # type: ignore[arg-type]
    game = LadderGame(rules)
    table = random_table(3, game)
    searched = LadderSearch(table, settings)
    listed = SteppedPolicy(ResolvingPolicy(ListedPolicy(table, ListedLadder(rules)), settings))
    assert searched.kind == listed.kind
    positions = np.array(decisions(game))
    cards = deal_cards(4, np.uint64(5), 0, rules.deck.num_cards, game.slots)
    own, theirs = (policy.look(cards, np.arange(4), 0) for policy in (searched, listed))
    assert own.shape == (4, searched.width)
    plain = table.look(cards, np.arange(4), 0)
    for deal in range(4):
        everywhere = np.full(len(positions), deal)
        found = searched.probabilities(positions, own[everywhere])
        np.testing.assert_allclose(found, listed.probabilities(positions, theirs[everywhere]), atol=2e-4)
        # the first round is not searched, and what is searched differs from the table
        before = positions[:, ROUND] < (min(rounds) if rounds else rules.num_rounds - 1)
        tabled = table.probabilities(positions, plain[everywhere])
        np.testing.assert_array_equal(found[before], tabled[before])
        assert abs(found[~before] - tabled[~before]).max() > 0.1


def test_all_views_of_a_decision_are_played_as_each_alone() -> None:
    table = random_table(3)
    cards = deal_cards(6, np.uint64(5), 0, TWO_ROUNDS.deck.num_cards, table.game.slots)
    searched = LadderSearch(table, SearchConfig(kind="unsafe", iterations=5))
    styles = [ladder_style(policy, style) for policy in (table, searched) for style in ("tight-aggressive", "tight")]
    for policy in (table, searched, *styles, ladder_ensemble([table, random_table(4)], "sum")):
        views = policy.look(cards, np.arange(6), 0)
        for position in decisions(table.game):
            alone = policy.probabilities(np.tile(position, (6, 1)), views)
            np.testing.assert_array_equal(policy.on_views(position[None], views)[0], alone)
            once = policy.look_in_round(cards, int(position[ACTOR]), int(position[ROUND]))
            np.testing.assert_array_equal(policy.on_views(position[None], once)[0], alone)


def test_search_makes_a_table_harder_to_exploit_on_the_last_round() -> None:
    table = random_table(2)
    bounds = [
        ladder_best_response(policy, hands=400, seed=1, rounds=[1]).mean
        for policy in (table, LadderSearch(table, SearchConfig(kind="gadget", iterations=100)))
    ]
    assert bounds[1] < 0.7 * bounds[0]


def test_the_large_game_is_searched_on_the_river() -> None:
    game = LadderGame(LADDERS["hunl-ladder"])
    searched = LadderSearch(LadderUniform(game), SearchConfig(kind="unsafe", iterations=10))
    positions = first_positions(game.ladder, 3)
    for actions in ([CALL, CALL, CALL, CALL, CALL, CALL], [RUNG + 2, CALL, CALL, RUNG, CALL, CALL, CALL]):
        for action in actions:
            advance(game.ladder, positions[len(actions) - 6], action)
    assert positions[:, ROUND].tolist() == [3, 3, 0]
    cards = deal_cards(3, np.uint64(1), 0, 52, game.slots)
    views = searched.look(cards, np.arange(3), 0)
    found = searched.probabilities(positions, views)
    legal = legal_actions(game.ladder, positions)
    np.testing.assert_allclose(found.sum(1), 1)
    assert (found[~legal] == 0).all()
    np.testing.assert_allclose(found[2], legal[2] / legal[2].sum())  # before the flop it is the uniform policy
    # the answer does not depend on what was asked before, nor on the other questions
    again = LadderSearch(LadderUniform(game), SearchConfig(kind="unsafe", iterations=10))
    for row in (1, 0):
        one = again.probabilities(positions[row : row + 1], views[row : row + 1])
        np.testing.assert_array_equal(one[0], found[row])


def test_a_match_has_search_in_a_game_that_is_stepped() -> None:
    table = random_table(1)
    settings = SearchConfig(kind="unsafe", iterations=30)
    rival = ladder_scripted("uniform", table.game)
    matches: list[Match] = [
        Terms(hands=400).play(policy, rival)
        for policy in (
            LadderSearch(table, settings),
            SteppedPolicy(ResolvingPolicy(ListedPolicy(table, ListedLadder(TWO_ROUNDS)), settings)),
            table,
        )
    ]
    assert matches[0].value == pytest.approx(matches[1].value)
    assert matches[0].value != matches[2].value


def test_a_match_with_search_plays_few_deals_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(1)
    searched = LadderSearch(table, SearchConfig(kind="unsafe", iterations=5))
    listed = SteppedPolicy(ResolvingPolicy(ListedPolicy(table, ListedLadder(TWO_ROUNDS)), SearchConfig(iterations=5)))
    few = [64, 64, 22]
    styled = (ladder_style(searched, "tight"), SteppedPolicy(StyledPolicy(listed.policy, "tight")))
    for policy, expected in ((searched, few), (listed, few), (styled[0], few), (styled[1], few), (table, [150])):
        looked: list[int] = []
        look = policy.look

        def count(cards: np.ndarray, *rest: object, look: Any = look, looked: list[int] = looked) -> np.ndarray:
            looked.append(len(cards))
            return look(cards, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(policy, "look", count)
            Terms(hands=150, threads=1).play(LadderUniform(table.game), policy)
        assert looked == expected


def test_lines_share_the_memory_for_solved_subgames(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(1)
    settings = SearchConfig(kind="unsafe", iterations=2)
    line = [RUNG, CALL]
    positions = np.repeat(first_positions(table.game.ladder, 1), 6, axis=0)
    for position in positions:
        for action in line:
            advance(table.game.ladder, position, action)
    cards = np.array([[(board + 1) % 6, (board + 2) % 6, board] for board in range(6)], np.uint8)
    kept = []
    for most in (500_000_000, 1_000):  # the strategies of one subgame take more than a 32nd of 1,000 bytes
        monkeypatch.setattr("deepcfr.search.policy._KEPT_BYTES", most)
        searched = LadderSearch(table, settings)
        searched.probabilities(positions, searched.look(cards, np.arange(6), 0))
        played = searched._on_line(int(lines_before(positions, 1)[0])).policy
        assert isinstance(played, ResolvingPolicy)
        kept.append(len(played._solved))
    assert kept[0] > 2
    assert kept[1] == 1
    assert sum(strategy.nbytes for strategy in played._solved.values()) < 1_000


def test_the_policy_before_training_is_that_of_the_table() -> None:
    table = random_table(1)
    assert LadderSearch(table, SearchConfig(iterations=1)).initial is None
    first = LadderUniform(table.game)
    table.initial = lambda: first
    begin = LadderSearch(table, SearchConfig(iterations=1)).initial
    assert begin is not None
    assert begin() is first


def test_what_cannot_be_searched_is_refused() -> None:
    table = random_table(1)
    with pytest.raises(ConfigError, match="rounds of two-rounds are 0 to 1, but 'search"):
        LadderSearch(table, SearchConfig(rounds=(2,)))
    with pytest.raises(GameError, match="draws one of 2 policies for each game"):
        LadderSearch(ladder_ensemble([table, LadderUniform(table.game)], "member"), SearchConfig())
    whole = LadderSearch(random_table(1, LadderGame(ONE_ROUND)), SearchConfig(iterations=5))
    views = whole.look(deal_cards(1, np.uint64(5), 0, 5, 2), np.arange(1), 0)
    first = first_positions(whole.game.ladder, 1)
    assert whole.probabilities(first, views)[0, FOLD] == 0
    with pytest.raises(GameError, match="has more than 200,000 nodes"):
        LadderSearch(LadderUniform(LadderGame(LADDERS["hunl-ladder"])), SearchConfig(rounds=(0, 1, 2, 3)))
