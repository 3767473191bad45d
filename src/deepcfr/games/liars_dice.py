"""OpenSpiel's liar's dice, with more histories than can be listed, as a `Game`: bids are public, dice are the deal.

Every bid is higher than the one before, so a public position is a set of bids: a number with a bit for each bid that was
made. Two players with two dice of five faces have 2^20 positions and 15 rolls each, that is 15.7 million infosets and 1.3
billion histories.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations_with_replacement, product

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Deals
from deepcfr.games.openspiel_tree import SpielGame
from deepcfr.rng import addressed_uniforms
from deepcfr.types import TERMINAL, Encoding

MOST_BIDS = 22  # sets of 22 bids take 0.4 GB as features

Bools = npt.NDArray[np.bool_]


def histories_of_dice(game: SpielGame) -> int:
    """The number of histories after the rolls: sets of bids, with and without a call; 0 if it is not liar's dice."""
    rules = game.get_parameters()
    if game.get_type().short_name != "liars_dice":
        return 0
    histories: int = rules["dice_sides"] ** (rules["players"] * rules["numdice"]) << game.num_distinct_actions()
    return histories


class LiarsDice:
    """Two-player liar's dice of OpenSpiel by public positions.

    Node m < 2^b is the decision after the set m of bids, bit k for the k-th of the b bids; node 2^b + m is the end after
    that decision calls a liar. Action k is the k-th bid and action b the call. A roll of d dice is a hand: its faces in
    ascending order, without suits. Raises GameError for more than `MOST_BIDS` bids.
    """

    unit, milli_unit = "points", "mpoints/g"

    def __init__(self, game: SpielGame, source: str, device: str = "cpu") -> None:
        rules = game.get_parameters()
        self.spiel_game, self.source, self.name, self.device = game, source, source, device
        self.num_dice, self.num_faces = int(rules["numdice"]), int(rules["dice_sides"])
        self.num_bids: int = game.num_distinct_actions() - 1
        if self.num_bids > MOST_BIDS:
            raise GameError(f"'{source}' has {self.num_bids} bids, and at most {MOST_BIDS} are supported.")
        self.hands = np.array(list(combinations_with_replacement(range(self.num_faces), self.num_dice)), np.uint8)
        rolls = np.sort(np.array(list(product(range(self.num_faces), repeat=self.num_dice)), np.uint8), 1)
        same = (rolls[:, None] == self.hands).all(2)
        self.chance = same.mean(0)  # [H], of each hand
        self.true = self._true_bids()
        self._true = torch.from_numpy(self.true).to(device)
        self._hand_of_roll = torch.from_numpy(same.argmax(1)).to(device)
        self._place_nodes()

    @cached_property
    def movers(self) -> npt.NDArray[np.int64]:
        """The player who acts at each position, [M]."""
        return self.actor[: 1 << self.num_bids].cpu().numpy()

    @property
    def num_infosets(self) -> int:
        return len(self.hands) << self.num_bids

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{1 << self.num_bids:,} public positions, {self.num_infosets:,} infosets"

    def _true_bids(self) -> Bools:
        """Whether each bid is true, by the hands of players 0 and 1: bool [bids, H, H]; OpenSpiel decides."""
        true = np.empty((self.num_bids, len(self.hands), len(self.hands)), np.bool_)
        for first, second in np.ndindex(true.shape[1:]):
            dealt = self.spiel_game.new_initial_state()
            for face in (*self.hands[first].tolist(), *self.hands[second].tolist()):
                dealt.apply_action(face)
            for bid in range(self.num_bids):
                state = dealt.child(bid)
                state.apply_action(self.num_bids)
                true[bid, first, second] = state.returns()[0] > 0  # player 0 has bid
        return true

    def _place_nodes(self) -> None:
        bids, device = self.num_bids, self.device
        mask = torch.arange(1 << bids, device=device)
        made = (mask[:, None] >> torch.arange(bids, device=device)) & 1  # [positions, bids]
        after = torch.zeros(2 << bids, bids + 1, dtype=torch.bool, device=device)
        after[: 1 << bids, :bids] = mask[:, None] < 1 << torch.arange(bids, device=device)  # bids above the last
        after[1 : 1 << bids, bids] = True
        self.last_bid = torch.log2(mask.clamp(min=1).double()).long()  # of the first position it is not used
        mover = made.sum(1) & 1
        self.actor = torch.cat([mover, torch.full_like(mask, TERMINAL)])
        self.round = torch.zeros_like(self.actor)
        self.infoset = torch.cat([mask, torch.zeros_like(mask)])
        self.legal = after
        self.deals_before = torch.zeros_like(self.actor)
        self.deals_before[0] = 2 * self.num_dice
        self.encoding = Encoding(
            made.float(), after[: 1 << bids], card_groups=(self.num_dice,), num_ranks=self.num_faces, num_suits=1
        )

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        traversal = torch.arange(first, first + count, device=self.device)
        roll = torch.zeros(count, 2, dtype=torch.int64, device=self.device)
        for die in range(2 * self.num_dice):
            uniform = addressed_uniforms(stream, traversal, torch.full_like(traversal, die)).double()
            player = die // self.num_dice
            roll[:, player] = roll[:, player] * self.num_faces + (uniform * self.num_faces).long()
        hand = self._hand_of_roll[roll]  # [B, 2]
        views = torch.from_numpy(self.hands).to(self.device)[hand][:, :, None]
        return Deals(traversal, views, hidden=hand)

    def start(self, deals: Deals) -> torch.Tensor:
        return torch.zeros_like(deals.traversal)

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return node + (1 << action)  # the call is the bit that ends are marked with

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        position = node - (1 << self.num_bids)
        first, second = deals.hidden[row].unbind(1)
        won = self._true[self.last_bid[position], first, second] == (self.actor[position] == 1)  # 0 bids, 1 calls
        return won.float() * 2 - 1
