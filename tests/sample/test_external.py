"""External sampling: the batched traversal is Algorithm 2 history by history, and its regrets are unbiased (Lemma 1)."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import TERMINAL, Samples
from deepcfr.game.base import Deals
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.sample import external
from deepcfr.sample.external import Strategy, sample_actions, traverse

Profile = Callable[[int, tuple[int, ...]], list[float]]
"""(node, visible cards) to action probabilities: a strategy of both players, one infoset at a time."""


def visible(game: PokerGame, deals: Deals, row: int, node: int) -> tuple[int, ...]:
    return tuple(deals.visible_cards[row, game.actor[node], game.round[node]].tolist())


# Strategies. Tables have exact zeros in some places and are pure in others.


class RandomTable:
    """A random strategy, drawn for each infoset when it is first asked for."""

    def __init__(self, game: PokerGame, seed: int, interior: bool = False) -> None:
        self.game, self.seed, self.interior = game, seed, interior
        self.rows: dict[tuple[int, tuple[int, ...]], list[float]] = {}

    def __call__(self, node: int, cards: tuple[int, ...]) -> list[float]:
        at = (node, cards)
        if at not in self.rows:
            rng = np.random.default_rng([self.seed, node, *cards])
            legal = self.game.legal[node].numpy()
            weights = (rng.random(len(legal)) + 0.15) * legal
            if not self.interior:
                keep = np.where(rng.random(len(legal)) < 0.25, 0, weights)
                weights = keep if keep.sum() > 0 else weights
            self.rows[at] = torch.tensor(weights / weights.sum(), dtype=torch.float32).tolist()
        return self.rows[at]


def batched(game: PokerGame, profile: Profile, deals: Deals) -> tuple[Strategy, Strategy]:
    return looked_up(game, profile, deals), looked_up(game, profile, deals)


def looked_up(game: PokerGame, profile: Profile, deals: Deals) -> Strategy:
    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        pairs = zip(node.tolist(), row.tolist(), strict=True)
        return torch.tensor([profile(n, visible(game, deals, r, n)) for n, r in pairs])

    return strategy


# Algorithm 2, one history at a time


@dataclass
class Recursion:
    """A plain traversal; samples are (node, cards, target)."""

    game: PokerGame
    deals: Deals
    traverser: int
    profile: Profile
    stream: int
    advantages: list[tuple[int, tuple[int, ...], list[float]]] = field(default_factory=list)
    strategies: list[tuple[int, tuple[int, ...], list[float]]] = field(default_factory=list)
    touched: int = 0

    def value(self, row: int, node: int) -> float:
        """The value of the history to the traverser."""
        self.touched += 1 + self.chance_events_before(node)
        if self.game.actor[node] == TERMINAL:
            payoff = float(self.game.payoff(torch.tensor([node]), torch.tensor([row]), self.deals))
            return payoff if self.traverser == 0 else -payoff
        cards = visible(self.game, self.deals, row, node)
        probabilities = self.profile(node, cards)
        actions = [a for a, legal in enumerate(self.game.legal[node].tolist()) if legal]
        if self.game.actor[node] != self.traverser:
            self.strategies.append((node, cards, probabilities))
            return self.value(row, self.after(node, self.drawn(row, node, probabilities)))
        values = {a: self.value(row, self.after(node, a)) for a in actions}
        mean = sum(probabilities[a] * values[a] for a in actions)
        regrets = [values[a] - mean if a in actions else 0.0 for a in range(len(probabilities))]
        self.advantages.append((node, cards, regrets))
        return mean

    def after(self, node: int, action: int) -> int:
        return int(self.game.tree.child[node, action])

    def chance_events_before(self, node: int) -> int:
        tree = self.game.tree
        return 1 if tree.parent[node] < 0 else int(tree.round[node] - tree.round[tree.parent[node]])

    def drawn(self, row: int, node: int, probabilities: list[float]) -> int:
        chance = float(addressed_uniforms(self.stream, self.deals.traversal[row], torch.tensor(node)))
        total = 0.0
        for action, probability in enumerate(probabilities):
            total += probability
            if chance < total:
                return action
        return max(a for a, probability in enumerate(probabilities) if probability > 0)


def listed(samples: Samples) -> list[tuple[int, tuple[int, ...], list[float]]]:
    columns = samples.infosets.node.tolist(), samples.infosets.cards.tolist(), samples.target.tolist()
    return [(node, tuple(cards), target) for node, cards, target in zip(*columns, strict=True)]


def assert_same_samples(
    mine: list[tuple[int, tuple[int, ...], list[float]]], theirs: list[tuple[int, tuple[int, ...], list[float]]]
) -> None:
    """Both hold the same samples in any order, with targets equal up to float32 rounding."""
    groups: tuple[dict[tuple[int, tuple[int, ...]], list[list[float]]], ...] = defaultdict(list), defaultdict(list)
    for group, samples in zip(groups, (mine, theirs), strict=True):
        for node, cards, target in samples:
            group[node, cards].append(target)
    assert {at: len(targets) for at, targets in groups[0].items()} == {at: len(t) for at, t in groups[1].items()}
    for at, targets in groups[0].items():
        left = np.array(groups[1][at])
        for target in np.array(targets):
            distance = np.abs(left - target).max(1)
            nearest = int(distance.argmin())
            assert distance[nearest] < 2e-5 * (1 + np.abs(target).max()), (at, target, left[nearest])
            left = np.delete(left, nearest, axis=0)


@pytest.mark.parametrize("traverser", [0, 1])
@pytest.mark.parametrize(("name", "count"), [("kuhn", 150), ("leduc", 30), ("fhp", 6), ("kuhn", 0)])
def test_a_batch_is_algorithm_2_history_by_history(name: str, count: int, traverser: int) -> None:
    game = load_game(name)
    deals, profile = game.deal(count, key(3, "deals"), first=17), RandomTable(game, 5)
    found = traverse(game, deals, traverser, batched(game, profile, deals), key(3, "actions"), iteration=4)
    recursion = Recursion(game, deals, traverser, profile, key(3, "actions"))
    values = [recursion.value(row, int(node)) for row, node in enumerate(game.start(deals))]
    assert_same_samples(listed(found.advantages), recursion.advantages)
    assert_same_samples(listed(found.strategies), recursion.strategies)
    np.testing.assert_allclose(found.values, values, atol=2e-5, rtol=2e-5)
    assert found.nodes_touched == recursion.touched
    for samples in (found.advantages, found.strategies):
        assert samples.iteration.tolist() == [4] * len(samples)
        assert samples.target.dtype == torch.float32


# Lemma 1, exactly: Kuhn with every deal and every pure plan of the opponent


@dataclass
class Enumeration:
    """Exact expectations over all deals and the opponent's actions, deals in arrays [D]."""

    game: PokerGame
    deals: Deals  # every deal once, all equally likely
    traverser: int
    profile: Profile
    visits: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=lambda: defaultdict(float))
    regrets: dict[tuple[int, tuple[int, ...]], np.ndarray] = field(default_factory=lambda: defaultdict(lambda: 0.0))
    opponent: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=lambda: defaultdict(float))
    value: float = 0.0  # of the game to the traverser

    def run(self) -> "Enumeration":
        self.value = self.values(0, np.full(len(self.deals), 1 / len(self.deals))).mean()
        return self

    def values(self, node: int, reach: np.ndarray) -> np.ndarray:
        """Expected payoff of the traverser [D] if both play the profile from `node`, which chance and the opponent
        reach with probability `reach` [D]; counterfactual regrets are the sums over an infoset's histories."""
        game, count = self.game, len(self.deals)
        if game.actor[node] == TERMINAL:
            rows = torch.arange(count)
            payoff = game.payoff(torch.full((count,), node), rows, self.deals).double().numpy()
            return payoff if self.traverser == 0 else -payoff
        cards = [visible(game, self.deals, row, node) for row in range(count)]
        strategy = np.array([self.profile(node, canonical) for canonical in cards])
        mine = game.actor[node] == self.traverser
        action_values = np.zeros_like(strategy)
        for action in np.flatnonzero(game.legal[node].numpy()):
            below = reach if mine else reach * strategy[:, action]
            action_values[:, action] = self.values(int(game.tree.child[node, action]), below)
        values = (strategy * action_values).sum(1)
        for row, canonical in enumerate(cards):
            if mine:
                regret = (action_values[row] - values[row]) * game.legal[node].numpy()
                self.visits[node, canonical] += reach[row]
                self.regrets[node, canonical] = self.regrets[node, canonical] + reach[row] * regret
            else:
                self.opponent[node, canonical] += reach[row]
        return values

    def advantage(self, at: tuple[int, tuple[int, ...]]) -> np.ndarray:
        """(v(I, a) - v(I)) / pi_{-p}(I)."""
        return self.regrets[at] / self.visits[at]


def every_deal(game: PokerGame) -> Deals:
    slots = 2 * game.rules.hole_cards + sum(game.rules.board_cards)
    return game.deals_of(np.array(list(permutations(range(game.rules.num_cards), slots)), np.uint8))


def pure_plans(game: PokerGame, profile: Profile, player: int) -> Iterator[tuple[float, Profile]]:
    """Every way to fix one action at each infoset of `player`, with its probability under `profile`."""
    nodes = (game.actor == player).nonzero()[:, 0].tolist()
    infosets = [(node, (card,)) for node in nodes for card in range(3)]
    for actions in product(*(np.flatnonzero(game.legal[node].numpy()) for node, _ in infosets)):
        chosen = dict(zip(infosets, actions, strict=True))
        weight = np.prod([profile(*at)[action] for at, action in chosen.items()])
        if weight > 0:
            yield float(weight), lambda node, cards, c=chosen: np.eye(3)[c[node, cards]].tolist()


@pytest.mark.parametrize("actions", [0, 1])
@pytest.mark.parametrize("traverser", [0, 1])
def test_regrets_average_exactly_to_the_advantage_over_all_of_kuhns_chance(
    traverser: int, actions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every deal and plan of the opponent; in robust sampling of one action, every draw at both of one's decisions."""
    game = load_game("kuhn")
    deals, profile = every_deal(game), RandomTable(game, 2, interior=True)
    exact = Enumeration(game, deals, traverser, profile).run()
    visits: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    regrets: dict[tuple[int, tuple[int, ...]], np.ndarray] = defaultdict(lambda: np.zeros(3))
    value = total = 0.0
    nodes = (game.actor == traverser).nonzero()[:, 0]
    draws = list(product(*(np.flatnonzero(game.legal[node].numpy()) for node in nodes.tolist())))
    for chosen in draws if actions else draws[:1]:
        kept = torch.zeros_like(game.legal)
        kept[nodes, torch.tensor(chosen)] = True
        monkeypatch.setattr(external, "_drawn", lambda *rest, kept=kept: kept[rest[2]])
        for plan_weight, plan in pure_plans(game, profile, 1 - traverser):
            weight = plan_weight / (len(draws) if actions else 1)
            strategies = [looked_up(game, profile, deals)] * 2
            strategies[1 - traverser] = looked_up(game, plan, deals)
            found = traverse(game, deals, traverser, (strategies[0], strategies[1]), 0, 1, actions)
            total += weight
            value += weight * float(found.values.mean())
            for node, cards, target in listed(found.advantages):
                visits[node, cards] += weight / len(deals)
                regrets[node, cards] += weight / len(deals) * np.array(target)
    assert total == pytest.approx(1, abs=1e-6)
    assert set(visits) == set(exact.visits)
    assert (len(draws), len(visits)) == (4, 6)
    for at, probability in exact.visits.items():
        earlier = (
            0.5 if actions and traverser == 0 and at[0] != 0 else 1.0
        )  # the second decision follows half of the draws
        assert visits[at] == pytest.approx(earlier * probability, abs=1e-6)
        np.testing.assert_allclose(regrets[at] / visits[at], exact.advantage(at), atol=1e-5)
    assert value == pytest.approx(exact.value, abs=1e-5)


def test_actions_are_drawn_alike_and_without_replacement() -> None:
    legal = torch.tensor([[True, True, True], [True, False, True]])
    traversal = torch.arange(6_000)
    for actions, shares in ((1, [1 / 3, 1 / 2]), (2, [2 / 3, 1.0]), (3, [1.0, 1.0])):
        for row, share in enumerate(shares):
            found = external._drawn(legal[row].expand(6_000, 3), traversal, torch.full((6_000,), 5), 9, actions)
            assert found.sum(1).unique().tolist() == [min(actions, int(legal[row].sum()))]
            np.testing.assert_allclose(found.double().mean(0), share * legal[row].double(), atol=0.025)


def test_a_traversal_with_all_actions_drawn_is_the_plain_one() -> None:
    game = load_game("leduc")
    deals, profile = game.deal(40, 3), RandomTable(game, 5)
    plain, drawn = (traverse(game, deals, 0, batched(game, profile, deals), 7, 1, actions) for actions in (0, 3))
    assert_same_samples(listed(plain.advantages), listed(drawn.advantages))
    assert plain.nodes_touched == drawn.nodes_touched
    fewer = traverse(game, deals, 0, batched(game, profile, deals), 7, 1, 1)
    assert fewer.nodes_touched < plain.nodes_touched / 2


# Drawing actions


LARGEST = 1 - 2.0**-24


@given(
    st.lists(st.sampled_from([0.0, 1e-40, 1e-30, 1e-3, 0.25, 1 / 3, 0.5, 1.0, 3.0]), min_size=1, max_size=6).filter(sum)
)
def test_actions_of_probability_zero_are_never_drawn(weights: list[float]) -> None:
    rows = torch.tensor([weights]).repeat(5, 1)
    for probabilities in (rows, rows / rows.sum(1, keepdim=True)):
        drawn = sample_actions(probabilities, torch.tensor([0.0, 2.0**-24, 0.5, LARGEST - 2.0**-24, LARGEST]))
        assert bool((probabilities[0, drawn] > 0).all())
        assert drawn.tolist() == sorted(drawn.tolist())


def test_actions_are_drawn_with_their_probabilities() -> None:
    probabilities = torch.tensor([[0.5, 0.125, 0.0, 0.375], [0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]])
    cells = 1 << 12
    chance = (torch.arange(cells) + 0.5) / cells  # one number in each cell, so that the counts are exact
    for row in probabilities:
        drawn = sample_actions(row.repeat(cells, 1), chance)
        assert torch.equal(torch.bincount(drawn, minlength=4) / cells, row)
