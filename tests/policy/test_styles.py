"""Styles of play: policies for every infoset whatever they are made from, and changes that their names promise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from board_play import OnlyRows, all_infosets, random_table
from deepcfr.core.errors import GameError
from deepcfr.core.types import Infosets
from deepcfr.game.betting import CALL, FOLD, RAISE
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.styles import SCRIPTS, STYLES, StyledPolicy, play_style, scripted_policy, styled
from deepcfr.policy.tables import table_of

TRANSFORMS = ("aggressive", "tight", "calling-machine", "tight-aggressive", "deterministic")
# without limping there is an infoset at which nobody can call
NO_LIMP = replace(
    PRESETS["leduc"], name="no-limp", blinds=(1, 2), unit_chips=2, unit="big blinds", milli_unit="mbb/g", limp=False
)
GAMES = {"kuhn": PRESETS["kuhn"], "leduc": PRESETS["leduc"], "no-limp": NO_LIMP}


@cache
def game_of(name: str) -> PokerGame:
    return PokerGame(GAMES[name])


@st.composite
def rows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Distributions [n, A] over legal actions, many of them with zeros, for games with up to seven raises."""
    actions = draw(st.integers(2, 9))
    row = st.lists(st.booleans(), min_size=actions, max_size=actions).filter(any)
    legal = np.array(draw(st.lists(row, min_size=1, max_size=6)))
    weight = draw(st.lists(st.integers(0, 4), min_size=legal.size, max_size=legal.size))
    plain = np.array(weight, float).reshape(legal.shape) * legal
    plain[plain.sum(1) == 0] = legal[plain.sum(1) == 0]
    return plain / plain.sum(1, keepdims=True), legal


@given(rows(), st.sampled_from(TRANSFORMS), st.booleans())
def test_every_style_of_every_policy_is_a_policy(
    drawn: tuple[np.ndarray, np.ndarray], style: str, strong: bool
) -> None:
    plain, legal = drawn
    played = play_style(style, plain, legal, np.full(len(plain), strong))
    np.testing.assert_allclose(played.sum(1), 1, atol=1e-12)
    assert (played >= 0).all()
    assert (played[~legal] == 0).all()


@given(rows())
def test_styles_do_what_they_are_called(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    plain, legal = drawn

    def at_least(table: np.ndarray) -> np.ndarray:
        """The probability of each action or a higher one of the order fold, call, raises."""
        return table[:, ::-1].cumsum(1)[:, ::-1]

    brave, timid = (play_style(style, plain, legal, None) for style in ("aggressive", "tight"))
    calls, sure = (play_style(style, plain, legal, None) for style in ("calling-machine", "deterministic"))
    choice = legal.sum(1) > 1
    assert (at_least(brave) >= at_least(plain) - 1e-12).all()
    assert (at_least(timid) <= at_least(plain) + 1e-12).all()
    first, last = legal.argmax(1), legal.shape[1] - 1 - legal[:, ::-1].argmax(1)
    row = np.arange(len(plain))
    np.testing.assert_allclose(
        brave[row, first][choice], 0.5 * plain[row, first][choice]
    )  # as folding is, facing a bet
    np.testing.assert_allclose(timid[row, last][choice], 0.5 * plain[row, last][choice])
    others = np.delete(calls, CALL, axis=1)
    assert (calls[:, CALL] > others.max(1))[legal[:, CALL]].all()
    np.testing.assert_array_equal(calls[~legal[:, CALL]], plain[~legal[:, CALL]])
    assert ((sure == 0) | (sure == 1)).all()
    np.testing.assert_array_equal(plain[row, sure.argmax(1)], plain.max(1))


@pytest.mark.parametrize("style", STYLES)
def test_styles_are_valid_at_every_infoset_and_whole_boards_get_the_same_answers(style: str) -> None:
    policy = styled(random_table(game_of("no-limp"), 2), style)
    infosets = all_infosets(game_of("no-limp"))
    played = policy.probabilities(infosets)
    legal = game_of("no-limp").encoding.legal[infosets.node.long()]
    torch.testing.assert_close(played.sum(1), torch.ones(len(played), dtype=played.dtype))
    assert (played >= 0).all()
    assert (played[~legal] == 0).all()
    assert exploitability(policy).nash_conv == pytest.approx(exploitability(OnlyRows(policy)).nash_conv, rel=1e-9)


def test_tight_aggressive_play_follows_the_cards() -> None:
    """In Kuhn a king beats every other card, a queen half of them, and a jack none."""
    game = game_of("kuhn")
    infosets, policy = all_infosets(game), random_table(game, 3)
    styles = ("aggressive", "tight", "tight-aggressive")
    brave, timid, both = (styled(policy, style).probabilities(infosets) for style in styles)
    king = infosets.cards[:, 0] == 2
    assert (brave != timid).any(1).all()
    torch.testing.assert_close(both[king], brave[king], rtol=0, atol=0)
    torch.testing.assert_close(both[~king], timid[~king], rtol=0, atol=0)


def test_win_rates_look_at_the_board() -> None:
    """In Leduc a jack is weak but when it pairs; with a king on the board a queen beats two cards of four and ties one."""
    policy = styled(UniformPolicy(game_of("leduc")), "tight-aggressive")
    assert isinstance(policy, StyledPolicy)
    jack, queen, king, unseen = 0, 2, 4, 255
    hands = torch.tensor(
        [[jack, unseen], [king, unseen], [jack, jack + 1], [jack, king], [queen, king]], dtype=torch.uint8
    )
    assert policy._is_strong(torch.zeros(1, dtype=torch.int64), hands).tolist() == [False, True, True, False, True]


def test_random_and_initial_play() -> None:
    game = game_of("leduc")
    policy, start, infosets = random_table(game, 4), random_table(game, 5), all_infosets(game)
    uniform = UniformPolicy(game).probabilities(infosets)
    assert torch.equal(styled(policy, "random").probabilities(infosets), uniform)
    assert torch.equal(styled(policy, "initial").probabilities(infosets), uniform)
    policy.initial = lambda: start
    assert styled(policy, "initial") is start
    assert not torch.equal(policy.probabilities(infosets), uniform)


def test_games_without_fold_and_call_have_only_some_styles() -> None:
    game = load_openspiel_game("kuhn_poker")
    policy = UniformPolicy(game)
    assert (table_of(styled(policy, "deterministic")) == [1.0, 0.0]).all()  # of equal actions the first
    for style in ("aggressive", "tight", "calling-machine", "tight-aggressive"):
        with pytest.raises(GameError, match=f"The style {style} is for poker games only, but 'kuhn_poker' is not one"):
            styled(policy, style)


def test_other_styles_are_refused() -> None:
    with pytest.raises(GameError, match=r"'maniac' is not a style of play\. Choose one of aggressive, tight, random"):
        styled(UniformPolicy(game_of("kuhn")), "maniac")
    three = PokerGame(replace(PRESETS["leduc"], name="three", hole_cards=3, board_cards=(0, 0)))
    with pytest.raises(GameError, match="three deals 3"):
        styled(UniformPolicy(three), "tight-aggressive")


# Scripts


def scripted_rows(style: str, game: PokerGame) -> torch.Tensor:
    nodes = torch.arange(game.tree.num_decisions)
    cards = torch.zeros(len(nodes), sum(game.card_groups), dtype=torch.uint8)
    return scripted_policy(style, game).probabilities(Infosets(nodes, cards))


@pytest.mark.parametrize(
    "rules",
    [PRESETS["kuhn"], PRESETS["hulh"], replace(PRESETS["fhp"], max_raises=(0, 1))],
    ids=lambda rules: rules.name,
)
def test_scripts_do_what_they_are_called(rules: PokerRules) -> None:
    game = PokerGame(rules)
    legal = game.encoding.legal
    uniform, call, raises = (scripted_rows(style, game) for style in ("uniform", "call", "raise"))
    assert torch.allclose(uniform, legal.double() / legal.sum(1, keepdim=True))
    assert (call[:, CALL] == 1).all()
    assert (raises[:, RAISE] == legal[:, RAISE]).all()
    assert (raises[:, CALL] == ~legal[:, RAISE]).all()
    assert (raises[:, FOLD] == 0).all()
    nodes, hands = np.array([0, game.tree.num_decisions - 1]), np.zeros((5, sum(game.card_groups)), np.uint8)
    for style in SCRIPTS:
        on_hands = scripted_policy(style, game).on_hands(nodes, hands)
        assert on_hands.shape == (2, 5, legal.shape[1])
        assert (on_hands == scripted_rows(style, game).numpy()[nodes][:, None]).all()


def test_other_scripts_and_games_are_refused() -> None:
    with pytest.raises(GameError, match=r"'maniac' is not a scripted style. Choose one of uniform, call, raise\."):
        scripted_policy("maniac", PokerGame(PRESETS["kuhn"]))
    with pytest.raises(GameError, match="Scripted styles play poker games only, but 'kuhn_poker' is not one"):
        scripted_policy("call", load_openspiel_game("kuhn_poker"))
