"""Bets of any size are translated: by the published rule, in step with the real hand, and without an illegal answer."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from command_line import deepcfr, problem
from deepcfr.core.errors import GameError
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.game.betting import (
    CALL,
    FOLD,
    NOT_TERMINAL,
    RAISE,
    build_tree,
    first_state,
    legal_actions,
    next_state,
    raise_range,
)
from deepcfr.game.presets import load_game
from deepcfr.game.public_state import PublicState
from deepcfr.game.rules import PRESETS, no_limit
from deepcfr.interop.acpc import (
    MatchState,
    Move,
    ProtocolError,
    action_of,
    log_line,
    move_of,
    parse_match_state,
    position_of,
    read_betting,
)
from deepcfr.interop.client import ProtocolAgent
from deepcfr.interop.dealer import Terms
from deepcfr.interop.hand_history import load_histories
from deepcfr.interop.host import HostedTable, Records, host_match
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.styles import scripted_policy
from deepcfr.policy.translation import Translation, harmonic, real_rules

GAME = ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])
UNIFORM = scripted_policy("uniform", GAME)
RULES = real_rules(UNIFORM)


def shadow(actions: list[int], player: int = 0, hand: int = 0, policy: Policy = UNIFORM, seed: int = 0) -> PublicState:
    """The agent's own betting after real actions."""
    found = ProtocolAgent(policy, seed, real_rules(policy)).player.translation.follow(actions, player, hand)
    assert not found.lost
    return found.own


def test_the_harmonic_mapping_has_its_published_values() -> None:
    """Ganzfried and Sandholm 2013: it is 1 and 0 at the ends; its median is (A + B + 2AB) / (A + B + 2)."""
    for low, high in ((0.0, 1.0), (0.5, 1.0), (0.3, 2.0)):
        assert harmonic(low, low, high) == pytest.approx(1)
        assert harmonic(high, low, high) == 0
        median = (low + high + 2 * low * high) / (low + high + 2)
        assert harmonic(median, low, high) == pytest.approx(0.5)
    assert harmonic(1 / 3, 0.0, 1.0) == pytest.approx(0.5)


def test_a_bet_between_two_sizes_becomes_either_with_its_probability() -> None:
    flop = [CALL, CALL]
    limped = GAME.state().after(CALL).after(CALL)
    bets = {action: limped.after(action).chips[1] for action in (4, 5)}
    assert bets == {4: 240, 5: 300}
    low, high = 0.7, 1.0
    total = (bets[4] + bets[5]) // 2
    chosen = [shadow([*flop, total], hand=hand).chips[1] for hand in range(400)]
    assert set(chosen) == {bets[4], bets[5]}
    expected = harmonic((total - 100) / 200, low, high)
    assert np.mean([chips == bets[4] for chips in chosen]) == pytest.approx(expected, abs=0.07)


DEEP = scripted_policy("uniform", ImplicitPoker(BET_SIZE_GAMES["hunl-200"]))  # all-in is a size of every round
STACK = 20_000


def test_bets_outside_the_sizes_become_the_nearest() -> None:
    assert shadow([250]).chips[0] in (200, 400)
    assert shadow([4_900]).chips[0] == 1_600  # the largest of the first round
    assert shadow([200], policy=DEEP).chips[0] == 250
    assert {shadow([4_000], policy=DEEP, hand=hand).chips[0] for hand in range(50)} == {2_400}  # not all-in


def test_all_in_is_all_in_whatever_the_pots_are() -> None:
    for hand in range(50):
        assert shadow([STACK], policy=DEEP, hand=hand).chips[0] == STACK
        # the agent's pot is smaller than the real one, so the same chips are a larger share of it
        assert shadow([4_000, CALL, CALL, STACK], player=1, policy=DEEP, hand=hand).chips[0] == STACK
    small = [250, CALL, CALL, CALL, 625]  # on the turn there are one size and all-in
    answered = shadow([*small, 1_000], player=1, policy=DEEP)
    assert max(answered.chips) < STACK  # a small raise is none
    assert answered.to_call > 0
    assert max(shadow([*small, 15_000], player=1, policy=DEEP).chips) == STACK  # most of the stack


@pytest.mark.parametrize(("policy", "stack"), [(UNIFORM, 10_000), (DEEP, STACK), (UNIFORM, STACK)])
def test_a_bet_can_always_be_folded_and_own_raises_are_followed_as_what_they_were(policy: Policy, stack: int) -> None:
    """Random hands of random legal sizes: both bettings are in one round with one player to act, facing a bet or none."""
    rules, random = no_limit(RULES, stack), np.random.default_rng(5)
    faced = own_raises = lost = 0
    for hand in range(60):
        translation, player = Translation(policy, rules, seed=1), hand % 2
        real, actions, before = first_state(rules), list[int](), None
        while real.ended == NOT_TERMINAL:
            found = translation.follow(actions, player, hand)
            if before is not None:  # the agent's raise is followed as the one that it chose
                assert found.own.betting == before.betting
                before = None
            if found.lost:
                assert 2 * max(real.chips) >= min(stack, policy.game.rules.stack)  # the agent is all-in
                lost += 1
            else:
                assert (found.own.round, found.own.actor) == (real.round, real.actor)
                if real.to_call:
                    assert FOLD in found.own.legal()
                    faced += 1
            if real.actor == player and not found.lost:
                choice = int(random.choice(found.own.legal()[real.to_call > 0 :]))
                action = translation._real(found.own, real, choice)
                same = [c for c in found.own.legal() if translation._real(found.own, real, c) == action]
                if action >= RAISE:
                    own_raises += 1
                    after = found.own.after(same[0])
                    before = after if after.round == real.round and not after.over else None
            else:
                action = int(random.choice(legal_actions(rules, real)[real.to_call > 0 :]))
                if action == RAISE:
                    least, most = raise_range(rules, real)
                    action = int(random.integers(least, min(most, 4 * least) + 1))
            actions.append(action)
            real = next_state(rules, real, action)
    assert faced > 30
    assert own_raises > 6
    assert lost > 1


def test_bets_of_the_games_own_sizes_are_followed_exactly() -> None:
    """Random hands of the agent's game, told as no-limit hands."""
    random = np.random.default_rng(0)
    for hand in range(60):
        own, real, actions = GAME.state(), first_state(RULES), list[int]()
        while not own.over:
            followed = ProtocolAgent(UNIFORM, 0).player.translation.follow(actions, hand % 2, hand)
            assert not followed.translated
            assert followed.own.betting == own.betting
            assert real.chips == own.chips
            action = int(random.choice(own.legal()[own.legal()[0] == FOLD :] if random.random() < 0.8 else own.legal()))
            own = own.after(action)
            actions.append(action if action < RAISE else max(own.chips))
            real = next_state(RULES, real, actions[-1])
        assert real.ended != NOT_TERMINAL


def test_a_raise_that_has_no_room_counts_as_the_one_before_or_as_the_largest_bet() -> None:
    before = shadow([200, 400], player=0)
    again = ProtocolAgent(UNIFORM, 0).player.translation.follow((200, 400, 1_600, 3_000), 0, 0)
    assert again.translated
    assert not again.lost
    assert again.own.betting == before.betting
    bet = ProtocolAgent(UNIFORM, 0).player.translation.follow(
        (CALL, CALL, 500, 4_000), 1, 0
    )  # its largest size, raised
    assert not bet.lost
    assert bet.own.betting == ("c c", "c r2")
    state = parse_match_state("MATCHSTATE:0:0:cc/r500r4000:AsKd|/8c8dJs")
    given = {ProtocolAgent(UNIFORM, seed).answer(state) for seed in range(40)}
    assert {Move("f"), Move("c")} <= given


def test_an_agent_whose_betting_has_ended_checks_and_calls() -> None:
    """A short stack of its own: the agent's hand is all-in on the flop, the real one goes on."""
    small = dataclasses.replace(GAME.source, name="short", stack=400, bet_sizes=((200, 400), (100,), (100,), (100,)))
    agent = ProtocolAgent(scripted_policy("uniform", ImplicitPoker(small)), 0, no_limit(RULES, 20_000))
    for text in ("r300r10000c/r12000", "r300r10000c/r12000c/r15000"):
        board = "/8c8dJs" if text.count("/") == 1 else "/8c8dJs/2c"
        move = agent.answer(parse_match_state(f"MATCHSTATE:1:3:{text}:|AsKd{board}"))
        assert move == Move("c")
    assert agent.facts() == {"translated_hands": 1, "lost_hands": 1}
    assert agent.describe().endswith("in 1 hands, and it only checked and called in the end of 1 hands.")


def test_answers_depend_on_the_seed_the_hand_and_the_state_alone() -> None:
    texts = ["0:{}:r250:AsKd|", "0:{}:r250c/cr777:AsKd|/8c8dJs", "1:{}:r333r1111:|AsKd"]
    states = [parse_match_state(f"MATCHSTATE:{text}".format(hand)) for hand in range(40) for text in texts]
    first, second = ProtocolAgent(UNIFORM, 7), ProtocolAgent(UNIFORM, 7)
    answers = [first.answer(state) for state in states]
    assert [second.answer(state) for state in reversed(states)] == answers[::-1]
    assert [ProtocolAgent(UNIFORM, 8).answer(state) for state in states] != answers


@pytest.mark.parametrize("share", [1, 2])
def test_own_sizes_are_shares_of_the_real_pot(share: int) -> None:
    game = load_game("hunl-pot")
    agent = ProtocolAgent(policy := scripted_policy("raise", game), 0, real_rules(policy))
    pot = 2 * 250 * share
    state = parse_match_state(f"MATCHSTATE:0:0:r{250 * share}c/:AsKd|/8c8dJs")
    assert agent.answer(state) == Move("r", 250 * share + pot)


def test_every_size_that_poker_allows_is_an_action_and_no_other() -> None:
    state = first_state(RULES)
    assert raise_range(RULES, state) == (200, 10_000)
    assert action_of(RULES, state, Move("r", 201)) == 201
    assert move_of(RULES, state, 201) == Move("r", 201)
    for size in (199, 10_001):
        with pytest.raises(ProtocolError, match="f or c or r200 to r10000 is allowed"):
            action_of(RULES, state, Move("r", size))
    raised = next_state(RULES, next_state(RULES, state, 450), 900)
    assert raise_range(RULES, raised) == (1_350, 10_000)
    shoved = next_state(RULES, raised, 10_000)
    assert legal_actions(RULES, shoved) == [FOLD, CALL]
    with pytest.raises(GameError, match="cannot be listed"):
        build_tree(RULES)


class RandomRaiser:
    """Plays a random legal action; half of the raises are small, the others of any size."""

    rules, random = RULES, np.random.default_rng(3)

    def answer(self, state: MatchState) -> Move | None:
        betting, _ = read_betting(RULES, state.betting)
        if betting.ended != NOT_TERMINAL or betting.actor != position_of(RULES, state.position):
            return None
        action = int(self.random.choice(legal_actions(RULES, betting)))
        if action == RAISE:
            least, most = raise_range(RULES, betting)
            span = most - least if self.random.random() < 0.5 else min(most - least, 3 * least)
            action = least + int(self.random.integers(span + 1))
        return move_of(RULES, betting, action)

    def warm_up(self) -> None: ...


def test_hands_against_random_raises_end_without_an_error(tmp_path: Path) -> None:
    """Each hand is refereed by pokerkit; most have a bet that the agent's game does not have."""
    agent = ProtocolAgent(UNIFORM, 3)
    records = Records(log=tmp_path / "log", phh=tmp_path)
    host_match(HostedTable(RULES, ("agent", "raiser"), (agent, RandomRaiser())), Terms(60, 3), records, print)
    logged = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("STATE:")]
    assert [log_line(RULES, hand) for hand in load_histories(tmp_path / "hands.phhs", RULES)] == logged
    assert len(logged) == 60
    facts = agent.facts()
    assert facts["translated_hands"] > 20
    assert facts["lost_hands"] < 8


def test_limit_games_have_nothing_to_translate() -> None:
    with pytest.raises(GameError, match="'fhp' has no raises that could stand for those of no-limit poker"):
        real_rules(UniformPolicy(load_game("fhp")))
    assert no_limit(PRESETS["hunl-pot"], 20_000).stack == 20_000
    outcome = deepcfr("acpc", "fhp", "--port", 1, "--retries", 0, "--stack", 5)
    assert problem(outcome) == "--stack is for no-limit games, and fhp is none."
