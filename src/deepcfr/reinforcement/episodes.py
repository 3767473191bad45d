"""Self-play that records transitions for reinforcement learning, and the circular memory of the newest ones.

All games of a batch advance together, as in `sampling.external`. Then each player's decisions are sorted by game, so
the memories are the same as if the games had been played one after another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from deepcfr.games.base import Deals, Game, infosets_at
from deepcfr.memory.reservoir import Store, node_type
from deepcfr.rng import addressed_uniforms
from deepcfr.sampling.external import Strategy, sample_actions
from deepcfr.types import TERMINAL, Encoding, Infosets


@dataclass(frozen=True)
class Transitions:
    """Steps of one player from a decision to its next one, or to the end of the game."""

    infosets: Infosets  # [I]
    action: torch.Tensor  # int64 [I]
    reward: torch.Tensor  # float32 [I], to the player, from its action until its next decision or the end
    following: Infosets  # [I], the player's next decision; `infosets` again where there is none
    terminal: torch.Tensor  # bool [I], whether the player has no further decision

    def __len__(self) -> int:
        return len(self.infosets)

    def __getitem__(self, some: torch.Tensor) -> Transitions:
        return Transitions(
            self.infosets[some], self.action[some], self.reward[some], self.following[some], self.terminal[some]
        )


def payoff_unit(reward: torch.Tensor, terminal: torch.Tensor) -> float:
    """The root mean square of the payoffs of games that end where `terminal`, [I] each; 1 if all are 0."""
    mean = float(reward[terminal].double().square().mean())
    return math.sqrt(mean) if mean > 0 else 1.0


@dataclass(frozen=True)
class Episodes:
    """Results of a batch of games."""

    transitions: tuple[
        Transitions, Transitions
    ]  # of players 0 and 1; game after game, each from first decision to last
    modes: tuple[torch.Tensor, torch.Tensor]  # int64 [I, 2], the modes of the player and of its opponent in the game
    payoffs: torch.Tensor  # float32 [B], to player 0
    nodes_touched: int  # decision and terminal histories visited, plus deals

    @property
    def decisions(self) -> int:
        """Number of decisions of both players."""
        return len(self.transitions[0]) + len(self.transitions[1])


def play_episodes(
    game: Game, deals: Deals, strategies: tuple[Strategy, Strategy], modes: torch.Tensor, stream: int
) -> Episodes:
    """Play one game for every deal.

    `strategies[p]` is player p's strategy; actions use the uniforms addressed by (traversal, node) in `stream`.
    `modes`, int64 [B, P], are the players' modes and only recorded. Games pay at their ends, so the reward of a
    transition that leads to another decision is 0.
    """
    node, row = game.start(deals), torch.arange(len(deals), device=deals.traversal.device)
    end, visits, touched = node.clone(), [], 0
    while True:
        touched += len(node) + int(game.deals_before[node].sum())
        end[row] = node
        live = (game.actor[node] != TERMINAL).nonzero()[:, 0]
        if not len(live):
            break
        node, row = node[live], row[live]
        action = _actions(game, deals, strategies, stream, node, row)
        visits.append((node, row, action))
        node = game.step(node, action, row, deals)
    nodes, rows, actions = (torch.cat(parts) for parts in zip(*visits, strict=True)) if visits else [row[:0]] * 3
    payoffs = game.payoff(end, torch.arange(len(deals), device=end.device), deals)
    transitions, of_decisions = [], []
    for player in (0, 1):
        mine = (game.actor[nodes] == player).nonzero()[:, 0]
        mine = mine[rows[mine].argsort(stable=True)]  # levels are in order of depth, so each game's decisions stay so
        reward = payoffs if player == 0 else -payoffs
        transitions.append(_transitions(game, deals, nodes[mine], rows[mine], actions[mine], reward))
        of_decisions.append(modes[rows[mine]][:, [player, 1 - player]])
    return Episodes((transitions[0], transitions[1]), (of_decisions[0], of_decisions[1]), payoffs, touched)


def _actions(
    game: Game,
    deals: Deals,
    strategies: tuple[Strategy, Strategy],
    stream: int,
    node: torch.Tensor,
    row: torch.Tensor,
) -> torch.Tensor:
    """The action taken in every live game, int64 [M]."""
    action, actor = torch.empty_like(node), game.actor[node]
    chance = addressed_uniforms(stream, deals.traversal[row], node)
    for player in (0, 1):
        here = (actor == player).nonzero()[:, 0]
        if len(here):
            action[here] = sample_actions(strategies[player](node[here], row[here]), chance[here])
    return action


def _transitions(
    game: Game, deals: Deals, node: torch.Tensor, row: torch.Tensor, action: torch.Tensor, payoff: torch.Tensor
) -> Transitions:
    """The transitions of a player's decisions, ordered by game and depth; `payoff` [B] is the player's."""
    terminal = torch.ones_like(row, dtype=torch.bool)
    terminal[:-1] = row[1:] != row[:-1]
    infosets = infosets_at(game, node, row, deals)
    after = torch.arange(len(row), device=row.device) + ~terminal
    return Transitions(
        infosets=infosets,
        action=action,
        reward=payoff[row].masked_fill(~terminal, 0.0),
        following=infosets[after],
        terminal=terminal,
    )


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
