"""One hand between a person and an agent as a state machine, which the terminal and the web share.

Everything random comes from the seed: hand `h` is dealt from `key(seed, "play", h)`, and the agent's actions use uniforms
addressed by the hand and the decision in `key(seed, "play", "agent")`. An agent that is a mixture draws one of its policies
for every hand, by the hand's number in `key(seed, "play", "draw")`. So the same answers give the same session, and a hand
is known from its seed, its number and the person's actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.errors import ConfigError, GameError
from deepcfr.games.base import infosets_at
from deepcfr.games.betting import ACTION_LETTERS, NOT_TERMINAL, SHOWDOWN
from deepcfr.games.cards import all_hands
from deepcfr.games.hands import board_strengths
from deepcfr.games.isomorphism import pack_cards
from deepcfr.games.ladder_betting import (
    ACTOR,
    CHIPS,
    ENDED,
    ROUND,
    LadderGame,
    advance,
    first_positions,
    gain,
)
from deepcfr.games.poker import PokerGame, payoff_table
from deepcfr.games.rules import PokerRules
from deepcfr.policies import ladder_query, query
from deepcfr.policies.base import Policy
from deepcfr.policies.ladder import LadderPolicy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.external import sample_actions
from deepcfr.sampling.ladder import draw
from deepcfr.sampling.walk_tree import deal_cards, showdowns
from deepcfr.types import Infosets

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


class ListedHand(Hand):
    """A hand of a game whose public tree is listed; with `cards` they are not dealt from the seed."""

    def __init__(
        self, game: PokerGame, policy: Policy, seed: int, number: int, cards: npt.NDArray[np.uint8] | None = None
    ) -> None:
        dealt = game.deal_cards(1, key(seed, "play", number)) if cards is None else cards
        super().__init__(seed, number, dealt)
        self.game, self.policy, self.rules = game, policy, game.rules
        self._deals = game.deals_of(self.cards, torch.tensor([number]))
        self.node = int(game.start(self._deals)[0])

    @property
    def over(self) -> bool:
        return bool(self.game.tree.ended[self.node] != NOT_TERMINAL)

    @property
    def actor(self) -> int:
        return int(self.game.tree.actor[self.node])

    @property
    def round(self) -> int:
        return int(self.game.tree.round[self.node])

    @property
    def showdown(self) -> bool:
        return bool(self.game.tree.ended[self.node] == SHOWDOWN)

    @property
    def chips(self) -> tuple[float, float]:
        first, second = (self.game.tree.chips[self.node] / self.rules.unit_chips).tolist()
        return first, second

    @property
    def won(self) -> float:
        at = torch.tensor([self.node], device=self._deals.traversal.device)
        gained = float(self.game.payoff(at, torch.zeros_like(at), self._deals)[0])
        return gained if self.person == 0 else 0.0 - gained

    def choices(self) -> list[Choice]:
        game, node = self.game, self.node
        return [
            Choice(action, query.action_name(game, node, action), ACTION_LETTERS[action])
            for action in query.legal_actions(game, node)
        ]

    def read(self, text: str) -> int | None:
        action = query.ACTION_KEYS.get(text.strip().lower())
        return action if action in query.legal_actions(self.game, self.node) else None

    def probabilities(self) -> dict[int, float]:
        row = self._row(self.policy)[0].tolist()
        return {action: row[action] for action in query.legal_actions(self.game, self.node)}

    def again(self) -> ListedHand:
        return ListedHand(self.game, self.policy, self.seed, self.number, self.cards)

    def chances(self, holes: npt.NDArray[np.uint8], steps: int | None = None) -> Floats:
        result = np.ones(len(holes))
        for node, action in self.game.tree.path(self.node)[:steps]:
            if self.game.tree.actor[node] != self.person:
                board = self.board_at(int(self.game.tree.round[node]))
                result *= hand_strategy(self.policy, self.game, node, holes, board)[:, action]
        return result

    def wins(self, holes: npt.NDArray[np.uint8]) -> Floats:
        by_result = payoff_table(self.rules, self.game.tree)[self.node]
        if not self.showdown:
            return np.full(len(holes), by_result[0] if self.person == 0 else -by_result[0])
        result = _results(self.rules, self.hole(self.person), holes, self.board)
        gains: Floats = by_result[result] if self.person == 0 else -by_result[2 - result]
        return gains

    def _row(self, policy: Policy) -> torch.Tensor:
        at = torch.tensor([self.node], device=self._deals.traversal.device)
        return policy.probabilities(infosets_at(self.game, at, torch.zeros_like(at), self._deals))

    def _draw(self) -> int:
        policy = self.policy
        if isinstance(policy, MixturePolicy):  # one of its policies from the first action of a hand to its last
            policy = policy.draw(key(self.seed, "play", "draw"), self.number)
        at = torch.tensor([self.node], device=self._deals.traversal.device)
        chance = addressed_uniforms(key(self.seed, "play", "agent"), self._deals.traversal, at)
        return int(sample_actions(self._row(policy), chance)[0])

    def _advance(self, action: int) -> None:
        self.node = int(self.game.tree.child[self.node, action])


class LadderHand(Hand):
    """A hand of a raise-ladder game."""

    def __init__(self, policy: LadderPolicy, seed: int, number: int) -> None:
        game: LadderGame = policy.game
        deck = game.rules.deck
        super().__init__(
            seed, number, deal_cards(1, np.uint64(key(seed, "play", number)), 0, deck.num_cards, game.slots)
        )
        self.game, self.policy, self.rules = game, policy, deck
        self._views = policy.look(self.cards, np.array([number]), key(seed, "play", "draw"))
        self.position = first_positions(game.ladder, 1)[0]

    @property
    def over(self) -> bool:
        return bool(self.position[ENDED] != NOT_TERMINAL)

    @property
    def actor(self) -> int:
        return int(self.position[ACTOR])

    @property
    def round(self) -> int:
        return int(self.position[ROUND])

    @property
    def showdown(self) -> bool:
        return bool(self.position[ENDED] == SHOWDOWN)

    @property
    def chips(self) -> tuple[float, float]:
        first, second = (self.position[CHIPS : CHIPS + 2] / self.game.rules.unit_chips).tolist()
        return first, second

    @property
    def won(self) -> float:
        result = int(showdowns(self.cards, self.rules.hole_cards, self.rules.num_suits)[0])
        return float(gain(self.position, self.person, result)) / self.game.rules.unit_chips

    def choices(self) -> list[Choice]:
        if self.over:
            return []
        game, at = self.game, self.position
        return [
            Choice(action, ladder_query.action_name(game, at, action), ladder_query.action_token(game, at, action))
            for action in ladder_query.legal_of(game, at)
        ]

    def read(self, text: str) -> int | None:
        if self.over:
            return None
        try:
            return ladder_query.read_action(self.game, self.position, text.strip())
        except ConfigError:
            return None

    def again(self) -> LadderHand:
        return LadderHand(self.policy, self.seed, self.number)

    def chances(self, holes: npt.NDArray[np.uint8], steps: int | None = None) -> Floats:
        held, result = self.rules.hole_cards, np.ones(len(holes))
        deals = np.repeat(self.cards, len(holes), axis=0)
        agent = 1 - self.person
        deals[:, agent * held : (agent + 1) * held] = holes
        # the numbers of all deals are this hand's, so that an ensemble draws what it has drawn in it
        views = self.policy.look(deals, np.full(len(holes), self.number), key(self.seed, "play", "draw"))
        position = first_positions(self.game.ladder, 1)[0]
        for step in self.steps[:steps]:
            if step.player == agent:
                positions = np.repeat(position[None], len(holes), axis=0)
                result *= self.policy.probabilities(positions, views)[:, step.action]
            advance(self.game.ladder, position, step.action)
        return result

    def wins(self, holes: npt.NDArray[np.uint8]) -> Floats:
        if not self.showdown:
            return np.full(len(holes), self.won)
        by_result = np.array([gain(self.position, self.person, result) for result in range(3)])
        result = _results(self.rules, self.hole(self.person), holes, self.board)
        if self.person == 1:
            result = 2 - result
        gains: Floats = by_result[result] / self.game.rules.unit_chips
        return gains

    def probabilities(self) -> dict[int, float]:
        row = self.policy.probabilities(self.position[None], self._views)[0]
        return {action: float(row[action]) for action in ladder_query.legal_of(self.game, self.position)}

    def _draw(self) -> int:
        strategy = self.policy.probabilities(self.position[None], self._views)[0]
        address = torch.tensor([self.number]), torch.tensor([len(self.steps)])
        chance = addressed_uniforms(key(self.seed, "play", "agent"), *address)
        return int(draw(strategy, len(strategy), float(chance[0])))

    def _advance(self, action: int) -> None:
        advance(self.game.ladder, self.position, action)


def deal_hand(policy: Policy | LadderPolicy, seed: int, number: int) -> Hand:
    """Hand number `number` of a session against `policy`. Raises GameError if the policy's game is not poker."""
    if isinstance(policy, LadderPolicy):
        return LadderHand(policy, seed, number)
    if not isinstance(policy.game, PokerGame):
        raise GameError(f"Only poker games are played, and '{policy.game.name}' is not one.")
    return ListedHand(policy.game, policy, seed, number)


def hand_strategy(policy: Policy, game: PokerGame, node: int, holes: npt.NDArray[np.uint8], board: Cards) -> Floats:
    """What `policy` does at `node` with each of `holes` (uint8 [H, hole cards]) on `board`, float64 [H, A]."""
    rows = game.views_of(holes, board)
    _, example, view = np.unique(pack_cards(rows), return_index=True, return_inverse=True)
    infosets = Infosets(game.infoset[[node]].expand(len(example)), torch.from_numpy(rows[example]).to(game.device))
    strategy: Floats = policy.probabilities(infosets).double().cpu().numpy()[view]
    return strategy


def free_holes(rules: PokerRules, dead: Cards) -> npt.NDArray[np.uint8]:
    """Every private hand without the cards of `dead`, uint8 [H, hole cards]."""
    holes = all_hands(rules.num_cards, rules.hole_cards)
    return holes[~np.isin(holes, dead).any(1)]


def _results(rules: PokerRules, hole: Cards, holes: npt.NDArray[np.uint8], board: Cards) -> npt.NDArray[np.int64]:
    """0, 1 or 2 where `hole` loses to, ties with or beats each of `holes` on the whole board, [H]."""
    cards = np.array(board, np.uint8)
    mine = board_strengths(np.array([hole], np.uint8), cards, rules.num_suits)[0]
    theirs = board_strengths(holes, cards, rules.num_suits)
    result: npt.NDArray[np.int64] = 1 + (mine > theirs).astype(np.int64) - (mine < theirs)
    return result
