"""The kernels at the leaves: equal to comparing every hand with every other hand, card removal and ties included."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import phevaluator
import pytest

from deepcfr.boards.boards import Board, Boards, SampledBoards
from deepcfr.boards.kernels import LEAF_BLOCK, against_range
from deepcfr.boards.rounds import NEXT_ROUND, RoundTree
from deepcfr.boards.sweep import RoundPass, Scratch
from deepcfr.game.betting import FOLDED, SHOWDOWN
from deepcfr.game.cards import all_hands
from deepcfr.game.hands import board_strengths
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS

Floats = npt.NDArray[np.float64]


def pays(holes: npt.NDArray[np.uint8], strength: npt.NDArray[np.int32]) -> tuple[Floats, Floats]:
    """The payoffs of a fold and of a showdown of one chip, hand h against hand g, [H, H]; 0 where they share a card."""
    fold, showdown = np.zeros((len(holes), len(holes))), np.zeros((len(holes), len(holes)))
    hands = [set(hole) for hole in holes.tolist()]
    values = strength.tolist()
    for h, hand in enumerate(hands):
        for g, other in enumerate(hands):
            if not hand & other:
                fold[h, g] = 1.0
                showdown[h, g] = (values[h] > values[g]) - (values[h] < values[g])
    return fold, showdown


@dataclass
class Hands:
    """Live hands in ascending order of strength, each one a canonical hand of its own."""

    holes: npt.NDArray[np.uint8]
    strength: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.holes)


def hands_on(name: str, board: list[int]) -> Hands:
    game = PokerGame(PRESETS[name])
    holes = all_hands(game.rules.num_cards, game.rules.hole_cards)
    return in_order(holes, board_strengths(holes, np.array(board, np.uint8), game.rules.num_suits))


def in_order(holes: npt.NDArray[np.uint8], strength: npt.NDArray[np.int32]) -> Hands:
    order = np.argsort(strength, kind="stable")
    order = order[strength[order] >= 0]
    return Hands(holes[order], strength[order])


def values_of(hands: Hands, reach: Floats, amount: float, num_cards: int) -> tuple[Floats, Floats]:
    """The kernel's output, written over garbage, for a fold and for a showdown."""
    every = np.arange(len(reach))
    group = np.flatnonzero(np.diff(hands.strength, prepend=-2, append=-2))
    fold, showdown = np.full((len(reach), 1), np.nan), np.full((len(reach), 1), np.nan)
    against_range(reach[:, None], hands.holes, every, group, every, np.full((num_cards + 2, 1), np.nan), fold, showdown)
    return amount * fold[:, 0], amount * showdown[:, 0]


def random_reach(rng: np.random.Generator, hands: int) -> Floats:
    """Reach with many hands out of the range, and of very different sizes."""
    return rng.random(hands) ** 4 * (rng.random(hands) < 0.7)


def check(hands: Hands, num_cards: int, rng: np.random.Generator) -> None:
    fold, showdown = pays(hands.holes, hands.strength)
    for amount in (1.0, -0.5, 8.0):
        reach = random_reach(rng, len(hands))
        found = values_of(hands, reach, amount, num_cards)
        np.testing.assert_allclose(found[0], amount * fold @ reach, rtol=1e-12, atol=1e-12 * reach.sum())
        np.testing.assert_allclose(found[1], amount * showdown @ reach, rtol=1e-12, atol=1e-12 * reach.sum())


def test_a_flop_by_phevaluators_ranking() -> None:
    board = [3, 20, 33]
    hands = hands_on("fhp", board)
    assert len(hands) == 1176
    assert len(np.unique(hands.strength)) < 1176  # there are ties
    ranks = np.array([phevaluator.evaluate_cards(*hole, *board) for hole in hands.holes.tolist()])
    reach = random_reach(np.random.default_rng(2), len(ranks))
    for found, pay in zip(values_of(hands, reach, 1.0, 52), pays(hands.holes, -ranks), strict=True):
        np.testing.assert_allclose(found, pay @ reach, atol=1e-12 * reach.sum())


@pytest.mark.parametrize("held", [1, 2])
@pytest.mark.parametrize("levels", [1, 5, 1000])
def test_any_strengths_with_any_number_of_ties(held: int, levels: int) -> None:
    rng = np.random.default_rng(levels)
    for num_cards in (3, 8, 13):
        holes = all_hands(num_cards, held)
        # some hands are dead, as on a board, and ties stand in any order
        live = rng.permutation(len(holes))[: max(1, 2 * len(holes) // 3)]
        check(in_order(holes[live], rng.integers(levels, size=len(live)).astype(np.int32)), num_cards, rng)


def test_views_stand_for_all_their_hands() -> None:
    # on a flop of one suit the other three are alike: canonical hands of up to six hands
    game = PokerGame(PRESETS["fhp"])
    (board,) = [b for b in Boards(game, merge=True, keep=True).kept[1] if b.cards == (0, 4, 8)]
    assert len(board) < len(board.holes) == 1176
    assert board.size.sum() == 1176
    strength = board_strengths(board.holes, np.array(board.cards, np.uint8), 4)
    assert (np.diff(strength) >= 0).all()
    fold, showdown = pays(board.holes, strength)
    reach = random_reach(np.random.default_rng(6), len(board))
    anyone, ahead = np.full((len(board), 1), np.nan), np.full((len(board), 1), np.nan)
    by_card = np.full((54, 1), np.nan)
    against_range(reach[:, None], board.holes, board.canonical, board.group, board.example, by_card, anyone, ahead)
    np.testing.assert_allclose(anyone[board.canonical, 0], fold @ reach[board.canonical], rtol=1e-12)
    np.testing.assert_allclose(ahead[board.canonical, 0], showdown @ reach[board.canonical], atol=1e-9)


def leduc_before_the_board() -> tuple[RoundTree, Board]:
    boards = Boards(PokerGame(PRESETS["leduc"], "raw"), merge=False, keep=True)
    return boards.rounds[0], boards.kept[0][0]


def lines_of_a_river() -> tuple[RoundTree, Board]:
    """So many lines that their leaves fill more than one block, the last of them in part."""
    boards = SampledBoards(PokerGame(PRESETS["hulh"], "raw"))
    tree = boards.rounds[3].only(np.arange(12)).tree
    assert len(tree.leaves[0].rows) > 2 * LEAF_BLOCK
    assert len(tree.leaves[0].rows) % LEAF_BLOCK
    return tree, boards.runout((3, 20, 33, 50, 8))[3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("place", [leduc_before_the_board, lines_of_a_river])
def test_leaves_are_paid_to_each_player_by_their_kind(
    place: Callable[[], tuple[RoundTree, Board]], dtype: type[np.floating]
) -> None:
    rng = np.random.default_rng(5)
    tree, board = place()
    suits = 2 if board.num_cards == 6 else 4
    strength = board_strengths(board.holes, np.array(board.cards, np.uint8), suits)
    fold, showdown = pays(board.holes, strength)
    for player in (0, 1):
        play = RoundPass(tree, board, np.ones((2, len(tree.roots), len(board))), Scratch(dtype))
        reach = play.rows[1 - player]
        reach[:] = rng.random(reach.shape)
        play.leaves([player])[:] = 7.0
        values = play.leaves([player])[0]
        leaf_nodes = len(tree.nodes) + np.arange(len(tree.leaf_kind))
        theirs = reach[tree.row[1 - player, leaf_nodes]][:, board.canonical].astype(np.float64)
        by_kind = {FOLDED: theirs @ fold.T, SHOWDOWN: theirs @ showdown.T}
        for leaf, (node, kind) in enumerate(zip(leaf_nodes, tree.leaf_kind.tolist(), strict=True)):
            found = values[node][board.canonical]
            if kind == NEXT_ROUND:
                assert (found == 7.0).all()
            else:
                paid = tree.leaf_payoff[player, leaf] * by_kind[kind][leaf]
                rounding = (1e-12 if dtype is np.float64 else 1e-5) * np.abs(tree.leaf_payoff).max() * len(board)
                np.testing.assert_allclose(found, paid, atol=rounding)
        assert (values[: len(tree.nodes)] == 7.0).all()
