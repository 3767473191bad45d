"""The policy of abstract tables: every hand gets its bucket's row, and its exploitability in the full game is real."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from board_play import all_infosets
from deepcfr.buckets.buckets import Abstraction, lossless
from deepcfr.core.errors import GameError
from deepcfr.core.types import NO_CARD, Infosets
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import UniformPolicy
from deepcfr.policy.tables import AbstractPolicy
from deepcfr.sample.traversal_tree import table_layout
from experiments.theorem1.tables import TablePolicy, canonical_hands


@pytest.fixture
def leduc() -> PokerGame:
    return load_game("leduc")


def blind(game: PokerGame) -> Abstraction:
    """All hands of the second round in one bucket."""
    exact = lossless(game.rules)
    return Abstraction(game.rules, (exact.counts[0], 1), (exact.tables[0], np.zeros_like(exact.tables[1])))


def random_table(game: PokerGame, abstraction: Abstraction, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    size = table_layout(game.tree, abstraction.counts).size
    return np.maximum(rng.normal(size=size), 0).astype(np.float32)  # half of the entries are 0, some whole rows


def looked_up(game: PokerGame, abstraction: Abstraction, table: np.ndarray, node: int, cards: list[int]) -> np.ndarray:
    """The probabilities of one infoset, spelled out."""
    seen = np.array([card for card in cards if card != NO_CARD], np.uint8)
    layout = table_layout(game.tree, abstraction.counts)
    bucket = abstraction.buckets(int(game.tree.round[node]), seen[None, :1], seen[None, 1:])[0]
    legal = game.tree.legal[node]
    at = layout.start[node] + layout.stride[node] * bucket
    row = np.maximum(table[at : at + legal.sum()].astype(np.float64), 0)
    result = np.zeros(len(legal))
    result[legal] = row / row.sum() if row.sum() > 0 else 1 / legal.sum()
    return result


@pytest.mark.parametrize("coarse", [False, True])
def test_every_infoset_has_the_row_of_its_bucket(leduc: PokerGame, coarse: bool) -> None:
    abstraction = blind(leduc) if coarse else lossless(leduc.rules)
    table = random_table(leduc, abstraction)
    infosets = all_infosets(leduc)
    infosets = infosets[torch.randperm(len(infosets), generator=torch.Generator().manual_seed(0))]
    found = AbstractPolicy(leduc, abstraction, table).probabilities(infosets).numpy()
    wanted = [
        looked_up(leduc, abstraction, table, node, cards)
        for node, cards in zip(infosets.node.tolist(), infosets.cards.tolist(), strict=True)
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(found.sum(1), 1)


def test_hands_at_once_are_the_infosets_one_by_one(leduc: PokerGame) -> None:
    abstraction = lossless(leduc.rules)
    policy = AbstractPolicy(leduc, abstraction, random_table(leduc, abstraction))
    for round_, cards in enumerate(canonical_hands(leduc)):
        nodes = np.flatnonzero(leduc.tree.round[: leduc.tree.num_decisions] == round_)
        found = policy.on_hands(nodes, cards)
        each = Infosets(
            torch.from_numpy(np.repeat(nodes, len(cards))), torch.from_numpy(np.tile(cards, (len(nodes), 1)))
        )
        np.testing.assert_array_equal(found.reshape(-1, 3), policy.probabilities(each).numpy())


def test_negative_entries_count_as_zero_and_empty_rows_are_uniform(leduc: PokerGame) -> None:
    abstraction, infosets = lossless(leduc.rules), all_infosets(leduc)
    size = table_layout(leduc.tree, abstraction.counts).size
    found = AbstractPolicy(leduc, abstraction, np.full(size, -3.0)).probabilities(infosets)
    torch.testing.assert_close(found, UniformPolicy(leduc).probabilities(infosets))


@pytest.mark.parametrize("suits", ["canonical", "raw"])
def test_exploitability_is_that_of_the_same_probabilities_in_a_full_table(suits: str) -> None:
    game = load_game("leduc", suits)
    abstraction = blind(game)
    policy = AbstractPolicy(game, abstraction, random_table(game, abstraction))
    tables = []
    for round_, hands in enumerate(canonical_hands(game)):
        nodes = np.flatnonzero(game.tree.round[: game.tree.num_decisions] == round_)
        rows = [
            [looked_up(game, abstraction, policy.table, int(node), canonical.tolist()) for canonical in hands]
            for node in nodes
        ]
        tables.append(np.array(rows))
    full = exploitability(TablePolicy(game, tables))
    abstract = exploitability(policy)
    assert abstract.nash_conv == pytest.approx(full.nash_conv, abs=1e-9)
    assert abstract.value == pytest.approx(full.value, abs=1e-9)


def test_tables_that_do_not_fit_are_refused(leduc: PokerGame) -> None:
    abstraction = lossless(leduc.rules)
    with pytest.raises(GameError, match="1,092 entries"):
        AbstractPolicy(leduc, abstraction, np.zeros(1_091))
    with pytest.raises(GameError, match="cannot be played"):
        AbstractPolicy(load_game("kuhn"), abstraction, np.zeros(1_092))
    with pytest.raises(GameError, match="cannot be played"):
        AbstractPolicy(leduc, replace(abstraction, rules=load_game("kuhn").rules), np.zeros(1_092))
