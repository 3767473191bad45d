"""The `Game` contract that traversals, networks and solvers need, and `check_game`, which verifies it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import torch

from deepcfr.core.errors import GameError
from deepcfr.core.rng import addressed_uniforms, key
from deepcfr.core.types import NO_CARD, TERMINAL, Encoding, Infosets


@dataclass(frozen=True)
class Deals:
    """All chance events of B traversals, drawn before the first action, so that branches of one traversal share them."""

    traversal: torch.Tensor  # int64 [B], the number that addresses the traversal's random actions
    visible_cards: torch.Tensor  # uint8 [B, P, R, C], the cards that each player sees in each round
    hidden: Any  # further data of the game's own `start`, `step` and `payoff`, such as the showdown's winner

    def __len__(self) -> int:
        return self.traversal.shape[0]


@dataclass(frozen=True)
class NodeFunction:
    """A function in place of a tensor over all nodes, for a game with too many: `of` takes the nodes asked for, [M]."""

    of: Callable[[torch.Tensor], torch.Tensor]
    by_infoset: torch.Tensor | None = None  # [K], if the nodes of an infoset have it in common

    def __getitem__(self, node: torch.Tensor) -> torch.Tensor:
        return self.of(node)


AtNodes = torch.Tensor | NodeFunction  # what belongs to nodes, to be indexed by them


class Game(Protocol):
    """A two-player zero-sum game with perfect recall, stepped from node to node (public positions, without the deal).

    Node indices are 0 .. N-1. A node belongs to one player, or is terminal. The player's information there is
    `infoset[node]` together with `deals.visible_cards[row, actor[node], round[node]]`.
    """

    name: str
    unit: str  # the unit of payoffs, such as "big blinds"
    milli_unit: str  # the unit of printed results, such as "mbb/g"
    device: str

    @property
    def encoding(self) -> Encoding:
        """The infosets for networks."""

    @property
    def actor(self) -> AtNodes:
        """The player to act, int64 [N]: 0, 1 or TERMINAL."""

    @property
    def round(self) -> AtNodes:
        """The canonical hand that a node uses, int64 [N]."""

    @property
    def infoset(self) -> AtNodes:
        """Index into the rows of `encoding`, int64 [N]; any value at terminal nodes."""

    @property
    def legal(self) -> AtNodes:
        """The legal actions, bool [N, A]."""

    @property
    def deals_before(self) -> AtNodes:
        """Chance events between the parent and the node, int64 [N]; for counts of nodes touched."""

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:
        """Deals of traversals `first` .. `first + count - 1` of the stream; they do not depend on chunks."""
        ...

    def start(self, deals: Deals) -> torch.Tensor:
        """The first decision node of every traversal, int64 [B]."""
        ...

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        """The nodes after legal `action` [M] at `node` [M] of traversals `row` [M], int64 [M]."""
        ...

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        """The payoff of player 0 at terminal `node` [M], float32 [M] in the game's unit."""
        ...


class ListedGame(Game, Protocol):
    """A game whose nodes fit into a list."""

    actor: torch.Tensor
    round: torch.Tensor
    infoset: torch.Tensor
    legal: torch.Tensor
    deals_before: torch.Tensor


class DealtGame(ListedGame, Protocol):
    """A game that lists its deals, so that all of its histories can be listed, and exact values be computed."""

    def deals(self) -> tuple[Deals, torch.Tensor]:
        """Every deal once, and their probabilities, float [D]."""
        ...


def lists_deals(game: Game) -> TypeGuard[DealtGame]:
    """Whether a game has the optional method `deals`."""
    return callable(getattr(game, "deals", None))


def infosets_at(game: Game, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> Infosets:
    """The infosets of the acting players at `node` [M] of traversals `row` [M]."""
    return Infosets(game.infoset[node], deals.visible_cards[row, game.actor[node], game.round[node]])


def by_infoset(game: Game, of_nodes: AtNodes) -> torch.Tensor:
    """Numbers that all nodes of a public infoset have in common, such as their round or actor: int64 [N] to int64 [K]."""
    if isinstance(of_nodes, NodeFunction):
        assert of_nodes.by_infoset is not None
        return of_nodes.by_infoset
    assert isinstance(game.actor, torch.Tensor)
    assert isinstance(game.infoset, torch.Tensor)
    found = torch.zeros(len(game.encoding.legal), dtype=torch.int64, device=game.device)
    decisions = game.actor != TERMINAL
    found[game.infoset[decisions]] = of_nodes[decisions]
    return found


def card_codes(cards: torch.Tensor, encoding: Encoding) -> torch.Tensor:
    """Encode each row of cards (uint8 [I, C], NO_CARD allowed) as one integer, int64 [I]; codes of distinct rows differ."""
    base = encoding.num_ranks * encoding.num_suits + 1  # 0 stands for NO_CARD; seven cards of 52 take 41 bits
    code = torch.zeros(len(cards), dtype=torch.int64, device=cards.device)
    for slot in range(cards.shape[1]):
        code = code * base + (cards[:, slot] + 1).long()
    return code


def distinct(code: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A row of each of the D distinct numbers in `code` [N], int64 [D], and the number of each row among those, [N]."""
    found, place = torch.unique(code, return_inverse=True)
    example = torch.empty(len(found), dtype=torch.int64, device=code.device)
    example[place] = torch.arange(len(code), device=code.device)
    return example, place


def check_game(game: ListedGame, playouts: int = 255, seed: int = 0) -> None:
    """Verify the `Game` contract: check the arrays, then play random games.

    Raises GameError with one sentence for every breach found.
    """
    if lacks := [name for name in (*ListedGame.__annotations__, "encoding", "deal", "step") if not hasattr(game, name)]:
        raise GameError(f"{game!r} is no game: it has no {', '.join(lacks)}.")
    problems = _array_problems(game) or _meaning_problems(game)
    if not problems:
        deals = game.deal(playouts, key(seed, "check"))
        later = game.deal(playouts - playouts // 2, key(seed, "check"), first=playouts // 2)
        problems = _deal_problems(game, deals, later) or _playout_problems(game, deals, later, seed)
        if not problems and lists_deals(game):
            problems = _listing_problems(game, deals)
    if problems:
        raise GameError([f"The game '{game.name}' breaks the contract: {problem}" for problem in problems])


def _mismatch(name: str, value: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> list[str]:
    if tuple(value.shape) == shape and value.dtype == dtype:
        return []
    kind = {torch.int64: "int64", torch.bool: "bool", torch.float32: "float32", torch.uint8: "uint8"}[dtype]
    return [f"{name} must be {kind} {list(shape)}, but is {value.dtype} {list(value.shape)}."]


def _array_problems(game: ListedGame) -> list[str]:
    nodes, actions = len(game.actor), game.encoding.num_actions
    problems = []
    for name in ("actor", "round", "infoset", "deals_before"):
        problems += _mismatch(name, getattr(game, name), (nodes,), torch.int64)
    problems += _mismatch("legal", game.legal, (nodes, actions), torch.bool)
    features = game.encoding.node_features
    problems += _mismatch("encoding.legal", game.encoding.legal, tuple(game.encoding.legal.shape[:2]), torch.bool)
    shape = (len(game.encoding.legal), *features.shape[1:2])
    encoding = game.encoding
    codes = (encoding.num_ranks * encoding.num_suits + 1) ** sum(encoding.card_groups) * len(encoding.legal)
    if codes >= 1 << 63:
        problems.append("infosets must fit into 63 bits: the encoding has too many nodes times cards.")
    return problems + _mismatch("node_features", features, shape, torch.float32)


def _meaning_problems(game: ListedGame) -> list[str]:
    problems = []
    if not bool(((game.actor >= TERMINAL) & (game.actor <= 1)).all()):
        problems.append("actor must be 0, 1 or TERMINAL.")
    if int(game.round.min()) < 0:
        problems.append("round must not be negative.")
    decisions = game.actor != TERMINAL
    infosets = game.infoset[decisions]
    if len(infosets) == 0 or int(infosets.min()) < 0 or int(infosets.max()) >= len(game.encoding.legal):
        return [*problems, "infoset must index the rows of the encoding at every decision node, and there must be one."]
    if not bool(game.legal[decisions].any(1).all()):
        problems.append("every decision node needs a legal action.")
    if not torch.equal(game.legal[decisions], game.encoding.legal[infosets]):
        problems.append("a node's legal actions must be those of its infoset in the encoding.")
    owner = torch.full((len(game.encoding.legal),), TERMINAL, device=game.actor.device)
    owner[infosets] = game.actor[decisions]
    if not torch.equal(owner[infosets], game.actor[decisions]):
        problems.append("all nodes of an infoset must belong to one player.")
    if not bool(torch.isfinite(game.encoding.node_features).all()):
        problems.append("node_features must be finite.")
    return problems


def _deal_problems(game: ListedGame, deals: Deals, later: Deals) -> list[str]:
    count, half = len(deals), len(deals) - len(later)
    rounds = int(game.round[game.actor != TERMINAL].max()) + 1
    problems = _mismatch("traversal", deals.traversal, (count,), torch.int64)
    if deals.visible_cards.ndim == 4:
        rounds = max(rounds, deals.visible_cards.shape[2])
    problems += _mismatch(
        "visible_cards", deals.visible_cards, (count, 2, rounds, sum(game.encoding.card_groups)), torch.uint8
    )
    if problems:
        return problems
    cards = deals.visible_cards[deals.visible_cards != NO_CARD]
    if len(cards) and int(cards.max()) >= game.encoding.num_ranks * game.encoding.num_suits:
        problems.append("visible_cards must hold cards of the encoding's deck, or NO_CARD.")
    if not torch.equal(deals.traversal[half:], later.traversal):
        problems.append("deal() must number its traversals from `first`.")
    if not torch.equal(deals.visible_cards[half:], later.visible_cards):
        problems.append("deal() must give a traversal the same deal in any chunking.")
    return problems


def _listing_problems(game: DealtGame, deals: Deals) -> list[str]:
    """Find what is wrong with the list of all deals, some of which are `deals`."""
    listed, chance = game.deals()
    problems = _mismatch(
        "visible_cards of deals()", listed.visible_cards, (len(listed), *deals.visible_cards.shape[1:]), torch.uint8
    )
    if tuple(chance.shape) != (len(listed),) or not (chance > 0).all() or abs(float(chance.sum()) - 1) > 1e-5:
        problems.append("deals() must list deals with as many positive probabilities, which add up to 1.")
    if problems:
        return problems
    _, canonical = torch.unique(
        torch.cat([listed.visible_cards, deals.visible_cards]).flatten(1), dim=0, return_inverse=True
    )
    share = torch.zeros(int(canonical.max()) + 1, dtype=torch.float64)
    share = share.scatter_add(0, canonical[: len(listed)].cpu(), chance.double().cpu())
    drawn = torch.bincount(canonical[len(listed) :].cpu(), minlength=len(share)) / len(deals)
    # six standard errors of a frequency, and one deal for shares that are nearly 0
    if bool(((drawn - share).abs() > 6 * (share * (1 - share) / len(deals)).sqrt() + (share > 0) / len(deals)).any()):
        problems.append("deals() must list what deal() draws, with its probabilities.")
    return problems


def _playout_problems(game: ListedGame, deals: Deals, later: Deals, seed: int) -> list[str]:
    problems, payoffs = _playout(game, deals, seed)
    if not problems:
        again = _playout(game, later, seed)[1]
        if not torch.equal(payoffs[len(deals) - len(later) :], again):
            problems = ["deal() must give a traversal the same outcome in any chunking."]
    return problems


def _playout(game: ListedGame, deals: Deals, seed: int) -> tuple[list[str], torch.Tensor]:
    """Play every deal to its end with random actions; returns the problems found and the payoffs."""
    row = torch.arange(len(deals), device=game.device)
    none = torch.empty(0)
    node = game.start(deals)
    problems = _node_problems(game, "start()", node, len(deals))
    if not problems and bool((game.actor[node] == TERMINAL).any()):
        problems = ["start() must lead to decision nodes."]
    for _ in range(len(game.actor) + 1):
        if problems:
            return problems, none
        live = game.actor[node] != TERMINAL
        if not bool(live.any()):
            break
        at, rows = node[live], row[live]
        chance = addressed_uniforms(key(seed, "play"), deals.traversal[rows], at)[:, None]
        weights = game.legal[at].float()
        action = ((weights.cumsum(1) / weights.sum(1, keepdim=True)) <= chance).sum(1)
        after = game.step(at, action, rows, deals)
        problems = _node_problems(game, "step()", after, len(at))
        if not problems:
            node = node.clone()
            node[live] = after
    else:
        return ["a playout does not end."], none
    payoffs = game.payoff(node, row, deals)
    problems = _mismatch("payoff()", payoffs, (len(deals),), torch.float32)
    if not problems and not bool(torch.isfinite(payoffs).all()):
        problems = ["payoffs must be finite."]
    return problems, payoffs


def _node_problems(game: ListedGame, source: str, node: torch.Tensor, count: int) -> list[str]:
    problems = _mismatch(source, node, (count,), torch.int64)
    if not problems and (int(node.min()) < 0 or int(node.max()) >= len(game.actor)):
        problems = [f"{source} must lead to a node."]
    return problems
