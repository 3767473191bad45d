"""Memories: a reservoir is a uniform sample of everything it was offered, a window is the newest part of it."""

import pytest
import torch
from hypothesis import given, strategies as st
from scipy import stats

from deepcfr.core.rng import key
from deepcfr.core.types import Encoding, Infosets, Samples
from deepcfr.game.presets import load_game
from deepcfr.network.memory import Memory, MemoryKind, bytes_per_sample

LEGAL = torch.ones(5, 2, dtype=torch.bool)
ENCODING = Encoding(torch.zeros(5, 1), LEGAL, card_groups=(1, 2), num_ranks=3, num_suits=2)


def samples(start: int, stop: int) -> Samples:
    """Samples that are all different: every column is a function of the arrival position."""
    position = torch.arange(start, stop)
    cards = torch.stack([position % 6, position // 6 % 6, position // 36 % 6], dim=1).to(torch.uint8)
    target = torch.stack([position.float(), -0.5 * position.float()], dim=1)
    return Samples(Infosets(position % 5, cards), target, (position + 1000).int())


def positions(memory: Memory) -> list[int]:
    """The arrival positions that are in the memory, in slot order; all columns must agree on them."""
    found = memory[slice(0, None)]
    position = found.iteration.long() - 1000
    for start in position.tolist():
        assert start >= 0
    expected = samples(0, memory.seen)
    assert torch.equal(found.infosets.node.long(), expected.infosets.node[position])
    assert torch.equal(found.infosets.cards, expected.infosets.cards[position])
    assert torch.equal(found.target, expected.target[position])
    return position.tolist()


def filled(capacity: int, sizes: list[int], kind: MemoryKind = "reservoir", seed: int = 0) -> Memory:
    memory = Memory(ENCODING, capacity, kind)
    for batch, size in enumerate(sizes):
        memory.add(samples(memory.seen, memory.seen + size), key(seed, "slots", batch))
    return memory


SIZES = st.lists(st.integers(0, 12), max_size=8)
KINDS = st.sampled_from(["reservoir", "window"])


@given(SIZES, SIZES, KINDS, st.integers(1, 20))
def test_a_memory_holds_as_many_different_samples_as_it_can_and_goes_on_from_its_contents(
    before: list[int], after: list[int], kind: MemoryKind, capacity: int
) -> None:
    memory = filled(capacity, before, kind)
    kept, total = positions(memory), sum(before)
    assert memory.seen == total
    assert len(memory) == len(kept) == len(set(kept)) == min(capacity, total)
    if kind == "window" or total <= capacity:
        assert sorted(kept) == list(range(max(total - capacity, 0), total))
    if total <= capacity:
        assert kept == sorted(kept)
    copy = Memory(ENCODING, capacity, kind)
    copy.restore({name: column.clone() for name, column in memory.contents().items()}, memory.seen)
    for batch, size in enumerate(after):
        for one in (memory, copy):
            one.add(samples(one.seen, one.seen + size), key(99, batch))
    assert (copy.seen, len(copy), positions(copy)) == (memory.seen, len(memory), positions(memory))


# Uniformity. Seeds are fixed, so that these either always pass or never do.


@pytest.mark.parametrize("arrival", [10, 13])
def test_an_arrival_is_offered_every_slot_up_to_its_own_number(arrival: int) -> None:
    """Algorithm R draws from 0 .. i, both included; a memory of ten keeps the ones that fall on 0 .. 9."""
    slots = Memory(ENCODING, 10)._reservoir_slots(torch.full((20_000,), arrival), stream=1)
    counts = torch.bincount(slots).numpy()
    assert len(counts) == arrival + 1
    assert stats.chisquare(counts).pvalue > 1e-4


# Batches are loops


@given(SIZES, st.integers(1, 10), st.integers(0, 100))
def test_adding_a_batch_is_algorithm_r_one_by_one(sizes: list[int], capacity: int, seed: int) -> None:
    memory, loop = Memory(ENCODING, capacity), [-1] * capacity
    for batch, size in enumerate(sizes):
        stream, seen = key(seed, batch), memory.seen
        slots = memory._reservoir_slots(torch.arange(seen, seen + size), stream).tolist()
        memory.add(samples(seen, seen + size), stream)
        for arrival, slot in enumerate(slots, start=seen):
            assert slot == arrival if arrival < capacity else 0 <= slot <= arrival
            if slot < capacity:
                loop[slot] = arrival
    assert positions(memory) == loop[: len(memory)]


# Reading, checkpoints, size


def test_samples_are_read_by_index_from_the_filled_part() -> None:
    memory = filled(50, [20])
    index = torch.tensor([3, 3, 19, 0])
    found, expected = memory[index], samples(0, 20)
    assert torch.equal(found.target, expected.target[index])
    assert torch.equal(found.infosets.cards, expected.infosets.cards[index])
    assert torch.equal(found.infosets.node.long(), expected.infosets.node[index])
    assert found.iteration.tolist() == [1003, 1003, 1019, 1000]
    assert len(memory[slice(0, None)]) == 20
    assert memory[slice(0, None, 7)].iteration.tolist() == [1000, 1007, 1014]
    with pytest.raises(IndexError):
        memory[torch.tensor([20])]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=30))
def test_mean_targets_are_the_weighted_means_of_each_infoset(rows: list[tuple[int, int, int]]) -> None:
    cards = torch.tensor([[card, 255, 255] for _, card, _ in rows], dtype=torch.uint8)
    node, weight = torch.tensor([row[0] for row in rows]), torch.tensor([row[2] for row in rows]).float()
    target = torch.stack([torch.arange(len(rows)).float(), -torch.arange(len(rows)).float()], dim=1)
    memory = Memory(ENCODING, 50)
    memory.add(Samples(Infosets(node, cards), target, weight.int()), 1)
    means = memory.mean_targets(weight)
    for row, (at, card, _) in enumerate(rows):
        same = [i for i, other in enumerate(rows) if other[:2] == (at, card)]
        expected = sum(i * rows[i][2] for i in same) / sum(rows[i][2] for i in same)
        assert means[row].tolist() == pytest.approx([expected, -expected], rel=1e-5)


def test_mean_targets_tell_apart_infosets_that_differ_in_any_card_or_in_the_node() -> None:
    encoding = load_game("hulh").encoding
    base = [51, 50, 49, 48, 47, 46, 45]
    rows = [base] + [[*base[:i], other, *base[i + 1 :]] for i in range(7) for other in (0, 44, 255)]
    # neighbours where a carry from one slot, or from the first slot into the node, would make two infosets one
    rows += [[*[10] * i, *pair, *[10] * (5 - i)] for i in range(6) for pair in ((43, 51), (44, 255))]
    last = len(encoding.legal) - 1
    rows += [base, [51, *[10] * 6], [255, *[10] * 6]]
    node = torch.tensor([last] * (len(rows) - 3) + [0, 7, 8])
    target = torch.arange(3.0 * len(node)).reshape(-1, 3)
    cards = torch.tensor(rows, dtype=torch.uint8)
    memory = Memory(encoding, len(node))
    memory.add(Samples(Infosets(node, cards), target, torch.ones(len(node), dtype=torch.int32)), 1)
    assert torch.equal(memory.mean_targets(torch.ones(len(node))), target)


@pytest.mark.parametrize("name", ["kuhn", "hulh"])
def test_bytes_per_sample_are_what_the_columns_take(name: str) -> None:
    encoding = load_game(name).encoding
    capacity = 1000
    columns = Memory(encoding, capacity).columns.values()
    assert sum(column.nbytes for column in columns) == capacity * bytes_per_sample(encoding)


@pytest.mark.parametrize(("public_nodes", "size"), [(1 << 15, 2), ((1 << 15) + 1, 4)])
def test_the_largest_node_is_kept_whatever_its_type(public_nodes: int, size: int) -> None:
    encoding = Encoding(torch.zeros(public_nodes, 1), torch.ones(public_nodes, 2, dtype=torch.bool), (1, 2), 3, 2)
    memory, one = Memory(encoding, 1), samples(0, 1)
    memory.add(Samples(Infosets(torch.tensor([public_nodes - 1]), one.infosets.cards), one.target, one.iteration), 1)
    assert memory[slice(0, None)].infosets.node.tolist() == [public_nodes - 1]
    assert memory.columns["node"].element_size() == size
