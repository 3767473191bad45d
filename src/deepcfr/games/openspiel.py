"""Games of OpenSpiel (Lanctot et al. 2019): an `ExplicitTree` to solve in tables, and a `Game` that networks train on.

Supported are two-player zero-sum games with perfect recall whose histories can be listed. Simultaneous moves are made in
turn; the second player does not see the first player's move. In a constant-sum game half of the constant is subtracted from
every payoff.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from deepcfr.errors import GameError
from deepcfr.games.base import Deals
from deepcfr.games.explicit import CHANCE, sequence_form
from deepcfr.games.liars_dice import LiarsDice, histories_of_dice
from deepcfr.games.openspiel_tree import (
    SpielGame,
    compile_tree,
    estimate_histories,
    import_pyspiel,
    require_small,
    require_supported,
    turn_based,
)
from deepcfr.games.phantom import PhantomGame, is_phantom_tic_tac_toe
from deepcfr.rng import addressed_uniforms
from deepcfr.types import TERMINAL, Encoding

MOST_HISTORIES = 20_000_000  # the most histories of a compiled game
_Made = TypeVar("_Made")


def load_openspiel_game(name: str, device: str = "cpu", most_histories: int = MOST_HISTORIES) -> OpenSpielGame:
    """Load a game of OpenSpiel by its name there, with optional parameters: `liars_dice(dice_sides=5)`.

    Raises ConfigError if OpenSpiel is not installed, and GameError if it knows no such game, or if the game is not for two
    players, not zero-sum, larger than `most_histories`, or has imperfect recall.
    """
    return _make(name, lambda game: OpenSpielGame(game, name, device, most_histories))


def playable_openspiel_game(name: str, device: str = "cpu") -> FromOpenSpiel:
    """As `load_openspiel_game`, but phantom tic-tac-toe is a `PhantomGame`, and large liar's dice a `LiarsDice`."""

    def make(game: SpielGame) -> FromOpenSpiel:
        if is_phantom_tic_tac_toe(game):
            return PhantomGame(game, name, device)
        large = histories_of_dice(game) > MOST_HISTORIES
        return LiarsDice(game, name, device) if large else OpenSpielGame(game, name, device)

    return _make(name, make)


def estimate_openspiel_histories(name: str) -> float:
    """The number of histories of a game of OpenSpiel, about. Raises as `load_openspiel_game` does, but for the size."""

    def estimate(game: SpielGame) -> float:
        require_supported(game, name)
        return estimate_histories(turn_based(game))[0]

    return _make(name, estimate)


def _make(name: str, make: Callable[[SpielGame], _Made]) -> _Made:
    """Load OpenSpiel's game and return what `make` makes of it; errors of OpenSpiel become sentences."""
    pyspiel = import_pyspiel()
    short = name.split("(")[0].strip()
    if short not in pyspiel.registered_names():
        _register_python_games(short)
    if short not in pyspiel.registered_names():
        near = difflib.get_close_matches(short, pyspiel.registered_names())
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise GameError(f"OpenSpiel has no game '{short}'.{hint}")
    try:
        return make(pyspiel.load_game(name))
    except (pyspiel.SpielError, IndexError) as error:  # ValueError if a parameter without default is missing
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise GameError(f"OpenSpiel refuses '{name}': {reason}.") from error


def _register_python_games(wanted: str) -> None:
    """Let OpenSpiel know its games that are written in Python, such as python_kuhn_poker."""
    try:
        importlib.import_module("open_spiel.python.games")
    except ImportError as error:
        raise GameError(
            f"OpenSpiel has no game '{wanted}' in C++, and its games in Python cannot be loaded: {error}."
        ) from error


class OpenSpielGame:
    """A game of OpenSpiel as an `ExplicitTree`, its sequence form, and a `Game`.

    Nodes of the `Game` are the decision and terminal histories. Chance outcomes are drawn from uniforms addressed by
    traversal and chance node, so that a deal determines them all. There are no cards: a player sees OpenSpiel's
    information-state tensor; a game without one cannot be learned by networks. The actions 0 .. A-1 are the actions of
    OpenSpiel that occur, in ascending order, so that an action is the same output of a network at all infosets;
    `columns` maps the legal actions of `explicit` to them.
    """

    unit, milli_unit = "points", "mpoints/g"

    def __init__(self, game: SpielGame, source: str, device: str = "cpu", most_histories: int = MOST_HISTORIES) -> None:
        require_supported(game, source)
        self.spiel_game = turn_based(game)
        require_small(self.spiel_game, source, most_histories)
        self.source = source  # argument of `load_openspiel_game`
        self.name = source
        self.device = device
        self.explicit, features = compile_tree(self.spiel_game, source, most_histories)
        self.sequences = sequence_form(self.explicit, source)
        self._place_columns()
        features_there = torch.from_numpy(features).to(device)
        self.encoding = Encoding(features_there, self.positions >= 0, card_groups=(), num_ranks=0, num_suits=0)
        self._place_nodes()
        self._place_chance()

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


FromOpenSpiel = OpenSpielGame | LiarsDice | PhantomGame  # OpenSpiel's games that networks can train on
