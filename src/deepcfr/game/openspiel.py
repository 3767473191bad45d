"""Games of OpenSpiel (Lanctot et al. 2019): an `ExplicitTree` to solve in tables, and a `Game` that networks train on.

Supported are two-player zero-sum games with perfect recall whose histories can be listed. Simultaneous moves are made in
turn; the second player does not see the first player's move. In a constant-sum game half of the constant is subtracted from
every payoff.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import random
import time
from array import array
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.rng import key
from deepcfr.core.types import TERMINAL, Infosets
from deepcfr.game.base import Game
from deepcfr.game.explicit import CHANCE, ExplicitTree, breadth_first
from deepcfr.game.tree_game import MOST_HISTORIES, TreeGame

_ROLLOUTS = 200  # rollouts of the size estimate before a game is compiled
_ENDLESS = 1e18  # histories at which a rollout of the estimate stops
_FIRST_NOTE, _BETWEEN_NOTES = 3.0, 10.0  # seconds
_LOG = logging.getLogger(__name__)
_LARGER = "Larger games can be classes, as those in the folder examples are."

SpielGame = Any  # pyspiel ships no types
SpielState = Any


def import_pyspiel() -> Any:
    """OpenSpiel's module. Raises ConfigError if it is not installed."""
    try:
        import pyspiel
    except ImportError as error:
        raise ConfigError("OpenSpiel is not installed: run pip install 'deepcfr[openspiel]'.") from error
    return pyspiel


def require_supported(game: SpielGame, name: str) -> None:
    """Raise GameError with every reason why `game` cannot be compiled, except its size and imperfect recall."""
    kinds = import_pyspiel().GameType
    kind = game.get_type()
    problems = []
    if game.num_players() != 2:
        problems.append(f"'{name}' has {game.num_players()} players, and two are supported.")
    if kind.utility not in (kinds.Utility.ZERO_SUM, kinds.Utility.CONSTANT_SUM):
        problems.append(f"'{name}' is neither zero-sum nor constant-sum.")
    if kind.chance_mode == kinds.ChanceMode.SAMPLED_STOCHASTIC:
        problems.append(f"'{name}' does not tell the probabilities of its chance outcomes.")
    if kind.dynamics == kinds.Dynamics.MEAN_FIELD:
        problems.append(f"'{name}' is a mean-field game, and players must move in turn or at once.")
    if not kind.provides_information_state_string:
        problems.append(f"OpenSpiel has no names (information-state strings) for the infosets of '{name}'.")
    if problems:
        raise GameError(problems)


def same_game(first: SpielGame, second: SpielGame) -> bool:
    """Whether two games are the same one with the same parameters, defaults written or not."""
    kinds, parameters = ({game.get_type().short_name for game in (first, second)}, first.get_parameters())
    return len(kinds) == 1 and bool(parameters == second.get_parameters())


def turn_based(game: SpielGame) -> SpielGame:
    """The game with simultaneous moves made in turn; the second player does not see the first player's move."""
    pyspiel = import_pyspiel()
    simultaneous = game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS
    return pyspiel.convert_to_turn_based(game) if simultaneous else game


def estimate_histories(game: SpielGame, rollouts: int = _ROLLOUTS) -> tuple[float, float]:
    """An unbiased estimate of the number of histories, and its standard error.

    A rollout picks uniformly among the successors; the product of their numbers so far estimates the size of a level.
    Rollouts stop at 10^18 histories. Source: Knuth 1975, "Estimating the efficiency of backtrack programs".
    """
    chance = random.Random(key(0, "histories"))
    sizes = [_rollout_size(game.new_initial_state(), chance) for _ in range(rollouts)]
    return float(np.mean(sizes)), float(np.std(sizes)) / rollouts**0.5


def _rollout_size(state: SpielState, chance: random.Random) -> float:
    size = width = 1.0
    while not state.is_terminal() and size < _ENDLESS:
        moves = _successors(state)
        width *= len(moves)
        size += width
        state.apply_action(chance.choice(moves)[0])
    return size


def _small(game: SpielGame, name: str, most: int) -> float:
    """The estimated number of histories. Raises GameError if it is clearly above `most`."""
    mean, error = estimate_histories(game)
    if mean - 3 * error > most or mean > 10 * most:
        about = f"about {mean:,.0f}" if mean < 1e12 else f"about {mean:.0e} or more"
        raise GameError(f"'{name}' has {about} histories, and at most {most:,} can be compiled. {_LARGER}")
    return mean


def compile_tree(game: SpielGame, name: str, most: int) -> tuple[ExplicitTree, npt.NDArray[np.float32]]:
    """The tree of a supported, turn-based game, and the features of its infosets [K, F], F = 0 if OpenSpiel has none.

    In a constant-sum game half of the constant is subtracted from every payoff. Raises GameError beyond `most` histories.
    If it takes long, notes of its size and progress are logged.
    """
    return _Compiler(game, name, most, _small(game, name, most)).compile()


def _successors(state: SpielState) -> list[tuple[int, float]]:
    """The moves at a history with their probabilities, 1 for decisions; impossible chance outcomes are left out."""
    if state.is_chance_node():
        return [(action, chance) for action, chance in state.chance_outcomes() if chance > 0]
    return [(action, 1.0) for action in state.legal_actions()]


def _tensor_reader(game: SpielGame) -> Callable[[SpielState], list[float]]:
    """A function for the features of the acting player's infoset; empty if OpenSpiel's do not distinguish infosets."""
    kind, kinds = game.get_type(), import_pyspiel().GameType
    if kind.provides_information_state_tensor:
        return lambda state: state.information_state_tensor()
    # the observation is the whole state, unless simultaneous moves are made in turn: then one move is hidden
    seen = kind.information == kinds.Information.PERFECT_INFORMATION and kind.dynamics == kinds.Dynamics.SEQUENTIAL
    if seen and kind.provides_observation_tensor and not kind.short_name.startswith("turn_based"):
        return lambda state: state.observation_tensor()
    return lambda _: []


class _Compiler:
    """Lists every history in growing arrays, depth-first, so that few of OpenSpiel's states are in memory at a time."""

    def __init__(self, game: SpielGame, name: str, most: int, expected: float) -> None:
        self.game, self.name, self.most = game, name, most
        self.size = f"{float(f'{expected:.1e}'):,.0f}"  # about
        self.begun = time.monotonic()
        self.next_note = self.begun + _FIRST_NOTE
        self.done = 0.0  # of the tree, where the subtrees of a history are equal parts of its own
        self.constant: float = game.utility_sum() or 0.0
        self.read_tensor = _tensor_reader(game)
        self.actor, self.num_children, self.infoset = array("b"), array("i"), array("i")
        self.parent, self.first_child, self.action = array("q"), array("q"), array("q")
        self.chance, self.payoff = array("d"), array("d")
        self.infosets: dict[tuple[int, str], int] = {}
        self.legal: list[list[int]] = []
        self.features: list[npt.NDArray[np.float32]] = []

    def compile(self) -> tuple[ExplicitTree, npt.NDArray[np.float32]]:
        stack: list[tuple[SpielState, int, float]] = [(self.game.new_initial_state(), 0, 1.0)]
        self._make_room(-1, [(-1, 1.0)])
        while stack:
            if time.monotonic() > self.next_note:
                self._note_progress()
            state, node, part = stack.pop()
            if state.is_terminal():
                self.payoff[node] = self._zero_sum_payoff(state)
                self.done += part
            else:
                following = self._expand(state, node)
                stack.extend((child, place, part / len(following)) for child, place in following)
        if not self.legal:
            raise GameError(f"'{self.name}' has no decisions.")
        tree = self._tree()
        order = [self.infosets[name] for name in tree.infoset_index]  # in the tree's order
        return tree, np.array([self.features[k] for k in order], np.float32).reshape(len(order), -1)

    def _note_progress(self) -> None:
        """Log how many histories are listed, of how many, and how long the rest may take."""
        now = time.monotonic()
        self.next_note = now + _BETWEEN_NOTES
        rest = (now - self.begun) * (1 / max(self.done, 1e-9) - 1)
        so_far = f"{len(self.actor):,} of about {self.size}"
        _LOG.info("listing the histories of %s: %s so far, about %.0f s left", self.name, so_far, rest)

    def _expand(self, state: SpielState, node: int) -> list[tuple[SpielState, int]]:
        """Record who acts at a history, and return its successors."""
        moves = _successors(state)
        if state.is_chance_node():
            self.actor[node] = CHANCE
            self._require_distribution(moves)
        else:
            self.actor[node] = state.current_player()
            self.infoset[node] = self._infoset(state, [action for action, _ in moves])
        first = self.first_child[node] = len(self.actor)
        self.num_children[node] = len(moves)
        self._make_room(node, moves)
        return [(state.child(action), first + place) for place, (action, _) in enumerate(moves)]

    def _make_room(self, parent: int, moves: list[tuple[int, float]]) -> None:
        if len(self.actor) + len(moves) > self.most:
            raise GameError(
                f"'{self.name}' has more than {self.most:,} histories, the most that can be compiled. {_LARGER}"
            )
        for action, chance in moves:
            self.actor.append(TERMINAL)
            self.num_children.append(0)
            self.infoset.append(-1)
            self.parent.append(parent)
            self.first_child.append(0)
            self.action.append(action)
            self.chance.append(chance)
            self.payoff.append(0.0)

    def _infoset(self, state: SpielState, legal: list[int]) -> int:
        name = state.information_state_string()
        infoset = self.infosets.setdefault((state.current_player(), name), len(self.legal))
        if infoset == len(self.legal):
            self.legal.append(legal)
            self.features.append(np.array(self.read_tensor(state), np.float32))
        elif self.legal[infoset] != legal:
            raise GameError(f"Histories of '{self.name}' share the infoset {name!r} but not their legal actions.")
        return infoset

    def _zero_sum_payoff(self, state: SpielState) -> float:
        first, second = state.returns()
        if abs(first + second - self.constant) > 1e-6:
            raise GameError(f"Payoffs of '{self.name}' are {first} and {second}, but should add up to {self.constant}.")
        return float(first - second) / 2

    def _require_distribution(self, moves: list[tuple[int, float]]) -> None:
        total = sum(chance for _, chance in moves)
        if abs(total - 1) > 1e-6:
            raise GameError(f"Chance outcomes of '{self.name}' have probabilities that add up to {total}.")

    def _tree(self) -> ExplicitTree:
        return breadth_first(
            actor=np.frombuffer(self.actor, np.int8),
            parent=np.frombuffer(self.parent, np.int64),
            first_child=np.frombuffer(self.first_child, np.int64),
            num_children=np.frombuffer(self.num_children, np.int32),
            action=np.frombuffer(self.action, np.int64),
            chance=np.frombuffer(self.chance, np.float64),
            infoset=np.frombuffer(self.infoset, np.int32),
            payoff=np.frombuffer(self.payoff, np.float64),
            infoset_actor=[player for player, _ in self.infosets],
            infoset_action_ids=self.legal,
            infoset_names=[name for _, name in self.infosets],
        )


_Made = TypeVar("_Made")


def load_openspiel_game(name: str, device: str = "cpu", most_histories: int = MOST_HISTORIES) -> OpenSpielGame:
    """Load a game of OpenSpiel by its name there, with optional parameters: `goofspiel(num_cards=4,imp_info=True)`.

    Raises ConfigError if OpenSpiel is not installed, and GameError if it knows no such game, or if the game is not for two
    players, not zero-sum, larger than `most_histories`, or has imperfect recall.
    """
    return _make(name, lambda game: OpenSpielGame(game, name, device, most_histories))


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
        try:
            importlib.import_module("open_spiel.python.games")
        except ImportError as error:
            raise GameError(
                f"OpenSpiel has no game '{short}' in C++, and its games in Python cannot be loaded: {error}."
            ) from error
    if short not in pyspiel.registered_names():
        near = difflib.get_close_matches(short, pyspiel.registered_names())
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise GameError(f"OpenSpiel has no game '{short}'.{hint}")
    try:
        return make(pyspiel.load_game(name))
    except (pyspiel.SpielError, IndexError) as error:  # ValueError if a parameter without default is missing
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise GameError(f"OpenSpiel refuses '{name}': {reason}.") from error


class OpenSpielGame(TreeGame):
    """A game of OpenSpiel as a `TreeGame`; a player sees OpenSpiel's information-state tensor.

    `action` of `explicit` and `action_ids` are OpenSpiel's numbers of actions.
    """

    def __init__(self, game: SpielGame, source: str, device: str = "cpu", most_histories: int = MOST_HISTORIES) -> None:
        require_supported(game, source)
        self.spiel_game = turn_based(game)
        super().__init__(source, *compile_tree(self.spiel_game, source, most_histories), device)

    def infoset_of(self, state: SpielState, player: int) -> Infosets:
        """The infoset of a player at OpenSpiel's state, one row. Raises GameError for a state of another game."""
        name = state.information_state_string(player)
        infoset = self.explicit.infoset_index.get((player, name))
        if infoset is None:
            raise GameError(f"'{self.name}' has no infoset of player {player} with the name {name!r}.")
        node = torch.tensor([infoset], device=self.device)
        return Infosets(node, torch.empty(1, 0, dtype=torch.uint8, device=self.device))


class OfOpenSpiel(Game, Protocol):
    """A game that finds its infosets at OpenSpiel's states, so that its agents play there; optional for a class."""

    spiel_game: SpielGame
    action_ids: npt.NDArray[np.int64]  # [A], OpenSpiel's number of each action

    def infoset_of(self, state: SpielState, player: int) -> Infosets:
        """The infoset of a player at a state of `spiel_game`, one row."""
        ...


def is_of_openspiel(game: object) -> TypeGuard[OfOpenSpiel]:
    """Whether a game has the optional method `infoset_of`."""
    return hasattr(game, "infoset_of")
