"""Hands as the terminal and the web play them: whose turn it is, what is legal, and what might have been."""

import numpy as np
import pytest

from bet_size_games import TWO_ROUNDS
from deepcfr.core.errors import GameError
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.cards import free_holes
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.play.hand import Hand, adjusted_result, decisions
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.styles import scripted_policy

BET_SIZES = ImplicitPoker(TWO_ROUNDS)


def finish(hand: Hand, token: str = "c") -> Hand:
    """Play on to the end; the person takes one action as long as it is legal, and calls."""
    while not hand.over:
        if hand.persons_turn:
            action = hand.read(token)
            hand.act(action if action is not None else 1)
        else:
            hand.act_for_agent()
    return hand


def test_nothing_is_done_out_of_turn_or_against_the_rules() -> None:
    hand = Hand(UniformPolicy(PokerGame(PRESETS["leduc"])), 0, 0)
    with pytest.raises(GameError, match="not the agent's turn"):
        hand.act_for_agent()
    with pytest.raises(GameError, match="Action 0 is not legal here"):
        hand.act(0)
    assert (hand.steps, hand.read("f"), hand.read(" K ")) == ([], None, 1)
    finish(hand)
    with pytest.raises(GameError, match="Action 1 is not legal here"):
        hand.act(1)
    with pytest.raises(GameError, match="not the agent's turn"):
        hand.act_for_agent()


@pytest.mark.parametrize("number", range(2))
def test_the_same_actions_make_the_same_hand(number: int) -> None:
    for policy in (UniformPolicy(PokerGame(PRESETS["fhp-mini"])), UniformPolicy(BET_SIZES)):
        hand = finish(Hand(policy, 9, number))  # type: ignore[arg-type]
        again = hand.again()
        assert again.steps == []
        for step in hand.steps:
            again.act(step.action)
        assert (again.steps, again.won, again.board, again.over) == (hand.steps, hand.won, hand.board, True)
        assert hand.steps[0].player == hand.rules.first_player[0]
        assert [step.player == hand.person for step in hand.steps].count(True) == len(decisions(hand))


@pytest.mark.parametrize("token", ["c", "r4", "f"])
def test_a_bet_size_hand_against_every_hand_of_the_agent(token: str) -> None:
    for number in (0, 1):
        hand = finish(Hand(UniformPolicy(BET_SIZES), 5, number), token)
        holes = free_holes(hand.rules, (*hand.hole(hand.person), *hand.board))
        assert np.allclose(hand.chances(holes), hand.chances(holes)[0])  # uniform play tells nothing
        wins = hand.wins(holes)
        assert wins[(holes == hand.hole(1 - hand.person)).all(1)] == [hand.won]
        assert adjusted_result(hand) == pytest.approx(wins.mean())
        assert hand.state.showdown or set(wins) == {hand.won}


def test_a_bet_size_agent_does_what_its_policy_says() -> None:
    hand = Hand(scripted_policy("raise", BET_SIZES), 1, 1)
    assert not hand.persons_turn
    assert hand.act_for_agent().token == "r2"
    assert [choice.token for choice in hand.choices()] == ["f", "c", "r4", "r5", "r6", "a"]
    assert hand.read("r4.0") == hand.choices()[2].action == 8
    assert hand.sizes == (3.0, 8.0)
    assert (hand.state.pot, hand.state.to_call, hand.chips) == (3.0, 1.0, (2.0, 1.0))
    assert hand.chances(free_holes(hand.rules, hand.hole(1))).tolist() == [1.0] * 5


def test_a_person_may_raise_by_any_legal_size_against_a_bet_size_agent() -> None:
    """Whole hands with random sizes: the agent's strategy stays a distribution over legal actions."""
    random, seen = np.random.default_rng(0), set()
    for number in range(60):
        hand = Hand(UniformPolicy(BET_SIZES), 3, number)
        while not hand.over:
            if not hand.persons_turn:
                strategy = hand.probabilities()
                assert sum(strategy.values()) == pytest.approx(1)
                assert all(hand.state.allows(action) for action in strategy)
                hand.act_for_agent()
            elif hand.sizes is not None and random.random() < 0.6:
                size = random.integers(int(2 * hand.sizes[0]), int(2 * hand.sizes[1]) + 1) / 2
                seen.add(hand.act(hand.read(f"r{size:g}")).token)
            else:
                hand.act(1)
        holes = free_holes(hand.rules, (*hand.hole(hand.person), *hand.board))
        assert adjusted_result(hand) == pytest.approx(float(hand.wins(holes).mean()))  # uniform play tells nothing
    assert {"r2.5", "r3", "r3.5"} <= seen


def test_a_size_out_of_range_is_no_action() -> None:
    hand = Hand(UniformPolicy(BET_SIZES), 1, 0)
    assert hand.sizes == (2.0, 8.0)
    assert [hand.read(text) for text in ("r1.5", "r8.5", "r" + "9" * 400, "rx", "b", "")] == [None] * 6
    assert hand.read("b3") == 6
    for action in (3, 17):
        with pytest.raises(GameError, match=f"Action {action} is not legal here"):
            hand.act(action)
