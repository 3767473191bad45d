"""Positions of the strategy browser: a betting history and a board, read from an address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from urllib.parse import urlencode

from deepcfr.errors import ConfigError
from deepcfr.games.betting import CALL, FOLD
from deepcfr.games.cards import card_text
from deepcfr.games.poker import PokerGame
from deepcfr.games.public_state import PublicState
from deepcfr.games.rules import PokerRules
from deepcfr.policies.query import read_board, read_line, round_name
from deepcfr.search.spot import NAMES
from deepcfr.web.site import shorten

CardTuple = tuple[int, ...]


@dataclass(frozen=True)
class Position:
    """A node of the public tree and the known public cards, which may be fewer or more than those of its round."""

    game: PokerGame
    node: int
    known: CardTuple

    @property
    def state(self) -> PublicState:
        """The public state of the betting."""
        return self.game.state(self.node)

    @property
    def round(self) -> int:
        """The betting round, from 0."""
        return self.state.round

    @property
    def over(self) -> bool:
        """Whether the hand has ended here."""
        return self.state.over

    @property
    def dealt(self) -> int:
        """The number of public cards in the position's round."""
        return sum(self.game.rules.board_cards[: self.round + 1])

    @property
    def board(self) -> CardTuple:
        """The known public cards of its round."""
        return self.known[: self.dealt]

    @property
    def missing(self) -> int:
        """The number of cards to choose next, for one round; 0 if all are known."""
        totals = accumulate(self.game.rules.board_cards[: self.round + 1])
        return next((total - len(self.known) for total in totals if total > len(self.known)), 0)

    @property
    def betting(self) -> str:
        """The actions so far as letters; `/` separates rounds."""
        return "/".join(self.state.betting)

    @property
    def board_text(self) -> str:
        """All known public cards as text without spaces."""
        return "".join(card_text(self.game.rules, card) for card in self.known)

    @property
    def round_name(self) -> str:
        """The name of the round, such as `flop`."""
        return round_name(self.game.rules, self.round)

    def after(self, action: int) -> Position:
        """The position after a legal action."""
        return replace(self, node=int(self.game.tree.child[self.node, action]))

    def path(self) -> list[tuple[Position, int]]:
        """The decisions that lead here, each with its action."""
        return [(replace(self, node=node), action) for node, action in self.game.tree.path(self.node)]

    def with_board(self, known: CardTuple) -> Position:
        """The same betting with other public cards."""
        return replace(self, known=known)

    def name(self, action: int) -> str:
        """The name of an action; a bet or raise has the round's total to which it leads."""
        words = self.state.name(action)
        if action in (FOLD, CALL) or self.state.size(action):
            return words
        total = self.chips_in_round(action)
        return f"{words} {total:g}" if words == "bet" else f"{words} to {total:g}"

    def chips_in_round(self, action: int) -> float:
        """The actor's total of this round after `action`, in units."""
        tree, start = self.game.tree, self.node
        while tree.parent[start] >= 0 and tree.round[tree.parent[start]] == self.round:
            start = int(tree.parent[start])
        small, big = self.game.rules.blinds
        # players count blinds as bets, but not antes
        before = 0 if tree.parent[start] < 0 and small != big else int(tree.chips[start].max())
        after = int(tree.chips[int(tree.child[self.node, action]), self.state.actor])
        return (after - before) / self.game.rules.unit_chips


def seat_name(rules: PokerRules, player: int) -> str:
    """The name of a seat: the dealer's or the big blind's, as of a spot, if the blinds differ; else a number."""
    small, big = rules.blinds
    return NAMES[player] if small < big else f"Player {player}"


def read_position(game: PokerGame, betting: str, board: str) -> Position:
    """Read a position from an address, such as the betting `rc/c` and the board `Qs7h2c`.

    Raises ConfigError for an illegal action, and for too many, unknown or repeated cards.
    """
    state, cards, most = game.state(), read_board(game.rules, board), sum(game.rules.board_cards)
    if len(cards) > most:
        raise ConfigError(f"The board {shorten(board)!r} has more than the {most} cards of {game.rules.name}.")
    for before, action in read_line(state, betting):
        state = before.after(action)
    return Position(game, game.node_of(state), cards)


def address(name: str, position: Position, *, cell: str = "", other: str = "", prefix: str = "/strategy") -> str:
    """The address of a position."""
    named = {"betting": position.betting, "board": position.board_text, "cell": cell, "with": other}
    query = urlencode({key: value for key, value in named.items() if value.strip("/")}, safe="/")
    return f"{prefix}/{name}" + (f"?{query}" if query else "")
