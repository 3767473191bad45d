"""Policies from networks: an average-strategy network, or regret matching on an advantage network for each player.

A table may play the first betting round in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.boards.boards import Board, Boards
from deepcfr.boards.regret_kernels import match_outputs
from deepcfr.boards.rounds import RoundTree
from deepcfr.core.errors import GameError
from deepcfr.core.types import Cards, Infosets, Ints
from deepcfr.game.base import Game, by_infoset
from deepcfr.game.cards import pack_cards
from deepcfr.game.poker import poker_game
from deepcfr.network.fit import masked_softmax
from deepcfr.network.networks import NodeParts, SplitNetwork
from deepcfr.policy.base import Policy, RowStrategy


def regret_matching(advantage: torch.Tensor, legal: torch.Tensor, fallback: str = "highest") -> torch.Tensor:
    """Probabilities proportional to positive advantages, [I, A], 0 for illegal actions.

    `advantage` is float [I, A], `legal` bool [I, A]. Where no advantage is positive, `fallback` "highest" plays the
    highest advantage; exact ties share the probability, so all-zero advantages give the uniform strategy. `fallback`
    "uniform" plays all legal actions with the same probability. Source: equation 4 and section 2.1.
    """
    positive = advantage.clamp(min=0) * legal
    largest = positive.amax(-1, keepdim=True)
    if fallback == "uniform":
        other = legal.to(advantage.dtype)
    else:
        masked = advantage.masked_fill(~legal, -torch.inf)
        other = (masked == masked.amax(-1, keepdim=True)).to(advantage.dtype)
    # scaled by the largest, so that the sum neither underflows nor overflows
    weight = torch.where(largest > 0, positive / largest, other)
    return weight / weight.sum(-1, keepdim=True)


_ROWS = 4096  # pairs of node and hand in one forward pass: small enough for the processor's cache
ToStrategy = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""(outputs [..., A], legal [..., A]) to probabilities [..., A]."""


class AveragePolicy(Policy):
    """The average strategy Pi: a softmax over the legal actions of one network's logits."""

    kind = "average network"

    def __init__(self, game: Game, network: SplitNetwork) -> None:
        self.game, self.network = game, network.eval()
        with torch.no_grad():
            self._nodes = network.node_parts()

    @torch.no_grad()
    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        logits = self.network.joint(self.network.encode_cards(infosets.cards), self._nodes[node])
        return masked_softmax(logits, self.game.encoding.legal[node])

    @torch.no_grad()
    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        node = torch.from_numpy(nodes).to(self.game.device)
        encoded, legal = self._nodes[node], self.game.encoding.legal[node]
        result = np.empty((len(nodes), len(cards), self.network.num_actions), np.float32)
        for some, outputs in self.network.on_grid(torch.from_numpy(cards).to(encoded.device), encoded):
            # along whole rows of hands, as networks give them: some six times as fast as within a hand
            shares = masked_softmax(outputs.transpose(1, 2), legal[some, :, None], 1)
            result[some] = shares.transpose(1, 2).cpu().numpy()
        return result

    @torch.no_grad()
    def row_strategy(self, player: int, round_: int, cards: Cards) -> RowStrategy:  # noqa: ARG002
        hands = self.network.encode_cards(torch.from_numpy(cards).to(self.game.device))
        return _in_parts(self.game, self.network, hands, self._nodes, masked_softmax)


class NetworkPerPlayer(Policy):
    """A strategy with one network for each player, whose outputs its `to_strategy` turns into probabilities."""

    def __init__(
        self,
        game: Game,
        networks: tuple[SplitNetwork, SplitNetwork],
        to_strategy: tuple[ToStrategy, ToStrategy],
        kind: str,
    ) -> None:
        self.game, self.networks, self.kind = game, networks, kind
        self._to_strategy = to_strategy
        self._owner = by_infoset(game, game.actor)
        with torch.no_grad():
            self._nodes = [network.node_parts() for network in networks]
        self._encoded = lru_cache(maxsize=16)(self._encode)  # by round, for boards

    @torch.no_grad()
    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        result = torch.empty(len(infosets), self.game.encoding.num_actions, device=node.device)
        for player, network in enumerate(self.networks):
            mine = self._owner[node] == player
            result[mine] = self._to_strategy[player](network(infosets[mine]), self.game.encoding.legal[node[mine]])
        return result

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        result = np.empty((tree.num_edges, len(board)), np.float32)
        for player in (0, 1):
            self.fill_edges(tree, board, player, result)
        return result

    @torch.no_grad()
    def fill_edges(self, tree: RoundTree, board: Board, player: int, result: npt.NDArray[np.float32]) -> int:
        """Fill in the player's edges of `result` [E, U], as of `on_board`; returns the number of infosets."""
        place, nodes = self._encoded(player, tree.nodes.tobytes())
        if len(place):
            cards = torch.from_numpy(board.visible_cards).to(nodes.device)
            for some, outputs in self.networks[player].on_grid(cards, nodes):
                self._to_edges(tree, place[some], player, outputs, result)
        return len(place) * len(board)

    def _encode(self, player: int, nodes: bytes) -> tuple[Ints, torch.Tensor]:
        """The places of the player's nodes among some of one round, and these nodes as the player's network sees them."""
        node = np.frombuffer(nodes, np.int64)
        place = np.flatnonzero(self._owner.cpu().numpy()[node] == player)
        return place, self._nodes[player][torch.from_numpy(node[place]).to(self._owner.device)]

    def _to_edges(
        self, tree: RoundTree, nodes: Ints, player: int, outputs: torch.Tensor, result: npt.NDArray[np.float32]
    ) -> None:
        """Fill in the edges of `nodes` [m], positions in the round, from outputs [m, U, A] of their player's network."""
        legal = self.game.encoding.legal[torch.from_numpy(tree.nodes[nodes]).to(outputs.device)]
        strategy = self._to_strategy[player](outputs, legal[:, None]).cpu().numpy()
        place, action = np.nonzero(legal.cpu().numpy())
        result[tree.edge_of[nodes[place], action]] = strategy[place, :, action]

    @torch.no_grad()
    def row_strategy(self, player: int, round_: int, cards: Cards) -> RowStrategy:  # noqa: ARG002
        hands = self.networks[player].encode_cards(torch.from_numpy(cards).to(self.game.device))
        return _in_parts(self.game, self.networks[player], hands, self._nodes[player], self._to_strategy[player])


def _in_parts(
    game: Game, network: SplitNetwork, hands: torch.Tensor, nodes: NodeParts, to_strategy: ToStrategy
) -> RowStrategy:
    """A network's strategy for pairs of encoded `hands` [U, D] and `nodes` [N, D'], some rows at a time."""
    legal, device = game.encoding.legal, game.device

    @torch.no_grad()
    def ask(node: Ints, hand: Ints) -> npt.NDArray[np.floating]:
        result = np.empty((len(node), network.num_actions), np.float32)
        for start in range(0, len(node), _ROWS):
            some = slice(start, start + _ROWS)
            at = torch.from_numpy(node[some]).to(device)
            one = at[:1] if bool((at == at[0]).all()) else at
            outputs = network.joint(hands[torch.from_numpy(hand[some]).to(device)], nodes[one])
            result[some] = to_strategy(outputs, legal[at]).cpu().numpy()
        return result

    return ask


class RegretMatchingPolicy(NetworkPerPlayer):
    """The strategy sigma^t of one iteration: regret matching on each player's advantage network."""

    def __init__(
        self,
        game: Game,
        networks: tuple[SplitNetwork, SplitNetwork],
        fallback: str = "highest",
        pot_units: bool = False,
        compressed: bool = False,
    ) -> None:
        matching = partial(regret_matching, fallback=fallback)
        super().__init__(game, networks, (matching, matching), "regret matching on the newest advantage networks")
        # units of the outputs, which do not change the strategy: fractions of the pot or not, negative
        # outputs on a logarithmic scale or not
        self.pot_units, self.compressed = pot_units, compressed
        self.fallback = fallback

    def _to_edges(
        self,
        tree: RoundTree,
        nodes: Ints,
        player: int,  # noqa: ARG002
        outputs: torch.Tensor,
        result: npt.NDArray[np.float32],
    ) -> None:
        advantages = outputs.transpose(1, 2).contiguous().cpu().numpy()  # whole rows of hands
        match_outputs(tree.first_edge, tree.edge_action, nodes, advantages, self.fallback == "highest", result)


@dataclass(frozen=True)
class FirstRound:
    """Both players' strategy for the first round of a game without public cards in it: one board with U canonical
    hands.

    `first_board` gives the `tree` and the `visible_cards`.
    """

    tree: RoundTree
    visible_cards: npt.NDArray[np.uint8]  # [U, C], ascending by `pack_cards`
    probabilities: npt.NDArray[np.float32]  # [E, U]

    @cached_property
    def _keys(self) -> Ints:
        return pack_cards(self.visible_cards)

    @cached_property
    def _edge(self) -> Ints:
        """The edge of every action at every node up to this round's last node, -1 where there is none."""
        tree = self.tree
        edges = np.full((int(tree.nodes.max()) + 1, int(tree.edge_action.max()) + 1), -1)
        edges[tree.nodes[tree.edge_node], tree.edge_action] = np.arange(tree.num_edges)
        return edges

    def on_board(self, board: Board) -> npt.NDArray[np.float32]:
        """The probability of every edge with every canonical hand of the round's board, [E, U]."""
        return self.probabilities[:, self.columns(board.visible_cards)]

    def columns(self, cards: npt.NDArray[np.uint8]) -> Ints:
        """The columns, [M], of hands `cards`, uint8 [M, C] in the game's encoding."""
        return np.searchsorted(self._keys, pack_cards(cards))

    def rows(self, node: Ints, column: Ints, num_actions: int) -> npt.NDArray[np.float32]:
        """Probabilities [M, A] at `node` [M] of the public tree with the hands in `column` [M]."""
        result = np.zeros((len(node), num_actions), np.float32)
        edge = self._edge[node]
        result[:, : edge.shape[1]] = np.where(edge >= 0, self.probabilities[edge, column[:, None]], 0)
        return result


def first_board(game: Game) -> tuple[RoundTree, Board]:
    """The tree of a poker game's first round and its board; their edges and canonical hands give the shape of a
    `FirstRound`.

    Raises GameError for other games, and for games that deal public cards before the first round.
    """
    poker = poker_game(game)
    if poker.rules.board_cards[0]:
        raise GameError(
            f"A table for the first betting round needs a round without public cards, but {poker.name} deals "
            f"{poker.rules.board_cards[0]} before it."
        )
    boards = Boards(poker, merge=poker.suits == "canonical")
    return boards.rounds[0], boards.children(boards.root)[0]


class WithFirstRound(Policy):
    """A policy that plays a table in the first round and `policy` in all later ones."""

    def __init__(self, policy: Policy, first_round: FirstRound) -> None:
        self.policy, self.first_round = policy, first_round
        self.game, self.kind = policy.game, f"{policy.kind}, with a table for the first round"
        self.whole_rounds = policy.whole_rounds  # the first round has one entry, so none of its lines are left out

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        node = infosets.node.long()
        first = self.game.round[node] == 0  # in poker an infoset index is a node
        result = torch.zeros(len(infosets), self.game.encoding.num_actions, dtype=torch.float64, device=node.device)
        if not bool(first.all()):
            result[~first] = self.policy.probabilities(infosets[~first]).double()
        column = self.first_round.columns(infosets.cards[first].cpu().numpy())
        rows = self.first_round.rows(node[first].cpu().numpy(), column, result.shape[1])
        result[first] = torch.from_numpy(rows).to(result)
        return result

    def on_board(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        return self.first_round.on_board(board) if board.round == 0 else self.policy.on_board(tree, board)

    def on_hands(self, nodes: Ints, cards: Cards) -> npt.NDArray[np.floating]:
        first = int(self.game.round[torch.from_numpy(nodes[:1])][0]) == 0
        return super().on_hands(nodes, cards) if first else self.policy.on_hands(nodes, cards)

    def row_strategy(self, player: int, round_: int, cards: npt.NDArray[np.uint8]) -> RowStrategy:
        if round_ > 0:
            return self.policy.row_strategy(player, round_, cards)
        table, column, actions = self.first_round, self.first_round.columns(cards), self.game.encoding.num_actions
        return lambda node, hand: table.rows(node, column[hand], actions)


class RememberedStrategies:
    """Cache of both players' strategies on every visited board: one float32 for each edge and canonical hand."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], npt.NDArray[np.float32]] = {}
        self._seen: dict[tuple[int, ...], list[int]] = {}  # board to the version of each player's part
        self._version = [0, 0]
        self._asked: list[int] = []  # infosets evaluated, by board and player; a list, because threads may append to it

    def changed(self, player: int) -> None:
        """Call after a player's network changes; drops that player's cached strategies."""
        self._version[player] += 1

    def asked(self) -> int:
        """Number of infosets at which networks were evaluated since the last call."""
        asked, self._asked = self._asked, []
        return sum(asked)

    def count(self, infosets: int) -> None:
        """Count infosets at which another process evaluated networks."""
        self._asked.append(infosets)

    def of(
        self, policy: Policy, networks: RegretMatchingPolicy
    ) -> Callable[[RoundTree, Board], npt.NDArray[np.floating]]:
        """The strategy of `policy`, which plays `networks` in all rounds, except possibly the first.

        A network is evaluated on a board only if it has changed since the last visit. The first round is not cached.
        """

        def on_board(tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
            if board.round == 0:
                return policy.on_board(tree, board)
            place = (board.round, *board.cards)
            if place not in self._kept:
                self._kept[place] = np.empty((tree.num_edges, len(board)), np.float32)
                self._seen[place] = [-1, -1]
            kept, seen = self._kept[place], self._seen[place]
            for player in (0, 1):
                if seen[player] != self._version[player]:
                    self._asked.append(networks.fill_edges(tree, board, player, kept))
                    seen[player] = self._version[player]
            return kept

        return on_board
