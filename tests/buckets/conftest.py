"""A small game with runouts and suits, that brute force can go through."""

import pytest

from deepcfr.game.rules import PokerRules


@pytest.fixture(scope="session")
def small() -> PokerRules:
    """Two hole cards, boards of 0, 2 and 3 cards, from four ranks in three suits."""
    return PokerRules(
        name="small",
        num_ranks=4,
        num_suits=3,
        hole_cards=2,
        board_cards=(0, 2, 1),
        blinds=(1, 2),
        first_player=(0, 1, 1),
        raise_size=(2, 2, 4),
        max_raises=(1, 1, 1),
        unit_chips=2,
        unit="big blinds",
        milli_unit="mbb/g",
    )
