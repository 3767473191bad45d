"""One seed, a tree of independent streams, and never a global generator.

A stream is a 64-bit key derived from the seed and the purpose of the work, such as `key(seed, "deal", iteration, player)`.
A key seeds either a `torch.Generator` (initial weights, mini-batches, reservoir slots) or *addressed* uniforms: the number
for `(traversal, node)` depends only on the key and that address. So a traversal gives the same samples in any batch, chunk
or device, and a test can compare a plain recursion with the batched traversals.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_MASK = (1 << 64) - 1


def key(seed: int, *purpose: str | int) -> int:
    """The 64-bit key of the stream for `purpose` under `seed`, or of a child stream if `seed` is itself a key."""
    text = repr((int(seed), *purpose)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def generator(stream: int, device: str = "cpu") -> torch.Generator:
    """A fresh torch generator on `device` for the stream key `stream`; torch's CPU generator uses its low 32 bits."""
    import torch

    return torch.Generator(device=device).manual_seed(stream & (_MASK >> 1))


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _mix(x: torch.Tensor) -> torch.Tensor:
    """The output function of SplitMix64 (Steele, Lea and Flood 2014), on int64 with wrap-around; `x` is overwritten."""
    x ^= (x >> 30) & ((1 << 34) - 1)  # torch shifts are arithmetic, so the copied sign bits are masked off
    x *= _signed(0xBF58476D1CE4E5B9)
    x ^= (x >> 27) & ((1 << 37) - 1)
    x *= _signed(0x94D049BB133111EB)
    x ^= (x >> 31) & ((1 << 33) - 1)
    return x


def addressed_uniforms(stream: int, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Uniform float32 numbers in [0, 1) on a grid of 2^-24, one for each address `(first, second)`.

    `first` and `second` are int64 and broadcast against each other; the result has their common shape and device.
    """
    golden = _signed(0x9E3779B97F4A7C15)
    row = _mix(first * golden + _signed(stream))
    bits = _mix(row + second * _signed(0xD1342543DE82EF95))
    return ((bits >> 40) & 0xFFFFFF).float() * 2.0**-24
