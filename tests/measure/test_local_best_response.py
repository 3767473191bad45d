"""Local best response: against its rule over all deals, against exact best responses, and its sampled form."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from board_play import LEDUC, THREE_ROUNDS, AllDeals, random_policy, solved
from command_line import deepcfr, problem
from deepcfr.boards.boards import Boards
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import TERMINAL
from deepcfr.game.betting import CALL, FOLD, RAISE
from deepcfr.game.cards import all_hands
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure import check_down
from deepcfr.measure.check_down import CheckDown, results_before_cards, runouts_after
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.local_best_response import LocalBestResponse, local_best_response
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.styles import scripted_policy
from deepcfr.run.folder import RunFolder
from deepcfr.sample.traversal_tree import showdowns
from experiments.theorem1.tables import TablePolicy
from openspiel_poker import small_fhp

MINI = PRESETS["fhp-mini"]
TWO_HOLE_CARDS = small_fhp(3, (1, 1, 0), (0, 1, 1), num_suits=2)
NO_LIMIT = replace(  # players are all-in after two raises, in either round
    PRESETS["fhp-pot"], name="no limit", num_ranks=3, num_suits=2, hole_cards=1, board_cards=(0, 1), max_raises=(2, 2),
    stack=500, rank_symbols="", suit_symbols="",
)  # fmt: skip

# The rule over all deals
# ----------------------------------------------------------------------------------------


class RuleOverAllDeals(AllDeals):
    """A player of `seat` that decides in `rounds` as the paper does, from sums over all deals that it cannot tell apart."""

    def __init__(self, policy: TablePolicy, seat: int, rounds: Sequence[int], *, bets: bool) -> None:
        super().__init__(policy)
        self.seat, self.rounds, self.bets = seat, rounds, bets
        rules = self.game.rules
        result = showdowns(self.cards, rules.hole_cards, rules.num_suits).astype(np.float64) - 1
        self.result = result if seat == 0 else -result  # 1, 0 or -1 in every deal

    def gain(self) -> float:
        """Its mean gain over all deals, in thousandths."""
        return 1000 * float(self._play(0, np.ones(len(self.rows))).mean())

    def _play(self, node: int, reach: np.ndarray) -> np.ndarray:
        """Its gain in every deal from a node on, [D]; `reach` [D] is that of the opponent's actions."""
        tree, seat = self.game.tree, self.seat
        if tree.actor[node] == TERMINAL:
            return self.payoff(node, seat)
        child = {action: int(tree.child[node, action]) for action in (CALL, RAISE, FOLD) if tree.legal[node, action]}
        if tree.actor[node] != seat:
            sigma = self.sigma(node)
            return sum(sigma[:, action] * self._play(child[action], reach * sigma[:, action]) for action in child)
        if tree.round[node] not in self.rounds:
            return self._play(next(iter(child.values())), reach)
        if not self.bets and CALL in child:
            child.pop(RAISE, None)
        infoset, (mine, other) = self.infosets(seat, node), tree.chips[node, [seat, 1 - seat]]
        utility = []
        for action, after in child.items():
            if action == RAISE:
                folds = self.sigma(after)[:, FOLD]
                gains = folds * other + (1 - folds) * tree.chips[after, seat] * self.result
            else:
                gains = max(mine, other) * self.result if action == CALL else np.full(len(reach), -mine)
            utility.append(np.bincount(infoset, reach * gains))
        below = np.stack([self._play(after, reach) for after in child.values()])
        return below[np.argmax(utility, axis=0)[infoset], np.arange(len(reach))]


@pytest.mark.parametrize(
    ("rules", "suits", "rounds"),
    [
        (THREE_ROUNDS, "canonical", (0, 1, 2)),
        (THREE_ROUNDS, "raw", (0, 2)),  # checks and calls elsewhere
        (TWO_HOLE_CARDS, "canonical", (0, 1, 2)),
        (TWO_HOLE_CARDS, "raw", (2,)),
        (NO_LIMIT, "raw", (0, 1)),
        (NO_LIMIT, "canonical", (1,)),  # raises where it may not call
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
@pytest.mark.parametrize("sizes", [None, "none"])
def test_it_gains_what_the_rule_gains_over_all_deals(
    rules: PokerRules, suits: Suits, rounds: tuple[int, ...], sizes: str | None
) -> None:
    policy = random_policy(rules, 1, suits)
    result = local_best_response(policy, None, rounds=rounds, sizes=sizes)
    wanted = [RuleOverAllDeals(policy, seat, rounds, bets=sizes is None).gain() for seat in (0, 1)]
    assert result.seats == pytest.approx(wanted, abs=1e-6)
    assert result.sizes == sizes
    assert (result.rounds, result.exact, result.boards, result.interval) == (rounds, True, 0, 0.0)
    assert result.mean == pytest.approx(sum(result.seats) / 2, abs=1e-9)
    if len(rounds) == rules.num_rounds:
        assert local_best_response(policy, None, sizes=sizes).seats == result.seats


# A lower bound
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (lambda: UniformPolicy(PokerGame(MINI)), True),
        (lambda: scripted_policy("call", PokerGame(LEDUC)), True),
        (lambda: random_policy(LEDUC, 4), True),
        (lambda: solved(LEDUC, 3), False),
        (lambda: solved(LEDUC, 100), False),
    ],
    ids=["uniform", "always call", "random", "a few iterations", "solved"],
)
def test_it_gains_no_more_than_a_best_response(make: Callable[[], Policy], bad: bool) -> None:
    policy = make()
    best = exploitability(policy)
    exact, sampled = local_best_response(policy, None), local_best_response(policy, 10, seed=1)
    for gain, most in zip(exact.seats, best.best_response_values, strict=True):
        assert gain <= most + 1e-6
    # It gains all that there is from who always calls, and nearly all from a solution. Estimates of that are too high
    # half of the time, and above their interval in one case of forty, so twice the interval is what ten boards must
    # keep to.
    for gain, margin, most in zip(sampled.seats, sampled.seat_intervals, best.best_response_values, strict=True):
        assert gain - 2 * margin <= most
    assert sampled.mean - 2 * sampled.interval <= best.exploitability
    if bad:  # who plays so badly is found out
        assert exact.mean > 0.6 * best.exploitability
        assert sampled.mean > 0.4 * best.exploitability


# Sampled boards
# --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [None, 3])
def test_sampled_boards_give_the_exact_gain_on_average_and_as_often_as_their_intervals_say(lines: int | None) -> None:
    policy = random_policy(THREE_ROUNDS, 5)
    exact = local_best_response(policy, None)
    found = [local_best_response(policy, 6, seed, lines=lines) for seed in range(30)]
    samples = np.array([result.seats for result in found])
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    assert (error > 0).all()
    assert (np.abs(samples.mean(axis=0) - exact.seats) < 4 * error).all()
    missed = sum(abs(result.mean - exact.mean) > result.interval for result in found)
    seats = sum(abs(result.seats[0] - exact.seats[0]) > result.seat_intervals[0] for result in found)
    assert max(missed, seats) <= 6  # of 30 with 5 % each: more come about once in 1,700


def test_threads_change_nothing() -> None:
    policy = random_policy(THREE_ROUNDS, 7)

    def timeless(boards: int | None, threads: int) -> LocalBestResponse:
        return replace(local_best_response(policy, boards, 3, threads=threads), seconds=0.0)

    assert timeless(12, 1) == timeless(12, 3)
    assert timeless(None, 1) == timeless(None, 3)
    assert timeless(12, 1).mean != local_best_response(policy, 12, 4).mean


# Checking down
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("round_", [0, 1, 2])
def test_checking_down_is_worth_what_dealing_all_cards_says(round_: int) -> None:
    game = PokerGame(TWO_HOLE_CARDS, "raw")
    boards = Boards(game, merge=False)
    board = boards.root
    for _ in range(round_ + 1):
        board = boards.children(board)[2 if len(boards.children(board)) > 2 else 0]
    reach = np.random.default_rng(0).random((3, len(board)))
    anyone, ahead = CheckDown(game.rules).against(board, reach)
    for u in (0, 4, len(board) - 1):
        mine = board.holes[board.example[u]].tolist()
        apart = np.flatnonzero(~np.isin(board.holes, mine).any(axis=1))
        against = reach[:, board.canonical[apart]]
        mean = []
        for hand in board.holes[apart].tolist():
            left = [c for c in range(game.rules.num_cards) if c not in (*mine, *hand, *board.cards)]
            runouts = combinations(left, 2 - len(board.cards))
            deals = np.array([[*mine, *hand, *board.cards, *more] for more in runouts], np.uint8)
            mean.append((showdowns(deals, 2, game.rules.num_suits) - 1).mean())
        np.testing.assert_allclose(anyone[:, u], against.sum(1), atol=1e-9)
        np.testing.assert_allclose(ahead[:, u], against @ mean, atol=1e-6)


def test_results_before_the_board_are_means_over_all_boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = replace(MINI, name="three suits", num_suits=3, suit_symbols="", board_cards=(0, 3))
    holes = all_hands(rules.num_cards, 2)
    found = results_before_cards(rules)
    assert found.shape == (105, 105)
    for first, second in ((0, 104), (17, 61), (40, 39), (3, 90), (52, 53)):
        mine, theirs = holes[first].tolist(), holes[second].tolist()
        left = [card for card in range(rules.num_cards) if card not in (*mine, *theirs)]
        deals = np.array([[*mine, *theirs, *more] for more in combinations(left, 3)], np.uint8)
        shared = bool(set(mine) & set(theirs))
        wanted = 0 if shared else (showdowns(deals, 2, rules.num_suits) - 1).mean()
        assert found[first, second] == pytest.approx(wanted, abs=1e-6)
    monkeypatch.setenv("DEEPCFR_CACHE", str(tmp_path))
    monkeypatch.setattr(check_down, "_KEPT_COMPARISONS", 0)
    make = check_down._results_before_cards.__wrapped__  # without what this process remembers
    deck = (rules.num_ranks, rules.num_suits, 2, 3)
    np.testing.assert_array_equal(make(*deck), found)
    (file,) = tmp_path.iterdir()
    np.testing.assert_array_equal(make(*deck), found)
    save_file({"results": torch.zeros(2)}, file)
    assert make(*deck).tolist() == [0, 0]  # what the file says


def test_a_sample_of_runouts_is_near_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = replace(MINI, name="a card and two", board_cards=(1, 2))
    board = Boards(PokerGame(rules), merge=True)
    first = board.children(board.root)[0]
    reach = np.random.default_rng(1).random((2, len(first)))
    anyone, exact = (part.copy() for part in CheckDown(rules).against(first, reach))
    monkeypatch.setattr(check_down, "MOST_RUNOUTS", 100)
    _, sampled = (part.copy() for part in CheckDown(rules).against(first, reach))
    _, again = CheckDown(rules).against(first, reach)
    assert np.abs(sampled - exact).max() > 0
    assert (np.abs(sampled - exact) < 0.05 * anyone).all()
    np.testing.assert_array_equal(sampled, again)
    runouts = runouts_after(MINI, (0, 1), 3)
    assert runouts.shape == (check_down.SAMPLED_RUNOUTS, 3)
    assert not np.isin(runouts, (0, 1)).any()
    assert all(len(set(row)) == 3 for row in runouts[:100].tolist())
    counts = np.bincount(runouts.reshape(-1), minlength=20)[2:]
    assert np.abs(counts / len(runouts) - 3 / 18).max() < 0.02


# Refusals and the command line
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"boards": 0}, r"needs at least 2 boards for its interval, but 0 were asked for\."),
        ({"rounds": [0, 2]}, r"The rounds of leduc are 0 to 1, but 2 was given\."),
        ({"rounds": []}, "no round was given"),
        ({"lines": 0}, "at least 1 line of a round, but 0 were asked for"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        local_best_response(UniformPolicy(PokerGame(LEDUC)), **({"boards": 4} | settings))


def test_games_that_cannot_be_evaluated_are_refused() -> None:
    with pytest.raises(GameError, match=r"exact evaluation enumerates at most .* Boards can be sampled"):
        local_best_response(UniformPolicy(PokerGame(PRESETS["hulh"])), None)
    with pytest.raises(GameError, match=r"plays poker games only, but .* is not one\."):
        local_best_response(UniformPolicy(load_openspiel_game("kuhn_poker")), None)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "leduc"
    assert deepcfr("solve", "leduc", "--iterations", 5, "--out", path, "--json").status == 0
    return path


def test_the_command_prints_the_bound(run: Path) -> None:
    policy, _ = RunFolder.open(run).load_policy("average", print)
    outcome, expected = deepcfr("lbr", run, "--json").json, local_best_response(policy, None)
    assert outcome["mean"] == pytest.approx(expected.mean, abs=1e-6)
    assert (outcome["unit"], outcome["exact"], outcome["interval"]) == ("mA/g", True, 0.0)
    assert outcome["run"] == str(run)
    shown = deepcfr("lbr", run, "--boards", 6, "--rounds", 1, "--seed", 2, "--threads", 1)
    assert shown.status == 0
    assert shown.out.strip() == local_best_response(policy, 6, 2, rounds=[1]).describe()
    assert "a lower bound on its exploitability" in shown.out
    random = deepcfr("lbr", f"random:{run}", "--json").json
    assert random["mean"] == pytest.approx(local_best_response(UniformPolicy(policy.game), None).mean)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--threads", 0), "--threads must be at least 1, but is 0."),
        (("--seed", -1), "--seed must be at least 0, but is -1."),
        (("--boards", "all", "--lines", 4), "--lines is for sampled boards: give --boards a number with it."),
    ],
    ids=str,
)
def test_the_command_refuses_in_a_sentence(run: Path, arguments: tuple[object, ...], sentence: str) -> None:
    assert problem(deepcfr("lbr", run, *arguments)) == sentence
