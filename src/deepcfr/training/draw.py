"""Which examples a fit draws, and which it never sees."""

from __future__ import annotations

import math

import torch

from deepcfr.errors import TrainingError
from deepcfr.rng import addressed_uniforms, generator, key
from deepcfr.training.examples import IndexedExamples

_CANDIDATES = 1 << 18  # examples whose groups are looked up at a time


class Draw:
    """Draws with replacement, from `stream`, by their odds if they have any, of the examples that are not held out.

    Examples are held out by whole groups, each with probability `share`, so that no held-out target is known from a
    training example. Other streams hold out others, so in a run every network misses different ones.
    """

    def __init__(self, examples: IndexedExamples, share: float, stream: int, device: torch.device) -> None:
        self._examples, self._share, self._device = examples, share, device
        self._generator = generator(stream, str(device))
        self._groups = key(stream, "held out")

    def fill(self, index: torch.Tensor) -> None:
        """Overwrite `index`, int64 of any shape and contiguous, with training examples."""
        flat, filled = index.view(-1), 0
        if not self._share and self._examples.odds is None:
            torch.randint(self._examples.draws, flat.shape, generator=self._generator, out=flat)
            return
        while filled < len(flat):
            some = torch.randint(
                self._examples.draws, (min(len(flat), _CANDIDATES),), generator=self._generator, device=self._device
            )
            some = some[self._taken(some)][: len(flat) - filled]
            flat[filled : filled + len(some)] = some
            filled += len(some)

    def _taken(self, index: torch.Tensor) -> torch.Tensor:
        taken = torch.ones_like(index, dtype=torch.bool)
        if self._examples.odds is not None:
            uniform = torch.rand(index.shape, generator=self._generator, device=self._device)
            taken = uniform < self._examples.odds[index]
        return taken & ~self.held_out(index) if self._share else taken

    def held_out(self, index: torch.Tensor) -> torch.Tensor:
        """Which of the examples `index`, int64 [I], are held out; bool [I]."""
        group = self._examples.group(index)
        return addressed_uniforms(self._groups, group, torch.zeros_like(group)) < self._share

    def some_held_out(self, wanted: int) -> torch.Tensor:
        """About `wanted` different held-out examples, int64.

        Raises TrainingError if a draw that should hold many has none, or if it has nothing else.
        """
        draw = generator(key(self._groups, "which"), str(self._device))
        found: list[torch.Tensor] = []
        tried = 0
        while tried < math.ceil(2 * wanted / self._share) and sum(map(len, found)) < wanted:
            some = torch.randint(self._examples.draws, (_CANDIDATES,), generator=draw, device=self._device)
            held = self.held_out(some)
            if not bool(held.any()) or bool(held.all()):
                raise TrainingError(
                    f"{'All' if bool(held.all()) else 'None'} of {len(self._examples):,} examples would be held out at "
                    f"a share of {self._share:g}: there are too few hands, so set held_out = 0."
                )
            found.append(some[held])
            tried += _CANDIDATES
        different: torch.Tensor = torch.unique(torch.cat(found)[:wanted])
        return different
