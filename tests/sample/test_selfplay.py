"""Whole games between two strategies: payoffs worked out by hand, frequencies, and games that no batch changes."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats

from deepcfr.core.rng import key
from deepcfr.core.types import TERMINAL
from deepcfr.game.base import Deals
from deepcfr.game.betting import CALL, FOLD, RAISE
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.sample.external import Strategy, play_games

JACK, QUEEN, KING = 0, 1, 2
STREAM = key(0, "test")


def always(*preferred: int, game: PokerGame) -> Strategy:
    """The first of the `preferred` actions that is legal."""

    def ask(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        chosen = [next(action for action in preferred if game.legal[n, action]) for n in node.tolist()]
        return torch.eye(3)[chosen]

    return ask


def uniform(game: PokerGame) -> Strategy:
    def ask(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        legal = game.legal[node].float()
        return legal / legal.sum(1, keepdim=True)

    return ask


ASSERTED: list[tuple[tuple[int, ...], tuple[int, ...], list[float]]] = [
    # player 0's and player 1's favourite actions; what player 0 gains with K against Q, Q against K, J against Q
    ((CALL,), (CALL,), [1, -1, -1]),  # check, check
    ((RAISE, CALL), (CALL,), [2, -2, -2]),  # bet, call
    ((RAISE,), (FOLD,), [1, 1, 1]),  # bet, fold
    ((CALL, FOLD), (RAISE,), [2, -2, -2]),  # check, bet, call: calling comes first
    ((CALL, FOLD), (CALL, FOLD), [1, -1, -1]),
]


@pytest.mark.parametrize(("first", "second", "gains"), ASSERTED)
def test_games_of_kuhn_pay_what_they_do_by_hand(
    first: tuple[int, ...], second: tuple[int, ...], gains: list[float]
) -> None:
    game = load_game("kuhn")
    deals = game.deals_of(np.array([[KING, QUEEN], [QUEEN, KING], [JACK, QUEEN]], np.uint8))
    paid = play_games(game, deals, (always(*first, game=game), always(*second, game=game)), STREAM)
    assert paid.dtype == torch.float32
    assert paid.tolist() == gains


def test_each_strategy_is_asked_at_its_own_players_nodes_and_with_their_rows() -> None:
    game = load_game("leduc")
    deals = game.deal(500, STREAM)
    asked: list[set[tuple[int, int]]] = [set(), set()]

    def watched(player: int) -> Strategy:
        def ask(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            assert (game.actor[node] == player).all()
            places = set(zip(node.tolist(), row.tolist(), strict=True))
            assert len(places) == len(node)
            assert not places & asked[player]  # nobody acts twice at one place of a game
            asked[player] |= places
            return uniform(game)(node, row)

        return ask

    play_games(game, deals, (watched(0), watched(1)), STREAM)
    for player in (0, 1):
        rows = [row for _, row in asked[player]]
        assert set(rows) <= set(range(500))
    # the first player acts in every game at the root, and the second one in each where the first did not fold at once
    assert sum(node == 0 for node, _ in asked[0]) == 500


def test_actions_have_the_frequencies_of_the_strategy() -> None:
    game = load_game("kuhn")
    count = 20_000
    deals = game.deals_of(np.tile(np.array([[KING, QUEEN]], np.uint8), (count, 1)))
    assert int(game.actor[0]) == 0
    bet, call = 0.3, 0.6  # player 0 bets or else checks behind a check; player 1 checks, or calls a bet

    def first(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        return torch.tensor([[0.0, 1 - bet, bet]]).repeat(len(node), 1)

    def second(node: torch.Tensor, row: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        facing = game.legal[node, FOLD]
        return torch.where(facing[:, None], torch.tensor([1 - call, call, 0.0]), torch.tensor([0.0, 1.0, 0.0]))

    paid = play_games(game, deals, (first, second), STREAM)
    called = int((paid == 2).sum())  # a king gains 2 from a called bet, and 1 from a fold or from two checks
    assert called + int((paid == 1).sum()) == count
    assert stats.binomtest(called, count, bet * call).pvalue > 1e-3


@pytest.mark.parametrize("name", ["leduc", "openspiel"])
def test_a_game_is_the_same_in_any_batch(name: str) -> None:
    game = load_openspiel_game("liars_dice(dice_sides=3)") if name == "openspiel" else load_game("leduc")
    strategy: Callable[..., Strategy] = uniform  # type: ignore[assignment]
    pair = (strategy(game), strategy(game))
    whole = play_games(game, game.deal(300, STREAM), pair, STREAM + 1)
    parts = [
        play_games(game, game.deal(n, STREAM, first=f), pair, STREAM + 1) for f, n in ((0, 1), (1, 122), (123, 177))
    ]
    assert torch.equal(whole, torch.cat(parts))
    assert len(whole.unique()) > 1


def test_games_that_end_before_anyone_acts_are_paid() -> None:
    """A game whose start may be terminal, as after a deal that decides it."""

    class Decided:
        actor = torch.tensor([TERMINAL, TERMINAL])

        def start(self, deals: Deals) -> torch.Tensor:
            return deals.traversal % 2

        def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
            return node.float() + 10 * row

    deals = Deals(torch.arange(4), torch.zeros(4, 2, 1, 0, dtype=torch.uint8), None)
    game = Decided()
    assert play_games(game, deals, (uniform(game), uniform(game)), 0).tolist() == [0, 11, 20, 31]  # type: ignore[arg-type]
