"""Hand histories: refereed by pokerkit, read back as they were, and refused where they are of another game."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pokerkit import HandHistory

from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.rng import key
from deepcfr.game.betting import FOLD, NOT_TERMINAL, first_state, legal_actions, next_state
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.interop.acpc import PlayedHand, ProtocolError, gains
from deepcfr.interop.hand_history import load_histories
from deepcfr.interop.write_history import format_history, history_of, referee
from histories import parse_histories

STANDARD = ("hulh", "hunl-pot")  # those that PHH has a variant for
KNOWN = PlayedHand(3, ("ann", "bob"), ((48, 51), (0, 5)), (8, 13, 18), (2, 1, 1, 2, 0))


@cache
def random_hands(name: str, count: int) -> list[PlayedHand]:
    """Hands with random cards and actions, of which few fold: most go on to the showdown."""
    rules = PRESETS[name]
    flop = PokerGame(PRESETS["fhp"]) if rules.num_cards == 52 else PokerGame(rules)
    draw = np.random.default_rng(5)
    hands = []
    for number in range(count):
        if rules.num_cards == 52:  # the tree of a game with four rounds would take longer than its hands
            cards = draw.permutation(52).tolist()
        else:
            cards = flop.deal_cards(1, key(1, "cards"), number)[0].tolist()
        state, actions = first_state(rules), []
        while state.ended == NOT_TERMINAL:
            legal = legal_actions(rules, state)
            weights = np.array([0.15 if action == FOLD else 1.0 for action in legal])
            actions.append(int(draw.choice(legal, p=weights / weights.sum())))
            state = next_state(rules, state, actions[-1])
        board = tuple(cards[4 : 4 + sum(rules.board_cards[: state.round + 1])])
        holes = (tuple(cards[:2]), tuple(cards[2:4]))
        hands.append(PlayedHand(number, ("dealer's seat", "big blind"), holes, board, tuple(actions)))
    return hands


@pytest.mark.parametrize(
    ("name", "count"), [("fhp", 40), ("fhp-mini", 25), ("fhp-pot", 25), ("hulh", 25), ("hunl-pot", 20)]
)
def test_pokerkit_referees_and_histories_come_back(name: str, count: int) -> None:
    """`format_history` raises if pokerkit refuses an action or counts other chips than `gains`."""
    rules, hands = PRESETS[name], random_hands(name, count)
    texts = [format_history(rules, hand) for hand in hands]
    whole = "\n\n".join(f"[{hand.number + 1}]\n{text}" for hand, text in zip(hands, texts, strict=True))
    assert parse_histories(whole, rules) == hands
    assert parse_histories(texts[0], rules) == hands[:1]
    assert {len(hand.board) for hand in hands} >= {0, sum(rules.board_cards)}  # folds before the flop, and showdowns


def all_in(name: str) -> PlayedHand:
    """Raises until nobody has chips left; then a call."""
    rules = PRESETS[name]
    state, actions = first_state(rules), []
    while state.ended == NOT_TERMINAL:
        actions.append(legal_actions(rules, state)[-1])
        state = next_state(rules, state, actions[-1])
    board = tuple(range(4, 4 + sum(rules.board_cards)))
    return PlayedHand(7, ("a", "b"), ((0, 1), (50, 51)), board, tuple(actions))


@pytest.mark.parametrize("name", STANDARD)
def test_pokerkit_reads_the_files_by_itself(name: str) -> None:
    rules = PRESETS[name]
    for hand in [*random_hands(name, 20)[:8], all_in(name)]:
        history = HandHistory.loads(format_history(rules, hand))
        *_, last = history
        assert not last.status
        won = gains(rules, hand)
        assert list(last.payoffs) == [won[1], won[0]]
        assert history.finishing_stacks == list(last.stacks)


def test_known_history() -> None:
    """Written out by hand: a raise before the flop, then a bet that the big blind folds to."""
    rules = PRESETS["fhp"]
    hand = KNOWN
    history = history_of(rules, hand)
    assert history.actions == [
        "d dh p1 2c3d", "d dh p2 AcAs", "p2 cbr 200", "p1 cc", "d db 4c5d6h", "p1 cc", "p2 cbr 100", "p1 f",
    ]  # fmt: skip
    assert history.blinds_or_straddles == [50, 100]
    assert history.players == ["bob", "ann"]
    assert history.starting_stacks == [1600, 1600]  # twice the 800 chips that a player can lose
    assert history.finishing_stacks == [1400, 1800]
    assert gains(rules, hand) == (200, -200)


def test_the_referee_objects() -> None:
    rules, lines = PRESETS["fhp"], history_of(PRESETS["fhp"], KNOWN).actions
    for hand, old, new, sentence in (
        (KNOWN, "p2 cbr 200", "p2 cbr 150", "'p2 cbr 150' in hand 3 of fhp"),
        (KNOWN, "p2 cbr 200", "p1 cbr 200", "'p1' is not a valid player"),
        (KNOWN, "p1 f", "", "has not ended in pokerkit"),
        (replace(KNOWN, board=(), actions=(2, 0)), "", "", r"gains 100 chips by our count and 200 by pokerkit's"),
    ):
        with pytest.raises(ProtocolError, match=sentence):
            referee(rules, hand, [line.replace(old, new) for line in lines if new or not old or line != old])


GOOD = """variant = 'FT'
antes = [0, 0]
blinds_or_straddles = [50, 100]
small_bet = 100
big_bet = 100
starting_stacks = [5000, 5000]
finishing_stacks = [4900, 5100]
actions = ['d dh p1 2c3d', 'd dh p2 AcAs', 'p2 cbr 200', 'p1 f # what else']
_board_cards = [0, 3]
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("'FT'", "'NT'", "variant"),
        ("[50, 100]", "[100, 200]", r"blinds_or_straddles = \[100, 200\], but fhp has \[50, 100\]"),
        ("small_bet = 100", "small_bet = 200", "small_bet = 200, but fhp has 100"),
        ("_board_cards = [0, 3]", "", r"deals \[0, 3, 1, 1\] board cards by round, but fhp \[0, 3\]"),
        ("cbr 200", "cbr 300", "a raise of fhp is to 200 there"),
        ("p1 f", "p2 f", "where fhp does not allow it"),
        (", 'p1 f # what else'", "", "ends before the hand has ended"),
        ("p1 f # what else'", "p1 f', 'p2 cc'", "continues with 'p2 cc'"),
        ("2c3d", "2c??", r"has the cards '2c\?\?': write ranks 2 to A"),
        ("2c3d", "Ac3d", "deals Ac twice"),
        ("p1 f #", "p1 sd #", "'p1 sd', which is not a line"),
        ("[4900, 5100]", "[4800, 5200]", "gaining -200 chips, but its actions and cards bring -100"),
        ("[4900, 5100]", "[4900, 5300]", "ends with p2 gaining 300 chips, but its actions and cards bring 100"),
        ("p1 f # what else'", "p1 f', 'p2 sm AcAd'", "has 'p2 sm AcAd', but p2 was dealt AcAs"),
        ("[5000, 5000]", "[5000, 799]", r"has starting_stacks = \[5000, 799\], but bets of fhp may take 800\.$"),
    ],
)
def test_foreign_and_damaged_histories_are_refused(old: str, new: str, sentence: str) -> None:
    assert gains(PRESETS["fhp"], parse_histories(GOOD, PRESETS["fhp"])[0]) == (100, -100)
    assert old in GOOD
    with pytest.raises(GameError, match=sentence):
        parse_histories(GOOD.replace(old, new), PRESETS["fhp"])


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("actions", "'p2 cbr 200'", "'actions' is 'p2 cbr 200', but must be a list."),
        ("actions", "[1]", "actions holds 1, but each must be a text."),
        ("players", "'ab'", "'players' is 'ab', but must be a list."),
        ("starting_stacks", None, "it has no 'starting_stacks'."),
        ("starting_stacks", "[inf, 5000]", "Infinity is no amount."),
        ("starting_stacks", "[1e999999999, 5000]", "1E+999999999 is no amount."),
        ("finishing_stacks", "[5000]", "it has not as many 'finishing_stacks' as 'starting_stacks'."),
        ("_deep", "[" * 5000, "maximum recursion depth exceeded."),
    ],
)
def test_what_is_wrong_with_a_field_is_one_sentence(field: str, value: str | None, sentence: str) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"{field} =")]
    text = "\n".join(lines if value is None else [*lines, f"{field} = {value}"])
    with pytest.raises(ConfigError) as refusal:
        parse_histories(text, PRESETS["fhp"])
    assert str(refusal.value) == f"The text is not a hand history in PHH: {sentence}"


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (PRESETS["kuhn"], "not kuhn"),
        (replace(PRESETS["hulh"], raise_size=(100, 100, 200, 300)), "one or two bet sizes"),
    ],
)
def test_games_without_histories(rules: PokerRules, sentence: str) -> None:
    with pytest.raises(GameError, match=sentence):
        parse_histories(GOOD, rules)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p2 cbr 200", "  p2  cbr\\t200 "),
        ("'p2 cbr 200'", "'p2 cbr 200.0'"),
        ("_board_cards", "_mine = 3\nmine_too = 'x'\n_board_cards"),
        ("[0, 3]\n", "[0, 3]\n[_mine]\nx = 1\n[_mine.too]\ny = [\n[1],\n]\n"),
        ("variant", "\ufeffvariant"),
        ("antes = [0, 0]", "antes = [\n0,\n0.0]"),
        ("variant", "time = 12:30:01\nday = 27\nvenue = 'Café'\nseats = [1, 2]\ncurrency = '€'\nrake = 0\nvariant"),
        ("[50, 100]\nsmall_bet = 100\nbig_bet = 100", "[50.0, 100.0]\nsmall_bet = 100.00\nbig_bet = 1E2"),
        ("'d dh p1 2c3d'", "'d dh p1 2c', 'd dh p1 3d', ''"),
        ("p1 f # what else'", "p1 f', 'p1 sm', 'p2 sm -', 'p2 sm As'"),
    ],
)
def test_what_people_write_is_read_as_it_is_meant(tmp_path: Path, old: str, new: str) -> None:
    assert old in GOOD
    (tmp_path / "hand.phh").write_text(
        GOOD.replace(old, new).replace("'  p2", '"  p2').replace("200 '", '200 "'), "utf-8"
    )
    assert load_histories(tmp_path / "hand.phh", PRESETS["fhp"]) == parse_histories(GOOD, PRESETS["fhp"])


@pytest.mark.parametrize("text", ["", "x = 1", "[_about]\nx = 1", "[1]\nx = 2"])
def test_a_text_without_a_hand_says_so(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^The text is not a hand history in PHH: it holds no hand, for a hand has"):
        parse_histories(text, PRESETS["fhp"])
    several = "[_about]\nx = 1\n" + "".join(f"[{number}]\n{GOOD}hand = {number}\n" for number in (1, 2))
    assert [hand.number for hand in parse_histories(several, PRESETS["fhp"])] == [1, 2]


CENTS = """variant = 'NT'
antes = [0, 0]
blinds_or_straddles = [0.25, 0.50]
min_bet = 0.50
starting_stacks = [64.10, 50.00]
finishing_stacks = [14.10, 98.50]
actions = ['d dh p1 ????', 'd dh p2 ????', 'p2 cbr 1.25', 'p1 cbr 64.10', 'p2 cc', 'p1 sm 2c3d', 'p2 sm AcAs',
  'd db 4c5s9h', 'd db Jd', 'd db Kd']
players = ['a', 'b']
currency = 'USD'
"""
NO_LIMIT = replace(PRESETS["hunl-pot"], betting="no-limit", stack=10_000)


def test_real_hands_have_cents_other_stacks_rake_and_hands_that_are_shown_late() -> None:
    """A raise to 64.10 against 50 dollars is all-in for 50, which are 10,000 chips where the big blind is 100."""
    (hand,) = parse_histories(CENTS, NO_LIMIT)
    assert hand.actions == (250, 10_000, 1)
    assert gains(NO_LIMIT, hand) == (10_000, -10_000)
    text = CENTS.replace("2c3d", "AdAh").replace("14.10, 98.50", "63.35, 49.25")  # rake of a pot that is shared
    assert gains(NO_LIMIT, parse_histories(text, NO_LIMIT)[0]) == (0, 0)
    with pytest.raises(GameError, match="ends with p2 gaining 50 chips, but its actions and cards bring 0"):
        parse_histories(text.replace("49.25", "50.25"), NO_LIMIT)


def test_a_hand_that_nobody_saw_has_no_cards() -> None:
    (hand,) = parse_histories(CENTS.replace("'p1 sm 2c3d', ", "'p1 sm -', "), NO_LIMIT)
    assert hand.holes == ((48, 51), ())
    with pytest.raises(GameError, match="has no result without both hands"):
        gains(NO_LIMIT, hand)
    (folded,) = parse_histories(GOOD.replace("2c3d", "????"), PRESETS["fhp"])
    assert (folded.holes[1], gains(PRESETS["fhp"], folded)) == ((), (100, -100))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("50.00]", "40.00]", r"starting_stacks = \[64.10, 40.00\], but in hunl-pot the shorter one is 50\.$"),
        ("[0.25, 0.50]", "[0.20, 0.50]", r"blinds_or_straddles = \[0.20, 0.50\], but hunl-pot has \[50, 100\]\.$"),
        ("1.25", "1.253", r"'p2 cbr 1.253', but a raise of hunl-pot is to 1 to 50 there, in steps of 0\.005\.$"),
        ("14.10, 98.50", "14.60, 98.50", "ends with p1 gaining -9900 chips, but its actions and cards bring -10000"),
    ],
)
def test_real_hands_of_another_game_are_refused(old: str, new: str, sentence: str) -> None:
    assert old in CENTS
    with pytest.raises(GameError, match=sentence):
        parse_histories(CENTS.replace(old, new), NO_LIMIT)
