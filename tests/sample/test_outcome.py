"""Outcome sampling: its samples are those of external sampling in expectation, over every history of Kuhn and of Leduc."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch
from test_external import Enumeration, RandomTable, every_deal, listed

from deepcfr.core.rng import key
from deepcfr.core.types import TERMINAL, Infosets, Samples
from deepcfr.game.base import Deals
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PRESETS
from deepcfr.sample import outcome
from deepcfr.sample.external import Strategy, Traversals, traverse
from deepcfr.sample.outcome import Learnt, traverse_outcomes

ACTIONS = 1  # the stream of actions, where a test wants to tell it from that of copies

# Enumeration. Sampling policies are such that weights are multiples of 1/8, so that eight uniforms for the number of
# copies, evenly spread, give its mean exactly; then nothing is left to chance.

EXPLORATION = 2 / 3
SAMPLED = {
    1: [(1.0,)],
    2: [(1 / 3, 2 / 3), (2 / 3, 1 / 3), (1 / 2, 1 / 2)],
    3: [(1 / 4, 1 / 4, 1 / 2), (1 / 2, 1 / 4, 1 / 4), (1 / 3, 1 / 3, 1 / 3)],
}
GRID = 8


class Table:
    """For each infoset a strategy, some of them pure, whose mixture with uniform play is one of `SAMPLED`."""

    def __init__(self, game: PokerGame, seed: int) -> None:
        self.game, self.seed = game, seed

    def __call__(self, node: int, cards: tuple[int, ...]) -> list[float]:
        legal = np.flatnonzero(self.game.legal[node].numpy())
        choices = SAMPLED[len(legal)]
        sampled = np.array(choices[np.random.default_rng([self.seed, node, *cards]).integers(len(choices))])
        row = np.zeros(self.game.encoding.num_actions)
        row[legal] = np.maximum(0, (sampled - EXPLORATION / len(legal)) / (1 - EXPLORATION))
        return row.tolist()


@dataclass
class Lines:
    """Stands in for chance: row i of a batch follows line i % L of the betting, and notes how probable that is."""

    game: PokerGame
    script: np.ndarray  # int64 [L, N], the action of each line at each node on it
    probability: torch.Tensor  # float64 [B], of all players' choices, where the traverser samples by its mixture
    uniform: float = 0.0  # for every number of copies

    @classmethod
    def of(cls, game: PokerGame, deals: int) -> "Lines":
        ends = (game.actor == TERMINAL).nonzero()[:, 0].tolist()
        script = np.full((len(ends), len(game.actor)), -1)
        for line, end in enumerate(ends):
            for node, action in game.tree.path(end):
                script[line, node] = action
        return cls(game, script, torch.ones(deals * len(ends), dtype=torch.float64))

    def addressed_uniforms(self, stream: int, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        if stream != ACTIONS:
            return torch.full((len(first),), self.uniform, dtype=torch.float64)
        return first * len(self.game.actor) + second  # the address itself, for `sample_actions`

    def sample_actions(self, probabilities: torch.Tensor, address: torch.Tensor) -> torch.Tensor:
        row, node = address // len(self.game.actor), address % len(self.game.actor)
        action = torch.from_numpy(self.script[row.numpy() % len(self.script), node.numpy()])
        self.probability[row] *= probabilities.double().take_along_dim(action[:, None], 1)[:, 0]
        return action


@dataclass
class Sums:
    """For each infoset the expected number of samples and the expected sum of their targets."""

    count: Counter[tuple[int, tuple[int, ...]]]
    target: dict[tuple[int, tuple[int, ...]], np.ndarray]

    def add(self, samples: Samples, weight: np.ndarray) -> None:
        for (node, cards, target), w in zip(listed(samples), weight, strict=True):
            self.count[node, cards] += w
            self.target[node, cards] = self.target.get((node, cards), 0.0) + w * np.array(target)


def few_ranks(name: str) -> PokerGame:
    """Kuhn poker, or Leduc with two ranks."""
    rules = PRESETS[name]
    return PokerGame(replace(rules, num_ranks=2, rank_symbols="QK") if name == "leduc" else rules)


def enumerated(
    game: PokerGame,
    profile: Table,
    traverser: int,
    monkeypatch: pytest.MonkeyPatch,
    known: torch.Tensor | None = None,
    *,
    alone: bool = False,
) -> tuple[Sums, Sums, float, int]:
    """Expectations over all deals, actions and roundings: samples of both kinds, the value, and how many histories.

    With `known`, [deals, N, A], these are the history values that serve as a baseline, or `alone` and with uniform
    play.
    """
    deals = every_deal(game)
    lines = Lines.of(game, len(deals))
    again = torch.arange(len(deals)).repeat_interleave(len(lines.script))
    batch = Deals(torch.arange(len(again)), deals.visible_cards[again], deals.hidden[again])
    monkeypatch.setattr(outcome, "addressed_uniforms", lines.addressed_uniforms)
    monkeypatch.setattr(outcome, "sample_actions", lines.sample_actions)
    rows: list[torch.Tensor] = []  # of the samples, in the order in which `samples_at` is asked for them
    plain = outcome.samples_at

    def noting_rows(game: PokerGame, deals: Deals, visits: outcome.Visits, iteration: int) -> Samples:
        rows.append(torch.cat([visit[1] for visit in visits]))
        return plain(game, deals, visits, iteration)

    monkeypatch.setattr(outcome, "samples_at", noting_rows)
    strategies = dense(game, profile, batch)
    advantages, opponent, value = Sums(Counter(), {}), Sums(Counter(), {}), 0.0
    for step in range(GRID):
        lines.probability.fill_(1.0)
        lines.uniform = (step + 0.5) / GRID
        rows.clear()
        learnt = None if known is None else Learnt(lambda node, row: known[again[row], node], alone)
        exploration = 1.0 if alone else EXPLORATION
        found = traverse_outcomes(game, batch, traverser, strategies, exploration, ACTIONS, 1, learnt)
        chance = (lines.probability / len(deals)).numpy()
        assert chance.sum() == pytest.approx(1, abs=1e-6)
        for sums, samples, row in zip((advantages, opponent), (found.advantages, found.strategies), rows, strict=True):
            sums.add(*merged(samples, chance[row.numpy()] / GRID))
        value += float((chance * found.values.double().numpy()).sum()) / GRID
    return advantages, opponent, value, len(batch)


def dense(game: PokerGame, profile: Table | RandomTable, deals: Deals) -> tuple[Strategy, Strategy]:
    """The profile as batched strategies: asked once for every infoset of the deals, then looked up."""

    def of(player: int) -> Strategy:
        @cache
        def row_of(node: int, cards: tuple[int, ...]) -> tuple[float, ...]:
            return tuple(profile(node, cards))

        def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            cards = deals.visible_cards[row, player, game.round[node]]
            pairs, place = torch.unique(torch.cat([node[:, None], cards.long()], 1), dim=0, return_inverse=True)
            return torch.tensor([row_of(n, tuple(seen)) for n, *seen in pairs.tolist()])[place]

        return strategy

    return of(0), of(1)


def merged(samples: Samples, weight: np.ndarray) -> tuple[Samples, np.ndarray]:
    """Samples of one infoset as one, with the mean target by weight and the sum of weights: fewer for plain Python."""
    infosets = samples.infosets
    keys, index = torch.unique(
        torch.cat([infosets.node[:, None], infosets.cards.long()], 1), dim=0, return_inverse=True
    )
    total = np.bincount(index, weights=weight)
    sums = np.stack([np.bincount(index, weights=weight * column) for column in samples.target.double().numpy().T], 1)
    mean = torch.from_numpy(sums / np.where(total > 0, total, 1)[:, None])
    return Samples(Infosets(keys[:, 0], keys[:, 1:].to(torch.uint8)), mean, torch.ones(len(keys))), total


@pytest.mark.parametrize(("baseline", "traverser", "name", "histories", "infosets"), [
    (False, 0, "kuhn", 6 * 5, 6), (False, 1, "kuhn", 6 * 5, 6), (True, 1, "leduc", 24 * 49, 96),
])  # fmt: skip
def test_outcome_sampling_is_unbiased_against_enumeration(
    name: str, histories: int, infosets: int, traverser: int, baseline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With any history values as a baseline, too: here they are random ones of a few units."""
    game = few_ranks(name)
    profile, deals = Table(game, 3), every_deal(game)
    exact = Enumeration(game, deals, traverser, profile).run()
    shape = (len(deals), len(game.actor), game.encoding.num_actions)
    known = torch.randn(shape, generator=torch.Generator().manual_seed(8)) if baseline else None
    advantages, opponent, value, count = enumerated(game, profile, traverser, monkeypatch, known)
    assert count == histories  # all deals and all lines, four of which end before Leduc's board is seen
    assert len(exact.visits) == len(exact.opponent) == infosets
    # samples of an infoset: as many as external sampling has, which is how a memory weighs it
    for counts, reach in ((advantages.count, exact.visits), (opponent.count, exact.opponent)):
        for at, probability in reach.items():
            assert counts[at] == pytest.approx(probability, abs=1e-6), at
    # and the sum of their targets: counterfactual regret, so that the mean is the advantage of Lemma 1
    for at, regret in exact.regrets.items():
        np.testing.assert_allclose(advantages.target.get(at, 0.0 * regret), regret, atol=2e-6, err_msg=str(at))
    for at, probability in exact.opponent.items():
        if probability > 0:
            np.testing.assert_allclose(opponent.target[at] / probability, profile(*at), atol=1e-5)
    assert value == pytest.approx(exact.value, abs=1e-5)
    assert max(np.abs(regret).max() for regret in exact.regrets.values()) > 0.01
    # the traverser's strategy is pure in places, and what it never does has been sampled all the same
    assert any(0.0 in np.array(profile(*at))[game.legal[at[0]].numpy()] for at in exact.visits)


# With the random numbers of a run


def test_the_number_of_copies_has_the_weight_as_its_mean() -> None:
    """Real weights and uniforms: the mean over many is the weight, with a standard error below 0.005."""
    game, count = load_game("kuhn"), 20_000
    deals = game.deal(count, key(5, "deals"))
    profile = RandomTable(game, 6, interior=True)
    found = traverse_outcomes(game, deals, 0, dense(game, profile, deals), 0.25, key(5, "actions"), 1)
    second = int(game.tree.child[game.tree.child[0, 1], 2])  # player 0 has checked, and faces a bet
    bet = (found.strategies.infosets.node == int(game.tree.child[0, 1])).sum()
    # player 1 acts after player 0's check or bet, so copies of its samples are one in a traversal, whatever 0 does
    total = len(found.strategies)
    assert total / count == pytest.approx(2, abs=0.05)  # after a check, and after a bet: each once in expectation
    assert int(bet) / count == pytest.approx(1, abs=0.03)
    assert int((found.advantages.infosets.node == 0).sum()) == count  # the first decision has no weight
    assert int((found.advantages.infosets.node == second).sum()) > 0.1 * count


@pytest.mark.parametrize("traverser", [0, 1])
def test_one_history_of_those_that_external_sampling_visits(traverser: int) -> None:
    """With the same stream the opponent acts alike, so a traversal's infosets are among external sampling's."""
    game, stream = load_game("leduc"), key(3, "actions")
    profile = RandomTable(game, 5)
    for traversal in range(20):
        deals = game.deal(1, key(3, "deals"), traversal)
        strategies = dense(game, profile, deals)
        one = traverse_outcomes(game, deals, traverser, strategies, 0.6, stream, 4)
        whole = traverse(game, deals, traverser, strategies, stream, 4)
        assert places(one) <= places(whole)
        path = {node for node, _ in places(one)}
        deepest = max(path, key=lambda node: len(game.tree.path(node)))
        assert path == {at for at, _ in game.tree.path(deepest)} | {deepest}  # a single line
        targets = {(node, cards): target for node, cards, target in listed(whole.strategies)}
        for node, cards, target in listed(one.strategies):
            assert target == targets[node, cards]
        rounds = 1 + int(game.round[deepest])
        assert int(one.decisions.sum()) == len(path)
        assert len(path) + 1 + rounds <= one.nodes_touched + 1 <= whole.nodes_touched + 1
        for samples in (one.advantages, one.strategies):
            assert samples.iteration.tolist() == [4] * len(samples)
            assert samples.target.dtype == torch.float32


def places(found: Traversals) -> set[tuple[int, tuple[int, ...]]]:
    return {(node, cards) for samples in (found.advantages, found.strategies) for node, cards, _ in listed(samples)}


def test_a_traversal_does_not_depend_on_its_batch() -> None:
    game, profile = load_game("leduc"), RandomTable(load_game("leduc"), 8)
    parts = []
    for first, count in ((0, 30), (0, 1), (1, 6), (7, 23)):
        deals = game.deal(count, key(3, "deals"), first)
        parts.append(traverse_outcomes(game, deals, 1, dense(game, profile, deals), 0.6, key(3, "actions"), 1))
    whole, *some = parts
    assert torch.equal(torch.cat([part.values for part in some]), whole.values)
    assert sum(part.nodes_touched for part in some) == whole.nodes_touched
    for kind in ("advantages", "strategies"):
        counts = [Counter(str(sample) for sample in listed(getattr(part, kind))) for part in parts]
        assert counts[0] == sum(counts[1:], Counter())
