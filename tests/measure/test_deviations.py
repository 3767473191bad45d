"""Deviations at some decisions only: brute force over pure ones, a deal-by-deal reference, and what sets must obey."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from deepcfr.boards.boards import Boards
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import TERMINAL, Infosets
from deepcfr.game.betting import ACTION_LETTERS, RAISE
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.deviations import (
    ALL,
    KINDS,
    DecisionSet,
    decision_kinds,
    decision_sets,
    deviations,
    restricted_gains,
    round_name,
)
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.tables import TablePolicy, canonical_hands
from deepcfr.search.spot import Spot
from openspiel_poker import small_fhp

KUHN, LEDUC, FHP = PRESETS["kuhn"], PRESETS["leduc"], PRESETS["fhp"]
THREE_ROUNDS = replace(
    LEDUC,
    name="three rounds",
    board_cards=(0, 1, 1),
    first_player=(0, 1, 0),
    raise_size=(1, 2, 4),
    max_raises=(1, 1, 1),
    rank_symbols="",
)
GAMES = [KUHN, LEDUC, THREE_ROUNDS, small_fhp(3, (1, 2), num_suits=3), small_fhp(2, (3, 1), (0, 1))]


@pytest.fixture(scope="module", autouse=True)
def one_torch_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_policy(rules: PokerRules, suits: Suits, seed: int) -> TablePolicy:
    """Independent probabilities at every infoset, a fifth of the actions all but never played."""
    rng = np.random.default_rng(seed)
    game = PokerGame(rules, suits)
    rounds = game.tree.round[: game.tree.num_decisions]
    tables = []
    for round_, hands in enumerate(canonical_hands(game)):
        legal = game.tree.legal[: game.tree.num_decisions][rounds == round_]
        shape = (len(legal), len(hands), legal.shape[1])
        weights = (rng.exponential(size=shape) * (rng.random(shape) < 0.8) + 1e-9) * legal[:, None, :]
        tables.append(weights / weights.sum(axis=2, keepdims=True))
    return TablePolicy(game, tables)


def random_masks(game: PokerGame, count: int, seed: int) -> npt.NDArray[np.bool_]:
    return np.random.default_rng(seed).random((count, game.tree.num_decisions)) < 0.5


def gains(policy: TablePolicy | UniformPolicy, masks: npt.NDArray[np.bool_], threads: int = 1) -> Any:
    """Both players' gains at each of the sets, [P, M] in the game's unit."""
    game = policy.game
    assert isinstance(game, PokerGame)
    workers = Workers(threads)
    boards = Boards(game, merge=game.suits == "canonical")
    found = restricted_gains(boards, policy.on_board, masks, workers)
    workers.shutdown()
    return found


def all_deals(rules: PokerRules) -> npt.NDArray[np.uint8]:
    """Every deal once: player 0's hand, player 1's hand and each round's cards, uint8 [D, cards]."""
    deals: list[tuple[int, ...]] = [()]
    for size in (rules.hole_cards, rules.hole_cards, *rules.board_cards):
        deals = [
            (*deal, *new)
            for deal in deals
            for new in combinations([card for card in range(rules.num_cards) if card not in deal], size)
        ]
    return np.array(deals, np.uint8)


class Reference:
    """A game as the list of its deals: expectations are plain means, and infosets are compared by sums over their deals."""

    def __init__(self, policy: TablePolicy) -> None:
        self.game: PokerGame = policy.game
        self.policy = policy
        cards = all_deals(self.game.rules)
        self.deals = self.game.deals_of(cards)
        self.rows = torch.arange(len(cards))
        hole, ends = self.game.rules.hole_cards, np.cumsum(self.game.rules.board_cards)
        board = cards[:, 2 * hole :]
        # by the cards as dealt, so that nothing rests on which suits are canonical: [P][R] of [D]
        self.infosets = [
            [
                np.unique(np.c_[cards[:, p * hole : (p + 1) * hole], board[:, :end]], axis=0, return_inverse=True)[1]
                for end in ends
            ]
            for p in (0, 1)
        ]

    def gain(self, player: int, free: npt.NDArray[np.bool_]) -> float:
        """The player's gain by its best deviation at the nodes in `free`."""
        ones = np.ones(len(self.rows))
        nothing = np.zeros_like(free)
        return float((self._values(0, player, free, ones) - self._values(0, player, nothing, ones)).mean())

    def _values(self, node: int, player: int, free: npt.NDArray[np.bool_], reach: Any) -> Any:
        """The player's gain in every deal from `node` on, [D]; `reach` [D] is that of the opponent's actions."""
        actor = int(self.game.tree.actor[node])
        if actor == TERMINAL:
            payoff = self.game.payoff(torch.full_like(self.rows, node), self.rows, self.deals).double().numpy()
            return payoff if player == 0 else -payoff
        canonical = self.deals.visible_cards[:, actor, self.game.tree.round[node]]
        sigma = self.policy.probabilities(Infosets(torch.full_like(self.rows, node), canonical)).numpy()
        legal = np.flatnonzero(self.game.tree.legal[node])
        below = np.stack(
            [
                self._values(
                    int(self.game.tree.child[node, action]),
                    player,
                    free,
                    reach if actor == player else reach * sigma[:, action],
                )
                for action in legal
            ]
        )
        if actor != player or not free[node]:
            return (sigma[:, legal].T * below).sum(axis=0)
        infoset = self.infosets[player][int(self.game.tree.round[node])]
        sums = np.stack([np.bincount(infoset, reach * gain) for gain in below])
        return below[sums.argmax(axis=0)[infoset], np.arange(len(infoset))]


# The definition.
# --------------------------------------------------------------------------------------------------------


def kuhn_value(policy: TablePolicy, player: int, pure: dict[tuple[int, int], int]) -> float:
    """The player's gain in Kuhn poker when it plays `pure` where that is given, by (node, card)."""
    tree = policy.game.tree
    total = 0.0
    for cards in all_deals(KUHN).tolist():
        deals = policy.game.deals_of(np.array([cards], np.uint8))
        lines = [(0, 1.0)]
        while lines:
            node, chance = lines.pop()
            actor = int(tree.actor[node])
            if actor == TERMINAL:
                payoff = float(policy.game.payoff(torch.tensor([node]), torch.tensor([0]), deals))
                total += chance * (payoff if player == 0 else -payoff)
                continue
            canonical = deals.visible_cards[:, actor, 0]
            sigma = policy.probabilities(Infosets(torch.tensor([node]), canonical))[0].tolist()
            if actor == player and (node, cards[actor]) in pure:
                sigma = np.eye(3)[pure[node, cards[actor]]].tolist()
            lines += [(int(tree.child[node, a]), chance * sigma[a]) for a in np.flatnonzero(tree.legal[node])]
    return total / 6


@pytest.mark.parametrize("player", [0, 1])
def test_the_gain_is_the_best_of_all_pure_deviations_at_the_set(player: int) -> None:
    policy = random_policy(KUHN, "raw", seed=1)
    tree = policy.game.tree
    own = [node for node in range(tree.num_decisions) if tree.actor[node] == player]
    value = kuhn_value(policy, player, {})
    for size in range(len(own) + 1):
        for nodes in combinations(own, size):
            places = list(product(nodes, range(3)))
            choices = [np.flatnonzero(tree.legal[node]).tolist() for node, _ in places]
            best = max(
                kuhn_value(policy, player, dict(zip(places, actions, strict=True))) for actions in product(*choices)
            )
            mask = np.isin(np.arange(tree.num_decisions), nodes)[None]
            assert gains(policy, mask)[player, 0] == pytest.approx(best - value, abs=1e-9)


@pytest.mark.parametrize("suits", ["canonical", "raw"])
@pytest.mark.parametrize("rules", GAMES, ids=lambda rules: rules.name)
def test_gains_at_random_sets_are_those_of_a_deal_by_deal_reference(rules: PokerRules, suits: Suits) -> None:
    policy = random_policy(rules, suits, seed=2)
    reference = Reference(policy)
    masks = random_masks(reference.game, 4, seed=3)
    expected = [[reference.gain(player, free) for free in masks] for player in (0, 1)]
    assert np.max(expected) > 0.01
    np.testing.assert_allclose(gains(policy, masks), expected, rtol=1e-9, atol=1e-9)


# What sets must obey.
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", GAMES, ids=lambda rules: rules.name)
def test_all_decisions_give_nash_conv_and_none_gives_nothing(rules: PokerRules) -> None:
    policy = random_policy(rules, "canonical", seed=4)
    decisions = policy.game.tree.num_decisions
    found = gains(policy, np.stack([np.ones(decisions, bool), np.zeros(decisions, bool)]))
    result = exploitability(policy)
    assert 1000 * found[:, 0].sum() == pytest.approx(result.nash_conv, rel=1e-12)
    assert 1000 * found[0, 0] == pytest.approx(result.best_response_values[0] - result.value)
    assert 1000 * found[1, 0] == pytest.approx(result.best_response_values[1] + result.value)
    assert found[:, 1].tolist() == [0, 0]


@pytest.mark.parametrize("rules", GAMES, ids=lambda rules: rules.name)
def test_a_larger_set_gains_no_less(rules: PokerRules) -> None:
    policy = random_policy(rules, "canonical", seed=5)
    order = np.random.default_rng(6).random(policy.game.tree.num_decisions)
    found = gains(policy, order <= np.linspace(0, 1, 8)[:, None])
    assert (np.diff(found, axis=1) >= -1e-12).all()
    assert (np.diff(found[:, [0, -1]], axis=1) > 0.01).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_sets_in_one_pass_gain_what_they_gain_one_by_one(threads: int) -> None:
    for rules in (LEDUC, THREE_ROUNDS, small_fhp(3, (1, 2), num_suits=3)):
        policy = random_policy(rules, "canonical", seed=7)
        masks = random_masks(policy.game, 5, seed=8)
        one_by_one = np.concatenate([gains(policy, mask[None]) for mask in masks], axis=1)
        assert (gains(policy, masks, threads) == one_by_one).all()


def test_a_set_counts_for_the_player_who_acts_there() -> None:
    policy = random_policy(LEDUC, "canonical", seed=9)
    tree = policy.game.tree
    actor = tree.actor[: tree.num_decisions]
    found = gains(policy, np.stack([actor == 0, actor == 1, actor >= 0]))
    assert found[1, 0] == found[0, 1] == 0
    assert found[0, 0] == pytest.approx(found[0, 2])
    assert found[1, 1] == pytest.approx(found[1, 2])


# Kinds of decisions.
# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("", "first to act"),
        ("c", "after a check or call"),
        ("r", "facing one bet"),
        ("cr", "facing one bet"),
        ("rr", "facing two or more bets"),
        ("crr", "facing two or more bets"),
        ("rrr", "facing two or more bets"),
        ("cc", "first to act"),
        ("rc", "first to act"),
        ("crrc", "first to act"),
        ("rcc", "after a check or call"),
        ("rrcr", "facing one bet"),
        ("ccrrr", "facing two or more bets"),
    ],
)
def test_a_decision_is_of_the_kind_that_its_round_has_made_it(line: str, kind: str) -> None:
    tree = PokerGame(FHP).tree
    node = 0
    for letter in line:
        node = int(tree.child[node, ACTION_LETTERS.index(letter)])
    assert KINDS[decision_kinds(tree)[node]] == kind


def test_a_raise_of_any_size_is_one() -> None:
    spot = Spot.parse("Qs 7h 2c 9d 4s", "river 50 100", pot=10, stacks=40, dealer="AA", big_blind="KK")
    tree = spot.game(merge=False).tree
    bets = tree.child[0, RAISE:][tree.legal[0, RAISE:]]
    assert len(bets) == 2
    assert {KINDS[kind] for kind in decision_kinds(tree)[bets]} == {"facing one bet"}


@pytest.mark.parametrize("rules", [*GAMES, FHP], ids=lambda rules: rules.name)
def test_the_kinds_of_a_round_part_its_decisions_and_the_rounds_part_all(rules: PokerRules) -> None:
    tree = PokerGame(rules).tree
    sets = decision_sets(rules, tree)
    assert len({one.name for one in sets}) == len(sets)
    assert sets[0].name == ALL
    assert sets[0].free.all()
    for round_ in range(rules.num_rounds):
        kinds = [one.free for one in sets if one.round == round_ and one.kind is not None]
        here = tree.round[: tree.num_decisions] == round_
        assert (np.sum(kinds, axis=0) == here).all()
        assert all(kind.any() for kind in kinds)
        rounds = [one.free for one in sets if one.round == round_ and one.kind is None]
        assert len(rounds) == (rules.num_rounds > 1)
        assert all((free == here).all() for free in rounds)


def test_rounds_are_named_by_their_cards() -> None:
    assert [round_name(FHP, r) for r in (0, 1)] == ["round 1 (no board cards)", "round 2 (3 board cards)"]
    assert round_name(LEDUC, 1) == "round 2 (1 board card)"


def test_deviations_are_in_thousandths_and_say_where() -> None:
    policy = random_policy(LEDUC, "canonical", seed=10)
    tree = policy.game.tree
    sets = decision_sets(LEDUC, tree)
    told: list[tuple[int, int]] = []
    found = deviations(policy, sets, on_board=lambda *done: told.append(done))
    expected = 1000 * gains(policy, np.stack([one.free for one in sets]))
    assert [one.gains for one in found] == [tuple(pair) for pair in expected.T.tolist()]
    assert [(one.name, one.round, one.kind, one.decisions) for one in found] == [
        (one.name, one.round, one.kind, int(one.free.sum())) for one in sets
    ]
    assert found[0].nash_conv == pytest.approx(exploitability(policy).nash_conv)
    assert told[-1] == (3, 3)
    assert deviations(policy, []) == []


# Refusals.
# --------------------------------------------------------------------------------------------------------------


def test_games_without_boards_and_games_out_of_reach_are_refused() -> None:
    other: Any = SimpleNamespace(game=SimpleNamespace(name="goofspiel"))
    with pytest.raises(GameError, match=r"round by round in poker games, but 'goofspiel' is not one\."):
        deviations(other, [])
    hulh = PokerGame(PRESETS["hulh"])
    sets = [DecisionSet(ALL, None, None, np.ones(hulh.tree.num_decisions, bool))]
    with pytest.raises(GameError, match=r"hulh has 51,979,200 boards"):
        deviations(UniformPolicy(hulh), sets)
