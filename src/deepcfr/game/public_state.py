"""One public state of a poker game: one interface, for nodes of a listed tree, and for no-limit hands of any bet size.

It serves text, protocols and play. Solvers and matches work on arrays of nodes instead.
`game.bet_size_game` has the state of games with a few bet sizes.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from deepcfr.core.errors import GameError
from deepcfr.game.betting import (
    ACTION_LETTERS,
    CALL,
    FOLD,
    FOLDED,
    NOT_TERMINAL,
    NUM_ACTIONS,
    RAISE,
    SHOWDOWN,
    BettingState,
    PublicTree,
    first_state,
    legal_actions,
    next_state,
    raise_range,
)
from deepcfr.game.rules import PokerRules

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


def exact(units: float) -> str:
    """An amount as text that reads back as the same number of chips, without an exponent."""
    return f"{units:.9f}".rstrip("0").rstrip(".")


USUAL = (0.5, 0.75, 1.0)  # shares of the pot that are offered, besides all-in


@dataclass(frozen=True)
class NoLimitState(PublicState):
    """The betting of one hand. A raise is the number of chips that its player has put in after it.

    `legal` offers the usual sizes; `allows` and `after` take every legal one. In text a raise has its total in the round,
    in units: `r4.5` is a raise to 4.5 big blinds, `a` is all-in.
    """

    no_limit_rules: PokerRules
    now: BettingState
    actions: tuple[int, ...] = ()
    betting: tuple[str, ...] = ("",)

    @classmethod
    def start(cls, rules: PokerRules) -> NoLimitState:
        """The state before the first action of a no-limit game."""
        return cls(rules, first_state(rules))

    @property
    def rules(self) -> PokerRules:
        return self.no_limit_rules

    @property
    def round(self) -> int:
        return self.now.round

    @property
    def actor(self) -> int:
        return self.now.actor

    @property
    def ended(self) -> int:
        return self.now.ended

    @property
    def winner(self) -> int:
        return self.now.actor

    @property
    def chips(self) -> tuple[int, int]:
        return self.now.chips

    @property
    def raised(self) -> bool:
        return self.now.raises > 0

    @property
    def place(self) -> int:
        return len(self.actions)

    @property
    def sizes(self) -> tuple[int, int] | None:
        """The least and the most chips that the actor has put in after a raise; None if there is no raise."""
        can = not self.over and RAISE in legal_actions(self.rules, self.now)
        return raise_range(self.rules, self.now) if can else None

    @property
    def before(self) -> int:
        """The chips that each player had put in before the round; blinds count as bets of the first round."""
        return self.now.before

    def legal(self) -> list[int]:
        if self.over:
            return []
        simple = [action for action in legal_actions(self.rules, self.now) if action < RAISE]
        if self.sizes is None:
            return simple
        called, (least, most) = max(self.chips), self.sizes
        totals = {called + round(2 * called * share) for share in USUAL}
        return simple + sorted({total for total in totals if least <= total < most} | {most})

    def allows(self, action: int) -> bool:
        if action < RAISE:
            return super().allows(action)
        return self.sizes is not None and self.sizes[0] <= action <= self.sizes[1]

    def after(self, action: int) -> NoLimitState:
        if not self.allows(action):
            raise GameError(f"Action {action} is not legal here.")
        betting = (*self.betting[:-1], f"{self.betting[-1]} {self.token(action)}".strip())
        now = next_state(self.rules, self.now, action)
        if not now.ended and now.round > self.round:
            betting = (*betting, "")
        return NoLimitState(self.rules, now, (*self.actions, action), betting)

    def token(self, action: int) -> str:
        if action < RAISE:
            return ACTION_LETTERS[action]
        return "a" if action == self.rules.stack else f"r{exact((action - self.before) / self.rules.unit_chips)}"

    def understands(self, token: str) -> bool:
        return re.fullmatch(r"[fcka]|[rb][0-9]{1,9}(\.[0-9]{1,9})?", token.lower()) is not None

    def read(self, token: str) -> int | None:
        simple = token.lower()
        if not self.understands(simple):
            return None
        if simple in ("f", "c", "k"):
            action = FOLD if simple == "f" else CALL
        elif simple == "a":
            action = self.rules.stack
        else:
            action = round(float(simple[1:]) * self.rules.unit_chips) + self.before
        return action if self.allows(action) else None

    def size(self, action: int) -> str:
        total = (action - self.before) / self.rules.unit_chips
        return f" to {exact(total)}{' all-in' if action == self.rules.stack else ''}"
