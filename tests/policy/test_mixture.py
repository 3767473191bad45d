"""The average of several policies: brute force over own histories, boards, draws, and what a run keeps for SD-CFR."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from board_play import LEDUC, THREE_ROUNDS, all_infosets
from class_games import RowPolicy
from deepcfr.boards.boards import Boards
from deepcfr.config import (
    AdvantageFitConfig,
    FitConfig,
    MemoryConfig,
    NetworkConfig,
    RunConfig,
    RuntimeConfig,
    SamplingConfig,
)
from deepcfr.core.errors import GameError
from deepcfr.core.rng import generator, key
from deepcfr.core.types import Infosets
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match import exact_match, sampled_match
from deepcfr.network.networks import build_network
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import MixturePolicy, cards_before
from deepcfr.policy.network import AveragePolicy, FirstRound, RegretMatchingPolicy, WithFirstRound, first_board
from deepcfr.policy.tables import TreePolicy, table_of
from deepcfr.run.folder import RunFolder
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.snapshots import compact, snapshot_weight, thin
from experiments.theorem1.tables import canonical_hands
from tables import finished

NETWORK = NetworkConfig(kind="mlp", width=16, layers=2)
WEIGHTS = [1.0, 2.0, 3.0, 5.0]


def network_policy(game: PokerGame, seed: int) -> RegretMatchingPolicy:
    """Regret matching on two random networks; most actions at an infoset have no probability."""
    first, second = (build_network(game.encoding, NETWORK, generator(key(seed, "test", p))) for p in (0, 1))
    return RegretMatchingPolicy(game, (first, second))


def with_table(policy: Policy, seed: int) -> WithFirstRound:
    """The policy with random probabilities in the first round, a third of the actions never played."""
    assert isinstance(policy.game, PokerGame)
    tree, board = first_board(policy.game)
    rng = np.random.default_rng(seed)
    weights = rng.random((tree.num_edges, len(board))) * (rng.random((tree.num_edges, len(board))) < 0.67) + 1e-12
    sums = np.add.reduceat(weights, tree.first_edge[:-1], axis=0)
    return WithFirstRound(
        policy, FirstRound(tree, board.visible_cards, (weights / sums[tree.edge_node]).astype(np.float32))
    )


def mixture(game: PokerGame, tables: bool) -> MixturePolicy:
    policies: list[Policy] = [network_policy(game, seed) for seed in range(len(WEIGHTS))]
    return MixturePolicy(game, [with_table(p, i) for i, p in enumerate(policies)] if tables else policies, WEIGHTS)


@pytest.mark.parametrize("average", [False, True])
def test_every_form_of_a_network_with_a_table_is_one_strategy(average: bool) -> None:
    game = PokerGame(LEDUC)
    networks = network_policy(game, 1)
    policy = with_table(AveragePolicy(game, networks.networks[0]) if average else networks, 2)
    decisions = np.arange(game.tree.num_decisions)
    for round_, hands in enumerate(canonical_hands(game)):
        for player in (0, 1):
            every = decisions[(game.tree.round[decisions] == round_) & (game.tree.actor[decisions] == player)]
            for nodes in (every, every[-1:]):  # many nodes, and one
                node, hand = np.repeat(nodes, len(hands)), np.tile(np.arange(len(hands)), len(nodes))
                rows = policy.probabilities(Infosets(torch.from_numpy(node), torch.from_numpy(hands[hand]))).numpy()
                np.testing.assert_allclose(policy.on_hands(nodes, hands).reshape(rows.shape), rows, atol=1e-6)
                np.testing.assert_allclose(policy.row_strategy(player, round_, hands)(node, hand), rows, atol=1e-6)


# The average


def brute_force(policy: MixturePolicy, hole: int, board: tuple[int, ...], node: int) -> list[float]:
    """The average at one infoset by playing every policy down to it, one action and one infoset at a time."""
    game = policy.game
    assert isinstance(game, PokerGame)
    tree, rules = game.tree, game.rules
    reached, plain = np.zeros(3), np.zeros(3)

    def ask(one: Policy, at: int) -> np.ndarray:
        seen = board[: sum(rules.board_cards[: tree.round[at] + 1])]
        cards = torch.from_numpy(game.visible_cards(np.array([[hole]], np.uint8), seen))
        return one.probabilities(Infosets(torch.tensor([at]), cards))[0].double().numpy()

    for one, weight in zip(policy.policies, WEIGHTS, strict=True):
        reach = 1.0
        for before, action in tree.path(node):
            if tree.actor[before] == tree.actor[node]:
                reach *= ask(one, before)[action]
        reached += weight * reach * ask(one, node)
        plain += weight * ask(one, node)
    average = reached if reached.sum() > 0 else plain
    shares: list[float] = (average / average.sum()).tolist()
    return shares


WAYS = pytest.mark.parametrize(
    ("rules", "suits", "tables"),
    [(LEDUC, "canonical", True), (LEDUC, "raw", False), (THREE_ROUNDS, "raw", True)],
    ids=lambda value: getattr(value, "name", str(value)),
)


@WAYS
def test_the_average_is_that_of_playing_every_policy_down_to_the_infoset(
    rules: PokerRules, suits: Suits, tables: bool
) -> None:
    game = PokerGame(rules, suits)
    policy = mixture(game, tables)
    rng = np.random.default_rng(1)
    for node in rng.permutation(game.tree.num_decisions)[:40]:
        hole, *board = rng.permutation(rules.num_cards)[: 1 + sum(rules.board_cards)].tolist()
        seen = tuple(board[: sum(rules.board_cards[: game.tree.round[node] + 1])])
        cards = torch.from_numpy(game.visible_cards(np.array([[hole]], np.uint8), seen))
        found = policy.probabilities(Infosets(torch.tensor([node]), cards))[0].tolist()
        # networks are in float32, and here in batches of other sizes
        assert found == pytest.approx(brute_force(policy, hole, seen, int(node)), abs=1e-5)


@WAYS
def test_whole_boards_have_the_probabilities_of_single_infosets(rules: PokerRules, suits: Suits, tables: bool) -> None:
    """In any order of boards, also where those of the round before are asked later."""
    policy = mixture(PokerGame(rules, suits), tables)
    boards = Boards(policy.game, merge=suits == "canonical", keep=True)  # type: ignore[arg-type]
    pairs = [(tree, board) for tree, kept in zip(boards.rounds, boards.kept, strict=True) for board in kept]
    for order in (pairs[::-1], pairs):
        policy = mixture(PokerGame(rules, suits), tables)
        for tree, board in order:
            found = policy.on_board(tree, board)
            node = torch.from_numpy(tree.nodes).repeat_interleave(len(board))
            cards = torch.from_numpy(board.visible_cards).repeat(len(tree.nodes), 1)
            single = policy.probabilities(Infosets(node, cards)).numpy().reshape(len(tree.nodes), len(board), -1)
            np.testing.assert_allclose(found, single[tree.edge_node, :, tree.edge_action], atol=1e-6)


@pytest.mark.parametrize("suits", ["canonical", "raw"])
def test_what_was_seen_before_is_what_the_game_shows_without_the_later_cards(suits: Suits) -> None:
    game = PokerGame(PRESETS["hulh"], suits)
    rng, rules = np.random.default_rng(0), game.rules
    for _ in range(100):
        hole, board = np.split(rng.permutation(rules.num_cards)[: 2 + sum(rules.board_cards)], [2])
        cards = game.visible_cards(hole[None].astype(np.uint8), board.tolist())
        for round_ in range(rules.num_rounds):
            then = game.visible_cards(
                hole[None].astype(np.uint8), board[: sum(rules.board_cards[: round_ + 1])].tolist()
            )
            np.testing.assert_array_equal(cards_before(game, cards, round_), then)


def test_one_policy_is_its_own_average_even_where_it_never_comes() -> None:
    game = PokerGame(LEDUC)
    one = network_policy(game, 5)
    infosets = all_infosets(game)
    found = MixturePolicy(game, [one], [3.0]).probabilities(infosets)
    np.testing.assert_allclose(found.numpy(), one.probabilities(infosets).numpy(), atol=1e-6)


def test_openspiel_games_are_averaged_in_sequence_form() -> None:
    game = load_openspiel_game("leduc_poker")
    rng = np.random.default_rng(0)
    tables = []
    for _ in range(3):
        weights = rng.random(game.explicit.legal.shape) * game.explicit.legal
        weights[::7, 0] = 0  # some sequences are never played
        tables.append(weights / weights.sum(1, keepdims=True))
    policy = MixturePolicy(game, [TreePolicy(game, table) for table in tables], [1.0, 2.0, 4.0])
    opponent = UniformPolicy(game)
    gains = [exact_match(one, opponent).value for one in policy.policies]
    assert exact_match(policy, opponent).value == pytest.approx(np.dot([1, 2, 4], gains) / 7, abs=1e-6)
    one = MixturePolicy(game, [TreePolicy(game, tables[0])], [1.0])
    np.testing.assert_allclose(table_of(one), tables[0], atol=1e-12)


def test_what_is_no_mixture_and_no_table_is_refused() -> None:
    game = PokerGame(LEDUC)
    for weights in ([1.0], [1.0, 0.0], [1.0, float("nan")]):
        with pytest.raises(GameError, match="mixture of 2 policies"):
            MixturePolicy(game, [UniformPolicy(game)] * 2, weights)
    with pytest.raises(GameError, match="mixture of 0"):
        MixturePolicy(game, [], [])
    with pytest.raises(GameError, match="deals 1 before it"):
        first_board(PokerGame(replace(LEDUC, board_cards=(1, 1), name="open")))
    with pytest.raises(GameError, match="is not one"):
        first_board(load_openspiel_game("kuhn_poker"))


# The first round


def test_a_first_round_table_plays_there_and_the_policy_later() -> None:
    game = PokerGame(LEDUC)
    later = network_policy(game, 0)
    policy = with_table(later, 0)
    infosets = all_infosets(game)
    found, inner = policy.probabilities(infosets).numpy(), later.probabilities(infosets).numpy()
    first = game.tree.round[infosets.node.numpy()] == 0
    np.testing.assert_array_equal(found[~first], inner[~first].astype(np.float64))
    tree, board = first_board(game)
    table = policy.first_round.probabilities
    for row in np.flatnonzero(first):
        node, card = int(infosets.node[row]), infosets.cards[row].numpy()
        column = int(np.flatnonzero((board.visible_cards == card).all(1))[0])
        for edge in range(tree.num_edges):
            if tree.nodes[tree.edge_node[edge]] == node:
                assert found[row, tree.edge_action[edge]] == table[edge, column]
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    np.testing.assert_array_equal(policy.on_board(tree, board), table)


# Play


def test_policies_are_drawn_as_often_as_their_weights_say() -> None:
    policy = mixture(PokerGame(LEDUC), False)
    drawn = policy.draw_for(key(0, "draw"), torch.arange(20_000))
    counts = np.bincount(drawn, minlength=len(WEIGHTS))
    expected = 20_000 * policy.weights
    assert ((counts - expected) ** 2 / expected).sum() < 16.27  # chi-squared with 3 degrees of freedom, 0.999
    assert policy.draw(key(0, "draw"), 17) is policy.policies[int(drawn[17])]


def test_sampled_matches_draw_one_policy_for_each_deal_and_gain_as_much_as_the_exact_average() -> None:
    policy = mixture(PokerGame(LEDUC), True)
    opponent = network_policy(PokerGame(LEDUC), 99)
    exact = exact_match(policy, opponent)
    sampled = sampled_match(policy, opponent, 10_000, seed=3)
    assert abs(sampled.value - exact.value) < 2 * sampled.interval
    few = (sampled_match(policy, opponent, 500, seed=3, chunk=chunk).value for chunk in (77, 500))
    assert next(few) == pytest.approx(next(few), abs=1e-9)


def test_two_mixtures_draw_independently() -> None:
    """Two policies that each win a fixed pot against the other would draw every game if both drew the same one."""
    game = PokerGame(LEDUC)
    orders = ([2, 1, 0], [1, 10, 100])  # folds to any bet and checks; bets and raises whenever that is possible
    members = [RowPolicy(game, np.eye(3)[(game.encoding.legal.numpy() * order).argmax(1)]) for order in orders]
    policy = MixturePolicy(game, members, [1.0, 1.0])
    assert sampled_match(policy, policy, 4_000, seed=1).interval > 0  # with equal draws every deal would be even


# What a run keeps

CONFIG = RunConfig(
    game="leduc",
    iterations=6,
    sampling=SamplingConfig(traversals=60),
    memory=MemoryConfig(capacity=20_000),
    network=NETWORK,
    advantage=AdvantageFitConfig(steps=15, batch_size=64),
    average=FitConfig(steps=15, batch_size=64),
    runtime=RuntimeConfig(threads=1, checkpoint_seconds=0),
)


def trained(config: RunConfig) -> tuple[DeepCFR, list[Policy]]:
    """A run, and sigma^t in full precision as it stood before each iteration."""
    solver = DeepCFR(PokerGame(LEDUC), config)
    before: list[Policy] = []
    while solver.iteration < config.iterations:
        networks = [build_network(solver.game.encoding, config.network, generator(0)) for _ in (0, 1)]
        for copy, network in zip(networks, solver.advantage_networks, strict=True):
            copy.load_state_dict(network.state_dict())
        policy = RegretMatchingPolicy(solver.game, (networks[0], networks[1]))
        before.append(WithFirstRound(policy, solver.table.strategy()) if solver.table else policy)
        next(solver.iterations())
    return solver, before


@pytest.fixture(scope="module", params=["network", "table"])
def run(request: pytest.FixtureRequest) -> tuple[DeepCFR, list[Policy]]:
    return trained(replace(CONFIG, cfr=replace(CONFIG.cfr, first_round=request.param)))


def test_a_run_keeps_its_strategies_from_before_each_iteration(run: tuple[DeepCFR, list[Policy]]) -> None:
    solver, before = run
    policy = solver.policy("sd-cfr")
    infosets = all_infosets(PokerGame(LEDUC))
    assert [iterate.iteration for iterate in solver.snapshots.kept] == [1, 2, 3, 4, 5, 6]
    assert policy.weights.tolist() == pytest.approx([t / 21 for t in range(1, 7)])
    uniform = UniformPolicy(solver.game).probabilities(infosets)
    np.testing.assert_allclose(policy.policies[0].probabilities(infosets).numpy(), uniform.numpy(), atol=1e-7)
    for kept, full in zip(policy.policies, before, strict=True):
        difference = (kept.probabilities(infosets) - full.probabilities(infosets)).abs()
        assert float(difference.mean()) < 2e-3  # what 16 bits lose
    full_average = MixturePolicy(solver.game, before, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert exploitability(policy).nash_conv == pytest.approx(exploitability(full_average).nash_conv, rel=2e-3)


@pytest.mark.parametrize(("every", "kept"), [(4, [4]), (0, [])])
def test_thinned_networks_stand_for_the_iterations_up_to_them(every: int, kept: list[int]) -> None:
    config = replace(
        CONFIG,
        cfr=replace(CONFIG.cfr, keep_networks=every),
        sampling=replace(CONFIG.sampling, traversals=2),
        advantage=AdvantageFitConfig(steps=1),
    )
    solver, _ = trained(config)
    assert [iterate.iteration for iterate in solver.snapshots.kept] == kept
    assert [iterate.weight for iterate in solver.snapshots.kept] == [sum(range(t - every + 1, t + 1)) for t in kept]
    assert snapshot_weight(6, 2, "uniform") == 2
    assert snapshot_weight(6, 2, "quadratic") == 5**2 + 6**2


def test_thinning_afterwards_keeps_the_newest_and_all_weight(run: tuple[DeepCFR, list[Policy]]) -> None:
    iterates = run[0].snapshots.kept
    assert [(i.iteration, i.weight) for i in thin(iterates, 4)] == [(2, 3.0), (6, 18.0)]
    for same, own in zip(thin(iterates, 1), iterates, strict=True):
        assert (same.iteration, same.weight) == (own.iteration, own.weight)
        assert same.networks is own.networks
        assert same.first_round is own.first_round
    assert thin(iterates, 0) == []


def test_a_resumed_run_has_the_same_iterates_to_the_bit(run: tuple[DeepCFR, list[Policy]], tmp_path: Path) -> None:
    config = run[0].config
    folder = RunFolder.create(tmp_path / "run", config)
    solver = DeepCFR(folder.game(), config)
    for _ in range(3):
        next(solver.iterations())
    folder.save(solver, 0.0)
    resumed, _ = RunFolder.open(folder.path).load_solver(pytest.fail, memories=True)
    assert isinstance(resumed, DeepCFR)
    finished(resumed)
    infosets = all_infosets(resumed.game)  # type: ignore[arg-type]
    found, expected = (solver.policy("sd-cfr").probabilities(infosets) for solver in (resumed, run[0]))
    assert torch.equal(found, expected)
    assert len(resumed.snapshots.kept) == 6


def test_weights_that_16_bits_cannot_hold_keep_theirs() -> None:
    network = network_policy(PokerGame(LEDUC), 0).networks[0]
    with torch.no_grad():
        next(network.parameters()).fill_(1e6)
    small, whole = compact(network), network.state_dict()
    (large,) = [name for name, tensor in small.items() if tensor.dtype == torch.float32 and name != "scale"]
    assert torch.equal(small[large], whole[large])
    assert all(
        torch.equal(tensor, whole[name].half()) for name, tensor in small.items() if name not in (large, "scale")
    )
