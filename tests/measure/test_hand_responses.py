"""Local best response by hands: the mean over all hands is exact, and less than a best response gains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bet_size_games import ONE_ROUND, TWO_ROUNDS, Enumeration, all_deals, random_table, write_game
from board_play import LEDUC, random_policy
from command_line import deepcfr, problem
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.game.bet_size_game import ExplicitPoker, ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.game.betting import CALL, FOLD
from deepcfr.game.public_state import PublicState
from deepcfr.measure import check_down
from deepcfr.measure.hand_responses import Range, Responder, ResponderHand, total
from deepcfr.measure.local_best_response import DEFAULT_HANDS, LocalBestResponse, local_best_response
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import ensemble
from deepcfr.policy.styles import scripted_policy, styled
from deepcfr.sample.traversal_tree import showdowns
from deepcfr.search.spot_sizes import Sizes


def bound(policy: Policy, hands: int, seed: int = 0, **ways: Any) -> LocalBestResponse:
    return local_best_response(policy, None, seed, hands=hands, **ways)


def every_gain(responder: Responder, cards: np.ndarray, seat: int) -> Iterator[tuple[float, float, list[int]]]:
    """All hands that one deal may become by the opponent's actions: probability, gain in units, and those actions."""
    rules = responder.rules
    result = int(showdowns(cards[None], rules.hole_cards, rules.num_suits)[0])
    scripts: list[list[int]] = [[]]
    while scripts:
        script, taken, chances = scripts.pop(), [], []
        hand, rows = ResponderHand(responder, cards, seat, {}), []
        ask = hand.answers

        def recording(state: PublicState, before: Range, hand=hand, ask=ask, rows=rows) -> dict[int, Range]:
            found = ask(state, before)
            rows.append({action: total(part)[hand.hands[1 - hand.seat]] for action, part in found.items()})
            return found

        def chance(_: int, script=script, taken=taken, rows=rows, chances=chances) -> float:
            actions, row = list(rows[-1]), np.array(list(rows[-1].values())) / sum(rows[-1].values())
            possible = [action for action, share in zip(actions, row, strict=True) if share]
            first, *others = script[len(taken) : len(taken) + 1] or possible
            scripts.extend([*taken, other] for other in others)
            taken.append(first)
            place = actions.index(first)
            chances.append(row[place])
            return float(row[:place].sum() + row[place] / 2)

        hand.answers = recording  # type: ignore[method-assign]
        gained = hand.play(chance, result) / rules.unit_chips
        yield float(np.prod(chances)), gained, taken


@pytest.mark.parametrize(
    "policy",
    [
        random_table(4, ExplicitPoker(ONE_ROUND)),
        random_table(3, ExplicitPoker(replace(TWO_ROUNDS, num_ranks=2))),
        random_policy(replace(LEDUC, num_ranks=2, max_raises=(1, 1), rank_symbols=""), 1),
    ],
    ids=lambda policy: policy.game.name,
)
@pytest.mark.parametrize("sizes", [None, "none"])
def test_gains_have_the_exact_mean_and_do_not_depend_on_how_the_opponent_ends_a_hand(
    policy: Policy, sizes: str | None
) -> None:
    """Over all deals and all actions of the opponent; the mean is that of responses on all boards."""
    rules = policy.game.rules  # type: ignore[attr-defined]
    bets, deals = None if sizes is None else Sizes.everywhere(sizes), all_deals(policy.game)  # type: ignore[arg-type]
    responder = Responder(policy, tuple(range(rules.num_rounds)), 0, bets)
    for seat, wanted in enumerate(local_best_response(policy, None, sizes=sizes).seats):
        mean, compared = 0.0, 0
        for cards in deals:
            found = list(every_gain(responder, cards, seat))
            assert sum(chance for chance, _, _ in found) == pytest.approx(1)
            mean += sum(chance * gained for chance, gained, _ in found) / len(deals)
            if rules.num_rounds > 1:
                continue
            by_action = {tuple(taken): gained for _, gained, taken in found}
            for taken, gained in by_action.items():
                if taken and taken[-1] == FOLD:  # a call would have ended the hand too
                    assert gained == pytest.approx(by_action[*taken[:-1], CALL])
                    compared += 1
        assert 1000 * mean == pytest.approx(wanted, abs=1e-6)
        assert rules.num_rounds > 1 or compared >= 10 or sizes == "none"  # who never bets is never folded to


# Sizes of its own
# -----------------------------------------------------------------------------------------


def test_a_bet_that_the_opponent_may_take_for_either_of_two_sizes_is_worth_the_mean_of_both() -> None:
    """With the highest of five cards and a bet of 2 antes into 2, against a player to whom all actions are alike.

    It takes the bet, a pot, for a raise to 2 (half a pot) with probability (1.5 - 1)(1 + 0.5) / ((1.5 - 0.5)(1 + 1)) =
    0.375, else for one to 4, and folds with 1/4 and 1/3. Half of a pot more is all-in
    after a call of 3.
    """
    policy = UniformPolicy(ImplicitPoker(ONE_ROUND))
    hand = ResponderHand(Responder(policy, (0,), 0, Sizes.everywhere("2c")), np.array([4, 0], np.uint8), 0, {})
    folds = 0.375 / 4 + 0.625 / 3
    assert hand.values(hand.first) == pytest.approx({CALL: 4, 3: 4 * (folds + 3 * (1 - folds))})
    assert hand.respond(hand.first) == 3
    bet = hand.first.after(3)
    answers = hand.answers(bet, hand._followed(hand.range, hand.first, 3, mine=False))
    chances = {action: float(total(part)[0]) for action, part in answers.items()}
    assert chances == pytest.approx({FOLD: folds, CALL: folds, 6: 0.375 * 2 / 4 + 0.625 / 3})
    called = hand._followed(answers[6], bet, 6, mine=True)
    assert {shadow.own.betting[0] for shadow, _ in called if shadow} == {"r2 r4", "r4 a"}


def test_with_the_sizes_of_the_game_it_gains_what_it_gains_in_the_game() -> None:
    rules = replace(ONE_ROUND, bet_sizes=((100,),), measure=("pot",), max_raises=(1,), all_in=(False,))
    policy = random_table(2, ImplicitPoker(rules))
    there, here = bound(policy, 30), bound(policy, 30, sizes="100, raise none")
    assert here.seats == pytest.approx(there.seats, abs=1e-9)
    assert bound(policy, 30, sizes="100, cap 0").seats == here.seats
    assert here.seats != pytest.approx(bound(policy, 30, sizes="150, raise none").seats)
    assert (there.sizes, here.sizes) == (None, "bet 100, raise none")


def test_gains_without_luck_have_the_mean_of_the_payoffs_with_any_sizes() -> None:
    """Over all deals and all actions of the opponent, which takes most bets for either of two."""
    rules = replace(TWO_ROUNDS, num_ranks=2, stack=12, bet_sizes=((4,), (60,)), all_in=(True, True), max_raises=(2, 1))
    policy = random_table(3, ImplicitPoker(rules))
    responder = Responder(policy, (0, 1), 0, Sizes.everywhere("80"))
    for seat in (0, 1):
        means = []
        for luck in (False, True):
            responder.takes_luck_out = not luck
            found = [every_gain(responder, cards, seat) for cards in all_deals(policy.game)]  # type: ignore[arg-type]
            means.append(sum(chance * gained for deal in found for chance, gained, _ in deal) / len(found))
        assert means[0] == pytest.approx(means[1], abs=1e-9)
        assert abs(means[0]) > 1e-3


# Odds and intervals
# -----------------------------------------------------------------------------------------


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
    result = bound(policy, 120, seed=2, threads=2)
    best = [1000 * Enumeration(policy).best_response(player) for player in (0, 1)]
    assert result.mean - result.interval > 0
    assert result.mean - 2 * result.interval < sum(best) / 2
    assert result.mean == pytest.approx(sum(result.seats) / 2)
    again = bound(policy, 120, seed=2)
    assert (again.seats, again.interval) == (result.seats, result.interval)  # whatever the threads
    assert "a lower bound on its exploitability" in result.describe()


def test_against_a_caller_it_bets_what_it_is_ahead_with() -> None:
    """Who always calls never folds, so a raise gains where the odds are above 0, and the largest one the most."""
    policy = scripted_policy("call", ImplicitPoker(TWO_ROUNDS))
    responding, calling = (bound(policy, 60, rounds=rounds) for rounds in ((0, 1), (1,)))
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


def test_games_with_too_many_hands_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcfr.measure.hand_responses.MOST_HANDS", 5)
    with pytest.raises(GameError, match="two-rounds has 6 private hands, but a range is tracked over at most 5"):
        bound(random_table(1), 10)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hands": 1}, "at least 2 hands for its interval, but 1 were asked for"),
        ({"rounds": (2,)}, "The rounds of two-rounds are 0 to 1, but 2 was given"),
        ({"rounds": ()}, "no round was given"),
        ({"sizes": "big"}, "'big' is not a size: write flop, turn, river, bet"),
        ({"sizes": "100", "hands": None}, "with sizes of its own .bet 100, raise 100. is played on deals: give hands"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        bound(random_table(1), **({"hands": 10} | settings))


def test_sizes_need_a_game_of_no_limit() -> None:
    with pytest.raises(GameError, match="'leduc' has no raises that could stand for those of no-limit poker"):
        bound(random_policy(LEDUC, 1), 10, sizes="100")


def test_ensembles_are_measured_by_their_averages() -> None:
    """The exact average of a mixture, at computed nodes and at listed ones, is played by the same responder."""
    members, game = [random_table(1), random_table(2)], ExplicitPoker(TWO_ROUNDS)
    mixed, both = (ensemble(members, rule) for rule in ("mixture", "sum"))
    there = ensemble([random_table(1, game), random_table(2, game)], "mixture")
    found = bound(mixed, 30, seed=2)
    assert found.seats == pytest.approx(bound(there, 30, seed=2).seats)
    assert found.seats != pytest.approx(bound(both, 30, seed=2).seats)


def test_the_command_measures_a_bet_size_run_by_hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_game(TWO_ROUNDS, tmp_path / "two.toml")
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
    many = deepcfr("lbr", tmp_path / "run", "--hands", 200, "--json").json
    assert exact["mean"] == pytest.approx(many["mean"], abs=2 * many["interval"])
    sized = deepcfr("lbr", tmp_path / "run", *ways, "--sizes", "70 allin", "--rounds", 1)
    assert "in rounds 1 with sizes 'bet 70 allin, raise 70 allin' gains" in sized.out
    style = deepcfr("lbr", f"random:{tmp_path / 'run'}", *ways, "--json").json
    assert (style["policy"], style["run"]) == ("uniform", f"random:{tmp_path / 'run'}")
    assert style["mean"] == pytest.approx(bound(UniformPolicy(ImplicitPoker(TWO_ROUNDS)), 20).mean)
