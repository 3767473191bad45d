"""Own hands are read as pokerkit replays them, and decisions cost what their spots say."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from pokerkit import Card, StandardHighHand

from command_line import deepcfr, problem
from deepcfr.api import load
from deepcfr.core.errors import ConfigError
from deepcfr.core.types import Doubles
from deepcfr.defaults import HANDS_SIZES
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.game.public_state import PublicState
from deepcfr.interop import own_hand_review
from deepcfr.interop.own_hand_review import OwnHandReview, agent_ranges, preset_ranges, read_ranges
from deepcfr.interop.own_hands import OwnAction, OwnHand, find_hero, read_own_hands
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.search.spot import parse_board
from deepcfr.search.spot_ranges import play_ranges, ranges_after
from web_site import MODELS

HAND = """\
PokerStars Hand #{number}:  Hold'em No Limit ($0.50/$1.00 USD) - 2024/03/01 20:15:00 ET
Table 'Example' 6-max Seat #3 is the button
Seat 1: alice ($100 in chips)
Seat 2: bob ($120.50 in chips)
Seat 3: hero ($100 in chips)
Seat 4: dave ($97.25 in chips)
Seat 5: erin ($7.50 in chips)
Seat 6: frank ($100 in chips)
dave: posts small blind $0.50
erin: posts big blind $1
*** HOLE CARDS ***
Dealt to hero [{cards}]
frank: folds
alice: folds
bob: {bob}
hero: raises $1.50 to $2.50
dave: folds
erin: calls $1.50
{later}"""
FLOP = "*** FLOP *** [Ks 7h 2c]\n"
SHOVED = FLOP + "erin: bets $5 and is all-in\nhero: {answer}\n"
#: three sets of hands whose equities are far apart
RANGES = '[raise]\nBTN = "AhAd"\n[call]\nany = "KdKc"\n'


def history(number: int = 1, cards: str = "Ah Ad", bob: str = "folds", later: str = "") -> str:
    return HAND.format(number=number, cards=cards, bob=bob, later=later)


def reviewer(folder: Path, ranges: str = RANGES, iterations: int = 400) -> OwnHandReview:
    return OwnHandReview(folder, read_ranges(ranges), HANDS_SIZES, "0.01%", iterations, 1)


def equity(hole: str, other: str, board: str) -> float:
    """By dealing every turn and river, with pokerkit's order of hands."""
    shown = [*Card.parse(hole + other + board)]
    deck = [card for card in Card.parse("".join(r + s for r in "23456789TJQKA" for s in "cdhs")) if card not in shown]
    won = 0.0
    runouts = list(combinations(deck, 2))
    for runout in runouts:
        cards = [*Card.parse(board), *runout]
        mine, theirs = (StandardHighHand.from_game(Card.parse(two), cards) for two in (hole, other))
        won += 1.0 if mine > theirs else 0.5 if mine == theirs else 0.0
    return won / len(runouts)


def test_a_hand_has_the_flop_that_the_text_has() -> None:
    later = FLOP + "erin: checks\nhero: bets $2\nerin: folds\n"
    (hand,), left = read_own_hands(history(later=later))
    assert left == {}
    assert (hand.names, hand.positions, hand.roles) == (("hero", "erin"), ("BTN", "BB"), ("raise", "call"))
    assert (hand.pot, hand.stacks, hand.board, hand.holes) == (5.5, 5.0, "Ks 7h 2c", ("AhAd", ""))
    assert [(a.player, a.kind, a.to) for a in hand.streets[0]] == [(1, "cc", 0.0), (0, "cbr", 2.0), (1, "f", 0.0)]
    assert find_hero([hand], {}) == "hero"


def test_hands_of_logs_of_the_acpc_are_read() -> None:
    """Amounts are totals of the hand; a log without amounts is of limit."""
    log = (
        "# a comment\nSTATE:0:cr300c/cr600c/cc/r1200f:AhKd|QcQd/7h8h9c/2s/3d:600|-600:alice|bob\n"
        "STATE:1:rc/crc/cc/rf:AhKd|QcQd/7h8h9c/2s/3d:40|-40:bob|alice\nSTATE:2:f:AhKd|QcQd:50|-50:alice|bob\nSCORE:1|-1:a|b"
    )
    (hand,), left = read_own_hands(log)
    assert left == {
        "1": "It is limit hold'em: spots have the bets of no-limit.",
        "2": "The hand ends before the flop.",
    }
    assert (hand.number, hand.names, hand.positions) == ("0", ("bob", "alice"), ("BTN", "BB"))
    assert (hand.roles, hand.holes) == (("call", "raise"), ("QcQd", "AhKd"))
    assert (hand.pot, hand.stacks, hand.board) == (6.0, 197.0, "7h 8h 9c 2s 3d")
    assert [[(a.player, a.kind, a.to) for a in street] for street in hand.streets] == [
        [(1, "cc", 0.0), (0, "cbr", 3.0), (1, "cc", 0.0)],
        [(1, "cc", 0.0), (0, "cc", 0.0)],
        [(1, "cbr", 6.0), (0, "f", 0.0)],
    ]


BLINDS = "Only hands with one small and one big blind, and without antes, are read."


def test_hands_without_a_flop_of_two_players_are_left_out_with_a_reason() -> None:
    three = history(2, bob="calls $1", later="bob: calls $1.50\n" + FLOP + "erin: checks\nbob: checks\nhero: checks\n")
    before = history(3).replace("erin: calls $1.50", "erin: folds")
    ante = history(4, later=FLOP).replace("dave: posts", "alice: posts the ante $0.10\ndave: posts")
    hands, left = read_own_hands("\n\n\n".join([three, before, ante, history(5, later=SHOVED.format(answer="folds"))]))
    assert [hand.number for hand in hands] == ["5"]
    assert left == {
        "2": "3 players see the flop.",
        "3": "The hand ends before the flop.",
        "4": BLINDS,
    }


def test_an_answer_to_an_all_in_costs_what_the_equity_says(tmp_path: Path) -> None:
    (hand,), _ = read_own_hands(history(later=SHOVED.format(answer="calls $5")))
    rows, left = reviewer(tmp_path, iterations=3).all([hand], "hero", lambda _: None)  # a call ends the betting
    assert left == {}
    (row,) = rows
    called = equity("AhAd", "KdKc", "Ks7h2c") * 15.5 - 5
    assert row.values["fold"] == 0
    assert row.values["call"] == pytest.approx(called, abs=1e-3)
    assert (row.best, row.action) == ("fold", "call")
    assert row.lost == pytest.approx(-called, abs=1e-3)


def from_turn(hand: OwnHand, board: str, *streets: tuple[OwnAction, ...]) -> OwnHand:
    """A hand of which nothing before the turn is reviewed, whose spots are small."""
    return replace(hand, board=board, streets=((), *streets))


def test_ranges_of_a_street_are_those_that_took_the_actions_before(tmp_path: Path) -> None:
    ranges = '[raise]\nBTN = "AhAd"\n[call]\nany = "KdKc,9d8d"\n'
    (hand,), _ = read_own_hands(history(later=SHOVED.format(answer="folds")))
    turn = OwnAction(1, "cbr", 4.0), OwnAction(0, "cc", 0.0)
    river = OwnAction(1, "cc", 0.0), OwnAction(0, "cc", 0.0)
    rows = reviewer(tmp_path, ranges).review(from_turn(hand, "Ks 7h 2c 4s 3s", turn, river), "hero", lambda _: None)
    assert [(row.street, row.line, row.action) for row in rows] == [
        ("turn", "bet 4", "call"),
        ("river", "check", "check"),
    ]
    spots = [json.loads((tmp_path / "spots" / f"1-{street}.json").read_text()) for street in ("turn", "river")]
    first = spots[0]["decisions"][0]
    bet = list(first["frequencies"]).index("bet 4")
    bluff, value = (first["hands"][hand][bet] for hand in ("9d8d", "KdKc"))  # a hand without a pair bets less often
    kings, air = spots[1]["big_blind"].split(",9d8d:")
    assert float(air) == pytest.approx(bluff / value, abs=1e-3)
    assert (kings, 0.2 < float(air) < 0.8) == ("KdKc", True)
    assert [(spot["pot"], spot["stacks"]) for spot in spots] == [(5.5, 5.0), (13.5, 1.0)]


def test_a_hand_that_the_range_lacks_is_reviewed_too(tmp_path: Path) -> None:
    (hand,), _ = read_own_hands(history(later=SHOVED.format(answer="folds")))
    river = from_turn(hand, "Ks 7h 2c 4s 3s", (), (OwnAction(1, "cbr", 5.0), OwnAction(0, "f", 0.0)))
    (row,) = reviewer(tmp_path, RANGES.replace("AhAd", "QhQd")).review(river, "hero", lambda _: None)
    assert row.values == {"fold": 0.0, "call": -5.0}  # against three kings
    assert (row.cards, row.best, row.lost) == ("AhAd", "fold", 0.0)


def test_a_fold_where_a_check_is_free_loses_all_that_the_hand_is_worth(tmp_path: Path) -> None:
    (hand,), _ = read_own_hands(history(later=FLOP + "erin: checks\nhero: folds\n"))
    assert hand.streets == ((OwnAction(1, "cc", 0.0), OwnAction(0, "f", 0.0)),)
    river = from_turn(hand, "Ks 7h 2c 4s 3s", (), hand.streets[0])
    (row,) = reviewer(tmp_path, RANGES.replace("KdKc", "QdQc")).review(river, "hero", lambda _: None)
    assert (row.action, row.values["check"]) == ("fold", 5.5)  # against queens it has the whole pot
    assert row.lost == max(row.values.values()) >= 5.5


def test_what_was_solved_is_not_solved_again_unless_something_changed(tmp_path: Path) -> None:
    (hand,), _ = read_own_hands(history(later=SHOVED.format(answer="folds")))
    river = from_turn(hand, "Ks 7h 2c 4s 3s", (), (OwnAction(1, "cbr", 5.0), OwnAction(0, "f", 0.0)))
    solved: list[str] = []
    first = reviewer(tmp_path).review(river, "hero", solved.append)
    assert reviewer(tmp_path).review(river, "hero", solved.append) == first
    assert solved == ["hand 1, river"]
    reviewer(tmp_path, RANGES.replace("KdKc", "7d7c")).review(river, "hero", solved.append)
    assert solved == ["hand 1, river"] * 2
    kept = tmp_path / "1.json"
    kept.write_text(kept.read_text().replace('"fold"', '"call"', 1))
    rows, left = reviewer(tmp_path).all([river], "hero", solved.append)
    assert rows == []
    assert "is damaged" in left["1"]


def test_a_hand_does_not_change_the_ranges_of_the_next_one(tmp_path: Path) -> None:
    ranges = '[raise]\nBTN = "AhAd"\n[call]\nany = "KdKc,9d8d"\n'
    (hand,), _ = read_own_hands(history(later=SHOVED.format(answer="folds")))
    turn = (OwnAction(1, "cc", 0.0), OwnAction(0, "cbr", 4.0), OwnAction(1, "cc", 0.0))
    hands = [replace(from_turn(hand, "Ks 7h 2c 4s", turn), number=number) for number in ("1", "2")]
    first, second = (row.values for row in reviewer(tmp_path, ranges).all(hands, "hero", lambda _: None)[0])
    assert first == second


def test_what_pokerkit_would_leave_out_is_refused() -> None:
    shoved = SHOVED.format(answer="folds")
    dead = history(1, later=shoved).replace("erin: posts big", "frank: posts small & big blinds $1.50\nerin: posts big")
    none = history(2, later=shoved).replace("dave: posts small blind $0.50\n", "")
    omaha = history(3, later=shoved).replace("Hold'em No Limit", "Omaha Pot Limit")
    hands, left = read_own_hands("\n\n\n".join([dead, none, omaha, history(4, later=shoved), history(4, later=shoved)]))
    assert [hand.number for hand in hands] == ["4"]
    unread = "It is no hand of hold'em that pokerkit can read."
    assert left == {"1": BLINDS, "2": BLINDS, "3": unread, "4 again": "It is there twice."}
    with pytest.raises(ConfigError, match="nobody shows cards on no flop; hero do"):
        find_hero(hands, left, "nobody")
    with pytest.raises(
        ConfigError, match=r"There is no hand to review\. Hands left out: 2\. Only hands with one small"
    ):
        find_hero([], left)
    with pytest.raises(ConfigError, match="neither a text of PokerStars, nor PHH, nor a log"):
        read_own_hands("Poker Hand #1: GGPoker")


def test_texts_of_pokerstars_are_read_as_sites_send_them() -> None:
    """Headings of a mail, no line between hands, chat that looks like an action, and a board that is run twice."""
    twice = SHOVED.format(answer="calls $5") + "".join(
        f"*** {run} TURN *** [Ks 7h 2c] [{turn}]\n*** {run} RIVER *** [Ks 7h 2c {turn}] [{river}]\n"
        for run, turn, river in (("FIRST", "4s", "3s"), ("SECOND", "4h", "3h"))
    )
    shown = "erin: shows [Kd Kc] (three of a kind, Kings)\nhero: shows [Ah Ad] (a pair of Aces)\n"
    chat = FLOP + 'erin said, "hero: folds"\n' + SHOVED.format(answer="folds").removeprefix(FLOP)
    split = history(3, later=chat).replace("Hold'em No", "Split Hold'em No")
    heads = "***********  # {} **************\n"
    parts = history(1, later=twice + 2 * ("*** SHOW DOWN ***\n" + shown)), history(2, later=chat), split
    text = "".join(heads.format(place) + part for place, part in enumerate(parts, 1)).replace("erin", "calls: 2 much")
    hands, left = read_own_hands(text)
    assert {hand.names for hand in hands} == {("hero", "calls: 2 much")}
    assert [hand.number for hand in hands] == ["1", "2"]
    shove = OwnAction(1, "cbr", 5.0)
    assert [hand.streets for hand in hands] == [((shove, OwnAction(0, kind, 0.0)),) for kind in ("cc", "f")]
    assert left == {"3": "'Split Hold'em' is not the hold'em of spots."}


PHH = """\
variant = "NT"
antes = [0, 0]
blinds_or_straddles = [1, 2]
min_bet = 2
starting_stacks = [200, 200]
actions = ["d dh p1 ????", "d dh p2 AhAd # me", "p2 cbr 6", "p1 cc", "d db KsQh2c", "p1 cc", "p2 f"]
_game = "hunl-200"
"""


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("2c", "Ad", "The card Ad is dealt twice."),
        ("200, 200", "nan, nan", "It is no hand of hold'em that pokerkit can read."),
        ('"p2 f"', "[1]", "It is no hand of hold'em that pokerkit can read."),
        ("_game", 'players = ["a"]\n_game', "It is no hand of hold'em that pokerkit can read."),
        ("_game", "_board_cards = [0, 3]\n_game", "Board cards by round are [0, 3], which is not hold'em."),
    ],
)
def test_fields_of_phh_that_are_none_leave_the_hand_out(old: str, new: str, why: str) -> None:
    (hand,), _ = read_own_hands(PHH)  # with a field of the user's own
    assert (hand.names, hand.holes, hand.pot) == (("p2", "p1"), ("AhAd", ""), 6.0)
    assert read_own_hands(PHH.replace(old, new)) == ([], {"1": why})


@pytest.mark.parametrize(
    ("seats", "names"),
    [
        (3, "SB BB BTN"),
        (6, "SB BB LJ HJ CO BTN"),
        (9, "SB BB UTG UTG+1 UTG+2 LJ HJ CO BTN"),
    ],
)
def test_seats_are_named_from_the_button(seats: int, names: str) -> None:
    blinds = [1, 2, *[0] * (seats - 2)]
    for hero in range(2, seats):
        folds = [f"p{seat + 1} f" for seat in range(2, seats) if seat != hero]
        before, after = (folds[: hero - 2], folds[hero - 2 :])
        played = [*before, f"p{hero + 1} cbr 5", *after, "p1 f", "p2 cc", "d db KsQh2c", "p2 cc", f"p{hero + 1} cc"]
        dealt = [f"d dh p{seat + 1} {'AhAd' if seat == hero else '????'}" for seat in range(seats)]
        fields = {
            "variant": "NT", "antes": [0] * seats, "blinds_or_straddles": blinds, "min_bet": 2,
            "starting_stacks": [200] * seats, "actions": [*dealt, *played],
        }  # fmt: skip
        text = "\n".join(f"{name} = {value!r}" for name, value in fields.items()) + '\nhand = "../x"\n'
        (hand,), _ = read_own_hands(text)
        assert hand.positions == (names.split()[hero], "BB")
        assert (hand.number, hand.pot, hand.roles) == ("1", 5.5, ("raise", "call"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('raise = "AA"', "'raise' must be a table"),
        ('[raise]\nUtg = "AA"', "'Utg' under"),
        ('[raise]\nany = "AA:0"', "has no hands"),
    ],
)
def test_wrong_ranges_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_ranges(text)


def test_the_ranges_that_ship_have_every_role() -> None:
    ranges = read_ranges(preset_ranges())
    assert set(ranges) == {"raise", "call", "3-bet", "call 3-bet", "4-bet", "call 4-bet", "limp", "check"}
    assert all("any" in part and all(weights.any() for weights in part.values()) for part in ranges.values())
    with pytest.raises(ConfigError, match="'shove' is no role"):
        read_ranges('[shove]\nany = "AA"\n')


def test_an_agent_has_ranges_for_both_players_of_a_heads_up_hand() -> None:
    policy = load(MODELS / "hulh").policy
    ranges = read_ranges(agent_ranges(policy))
    both = {"call", "raise", "call 3-bet", "3-bet", "call 4-bet", "4-bet"}
    assert {role: set(part) for role, part in ranges.items()} == {
        **{role: {"BTN", "BB"} for role in both}, "limp": {"BTN"}, "check": {"BB"},
    }  # fmt: skip
    board, seats = parse_board("2c 7d Jh"), (("BTN", 0), ("BB", 1))
    for line, roles in (
        ("cc", ("limp", "check")), ("rc", ("raise", "call")), ("crc", ("call", "raise")), ("rrc", ("call 3-bet", "3-bet")),
        ("crrc", ("3-bet", "call 3-bet")), ("rrrc", ("4-bet", "call 4-bet")), ("crrrc", ("call 4-bet", "4-bet")),
    ):  # fmt: skip
        _, exact = ranges_after(policy, line, board)
        for role, (position, player) in zip(roles, seats, strict=True):
            there = exact[player] > 0
            assert np.abs(ranges[role][position] - exact[player])[there].max() < 0.02, (line, role)


def test_the_command_reviews_hands_and_writes_its_ranges(tmp_path: Path) -> None:
    night, ranges = tmp_path / "night.txt", tmp_path / "ranges.toml"
    night.write_text(history(later=SHOVED.format(answer="folds")))
    assert deepcfr("hands", "--write-ranges", ranges).status == 0
    assert ranges.read_text() == preset_ranges()
    assert "exists" in problem(deepcfr("hands", "--write-ranges", ranges))
    assert deepcfr("hands", "--write-ranges", tmp_path / "hulh.toml", "--ranges", MODELS / "hulh").status == 0
    assert set(read_ranges((tmp_path / "hulh.toml").read_text())["limp"]) == {"BTN"}
    assert "nobody" in problem(deepcfr("hands", night, "--out", tmp_path / "out", "--ranges", "nobody"))
    ranges.write_text(RANGES)
    options = ("--out", tmp_path / "out", "--ranges", ranges, "--threads", 1, "--iterations", 3)
    found = json.loads(deepcfr("hands", night, *options, "--json").out)
    assert (found["hero"], [row["action"] for row in found["decisions"]]) == ("hero", ["fold"])
    said = deepcfr("hands", night, *options).out
    assert f"{found['decisions'][0]['lost']:.2f}  hand 1, flop Ks 7h 2c, BTN with AhAd after all-in: fold" in said
    assert "Give a file of hands" in problem(deepcfr("hands", night))


def test_the_example_has_twenty_hands_of_one_player() -> None:
    hands, refused = read_own_hands((Path(__file__).parents[2] / "examples" / "night.txt").read_text())
    assert (len(hands), refused, find_hero(hands, refused)) == (20, {}, "hero")
    assert sum(bool(street) for hand in hands for street in hand.streets) == 44


def test_ranges_of_an_agent_are_after_the_lowest_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    def note(policy: Policy, line: str, board: Sequence[int]) -> tuple[PublicState, tuple[Doubles, Doubles]]:
        lines.append(line)
        return play_ranges(policy, line, board)

    monkeypatch.setattr(own_hand_review, "play_ranges", note)
    agent_ranges(UniformPolicy(ImplicitPoker(BET_SIZE_GAMES["hunl-200"])))
    raised = ["r2.5", "r2.5 r8", "r2.5 r8 r24"]
    assert lines == [f"{line} c" for line in (*raised, "c", *(f"c {line}" for line in raised))]
