"""Query a policy in text: the situation `As Kd / r / Qs 7h 2c` is answered by the policy's strategy there.

Fields are separated by `/`: the hole cards of the player to act, then for every round its new board cards (no field if
it deals none) and its betting. In betting, `f` folds, `c` or `k` calls or checks, `r` or `b` raises or bets. Later
fields may be left out. Betting that is still open when a later field follows is called (`r` means `rc`) or checked down
(an empty field means `cc`). So the example is a flop after a raise and a call, with the cards of the player who acts
first on the flop. In games with bet sizes `r` and `b` have a size (see `BetSizeState`), as in `As Kd / r4 c / Qs 7h 2c
/ k b0.5`.

In decks of two or three suits a rank alone is also a card: in the order of the fields, it gets the first suit that no
other card of its rank in the text has.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import Cards, Doubles, Infosets
from deepcfr.game.betting import CALL
from deepcfr.game.cards import cards_text, give_suits, pack_cards, read_card, split_cards
from deepcfr.game.poker import Poker
from deepcfr.game.public_state import PublicState
from deepcfr.game.rules import PokerRules
from deepcfr.game.tree_game import TreeGame
from deepcfr.policy.base import Policy
from deepcfr.policy.tables import table_of

_HOLDEM_BOARD = (0, 3, 1, 1)
_HOLDEM_ROUNDS = ("pre-flop", "flop", "turn", "river")


@dataclass(frozen=True)
class Situation:
    """A decision of a player, with everything that this player knows."""

    state: PublicState
    hole: tuple[int, ...]  # the cards of the player to act
    board: tuple[int, ...]  # dealt so far, in order

    @property
    def text(self) -> str:
        """The situation in the form that `parse_situation` reads, with all betting written out."""
        rules, board = self.state.rules, list(self.board)
        fields = [cards_text(rules, self.hole)]
        for new_cards, letters in zip(rules.board_cards, self.state.betting, strict=False):
            fields += [cards_text(rules, board[:new_cards])] if new_cards else []
            fields.append(letters)
            del board[:new_cards]
        while not fields[-1]:
            fields.pop()
        return " / ".join(fields)


@dataclass(frozen=True)
class Answer:
    """A policy's strategy in a situation; amounts are in the game's unit."""

    situation: Situation
    policy: str  # the policy's kind
    probabilities: dict[str, float]  # by the names of the legal actions

    def describe(self) -> str:
        """The answer as text: the situation, the player to act with pot and amount to call, and a line for every action."""
        state = self.situation.state
        call = f"{state.to_call:g} to call" if state.to_call else "nothing to call"
        pot = f"pot {state.pot:g} {state.rules.unit}"
        where = f"{round_name(state.rules, state.round)}, player {state.actor} to act, {pot}, {call}"
        width = max(map(len, self.probabilities))
        lines = [f"  {name:<{width}}  {share:7.2%}" for name, share in self.probabilities.items()]
        return "\n".join([self.situation.text, where, *lines])

    def facts(self) -> dict[str, object]:
        """The answer as a dictionary for JSON."""
        state = self.situation.state
        return {
            "game": state.rules.name,
            "unit": state.rules.unit,
            "policy": self.policy,
            "situation": self.situation.text,
            "player": state.actor,
            "round": round_name(state.rules, state.round),
            "pot": state.pot,
            "to_call": state.to_call,
            "probabilities": self.probabilities,
        }


@dataclass(frozen=True)
class InfosetAnswer:
    """A policy's strategy at an infoset of a game whose histories are listed."""

    game: str
    policy: str  # the policy's kind
    player: int
    infoset: str
    probabilities: dict[str, float]  # by the names of the legal actions

    def describe(self) -> str:
        """Return the answer as text: the infoset, the player to act, and a line for every action."""
        width = max(map(len, self.probabilities))
        lines = [f"  {name:<{width}}  {share:7.2%}" for name, share in self.probabilities.items()]
        return "\n".join([self.infoset, f"player {self.player} to act", *lines])

    def facts(self) -> dict[str, object]:
        """Return the answer as a dictionary for JSON."""
        return asdict(self)


def query_infoset(policy: Policy, game: TreeGame, name: str) -> InfosetAnswer:
    """Return the strategy of `policy` at the infoset of a name. Raises ConfigError if there is none."""
    tree = game.explicit
    if name not in tree.infoset_names:
        near = difflib.get_close_matches(name, tree.infoset_names)
        shown = near or tree.infoset_names[:3]
        raise ConfigError(f"'{game.name}' has no infoset {name!r}; some are {', '.join(map(repr, shown))}.")
    infoset = tree.infoset_names.index(name)
    shares = table_of(policy)[infoset, : tree.infoset_actions[infoset]].tolist()
    names = [game.action_name(int(column)) for column in game.columns[infoset]]
    return InfosetAnswer(
        game.name, policy.kind, int(tree.infoset_actor[infoset]), name, dict(zip(names, shares, strict=False))
    )


def query(policy: Policy, text: str) -> Answer:
    """The strategy of `policy` in the situation that `text` describes.

    Raises ConfigError if the text is not a valid situation, and GameError if the policy does not play poker.
    """
    situation = parse_situation(poker_state(policy), text)
    state = situation.state
    row = hand_strategy(policy, state, np.array([situation.hole], np.uint8), situation.board)[0]
    return Answer(situation, policy.kind, {state.name(action): float(row[action]) for action in state.legal()})


def poker_state(policy: Policy) -> PublicState:
    """The start of a policy's game. Raises GameError unless it is poker."""
    game = policy.game
    if not isinstance(game, Poker):
        raise GameError(f"Only poker games have situations in text, but {game.name} is not one.")
    return game.state()


def reach_after(
    policy: Policy, line: str, holes: Cards, board: Sequence[int], least: float = 0.0
) -> tuple[PublicState, Doubles]:
    """The state after a line of betting, and the probability of each player's own actions with each of `holes`, [2, H].

    `line` has the actions of each round, with `/` between rounds; no hand of `holes` [H, hole cards] has a card of
    `board`, which may be longer than the line needs. Every action has a probability of `least` at least. Raises
    ConfigError for the first action that is not legal and for a board that is too short, and what `poker_state` raises.
    """
    state = poker_state(policy)
    dealt, reach = state.rules.board_cards, np.ones((2, len(holes)))
    for before, action in read_line(state, line):
        known = board[: sum(dealt[: before.round + 1])]
        if len(known) < sum(dealt[: before.round + 1]):
            raise ConfigError(f"The betting {line!r} needs more cards on the board than {len(board)}.")
        reach[before.actor] *= np.maximum(hand_strategy(policy, before, holes, known)[:, action], least)
        state = before.after(action)
    return state, reach


def read_line(state: PublicState, line: str) -> Iterator[tuple[PublicState, int]]:
    """The decisions of a line of betting from the start of the hand, with the action of each; `/` stands between
    rounds.

    Raises ConfigError for the first action that is not legal, and for a field before its round or after the hand.
    """
    for round_, field in enumerate(map(str.strip, line.split("/"))):
        misplaced = bool(field) if state.over else state.round != round_
        if misplaced:
            what = "hand is" if state.over else f"{round_name(state.rules, state.round)} betting is not"
            raise ConfigError(
                f"The betting {line!r} has {field!r} in its field {round_ + 1}, but the {what} over there."
            )
        for before, action in read_betting(state, field):
            yield before, action
            state = before.after(action)


def hand_strategy(policy: Policy, state: PublicState, holes: Cards, board: Sequence[int]) -> Doubles:
    """The strategy of `policy` at a decision with each of `holes` (uint8 [H, hole cards]) on `board`, float64 [H, A]."""
    assert isinstance(policy.game, Poker)
    infosets = infosets_with(policy.game, state, holes, board)
    _, example, canonical = np.unique(pack_cards(infosets.cards.cpu().numpy()), return_index=True, return_inverse=True)
    return policy.probabilities(infosets[torch.from_numpy(example)]).double().cpu().numpy()[canonical]


def infosets_with(game: Poker, state: PublicState, holes: Cards, board: Sequence[int]) -> Infosets:
    """The infosets of the player to act with each of `holes` [H, hole cards], H rows, with cards in the game's encoding."""
    rows = torch.from_numpy(game.visible_cards(holes, board)).to(game.device)
    return Infosets(torch.full((len(rows),), game.node_of(state), device=game.device), rows)


def round_name(rules: PokerRules, round_: int) -> str:
    """The name of a round, such as `flop` in hold'em games and `round 2` in others."""
    holdem = rules.hole_cards == 2 and rules.num_rounds > 1
    if holdem and rules.board_cards == _HOLDEM_BOARD[: rules.num_rounds]:
        return _HOLDEM_ROUNDS[round_]
    return f"round {round_ + 1}"


def parse_situation(start: PublicState, text: str) -> Situation:
    """Parse the situation that `text` describes in the game that begins at `start`.

    Raises ConfigError with one sentence about the first problem: too many fields, an unknown or repeated card, a wrong
    number of cards, an illegal action, an action after the betting has ended, or no player left to act.
    """
    rules, state = start.rules, start
    fields = [field.strip() for field in text.split("/")]
    _check_fields(rules, text, fields)
    cards = read_cards(rules, "A hand", rules.hole_cards, fields[0])
    for (round_, kind), field in zip(_layout(rules), fields[1:], strict=False):
        state = _close_rounds(state, round_, field)
        if kind == "board":
            cards += read_cards(rules, f"The {_board_name(rules, round_)}", rules.board_cards[round_], field)
        else:
            for before, action in read_betting(state, field):
                state = before.after(action)
    _check_turn(state, len(cards) - rules.hole_cards)
    given = give_suits(rules, cards)
    return Situation(state, tuple(given[: rules.hole_cards]), tuple(given[rules.hole_cards :]))


def _layout(rules: PokerRules) -> list[tuple[int, str]]:
    """The content of every field after the hole cards: (round, "board" or "betting")."""
    rounds = [(["board"] if new_cards else []) + ["betting"] for new_cards in rules.board_cards]
    return [(round_, kind) for round_, kinds in enumerate(rounds) for kind in kinds]


def _check_fields(rules: PokerRules, text: str, fields: list[str]) -> None:
    if not any(fields):
        raise ConfigError(
            f"The text {text!r} is not a situation of {rules.name}: begin with the "
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


def _close_rounds(state: PublicState, round_: int, field: str) -> PublicState:
    """The state at the start of round `round_`: open betting before it is called or checked down."""
    while not state.over and state.round < round_:
        if CALL not in state.legal():
            raise ConfigError(
                f"The {round_name(state.rules, state.round)} betting is not over before the field {field!r}, "
                "and the player to act may not call or check."
            )
        state = state.after(CALL)
    if state.over:
        raise ConfigError(f"The betting {state.betting[-1]!r} ended the hand, but the field {field!r} follows.")
    return state


def read_betting(state: PublicState, field: str) -> Iterator[tuple[PublicState, int]]:
    """The decisions of the betting in `field`, which starts at `state` and stays in its round, with the action of each.

    Raises ConfigError for the first action that is not legal.
    """
    round_, tokens = state.round, state.split(field)
    for position, token in enumerate(tokens):
        if not state.understands(token):
            raise ConfigError(f"{token!r} in the betting {field!r} is not an action: write {state.words}.")
        before = state.gap.join(tokens[:position])
        if state.over:
            raise ConfigError(f"The betting {field!r} continues after {before!r}, which ended the hand.")
        if state.round != round_:
            raise ConfigError(
                f"The betting {field!r} continues after {before!r}, which ended the round: put the next action in a "
                "new field, after '/'."
            )
        action = state.read(token)
        if action is None:
            raise ConfigError(_illegal(state, token, field, before))
        yield state, action
        state = state.after(action)


def _illegal(state: PublicState, token: str, field: str, before: str) -> str:
    allowed = " or ".join(f"{state.token(a)} ({state.name(a)})" for a in state.legal())
    place = f"after {before!r}" if before else "as the first action"
    name = round_name(state.rules, state.round)
    return f"The {name} betting {field!r} has {token!r} {place}, where only {allowed} is allowed."


def _check_turn(state: PublicState, board: int) -> None:
    """Raise ConfigError for a state where nobody acts: the hand is over, or the round's cards are missing."""
    letters, rules = state.betting, state.rules
    if state.over:
        end = "leads to the showdown" if state.showdown else "ends the hand"
        raise ConfigError(f"Nobody is left to act: the betting {letters[-1]!r} {end}.")
    if board < sum(rules.board_cards[: state.round + 1]):
        before = f"the betting {letters[-2]!r}" if state.round else "the hole cards"
        raise ConfigError(
            f"Nobody can act yet: after {before} the {_board_name(rules, state.round)} must follow in a field of its own, "
            f"{_count(rules.board_cards[state.round])}."
        )


def _count(cards: int) -> str:
    return f"{cards} card" if cards == 1 else f"{cards} cards"


def read_cards(rules: PokerRules, name: str, size: int, field: str) -> list[int]:
    """The `size` cards in `field`; a rank without a suit becomes -1 - rank."""
    cards = [read_card(rules, piece) for piece in split_cards(rules, field)]
    if len(cards) != size:
        given = f"{field!r} holds {_count(len(cards))}" if cards else "none is given"
        raise ConfigError(f"{name} of {rules.name} is {_count(size)}, but {given}.")
    return cards
