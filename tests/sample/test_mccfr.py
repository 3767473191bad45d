"""Monte Carlo traversals: unbiased by enumeration of every sampled outcome, and compiled from that source."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from types import ModuleType

import numba as nb
import numpy as np
import pytest
import torch

from deepcfr.buckets.buckets import lossless
from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import TERMINAL
from deepcfr.game.betting import FOLD, RAISE
from deepcfr.game.cards import deal_cards
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.sample import mccfr
from deepcfr.sample.traversal_tree import (
    Situations,
    TraversalTree,
    explicit_situations,
    explicit_traversal_tree,
    poker_situations,
    poker_traversal_tree,
    situations_of,
    table_layout,
)

EXPLORATION = 0.3
SAMPLERS = ("external", "outcome")


@dataclass
class Poker:
    """A poker game with a lossless abstraction, and random regrets in double precision."""

    game: PokerGame
    seed: int = 0

    def __post_init__(self) -> None:
        self.abstraction = lossless(self.game.rules)
        self.layout = table_layout(self.game.tree, self.abstraction.counts)
        self.traversal_tree = poker_traversal_tree(self.game, self.layout)
        self.regrets = np.random.default_rng(self.seed).normal(size=self.layout.size)

    def entries(self, node: int, hole: tuple[int, ...], board: tuple[int, ...] = ()) -> list[int]:
        """Where the actions of an infoset stand in the tables."""
        holes, boards = np.array([hole], np.uint8), np.array([board], np.uint8).reshape(1, -1)
        bucket = int(self.abstraction.buckets(int(self.game.tree.round[node]), holes, boards)[0])
        at = int(self.layout.start[node] + self.layout.stride[node] * bucket)
        return list(range(at, at + int(self.game.tree.legal[node].sum())))


@pytest.fixture
def kuhn() -> Poker:
    return Poker(load_game("kuhn"))


@pytest.fixture
def leduc() -> Poker:
    return Poker(load_game("leduc"))


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A copy of the kernels' module that Python runs as it is, so that tests can put other choices into it."""
    monkeypatch.setattr(nb, "njit", lambda **_: lambda function: function)
    spec = importlib.util.find_spec("deepcfr.sample.mccfr")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.undo()
    return module


def run(
    kernels: ModuleType, sampler: str, tree: TraversalTree, regrets: np.ndarray, situations: Situations, traverser: int,
    weight: float = 1.0, stream: int = 0, first: int = 0,
) -> tuple[np.ndarray, np.ndarray, int]:  # fmt: skip
    """The sums that traversals add to regrets and averages, and the nodes touched; `regrets` stays unchanged."""
    after, averages = regrets.copy(), np.zeros_like(regrets)
    where = (tree, after, averages, situations, traverser, weight, np.uint64(stream), first)
    if sampler == "external":
        touched = kernels.external_traversals(*where)
    else:
        touched = kernels.outcome_traversals(*where, EXPLORATION, kernels.PLAIN)
    return after - regrets, averages, touched


@dataclass
class Script:
    """Random choices as given, then the first possible one each time; notes what could have been chosen."""

    given: list[int]
    chosen: list[int] = field(default_factory=list)
    shares: list[np.ndarray] = field(default_factory=list)

    def __call__(self, share: np.ndarray, first: int, count: int, uniform: float) -> int:  # noqa: ARG002
        place = len(self.chosen)
        self.shares.append(share[first : first + count].copy())
        self.chosen.append(self.given[place] if place < len(self.given) else int(np.flatnonzero(self.shares[-1])[0]))
        return self.chosen[-1]

    def probability(self) -> float:
        return float(np.prod([shares[choice] for choice, shares in zip(self.chosen, self.shares, strict=True)]))

    def others(self) -> Iterator[list[int]]:
        """The scripts that differ from this one first where it chose by itself."""
        for place in range(len(self.given), len(self.chosen)):
            for other in np.flatnonzero(self.shares[place]):
                if other > self.chosen[place]:
                    yield [*self.chosen[:place], int(other)]


def expected(
    plain: ModuleType, sampler: str, tree: TraversalTree, regrets: np.ndarray, situations: Situations, traverser: int
) -> tuple[np.ndarray, np.ndarray]:
    """The exact expectation of what one traversal adds: every sequence of random choices with its probability."""
    regret, average, mass = np.zeros_like(regrets), np.zeros_like(regrets), 0.0
    scripts: list[list[int]] = [[]]
    while scripts:
        script = Script(scripts.pop())
        plain.sample = script
        found = run(plain, sampler, tree, regrets, situations, traverser)
        regret += script.probability() * found[0]
        average += script.probability() * found[1]
        mass += script.probability()
        scripts += script.others()
    assert mass == pytest.approx(1.0)
    return regret, average


def expected_in_kuhn(plain: ModuleType, sampler: str, poker: Poker, traverser: int) -> tuple[np.ndarray, np.ndarray]:
    parts = [
        expected(plain, sampler, poker.traversal_tree, poker.regrets, situations, traverser)
        for situations in (situations_of(poker.abstraction, np.array([c], np.uint8)) for c in permutations(range(3), 2))
    ]
    return sum(p[0] for p in parts) / 6, sum(p[1] for p in parts) / 6


# Exact values, by a recursion over the rules' own tree


def matched(regrets: np.ndarray, entries: list[int]) -> np.ndarray:
    positive = np.maximum(regrets[entries], 0)
    return positive / positive.sum() if positive.sum() > 0 else np.full(len(entries), 1 / len(entries))


def exact_in_kuhn(poker: Poker, traverser: int) -> tuple[np.ndarray, np.ndarray]:
    """Counterfactual regrets of the traverser; the opponent's strategy times its reach and that of chance."""
    tree = poker.game.tree
    regret, average = np.zeros_like(poker.regrets), np.zeros_like(poker.regrets)

    def value(node: int, cards: tuple[int, int], reach: tuple[float, float]) -> float:
        """To the traverser; `reach` is the players' own, and every deal has chance 1/6."""
        if tree.actor[node] == TERMINAL:
            stake, own = (int(c) for c in tree.chips[node, [1 - traverser, traverser]])
            if tree.winner[node] >= 0:
                return stake if tree.winner[node] == traverser else -own
            return stake if cards[traverser] > cards[1 - traverser] else -own
        player = int(tree.actor[node])
        entries = poker.entries(node, (cards[player],))
        sigma = matched(poker.regrets, entries)
        children = [int(child) for child in tree.child[node] if child >= 0]
        values = np.array(
            [
                value(child, cards, (reach[0] * (p if player == 0 else 1), reach[1] * (p if player == 1 else 1)))
                for child, p in zip(children, sigma, strict=True)
            ]
        )
        if player == traverser:
            regret[entries] += reach[1 - traverser] / 6 * (values - sigma @ values)
        else:
            average[entries] += reach[player] / 6 * sigma
        return float(sigma @ values)

    for cards in permutations(range(3), 2):
        value(0, cards, (1.0, 1.0))
    return regret, average


@pytest.mark.parametrize("traverser", [0, 1])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_regrets_and_averages_are_unbiased(plain: ModuleType, sampler: str, traverser: int) -> None:
    poker = Poker(load_game("kuhn"), seed=1)
    regret, average = expected_in_kuhn(plain, sampler, poker, traverser)
    true_regret, true_average = exact_in_kuhn(poker, traverser)
    np.testing.assert_allclose(regret, true_regret, atol=1e-12)
    np.testing.assert_allclose(average, true_average, atol=1e-12)
    assert np.abs(true_regret).max() > 0.01
    assert true_average.max() > 0.01


def names_in_openspiel(poker: Poker) -> Iterator[tuple[str, list[int]]]:
    """Every infoset of Kuhn as OpenSpiel names it, `0pb`, and where it stands in the tables."""
    tree = poker.game.tree
    for node in range(tree.num_decisions):
        facing = [bool(tree.legal[at, FOLD]) for at, _ in tree.path(node)]
        moves = [
            "b" if action == RAISE or (bet and action != FOLD) else "p"
            for (_, action), bet in zip(tree.path(node), facing, strict=True)
        ]
        for card in range(3):
            yield f"{card}{''.join(moves)}", poker.entries(node, (card,))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_explicit_trees_and_poker_agree(plain: ModuleType, kuhn: Poker, sampler: str) -> None:
    game = load_openspiel_game("kuhn_poker")
    tree = game.explicit
    starts = np.cumsum(tree.infoset_actions) - tree.infoset_actions
    place = np.empty(kuhn.layout.size, np.int64)  # of every poker entry in the explicit table
    for name, entries in names_in_openspiel(kuhn):
        infoset = tree.infoset_names.index(name)
        place[entries] = starts[infoset] + np.arange(len(entries))
    assert sorted(place) == list(range(kuhn.layout.size))
    regrets = np.empty_like(kuhn.regrets)
    regrets[place] = kuhn.regrets
    for traverser in (0, 1):
        found = expected(plain, sampler, explicit_traversal_tree(tree), regrets, explicit_situations(1), traverser)
        poker = expected_in_kuhn(plain, sampler, kuhn, traverser)
        np.testing.assert_allclose(found[0][place], poker[0], atol=1e-12)
        np.testing.assert_allclose(found[1][place], poker[1], atol=1e-12)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_compiled_traversals_are_their_source_with_addressed_uniforms(
    plain: ModuleType, leduc: Poker, sampler: str
) -> None:
    """Ties the compiled kernels to the source that is enumerated above, and their random numbers to `deepcfr.core.rng`."""
    stream, count, first = key(3, "action"), 40, 1000
    situations = poker_situations(leduc.abstraction, count, key(3, "deal"), first)

    def uniform(address: tuple[int, int], place: int) -> float:
        return float(addressed_uniforms(address[0], torch.tensor([address[1]]), torch.tensor([int(place)])))

    plain.address_of, plain.uniform_at = lambda stream, traversal: (int(stream), traversal), uniform
    for traverser in (0, 1):
        args = (sampler, leduc.traversal_tree, leduc.regrets, situations, traverser, 2.0, stream, first)
        slow, compiled = run(plain, *args), run(mccfr, *args)
        np.testing.assert_allclose(compiled[0], slow[0], atol=1e-12)
        np.testing.assert_allclose(compiled[1], slow[1], atol=1e-12)
        assert compiled[2] == slow[2]
        assert np.abs(slow[0]).max() > 1


def test_nodes_are_counted_with_the_deals_before_them(kuhn: Poker) -> None:
    """Everybody checks and calls: outcome sampling touches a deal, two decisions and an end; external sampling two more."""
    tree = kuhn.game.tree
    kuhn.regrets[:] = -1.0
    for node in range(tree.num_decisions):
        for card in range(3):
            kuhn.regrets[kuhn.entries(node, (card,))[int(tree.legal[node, FOLD])]] = 1.0
    situations = poker_situations(kuhn.abstraction, 10, key(2, "deal"), 0)
    assert run(mccfr, "external", kuhn.traversal_tree, kuhn.regrets, situations, 0, weight=0.0)[2] == 10 * 6
    where = (kuhn.traversal_tree, kuhn.regrets, np.zeros_like(kuhn.regrets), situations, 0, 0.0, np.uint64(0), 0)
    assert mccfr.outcome_traversals(*where, 0.0, mccfr.PLAIN) == 10 * 4  # without exploration


# Chance


def test_deals_are_shuffles_by_addressed_uniforms() -> None:
    stream, deals = key(7, "deal"), torch.arange(123, 623)
    chance = addressed_uniforms(stream, deals[:, None], torch.arange(7)[None, :]).numpy()
    decks = np.tile(np.arange(52, dtype=np.uint8), (500, 1))
    for slot in range(7):
        picks = slot + (chance[:, slot] * (52 - slot)).astype(int)
        decks[np.arange(500), picks], decks[:, slot] = decks[:, slot].copy(), decks[np.arange(500), picks]
    np.testing.assert_array_equal(deal_cards(500, np.uint64(stream), 123, 52, 7), decks[:, :7])


def test_situations_hold_buckets_and_showdowns(leduc: Poker) -> None:
    situations = poker_situations(leduc.abstraction, 300, key(8, "deal"), 5)
    deals = leduc.game.deal(300, key(8, "deal"), 5)
    np.testing.assert_array_equal(situations.results, deals.hidden.numpy())
    buckets = defaultdict(set)
    for round_ in range(2):
        for player in range(2):
            for canonical, bucket in zip(
                deals.visible_cards[:, player, round_].tolist(), situations.buckets[:, 2 * round_ + player], strict=True
            ):
                buckets[round_, int(bucket)].add(tuple(canonical))
    assert all(len(hands) == 1 for hands in buckets.values())  # lossless: a bucket is one canonical hand
    assert len(buckets) == sum(leduc.abstraction.counts)


# Layout


def test_every_entry_of_the_tables_belongs_to_one_action(leduc: Poker) -> None:
    tree, layout = leduc.game.tree, leduc.layout
    owners = np.zeros(layout.size, np.int64)
    for node in range(tree.num_decisions):
        for bucket in range(leduc.abstraction.counts[tree.round[node]]):
            at = layout.start[node] + layout.stride[node] * bucket
            owners[at : at + tree.legal[node].sum()] += 1
    assert (owners == 1).all()


def test_sampling_follows_the_shares() -> None:
    shares = np.array([0.25, 0.0, 0.5, 0.25, 0.0])
    drawn = [mccfr.sample(shares, 0, 5, (i + 0.5) / 1000) for i in range(1000)]
    assert np.bincount(drawn, minlength=5).tolist() == [250, 0, 500, 250, 0]
    assert mccfr.sample(shares, 0, 5, 1.0) == 3  # rounding may leave a uniform above all shares: never a zero share
