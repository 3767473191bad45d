"""The policy of a raise-ladder game's tables, and their compact form.

Policies of raise-ladder games between their two forms: by listed nodes, as networks have them, and by computed ones.

Search in raise-ladder games whose betting is too large to list: only what follows one line at a time is listed.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.abstraction.texture import Buckets
from deepcfr.compiled import nb
from deepcfr.config import SearchConfig
from deepcfr.errors import CheckpointError, GameError
from deepcfr.games.betting import CALL
from deepcfr.games.ladder_betting import ROUND, round_starts
from deepcfr.games.ladder_game import LadderGame
from deepcfr.games.listed_ladder import ListedLadder, listed_game
from deepcfr.ladder.traversals import LadderLayout, Table, ladder_layout, table_strategies
from deepcfr.policies.base import Policy
from deepcfr.policies.styles import without_rare
from deepcfr.sampling.traversal_tree import seen_buckets
from deepcfr.search.policy import MOST_DEALS, ResolvingPolicy, searched_rounds
from deepcfr.types import Cards, Infosets, Ints

FULL = 255  # the largest probability of a row in the compact form
_PIECE = 1 << 22  # entries per step of the conversion: a few megabytes


class LadderTable(Policy):
    """Probabilities in proportion to the positive entries of a table, uniform over legal actions where there are none.

    `table` is flat, in the `ladder_layout` of the game and the counts of the buckets, and is not copied. It may also be
    the expanded compact form, uint8. Actions below `threshold` are not played, unless none is as probable (Ganzfried,
    Sandholm and Waugh 2012, "Strategy purification and thresholding", section 3).
    """

    game: LadderGame
    threshold = 0.0

    def __init__(self, game: LadderGame, buckets: Buckets, table: Table, kind: str = "average") -> None:
        self.game, self.buckets, self.table, self.kind = game, buckets, table, kind
        self.layout = ladder_layout(game, buckets.counts)
        if table.shape != (self.layout.size,):
            raise GameError(
                f"The tables of {game.name} with {list(buckets.counts)} buckets have {self.layout.size:,} entries, but "
                f"the given table has shape {list(table.shape)}."
            )

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        positions, cards = self.game.positions(infosets.node.numpy()), infosets.cards.numpy()
        buckets = np.empty(len(positions), np.int64)
        for round_ in np.unique(positions[:, ROUND]).tolist():
            here = positions[:, ROUND] == round_
            buckets[here] = seen_buckets(self.buckets, round_, cards[here])
        return self._rows(positions, buckets)

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        positions = self.game.positions(nodes)
        own = seen_buckets(self.buckets, int(positions[0, ROUND]), cards)
        buckets, bucket = np.unique(own, return_inverse=True)  # a bucket's row is the same for all of its hands
        rows = self._rows(np.repeat(positions, len(buckets), axis=0), np.tile(buckets, len(positions)))
        return rows.numpy().reshape(len(positions), len(buckets), -1)[:, bucket]

    def _rows(self, positions: Ints, buckets: Ints) -> torch.Tensor:
        rows = table_strategies(self.game.ladder, self.layout, self.table, positions, buckets)
        strategies = torch.from_numpy(rows)
        return without_rare(strategies, self.threshold) if self.threshold else strategies


# The compact form stores each row as whole numbers, scaled so that the largest is FULL, and compresses the whole table.


def compact(policy: LadderTable) -> Cards:
    """The policy's table in compact form, uint8 [bytes]; the error is at most 1/510 of a row's largest probability.

    Rows that were never visited remain zeros: they play uniformly and compress to almost nothing.
    """
    layout = policy.layout
    squeezed = zlib.compressobj(6)
    parts = []
    for round_ in range(len(layout.block)):
        widths = _row_widths(layout, round_)
        end = layout.size if round_ + 1 == len(layout.block) else int(layout.start[round_ + 1])
        piece = max(1, _PIECE // int(layout.block[round_])) * int(layout.block[round_])
        for begin in range(int(layout.start[round_]), end, piece):
            parts.append(squeezed.compress(_quantise(policy.table[begin : min(begin + piece, end)], widths).tobytes()))
    parts.append(squeezed.flush())
    return np.frombuffer(b"".join(parts), np.uint8)


def expand(data: Cards, size: int) -> Cards:
    """The table, uint8 [size], from its compact form. Raises CheckpointError if the data is damaged."""
    table = np.empty(size, np.uint8)
    inflate, filled = zlib.decompressobj(), 0
    try:
        for begin in range(0, len(data), _PIECE):
            rest = data[begin : begin + _PIECE].tobytes()
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


def _row_widths(layout: LadderLayout, round_: int) -> Ints:
    """The entries of each row of a block, in order."""
    starts = np.sort(layout.offset[round_][layout.offset[round_] >= 0])
    return np.diff(np.append(starts, layout.block[round_]))


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


_ROWS = 1 << 16  # decisions of single hands that are asked for at a time


class SteppedPolicy(Policy):
    """A policy of listed nodes at computed ones."""

    def __init__(self, policy: Policy) -> None:
        assert isinstance(policy.game, ListedLadder)
        self.policy, self.listed = policy, policy.game
        self.game, self.kind, self.most_deals = policy.game.stepped, policy.kind, policy.most_deals
        before = policy.initial
        self.initial = (lambda: SteppedPolicy(before())) if before else None

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = torch.from_numpy(self.listed.listed(infosets.node.numpy())).to(self.listed.device)
        there = Infosets(nodes, infosets.cards.to(self.listed.device))
        return self.policy.probabilities(there).double().cpu()


class ListedPolicy(Policy):
    """A policy of computed nodes at listed ones."""

    game: ListedLadder

    def __init__(self, policy: Policy, game: ListedLadder) -> None:
        self.policy, self.game, self.kind, self.most_deals = policy, game, policy.kind, policy.most_deals
        before = policy.initial
        self.initial = (lambda: ListedPolicy(before(), game)) if before else None

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = torch.from_numpy(self.game.computed[infosets.node.cpu().numpy()])
        return self.policy.probabilities(Infosets(nodes, infosets.cards.cpu())).to(infosets.node.device)

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        pieces = np.array_split(self.game.computed[nodes], 1 + len(nodes) * len(cards) // _ROWS)
        return np.concatenate([self.policy.on_hands(some, cards) for some in pieces if len(some)])


def stepped(policy: Policy) -> Policy:
    """The form of a policy for play: by computed nodes in a raise-ladder game, unchanged in other games."""
    return SteppedPolicy(policy) if isinstance(policy.game, ListedLadder) else policy


def listed(policy: Policy) -> Policy:
    """The form of a policy that has a list of nodes. Raises GameError for a raise-ladder game that is too large to list."""
    if isinstance(policy, SteppedPolicy):
        return policy.policy
    if isinstance(policy.game, LadderGame):
        return ListedPolicy(policy, listed_game(policy.game.source))
    return policy


_KEPT_LINES = 32  # whose subgames are kept


class LadderSearch(Policy):
    """`policy` with the betting of some rounds solved anew when it gets there, as `ResolvingPolicy` does it.

    Every line of betting before the first searched round has a `ResolvingPolicy` of its own, for the game that begins with
    it. Raises what `ResolvingPolicy` raises.
    """

    most_deals = MOST_DEALS

    def __init__(self, policy: Policy, settings: SearchConfig) -> None:
        assert isinstance(policy.game, LadderGame)
        self.game: LadderGame = policy.game
        self.policy, self.initial = policy, policy.initial
        self._settings = settings
        self._first = searched_rounds(self.game.rules, settings)[0]
        self._on_line = lru_cache(maxsize=_KEPT_LINES)(self._search)
        # deepest stacks: refused now rather than in play if its subgames are too large
        self.kind = self._search_after([CALL, CALL] * self._first).kind

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        positions = self.game.positions(infosets.node.numpy())
        result = torch.empty(len(infosets), self.game.num_actions, dtype=torch.float64)
        late = positions[:, ROUND] >= self._first
        lines = np.where(late, round_starts(positions, self._first), -1)
        for line in np.unique(lines).tolist():
            some = torch.from_numpy(lines == line)
            policy = self.policy if line < 0 else self._on_line(line)
            result[some] = policy.probabilities(infosets[some]).double()
        return result

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        searched = self.game.positions(nodes)[0, ROUND] >= self._first
        return super().on_hands(nodes, cards) if searched else self.policy.on_hands(nodes, cards)

    def _search(self, line: int) -> SteppedPolicy:
        return self._search_after(self.game.paths(np.array([line]))[2].tolist())

    def _search_after(self, actions: list[int]) -> SteppedPolicy:
        """The policy with search in the game that begins with `actions`."""
        game = ListedLadder(self.game.source, self.game.suits, line=actions)
        return SteppedPolicy(ResolvingPolicy(ListedPolicy(self.policy, game), self._settings, share=1 / _KEPT_LINES))
