"""Policies with search: one answer for one public state, ranges by Bayes' rule, and what safety does, exactly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from board_play import random_policy
from deepcfr.boards.boards import Boards, SampledBoards
from deepcfr.boards.sweep import RoundPass, Scratch
from deepcfr.config import SearchConfig
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.parallel import Workers
from deepcfr.core.types import Infosets
from deepcfr.game.cards import suit_permutations
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import build_game, load_source
from deepcfr.game.rules import PRESETS
from deepcfr.measure.exploitability import exploitability
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.styles import scripted_policy
from deepcfr.search import policy
from deepcfr.search.policy import ResolvingPolicy
from deepcfr.search.subgame import SubgameSolver, subgame
from deepcfr.solve.vector_cfr import VectorCFR
from tables import finished, tabular

LEDUC = PokerGame(PRESETS["leduc"])
HULH = PokerGame(PRESETS["hulh"])
BOARDS_ONLY = VectorCFR(LEDUC, tabular("linear-cfr")).average_policy()
NO_POKER = build_game(load_source("openspiel:kuhn_poker"))
RUNOUT = (50, 20, 12, 9, 35)


@pytest.fixture(scope="module")
def solved() -> VectorCFR:
    """Leduc poker after 40 iterations of Linear CFR: some 200 thousandths from an equilibrium."""
    return finished(VectorCFR(LEDUC, tabular("linear-cfr", 40)))


class Table(Policy):
    """Any policy of a small game without boards of its own."""

    kind = "table"

    def __init__(self, policy: Policy) -> None:
        self.game, self._policy = policy.game, policy

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self._policy.probabilities(infosets)


def nash_conv(policy: Policy) -> float:
    return exploitability(policy).nash_conv


def test_safe_search_lowers_nash_conv_and_unsafe_search_need_not(solved: VectorCFR) -> None:
    plain = Table(solved.average_policy())
    without = nash_conv(plain)
    assert nash_conv(ResolvingPolicy(plain, SearchConfig("gadget", (), 150))) < 0.8 * without
    # rare ranges: an equilibrium for the ranges that arrive says little of what is best against others
    assert nash_conv(ResolvingPolicy(plain, SearchConfig("unsafe", (), 150))) > without


def test_rounds_that_are_not_searched_are_played_as_before() -> None:
    plain, boards = random_policy(LEDUC, 7), Boards(LEDUC, merge=True)
    (board,) = boards.children(boards.root)
    searching = ResolvingPolicy(plain, SearchConfig(iterations=1))
    np.testing.assert_array_equal(searching.on_board(boards.rounds[0], board), plain.on_board(boards.rounds[0], board))


@pytest.mark.parametrize("kind", ["unsafe", "gadget"])
def test_single_infosets_have_the_strategy_of_the_board_in_any_suits(kind: str) -> None:
    policy = ResolvingPolicy(UniformPolicy(HULH), SearchConfig(kind, (3,), 5))  # type: ignore[arg-type]
    tree, root = SampledBoards(HULH).rounds[3], 200
    part = tree.only(np.array([root]))
    board = SampledBoards(HULH).runout(RUNOUT)[-1]
    expected = policy.on_board(part.tree, board)
    node = len(part.tree.nodes) // 2
    assert expected.std() > 0.1
    hands = np.array([0, 17, 500, 1_000])
    for renaming in suit_permutations(13, 4)[[0, 9, 20]]:
        canonicals = HULH.visible_cards(renaming[board.holes[hands]], renaming[list(RUNOUT)])
        found = policy.probabilities(
            Infosets(torch.full((len(hands),), int(part.tree.nodes[node])), torch.from_numpy(canonicals))
        )
        for edge in range(part.tree.first_edge[node], part.tree.first_edge[node + 1]):
            got = found[:, part.tree.edge_action[edge]].numpy()
            np.testing.assert_allclose(got, expected[edge, board.canonical[hands]], rtol=1e-6)


def test_the_answer_does_not_depend_on_the_order_or_the_company_of_questions() -> None:
    plain = random_policy(LEDUC, 5)
    boards = Boards(LEDUC, merge=True)
    (before,) = boards.children(boards.root)
    board = boards.children(before)[1]
    tree = boards.rounds[1]
    settings = SearchConfig("gadget", (0, 1), 20)
    together = ResolvingPolicy(plain, settings).on_board(tree, board)
    single = ResolvingPolicy(plain, settings)
    for root in reversed(range(len(tree.roots))):
        part = tree.only(np.array([root]))
        np.testing.assert_array_equal(single.on_board(part.tree, board), together[part.edges])


def test_ranges_follow_what_the_searching_policy_plays_before() -> None:
    """The second round is solved from the first round's new strategy, not from the plain one."""
    plain = random_policy(LEDUC, 6)
    boards = Boards(LEDUC, merge=True)
    (before,) = boards.children(boards.root)
    board, tree = boards.children(before)[0], boards.rounds[1]
    searching = ResolvingPolicy(plain, SearchConfig("unsafe", (0, 1), 25))
    play = RoundPass(boards.rounds[0], before, np.ones((2, 1, len(before))), Scratch())
    play.down(searching.on_board(boards.rounds[0], before))
    reach = play.reach_at_leaves()[:, :, board.up]
    inside = subgame(LEDUC, boards.rounds, board, np.arange(len(tree.roots)))
    solver = SubgameSolver(inside, reach)
    solver.run(25)
    expected = solver.policy().on_board(tree, replace(board, index=0))
    np.testing.assert_allclose(searching.on_board(tree, board), expected, rtol=1e-5, atol=1e-7)
    only_second = ResolvingPolicy(plain, SearchConfig("unsafe", (1,), 25)).on_board(tree, board)
    assert np.abs(only_second - expected).max() > 0.01


@pytest.mark.parametrize("kind", ["unsafe", "gadget"])
def test_threads_share_the_boards_of_a_subgame_and_change_nothing(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[int] = []

    class Watched(Workers):
        def map(self, *given: Any) -> Any:
            shared.append(self.count)
            return super().map(*given)

    monkeypatch.setattr(policy, "_workers", Watched)
    boards, plain = Boards(LEDUC, merge=True), random_policy(LEDUC, 8)
    (board,) = boards.children(boards.root)
    alone, together = (ResolvingPolicy(plain, SearchConfig(kind, (0, 1), 10, threads)) for threads in (1, 2))
    expected = alone.on_board(boards.rounds[0], board)
    assert not shared
    np.testing.assert_array_equal(together.on_board(boards.rounds[0], board), expected)
    # each player's passes in every iteration, and the opponent's alternative for each resolver
    assert shared == [2] * (20 if kind == "unsafe" else 42)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: ResolvingPolicy(UniformPolicy(LEDUC), SearchConfig(rounds=(2,))), "'search.rounds' names 2"),
        (lambda: ResolvingPolicy(UniformPolicy(LEDUC), SearchConfig(rounds=(0,))), "every round from 0 to 1"),
        (lambda: ResolvingPolicy(UniformPolicy(LEDUC), SearchConfig(iterations=0)), "at least 1, but is 0"),
        (lambda: ResolvingPolicy(UniformPolicy(LEDUC), SearchConfig(threads=0)), "'search.threads' must be at least 1"),
        (lambda: ResolvingPolicy(UniformPolicy(HULH), SearchConfig(rounds=(1, 2, 3))), "at most 2 GB are allowed"),
        (lambda: ResolvingPolicy(UniformPolicy(NO_POKER), SearchConfig()), "is not one"),
        (lambda: ResolvingPolicy(BOARDS_ONLY, SearchConfig()), "only its own boards"),
    ],
    ids=["round", "gap", "iterations", "threads", "memory", "game", "boards"],
)  # fmt: skip
def test_what_cannot_be_searched_is_a_sentence(make: object, sentence: str) -> None:
    with pytest.raises((ConfigError, GameError), match=sentence):
        make()  # type: ignore[operator]


def test_hands_that_never_come_to_a_decision_are_played_as_before() -> None:
    plain = scripted_policy("call", LEDUC)
    boards = Boards(LEDUC, merge=True)
    (before,) = boards.children(boards.root)
    board, tree = boards.children(before)[0], boards.rounds[1]
    found = ResolvingPolicy(plain, SearchConfig("unsafe", (1,), 20)).on_board(tree, board)
    play = RoundPass(boards.rounds[0], before, np.ones((2, 1, len(before))), Scratch())
    play.down(plain.on_board(boards.rounds[0], before))
    taken = play.reach_at_leaves().prod(0).any(1)  # the lines to the second round that this policy takes
    assert taken.sum() == 1
    called = taken[tree.root_of[tree.edge_node]]
    np.testing.assert_array_equal(found[~called], plain.on_board(tree, board)[~called])
    assert np.abs(found - plain.on_board(tree, board))[called].max() > 0.1


def test_lines_are_solved_in_parts_that_fit_and_all_in_lines_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    game = PokerGame(PRESETS["hunl-pot"])
    tree = SampledBoards(game).rounds[3]
    board = SampledBoards(game).runout(RUNOUT)[-1]
    sizes = np.bincount(tree.root_of[tree.edge_node], minlength=len(tree.roots))
    all_in, largest = np.flatnonzero(sizes == 0)[:2], np.argsort(sizes)[-4:]
    roots = np.sort(np.concatenate([all_in, largest]))
    part = tree.only(roots)
    whole = ResolvingPolicy(UniformPolicy(game), SearchConfig("unsafe", (3,), 3)).on_board(part.tree, board)
    monkeypatch.setattr("deepcfr.search.policy._MOST_BYTES", 4e6)  # the four lines at once need more
    asked: list[int] = []

    def counted(*arguments: Any) -> Boards:
        asked.append(len(arguments[-1]))
        return subgame(*arguments)

    monkeypatch.setattr("deepcfr.search.policy.subgame", counted)
    policy = ResolvingPolicy(UniformPolicy(game), SearchConfig("unsafe", (3,), 3))
    policy.on_board(tree.only(all_in).tree, board)
    np.testing.assert_array_equal(policy.on_board(part.tree, board), whole)
    assert sum(asked) == 4
    assert max(asked) <= 2


def test_old_solutions_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = random_policy(LEDUC, 8)
    boards = Boards(LEDUC, merge=True)
    (before,) = boards.children(boards.root)
    tree, found = boards.rounds[1], [boards.children(before)[i] for i in (0, 1, 2, 0)]
    expected = [ResolvingPolicy(plain, SearchConfig()).on_board(tree, board) for board in found]
    monkeypatch.setattr("deepcfr.search.policy._KEPT_BYTES", expected[0].nbytes)
    few = ResolvingPolicy(plain, SearchConfig())
    for board, strategy in zip(found, expected, strict=True):
        np.testing.assert_array_equal(few.on_board(tree, board), strategy)
        assert sum(kept.nbytes for kept in few._solved.values()) <= expected[0].nbytes
