"""Regret matching, equation 4 and its two fallbacks."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from deepcfr.boards.boards import SampledBoards
from deepcfr.config import NetworkConfig
from deepcfr.core.rng import generator
from deepcfr.core.types import Infosets
from deepcfr.game.presets import load_game
from deepcfr.network.networks import build_network
from deepcfr.policy.network import RegretMatchingPolicy, regret_matching

ALL = [True, True, True, True]


def played(advantage: list[float], legal: list[bool], fallback: str = "highest") -> list[float]:
    return regret_matching(torch.tensor([advantage]), torch.tensor([legal]), fallback)[0].tolist()


@pytest.mark.parametrize("fallback", ["highest", "uniform"])
@pytest.mark.parametrize(
    ("advantage", "legal", "expected"),
    [
        ([1.0, 3.0, 0.0, 0.0], ALL, [0.25, 0.75, 0.0, 0.0]),
        ([1.0, -5.0, 2.0, 1.0], ALL, [0.25, 0.0, 0.5, 0.25]),
        ([-1.0, -5.0, 1e-6, -2.0], ALL, [0.0, 0.0, 1.0, 0.0]),
        ([1.0, 99.0, 1.0, -1.0], [True, False, True, True], [0.5, 0.0, 0.5, 0.0]),
        ([0.0, 99.0, 0.5, 1.5], [True, False, True, True], [0.0, 0.0, 0.25, 0.75]),
    ],
)
def test_positive_advantages_are_played_in_proportion(
    fallback: str, advantage: list[float], legal: list[bool], expected: list[float]
) -> None:
    assert played(advantage, legal, fallback) == expected


@pytest.mark.parametrize(
    ("advantage", "legal", "expected"),
    [
        ([-3.0, -1.0, -2.0, -4.0], ALL, [0.0, 1.0, 0.0, 0.0]),
        ([-3.0, -1.0, -2.0, -4.0], [True, False, True, True], [0.0, 0.0, 1.0, 0.0]),
        ([-3.0, 5.0, -2.0, -4.0], [True, False, True, True], [0.0, 0.0, 1.0, 0.0]),
        ([-3.0, 0.0, -2.0, -4.0], [True, False, True, True], [0.0, 0.0, 1.0, 0.0]),
        ([-1.0, -1.0, -2.0, -1.0], [True, True, True, False], [0.5, 0.5, 0.0, 0.0]),
        ([0.0, -1.0, 0.0, -1.0], ALL, [0.5, 0.0, 0.5, 0.0]),
        ([0.0, 0.0, 0.0, 0.0], ALL, [0.25, 0.25, 0.25, 0.25]),
        ([0.0, 0.0, 0.0, 0.0], [False, True, True, False], [0.0, 0.5, 0.5, 0.0]),
        ([-7.0, -7.0, -7.0, -7.0], [False, True, False, False], [0.0, 1.0, 0.0, 0.0]),
    ],
)
def test_without_positive_advantages_the_highest_is_played_and_ties_share(
    advantage: list[float], legal: list[bool], expected: list[float]
) -> None:
    assert played(advantage, legal) == expected


@pytest.mark.parametrize("advantage", [[-3.0, -1.0, -2.0, -4.0], [0.0] * 4, [-1.0, 9.0, -1.0, 0.0]])
def test_the_uniform_fallback_plays_all_legal_actions_alike(advantage: list[float]) -> None:
    assert played(advantage, [True, False, True, True], "uniform") == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3])


NUMBER = st.just(0.0) | st.floats(-(2.0**99), 2.0**99, width=32, allow_subnormal=False)
ROWS = st.lists(
    st.tuples(st.lists(NUMBER, min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4).filter(any)),
    min_size=1,
    max_size=5,
)


@given(ROWS, st.sampled_from(["highest", "uniform"]))
def test_rows_are_distributions_over_legal_actions(rows: list[tuple[list[float], list[bool]]], fallback: str) -> None:
    advantage, legal = torch.tensor([a for a, _ in rows]), torch.tensor([mask for _, mask in rows])
    strategy = regret_matching(advantage, legal, fallback)
    assert bool((strategy[~legal] == 0).all())
    assert bool((strategy >= 0).all())
    torch.testing.assert_close(strategy.sum(1), torch.ones(len(rows)))
    for row, (values, mask) in zip(strategy, rows, strict=True):
        allowed = [v for v, ok in zip(values, mask, strict=True) if ok]
        if max(allowed) > 0:  # nothing else is played while something is positive
            assert all(p == 0 for p, v in zip(row.tolist(), values, strict=True) if v <= 0)


@given(ROWS, st.sampled_from(["highest", "uniform"]), st.floats(0.015625, 64, width=32))
def test_the_unit_of_the_advantages_does_not_matter(
    rows: list[tuple[list[float], list[bool]]], fallback: str, unit: float
) -> None:
    legal = torch.tensor([mask for _, mask in rows])
    # whole numbers, so that no ties appear or disappear by rounding
    advantage = torch.tensor([a for a, _ in rows]).clamp(-1e4, 1e4).round()
    torch.testing.assert_close(
        regret_matching(advantage * unit, legal, fallback), regret_matching(advantage, legal, fallback)
    )


@pytest.mark.parametrize("advantage", [[1e-40, 0.0], [3e38, 3e38]])
def test_rows_sum_to_one_at_the_ends_of_the_number_range(advantage: list[float]) -> None:
    assert sum(played(advantage, [True, True])) == pytest.approx(1)


@pytest.mark.parametrize("fallback", ["highest", "uniform"])
def test_hands_at_nodes_are_the_infosets_one_by_one(fallback: str) -> None:
    game = load_game("fhp")
    networks = [build_network(game.encoding, NetworkConfig(width=8), generator(seed)) for seed in (1, 2)]
    networks[1].scale.fill_(2.0)
    policy = RegretMatchingPolicy(game, (networks[0], networks[1]), fallback)
    nodes = np.flatnonzero((game.tree.round == 1) & (game.tree.ended == 0))
    cards = game.visible_cards(np.array([[0, 5], [9, 30], [44, 51]], np.uint8), (12, 20, 33))
    node = torch.from_numpy(nodes).repeat_interleave(len(cards))
    rows = policy.probabilities(Infosets(node, torch.from_numpy(cards).repeat(len(nodes), 1)))
    hands = torch.from_numpy(policy.on_hands(nodes, cards)).reshape(len(rows), -1)
    assert torch.allclose(hands, rows, atol=1e-5)
    boards = SampledBoards(game)
    tree, board = boards.rounds[1], boards.runout((12, 20, 33))[1]
    on_hands = policy.on_hands(tree.nodes, board.visible_cards)
    on_board = policy.on_board(tree, board)
    np.testing.assert_allclose(on_board, on_hands[tree.edge_node, :, tree.edge_action], atol=1e-5)
