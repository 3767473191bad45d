"""The replay memory: a circle of the newest transitions, every column of which stays with its row."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deepcfr.core.types import Encoding, Infosets
from deepcfr.solve.nfsp import TransitionMemory, bytes_per_transition
from deepcfr.solve.self_play import Transitions

LEGAL = torch.ones(500, 300, dtype=torch.bool)  # more actions than a byte can number
ENCODING = Encoding(torch.zeros(500, 1), LEGAL, card_groups=(1, 2), num_ranks=3, num_suits=2)


def transitions(start: int, stop: int) -> Transitions:
    """Transitions that are all different: every column is a function of the arrival position."""
    position = torch.arange(start, stop)
    cards = torch.stack([position % 6, position // 6 % 6, position // 36 % 6], dim=1).to(torch.uint8)
    return Transitions(
        infosets=Infosets(position % 500, cards),
        action=position % 300,
        reward=position / 8,
        following=Infosets((position + 7) % 500, cards.flip(1)),
        terminal=position % 3 == 0,
    )


def arrivals(memory: TransitionMemory) -> list[int]:
    """The arrival positions in the memory, in slot order; all columns must agree on them."""
    found = memory[slice(0, None)]
    position = (found.reward * 8).long()
    expected = transitions(0, max([0, *position.tolist()]) + 1)
    assert torch.equal(found.infosets.node.long(), expected.infosets.node[position])
    assert torch.equal(found.infosets.cards, expected.infosets.cards[position])
    assert torch.equal(found.action, expected.action[position])
    assert torch.equal(found.following.node.long(), expected.following.node[position])
    assert torch.equal(found.following.cards, expected.following.cards[position])
    assert torch.equal(found.terminal, expected.terminal[position])
    return position.tolist()


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 25))
def test_it_holds_the_newest_transitions_in_a_circle(sizes: list[int], capacity: int) -> None:
    memory, seen = TransitionMemory(ENCODING, capacity), 0
    for iteration, size in enumerate(sizes, start=1):
        memory.add(transitions(seen, seen + size), iteration)
        seen += size
    assert (memory.seen, len(memory)) == (seen, min(seen, capacity))
    newest = range(max(0, seen - capacity), seen)
    assert sorted(arrivals(memory)) == list(newest)
    assert all(position % capacity == slot for slot, position in enumerate(arrivals(memory)))


def test_actions_and_nodes_beyond_a_byte_survive() -> None:
    memory = TransitionMemory(ENCODING, 600)
    memory.add(transitions(0, 500), 1)
    assert int(memory[slice(0, None)].action.max()) == 299
    assert int(memory[slice(0, None)].infosets.node.max()) == 499


def test_a_restored_memory_goes_on_as_the_old_one_would() -> None:
    old, new = TransitionMemory(ENCODING, 10), TransitionMemory(ENCODING, 10)
    old.add(transitions(0, 14), 1)
    new.restore({name: column.clone() for name, column in old.contents().items()}, old.seen)
    for memory in (old, new):
        memory.add(transitions(14, 17), 2)
    assert arrivals(new) == arrivals(old) == [10, 11, 12, 13, 14, 15, 16, 7, 8, 9]


def test_each_row_names_its_iteration() -> None:
    memory = TransitionMemory(ENCODING, 5)
    memory.add(transitions(0, 4), 1)
    memory.add(transitions(4, 6), 2)
    assert memory.filled("iteration").tolist() == [2, 1, 1, 1, 2]


@pytest.mark.parametrize("capacity", [1, 40])
def test_bytes_per_transition_is_what_the_columns_take(capacity: int) -> None:
    memory = TransitionMemory(ENCODING, capacity)
    assert sum(column.nbytes for column in memory.columns.values()) == capacity * bytes_per_transition(ENCODING)
