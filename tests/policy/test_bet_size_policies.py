"""Styles, ensembles and matches of policies of games with bet sizes, and questions to them in text."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from bet_size_games import ONE_ROUND, TWO_ROUNDS, Enumeration, decisions, random_table, rows_at
from deepcfr.core.errors import ConfigError
from deepcfr.game.bet_size_betting import ACTOR, ENDED, advance, first_positions, gain, legal_actions
from deepcfr.game.bet_size_game import BetSizePoker, ExplicitPoker, ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match import sampled_match
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import ensemble
from deepcfr.policy.query import query
from deepcfr.policy.styles import STYLES, styled

HUNL = ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])


def rows_of(policy: Policy) -> tuple[np.ndarray, np.ndarray]:
    """Legal actions [n, A] and probabilities [n, A] at every decision with some deals."""
    game = policy.game
    assert isinstance(game, BetSizePoker)
    positions = np.repeat(np.stack(decisions(game)), 20, axis=0)
    cards = np.tile(game.deal_cards(20, 5), (len(positions) // 20, 1))
    return legal_actions(game.bets, positions), rows_at(policy, positions, cards)


@pytest.mark.parametrize("style", STYLES)
def test_every_style_is_a_policy_that_keeps_its_promise(style: str) -> None:
    plain = random_table(1)
    legal, _ = rows_of(plain)
    _, after = rows_of(styled(plain, style))
    assert (after[~legal] == 0).all()
    assert (after >= 0).all()
    np.testing.assert_allclose(after.sum(1), 1)
    if style == "tight-aggressive":
        _, tight = rows_of(styled(plain, "tight"))
        _, brave = rows_of(styled(plain, "aggressive"))
        is_tight, is_brave = (np.isclose(after, rows).all(1) for rows in (tight, brave))
        assert (is_tight | is_brave).all()
        assert 0 < (is_brave & ~is_tight).sum() < len(after)


@pytest.mark.parametrize("rule", ["mixture", "member"])
def test_a_mixture_at_computed_nodes_is_that_of_listed_ones(rule: str) -> None:
    mixed = ensemble([random_table(1), random_table(2)], rule)
    game = ExplicitPoker(TWO_ROUNDS)
    there = ensemble([random_table(1, game), random_table(2, game)], rule)
    np.testing.assert_allclose(rows_of(mixed)[1], rows_of(there)[1])
    assert exploitability(there).nash_conv == pytest.approx(Enumeration(mixed).nash_conv())


def test_a_match_draws_one_member_for_each_deal() -> None:
    members, rival = (
        [random_table(seed, ImplicitPoker(ONE_ROUND)) for seed in (1, 2)],
        random_table(3, ImplicitPoker(ONE_ROUND)),
    )
    match = sampled_match(ensemble(members, "member"), rival, 30_000, 3)
    exact = [500 * (value_of(member, rival) - value_of(rival, member)) for member in members]
    assert abs(exact[0] - exact[1]) > 2 * match.interval
    assert match.value == pytest.approx(sum(exact) / 2, abs=2 * match.interval)


def test_a_match_has_the_value_of_the_game_tree() -> None:
    first, second = random_table(1, ImplicitPoker(ONE_ROUND)), random_table(2, ImplicitPoker(ONE_ROUND))
    match = sampled_match(first, second, 20_000, 3)
    exact = [1000 * value_of(first, second), -1000 * value_of(second, first)]
    assert match.value == pytest.approx(sum(exact) / 2, abs=2 * match.interval)
    assert match.seats[0] == pytest.approx(exact[0], abs=4 * match.interval)


def value_of(zero: Policy, one: Policy) -> float:
    """Player 0's gain in ONE_ROUND, by recursion over its betting with every pair of cards."""
    game = zero.game
    assert isinstance(game, BetSizePoker)
    total = 0.0
    for mine, theirs in permutations(range(5), 2):
        deal = np.array([[mine, theirs]], np.uint8)

        def value(position: np.ndarray, result: int, deal: np.ndarray = deal) -> float:
            if position[ENDED]:
                return float(gain(position, 0, result))
            policy = (zero, one)[position[ACTOR]]
            shares = rows_at(policy, position[None], deal)[0]
            worth = 0.0
            for action in np.flatnonzero(shares):
                after = position.copy()
                advance(game.bets, after, action)
                worth += shares[action] * value(after, result)
            return worth

        total += value(first_positions(game.bets, 1)[0], 2 if mine > theirs else 0)
    return total / 20


def test_questions_in_text() -> None:
    answer = query(UniformPolicy(HUNL), "As Kd / r4 c / Qs 7h 2c / k b0.5")
    assert answer.situation.text == "As Kd / r4 c / Qs 7h 2c / c r0.5"
    facts = answer.facts()
    assert (facts["player"], facts["round"], facts["pot"], facts["to_call"]) == (1, "flop", 12.0, 4.0)
    assert list(answer.probabilities) == [
        "fold", "call", "raise 0.7 pot (to 15.2)", "raise 1 pot (to 20)", "raise 1.5 pot (to 28)", "raise 2 pot (to 36)",
    ]  # fmt: skip
    assert "flop, player 1 to act, pot 12 big blinds, 4 to call" in answer.describe()
    implied = query(UniformPolicy(HUNL), "As Kd / r2 / Qs 7h 2c")
    assert implied.situation.text == "As Kd / r2 c / Qs 7h 2c"
    table = random_table(3)
    king = query(table, "4c / r2")
    legal, _ = rows_of(table)
    assert set(king.probabilities) == {"fold", "call", "raise to 4"}
    assert sum(king.probabilities.values()) == pytest.approx(1)
    assert legal.shape[1] == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("As", "A hand of hunl-ladder is 2 cards, but 'As' holds 1 card."),
        (
            "As Kd / r3",
            "The pre-flop betting 'r3' has 'r3' as the first action, where only f (fold) or c (call) or r2 (raise to 2) or "
            "r4 (raise to 4) or r8 (raise to 8) or r16 (raise to 16) is allowed.",
        ),
        ("As Kd / r4 r2", "has 'r2' after 'r4', where only f (fold) or c (call) or r8 (raise to 8) or"),
        ("As Kd / r4 f", "Nobody is left to act: the betting 'r4 f' ends the hand."),
        ("As Kd / r4 c", "Nobody can act yet: after the betting 'r4 c' the flop must follow in a field of its own"),
        ("As Kd / c c c", "The betting 'c c c' continues after 'c c', which ended the round"),
        ("As Kd / f / Qs 7h 2c", "The betting 'f' ended the hand, but the field 'Qs 7h 2c' follows."),
        ("As Kd/b/c/d/e/f/g/h/i", "takes at most 8 fields"),
    ],
)
def test_texts_that_describe_no_situation(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        query(UniformPolicy(HUNL), text)
    assert sentence in error.value.problems[0]
