"""A policy of a raise-ladder game queried in text: `As Kd / r4 c / Qs 7h 2c / k b0.5`.

Fields are separated by `/`, as in `deepcfr.policies.query`: the hole cards of the player to act, the betting of the first
round, then for every round its board cards and its betting. In betting, `f` folds, `c` or `k` calls or checks, and `r` or
`b` with a number raises or bets by a rung: the total in units where the ladder is of chips (`r4` is a raise to four big
blinds), the share of the pot where it is of the pot (`b0.5`); `a` puts in the whole stack where the ladder has that.
Betting that is still open when a later field follows is called, or checked down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepcfr.errors import ConfigError, GameError
from deepcfr.games.betting import CALL, FOLD, FOLDED, NOT_TERMINAL
from deepcfr.games.cards import cards_text, parse_card
from deepcfr.games.ladder_betting import (
    ACTOR,
    ALL_IN,
    CHIPS,
    ENDED,
    ROUND,
    RUNG,
    RUNGS,
    START,
    LadderGame,
    advance,
    first_positions,
    is_legal,
    raise_total,
)
from deepcfr.policies.ladder import LadderPolicy, drawn_members
from deepcfr.policies.query import round_name

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LadderSituation:
    """A point at which a player must act, with all that this player knows."""

    game: LadderGame
    hole: tuple[int, ...]
    board: tuple[int, ...]
    position: Ints  # [ENTRIES]
    text: str  # with nothing implied


@dataclass(frozen=True)
class LadderAnswer:
    """What a policy does in a situation; amounts are in the game's unit."""

    situation: LadderSituation
    policy: str
    probabilities: dict[str, float]  # of the legal actions by name

    def describe(self) -> str:
        """The answer for people: the situation, who acts for how much, and one line for every action."""
        facts = self.facts()
        call = f"{facts['to_call']:g} to call" if facts["to_call"] else "nothing to call"
        unit = self.situation.game.unit
        where = f"{facts['round']}, player {facts['player']} to act, pot {facts['pot']:g} {unit}, {call}"
        width = max(map(len, self.probabilities))
        lines = [f"  {name:<{width}}  {share:7.2%}" for name, share in self.probabilities.items()]
        return "\n".join([self.situation.text, where, *lines])

    def facts(self) -> dict[str, object]:
        """The answer for programs, as JSON can hold it."""
        game, position = self.situation.game, self.situation.position
        return {
            "game": game.name,
            "unit": game.unit,
            "policy": self.policy,
            "situation": self.situation.text,
            "player": int(position[ACTOR]),
            "round": round_name(game.rules.deck, int(position[ROUND])),
            "pot": pot(game, position),
            "to_call": to_call(game, position),
            "probabilities": self.probabilities,
        }


def ladder_query(policy: LadderPolicy, text: str) -> LadderAnswer:
    """Ask `policy` what it does in the situation that `text` describes.

    Raises ConfigError if the text describes none, and GameError for a policy that draws one of several for each deal.
    """
    if members := drawn_members(policy):
        raise GameError(
            f"The policy ({policy.kind}) draws one of {members} policies for each game, so what it does in a situation "
            "depends on the draw: ask its members, or an ensemble by sum."
        )
    situation = parse_ladder_situation(policy.game, text)
    game, position = policy.game, situation.position
    player = int(position[ACTOR])
    views = policy.look(_deal(situation, player), np.zeros(1, np.int64), 0)
    row = policy.probabilities(position[None], views)[0]
    shares = {action_name(game, position, action): float(row[action]) for action in legal_of(game, position)}
    return LadderAnswer(situation, policy.kind, shares)


def _deal(situation: LadderSituation, player: int) -> npt.NDArray[np.uint8]:
    """A deal in which the player has its cards and the board begins as known; what it does not know is any other card."""
    rules = situation.game.rules
    known = {*situation.hole, *situation.board}
    others = iter(card for card in range(rules.deck.num_cards) if card not in known)
    hidden = [next(others) for _ in range(rules.hole_cards)]
    hands = [list(situation.hole), hidden] if player == 0 else [hidden, list(situation.hole)]
    board = [*situation.board, *(next(others) for _ in range(sum(rules.board_cards) - len(situation.board)))]
    return np.array([[*hands[0], *hands[1], *board]], np.uint8)


def legal_of(game: LadderGame, position: Ints) -> list[int]:
    """The legal actions at a decision, ascending."""
    return [action for action in range(game.num_actions) if is_legal(game.ladder, position, action)]


def pot(game: LadderGame, position: Ints) -> float:
    """What both players have put in, in units."""
    return float(position[CHIPS : CHIPS + 2].sum()) / game.rules.unit_chips


def to_call(game: LadderGame, position: Ints) -> float:
    """What the player to act must add to call, in units."""
    chips = position[CHIPS : CHIPS + 2]
    return float(chips.max() - chips[position[ACTOR]]) / game.rules.unit_chips


def action_name(game: LadderGame, position: Ints, action: int) -> str:
    """What players call a legal action at a decision, such as `raise to 4` or `bet 0.5 pot (to 3)`."""
    if action == FOLD:
        return "fold"
    if action == CALL:
        return "call" if to_call(game, position) > 0 else "check"
    blinds, round_ = game.rules.blinds, position[ROUND]
    live = position[RUNGS] > 0 or (round_ == 0 and blinds[0] != blinds[1])
    earlier = position[START] if round_ else 0  # amounts are those of the round, as players say them
    total = (raise_total(game.ladder, position, action - RUNG) - earlier) / game.rules.unit_chips
    size = int(game.ladder.rungs[round_, action - RUNG])
    if size != ALL_IN and game.ladder.of_pot[round_]:
        return f"{'raise' if live else 'bet'} {size / 100:g} pot (to {total:g})"
    return f"{'raise' if live else 'bet'} to {total:g}{' all-in' if size == ALL_IN else ''}"


def action_token(game: LadderGame, position: Ints, action: int) -> str:
    """A legal action at a decision as the text form has it."""
    if action in (FOLD, CALL):
        return "fc"[action]
    size = int(game.ladder.rungs[position[ROUND], action - RUNG])
    if size == ALL_IN:
        return "a"
    return f"r{size / (100 if game.ladder.of_pot[position[ROUND]] else game.rules.unit_chips):g}"


def read_action(game: LadderGame, position: Ints, token: str) -> int:
    """The legal action that `token` names at a decision. Raises ConfigError if there is none."""
    legal = {action_token(game, position, action): action for action in legal_of(game, position)}
    simple = token.lower().replace("b", "r", 1) if token[:1] in "bB" else token.lower()
    if re.fullmatch(r"r\d+(\.\d+)?", simple):
        simple = f"r{float(simple[1:]):g}"
    simple = {"k": "c"}.get(simple, simple)
    if simple not in legal:
        raise ConfigError(f"'{token}' is no action here, where there are {', '.join(legal)}.")
    return legal[simple]


def parse_ladder_situation(game: LadderGame, text: str) -> LadderSituation:
    """The situation that `text` describes. Raises ConfigError with one sentence about the first thing wrong."""
    rules = game.rules
    fields = [field.strip() for field in text.split("/")]
    hole = _cards(game, fields[0], rules.hole_cards, "the hand")
    layout = [(r, kind) for r, new in enumerate(rules.board_cards) for kind in (["board"] if new else []) + ["betting"]]
    if len(fields) > 1 + len(layout):
        raise ConfigError(
            f"{game.name} takes at most {1 + len(layout)} fields between '/', but {text!r} has {len(fields)}."
        )
    position = first_positions(game.ladder, 1)[0]
    board: list[int] = []
    written = [cards_text(rules.deck, hole)]
    for (round_, kind), field in zip(layout, fields[1:], strict=False):
        _close(game, position, round_, written)
        if kind == "board":
            board += _cards(game, field, rules.board_cards[round_], f"the {round_name(rules.deck, round_)}")
            written.append(cards_text(rules.deck, board[-rules.board_cards[round_] :]))
        else:
            written.append(_bet(game, position, field, round_))
    _check(game, position, hole, board)
    return LadderSituation(game, tuple(hole), tuple(board), position, " / ".join(written).rstrip(" /"))


def _cards(game: LadderGame, field: str, count: int, what: str) -> list[int]:
    pieces = re.findall("10.?|..?" if game.rules.num_suits > 1 else "10|.", "".join(field.split()))
    if len(pieces) != count:
        raise ConfigError(f"In {game.name} {what} has {count} cards, but {field!r} holds {len(pieces)}.")
    return [parse_card(game.rules.deck, piece) for piece in pieces]


def _close(game: LadderGame, position: Ints, round_: int, written: list[str]) -> None:
    """Call or check until round `round_` has begun; what is implied is added to the last text of `written`."""
    while position[ENDED] == NOT_TERMINAL and position[ROUND] < round_:
        advance(game.ladder, position, CALL)
        written[-1] = f"{written[-1]} c".strip()
    if position[ENDED] != NOT_TERMINAL:
        raise ConfigError(f"The hand is over after {written[-1]!r}, but a further field follows.")


def _bet(game: LadderGame, position: Ints, field: str, round_: int) -> str:
    tokens = re.findall(r"[a-zA-Z][\d.]*|\S", field)
    done: list[str] = []
    for token in tokens:
        if position[ENDED] != NOT_TERMINAL or position[ROUND] != round_:
            raise ConfigError(f"The betting {field!r} goes on after {' '.join(done)!r}, which ended the round.")
        action = read_action(game, position, token)
        done.append(action_token(game, position, action))
        advance(game.ladder, position, action)
    return " ".join(done)


def _check(game: LadderGame, position: Ints, hole: list[int], board: list[int]) -> None:
    """Refuse cards that come twice, and a position where nobody acts."""
    rules = game.rules
    cards = [*hole, *board]
    for card in cards:
        if cards.count(card) > 1:
            raise ConfigError(f"The card {cards_text(rules.deck, [card])} is given {cards.count(card)} times.")
    if position[ENDED] != NOT_TERMINAL:
        end = "a fold" if position[ENDED] == FOLDED else "the showdown"
        raise ConfigError(f"Nobody is left to act: the betting led to {end}.")
    if len(board) < sum(rules.board_cards[: position[ROUND] + 1]):
        raise ConfigError(
            f"Nobody can act yet: the cards of the {round_name(rules.deck, int(position[ROUND]))} must follow."
        )
