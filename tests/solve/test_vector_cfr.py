"""Full-width CFR is OpenSpiel's, iteration by iteration; 16 bits stay close."""

from dataclasses import replace
from functools import cache
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel
import pytest
import torch
from open_spiel.python.algorithms import discounted_cfr

from deepcfr.boards.boards import Board
from deepcfr.boards.tables import Int16Table
from deepcfr.core.types import Infosets
from deepcfr.game.openspiel import OpenSpielGame
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.interop.openspiel import openspiel_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.solve.sequence_form import TreeCFR
from deepcfr.solve.vector_cfr import VectorCFR
from openspiel_poker import openspiel_infosets, openspiel_policy, small_fhp
from predictive_cfr import PredictiveCFRPlus
from tables import finished, tabular

KUHN, LEDUC = PRESETS["kuhn"], PRESETS["leduc"]
ALGORITHMS = ["cfr", "cfr+", "pcfr+", "linear-cfr", "dcfr"]
OPENSPIEL: dict[str, Any] = {
    "cfr": pyspiel.CFRSolver,
    "cfr+": pyspiel.CFRPlusSolver,
    "pcfr+": PredictiveCFRPlus,
    "linear-cfr": discounted_cfr.LCFRSolver,
    "dcfr": discounted_cfr.DCFRSolver,
}


def solver_of(rules: PokerRules, algorithm: str, iterations: int, precision: str = "float64") -> VectorCFR:
    return VectorCFR(PokerGame(rules), tabular(algorithm, iterations, precision=precision))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("rules", [KUHN, LEDUC], ids=["kuhn", "leduc"])
def test_averages_are_openspiels_at_every_iteration(rules: PokerRules, algorithm: str) -> None:
    other = openspiel_game(rules)
    python = algorithm in ("pcfr+", "linear-cfr", "dcfr")  # slow
    solver, theirs = solver_of(rules, algorithm, 4 if python and rules is LEDUC else 15), OPENSPIEL[algorithm](other)
    infosets = openspiel_infosets(solver.game, other)
    for record in solver.iterations():
        theirs.evaluate_and_update_policy()
        average = theirs.average_policy()
        for name, ours in openspiel_policy(solver.average_policy(), infosets).policy_table().items():
            state = dict(average.get_state_policy(name)) if not python else python_row(average, name)
            for action, probability in ours:
                assert abs(probability - state[action]) < 1e-9, f"{name}, iteration {record.iteration}"


def python_row(average: Any, name: str) -> dict[int, float]:
    return dict(enumerate(average.action_probability_array[average.state_lookup[name]]))


def start_anywhere(solver: VectorCFR) -> None:
    """Random regrets to start from. In a tiny deck many actions are exactly as good as others, and whatever rounds
    differently breaks such ties differently; from here there are none for a while."""
    rng = np.random.default_rng(0)
    for boards, table in zip(solver.boards.kept, solver._regrets, strict=True):
        for board in boards:
            regret = table.load(board)
            regret[:] = rng.integers(1000, size=regret.shape) / 10
            for player in (0, 1):
                table.store(board, regret, player)


@cache
def openspiel_tree(rules: PokerRules) -> OpenSpielGame:
    return OpenSpielGame(openspiel_game(rules), "small")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_hands_of_two_cards_are_openspiels_tree(algorithm: str) -> None:
    rules = small_fhp(3, (1, 1), (0, 1), num_suits=2)
    solver = solver_of(rules, algorithm, 4)
    start_anywhere(solver)
    tree = TreeCFR(openspiel_tree(rules), solver.config)
    infosets = openspiel_infosets(solver.game, openspiel_game(rules))
    names = tree.game.explicit.infoset_names
    for name, row in zip(names, tree.arrays()["regret"], strict=True):
        (node, canonical), legal = infosets[name]
        # our regrets at a board are sums over opposing hands, before the probabilities of deal and board
        board = 1 / comb(2, 1) if solver.game.tree.round[node] else 1.0
        scale = rules.unit_chips * board / (comb(6, 2) * comb(4, 2))
        row[: len(legal)] = scale * regrets_at(solver, node, np.frombuffer(canonical, np.uint8))
    for _ in zip(solver.iterations(), tree.iterations(), strict=True):
        pass
    table = tree.average_policy().table
    ours = openspiel_policy(solver.average_policy(), infosets).policy_table()
    assert set(ours) == set(names)
    for row, name in zip(table, names, strict=True):
        probabilities = [probability for _, probability in ours[name]]
        np.testing.assert_allclose(probabilities, row[: len(probabilities)], atol=1e-9)


def regrets_at(solver: VectorCFR, node: int, canonical: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
    round_ = int(solver.game.tree.round[node])
    tree = solver.boards.rounds[round_]
    edges = np.flatnonzero(tree.nodes[tree.edge_node] == node)
    for board in solver.boards.kept[round_]:
        (found,) = np.nonzero((board.visible_cards == canonical).all(axis=1))
        if len(found):
            return solver._regrets[round_].load(board)[edges, found[0]]
    raise AssertionError("no board has this view")


def test_rounds_without_cards_and_boards_before_the_first_action_are_solved() -> None:
    three = replace(
        LEDUC, name="three", board_cards=(1, 0, 1), first_player=(0, 0, 1), raise_size=(1, 2, 2), max_raises=(1, 1, 1),
        rank_symbols="",
    )  # fmt: skip
    solver = finished(solver_of(three, "cfr+", 150))
    assert exploitability(solver.average_policy()).nash_conv < 60


def test_every_16_bit_average_is_rounded_with_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """No two iterations, players, rounds, boards or seeds share one."""
    streams, store = [], Int16Table.store

    def watched(self: Int16Table, board: Board, values: Any, player: int, stream: int | None = None) -> None:
        streams.append(stream)
        store(self, board, values, player, stream)

    monkeypatch.setattr(Int16Table, "store", watched)
    for seed in (0, 1):
        solver = finished(VectorCFR(PokerGame(LEDUC), tabular("cfr", 3, precision="int16", seed=seed)))
    averages = [stream for stream in streams if stream is not None]
    boards = sum(map(len, solver.boards.kept))
    assert len(averages) == len(streams) // 2 == len(set(averages)) == 2 * 3 * 2 * boards


@pytest.mark.parametrize(
    ("algorithm", "anywhere", "iterations"),
    [("dcfr", True, 30), ("pcfr+", True, 30), ("cfr", False, 60)],
)
def test_sixteen_bits_stay_within_one_percent(algorithm: str, anywhere: bool, iterations: int) -> None:
    rules = small_fhp(5, (3, 4), num_suits=2)
    found = []
    for precision in ("float32", "int16"):
        solver = solver_of(rules, algorithm, iterations, precision=precision)
        if anywhere:
            start_anywhere(solver)
        finished(solver)
        found.append(exploitability(solver.average_policy()).nash_conv)
    assert found[1] == pytest.approx(found[0], rel=0.01)
    assert found[0] != found[1]  # or nothing was rounded


def test_the_current_strategy_of_predictive_cfr_has_the_prediction() -> None:
    """It is the one that a second implementation plays next."""
    solver, theirs = solver_of(LEDUC, "pcfr+", 5), PredictiveCFRPlus(openspiel_game(LEDUC))
    for _ in solver.iterations():
        theirs.evaluate_and_update_policy()
    current = theirs.current_policy()
    infosets = openspiel_infosets(solver.game, openspiel_game(LEDUC))
    for name, ours in openspiel_policy(solver.current_policy(), infosets).policy_table().items():
        row = python_row(current, name)
        assert [probability for _, probability in ours] == pytest.approx([row[action] for action, _ in ours], abs=1e-9)


def test_memory_is_counted_before_it_is_taken() -> None:
    config = tabular("cfr", precision="float32")
    tables = 234_199_693 * 2 * 4
    assert tables < VectorCFR.memory_bytes(PokerGame(PRESETS["fhp"]), config) < tables + 0.2e9
    solver = solver_of(LEDUC, "cfr", 1, "float32")
    taken = sum(array.nbytes for array in solver.arrays().values())
    assert taken <= VectorCFR.memory_bytes(PokerGame(LEDUC), config) < taken + 10_000
    half = solver_of(LEDUC, "cfr", 1, precision="int16")
    assert sum(array.nbytes for name, array in half.arrays().items() if "values" in name) == taken / 2


def test_threads_change_no_number_of_the_tables() -> None:
    few = PRESETS["fhp-mini"]
    one, three = (VectorCFR(PokerGame(few), tabular("dcfr", 2, threads=threads)) for threads in (1, 3))
    assert [len(list(solver.iterations())) for solver in (one, three)] == [2, 2]
    for name, array in one.arrays().items():
        assert np.array_equal(array, three.arrays()[name]), name


def test_nodes_touched_are_decisions_and_ends_for_both_players() -> None:
    game, solver = PokerGame(LEDUC), solver_of(LEDUC, "cfr", 1)
    sizes = [sum(map(len, boards)) for boards in solver.boards.kept]
    by_round = [int((game.tree.round == round_).sum()) for round_ in range(2)]
    assert next(solver.iterations()).nodes_touched == 2 * sum(n * u for n, u in zip(by_round, sizes, strict=True))
    solver = solver_of(KUHN, "cfr", 3)
    assert [record.nodes_touched for record in solver.iterations()] == [
        2 * 9 * 3
    ] * 3  # 4 decisions and 5 ends with 3 cards
    assert solver.nodes_touched == 3 * 54


def test_a_policy_answers_for_infosets_as_for_boards() -> None:
    rules = small_fhp(4, (1, 1), num_suits=3)
    solver = finished(solver_of(rules, "cfr+", 5))
    policy, game = solver.average_policy(), solver.game
    checked = 0
    for round_, tree in enumerate(policy.boards.rounds):
        for board in policy.boards.kept[round_]:
            table = policy.on_board(tree, board)
            for local, node in enumerate(tree.nodes):
                rows = policy.probabilities(
                    Infosets(torch.full((len(board),), int(node)), torch.from_numpy(board.visible_cards))
                ).numpy()
                mine = np.flatnonzero(tree.edge_node == local)
                np.testing.assert_allclose(rows[:, tree.edge_action[mine]].T, table[mine], atol=1e-7)
                np.testing.assert_allclose(rows.sum(1), 1, atol=1e-6)
                assert (rows[:, ~game.tree.legal[node]] == 0).all()
                checked += len(board)
    assert checked > 1000
