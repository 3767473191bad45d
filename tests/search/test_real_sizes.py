"""Search with the real bet: against search in the agent's own game, and against values worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bet_size_games import TWO_ROUNDS, random_table
from deepcfr.config import SearchConfig, SearchKind
from deepcfr.game.bet_size_game import ExplicitPoker, ImplicitPoker
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.betting import CALL, FOLD
from deepcfr.game.cards import all_hands
from deepcfr.game.public_state import NoLimitState
from deepcfr.measure.hand_responses import Responder
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.query import hand_strategy
from deepcfr.policy.translation import Translation, real_rules
from deepcfr.search.lines import searching
from deepcfr.search.spot_sizes import Sizes

# One card of three each, antes of 2 and no bets: the only bet of a search is the real one.
NO_BETS = BetSizeRules(
    name="no-bets", stack=16, bet_sizes=((),), measure=("pot",), max_raises=(1,), all_in=(False,), blinds=(2, 2),
    first_player=(0,), num_ranks=3, num_suits=1, hole_cards=1, board_cards=(0,), unit_chips=2, unit="antes",
    milli_unit="mA/g",
)  # fmt: skip


def answers(
    policy: Policy, actions: list[int], board: tuple[int, ...] = ()
) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Real actions with their probabilities by hand after some, and the strategy in the agent's own betting."""
    translation = Translation(policy, real_rules(policy), 0)
    state = NoLimitState.start(translation.rules)
    for action in actions:
        state = state.after(action)
    shadow = translation.follow(state.actions, state.actor, 0)
    rules = state.rules
    holes = all_hands(rules.num_cards, rules.hole_cards)
    holes = holes[~np.isin(holes, board).any(1)]
    plain = policy.policy  # type: ignore[attr-defined]
    own = Translation(plain, rules, 0).follow(state.actions, state.actor, 0)
    rows = hand_strategy(policy, own.own, holes, board)
    return translation.strategy(policy, shadow, state.now, holes, board), rows


@pytest.mark.parametrize("bet", [2, 3])
def test_a_bet_that_the_game_lacks_is_called_as_often_as_makes_a_bluff_worth_nothing(bet: int) -> None:
    """A bet of `bet` chips into 4: the worst card gains 4 from a fold and loses the bet to a call.

    The opponent has the best card or the middle one, calls with the best and with the middle one c of the time: the
    bluff is worth 4 (1 - c) - bet (1 + c) = 0. The worst card bets so often that a call of the middle one is worth
    nothing: b (4 + bet) = bet.
    """
    policy = searching(UniformPolicy(ImplicitPoker(NO_BETS)), SearchConfig(kind="unsafe", iterations=2_000))
    found, _ = answers(policy, [2 + bet])
    call = (4 - bet) / (4 + bet)
    assert found[CALL] == pytest.approx([0, call, 1], abs=0.01)
    assert found[FOLD] == pytest.approx([1, 1 - call, 0], abs=0.01)


def rounds_of(first: int, kind: SearchKind) -> Policy:
    """A policy of two rounds that searches from one of them on."""
    rules = replace(TWO_ROUNDS, stack=40, bet_sizes=((4,), (50, 100)), all_in=(True, True))
    rounds = tuple(range(first, 2))
    return searching(random_table(3, ImplicitPoker(rules)), SearchConfig(kind=kind, rounds=rounds, iterations=20))


@pytest.mark.parametrize("kind", ["unsafe", "gadget"])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    "actions", [[], [4], [4, 40], [4, CALL], [CALL, 4, CALL, CALL, 8], [4, CALL, 8, 24], [4, CALL, 12]], ids=str
)
def test_with_the_bets_of_its_game_it_is_search_in_its_game(first: int, kind: SearchKind, actions: list[int]) -> None:
    policy, board = rounds_of(first, kind), (2,) if CALL in actions else ()
    found, own = answers(policy, actions, board)
    columns = [column for column in own.T if column.any()]
    assert len(found) == len(columns)
    for shares, column in zip(found.values(), columns, strict=True):
        np.testing.assert_allclose(shares, column, atol=1e-6)


@pytest.mark.parametrize("first", [0, 1])
def test_bets_of_other_sizes_are_not_translated(first: int) -> None:
    """After bets of 5 and 6 chips in the first round and one of 9 in the second."""
    policy = rounds_of(first, "gadget")
    found, _ = answers(policy, [5, CALL, 9], (2,))
    assert list(found) == [FOLD, CALL, 9 + 18 // 2, 9 + 18, 40]  # half a pot, a pot, and all-in
    assert sum(found.values()) == pytest.approx(np.ones(5))
    larger, _ = answers(policy, [5, CALL, 30], (2,))
    assert (larger[FOLD] >= found[FOLD] - 1e-6).all()
    assert larger[FOLD].sum() > found[FOLD].sum() + 0.1
    np.testing.assert_array_equal(answers(policy, [5, CALL, 9], (2,))[0][FOLD], found[FOLD])  # whatever else was asked
    followed = [Translation(each, real_rules(each), 0).follow((4, CALL, 9), 0, 0) for each in (policy, policy.policy)]  # type: ignore[attr-defined]
    assert [shadow.translated for shadow in followed] == [False, True]
    translated = searching(policy.policy, SearchConfig(sizes="translated"))  # type: ignore[attr-defined]
    assert translated.real_sizes is None


def test_who_bets_against_a_search_meets_the_real_bet() -> None:
    """The range of a local best response follows what the search plays, so its gain differs from that by translation."""
    plain = random_table(3, ExplicitPoker(replace(TWO_ROUNDS, stack=40, bet_sizes=((4,), (100,)), all_in=(True, True))))
    gains = {}
    for sizes in ("real", "translated"):
        policy = searching(plain, SearchConfig(kind="unsafe", iterations=50, sizes=sizes))  # type: ignore[arg-type]
        responder = Responder(policy, (1,), 0, Sizes.everywhere("30 60 200"))
        gains[sizes] = np.mean([responder.gains(number) for number in range(60)])
    assert gains["real"] < gains["translated"]
