"""Later streets of a solved spot: values that carry on, cards that are alike, files that open again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepcfr.core.errors import CheckpointError, ConfigError
from deepcfr.game.cards import card_text, parse_card
from deepcfr.search.spot import NAMES, Sizes, Spot, parse_board
from deepcfr.search.spot_file import read_solution, write_solution
from deepcfr.search.spot_ranges import HOLDEM, hand_rows, parse_range
from deepcfr.search.spot_solution import Solution
from deepcfr.search.spot_solver import SpotSolver

RANGES = ("QQ,T8s,A5o:0.5,K9s", "77,AQs,JTs,K9s")
SPOTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "turn": ("Qs 7h 2c 9d", "turn 50, river 75, river donk 20, raise 2.5x, cap 1, allin", {"rake": 5, "cap": 1}),
    "turn with suits alike": ("Qs Qh Qd 2s", "turn 50, river 75, allin", {}),
    "flop": ("Qs 7h 2c", "bet 60, cap 0", {}),
}


@pytest.fixture(scope="module")
def solutions() -> dict[str, Solution]:
    found = {}
    for name, (board, sizes, more) in SPOTS.items():
        ranges = (parse_range(RANGES[0]), parse_range(RANGES[1] if name != "flop" else "77,AQs"))
        spot = Spot(parse_board(board), 10, 40, ranges, Sizes.parse(sizes), **more)
        found[name] = SpotSolver(spot, 2e9).solve(0, 30 if name != "flop" else 6)
    return found


def lines_that_end(solution: Solution) -> list[tuple[str, str]]:
    """The decisions on a solution's board after which an action ends the street, and that action."""
    decisions = {decision.line: decision for decision in solution.decisions}
    found = []
    for line, decision in decisions.items():
        for action in decision.actions:
            checks_through = action == "check" and line.rpartition(", ")[2] == "check"
            calls = action == "call" and decision.to_call < solution.spot.stacks and "all-in" not in line
            found += [(line, action)] * (checks_through or calls)
    return found


def reach_at(solution: Solution, player: int, line: str, action: str) -> np.ndarray:
    """How much of each hand [1326] of a player is left after a line and an action."""
    reach = solution.spot.ranges[player].copy()
    taken = [*filter(None, line.split(", ")), action]
    for place, name in enumerate(taken):
        before = next(each for each in solution.decisions if each.line == ", ".join(taken[:place]))
        if before.player == player:
            reach[hand_rows(solution.holes)] *= before.strategy[:, before.actions.index(name)]
    return reach


def mean_after(solution: Solution, later: dict[str, Solution], line: str, action: str) -> tuple[np.ndarray, np.ndarray]:
    """The value of an action that ends a street, [H], and the mean of its values on all next boards.

    It is nan for hands that are not shown. A next card is one of those that neither hand has, and a value counts there
    by the opponent's hands that are possible with the hand and the card.
    """
    before = next(each for each in solution.decisions if each.line == line)
    player, rows = before.player, hand_rows(solution.holes)
    reach = reach_at(solution, 1 - player, line, action)[rows]
    cards = (1 << solution.holes.astype(np.int64)).sum(1)
    apart = cards[:, None] & cards == 0
    met, total = apart @ reach, np.zeros(len(rows))
    for card, there in later.items():
        number = parse_card(HOLDEM, card)
        value = np.full(1326, 0.0)
        value[hand_rows(there.holes)] = np.nan_to_num(there.decisions[0].hand_values[player])
        possible = ~(solution.holes == number).any(1)
        total += np.where(possible, value[rows] * (apart @ (reach * possible)), 0)
    shown = before.shown & (met > 1e-6 * met.max())
    left = 52 - len(solution.spot.board) - 4
    cost = before.to_call
    values = np.where(shown, before.values[:, before.actions.index(action)], np.nan)
    return values, np.where(shown, total / np.where(met, met, 1) / left - cost, np.nan)


@pytest.mark.parametrize("name", SPOTS)
def test_values_of_a_street_are_the_means_of_those_on_all_next_boards(
    solutions: dict[str, Solution], name: str
) -> None:
    whole = solutions[name]
    ends = lines_that_end(whole)
    assert {", ".join(filter(None, end)) for end in ends} == whole.tree.ends().keys()
    left = [card_text(HOLDEM, card) for card in range(52) if card not in whole.spot.board]
    streets = [("", whole, ends)]
    if name == "flop":  # and from its turn to its river
        streets.append(("check, check / 9d / ", whole.at("check, check / 9d"), [("check", "check")]))
        streets = [("", whole, ends[:1]), streets[1]]
    for prefix, street, last in streets:
        for line, action in last:
            taken = ", ".join(filter(None, (line, action)))
            later = {card: whole.at(f"{prefix}{taken} / {card}") for card in left if card not in prefix}
            values, means = mean_after(street, later, line, action)
            assert np.isfinite(values).sum() > 3
            np.testing.assert_allclose(means, values, atol=2e-5)


@pytest.mark.parametrize("name", SPOTS)
def test_a_later_street_is_the_spot_there(solutions: dict[str, Solution], name: str) -> None:
    """Its pot, stacks, ranges and who bet last give the same decisions again; values add up to the pot less the rake."""
    whole = solutions[name]
    for taken in whole.tree.ends():
        street = whole.at(f"{taken} / 3h")
        again = SpotSolver(street.spot, 2e9)
        own = [(each.line, NAMES[each.player], list(each.actions)) for each in street.decisions]
        assert [
            (line, NAMES[player], names) for line, player, names in again.actions(again.rounds[street.spot.round])
        ] == own
        first = street.decisions[0]
        assert street.spot.pot == first.pot
        assert street.spot.pot + 2 * street.spot.stacks == pytest.approx(90)
        assert sum(street.values) <= street.spot.pot + 1e-6
        assert sum(street.values) >= street.spot.pot - 1 - 1e-6
        facts = json.loads(json.dumps(street.facts()))
        assert facts["board"].endswith("3h")
        assert facts["decisions"][0]["frequencies"] == pytest.approx(first.frequencies(), abs=1e-6)


def test_cards_that_are_alike_play_alike_and_a_report_has_all(solutions: dict[str, Solution]) -> None:
    whole = solutions["turn with suits alike"]
    assert whole.tree.solver.game.suits == "canonical"
    report = whole.runouts("check, check / * / check")
    cards = {each.card: each for each in report.cards}
    assert (len(cards), NAMES[report.player]) == (48, "dealer")
    for card in ("Ah", "Ad", "Ac", "As", "2c", "Kc"):
        alone = whole.decision(f"check, check / {card} / check")
        assert cards[card].frequencies == pytest.approx(alone.frequencies(), abs=1e-12)
        assert cards[card].values == pytest.approx(alone.range_values)
        assert cards[card].equities == pytest.approx(alone.range_equities)
    assert cards["Ah"].frequencies == cards["Ad"].frequencies != cards["As"].frequencies
    facts = json.loads(json.dumps(report.facts()))
    assert facts["cards"]["Kc"]["equities"]["dealer"] == pytest.approx(cards["Kc"].equities[0])


def test_a_card_after_which_no_two_hands_are_left_has_no_values() -> None:
    parts = {"dealer": "AhAd", "big_blind": "KhKd"}
    whole = SpotSolver(Spot.parse("2c 2d 7h 9s", "turn 50, river 50", pot=10, stacks=10, **parts), 1e9).solve(1, 20)
    cards = json.loads(json.dumps(whole.runouts("check, check / *").facts(), allow_nan=False))["cards"]
    with pytest.raises(ConfigError, match="but is 5"):
        whole.at(5)  # type: ignore[arg-type]
    assert cards["Ah"]["values"] is cards["Kd"]["equities"] is None
    assert cards["Ks"]["equities"] == {"dealer": 0.0, "big blind": 1.0} != cards["2h"]["equities"]


@pytest.mark.parametrize("name", SPOTS)
def test_a_file_opens_as_the_same_solution(solutions: dict[str, Solution], name: str, tmp_path: Path) -> None:
    whole, path = solutions[name], tmp_path / "spot.npz"
    write_solution(path, whole)
    opened = read_solution(path)
    assert opened.describe() == whole.describe()
    (taken, *_) = whole.tree.ends()
    for line in ("", f"{taken} / 3h", f"{taken} / 3h / check"):
        one, other = whole.decision(line), opened.decision(line)
        assert (one.line, one.actions, one.pot) == (other.line, other.actions, other.pot)
        assert other.frequencies() == pytest.approx(one.frequencies(), abs=1e-3)
        assert other.range_values == pytest.approx(one.range_values, abs=5e-3)
        np.testing.assert_allclose(other.strategy[one.shown], one.strategy[one.shown], atol=1e-3)
    members = np.load(path)
    assert members[members.files[-1]].dtype == np.float16
    assert {"about", "values", "equities", "2h 7d Qc" if name == "flop" else "about"} <= {*members.files}


def test_other_and_damaged_files_are_refused(solutions: dict[str, Solution], tmp_path: Path) -> None:
    path = tmp_path / "spot.npz"
    write_solution(path, solutions["turn"])
    whole = path.read_bytes()
    np.savez(tmp_path / "other.npz", strategies=np.zeros(3))
    for data in (
        whole[: len(whole) // 2],
        b"",
        (tmp_path / "other.npz").read_bytes(),
        whole[:40] + bytes(400) + whole[440:],
    ):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=r"spot\.npz' is no file of"):
            read_solution(path)
    place = len(whole) // 2  # of a river, which is read later
    path.write_bytes(whole[:place] + bytes(200) + whole[place + 200 :])
    opened = read_solution(path)
    with pytest.raises(CheckpointError, match=r"spot\.npz' is no file of"):
        opened.runouts("check, check / *")
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_solution(tmp_path / "missing.npz")


@pytest.mark.parametrize(
    "line, told",
    [
        ("check / 3h", "No decision comes after 'check' and a card"),
        ("all-in, call / 3h", "No decision comes after 'all-in, call' and a card"),
        ("check, check / Qs", "The card Qs is on the board."),
        ("check, check / 1x", "1x"),
        ("check, check / 3h / fold", "There is no decision after 'fold' on this board."),
        ("check, check / 3h / check, check / 4h", "No card is dealt after the river."),
    ],
)
def test_lines_that_lead_nowhere_are_sentences(solutions: dict[str, Solution], line: str, told: str) -> None:
    for ask in (solutions["turn"].decision, solutions["turn"].at):
        with pytest.raises(ConfigError, match=told):
            ask(line)
    with pytest.raises(ConfigError, match=r"A line of all next cards has \* for the last card"):
        solutions["turn"].runouts("check, check / 3h")
