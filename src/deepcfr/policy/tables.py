"""Policies from tables: over infosets of an explicit tree, buckets of hands, and boards of a full-width solver."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board, Boards
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.tables import BoardTables
from deepcfr.buckets.texture import Buckets
from deepcfr.core.compiled import nb
from deepcfr.core.errors import GameError
from deepcfr.core.types import Cards, Doubles, Infosets, Ints
from deepcfr.game.base import Game
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.cards import pack_cards
from deepcfr.game.poker import PokerGame
from deepcfr.game.tree_game import ClassGame, TreeGame, tree_game
from deepcfr.policy.base import Policy
from deepcfr.sample.bet_size_tables import BetSizeLayout, Table, hand_layout, table_strategies
from deepcfr.sample.traversal_tree import TableLayout, seen_buckets

_ROWS = 65_536  # infosets in one query of a policy


class TreePolicy(Policy):
    """Probabilities in a table, float64 [K, L]: a row for each infoset, a column for each of its legal actions.

    Columns beyond the legal actions of an infoset are 0. Raises GameError for a table that is not a policy of `game`.
    """

    def __init__(self, game: TreeGame, table: Doubles, kind: str = "table") -> None:
        self.game: Game = game
        self.kind = kind
        self._positions = game.positions
        self.table = np.ascontiguousarray(table, np.float64)
        tree = game.explicit
        if self.table.shape != tree.legal.shape:
            raise GameError(
                f"A policy of '{game.name}' is a table of shape {tree.legal.shape}, not {self.table.shape}."
            )
        wrong = (self.table < 0) | (self.table > 0) & ~tree.legal
        bad = wrong.any(1) | ~(np.abs(self.table.sum(1) - 1) < 1e-4)  # also true for NaN
        if bad.any():
            infoset = int(bad.argmax())
            raise GameError(
                f"The probabilities at the infoset {tree.infoset_names[infoset]!r} of '{game.name}' are "
                f"{self.table[infoset].tolist()}, not a distribution over its {tree.infoset_actions[infoset]} actions."
            )
        self._table = torch.from_numpy(self.table).to(game.device)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        position = self._positions[node]
        return self._table[node].gather(1, position.clamp(min=0)) * (position >= 0)


def table_of(policy: Policy) -> Doubles:
    """The table [K, L] of any policy of a game whose histories can be listed, with rows that sum to 1 in double
    precision.

    Raises GameError for a policy of another kind of game.
    """
    if isinstance(policy, TreePolicy):
        return policy.table
    game = tree_game(policy.game)
    own = (
        game is policy.game
    )  # else the policy knows the game by its own infosets, and its actions by their own numbers
    columns = game.columns if own else torch.from_numpy(game.explicit.infoset_action_ids.clip(min=0)).to(game.device)
    table = np.zeros(game.explicit.legal.shape)
    for start in range(0, len(table), _ROWS):
        nodes = torch.arange(start, min(start + _ROWS, len(table)), device=game.device)
        if own:
            asked = Infosets(nodes, torch.empty(len(nodes), 0, dtype=torch.uint8, device=game.device))
        else:
            assert isinstance(game, ClassGame)
            asked = game.own[nodes]
        rows = policy.probabilities(asked).double().gather(1, columns[nodes])
        table[start : start + _ROWS] = rows.cpu().numpy()
    table *= game.explicit.legal
    table /= table.sum(1, keepdims=True)  # network outputs are in single precision
    return table


class RangePolicy(Policy):
    """Probabilities proportional to the positive entries of tables (average strategy or regrets), uniform without any.

    The tables belong to `boards`, on which exact evaluation runs.
    """

    boards: Boards
    game: PokerGame
    whole_rounds = True

    def __init__(self, boards: Boards, tables: list[BoardTables], kind: str) -> None:
        self.boards, self.game, self.kind = boards, boards.game, kind
        self._tables = tables
        local = np.zeros(self.game.tree.num_decisions, np.int64)
        for tree in boards.rounds:
            local[tree.nodes] = np.arange(len(tree.nodes))
        self._local = local

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:  # noqa: ARG002
        return self._tables[board.round].strategy(board)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.numpy().astype(np.int64)
        packed = pack_cards(infosets.cards.numpy())
        rounds = self.game.tree.round[node]
        result = np.zeros((len(node), self.game.encoding.num_actions))
        for round_, tree in enumerate(self.boards.rounds):
            keys, board_of, canonical_of = self._visible[round_]
            here = np.flatnonzero(rounds == round_)
            place = np.searchsorted(keys, packed[here])
            for index in np.unique(board_of[place]):
                rows = here[board_of[place] == index]
                board = self.boards.kept[round_][index]
                edge = tree.edge_node[:, None] == self._local[node[rows]]
                strategy = self.on_board(tree, board)[:, canonical_of[np.searchsorted(keys, packed[rows])]]
                edges, columns = np.nonzero(edge)
                result[rows[columns], tree.edge_action[edges]] = strategy[edges, columns]
        return torch.from_numpy(result)

    @cached_property
    def _visible(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """For each round all canonical hands as packed cards, ascending, with their board and their column on it."""
        found = []
        for boards in self.boards.kept:
            packed = np.concatenate([pack_cards(board.visible_cards) for board in boards])
            board_of = np.repeat(np.arange(len(boards)), [len(board) for board in boards])
            canonical_of = np.concatenate([np.arange(len(board)) for board in boards])
            order = np.argsort(packed)
            found.append((packed[order], board_of[order], canonical_of[order]))
        return found


def board_hands(game: PokerGame, holes: npt.NDArray[np.uint8], board: Sequence[int]) -> npt.NDArray[np.uint8]:
    """The distinct cards, uint8 [U, C], that holders of `holes` can see on a board, in ascending order of `pack_cards`."""
    live = holes[~np.isin(holes, board).any(axis=1)]
    hands = game.visible_cards(live, board)
    return hands[np.unique(pack_cards(hands), return_index=True)[1]]


class AbstractPolicy(Policy):
    """Probabilities proportional to the positive entries of a table over buckets, uniform where no entry is positive.

    `table` is flat, in the `hand_layout` of the game and the abstraction's bucket counts. It holds an average strategy,
    or regrets for regret matching; in poker with a few bet sizes it may also be the expanded compact form, uint8. It is
    not copied, so the policy changes when a solver updates the table. Raises GameError for an abstraction of another
    game and for a table of the wrong size.
    """

    game: PokerGame | BetSizePoker

    def __init__(
        self, game: PokerGame | BetSizePoker, abstraction: Buckets, table: Table, kind: str = "abstract average"
    ) -> None:
        # with a few bet sizes, buckets are those of any game with the same cards
        if not isinstance(game, BetSizePoker) and abstraction.rules != game.rules:
            raise GameError(f"An abstraction of {abstraction.rules.name} cannot be played in {game.name}.")
        self.game, self.abstraction, self.table, self.kind = game, abstraction, table, kind
        self.layout = hand_layout(game, abstraction.counts)
        if table.shape != (self.layout.size,):
            raise GameError(
                f"The tables of {game.name} with {list(abstraction.counts)} buckets have {self.layout.size:,} entries, "
                f"but the given table has shape {list(table.shape)}."
            )

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        nodes = infosets.node.cpu().numpy().astype(np.int64)
        cards = infosets.cards.cpu().numpy()
        result = np.empty((len(nodes), self.game.encoding.num_actions))
        rounds = self.game.round[infosets.node].cpu().numpy()
        for round_ in np.unique(rounds).tolist():
            here = np.flatnonzero(rounds == round_)
            buckets = seen_buckets(self.abstraction, round_, cards[here])
            result[here] = self._rows(nodes[here], np.arange(len(here)), buckets[:, None])[:, 0]
        return torch.from_numpy(result).to(self.game.device)

    def on_hands(self, nodes: Ints, cards: Cards) -> Doubles:
        own = seen_buckets(self.abstraction, int(self.game.round[torch.from_numpy(nodes[:1])][0]), cards)
        buckets, bucket = np.unique(own, return_inverse=True)  # a bucket's row is the same for all of its hands
        rows = self._rows(nodes, np.zeros(len(nodes), np.int64), buckets[None])
        return rows[:, bucket]

    def _rows(self, nodes: Ints, group: Ints, buckets: Ints) -> Doubles:
        """Probabilities [n, U, A] at `nodes` [n] with each of the `buckets` [G, U] of the node's `group` [n]."""
        result = np.zeros((len(nodes), buckets.shape[1], self.game.encoding.num_actions))
        if isinstance(self.game, BetSizePoker):
            assert isinstance(self.layout, BetSizeLayout)
            positions = self.game.positions(nodes)
            table_strategies(self.game.bets, self.layout, self.table, positions, group, buckets, result)
        else:
            assert isinstance(self.layout, TableLayout)
            start, stride = self.layout.start[nodes], self.layout.stride[nodes]
            _normalise(self.table, start, stride, self.game.tree.legal[nodes], group, buckets, result)
        return result


@nb.njit(cache=True, nogil=True)
def _normalise(
    table: Table, start: Ints, stride: Ints, legal: npt.NDArray[np.bool_], group: Ints, buckets: Ints, result: Doubles
) -> None:
    """Fill `result` [n, U, A], initially zero, with strategies from the rows of `table`."""
    for hand in range(buckets.shape[1]):
        for node in range(len(start)):  # the rows of a bucket lie together
            at = start[node] + stride[node] * buckets[group[node], hand]
            total, actions = 0.0, 0
            for action in range(legal.shape[1]):
                if legal[node, action]:
                    entry = max(float(table[at + actions]), 0.0)
                    result[node, hand, action] = entry
                    total += entry
                    actions += 1
            for action in range(legal.shape[1]):
                if total > 0.0:
                    result[node, hand, action] /= total
                elif legal[node, action]:
                    result[node, hand, action] = 1.0 / actions
