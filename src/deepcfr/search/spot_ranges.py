"""Ranges of hold'em: as text in the usual notation, and as a policy has them after a line of betting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import comb

import numpy as np
import numpy.typing as npt
from pokerkit.analysis import parse_range as hands_of

from deepcfr.errors import ConfigError, GameError
from deepcfr.games.board_index import binomials, hand_numbers
from deepcfr.games.cards import all_hands, cards_text, hand_class, parse_card
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.public_state import PublicState
from deepcfr.games.rules import PRESETS
from deepcfr.policies.base import LadderPolicy, Player
from deepcfr.policies.query import hand_strategy, read_betting

Cards = npt.NDArray[np.uint8]
Doubles = npt.NDArray[np.float64]

HOLDEM = PRESETS["hunl-pot"]
UNIT = HOLDEM.unit_chips  # chips of a big blind
_CARDS = HOLDEM.num_cards
_DIGITS = 4  # of a weight in text


def parse_range(text: str) -> Doubles:
    """The weight of every hand, [1326], of a range such as `77+,A5s-A2s,KQo:0.5`; pokerkit reads the notation.

    Raises ConfigError for what is not a range.
    """
    weights = np.zeros(comb(HOLDEM.num_cards, 2))
    for part in filter(None, map(str.strip, re.split(r"[,;\s]+", text))):
        name, _, weight = part.partition(":")
        if weight and not re.fullmatch(r"0?\.\d+|[01]|1\.0*", weight):
            raise ConfigError(f"The weight of '{part}' must be a number from 0 to 1.")
        try:
            hands = [sorted(parse_card(HOLDEM, repr(card)) for card in hand) for hand in hands_of(*_expanded(name))]
            if any(len(hand) != 2 for hand in hands):
                raise ValueError(name)
        except (ValueError, KeyError, IndexError) as error:
            raise ConfigError(
                f"'{name}' is not a part of a range: write hands such as 77+, A5s-A2s, KQo or AsKd."
            ) from error
        weights[hand_rows(np.array(hands, np.uint8))] = float(weight or 1)
    return weights


def hand_rows(holes: Cards) -> npt.NDArray[np.int32]:
    """The places of hands [H, 2] in a range."""
    rows: npt.NDArray[np.int32] = hand_numbers(holes, binomials(HOLDEM.num_cards, 2))
    return rows


def _expanded(name: str) -> list[str]:
    """The classes of `A5s-A2s`, which pokerkit does not read; another name alone."""
    ranks = HOLDEM.rank_symbols
    match = re.fullmatch(rf"([{ranks}])([{ranks}])([so]?)-\1([{ranks}])\3", name)
    if not match or match[1] in (match[2], match[4]):
        return [name]
    first, last = sorted((ranks.index(match[2]), ranks.index(match[4])))
    return [f"{match[1]}{rank}{match[3]}" for rank in ranks[first : last + 1] if rank != match[1]]


def range_text(weights: Doubles, board: Sequence[int] = ()) -> str:
    """Weights [1326] as text that `parse_range` reads: kinds such as AKs if all their hands have one weight, else hands.

    Hands with a card of `board` are left out, and make no difference to their kind. Weights have four decimals.
    """
    holes = all_hands(HOLDEM.num_cards, 2)
    kinds: dict[str, list[int]] = {}
    for h in np.flatnonzero(~np.isin(holes, board).any(1))[::-1].tolist():
        kinds.setdefault(hand_class(HOLDEM, holes[h]), []).append(h)
    rounded = np.round(weights[hand_rows(holes)], _DIGITS)
    parts = []
    for kind, hands in kinds.items():
        if len(set(rounded[hands])) == 1:
            parts.append((kind, rounded[hands[0]]))
        else:
            parts += [(cards_text(HOLDEM, holes[h][::-1]).replace(" ", ""), rounded[h]) for h in hands]
    return ",".join(name if weight == 1 else f"{name}:{weight:g}" for name, weight in parts if weight)


def range_cells(weights: Doubles) -> dict[str, float]:
    """The mean weight of each kind of hands with a weight, such as AKs."""
    holes = all_hands(_CARDS, 2)
    kinds: dict[str, list[float]] = {}
    for hole, weight in zip(holes, weights[hand_rows(holes)].tolist(), strict=True):
        kinds.setdefault(hand_class(HOLDEM, hole), []).append(weight)
    return {kind: sum(each) / len(each) for kind, each in kinds.items() if any(each)}


def ranges_after(policy: Player, line: str, board: Sequence[int]) -> tuple[PublicState, tuple[Doubles, Doubles]]:
    """The state after a line of betting, and each player's range there, [1326], if both play as `policy` does.

    A weight is the probability of the player's own actions, divided by the largest one of its hands. `line` has the actions
    of each round, with `/` between rounds, as in `policies.query`: `rc` or `rc/ccrc`. Raises ConfigError if it is not legal
    or does not end where the last card of `board` is dealt; GameError if the policy does not play hold'em, or draws one of
    several policies for each deal.
    """
    game = policy.game
    start = game.state() if isinstance(game, PokerGame | LadderGame) else None
    if not start or (start.rules.num_cards, start.rules.hole_cards, start.rules.unit) != (_CARDS, 2, HOLDEM.unit):
        raise GameError(f"Ranges of a spot come from hold'em, and '{game.name}' is not it.")
    if isinstance(policy, LadderPolicy) and policy.draws:
        raise GameError(f"The policy ({policy.kind}) draws one of {policy.draws} policies for each deal.")
    dealt = start.rules.board_cards
    state: PublicState = start
    holes = all_hands(_CARDS, 2)
    holes = holes[~np.isin(holes, board).any(1)]
    reach = np.ones((2, len(holes)))
    for part in line.split("/"):
        for before, action in read_betting(state, part.strip()):
            known = board[: sum(dealt[: before.round + 1])]
            reach[before.actor] *= hand_strategy(policy, before, holes, known)[:, action]
            state = before.after(action)
    if state.over or state.betting[-1] or sum(dealt[: state.round + 1]) != len(board):
        raise ConfigError(
            f"The line {line!r} must end where the last of the {len(board)} cards on the board are dealt."
        )
    weights = np.zeros((2, comb(_CARDS, 2)))
    weights[:, hand_rows(holes)] = reach / np.maximum(reach.max(1, keepdims=True), np.finfo(np.float64).tiny)
    return state, (weights[0], weights[1])
