"""Local best response by hands: deal by deal what a plain player does, and less than a best response gains."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bet_size_games import ONE_ROUND, TWO_ROUNDS, Enumeration, all_deals, random_table, rows_at
from command_line import deepcfr, problem
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.rng import addressed_uniforms
from deepcfr.game.bet_size_betting import (
    ACTOR,
    BET,
    CHIPS,
    ENDED,
    ROUND,
    advance,
    first_positions,
    gain,
    legal_actions,
    raise_total,
)
from deepcfr.game.bet_size_game import BetSizeState, ExplicitPoker, ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, BetSizeRules
from deepcfr.game.betting import CALL, FOLD, FOLDED, NOT_TERMINAL
from deepcfr.game.presets import load_game
from deepcfr.measure import check_down
from deepcfr.measure.hand_responses import Responder, ResponderHand
from deepcfr.measure.local_best_response import DEFAULT_HANDS, LocalBestResponse, local_best_response
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import ensemble
from deepcfr.policy.styles import scripted_policy, styled
from deepcfr.sample.traversal_tree import showdowns


def bound(policy: Policy, hands: int, seed: int = 0, **ways: Any) -> LocalBestResponse:
    return local_best_response(policy, None, seed, hands=hands, **ways)


class Plain:
    """A player of games with one card each that keeps the opponent's range in a dictionary and lists all boards."""

    def __init__(self, policy: Policy, own: int, seat: int, board: list[int]) -> None:
        self.policy, self.game, self.own, self.seat, self.board = policy, policy.game, own, seat, board
        self.range = {card: 1.0 for card in range(self.game.rules.num_cards) if card != own}

    def seen(self, round_: int) -> list[int]:
        return self.board[: sum(self.game.rules.board_cards[: round_ + 1])]

    def completions(self, card: int, round_: int) -> list[list[int]]:
        """All deals of player 0's card, player 1's card and the board, with the opponent's `card`."""
        hands = [self.own, card] if self.seat == 0 else [card, self.own]
        left = [c for c in range(self.game.rules.num_cards) if c not in (*hands, *self.seen(round_))]
        to_come = sum(self.game.rules.board_cards) - len(self.seen(round_))
        return [[*hands, *self.seen(round_), *more] for more in combinations(left, to_come)]

    def strategy(self, card: int, position: np.ndarray) -> np.ndarray:
        deal = np.array(self.completions(card, int(position[ROUND]))[:1], np.uint8)
        return rows_at(self.policy, position[None], deal)[0]

    def odds(self, card: int, round_: int) -> float:
        deals = np.array(self.completions(card, round_), np.uint8)
        mean = float((showdowns(deals, 1, self.game.rules.num_suits) - 1).mean())
        return mean if self.seat == 0 else -mean

    def alive(self, round_: int) -> dict[int, float]:
        return {card: weight for card, weight in self.range.items() if card not in self.seen(round_)}

    def watch(self, position: np.ndarray, action: int) -> None:
        alive = self.alive(int(position[ROUND]))
        self.range = {card: weight * self.strategy(card, position)[action] for card, weight in alive.items()}

    def mean(self, position: np.ndarray, round_: int, weights: dict[int, float]) -> float:
        """The mean gain in chips on the board of a round if nobody bets any more."""
        if position[ENDED] == FOLDED:
            return gain(position, self.seat, 0)
        odds = sum(weight * self.odds(card, round_) for card, weight in weights.items())
        return max(position[CHIPS], position[CHIPS + 1]) * odds / sum(weights.values())

    def mean_after(self, position: np.ndarray) -> float:
        """The mean gain after the opponent's action, if nobody bets after it."""
        round_, alive = int(position[ROUND]), self.alive(int(position[ROUND]))
        total = 0.0
        for action in np.flatnonzero(legal_actions(self.game.bets, position[None])[0]).tolist():
            weights = {card: weight * self.strategy(card, position)[action] for card, weight in alive.items()}
            if sum(weights.values()) > 0:
                after = position.copy()
                advance(self.game.bets, after, action)
                total += sum(weights.values()) * self.mean(after, round_, weights)
        return total / sum(alive.values())

    def values(self, position: np.ndarray) -> dict[int, float]:
        """The gain of each legal action by Lisy and Bowling's rule."""
        round_, alive = int(position[ROUND]), self.alive(int(position[ROUND]))
        mine, other = position[CHIPS + self.seat], position[CHIPS + 1 - self.seat]
        values: dict[int, float] = {}
        for action in np.flatnonzero(legal_actions(self.game.bets, position[None])[0]).tolist():
            if action == FOLD:
                values[action] = -mine * sum(alive.values())
            elif action == CALL:
                values[action] = max(mine, other) * sum(w * self.odds(card, round_) for card, w in alive.items())
            else:
                total = raise_total(self.game.bets, position, action - BET)
                after = position.copy()
                advance(self.game.bets, after, action)
                values[action] = 0.0
                for card, weight in alive.items():
                    folds = self.strategy(card, after)[FOLD]
                    values[action] += weight * (folds * other + (1 - folds) * total * self.odds(card, round_))
        return values

    def act(self, position: np.ndarray) -> int:
        """The best action; of equal ones a call, then the smallest raise."""
        values = self.values(position)
        best = max(values.values())
        return next(a for a in sorted(values, key=lambda a: (a == FOLD, a)) if values[a] >= best - 1e-12)


def plain_gain(policy: Policy, responder: Responder, number: int, seat: int) -> float:
    """The plain player's gain in a deal without luck; where it decides, the other one finds the same values of actions."""
    game = policy.game
    cards = game.deal_cards(1, responder._deals, number)
    chance = addressed_uniforms(responder._actions, torch.tensor([number]), torch.arange(30)).numpy()
    player = Plain(policy, int(cards[0, seat]), seat, cards[0, 2:].tolist())
    hand = ResponderHand(responder, cards[0], seat, {})
    position, step, gained = first_positions(game.bets, 1)[0], 0, 0.0
    while position[ENDED] == NOT_TERMINAL:
        round_ = int(position[ROUND])
        before = player.mean(position, round_, player.alive(round_))
        if position[ACTOR] == seat:
            wanted = np.full(game.encoding.num_actions, -np.inf)
            for choice, value in player.values(position).items():
                wanted[choice] = value
            np.testing.assert_allclose(hand.values(BetSizeState(game, position)), wanted, atol=1e-12)
            advance(game.bets, position, player.act(position))
            after = player.mean(position, round_, player.alive(round_))
        else:
            after = player.mean_after(position)
            row = rows_at(policy, position[None], cards)[0]
            action = int((np.cumsum(row) <= chance[step] * row.sum()).sum())
            player.watch(position, action)
            hand.range *= hand.strategies(BetSizeState(game, position))[:, action]
            advance(game.bets, position, action)
        gained += after - before
        step += 1
    return gained / game.rules.unit_chips


def every_play(
    player: Plain, own: int, position: np.ndarray, seen: list[float]
) -> Iterator[tuple[float, list[float], np.ndarray]]:
    """Probability, uniforms and end of all plays after `seen` uniforms, where the opponent holds `own`."""
    if position[ENDED] != NOT_TERMINAL:
        yield 1.0, seen, position
    elif position[ACTOR] == player.seat:
        after = position.copy()
        advance(player.game.bets, after, player.act(position))
        yield from every_play(player, own, after, [*seen, 0.0])
    else:
        row, before = player.strategy(own, position), player.range
        for action in np.flatnonzero(row).tolist():
            after = position.copy()
            advance(player.game.bets, after, action)
            player.watch(position, action)
            uniform = (row[:action].sum() + row[action] / 2) / row.sum()
            for probability, uniforms, end in every_play(player, own, after, [*seen, uniform]):
                yield row[action] * probability, uniforms, end
            player.range = before


@pytest.mark.parametrize("rules", [ONE_ROUND, replace(TWO_ROUNDS, num_ranks=2)], ids=["one round", "two rounds"])
def test_gains_without_luck_have_the_mean_of_the_payoffs_and_vary_less(rules: BetSizeRules) -> None:
    policy = random_table(4, ImplicitPoker(rules))
    game, responder = policy.game, Responder(policy, tuple(range(rules.num_rounds)), seed=0)
    deals = all_deals(game)
    results = showdowns(deals, 1, rules.num_suits)
    for seat in (0, 1):
        weights, gains, payoffs = [], [], []
        for cards, result in zip(deals, results.tolist(), strict=True):
            player = Plain(policy, int(cards[seat]), seat, cards[2:].tolist())
            start, own = first_positions(game.bets, 1)[0], int(cards[1 - seat])
            for probability, uniforms, end in every_play(player, own, start, []):
                weights.append(probability / len(deals))
                gains.append(ResponderHand(responder, cards, seat, {}).play(uniforms.__getitem__, result))
                payoffs.append(gain(end, seat, result))
        assert sum(weights) == pytest.approx(1)
        assert np.dot(weights, gains) == pytest.approx(np.dot(weights, payoffs), abs=1e-9)
        assert np.dot(weights, np.square(gains)) < np.dot(weights, np.square(payoffs)) / 2


@pytest.mark.parametrize("rules", [ONE_ROUND, TWO_ROUNDS], ids=["one round", "two rounds"])
def test_it_plays_every_deal_as_the_plain_player(rules: BetSizeRules) -> None:
    policy = random_table(3, ImplicitPoker(rules))
    responder = Responder(policy, tuple(range(rules.num_rounds)), seed=7)
    found = [responder.gains(number) for number in range(40)]
    wanted = [tuple(plain_gain(policy, responder, number, seat) for seat in (0, 1)) for number in range(40)]
    np.testing.assert_allclose(found, wanted)
    assert len(set(found)) > 5


def test_where_odds_are_from_a_sample_gains_are_those_of_the_cards_as_dealt(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = random_table(1, ImplicitPoker(replace(TWO_ROUNDS, board_cards=(1, 1))))
    chips = policy.game.rules.unit_chips
    without = np.array([Responder(policy, (0, 1), seed=0).gains(number) for number in range(20)]) * chips
    assert (without % 1 > 0).any()
    monkeypatch.setattr(check_down, "MOST_RUNOUTS", 4)
    dealt = np.array([Responder(policy, (0, 1), seed=0).gains(number) for number in range(20)]) * chips
    assert (dealt % 1 == 0).all()


def test_the_gain_is_below_a_best_responses_and_above_nothing() -> None:
    policy = random_table(1)
    result = bound(policy, 400, seed=2, threads=2)
    best = [1000 * Enumeration(policy).best_response(player) for player in (0, 1)]
    assert result.mean - result.interval > 0
    assert result.mean - 2 * result.interval < sum(best) / 2
    assert result.mean == pytest.approx(sum(result.seats) / 2)
    again = bound(policy, 400, seed=2)
    assert (again.seats, again.interval) == (result.seats, result.interval)  # whatever the threads
    assert "a lower bound on its exploitability" in result.describe()


def test_against_a_caller_it_bets_what_it_is_ahead_with() -> None:
    """Who always calls never folds, so a raise gains where the odds are above 0, and the largest one the most."""
    policy = scripted_policy("call", ImplicitPoker(TWO_ROUNDS))
    responding, calling = (bound(policy, 300, rounds=rounds) for rounds in ((0, 1), (1,)))
    assert responding.mean > calling.mean + responding.interval > 0
    assert responding.rounds == (0, 1)
    assert calling.rounds == (1,)


def test_hands_that_hold_a_card_of_the_board_are_only_asked_about_before_it() -> None:
    """Win rates of lossless buckets know no hand that shares a card with the board."""
    style = styled(random_table(1), "tight-aggressive")
    assert bound(style, 12).hands == 12


def test_odds_in_holdem_are_those_of_all_runouts() -> None:
    responder = Responder(UniformPolicy(ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])), (), seed=0)
    holes = responder.holes
    own, other, shared = 700, 41, int(np.flatnonzero((holes == holes[700][0]).any(1))[0])
    flop = (8, 23, 49)
    assert not set(flop) & {*holes[own].tolist(), *holes[other].tolist()}
    (found,) = responder.odds([own], flop)
    left = [c for c in range(52) if c not in (*flop, *holes[own], *holes[other])]
    deals = np.array([[*holes[own], *holes[other], *flop, *more] for more in combinations(left, 2)], np.uint8)
    assert len(deals) == 990
    assert found[other] == pytest.approx((showdowns(deals, 2, 4) - 1).mean())
    assert found[shared] == 0
    river = (*flop, 2, 30)
    wins = showdowns(np.array([[*holes[own], *holes[other], *river]], np.uint8), 2, 4)[0] - 1
    assert responder.odds([other, own], river)[1, other] == wins


def test_before_the_board_all_hands_of_a_class_have_the_odds_of_one() -> None:
    responder = Responder(random_table(1), (), seed=0)
    for hand in range(6):
        deals = [[hand, other, board] for other in range(6) for board in range(6) if len({hand, other, board}) == 3]
        results = showdowns(np.array(deals, np.uint8), 1, 2) - 1
        wanted = np.zeros(6)
        np.add.at(wanted, [other for _, other, _ in deals], results / 4)
        np.testing.assert_allclose(responder.odds([hand], ())[0], wanted)


def test_intervals_are_over_deals_and_the_seats_of_a_deal_are_not_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both seats of a deal sum to 1 here, so their mean does not vary, but the gain of a seat does."""
    monkeypatch.setattr(Responder, "gains", lambda self, number: (number, 1 - number))  # noqa: ARG005
    result = bound(random_table(1), 5)
    assert result.seats == (2_000, -1_000)
    assert (result.mean, result.interval) == (500, 0)
    sd = np.sqrt(2.5)  # of 0, 1, 2, 3, 4
    assert result.seat_intervals == pytest.approx([1_000 * 1.959964 * sd / np.sqrt(5)] * 2)


def test_impossible_requests_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = random_table(1)
    with monkeypatch.context() as patch:
        patch.setattr("deepcfr.measure.hand_responses.MOST_HANDS", 5)
        with pytest.raises(GameError, match="two-rounds has 6 private hands, but a range is tracked over at most 5"):
            bound(policy, 10)
    with pytest.raises(ConfigError, match="at least 2 hands for its interval, but 1 were asked for"):
        bound(policy, 1)
    with pytest.raises(ConfigError, match="The rounds of two-rounds are 0 to 1, but 2 was given"):
        bound(policy, 10, rounds=(2,))
    with pytest.raises(ConfigError, match="no round was given"):
        bound(policy, 10, rounds=())


def test_ensembles_are_measured_by_their_averages() -> None:
    """The exact average of a mixture, at computed nodes and at listed ones, is played by the same responder."""
    members, game = [random_table(1), random_table(2)], ExplicitPoker(TWO_ROUNDS)
    mixed, both = (ensemble(members, rule) for rule in ("mixture", "sum"))
    there = ensemble([random_table(1, game), random_table(2, game)], "mixture")
    found = bound(mixed, 30, seed=2)
    assert found.seats == pytest.approx(bound(there, 30, seed=2).seats)
    assert found.seats != pytest.approx(bound(both, 30, seed=2).seats)


def test_the_command_measures_a_bet_size_run_by_hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {name: value for name, value in asdict(TWO_ROUNDS).items() if name != "name"}
    (tmp_path / "two.toml").write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items()))
    run = ("--out", tmp_path / "run", "--solver", "mccfr", "--iterations", 5, "--traversals", 20)
    assert deepcfr("solve", tmp_path / "two.toml", *run, "--runtime.threads", 1, "--json").status == 0
    ways = ("--hands", 20, "--threads", 1)
    facts = deepcfr("lbr", tmp_path / "run", *ways, "--json").json
    assert (facts["hands"], facts["exact"], facts["rounds"]) == (20, False, [0, 1])
    assert facts["interval"] > 0
    assert "20 deals in both seats" in deepcfr("lbr", tmp_path / "run", *ways).out
    assert DEFAULT_HANDS == 1_000  # as the help says
    monkeypatch.setattr("deepcfr.measure.local_best_response.DEFAULT_HANDS", 20)
    assert deepcfr("lbr", tmp_path / "run", "--threads", 1, "--json").json["mean"] == facts["mean"]
    assert "over boards or over hands" in problem(deepcfr("lbr", tmp_path / "run", *ways, "--boards", 5))
    exact = deepcfr("lbr", tmp_path / "run", "--boards", "all", "--json").json
    assert (exact["exact"], exact["hands"]) == (True, 0)
    many = deepcfr("lbr", tmp_path / "run", "--hands", 2_000, "--json").json
    assert exact["mean"] == pytest.approx(many["mean"], abs=2 * many["interval"])
    style = deepcfr("lbr", f"random:{tmp_path / 'run'}", *ways, "--json").json
    assert (style["policy"], style["run"]) == ("uniform", f"random:{tmp_path / 'run'}")
    assert style["mean"] == pytest.approx(bound(UniformPolicy(ImplicitPoker(TWO_ROUNDS)), 20).mean)


def test_hands_are_a_sample_of_what_boards_are_all_of_in_limit_games_too() -> None:
    policy = UniformPolicy(load_game("leduc"))
    exact, found = local_best_response(policy, None), bound(policy, 4_000, seed=3)
    assert exact.exact
    assert found.hands == 4_000
    for seat, half, wanted in zip(found.seats, found.seat_intervals, exact.seats, strict=True):
        assert seat == pytest.approx(wanted, abs=1.5 * half)
    assert max(found.seat_intervals) < 0.1 * min(map(abs, exact.seats))
