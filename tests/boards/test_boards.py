"""Sampled runouts: the strata that they are drawn from, and the weights of their boards."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from deepcfr.boards.boards import RunoutSampler, SampledBoards
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from openspiel_poker import small_fhp

FOUR_ROUNDS = small_fhp(4, (1, 1, 1, 1), (0, 2, 1, 1), num_suits=3)


@pytest.mark.parametrize("count", [7, 90])
def test_first_boards_are_dealt_uniformly(count: int) -> None:
    """Whatever the strata, every board is equally likely on average over the numbers of a match."""
    rules = small_fhp(3, (1, 1), (0, 3), num_suits=3)  # 84 boards, two strata
    sampler = [RunoutSampler(rules, count, stream) for stream in range(max(1, 3600 // count))]
    drawn = [tuple(sorted(one.cards(number))) for one in sampler for number in range(count)]
    seen = np.array([drawn.count(board) for board in combinations(range(9), 3)])
    assert seen.sum() == len(drawn)
    assert stats.chisquare(seen).pvalue > 1e-3


def test_strata_have_equal_shares_and_later_cards_come_from_the_whole_deck() -> None:
    sampler = RunoutSampler(PRESETS["hulh"], 101, 0)
    sizes = np.bincount(sampler.stratum)
    assert len(sizes) == 25
    assert set(sizes) == {4, 5}
    runouts = [sampler.cards(number) for number in range(101)]
    assert all(len(set(cards)) == 5 for cards in runouts)
    suited = [len({card % 4 for card in cards[:3]}) == 1 for cards in runouts]
    # flops are in order of likeness, so every match has close to its share of them: 5.2 % of one suit
    assert 2 <= sum(suited) <= 10
    assert len({card for cards in runouts for card in cards[3:]}) > 45


def test_the_weights_of_all_runouts_add_up_to_one_for_each_hand() -> None:
    """A hand's value is a mean: over all boards that leave it and an opponent's hand alive the weights sum to 1."""
    game = PokerGame(FOUR_ROUNDS)
    boards = SampledBoards(game)
    first = boards.after(boards.root, ())
    total = np.zeros(len(first))
    flops = list(combinations(range(12), 2))
    for cards in flops:
        board = boards.after(first, cards)
        # the chance that a hand which the board leaves alive meets one that it leaves alive too
        opponents = comb(10 - 2, 2) / comb(10, 2)
        np.add.at(total, board.up, board.weight * opponents / len(flops))
    assert total == pytest.approx(np.ones(len(first)))
    runout = boards.runout((5, 0, 7, 11))
    assert [board.cards for board in runout] == [(), (5, 0), (5, 0, 7), (5, 0, 7, 11)]
    assert [int(board.size.sum()) for board in runout] == [66, 45, 36, 28]
