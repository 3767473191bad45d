"""One iteration of CFR with all hands of a board. The variants differ in how sums of earlier iterations shrink.

They are CFR (Zinkevich et al. 2007), CFR+ (Tammelin 2014), Linear CFR and Discounted CFR (Brown and Sandholm 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from deepcfr.boards.boards import Board, Deal, OnBoard, Visit
from deepcfr.boards.last_round import CFRStep, LastRound
from deepcfr.boards.regret_kernels import add_regrets, descend, predict_regrets
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import RoundPass, Scratch
from deepcfr.boards.tables import BoardTables
from deepcfr.config import RunConfig
from deepcfr.core.errors import ConfigError
from deepcfr.core.rng import key
from deepcfr.core.types import Doubles, Floats


@dataclass(frozen=True)
class Discounting:
    """A variant of CFR as numbers (Brown and Sandholm 2019, "Solving imperfect-information games via discounted regret
    minimization"): how sums of earlier iterations shrink before iteration t adds to them.

    An infinite exponent leaves the sum unchanged.
    """

    positive: float  # alpha: positive regrets, by (t-1)^alpha / ((t-1)^alpha + 1)
    negative: float  # beta: negative regrets, by (t-1)^beta / ((t-1)^beta + 1)
    average: float  # gamma: the average strategy, by ((t-1) / t)^gamma
    floor: bool = False  # CFR+: regrets below zero become zero after every update
    #: regret matching reads the sum with the newest regret counted twice, as a prediction of the next one (Farina, Kroer
    #: and Sandholm 2021, "Faster game solving via predictive Blackwell approachability", PCFR+)
    predictive: bool = False

    def factors(self, t: int) -> tuple[float, float, float]:
        """Factors of positive regrets, negative regrets and averages before iteration t = 1, 2, ... adds to them."""
        return _regret_factor(t - 1, self.positive), _regret_factor(t - 1, self.negative), ((t - 1) / t) ** self.average

    def step(self, t: int, tremble: float = 0.0) -> CFRStep:
        """Iteration t as numbers, with actions of a probability of `tremble` at least."""
        return CFRStep(*self.factors(t), 0.0 if self.floor else -inf, tremble)


def _regret_factor(t: int, exponent: float) -> float:
    if t == 0 or exponent == inf:
        return 1.0
    power: float = float(t) ** exponent
    return power / (power + 1.0)


DISCOUNTED = Discounting(1.5, 0.0, 2.0)
"""Discounted CFR with the numbers that its paper recommends."""
_VARIANTS = {
    "cfr": Discounting(inf, inf, 0.0),
    "cfr+": Discounting(inf, inf, 1.0, floor=True),
    "pcfr+": Discounting(inf, inf, 2.0, floor=True, predictive=True),
    "linear-cfr": Discounting(1.0, 1.0, 1.0),
    "dcfr": DISCOUNTED,
}


def discounting(config: RunConfig) -> Discounting:
    """The numbers of a full-width algorithm. Raises ConfigError for one that is not full-width."""
    if config.solver not in _VARIANTS:
        raise ConfigError(f"'{config.solver}' is not a full-width algorithm: {', '.join(_VARIANTS)} are.")
    return _VARIANTS[config.solver]


def update(
    rounds: list[RoundTree],
    tables: tuple[list[BoardTables], list[BoardTables]],
    player: int,
    variant: Discounting,
    t: int,
    scratch: Scratch,
    seed: int = 0,
    matched: Sequence[BoardTables] = (),
    tremble: float = 0.0,
    last: LastRound | None = None,
    on_board: OnBoard | None = None,
) -> Visit:
    """Iteration t of CFR on a board for one player; a visit returns the player's values at the round roots, [1, X', U].

    `tables` are the regrets and the average strategies of every round, which a visit changes; a predictive variant also
    has `matched`, what regret matching reads. `seed` is that of the random rounding of 16 bits. Both players take every
    action with a probability of `tremble` at least, in what the player learns from and in the weights of its average
    strategy. With `last`, which fits tables without rounding and no predictive variant, its boards are updated together.
    """
    step = variant.step(t, tremble)

    def deal_last(board: Board, at_leaves: Floats) -> Doubles:
        assert last
        return last.update(board, at_leaves, (tables[0][-1], tables[1][-1]), player, step, on_board)

    def visit(board: Board, reach: Floats, deal: Deal) -> Floats:
        tree = rounds[board.round]
        if last and tree is rounds[-1]:
            return deal_last(board, reach)
        regrets, averages = (table[board.round] for table in tables)
        regret, average = regrets.load(board), averages.load(board)
        read = matched[board.round].load(board) if variant.predictive else regret
        play = RoundPass(tree, board, reach, scratch)
        play.sigma = scratch.array(f"strategy {board.round}", regret.shape)
        descend(
            tree.arrays, player, read, average, step.keep_average, play.sigma,
            play.rows[player], play.rows[1 - player], step.tremble,
        )  # fmt: skip
        values = play.up([(player, False)], partial(deal_last, board) if last and tree is rounds[-2] else deal)
        add_regrets(tree.arrays, player, step.keep_positive, step.keep_negative, step.least, values[0], regret)
        if variant.predictive:
            predict_regrets(tree.arrays, player, values[0], regret, read)
            matched[board.round].store(board, read, player)
        regrets.store(board, regret, player)
        stream = key(seed, "rounding", t, player, board.round, board.index) >> 32 if averages.rounded else None
        averages.store(board, average, player, stream)
        return values[:, tree.roots]

    return visit
