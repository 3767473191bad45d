"""Memories in shards: what is drawn from them together is what would be drawn from everything they have seen."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from deepcfr.cluster import examples as shards
from deepcfr.cluster.examples import BlockDraw, Means, Order, ShardedExamples, ShardSampler, Survey, together
from deepcfr.config import FitConfig, NetworkConfig
from deepcfr.games.base import by_infoset
from deepcfr.games.presets import load_game
from deepcfr.memory.reservoir import Memory
from deepcfr.parallel import Workers
from deepcfr.rng import generator, key
from deepcfr.training.examples import InfosetExamples, Objective, linear_weights
from deepcfr.training.fit import fit
from deepcfr.training.losses import advantage_loss
from deepcfr.training.networks import build_network
from deepcfr.types import Infosets, Samples

GAME = load_game("leduc")
ROUNDS = by_infoset(GAME, GAME.round)
NEWEST = 9
OBJECTIVE = Objective(GAME.encoding.legal, advantage_loss, linear_weights, NEWEST, rounds=ROUNDS)
DRAWS = 60_000


class Here:
    """Shards in this process."""

    def __init__(self, memories: dict[int, Memory]) -> None:
        self.memories = memories
        self.samplers: dict[int, ShardSampler] = {}

    def survey(self, order: Order) -> Mapping[int, Survey]:
        self.samplers = {n: ShardSampler(memory, OBJECTIVE, order.config) for n, memory in self.memories.items()}
        return {n: sampler.survey() for n, sampler in self.samplers.items()}

    def aim(self, order: Order, mass: torch.Tensor, means: Means | None) -> Mapping[int, float]:  # noqa: ARG002
        return {n: sampler.aim(mass, means) for n, sampler in self.samplers.items()}

    def draw(
        self,
        order: Order,  # noqa: ARG002
        counts: Mapping[int, int],
        stream: int,
    ) -> Callable[[], Mapping[int, Samples]]:
        return lambda: {n: sampler.draw(counts[n], key(stream, n)) for n, sampler in self.samplers.items()}


def memory(capacity: int, seen: int, first: int) -> Memory:
    """A reservoir that has seen so many samples, told apart by the first number of their targets, from `first` on."""
    draw = np.random.default_rng(first)
    result = Memory(GAME.encoding, capacity)
    node = torch.from_numpy(draw.integers(0, len(GAME.encoding.legal), seen).astype(np.int32))
    target = torch.zeros(seen, GAME.encoding.num_actions)
    target[:, 0] = torch.arange(first, first + seen)
    iteration = torch.from_numpy(draw.integers(1, NEWEST + 1, seen).astype(np.int32))
    result.add(Samples(Infosets(node, torch.zeros(seen, 2, dtype=torch.uint8)), target, iteration), stream=first)
    return result


@pytest.fixture(scope="module")
def unequal() -> dict[int, Memory]:
    """One that is not full, one that has seen a few times as much as it holds, and one that has never been used."""
    return {0: memory(50, 30, 1_000), 1: memory(40, 130, 2_000), 2: memory(10, 0, 3_000)}


def drawn(memories: dict[int, Memory], config: FitConfig, stream: int = 5) -> Samples:
    examples = ShardedExamples(Here(memories), Order("advantage-0", linear_weights, NEWEST, config), OBJECTIVE)
    return examples.ask(DRAWS, stream)()


@pytest.mark.parametrize("draw", ["uniform", "balanced"])
def test_draws_are_in_proportion_to_what_was_seen(unequal: dict[int, Memory], draw: str) -> None:
    """Every sample that is held stands for seen / held samples, times its weight where draws are weighted (χ²)."""
    found = drawn(unequal, FitConfig(draw=draw))  # type: ignore[arg-type]
    chance = {}
    for part in unequal.values():
        held = part[slice(0, None)]
        weight = linear_weights(held.iteration, NEWEST).double() if draw != "uniform" else torch.ones(len(held))
        times = part.seen / max(1, len(part))
        for name, w, node in zip(held.target[:, 0].tolist(), weight.tolist(), held.infosets.node.tolist(), strict=True):
            chance[name] = (times * w, int(ROUNDS[node]))
    if draw == "balanced":
        of_round = {r: sum(c for c, other in chance.values() if other == r) for r in (0, 1)}
        chance = {name: (c / of_round[r], r) for name, (c, r) in chance.items()}
    total = sum(c for c, _ in chance.values())
    names, counts = np.unique(found.target[:, 0].numpy(), return_counts=True)
    assert set(names) <= set(chance)
    got = dict(zip(names, counts, strict=True))
    expected = [DRAWS * c / total for c, _ in chance.values()]
    assert chisquare([got.get(name, 0) for name in chance], expected).pvalue > 1e-3


def test_mini_batches_mix_shards(unequal: dict[int, Memory]) -> None:
    """In any stretch of a block the shards are in proportion, not one after the other."""
    of_second = drawn(unequal, FitConfig()).target[:, 0] >= 2_000
    for part in of_second.float().split(DRAWS // 10):
        assert float(part.mean()) == pytest.approx(130 / 160, abs=0.02)


def test_blocks_are_drawn_once_each_and_in_order(unequal: dict[int, Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three sizes the first two come in one block."""
    monkeypatch.setattr(shards, "BLOCK", 4)
    monkeypatch.setattr(shards, "_BLOCKS", 1)
    config = FitConfig()
    order = Order("advantage-0", linear_weights, NEWEST, config)
    network = build_network(GAME.encoding, NetworkConfig(kind="mlp", width=8, layers=1), generator(3))
    examples = ShardedExamples(Here(unequal), order, OBJECTIVE)
    draw = BlockDraw(examples, 7, [8, 4, 8])
    blocks = [examples.ask(size, key(7, "block", number))() for number, size in enumerate((12, 8))]
    for size, first, block in ((8, 0, blocks[0]), (4, 8, blocks[0]), (8, 0, blocks[1])):
        index = torch.empty(size // 4, 4, dtype=torch.int64)
        draw.fill(index)
        assert index.flatten().tolist() == list(range(first, first + size))
        with torch.no_grad():
            loss = examples.loss(network, index.flatten())
            torch.testing.assert_close(loss, OBJECTIVE.of(network, block[slice(first, first + size)], config))


def test_a_fit_has_several_blocks(unequal: dict[int, Memory]) -> None:
    """Or the next could not be on its way while one is used."""
    examples = ShardedExamples(Here(unequal), Order("advantage-0", linear_weights, NEWEST, FitConfig()), OBJECTIVE)
    asked: list[int] = []
    ask = examples.ask
    examples.ask = lambda count, stream: (asked.append(count), ask(count, stream))[1]  # type: ignore[method-assign]
    draw = BlockDraw(examples, 7, [10] * 32)
    assert len(asked) == 1
    for number in range(32):
        draw.fill(torch.empty(10, dtype=torch.int64))
        assert len(asked) == min(8, number // 4 + 2)
    assert asked == [40] * 8


def test_neighbours_are_asked_for_together_up_to_a_limit() -> None:
    assert together([3, 3, 3, 9, 1, 5, 6], 6) == [6, 3, 9, 6, 6]
    assert together([], 6) == []


def test_merged_targets_are_those_of_one_memory_with_all_samples() -> None:
    """As means over infosets, of which some are in one shard only; a shard that holds half counts twice."""
    whole = memory(90, 90, 0)
    parts = {n: Memory(GAME.encoding, 30) for n in range(4)}
    for n in range(3):
        parts[n].add(whole[slice(30 * n, 30 * n + 30)], stream=n)
    config = FitConfig(draw="merged")
    merged = InfosetExamples(whole, OBJECTIVE, config)
    order = Order("advantage-0", linear_weights, NEWEST, config)
    examples = ShardedExamples(Here(parts), order, OBJECTIVE)
    assert examples.scale() == pytest.approx(merged.scale(), rel=0.01)  # shards differ in numbers of legal actions
    expected = dict(zip(whole.filled("node").tolist(), merged.samples(torch.arange(90)).target.tolist(), strict=True))
    found = examples.ask(2_000, 5)()
    assert len(set(expected)) < 60
    assert set(found.infosets.node.tolist()) == set(expected)
    for node, target in zip(found.infosets.node.tolist(), found.target.tolist(), strict=True):
        assert target == pytest.approx(expected[node], rel=1e-6)
    parts[0].seen = 60
    times = torch.where(torch.arange(90) < 30, 2.0, 1.0)
    weight = linear_weights(whole.filled("iteration"), NEWEST) * times
    expected = dict(zip(whole.filled("node").tolist(), whole.mean_targets(weight).tolist(), strict=True))
    found = ShardedExamples(Here(parts), order, OBJECTIVE).ask(2_000, 5)()
    for node, target in zip(found.infosets.node.tolist(), found.target.tolist(), strict=True):
        assert target == pytest.approx(expected[node], rel=1e-6)


def test_the_scale_is_that_of_everything_that_was_seen(unequal: dict[int, Memory]) -> None:
    order = Order("advantage-0", linear_weights, NEWEST, FitConfig())
    scale = ShardedExamples(Here(unequal), order, OBJECTIVE).scale()
    alone = [InfosetExamples(unequal[n], OBJECTIVE, FitConfig()).scale() for n in (0, 1)]
    assert scale**2 == pytest.approx((30 * alone[0] ** 2 + 130 * alone[1] ** 2) / 160)
    assert ShardedExamples(Here(unequal), order, replace(OBJECTIVE, scaled=False)).scale() == 1


def test_a_fit_to_shards_approaches_a_fit_to_the_whole() -> None:
    """The mean squared error on all samples, of which neither fit needs to have seen each."""
    whole = memory(300, 300, 0)
    parts = {n: memory(100, 0, 0) for n in range(3)}
    for n, part in parts.items():
        part.add(whole[slice(100 * n, 100 * n + 100)], stream=n)
    config, errors = FitConfig(steps=300, batch_size=64, learning_rate=1e-2, schedule="cosine"), []
    everything = InfosetExamples(whole, OBJECTIVE, config)
    order = Order("advantage-0", linear_weights, NEWEST, config)
    for examples in (everything, ShardedExamples(Here(parts), order, OBJECTIVE)):
        network = build_network(GAME.encoding, NetworkConfig(kind="mlp", width=32, layers=2), generator(4))
        fit(network, examples, config, 11, Workers(1))
        with torch.no_grad():
            errors.append(float(everything.loss(network, torch.arange(300))))
    assert errors[1] == pytest.approx(errors[0], rel=0.1)
