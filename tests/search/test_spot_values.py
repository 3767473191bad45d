"""What a spot says of actions that nobody takes, against a recursion over pairs of hands and values known by hand."""

import eval7
import numpy as np
import pytest

from deepcfr.api import solve_spot
from deepcfr.core.errors import ConfigError
from deepcfr.game.cards import card_text
from deepcfr.search import spot_solver
from deepcfr.search.spot import NAMES
from deepcfr.search.spot_ranges import HOLDEM, hand_names, hand_rows
from deepcfr.search.spot_solution import Solution, SolvedDecision

ROYAL = "As Ks Qs Js Ts"
LIMIT = 1e-30  # a probability that stands for the limit of 0


def at(found: Solution, line: str) -> SolvedDecision:
    return next(decision for decision in found.decisions if decision.line == line)


def shares_of(found: Solution, line: str, hand: str) -> list[float]:
    strategy = at(found, line).strategy[hand_names(found.holes).index(hand)]
    return [float(share) for share in strategy]


def values_of(found: Solution, line: str, hand: str) -> list[float]:
    values: list[float] = found.facts()["decisions"][found.decisions.index(at(found, line))]["values"][hand]
    return values


class Recursion:
    """Values on a river by following the strategies shown, pair of hands by pair."""

    def __init__(self, found: Solution) -> None:
        self.found, self.spot = found, found.spot
        self.at = {decision.line: decision for decision in found.decisions}
        board = [eval7.Card(card_text(HOLDEM, card)) for card in self.spot.board]
        self.strength = [
            eval7.evaluate([*board, *(eval7.Card(card_text(HOLDEM, int(card))) for card in hole)])
            for hole in found.holes
        ]
        self.apart = (found.holes[:, None, :, None] != found.holes[None, :, None, :]).all((2, 3))

    def put_in(self, line: str) -> tuple[float, float]:
        """What each player has put in after a line, half of the pot included."""
        chips, before = [0.0, 0.0], ""
        for action in filter(None, line.split(", ")):
            player = self.at[before].player
            if action == "call":
                chips[player] = max(chips)
            elif action == "all-in":
                chips[player] = self.spot.stacks
            elif action not in ("check", "fold"):
                chips[player] = float(action.split()[-1])
            before = ", ".join(filter(None, [before, action]))
        return chips[0] + self.spot.pot / 2, chips[1] + self.spot.pot / 2

    def won(self, line: str, hands: tuple[int, int]) -> tuple[float, float]:
        """What each player gets of the pot in the mean after a line, less what it has put in."""
        chips = self.put_in(line)
        if decision := self.at.get(line):
            total = np.zeros(2)
            for action, share in zip(decision.actions, decision.strategy[hands[decision.player]], strict=True):
                if share:
                    total += share * np.array(self.won(", ".join(filter(None, [line, action])), hands))
            return float(total[0]), float(total[1])
        before, _, last = line.rpartition(", ")
        pot = 2 * min(chips)  # what was not called goes back
        pot -= min(pot * self.spot.rake / 100, np.inf if self.spot.cap is None else self.spot.cap)
        first, second = (self.strength[hand] for hand in hands)
        share = (first > second) + (first == second) / 2
        if last == "fold":
            share = self.at[before].player
        lost = min(chips)
        return share * pot - lost, (1 - share) * pot - lost

    def values(self, line: str) -> tuple[np.ndarray, np.ndarray]:
        """The value of each action with each hand at a decision, [H, A], nan against none, and what each hand meets."""
        decision, found = self.at[line], self.found
        player, reach, before = decision.player, np.stack(self.spot.ranges)[:, hand_rows(found.holes)], ""
        for action in filter(None, line.split(", ")):
            earlier = self.at[before]
            reach[earlier.player] *= np.maximum(earlier.strategy[:, earlier.actions.index(action)], LIMIT)
            before = ", ".join(filter(None, [before, action]))
        paid = self.put_in(line)[player]
        result = np.full(decision.strategy.shape, np.nan)
        for h in np.flatnonzero(self.spot.ranges[player][hand_rows(found.holes)]):
            weight = reach[1 - player] * self.apart[h]
            for a, action in enumerate(decision.actions if weight.any() else ()):
                after = ", ".join(filter(None, [line, action]))
                won = [self.won(after, (h, o) if player == 0 else (o, h))[player] for o in np.flatnonzero(weight)]
                result[h, a] = np.average(won, weights=weight[weight > 0]) + paid
        return result, self.apart @ reach[1 - player]

    def best(self, player: int, weight: np.ndarray, line: str = "") -> np.ndarray:
        """What a best response wins after a line with each hand, [H], each weighted by the hands that it meets.

        `weight` [H] is what the other player still holds.
        """
        hands = np.arange(len(self.strength))
        if line not in self.at:
            met = weight * self.apart
            pairs = ((h, o) if player == 0 else (o, h) for h in hands for o in hands)
            return (met * np.reshape([self.won(line, pair)[player] for pair in pairs], met.shape)).sum(1)
        decision = self.at[line]
        after = [", ".join(filter(None, [line, action])) for action in decision.actions]
        if decision.player == player:
            return np.max([self.best(player, weight, each) for each in after], axis=0)
        shares = zip(after, decision.strategy.T, strict=True)
        return np.sum([self.best(player, weight * share, each) for each, share in shares], axis=0)


@pytest.mark.parametrize(
    "board, dealer, first, sizes, more",
    [
        ("2s 2h 2d 3c 3d", "KK", "AA,QQ", "river 50", {"pot": 1, "stacks": 5}),
        ("Ah 8h 5h 2c 3d", "AcAd,8c8d,AcKc,QcQd", "KhQd,QhJh,KcQd,KhKc,JcTd", "river 100", {"rake": 5, "cap": 0.6}),
        ("6s 4d 6d Ah Ts", "5cTh:0.001,3sKd:0.5,QcQd", "7dTh@30,5cJh", "oop river 70, ip river 33 120, raise 2.5x", {}),
        ("Ah 8h 5h 2c 3d", "AcAd,KcQd,9h9c", "KhQd,AcKc,9d9s,QhJh", "allin", {"pot": 1e8, "stacks": 1e8}),
        ("Ah 8h 5h 2c 3d", "AcAd,KcQd,9h9c", "KhQd,AcKc,9d9s,QhJh", "river 50", {"pot": 10, "stacks": 1e-5}),
        ("Ah 8h 5h 2c 3d", "AcAd,KcQd", "KhQd,AcKc", "", {}),
        # all is known here, and rounding can make gains of less than 0
        ("2c 2d 7h 9s Kc", "AA,QQ:0.3,T8s:0.001", "KK,4s3s,AcQc:0.001", "river 75 150, raise 60, allin", {}),
    ],
    ids=["small pot", "rake with a cap", "by player", "huge", "hardly a stack", "no bets", "known"],
)  # fmt: skip
def test_values_and_exploitability_of_a_river_are_those_of_the_recursion(
    board: str, dealer: str, first: str, sizes: str, more: dict[str, float]
) -> None:
    arguments = {"pot": 10, "stacks": 15, "exploitability": "0.01%", "threads": 1} | more
    found = solve_spot(board, sizes, dealer=dealer, big_blind=first, **arguments)  # type: ignore[arg-type]
    pairs, pot, held = Recursion(found), found.spot.pot, np.stack(found.spot.ranges)[:, hand_rows(found.holes)]
    chance = held[0][:, None] * held[1] * pairs.apart
    won = np.zeros(2)
    for hands in np.argwhere(chance):
        won += chance[tuple(hands)] / chance.sum() * np.array(pairs.won("", tuple(hands.tolist())))
    best = np.array([held[player] @ pairs.best(player, held[1 - player]) for player in (0, 1)]) / chance.sum()
    assert np.array(found.values) == pytest.approx(won + pot / 2, abs=1e-7 * pot)
    assert found.exploitability <= 0.01
    assert found.exploitability == pytest.approx(50 * (best - won).sum() / pot, abs=5e-5)
    taken = min(pot * found.spot.rake / 100, np.inf if found.spot.cap is None else found.spot.cap)
    assert sum(found.equities) == pytest.approx(pot - taken)
    for player in (0, 1):
        met = held[player] * (pairs.apart @ held[1 - player])
        assert found.equities[player] == pytest.approx(met @ found.hand_equities[player] / met.sum())


@pytest.mark.parametrize(
    "arguments",
    [
        {"board": ROYAL, "dealer": "22,33", "big_blind": "33,44"},
        {"board": ROYAL, "dealer": "22", "big_blind": "33,44", "sizes": "river 50", "rake": 5, "cap": 0.7},
        {"board": "2c 7d 9s 4c 5d", "dealer": "AsAh,KcKd", "big_blind": "AsAd,2h2d", "sizes": "river 50 100, raise 100"},
        {"board": "Ah 8h 5h 2c 3d", "dealer": "AcAd,8c8d,QcQd", "big_blind": "KhQd,QhJh,JcTd", "rake": 3},
    ],
    ids=["chopped with default sizes", "chopped with rake", "pure", "raked"],
)  # fmt: skip
def test_values_after_every_action_are_those_of_the_strategies_shown(arguments: dict[str, object]) -> None:
    found = solve_spot(**({"pot": 10, "stacks": 15, "exploitability": 0.025, "iterations": 300} | arguments), threads=1)  # type: ignore[arg-type]
    pairs = Recursion(found)
    for decision in found.decisions:
        expected, met = pairs.values(decision.line)
        known = ~np.isnan(expected).any(1)
        np.testing.assert_allclose(decision.values[known], expected[known], atol=1e-6)
        # what a hand does where it does not come is its best reply to an opponent that comes
        absent = known & (decision.reach == 0) & (met > 1e-20)
        best = expected.max(1, where=known[:, None], initial=-np.inf)
        played = (decision.strategy * np.nan_to_num(expected)).sum(1)
        np.testing.assert_allclose(played[absent], best[absent], atol=1e-6)


def test_a_pot_that_is_shared_is_checked_down_if_the_house_takes_of_bets() -> None:
    board, ranges = "As Ah Ad Ac", {"dealer": "KcKd", "big_blind": "KhKs"}  # four aces and a king, whatever comes
    found = solve_spot(board, "turn 50, river 50", pot=10, stacks=10, rake=5, exploitability=1e-3, **ranges)
    assert found.values == pytest.approx((4.75, 4.75), abs=1e-3)
    for line in ("", "check"):
        assert at(found, line).frequencies()["check"] == pytest.approx(1, abs=1e-3)
    assert values_of(found, "", "KsKh") == pytest.approx([4.75, 4.5], abs=1e-3)


def test_a_hand_that_cannot_win_loses_no_more_than_its_bet_on_later_streets() -> None:
    """Against the nuts on the turn, a bet is lost and no more: not a call of the raise, nor a bet on the river."""
    sizes, ranges = "turn 50, river 50, raise 100", {"dealer": "Ts2c", "big_blind": "2d2h"}
    found = solve_spot("As Ks Qs Js", sizes, pot=10, stacks=40, exploitability=0.00125, **ranges)
    assert values_of(found, "", "2h2d") == pytest.approx([0, -5], abs=1e-3)
    assert values_of(found, "bet 5", "Ts2c")[0] == 0
    assert not at(found, "bet 5").reached


@pytest.mark.parametrize(
    "board, sizes, rake, taken",
    [
        ("Qs 7h 2c 9d", "turn 50, river 75", {}, 0.0),
        ("Qs 7h 2c 9d", "turn 50, river 75", {"rake": 50, "cap": 0.3}, 0.3),
        ("Qs 7s 2s", "flop 50, turn 75, river 75, cap 0", {}, 0.0),
    ],
    ids=["turn", "turn with a rake of always 0.3", "flop"],
)
def test_values_of_both_ranges_add_up_where_nobody_comes(
    board: str, sizes: str, rake: dict[str, float], taken: float
) -> None:
    """Strategies of few iterations are poor, so best replies on later streets must be met by the opponent too."""
    lock = {"line": "", "frequencies": {"check": 1.0, "bet 5": 0.0}}
    ranges = {"dealer": "KK,T8s", "big_blind": "QQ,54s"}
    found = solve_spot(
        board, sizes, pot=10, stacks=30, iterations=3, exploitability=0, threads=1, locks=[lock], **ranges, **rake
    )  # type: ignore[arg-type]
    assert [decision.reached for decision in found.decisions] == [True, True, False, True]
    for decision in found.decisions:
        assert decision.range_values is not None
        assert decision.range_equities is not None
        assert sum(decision.range_values) == pytest.approx(decision.pot - taken, abs=1e-9)
        assert sum(decision.range_equities) == pytest.approx(1, abs=1e-9)


def test_no_mean_is_given_where_card_removal_is_lost_in_rounding() -> None:
    """AhKh meets only AsAd, and AsKs only AhAd. At the end come AhKh and AhAd, beside which 1e-40 of the others is lost."""
    locks = [
        {"line": "", "frequencies": {"check": 1.0, "bet 5": 0.0}},
        {"line": "check", "hands": {"AhKh": [0, 1], "AsKs": [1, 0]}},
        {"line": "check, bet 5", "hands": {"AhAd": [0, 0, 1], "AsAd": [1, 0, 0]}},
    ]
    ranges = {"dealer": "AhKh,AsKs", "big_blind": "AhAd,AsAd:0.5"}
    found = solve_spot(
        "Qs Qh 7c 5d Tc", "river 50, cap 1, raise 100", pot=10, stacks=100, **ranges, locks=locks, iterations=9
    )
    reached = {decision.line: (decision.reached, decision.range_values) for decision in found.decisions}
    assert reached["check, bet 5, raise to 25"] == (False, None)
    assert sum(reached["check, bet 5"][1] or ()) == pytest.approx(15)


def test_decisions_that_nobody_reaches_are_marked_in_text_and_json() -> None:
    found = solve_spot(ROYAL, "river 50", pot=10, stacks=10, dealer="22", big_blind="33", rake=5, exploitability=5e-5)
    marked = {row["line"]: row["reached"] for row in found.facts(hands=False)["decisions"]}
    assert marked == {"": True, "check": True, "bet 5": False, "check, bet 5": False}
    assert found.describe().count("(nobody gets here)") == 2
    assert f"bet 5: {NAMES[0]}: fold 0.0%, call 100.0% (nobody gets here)" in found.describe()


def test_a_locked_decision_is_shown_as_given_where_nobody_comes() -> None:
    locks = [
        {"line": "", "frequencies": {"bet 5": 1.0, "check": 0.0}},
        {"line": "check, bet 5", "frequencies": {"call": 0.7, "fold": 0.3}},
        {"line": "check", "frequencies": {"bet 5": 1.0, "check": 0.0}},
    ]
    found = solve_spot(ROYAL, "river 50", pot=10, stacks=10, dealer="22", big_blind="33", locks=locks)
    assert shares_of(found, "", "3d3c") == [0, 1]
    assert shares_of(found, "check, bet 5", "3d3c") == pytest.approx([0.3, 0.7])
    assert values_of(found, "", "3d3c") == pytest.approx([0.7 * 5, 5], abs=1e-4)


def test_shares_of_a_lock_belong_to_their_actions_in_any_order() -> None:
    lock = {"line": "", "frequencies": {"all-in": 0.2, "bet 5": 0.5, "check": 0.3}}
    ranges = {"dealer": "AA", "big_blind": "KK,43s"}
    found = solve_spot("2c 2d 7h 9s Kc", "river 50, allin", pot=10, stacks=10, locks=[lock], iterations=20, **ranges)
    assert at(found, "").actions == ("check", "bet 5", "all-in")
    assert at(found, "").frequencies() == pytest.approx({"check": 0.3, "bet 5": 0.5, "all-in": 0.2})


def test_progress_can_stop_within_an_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports come between rivers, so a stop need not wait for all of them."""
    monkeypatch.setattr(spot_solver, "_EVERY", 0.0)
    which = {"pot": 10.0, "stacks": 10.0, "dealer": "AA", "big_blind": "KK,43s", "exploitability": 0.0, "threads": 1}
    seen: list[int] = []

    def third_river_of_the_third_iteration(done: int, _: float) -> bool:
        seen.append(done)
        return seen.count(2) > 3  # the first one is the report after the second iteration

    found = solve_spot("2c 2d 7h 9s", "turn 50", **which, on_progress=third_river_of_the_third_iteration)  # type: ignore[arg-type]
    assert (found.iterations, seen.count(2)) == (2, 4)
    assert all(np.allclose(decision.strategy.sum(1), 1) for decision in found.decisions)
    with pytest.raises(ConfigError, match="stopped before its first iteration"):
        solve_spot("2c 2d 7h 9s", "turn 50", **which, on_progress=lambda *_: True)  # type: ignore[arg-type]
