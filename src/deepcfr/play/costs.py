"""Costs of a person's decisions against one agent.

In the last round, and in the first one of games that are small enough to enumerate, the value of an action is the
largest mean gain that the person can reach after it. The mean is over the agent's range at that point and all future
public cards. From then on the person plays a best response, which knows the agent's strategy but not its cards. At
other decisions the value is an estimate from random deals: the mean gain if the person then plays on as the agent
would. The cost of a decision is the best action's value minus the chosen action's value, in the game's unit.

A review of a finished hand says what the agent would have done at each decision, and what each choice cost.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board, Boards, count_boards
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import key
from deepcfr.core.types import CardTuple, Doubles
from deepcfr.game.base import infosets_at
from deepcfr.game.cards import card_text, free_holes
from deepcfr.game.poker import PokerGame
from deepcfr.game.public_state import ListedState, NoLimitState, PublicState
from deepcfr.measure.intervals import NORMAL_95
from deepcfr.measure.limits import too_many_boards
from deepcfr.play.hand import Decision, Hand, HistoryHand, decisions, played, round_of
from deepcfr.policy.base import Policy, boards_for
from deepcfr.policy.query import round_name
from deepcfr.sample.external import last_nodes
from deepcfr.search.spot import NAMES
from deepcfr.search.subgame import values_at_root

FEW_BOARDS = 200  # a game with at most this many boards is swept while the person waits
DEALS = 5_000  # random deals of an estimate
RESPONSES = ((0, True), (1, True))  # (player, best response?)


@dataclass(frozen=True)
class Values:
    """The value of every legal action at a decision, in units, and half the width of 95 % intervals, 0 where exact."""

    actions: dict[int, float]
    halves: dict[int, float]
    cost: float
    cost_half: float
    exact: bool

    @classmethod
    def exactly(cls, actions: dict[int, float], chosen: int) -> Values:
        """Exact values."""
        return cls(actions, dict.fromkeys(actions, 0.0), max(actions.values()) - actions[chosen], 0.0, exact=True)

    @classmethod
    def estimated(cls, gains: dict[int, Doubles], chosen: int) -> Values:
        """The means of gains in the same deals after each action.

        The cost reaches up to the highest end of the intervals of differences from the chosen action, deal by deal.
        """

        def half(numbers: Doubles) -> float:
            return float(NORMAL_95 * numbers.std(ddof=1) / np.sqrt(len(numbers)))

        means = {action: float(gain.mean()) for action, gain in gains.items()}
        halves = {action: half(gain) for action, gain in gains.items()}
        lost = [gain - gains[chosen] for gain in gains.values()]
        cost = max(float(each.mean()) for each in lost)
        most = max(float(each.mean()) + half(each) for each in lost)
        return cls(means, halves, cost, most - cost, exact=False)


class Costs:
    """Values of actions against one policy of a poker game; thread-safe.

    Values of the first round of a small game need every possible board, so `prepare` computes them once.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        game = policy.game
        self._small = (
            isinstance(game, PokerGame) and game.rules.betting != "no-limit" and too_many_boards(game.rules) is None
        )
        self.progress = (0, 0)  # boards done and boards in all, while the first round is computed
        self._first: tuple[Boards, Board, Doubles] | None = None
        self._thread: threading.Thread | None = None
        self._once = threading.Lock()

    @property
    def quick(self) -> bool:
        """Whether `prepare` takes little time."""
        game = self.policy.game
        assert isinstance(game, PokerGame)
        return count_boards(game.rules, merge=game.suits == "canonical")[-1] <= FEW_BOARDS

    @property
    def ready(self) -> bool:
        """Whether the first round's values have been computed."""
        return self._first is not None

    def prepare(self) -> None:
        """Compute the first round's values if they are exact and have not been computed."""
        with self._once:
            if self._first is None and self.needs_all_boards(0):
                boards = boards_for(self.policy)
                (board,) = boards.children(boards.root)
                after = Boards(boards.game, boards.merge, root=board, rounds=boards.rounds)
                reach = np.ones((2, 1, len(board)))
                values = values_at_root(
                    after, self.policy.on_board, reach, RESPONSES, Workers(1), whole_round=True, on_board=self._tell
                )
                self._first = boards, board, values

    def prepare_soon(self) -> None:
        """Call `prepare` now if it is quick, otherwise in a background thread."""
        if self.quick:
            self.prepare()
        elif self._thread is None:
            self._thread = threading.Thread(target=self.prepare, daemon=True)
            self._thread.start()

    def _tell(self, done: int, total: int) -> None:
        self.progress = done, total

    def needs_all_boards(self, round_: int) -> bool:
        """Whether values of a round are exact and known only once `prepare` is done."""
        game = self.policy.game
        if not self._small or not isinstance(game, PokerGame):  # in no-limit poker bets are translated
            return False
        return round_ == 0 < game.rules.num_rounds - 1 and not game.rules.board_cards[0]

    def at(self, hand: Hand, step: int, deals: int = DEALS) -> Values | None:
        """The values at a decision of the person; None if not (yet) known.

        `step` is the decision's position among the hand's actions. An estimate is from `deals` deals, which depend on
        the hand's seed and number only. There is none where the agent's actions have no probability, a bet has a size
        that the agent does not know, the betting cannot be listed, or the agent searches.
        """
        round_, chosen = hand.steps[step].round, hand.steps[step].action
        if round_ == hand.rules.num_rounds - 1:
            exact = _last_round_values(hand, step)
        elif not self.needs_all_boards(round_):
            gains = self._gains(hand, step, deals)
            return Values.estimated(gains, chosen) if gains else None
        elif self._first is not None:
            exact = self._first_round_values(hand, step, *self._first)
        else:
            return None
        return Values.exactly(exact, chosen) if exact else None

    def _first_round_values(
        self, hand: Hand, step: int, boards: Boards, board: Board, values: Doubles
    ) -> dict[int, float]:
        """The value of each action, divided by the total reach of the agent's possible hands there."""
        assert isinstance(hand.state, ListedState)
        node, _ = hand.state.tree.path(hand.state.node)[step]
        tree = boards.rounds[board.round]
        place = int(np.flatnonzero(tree.nodes == node)[0])
        hole = np.sort(np.array(hand.hole(hand.person), np.uint8))
        canonical = board.canonical_of[int(np.flatnonzero((boards.holes == hole).all(1))[0])]
        total = float(hand.chances(free_holes(hand.rules, hand.hole(hand.person)), step).sum())
        edges = range(int(tree.first_edge[place]), int(tree.first_edge[place + 1]))
        return {
            int(tree.edge_action[edge]): float(values[hand.person, tree.edge_child[edge], canonical]) / total
            for edge in edges
        }

    def _gains(self, hand: Hand, step: int, count: int) -> dict[int, Doubles]:
        """The person's gain after each action in `count` random deals, [count]; empty if there is no estimate."""
        policy, after = self.policy, self._nodes_after(hand, step)
        cards = _deals_at(hand, step, count) if after else None
        if cards is None or hand.steps[step].action not in after:
            return {}
        game = policy.game
        assert isinstance(game, PokerGame)
        deals = game.deals_of(cards)

        @torch.no_grad()
        def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            return policy.probabilities(infosets_at(game, node, row, deals))

        stream, found = key(hand.seed, "review", "action", hand.number, step), {}
        for action, node in after.items():
            start = torch.full((count,), node, dtype=torch.int64, device=game.device)
            ends = last_nodes(game, deals, (strategy, strategy), stream, start)
            paid = game.payoff(ends, torch.arange(count, device=game.device), deals).double().cpu().numpy()
            found[action] = -paid if hand.person else paid
        return found

    def _nodes_after(self, hand: Hand, step: int) -> dict[int, int]:
        """The node of the agent's game after each real action; none where there is no estimate."""
        game, now = self.policy.game, hand.again(step).state
        # a search for every deal takes too long
        if not isinstance(game, PokerGame) or self.policy.most_deals is not None:
            return {}
        if hand.translation is None:
            return {action: game.node_of(now.after(action)) for action in now.legal()}
        actions = [each.action for each in hand.steps[:step]]
        shadow = hand.translation.follow(actions, 1 - hand.person, hand.number)
        if shadow.lost or shadow.translated:
            return {}
        assert isinstance(now, NoLimitState)
        choices = hand.translation.choices(shadow, now.now)
        return {real: game.node_of(shadow.own.after(own)) for own, real in choices.items()}


def _last_round_values(hand: Hand, step: int) -> dict[int, float]:
    """The exact value of each action at a decision of the last round; empty if the agent's actions have no probability."""
    state = hand.again(step).state
    holes = free_holes(hand.rules, (*hand.hole(hand.person), *hand.board_at(state.round)))
    results, reach = hand.showdowns(holes), hand.chances(holes, step)
    total = float(reach.sum())
    if total == 0:
        return {}

    def best(at: PublicState, reach: Doubles) -> float:
        """The person's largest gain, weighted by the agent's `reach` [H]."""
        if at.showdown:
            return float(reach @ hand.gains(at, results))
        if at.over:
            return float(reach.sum() * at.gain(hand.person, 0))
        if at.actor == hand.person:
            return max(best(at.after(action), reach) for action in at.legal())
        shares = hand.strategies(at, holes)
        return sum(best(at.after(action), reach * share) for action, share in shares.items() if (reach * share).any())

    actions = sorted({hand.steps[step].action, *state.legal(), *hand.strategies(state, holes[:1])})
    return {action: best(state.after(action), reach) / total for action in actions}


def _deals_at(hand: Hand, step: int, count: int) -> npt.NDArray[np.uint8] | None:
    """`count` random deals given what the person knows at a decision, uint8 [count, nodes] as in `Hand.cards`.

    The agent's hands are drawn systematically by their probability, and the cards to come uniformly from the rest. None
    if the agent's actions have no probability.
    """
    rules, own = hand.rules, hand.hole(hand.person)
    board = hand.board_at(hand.steps[step].round)
    holes = free_holes(rules, (*own, *board))
    reach = hand.chances(holes, step).cumsum()
    if reach[-1] == 0:
        return None
    draw = np.random.default_rng(key(hand.seed, "review", "deal", hand.number, step))
    points = (np.arange(count) + draw.random()) / count * reach[-1]
    theirs = holes[np.searchsorted(reach, points, side="right").clip(max=len(holes) - 1)]
    order = draw.random((count, rules.num_cards))
    order[:, [*own, *board]] = 2.0  # known cards come last
    np.put_along_axis(order, theirs.astype(np.int64), 2.0, 1)
    later = order.argsort(1)[:, : sum(rules.board_cards) - len(board)]
    mine, public = (np.tile(np.array(cards, np.uint8), (count, 1)) for cards in (own, board))
    hands = (theirs, mine) if hand.person else (mine, theirs)
    return np.concatenate([*hands, public, later.astype(np.uint8)], axis=1)


def review(hand: Hand | HistoryHand, found: Iterable[Decision], costs: Costs | None) -> list[dict[str, Any]]:
    """Decisions of a hand as JSON values, with values of actions in units where `costs` gives and knows them."""
    return [_reviewed(hand, decision, costs) for decision in found]


def _reviewed(hand: Hand | HistoryHand, decision: Decision, costs: Costs | None) -> dict[str, Any]:
    found = costs.at(hand, decision.step) if costs and isinstance(hand, Hand) else None
    step, names = hand.steps[decision.step], decision.names
    return {
        "round": round_of(hand, step.round),
        "action": step.name,
        "agent": {names[action]: share for action, share in decision.agent.items()},
        "values": {names[action]: value for action, value in found.actions.items()} if found else None,
        "cost": found.cost if found else None,
        "exact": found.exact if found else None,
        "intervals": {names[action]: half for action, half in found.halves.items()} if found else None,
        "cost_interval": found.cost_half if found else None,
    }


def note(hand: Hand, reviewed: list[dict[str, Any]], costs: Costs) -> str | None:
    """Sentences that say which values are estimates, and why others are missing; None if all are exact."""
    rules, notes = hand.rules, []
    if any(decision["exact"] is False for decision in reviewed):
        last = round_name(rules, rules.num_rounds - 1)
        notes.append(
            f"Values before the {last} are means over {DEALS:,} random deals if both play on as the agent does, with "
            "95 % intervals."
        )
    missing = {
        step.round
        for step, decision in zip((s for s in hand.steps if s.player == hand.person), reviewed, strict=True)
        if decision["values"] is None
    }
    if any(costs.needs_all_boards(round_) for round_ in missing):
        done, total = costs.progress
        so_far = f" ({done:,} of {total:,} boards)" if total else ""
        notes.append(f"The costs of {round_name(rules, 0)} choices are being computed for all boards{so_far}.")
    elif missing:
        notes.append(
            "A decision has no values where the agent searches, cannot have acted as it did, or has bets too many to "
            "list or of another size."
        )
    if hand.translated:
        notes.append("The size of a bet is none that the agent knows, so it was translated.")
    return " ".join(notes) or None


def review_seats(
    policy: Policy,
    costs: Costs,
    place: int,
    holes: tuple[CardTuple, CardTuple],
    board: CardTuple,
    actions: Sequence[int],
) -> list[dict[str, Any]]:
    """The review of a hand that was played elsewhere, for each player whose cards are known, as JSON values.

    `place` addresses the random deals of estimates. Costs are those against a player who plays as `policy` does.
    """
    found = []
    for person, hole in enumerate(holes):
        if not hole:
            continue
        hand = played(policy, person, place, hole, board, actions)
        reviewed = review(hand, decisions(hand), costs)
        seat = {"seat": NAMES[person], "cards": [card_text(hand.rules, card) for card in hole]}
        found.append(seat | {"decisions": reviewed, "note": note(hand, reviewed, costs)})
    return found


def describe(hand: dict[str, Any], unit: str) -> str:
    """A reviewed hand as text: a line for each player and each decision. `names` are of the dealer and the big blind."""
    # a stranger's file may hold codes that a terminal obeys
    names = ["".join(letter if letter.isprintable() else "?" for letter in name) for name in hand["names"]]
    lines = [f"Hand {hand['number']}: {names[0]} ({NAMES[0]}) and {names[1]} ({NAMES[1]})"]
    for player in hand["players"]:
        lines.append(f"  {names[NAMES.index(player['seat'])]} with {' '.join(player['cards'])}")
        lines += [f"    {_line(decision, unit)}" for decision in player["decisions"]] or ["    No decision."]
        lines += [f"    {player['note']}"] if player["note"] else []
    return "\n".join(lines)


def _line(decision: dict[str, Any], unit: str) -> str:
    agent = ", ".join(f"{name} {share:.0%}" for name, share in decision["agent"].items())
    text = f"{decision['round']}: {decision['action']}; the agent: {agent}"
    if decision["cost"] is None:
        return text
    half = ", exactly" if decision["exact"] else f" ± {decision['cost_interval']:.3f}"
    return f"{text}; cost {decision['cost']:.3f} {unit}{half}"
