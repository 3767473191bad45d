"""The public tree of a raise-ladder game, if it is small enough to list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepcfr.games.betting import MOST_NODES, BettingState, PublicTree, too_large, unroll
from deepcfr.games.ladder import LadderRules
from deepcfr.games.ladder_betting import (
    ACTOR,
    CHIPS,
    ENDED,
    ROUND,
    RUNG,
    RUNGS,
    advance,
    compile_ladder,
    count_positions,
    first_positions,
)
from deepcfr.games.ladder_betting import legal_actions as legal_at
from deepcfr.games.rules import no_limit

_ADVICE = "networks, search and exact evaluation need fewer sizes or raises, and only 'solve' with mccfr does not"


@dataclass(frozen=True)
class _Stepped(BettingState):
    """A public position with its row in the betting machine, which decides what follows."""

    row: tuple[int, ...] = ()


def ladder_tree(rules: LadderRules, line: Sequence[int] = ()) -> PublicTree:
    """The public tree of a raise-ladder game that begins with the actions `line`.

    Raises GameError for more positions than `betting.MOST_NODES`.
    """
    ladder, deck = compile_ladder(rules), no_limit(rules.deck, rules.stack)

    def after(state: BettingState) -> dict[int, BettingState]:
        assert isinstance(state, _Stepped)
        place = sum(map(len, state.actions))
        if place < len(line):
            return {line[place]: next_position(state, line[place])}
        legal = np.flatnonzero(legal_at(ladder, np.array(state.row)[None])[0])
        return {action: next_position(state, action) for action in legal.tolist()}

    def next_position(state: _Stepped, action: int) -> _Stepped:
        row = np.array(state.row)
        advance(ladder, row, action)
        chips = (int(row[CHIPS]), int(row[CHIPS + 1]))
        added = float(chips[state.actor] - state.chips[state.actor])
        actions = (*state.actions[:-1], (*state.actions[-1], added))
        if not row[ENDED] and row[ROUND] > state.round:
            actions = (*actions, ())
        return _Stepped(
            round=int(row[ROUND]),
            actor=int(row[ACTOR]),
            chips=chips,
            raises=int(row[RUNGS]).bit_count(),
            actions=actions,
            ended=int(row[ENDED]),
            row=tuple(row.tolist()),
        )

    start = first_positions(ladder, 1)[0]
    if not line and count_positions(ladder, start, MOST_NODES) > MOST_NODES:
        raise too_large(deck.name, _ADVICE)
    first = _Stepped(round=0, actor=int(start[ACTOR]), chips=deck.blinds, row=tuple(start.tolist()))
    return unroll(first, after, deck, RUNG + ladder.rungs.shape[1], _ADVICE)
