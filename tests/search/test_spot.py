"""Spots: known values by hand, ranges and sizes as written, and one sentence for every mistake."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import eval7
import numpy as np
import pytest
import torch

from command_line import deepcfr, problem
from deepcfr.api import Agent, solve_spot
from deepcfr.boards.rounds import round_trees
from deepcfr.core.errors import ConfigError, DeepCFRError
from deepcfr.core.types import Infosets
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.game.betting import CALL
from deepcfr.game.cards import all_hands, card_text
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PRESETS
from deepcfr.policy.base import Policy
from deepcfr.policy.query import query
from deepcfr.policy.styles import scripted_policy
from deepcfr.run.folder import RunFolder
from deepcfr.search.spot import Sizes, Solution, Spot, parse_board
from deepcfr.search.spot_ranges import HOLDEM, hand_rows, is_holdem, parse_range, range_text, ranges_after
from deepcfr.search.spot_solver import SpotSolver, goal_of
from deepcfr.search.subgame import SubgameSolver, subgame
from leaning import Leaning

MODELS = Path(__file__).parents[2] / "models"
RIVER = "2c 2d 7h 9s Kc"
POLAR = ("AA", "KK,4s3s,4h3h,4d3d,4c3c")  # a hand between the best and the worst ones of the player who acts first


def spot(board: str, dealer: str, first: str, sizes: str, pot: float = 10, stacks: float = 10, **more: Any) -> Spot:
    return Spot(parse_board(board), pot, stacks, (parse_range(dealer), parse_range(first)), Sizes.parse(sizes), **more)


def solved(which: Spot, exploitability: float = 0.005, iterations: int = 3_000) -> Solution:
    return SpotSolver(which, 1e9).solve(exploitability, iterations)


@pytest.mark.parametrize("percent", [50, 100])
def test_a_polar_range_bets_and_is_called_as_worked_out_by_hand(percent: int) -> None:
    """Bluffs and calls make the other player indifferent: s / (pot + s) bluffs for a value bet, pot / (pot + s) calls."""
    size = percent / 10
    found = solved(spot(RIVER, *POLAR, f"river {percent}", stacks=size))
    value, air = 3, 4
    bluffs = value * size / (10 + size)
    first, facing = (next(d for d in found.decisions if d.line == line) for line in ("", "all-in"))
    assert first.frequencies()["all-in"] == pytest.approx((value + bluffs) / (value + air), abs=5e-3)
    assert facing.frequencies()["call"] == pytest.approx(10 / (10 + size), abs=1e-2)
    share = 10 * (value + bluffs) / (value + air)
    assert found.values == pytest.approx((10 - share, share), abs=2e-3)
    assert found.equities == pytest.approx((10 * air / 7, 10 * value / 7))
    assert solved(found.spot, 0.5).iterations < found.iterations  # the goal ends it
    kings = found.holes[:, 0] // 4 == 11
    np.testing.assert_allclose(found.hand_values[1, kings], 10 + size * 10 / (10 + size), atol=0.05)


def test_actions_are_worth_what_is_worked_out_by_hand() -> None:
    """A bet of the pot is called half the time: kings win 15 by it, bluffs and calls nothing."""
    found = solved(spot(RIVER, *POLAR, "river 100"))
    first, checked, facing = (next(d for d in found.decisions if d.line == line) for line in ("", "check", "all-in"))
    kings, air = (np.flatnonzero((first.reach > 0) & (found.holes[:, 0] // 4 == rank)) for rank in (11, 1))
    aces = np.flatnonzero(facing.reach > 0)
    assert (len(kings), len(air), len(aces)) == (3, 4, 6)
    np.testing.assert_allclose(first.values[kings], [[10, 15]] * 3, atol=0.05)
    np.testing.assert_allclose(first.values[air], [[0, 0]] * 4, atol=0.05)
    assert facing.actions == ("fold", "call")
    np.testing.assert_array_equal(facing.values[aces, 0], 0)
    np.testing.assert_allclose(facing.values[aces, 1], 0, atol=0.05)
    np.testing.assert_allclose(checked.values[aces, 0], 10, atol=0.05)  # kings never check
    assert np.isnan(first.values[aces]).sum() == 0  # other hands have values as well: they could be held


def test_what_both_players_win_at_a_decision_is_the_pot_there() -> None:
    found = solved(spot("Qs 7h 2c 9d", "QQ,T8s,A5o", "77,AQs,JTs", "turn 75, river 50, raise 100", stacks=95), 1e9, 20)
    cards = found.holes.astype(int)
    apart = np.array([[not set(one) & set(other) for other in cards] for one in cards], float)
    lines = {decision.line: decision for decision in found.decisions}
    pots = {"": 10.0, "check": 10.0, "bet 7.5": 17.5, "check, bet 7.5": 17.5, "bet 7.5, raise to 32.5": 50.0}
    for line, pot in pots.items():
        here = lines[line]
        for place, action in enumerate(here.actions):
            later = lines.get(f"{line}, {action}".removeprefix(", "))
            if later is None:
                continue
            share = here.strategy[:, place]
            seen = (here.reach * share)[:, None] * apart * later.reach[None]
            mine = np.nan_to_num(here.values[:, place]) @ seen.sum(1)
            theirs = seen.sum(0) @ np.nan_to_num((later.strategy * later.values).sum(1))
            assert (mine + theirs) / seen.sum() == pytest.approx(pot, abs=1e-3)
    start, first = lines[""], found.hand_values[1]
    held = start.reach > 0
    np.testing.assert_allclose((start.strategy * start.values).sum(1)[held], first[held], atol=1e-6)


def test_actions_without_bets_are_worth_the_equity() -> None:
    found = solved(spot("Qs 7h 2c 9d", "QQ,T8s,A5o:0.5", "77,AQs,JTs", ""), 1e9, 1)
    for decision in found.decisions:
        held = decision.reach > 0
        np.testing.assert_allclose(decision.values[held, 0], found.hand_equities[decision.player][held], atol=1e-6)


@pytest.mark.parametrize("rake, cap, taken", [(5, None, (0.5, 1.5)), (5, 0.75, (0.5, 0.75))])
def test_a_rake_is_taken_from_the_winner_as_worked_out_by_hand(
    rake: float, cap: float | None, taken: tuple[float, float]
) -> None:
    """A bet of the pot into a pot of 10: the winner pays rake on the final pot of 10 or of 30."""
    ranges = parse_range(POLAR[0]), parse_range(POLAR[1])
    found = solved(Spot(parse_board(RIVER), 10, 10, ranges, Sizes.parse("river 100"), rake, cap), 0.0025)
    small, large = taken
    value, air = 3, 4
    bluffing = 10 / (30 - large)  # share of bluffs in all bets: a caller wins 30 less rake with them, and pays 10
    bluffs = value * bluffing / (1 - bluffing)
    calling = (10 - small) / (20 - small)  # a bluff wins the pot less rake, or loses 10
    first, facing = (next(d for d in found.decisions if d.line == line) for line in ("", "all-in"))
    assert first.frequencies()["all-in"] == pytest.approx((value + bluffs) / (value + air), abs=5e-3)
    assert facing.frequencies()["call"] == pytest.approx(calling, abs=1e-2)
    assert sum(found.equities) == pytest.approx(10 - small)
    called = (value + bluffs) / (value + air) * calling
    assert sum(found.values) == pytest.approx(10 - small - called * (large - small), abs=1e-2)


def test_a_tie_costs_each_player_half_of_the_rake() -> None:
    found = solved(
        Spot(parse_board("As Ks Qs Js Ts"), 10, 10, (parse_range("22"), parse_range("33")), Sizes({}), 10), 0.005
    )
    assert found.values == pytest.approx((4.5, 4.5))


def test_decisions_have_the_pot_and_the_values_and_equities_of_the_ranges_that_get_there() -> None:
    """Equities are counted river by river; values of both ranges add up to the pot."""
    board, texts = "Qs 7h 2c 9d", ("QQ,T8s,A5o:0.5", "77,AQs,JTs")
    found = solved(spot(board, *texts, "turn 75, river 75, allin"), 1.0, 20)
    pairs, won = _met_and_won(found, board)
    bets = {"bet 7.5": (17.5, 7.5), "bet 7.5, all-in": (27.5, 2.5), "all-in": (20, 10)}
    pots = {"": (10, 0), "check": (10, 0)} | bets | {f"check, {line}": amounts for line, amounts in bets.items()}
    lines = {decision.line: decision for decision in found.decisions}
    rows = hand_rows(found.holes)
    for line, decision in lines.items():
        assert (decision.pot, decision.to_call) == pots[line]
        reach = [parse_range(text)[rows] for text in texts]
        taken = line.split(", ") if line else []
        for place, action in enumerate(taken):
            before = lines[", ".join(taken[:place])]
            reach[before.player] = reach[before.player] * before.strategy[:, before.actions.index(action)]
        joint = reach[0][:, None] * pairs * reach[1]
        assert decision.range_values is not None
        assert sum(decision.range_values) == pytest.approx(decision.pot)
        assert decision.range_equities == pytest.approx(
            ((joint * won).sum() / joint.sum(), 1 - (joint * won).sum() / joint.sum())
        )
        met = (pairs * reach[1]).sum(1)
        there = (reach[0] > 0) & (met > 0)
        np.testing.assert_allclose(
            decision.hand_equities[0, there], (pairs * won * reach[1]).sum(1)[there] / met[there], atol=1e-12
        )
        held = (decision.reach > 0) & ~np.isnan(decision.values).any(1)
        mixed = (decision.strategy * decision.values).sum(1)
        np.testing.assert_allclose(decision.hand_values[decision.player, held], mixed[held], atol=1e-6)
    assert lines.keys() == pots.keys()
    assert found.equities == pytest.approx([10 * share for share in lines[""].range_equities or ()])
    assert found.exploitability > 0


def _met_and_won(found: Solution, board: str) -> tuple[np.ndarray, np.ndarray]:
    """For the dealer's hand [H] and another one [H]: whether both are possible, and the dealer's equity over all rivers."""
    used, count = parse_board(board), len(found.holes)
    text = [eval7.Card(card_text(HOLDEM, card)) for card in range(52)]
    met, won = np.zeros((count, count)), np.zeros((count, count))
    for h, g in ((h, g) for h in range(count) for g in range(count)):
        hands = [*found.holes[h].tolist(), *found.holes[g].tolist()]
        if len({*hands, *used}) < 8:
            continue
        met[h, g] = 1
        for river in set(range(52)) - {*hands, *used}:
            ranks = [eval7.evaluate([text[c] for c in (*hand, *used, river)]) for hand in (hands[:2], hands[2:])]
            won[h, g] += ((ranks[0] > ranks[1]) + 0.5 * (ranks[0] == ranks[1])) / 44
    return met, won


def test_merging_suits_changes_nothing() -> None:
    plain = spot("Qs Qh Qd 2s", "AA-99,AKs", "KQs,88-66", "turn 75, river 50, allin")
    marked = spot("Qs Qh Qd 2s", "AA-99,AKs", "KQs,88-66,4h3h:0.000001", "turn 75, river 50, allin")
    merged, apart = (SpotSolver(which, 1e9) for which in (plain, marked))
    assert (merged.game.suits, apart.game.suits) == ("canonical", "raw")
    one, other = merged.solve(0, 40), apart.solve(0, 40)
    assert one.values == pytest.approx(other.values, abs=2e-3)
    assert one.exploitability == pytest.approx(other.exploitability, rel=0.05)


def test_sizes_make_the_betting() -> None:
    which = spot(RIVER, "AA", "KK", "river 33 150, raise 100, allin", pot=10, stacks=95)
    solution = solved(which, 1e9, 1)
    at = {decision.line: decision for decision in solution.decisions}
    assert at[""].actions == ("check", "bet 3.3", "bet 15", "all-in")
    # a raise of the pot after a call: 3.3 + (10 + 2 * 3.3)
    assert at["bet 3.3"].actions == ("fold", "call", "raise to 19.9", "all-in")
    assert at["all-in"].actions == ("fold", "call")
    assert at["check"].player == 0
    assert at["bet 3.3, raise to 19.9"].player == 1
    short = solved(spot(RIVER, "AA", "KK", "river 33 150", pot=10, stacks=2), 1e9, 1)
    assert short.decisions[0].actions == ("check", "all-in")


@pytest.mark.parametrize("pot", [1e-6, 0.01, 1, 100, 60_000, 20_000_000])
def test_a_spot_is_the_same_in_any_unit(pot: float) -> None:
    """A bet of half the pot: half a bluff for a value bet, so both of three hands bet, and two of three call."""
    found = solved(spot("2s 2h 2d 3c 3d", "KK", "AA,QQ", "river 50", pot, 5 * pot), 0.05)
    assert found.values == pytest.approx((pot / 3, 2 * pot / 3), rel=1e-3)
    bet, facing = found.decisions[0], found.decisions[2]
    assert bet.actions[1].startswith("bet ")
    assert float(bet.actions[1][4:]) == pot / 2
    assert facing.line == bet.actions[1]
    assert bet.frequencies()[bet.actions[1]] == pytest.approx(2 / 3, abs=5e-3)
    assert facing.frequencies()["call"] == pytest.approx(2 / 3, abs=5e-3)
    assert found.spot.notes == []
    facts = found.facts()
    assert facts["hand_values"]["big blind"]["AdAc"] == pytest.approx(
        4 / 3 * pot, rel=1e-2
    )  # called two times of three
    assert facts["decisions"][2]["pot"] == pytest.approx(1.5 * pot)
    assert "0.000 of the pot" not in found.describe()


@pytest.mark.parametrize(
    "sizes, change, actions, notes",
    [
        ("river 1", {}, ("check", "bet 0.1"), []),
        ("river 1", {"min_bet": 1}, ("check", "bet 1"), ["Where bet 1 would be less than"]),
        ("river 1", {"min_bet": 30}, ("check", "all-in"), ["Where bet 1 would be less than"]),
        ("river 33.333333333 33.333333334", {}, ("check", "bet 3.33333"), []),
        ("river 50", {"pot": 2_469_135}, ("check", "bet 1234568"), []),
    ],
)
def test_no_bet_is_changed_without_a_word(
    sizes: str, change: dict[str, float], actions: tuple[str, ...], notes: list[str]
) -> None:
    which = spot(RIVER, "AA", "KK", sizes, stacks=2 * change.get("pot", 10), **change)
    assert solved(which, 1e9, 1).decisions[0].actions == actions
    assert [note.split(" the smallest")[0] for note in which.notes] == notes
    assert all(note in SpotSolver(which, 1e9).describe() for note in which.notes)


def test_a_pot_that_is_rounded_is_said() -> None:
    assert spot(RIVER, "AA", "KK", "river 50", 2.04, 1e8).notes == ["The pot of 2.04 is solved as 2."]


@pytest.mark.parametrize(
    ("sizes", "note"),
    [
        ("turn 75", "no bets on the river, for which no sizes are given; "),
        ("flop 50, raise 100", "no bets on the turn and the river, for which no sizes are given; "),
        ("turn 75, river 75", ""),
        ("turn 75, allin", ""),
    ],
)
def test_streets_without_bets_are_named(sizes: str, note: str) -> None:
    told = SpotSolver(spot("Qs 7h 2c 9d", "QQ", "77", sizes, stacks=40), 1e9).describe()
    assert told.startswith(note)
    assert ("no bets" in told) == bool(note)


def test_ranges_are_what_they_say() -> None:
    assert parse_range("22+").sum() == 78
    assert parse_range("AKs,AKo").sum() == 16
    weights = parse_range("A5s-A2s, KQo:0.25 AsKd:.5;AcKd")
    assert weights.sum() == pytest.approx(16 + 12 * 0.25 + 0.5 + 1)
    names = {frozenset(hand): weights[i] for i, hand in enumerate(map(tuple, all_hands(52, 2).tolist()))}
    assert names[frozenset(parse_board("As Kd"))] == 0.5
    assert names[frozenset(parse_board("Ah5h"))] == 1
    assert sum(weight > 0 for weight in names.values()) == 16 + 12 + 2
    assert parse_range("KTo-K8o").sum() == 36
    assert parse_range("Q9-QJ").sum() == 48


def test_ranges_as_text_are_read_as_they_were() -> None:
    board = parse_board("As 7h 2c")
    weights = parse_range("99+,AKs:0.5,KQo,JdTc:0.125,JsTs")
    text = range_text(weights, board)
    assert text == "AA,AKs:0.5,KK,KQo,QQ,JJ,JsTs,JdTc:0.125,TT,99"
    tiny = parse_range("AA:0.00001234,KK:0.9")
    np.testing.assert_array_equal(parse_range(range_text(tiny)), tiny)
    live = ~np.isin(all_hands(52, 2), board).any(1)
    np.testing.assert_array_equal(parse_range(text)[live], weights[live])
    assert range_text(weights * live).startswith("AhAd,AhAc,AdAc,AhKh:0.5")  # without the board AA is no whole kind


def test_a_spot_as_text_is_the_spot() -> None:
    which = spot("Qs 7h 2c 9d", "QQ,T8s,A5o:0.5", "77,AQs,JTs", "turn 33 75, river 75, raise 100, allin", 7.5, 40)
    again = Spot.parse(**which.texts())  # type: ignore[arg-type]
    assert again.texts() == which.texts()
    assert (again.board, again.pot, again.stacks, again.sizes) == (which.board, 7.5, 40, which.sizes)
    for one, other in zip(again.ranges, which.ranges, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name, line", [("fhp", "rc"), ("hulh", "rrc/crc/cc")])
def test_ranges_of_a_run_are_its_strategy_along_the_line(name: str, line: str) -> None:
    policy = Leaning(load_game(name))
    cards = {"rc": "Qs 7h 2c", "rrc/crc/cc": "Qs 7h 2c 9d 4s"}[line]
    state, ranges = ranges_after(policy, line, parse_board(cards))
    rounds, boards = line.split("/"), ["", " / Qs 7h 2c", " / 9d"]
    names = {frozenset(hand): i for i, hand in enumerate(map(tuple, all_hands(52, 2).tolist()))}
    reach = {}
    for hand in ("AhKh", "6c5c"):
        chances, actor = [1.0, 1.0], 0
        for street, letters in enumerate(rounds):
            before = "".join(f"{boards[s]} / {rounds[s]}" for s in range(street)) + boards[street]
            for place, letter in enumerate(letters):
                answer = query(policy, f"{hand}{before} / {letters[:place]}")
                actor = answer.situation.state.actor
                word = {"r": ("bet", "raise"), "c": ("check", "call")}[letter]
                chances[actor] *= next(p for action, p in answer.probabilities.items() if action in word)
        reach[hand] = chances
    for player in (0, 1):
        one, other = (ranges[player][names[frozenset(parse_board(hand))]] for hand in reach)
        assert one * reach["6c5c"][player] == pytest.approx(other * reach["AhKh"][player], rel=1e-4)
        assert ranges[player].max() == 1
    whole = solve_spot(cards, "river 75, flop 75", stacks=5, agent=Agent(policy), line=line, iterations=1)
    assert whole.spot.pot == state.pot
    np.testing.assert_array_equal(whole.spot.ranges, ranges)
    mine = Spot.parse(cards, "flop 75", stacks=5, pot=3, dealer="AA", policy=policy, line=line)
    assert mine.pot == 3
    assert mine.ranges[0].sum() == 6
    np.testing.assert_array_equal(mine.ranges[1], ranges[1])


@pytest.mark.parametrize(
    "name, line, sentence",
    [
        ("fhp", "", "must end where the last of the 3 cards"),
        ("fhp", "r", "must end where the last of the 3 cards"),
        ("fhp", "rc/c", "must end where the last of the 3 cards"),
        ("fhp", "rx", "'x' in the betting 'rx' is not an action"),
        ("fhp", "rf", "must end where"),
        ("fhp", "rc", "Nobody runs out of chips in 'fhp': give the stacks"),
        ("leduc", "rc", "Ranges of a spot come from hold'em, and 'leduc' is not it"),
    ],
)
def test_a_line_that_leads_nowhere_is_a_sentence(name: str, line: str, sentence: str) -> None:
    policy, _ = RunFolder.open(MODELS / name).load_policy("own", pytest.fail)
    with pytest.raises(DeepCFRError, match=sentence):
        Spot.parse("Qs 7h 2c", "flop 75", policy=policy, line=line)


def test_the_stacks_of_a_bet_size_game_are_what_is_left() -> None:
    policy = scripted_policy("uniform", ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"]))
    which = Spot.parse("Qs 7h 2c", "flop 50", policy=policy, line="r2 c")
    assert (which.pot, which.stacks) == (4, 98)
    assert [weights.max() for weights in which.ranges] == [1, 1]


def test_games_of_another_order_or_deck_are_not_hold_em() -> None:
    assert all(is_holdem(PRESETS[name]) for name in ("fhp", "hulh", "hunl-pot"))
    assert not is_holdem(replace(PRESETS["fhp"], first_player=(0, 0)))
    assert not is_holdem(PRESETS["leduc"])


def test_a_hand_that_a_run_has_almost_never_is_left_out() -> None:
    """Of two hands one calls with certainty, and one a billion times less often than that."""
    policy, _ = RunFolder.open(MODELS / "fhp").load_policy("own", pytest.fail)
    board, (_, plain) = parse_board("Qs 7h 2c"), ranges_after(policy, "rc", parse_board("Qs 7h 2c"))

    class Folding(Policy):
        kind, game = "folding", policy.game

        def probabilities(self, infosets: Infosets) -> torch.Tensor:
            rows = policy.probabilities(infosets)
            rows[:, CALL] *= torch.where(torch.arange(len(rows)) % 2 == 0, 1, 1e-11)
            return rows

    _, (_, folding) = ranges_after(Folding(), "rc", board)
    assert 0 < np.count_nonzero(folding) < np.count_nonzero(plain)
    assert folding[folding > 0].min() >= 1e-9


@pytest.mark.parametrize("line, aggressor", [("rc", "dealer"), ("crc", "big blind"), ("cc", None)])
def test_who_bet_last_is_as_in_the_line(line: str, aggressor: str | None) -> None:
    policy = Leaning(load_game("fhp"))
    assert Spot.parse("Qs 7h 2c", "flop 75", stacks=5, policy=policy, line=line).aggressor == aggressor


def test_no_message_names_a_game_that_nobody_chose() -> None:
    for board, sentence in (("Qs 7h Xx", "'Xx' is not a card of hold'em"), ("Q♠ 7♥ Q♤", "Qs is given 2 times")):
        with pytest.raises(ConfigError, match=sentence):
            parse_board(board)


def test_a_spot_without_a_policy_needs_everything() -> None:
    with pytest.raises(ConfigError, match="needs a value for the stacks and the range of the big blind, or an agent"):
        Spot.parse("Qs 7h 2c", "flop 75", pot=3, dealer="AA")


def test_progress_can_stop_a_solution() -> None:
    found = SpotSolver(spot(RIVER, *POLAR, "river 50"), 1e9).solve(0, 100, lambda done, _: done >= 20)
    assert found.iterations == 20


@pytest.mark.parametrize(
    "limit, sentence", [("exploitability", "exploitability must be at least 0"), ("threads", "at least 1 thread")]
)
def test_limits_of_the_work_are_checked_before_it_begins(limit: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        solve_spot("no board", **{limit: -1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"board": "Qs 7h"}, "3, 4 or 5 cards, but 2"),
        ({"board": "Qs 7h Qs"}, "card Qs is given 2 times"),
        ({"board": "Qs 7h Xx"}, "'Xx' is not a card"),
        ({"dealer": "QQQ"}, "'QQQ' is not a part of a range"),
        ({"dealer": ":1"}, "'' is not a part of a range"),
        ({"dealer": "AsAs"}, "'AsAs' is not a part of a range"),
        ({"dealer": "AsKdQc"}, "'AsKdQc' is not a part of a range"),
        ({"dealer": "KcKd"}, "range of the dealer has no hand that is possible"),
        ({"first": "AA:2"}, "weight of 'AA:2' must be a number from 0 to 1"),
        ({"first": ""}, "range of the big blind has no hand"),
        ({"sizes": "river"}, "'river' needs percentages"),
        ({"sizes": "river 0"}, "'river 0' needs percentages"),
        ({"sizes": "river 33, river 75"}, "'river 75' names the river a second time"),
        ({"sizes": "river 75, raise 50, raise 100"}, "'raise 100' names the raise a second time"),
        ({"sizes": "flush 50"}, "'flush 50' is not a size"),
        ({"pot": 0}, "pot must be above 0"),
        ({"stacks": float("nan")}, "stacks must be above 0"),
        ({"pot": 1e-9, "stacks": 1e6}, "one of them is too small"),
        ({"pot": 1e-300, "stacks": 1e-300}, "one of them is too small"),
        ({"pot": 2e8}, "pot must be above 0 and at most 100,000,000, but is 2e"),
        ({"min_bet": -1}, "smallest bet must be a number of 0 or more, but is -1"),
        ({"aggressor": "oop"}, "Who bet last is dealer or big blind, not 'oop'"),
        ({"rake": 100}, "rake must be from 0 to less than 100 percent, but is 100"),
        ({"rake": float("nan")}, "rake must be from 0"),
        ({"rake": 5, "cap": -1}, "cap of the rake must be a number of 0 or more, but is -1"),
        ({"rake": 5, "cap": float("inf")}, "cap of the rake must be a number of 0 or more, but is inf"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_mistakes_are_sentences(change: dict[str, object], sentence: str) -> None:
    good = {"board": RIVER, "dealer": "AA", "first": "KK", "sizes": "river 50"}
    with pytest.raises(ConfigError, match=sentence):
        spot(**(good | change))  # type: ignore[arg-type]


def test_ranges_without_a_pair_of_hands_are_refused_and_ranges_are_not_changed() -> None:
    with pytest.raises(ConfigError, match="No hand of the dealer's range"):
        SpotSolver(spot(RIVER, "AsQs", "AsQs", "river 50"), 1e9)
    weights = parse_range("22+")
    Spot(parse_board(RIVER), 10, 10, (weights, weights), Sizes.parse("river 50"))
    assert weights.sum() == 78


def test_locked_hands_are_not_merged_by_suit() -> None:
    hands = {name: [0.5, 0.5] for name in ("AsAd", "AsAh", "AsAc", "AdAc", "AhAc", "AhAd")}
    hands |= {"AhAd": [0.0, 1.0], "AdAc": [1.0, 0.0]}
    which = spot("Qs 7s 2s 9s 4d", "KK", "AA", "river 50")
    found = SpotSolver(which, 1e9, locks=[{"line": "", "hands": hands}]).solve(0, 5)
    played = found.facts()["decisions"][0]["hands"]
    assert played == {name: pytest.approx(shares, abs=1e-4) for name, shares in hands.items()}


def test_what_does_not_fit_is_refused_before_it_begins() -> None:
    flop = spot("Qs 7h 2c", "22+", "22+", "flop 50, turn 50, river 50, raise 100", stacks=100)
    with pytest.raises(DeepCFRError, match=r"needs up to .* GB, and 0\.1 GB are allowed"):
        SpotSolver(flop, 1e8)


ARGUMENTS = (
    "spot", "--board", RIVER, "--pot", 10, "--stacks", 10, "--dealer", "AA", "--big-blind", POLAR[1],
    "--sizes", "river 100", "--threads", 1,
)  # fmt: skip


def test_the_command_prints_and_writes_the_solution(tmp_path: Path) -> None:
    path = tmp_path / "spot.json"
    shown = deepcfr(*ARGUMENTS, "--out", path).out
    assert " of 10 in the mean" in shown
    assert "mbb" not in shown
    assert "big blind: check" in shown
    stored = json.loads(path.read_text())
    first = stored["decisions"][0]
    assert first["player"] == "big blind"
    assert list(first["frequencies"]) == ["check", "all-in"]
    assert len(first["hands"]) == 7
    assert first["hands"]["KhKd"][1] > 0.99
    assert stored["exploitability_percent"] <= 0.05
    assert stored["hand_values"]["dealer"]["AdAc"] < 10
    facts = deepcfr(*ARGUMENTS, "--json", "--iterations", 3).json
    assert facts["iterations"] == 3
    assert "hands" not in facts["decisions"][0]
    assert (stored["dealer"], stored["big_blind"], stored["sizes"]) == ("AA", "KK,43s", "river 100")
    assert stored["hand_equities"]["dealer"] == dict.fromkeys(
        stored["hand_values"]["dealer"], pytest.approx(40 / 7, abs=1e-3)
    )
    assert stored["hand_equities"]["big blind"]["4c3c"] == 0
    assert sum(facts["values"].values()) == pytest.approx(10)
    assert f"'{path}' exists" in problem(deepcfr(*ARGUMENTS, "--out", path))
    for option, needed in (("--iterations", "1 iteration"), ("--threads", "1 thread")):
        assert f"needs at least {needed}" in problem(deepcfr(*ARGUMENTS, option, 0))
    assert "The line 'rc' needs an agent" in problem(deepcfr(*ARGUMENTS, "--line", "rc"))
    assert "--policy current needs --from" in problem(deepcfr(*ARGUMENTS, "--policy", "current"))
    assert "and none is named" in problem(deepcfr(*ARGUMENTS, "--search.iterations", 5))
    assert "A cap of 3 needs a rake" in problem(deepcfr(*ARGUMENTS, "--cap", 3))
    lock = tmp_path / "lock.json"
    lock.write_text(json.dumps([{"line": "", "frequencies": {"check": 0, "all-in": 1}}]))
    locked = deepcfr(*ARGUMENTS, "--json", "--lock", lock).json
    lock.write_text(json.dumps([{"line": "", "hands": None, "frequencies": {"check": 0, "all-in": 1}}]))
    assert deepcfr(*ARGUMENTS, "--json", "--lock", lock).json["decisions"] == locked["decisions"]
    assert locked["decisions"][0]["frequencies"] == {"check": 0, "all-in": 1}
    lock.write_text("{}")
    assert "must hold a list of decisions" in problem(deepcfr(*ARGUMENTS, "--lock", lock))
    lock.write_text("[3]")
    assert "must be a list of decisions" in problem(deepcfr(*ARGUMENTS, "--lock", lock))
    lock.write_text('[{"line": "", "hands": {"KsKd": [1, 0], "KsKd": [0, 1]}}]')
    assert "'KsKd' is twice in one object" in problem(deepcfr(*ARGUMENTS, "--lock", lock))
    for text in ("[", "[" * 100_000):
        lock.write_text(text)
        assert "is not JSON" in problem(deepcfr(*ARGUMENTS, "--lock", lock))
    assert "The exploitability must be at least 0" in problem(deepcfr(*ARGUMENTS, "--exploitability", -1))
    assert deepcfr(*ARGUMENTS, "--json", "--exploitability", "0.25%").json["exploitability_percent"] <= 0.25


def test_a_file_that_cannot_be_written_is_refused_before_the_work_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(SpotSolver, "solve", pytest.fail)
    assert "cannot be written" in problem(deepcfr(*ARGUMENTS, "--out", tmp_path / "file" / "spot.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_result_is_printed_even_if_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder becomes a file while the spot is being solved."""
    folder, solve = tmp_path / "folder", SpotSolver.solve

    def breaking(*given: object) -> Solution:
        folder.rmdir()
        folder.write_text("")
        return solve(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(SpotSolver, "solve", breaking)
    result = deepcfr(*ARGUMENTS, "--out", folder / "spot.json")
    assert "exploitability 0.0" in result.out
    assert (result.status, "cannot be written" in result.err) == (2, True)


def test_hands_of_neither_range_change_nothing() -> None:
    """Boards hold the hands of both ranges only; hands of weight 0 would bring nothing."""
    few = solved(spot(RIVER, *POLAR, "river 50, raise 100"), 0, 30)
    many = solved(spot(RIVER, POLAR[0] + ",QJs:0.0000001", POLAR[1], "river 50, raise 100"), 0, 30)
    assert len(few.holes) == 13
    assert len(many.holes) == 17
    assert few.values == pytest.approx(many.values, abs=1e-5)


def test_a_locked_decision_is_played_and_the_rest_adapts() -> None:
    """A player who first bets everything or nothing: against too many bluffs the other one calls, else it folds."""
    which = spot(RIVER, *POLAR, "river 100")
    for bluffs, call in ((1.0, 1.0), (0.1, 0.0)):
        hands = {name: [0.0, 1.0] for name in ("KhKd", "KdKs", "KsKh")}  # the higher card need not be the first one
        hands |= {f"4{suit}3{suit}": [1 - bluffs, bluffs] for suit in "cdhs"}
        found = SpotSolver(which, 1e9, locks=[{"line": "", "hands": hands}]).solve(0.0025, 2_000)
        at = {decision.line: decision for decision in found.decisions}
        assert at["all-in"].frequencies()["call"] == pytest.approx(call, abs=0.02)
        assert at[""].frequencies()["all-in"] == pytest.approx((3 + 4 * bluffs) / 7, abs=1e-6)
        assert 0 <= found.exploitability <= 0.0025
    lock = {"line": "", "frequencies": {"check": 0.25, "all-in": 0.75}}
    with pytest.raises(ConfigError, match="'' is locked twice"):
        SpotSolver(which, 1e9, locks=[lock, lock])
    everyone = SpotSolver(which, 1e9, locks=[lock | {"player": "big blind"}]).solve(0.005, 500)
    np.testing.assert_allclose(everyone.decisions[0].strategy[everyone.decisions[0].reach > 0, 1], 0.75, atol=1e-6)


def test_a_single_hand_is_locked_and_the_others_are_solved() -> None:
    """Of three value hands one checks, so the others can be joined by 2 * 10 / 20 bluffs only."""
    lock = {"line": "", "hands": {"KsKd": [1.0, 0.0]}}
    found = SpotSolver(spot(RIVER, *POLAR, "river 100"), 1e9, locks=[lock]).solve(0.0025, 10_000)
    first, facing = (next(d for d in found.decisions if d.line == line) for line in ("", "all-in"))
    played = found.facts()["decisions"][0]["hands"]
    assert played["KsKd"] == pytest.approx([1, 0], abs=1e-4)
    assert played["KsKh"] == pytest.approx([0, 1], abs=0.01)
    assert first.frequencies()["all-in"] == pytest.approx((2 + 1) / 7, abs=5e-3)
    assert facing.frequencies()["call"] == pytest.approx(1 / 2, abs=1e-2)
    assert 0 <= found.exploitability <= 0.0025  # best responses follow the lock, but only with the hand that is locked


@pytest.mark.parametrize(
    "lock, sentence",
    [
        ({"line": "bet 3"}, "no decision after 'bet 3'"),
        ({"line": "", "frequencies": {"check": 1}}, "actions after '' are check, all-in, not check"),
        ({"line": "", "frequencies": {"check": 0.5, "all-in": 0.6}}, "do not sum to 1"),
        ({"line": "", "frequencies": {"check": "a", "all-in": 0.6}}, "do not sum to 1"),
        ({"line": ""}, "neither frequencies nor the probabilities of a hand"),
        ({"line": "", "hands": {"QsQd": [0, 1]}}, "QsQd is no hand"),
        ({"line": "", "hands": {"AsAd": [0, 1]}}, "AsAd is no hand of the big blind's range"),
        ({"line": "", "hands": {"KsKd": 1}}, "KsKd is no hand"),
        ({"line": "", "hands": {"KsKd": [1, 0], "KdKs": [0, 1]}}, "KsKd and KdKs are the same hand: lock it once"),
        ({"line": "", "frequencies": {"check": 10**400, "all-in": 0}}, "do not sum to 1"),
        ({"line": "", "hands": []}, "'hands' of the lock after '' must be an object"),
        ({"line": "", "frequencies": 3}, "'frequencies' of the lock after '' must be an object"),
        ({"line": [], "frequencies": {}}, "A lock has no 'line'"),
        ({"frequencies": {"check": 1, "all-in": 0}}, "A lock has no 'line'"),
        ({"line": "", "player": "dealer", "frequencies": {"check": 1, "all-in": 0}}, "After '' the big blind acts"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_lock_that_fits_nothing_is_a_sentence(lock: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        SpotSolver(spot(RIVER, *POLAR, "river 100"), 1e9, locks=[lock])


@pytest.mark.parametrize("seed", range(40))
def test_a_hand_that_no_opposing_hand_is_possible_with_is_left_out(seed: int) -> None:
    """Reach is a difference of sums, and its rounding is no reach."""
    weights = [parse_range("QdJd,AKs") * 0.5, parse_range("QdTd,QdTc,JdTh,Jd9h,QdQs")]
    weights[1] *= np.random.default_rng(seed).random(len(weights[1]))
    which = Spot(parse_board(RIVER), 10, 10, (weights[0], weights[1]), Sizes.parse("river 50"))
    found = solved(which, 1e9, 1).facts()
    decision = found["decisions"][1]
    assert decision["player"] == "dealer"
    lists = found["hand_values"]["dealer"], found["hand_equities"]["dealer"], decision["hands"], decision["values"]
    assert all(names.keys() == {"AsKs", "AhKh", "AdKd"} for names in lists)  # the board has the king of clubs


@pytest.mark.parametrize(
    "board, dealer, first, sizes, line, shares",
    [
        # the dealer cannot hold AsAh against AsAd, and folds kings
        ("2c 7d 9s 4c 5d", "AsAh,KcKd", "AsAd", "allin", "all-in", {"fold": 1.0, "call": 0.0}),
        ("Ah 8h 5h 2c 3d", "AcAd,8c8d,AcKc,QcQd", "KhQd,QhJh,KcQd,KhKc,JcTd", "river 100", "",
         {"check": 0.75, "all-in": 0.25}),
    ],
)  # fmt: skip
def test_frequencies_are_those_of_deals_that_are_possible(
    board: str, dealer: str, first: str, sizes: str, line: str, shares: dict[str, float]
) -> None:
    found = solved(spot(board, dealer, first, sizes), 0.005)
    decision = next(decision for decision in found.decisions if decision.line == line)
    assert decision.frequencies() == pytest.approx(shares, abs=2e-3)


def test_frequencies_are_means_over_the_pairs_of_hands_that_get_there() -> None:
    """Each decision by its definition: a sum over all pairs of hands without a common card."""
    found = solved(spot(RIVER, "QQ,T8s:0.3,A5o", "77,AQs:0.5,QJs,T9s", "river 75, raise 100", stacks=40), 0.1)
    apart = (found.holes[:, None, :, None] != found.holes[None, :, None, :]).all((2, 3))
    reach = {"": np.stack(found.spot.ranges)[:, hand_rows(found.holes)]}
    for decision in found.decisions:
        own, other = reach[decision.line][decision.player], reach[decision.line][1 - decision.player]
        chance = (own[:, None] * other * apart).sum(1)
        np.testing.assert_allclose(
            decision.weight / decision.weight.sum(), chance / chance.sum(), rtol=1e-9, atol=1e-12
        )
        assert decision.reached == (chance.sum() > 1e-30)
        mean = chance @ decision.strategy / chance.sum()
        assert list(decision.frequencies().values()) == pytest.approx(mean.tolist())
        for place, action in enumerate(decision.actions):
            after = reach[decision.line].copy()
            after[decision.player] *= np.maximum(decision.strategy[:, place], 1e-40)  # in the limit of 0
            reach[", ".join(filter(None, [decision.line, action]))] = after


def test_exploitability_is_said_in_percent_of_the_pot() -> None:
    found = solved(spot(RIVER, *POLAR, "river 50", pot=20), 0.075)
    assert 0 < found.exploitability <= 0.075
    assert found.facts()["exploitability_percent"] == found.exploitability
    assert f"exploitability {found.exploitability:.3g}%" in found.describe()


@pytest.mark.parametrize("given, goal", [(3, 3), ("3", 3), ("0.5%", 0.5), (" .05 %", 0.05), ("0%", 0)])
def test_a_goal_is_a_percentage_of_the_pot(given: float | str, goal: float) -> None:
    assert goal_of(given) == pytest.approx(goal)


@pytest.mark.parametrize("given", ["", "%", "half", "1 mbb", "5%%", -1, "-1%", "nan", "inf", "1e400%"])
def test_what_is_no_goal_is_a_sentence(given: float | str) -> None:
    with pytest.raises(ConfigError, match=r"The exploitability must be at least 0|is no percentage of the pot"):
        goal_of(given)


def test_a_goal_that_was_not_reached_is_named() -> None:
    which = spot(RIVER, *POLAR, "river 50", pot=20)
    short = SpotSolver(which, 1e9).solve("0.00005%", 20)
    assert short.facts()["goal_percent"] == short.goal == 0.00005
    assert "the goal, an exploitability of 5e-05% of the pot, was not reached" in short.describe()
    reached = SpotSolver(which, 1e9).solve("0.5%", 2_000)
    assert reached.exploitability <= 0.5
    assert "goal" not in reached.describe()


def test_rare_actions_keep_their_shares_in_json() -> None:
    """Six places of every probability and value; shares still sum to 1."""
    found = solved(spot(RIVER, *POLAR, "river 50, allin"), 0.5)
    first = found.decisions[0]
    shares, value = [2.4e-5 / 7, 1.1e-5, 0], 7.123456
    shares[2] = 1 - sum(shares)
    changed = replace(
        first,
        strategy=np.tile(shares, (len(found.holes), 1)),
        values=np.full_like(first.values, value),
        hand_equities=np.full_like(first.hand_equities, 0.123456),
    )
    row = replace(found, decisions=(changed,)).facts()["decisions"][0]
    for written in [*row["hands"].values(), list(row["frequencies"].values())]:
        assert written == [3e-6, 1.1e-5, 0.999986]
    assert all(written == [value] * 3 for written in row["values"].values())
    assert set(row["hand_equities"]["dealer"].values()) == {0.123456}
    weights = np.zeros(1326)
    weights[:2] = 0.123456, 1e-7
    np.testing.assert_array_equal(parse_range(range_text(weights)), weights)


def test_no_number_is_minus_zero() -> None:
    found = solved(spot(RIVER, "AA", "43s", "river 50"), 0.005)
    small = replace(found, values=(10 + 1e-9, -1e-9), equities=(10.0, -0.0))
    assert "-0.000" not in small.describe()
    assert "big blind: 0.000 of the pot; 0.000 if both check to the end" in small.describe()
    assert "-0.0" not in re.findall(r"-0\.0\b", json.dumps(found.facts()))


def test_the_estimate_of_memory_covers_boards_and_tables() -> None:
    which = spot("Qs 7h 2c 9d", "QQ,T8s,A5o", "77,AQs,JTs", "turn 75, river 75 150, raise 100", stacks=95)
    solver = SpotSolver(which, 1e9)
    rounds = round_trees(solver.game)
    inside = subgame(solver.game, rounds, solver._board, np.array([0]))
    arrays = [[v for v in vars(board).values() if isinstance(v, np.ndarray)] for kept in inside.kept for board in kept]
    boards = sum(array.nbytes for board in arrays for array in board if len(array) < 1_326)
    tables = sum(
        8 * tree.num_edges * len(board) for tree, kept in zip(rounds, inside.kept, strict=True) for board in kept
    )
    assert boards + tables <= solver.bytes < 3 * (boards + tables)


def test_tables_in_16_bits_solve_what_does_not_fit_in_32() -> None:
    which = spot("Qs 7h 2c 9d", "QQ,T8s,A5o", "77,AQs,JTs", "turn 75, river 75, raise 100", stacks=40)
    whole = SpotSolver(which, 1e9)
    small = SpotSolver(which, 0.99 * whole.bytes)
    assert not whole.compact
    assert small.compact
    assert small.bytes < 0.99 * whole.bytes
    assert "16 bits" in small.describe()
    assert "16 bits" not in whole.describe()
    inside = subgame(small.game, round_trees(small.game), small._board, np.array([0]))
    large, compact = (
        sum(array.nbytes for tables in solver._tables for table in tables for array in table.arrays().values())
        for solver in (SubgameSolver(inside, small._reach, compact=flag) for flag in (False, True))
    )
    assert 0.5 < compact / large < 0.6
    one, other = whole.solve(0.1, 1_000), small.solve(0.1, 1_000)
    assert one.exploitability <= 0.1
    assert other.exploitability <= 0.1
    assert other.values == pytest.approx(one.values, abs=0.02)


def test_exploitability_is_measured_at_the_end_and_less_often_later() -> None:
    which = spot(RIVER, "QQ,T8s,A5o", "77,AQs,JTs", "river 75, raise 100", stacks=40)
    seen: list[tuple[int, float]] = []
    solution = SpotSolver(which, 1e9).solve(0.0, 305, lambda iterations, now: seen.append((iterations, now)))
    assert [iterations for iterations, _ in seen] == list(range(1, 306))
    measured = dict(reversed([(now, iterations) for iterations, now in seen]))  # the first report of each
    assert sorted(measured.values()) == [1, 10, 20, 40, 80, 160]  # the first report has no figure yet
    assert solution.exploitability < min(measured)
    assert max(measured) == np.inf
    near = max(now for now, iterations in measured.items() if iterations > 80)
    seen.clear()
    assert SpotSolver(which, 1e9).solve(near, 305, lambda *now: seen.append(now)).exploitability <= near
    assert 80 < len(seen) <= 160  # it is measured more often when it is near
