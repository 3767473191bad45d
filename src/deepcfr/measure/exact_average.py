"""Training examples from an exactly solved game, which show how well an architecture can represent the solution.

An average-strategy network is fitted to the exact probabilities of a table instead of a run's samples. The examples
have the form and the distribution of the run's strategy memory: infosets in proportion to chance and the player's own
reach, or hands on boards in proportion to chance, with the player's own reach as the weight of their decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import comb

import numpy as np
import torch

from deepcfr.boards.boards import Board
from deepcfr.boards.public_chance import RoundPart
from deepcfr.boards.sweep import RoundPass, Scratch
from deepcfr.config import CFRConfig, FitConfig, RunConfig
from deepcfr.core.rng import key
from deepcfr.core.types import NO_CARD, Cards, Doubles, Floats, HandSamples, Infosets, Ints, Samples
from deepcfr.game.base import by_infoset
from deepcfr.game.cards import canonical_cards, pack_cards, suit_permutations
from deepcfr.game.poker import PokerGame
from deepcfr.network.examples import WEIGHTS, Examples, InfosetExamples, Objective
from deepcfr.network.fit import strategy_loss
from deepcfr.network.memory import Memory
from deepcfr.policy.network import FirstRound, first_board
from deepcfr.policy.tables import RangePolicy
from deepcfr.solve.memories import HandMemories

MOST_INFOSETS, MOST_HANDS = 4_000_000, 1_000_000  # default numbers of examples


def solved_examples(
    solved: RangePolicy, game: PokerGame, config: RunConfig, plan: FitConfig, most: int | None, stream: int
) -> Examples:
    """Examples to which a run with `config` would fit its average network if its strategies were the solved one.

    Their number is limited by `most` and by the draws of a fit by `plan`; every player and round has as many hands. If
    the run plays the first round from a table, the examples are from later rounds.
    """
    wanted = plan.steps * plan.batch_size
    first_round = int(config.cfr.first_round == "table")
    if config.sampling.kind == "public-chance":
        hands = draw_hands(solved, game, min(wanted, most or MOST_HANDS), stream, first_round)
        return hands.strategy_examples(WEIGHTS["uniform"], 1, plan)
    infosets = draw_infosets(solved, game, min(wanted, most or MOST_INFOSETS), stream, first_round)
    legal, rounds = game.encoding.legal, by_infoset(game, game.round)
    return InfosetExamples(
        infosets, Objective(legal, strategy_loss, WEIGHTS["uniform"], 1, rounds=rounds, scaled=False), plan
    )


def draw_infosets(solved: RangePolicy, game: PokerGame, count: int, stream: int, first_round: int = 0) -> Memory:
    """A memory of `count` infosets from `first_round` on, with the solved strategy as target, in the encoding of
    `game`.

    An infoset is drawn in proportion to its chance times its player's own reach, as often as its expected number
    rounded down or up. In raw suits every example gets random suits from `stream`.
    """
    memory = Memory(game.encoding, count, device=game.device)
    scratch = Scratch()
    total = sum(float(_infoset_chance(*found, scratch).sum()) for found in _on_boards(solved, first_round))
    suits, before = _chance(stream)
    for number, (play, chance) in enumerate(_on_boards(solved, first_round)):
        drawn, before = _systematic(_infoset_chance(play, chance, scratch).ravel() * (count / total), before)
        drawn = drawn[: count - memory.seen]  # rounding may draw one too many
        if len(drawn):
            memory.add(_infosets(play, drawn, game, suits), key(stream, "slot", number))
    return memory


def draw_hands(solved: RangePolicy, game: PokerGame, count: int, stream: int, first_round: int = 0) -> HandMemories:
    """Like `draw_infosets`, with `count` hands on boards in the strategy memory of each player and round.

    Hands on boards are drawn in proportion to their chance, the same ones for both players.
    """
    rounds = solved.boards.rounds
    rows = [count + 1] * len(rounds)  # rounding may draw one too many
    memories = HandMemories(game, rounds, first_round, rows, CFRConfig(weighting="uniform"))
    suits, offset = _chance(stream)
    before = [offset] * len(rounds)
    for play, chance in _on_boards(solved, first_round):
        round_ = play.board.round
        canonical, before[round_] = _systematic(chance * count, before[round_])
        cards = _shown(play.board.visible_cards[canonical], game, suits)
        for player in (0, 1):
            if len(canonical) and (player, round_) in memories.strategies:
                memories.strategies[player, round_].append(_hands(play, player, canonical, cards))
    return memories


def first_round_table(solved: RangePolicy, game: PokerGame) -> FirstRound:
    """The solved strategy of the first round, for hands in the encoding of `game`."""
    tree, board = first_board(game)
    theirs = solved.boards.kept[0][0]
    keys = pack_cards(canonical_cards(board.visible_cards, game.card_groups, game.rules.num_suits))
    columns = np.searchsorted(pack_cards(theirs.visible_cards), keys)
    probabilities = solved.on_board(tree, theirs)[:, columns].astype(np.float32)
    return FirstRound(tree, board.visible_cards, probabilities)


def _on_boards(policy: RangePolicy, first_round: int) -> Iterator[tuple[RoundPass, Doubles]]:
    """The policy's reach on every board from `first_round` on, and the chance of each canonical hand and the board,
    [U].

    The chances of a round's boards sum to 1. The next board of the round overwrites the reach.
    """
    boards, scratch = policy.boards, Scratch()
    rules = boards.game.rules
    one_hand = 1 / comb(rules.num_cards, rules.hole_cards)
    waiting: list[tuple[Board, float, Floats]] = [(boards.root, one_hand, np.ones((2, 1, len(boards.root))))]
    while waiting:
        parent, chance, reach = waiting.pop()
        left = rules.num_cards - rules.hole_cards - len(parent.cards)
        for board in boards.children(parent):
            tree = boards.rounds[board.round]
            play = RoundPass(tree, board, reach[:, :, board.up], scratch)
            play.down(policy.on_board(tree, board))
            here = chance * board.copies / comb(left, rules.board_cards[board.round])
            if board.round >= first_round:
                yield play, np.asarray(here * board.size)
            if len(tree.round_leaves):
                waiting.append((board, here, play.reach_at_leaves()))


def _infoset_chance(play: RoundPass, chance: Doubles, scratch: Scratch) -> Doubles:
    """Chance times the acting player's reach of every infoset of the board, [n, U]; the next call overwrites it."""
    tree = play.tree
    result = scratch.array("infosets", (len(tree.nodes), len(play.board)))
    for node, actor in enumerate(tree.actor):
        np.multiply(play.rows[actor][tree.row[actor, node]], chance, out=result[node])
    return result


def _chance(stream: int) -> tuple[np.random.Generator, float]:
    """The generator for suits, and the start of the running sum of the systematic draws."""
    return np.random.default_rng(key(stream, "suits")), float(np.random.default_rng(key(stream, "offset")).random())


def _systematic(expected: Doubles, before: float) -> tuple[Ints, float]:
    """Systematic sampling: each position is drawn once for every integer that its part of the running sum crosses.

    `expected` [n] is the expected number of draws of each position, `before` the sum so far. Returns the positions and
    the new sum.
    """
    sums = before + np.cumsum(expected)
    times = np.diff(np.floor(sums), prepend=np.floor(before)).astype(np.int64)
    return np.repeat(np.arange(len(expected)), times), float(sums[-1])


def _infosets(play: RoundPass, drawn: Ints, game: PokerGame, suits: np.random.Generator) -> Samples:
    """The infosets at positions `drawn` of [n, U] as samples of iteration 1."""
    tree = play.tree
    node, canonical = np.divmod(drawn, len(play.board))
    edge = np.full((len(tree.nodes), game.encoding.num_actions), -1)
    edge[tree.edge_node, tree.edge_action] = np.arange(tree.num_edges)
    edges = edge[node]
    target = np.where(edges >= 0, play.sigma[edges, canonical[:, None]], 0.0).astype(np.float32)
    cards = _shown(play.board.visible_cards[canonical], game, suits)
    device = game.device
    return Samples(
        Infosets(torch.from_numpy(tree.nodes[node]).to(device), torch.from_numpy(cards).to(device)),
        torch.from_numpy(target).to(device),
        torch.ones(len(drawn), dtype=torch.int32, device=device),
    )


def _hands(play: RoundPass, player: int, canonical: Ints, cards: Cards) -> HandSamples:
    """The columns `canonical` of the board as samples of iteration 1, with `cards` as the visible cards."""
    part = RoundPart.of(play.tree, player)
    reach = play.rows[player][play.tree.row[player, part.nodes]][:, canonical]
    after = play.rows[player][play.tree.edge_row[part.edges]][:, canonical]  # reach times probability
    return HandSamples(
        cards=torch.from_numpy(cards),
        values=torch.from_numpy(after.T),
        reach=torch.from_numpy(reach.T),
        iteration=torch.ones(len(canonical), dtype=torch.int32),
    )


def _shown(cards: Cards, game: PokerGame, suits: np.random.Generator) -> Cards:
    """Canonical cards [I, C] in the game's encoding: for raw suits randomly renamed, and sorted within their groups."""
    if game.suits == "canonical":
        return cards
    renamings = suit_permutations(game.rules.num_ranks, game.rules.num_suits)
    renaming = renamings[suits.integers(len(renamings), size=len(cards))]
    seen = cards != NO_CARD
    result = np.where(seen, np.take_along_axis(renaming, np.where(seen, cards, 0), axis=1), NO_CARD).astype(np.uint8)
    for start, end in pairwise(np.cumsum((0, *game.card_groups))):
        result[:, start:end].sort(axis=1)
    return result
