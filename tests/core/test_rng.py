"""Streams of random numbers: each depends on its address and nothing else, is uniform, and is unrelated to the others."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy import stats

from deepcfr.core import rng
from deepcfr.core.rng import addressed_uniforms, generator, key

INT64 = st.integers(-(2**63), 2**63 - 1)
GRID = 2**24  # the numbers are multiples of 1 / GRID


def grid_of(stream: int, rows: int = 2048, columns: int = 128) -> np.ndarray:
    return addressed_uniforms(stream, torch.arange(rows)[:, None], torch.arange(columns)[None, :]).numpy()


def uniform_p_value(counts: np.ndarray) -> float:
    return float(stats.chisquare(counts.reshape(-1)).pvalue)


# Addresses


@given(INT64, st.lists(INT64, min_size=1, max_size=8), st.lists(INT64, min_size=1, max_size=8))
def test_broadcasting_gives_what_each_address_gives_alone(stream: int, firsts: list[int], seconds: list[int]) -> None:
    table = addressed_uniforms(stream, torch.tensor(firsts)[:, None], torch.tensor(seconds)[None, :])
    assert table.shape == (len(firsts), len(seconds))
    for i, first in enumerate(firsts):
        for j, second in enumerate(seconds):
            alone = addressed_uniforms(stream, torch.tensor(first), torch.tensor(second))
            assert table[i, j] == alone


def test_stream_and_both_addresses_matter_and_are_not_interchangeable() -> None:
    def at(stream: int, first: int, second: int) -> float:
        return float(addressed_uniforms(stream, torch.tensor(first), torch.tensor(second)))

    numbers = [at(1, 2, 3), at(1, 3, 2), at(2, 1, 3), at(2, 3, 1), at(3, 1, 2), at(3, 2, 1), at(1, 2, 4), at(1, 3, 3)]
    assert len(set(numbers)) == len(numbers)


@given(INT64, INT64, INT64)
def test_every_number_is_on_the_grid_and_below_one(stream: int, first: int, second: int) -> None:
    value = addressed_uniforms(stream, torch.tensor(first), torch.tensor(second))
    assert value.dtype == torch.float32
    assert 0 <= float(value) < 1
    assert float(value) * GRID == int(float(value) * GRID)


# Distribution. Seeds are fixed, so that these either always pass or never do.


@pytest.mark.parametrize("stream", [0, 2**64 - 1, key(0, "deal", 1, 0)])
def test_consecutive_addresses_are_uniform(stream: int) -> None:
    numbers = (grid_of(stream).reshape(-1) * GRID).astype(np.int64)
    assert uniform_p_value(np.bincount(numbers >> 16, minlength=256)) > 1e-4  # the high byte
    assert uniform_p_value(np.bincount(numbers & 0xFF, minlength=256)) > 1e-4  # the low byte


@pytest.mark.parametrize("shift", [(0, 1), (1, 0), (1, -1), (8, 0)])
def test_neighbouring_addresses_are_independent(shift: tuple[int, int]) -> None:
    table = (grid_of(key(9, "pairs")) * 16).astype(int)
    other = np.roll(table, shift, axis=(0, 1))
    assert uniform_p_value(np.bincount((16 * table + other).reshape(-1), minlength=256)) > 1e-4


@pytest.mark.parametrize("other", [key(1, "deal", 1, 0), key(0, "deal", 2, 0), key(0, "deal", 1)])
def test_different_streams_are_independent(other: int) -> None:
    mine, theirs = grid_of(key(0, "deal", 1, 0)), grid_of(other)
    assert abs(np.corrcoef(mine.reshape(-1), theirs.reshape(-1))[0, 1]) < 4 / np.sqrt(mine.size)
    pairs = 16 * (mine * 16).astype(int) + (theirs * 16).astype(int)
    assert uniform_p_value(np.bincount(pairs.reshape(-1), minlength=256)) > 1e-4


def test_the_mixer_is_that_of_splitmix64() -> None:
    # the published first outputs of SplitMix64 seeded with 1234567
    outputs = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    golden = 0x9E3779B97F4A7C15
    for step, expected in enumerate(outputs, start=1):
        state = rng._signed(1234567 + step * golden)
        assert int(rng._mix(torch.tensor([state]))) & (2**64 - 1) == expected


def test_numbers_never_change_between_versions() -> None:
    # a resumed run must meet the same deals and actions
    addresses = [(0, 0, 0), (0, 1, 0), (0, 0, 1), (key(0, "deal", 1, 0), 12_345, 67)]
    numbers = [float(addressed_uniforms(s, torch.tensor(a), torch.tensor(b))) * GRID for s, a, b in addresses]
    assert numbers == [0, 4_727_170, 11_359_189, 13_711_502]


# Keys and generators


def test_keys_never_change_between_versions() -> None:
    # checkpoints are resumed with streams derived again, so these values are part of the file format
    assert key(0) == 0x490A32D6978C23C8
    assert key(0, "deal", 1, 0) == 0xD1D99B600E2D9E2C


def test_keys_depend_on_every_part_its_type_and_its_place() -> None:
    purposes: list[tuple[str | int, ...]] = [
        (), ("a",), ("b",), ("a", 1), ("a", 2), (1, "a"), ("a", "1"), ("a1",), ("a", 1, 1), ("a", 11), ("ab", "c"),
        ("a", "bc"), ("a", "b", "c"), ("a", -1), ("a', 1",),
    ]  # fmt: skip
    keys = [key(seed, *purpose) for seed in (0, 1, 2**63 - 1) for purpose in purposes]
    assert len(set(keys)) == len(keys)
    assert all(0 <= k < 2**64 for k in keys)
    assert key(key(0, "a"), "b") not in keys  # a child of a stream is a stream of its own


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_generators_repeat_for_one_stream_and_differ_between_streams(stream: int, other: int) -> None:
    numbers = torch.rand(8, generator=generator(stream))
    assert torch.equal(torch.rand(8, generator=generator(stream)), numbers)
    if (stream - other) % 2**32:  # torch's CPU generator is seeded with the low 32 bits
        assert not torch.equal(torch.rand(8, generator=generator(other)), numbers)


def test_generators_leave_the_global_one_alone() -> None:
    before = torch.get_rng_state()
    torch.rand(3, generator=generator(7))
    addressed_uniforms(7, torch.arange(3), torch.arange(3))
    assert torch.equal(torch.get_rng_state(), before)
