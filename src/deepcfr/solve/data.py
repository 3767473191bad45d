"""The data of Deep CFR: traversals of histories or of boards (Algorithm 2), the values of histories, and records.

What a traversal finds depends on the run's seed, the iteration, the player and its number, and not on who runs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch

from deepcfr.boards.boards import BoardReach, Boards, SampledBoards, keeps_all
from deepcfr.boards.public_chance import BoardTraversal, Piece, Records, traverse_boards
from deepcfr.boards.sweep import BoardStrategy
from deepcfr.config import RunConfig
from deepcfr.core.errors import GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import generator, key
from deepcfr.core.types import TERMINAL, Encoding, Floats, HandSamples, Samples
from deepcfr.game.base import Deals, Game, NodeFunction, card_codes, distinct
from deepcfr.game.poker import PokerGame
from deepcfr.network.examples import InfosetExamples, Objective, uniform_weights
from deepcfr.network.fit import FitResult, fit, value_loss
from deepcfr.network.memory import Memory
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.policy.base import Policy
from deepcfr.policy.network import (
    FirstRound,
    RegretMatchingPolicy,
    RememberedStrategies,
    WithFirstRound,
    regret_matching,
)
from deepcfr.sample.external import Strategy, traverse
from deepcfr.sample.outcome import Learnt, Values, history_cards, traverse_outcomes
from deepcfr.solve.base import PLAYERS
from deepcfr.solve.memories import Batch, Memories, TraversalResult

_CHUNK = 4_096  # traversals that one thread runs together; decides which samples a full memory keeps


@dataclass
class IterationRecord:
    """Counts and times of one CFR iteration; pairs are of players 0 and 1."""

    iteration: int
    traversals: int = 0  # of both players: histories from a deal, or boards
    nodes_touched: int = 0
    evaluated: int = 0  # infosets at which networks were asked for a strategy
    trained: int = 0  # examples in the mini-batches of both players' fits, and of those of history values
    traversal_seconds: float = 0.0  # in which no network was fitted
    fit_seconds: float = 0.0  # of both players' networks, and of history values
    advantage_loss: tuple[float, ...] = ()
    advantage_samples: tuple[int, int] = (0, 0)  # in the memories
    strategy_samples: int = 0

    def figures(self) -> str:
        """The figures for the progress display."""
        return (
            f"{self.nodes_touched / max(self.traversal_seconds, 1e-9):,.0f} nodes/s, "
            f"loss {self.advantage_loss[0]:.2f} {self.advantage_loss[1]:.2f}"
        )

    def add(self, found: TraversalResult) -> None:
        """Count traversals."""
        self.traversals += found.traversals
        self.nodes_touched += found.nodes_touched
        self.evaluated += found.evaluated

    def fit(self, fit: Callable[..., FitResult], *arguments: Any) -> FitResult:
        """Run a fit, and count its time and its examples."""
        begin = time.perf_counter()
        result = fit(*arguments)
        self.fit_seconds += time.perf_counter() - begin
        self.trained += result.examples
        return result

    def end(self, start: float, memories: Memories) -> None:
        """Enter the rest at the end of an iteration that began at `start`, of `time.perf_counter`."""
        self.traversal_seconds = time.perf_counter() - start - self.fit_seconds
        self.advantage_samples, self.strategy_samples = memories.sizes()


class TraversalJob(NamedTuple):
    """One player's traversals in one iteration, a list of pieces. Another `purpose` has random streams of its own."""

    t: int
    traverser: int
    purpose: str = ""


Elsewhere = Callable[[TraversalJob, Iterable[Any]], Iterator[Any]]
"""Runs pieces of a job in other processes, each by a collector's `work` there; returns their results in order."""


def played(matching: RegretMatchingPolicy, first_round: FirstRound | None) -> Policy:
    """sigma^t as one policy: regret matching, and a table for the first round where there is one."""
    return WithFirstRound(matching, first_round) if first_round else matching


def history_encoding(game: Game) -> Encoding:
    """The encoding of histories: a node with the features of its infoset, and the cards that both players see.

    Raises GameError for a game with too many nodes to list.
    """
    actor, infoset, legal = game.actor, game.infoset, game.legal
    if isinstance(actor, NodeFunction) or isinstance(infoset, NodeFunction) or isinstance(legal, NodeFunction):
        raise GameError(f"Values of histories need a list of all nodes, and '{game.name}' has too many for one.")
    infoset = torch.where(actor == TERMINAL, 0, infoset)
    groups = game.encoding.card_groups
    return replace(
        game.encoding,
        node_features=game.encoding.node_features[infoset],
        legal=legal,
        card_groups=(*groups, *groups),
    )


class HistoryValues:
    """A network of the values of actions at histories, to player 0 under the current profile, and its memory.

    They are the baseline of DREAM and the source of ESCHER's advantages. An action's target is the value of the history
    after it, as in `sample.outcome`. Fits go on from the last weights.
    """

    def __init__(self, game: Game, config: RunConfig) -> None:
        self.game, self.config = game, config
        self.encoding = history_encoding(game)
        first = generator(key(config.seed, "network", "values"))
        # as the other networks but for hand strength; without cards every history has a learnt vector of its own
        embedded = config.network.node_embedding or not self.encoding.card_groups
        network = replace(config.network, strength=False, node_embedding=embedded)
        self.network = build_network(self.encoding, network, first)
        self.memory = Memory(self.encoding, config.values.capacity, "window", game.device)
        self.fitted = False

    @property
    def come_first(self) -> bool:
        """Whether the values are learnt before the traversals that use them, from histories of their own.

        ESCHER takes advantages from these values, which should be those of the current profile. A baseline must not
        depend on the histories that it corrects, so it is learnt after them, for the next ones.
        """
        return self.config.sampling.kind == "outcome" and self.config.sampling.estimate == "values"

    def of(self, deals: Deals) -> Values:
        """The values of all actions at histories of some deals; 0 before the first fit."""
        game, network, rounds = self.game, self.network, deals.visible_cards.shape[2]
        if not self.fitted:
            return lambda node, row: torch.zeros(len(node), game.encoding.num_actions, device=row.device)
        with torch.no_grad():
            hands, nodes = network.encode_cards(history_cards(deals).flatten(0, 1)), network.encode_nodes()

        @torch.no_grad()
        def values(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            outputs = network.joint(hands[row * rounds + game.round[node]], nodes[node])
            return outputs * network.scale

        return values

    def add(self, found: TraversalResult) -> None:
        """Remember the steps of sampled histories in place of the oldest ones."""
        assert found.histories is not None
        self.memory.add(found.histories, stream=0)  # a window needs no random numbers

    def fit(self, t: int, traverser: int, workers: Workers) -> FitResult:
        """Fit the network to the newest steps, after the traversals of iteration t for one player."""
        objective = Objective(self.encoding.legal, value_loss, uniform_weights, t)
        settings = self.config.values.fit
        examples = InfosetExamples(self.memory, objective, settings)
        stream = key(self.config.seed, "value fit", t, traverser)
        self.fitted = True
        return fit(self.network, examples, settings, stream, workers)


Chunk = tuple[int, int]
"""The number of the first of some traversals, and their count."""


class HistoryCollector:
    """Runs traversals of histories in chunks (Algorithm 2), in threads of this process or elsewhere."""

    def __init__(
        self,
        game: Game,
        config: RunConfig,
        values: HistoryValues | None,
        workers: Workers,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        assert config.sampling.kind != "public-chance"
        self._game, self._config, self._sampling, self._values = game, config, config.sampling, values
        self._workers, self._elsewhere = workers, elsewhere

    def traverse(
        self, job: TraversalJob, matching: RegretMatchingPolicy, first_round: FirstRound | None
    ) -> Iterator[TraversalResult]:
        """One player's traversals in an iteration, chunk by chunk in their order; they run while the caller reads.

        The current strategy is `matching`, and the table `first_round` in the first round if there is one.
        """
        total = self._sampling.traversals
        chunks = ((first, min(_CHUNK, total - first)) for first in range(0, total, _CHUNK))
        if self._elsewhere:
            return self._elsewhere(job, chunks)
        return self._workers.map(self.work(job, matching, first_round), chunks)

    def changed(self, player: int) -> None:
        """Does nothing: no strategies are cached."""

    def work(
        self, job: TraversalJob, matching: RegretMatchingPolicy, first_round: FirstRound | None
    ) -> Callable[[Chunk], TraversalResult]:
        """The function that runs a chunk of a job. Samples of the first round are apart if a table plays it."""
        game, sampling, values = self._game, self._sampling, self._values

        def stream(purpose: str, *more: int) -> int:
            return key(self._config.seed, *filter(None, [job.purpose]), purpose, job.t, job.traverser, *more)

        def run(chunk: Chunk) -> TraversalResult:
            first, count = chunk
            deals = game.deal(count, stream("deal"), first)
            mine, theirs = (strategy_on(game, matching, first_round, player, deals) for player in PLAYERS)
            where = (game, deals, job.traverser, (mine, theirs))
            if sampling.kind == "external":
                found = traverse(*where, stream("action"), job.t, sampling.actions)
            else:
                learnt = Learnt(values.of(deals), sampling.estimate == "values") if values else None
                found = traverse_outcomes(*where, sampling.exploration, stream("action"), job.t, learnt)
            advantages, strategies, for_table, decisions = found.advantages, found.strategies, None, found.decisions
            if first_round is not None:
                early = [game.round[samples.infosets.node.long()] == 0 for samples in (advantages, strategies)]
                for_table = (advantages[early[0]], strategies[early[1]])
                advantages, strategies = advantages[~early[0]], strategies[~early[1]]
                decisions = decisions[1:]  # a table is not a network
            return TraversalResult(
                traversals=count,
                nodes_touched=found.nodes_touched,
                evaluated=int(decisions.sum()),
                advantages=[Batch(advantages, stream("advantage slot", first))],
                strategies=[Batch(strategies, stream("strategy slot", first))],
                first_round=for_table,
                histories=found.histories,
            )

        return run


def strategy_on(
    game: Game, matching: RegretMatchingPolicy, table: FirstRound | None, player: int, deals: Deals
) -> Strategy:
    """sigma^t of one player on some deals: its canonical hand in each round is encoded once, before the traversals."""
    network: SplitNetwork = matching.networks[player]
    with torch.no_grad():
        rounds = deals.visible_cards.shape[2]
        cards = deals.visible_cards[:, player].flatten(0, 1)
        # many deals share a hand before the board comes, so distinct canonical hands are encoded once
        example, canonical = distinct(card_codes(cards, game.encoding))
        hands = network.encode_cards(cards[example])
        nodes = network.node_parts()

    @torch.no_grad()
    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        infoset = game.infoset[node]
        advantage = network.joint(hands[canonical[row * rounds + game.round[node]]], nodes[infoset])
        return regret_matching(advantage, game.legal[node], matching.fallback)

    return strategy if table is None else with_table(game, strategy, table, deals, player)


def with_table(game: Game, later: Strategy, table: FirstRound, deals: Deals, player: int) -> Strategy:
    """A strategy for traversals that plays `table` in the first round and `later` after it."""
    column = table.columns(deals.visible_cards[:, player, 0].cpu().numpy())

    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        first = game.round[node] == 0
        result = torch.empty(len(node), game.encoding.num_actions, device=node.device)
        if not bool(first.all()):
            result[~first] = later(node[~first], row[~first])
        rows = table.rows(node[first].cpu().numpy(), column[row[first].cpu().numpy()], result.shape[1])
        result[first] = torch.from_numpy(rows).to(result)
        return result

    return strategy


class BoardCollector:
    """Runs traversals of sampled boards, or of the same panel of them in every iteration."""

    def __init__(
        self, game: PokerGame, config: RunConfig, workers: Workers, elsewhere: Elsewhere | None = None
    ) -> None:
        assert config.sampling.kind == "public-chance"
        self._game, self._config, self._sampling = game, config, config.sampling
        self._workers, self._elsewhere = workers, elsewhere
        self.remembered = RememberedStrategies()  # on a panel of boards

    @cached_property
    def boards(self) -> Boards:
        """All boards of the game, computed when training begins; of a large game only those that are drawn are built."""
        merge = self._game.suits == "canonical"
        if keeps_all(self._game.rules, merge=merge):
            return Boards(self._game, merge=merge, keep=True)
        return SampledBoards(self._game)

    def changed(self, player: int) -> None:
        """Call after a player's network changes; drops cached strategies."""
        self.remembered.changed(player)

    def traverse(
        self, job: TraversalJob, matching: RegretMatchingPolicy, first_round: FirstRound | None
    ) -> Iterator[TraversalResult]:
        """One player's traversals in an iteration, all at once; arguments as in `HistoryCollector.traverse`."""
        settings, (t, traverser, _) = self._sampling, job

        def elsewhere(places: Iterable[BoardReach]) -> Iterator[Piece]:
            assert self._elsewhere
            for values, found, asked in self._elsewhere(job, places):
                self.remembered.count(asked)
                yield values, found

        found = traverse_boards(
            self.boards,
            self._strategy(matching, first_round),
            traverser,
            settings,
            t,
            self._boards_stream(job),
            self._workers,
            elsewhere if self._elsewhere else None,
        )
        rounds = range(0 if first_round is None else 1, len(self.boards.rounds))
        acting = [r for r in rounds if (self.boards.rounds[r].actor == traverser).any()]
        yield TraversalResult(
            traversals=found.boards,
            nodes_touched=found.nodes_touched,
            evaluated=self.remembered.asked() if settings.on_panel else found.evaluated,
            advantages=[self._batch(found.advantages[round_], 0, t, traverser, round_) for round_ in acting],
            strategies=[self._batch(found.strategies[round_], 1, t, traverser, round_) for round_ in acting],
            first_values=None if first_round is None else found.first_values,
        )

    def work(
        self, job: TraversalJob, matching: RegretMatchingPolicy, first_round: FirstRound | None
    ) -> Callable[[BoardReach], tuple[Floats, Records, int]]:
        """The function that plays a board and those after it; it also returns `RememberedStrategies.asked`."""
        strategy, stream = self._strategy(matching, first_round), self._boards_stream(job)
        traversal = BoardTraversal(self.boards, strategy, job.traverser, self._sampling, job.t, stream)
        return lambda place: (*traversal.piece(place), self.remembered.asked())

    def _strategy(self, matching: RegretMatchingPolicy, first_round: FirstRound | None) -> BoardStrategy:
        policy = played(matching, first_round)
        return self.remembered.of(policy, matching) if self._sampling.on_panel else policy.on_board

    def _boards_stream(self, job: TraversalJob) -> int:
        panel, seed = self._sampling.on_panel, self._config.seed
        return panel_stream(self._config) if panel else key(seed, "boards", job.t, job.traverser)

    def _batch(self, found: HandSamples | Samples, kind: int, t: int, traverser: int, round_: int) -> Batch:
        """One round's samples; `kind` is 0 for advantages and 1 for strategies."""
        return Batch(found, key(self._config.seed, "slot", t, traverser, round_) + kind, round_)


def panel_stream(config: RunConfig) -> int:
    """The stream of all chance in a run's panel: which boards it has, and which hands of them are remembered."""
    return key(config.seed, "panel")
