"""Bet sizes: lines by hand, random hands as a plain implementation and as pokerkit play them, and impossible rules."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
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


@dataclass
class Plain:
    """The same rules once more, on lists: no bits, no arrays."""

    rules: BetSizeRules
    chips: list[int] = field(default_factory=list)
    round: int = 0
    chosen: list[int] = field(default_factory=list)  # amounts of the sizes of this round
    line: list[str] = field(default_factory=list)  # actions of this round
    last: int = 0
    raisers: list[set[int]] = field(default_factory=lambda: [set()])
    actor: int = 0
    winner: int | None = None
    over: bool = False

    def __post_init__(self) -> None:
        self.chips = list(self.rules.blinds)
        self.last = max(self.rules.blinds)

    def sizes(self) -> list[int]:
        """The sizes of the round's bets, all-in as more than any."""
        sizes = list(self.rules.bet_sizes[self.round])
        if self.rules.measure[self.round] == "chips":
            sizes = [size for size in sizes if size > max(self.rules.blinds)]
        return sizes + [10**9] * self.rules.all_in[self.round]

    def reach(self, size: int) -> int:
        called = max(self.chips)
        in_chips = self.rules.measure[self.round] == "chips" or size == 10**9
        return min(size if in_chips else called + 2 * called * size // 100, self.rules.stack)

    def raises(self) -> dict[int, int]:
        """The state after each legal size."""
        found: dict[int, int] = {}
        if max(self.chips) == self.rules.stack or self.line.count("raise") >= self.rules.max_raises[self.round]:
            return found
        above = max(self.chosen, default=0)
        for index, size in enumerate(self.sizes()):
            total = self.reach(size)
            enough = total - max(self.chips) >= self.last or total == self.rules.stack
            if size > above and enough and total not in found.values():
                found[index] = total
        return found

    def act(self, action: int) -> None:
        opponent = 1 - self.actor
        if action == FOLD:
            self.winner, self.over = opponent, True
        elif action == CALL:
            self.chips[self.actor] = max(self.chips)
            closed = bool(self.line)
            self.line.append("call")
            if closed:
                self.close()
                return
        else:
            total = self.raises()[action - BET]
            self.last = total - max(self.chips)
            self.chips[self.actor] = total
            self.chosen.append(self.sizes()[action - BET])
            self.line.append("raise")
            self.raisers[-1].add(self.actor)
        self.actor = opponent

    def close(self) -> None:
        if self.round == 3 or self.chips[0] == self.rules.stack:
            self.over = True
            return
        self.round += 1
        self.actor, self.last = self.rules.first_player[self.round], max(self.rules.blinds)
        self.chosen, self.line = [], []
        self.raisers.append(set())


@BY_NAME
def test_random_hands_are_those_of_the_plain_rules(rules: BetSizeRules) -> None:
    game, draw = ImplicitPoker(rules), np.random.default_rng(1)
    ends = set()
    for _ in range(400):
        plain, position = Plain(rules), first_positions(game.bets, 1)[0]
        while not plain.over:
            assert position[ENDED] == NOT_TERMINAL
            assert (position[ROUND], position[ACTOR]) == (plain.round, plain.actor)
            assert position[CHIPS : CHIPS + 2].tolist() == plain.chips
            earlier = [sum(player in raisers for raisers in plain.raisers[:-1]) for player in (0, 1)]
            assert position[RAISED : RAISED + 2].tolist() == earlier
            legal = np.flatnonzero(legal_actions(game.bets, position[None])[0]).tolist()
            fold = [FOLD] if plain.chips[0] != plain.chips[1] else []
            assert legal == [*fold, CALL, *(BET + size for size in plain.raises())]
            assert totals(game, position) == list(plain.raises().values())
            action = int(draw.choice([a for a in legal if a != FOLD or draw.random() < 0.3] or legal))
            plain.act(action)
            advance(game.bets, position, action)
        ends.add(int(position[ENDED]))
        result = int(draw.integers(3))
        stake = min(plain.chips)
        expected = stake * (1 if plain.winner == 0 else -1) if plain.winner is not None else stake * (result - 1)
        assert gain(position, 0, result) == expected == -gain(position, 1, result)
        assert gains(position[None], np.array([result])).tolist() == [expected]
    assert ends == {FOLDED, SHOWDOWN}


@BY_NAME
def test_only_larger_sizes_follow_and_raises_are_legal_in_no_limit(rules: BetSizeRules) -> None:
    game, draw = ImplicitPoker(rules), np.random.default_rng(2)
    raises = 0
    for _ in range(200):
        position = first_positions(game.bets, 1)[0]
        highest, last, round_ = -1, max(rules.blinds), 0
        while position[ENDED] == NOT_TERMINAL:
            if position[ROUND] != round_:
                highest, last, round_ = -1, max(rules.blinds), int(position[ROUND])
            legal = np.flatnonzero(legal_actions(game.bets, position[None])[0])
            assert all(action - BET > highest for action in legal if action >= BET)
            action = int(draw.choice(legal[legal > FOLD]))
            if action >= BET:
                before, total = position[CHIPS : CHIPS + 2].max(), raise_total(game.bets, position, action - BET)
                assert total - before >= last or total == rules.stack
                highest, last = action - BET, total - before
                raises += 1
            advance(game.bets, position, action)
    assert raises > 50


def small_chips(rules: BetSizeRules) -> BetSizeRules:
    """The same game with blinds of 5 and 10, so that every size of raise can be listed."""
    bets = zip(rules.bet_sizes, rules.measure, strict=True)
    scaled = tuple(tuple(r // 10 for r in sizes) if unit == "chips" else sizes for sizes, unit in bets)
    return replace(rules, blinds=(5, 10), unit_chips=10, stack=rules.stack // 10, bet_sizes=scaled)


def parts(settings: list[BetSizeRules], by_default: int) -> list[Any]:
    """(rules, hands): a few hands of each game, and 10,000 in all as long tests."""
    few = [pytest.param(rules, by_default, id=f"{rules.name}-{by_default}") for rules in settings]
    hands = -(-10_000 // len(settings))
    long = pytest.mark.long
    return few + [pytest.param(rules, hands, id=f"{rules.name}-{hands}", marks=long) for rules in settings]


@pytest.mark.parametrize(("rules", "count"), parts([small_chips(rules) for rules in SETTINGS], 40))
def test_random_hands_are_those_of_openspiel(rules: BetSizeRules, count: int) -> None:
    """A size may be chosen exactly if it is higher, its raise is one of OpenSpiel's, and no lower size leads there."""
    game, draw = ImplicitPoker(rules), np.random.default_rng(4)
    other = no_limit_holdem(rules, (rules.stack, rules.stack))
    cards = draw.permuted(np.tile(np.arange(52, dtype=np.uint8), (count, 1)), axis=1)[:, :9]
    results = showdowns(np.ascontiguousarray(cards), 2, 4)
    for hand, result in zip(cards.tolist(), results.tolist(), strict=True):
        state, deck = other.new_initial_state(), iter(hand)
        position, plain = first_positions(game.bets, 1)[0], Plain(rules)
        while position[ENDED] == NOT_TERMINAL:
            while state.is_chance_node():
                state.apply_action(next(deck))
            legal = np.flatnonzero(legal_actions(game.bets, position[None])[0]).tolist()
            sizes = set(state.legal_actions()) - {FOLD, CALL}
            assert state.current_player() == position[ACTOR]
            assert (FOLD in legal, CALL in legal) == (FOLD in state.legal_actions(), CALL in state.legal_actions())
            above = [size for size in plain.sizes() if size > max(plain.chosen, default=0)]
            assert totals(game, position) == sorted({plain.reach(size) for size in above} & sizes)
            action = int(draw.choice([a for a in legal if a != FOLD or draw.random() < 0.3] or legal))
            state.apply_action(int(raise_total(game.bets, position, action - BET)) if action >= BET else action)
            plain.act(action)
            advance(game.bets, position, action)
        while state.is_chance_node():
            state.apply_action(next(deck))
        assert state.is_terminal()
        assert state.returns() == [gain(position, 0, result), gain(position, 1, result)]


@pytest.mark.parametrize(("rules", "count"), parts([HUNL, SETTINGS[1], SETTINGS[3]], 60))
def test_pots_and_payoffs_are_those_of_pokerkit(rules: BetSizeRules, count: int) -> None:
    pokerkit = pytest.importorskip("pokerkit")
    steps = pokerkit.Automation
    automations = (
        steps.ANTE_POSTING, steps.BET_COLLECTION, steps.BLIND_OR_STRADDLE_POSTING, steps.HOLE_CARDS_SHOWING_OR_MUCKING,
        steps.HAND_KILLING, steps.CHIPS_PUSHING, steps.CHIPS_PULLING,
    )  # fmt: skip
    table = pokerkit.NoLimitTexasHoldem(automations, True, 0, rules.blinds, max(rules.blinds))
    game, draw = ImplicitPoker(rules), np.random.default_rng(3)
    names = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
    for _ in range(count):
        cards = [names[card] for card in draw.permutation(52)[:9]]
        state = table((rules.stack, rules.stack), 2)  # whose player 0 is the big blind
        state.deal_hole("".join(cards[2:4]))
        state.deal_hole("".join(cards[:2]))
        board = iter([cards[4:7], cards[7:8], cards[8:9]])
        position = first_positions(game.bets, 1)[0]
        while position[ENDED] == NOT_TERMINAL:
            deal_streets(state, board)
            assert state.actor_index == 1 - position[ACTOR]
            assert state.total_pot_amount == position[CHIPS : CHIPS + 2].sum()
            legal = np.flatnonzero(legal_actions(game.bets, position[None])[0])
            action = int(draw.choice([a for a in legal if a != FOLD or draw.random() < 0.3] or legal))
            earlier = int(position[CHIPS : CHIPS + 2].max()) - max(state.bets)
            if action >= BET:  # pokerkit refuses what is no legal raise
                state.complete_bet_or_raise_to(int(raise_total(game.bets, position, action - BET)) - earlier)
            else:
                state.fold() if action == FOLD else state.check_or_call()
            advance(game.bets, position, action)
        deal_streets(state, board)
        assert not state.status
        result = int(np.sign(state.payoffs[1])) + 1
        assert state.payoffs[1] == gain(position, 0, result)


def deal_streets(state: Any, board: Any) -> None:
    """Deal what the hand waits for."""
    while state.can_burn_card("??"):
        state.burn_card("??")
        state.deal_board("".join(next(board)))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"stack": 100}, "stack is 100, but must be more than the larger blind, which is 100."),
        ({"stack": 0}, "stack is 0, but must be a whole number from 1 to 2147483647."),
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
            {"max_raises": (2**63, 1, 1, 1)},
            "max_raises is 9223372036854775808 in round 1, but must be a whole number from 0 to 2147483647.",
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
