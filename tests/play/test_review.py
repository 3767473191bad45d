"""Reviews of hands: the adjusted result is unbiased, and costs are those of exact best responses."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from deepcfr.game.cards import free_holes
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.measure.exploitability import exploitability
from deepcfr.play.costs import Costs
from deepcfr.play.hand import Hand, adjusted_result, agents_range, decisions
from deepcfr.policy.query import query
from leaning import Leaning

GAMES = {name: PokerGame(PRESETS[name]) for name in ("kuhn", "leduc", "fhp-mini")}


def hand_of(name: str, cards: Sequence[int], person: int, actions: Sequence[int]) -> Hand:
    """A hand against the uneven agent with given cards, after some actions of both."""
    game = GAMES[name]
    hand = Hand(Leaning(game), 0, person, np.array([cards], np.uint8))
    for action in actions:
        hand.act(action)
    return hand


def ways(name: str, cards: Sequence[int], person: int) -> list[tuple[float, Hand]]:
    """Every way in which a hand can end, with its probability when both play as the uneven agent does."""
    found: list[tuple[float, Hand]] = []

    def walk(actions: list[int], chance: float) -> None:
        hand = hand_of(name, cards, person, actions)
        if hand.over:
            found.append((chance, hand))
            return
        for action, share in hand.probabilities().items():
            walk([*actions, action], chance * share)

    walk([], 1.0)
    return found


@pytest.mark.parametrize("person", [0, 1])
def test_the_adjusted_result_is_unbiased_and_varies_less(person: int) -> None:
    ends = [(chance / 6, hand) for cards in permutations(range(3)) for chance, hand in ways("kuhn", cards[:2], person)]
    chance = np.array([share for share, _ in ends])
    raw = np.array([hand.won for _, hand in ends])
    adjusted = np.array([adjusted_result(hand) for _, hand in ends])
    assert chance.sum() == pytest.approx(1)
    assert chance @ adjusted == pytest.approx(chance @ raw, abs=1e-12)
    assert chance @ adjusted**2 < 0.8 * (chance @ raw**2)


def test_the_adjusted_result_is_bayes_rule_by_hand() -> None:
    # Kuhn: the person holds Q, checks, the agent bets, the person calls: the agent had J or K.
    hand = hand_of("kuhn", [1, 0], 0, [1, 2, 1])
    bets = {card: query(hand.policy, f"{card} / c").probabilities["bet"] for card in "JK"}
    assert adjusted_result(hand) == pytest.approx(2 * (bets["J"] - bets["K"]) / sum(bets.values()))
    assert hand.won == 2
    likely = sorted(((card, bet / sum(bets.values())) for card, bet in bets.items()), key=lambda one: -one[1])
    assert agents_range(hand) == [(card, pytest.approx(share)) for card, share in likely]
    assert agents_range(hand, 1) == agents_range(hand)[:1]


def test_where_the_agent_never_acts_so_the_result_stands_and_there_is_no_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after more training of the agent in the middle of a hand."""
    hand = hand_of("kuhn", [1, 0], 0, [1, 2, 1])
    monkeypatch.setattr(Hand, "strategies", lambda *_: {0: np.ones(2), 2: np.zeros(2)})
    assert (adjusted_result(hand), agents_range(hand)) == (2, [])


@pytest.mark.parametrize("name", ["leduc"])
def test_values_of_first_decisions_make_up_the_exact_best_response(name: str) -> None:
    game = GAMES[name]
    policy = Leaning(game)
    costs, exact = Costs(policy), exploitability(policy)
    costs.prepare()
    deck, rest = game.rules.num_cards, sum(game.rules.board_cards)
    first = second = 0.0
    for mine in range(deck):
        others = [card for card in range(deck) if card != mine]
        opening = costs.at(hand_of(name, [mine, *others[: 1 + rest]], 0, [1]), 0)
        assert opening is not None
        first += max(opening.actions.values()) / deck
        for action in opening.actions:  # of the agent, who now acts first
            answer = hand_of(name, [others[0], mine, *others[1 : 1 + rest]], 1, [action, 1])
            reply = costs.at(answer, 1)
            assert reply is not None
            chance = answer.chances(free_holes(game.rules, (mine,)), 1).mean()
            second += chance * max(reply.actions.values()) / deck
    assert 1000 * first == pytest.approx(exact.best_response_values[0], abs=1e-9)
    assert 1000 * second == pytest.approx(exact.best_response_values[1], abs=1e-9)


def test_the_last_round_agrees_with_the_sweep_over_all_boards() -> None:
    # The call after check and bet ends the first round, and the person begins the second one.
    costs = Costs(Leaning(GAMES["leduc"]))
    costs.prepare()
    reached = later = 0.0
    for board in (1, 2, 3, 5):
        hand = hand_of("leduc", [4, 0 if board else 1, board], 0, [1, 2, 1, 1, 1])
        value = costs.at(hand, 3)
        assert value is not None
        assert value.exact
        chance = float(hand.chances(free_holes(hand.rules, (4, board)), 3).sum())
        reached, later = reached + chance, later + chance * max(value.actions.values())
    hand = hand_of("leduc", [4, 1, 0], 0, [1, 2, 1, 1, 1])
    value, call = costs.at(hand, 3), costs.at(hand, 2)
    assert value is not None
    assert call is not None
    chance = float(hand.chances(free_holes(hand.rules, (4, 0)), 3).sum())
    reached, later = reached + chance, later + chance * max(value.actions.values())
    assert call.actions[1] == pytest.approx(later / reached)


def played_on(hand: Hand, step: int, action: int) -> float:
    """The person's mean gain after an action if both play on as the agent does, over all cards that fit."""
    mine, board = hand.hole(0), hand.board_at(hand.steps[step].round)
    total = weight = 0.0
    for rest in permutations([card for card in range(hand.rules.num_cards) if card not in mine], 2):
        dealt = Hand(hand.policy, hand.seed, hand.number, np.array([[*mine, *rest]], np.uint8))
        chance = float(hand.chances(np.array([rest[:1]], np.uint8), step)[0])
        assert not board
        weight += chance
        for one in hand.steps[:step]:
            dealt.act(one.action)
        dealt.act(action)
        total += chance * _mean(dealt)
    return total / weight


def _mean(hand: Hand) -> float:
    if hand.over:
        return hand.won
    total = 0.0
    for action, share in hand.probabilities().items():
        after = hand.again(len(hand.steps))
        after.act(action)
        total += share * _mean(after)
    return total


@pytest.fixture
def estimating(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """Costs in Leduc that estimate the first round, as in a game with too many boards."""
    costs = Costs(Leaning(GAMES["leduc"]))
    monkeypatch.setattr(costs, "_small", False)
    return costs


def test_an_estimate_is_unbiased_and_its_intervals_cover(estimating: Costs) -> None:
    right = covered = 0
    exact: dict[int, float] = {}
    for seed in range(20):
        hand = Hand(estimating.policy, seed, 0, np.array([[4, 1, 2]], np.uint8))
        for action in (1, 2, 1, 1, 1):
            hand.act(action)
        exact = exact or {action: played_on(hand, 2, action) for action in (0, 1, 2)}
        found = estimating.at(hand, 2, deals=400)
        assert found is not None
        assert found == estimating.at(hand, 2, deals=400)  # depends on the seed and the hand only
        assert not found.exact
        for action, value in exact.items():
            right += abs(found.actions[action] - value) < 1.5 * found.halves[action] + 1e-9
            covered += abs(found.actions[action] - value) <= found.halves[action] + 1e-9
        assert (found.actions[0], found.halves[0]) == (pytest.approx(exact[0]), pytest.approx(0))
        assert abs(found.cost - (max(exact.values()) - exact[1])) < 2 * found.cost_half
    assert covered >= 54  # of 60
    assert right >= 59


def test_decisions_of_large_games_are_exact_on_the_river_and_estimated_before() -> None:
    game = PokerGame(PRESETS["hulh"])
    costs, hand = Costs(Leaning(game)), Hand(Leaning(game), 1, 1)
    while not hand.over:
        hand.act(1)
    assert not costs.quick
    for step in (step for step, taken in enumerate(hand.steps) if taken.player == hand.person):
        values = costs.at(hand, step, deals=100)
        assert values is not None
        assert values.exact == (hand.steps[step].round == 3) == (values.cost_half == 0)
        assert all((half == 0) == (values.exact or action == 0) for action, half in values.halves.items())
    if hand.steps[-1].player == hand.person:
        assert values.actions[1] == pytest.approx(adjusted_result(hand))


def test_a_hand_that_the_agent_cannot_have_played_has_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    hand = hand_of("leduc", [4, 0, 2], 0, [1, 2, 1, 1, 1])
    monkeypatch.setattr(Hand, "chances", lambda _, holes, __: np.zeros(len(holes)))
    costs = Costs(hand.policy)
    assert costs.at(hand, 3) is None


def test_decisions_are_those_of_the_person_with_what_the_agent_would_do() -> None:
    hand = hand_of("leduc", [4, 0, 2], 0, [1, 2, 1, 1, 1])
    found = decisions(hand)
    assert [(d.step, d.action) for d in found] == [(0, 1), (2, 1), (3, 1)]
    texts = ["Kc", "Kc / cr", "Kc / crc / Qc"]
    for decision, text in zip(found, texts, strict=True):
        expected = query(hand.policy, text).probabilities
        assert {decision.names[a]: p for a, p in decision.agent.items()} == pytest.approx(expected)
