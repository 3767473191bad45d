"""Reviews of hands: the adjusted result is unbiased, and costs are those of exact best responses."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
import torch

from deepcfr.core.types import Infosets
from deepcfr.game.cards import cards_text
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.measure.exploitability import exploitability
from deepcfr.play.costs import Costs
from deepcfr.play.hand import Hand, adjusted_result, agents_range, decisions, free_holes
from deepcfr.policy.base import Policy
from deepcfr.policy.query import query

GAMES = {name: PokerGame(PRESETS[name]) for name in ("kuhn", "leduc", "fhp-mini")}


class Uneven(Policy):
    """Probabilities that differ with cards and nodes, and are never 0."""

    kind = "uneven"

    def __init__(self, game: PokerGame) -> None:
        self.game = game

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        legal = self.game.encoding.legal[infosets.node.long()].double()
        seen = (infosets.cards.double() * torch.arange(1, infosets.cards.shape[1] + 1)).sum(1)
        angle = seen[:, None] * 0.7 + infosets.node.double()[:, None] + torch.arange(3)
        weight = legal * (1.2 + torch.sin(angle))
        return weight / weight.sum(1, keepdim=True)


def hand_of(name: str, cards: Sequence[int], person: int, actions: Sequence[int]) -> Hand:
    """A hand against the uneven agent with given cards, after some actions of both."""
    game = GAMES[name]
    hand = Hand(Uneven(game), 0, person, np.array([cards], np.uint8))
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
    bets = [query(hand.policy, f"{card} / c").probabilities["bet"] for card in "JK"]
    expected = (2 * bets[0] - 2 * bets[1]) / sum(bets)
    assert adjusted_result(hand) == pytest.approx(expected)
    assert hand.won == 2
    assert dict(agents_range(hand)) == pytest.approx({"J": bets[0] / sum(bets), "K": bets[1] / sum(bets)})


def test_where_the_agent_never_acts_so_the_result_stands_and_there_is_no_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after more training of the agent in the middle of a hand."""
    hand = hand_of("kuhn", [1, 0], 0, [1, 2, 1])
    monkeypatch.setattr(Hand, "strategies", lambda *_: {0: np.ones(2), 2: np.zeros(2)})
    assert (adjusted_result(hand), agents_range(hand)) == (2, [])


def test_a_fold_is_worth_the_same_against_every_hand() -> None:
    hand = hand_of("leduc", [4, 0, 2], 1, [2, 0])
    assert (hand.won, adjusted_result(hand)) == (-1, -1)
    assert hand.wins(free_holes(hand.rules, (0,))).tolist() == [-1] * 5


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_values_of_first_decisions_make_up_the_exact_best_response(name: str) -> None:
    game = GAMES[name]
    policy = Uneven(game)
    costs, exact = Costs(policy), exploitability(policy)  # type: ignore[arg-type]
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


@pytest.mark.parametrize("seed", range(4))
def test_the_value_of_a_last_call_is_the_adjusted_result(seed: int) -> None:
    game = GAMES["fhp-mini"]
    policy = Uneven(game)
    costs, ours, hand = Costs(policy), 0, Hand(policy, seed, seed % 2)  # type: ignore[arg-type]
    while not hand.over:  # the person calls everything, so its last action leads to the showdown or is answered
        if hand.persons_turn:
            ours = len(hand.steps)
            hand.act(1)
        else:
            hand.act(1 if len(hand.steps) % 2 else max(choice.action for choice in hand.choices()))
    found = costs.at(hand, ours)
    assert hand.state.showdown
    assert found is not None
    values = found.actions
    if ours == len(hand.steps) - 1:
        assert values[1] == pytest.approx(adjusted_result(hand))
    assert min(values.values()) >= -sum(hand.chips)
    if 0 in values:  # folding gives up what has been put in
        tree = game.tree
        chips = tree.chips[tree.path(hand.state.node)[ours][0]][hand.person]
        assert values[0] == pytest.approx(-chips / 100)


def test_no_cost_is_negative_and_the_best_choice_costs_nothing() -> None:
    costs = Costs(Uneven(GAMES["leduc"]))  # type: ignore[arg-type]
    assert costs.quick
    hand = hand_of("leduc", [4, 0, 2], 0, [1, 2, 1, 1, 2, 1])
    assert costs.at(hand, 0) is None  # the first round is not computed yet
    costs.prepare_soon()
    for decision in decisions(hand):
        found = costs.at(hand, decision.step)
        assert found is not None
        assert set(found.actions) == set(decision.agent) == set(decision.names)
        assert found.cost == max(found.actions.values()) - found.actions[decision.action] >= 0


def test_the_last_round_agrees_with_the_sweep_over_all_boards() -> None:
    # The call after check and bet ends the first round, and the person begins the second one.
    costs = Costs(Uneven(GAMES["leduc"]))
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
    costs = Costs(Uneven(GAMES["leduc"]))
    monkeypatch.setattr(costs, "_small", False)
    return costs


def test_an_estimate_is_unbiased_and_its_intervals_cover(estimating: Costs) -> None:
    right = covered = count = 0
    exact: dict[int, float] = {}
    for seed in range(40):
        hand = Hand(estimating.policy, seed, 0, np.array([[4, 1, 2]], np.uint8))
        for action in (1, 2, 1, 1, 1):
            hand.act(action)
        exact = exact or {action: played_on(hand, 2, action) for action in (0, 1, 2)}
        found = estimating.at(hand, 2, deals=400)
        assert found is not None
        assert not found.exact
        best = max(exact.values())
        for action, value in exact.items():
            right += abs(found.actions[action] - value) < 1.5 * found.halves[action] + 1e-9
            covered += abs(found.actions[action] - value) <= found.halves[action] + 1e-9
            count += 1
        assert found.actions[0] == pytest.approx(exact[0])
        assert found.halves[0] == pytest.approx(0)
        assert abs(found.cost - (best - exact[1])) < 2 * found.cost_half
    assert count == 120
    assert covered >= 110
    assert right >= 118


def test_an_estimate_depends_on_the_seed_and_the_hand_only(estimating: Costs) -> None:
    def estimate(seed: int) -> object:
        hand = Hand(estimating.policy, seed, 0, np.array([[4, 1, 2]], np.uint8))
        for action in (1, 2, 1, 1, 1):
            hand.act(action)
        return estimating.at(hand, 0, deals=50)

    assert estimate(3) == estimate(3)
    assert estimate(3) != estimate(4)


@pytest.mark.parametrize("seed", [0, 1])
def test_decisions_of_large_games_are_exact_on_the_river_and_estimated_before(seed: int) -> None:
    game = PokerGame(PRESETS["hulh"])
    costs, hand = Costs(Uneven(game)), Hand(Uneven(game), seed, seed)
    while not hand.over:
        hand.act(1)
    assert not costs.quick
    for step in (step for step, taken in enumerate(hand.steps) if taken.player == hand.person):
        values = costs.at(hand, step, deals=200)
        assert values is not None
        assert values.exact == (hand.steps[step].round == 3)
        assert (values.cost_half == 0) == values.exact
        assert all((half == 0) == (values.exact or action == 0) for action, half in values.halves.items())
    last = costs.at(hand, len(hand.steps) - 1 - (hand.steps[-1].player != hand.person))
    assert last is not None
    if hand.steps[-1].player == hand.person:
        assert last.actions[1] == pytest.approx(adjusted_result(hand))


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


def test_the_agents_range_leaves_out_known_cards_and_sums_to_one() -> None:
    hand = Hand(Uneven(GAMES["fhp-mini"]), 5, 0)  # type: ignore[arg-type]
    while not hand.over:
        hand.act(1)
    shares = agents_range(hand)
    known = {*cards_text(hand.rules, hand.hole(0)).split(), *cards_text(hand.rules, hand.board).split()}
    assert sum(share for _, share in shares) == pytest.approx(1)
    assert len(shares) == 15 * 14 // 2
    assert not any(known & set(text.split()) for text, _ in shares)
    order = cards_text(hand.rules, range(hand.rules.num_cards)).split()
    assert all(order.index(first) > order.index(second) for first, second in (text.split() for text, _ in shares))
    assert agents_range(hand, 8) == shares[:8]
    assert [share for _, share in shares] == sorted((share for _, share in shares), reverse=True)
