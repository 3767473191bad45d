"""Games as classes: Leduc hold'em that lists its deals and is not known to be poker, and a small game of bluffing."""

from __future__ import annotations

from typing import Any

import torch

from deepcfr.core.rng import addressed_uniforms
from deepcfr.core.types import TERMINAL, Encoding, Infosets
from deepcfr.game.base import Deals, Game
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.policy.base import Policy


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


class RowPolicy(Policy):
    """A row of probabilities for every public index of infosets, whatever the cards."""

    kind = "rows"

    def __init__(self, game: Game, rows: Any) -> None:
        self.game, self.rows = game, torch.as_tensor(rows, dtype=torch.float64)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self.rows[infosets.node.long()]


PASS, CALL, BET = 0, 1, 2
STRONG, WEAK, FACING_BET = 0, 1, 2  # infosets
NODES = [
    # actor, infoset, children after pass, call and bet, what player 0 gains
    (0, STRONG, (4, -1, 2), 0.0),
    (0, WEAK, (5, -1, 3), 0.0),
    (1, FACING_BET, (6, 8, -1), 0.0),
    (1, FACING_BET, (7, 9, -1), 0.0),
    (TERMINAL, 0, (-1, -1, -1), 1.0),  # strong and passed
    (TERMINAL, 0, (-1, -1, -1), -1.0),  # weak and passed
    (TERMINAL, 0, (-1, -1, -1), 1.0),  # strong, bet and folded
    (TERMINAL, 0, (-1, -1, -1), 1.0),  # weak, bet and folded
    (TERMINAL, 0, (-1, -1, -1), 3.0),  # strong, bet and called
    (TERMINAL, 0, (-1, -1, -1), -3.0),  # weak, bet and called
]


class Bluff:
    """Player 0 alone sees whether it is strong or weak, one time in two each, and passes or bets two into a pot of two.

    A strong player 0 wins the showdown. In the only equilibrium it always bets when strong and one time in two when
    weak, player 1 calls one time in two, and the game is worth 1/2 to player 0.
    """

    name, unit, milli_unit, device = "bluff", "antes", "mA/g", "cpu"

    def __init__(self) -> None:
        self.actor = torch.tensor([actor for actor, *_ in NODES])
        self.round = torch.zeros(len(NODES), dtype=torch.int64)
        self.infoset = torch.tensor([infoset for _, infoset, *_ in NODES])
        self.child = torch.tensor([child for _, _, child, _ in NODES])
        self.legal = self.child >= 0
        self.gain = torch.tensor([gain for *_, gain in NODES])
        self.deals_before = torch.tensor([1, 1, *[0] * 8])
        self.encoding = Encoding(torch.eye(3), self.legal[:3].clone(), (), 0, 0)

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        traversal = torch.arange(first, first + count)
        weak = addressed_uniforms(stream, traversal, torch.tensor(0)) < 0.5
        return Deals(traversal, torch.zeros(count, 2, 1, 0, dtype=torch.uint8), weak.long())

    def start(self, deals: Deals) -> torch.Tensor:
        return deals.hidden

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return self.child[node, action]

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return self.gain[node]
