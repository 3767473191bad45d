"""Spots: known values by hand, ranges and sizes as written, and one sentence for every mistake."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import eval7
import numpy as np
import pytest
import torch

from command_line import deepcfr, problem
from deepcfr.api import Agent, solve_spot
from deepcfr.boards.boards import count_hands
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
from deepcfr.search import spot_solver
from deepcfr.search.spot import Sizes, Spot, parse_board
from deepcfr.search.spot_ranges import HOLDEM, hand_rows, is_holdem, parse_range, range_text, ranges_after
from deepcfr.search.spot_solution import Solution
from deepcfr.search.spot_solver import SpotSolver, goal_of
from deepcfr.search.subgame import SubgameSolver, subgame
from deepcfr.solve.full_width import DISCOUNTED
from leaning import Leaning

MODELS = Path(__file__).parents[2] / "models"
RIVER = "2c 2d 7h 9s Kc"
POLAR = ("AA", "KK,4s3s,4h3h,4d3d,4c3c")  # a hand between the best and the worst ones of the player who acts first


def spot(board: str, dealer: str, first: str, sizes: str, pot: float = 10, stacks: float = 10, **more: Any) -> Spot:
    return Spot(parse_board(board), pot, stacks, (parse_range(dealer), parse_range(first)), Sizes.parse(sizes), **more)


def solved(which: Spot, exploitability: float = 0.005, iterations: int = 3_000) -> Solution:
    return SpotSolver(which, 1e9).solve(exploitability, iterations)


def test_a_polar_range_bets_and_is_called_as_worked_out_by_hand() -> None:
    """Bluffs and calls make the other player indifferent: s / (pot + s) bluffs for a value bet, pot / (pot + s) calls."""
    found, size, value, air = solved(spot(RIVER, *POLAR, "river 50", stacks=5)), 5, 3, 4
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
    assert SpotSolver(found.spot, 1e9).solve(0, 100, lambda done, _: done >= 20).iterations == 32
    begun, waited = perf_counter(), 0.0

    def wait(done: int, _: float) -> bool:
        nonlocal waited
        asked = perf_counter()
        sleep(0.05)
        waited += perf_counter() - asked
        return done >= 20

    spent = SpotSolver(found.spot, 1e9).solve(0, 100, wait).seconds
    assert spent <= perf_counter() - begun - waited  # what its caller takes does not count


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


@pytest.mark.parametrize("pot", [1e-6, 100, 20_000_000])
def test_a_spot_is_the_same_in_any_unit(pot: float) -> None:
    """A bet of half the pot: half a bluff for a value bet, so both of three hands bet, and two of three call."""
    found = solved(spot("2s 2h 2d 3c 3d", "KK", "AA,QQ", "river 50", pot, 5 * pot), 0.05)
    assert found.values == pytest.approx((pot / 3, 2 * pot / 3), rel=1e-3)
    bet, facing = found.decisions[0], found.decisions[2]
    assert bet.actions[1] == facing.line
    assert float(facing.line.removeprefix("bet ")) == pot / 2
    assert bet.frequencies()[facing.line] == pytest.approx(2 / 3, abs=5e-3)
    assert facing.frequencies()["call"] == pytest.approx(2 / 3, abs=5e-3)
    aces = found.facts()["hand_values"]["big blind"]["AdAc"]
    assert aces == pytest.approx(4 / 3 * pot, rel=1e-2)  # called two times of three
    assert found.spot.notes == []
    assert "0.000 of the pot" not in found.describe()


@pytest.mark.parametrize(
    "sizes, change, actions, notes",
    [
        ("river 1", {}, ("check", "bet 0.1"), []),
        ("river 1", {"min_bet": 1}, ("check", "bet 1"), ["Where bet 1 would be less than"]),
        ("river 1", {"min_bet": 30}, ("check", "all-in"), ["Where bet 1 would be less than"]),
        ("river 1", {"min_bet": 1e308}, ("check", "all-in"), ["Where bet 1 would be less than"]),
        ("river 33.333333333 33.333333334", {}, ("check", "bet 3.33333"), []),
        ("river 50", {"pot": 2_469_135}, ("check", "bet 1234568"), []),
        ("river 50", {"pot": 2.04, "stacks": 1e8}, ("check", "bet 1"), ["The pot of 2.04 is solved as 2."]),
    ],
)
def test_no_bet_is_changed_without_a_word(
    sizes: str, change: dict[str, float], actions: tuple[str, ...], notes: list[str]
) -> None:
    which = spot(RIVER, "AA", "KK", sizes, **({"stacks": 2 * change.get("pot", 10)} | change))
    assert solved(which, 1e9, 1).decisions[0].actions == actions
    assert [note.split(" the smallest")[0] for note in which.notes] == notes
    assert all(note in SpotSolver(which, 1e9).describe() for note in which.notes)


@pytest.mark.parametrize(
    ("sizes", "streets"),
    [("turn 75", "river"), ("flop 50, raise 100", "turn and the river"), ("turn 75, river 75", "")],
)
def test_streets_without_bets_are_named(sizes: str, streets: str) -> None:
    told = SpotSolver(spot("Qs 7h 2c 9d", "QQ", "77", sizes, stacks=40), 1e9).describe()
    assert told.startswith(f"no bets on the {streets}, for which no sizes are given; " if streets else "")
    assert ("no bets" in told) == bool(streets)


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


def test_ranges_of_a_run_are_its_strategy_along_the_line() -> None:
    policy, line, cards = Leaning(load_game("hulh")), "rrc/crc/cc", "Qs 7h 2c 9d 4s"
    state, ranges = ranges_after(policy, line, parse_board(cards))
    rounds, boards = line.split("/"), ["", " / Qs 7h 2c", " / 9d"]
    names = {frozenset(hand): i for i, hand in enumerate(map(tuple, all_hands(52, 2).tolist()))}
    reach = {}
    for hand in ("AhKh", "6c5c"):
        chances = [1.0, 1.0]
        for street, letters in enumerate(rounds):
            before = "".join(f"{boards[s]} / {rounds[s]}" for s in range(street)) + boards[street]
            for place, letter in enumerate(letters):
                answer = query(policy, f"{hand}{before} / {letters[:place]}")
                word = {"r": ("bet", "raise"), "c": ("check", "call")}[letter]
                share = next(p for action, p in answer.probabilities.items() if action in word)
                chances[answer.situation.state.actor] *= share
        reach[hand] = chances
    for player in (0, 1):
        one, other = (ranges[player][names[frozenset(parse_board(hand))]] for hand in reach)
        assert one * reach["6c5c"][player] == pytest.approx(other * reach["AhKh"][player], rel=1e-4)
        assert ranges[player].max() == 1
    whole = solve_spot(cards, "river 75", stacks=5, agent=Agent(policy), line=line, iterations=1)
    assert whole.spot.pot == state.pot
    np.testing.assert_array_equal(whole.spot.ranges, ranges)
    mine = Spot.parse(cards, "river 75", stacks=5, pot=3, dealer="AA", policy=policy, line=line)
    assert (mine.pot, mine.ranges[0].sum()) == (3, 6)
    np.testing.assert_array_equal(mine.ranges[1], ranges[1])


@pytest.mark.parametrize(
    "name, line, sentence",
    [
        ("fhp", "r", "must end where the last of the 3 cards"),
        ("fhp", "rc/c", "must end where the last of the 3 cards"),
        ("fhp", "rx", "'x' in the betting 'rx' is not an action"),
        ("fhp", "rf", "must end where"),
        ("fhp", "rc", "Nobody runs out of chips in 'fhp': give the stacks"),
        ("leduc", "rc", "Ranges of a spot come from hold'em, and 'leduc' is not it"),
    ],
)
def test_a_line_that_leads_nowhere_is_a_sentence(name: str, line: str, sentence: str) -> None:
    policy = scripted_policy("uniform", load_game(name))
    with pytest.raises(DeepCFRError, match=sentence):
        Spot.parse("Qs 7h 2c", "flop 75", policy=policy, line=line)


def test_the_stacks_of_a_bet_size_game_are_what_is_left() -> None:
    policy = scripted_policy("uniform", ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"]))
    which = Spot.parse("Qs 7h 2c", "flop 50", policy=policy, line="r2 c")
    assert (which.pot, which.stacks) == (4, 98)
    assert [weights.max() for weights in which.ranges] == [1, 1]
    assert not is_holdem(replace(PRESETS["fhp"], first_player=(0, 0)))


def test_a_hand_that_a_run_has_almost_never_is_left_out() -> None:
    """Of two hands one calls with certainty, and one a billion times less often than that."""
    policy, board = scripted_policy("uniform", load_game("fhp")), parse_board("Qs 7h 2c")

    class Folding(Policy):
        kind, game = "folding", policy.game

        def probabilities(self, infosets: Infosets) -> torch.Tensor:
            rows = policy.probabilities(infosets)
            rows[:, CALL] *= torch.where(torch.arange(len(rows)) % 2 == 0, 1, 1e-11)
            return rows

    (_, (_, plain)), (_, (_, folding)) = (ranges_after(each, "rc", board) for each in (policy, Folding()))
    assert 0 < np.count_nonzero(folding) < np.count_nonzero(plain)
    assert folding[folding > 0].min() >= 1e-9


@pytest.mark.parametrize("line, aggressor", [("rc", "dealer"), ("crc", "big blind"), ("cc", None)])
def test_who_bet_last_is_as_in_the_line(line: str, aggressor: str | None) -> None:
    policy = Leaning(load_game("fhp"))
    assert Spot.parse("Qs 7h 2c", "flop 75", stacks=5, policy=policy, line=line).aggressor == aggressor


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"board": "Qs 7h"}, "3, 4 or 5 cards, but 2"),
        ({"board": "Q♠ 7♥ Q♤"}, "card Qs is given 2 times"),
        ({"board": "Qs 7h Xx"}, "'Xx' is not a card of hold'em"),
        ({"dealer": "KcKd"}, "range of the dealer has no hand that is possible"),
        ({"first": ""}, "range of the big blind has no hand"),
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
        ({"dealer": "AsQs", "first": "AsQs"}, "No hand of the dealer's range"),
        ({"lock": {"line": "bet 3"}}, "no decision after 'bet 3'"),
        ({"lock": {"line": "", "frequencies": {"check": 1}}}, "actions after '' are check, all-in, not check"),
        ({"lock": {"line": "", "frequencies": {"check": 0.5, "all-in": 0.6}}}, "do not sum to 1"),
        ({"lock": {"line": ""}}, "neither frequencies nor the probabilities of a hand"),
        ({"lock": {"line": "", "hands": {"AsAd": [0, 1]}}}, "AsAd is no hand of the big blind's range"),
        ({"lock": {"line": "", "hands": {"KsKd": 1}}}, "KsKd is no hand"),
        (
            {"lock": {"line": "", "hands": {"KsKd": [1, 0], "KdKs": [0, 1]}}},
            "KsKd and KdKs are the same hand",
        ),
        ({"lock": {"line": "", "frequencies": {"check": 10**400, "all-in": 0}}}, "do not sum to 1"),
        ({"lock": {"line": "", "hands": []}}, "'hands' of the lock after '' must be an object"),
        ({"lock": {"line": "", "frequencies": 3}}, "'frequencies' of the lock after '' must be an object"),
        ({"lock": {"frequencies": {"check": 1, "all-in": 0}}}, "A lock has no 'line'"),
        (
            {"lock": {"line": "", "player": "dealer", "frequencies": {"check": 1, "all-in": 0}}},
            "After '' the big blind acts",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_mistakes_are_sentences(change: dict[str, Any], sentence: str) -> None:
    good: dict[str, Any] = {"board": RIVER, "dealer": POLAR[0], "first": POLAR[1], "sizes": "river 100"}
    locks = [change["lock"]] if "lock" in change else ()
    with pytest.raises(ConfigError, match=sentence):
        SpotSolver(spot(**{name: value for name, value in (good | change).items() if name != "lock"}), 1e9, locks=locks)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="needs a value for the stacks and the range of the big blind, or an agent"):
        Spot.parse("Qs 7h 2c", "flop 75", pot=3, dealer="AA")
    for limit, sentence in (("exploitability", "exploitability must be at least 0"), ("threads", "at least 1 thread")):
        with pytest.raises(ConfigError, match=sentence):
            solve_spot("no board", **{limit: -1})  # type: ignore[arg-type]


def test_locked_hands_are_not_merged_by_suit() -> None:
    hands = {name: [0.5, 0.5] for name in ("AsAd", "AsAh", "AsAc", "AdAc", "AhAc", "AhAd")}
    hands |= {"AhAd": [0.0, 1.0], "AdAc": [1.0, 0.0]}
    which = spot("Qs 7s 2s 9s 4d", "KK", "AA", "river 50")
    found = SpotSolver(which, 1e9, locks=[{"line": "", "hands": hands}]).solve(0, 5)
    played = found.facts()["decisions"][0]["hands"]
    assert played == {name: pytest.approx(shares, abs=1e-4) for name, shares in hands.items()}


ARGUMENTS = (
    "spot", "--board", RIVER, "--pot", 10, "--stacks", 10, "--dealer", "AA", "--big-blind", POLAR[1],
    "--sizes", "river 100", "--threads", 1,
)  # fmt: skip


def test_the_command_prints_and_writes_the_solution(tmp_path: Path) -> None:
    path = tmp_path / "spot.json"
    shown = deepcfr(*ARGUMENTS, "--out", path).out
    assert " of 10 in the mean" in shown
    assert "mbb" not in shown
    stored = json.loads(path.read_text())
    first = stored["decisions"][0]
    assert first["player"] == "big blind"
    assert list(first["frequencies"]) == ["check", "all-in"]
    assert (len(first["hands"]), first["hands"]["KhKd"][1] > 0.99) == (7, True)
    assert stored["exploitability_percent"] <= 0.05
    assert (stored["dealer"], stored["big_blind"], stored["sizes"]) == ("AA", "KK,43s", "river 100")
    equities = stored["hand_equities"]["dealer"]
    assert equities == dict.fromkeys(stored["hand_values"]["dealer"], pytest.approx(40 / 7, abs=1e-3))
    facts = deepcfr(*ARGUMENTS, "--json", "--iterations", 3).json
    assert (facts["iterations"], "hands" in facts["decisions"][0]) == (3, False)
    assert sum(facts["values"].values()) == pytest.approx(10)
    assert deepcfr(*ARGUMENTS, "--json", "--exploitability", "0.25%").json["exploitability_percent"] <= 0.25
    for options, sentence in (
        (("--out", path), f"'{path}' exists"),
        (("--iterations", 0), "needs at least 1 iteration"),
        (("--threads", 0), "needs at least 1 thread"),
        (("--line", "rc"), "The line 'rc' needs an agent"),
        (("--policy", "current"), "--policy current needs --from"),
        (("--search.iterations", 5), "and none is named"),
        (("--cap", 3), "A cap of 3 needs a rake"),
        (("--exploitability", -1), "The exploitability must be at least 0"),
    ):
        assert sentence in problem(deepcfr(*ARGUMENTS, *options))


def test_locks_are_read_from_a_file(tmp_path: Path) -> None:
    lock = tmp_path / "lock.json"
    for one in ({}, {"hands": None}):
        lock.write_text(json.dumps([{"line": "", "frequencies": {"check": 0, "all-in": 1}} | one]))
        locked = deepcfr(*ARGUMENTS, "--json", "--iterations", 5, "--lock", lock).json
        assert locked["decisions"][0]["frequencies"] == {"check": 0, "all-in": 1}
    for text, sentence in (
        ("{}", "must hold a list of decisions"),
        ("[3]", "must be a list of decisions"),
        ('[{"line": "", "hands": {"KsKd": [1, 0], "KsKd": [0, 1]}}]', "'KsKd' is twice in one object"),
        ("[" * 100_000, "is not JSON"),
    ):
        lock.write_text(text)
        assert sentence in problem(deepcfr(*ARGUMENTS, "--lock", lock))


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

    def breaking(*given: Any) -> Solution:
        folder.rmdir()
        folder.write_text("")
        return solve(*given)

    monkeypatch.setattr(SpotSolver, "solve", breaking)
    result = deepcfr(*ARGUMENTS, "--out", folder / "spot.json")
    assert "exploitability 0.0" in result.out
    assert (result.status, "cannot be written" in result.err) == (2, True)


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


@pytest.mark.parametrize("seed", range(6))
def test_a_hand_that_no_opposing_hand_is_possible_with_is_left_out(seed: int) -> None:
    """Reach is a difference of sums, and its rounding is no reach."""
    weights = [parse_range("QdJd,AKs") * 0.5, parse_range("QdTd,QdTc,JdTh,Jd9h,QdQs")]
    weights[1] *= np.random.default_rng(seed).random(len(weights[1]))
    found = solved(Spot(parse_board(RIVER), 10, 10, (weights[0], weights[1]), Sizes.parse("river 50")), 1e9, 1).facts()
    decision = found["decisions"][1]
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


def test_a_goal_is_a_percentage_of_the_pot() -> None:
    assert [goal_of(given) for given in (3, "3", "0.5%", " .05 %")] == pytest.approx([3, 3, 0.5, 0.05])
    for given in ("%", "1 mbb", "5%%", -1, "nan", "1e400%"):
        with pytest.raises(ConfigError, match=r"The exploitability must be at least 0|is no percentage of the pot"):
            goal_of(given)


def test_a_goal_that_was_not_reached_is_named() -> None:
    solver = SpotSolver(spot(RIVER, *POLAR, "river 50", pot=20), 1e9)
    short, reached = solver.solve("0.00005%", 20), solver.solve("0.5%", 2_000)
    assert short.facts()["goal_percent"] == short.goal == 0.00005
    assert "the goal, an exploitability of 5e-05% of the pot, was not reached" in short.describe()
    assert "goal" not in reached.describe()
    assert f"exploitability {reached.exploitability:.3g}%" in reached.describe()


def test_rare_actions_keep_their_shares_in_json() -> None:
    """Six places of every probability and value; shares still sum to 1."""
    found = solved(spot(RIVER, *POLAR, "river 50, allin"), 0.5)
    first, rare = found.decisions[0], [2.4e-5 / 7, 1.1e-5]
    strategy = np.tile([*rare, 1 - sum(rare)], (len(found.holes), 1))
    changed = replace(first, strategy=strategy, values=np.full_like(first.values, 7.123456))
    row = replace(found, decisions=(changed,)).facts()["decisions"][0]
    for written in [*row["hands"].values(), list(row["frequencies"].values())]:
        assert written == [3e-6, 1.1e-5, 0.999986]
    assert all(written == [7.123456] * 3 for written in row["values"].values())


def test_no_number_is_minus_zero() -> None:
    found = solved(spot(RIVER, "AA", "43s", "river 50"), 0.005)
    small = replace(found, values=(10 + 1e-9, -1e-9), equities=(10.0, -0.0))
    assert "-0.000" not in small.describe()
    assert "big blind: 0.000 of the pot; 0.000 if both check to the end" in small.describe()
    assert "-0.0" not in re.findall(r"-0\.0\b", json.dumps(found.facts()))


@pytest.mark.parametrize("board", ["Qs 7h 2c 9d", "Qs 7s 2h 2c", "Qs 7s 2s"])
def test_the_estimate_of_memory_counts_the_hands_of_all_boards(board: str) -> None:
    which = spot(board, "QQ,T8s,A5o", "77,AQs,JTs", "turn 75, river 75 150, raise 100", stacks=95)
    solver = SpotSolver(which, 1e9)
    rounds = round_trees(solver.game)
    inside = subgame(solver.game, rounds, solver.board, np.array([0]))
    hands = [sum(map(len, kept)) for kept in inside.kept if kept]
    assert count_hands(solver.board, solver.game.rules, merge=solver.game.suits == "canonical") == hands
    arrays = [[v for v in vars(board).values() if isinstance(v, np.ndarray)] for kept in inside.kept for board in kept]
    boards = sum(array.nbytes for board in arrays for array in board if len(array) < 1_326)
    tables = sum(
        8 * tree.num_edges * len(board) for tree, kept in zip(rounds, inside.kept, strict=True) for board in kept
    )
    assert boards + tables <= solver.bytes < 1.5 * (boards + tables)


def test_tables_in_16_bits_solve_what_does_not_fit_in_32() -> None:
    which = spot("Qs 7h 2c 9d", "QQ,T8s", "77,AQs", "turn 75, river 75", stacks=40)
    whole = SpotSolver(which, 1e9)
    small = SpotSolver(which, 0.99 * whole.bytes)
    assert (whole.compact, small.compact) == (False, True)
    assert small.bytes < 0.99 * whole.bytes
    assert ["16 bits" in solver.describe() for solver in (small, whole)] == [True, False]
    inside = subgame(small.game, round_trees(small.game), small.board, np.array([0]))
    large, compact = (
        sum(array.nbytes for tables in solver._tables for table in tables for array in table.arrays().values())
        for solver in (SubgameSolver(inside, small.reach, compact=flag) for flag in (False, True))
    )
    assert 0.5 < compact / large < 0.6
    one, other = whole.solve(0.25, 500), small.solve(0.25, 500)
    assert max(one.exploitability, other.exploitability) <= 0.25
    assert other.values == pytest.approx(one.values, abs=0.05)


def test_spots_have_discounts_that_take_fewer_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, wide = [], ("22+,A2s+,K9s+,QTs+,ATo+,KJo+", "22+,A2s+,K5s+,Q8s+,J8s+,T8s+,A8o+,KTo+")
    for variant in (spot_solver._VARIANT, DISCOUNTED):
        monkeypatch.setattr(spot_solver, "_VARIANT", variant)
        boards = "Qs 7h 2c 9d 4s", "As Kd 8s 5c 3s", "Td Tc 6h 5h 2s"
        spots = [spot(board, *wide, "river 33 75 150, raise 100, allin", stacks=95) for board in boards]
        taken.append(sum(solved(one, 0.1).iterations for one in spots))
    assert taken[0] < 0.9 * taken[1]


def test_exploitability_is_measured_at_the_end_and_less_often_later() -> None:
    which = spot(RIVER, "QQ,T8s,A5o", "77,AQs,JTs", "river 75, raise 100", stacks=40)
    seen: list[tuple[int, float]] = []
    solution = SpotSolver(which, 1e9).solve(0.0, 305, lambda iterations, now: seen.append((iterations, now)))
    done = [0, *(iterations for iterations, _ in seen)]
    assert (done[-1], max(after - before for before, after in pairwise(done))) == (305, 16)
    measured = dict(reversed([(now, iterations) for iterations, now in seen]))  # the first report of each
    assert sorted(measured.values()) == [16, 32, 64, 128, 256]  # the first is before any
    assert solution.exploitability < sorted(measured)[1]  # it may rise a little
    near = max(now for now, iterations in measured.items() if iterations > 80)
    assert SpotSolver(which, 1e9).solve(near, 305).iterations <= 160  # it is measured more often when it is near
