"""Public-chance traversals as a `Collector`: whole boards, and samples of hands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from deepcfr.config import RunConfig
from deepcfr.games.poker import PokerGame
from deepcfr.parallel import Workers
from deepcfr.policies.network import RememberedStrategies
from deepcfr.ranges.boards import Boards, Entry, SampledBoards, keeps_all
from deepcfr.ranges.public_chance import BoardTraversal, Piece, Records, traverse_boards
from deepcfr.ranges.rounds import round_trees
from deepcfr.ranges.sweep import BoardStrategy
from deepcfr.rng import key
from deepcfr.solvers.collector import CurrentStrategy, Elsewhere, TraversalJob
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.memories import Batch, HandMemories, InfosetMemories, Memories, TraversalResult, panel_rows
from deepcfr.types import Floats, HandSamples, Samples


class BoardCollector:
    """Traversals of sampled boards, or of the same panel of them in every iteration."""

    def __init__(
        self,
        game: PokerGame,
        config: RunConfig,
        table: FirstRoundTable | None,
        workers: Workers,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._game, self._config, self._table, self._workers = game, config, table, workers
        self._elsewhere = elsewhere
        self.remembered = RememberedStrategies()  # on a panel of boards
        assert config.sampling.kind == "public-chance"
        self._sampling = settings = config.sampling
        self._first_round = 1 if table else 0
        self.memories: Memories = (
            HandMemories(
                game, config.memory, round_trees(game), self._first_round, panel_rows(game, settings), config.cfr
            )
            if settings.panel
            else InfosetMemories(game, config.memory, decisions=settings.decisions)
        )

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

    def traverse(self, t: int, traverser: int, current: CurrentStrategy) -> Iterator[TraversalResult]:
        """Iteration t's traversals for one player, all at once."""
        settings, job = self._sampling, TraversalJob(t, traverser)
        strategy, stream = self._strategy(current), self._boards_stream(job)

        def elsewhere(entries: Iterable[Entry]) -> Iterator[Piece]:
            assert self._elsewhere
            for values, found, asked in self._elsewhere(job, entries):
                self.remembered.add_asked(asked)
                yield values, found

        arguments = (self.boards, strategy, traverser, settings, t, stream, self._workers)
        found = traverse_boards(*arguments, elsewhere if self._elsewhere else None)
        rounds = range(self._first_round, len(self.boards.rounds))
        acting = [r for r in rounds if (self.boards.rounds[r].actor == traverser).any()]
        yield TraversalResult(
            traversals=found.boards,
            nodes_touched=found.nodes_touched,
            evaluated=self.remembered.asked() if settings.panel else found.evaluated,
            advantages=[self._batch(found.advantages[round_], 0, t, traverser, round_) for round_ in acting],
            strategies=[self._batch(found.strategies[round_], 1, t, traverser, round_) for round_ in acting],
            first_values=found.first_values if self._table else None,
        )

    def work(self, job: TraversalJob, current: CurrentStrategy) -> Callable[[Entry], tuple[Floats, Records, int]]:
        """The function that plays a board and those after it; it also returns `RememberedStrategies.asked`."""
        strategy, stream = self._strategy(current), self._boards_stream(job)
        traversal = BoardTraversal(self.boards, strategy, job.traverser, self._sampling, job.t, stream)
        return lambda entry: (*traversal.piece(entry), self.remembered.asked())

    def _strategy(self, current: CurrentStrategy) -> BoardStrategy:
        policy = current.policy()
        return self.remembered.of(policy, current.matching) if self._sampling.panel else policy.on_board

    def _boards_stream(self, job: TraversalJob) -> int:
        return panel_stream(self._config) if self._sampling.panel else self._stream("boards", job.t, job.traverser)

    def _batch(self, found: HandSamples | Samples, kind: int, t: int, traverser: int, round_: int) -> Batch:
        """One round's samples; `kind` is 0 for advantages and 1 for strategies."""
        return Batch(found, self._stream("slot", t, traverser, round_) + kind, round_)

    def _stream(self, *purpose: str | int) -> int:
        return key(self._config.seed, *purpose)


def panel_stream(config: RunConfig) -> int:
    """The stream of all chance in a run's panel: which boards it has, and which hands of them are remembered."""
    return key(config.seed, "panel")
