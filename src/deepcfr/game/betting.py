"""The rules of betting as a state machine, unrolled into the arrays of a `PublicTree`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from deepcfr.core.errors import GameError
from deepcfr.core.types import TERMINAL
from deepcfr.game.rules import PokerRules

FOLD, CALL, RAISE = 0, 1, 2
NUM_ACTIONS = 3
MOST_NODES = 200_000  # most nodes of a listed tree; HULH has some 17,000
ACTION_LETTERS = "fcr"
NOT_TERMINAL, FOLDED, SHOWDOWN = 0, 1, 2
NOT_YET = -1.0  # entry of `PublicTree.bets` where no action has happened


@dataclass(frozen=True)
class BettingState:
    """A public position between two actions; chips are what each player has put in so far."""

    round: int
    actor: int
    chips: tuple[int, int]
    raises: int = 0  # bets and raises in this round
    last_raise: int = 0  # chips added by the round's last raise; before the first raise, the larger blind
    actions: tuple[tuple[float, ...], ...] = ((),)  # chips added by every action, one tuple a round
    ended: int = NOT_TERMINAL

    @property
    def to_call(self) -> int:
        return max(self.chips) - self.chips[self.actor]

    @property
    def before(self) -> int:
        """The chips that each player had put in before the round; blinds count as bets of the first round."""
        own = self.actions[-1]
        return max(self.chips) - int(max(sum(own[::2]), sum(own[1::2]))) if self.round else 0


After = Callable[[BettingState], dict[int, BettingState]]
"""A position to the next ones by action."""


def first_state(rules: PokerRules) -> BettingState:
    """The position after the blinds and before the first action."""
    return BettingState(round=0, actor=rules.first_player[0], chips=rules.blinds, last_raise=max(rules.blinds))


def legal_actions(rules: PokerRules, state: BettingState) -> list[int]:
    """Fold only when facing a bet, call or check, raise up to the round's cap unless the other player is all-in.

    Calling is always legal, but in games without limping not as the first action.
    """
    fold = [FOLD] if state.to_call > 0 else []
    call = [CALL] if rules.limp or state.actions != ((),) else []
    can_raise = state.raises < rules.max_raises[state.round] and not _is_all_in(rules, state)
    return [*fold, *call, *([RAISE] if can_raise else [])]


def raise_to(rules: PokerRules, state: BettingState) -> int:
    """The chips that the actor has put in after a legal raise; the stack limits them."""
    called, size = max(state.chips), rules.raise_size[state.round]
    if rules.betting == "limit":
        return called + size
    return min(called + max(2 * called * size // 100, state.last_raise), rules.stack)


def raise_range(rules: PokerRules, state: BettingState) -> tuple[int, int]:
    """The least and the most chips that the actor has put in after a legal raise, all-in if the stack is short."""
    if rules.betting == "no-limit":
        return min(max(state.chips) + state.last_raise, rules.stack), rules.stack
    return (raise_to(rules, state),) * 2


def _is_all_in(rules: PokerRules, state: BettingState) -> bool:
    return rules.betting != "limit" and max(state.chips) >= rules.stack


def next_state(rules: PokerRules, state: BettingState, action: int) -> BettingState:
    """The position after a legal `action`; if it closes the betting, the first position of the next round.

    In no-limit betting a raise is the number of chips that the actor has put in after it, within `raise_range`. A call that
    leaves both players all-in leads to the showdown, which is in the last round.
    """
    if action == FOLD:
        return replace(_pay(state, 0), ended=FOLDED)
    if action >= RAISE:
        return raised(state, action if rules.betting == "no-limit" else raise_to(rules, state))
    paid = _pay(state, state.to_call)
    # A call closes the round if it answers a bet or raise of this round; otherwise the first call leaves another action.
    if not state.actions[-1] and state.raises == 0:
        return paid
    if state.round + 1 == rules.num_rounds or _is_all_in(rules, paid):
        return replace(paid, round=rules.num_rounds - 1, ended=SHOWDOWN)
    return replace(
        paid,
        round=state.round + 1,
        actor=rules.first_player[state.round + 1],
        raises=0,
        last_raise=max(rules.blinds),
        actions=(*paid.actions, ()),
    )


def raised(state: BettingState, total: int) -> BettingState:
    """The position after the actor has raised to `total` chips in all."""
    paid = _pay(state, total - state.chips[state.actor])
    return replace(paid, raises=state.raises + 1, last_raise=total - max(state.chips))


def _pay(state: BettingState, amount: int) -> BettingState:
    chips = list(state.chips)
    chips[state.actor] += amount
    actions = (*state.actions[:-1], (*state.actions[-1], float(amount)))
    return replace(state, chips=(chips[0], chips[1]), actions=actions, actor=1 - state.actor)


@dataclass(frozen=True)
class PublicTree:
    """Every public betting position of a game. Children follow their parents, so one pass in either direction visits all.

    Decision nodes come first (0 .. num_decisions - 1), terminal nodes after them.
    """

    actor: npt.NDArray[np.int64]  # [N], TERMINAL at terminal nodes
    round: npt.NDArray[np.int64]  # [N]; every showdown is in the last round, also after an earlier all-in
    legal: npt.NDArray[np.bool_]  # [N, A]
    child: npt.NDArray[np.int64]  # [N, A], -1 for illegal actions
    parent: npt.NDArray[np.int64]  # [N], -1 at the root
    ended: npt.NDArray[np.int64]  # [N], NOT_TERMINAL, FOLDED or SHOWDOWN
    winner: npt.NDArray[np.int64]  # [N], the player who did not fold, else -1
    chips: npt.NDArray[np.int64]  # [N, P], chips put in so far
    bets: npt.NDArray[np.float32]  # [N, R * positions] chips added by each earlier action, NOT_YET where none
    num_decisions: int
    positions: int  # the most actions of a round

    @property
    def num_nodes(self) -> int:
        return len(self.actor)

    def path(self, node: int) -> list[tuple[int, int]]:
        """The (node, action) pairs that lead from the root to `node`."""
        steps: list[tuple[int, int]] = []
        while self.parent[node] >= 0:
            parent = int(self.parent[node])
            steps.append((parent, int(np.flatnonzero(self.child[parent] == node)[0])))
            node = parent
        return steps[::-1]


def build_tree(rules: PokerRules) -> PublicTree:
    """Unroll the betting of `rules` into arrays. Raises GameError for too many positions."""
    if rules.betting == "no-limit":
        raise GameError(f"The betting of {rules.name} has raises of any size, so it cannot be listed.")

    def after(state: BettingState) -> dict[int, BettingState]:
        return {action: next_state(rules, state, action) for action in legal_actions(rules, state)}

    return unroll(first_state(rules), after, rules, NUM_ACTIONS, "lower its max_raises")


def unroll(first: BettingState, after: After, rules: PokerRules, num_actions: int, advice: str) -> PublicTree:
    """Unroll any betting from its first position: `after` gives the next positions by action, of which there are so many.

    Raises GameError with `advice` if there are too many positions.
    """
    states, children = _unroll(first, after, too_large(rules.name, advice))
    order = [i for i, s in enumerate(states) if s.ended == NOT_TERMINAL]
    num_decisions = len(order)
    order += [i for i, s in enumerate(states) if s.ended != NOT_TERMINAL]
    new_index = np.empty(len(states), np.int64)
    new_index[order] = np.arange(len(states))
    nodes = [states[i] for i in order]
    child = np.full((len(states), num_actions), -1, np.int64)
    parent = np.full(len(states), -1, np.int64)
    for index, branches in enumerate(children):
        for action, target in branches.items():
            child[new_index[index], action] = new_index[target]
            parent[new_index[target]] = new_index[index]
    positions = max(len(actions) for s in nodes for actions in s.actions)
    return PublicTree(
        actor=np.array([s.actor if s.ended == NOT_TERMINAL else TERMINAL for s in nodes]),
        round=np.array([s.round for s in nodes]),
        legal=child >= 0,
        child=child,
        parent=parent,
        ended=np.array([s.ended for s in nodes]),
        winner=np.array([s.actor if s.ended == FOLDED else -1 for s in nodes]),
        chips=np.array([s.chips for s in nodes]),
        bets=np.stack([_bet_history(s, rules.num_rounds, positions) for s in nodes]),
        num_decisions=num_decisions,
        positions=positions,
    )


FEWER_SIZES = "networks, search and exact evaluation need fewer sizes or raises, and only 'solve' with mccfr does not"


def too_large(name: str, advice: str = FEWER_SIZES) -> GameError:
    """The error for betting with more than `MOST_NODES` positions."""
    return GameError(f"The betting of {name} has more than {MOST_NODES:,} nodes: {advice}.")


def _unroll(first: BettingState, after: After, problem: GameError) -> tuple[list[BettingState], list[dict[int, int]]]:
    """All states in depth-first order, and the child of each by action. Raises `problem` if there are too many."""
    states = [first]
    children: list[dict[int, int]] = [{}]
    stack = [0]
    while stack:
        if len(states) > MOST_NODES:
            raise problem
        index = stack.pop()
        if states[index].ended != NOT_TERMINAL:
            continue
        for action, state in after(states[index]).items():
            children[index][action] = len(states)
            stack.append(len(states))
            states.append(state)
            children.append({})
    return states, children


def _bet_history(state: BettingState, num_rounds: int, positions: int) -> npt.NDArray[np.float32]:
    bets = np.full((num_rounds, positions), NOT_YET, np.float32)
    for index, actions in enumerate(state.actions):
        bets[index, : len(actions)] = actions
    return bets.reshape(-1)
