"""A person against an agent in the terminal, at any poker game that the library knows.

Everything random comes from the seed: hand `h` is dealt from `key(seed, "play", h)`, and the agent's action at a node
of it uses the uniform addressed by `(h, node)` in `key(seed, "play", "agent")`. An agent that is a mixture draws one of its
policies for every hand, by the hand's number in `key(seed, "play", "draw")`. The same answers give the same session.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from rich.markup import escape

from deepcfr.errors import ConfigError, GameError
from deepcfr.evaluation.intervals import NORMAL_95
from deepcfr.games.base import Deals, infosets_at
from deepcfr.games.betting import ACTION_LETTERS, SHOWDOWN
from deepcfr.games.cards import card_text
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.policies.mixture import MixturePolicy
from deepcfr.policies.query import ACTION_KEYS, action_name, legal_actions, pot, round_name, to_call
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.external import sample_actions
from deepcfr.types import TERMINAL

_SUIT_STYLES = {"c": "green", "d": "blue", "h": "red", "s": "bold"}


@dataclass(frozen=True)
class PlayResult:
    """How a session went for the person; a hand that was broken off does not count."""

    hands: int
    total: float  # won in all, in the game's unit
    mean_milli: float | None  # per hand in the game's milli unit; None before the first hand
    interval_milli: float | None  # half the width of the mean's 95 % interval, milli unit; None before two hands


class _Quit(Exception):
    """The person asked to stop."""


def play(
    game: PokerGame,
    policy: Policy,
    console: Console,
    read: Callable[[str], str] = input,
    seed: int = 0,
    hands: int | None = None,
) -> PlayResult:
    """Play `hands` hands against `policy`, or go on until the person quits if `hands` is None.

    The person is player 0 in the first hand, and the seats change after every hand. `read` shows a prompt and returns a
    line; `q`, end of file and Ctrl-C end the session with its summary.

    Raises ConfigError if `hands` is less than 1, and GameError if `policy` is not one for `game`.
    """
    _check(game, policy, hands)
    table = Table(game, policy, console, read, seed)
    results: list[float] = []
    try:
        while hands is None or len(results) < hands:
            results.append(table.play_hand(len(results)))
            table.say(_score(game.rules, summarise(results)) + "\n")
    except (_Quit, EOFError, KeyboardInterrupt):
        table.say("\nYou leave the table; the unfinished hand does not count.")
    result = summarise(results)
    table.say(f"[bold]Session:[/bold] {_score(game.rules, result)}")
    return result


def summarise(results: list[float]) -> PlayResult:
    """The session whose hands won `results`, in units; the interval is the normal one of the mean."""
    hands = len(results)
    mean = 1000 * sum(results) / hands if hands else None
    half = 1000 * NORMAL_95 * statistics.stdev(results) / math.sqrt(hands) if hands > 1 else None
    return PlayResult(hands, float(sum(results)), mean, half)


def _check(game: PokerGame, policy: Policy, hands: int | None) -> None:
    if hands is not None and hands < 1:
        raise ConfigError(f"The number of hands is {hands}, but must be at least 1.")
    own = policy.game
    if not isinstance(own, PokerGame) or (own.rules, own.suits) != (game.rules, game.suits):
        raise GameError(f"The agent plays {own.name}, but the table plays {game.name} with {game.suits} suits.")


class Table:
    """One seat for a person and one for an agent, which play hand after hand."""

    def __init__(
        self, game: PokerGame, policy: Policy, console: Console, read: Callable[[str], str] = input, seed: int = 0
    ) -> None:
        self.game, self.policy, self.console, self.read, self.seed = game, policy, console, read, seed

    def say(self, markup: str) -> None:
        """Print a line of rich markup."""
        self.console.print(markup, highlight=False, emoji=False)

    def play_hand(self, hand: int) -> float:
        """Play hand number `hand`, from 0, and return what the person won, in units.

        Whatever `read` raises passes through, and the hand is then void.
        """
        game, person = self.game, hand % 2
        cards = game.deal_cards(1, key(self.seed, "play", hand))
        deals = game.deals_of(cards, torch.tensor([hand]))
        agent = self._agent(hand)
        self._open(hand, person, cards[0])
        node = int(game.start(deals)[0])
        while game.tree.actor[node] != TERMINAL:
            if game.tree.actor[node] == person:
                action, who = self._ask(node), "You"
            else:
                action, who = self._agent_action(agent, node, deals), "Agent"
            self.say(f"  {who}: {action_name(game, node, action)}")
            after = int(game.tree.child[node, action])
            if game.tree.round[after] > game.tree.round[node]:
                self._show_round(after, cards[0])
            node = after
        return self._close(node, person, cards[0], deals)

    def _open(self, hand: int, person: int, cards: npt.NDArray[np.uint8]) -> None:
        rules = self.game.rules
        seat = "first" if person == rules.first_player[0] else "second"
        self.say(f"[bold]Hand {hand + 1}[/bold]: you act {seat} in {round_name(rules, 0)}.")
        self.say(f"  Your cards: {cards_markup(rules, _hole(rules, cards, person))}")
        self._show_round(0, cards)

    def _show_round(self, node: int, cards: npt.NDArray[np.uint8]) -> None:
        rules, round_ = self.game.rules, int(self.game.tree.round[node])
        board = cards[2 * rules.hole_cards :][: sum(rules.board_cards[: round_ + 1])]
        shown = f" {cards_markup(rules, board)}," if len(board) else ""
        self.say(f"  {round_name(rules, round_).capitalize()}:{shown} pot {amount(rules, pot(self.game, node))}")

    def _agent(self, hand: int) -> Policy:
        """The policy that the agent plays from the first action of a hand to its last."""
        if isinstance(self.policy, MixturePolicy):
            return self.policy.draw(key(self.seed, "play", "draw"), hand)
        return self.policy

    def _agent_action(self, agent: Policy, node: int, deals: Deals) -> int:
        at = torch.tensor([node], device=deals.traversal.device)
        probabilities = agent.probabilities(infosets_at(self.game, at, torch.zeros_like(at), deals))
        chance = addressed_uniforms(key(self.seed, "play", "agent"), deals.traversal, at)
        return int(sample_actions(probabilities, chance)[0])

    def _ask(self, node: int) -> int:
        """The action that the person chooses; asks until it is a legal one."""
        game = self.game
        legal = legal_actions(game, node)
        keys = ", ".join(f"{action_name(game, node, action)} ({ACTION_LETTERS[action]})" for action in legal)
        call = to_call(game, node)
        owed = f", {amount(game.rules, call)} to call" if call else ""
        self.say(f"  Pot {amount(game.rules, pot(game, node))}{owed}.")
        while True:
            answer = self.read(f"  {keys} or quit (q)? ").strip().lower()
            if answer == "q":
                raise _Quit
            action = ACTION_KEYS.get(answer)
            if action in legal:
                return action
            self.say(f"  {escape(repr(answer))} is not possible here: write the letter of {keys} or quit (q).")

    def _close(self, node: int, person: int, cards: npt.NDArray[np.uint8], deals: Deals) -> float:
        """Show how the hand ended with both hands, and return what the person won."""
        game, rules = self.game, self.game.rules
        at = torch.tensor([node], device=deals.traversal.device)
        gain = float(game.payoff(at, torch.zeros_like(at), deals)[0])
        won = gain if person == 0 else 0.0 - gain
        end = "Showdown" if game.tree.ended[node] == SHOWDOWN else "Fold"
        yours, theirs = (cards_markup(rules, _hole(rules, cards, player)) for player in (person, 1 - person))
        self.say(f"  {end}: you had {yours}, the agent had {theirs}.")
        outcome = f"You {'win' if won > 0 else 'lose'} {amount(rules, abs(won))}" if won else "The pot is split"
        self.say(f"  {outcome}.")
        return won


def _hole(rules: PokerRules, cards: npt.NDArray[np.uint8], player: int) -> npt.NDArray[np.uint8]:
    return cards[player * rules.hole_cards : (player + 1) * rules.hole_cards]


def cards_markup(rules: PokerRules, cards: npt.NDArray[np.uint8]) -> str:
    """Cards as rich markup: rank and suit as text, in four colours if the deck has the usual suits."""
    return " ".join(_card_markup(rules, int(card)) for card in cards)


def _card_markup(rules: PokerRules, card: int) -> str:
    text = escape(card_text(rules, card))
    style = _SUIT_STYLES.get(rules.suit_symbols[card % rules.num_suits]) if rules.num_suits > 1 else None
    return f"[{style}]{text}[/{style}]" if style else text


def amount(rules: PokerRules, units: float, sign: str = "") -> str:
    """An amount with its unit in words, such as `1 ante` or `2.5 big blinds`; with `sign="+"` a gain has its sign."""
    return f"{units:{sign}g} {rules.unit.removesuffix('s') if abs(units) == 1 else rules.unit}"


def _score(rules: PokerRules, result: PlayResult) -> str:
    if result.mean_milli is None:
        return "no hand was finished."
    text = f"{result.hands} {'hand' if result.hands == 1 else 'hands'}, {amount(rules, result.total, '+')}"
    text += f", {result.mean_milli:+.0f} {rules.milli_unit}"
    return f"{text} ± {result.interval_milli:.0f}." if result.interval_milli is not None else f"{text}."
