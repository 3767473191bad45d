"""Public-chance traversals against every deal, against external sampling, and on average over streams."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch

from board_play import Expected, expected_hands, num_hands, random_policy, rows_of
from deepcfr.boards import public_chance
from deepcfr.boards.boards import Board, Boards, SampledBoards, count_boards, kept_bytes
from deepcfr.boards.public_chance import (
    BoardPass,
    BoardSampler,
    RoundPart,
    inclusion_chances,
    systematic,
    traverse_boards,
    uniform_reach,
    visited_boards,
)
from deepcfr.boards.rounds import RoundTree
from deepcfr.boards.sweep import BoardStrategy, sweep
from deepcfr.config import SamplingConfig
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Samples
from deepcfr.game.cards import pack_cards
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.policy.base import UniformPolicy
from experiments.theorem1.tables import TablePolicy
from openspiel_poker import small_fhp

Ints = npt.NDArray[np.int64]
LEDUC = PRESETS["leduc"]
THREE_ROUNDS = replace(
    LEDUC,
    name="three rounds",
    board_cards=(0, 1, 1),
    first_player=(0, 1, 0),
    raise_size=(1, 2, 4),
    max_raises=(1, 0, 1),
    rank_symbols="",
)
SMALL_FHP = small_fhp(3, (1, 1), num_suits=3)
ALL = SamplingConfig(kind="public-chance", boards=10_000, panel=True, samples=400)  # and with as many later ones
WORKERS = Workers(1)


@contextmanager
def later_boards(count: int) -> Iterator[None]:
    """Visit so many boards of every later round, for each board of the previous round."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public_chance, "_LATER_BOARDS", count)
        yield


class Kept:
    """A policy on boards that are visited many times: each is asked for once."""

    def __init__(self, policy: TablePolicy) -> None:
        self._ask = policy.on_board
        self._kept: dict[tuple[bytes, bytes], npt.NDArray[np.floating]] = {}

    def __call__(self, tree: RoundTree, board: Board) -> npt.NDArray[np.floating]:
        place = tree.nodes.tobytes(), board.visible_cards.tobytes()
        if place not in self._kept:
            self._kept[place] = self._ask(tree, board)
        return self._kept[place]


def boards_of(game: PokerGame) -> Boards:
    return Boards(game, merge=game.suits == "canonical", keep=True)


def play(
    boards: Boards,
    strategy: BoardStrategy,
    player: int,
    settings: SamplingConfig = ALL,
    stream: int = 1,
    later: int = 1,
) -> BoardPass:
    with later_boards(1_000 if settings.boards == ALL.boards else later):
        return traverse_boards(boards, strategy, player, settings, 3, stream, WORKERS)


# Exact where nothing is sampled


@pytest.mark.parametrize(
    ("rules", "suits", "player", "make"),
    [
        (LEDUC, "raw", 0, boards_of), (LEDUC, "canonical", 1, SampledBoards), (THREE_ROUNDS, "canonical", 0, SampledBoards),
        (THREE_ROUNDS, "canonical", 1, boards_of), (SMALL_FHP, "canonical", 0, boards_of),
        (SMALL_FHP, "canonical", 1, SampledBoards),
    ],
)  # fmt: skip
def test_advantages_and_strategies_are_those_of_every_deal(
    rules: PokerRules, suits: Suits, player: int, make: Callable[[PokerGame], Boards]
) -> None:
    game = PokerGame(rules, suits)
    assert num_hands(game) * 4 < ALL.samples  # there are enough samples to show every hand
    policy = random_policy(game, 4)
    found = play(make(game), policy.on_board, player)
    for round_, expected in enumerate(expected_hands(policy, player)):
        advantages, strategies = found.advantages[round_], found.strategies[round_]
        row = rows_of(advantages, expected)
        assert set(row) == set(range(len(expected.keys)))
        assert set(advantages.iteration.tolist()) == {3}
        if advantages.reach.shape[1]:
            np.testing.assert_allclose(advantages.values, expected.values[row], atol=1e-5)
            np.testing.assert_allclose(advantages.reach, expected.reach[row], atol=1e-6)
            own = rows_of(strategies, expected)
            np.testing.assert_allclose(strategies.values, expected.own_values[own], atol=1e-6)
            np.testing.assert_allclose(strategies.reach, expected.own_reach[own], atol=1e-6)


def test_the_value_is_that_of_the_profile_and_counters_count() -> None:
    game = PokerGame(LEDUC)
    boards, policy = boards_of(game), random_policy(game, 5)
    exact = sweep(boards, policy.on_board, WORKERS).profile
    for player in (0, 1):
        found = play(boards, policy.on_board, player)
        assert found.value == pytest.approx(exact[player], abs=1e-9)
        hands = [sum(map(len, kept)) for kept in boards.kept]
        assert found.boards == 3
        assert found.evaluated == sum(len(t.nodes) * v for t, v in zip(boards.rounds, hands, strict=True))
        assert found.nodes_touched == sum(
            (t.num_nodes - len(t.round_leaves)) * v for t, v in zip(boards.rounds, hands, strict=True)
        )


@pytest.mark.parametrize("rules", [THREE_ROUNDS, SMALL_FHP], ids=lambda rules: rules.name)
def test_a_game_of_a_panels_boards_alone(rules: PokerRules) -> None:
    game = PokerGame(rules)
    boards, policy = boards_of(game), random_policy(game, 5)
    some = SamplingConfig(kind="public-chance", boards=2, panel=True)
    whole = sweep(boards, policy.on_board, WORKERS)
    with later_boards(1_000):
        again = sweep(boards, policy.on_board, WORKERS, choose=BoardSampler(boards, ALL, 9).choose)
    assert again.boards == whole.boards
    assert again.best_response == pytest.approx(whole.best_response, abs=1e-12)
    panel = sweep(boards, policy.on_board, WORKERS, choose=BoardSampler(boards, some, 9).choose)
    assert 0 < panel.boards < whole.boards
    assert panel.best_response != pytest.approx(whole.best_response, abs=1e-3)
    for player in (0, 1):  # the traversal of the same boards has other code for values
        assert panel.profile[player] == pytest.approx(play(boards, policy.on_board, player, some, 9).value, abs=1e-9)
        assert panel.best_response[player] > panel.profile[player]


@pytest.mark.parametrize("player", [0, 1])
def test_the_advantages_of_single_boards_are_those_of_every_deal_on_average(player: int) -> None:
    game = PokerGame(LEDUC)
    boards, policy = boards_of(game), random_policy(game, 5)
    # the three hands of the first round, once each
    one = SamplingConfig(kind="public-chance", boards=1, panel=True, samples=3)
    every = {
        tuple(found.first_values.ravel()): found
        for found in (play(boards, policy.on_board, player, one, n) for n in range(40))
    }
    assert len(every) == 3  # boards
    exact, expected = play(boards, policy.on_board, player).first_values, expected_hands(policy, player)[0]
    np.testing.assert_allclose(np.mean([found.first_values for found in every.values()], axis=0), exact, atol=1e-9)
    for name in ("values", "reach"):
        hands = [found.advantages[0] for found in every.values()]
        means = np.mean([getattr(some, name).numpy()[np.argsort(rows_of(some, expected))] for some in hands], axis=0)
        np.testing.assert_allclose(means, getattr(expected, name), atol=1e-5)


# Unbiased where boards and hands are sampled

SAMPLED = {
    "few boards": SamplingConfig(kind="public-chance", boards=3, panel=True, samples=20),
    "certain boards": SamplingConfig(
        kind="public-chance", boards=16, panel=True, samples=4
    ),  # of 20: ten have a chance of 1
}


@pytest.fixture(scope="module")
def flop() -> tuple[Boards, Kept, list[Expected]]:
    game = PokerGame(SMALL_FHP)
    policy = random_policy(game, 11)
    return boards_of(game), Kept(policy), expected_hands(policy, 0)


@pytest.mark.parametrize("settings", SAMPLED.values(), ids=list(SAMPLED))
def test_values_and_recorded_hands_are_unbiased(
    settings: SamplingConfig, flop: tuple[Boards, Kept, list[Expected]]
) -> None:
    boards, strategy, (_, expected) = flop
    exact = play(boards, strategy, 0).first_values
    rng = np.random.default_rng(2)
    chosen = rng.normal(size=(6, len(expected.keys)))  # random sums over all hands
    copies = np.array([board.copies for board in boards.kept[1] for _ in range(len(board))])
    packed = np.concatenate([pack_cards(board.visible_cards) for board in boards.kept[1]])
    copies = copies[np.argsort(packed)]
    chosen = np.vstack([chosen, *(copies == c for c in np.unique(copies))])  # and over the boards of one multiplicity
    columns = np.concatenate([expected.values, expected.reach], axis=1)
    wanted = chosen @ (expected.chance[:, None] * columns)
    firsts, sums = [], []
    for stream in range(120):
        found = play(boards, strategy, 0, settings, stream)
        firsts.append(found.first_values.ravel())
        hands = found.advantages[1]
        column = torch.cat([hands.values, hands.reach], 1).double().numpy()
        sums.append((chosen[:, rows_of(hands, expected)] @ column / (settings.boards * settings.samples)).ravel())
    for sampled, truth in ((firsts, exact), (sums, wanted)):
        assert_mean(np.array(sampled), np.ravel(truth))


@pytest.mark.parametrize("make", [boards_of, SampledBoards], ids=["kept", "drawn"])
@pytest.mark.parametrize(("player", "decisions"), [(0, 1), (1, 3)])
def test_infosets_have_the_targets_of_every_deal(
    player: int, decisions: int, make: Callable[[PokerGame], Boards]
) -> None:
    game = PokerGame(THREE_ROUNDS)
    policy = random_policy(game, 4)
    boards = make(game)
    found = play(boards, policy.on_board, player, replace(ALL, panel=False, samples=2_000, decisions=decisions))
    for tree, expected, some, own in zip(
        boards.rounds, expected_hands(policy, player), found.advantages, found.strategies, strict=True
    ):
        for samples, values, reach in (
            (some, expected.values, expected.reach),
            (own, expected.own_values, expected.own_reach),
        ):
            assert isinstance(samples, Samples)
            assert set(samples.iteration.tolist()) == {3}
            row, node, edge = places(tree, player, samples, expected)
            assert len(set(zip(row, node, strict=True))) > 0.5 * (reach > 0.05).sum() > 0
            quotient = np.where(edge >= 0, values[row[:, None], edge] / reach[row, node][:, None], 0)
            np.testing.assert_allclose(samples.target.flatten(0, -2), quotient, atol=1e-4)


def places(tree: RoundTree, player: int, samples: Samples, expected: Expected) -> tuple[Ints, Ints, Ints]:
    """For each infoset its hand's row in `expected`, its decision, and the edge of every action, -1 if illegal."""
    part = RoundPart.of(tree, player)
    node = np.searchsorted(tree.nodes[part.nodes], samples.infosets.node.numpy())
    edge = np.full((len(part.nodes), samples.target.shape[-1]), -1)
    edge[part.edge_node, tree.edge_action[part.edges]] = np.arange(len(part.edges))
    row = np.searchsorted(expected.keys, pack_cards(samples.infosets.cards.numpy()))
    return row.repeat(node.size // max(1, len(row))), node.ravel(), edge[node.ravel()]


@pytest.mark.parametrize(
    ("rules", "make", "hands", "decisions"),
    [
        (THREE_ROUNDS, boards_of, 0, 1), (SMALL_FHP, boards_of, 0, 3), (SMALL_FHP, SampledBoards, 0, 1),
        (THREE_ROUNDS, SampledBoards, 4, 3),
    ],
)  # fmt: skip
def test_values_and_infosets_are_unbiased(
    rules: PokerRules, make: Callable[[PokerGame], Boards], hands: int, decisions: int
) -> None:
    game = PokerGame(rules)
    policy = random_policy(game, 11)
    boards, strategy = make(game), Kept(policy)
    settings = SamplingConfig(kind="public-chance", boards=3, samples=10, hands=hands, decisions=decisions)
    exact = play(boards, strategy, 0).first_values
    rng = np.random.default_rng(2)
    last = len(rules.board_cards) - 1
    expected, tree = expected_hands(policy, 0)[last], boards.rounds[last]
    regrets, reach = (rng.normal(size=(6, *shape)) for shape in (expected.values.shape, expected.reach.shape))
    chance = expected.chance[:, None]
    wanted = np.concatenate(
        [(regrets * chance * expected.values).sum((1, 2)), (reach * chance * expected.own_reach).sum((1, 2))]
    )
    usual = uniform_reach(boards.rounds, 0)[last]
    firsts, sums = [], []
    for stream in range(100):
        found = play(boards, strategy, 0, settings, stream, later=2)
        firsts.append(found.first_values.ravel())
        some, own = found.advantages[last], found.strategies[last]
        row, _, edge = places(tree, 0, some, expected)
        gains = (
            np.where(edge >= 0, regrets[:, row[:, None], edge] * some.target.flatten(0, -2).numpy(), 0).sum((1, 2))
            * usual[0]
        )
        row, node, _ = places(tree, 0, own, expected)
        each = found.boards * settings.samples * decisions
        sums.append(np.concatenate([gains, reach[:, row, node].sum(1) * usual[1]]) / each)
    assert_mean(np.array(firsts), exact.ravel())
    assert_mean(np.array(sums), wanted)


def assert_mean(sampled: npt.NDArray[np.floating], truth: npt.NDArray[np.floating]) -> None:
    """The mean of independent rows [n, m] is `truth` [m], by the standard errors."""
    error = sampled.std(axis=0) / np.sqrt(len(sampled)) + 1e-6
    z = (sampled.mean(axis=0) - truth) / error
    assert abs(z).max() < 5
    assert np.square(z).mean() < 2.5  # they are not independent of each other


def test_more_boards_and_strata_have_less_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    game = PokerGame(small_fhp(5, (1, 1)))
    boards, uniform = boards_of(game), UniformPolicy(game).on_board

    def noise(settings: SamplingConfig) -> float:
        values = [play(boards, uniform, 0, settings, stream).first_values for stream in range(30)]
        return float(np.var(values, axis=0).sum())

    by_likeness = noise(SamplingConfig(kind="public-chance", boards=32, samples=1))
    shuffled = np.random.default_rng(3)
    monkeypatch.setattr(public_chance, "_by_likeness", lambda later, _: shuffled.permutation(len(later)))
    assert by_likeness < 0.8 * noise(SamplingConfig(kind="public-chance", boards=32, samples=1))
    one, four = (noise(SamplingConfig(kind="public-chance", boards=n, samples=1)) for n in (1, 4))
    assert four < one / 3


@pytest.mark.parametrize("count", [3, 11])
def test_systematic_samples_have_the_chances_that_they_say(count: int) -> None:
    size = np.array([4, 12, 12, 24, 24, 200, 4, 1])
    chance = inclusion_chances(size, count)
    assert chance.sum() == pytest.approx(min(count, 8))
    assert ((chance > 0) & (chance <= 1)).all()
    free = chance < 1
    np.testing.assert_allclose(chance[free] / size[free], (chance[free] / size[free])[:1].repeat(free.sum()))
    met = np.zeros(8)
    for seed in range(1000):
        index, chances = systematic(size, count, np.random.default_rng(seed))
        assert len(set(index)) == len(index) == min(count, 8)
        np.testing.assert_array_equal(chances, chance[index])
        met[index] += 1
    assert (abs(met / 1000 - chance) < 4 * np.sqrt(chance * (1 - chance) / 1000) + 1e-9).all()


# The same however it is carried out


def test_threads_change_nothing_and_a_stream_is_a_panel(flop: tuple[Boards, Kept, list[Expected]]) -> None:
    boards, strategy, _ = flop
    settings = SamplingConfig(kind="public-chance", boards=5, panel=True, samples=30)
    threads = Workers(3)
    one = play(boards, strategy, 1, settings, 7)
    two = traverse_boards(boards, strategy, 1, settings, 3, 7, threads)
    threads.shutdown()
    other = Kept(random_policy(boards.game, 12))
    for again, same in ((two, True), (play(boards, other, 1, settings, 7), False)):
        for round_ in (0, 1):
            assert torch.equal(one.advantages[round_].cards, again.advantages[round_].cards)
            assert torch.equal(one.advantages[round_].cards, again.strategies[round_].cards)
            assert torch.equal(one.advantages[round_].values, again.advantages[round_].values) == same
        assert np.array_equal(one.first_values, again.first_values) == same
    assert not torch.equal(play(boards, strategy, 1, settings, 8).advantages[1].cards, one.advantages[1].cards)


# What is said before it is paid


@pytest.mark.parametrize(("rules", "merge"), [(LEDUC, False), (THREE_ROUNDS, False), (SMALL_FHP, True)])
def test_boards_are_counted_without_making_them(rules: PokerRules, merge: bool) -> None:
    boards = Boards(PokerGame(rules), merge=merge, keep=True)
    assert count_boards(rules, merge=merge) == [len(kept) for kept in boards.kept]
    arrays = [
        value.nbytes
        for kept in boards.kept
        for board in kept
        for value in vars(board).values()
        if isinstance(value, np.ndarray)
    ]
    assert sum(arrays) < kept_bytes(rules, merge=merge) + 1000


def test_no_more_boards_are_visited_than_said() -> None:
    game = PokerGame(THREE_ROUNDS)
    boards, settings = boards_of(game), SamplingConfig(kind="public-chance", boards=2, panel=True, samples=5)
    policy = random_policy(game, 3)
    found = play(boards, policy.on_board, 0, settings, later=2)
    with later_boards(2):
        assert visited_boards(THREE_ROUNDS, settings, merge=True) == [1, 2, 4]
    assert len(found.advantages[0]) == 5
    assert found.boards == 4
    assert all(len(hands) <= 6 * most for hands, most in zip(found.advantages, [1, 2, 4], strict=True))
    with later_boards(1_000):
        assert visited_boards(THREE_ROUNDS, ALL, merge=True) == [len(kept) for kept in boards.kept]


@pytest.mark.parametrize("board_cards", [(0, 1, 1), (1, 0, 1), (0, 0, 2)], ids=str)
def test_the_emphasis_of_a_board_passes_on_to_all_boards_after_it(board_cards: tuple[int, ...]) -> None:
    boards = boards_of(PokerGame(replace(THREE_ROUNDS, board_cards=board_cards)))
    sampler, board = BoardSampler(boards, SamplingConfig(kind="public-chance", boards=2, panel=True), 9), boards.root
    for _ in range(3):
        with later_boards(2):
            plain, thrice = (sampler.choose(replace(board, emphasis=factor)) for factor in (1.0, 3.0))
        assert [after.emphasis for after in thrice] == pytest.approx([3 * after.emphasis for after in plain])
        board = plain[0]
