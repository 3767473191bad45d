"""The table of the first betting round: tabular Linear CFR, from values on boards and from samples of histories."""

from typing import Any

import numpy as np
import pytest
import torch

from board_play import random_policy
from deepcfr.boards.boards import Boards
from deepcfr.boards.public_chance import traverse_boards
from deepcfr.config import CFRConfig, SamplingConfig
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Infosets, Samples
from deepcfr.game.base import Deals
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS
from deepcfr.policy.network import WithFirstRound
from deepcfr.sample.external import Strategy, traverse
from deepcfr.solve.data import with_table
from deepcfr.solve.first_round import FirstRoundTable
from deepcfr.solve.vector_cfr import VectorCFR
from experiments.theorem1.tables import TablePolicy
from tables import tabular

KUHN, LEDUC = PokerGame(PRESETS["kuhn"]), PokerGame(PRESETS["leduc"])
ALL = SamplingConfig(kind="public-chance", boards=1_000, samples=10)


@pytest.mark.parametrize(("algorithm", "target"), [
    ("linear-cfr", "mean"), ("cfr", "mean"), ("dcfr", "mean"), ("cfr+", "bootstrap"), ("cfr", "sum"),
])  # fmt: skip
def test_in_a_game_of_one_round_the_table_is_tabular_cfr(algorithm: Any, target: str) -> None:
    weighting = {"linear-cfr": "linear", "dcfr": "discounted"}.get(algorithm, "uniform")
    plus: dict[str, Any] = {"average_weighting": "linear"} if algorithm == "cfr+" else {}
    settings = CFRConfig(weighting=weighting, fallback="uniform", **plus)  # type: ignore[arg-type]
    table = FirstRoundTable(KUHN, settings, target=target)
    vector = VectorCFR(KUHN, tabular(algorithm, 15, precision="float64"))
    boards = Boards(KUHN, merge=True, keep=True)
    (tree,), ((board,),) = boards.rounds, boards.kept
    for record in vector.iterations():
        for player in (0, 1):
            strategy = table.strategy()
            found = traverse_boards(boards, lambda _, b, s=strategy: s.on_board(b), player, ALL, 1, 0, Workers(1))
            table.add_strategy(player, record.iteration)
            table.add_values(found.first_values, player, record.iteration)
        for ours, theirs in (
            (table.strategy(), vector.current_policy()),
            (table.average_strategy(), vector.average_policy()),
        ):
            # our strategies are float32, and regret matching magnifies the rounding of small differences
            np.testing.assert_allclose(ours.on_board(board), theirs.on_board(tree, board), atol=3e-4)


def asked(policy: TablePolicy, deals: Deals, player: int) -> Strategy:
    def strategy(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        return policy.probabilities(Infosets(node, deals.visible_cards[row, player, LEDUC.round[node]])).float()

    return strategy


def first_of(samples: Samples) -> Samples:
    return samples[LEDUC.round[samples.infosets.node.long()] == 0]


def test_external_samples_add_up_to_the_same_regrets_and_averages() -> None:
    policy, boards = random_policy(LEDUC, 3), Boards(LEDUC, merge=True, keep=True)
    exact, sampled = (FirstRoundTable(LEDUC, CFRConfig()) for _ in range(2))
    mean, square = np.zeros_like(sampled.regret), np.zeros_like(sampled.regret)
    blocks, size = 25, 400
    for player in (0, 1):
        found = traverse_boards(boards, policy.on_board, player, ALL, 1, 0, Workers(1))
        exact.add_values(found.first_values, player, 1)
    averages = np.zeros_like(sampled.average)
    for block in range(blocks):
        table = FirstRoundTable(LEDUC, CFRConfig())
        deals = LEDUC.deal(size, 100 + block)
        for player in (0, 1):
            strategies = asked(policy, deals, 0), asked(policy, deals, 1)
            histories = traverse(LEDUC, deals, player, strategies, 200 + block, 1)
            table.add_samples(first_of(histories.advantages), first_of(histories.strategies), 1)
        mean += table.regret / blocks
        square += table.regret**2 / blocks
        averages += table.average
    # a table sums over the opponent's hands, traversals over deals: 3 hands in 6 cards, and an opponent in 5
    truth = exact.regret * size * (exact.board.size / 6 / 5)
    error = np.sqrt((square - mean**2) / blocks) + 1e-3
    assert (abs(mean - truth) / error).max() < 4.5
    # strategies are met in proportion to the player's own reach, so their sums have the policy's probabilities
    tree, board = exact.tree, exact.board
    expected = policy.on_board(tree, board)
    for node in range(len(tree.nodes)):
        edges = slice(tree.first_edge[node], tree.first_edge[node + 1])
        total = averages[edges].sum(0)
        often = total > 200
        np.testing.assert_allclose(averages[edges][:, often] / total[often], expected[edges][:, often], atol=1e-3)


@pytest.mark.parametrize("player", [0, 1])
def test_traversals_play_the_table_first_and_the_networks_later(player: int) -> None:
    policy, table = random_policy(LEDUC, 8), FirstRoundTable(LEDUC, CFRConfig())
    table.regret[:] = np.random.default_rng(2).normal(size=table.regret.shape)
    deals = LEDUC.deal(500, 3)
    played = with_table(LEDUC, asked(policy, deals, player), table.strategy(), deals, player)
    whole = WithFirstRound(policy, table.strategy())
    node = (LEDUC.actor == player).nonzero()[:, 0]
    node = node[torch.arange(500) % len(node)]
    row = torch.arange(500)
    infosets = Infosets(LEDUC.infoset[node], deals.visible_cards[row, player, LEDUC.round[node]])
    torch.testing.assert_close(played(node, row).double(), whole.probabilities(infosets), atol=1e-6, rtol=0)
    first = LEDUC.round[node] == 0
    assert bool(first.any())
    assert not bool(first.all())
    torch.testing.assert_close(
        played(node[first], row[first]).double(), whole.probabilities(infosets[first]), atol=1e-6, rtol=0
    )
