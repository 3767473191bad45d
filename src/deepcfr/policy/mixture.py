"""The exact average of several policies: SD-CFR (Steinberger 2019, "Single Deep CFR"), section 4.

Drawing one policy with probability proportional to its weight w_t and playing it through the whole game is the same as
playing, at every infoset I of player p,

    sum_t w_t pi_p^t(I) sigma^t(I) / sum_t w_t pi_p^t(I)

where pi_p^t(I) is the probability that p's own actions under sigma^t lead to I (Kuhn 1953: with perfect recall, a mixed
strategy and its behaviour strategy reach every history equally often). Evaluation uses the formula, play uses the draw.

Several policies of one game played as one: Lin's sum of probabilities, and two readings of their mixture.

Lin (2024, "4 Improvements to Monte Carlo Counterfactual Regret Minimization for Texas Heads Up No Limit Poker", 6.4)
adds up the members' probabilities at every infoset. That is not a mixture of strategies: a member has the same weight
where it never plays to as where it always does. The mixture weights members by their own reach (see
`deepcfr.policy.mixture`). Drawing one member for each game and playing it to the end is the same strategy.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board
from deepcfr.boards.rounds import RoundTree, round_trees
from deepcfr.boards.sweep import Scratch
from deepcfr.core.compiled import nb
from deepcfr.core.errors import GameError
from deepcfr.core.rng import addressed_uniforms
from deepcfr.core.types import NO_CARD, Cards, Doubles, Infosets, Ints
from deepcfr.game.base import Game
from deepcfr.game.bet_size_game import BetSizePoker
from deepcfr.game.cards import all_hands, pack_cards
from deepcfr.game.explicit import EMPTY, realization
from deepcfr.game.openspiel import OpenSpielGame, same_game
from deepcfr.game.poker import Poker, PokerGame
from deepcfr.game.tree_game import ClassGame, TreeGame
from deepcfr.policy.base import Policy, fewest_deals, measures_itself
from deepcfr.policy.tables import TreePolicy, board_hands, table_of

_ROWS = 4096  # infosets averaged at a time


class MixturePolicy(Policy):
    """The average of `policies` by own reach times `weights`, in a poker game or a game of OpenSpiel.

    Where every policy's own reach is 0, it is the average by `weights` alone; the mixture never plays to such infosets.
    Raises GameError for other games, for weights that are not positive, and for a wrong number of weights.
    """

    whole_rounds = True

    def __init__(self, game: Game, policies: Sequence[Policy], weights: Sequence[float], kind: str = "mixture") -> None:
        if not (isinstance(game, Poker | TreeGame) or measures_itself(game)):
            raise GameError(
                f"Policies can be averaged in poker games and games with listed histories, but '{game.name}' is neither."
            )
        self.game: Game = game
        self.kind = kind
        self.policies = list(policies)
        self.most_deals = fewest_deals(policies)
        self.weights = np.array(weights, np.float64)
        if not self.policies or self.weights.shape != (len(self.policies),) or not (self.weights > 0).all():
            raise GameError(f"A mixture of {len(self.policies)} policies cannot have the weights {list(weights)}.")
        self.weights /= self.weights.sum()
        self._ranges = _RangeMixture(game, self.policies, self.weights) if isinstance(game, PokerGame) else None

    def draw_for(self, stream: int, games: torch.Tensor) -> Ints:
        """The index of the policy drawn for each game number (int64 [B]) in `stream`, [B]."""
        chance = addressed_uniforms(stream, games.cpu(), torch.zeros_like(games, device="cpu")).double().numpy()
        return np.minimum(np.searchsorted(self.weights.cumsum(), chance, side="right"), len(self.weights) - 1)

    def draw(self, stream: int, game: int) -> Policy:
        """The policy to play through the whole of game number `game`; over the draws this plays the average exactly."""
        return self.policies[int(self.draw_for(stream, torch.tensor([game]))[0])]

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        if not isinstance(self.game, Poker):
            return self._table.probabilities(infosets)
        parts = [self._average(infosets[slice(i, i + _ROWS)]) for i in range(0, len(infosets), _ROWS)]
        result = np.concatenate(parts) if parts else np.empty((0, self.game.encoding.num_actions))
        return torch.from_numpy(result).to(self.game.device)

    def on_board(self, tree: RoundTree, board: Board) -> Doubles:  # noqa: ARG002
        assert self._ranges is not None
        return self._ranges.average(board.round, board.cards, board.visible_cards)

    @cached_property
    def _table(self) -> Policy:
        """The average in a game with an explicit tree, from realization plans, or in one that knows its own."""
        game = self.game
        if measures_itself(game):
            return game.average(self.policies, self.weights, self.kind)
        assert isinstance(game, TreeGame)
        form, legal = game.sequences, game.explicit.legal
        plain, reached = np.zeros(legal.shape), np.zeros(legal.shape)
        for policy, weight in zip(self.policies, self.weights, strict=True):
            table = table_of(policy)
            plain += weight * table
            reached += weight * realization(table, form.parent, form.num_actions)[EMPTY:].reshape(legal.shape)
        return TreePolicy(game, _share(reached, plain), self.kind)

    def _average(self, infosets: Infosets) -> Doubles:
        """The average at infosets of a poker game, [I, A], from the player's own decisions before each of them."""
        row, earlier, action = self._own_path(infosets)
        asked = Infosets(torch.cat([infosets.node.long(), earlier.node]), torch.cat([infosets.cards, earlier.cards]))
        here, before = np.arange(len(infosets)), len(infosets) + np.arange(len(row))
        plain = np.zeros((len(infosets), self.game.encoding.num_actions))
        reached = np.zeros_like(plain)
        for policy, weight in zip(self.policies, self.weights, strict=True):
            strategy = policy.probabilities(asked).double().cpu().numpy()
            reach = np.full(len(infosets), weight)
            np.multiply.at(reach, row, strategy[before, action])
            plain += weight * strategy[here]
            reached += reach[:, None] * strategy[here]
        return _share(reached, plain)

    def _own_path(self, infosets: Infosets) -> tuple[Ints, Infosets, Ints]:
        """The acting player's earlier decisions, one row for each infoset and decision.

        For every row: the row of the infoset, [M]; the infoset of the decision, M rows; the action taken, [M].
        """
        game = self.game
        assert isinstance(game, Poker)
        nodes, cards = infosets.node.cpu().numpy().astype(np.int64), infosets.cards.cpu().numpy()
        row, before, action = game.paths(nodes)
        actor = (game.actor[torch.from_numpy(each).to(game.device)].cpu().numpy() for each in (nodes[row], before))
        own = np.equal(*actor)
        row, before, action = row[own], before[own], action[own]
        node = torch.from_numpy(before).to(infosets.node.device)
        rounds, seen = game.round[node].cpu().numpy(), np.empty((len(row), cards.shape[1]), np.uint8)
        for round_ in np.unique(rounds):
            then = rounds == round_
            seen[then] = cards_before(game, cards[row[then]], int(round_))
        return row, Infosets(node, torch.from_numpy(seen).to(infosets.node.device)), action


def _share(reached: Doubles, plain: Doubles) -> Doubles:
    """Normalise the rows of `reached`, or of `plain` where `reached` is 0."""
    weights = np.where(reached.sum(-1, keepdims=True) > 0, reached, plain)
    return weights / weights.sum(-1, keepdims=True)


def cards_before(game: Poker, cards: Cards, round_: int) -> Cards:
    """The cards that holders of `cards` (uint8 [M, C], in the game's encoding) saw in round `round_`, [M, C].

    Canonical suits stay canonical: they are ordered by the earliest cards first, and where those leave two suits equal,
    later cards can only exchange equal holdings.
    """
    seen = cards.copy()
    seen[:, game.rules.hole_cards + sum(game.rules.board_cards[: round_ + 1]) :] = NO_CARD
    return seen


class _Before(threading.local):
    """Thread-local cache: for every round the board whose leaves were last computed, with its hands and own reach."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[tuple[int, ...], Ints, Doubles]] = {}


class _RangeMixture:
    """The average on whole boards of a poker game, from the own reach of all hands under each policy in turn.

    A policy is evaluated only where its own reach is above 0, since other rows add nothing to the average. Regret
    matching gives many actions probability 0, so this avoids most of the work.
    """

    def __init__(self, game: PokerGame, policies: list[Policy], weights: Doubles) -> None:
        self.game, self.policies, self.weights = game, policies, weights
        self._rounds = round_trees(game)
        self._levels = [[_levels(tree, player) for player in (0, 1)] for tree in self._rounds]
        self._holes = all_hands(game.rules.num_cards, game.rules.hole_cards)
        self._scratch = Scratch()
        self._before = _Before()

    def average(self, round_: int, board: tuple[int, ...], cards: Cards) -> Doubles:
        """The average strategy of a round, [E, U], on `board` with canonical hands `cards`, uint8 [U, C]."""
        tree = self._rounds[round_]
        result = np.zeros((tree.num_edges, len(cards)))
        column, before = self._roots(round_, board, cards)
        for index in range(len(self.policies)):
            for player in (0, 1):
                self._play(round_, index, player, cards, before[index, player][:, column], result)
        missing = _normalise(tree.first_edge, result)
        if missing.any():
            self._fill_plainly(round_, cards, missing, result)
        return result

    def _roots(self, round_: int, board: tuple[int, ...], cards: Cards) -> tuple[Ints, Doubles]:
        """Weight times own reach at the round's roots, [T, P, X, U'], and the column of each hand there, [U]."""
        if round_ == 0:
            return np.zeros(len(cards), np.int64), np.tile(self.weights[:, None, None, None], (1, 2, 1, 1))
        keys, reach = self._round_leaves(round_ - 1, board[: sum(self.game.rules.board_cards[:round_])])
        return np.searchsorted(keys, pack_cards(cards_before(self.game, cards, round_ - 1))), reach

    def _round_leaves(self, round_: int, board: tuple[int, ...]) -> tuple[Ints, Doubles]:
        """The packed canonical hands of a board, ascending, and weight times own reach at the round leaves of its
        round, [T, P, X, U].

        Boards are visited depth first, so the cached board of a round is the parent of the boards that follow.
        """
        known = self._before.found.get(round_)
        if known is not None and known[0] == board:
            return known[1:]
        cards = board_hands(self.game, self._holes, board)
        keys = pack_cards(cards)
        tree, (column, before) = self._rounds[round_], self._roots(round_, board, cards)
        round_leaves = np.empty((len(self.policies), 2, len(tree.round_leaves), len(keys)))
        unused = self._scratch.array("unused", (tree.num_edges, len(keys)))
        unused[:] = 0
        for index in range(len(self.policies)):
            for player in (0, 1):
                roots = before[index, player][:, column]
                reach = self._play(round_, index, player, cards, roots, unused)
                round_leaves[index, player] = reach[tree.row[player, tree.round_leaves]]
        self._before.found[round_] = board, keys, round_leaves
        return keys, round_leaves

    def _play(self, round_: int, index: int, player: int, cards: Cards, roots: Doubles, total: Doubles) -> Doubles:
        """A player's weighted own reach [rows, U] under one policy; adds the reach of its edges to `total` [E, U]."""
        tree = self._rounds[round_]
        reach = self._scratch.array("reach", (tree.num_rows[player], len(cards)))
        reach[: len(roots)] = roots
        reach[len(roots) :] = 0
        ask = self.policies[index].row_strategy(player, round_, cards)
        for nodes in self._levels[round_][player]:
            before = reach[tree.row[player, nodes]]
            at, hand = np.nonzero(before)
            local = nodes[at]
            strategy = ask(tree.nodes[local], hand)
            _carry(
                tree.first_edge, tree.edge_action, tree.edge_row, local, hand, before[at, hand], strategy, reach, total
            )
        return reach

    def _fill_plainly(self, round_: int, cards: Cards, missing: npt.NDArray[np.bool_], result: Doubles) -> None:
        """Write the average by `weights` alone at the nodes and hands that are `missing` [n, U] to `result` [E, U]."""
        tree = self._rounds[round_]
        for player in (0, 1):
            local, hand = np.nonzero(missing & (tree.actor == player)[:, None])
            unused = self._scratch.array("reach", (tree.num_rows[player], len(cards)))
            for policy, weight in zip(self.policies, self.weights, strict=True):
                strategy, weights = policy.row_strategy(player, round_, cards), np.full(len(local), weight)
                rows = strategy(tree.nodes[local], hand)
                _carry(tree.first_edge, tree.edge_action, tree.edge_row, local, hand, weights, rows, unused, result)


def _levels(tree: RoundTree, player: int) -> list[Ints]:
    """The player's nodes grouped by the number of own actions before them in the round, as positions in `tree.nodes`."""
    after = np.zeros(tree.num_rows[player], np.int64)  # own actions up to and including each row
    depth = np.full(len(tree.nodes), -1)
    for node in np.flatnonzero(tree.actor == player):  # parents come first
        depth[node] = after[tree.row[player, node]]
        after[tree.edge_row[tree.first_edge[node] : tree.first_edge[node + 1]]] = depth[node] + 1
    return [np.flatnonzero(depth == level) for level in range(depth.max(initial=-1) + 1)]


@nb.njit(cache=True, nogil=True)
def _carry(
    first_edge: Ints,
    edge_action: Ints,
    edge_row: Ints,
    local: Ints,
    hand: Ints,
    before: Doubles,
    strategy: npt.NDArray[np.floating],
    reach: Doubles,
    total: Doubles,
) -> None:
    """Carry `before` [M] over the edges of nodes `local` [M] with hands `hand` [M], whose `strategy` is [M, A].

    Writes what arrives to the edges' rows of `reach` [rows, U], and adds it to `total` [E, U].
    """
    for m in range(len(local)):
        u = hand[m]
        for edge in range(first_edge[local[m]], first_edge[local[m] + 1]):
            after = before[m] * strategy[m, edge_action[edge]]
            reach[edge_row[edge], u] = after
            total[edge, u] += after


@nb.njit(cache=True, nogil=True)
def _normalise(first_edge: Ints, total: Doubles) -> npt.NDArray[np.bool_]:
    """Divide `total` [E, U] at every node by its sum; returns the nodes and hands [n, U] with sum 0, left unchanged."""
    missing = np.zeros((len(first_edge) - 1, total.shape[1]), np.bool_)
    for node in range(len(first_edge) - 1):
        for u in range(total.shape[1]):
            whole = 0.0
            for edge in range(first_edge[node], first_edge[node + 1]):
                whole += total[edge, u]
            for edge in range(first_edge[node], first_edge[node + 1]):
                if whole > 0.0:
                    total[edge, u] /= whole
            missing[node, u] = whole <= 0.0
    return missing


RULES = ("sum", "mixture", "member")  # ways to combine the members into one policy


def ensemble(policies: Sequence[Policy], rule: str) -> Policy:
    """Combine `policies` with equal weights into one policy; an ensemble of one is its member.

    `sum` adds their probabilities. `mixture` plays their average by own reach. `member` draws one policy for each game;
    its probabilities are the same average. The initial policy is that of the first policy. Raises GameError for an
    unknown rule, for no policies, and for policies that do not see the same game.
    """
    if rule not in RULES:
        raise GameError(f"'{rule}' is not an ensemble rule. Choose one of {', '.join(RULES)}.")
    if not policies:
        raise GameError("An ensemble needs at least one policy, but none was given.")
    for policy in policies[1:]:
        _require_same_view(policies[0].game, policy.game)
    if len(policies) == 1:
        return policies[0]
    if rule == "sum":
        return SumPolicy(policies)
    # the average of many nodes by own reach takes long where it is not kept by board, and the draw plays it, too
    drawn = rule == "member" or isinstance(policies[0].game, BetSizePoker)
    kind = f"{'one' if drawn else 'mixture'} of {len(policies)} policies"
    members = MixturePolicy(policies[0].game, policies, [1.0] * len(policies), kind)
    members.initial = policies[0].initial
    return members if drawn else AveragedPolicy(members)


class SumPolicy(Policy):
    """The sum of the members' probabilities at every infoset, normalised. Source: Lin 2024, section 6.4 and figure 6."""

    whole_rounds = True

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.game: Game = policies[0].game
        self.kind = f"sum of {len(policies)} policies"
        self.policies = list(policies)
        self.initial = policies[0].initial
        # all members that store tables by board have the same boards
        self.boards = next((policy.boards for policy in policies if policy.boards), None)
        self.most_deals = fewest_deals(policies)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        total = self.policies[0].probabilities(infosets).double()
        for policy in self.policies[1:]:
            total = total + policy.probabilities(infosets)
        return total / total.sum(1, keepdim=True)

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        total = self.policies[0].on_board(tree, board).astype(np.float64)
        for policy in self.policies[1:]:
            total += policy.on_board(tree, board)
        total /= np.add.reduceat(total, tree.first_edge[:-1])[tree.edge_node]
        return total


class AveragedPolicy(Policy):
    """A mixture that plays its average at every infoset instead of drawing a member for each game."""

    whole_rounds = True

    def __init__(self, mixture: MixturePolicy) -> None:
        self.game, self.kind, self.mixture, self.initial = mixture.game, mixture.kind, mixture, mixture.initial
        self.most_deals = mixture.most_deals

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self.mixture.probabilities(infosets)

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        return self.mixture.on_board(tree, board)


def _require_same_view(first: Game, second: Game) -> None:
    """Raise GameError unless policies of the second game accept infosets of the first."""
    if isinstance(first, Poker) and isinstance(second, Poker):
        same = (type(first), first.source, first.suits) == (type(second), second.source, second.suits)
    elif isinstance(first, OpenSpielGame) and isinstance(second, OpenSpielGame):
        same = same_game(first.spiel_game, second.spiel_game)
    elif isinstance(first, ClassGame) or measures_itself(first):
        same = type(first) is type(second) and first.name == second.name
    else:
        same = first is second
    if not same:
        raise GameError(
            f"The policies of an ensemble must see the same game in the same way, but one sees {_view(first)} and another "
            f"{_view(second)}."
        )


def _view(game: Game) -> str:
    return f"{game.name} in {game.suits} suits" if isinstance(game, Poker) else game.name
