"""Leduc hold'em as a class that lists its deals, of which nothing else knows that it is poker."""

from __future__ import annotations

from typing import Any

import torch

from deepcfr.game.base import Deals
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS


class Leduc:
    """The contract of `PokerGame` by delegation, with some `parts` replaced."""

    def __init__(self, **parts: Any) -> None:
        self._parts, self._game = parts, PokerGame(PRESETS["leduc"], "raw")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._parts[name] if name in self._parts else getattr(self._game, name)

    def deals(self) -> tuple[Deals, torch.Tensor]:
        """All 120 deals of two hands and a board."""
        if "deals" in self._parts:
            return self._parts["deals"]()  # type: ignore[no-any-return]
        order = torch.cartesian_prod(*[torch.arange(6, dtype=torch.uint8)] * 3)
        cards = order[[len(set(row)) == 3 for row in order.tolist()]].numpy()
        return self._game.deals_of(cards), torch.full((len(cards),), 1 / len(cards))
