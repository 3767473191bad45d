"""Reviews of hands: the adjusted result is unbiased, and costs are those of exact best responses."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
import torch

from deepcfr.evaluation.exploitability import exploitability
from deepcfr.games.cards import cards_text
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PRESETS
from deepcfr.play import costs as play_costs
from deepcfr.play.costs import Costs
from deepcfr.play.hand import Hand, adjusted_result, agents_range, decisions, free_holes
from deepcfr.policies.base import Policy
from deepcfr.policies.query import query
from deepcfr.types import Infosets

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


def test_a_fold_is_worth_the_same_against_every_hand() -> None:
    hand = hand_of("leduc", [4, 0, 2], 1, [2, 0])
    assert (hand.won, adjusted_result(hand)) == (-1, -1)
    assert hand.wins(free_holes(hand.rules, (0,))).tolist() == [-1] * 5


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_values_of_first_decisions_make_up_the_exact_best_response(name: str) -> None:
    game = GAMES[name]
    policy = Uneven(game)
    costs, exact = Costs(game, policy), exploitability(policy)  # type: ignore[arg-type]
    costs.prepare()
    deck, rest = game.rules.num_cards, sum(game.rules.board_cards)
    first = second = 0.0
    for mine in range(deck):
        others = [card for card in range(deck) if card != mine]
        opening = costs.at(hand_of(name, [mine, *others[: 1 + rest]], 0, [1]), 0)
        assert opening is not None
        first += max(opening.values()) / deck
        for action in opening:  # of the agent, who now acts first
            answer = hand_of(name, [others[0], mine, *others[1 : 1 + rest]], 1, [action, 1])
            reply = costs.at(answer, 1)
            assert reply is not None
            chance = answer.chances(free_holes(game.rules, (mine,)), 1).mean()
            second += chance * max(reply.values()) / deck
    assert 1000 * first == pytest.approx(exact.best_response_values[0], abs=1e-9)
    assert 1000 * second == pytest.approx(exact.best_response_values[1], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_value_of_a_last_call_is_the_adjusted_result(seed: int) -> None:
    game = GAMES["fhp-mini"]
    policy = Uneven(game)
    costs, ours, hand = Costs(game, policy), 0, Hand(policy, seed, seed % 2)  # type: ignore[arg-type]
    while not hand.over:  # the person calls everything, so its last action leads to the showdown or is answered
        if hand.persons_turn:
            ours = len(hand.steps)
            hand.act(1)
        else:
            hand.act(1 if len(hand.steps) % 2 else max(choice.action for choice in hand.choices()))
    values = costs.at(hand, ours)
    assert hand.state.showdown
    assert values is not None
    if ours == len(hand.steps) - 1:
        assert values[1] == pytest.approx(adjusted_result(hand))
    assert min(values.values()) >= -sum(hand.chips)
    if 0 in values:  # folding gives up what has been put in
        tree = game.tree
        chips = tree.chips[tree.path(hand.state.node)[ours][0]][hand.person]
        assert values[0] == pytest.approx(-chips / 100)


def test_no_cost_is_negative_and_the_best_choice_costs_nothing() -> None:
    costs = Costs(GAMES["leduc"], Uneven(GAMES["leduc"]))  # type: ignore[arg-type]
    assert costs.quick
    hand = hand_of("leduc", [4, 0, 2], 0, [1, 2, 1, 1, 2, 1])
    assert costs.at(hand, 0) is None  # the first round is not computed yet
    costs.prepare_soon()
    for decision in decisions(hand):
        values = costs.at(hand, decision.step)
        assert values is not None
        assert set(values) == set(decision.agent) == set(decision.names)
        assert values[decision.action] <= max(values.values())


def test_a_board_is_computed_once_for_all_decisions_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    costs, asked, compute = Costs(GAMES["leduc"], Uneven(GAMES["leduc"])), [], Costs._values_on  # type: ignore[arg-type]
    monkeypatch.setattr(Costs, "_values_on", lambda self, cards: asked.append(cards) or compute(self, cards))
    monkeypatch.setattr(play_costs, "KEPT_BOARDS", 1)
    hand = hand_of("leduc", [4, 0, 2], 0, [1, 1, 1, 2, 2, 1])
    ours = [decision.step for decision in decisions(hand)][1:]
    assert len(ours) == 2
    first = [costs.at(hand, step) for step in ours]
    assert asked == [(2,)]
    costs.at(hand_of("leduc", [4, 0, 3], 0, [1, 1, 1, 1]), 2)
    assert [costs.at(hand, step) for step in ours] == first
    assert asked == [(2,), (3,), (2,)]


def test_decisions_are_those_of_the_person_with_what_the_agent_would_do() -> None:
    hand = hand_of("leduc", [4, 0, 2], 0, [1, 2, 1, 1, 1])
    found = decisions(hand)
    assert [(d.step, d.action) for d in found] == [(0, 1), (2, 1), (3, 1)]
    texts = ["Kc", "Kc / cr", "Kc / crc / Qc"]
    for decision, text in zip(found, texts, strict=True):
        expected = query(hand.policy, text).probabilities
        assert {decision.names[a]: p for a, p in decision.agent.items()} == pytest.approx(expected)


def test_games_out_of_reach_say_so() -> None:
    game = PokerGame(PRESETS["hulh"])
    costs = Costs(game, Uneven(game))  # type: ignore[arg-type]
    assert costs.reason is not None
    assert "enumerates at most" in costs.reason
    assert not costs.quick
    hand = Hand(costs.policy, 3, 0)
    hand.act(0)
    assert costs.at(hand, 0) is None
    assert hand.won == -0.5


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
