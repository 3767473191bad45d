"""The public state of a no-limit hand, where a raise may have any size from the last raise to the whole stack."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deepcfr.errors import GameError
from deepcfr.games.betting import (
    ACTION_LETTERS,
    CALL,
    FOLD,
    RAISE,
    BettingState,
    first_state,
    legal_actions,
    next_state,
    raise_range,
)
from deepcfr.games.public_state import PublicState
from deepcfr.games.rules import PokerRules


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
