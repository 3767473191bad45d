"""The value network's samples, its zero sums, and the leaves that search takes from it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_game
from deepcfr.policies.scripted import scripted_policy
from deepcfr.ranges.boards import Board
from deepcfr.search.subgame import subgame
from experiments.value_network import Sampler, Samples, ValueNetwork, collect, errors, fit
from experiments.value_search import FirstRound, Leaves


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


def test_leaves_are_an_unbiased_estimate_of_all_flops() -> None:
    """A network that says half the equity has the values of checking to the end, which need no flops drawn."""
    game = load_game("fhp-mini")
    assert isinstance(game, PokerGame)
    draw = np.random.default_rng(0)
    equity = Leaves(game, lambda seen, rows: 0.5 * seen.equity[rows])  # type: ignore[arg-type]
    strange = Leaves(game, lambda seen, rows: 0.3 * seen.strength[rows] - 0.2 * seen.player[rows])  # type: ignore[arg-type]
    at_exits = draw.random((2, len(equity.boards.rounds[0].exits), len(equity.before)))

    def of_all_flops(leaves: Leaves) -> np.ndarray:
        def visit(board: Board, reach: np.ndarray, deal: object) -> np.ndarray:  # noqa: ARG001
            inside = subgame(game, leaves.boards.rounds, board, np.arange(reach.shape[1]))
            return leaves.values(inside, reach)

        return leaves.boards.deal(visit, leaves.before, at_exits)

    exact = of_all_flops(equity)
    assert np.abs(exact).max() > 1
    np.testing.assert_allclose(equity.mean(at_exits, 0.5, 1), exact, atol=1e-4)
    exact, some = of_all_flops(strange), [strange.mean(at_exits, start, 2) for start in np.arange(0.5, 500) / 500]
    assert np.abs(some[0] - exact).max() > 0.1 * np.abs(exact).max()
    assert np.abs(np.mean(some, axis=0) - exact).max() < 0.01 * np.abs(exact).max()
    assert np.abs(strange.mean(at_exits, 0.5, 1_000) - exact).max() < 0.01 * np.abs(exact).max()


def test_the_first_round_is_played_for_what_the_leaves_say() -> None:
    """A player who wins every pot on the flop does not fold before it, and one who loses them all does."""
    game = load_game("fhp-mini")
    assert isinstance(game, PokerGame)

    def says(share: float) -> FirstRound:
        def network(seen: Samples, rows: torch.Tensor) -> torch.Tensor:
            return torch.full((len(rows),), share) * (1 - 2.0 * seen.player[rows])

        return FirstRound(Leaves(game, network), 30, 2, 0)  # type: ignore[arg-type]

    nothing = Leaves(game, lambda *_: torch.empty(0))  # type: ignore[arg-type]
    tree = nothing.boards.rounds[0]
    for share, folds in ((0.5, False), (-0.5, True)):  # player 0, the dealer, wins or loses every pot
        first = says(share).on_board(tree, nothing.before)[0]
        assert tree.actor[0] == 0
        assert (first > 0.8).all() if folds else (first < 0.2).all()


def test_values_are_finite_where_a_range_has_few_hands() -> None:
    game = load_game("fhp-mini")
    assert isinstance(game, PokerGame)
    seen: list[Samples] = []

    def network(found: Samples, rows: torch.Tensor) -> torch.Tensor:
        seen.append(found)
        return 0.5 * found.equity[rows]

    leaves = Leaves(game, network)  # type: ignore[arg-type]
    flop = leaves.boards.children(leaves.before)[0]
    inside = subgame(game, leaves.boards.rounds, flop, np.array([0]))
    draw = np.random.default_rng(0)
    for _ in range(300):  # roundings leave something of hands that no hand meets
        reach = draw.random((2, 1, len(flop))) * (draw.random(len(flop)) < 2 / len(flop))
        assert np.isfinite(leaves.values(inside, reach)).all()
    assert max(float(found.equity.abs().max()) for found in seen) <= 1


def test_the_flops_of_all_iterations_lie_apart() -> None:
    game = load_game("fhp-mini")
    assert isinstance(game, PokerGame)
    starts: list[float] = []

    class Watched(Leaves):
        def mean(self, at_exits: np.ndarray, start: float, count: int) -> np.ndarray:
            starts.append(start)
            return super().mean(at_exits, start, count)

    FirstRound(Watched(game, lambda seen, rows: 0.5 * seen.equity[rows]), 4, 1, 0)  # type: ignore[arg-type]
    places = np.sort(starts)
    assert len(places) == 8
    assert np.diff(np.append(places, places[0] + 1)).min() > 0.5 / 8
