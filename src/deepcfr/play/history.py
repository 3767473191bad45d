"""One play of a game whose histories are listed, between a person and an agent; for the terminal and the web.

A player is told the name of its infoset and nothing else. As in `play.hand`, seed, number and the person's actions
determine the play: it is dealt from `key(seed, "play")`, and the agent's actions use uniforms from
`key(seed, "play", "agent")`, addressed by the play's number and the history.
"""

from __future__ import annotations

import torch

from deepcfr.errors import GameError
from deepcfr.games.base import infosets_at
from deepcfr.games.tree_game import TreeGame
from deepcfr.play.hand import Choice, Decision, Hand, Step
from deepcfr.policies.base import Policy
from deepcfr.policies.query import round_name
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.external import sample_actions
from deepcfr.types import TERMINAL

_ROW = torch.zeros(1, dtype=torch.int64)  # of the only deal


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
