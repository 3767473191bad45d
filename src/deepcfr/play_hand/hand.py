"""A hand of any game: what it tells those who play it, show it or look at it again, and what a kind of game must add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcfr.errors import GameError
from deepcfr.games.cards import all_hands
from deepcfr.games.hands import board_strengths
from deepcfr.games.rules import PokerRules

Cards = tuple[int, ...]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """An action that is legal now."""

    action: int
    name: str  # such as `call` or `raise to 4`
    token: str  # what a person writes for it


@dataclass(frozen=True)
class Step:
    """An action that was taken."""

    player: int
    round: int
    action: int
    name: str
    token: str


class Hand(ABC):
    """A hand from its deal to its end; whose turn it is changes with `act` alone.

    The person is player 0 in hands of even number, so that the seats alternate. Amounts are in the game's unit.
    """

    rules: PokerRules  # what cards and amounts are called

    def __init__(self, seed: int, number: int, cards: npt.NDArray[np.uint8]) -> None:
        self.seed, self.number = seed, number
        self.person = number % 2
        self.cards = cards  # uint8 [1, slots]: player 0's hand, player 1's hand, the board in order
        self.steps: list[Step] = []

    def hole(self, player: int) -> Cards:
        """The private cards of a player."""
        held = self.rules.hole_cards
        return tuple(self.cards[0, player * held : (player + 1) * held].tolist())

    @property
    def board(self) -> Cards:
        """The public cards that have been dealt so far."""
        return self.board_at(self.round)

    def board_at(self, round_: int) -> Cards:
        """The public cards of a round that the hand has come to."""
        dealt = sum(self.rules.board_cards[: round_ + 1])
        return tuple(self.cards[0, 2 * self.rules.hole_cards :][:dealt].tolist())

    @property
    def persons_turn(self) -> bool:
        """Whether the person is to act."""
        return not self.over and self.actor == self.person

    def act(self, action: int) -> Step:
        """Take an action for whoever is to act. Raises GameError if the hand is over or the action is not legal."""
        choice = next((choice for choice in self.choices() if choice.action == action), None)
        if choice is None:
            raise GameError(f"Action {action} is not legal here.")
        step = Step(self.actor, self.round, action, choice.name, choice.token)
        self._advance(action)
        self.steps.append(step)
        return step

    def act_for_agent(self) -> Step:
        """Take the agent's action, drawn from its policy. Raises GameError if it is not the agent's turn."""
        if self.over or self.actor == self.person:
            raise GameError("It is not the agent's turn.")
        return self.act(self._draw())

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether nobody acts any more."""

    @property
    @abstractmethod
    def actor(self) -> int:
        """The player to act, if the hand is not over."""

    @property
    @abstractmethod
    def round(self) -> int:
        """The betting round, from 0; the last one at every showdown."""

    @property
    @abstractmethod
    def showdown(self) -> bool:
        """Whether the hand ended with both hands shown."""

    @property
    @abstractmethod
    def chips(self) -> tuple[float, float]:
        """What each player has put in."""

    @property
    @abstractmethod
    def won(self) -> float:
        """What the person has won in the hand, which must be over."""

    @abstractmethod
    def choices(self) -> list[Choice]:
        """The legal actions, ascending; none once the hand is over."""

    @abstractmethod
    def read(self, text: str) -> int | None:
        """The legal action that a person means by `text`; None if there is none."""

    @abstractmethod
    def probabilities(self) -> dict[int, float]:
        """What the agent would do for the player to act, by legal action, knowing what that player knows."""

    @abstractmethod
    def chances(self, holes: npt.NDArray[np.uint8], steps: int | None = None) -> Floats:
        """The probability with which the agent would have acted as it did with each of `holes` [H, hole cards], [H].

        `holes` must share no card with the person's or with the public ones. Only the first `steps` actions of the hand
        count, if that is given.
        """

    @abstractmethod
    def wins(self, holes: npt.NDArray[np.uint8]) -> Floats:
        """What the person would have won in the finished hand against each of `holes`, [H]."""

    @abstractmethod
    def again(self) -> Hand:
        """The same hand before its first action."""

    @abstractmethod
    def _draw(self) -> int: ...

    @abstractmethod
    def _advance(self, action: int) -> None: ...

    @property
    def pot(self) -> float:
        """What both players have put in."""
        return sum(self.chips)

    @property
    def to_call(self) -> float:
        """What the player to act must add to call."""
        return max(self.chips) - self.chips[self.actor]


def free_holes(rules: PokerRules, dead: Cards) -> npt.NDArray[np.uint8]:
    """Every private hand without the cards of `dead`, uint8 [H, hole cards]."""
    holes = all_hands(rules.num_cards, rules.hole_cards)
    return holes[~np.isin(holes, dead).any(1)]


def showdown_results(
    rules: PokerRules, hole: Cards, holes: npt.NDArray[np.uint8], board: Cards
) -> npt.NDArray[np.int64]:
    """0, 1 or 2 where `hole` loses to, ties with or beats each of `holes` on the whole board, [H]."""
    cards = np.array(board, np.uint8)
    mine = board_strengths(np.array([hole], np.uint8), cards, rules.num_suits)[0]
    theirs = board_strengths(holes, cards, rules.num_suits)
    result: npt.NDArray[np.int64] = 1 + (mine > theirs).astype(np.int64) - (mine < theirs)
    return result
