"""Games whose histories are listed: an `ExplicitTree` as a `Game`, and classes that list their deals made into one."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.core.errors import GameError
from deepcfr.core.rng import addressed_uniforms
from deepcfr.core.types import NO_CARD, TERMINAL, Encoding, Infosets
from deepcfr.game.base import Deals, DealtGame, Game, card_codes, check_game, infosets_at, lists_deals
from deepcfr.game.explicit import CHANCE, ExplicitTree, breadth_first, sequence_form

MOST_HISTORIES = 20_000_000  # the most histories of a listed game


class TreeGame:
    """A game whose histories are listed, as an `ExplicitTree`, its sequence form, and a `Game`.

    Nodes of the `Game` are the decision and terminal histories. Chance outcomes are drawn from uniforms addressed by
    traversal and chance node, so that a deal determines them all. There are no cards: a player sees `features` [K, F] of
    its infoset; without any, networks cannot learn the game. The actions 0 .. A-1 are those of the source that occur, in
    ascending order, so that an action is the same output of a network at all infosets; `columns` maps the legal actions of
    `explicit` to them. Raises GameError for imperfect recall.
    """

    unit: str = "points"
    milli_unit: str = "mpoints/g"
    unit_chips = 1  # payoffs are in units

    def __init__(
        self, source: str, explicit: ExplicitTree, features: npt.NDArray[np.float32], device: str = "cpu"
    ) -> None:
        self.source = source  # the name that it is loaded by
        self.name = source
        self.device = device
        self.explicit = explicit
        self.sequences = sequence_form(explicit, source)
        self._place_columns()
        features_there = torch.from_numpy(features).to(device)
        self.encoding = Encoding(features_there, self.positions >= 0, card_groups=(), num_ranks=0, num_suits=0)
        self._place_nodes()
        self._place_chance()

    def action_name(self, action: int) -> str:
        """Return the name of an action, by default its number in the source."""
        return str(self.action_ids[action])

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.explicit.num_nodes:,} histories, {self.explicit.num_infosets:,} infosets"

    def _place_columns(self) -> None:
        ids, legal = self.explicit.infoset_action_ids, self.explicit.legal
        self.action_ids = np.unique(ids[legal])  # int64 [A], OpenSpiel's number of each action
        columns = np.where(legal, np.searchsorted(self.action_ids, ids), 0)
        infoset, position = np.nonzero(legal)
        positions = np.full((len(ids), len(self.action_ids)), -1)
        positions[infoset, columns[legal]] = position
        self.columns = torch.from_numpy(columns).to(self.device)  # int64 [K, L], 0 beyond the legal actions
        self.positions = torch.from_numpy(positions).to(
            self.device
        )  # int64 [K, A], inverse of `columns`; -1 if illegal

    def _place_nodes(self) -> None:
        tree, kept = self.explicit, self.explicit.actor != CHANCE
        self.actor = torch.from_numpy(tree.actor[kept]).to(self.device)
        self.round = torch.zeros_like(self.actor)
        self.infoset = torch.from_numpy(tree.infoset[kept].clip(min=0)).to(self.device)
        self.legal = self.encoding.legal[self.infoset] & (self.actor != TERMINAL)[:, None]
        self.deals_before = torch.from_numpy(self._chance_above()[kept]).to(self.device)
        self._first_child = torch.from_numpy(tree.first_child[kept]).to(self.device)
        self._payoff = torch.from_numpy(tree.payoff[kept]).float().to(self.device)

    def _chance_above(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The number of consecutive chance nodes right above every history, [N]."""
        tree = self.explicit
        above = np.where(tree.parent < 0, 0, tree.parent)
        count, drawn = np.zeros(tree.num_nodes, np.int64), tree.actor[above] == CHANCE
        drawn[0] = False
        while drawn.any():
            count += drawn
            drawn = drawn & (tree.parent[above] >= 0) & (tree.actor[tree.parent[above]] == CHANCE)
            above = np.where(drawn, tree.parent[above], above)
        return count

    def _place_chance(self) -> None:
        """Chance nodes in order, and their outcomes as intervals: those of the i-th node divide [i, i + 1)."""
        tree = self.explicit
        chance = tree.actor == CHANCE
        number = np.cumsum(chance) - 1
        outcome = np.flatnonzero(chance[tree.parent] & (tree.parent >= 0))
        parent = tree.parent[outcome]
        before = np.cumsum(tree.chance[outcome]) - tree.chance[outcome]
        start = before[np.searchsorted(outcome, tree.first_child[parent])]
        self._outcome = torch.from_numpy(outcome).to(self.device)
        self._lower = torch.from_numpy(number[parent] + before - start).to(self.device)
        # a history's node; at a chance node -1 minus the number of its interval
        self._node = torch.from_numpy(np.where(chance, -1 - number, np.cumsum(~chance) - 1)).to(self.device)

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        traversal = torch.arange(first, first + count, device=self.device)
        return Deals(traversal, torch.zeros(count, 2, 1, 0, dtype=torch.uint8, device=self.device), hidden=stream)

    def start(self, deals: Deals) -> torch.Tensor:
        return self._after_chance(torch.zeros_like(deals.traversal), deals.traversal, deals.hidden)

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        history = self._first_child[node] + self.positions[self.infoset[node], action]
        return self._after_chance(history, deals.traversal[row], deals.hidden)

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return self._payoff[node]

    def _after_chance(self, history: torch.Tensor, traversal: torch.Tensor, stream: int) -> torch.Tensor:
        """The nodes that follow histories of `explicit` [M] after chance has moved."""
        while True:
            node = self._node[history]
            at = (node < 0).nonzero()[:, 0]
            if not len(at):
                return node
            # the uniforms lie on a grid of 2^-24, so outcome probabilities are exact to 2^-24
            uniform = addressed_uniforms(stream, traversal[at], history[at]).double()
            outcome = torch.searchsorted(self._lower, uniform - 1 - node[at], right=True) - 1
            history = history.index_put((at,), self._outcome[outcome])


_NEEDED = (
    "name", "unit", "milli_unit", "device", "encoding", "actor", "round", "infoset", "legal", "deals_before", "deal",
    "start", "step", "payoff",
)  # fmt: skip


def class_game(name: str, device: str = "cpu") -> Game:
    """The game of the class `module:Class`, as a `ClassGame` if it lists its deals; modules of this folder are found.

    The class is called without arguments; one without `deals` with `device` if that is another one than the CPU.
    Raises GameError with sentences if the module, the class or a part of the contract is missing or wrong.
    """
    module_name, _, class_name = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _broken(name, "cannot be imported", error) from error
        raise GameError(
            f"'{name}': there is no module '{error.name}' in this folder or among the installed packages."
        ) from error
    except Exception as error:
        raise _broken(name, "cannot be imported", error) from error
    kind = getattr(module, class_name, None)
    if not isinstance(kind, type):
        classes = [word for word, value in vars(module).items() if isinstance(value, type)]
        near = difflib.get_close_matches(class_name, classes)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise GameError(f"'{name}': the module '{module_name}' has no class '{class_name}'.{hint}")
    there = {} if device == "cpu" or hasattr(kind, "deals") else {"device": device}
    try:
        made: Any = kind(**there)
    except Exception as error:
        how = f"with device='{device}'" if there else "without arguments"
        raise _broken(name, f"cannot be made {how}", error) from error
    if missing := [word for word in _NEEDED if not hasattr(made, word)]:
        raise GameError(f"'{name}' is no game: it has no {', no '.join(missing)}.")
    if lists_deals(made):
        return ClassGame(made, name, device)
    if isinstance(made.actor, torch.Tensor):
        check_game(made)
    return made


def _broken(name: str, what: str, error: Exception) -> GameError:
    return GameError(f"'{name}' {what}: {type(error).__name__}: {str(error).rstrip('.') or 'no reason given'}.")


class ClassGame(TreeGame):
    """A game that lists its deals as a `TreeGame`: chance deals first, and every action of `explicit` is the game's own.

    Networks see the public features of an infoset and, for each card slot, which card is there. Raises GameError for
    a breach of the contract, for more histories than can be listed, and for imperfect recall.
    """

    def __init__(self, game: DealtGame, source: str, device: str = "cpu", most_histories: int = MOST_HISTORIES) -> None:
        check_game(game)
        explicit, self.own = _list(game, source, most_histories)
        super().__init__(source, explicit, _features(game, self.own), device)
        self.unit, self.milli_unit = game.unit, game.milli_unit
        self._action_names: tuple[str, ...] = tuple(getattr(game, "action_names", ()))  # optional, by action

    def action_name(self, action: int) -> str:
        place = int(self.action_ids[action])
        return self._action_names[place] if place < len(self._action_names) else str(place)


def tree_game(game: Game) -> TreeGame:
    """The game with its histories listed. Raises GameError unless it is listed already or lists its deals."""
    if isinstance(game, TreeGame):
        return game
    if not lists_deals(game):
        raise GameError(f"The histories of '{game.name}' cannot be listed: it has no method `deals`.")
    return ClassGame(game, game.name)


@dataclass(frozen=True)
class _Layer:
    """Histories of equal length, [M]."""

    node: torch.Tensor
    row: torch.Tensor  # of the deal
    parent: torch.Tensor  # the number of the history before
    action: torch.Tensor


def _list(game: DealtGame, name: str, most: int) -> tuple[ExplicitTree, Infosets]:
    """All histories, and the infoset of the game at each of the tree's, [K]."""
    deals, chance = game.deals()
    shares = chance.double().cpu().numpy()
    shares /= shares.sum()
    levels, count = [], 1
    for level in _levels(game, deals):
        levels.append(level)
        count += len(level.node)
        if count > most:
            raise GameError(f"'{name}' has more than {most:,} histories, the most that can be listed.")
    node, row, parent, action = (
        torch.cat([getattr(level, part) for level in levels]).cpu() for part in ("node", "row", "parent", "action")
    )
    actor = game.actor[node].cpu()
    children = np.bincount(parent.numpy(), minlength=count)
    decides, over = actor != TERMINAL, actor == TERMINAL
    found = infosets_at(game, node[decides], row[decides], deals)
    code = torch.stack([found.node.long(), card_codes(found.cards, game.encoding)], 1)
    _, number = torch.unique(code, dim=0, return_inverse=True)
    first = torch.full((int(number.max()) + 1,), len(number)).scatter_reduce(
        0, number, torch.arange(len(number)), "amin"
    )
    own = found[first]
    payoff = torch.zeros(len(node), dtype=torch.float64)
    payoff[over] = game.payoff(node[over], row[over], deals).double().cpu()
    infoset = torch.full((len(node),), -1).masked_scatter(decides, number)
    legal = game.encoding.legal[own.node.long()].cpu()
    tree = breadth_first(
        actor=np.append(CHANCE, actor.numpy()),
        parent=np.append(-1, parent.numpy()),
        first_child=np.where(children > 0, 1 + np.cumsum(children) - children, 0),
        num_children=children,
        action=np.append(-1, action.numpy()),
        chance=np.concatenate([[1.0], shares, np.ones(len(node) - len(shares))]),
        infoset=np.append(-1, infoset.numpy()),
        payoff=np.append(0.0, payoff.numpy()),
        infoset_actor=actor[decides][first].tolist(),
        infoset_action_ids=[row.nonzero()[:, 0].tolist() for row in legal],
        infoset_names=[_name(k, cards) for k, cards in zip(own.node.tolist(), own.cards.tolist(), strict=True)],
    )
    # `breadth_first` numbers infosets by their first history
    return tree, own[torch.argsort(first)]


def _name(infoset: int, cards: list[int]) -> str:
    shown = " ".join("-" if card == NO_CARD else str(card) for card in cards)
    return f"{infoset} / {shown}" if cards else str(infoset)


def _levels(game: DealtGame, deals: Deals) -> Iterator[_Layer]:
    """The histories after the deal, level by level; siblings follow each other, and all parents are in order."""
    row = torch.arange(len(deals), device=game.device)
    level = _Layer(game.start(deals), row, torch.zeros_like(row), row)
    before = 1
    while len(level.node):
        yield level
        at = (game.actor[level.node] != TERMINAL).nonzero()[:, 0]
        which, action = game.legal[level.node[at]].nonzero(as_tuple=True)
        parent = at[which]
        row = level.row[parent]
        after = game.step(level.node[parent], action, row, deals)
        level, before = _Layer(after, row, before + parent, action), before + len(level.node)


def _features(game: DealtGame, infosets: Infosets) -> npt.NDArray[np.float32]:
    """The public features of infosets and their cards, one of each slot's deck or none, [K, F]."""
    deck = game.encoding.num_ranks * game.encoding.num_suits
    shown = infosets.cards[:, :, None].long() == torch.arange(deck)
    public = game.encoding.node_features.cpu()[infosets.node.long()]
    return torch.cat([public, shown.flatten(1).float()], 1).numpy()
