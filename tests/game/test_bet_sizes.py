"""Bet sizes: lines by hand, random hands as OpenSpiel plays them, and impossible rules."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepcfr.core.errors import GameError
from deepcfr.game.bet_size_betting import (
    ACTOR,
    BET,
    CHIPS,
    ENDED,
    RAISED,
    ROUND,
    START,
    advance,
    first_positions,
    gain,
    gains,
    legal_actions,
    raise_total,
)
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, BetSizeRules, bet_size_rules, read_bet_sizes
from deepcfr.game.betting import CALL, FOLD, FOLDED, NOT_TERMINAL, SHOWDOWN
from deepcfr.sample.traversal_tree import showdowns
from openspiel_poker import no_limit_holdem

HUNL = BET_SIZE_GAMES["hunl-ladder"]
SETTINGS = [
    HUNL,
    replace(HUNL, name="short stacks", stack=1_650),
    replace(HUNL, name="very short stacks", stack=150, bet_sizes=((100, 120), *HUNL.bet_sizes[1:])),
    replace(HUNL, name="caps and all-in", max_raises=(1, 2, 0, 3), all_in=(True, False, True, True)),
    replace(HUNL, name="steps below the smallest raise", bet_sizes=((150, 200, 250, 600), (10, 20, 300), (75,), ())),
]
BY_NAME = pytest.mark.parametrize("rules", SETTINGS, ids=lambda rules: rules.name)


def position_after(rules: BetSizeRules, actions: list[int]) -> tuple[ImplicitPoker, np.ndarray]:
    game = ImplicitPoker(rules)
    position = first_positions(game.bets, 1)[0]
    for action in actions:
        assert legal_actions(game.bets, position[None])[0, action]
        advance(game.bets, position, action)
    return game, position


def totals(game: ImplicitPoker, position: np.ndarray) -> list[int]:
    """Where the legal raises lead."""
    legal = np.flatnonzero(legal_actions(game.bets, position[None])[0])
    return [int(raise_total(game.bets, position, action - BET)) for action in legal if action >= BET]


def test_the_papers_bet_sizes_before_and_after_the_flop() -> None:
    game, start = position_after(HUNL, [])
    assert totals(game, start) == [200, 400, 800, 1_600]  # the size of 1 big blind is the call
    game, raised = position_after(HUNL, [BET + 1])
    assert (raised[CHIPS : CHIPS + 2].tolist(), totals(game, raised)) == ([400, 100], [800, 1_600])
    game, top = position_after(HUNL, [BET + 3])
    assert totals(game, top) == []
    game, flop = position_after(HUNL, [BET + 1, CALL])
    assert (flop[ROUND], flop[ACTOR], flop[START]) == (1, 1, 400)
    assert totals(game, flop) == [400 + pot for pot in (240, 400, 560, 800, 1_200, 1_600)]
    # 400 into a pot of 800; the pot after a call is 1,600, and only 0.7 and more may follow
    game, bet = position_after(HUNL, [BET + 1, CALL, BET + 1])
    assert totals(game, bet) == [800 + raised for raised in (1_120, 1_600, 2_400, 3_200)]
    game, limped = position_after(HUNL, [CALL, CALL])
    assert totals(game, limped) == [200, 240, 300, 400, 500]  # 0.3 of 200 is less than a big blind


def test_a_size_beyond_the_stack_is_all_in_once_and_ends_the_betting() -> None:
    rules = replace(HUNL, name="short", stack=3_000)
    game, flop = position_after(rules, [BET + 3, CALL])
    assert totals(game, flop) == [2_560, 3_000]  # 0.5 of 3,200 and all higher sizes reach beyond
    for action in (BET + 1, CALL):
        advance(game.bets, flop, action)
    assert (flop[ENDED], flop[ROUND]) == (SHOWDOWN, 3)
    assert [gain(flop, 0, result) for result in (0, 1, 2)] == [-3_000, 0, 3_000]


def small_chips(rules: BetSizeRules) -> BetSizeRules:
    """The same game with blinds of 5 and 10, so that every size of raise can be listed."""
    bets = zip(rules.bet_sizes, rules.measure, strict=True)
    scaled = tuple(tuple(r // 10 for r in sizes) if unit == "chips" else sizes for sizes, unit in bets)
    return replace(rules, blinds=(5, 10), unit_chips=10, stack=rules.stack // 10, bet_sizes=scaled)


ALL_IN = 10**9  # a size, more than any other


def sizes_of(rules: BetSizeRules, round_: int, called: int) -> list[tuple[int, int]]:
    """The sizes of a round and where each leads from `called` chips of both players, whether that is legal or not."""
    in_chips = rules.measure[round_] == "chips"
    sizes = [size for size in rules.bet_sizes[round_] if not in_chips or size > max(rules.blinds)]
    sizes += [ALL_IN] * rules.all_in[round_]
    totals = [size if in_chips or size == ALL_IN else called + 2 * called * size // 100 for size in sizes]
    return [(size, min(total, rules.stack)) for size, total in zip(sizes, totals, strict=True)]


@pytest.mark.parametrize("count", [60, pytest.param(2_000, marks=pytest.mark.long)])
@BY_NAME
def test_random_hands_are_those_of_openspiel(rules: BetSizeRules, count: int) -> None:
    """A size may be chosen if it is higher than those before, its raise is legal, no lower size leads there, and there were
    not as many raises as the cap allows.
    """
    rules = small_chips(rules)
    game, draw = ImplicitPoker(rules), np.random.default_rng(4)
    other = no_limit_holdem(rules, (rules.stack, rules.stack))
    cards = draw.permuted(np.tile(np.arange(52, dtype=np.uint8), (count, 1)), axis=1)[:, :9]
    results, ends = showdowns(np.ascontiguousarray(cards), 2, 4), set()
    for hand, result in zip(cards.tolist(), results.tolist(), strict=True):
        state, deck = other.new_initial_state(), iter(hand)
        position, raisers = first_positions(game.bets, 1)[0], set()
        chosen: dict[int, list[int]] = defaultdict(list)  # sizes by round
        while position[ENDED] == NOT_TERMINAL:
            while state.is_chance_node():
                state.apply_action(next(deck))
            round_, actor = int(position[ROUND]), int(position[ACTOR])
            assert state.current_player() == actor
            earlier = [len({r for r, player in raisers if player == p and r < round_}) for p in (0, 1)]
            assert position[RAISED : RAISED + 2].tolist() == earlier
            theirs = set(state.legal_actions())
            listed = sizes_of(rules, round_, int(position[CHIPS : CHIPS + 2].max()))
            expected: dict[int, int] = {}
            for index, (size, total) in enumerate(listed):
                if size > max(chosen[round_], default=0) and total in theirs - {FOLD, CALL, *expected.values()}:
                    expected[BET + index] = total
            legal = np.flatnonzero(legal_actions(game.bets, position[None])[0]).tolist()
            assert legal == [action for action in (FOLD, CALL) if action in theirs] + list(expected)
            assert totals(game, position) == list(expected.values())
            action = int(draw.choice([a for a in legal if a != FOLD or draw.random() < 0.3] or legal))
            state.apply_action(expected.get(action, action))
            if action >= BET:
                chosen[round_].append(listed[action - BET][0])
                raisers.add((round_, actor))
            advance(game.bets, position, action)
        while state.is_chance_node():
            state.apply_action(next(deck))
        assert state.is_terminal()
        assert state.returns() == [gain(position, 0, result), gain(position, 1, result)]
        assert gains(position[None], np.array([result])).tolist() == state.returns()[:1]
        ends.add(int(position[ENDED]))
    assert ends == {FOLDED, SHOWDOWN}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"stack": 100}, "stack is 100, but must be more than the larger blind, which is 100."),
        (
            {"bet_sizes": ((100, 400, 200), *HUNL.bet_sizes[1:])},
            "bet_sizes holds (100, 400, 200) in round 1, but every size must be higher than the one before it.",
        ),
        (
            {"bet_sizes": (HUNL.bet_sizes[0], (0, 50), *HUNL.bet_sizes[2:])},
            "bet_sizes holds (0, 50) in round 2, but every size must be a whole number from 1 to 2147483647.",
        ),
        ({"stack": 800}, "bet_sizes holds 1600 in round 1, but the stack is only 800."),
        (
            {"bet_sizes": HUNL.bet_sizes[:3]},
            f"bet_sizes is {HUNL.bet_sizes[:3]!r}, but must have 4 entries, one for each round.",
        ),
        ({"measure": ("pot", "pot", "pot", "big")}, "measure is 'big' in round 4, but must be one of chips, pot."),
        (
            {"max_raises": (5, -1, 6, 6)},
            "max_raises is -1 in round 2, but must be a whole number from 0 to 2147483647.",
        ),
        (
            {"bet_sizes": (tuple(range(1, 12)), *HUNL.bet_sizes[1:])},
            "bet_sizes holds 11 sizes in round 1, but with all-in 10 are the most.",
        ),
        (
            {"board_cards": (0, 1, 1, 1, 1, 1), "first_player": (0,) * 6},
            "board_cards has 6 entries, but a game with bet sizes has at most 5 rounds.",
        ),
        ({"all_in": (1, False, False, False)}, "all_in is 1 in round 1, but must be True or False."),
        (
            {"blinds": (0, 0)},
            "blinds holds only zeros, but at least one player must put in chips before the first card.",
        ),
    ],
)
def test_impossible_bet_sizes_and_stacks_are_named_in_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(GameError) as error:
        replace(HUNL, **change)
    assert error.value.problems == (sentence,)


def test_hands_that_cannot_be_ranked_are_refused() -> None:
    rules = replace(
        HUNL, name="long", board_cards=(0, 3, 1, 1, 1), first_player=(0, 1, 1, 1, 1), max_raises=(1,) * 5,
        bet_sizes=(*HUNL.bet_sizes, (100,)), measure=(*HUNL.measure, "pot"), all_in=(False,) * 5,
    )  # fmt: skip
    with pytest.raises(GameError) as error:
        ImplicitPoker(rules)
    assert set(error.value.problems) == {
        "long shows a player 8 cards, and hands of at most 7 can be ranked.",
        "long deals cards 5 times, and at most 4 times are supported.",
    }


def test_rules_come_back_from_json_and_from_toml(tmp_path: Path) -> None:
    stored = json.loads(json.dumps(asdict(HUNL)))
    assert bet_size_rules(stored, "game.json") == HUNL
    lines = [f"{name} = {json.dumps(value)}" for name, value in stored.items() if name != "name"]
    path = tmp_path / "hunl-ladder.toml"
    path.write_text("\n".join(lines))
    assert read_bet_sizes(path) == HUNL


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("stack = ", "cannot be read"),
        ("stack = 100", "lacks all_in, bet_sizes, max_raises, measure, which a game with bet sizes needs."),
        ("stacks = 100", "has stacks, but rules with bet sizes have"),
    ],
)
def test_files_that_hold_no_bet_sizes_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(GameError, match=sentence):
        read_bet_sizes(path)
