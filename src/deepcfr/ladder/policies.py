"""Policies of raise-ladder games: tables and their compact form, scripted policies, styles and ensembles."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from deepcfr.abstraction.buckets import lossless
from deepcfr.abstraction.texture import Buckets, TextureBuckets
from deepcfr.compiled import nb
from deepcfr.errors import CheckpointError, GameError
from deepcfr.evaluation.match.record import require_same_game
from deepcfr.games.betting import CALL
from deepcfr.games.ladder_betting import ACTOR, ROUND, RUNG, LadderGame, legal_actions
from deepcfr.ladder.traversals import LadderLayout, Table, ladder_layout, table_strategies
from deepcfr.policies.base import LadderPolicy, fewest_deals
from deepcfr.policies.ensemble import RULES
from deepcfr.policies.initial import win_rates
from deepcfr.policies.scripted import STYLES as SCRIPTS
from deepcfr.policies.styles import STRONG, STYLES, play_style
from deepcfr.policies.threshold import without_rare
from deepcfr.rng import addressed_uniforms, key
from deepcfr.sampling.traversal_tree import buckets_of, situations_of

Cards = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FULL = 255  # the largest probability of a row in the compact form
_PIECE = 1 << 22  # entries per step of the conversion: a few megabytes


class LadderTable(LadderPolicy):
    """Probabilities in proportion to the positive entries of a table, uniform over legal actions where there are none.

    `table` is flat, in the `ladder_layout` of the game and the counts of the buckets, and is not copied. It may also be
    the expanded compact form, uint8. Actions below `threshold` are not played, unless none is as probable (Ganzfried,
    Sandholm and Waugh 2012, "Strategy purification and thresholding", section 3).
    """

    threshold = 0.0

    def __init__(self, game: LadderGame, buckets: Buckets, table: Table, kind: str = "average") -> None:
        self.game, self.buckets, self.table, self.kind = game, buckets, table, kind
        self.layout = ladder_layout(game, buckets.counts)
        self.width = 2 * game.rules.num_rounds
        if table.shape != (self.layout.size,):
            raise GameError(
                f"The tables of {game.name} with {list(buckets.counts)} buckets have {self.layout.size:,} entries, but "
                f"the given table has shape {list(table.shape)}."
            )

    def look(self, cards: Cards, numbers: Ints, stream: int) -> Ints:  # noqa: ARG002
        return situations_of(self.buckets, cards).buckets

    def look_in_round(self, cards: Cards, player: int, round_: int) -> Ints:
        views = np.zeros((len(cards), self.width), np.int64)
        views[:, 2 * round_ + player] = buckets_of(self.buckets, cards, player, round_)
        return views

    def probabilities(self, positions: Ints, views: Ints) -> Floats:
        own = own_view(positions, views)
        strategies: Floats = table_strategies(self.game.ladder, self.layout, self.table, positions, own)
        if self.threshold == 0:
            return strategies
        return without_rare(torch.from_numpy(strategies), self.threshold).numpy()

    def on_views(self, positions: Ints, views: Ints) -> Floats:
        own = 2 * positions[0, ROUND] + positions[0, ACTOR]  # hands of a bucket are looked up once
        buckets, bucket = np.unique(views[:, own], return_inverse=True)
        some = np.zeros((len(buckets), self.width), np.int64)
        some[:, own] = buckets
        return super().on_views(positions, some)[:, bucket]


def own_view(positions: Ints, views: Ints) -> Ints:
    """The entry of views [n, 2R] for the actor and the round of each position, int64 [n]."""
    return np.ascontiguousarray(views[np.arange(len(views)), 2 * positions[:, ROUND] + positions[:, ACTOR]])


class _Blind(LadderPolicy):
    """A policy that looks at no cards."""

    width = 0

    def look(self, cards: Cards, numbers: Ints, stream: int) -> Ints:  # noqa: ARG002
        return np.zeros((len(cards), 0), np.int64)


class LadderUniform(_Blind):
    """Plays every legal action with the same probability."""

    kind = "uniform"

    def __init__(self, game: LadderGame) -> None:
        self.game = game

    def probabilities(self, positions: Ints, views: Ints) -> Floats:  # noqa: ARG002
        legal = legal_actions(self.game.ladder, positions).astype(np.float64)
        uniform: Floats = legal / legal.sum(1, keepdims=True)
        return uniform


class LadderScripted(_Blind):
    """Plays one action with probability 1: always a call, or the lowest legal raise (a call where there is none)."""

    def __init__(self, game: LadderGame, raises: bool) -> None:
        self.game, self.kind, self.raises = game, f"always {'raise' if raises else 'call'}", raises

    def probabilities(self, positions: Ints, views: Ints) -> Floats:  # noqa: ARG002
        legal = legal_actions(self.game.ladder, positions)
        can_raise = legal[:, RUNG:].any(1) & self.raises
        action = np.where(can_raise, RUNG + legal[:, RUNG:].argmax(1), CALL)
        return np.eye(legal.shape[1])[action]


def ladder_scripted(style: str, game: LadderGame) -> LadderPolicy:
    """The policy of a style of `policies.scripted`. Raises GameError for other styles."""
    if style not in SCRIPTS:
        raise GameError(f"'{style}' is not a scripted style. Choose one of {', '.join(SCRIPTS)}.")
    return LadderUniform(game) if style == "uniform" else LadderScripted(game, style == "raise")


class LadderStyle(LadderPolicy):
    """A policy played in a style that depends on the strength of the hand.

    A hand is strong if its texture bucket has a simulated win rate above 1/2 (Lin 2024, sections 7 and 8). In games
    without exactly two hole cards each hand is its own bucket.
    """

    def __init__(self, policy: LadderPolicy, style: str) -> None:
        self.game, self.kind = policy.game, f"{policy.kind}, {style}"
        self.policy, self.style = policy, style
        self.initial, self.draws, self.most_deals = policy.initial, policy.draws, policy.most_deals
        self._buckets: Buckets | None = None
        if style == "tight-aggressive":
            deck = policy.game.rules.deck
            self._buckets = TextureBuckets(deck) if deck.hole_cards == 2 else lossless(deck)
        self._rates = win_rates(self._buckets) if self._buckets else []
        self.width = policy.width + 2 * len(self._rates)

    def look(self, cards: Cards, numbers: Ints, stream: int) -> Ints:
        plain = self.policy.look(cards, numbers, stream)
        if not self._buckets:
            return plain
        buckets = situations_of(self._buckets, cards).buckets
        strong = [self._rates[column // 2][buckets[:, column]] > STRONG for column in range(buckets.shape[1])]
        return np.concatenate([np.stack(strong, 1).astype(np.int64), plain], axis=1)

    def look_in_round(self, cards: Cards, player: int, round_: int) -> Ints:
        plain = self.policy.look_in_round(cards, player, round_)
        if not self._buckets:
            return plain
        strong = np.zeros((len(cards), 2 * len(self._rates)), np.int64)
        strong[:, 2 * round_ + player] = self._rates[round_][buckets_of(self._buckets, cards, player, round_)] > STRONG
        return np.concatenate([strong, plain], axis=1)

    def probabilities(self, positions: Ints, views: Ints) -> Floats:
        strong, plain = np.split(views, [2 * len(self._rates)], axis=1)
        return self._styled(positions, strong, self.policy.probabilities(positions, np.ascontiguousarray(plain)))

    def on_views(self, positions: Ints, views: Ints) -> Floats:
        strong, plain = np.split(views, [2 * len(self._rates)], axis=1)
        played = self.policy.on_views(positions, np.ascontiguousarray(plain))
        everywhere = np.repeat(positions, len(views), axis=0), np.tile(strong, (len(positions), 1))
        return self._styled(*everywhere, played.reshape(-1, played.shape[-1])).reshape(played.shape)

    def _styled(self, positions: Ints, strong: Ints, plain: Floats) -> Floats:
        """The strategies `plain` [n, A] in the style; `strong` [n, 2R] says which hands are."""
        legal = legal_actions(self.game.ladder, positions)
        is_strong = own_view(positions, strong).astype(bool) if self._rates else None
        return play_style(self.style, plain, legal, is_strong).astype(np.float64)


def ladder_style(policy: LadderPolicy, style: str) -> LadderPolicy:
    """`policy` played in a style; `initial` is its policy before training. Raises GameError for an unknown style."""
    if style not in STYLES:
        raise GameError(f"'{style}' is not a style of play. Choose one of {', '.join(STYLES)}.")
    if style == "initial" and policy.initial:
        return policy.initial()
    return LadderUniform(policy.game) if style in ("random", "initial") else LadderStyle(policy, style)


class LadderEnsemble(LadderPolicy):
    """Several policies as one: `sum` adds their probabilities, and the other rules draw one of them for each deal.

    The mixture by own reach equals playing one drawn member for the whole game (Kuhn 1953), and is played that way.
    """

    def __init__(self, policies: Sequence[LadderPolicy], rule: str) -> None:
        self.game: LadderGame = policies[0].game
        self.kind = f"{'sum' if rule == 'sum' else 'one'} of {len(policies)} policies"
        self.policies, self.rule = list(policies), rule
        self.initial, self.draws = policies[0].initial, 0 if rule == "sum" else len(policies)
        self.width = sum(policy.width for policy in policies) + 1
        self.most_deals = fewest_deals(policies)

    def look(self, cards: Cards, numbers: Ints, stream: int) -> Ints:
        views = [policy.look(cards, numbers, key(stream, "member", i)) for i, policy in enumerate(self.policies)]
        chance = addressed_uniforms(stream, torch.from_numpy(numbers), torch.zeros(1, dtype=torch.int64)).numpy()
        drawn = (chance * len(views)).astype(np.int64)
        return np.concatenate([*views, drawn[:, None]], axis=1)

    def look_in_round(self, cards: Cards, player: int, round_: int) -> Ints:
        views = [policy.look_in_round(cards, player, round_) for policy in self.policies]
        return np.concatenate([*views, np.zeros((len(cards), 1), np.int64)], axis=1)

    def probabilities(self, positions: Ints, views: Ints) -> Floats:
        total = np.zeros((len(positions), self.game.num_actions))
        begin = 0
        for index, policy in enumerate(self.policies):
            rows = np.arange(len(positions)) if self.rule == "sum" else np.flatnonzero(views[:, -1] == index)
            if len(rows):
                own = np.ascontiguousarray(views[rows, begin : begin + policy.width])
                total[rows] += policy.probabilities(np.ascontiguousarray(positions[rows]), own)
            begin += policy.width
        sums: Floats = total / total.sum(1, keepdims=True)
        return sums


def ladder_ensemble(policies: Sequence[LadderPolicy], rule: str) -> LadderPolicy:
    """Combine `policies` with equal weights by a rule of `policies.ensemble`; an ensemble of one is its member.

    Raises GameError for an unknown rule, for no policies, and for policies of different games.
    """
    if rule not in RULES:
        raise GameError(f"'{rule}' is not an ensemble rule. Choose one of {', '.join(RULES)}.")
    if not policies:
        raise GameError("An ensemble needs at least one policy, but none was given.")
    for policy in policies[1:]:
        require_same_game(policies[0].game, policy.game)
    return policies[0] if len(policies) == 1 else LadderEnsemble(policies, rule)


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
