"""Public-chance traversals as a `Collector`: whole boards, and memories of hands or of infosets drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from deepcfr.config import RunConfig
from deepcfr.games.poker import PokerGame
from deepcfr.parallel import Workers
from deepcfr.policies.base import board_strategy
from deepcfr.policies.remembered import RememberedStrategies
from deepcfr.ranges.boards import Boards, round_trees
from deepcfr.ranges.public_chance import BoardPass, RoundPart, check_settings, drawn_infosets, traverse_boards
from deepcfr.rng import key
from deepcfr.solvers.collector import Collected, Current, Fitting
from deepcfr.solvers.first_round import FirstRoundTable
from deepcfr.solvers.memories import HandMemories, InfosetMemories, Memories, panel_rows
from deepcfr.training.fit import fit


class BoardCollector:
    """Traversals of sampled boards, or of the same panel of them in every iteration."""

    def __init__(self, game: PokerGame, config: RunConfig, table: FirstRoundTable | None, workers: Workers) -> None:
        self._game, self._config, self._table, self._workers = game, config, table, workers
        self.fit: Fitting = fit
        self.side_by_side = 0
        self.remembered = RememberedStrategies()  # on a panel of boards
        settings = config.public_chance
        check_settings(game.rules, settings)
        self._memories: HandMemories | InfosetMemories
        if settings.record == "hands":
            first, rows = 1 if table else 0, panel_rows(game, settings)
            self._memories = HandMemories(game, config.memory, round_trees(game), first, rows, config.cfr)
        else:
            self._memories = InfosetMemories(game, config.memory)
        self.memories: Memories = self._memories

    @cached_property
    def boards(self) -> Boards:
        """What is sampled from: all boards of the game, made when training begins."""
        return Boards(self._game, merge=self._game.suits == "canonical", keep=True)

    def changed(self, player: int) -> None:
        """See `Collector`."""
        self.remembered.changed(player)

    def close(self) -> None:
        """Nothing is kept open."""

    def begin(self, t: int, traverser: int, current: Current) -> Callable[[], Collected]:
        """See `Collector`; they have ended when this returns."""
        settings = self._config.public_chance
        if settings.panel:
            strategy = self.remembered.of(current.policy(), current.matching)
            stream = panel_stream(self._config)
        else:
            strategy, stream = board_strategy(current.policy()), self._stream("boards", t, traverser)
        found = traverse_boards(self.boards, strategy, traverser, settings, t, stream, self._workers)
        if self._table:
            self._table.add_strategy(traverser, t)
            self._table.add_values(found.first_values, traverser, t)
        for round_ in range(1 if self._table else 0, len(self.boards.rounds)):
            self._remember(found, t, traverser, round_)
        evaluated = self.remembered.asked() if settings.panel else found.evaluated
        done = Collected(found.boards, found.nodes_touched, evaluated)
        return lambda: done

    def _remember(self, found: BoardPass, t: int, traverser: int, round_: int) -> None:
        """Keep one round's hands, as they are or as infosets drawn from them."""
        tree, slots = self.boards.rounds[round_], self._stream("slot", t, traverser, round_)
        part = RoundPart.of(tree, traverser)
        if not len(part.nodes):
            return
        hands = (found.advantages[round_], found.strategies[round_])
        if isinstance(self._memories, HandMemories):
            self._memories.add(traverser, round_, hands, slots)
            return
        # a traversal of histories meets every round once, so rounds of which fewer hands were recorded count more
        times = max(map(len, found.advantages)) / max(1, len(hands[0]))
        advantages, strategies = (
            drawn_infosets(h, tree, part, self._game.encoding.num_actions, times, self._stream("infosets", slots, i))
            for i, h in enumerate(hands)
        )
        self._memories.advantages[traverser].add(advantages, slots)
        self._memories.strategies.add(strategies, slots + 1)

    def _stream(self, *purpose: str | int) -> int:
        return key(self._config.seed, *purpose)


def panel_stream(config: RunConfig) -> int:
    """The stream of all chance in a run's panel: which boards it has, and which hands of them are remembered."""
    return key(config.seed, "panel")
