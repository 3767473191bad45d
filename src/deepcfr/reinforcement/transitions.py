"""Circular replay memory with a player's newest transitions."""

from __future__ import annotations

import torch

from deepcfr.memory.reservoir import Store, node_type
from deepcfr.reinforcement.episodes import Transitions
from deepcfr.types import Encoding, Infosets


def bytes_per_transition(encoding: Encoding) -> int:
    """Bytes of a transition in a replay memory."""
    node = torch.empty(0, dtype=node_type(encoding)).element_size()
    return 2 * (node + sum(encoding.card_groups)) + 2 + 4 + 1 + 4


class TransitionMemory(Store):
    """The newest `capacity` transitions of one player (Mnih et al. 2015; M_RL of Heinrich and Silver 2016)."""

    def __init__(self, encoding: Encoding, capacity: int, device: str = "cpu") -> None:
        cards, nodes = sum(encoding.card_groups), node_type(encoding)
        columns = {
            "node": torch.empty(capacity, dtype=nodes, device=device),
            "cards": torch.empty(capacity, cards, dtype=torch.uint8, device=device),
            "action": torch.empty(capacity, dtype=torch.int16, device=device),
            "reward": torch.empty(capacity, dtype=torch.float32, device=device),
            "next_node": torch.empty(capacity, dtype=nodes, device=device),
            "next_cards": torch.empty(capacity, cards, dtype=torch.uint8, device=device),
            "terminal": torch.empty(capacity, dtype=torch.bool, device=device),
            "iteration": torch.empty(capacity, dtype=torch.int32, device=device),
        }
        super().__init__(columns, capacity, "window")

    def add(self, transitions: Transitions, iteration: int) -> None:
        """Add `transitions` of an iteration in order, in place of the oldest ones."""
        times = torch.full((len(transitions),), iteration, dtype=torch.int32, device=transitions.action.device)
        following = {"next_node": transitions.following.node, "next_cards": transitions.following.cards}
        rows = vars(transitions) | vars(transitions.infosets) | following | {"iteration": times}
        self.put(rows, stream=0)  # a window needs no random numbers

    def __getitem__(self, index: torch.Tensor | slice) -> Transitions:
        columns = {name: self.rows(name, index) for name in self.columns if name != "iteration"}
        return Transitions(
            infosets=Infosets(columns["node"].int(), columns["cards"]),
            action=columns["action"].long(),
            reward=columns["reward"],
            following=Infosets(columns["next_node"].int(), columns["next_cards"]),
            terminal=columns["terminal"],
        )
