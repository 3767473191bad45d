"""Search in implicit betting trees: the lines of earlier rounds, and policies beside those of explicit trees."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from bet_size_games import ONE_ROUND, TWO_ROUNDS, decisions, random_table, rows_at
from deepcfr.config import SearchConfig
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import Infosets
from deepcfr.game.base import Deals
from deepcfr.game.bet_size_betting import BET, ROUND, advance, first_positions, legal_actions, node_at, round_starts
from deepcfr.game.bet_size_game import ExplicitPoker, ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, BetSizeRules
from deepcfr.game.betting import CALL, FOLD
from deepcfr.measure.match.tournament import TournamentTerms
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.mixture import ensemble
from deepcfr.policy.styles import styled
from deepcfr.search import policy as search_policy
from deepcfr.search.lines import LineSearch, searching
from deepcfr.search.policy import ResolvingPolicy
from deepcfr.search.real_sizes import KEPT_LINES

# two rounds of up to three raises each, the last one all-in
ALL_IN = replace(TWO_ROUNDS, name="all-in", bet_sizes=((4, 8), (50,)), max_raises=(3, 2), all_in=(True, True))
THREE_ROUNDS = replace(
    TWO_ROUNDS, name="three", bet_sizes=((4,), (50,), (100,)), measure=("chips", "pot", "pot"), max_raises=(1, 1, 1),
    all_in=(False, False, False), first_player=(0, 1, 1), board_cards=(0, 1, 1), num_ranks=4,
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "rules", "rounds"),
    [("gadget", ALL_IN, ()), ("gadget", THREE_ROUNDS, ()), ("unsafe", THREE_ROUNDS, (1, 2))],
)
def test_search_on_lines_finds_what_search_in_the_listed_game_finds(
    kind: str, rules: BetSizeRules, rounds: tuple[int, ...]
) -> None:
    settings = SearchConfig(kind=kind, iterations=30, rounds=rounds)  # type: ignore[arg-type]
    game = ImplicitPoker(rules)
    table = random_table(3, game)
    searched = searching(table, settings)
    assert isinstance(searched, LineSearch)
    listed = ResolvingPolicy(random_table(3, ExplicitPoker(rules)), settings)
    assert searched.kind == listed.kind
    positions = np.array(decisions(game))
    for deal in game.deal_cards(2, 5):
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


def test_the_large_game_is_searched_on_the_river() -> None:
    game = ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])
    searched, again = (LineSearch(UniformPolicy(game), SearchConfig(kind="unsafe", iterations=5)) for _ in range(2))
    positions = first_positions(game.bets, 2)
    for action in [BET + 2, CALL, CALL, BET, CALL, CALL, CALL]:
        advance(game.bets, positions[0], action)
    assert positions[:, ROUND].tolist() == [3, 0]
    cards = game.deal_cards(2, 1)
    found = rows_at(searched, positions, cards)
    legal = legal_actions(game.bets, positions)
    np.testing.assert_allclose(found.sum(1), 1)
    assert (found[~legal] == 0).all()
    np.testing.assert_allclose(found[1], legal[1] / legal[1].sum())  # before the flop it is the uniform policy
    _, kept = searched._on_line(int(round_starts(positions[:1], 3)[0]))
    assert kept._most_kept == search_policy._KEPT_BYTES / KEPT_LINES  # lines share the memory
    # the answer does not depend on the other questions
    np.testing.assert_array_equal(rows_at(again, positions[:1], cards[:1])[0], found[0])


def test_a_match_with_search_plays_few_deals_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(1)
    searched = LineSearch(table, SearchConfig(kind="unsafe", iterations=5))
    listed = ResolvingPolicy(random_table(1, ExplicitPoker(TWO_ROUNDS)), SearchConfig(iterations=5))
    few = [64, 64, 22]
    for policy, expected in ((searched, few), (styled(searched, "tight"), few), (listed, few), (table, [150])):
        dealt: list[int] = []
        deal = policy.game.deal

        def count(size: int, *rest: int, deal: Any = deal, dealt: list[int] = dealt) -> Deals:
            dealt.append(size)
            return deal(size, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(policy.game, "deal", count)
            TournamentTerms(hands=150, threads=1).play(UniformPolicy(policy.game), policy)
        assert dealt == expected


def test_the_policy_before_training_is_that_of_the_table() -> None:
    table = random_table(1)
    assert LineSearch(table, SearchConfig(iterations=1)).initial is None
    table.initial = lambda: UniformPolicy(table.game)
    assert LineSearch(table, SearchConfig(iterations=1)).initial is not None


def test_what_cannot_be_searched_is_refused() -> None:
    table = random_table(1)
    with pytest.raises(ConfigError, match="rounds of two-rounds are 0 to 1, but 'search"):
        LineSearch(table, SearchConfig(rounds=(2,)))
    whole = LineSearch(random_table(1, ImplicitPoker(ONE_ROUND)), SearchConfig(iterations=5))
    first = first_positions(whole.game.bets, 1)
    assert rows_at(whole, first, whole.game.deal_cards(1, 5))[0, FOLD] == 0
    with pytest.raises(GameError, match="has more than 200,000 nodes"):
        LineSearch(UniformPolicy(ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])), SearchConfig(rounds=(0, 1, 2, 3)))
