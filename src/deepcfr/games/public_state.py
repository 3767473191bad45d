"""One public state of a poker game: one interface with a listed and a stepped implementation.

It serves text, protocols and play. Solvers and matches work on arrays of nodes or positions instead.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from deepcfr.games.betting import (
    ACTION_LETTERS,
    CALL,
    FOLD,
    FOLDED,
    NOT_TERMINAL,
    NUM_ACTIONS,
    RAISE,
    SHOWDOWN,
    PublicTree,
)
from deepcfr.games.rules import PokerRules

ACTION_KEYS = {"f": FOLD, "c": CALL, "k": CALL, "r": RAISE, "b": RAISE}


class PublicState(ABC):
    """The betting at one point of a hand. States are immutable; actions are the game's numbers."""

    gap = " "  # separator of actions in text
    #: help on how a person writes actions
    words = "f (fold), c or k (call or check), r or b with a size (raise or bet), a (all-in)"

    @property
    @abstractmethod
    def rules(self) -> PokerRules:
        """Rules with the names of cards, rounds and units."""

    @property
    @abstractmethod
    def round(self) -> int:
        """The betting round, from 0; the last one at every showdown."""

    @property
    @abstractmethod
    def actor(self) -> int:
        """The player to act; no meaning after the hand has ended."""

    @property
    @abstractmethod
    def ended(self) -> int:
        """NOT_TERMINAL, FOLDED or SHOWDOWN."""

    @property
    @abstractmethod
    def winner(self) -> int:
        """The player who did not fold; no meaning without a fold."""

    @property
    @abstractmethod
    def chips(self) -> tuple[int, int]:
        """The chips that each player has put in."""

    @property
    @abstractmethod
    def raised(self) -> bool:
        """Whether a player has bet or raised in this round."""

    @property
    @abstractmethod
    def betting(self) -> tuple[str, ...]:
        """The actions so far as one text for every round up to this one."""

    @property
    @abstractmethod
    def place(self) -> int:
        """A number that addresses the random choice of an action here."""

    @abstractmethod
    def legal(self) -> list[int]:
        """The legal actions, ascending; none after the hand has ended."""

    def allows(self, action: int) -> bool:
        """Whether an action is legal; there may be more of them than `legal` lists."""
        return action in self.legal()

    @abstractmethod
    def after(self, action: int) -> Self:
        """The state after a legal action."""

    @abstractmethod
    def token(self, action: int) -> str:
        """A legal action as text."""

    def split(self, text: str) -> list[str]:
        """Split a text of several actions into the texts of single actions."""
        return re.findall(r"[a-zA-Z][\d.]*|\S", text)

    @abstractmethod
    def understands(self, token: str) -> bool:
        """Whether `token` names an action, legal here or not."""

    @abstractmethod
    def read(self, token: str) -> int | None:
        """The legal action that `token` names; None if there is none."""

    def size(self, action: int) -> str:  # noqa: ARG002
        """The size after `bet` or `raise` in the name of a legal action."""
        return ""

    @property
    def over(self) -> bool:
        """Whether the hand has ended."""
        return self.ended != NOT_TERMINAL

    @property
    def pot(self) -> float:
        """The pot in units."""
        return sum(self.chips) / self.rules.unit_chips

    @property
    def to_call(self) -> float:
        """The amount that the player to act must add to call, in units."""
        return (max(self.chips) - self.chips[self.actor]) / self.rules.unit_chips

    def name(self, action: int) -> str:
        """The name of a legal action: `fold`, `check`, `call`, `bet` or `raise`, with the size where sizes differ.

        An aggressive action is a raise if a bet or raise of this round, or unequal blinds, came before it.
        """
        if action == FOLD:
            return "fold"
        if action == CALL:
            return "call" if self.to_call > 0 else "check"
        blinds = self.rules.blinds
        live = self.raised or (self.round == 0 and blinds[0] != blinds[1])
        return f"{'raise' if live else 'bet'}{self.size(action)}"

    def gain(self, player: int, result: int) -> float:
        """The payoff of a player at the end, in units; `result` is 0, 1, 2 for a lost, tied, won showdown of player 0."""
        to_first = result - 1
        if self.ended == FOLDED:
            to_first = 1 if self.winner == 0 else -1
        won = to_first if player == 0 else -to_first
        return won * min(self.chips) / self.rules.unit_chips

    @property
    def showdown(self) -> bool:
        """Whether the hand ended with a showdown."""
        return self.ended == SHOWDOWN


@dataclass(frozen=True)
class ListedState(PublicState):
    """A node of a public tree."""

    game_rules: PokerRules
    tree: PublicTree
    node: int = 0

    gap = ""
    words = "f (fold), c or k (call or check), r or b (raise or bet)"

    @property
    def rules(self) -> PokerRules:
        return self.game_rules

    @property
    def round(self) -> int:
        return int(self.tree.round[self.node])

    @property
    def actor(self) -> int:
        return int(self.tree.actor[self.node])

    @property
    def ended(self) -> int:
        return int(self.tree.ended[self.node])

    @property
    def winner(self) -> int:
        return int(self.tree.winner[self.node])

    @property
    def chips(self) -> tuple[int, int]:
        first, second = self.tree.chips[self.node].tolist()
        return first, second

    @property
    def raised(self) -> bool:
        return ACTION_LETTERS[RAISE] in self.betting[-1]

    @property
    def betting(self) -> tuple[str, ...]:
        rounds = [""] * (self.round + 1)
        for earlier, action in self.tree.path(self.node):
            rounds[int(self.tree.round[earlier])] += ACTION_LETTERS[action]
        return tuple(rounds)

    @property
    def place(self) -> int:
        return self.node

    def legal(self) -> list[int]:
        return [action for action in range(NUM_ACTIONS) if self.tree.legal[self.node, action]]

    def after(self, action: int) -> ListedState:
        return ListedState(self.game_rules, self.tree, int(self.tree.child[self.node, action]))

    def token(self, action: int) -> str:
        return ACTION_LETTERS[action]

    def split(self, text: str) -> list[str]:
        return list("".join(text.split()))

    def understands(self, token: str) -> bool:
        return token.lower() in ACTION_KEYS

    def read(self, token: str) -> int | None:
        action = ACTION_KEYS.get(token.lower())
        return action if action in self.legal() else None
