"""One hand between a person and an agent as a state machine, and its review at the end; for the terminal and the web.

All randomness comes from the seed. Hand `h` is dealt from `key(seed, "play", h)`. The agent's actions use uniforms from
`key(seed, "play", "agent")`, addressed by hand and decision. An agent that is a mixture draws one of its policies for
each hand from `key(seed, "play", "draw")`. So the same actions of the person give the same session: seed, number and
the person's actions determine a hand.

In other games whose histories are listed (`HistoryHand`) a player is told the name of its infoset and nothing else.
Games with bet sizes are played as no-limit poker: the person may bet any size, and bets are translated for the agent
(`policy.translation`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.core.errors import GameError
from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import TERMINAL, CardTuple, Doubles
from deepcfr.game.base import infosets_at
from deepcfr.game.betting import CALL
from deepcfr.game.cards import cards_text, deal_cards, free_holes
from deepcfr.game.hands import board_strengths
from deepcfr.game.poker import Poker
from deepcfr.game.public_state import NoLimitState, PublicState
from deepcfr.game.tree_game import TreeGame
from deepcfr.policy.base import Policy
from deepcfr.policy.query import hand_strategy, round_name
from deepcfr.policy.translation import TablePlayer, Translation, real_rules
from deepcfr.sample.external import sample_actions
from deepcfr.sample.traversal_tree import showdowns

_ROW = torch.zeros(1, dtype=torch.int64)  # of the only deal


@dataclass(frozen=True)
class Choice:
    """A legal action at the current decision."""

    action: int
    name: str  # such as `call` or `raise to 4`
    token: str  # what the person types for it


@dataclass(frozen=True)
class Step:
    """An action that was taken."""

    player: int
    round: int
    action: int
    name: str
    token: str


@dataclass(frozen=True)
class Decision:
    """A decision of the person in a finished hand."""

    step: int  # position in `Hand.steps`
    action: int  # the person's action
    agent: dict[int, float]  # the agent's strategy there with the person's cards, by legal action
    names: dict[int, str]  # names of the legal actions


class Hand:
    """A hand from its deal to its end; only `act` changes its state.

    The person is player 0 in hands with an even number, so the seats alternate, unless `person` says who it is. Amounts are
    in the game's unit. `cards` replaces the deal from the seed. Raises GameError if the policy's game is not poker.
    """

    def __init__(
        self,
        policy: Policy,
        seed: int,
        number: int,
        cards: npt.NDArray[np.uint8] | None = None,
        person: int | None = None,
    ) -> None:
        game = policy.game
        if not isinstance(game, Poker):
            raise GameError(f"Only poker games can be played, but '{game.name}' is not one.")
        self.policy, self.game, self.seed, self.number = policy, game, seed, number
        self.person = number % 2 if person is None else person
        self.translation: Translation | None = None  # of bets, in games whose agents know a few sizes
        if game.rules.betting == "no-limit":
            self.translation = Translation(policy, real_rules(policy), key(seed, "play"))
        self.agent = TablePlayer(policy, key(seed, "play", "draw"), key(seed, "play", "agent"), self.translation)
        self.state = self.agent.start()
        self.rules = rules = self.state.rules  # names cards and amounts
        slots = 2 * rules.hole_cards + sum(rules.board_cards)
        dealt = deal_cards(1, np.uint64(key(seed, "play", number)), 0, rules.num_cards, slots)
        # uint8 [1, slots]: player 0's hand, player 1's, the board in order
        self.cards = dealt if cards is None else cards
        self.steps: list[Step] = []

    def hole(self, player: int) -> CardTuple:
        """The private cards of a player."""
        held = self.rules.hole_cards
        return tuple(self.cards[0, player * held : (player + 1) * held].tolist())

    @property
    def board(self) -> CardTuple:
        """The public cards that have been dealt so far."""
        return self.board_at(self.state.round)

    def board_at(self, round_: int) -> CardTuple:
        """The public cards of a round that the hand has reached."""
        dealt = sum(self.rules.board_cards[: round_ + 1])
        return tuple(self.cards[0, 2 * self.rules.hole_cards :][:dealt].tolist())

    @property
    def over(self) -> bool:
        """Whether the hand has ended."""
        return self.state.over

    @property
    def chips(self) -> tuple[float, float]:
        """The contribution of each player to the pot."""
        first, second = self.state.chips
        return first / self.rules.unit_chips, second / self.rules.unit_chips

    @property
    def won(self) -> float:
        """The person's gain; the hand must be over."""
        result = int(showdowns(self.cards, self.rules.hole_cards, self.rules.num_suits)[0])
        return self.state.gain(self.person, result)

    @property
    def persons_turn(self) -> bool:
        """Whether it is the person's turn."""
        return not self.over and self.state.actor == self.person

    def choices(self) -> list[Choice]:
        """The legal actions, ascending, of raises of any size the usual ones; empty once the hand is over."""
        state = self.state
        return [Choice(action, state.name(action), state.token(action)) for action in state.legal()]

    @property
    def sizes(self) -> tuple[float, float] | None:
        """The least and the most that a raise may lead to in this round, in units; None where sizes are not free."""
        state = self.state
        if not isinstance(state, NoLimitState) or state.sizes is None:
            return None
        least, most = ((total - state.before) / self.rules.unit_chips for total in state.sizes)
        return least, most

    def pot_share(self, action: int) -> float | None:
        """The size of a raise as a share of the pot after a call; None for other actions and where sizes are not free."""
        called = max(self.state.chips)
        return None if self.sizes is None or action <= CALL else (action - called) / (2 * called)

    def read(self, text: str) -> int | None:
        """The legal action that a person means by `text`; None if there is none."""
        return self.state.read(text.strip())

    @property
    def translated(self) -> bool:
        """Whether the person made a bet of a size that the agent does not know."""
        if self.translation is None:
            return False
        actions = [step.action for step in self.steps]
        return self.translation.follow(actions, 1 - self.person, self.number).translated

    def act(self, action: int) -> Step:
        """Apply an action of the player to act. Raises GameError if the hand is over or the action is not legal."""
        state = self.state
        if state.over or not state.allows(action):
            raise GameError(f"Action {action} is not legal here.")
        step = Step(state.actor, state.round, action, state.name(action), state.token(action))
        self.state = state.after(action)
        self.steps.append(step)
        return step

    def act_for_agent(self) -> Step:
        """Apply an action of the agent, drawn from its policy. Raises GameError if it is not the agent's turn."""
        if self.over or self.persons_turn:
            raise GameError("It is not the agent's turn.")
        return self.act(self.agent.choose(self.state, self.number, self.hole(self.state.actor), self.board))

    def probabilities(self) -> dict[int, float]:
        """The agent's strategy by legal action, with the cards and in the seat of the player to act."""
        hole = np.array([self.hole(self.state.actor)], np.uint8)
        return {action: float(shares[0]) for action, shares in self.strategies(self.state, hole).items()}

    def strategies(self, state: PublicState, holes: npt.NDArray[np.uint8]) -> dict[int, Doubles]:
        """The probability of each action of the agent at a state with each of `holes` [H], each [H]."""
        return self.agent.strategies(self.policy, state, self.number, holes, self.board_at(state.round))

    def chances(self, holes: npt.NDArray[np.uint8], steps: int | None = None) -> Doubles:
        """The probability of the agent's actions in this hand if it held each of `holes` [H, hole cards], [H].

        `holes` must share no card with the person's hand or the board. If `steps` is given, only the first `steps`
        actions of the hand count. A bet in the agent's seat of a size that the agent never bets counts as the one that it
        is translated to, and as any hand's where there is none.
        """
        result, replay = np.ones(len(holes)), self.again()
        for step in self.steps[:steps]:
            if step.player != self.person:
                shares = self.strategies(replay.state, holes)
                result *= shares[step.action] if step.action in shares else self._translated(replay, step.action, holes)
            replay.act(step.action)
        return result

    def _translated(self, before: Hand, action: int, holes: npt.NDArray[np.uint8]) -> Doubles | float:
        """The probability of the agent's action that stands for another one in its seat after `before`, [H]."""
        if self.translation is None:
            return 0.0
        actions = [*(step.action for step in before.steps), action]
        last = self.translation.follow(actions, 1 - self.person, self.number).last
        if last is None:
            return 1.0
        own, stands = last
        return hand_strategy(self.policy, own, holes, before.board)[:, stands]

    def wins(self, holes: npt.NDArray[np.uint8]) -> Doubles:
        """The person's gain in the finished hand against each of `holes`, [H]."""
        return self.gains(self.state, self.showdowns(holes)) if self.state.showdown else np.full(len(holes), self.won)

    def showdowns(self, holes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """The person's result on the whole dealt board against each of `holes`: 0 loses, 1 draws, 2 wins, [H]."""
        board, suits = np.array(self.board, np.uint8), self.rules.num_suits
        mine = board_strengths(np.array([self.hole(self.person)], np.uint8), board, suits)[0]
        theirs = board_strengths(holes, board, suits)
        return 1 + (mine > theirs).astype(np.int64) - (mine < theirs)

    @staticmethod
    def gains(state: PublicState, results: npt.NDArray[np.int64]) -> Doubles:
        """The person's gain at the end `state` of a showdown, for each of `results` [H] as in `showdowns`."""
        by_result = np.array([state.gain(0, result) for result in range(3)])  # the same in both seats
        return by_result[results]

    def again(self, steps: int = 0) -> Hand:
        """A copy of this hand after its first `steps` actions."""
        copy = Hand(self.policy, self.seed, self.number, self.cards, self.person)
        for step in self.steps[:steps]:
            copy.act(step.action)
        return copy


def adjusted_result(hand: Hand) -> float:
    """The person's mean result over all cards that the agent may have held in a finished hand, in units.

    This is E[result | the person's cards, the public cards, all actions]. By Bayes' rule each hand of the agent has the
    weight P(hand | ...) ~ prod P(its action | hand): all hands are equally likely given the known cards, and the
    person's actions cannot depend on the agent's cards. A conditional expectation has the mean of the result and a
    smaller variance (Rao-Blackwell), so the estimate is unbiased whatever the person does. It assumes that the agent
    plays its policy. A mixture that draws one policy for each hand plays its average (Kuhn's theorem). After a fold the
    result does not depend on the agent's cards. Where its policy never acts so, as after more training, it is the result.
    """
    if not hand.state.showdown:
        return hand.won
    holes = free_holes(hand.rules, (*hand.hole(hand.person), *hand.board))
    chances = hand.chances(holes)
    return float(chances @ hand.wins(holes) / chances.sum()) if chances.any() else hand.won


def agents_range(hand: Hand, most: int | None = None) -> list[tuple[str, float]]:
    """The hands that the agent may hold now, likeliest first, with their probabilities.

    The probabilities of all hands sum to 1. `most` limits the number of hands returned. There are none where its policy
    never acts so.
    """
    holes = free_holes(hand.rules, (*hand.hole(hand.person), *hand.board))
    chances = hand.chances(holes)
    if not chances.any():
        return []
    order = np.argsort(-chances, kind="stable")[:most]
    shares = chances / chances.sum()
    return [(cards_text(hand.rules, holes[place][::-1]), float(shares[place])) for place in order]


def decisions(hand: Hand) -> list[Decision]:
    """Every decision of the person in `hand`, in order."""
    replay, found = hand.again(), []
    for place, step in enumerate(hand.steps):
        if step.player == hand.person:
            agent, state = replay.probabilities(), replay.state
            names = {action: state.name(action) for action in sorted({step.action, *state.legal(), *agent})}
            found.append(Decision(place, step.action, agent, names))
        replay.act(step.action)
    return found


def played(policy: Policy, person: int, number: int, hole: CardTuple, board: CardTuple, actions: Iterable[int]) -> Hand:
    """A hand that was played elsewhere, as `person` saw it, who held `hole`; `board` has the cards that were dealt.

    The other player's cards, and those that were not dealt, are any others. Raises GameError for an action that is not
    legal.
    """
    rules = Hand(policy, 0, number).rules
    unseen = [card for card in range(rules.num_cards) if card not in (*hole, *board)]
    theirs, rest = unseen[: rules.hole_cards], unseen[rules.hole_cards :]
    hands = [*theirs, *hole] if person else [*hole, *theirs]
    cards = [*hands, *board, *rest[: sum(rules.board_cards) - len(board)]]
    hand = Hand(policy, 0, number, np.array([cards], np.uint8), person)
    for action in actions:
        hand.act(action)
    return hand


class HistoryHand:
    """A play from its deal to its end, with what `Hand` has for any game; only `act` changes it.

    The person is player 0 in plays with an even number.
    """

    sizes = None  # no action has a size of the person's choice

    def __init__(self, policy: Policy, game: TreeGame, seed: int, number: int) -> None:
        self.policy, self.rules, self.seed, self.number = policy, game, seed, number
        self.person = number % 2
        self._deals = game.deal(1, key(seed, "play"), number)
        self._node = game.start(self._deals)
        self._before: list[torch.Tensor] = []  # the history before each step
        self.steps: list[Step] = []

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return int(self.rules.actor[self._node]) == TERMINAL

    @property
    def persons_turn(self) -> bool:
        """Whether it is the person's turn."""
        return int(self.rules.actor[self._node]) == self.person

    @property
    def won(self) -> float:
        """The person's gain; the play must be over."""
        paid = float(self.rules.payoff(self._node, _ROW, self._deals))
        return -paid if self.person else paid

    @property
    def known(self) -> str:
        """The name of the infoset where the person acts, or acted last; empty before its first turn."""
        places = [*self._before, self._node]
        own = [place for place in places if int(self.rules.actor[place]) == self.person]
        return self.rules.explicit.infoset_names[int(self.rules.infoset[own[-1]])] if own else ""

    def choices(self) -> list[Choice]:
        """The legal actions, ascending; empty at the end."""
        names = {} if self.over else self._names(self._node)
        return [Choice(action, name, name) for action, name in names.items()]

    def read(self, text: str) -> int | None:
        """The legal action of a name; None if there is none."""
        return next((choice.action for choice in self.choices() if choice.token == text.strip()), None)

    def act(self, action: int) -> Step:
        """Apply an action of the player to act. Raises GameError if it is not legal."""
        names = {} if self.over else self._names(self._node)
        if action not in names:
            raise GameError(f"Action {action} is not legal here.")
        step = Step(int(self.rules.actor[self._node]), 0, action, names[action], names[action])
        self._before.append(self._node)
        self._node = self.rules.step(self._node, torch.tensor([action]), _ROW, self._deals)
        self.steps.append(step)
        return step

    def act_for_agent(self) -> Step:
        """Apply an action of the agent, drawn from its policy."""
        uniforms = addressed_uniforms(key(self.seed, "play", "agent"), self._deals.traversal, self._node)
        return self.act(int(sample_actions(self._shares(self._node), uniforms)))

    def decisions(self) -> list[Decision]:
        """Every decision of the person, in order."""
        found = []
        for place, (step, node) in enumerate(zip(self.steps, self._before, strict=True)):
            if step.player == self.person:
                names, shares = self._names(node), self._shares(node)[0]
                found.append(Decision(place, step.action, {action: float(shares[action]) for action in names}, names))
        return found

    def _names(self, node: torch.Tensor) -> dict[int, str]:
        legal: list[int] = self.rules.encoding.legal[int(self.rules.infoset[node])].nonzero()[:, 0].tolist()
        return {action: self.rules.action_name(action) for action in legal}

    def _shares(self, node: torch.Tensor) -> torch.Tensor:
        return self.policy.probabilities(infosets_at(self.rules, node, _ROW, self._deals))


def begin(policy: Policy, seed: int, number: int) -> Hand | HistoryHand:
    """Deal a hand of poker, or a play of a game whose histories are listed. Raises GameError for other games."""
    if isinstance(policy, Policy) and isinstance(policy.game, TreeGame):
        return HistoryHand(policy, policy.game, seed, number)
    return Hand(policy, seed, number)


def round_of(hand: Hand | HistoryHand, round_: int) -> str:
    """The name of a round; empty in games without cards."""
    return round_name(hand.rules, round_) if isinstance(hand, Hand) else ""
