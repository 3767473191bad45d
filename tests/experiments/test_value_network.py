"""The value network's samples, its zero sums, and the leaves that search takes from it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from deepcfr.config import SearchConfig
from deepcfr.evaluation.check_down import CheckDown
from deepcfr.games.cards import parse_card
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_game
from deepcfr.policies.scripted import scripted_policy
from deepcfr.ranges.boards import Board, Boards, Deal, SampledBoards
from deepcfr.ranges.sweep import BoardStrategy, RoundPass, Scratch
from experiments.value_network import Hands, Sampler, Samples, ValueNetwork, collect, errors, fit, paid_at
from experiments.value_search import Leaves, Network, ValueSearch


def poker(name: str) -> PokerGame:
    game = load_game(name)
    assert isinstance(game, PokerGame)
    return game


@pytest.fixture(scope="module")
def samples() -> Samples:
    game = load_game("fhp-mini")
    sampler = Sampler(scripted_policy("uniform", game), 1, 60)
    return Samples.joined([sampler.sample(stream) for stream in range(12)])


def total(samples: Samples, values: torch.Tensor) -> torch.Tensor:
    """What both players gain by `values`, added, in the mean over pairs of hands, [G]."""
    return torch.zeros(len(samples.pot)).index_add(0, samples.group, values * samples.share)


def test_samples_are_solved_subgames_whose_values_add_up_to_nothing(samples: Samples) -> None:
    assert len(samples.pot) == 24
    of_player = torch.zeros(24, 2).index_put((samples.group, samples.player), samples.share, accumulate=True)
    torch.testing.assert_close(of_player, torch.ones(24, 2))
    torch.testing.assert_close(samples.ranges.sum(2), torch.ones(24, 2))
    torch.testing.assert_close(total(samples, samples.value), torch.zeros(24), atol=1e-5, rtol=0)
    torch.testing.assert_close(total(samples, samples.equity), torch.zeros(24), atol=1e-5, rtol=0)
    assert samples.equity.abs().max() <= 1 + 1e-5
    assert 0 < samples.gap.max() < 50  # thousandths of the pot
    assert (samples.group.diff() >= 0).all()
    assert len(samples.pot.unique()) > 1


def test_the_spread_of_a_hand_is_that_of_its_strength_over_the_last_boards() -> None:
    """A draw to a flush, and three of a kind, which fewer cards make better or worse."""
    rounds = {"board_cards": (0, 3, 1), "first_player": (0, 1, 1), "raise_size": (1, 1, 1), "max_raises": (1, 1, 1)}
    rules = replace(poker("fhp-mini").rules, **rounds)
    boards, check_down = SampledBoards(PokerGame(rules)), CheckDown(rules)

    def cards(text: str) -> list[int]:
        return [parse_card(rules, card) for card in text.split()]

    flop = boards.runout((*cards("6h 5h 2s"), *cards("3c")))[1]
    turns = [boards.after(flop, (card,)) for card in range(rules.num_cards) if card not in flop.cards]
    found = [Hands(turn, check_down) for turn in turns]
    assert not any(hands.spread.any() for hands in found)
    spread = Hands(flop, check_down).spread
    holes = boards.holes.tolist()
    draw, three = (flop.view_of[holes.index(sorted(cards(hand)))] for hand in ("4h 2h", "6c 6d"))
    assert spread[draw] > 1.5 * spread[three] > 0
    for view in (draw, three):
        later = [hands.strength[np.flatnonzero(hands.board.up == view)] for hands in found]
        assert spread[view] == pytest.approx(np.concatenate(later).std(), rel=0.1)


def test_samples_are_kept_for_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.value_network.CHUNK", 3)
    sampler = Sampler(scripted_policy("uniform", load_game("fhp-mini")), 1, 5)
    (first,), took = collect(sampler, tmp_path, 1, 3)
    monkeypatch.setattr(sampler, "sample", lambda _: pytest.fail("they are there"))
    (again,), same = collect(sampler, tmp_path, 1, 3)
    assert took == same > 0
    assert len(first.pot) == 6
    for name, numbers in vars(first).items():
        torch.testing.assert_close(getattr(again, name), numbers)


def test_values_of_the_network_add_up_to_nothing_and_become_those_of_the_samples(samples: Samples) -> None:
    rows = torch.arange(len(samples.group))
    torch.manual_seed(0)
    before = ValueNetwork(32)
    torch.testing.assert_close(total(samples, before(samples, rows)), torch.zeros(24), atol=1e-5, rtol=0)
    after = errors(fit(samples, 32, 150, 8, seed=0), samples)
    assert after["network"] < 0.5 * after["equity"] < 0.5 * after["nothing"]


def leaves_of(game: PokerGame, network: Network) -> Leaves:
    """The flops of a game, with the betting before them."""
    boards = Boards(game, merge=True, keep=True)
    (before,) = boards.children(boards.root)
    return Leaves(boards, before, paid_at(game, boards.rounds[1]), network)


def half_the_equity(seen: Samples, rows: torch.Tensor) -> torch.Tensor:
    return 0.5 * seen.equity[rows]


def test_leaves_are_an_unbiased_estimate_of_all_flops() -> None:
    """A network that says half the equity has the values of checking to the end, which need no flops drawn."""
    game = poker("fhp-mini")
    draw = np.random.default_rng(0)
    equity = leaves_of(game, half_the_equity)
    strange = leaves_of(game, lambda seen, rows: 0.3 * seen.strength[rows] - 0.2 * seen.player[rows])
    boards = Boards(game, merge=True, keep=True)
    (before,) = boards.children(boards.root)
    at_exits = draw.random((2, len(equity.paid), len(before)))

    def of_all_flops(leaves: Leaves) -> np.ndarray:
        def visit(board: Board, reach: np.ndarray, deal: object) -> np.ndarray:  # noqa: ARG001
            return leaves.values(board.index, reach)

        return boards.deal(visit, before, at_exits)

    exact = of_all_flops(equity)
    assert np.abs(exact).max() > 1
    calls = scripted_policy("call", game).on_board
    checked = Boards(game, merge=True, keep=True, root=before, rounds=boards.rounds)
    np.testing.assert_allclose(exact, ends_of(checked, calls, at_exits), atol=1e-4)
    np.testing.assert_allclose(equity.mean(at_exits, 0.5, 1), exact, atol=1e-4)
    exact, some = of_all_flops(strange), [strange.mean(at_exits, start, 2) for start in np.arange(0.5, 500) / 500]
    assert np.abs(some[0] - exact).max() > 0.1 * np.abs(exact).max()
    assert np.abs(np.mean(some, axis=0) - exact).max() < 0.01 * np.abs(exact).max()
    assert np.abs(strange.mean(at_exits, 0.5, 1_000) - exact).max() < 0.01 * np.abs(exact).max()


def ends_of(boards: Boards, strategy: BoardStrategy, at_exits: np.ndarray) -> np.ndarray:
    """Both players' values at the exits of the first round, by a pass over all flops."""

    def visit(board: Board, reach: np.ndarray, deal: Deal) -> np.ndarray:
        play = RoundPass(boards.rounds[board.round], board, reach, Scratch())
        play.down(strategy(boards.rounds[board.round], board))
        return play.up(((0, False), (1, False)), deal)[:, boards.rounds[board.round].entries]

    return boards.deal(visit, boards.root, at_exits)


def searching(game: PokerGame, network: Network, iterations: int = 30, visits: int = 2) -> ValueSearch:
    uniform = scripted_policy("uniform", game)
    return ValueSearch(uniform, network, 0, None, iterations=iterations, visits=visits)


def test_the_first_round_is_played_for_what_the_leaves_say() -> None:
    """A player who wins every pot on the flop does not fold before it, and one who loses them all does."""
    game = poker("fhp-mini")
    boards = Boards(game, merge=True, keep=True)
    (before,) = boards.children(boards.root)
    tree = boards.rounds[0]
    assert tree.actor[0] == 0
    for share, folds in ((0.5, False), (-0.5, True)):  # player 0, the dealer, wins or loses every pot

        def network(seen: Samples, rows: torch.Tensor, share: float = share) -> torch.Tensor:
            return torch.full((len(rows),), share) * (1 - 2.0 * seen.player[rows])

        first = searching(game, network).on_board(tree, before)[0]
        assert (first > 0.8).all() if folds else (first < 0.2).all()


def test_later_rounds_are_played_as_trained_or_searched_to_the_end() -> None:
    game = poker("fhp-mini")
    boards = Boards(game, merge=True, keep=True)
    (before,) = boards.children(boards.root)
    flop = SampledBoards(game).after(SampledBoards(game).runout((0, 5, 10))[0], (0, 5, 10))
    uniform = scripted_policy("uniform", game)
    plain = uniform.on_board(boards.rounds[1], flop)
    leaves = {"iterations": 5, "visits": 1}
    as_trained = ValueSearch(uniform, half_the_equity, 0, None, **leaves)
    searched = ValueSearch(uniform, half_the_equity, 0, SearchConfig(kind="unsafe", iterations=20), **leaves)
    np.testing.assert_array_equal(as_trained.on_board(boards.rounds[1], flop), plain)
    found = searched.on_board(boards.rounds[1], flop)
    assert np.abs(found - plain).max() > 0.4
    np.testing.assert_array_equal(
        as_trained.on_board(boards.rounds[0], before), searched.on_board(boards.rounds[0], before)
    )


def three_rounds() -> PokerGame:
    """A small limit hold'em with one card after the flop."""
    rounds = {
        "board_cards": (0, 3, 1),
        "first_player": (0, 1, 1),
        "raise_size": (100, 100, 200),
        "max_raises": (2, 2, 1),
    }
    return PokerGame(replace(poker("fhp-mini").rules, name="three rounds", **rounds))


def test_a_round_between_others_stops_at_the_next_one() -> None:
    """The flop of limit hold'em with three rounds, one line of betting at a time: the same as all lines together."""
    game = three_rounds()
    uniform = scripted_policy("uniform", game)
    together, apart = (ValueSearch(uniform, half_the_equity, 1, None, iterations=20, visits=2) for _ in range(2))
    boards = SampledBoards(game)
    _, flop, turn = boards.runout((0, 5, 10, 11))
    whole = boards.rounds[1]
    found = together.on_board(whole, flop)
    assert np.abs(found - uniform.on_board(whole, flop)).max() > 0.4
    for entry in range(len(whole.entries)):
        lines = whole.only(np.array([entry]))
        np.testing.assert_allclose(apart.on_board(lines.tree, flop), found[lines.edges], atol=1e-5)
    np.testing.assert_array_equal(together.on_board(boards.rounds[2], turn), uniform.on_board(boards.rounds[2], turn))
    merged = Boards(game, merge=True, root=flop, rounds=boards.rounds)
    leaves = Leaves(merged, flop, paid_at(game, boards.rounds[2]), half_the_equity)
    at_exits = np.random.default_rng(0).random((2, len(leaves.paid), len(flop)))
    exact = ends_of(merged, scripted_policy("call", game).on_board, at_exits)
    np.testing.assert_allclose(leaves.mean(at_exits, 0.5, 1), exact, atol=1e-4)
    assert np.abs(Hands(flop, CheckDown(game.rules)).strength).max() <= 1


def test_after_lines_that_nobody_plays_the_plain_policy_is_played() -> None:
    """Nobody raises before the flop of a game with three rounds, so one line of betting leads there."""
    game = three_rounds()
    boards = SampledBoards(game)
    flop = boards.runout((0, 5, 10, 11))[1]
    calls = scripted_policy("call", game)
    whole = boards.rounds[1]
    found = ValueSearch(calls, half_the_equity, 1, None, iterations=20, visits=2).on_board(whole, flop)
    changed = np.abs(found - calls.on_board(whole, flop)).max(1) > 0
    called = {int(entry) for entry in whole.entry_of_slot[whole.edge_node[changed]]}
    assert len(called) == 1 < len(whole.entries)
    assert changed.sum() > 2


def test_entries_seen_together_or_one_by_one_have_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    game = poker("fhp-mini")
    torch.manual_seed(0)
    leaves = leaves_of(game, ValueNetwork(16))
    boards = Boards(game, merge=True, keep=True)
    flop = boards.children(boards.children(boards.root)[0])[0]
    reach = np.random.default_rng(0).random((2, len(leaves.paid), len(flop)))
    found = []
    for together in (1, 3, 100):
        monkeypatch.setattr("experiments.value_search._TOGETHER", together)
        found.append(leaves.values(0, reach))
    np.testing.assert_allclose(found[0], found[2], atol=1e-5)
    np.testing.assert_allclose(found[1], found[2], atol=1e-5)
    won = (reach * found[0]) @ flop.size
    np.testing.assert_allclose(won.sum(0), 0, atol=1e-4 * np.abs(won).max())


def test_values_are_finite_where_a_range_has_few_hands() -> None:
    game = poker("fhp-mini")
    seen: list[Samples] = []

    def network(found: Samples, rows: torch.Tensor) -> torch.Tensor:
        seen.append(found)
        return 0.5 * found.equity[rows]

    leaves = leaves_of(game, network)
    boards = Boards(game, merge=True, keep=True)
    (before,) = boards.children(boards.root)
    flop = boards.children(before)[0]
    draw = np.random.default_rng(0)
    for _ in range(300):  # roundings leave something of hands that no hand meets
        reach = draw.random((2, len(leaves.paid), len(flop))) * (draw.random(len(flop)) < 2 / len(flop))
        assert np.isfinite(leaves.values(0, reach)).all()
    assert max(float(found.equity.abs().max()) for found in seen) <= 1


def test_the_flops_of_all_iterations_lie_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    game = poker("fhp-mini")
    boards = Boards(game, merge=True, keep=True)
    (before,) = boards.children(boards.root)
    starts: list[float] = []
    mean = Leaves.mean

    def watched(self: Leaves, at_exits: np.ndarray, start: float, count: int) -> np.ndarray:
        starts.append(start)
        return mean(self, at_exits, start, count)

    monkeypatch.setattr(Leaves, "mean", watched)
    searching(game, half_the_equity, 4, 1).on_board(boards.rounds[0], before)
    places = np.sort(starts)
    assert len(places) == 8
    assert np.diff(np.append(places, places[0] + 1)).min() > 0.5 / 8


def test_the_average_of_a_searched_round_comes_to_rest() -> None:
    """Values that need no flops drawn have no noise, so twice the iterations change little."""
    game = poker("fhp-mini")
    boards = Boards(game, merge=True, keep=True)
    (before,) = boards.children(boards.root)
    some, more = (searching(game, half_the_equity, n, 1).on_board(boards.rounds[0], before) for n in (100, 200))
    assert np.abs(some - more).mean() < 0.004


def test_the_seed_chooses_the_flops_that_are_visited() -> None:
    game = poker("fhp-mini")
    boards = Boards(game, merge=True, keep=True)
    (before,) = boards.children(boards.root)
    torch.manual_seed(0)
    network, uniform = ValueNetwork(16), scripted_policy("uniform", game)
    first, again, other = (
        ValueSearch(uniform, network, 0, None, iterations=5, visits=1, seed=seed).on_board(boards.rounds[0], before)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


def test_the_order_of_hands_does_not_matter_to_the_network(samples: Samples) -> None:
    torch.manual_seed(0)
    network, rows = ValueNetwork(16), torch.arange(len(samples.group))
    order = torch.randperm(len(rows))
    torch.testing.assert_close(network(samples, rows)[order], network(samples, order), atol=1e-5, rtol=1e-4)
