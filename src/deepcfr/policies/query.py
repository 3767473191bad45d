"""A policy queried in text: `As Kd / r / Qs 7h 2c` is a situation, and the answer is what the policy does in it.

Fields are separated by `/`: the hole cards of the player to act, then for every round its new board cards (no field if
it deals none) and its betting. In betting, `f` folds, `c` or `k` calls or checks, `r` or `b` raises or bets. Later
fields may be left out. Betting that is still open when a later field follows is called (`r` means `rc`) or checked down
(nothing means `cc`), so the example is a flop after a raise and a call, and the cards are those of whoever acts first
on it.

In decks of two or three suits a rank alone is a card too: it gets the first suit, in the order of the fields, that no
other card of its rank in the text has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import torch

from deepcfr.errors import ConfigError, GameError
from deepcfr.games.betting import ACTION_LETTERS, CALL, FOLD, FOLDED, NOT_TERMINAL, NUM_ACTIONS, RAISE
from deepcfr.games.cards import card_text, cards_text, parse_card
from deepcfr.games.poker import PokerGame
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.types import TERMINAL, Infosets

ACTION_KEYS = {"f": FOLD, "c": CALL, "k": CALL, "r": RAISE, "b": RAISE}

_HOLDEM_BOARD = (0, 3, 1, 1)
_HOLDEM_ROUNDS = ("pre-flop", "flop", "turn", "river")


@dataclass(frozen=True)
class Situation:
    """A point at which a player must act, with all that this player knows."""

    game: PokerGame
    hole: tuple[int, ...]  # the cards of `player`
    board: tuple[int, ...]  # dealt so far, in order
    node: int  # a decision node of the public tree
    player: int  # who acts there

    @property
    def round(self) -> int:
        """The betting round, from 0."""
        return int(self.game.tree.round[self.node])

    @property
    def betting(self) -> tuple[str, ...]:
        """The actions of every round so far as letters `f`, `c`, `r`."""
        return betting_letters(self.game, self.node)

    @property
    def text(self) -> str:
        """The situation in the form that `parse_situation` reads, with nothing implied."""
        rules, board = self.game.rules, list(self.board)
        fields = [cards_text(rules, self.hole)]
        for new_cards, letters in zip(rules.board_cards, self.betting, strict=False):
            fields += [cards_text(rules, board[:new_cards])] if new_cards else []
            fields.append(letters)
            del board[:new_cards]
        while not fields[-1]:
            fields.pop()
        return " / ".join(fields)


@dataclass(frozen=True)
class Answer:
    """What a policy does in a situation; amounts are in the game's unit."""

    situation: Situation
    policy: str  # its kind
    player: int
    round: str  # its name
    pot: float
    to_call: float
    probabilities: dict[str, float]  # of the legal actions by name

    def describe(self) -> str:
        """The answer for people: the situation, who acts for how much, and one line for every action."""
        call = f"{self.to_call:g} to call" if self.to_call else "nothing to call"
        where = f"{self.round}, player {self.player} to act, pot {self.pot:g} {self.situation.game.unit}, {call}"
        width = max(map(len, self.probabilities))
        lines = [f"  {name:<{width}}  {share:7.2%}" for name, share in self.probabilities.items()]
        return "\n".join([self.situation.text, where, *lines])

    def facts(self) -> dict[str, object]:
        """The answer for programs, as JSON can hold it."""
        game = self.situation.game
        return {
            "game": game.name,
            "unit": game.unit,
            "policy": self.policy,
            "situation": self.situation.text,
            "player": self.player,
            "round": self.round,
            "pot": self.pot,
            "to_call": self.to_call,
            "probabilities": self.probabilities,
        }


def query(policy: Policy, text: str) -> Answer:
    """Ask `policy` what it does in the situation that `text` describes.

    Raises ConfigError if the text describes none, and GameError if the policy does not play a poker game.
    """
    game = policy.game
    if not isinstance(game, PokerGame):
        raise GameError(f"Situations in text are only for poker games, and {game.name} is not one.")
    situation = parse_situation(game, text)
    row = policy.probabilities(situation_infosets(situation))[0].tolist()
    node = situation.node
    return Answer(
        situation=situation,
        policy=policy.kind,
        player=situation.player,
        round=round_name(game.rules, situation.round),
        pot=pot(game, node),
        to_call=to_call(game, node),
        probabilities={action_name(game, node, action): row[action] for action in legal_actions(game, node)},
    )


def situation_infosets(situation: Situation) -> Infosets:
    """What the player of `situation` knows, one row, with cards as the game shows them."""
    game = situation.game
    cards = game.views_of(np.array([situation.hole], np.uint8), situation.board)
    return Infosets(game.infoset[[situation.node]], torch.from_numpy(cards).to(game.device))


def round_name(rules: PokerRules, round_: int) -> str:
    """The name of a round, such as `flop` in hold'em games and `round 2` in others."""
    holdem = rules.hole_cards == 2 and rules.num_rounds > 1
    if holdem and rules.board_cards == _HOLDEM_BOARD[: rules.num_rounds]:
        return _HOLDEM_ROUNDS[round_]
    return f"round {round_ + 1}"


def pot(game: PokerGame, node: int) -> float:
    """What both players have put in at `node`, in units."""
    return float(game.tree.chips[node].sum()) / game.rules.unit_chips


def to_call(game: PokerGame, node: int) -> float:
    """What the player to act at decision node `node` must add to call, in units."""
    chips = game.tree.chips[node]
    return float(chips.max() - chips[game.tree.actor[node]]) / game.rules.unit_chips


def legal_actions(game: PokerGame, node: int) -> list[int]:
    """The legal actions at `node`, ascending; none at a terminal node."""
    return [action for action in range(NUM_ACTIONS) if game.tree.legal[node, action]]


def action_name(game: PokerGame, node: int, action: int) -> str:
    """`fold`, `check` or `call`, `bet` or `raise`: what players call `action` at decision node `node`.

    An aggressive action is a raise if a bet or raise of this round, or unequal blinds, came before it.
    """
    if action == FOLD:
        return "fold"
    if action == CALL:
        return "call" if to_call(game, node) > 0 else "check"
    round_ = int(game.tree.round[node])
    blinds = game.rules.blinds
    live = ACTION_LETTERS[RAISE] in betting_letters(game, node)[round_] or (round_ == 0 and blinds[0] != blinds[1])
    return "raise" if live else "bet"


def betting_letters(game: PokerGame, node: int) -> tuple[str, ...]:
    """The actions that lead to `node` as letters `f`, `c`, `r`, one text for every round up to the node's."""
    rounds = [""] * (int(game.tree.round[node]) + 1)
    for earlier, action in game.tree.path(node):
        rounds[int(game.tree.round[earlier])] += ACTION_LETTERS[action]
    return tuple(rounds)


def parse_situation(game: PokerGame, text: str) -> Situation:
    """The situation that `text` describes in `game`.

    Raises ConfigError with one sentence about the first thing wrong: a field too many, an unknown or repeated card, a
    wrong number of cards, an illegal action, betting that goes on when it is over, or nobody left to act.
    """
    rules = game.rules
    fields = [field.strip() for field in text.split("/")]
    _check_fields(rules, text, fields)
    cards = _read_cards(rules, "A hand", rules.hole_cards, fields[0])
    node = 0
    for (round_, kind), field in zip(_layout(rules), fields[1:], strict=False):
        node = _close_rounds(game, node, round_, field)
        if kind == "board":
            cards += _read_cards(rules, f"The {_board_name(rules, round_)}", rules.board_cards[round_], field)
        else:
            node = _read_betting(game, node, field)
    _check_turn(game, node, len(cards) - rules.hole_cards)
    given = _give_suits(rules, cards)
    hole, board = tuple(given[: rules.hole_cards]), tuple(given[rules.hole_cards :])
    return Situation(game, hole, board, node, player=int(game.tree.actor[node]))


def _layout(rules: PokerRules) -> list[tuple[int, str]]:
    """What every field after the hole cards holds: (round, "board" or "betting")."""
    rounds = [(["board"] if new_cards else []) + ["betting"] for new_cards in rules.board_cards]
    return [(round_, kind) for round_, kinds in enumerate(rounds) for kind in kinds]


def _check_fields(rules: PokerRules, text: str, fields: list[str]) -> None:
    if not any(fields):
        raise ConfigError(
            f"The text {text!r} describes no situation of {rules.name}: begin with the "
            f"{_count(rules.hole_cards)} of the player to act."
        )
    layout = _layout(rules)
    if len(fields) > 1 + len(layout):
        names = [_board_name(rules, r) if kind == "board" else f"{round_name(rules, r)} betting" for r, kind in layout]
        raise ConfigError(
            f"{rules.name} takes at most {1 + len(layout)} fields between '/' ({', '.join(['hole cards', *names])}), "
            f"but {text!r} has {len(fields)}."
        )


def _board_name(rules: PokerRules, round_: int) -> str:
    name = round_name(rules, round_)
    return f"{name} board" if name.startswith("round") else name


def _close_rounds(game: PokerGame, node: int, round_: int, field: str) -> int:
    """The node where round `round_` has begun: betting that is still open before it is called or checked down."""
    tree = game.tree
    while tree.ended[node] == NOT_TERMINAL and tree.round[node] < round_:
        if not tree.legal[node, CALL]:
            raise ConfigError(
                f"The {round_name(game.rules, int(tree.round[node]))} betting is not over where the field {field!r} "
                "follows, and the player to act may not call or check."
            )
        node = int(tree.child[node, CALL])
    if tree.ended[node] != NOT_TERMINAL:
        letters = betting_letters(game, node)[-1]
        raise ConfigError(f"The betting {letters!r} ended the hand, but the field {field!r} follows.")
    return node


def _read_betting(game: PokerGame, node: int, field: str) -> int:
    """The node after the betting in `field`, which begins at `node` and stays in that node's round."""
    round_ = game.tree.round[node]
    letters = "".join(field.split())
    for position, letter in enumerate(letters):
        action = ACTION_KEYS.get(letter.lower())
        if action is None:
            raise ConfigError(
                f"{letter!r} in the betting {field!r} is no action: write f (fold), c or k (call or check), "
                "r or b (raise or bet)."
            )
        before = letters[:position]
        if game.tree.ended[node] != NOT_TERMINAL:
            raise ConfigError(f"The betting {field!r} goes on after {before!r}, which ended the hand.")
        if game.tree.round[node] != round_:
            raise ConfigError(
                f"The betting {field!r} goes on after {before!r}, which ended the round: what comes next belongs to a "
                "new field, after '/'."
            )
        if not game.tree.legal[node, action]:
            raise ConfigError(_illegal(game, node, letter, field, before))
        node = int(game.tree.child[node, action])
    return node


def _illegal(game: PokerGame, node: int, letter: str, field: str, before: str) -> str:
    allowed = " or ".join(f"{ACTION_LETTERS[a]} ({action_name(game, node, a)})" for a in legal_actions(game, node))
    place = f"after {before!r}" if before else "as the first action"
    name = round_name(game.rules, int(game.tree.round[node]))
    return f"The {name} betting {field!r} has {letter!r} {place}, where only {allowed} is allowed."


def _check_turn(game: PokerGame, node: int, board: int) -> None:
    """Refuse a position where nobody acts: the hand is over, or the round waits for cards that are not given."""
    letters, tree, rules = betting_letters(game, node), game.tree, game.rules
    if tree.actor[node] == TERMINAL:
        end = "ends the hand" if tree.ended[node] == FOLDED else "leads to the showdown"
        raise ConfigError(f"Nobody is left to act: the betting {letters[-1]!r} {end}.")
    round_ = int(tree.round[node])
    if board < sum(rules.board_cards[: round_ + 1]):
        before = f"the betting {letters[-2]!r}" if round_ else "the hole cards"
        raise ConfigError(
            f"Nobody can act yet: after {before} the {_board_name(rules, round_)} must follow in a field of its own, "
            f"{_count(rules.board_cards[round_])}."
        )


def _count(cards: int) -> str:
    return f"{cards} card" if cards == 1 else f"{cards} cards"


def _read_cards(rules: PokerRules, name: str, size: int, field: str) -> list[int]:
    """The cards in `field`, which must be `size`; a rank alone is -1 - rank."""
    suited = rules.num_suits > 1
    pieces = [piece for word in field.split() for piece in re.findall("10.?|..?" if suited else "10|.", word)]
    cards = [_read_card(rules, piece) for piece in pieces]
    if len(cards) != size:
        given = f"{field!r} holds {_count(len(cards))}" if cards else "none is given"
        raise ConfigError(f"{name} of {rules.name} is {_count(size)}, but {given}.")
    return cards


def _read_card(rules: PokerRules, piece: str) -> int:
    if 1 < rules.num_suits < 4 and (len(piece) == 1 or piece == "10"):
        try:
            return -1 - parse_card(rules, piece + rules.suit_symbols[0]) // rules.num_suits
        except ConfigError:
            pass  # so that the sentence below names the piece as it was written
    return parse_card(rules, piece)


def _give_suits(rules: PokerRules, cards: list[int]) -> list[int]:
    """`cards` with a suit for every rank that has none; raises ConfigError for a card that comes twice."""
    taken = [card for card in cards if card >= 0]
    for card in taken:
        if taken.count(card) > 1:
            raise ConfigError(f"The card {card_text(rules, card)} is given {taken.count(card)} times.")
    given = []
    for card in cards:
        rank = -1 - card
        free = [c for c in range(rank * rules.num_suits, (rank + 1) * rules.num_suits) if c not in taken]
        if card < 0 and not free:
            count = f"{rules.num_suits} cards of rank {rules.rank_symbols[rank]}"
            raise ConfigError(f"{rules.name} has only {count}, but more are given.")
        given.append(card if card >= 0 else free[0])
        taken.append(given[-1])
    return given
