"""External-sampling Monte Carlo CFR on games with bet sizes: the betting tree is implicit, and tables are indexed directly.

**Infosets.** A row of the tables stands for the round, the bucket of the player's cards, the number of earlier rounds
in which each player raised (Lin 2024, figure 4), the octave of the pot at the start of the round, and all actions of
the round. So a player remembers of earlier rounds who raised and how large the pot became, but not each size. This is
an abstraction with imperfect recall; it is exact where a game has one round.

**Direct index instead of a hash.** All parts of a row's name are small numbers, so its index is a sum of products. The
rows of a round with the same bucket, history and pot lie together, and a traversal visits most of them. Pages of zeros
take no memory until a traversal visits them, and most impossible combinations are never touched.

**Kernels.** Traversals run one after the other, depth first, on a stack of positions of a few kilobytes. Random choices
are hashes of (stream, traversal, history), as in `deepcfr.sample.mccfr`, so they do not depend on chunks or threads.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepcfr.core.compiled import nb
from deepcfr.core.errors import CheckpointError
from deepcfr.core.types import Cards, Doubles, Ints
from deepcfr.game.bet_size_betting import (
    ACTOR,
    BET,
    BETS,
    ENDED,
    ENTRIES,
    HISTORY,
    OPENED,
    RAISED,
    ROUND,
    START,
    BetSizes,
    advance,
    begin,
    gain,
    is_legal,
)
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.betting import CALL, FOLD, NOT_TERMINAL
from deepcfr.game.cards import address_of, uniform_at
from deepcfr.game.poker import PokerGame
from deepcfr.sample.mccfr import PLAIN, Decay, floor_after, normalise, sample, shaped
from deepcfr.sample.traversal_tree import Situations, TableLayout, table_layout

Table = npt.NDArray[np.floating] | npt.NDArray[np.uint8]
FULL = 255  # the largest probability of a row in the compact form
_PIECE = 1 << 22  # entries per step of the conversion: a few megabytes


class BetSizeLayout(NamedTuple):
    """Index of a row: start + ((bucket * histories + history) * pots + pot) * block + offset of the round's actions."""

    start: Ints  # [R]
    block: Ints  # [R] entries for one bucket, history and pot
    pots: Ints  # [R] number of octaves of the pot at the start of the round
    offset: Ints  # [R, 2 << K] by opened << K | sizes; -1 where impossible
    octave: int  # half of the smallest pot, in chips
    size: int  # number of entries

    @property
    def blocks(self) -> list[list[tuple[int, int]]]:
        """As in `TableLayout`."""
        widths = [(round_ + 1) ** 2 * int(size) for round_, size in enumerate(self.pots * self.block)]
        return [[place] for place in zip(self.start.tolist(), widths, strict=True)]


def hand_layout(game: PokerGame | BetSizePoker, counts: tuple[int, ...]) -> TableLayout | BetSizeLayout:
    """The layout of a poker game's tables with `counts` buckets in each round."""
    return bet_size_layout(game, counts) if isinstance(game, BetSizePoker) else table_layout(game.tree, counts)


def bet_size_layout(game: BetSizePoker, counts: tuple[int, ...]) -> BetSizeLayout:
    """The layout of tables with `counts` buckets in each round. A row has entries for fold, call and higher sizes."""
    bets = game.bets
    rounds, most = len(bets.length), bets.sizes.shape[1]
    offset = np.full((rounds, 2 << most), -1, np.int64)
    start, block, pots = (np.zeros(rounds, np.int64) for _ in range(3))
    size = 0
    octave = max(game.rules.blinds)
    for round_ in range(rounds):
        own = int(bets.length[round_])
        for opened in (0, 1):
            for chosen in range(1 << own):
                if chosen.bit_count() <= bets.most[round_]:
                    offset[round_, opened << most | chosen] = block[round_]
                    block[round_] += BET + own - chosen.bit_length()
        largest = _largest_start(game, round_)
        pots[round_] = (largest // octave).bit_length()
        start[round_] = size
        size += counts[round_] * (round_ + 1) ** 2 * int(pots[round_] * block[round_])
    return BetSizeLayout(start, block, pots, offset, octave, size)


def _largest_start(game: BetSizePoker, round_: int) -> int:
    """The largest contribution of a player at the start of a round, in chips."""
    rules, bets = game.source, game.bets
    if round_ == 0:
        return max(rules.blinds)
    if rules.measure[0] == "chips" and round_ == 1 and not rules.all_in[0]:
        return min(max(*rules.blinds, *(int(size) for size in bets.sizes[0])), rules.stack)
    return rules.stack


@nb.njit(cache=True, nogil=True)
def row_of(layout: BetSizeLayout, position: Ints, bucket: int) -> int:
    """Index of the first entry of a decision's row. Its entries are fold, call and the sizes above the last one."""
    round_ = position[ROUND]
    history = position[RAISED] * (round_ + 1) + position[RAISED + 1]
    pot = 0
    while layout.octave << (pot + 1) <= position[START]:
        pot += 1
    half = layout.offset.shape[1] // 2
    within = layout.offset[round_, position[OPENED] * half + position[BETS]]
    place = (bucket * (round_ + 1) ** 2 + history) * layout.pots[round_] + pot
    return layout.start[round_] + place * layout.block[round_] + within


@nb.njit(cache=True, nogil=True)
def lowest_size(position: Ints) -> int:
    """The lowest size above all chosen sizes."""
    chosen, size = position[BETS], 0
    while chosen >> size:
        size += 1
    return size


@nb.njit(cache=True, nogil=True)
def strategy_at(
    bets: BetSizes, table: Table, at: int, position: Ints, floor: float, legal: Ints, share: Doubles
) -> int:
    """Legal actions and their probabilities: proportional to the row's positive entries, uniform where there are none.

    Fills the first n places of `legal` and `share` and returns n. `floor` is applied as in `sample.mccfr`.
    """
    count, total = 0, 0.0
    lowest = lowest_size(position)
    for action in range(BET + bets.length[position[ROUND]]):
        if action >= BET and action - BET < lowest:
            continue
        if is_legal(bets, position, action):
            entry = action if action < BET else action - lowest
            positive = max(float(table[at + entry]), 0.0)  # read once: another thread may change it
            legal[count], share[count] = action, positive
            total += positive
            count += 1
    normalise(share, 0, count, total, floor)
    return count


@nb.njit(cache=True, nogil=True)
def entry_of(position: Ints, action: int) -> int:
    """The position of a legal action in its row."""
    return action if action in (FOLD, CALL) else action - lowest_size(position)


class _Stack(NamedTuple):
    """The histories from the root to the current node of a traversal, by depth D."""

    position: Ints  # [D, ENTRIES]
    row: Ints  # [D]
    options: Ints  # [D] number of legal actions
    at: Ints  # [D] the one being visited
    legal: Ints  # [D, A]
    share: Doubles  # [D, A]
    value: Doubles  # [D, A] the traverser's values


@nb.njit(cache=True, nogil=True)
def _new_stack(bets: BetSizes) -> _Stack:
    rounds, actions = len(bets.length), BET + bets.sizes.shape[1]
    depth = rounds * (actions + 2) + 1  # per round an opening check, every size and a last call; then the end
    return _Stack(
        np.zeros((depth, ENTRIES), np.int64), np.zeros(depth, np.int64), np.zeros(depth, np.int64),
        np.zeros(depth, np.int64), np.zeros((depth, actions), np.int64), np.zeros((depth, actions)),
        np.zeros((depth, actions)),
    )  # fmt: skip


class Run(NamedTuple):
    """Parameters that all traversals of a call share."""

    traverser: int
    weight: float
    stream: np.uint64
    first: int  # number of the first traversal
    unit: float  # chips of one unit
    shape: int  # of payoffs, as an index into `sample.mccfr.SHAPES`


@nb.njit(cache=True, nogil=True)
def _descend(bets: BetSizes, stack: _Stack, depth: int) -> int:
    """Enter the history after action `at`. Returns the nodes touched: that history and the deals before it."""
    before, after = stack.position[depth], stack.position[depth + 1]
    action = stack.legal[depth, stack.at[depth]]
    after[:] = before
    advance(bets, after, action)
    return 1 + after[ROUND] - before[ROUND]


@nb.njit(cache=True, nogil=True)
def _traverse(
    bets: BetSizes, layout: BetSizeLayout, regrets: Table, averages: Table, buckets: Ints, result: int, run: Run,
    floor: float, address: np.uint64, stack: _Stack,
) -> int:  # fmt: skip
    """One traversal: all actions of the traverser and one sampled action of the opponent; returns the nodes touched.

    The opponent's decisions add to the average strategy, because they are reached with the opponent's own probability.
    """
    begin(bets, stack.position[0])
    depth, touched = 0, 2  # the deal and the root
    while True:
        position = stack.position[depth]
        if position[ENDED] == NOT_TERMINAL:
            actor = position[ACTOR]
            row = row_of(layout, position, buckets[2 * position[ROUND] + actor])
            share = stack.share[depth]
            count = strategy_at(bets, regrets, row, position, floor, stack.legal[depth], share)
            stack.row[depth], stack.options[depth], stack.at[depth] = row, count, 0
            if actor != run.traverser:
                for i in range(count):
                    averages[row + entry_of(position, stack.legal[depth, i])] += run.weight * share[i]
                stack.at[depth] = sample(share, 0, count, uniform_at(address, position[HISTORY]))
            touched += _descend(bets, stack, depth)
            depth += 1
            continue
        value = shaped(gain(position, run.traverser, result) / run.unit, run.shape)
        while depth > 0:  # carry the value up until an action remains to be visited
            depth -= 1
            if stack.position[depth, ACTOR] != run.traverser:
                continue
            stack.value[depth, stack.at[depth]] = value
            stack.at[depth] += 1
            if stack.at[depth] < stack.options[depth]:
                touched += _descend(bets, stack, depth)
                depth += 1
                break
            value = _credit(stack, depth, regrets, run.weight)
        else:
            return touched


@nb.njit(cache=True, nogil=True)
def _credit(stack: _Stack, depth: int, regrets: Table, weight: float) -> float:
    """Add the sampled regrets of a traverser's decision after all its actions were visited; returns its value."""
    count, share, values = stack.options[depth], stack.share[depth], stack.value[depth]
    value = 0.0
    for i in range(count):
        value += share[i] * values[i]
    lowest = lowest_size(stack.position[depth])
    for i in range(count):
        action = stack.legal[depth, i]
        entry = action if action < BET else action - lowest
        regrets[stack.row[depth] + entry] += weight * (values[i] - value)
    return value


@nb.njit(cache=True, nogil=True)
def bet_size_traversals(
    bets: BetSizes, layout: BetSizeLayout, regrets: Table, averages: Table, situations: Situations, run: Run,
    decay: Decay = PLAIN,
) -> int:  # fmt: skip
    """Run the external-sampling traversals from number `run.first` for one player; returns the nodes touched.

    Adds `run.weight` times the traverser's sampled regrets to `regrets`, and `run.weight` times the opponent's strategy
    to `averages`. Source: Lanctot et al. 2009, section 4.
    """
    stack = _new_stack(bets)
    touched = 0
    for i in range(len(situations.results)):
        address, floor = address_of(run.stream, run.first + i), floor_after(decay, run.first + i)
        touched += _traverse(
            bets, layout, regrets, averages, situations.buckets[i], situations.results[i], run, floor,
            address, stack,
        )  # fmt: skip
    return touched


@nb.njit(cache=True, nogil=True)
def table_strategies(
    bets: BetSizes, layout: BetSizeLayout, table: Table, positions: Ints, group: Ints, buckets: Ints, result: Doubles
) -> None:
    """Fill `result` [n, U, A], initially zero, with strategies at `positions` [n]; `buckets` [G, U] are by `group` [n]."""
    actions = BET + bets.sizes.shape[1]
    legal, share = np.empty(actions, np.int64), np.empty(actions)
    for i in range(len(positions)):
        for hand in range(buckets.shape[1]):
            at = row_of(layout, positions[i], buckets[group[i], hand])
            count = strategy_at(bets, table, at, positions[i], 0.0, legal, share)
            for j in range(count):
                result[i, hand, legal[j]] = share[j]


# The compact form stores each row as whole numbers, scaled so that the largest is FULL, and compresses the whole table.


def compact(layout: BetSizeLayout, table: Table) -> Cards:
    """A table in compact form, uint8 [bytes]; the error is at most 1/510 of a row's largest probability.

    Rows that were never visited remain zeros: they play uniformly and compress to almost nothing.
    """
    squeezed = zlib.compressobj(6)
    parts = []
    for round_ in range(len(layout.block)):
        starts = np.sort(layout.offset[round_][layout.offset[round_] >= 0])
        widths = np.diff(np.append(starts, layout.block[round_]))
        end = layout.size if round_ + 1 == len(layout.block) else int(layout.start[round_ + 1])
        piece = max(1, _PIECE // int(layout.block[round_])) * int(layout.block[round_])
        for first in range(int(layout.start[round_]), end, piece):
            parts.append(squeezed.compress(_quantise(table[first : min(first + piece, end)], widths).tobytes()))
    parts.append(squeezed.flush())
    return np.frombuffer(b"".join(parts), np.uint8)


def expand(data: Cards, size: int) -> Cards:
    """The table, uint8 [size], from its compact form. Raises CheckpointError if the data is damaged."""
    table = np.empty(size, np.uint8)
    inflate, filled = zlib.decompressobj(), 0
    try:
        for first in range(0, len(data), _PIECE):
            rest = data[first : first + _PIECE].tobytes()
            while rest:
                part = inflate.decompress(rest, _PIECE)
                table[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
                filled += len(part)
                rest = inflate.unconsumed_tail
    except (zlib.error, ValueError) as error:
        raise CheckpointError(f"The compact strategy is damaged: {error}.") from error
    if filled != size or not inflate.eof:
        raise CheckpointError(f"The compact strategy is damaged: it has {filled:,} entries instead of {size:,}.")
    return table


@nb.njit(cache=True, nogil=True)
def _quantise(table: Table, widths: Ints) -> Cards:
    """Scale the rows of whole blocks so that the largest entry of each row is FULL."""
    result = np.zeros(len(table), np.uint8)
    at, row = 0, 0
    while at < len(table):
        width = widths[row % len(widths)]
        largest = 0.0
        for i in range(width):
            largest = max(largest, float(table[at + i]))
        if largest > 0.0:
            for i in range(width):
                result[at + i] = np.uint8(FULL * max(float(table[at + i]), 0.0) / largest + 0.5)
        at += width
        row += 1
    return result
