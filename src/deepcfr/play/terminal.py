"""Play in the terminal: a person against an agent, in any poker game and any game whose histories are listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape

from deepcfr.core.errors import ConfigError
from deepcfr.game.cards import card_text
from deepcfr.game.rules import PokerRules
from deepcfr.game.tree_game import TreeGame
from deepcfr.measure.intervals import Paid, Score, score_of
from deepcfr.play.hand import Hand, HistoryHand
from deepcfr.policy.base import Policy
from deepcfr.policy.query import round_name

_SUIT_STYLES = {"c": "green", "d": "blue", "h": "red", "s": "bold"}


class _Quit(Exception):
    """The person asked to stop."""


def play(
    policy: Policy,
    console: Console,
    read: Callable[[str], str] = input,
    seed: int = 0,
    hands: int | None = None,
) -> Score:
    """Play `hands` hands against `policy`, or until the person quits if `hands` is None.

    The person is player 0 in the first hand, and the seats change after every hand. `read` shows a prompt and returns a
    line. `q`, end of file and Ctrl-C end the session and print its summary. An unfinished hand does not count in the score.

    Raises ConfigError if `hands` is less than 1, and GameError for other games.
    """
    if hands is not None and hands < 1:
        raise ConfigError(f"The number of hands is {hands}, but must be at least 1.")
    game = policy.game
    if isinstance(policy, Policy) and isinstance(game, TreeGame):
        rules: Paid = game
        table: TerminalTable = HistoryTable(policy, console, read, seed)
    else:
        rules, table = Hand(policy, seed, 0).rules, TerminalTable(policy, console, read, seed)
    results: list[float] = []
    try:
        while hands is None or len(results) < hands:
            results.append(table.play_hand(len(results)))
            table.say(_score(rules, score_of(results, rules)) + "\n")
    except (_Quit, EOFError, KeyboardInterrupt):
        table.say("\nYou leave the table; the unfinished hand does not count.")
    score = score_of(results, rules)
    table.say(f"[bold]Session:[/bold] {_score(rules, score)}")
    return score


class TerminalTable:
    """A table where a person and an agent play one hand after the other."""

    def __init__(self, policy: Policy, console: Console, read: Callable[[str], str], seed: int) -> None:
        self.policy, self.console, self.read, self.seed = policy, console, read, seed

    def say(self, markup: str) -> None:
        """Print a line of rich markup."""
        self.console.print(markup, highlight=False, emoji=False)

    def play_hand(self, number: int) -> float:
        """Play hand number `number`, from 0, and return the person's gain in units.

        Errors that `read` raises are not caught; the hand is then void.
        """
        hand = Hand(self.policy, self.seed, number)
        self._open(hand)
        while not hand.over:
            round_ = hand.state.round
            step = hand.act(self._ask(hand)) if hand.persons_turn else hand.act_for_agent()
            self.say(f"  {'You' if step.player == hand.person else 'Agent'}: {step.name}")
            if hand.state.round > round_:
                self._show_round(hand)
        rules, won = hand.rules, hand.won
        end = "Showdown" if hand.state.showdown else "Fold"
        yours, theirs = (cards_markup(rules, hand.hole(player)) for player in (hand.person, 1 - hand.person))
        self.say(f"  {end}: you had {yours}, the agent had {theirs}.")
        if hand.translated:
            self.say("  The size of a bet is none that the agent knows, so it was translated.")
        outcome = f"You {'win' if won > 0 else 'lose'} {amount(rules, abs(won))}" if won else "The pot is split"
        self.say(f"  {outcome}.")
        return won

    def _open(self, hand: Hand) -> None:
        seat = "first" if hand.person == hand.rules.first_player[0] else "second"
        self.say(f"[bold]Hand {hand.number + 1}[/bold]: you act {seat} in {round_name(hand.rules, 0)}.")
        self.say(f"  Your cards: {cards_markup(hand.rules, hand.hole(hand.person))}")
        self._show_round(hand)

    def _show_round(self, hand: Hand) -> None:
        shown = f" {cards_markup(hand.rules, hand.board)}," if hand.board else ""
        name = round_name(hand.rules, hand.state.round).capitalize()
        self.say(f"  {name}:{shown} pot {amount(hand.rules, hand.state.pot)}")

    def _ask(self, hand: Hand) -> int:
        keys = ", ".join(f"{choice.name} ({choice.token})" for choice in hand.choices())
        if hand.sizes:
            keys += f", r with any size from {hand.sizes[0]:g} to {hand.sizes[1]:g}"
        owed = f", {amount(hand.rules, hand.state.to_call)} to call" if hand.state.to_call else ""
        self.say(f"  Pot {amount(hand.rules, hand.state.pot)}{owed}.")
        return self._read(hand, keys, f"type the letter of {keys} or quit (q)")

    def _read(self, hand: Hand | HistoryHand, keys: str, hint: str) -> int:
        """Ask the person until the answer is a legal action, and return it."""
        while True:
            answer = self.read(f"  {keys} or quit (q)? ").strip()
            if (action := hand.read(answer)) is not None:
                return action
            if answer.lower() == "q":
                raise _Quit
            self.say(f"  {escape(repr(answer))} is not possible here: {hint}.")


class HistoryTable(TerminalTable):
    """A table of a game whose histories are listed: a player is told its infoset's name, and nothing else of the play."""

    def play_hand(self, number: int) -> float:
        game = self.policy.game
        assert isinstance(game, TreeGame)
        hand = HistoryHand(self.policy, game, self.seed, number)
        self.say(f"[bold]Game {number + 1}[/bold]: you are player {hand.person}.")
        while not hand.over:
            if hand.persons_turn:
                self.say(f"  You know: {escape(hand.known)}")
                names = ", ".join(choice.name for choice in hand.choices())
                hand.act(self._read(hand, names, f"type one of {escape(names)} or q"))
            else:
                hand.act_for_agent()
                self.say("  The agent acts.")
        won = hand.won
        self.say(f"  You {'win' if won > 0 else 'lose'} {amount(game, abs(won))}." if won else "  A draw.")
        return won


def cards_markup(rules: PokerRules, cards: Sequence[int]) -> str:
    """Cards as rich markup: rank and suit as text, in four colours if the deck has the standard suits."""
    return " ".join(_card_markup(rules, int(card)) for card in cards)


def _card_markup(rules: PokerRules, card: int) -> str:
    text = escape(card_text(rules, card))
    style = _SUIT_STYLES.get(rules.suit_symbols[card % rules.num_suits]) if rules.num_suits > 1 else None
    return f"[{style}]{text}[/{style}]" if style else text


def amount(rules: Paid, units: float, sign: str = "") -> str:
    """An amount with its unit in words, such as `1 ante` or `2.5 big blinds`; `sign="+"` also shows a plus sign."""
    return f"{units:{sign}g} {rules.unit.removesuffix('s') if abs(units) == 1 else rules.unit}"


def _score(rules: Paid, score: Score) -> str:
    if score.mean is None:
        return "no hand was finished."
    text = (
        f"{score.hands} {'hand' if score.hands == 1 else 'hands'}, {amount(rules, score.chips / rules.unit_chips, '+')}"
    )
    text += f", {score.mean:+.0f} {score.unit}"
    return f"{text} ± {score.interval:.0f}." if score.interval is not None else f"{text}."
