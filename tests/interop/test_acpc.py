"""Match states: text to data and back, garbage to sentences, and what they mean under a game's rules."""

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from pokerkit import FixedLimitTexasHoldem, HandHistory

from deepcfr.core.errors import GameError
from deepcfr.game.betting import FOLD, NOT_TERMINAL, first_state, legal_actions, next_state
from deepcfr.game.rules import PRESETS, RANK_SYMBOLS, SUIT_SYMBOLS
from deepcfr.interop.acpc import (
    MatchState,
    Move,
    PlayedHand,
    ProtocolError,
    betting_of,
    betting_text,
    board_by_round,
    card_name,
    card_names,
    card_number,
    gains,
    is_comment,
    is_version,
    log_line,
    parse_match_state,
    parse_move,
    position_of,
    read_betting,
    require_protocol,
    seen_cards,
)
from deepcfr.interop.write_history import history_of

CARDS = [rank + suit for rank in RANK_SYMBOLS for suit in SUIT_SYMBOLS]
MOVES = st.builds(Move, st.sampled_from("fcr")) | st.builds(Move, st.just("r"), st.integers(0, 9_999_999_999))


@st.composite
def match_states(draw: st.DrawFn) -> MatchState:
    sizes = draw(st.lists(st.integers(0, 3), max_size=4))
    hidden, hole = draw(st.booleans()), draw(st.integers(0, 3))
    count = 2 * hole + sum(sizes)
    cards = draw(st.lists(st.sampled_from(CARDS), min_size=count, max_size=count, unique=True))
    holes = (tuple(cards[:hole]), () if hidden else tuple(cards[hole : 2 * hole]))
    board, start = [], 2 * hole
    for size in sizes:
        board.append(tuple(cards[start : start + size]))
        start += size
    betting = draw(st.lists(st.lists(MOVES, max_size=6).map(tuple), min_size=len(sizes) + 1, max_size=len(sizes) + 1))
    return MatchState(draw(st.integers(0, 1)), draw(st.integers(0, 2**32)), tuple(betting), holes, tuple(board))


@given(match_states())
def test_every_state_comes_back_from_its_text(state: MatchState) -> None:
    assert parse_match_state(state.text) == state


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("MATCHSTATE:0:1:c", "is no match state"),
        ("STATE:0:1:c:AcAd|", "is no match state"),
        ("MATCHSTATE:2:1:c:AcAd|", "position .* is '2'"),
        ("MATCHSTATE:0:-1:c:AcAd|", "hand number .* is '-1'"),
        ("MATCHSTATE:0:٣:c:AcAd|", "hand number"),
        ("MATCHSTATE:0:1:cb:AcAd|", "betting 'cb'"),
        ("MATCHSTATE:0:1:r12345678901:AcAd|", "betting 'r12345678901'"),
        ("MATCHSTATE:0:1:c:AcAd", "hole cards of 1 players"),
        ("MATCHSTATE:0:1:c:AcAd||", "hole cards of 3 players"),
        ("MATCHSTATE:0:1:c:AcAx|", "cards 'AcAx'"),
        ("MATCHSTATE:0:1:c:AcAc|", "card Ac stands twice"),
        ("MATCHSTATE:0:1:cc/:AcAd|", "betting of 2 rounds, but cards of 1"),
        # of another game than fhp
        ("MATCHSTATE:0:1::Ac|", "are not 2 to a hand, as fhp has them"),
        ("MATCHSTATE:0:1::|AcAd", "are not 2 to a hand, as fhp has them"),
        ("MATCHSTATE:0:1::AcAd|Kc", "are not 2 to a hand, as fhp has them"),
        ("MATCHSTATE:0:1:cc/:AcAd|/2c2d", "deals 2 board cards in round 2, but fhp deals 3"),
        ("MATCHSTATE:0:1:cc/cc/:AcAd|/2c2d2h/3c", "has 3 rounds, but fhp has 2"),
    ],
)
def test_damaged_and_foreign_states(text: str, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        seen_cards(PRESETS["fhp"], parse_match_state(text))


def test_known_states() -> None:
    state = parse_match_state("MATCHSTATE:1:30:r300c/cr900:|JdTc/8c8dJs")
    assert state.betting == ((Move("r", 300), Move("c")), (Move("c"), Move("r", 900)))
    assert (state.position, state.hand, state.holes, state.board) == (1, 30, ((), ("Jd", "Tc")), (("8c", "8d", "Js"),))
    state = parse_match_state("MATCHSTATE:1:1:cc/:|2dAs/2cQdTh")
    assert seen_cards(PRESETS["fhp"], state) == ((1, 51), (0, 41, 34))
    # the big blind is position 0; in games with antes player 0, who acts first, is
    assert [position_of(PRESETS[name], 0) for name in ("fhp", "leduc")] == [1, 0]
    for text in ("", "k", "r-1", "c1", "rr", "f ", "R"):
        with pytest.raises(ProtocolError, match="is no action"):
            parse_move(text)
    versions = ("VERSION:2.0.0", "VERSION:2.0.7", "VERSION:1.0.0", "version:2.0.0", "")
    assert [is_version(text) for text in versions] == [True, True, False, False, False]
    assert [is_comment(text) for text in ("", "  ", "# MATCHSTATE", ";GUI", "MATCHSTATE")] == [True] * 4 + [False]


# Under rules


@st.composite
def played(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[str, tuple[int, ...]]:
    """A game and legal actions from its start, at most to its end."""
    name = draw(st.sampled_from(names))
    state, actions = first_state(PRESETS[name]), []
    for _ in range(draw(st.integers(0, 24))):
        if state.ended != NOT_TERMINAL:
            break
        legal = legal_actions(PRESETS[name], state)
        actions.append(draw(st.sampled_from([a for a in legal if a != FOLD or draw(st.integers(0, 5)) == 0] or legal)))
        state = next_state(PRESETS[name], state, actions[-1])
    return name, tuple(actions)


@given(played(tuple(PRESETS)))
def test_betting_comes_back(game: tuple[str, tuple[int, ...]]) -> None:
    rules, actions = PRESETS[game[0]], game[1]
    betting = betting_of(rules, actions)
    state, read = read_betting(rules, parse_betting(betting_text(betting)))
    assert read == actions
    assert len(betting) == state.round + 1


def parse_betting(text: str) -> tuple[tuple[Move, ...], ...]:
    """Betting without cards, which the protocol never sends."""
    cards = "/" * text.count("/")
    return parse_match_state(f"MATCHSTATE:0:0:{text}:|{cards}").betting


@pytest.mark.parametrize(
    ("game", "betting", "sentence"),
    [
        ("fhp", "rrrc/", "ok"),
        ("fhp", "rrrr", "The action r is not one of fhp with 400 and 300 chips in the pot, where f or c is allowed"),
        ("fhp", "r300", "The action r300 is not one of fhp with 50 and 100 chips in the pot, where f or c or r is"),
        ("fhp", "cc/ccc", "goes on after the hand is over"),
        ("fhp", "crc", "has its rounds at other places than 'crc/'"),
        ("fhp", "cf", "The action f is not one of fhp with 100 and 100 chips"),
        ("fhp-pot", "r", "The action r is not one of fhp-pot with 50 and 100 chips in the pot, where f or r300 is"),
        ("fhp-pot", "r300c/r900", "ok"),
        ("fhp-pot", "r300c/r901", "The action r901 is not one of fhp-pot with 300 and 300 chips"),
        ("hunl-pot", "r300r900r2700r8100r20000c///", "ok"),
        ("hunl-pot", "r300r900r2700r8100r20000c", "has its rounds at other places"),
    ],
)
def test_betting_of_other_games_is_refused(game: str, betting: str, sentence: str) -> None:
    if sentence == "ok":
        _, actions = read_betting(PRESETS[game], parse_betting(betting))
        assert betting_text(betting_of(PRESETS[game], actions)) == betting
    else:
        with pytest.raises(ProtocolError, match=sentence):
            read_betting(PRESETS[game], parse_betting(betting))


def test_small_decks_keep_the_highest_cards() -> None:
    for name, expected in (
        ("fhp", CARDS),
        ("leduc", ["Qh", "Qs", "Kh", "Ks", "Ah", "As"]),
        ("kuhn", ["Qs", "Ks", "As"]),
    ):
        assert [card_name(PRESETS[name], card) for card in range(PRESETS[name].num_cards)] == expected
        assert [card_number(PRESETS[name], text) for text in expected] == list(range(len(expected)))
    with pytest.raises(ProtocolError, match="Jh is not in the deck of leduc"):
        card_number(PRESETS["leduc"], "Jh")


def test_board_cards_before_the_first_round_have_no_place() -> None:
    require_protocol(PRESETS["fhp"])
    with pytest.raises(GameError, match="deals board cards before its first round"):
        require_protocol(replace(PRESETS["fhp"], board_cards=(1, 3)))


def test_known_log_line() -> None:
    """The big blind, position 0, stands first: it wins the showdown with a pair of aces."""
    hand = PlayedHand(12, ("dealer", "blind"), ((0, 5), (48, 24)), (49, 14, 19), (1, 1, 2, 1))
    assert log_line(PRESETS["fhp"], hand) == "STATE:12:cc/rc:Ac8c|2c3d/Ad5h6s:200|-200:blind|dealer"
    assert gains(PRESETS["fhp"], hand) == (-200, 200)


@given(played(("hulh",)))
@settings(max_examples=15)  # pokerkit replays every hand
def test_pokerkit_writes_the_same_states(game: tuple[str, tuple[int, ...]]) -> None:
    """Its own translation of a hand history into match states is the independent check of ours."""
    rules, actions = PRESETS["hulh"], game[1]
    while (state := read_betting(rules, betting_of(rules, actions))[0]).ended == NOT_TERMINAL:
        actions += (1,)
    board = tuple(range(8, 13))[: sum(rules.board_cards[: state.round + 1])]
    hand = PlayedHand(4, ("a", "b"), ((0, 1), (50, 51)), board, actions)
    history = HandHistory.loads(history_of(rules, hand).dumps())
    assert isinstance(history.create_game(), FixedLimitTexasHoldem)
    for player in (0, 1):
        position = position_of(rules, player)
        sent = [text.strip() for side, text in history.to_acpc_protocol(position, 4) if side == "S->"]
        assert sent[: len(actions)] == [state_text(hand, count, player) for count in range(len(actions))]


def state_text(hand: PlayedHand, count: int, player: int) -> str:
    """The message that `player` sees after `count` actions."""
    rules = PRESETS["hulh"]
    betting = betting_of(rules, hand.actions[:count])
    position = position_of(rules, player)
    mine = card_names(rules, hand.holes[player])
    holes = (mine, ()) if position == 0 else ((), mine)
    return MatchState(position, hand.number, betting, holes, board_by_round(rules, hand.board, len(betting) - 1)).text
