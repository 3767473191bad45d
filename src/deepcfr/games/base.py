"""The `Game` contract that traversals, networks and solvers need, and `check_game`, which verifies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from deepcfr.errors import GameError
from deepcfr.rng import addressed_uniforms, key
from deepcfr.types import TERMINAL, Encoding, Infosets


@dataclass(frozen=True)
class Deals:
    """All chance of B traversals, decided before the first action, so that branches of one traversal share it."""

    traversal: torch.Tensor  # int64 [B], the number that addresses the traversal's random actions
    views: torch.Tensor  # uint8 [B, P, R, C], the cards that each player sees in each round
    hidden: Any  # whatever else the game's own `start`, `step` and `payoff` need, such as who wins the showdown

    def __len__(self) -> int:
        return self.traversal.shape[0]


class Game(Protocol):
    """A two-player zero-sum game with perfect recall whose nodes (positions but for the deal) can be listed.

    Node indices are 0 .. N-1. A node belongs to one player, or is terminal. What the player knows there is
    `infoset[node]` together with `deals.views[row, actor[node], round[node]]`.
    """

    name: str
    unit: str  # what a payoff of 1 is, such as "big blinds"
    milli_unit: str  # the unit that results are printed in, such as "mbb/g"
    device: str
    actor: torch.Tensor  # int64 [N]: 0, 1 or TERMINAL
    round: torch.Tensor  # int64 [N], which view a node uses
    infoset: torch.Tensor  # int64 [N], index into the rows of `encoding`; any value at terminal nodes
    legal: torch.Tensor  # bool [N, A]
    deals_before: (
        torch.Tensor
    )  # int64 [N], chance events between a node's parent and the node, for counting nodes touched
    encoding: Encoding

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        """Chance for the traversals `first` .. `first + count - 1` of the stream: the same ones in any chunking."""
        ...

    def start(self, deals: Deals) -> torch.Tensor:
        """The first decision node of every traversal, int64 [B]."""
        ...

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        """The nodes after legal `action` [M] at `node` [M] of traversals `row` [M], int64 [M]."""
        ...

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        """What player 0 gains at terminal `node` [M], float32 [M] in the game's unit."""
        ...


def infosets_at(game: Game, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> Infosets:
    """The infosets of the acting players at `node` [M] of traversals `row` [M]."""
    return Infosets(game.infoset[node], deals.views[row, game.actor[node], game.round[node]])


def check_game(game: Game, playouts: int = 256, seed: int = 0) -> None:
    """Verify that `game` keeps the `Game` contract, statically and over random playouts.

    Raises GameError with one sentence for every breach found.
    """
    problems = [*_static_problems(game)]
    if not problems:
        problems = [*_deal_problems(game, playouts, seed), *_playout_problems(game, playouts, seed)]
    if problems:
        raise GameError([f"The game '{game.name}' breaks the contract: {problem}" for problem in problems])


def _static_problems(game: Game) -> list[str]:
    nodes = len(game.actor)
    problems = []
    for name in ("actor", "round", "infoset", "deals_before"):
        value = getattr(game, name)
        if value.shape != (nodes,) or value.dtype != torch.int64:
            problems.append(f"{name} must be int64 [{nodes}], but is {value.dtype} {list(value.shape)}.")
    if game.legal.shape != (nodes, game.encoding.num_actions) or game.legal.dtype != torch.bool:
        problems.append(f"legal must be bool [{nodes}, {game.encoding.num_actions}], but is {list(game.legal.shape)}.")
    if problems:
        return problems
    if not bool(((game.actor >= TERMINAL) & (game.actor <= 1)).all()):
        problems.append("actor must be 0, 1 or TERMINAL.")
    decisions = game.actor != TERMINAL
    infosets = game.infoset[decisions]
    if len(infosets) == 0 or int(infosets.min()) < 0 or int(infosets.max()) >= len(game.encoding.legal):
        return [*problems, "infoset must index the rows of the encoding at every decision node, and there must be one."]
    if not bool(game.legal[decisions].any(1).all()):
        problems.append("every decision node needs a legal action.")
    if not torch.equal(game.legal[decisions], game.encoding.legal[infosets]):
        problems.append("a node's legal actions must be those of its infoset in the encoding.")
    owner = torch.full((len(game.encoding.legal),), TERMINAL, device=game.actor.device)
    owner[infosets] = game.actor[decisions]
    if not torch.equal(owner[infosets], game.actor[decisions]):
        problems.append("all nodes of an infoset must belong to one player.")
    if not bool(torch.isfinite(game.encoding.node_features).all()):
        problems.append("node_features must be finite.")
    return problems


def _deal_problems(game: Game, count: int, seed: int) -> list[str]:
    stream = key(seed, "check")
    whole, tail = game.deal(count, stream), game.deal(count - count // 2, stream, first=count // 2)
    problems = []
    slots = sum(game.encoding.card_groups)
    rounds = int(game.round.max()) + 1
    if whole.views.shape[:2] != (count, 2) or whole.views.shape[2] < rounds or whole.views.shape[3] != slots:
        problems.append(f"views must be [{count}, 2, {rounds}, {slots}], but is {list(whole.views.shape)}.")
    elif not torch.equal(whole.views[count // 2 :], tail.views):
        problems.append("deal() must give a traversal the same deal in any chunking.")
    return problems


def _playout_problems(game: Game, count: int, seed: int) -> list[str]:
    deals = game.deal(count, key(seed, "check"))
    row = torch.arange(count, device=game.device)
    node = game.start(deals)
    for _ in range(len(game.actor) + 1):
        live = game.actor[node] != TERMINAL
        if not bool(live.any()):
            break
        at, rows = node[live], row[live]
        chance = addressed_uniforms(key(seed, "play"), rows, at)[:, None]
        weights = game.legal[at].float()
        action = ((weights.cumsum(1) / weights.sum(1, keepdim=True)) <= chance).sum(1).clamp(max=weights.shape[1] - 1)
        after = game.step(at, action, rows, deals)
        if int(after.min()) < 0 or int(after.max()) >= len(game.actor):
            return ["step() must lead to a node."]
        node = node.clone()
        node[live] = after
    else:
        return ["a playout does not end."]
    if not bool(torch.isfinite(game.payoff(node, row, deals)).all()):
        return ["payoffs must be finite."]
    return []
