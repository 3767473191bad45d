"""Load games by name: a preset, the path of a game-definition file, `openspiel:NAME`, or `module:Class`."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from deepcfr.config import OPENSPIEL, names_class
from deepcfr.core.errors import GameError
from deepcfr.game.acpc_definition import parse_game_definition
from deepcfr.game.bet_sizes import BET_SIZE_GAMES, BetSizeRules, read_bet_sizes
from deepcfr.game.rules import PRESETS, PokerRules

if TYPE_CHECKING:
    from deepcfr.game.base import Game
    from deepcfr.game.betting import PublicTree
    from deepcfr.game.openspiel import OpenSpielGame
    from deepcfr.game.poker import PokerGame, Suits


@dataclass(frozen=True)
class OpenSpielSource:
    """A game of OpenSpiel by its name there, with parameters if any: `goofspiel(num_cards=4,imp_info=True)`."""

    openspiel: str

    milli_unit: ClassVar[str] = "mpoints/g"

    @property
    def name(self) -> str:
        return self.openspiel


@dataclass(frozen=True)
class ClassSource:
    """A game written as a class, by the name `module:Class`."""

    python: str
    milli_unit: str

    @property
    def name(self) -> str:
        return self.python


GameSource = PokerRules | BetSizeRules | OpenSpielSource | ClassSource
"""The source that a game is made from: plain data, unlike the game itself."""


def _named(game: object) -> str:
    """The name of a game, or the path of its file. Raises GameError for what is neither."""
    if isinstance(game, str | Path):
        return str(game)
    raise GameError(f"A game is named by a text, such as 'kuhn', but {reprlib.repr(game)} is given.")


def load_rules(game: str) -> PokerRules:
    """The rules of a preset such as `fhp`, or of the ACPC game-definition file at the path `game`.

    Raises GameError if neither exists, or if the file is malformed.
    """
    game = _named(game)
    if game in PRESETS:
        return PRESETS[game]
    if game in BET_SIZE_GAMES:
        raise GameError(f"'{game}' is a game with bet sizes, and limit or pot betting is needed here.")
    path = Path(game)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        known = ", ".join([*PRESETS, *BET_SIZE_GAMES])
        raise GameError(f"'{game}' is neither a preset ({known}) nor a readable game definition: {error}.") from error
    return parse_game_definition(text, name=path.stem)


def load_source(game: str) -> GameSource:
    """Load what `build_game` needs: rules as in `load_rules`, a game with bet sizes, or the name of a game of another kind.

    A game with bet sizes is a preset or a file that ends in .toml. Raises GameError as `load_rules` and `class_game` do.
    """
    game = _named(game)
    if game in BET_SIZE_GAMES:
        return BET_SIZE_GAMES[game]
    if game.endswith(".toml"):
        return read_bet_sizes(Path(game))
    if game.startswith(OPENSPIEL):
        return OpenSpielSource(game.removeprefix(OPENSPIEL))
    if names_class(game) and not Path(game).exists():
        return ClassSource(game, _class_game(game, "cpu").milli_unit)
    return load_rules(game)


def cards_of(source: GameSource) -> PokerRules:
    """The rules of a game's cards; those of a game with bet sizes omit its betting.

    Raises GameError for games without poker hands.
    """
    if isinstance(source, OpenSpielSource | ClassSource):
        raise GameError(f"Abstractions are for poker games, and '{source.name}' is not one.")
    return source.deck


_TITLES = {
    "kuhn": "Kuhn poker",
    "leduc": "Leduc poker",
    "fhp": "Flop hold'em",
    "fhp-mini": "Flop hold'em with 20 cards",
    "fhp-pot": "Flop hold'em with pot bets",
    "hulh": "Limit hold'em",
    "hunl-pot": "Pot-limit hold'em",
    "hunl-ladder": "No-limit hold'em",
    "hunl-200": "No-limit hold'em",
}


def game_in_words(source: GameSource) -> tuple[str, str]:
    """Return the name of a game, and its cards and bets in a few words."""
    if isinstance(source, OpenSpielSource):
        return source.name, "a game of OpenSpiel"
    if isinstance(source, ClassSource):
        return source.name, "a game written in Python"
    deck, stack = source.deck, f"{source.stack / source.unit_chips:g} {source.unit}"
    board = sum(deck.board_cards)
    cards = f"{deck.num_cards} cards, {deck.hole_cards} in each hand, {board or 'none'} on the board"
    if isinstance(source, BetSizeRules):
        bets = f"no limit with a few bet sizes, stacks of {stack}"
    else:
        bets = "fixed bets" if source.betting == "limit" else f"pot-sized bets, stacks of {stack}"
    return _TITLES.get(source.name, source.name), f"{cards}; {bets}"


def is_poker(source: GameSource) -> bool:
    """Whether a game is a poker game, with any betting."""
    return not isinstance(source, OpenSpielSource | ClassSource)


def count_histories(source: GameSource, most: float) -> float:
    """The number of histories of a game, chance's outcomes as hands and boards; infinite if clearly more than `most`.

    That of OpenSpiel's games is an estimate (`openspiel.estimate_histories`); a class that does not list its deals
    counts as infinite. Raises the errors of `build_game`.
    """
    if isinstance(source, OpenSpielSource):
        from deepcfr.game.openspiel import estimate_openspiel_histories

        return estimate_openspiel_histories(source.openspiel)
    if isinstance(source, ClassSource):
        from deepcfr.game.tree_game import TreeGame

        game = _class_game(source.python, "cpu")
        return game.explicit.num_nodes if isinstance(game, TreeGame) else math.inf
    deals = _deals(source.deck)
    if deals[-1] > most:
        return math.inf
    try:
        rounds = public_tree(source).round
    except GameError:
        return math.inf  # too large to list
    return float(sum(deals[round_] for round_ in rounds))


def public_tree(source: PokerRules | BetSizeRules) -> PublicTree:
    """The public tree of a poker game. Raises GameError for one that is too large to list."""
    if isinstance(source, BetSizeRules):
        from deepcfr.game.bet_size_betting import bet_size_tree

        return bet_size_tree(source)
    from deepcfr.game.betting import build_tree

    return build_tree(source)


def _deals(rules: PokerRules) -> list[int]:
    """The number of ways to deal both hands and the public cards up to each round."""
    left, ways, found = rules.num_cards, 1, []
    for cards in (rules.hole_cards, rules.hole_cards, *rules.board_cards):
        ways, left = ways * math.comb(left, cards), left - cards
        found.append(ways)
    return found[2:]


def build_game(source: GameSource, suits: Suits = "canonical", device: str = "cpu") -> Game:
    """The playable game.

    Games of OpenSpiel and classes have no suits and raise the errors of `load_openspiel_game` and `class_game`. A
    game with bet sizes that is too large to list has computed nodes.
    """
    if isinstance(source, BetSizeRules):
        from deepcfr.game.bet_size_betting import can_be_listed
        from deepcfr.game.bet_size_game import ExplicitPoker, ImplicitPoker

        return (ExplicitPoker if can_be_listed(source) else ImplicitPoker)(source, suits, device)
    if isinstance(source, PokerRules):
        from deepcfr.game.poker import PokerGame

        return PokerGame(source, suits, device)
    if isinstance(source, ClassSource):
        return _class_game(source.python, device)
    return _openspiel_game(source.openspiel, device)


@lru_cache(maxsize=1)
def _openspiel_game(name: str, device: str) -> OpenSpielGame:
    """Cached: compiling takes long, and a run needs the game for its cost estimate and for its solver."""
    from deepcfr.game.openspiel import load_openspiel_game

    return load_openspiel_game(name, device)


@lru_cache(maxsize=1)
def _class_game(name: str, device: str) -> Game:
    """Cached, as `_openspiel_game` is."""
    from deepcfr.game.tree_game import class_game

    return class_game(name, device)


def load_game(game: str, suits: Suits = "canonical", device: str = "cpu") -> PokerGame:
    """The preset or game-definition file `game` as a playable `Game`. Raises the errors of `load_rules`."""
    from deepcfr.game.poker import PokerGame

    return PokerGame(load_rules(game), suits, device)
