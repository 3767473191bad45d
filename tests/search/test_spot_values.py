"""What a spot says of actions that nobody takes, against a recursion over pairs of hands and values known by hand."""

from __future__ import annotations

import eval7
import numpy as np
import pytest
from scipy.optimize import linprog

from deepcfr.api import solve_spot
from deepcfr.core.errors import ConfigError
from deepcfr.game.cards import card_text
from deepcfr.search import spot_solver
from deepcfr.search.spot import NAMES, Solution, SolvedDecision
from deepcfr.search.spot_ranges import HOLDEM, hand_names, hand_rows

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


class SequenceForm:
    """The game of a spot without later streets, by sequences of each player's own actions (von Stengel 1996)."""

    def __init__(self, found: Solution) -> None:
        self.pairs = pairs = Recursion(found)
        ranges = np.stack(found.spot.ranges)[:, hand_rows(found.holes)]
        self.hands = [np.flatnonzero(weights) for weights in ranges]
        weight = ranges[0, self.hands[0], None] * ranges[1, self.hands[1]] * pairs.apart[np.ix_(*self.hands)]
        last: dict[str, tuple[str, ...]] = {"": ("", "")}  # each player's last decision and action, by line
        self.sequences: tuple[list[str], list[str]] = ([""], [""])
        before: tuple[list[tuple[str, list[str]]], ...] = ([], [])
        for decision in found.decisions:
            player, own = decision.player, last[decision.line]
            after = [", ".join(filter(None, [decision.line, action])) for action in decision.actions]
            last |= {line: (line, own[1]) if player == 0 else (own[0], line) for line in after}
            self.sequences[player].extend(after)
            before[player].append((own[player], after))
        shape = tuple(n for player in (0, 1) for n in (len(self.hands[player]), len(self.sequences[player])))
        payoffs = np.zeros((2, *shape))
        for line in last.keys() - pairs.at.keys():
            a, b = (self.sequences[player].index(last[line][player]) for player in (0, 1))
            for i, j in np.argwhere(weight):
                won = np.array(pairs.won(line, (int(self.hands[0][i]), int(self.hands[1][j]))))
                payoffs[:, i, a, j, b] = weight[i, j] / weight.sum() * won
        self.payoffs = payoffs.reshape(2, shape[0] * shape[1], shape[2] * shape[3])
        self.rules = []  # of each player: a matrix and what it makes of every strategy
        for player, (names, steps) in enumerate(zip(self.sequences, before, strict=True)):
            rule = np.zeros((1 + len(steps), len(names)))
            rule[0, 0] = 1
            for row, (parent, after) in enumerate(steps, start=1):
                rule[row, names.index(parent)] = -1
                rule[row, [names.index(line) for line in after]] = 1
            hands = len(self.hands[player])
            self.rules.append((np.kron(np.eye(hands), rule), np.tile(np.eye(len(rule))[0], hands)))

    def value(self) -> float:
        """What the dealer wins in equilibrium, less its half of the pot; without rake."""
        (rule, total), (other, least) = self.rules
        costs = np.concatenate([np.zeros(rule.shape[1]), -least])
        bounds = [(0, None)] * rule.shape[1] + [(None, None)] * len(least)
        found = linprog(
            costs,
            A_ub=np.hstack([-self.payoffs[0].T, other.T]),
            b_ub=np.zeros(other.shape[1]),
            A_eq=np.hstack([rule, np.zeros((len(total), len(least)))]),
            b_eq=total,
            bounds=bounds,
        )
        return -float(found.fun)

    def plan(self, player: int) -> np.ndarray:
        """The probability of each of a player's sequences in the solution, by hand."""
        found = np.ones((len(self.hands[player]), len(self.sequences[player])))
        for decision in self.pairs.found.decisions:
            if decision.player == player:
                for action, shares in zip(decision.actions, decision.strategy.T, strict=True):
                    line = ", ".join(filter(None, [decision.line, action]))
                    steps = [name for name in self.sequences[player][1:] if decision.line.startswith(f"{name}, ")]
                    own = found[:, self.sequences[player].index(max(steps, key=len, default=""))]
                    found[:, self.sequences[player].index(line)] = own * shares[self.hands[player]]
        return found.ravel()

    def worth(self) -> tuple[np.ndarray, np.ndarray]:
        """What both players win by the solution, and what best responses to it do, less half the pot."""
        first, second = self.plan(0), self.plan(1)
        gains = (self.payoffs[0] @ second, first @ self.payoffs[1])
        best = [
            -linprog(-gain, A_eq=rule, b_eq=total).fun for gain, (rule, total) in zip(gains, self.rules, strict=True)
        ]
        return np.array([first @ gains[0], gains[1] @ second]), np.array(best)


@pytest.mark.parametrize(
    "board, dealer, first, sizes, more",
    [
        ("2s 2h 2d 3c 3d", "KK", "AA,QQ", "river 50", {"pot": 1, "stacks": 5}),
        ("Ah 8h 5h 2c 3d", "AcAd,8c8d,AcKc,QcQd", "KhQd,QhJh,KcQd,KhKc,JcTd", "river 100", {}),
        ("Ah 8h 5h 2c 3d", "AcAd,8c8d,AcKc,QcQd", "KhQd,QhJh,KcQd,KhKc,JcTd", "river 100", {"rake": 5, "cap": 0.6}),
        ("6s 4d 6d Ah Ts", "5cTh:0.001,3sKd:0.5,QcQd", "7dTh@30,5cJh", "oop river 70, ip river 33 120, raise 2.5x", {}),
        ("Ah 8h 5h 2c 3d", "AcAd,KcQd,9h9c", "KhQd,AcKc,9d9s,QhJh", "allin", {"pot": 1e8, "stacks": 1e8}),
        ("Ah 8h 5h 2c 3d", "AcAd,KcQd,9h9c", "KhQd,AcKc,9d9s,QhJh", "river 50", {"pot": 10, "stacks": 1e-5}),
        ("Ah 8h 5h 2c 3d", "AcAd,KcQd", "KhQd,AcKc", "", {}),
        # all is known here, and rounding can make gains of less than 0
        ("2c 2d 7h 9s Kc", "AA,QQ:0.3,T8s:0.001", "KK,4s3s,AcQc:0.001", "river 75 150, raise 60, allin", {}),
    ],
    ids=["small pot", "blockers", "rake with a cap", "by player", "huge", "hardly a stack", "no bets", "known"],
)  # fmt: skip
def test_a_river_has_the_values_of_a_linear_program(
    board: str, dealer: str, first: str, sizes: str, more: dict[str, float]
) -> None:
    arguments = {"pot": 10, "stacks": 15, "exploitability": "0.01%", "threads": 1} | more
    found = solve_spot(board, sizes, dealer=dealer, big_blind=first, **arguments)  # type: ignore[arg-type]
    form, pot = SequenceForm(found), found.spot.pot
    won, best = form.worth()
    assert np.array(found.values) == pytest.approx(won + pot / 2, abs=1e-7 * pot)
    assert found.exploitability <= 0.01
    assert found.exploitability == pytest.approx(50 * (best - won).sum() / pot, abs=5e-5)
    if not found.spot.rake:
        assert found.values[0] == pytest.approx(form.value() + pot / 2, abs=3e-4 * pot)
    for decision in filter(lambda each: each.reached, found.decisions):
        worse = decision.values.max(1, keepdims=True) - decision.values
        often = (decision.strategy > 0.05) & (decision.weight[:, None] > 0.01 * decision.weight.sum())
        assert (worse[often] < 0.02 * pot).all(), decision.line


@pytest.mark.parametrize(
    "arguments",
    [
        {"board": ROYAL, "dealer": "22", "big_blind": "33", "sizes": "river 50", "exploitability": 5e-5},
        {"board": ROYAL, "dealer": "22,33", "big_blind": "33,44"},
        {"board": ROYAL, "dealer": "22", "big_blind": "33,44", "sizes": "river 50", "rake": 5, "cap": 0.7},
        {"board": "2c 7d 9s 4c 5d", "dealer": "AsAh,KcKd", "big_blind": "AsAd,2h2d", "sizes": "river 50 100, raise 100"},
        {"board": "2c 2d 7h 9s Kc", "dealer": "AA,QQ,T8s", "big_blind": "KK,4s3s,AcQc", "sizes": "river 75, allin"},
        {"board": "Ah 8h 5h 2c 3d", "dealer": "AcAd,8c8d,QcQd", "big_blind": "KhQd,QhJh,JcTd", "rake": 3},
    ],
    ids=["chopped", "chopped with default sizes", "chopped with rake", "pure", "mixed", "raked"],
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


@pytest.mark.parametrize("sizes", ["river 50", "flop 75, turn 75, river 75, raise 100, allin"])
def test_a_hand_that_shares_the_pot_calls_every_bet(sizes: str) -> None:
    """On a royal board everything but a fold is worth half the pot."""
    found = solve_spot(ROYAL, sizes, pot=10, stacks=10, dealer="22", big_blind="33", exploitability=5e-5)
    assert found.exploitability <= 5e-5
    for decision, row in zip(found.decisions, found.facts()["decisions"], strict=True):
        for hand, values in row["values"].items():
            paid = {"fold": 0.0}
            worth = dict(zip(decision.actions, values, strict=True))
            share = 5 + (row["pot"] - 10 - row["to_call"]) / 2  # half of the pot after a call, less the call
            assert worth == pytest.approx({name: paid.get(name, share) for name in worth}, abs=1e-4), (
                decision.line,
                hand,
            )
            assert sum(row["hands"][hand]) == pytest.approx(1)
            if decision.actions[0] == "fold":
                assert row["hands"][hand][0] == 0


@pytest.mark.parametrize(
    "board, dealer, first, sizes",
    [
        (ROYAL, "22", "33", "river 50"),
        ("As Ah Ad Ac", "KcKd", "KhKs", "turn 50, river 50"),  # four aces and a king, whatever comes
    ],
)
def test_a_pot_that_is_shared_is_checked_down_if_the_house_takes_of_bets(
    board: str, dealer: str, first: str, sizes: str
) -> None:
    found = solve_spot(board, sizes, pot=10, stacks=10, dealer=dealer, big_blind=first, rake=5, exploitability=5e-4)
    assert found.values == pytest.approx((4.75, 4.75), abs=1e-3)
    for line in ("", "check"):
        assert at(found, line).frequencies()["check"] == pytest.approx(1, abs=1e-3)
    hand = hand_names(found.holes)[int(np.argmax(at(found, "").reach))]
    assert values_of(found, "", hand) == pytest.approx([4.75, 4.5], abs=1e-3)


def test_a_hand_that_cannot_win_loses_no_more_than_its_bet_on_later_streets() -> None:
    """Against the nuts on the turn, a bet is lost and no more: not a call of the raise, nor a bet on the river."""
    found = solve_spot(
        "As Ks Qs Js",
        "turn 50, river 50, raise 100",
        pot=10,
        stacks=40,
        dealer="Ts2c",
        big_blind="2d2h",
        exploitability=0.00125,
    )
    check, bet = values_of(found, "", "2h2d")
    assert check == pytest.approx(0, abs=1e-3)
    assert bet == pytest.approx(-5, abs=1e-3)
    assert values_of(found, "bet 5", "Ts2c")[0] == 0
    assert not at(found, "bet 5").reached


@pytest.mark.parametrize("rake, taken", [({}, 0.0), ({"rake": 50, "cap": 0.3}, 0.3)], ids=["no rake", "always 0.3"])
@pytest.mark.parametrize(
    "board, sizes",
    [("Qs 7h 2c 9d", "turn 50, river 75"), ("Qs 7s 2s", "flop 50, turn 75, river 75, cap 0")],
    ids=["turn", "flop"],
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
    found = solve_spot(
        "2c 2d 7h 9s Kc",
        "river 50, allin",
        pot=10,
        stacks=10,
        dealer="AA",
        big_blind="KK,43s",
        locks=[lock],
        iterations=20,
    )
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
