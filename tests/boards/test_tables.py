"""16-bit tables: squares of integers, rounded to the nearest or at random without bias."""

import numpy as np

from deepcfr.boards.boards import Boards
from deepcfr.boards.tables import Int16Table
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS


def test_equal_numbers_are_rounded_at_random_each_for_itself() -> None:
    """By action, by hand and by stream; without bias, and to the nearest without a stream."""
    boards = Boards(PokerGame(PRESETS["leduc"]), merge=True, keep=True)
    table = Int16Table(boards.rounds[1], boards.kept[1])
    board = boards.kept[1][0]
    values = np.full(table.load(board).shape, 12.5**2, np.float32)
    node_edges = np.flatnonzero(boards.rounds[1].edge_node == boards.rounds[1].edge_node[0])
    values[node_edges[0], 0] = 32_766.0**2  # the scale of this node is 1
    rounded = []
    for stream in range(400):
        table.store(board, values, int(boards.rounds[1].actor[0]), stream)
        rounded.append(table.load(board)[node_edges].ravel()[1:])
    drawn = np.array(rounded)  # [streams, numbers]
    assert set(np.unique(drawn)) == {12.0**2, 13.0**2}
    up = drawn == 13.0**2
    chance = (12.5**2 - 12**2) / (13**2 - 12**2)
    assert abs(up.mean() - chance) < 4 * np.sqrt(chance * (1 - chance) / up.size)
    together = np.corrcoef(up, rowvar=False)
    np.fill_diagonal(together, 0)
    assert np.abs(together).max() < 0.25  # 5 standard deviations
