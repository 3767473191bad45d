"""Traversals of histories (Deep CFR, Algorithm 2): in chunks, with random streams that depend only on their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from deepcfr.config import HistorySampling, RunConfig
from deepcfr.games.base import Deals, Game, card_codes, distinct
from deepcfr.parallel import Workers
from deepcfr.policies.first_round import FirstRound
from deepcfr.policies.network import regret_matching
from deepcfr.rng import key
from deepcfr.sampling.external import Strategy, traverse
from deepcfr.sampling.outcome import Learnt, traverse_outcomes
from deepcfr.solvers.collector import CurrentStrategy, Elsewhere, TraversalJob
from deepcfr.solvers.memories import Batch, InfosetMemories, Memories, TraversalResult
from deepcfr.training.networks import SplitNetwork

PLAYERS = (0, 1)
_CHUNK = 4_096  # traversals that one thread runs together; decides which samples a full memory keeps


class HistoryCollector:
    """Runs all traversals of a run in chunks; one memory for each purpose keeps the samples."""

    def __init__(self, game: Game, config: RunConfig, workers: Workers, elsewhere: Elsewhere | None = None) -> None:
        self._game, self._config, self._workers, self._elsewhere = game, config, workers, elsewhere
        self.memories: Memories = InfosetMemories(game, config.memory)

    def traverse(
        self, t: int, traverser: int, current: CurrentStrategy, purpose: str = ""
    ) -> Iterator[TraversalResult]:
        """Iteration t's traversals for one player, chunk by chunk in their order (Algorithm 2).

        Another `purpose` has random streams of its own.
        """
        job, chunks = TraversalJob(t, traverser, purpose), chunks_of(history_sampling(self._config))
        if self._elsewhere:
            return self._elsewhere(job, chunks)
        return self._workers.map(self.work(job, current), chunks)

    def work(self, job: TraversalJob, current: CurrentStrategy) -> Callable[[Chunk], TraversalResult]:
        """The function that runs a chunk of a job."""
        return HistoryTraversals(self._game, self._config, job, current).run

    def changed(self, player: int) -> None:
        """Does nothing: no strategies are cached."""


def history_sampling(config: RunConfig) -> HistorySampling:
    """The sampling settings of a run that samples histories."""
    assert config.sampling.kind != "public-chance"
    return config.sampling


Chunk = tuple[int, int]
"""The number of the first of some traversals, and their count."""


def chunks_of(sampling: HistorySampling) -> Iterator[Chunk]:
    """A player's traversals of an iteration, in chunks."""
    for first in range(0, sampling.traversals, _CHUNK):
        yield first, min(_CHUNK, sampling.traversals - first)


class HistoryTraversals:
    """One player's traversals in one iteration; any part of them can be run, in any order and by any thread."""

    def __init__(self, game: Game, config: RunConfig, job: TraversalJob, current: CurrentStrategy) -> None:
        self._purpose = (job.purpose,) if job.purpose else ()
        self._game, self._config, self._t, self._traverser, self._current = game, config, job.t, job.traverser, current
        self._sampling = history_sampling(config)

    def stream(self, purpose: str, *more: int) -> int:
        """The random stream for one purpose in these traversals."""
        return key(self._config.seed, *self._purpose, purpose, self._t, self._traverser, *more)

    def run(self, chunk: Chunk) -> TraversalResult:
        """Run some traversals. Samples of the first round are apart if a table plays it."""
        first, count = chunk
        game, sampling, current = self._game, self._sampling, self._current
        deals = game.deal(count, self.stream("deal"), first)
        mine, theirs = (self._strategy(current.matching.networks[player], player, deals) for player in PLAYERS)
        if sampling.kind == "external":
            stream, actions = self.stream("action"), sampling.actions
            found = traverse(game, deals, self._traverser, (mine, theirs), stream, self._t, actions)
        else:
            learnt = Learnt(current.values.of(deals), sampling.estimate == "values") if current.values else None
            stream, e = self.stream("action"), sampling.exploration
            found = traverse_outcomes(game, deals, self._traverser, (mine, theirs), e, stream, self._t, learnt)
        advantages, strategies, for_table, decisions = found.advantages, found.strategies, None, found.decisions
        if current.first_round is not None:
            early = [game.round[samples.infosets.node.long()] == 0 for samples in (advantages, strategies)]
            for_table = (advantages[early[0]], strategies[early[1]])
            advantages, strategies = advantages[~early[0]], strategies[~early[1]]
            decisions = decisions[1:]  # a table is not a network
        return TraversalResult(
            traversals=count,
            nodes_touched=found.nodes_touched,
            evaluated=int(decisions.sum()),
            advantages=[Batch(advantages, self.stream("advantage slot", first))],
            strategies=[Batch(strategies, self.stream("strategy slot", first))],
            first_round=for_table,
            histories=found.histories,
        )

    def _strategy(self, network: SplitNetwork, player: int, deals: Deals) -> Strategy:
        """sigma^t of one player on some deals: its view in each round is encoded once, before the traversals."""
        game, matching = self._game, self._current.matching
        with torch.no_grad():
            rounds = deals.views.shape[2]
            views = deals.views[:, player].flatten(0, 1)
            # many deals share a hand before the board comes, so distinct views are encoded once
            example, view = distinct(card_codes(views, game.encoding))
            hands = network.encode_cards(views[example])
            nodes = network.node_parts()

        @torch.no_grad()
        def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            infoset = game.infoset[node]
            advantage = network.joint(hands[view[row * rounds + game.round[node]]], nodes[infoset])
            return regret_matching(advantage, game.legal[node], matching.fallback)

        table = self._current.first_round
        return strategy if table is None else with_table(game, strategy, table, deals, player)


def with_table(game: Game, later: Strategy, table: FirstRound, deals: Deals, player: int) -> Strategy:
    """A strategy for traversals that plays `table` in the first round and `later` after it."""
    column = table.columns(deals.views[:, player, 0].cpu().numpy())

    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        first = game.round[node] == 0
        result = torch.empty(len(node), game.encoding.num_actions, device=node.device)
        if not bool(first.all()):
            result[~first] = later(node[~first], row[~first])
        rows = table.rows(node[first].cpu().numpy(), column[row[first].cpu().numpy()], result.shape[1])
        result[first] = torch.from_numpy(rows).to(result)
        return result

    return strategy
