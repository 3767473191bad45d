"""A person against an agent in the terminal at a raise-ladder game; `deepcfr.play` says what is drawn from the seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from rich.markup import escape

from deepcfr.errors import ConfigError
from deepcfr.games.betting import NOT_TERMINAL, SHOWDOWN
from deepcfr.games.ladder_betting import ACTOR, ENDED, ROUND, LadderGame, advance, first_positions, gain
from deepcfr.play import PlayResult, amount, cards_markup, summarise
from deepcfr.policies.ladder import LadderPolicy
from deepcfr.policies.ladder_query import action_name, action_token, legal_of, pot, read_action, to_call
from deepcfr.policies.query import round_name
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.ladder import draw
from deepcfr.sampling.walk_tree import deal_cards, showdowns

Cards = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


class _Quit(Exception):
    """The person asked to stop."""


def play_ladder(
    policy: LadderPolicy,
    console: Console,
    read: Callable[[str], str] = input,
    seed: int = 0,
    hands: int | None = None,
) -> PlayResult:
    """Play `hands` hands against `policy`, or go on until the person quits if `hands` is None.

    The person is player 0 in the first hand, and the seats change after every hand. `read` shows a prompt and returns a
    line; `q`, end of file and Ctrl-C end the session. Raises ConfigError if `hands` is less than 1.
    """
    if hands is not None and hands < 1:
        raise ConfigError(f"The number of hands is {hands}, but must be at least 1.")
    table = LadderTableTalk(policy, console, read, seed)
    results: list[float] = []
    try:
        while hands is None or len(results) < hands:
            results.append(table.play_hand(len(results)))
    except (_Quit, EOFError, KeyboardInterrupt):
        table.say("\nYou leave the table; the unfinished hand does not count.")
    result = summarise(results)
    table.say(f"[bold]Session:[/bold] {result.hands} hands, {amount(policy.game.rules.deck, result.total, '+')}")
    return result


class LadderTableTalk:
    """One seat for a person and one for an agent, which play hand after hand."""

    def __init__(self, policy: LadderPolicy, console: Console, read: Callable[[str], str], seed: int) -> None:
        self.game: LadderGame = policy.game
        self.policy, self.console, self.read, self.seed = policy, console, read, seed

    def say(self, markup: str) -> None:
        """Print a line of rich markup."""
        self.console.print(markup, highlight=False, emoji=False)

    def play_hand(self, hand: int) -> float:
        """Play hand number `hand`, from 0, and return what the person won, in units; passes on what `read` raises."""
        game, deck, person = self.game, self.game.rules.deck, hand % 2
        cards = deal_cards(1, np.uint64(key(self.seed, "play", hand)), 0, deck.num_cards, game.slots)
        views = self.policy.look(cards, np.array([hand]), key(self.seed, "play", "draw"))
        position = first_positions(game.ladder, 1)[0]
        self.say(f"[bold]Hand {hand + 1}[/bold]: you are player {person}.")
        self.say(f"  Your cards: {cards_markup(deck, self._hole(cards[0], person))}")
        step, shown = 0, -1
        while position[ENDED] == NOT_TERMINAL:
            if position[ROUND] > shown:
                shown = int(position[ROUND])
                self._show_round(position, cards[0])
            mine = position[ACTOR] == person
            action = self._ask(position) if mine else self._agent_action(position, views, hand, step)
            self.say(f"  {'You' if mine else 'Agent'}: {action_name(game, position, action)}")
            advance(game.ladder, position, action)
            step += 1
        return self._close(position, person, cards)

    def _hole(self, cards: Cards, player: int) -> Cards:
        held = self.game.rules.hole_cards
        return cards[player * held : (player + 1) * held]

    def _show_round(self, position: Ints, cards: Cards) -> None:
        rules, round_ = self.game.rules, int(position[ROUND])
        board = cards[2 * rules.hole_cards :][: sum(rules.board_cards[: round_ + 1])]
        seen = f" {cards_markup(rules.deck, board)}," if len(board) else ""
        self.say(
            f"  {round_name(rules.deck, round_).capitalize()}:{seen} pot {amount(rules.deck, pot(self.game, position))}"
        )

    def _agent_action(self, position: Ints, views: Ints, hand: int, step: int) -> int:
        strategy = self.policy.probabilities(position[None], views)[0]
        chance = addressed_uniforms(key(self.seed, "play", "agent"), torch.tensor([hand]), torch.tensor([step]))
        return int(draw(strategy, len(strategy), float(chance[0])))

    def _ask(self, position: Ints) -> int:
        """The action that the person chooses; asks until it is a legal one."""
        game = self.game
        choices = [
            f"{action_name(game, position, a)} ({action_token(game, position, a)})" for a in legal_of(game, position)
        ]
        self.say(f"  Pot {pot(game, position):g}, {to_call(game, position):g} to call.")
        while True:
            answer = self.read(f"  {', '.join(choices)} or quit (q)? ").strip()
            if answer.lower() == "q":
                raise _Quit
            try:
                return read_action(game, position, answer)
            except ConfigError as error:
                self.say(f"  {escape(str(error))}")

    def _close(self, position: Ints, person: int, cards: Cards) -> float:
        """Show how the hand ended with both hands, and return what the person won."""
        game, deck = self.game, self.game.rules.deck
        result = int(showdowns(cards, deck.hole_cards, deck.num_suits)[0])
        won = float(gain(position, person, result)) / game.rules.unit_chips
        end = "Showdown" if position[ENDED] == SHOWDOWN else "Fold"
        yours, theirs = (cards_markup(deck, self._hole(cards[0], player)) for player in (person, 1 - person))
        board = cards_markup(deck, cards[0, 2 * game.rules.hole_cards :])
        self.say(f"  {end}: you had {yours}, the agent had {theirs}{f', board {board}' if board else ''}.")
        self.say(f"  You {'win' if won > 0 else 'lose'} {amount(deck, abs(won))}." if won else "  The pot is split.")
        return won
