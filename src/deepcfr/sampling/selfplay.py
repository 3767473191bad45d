"""Play whole games between two strategies, a batch at once: every live game takes one sampled action at each depth."""

from __future__ import annotations

from collections.abc import Callable

import torch

from deepcfr.games.base import Deals, Game
from deepcfr.rng import addressed_uniforms
from deepcfr.sampling.external import Strategy, sample_actions
from deepcfr.types import TERMINAL


def play_games(game: Game, deals: Deals, strategies: tuple[Strategy, Strategy], stream: int) -> torch.Tensor:
    """The payoff of player 0 in one game of every deal, float32 [B] in the game's unit; arguments as in `last_nodes`."""
    node = last_nodes(game, deals, strategies, stream)
    return game.payoff(node, torch.arange(len(deals), device=node.device), deals)


def last_nodes(
    game: Game,
    deals: Deals,
    strategies: tuple[Strategy, Strategy],
    stream: int,
    start: torch.Tensor | None = None,
    place: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Play one game of every deal, from its node of `start` [B] or from the beginning; returns terminal nodes, int64 [B].

    `strategies[p]` is player p's; actions use the uniforms addressed by (traversal, node) in `stream`, so a game is the
    same in any batch, and two games of one deal differ only where their strategies do. `place` gives the numbers that stand
    for nodes in addresses, [M] to [M].
    """
    node = game.start(deals) if start is None else start
    live = torch.arange(len(node), device=node.device)
    while True:
        actor = game.actor[node[live]]
        live, actor = live[actor != TERMINAL], actor[actor != TERMINAL]
        if not len(live):
            return node
        action = torch.empty_like(live)
        for player in (0, 1):
            here = (actor == player).nonzero()[:, 0]
            if len(here):
                row = live[here]
                address = place(node[row]) if place else node[row]
                chance = addressed_uniforms(stream, deals.traversal[row], address)
                action[here] = sample_actions(strategies[player](node[row], row), chance)
        after = game.step(node[live], action, live, deals)
        node = node.index_put((live,), after)
