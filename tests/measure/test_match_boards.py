"""Matches over sampled boards: unbiased by enumeration, as exact as they say, and in agreement with real hands."""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from math import sqrt

import numpy as np
import pytest
import torch
from scipy import stats

from board_play import KUHN, LEDUC, THREE_ROUNDS, random_policy, solved
from deepcfr.boards.boards import RunoutSampler
from deepcfr.buckets.buckets import lossless
from deepcfr.config import NetworkConfig
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.rng import generator
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.intervals import NORMAL_95, student_t_95
from deepcfr.measure.match import Match, boards as boards_module, boards_match, exact_match, sampled_match
from deepcfr.measure.match.boards import Runouts, half_interval
from deepcfr.network.networks import build_network
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import MixturePolicy
from deepcfr.policy.network import AveragePolicy, FirstRound, WithFirstRound, first_board
from deepcfr.policy.styles import scripted_policy
from deepcfr.policy.tables import AbstractPolicy
from deepcfr.sample.traversal_tree import table_layout
from measure.test_match import SMALL_FHP
from openspiel_poker import small_fhp

COUSIN = small_fhp(4, (1, 2, 1, 1), (0, 1, 1, 1), num_suits=2)  # heads-up limit hold'em with eight cards
FLOPS = small_fhp(5, (1, 1), (0, 3), num_suits=3)  # 455 flops


def gains_on(first: Policy, second: Policy, cards: tuple[int, ...], lines: int | None = None) -> np.ndarray:
    """The first policy's gains in both seats on one runout, in thousandths."""
    runouts = Runouts(first, second, 2, 0, lines)
    runouts.sampler.cards = lambda number: cards  # noqa: ARG005
    return 1000 * np.array(runouts.gains(0))


def agree(one: Match, other: Match, errors: float = 3.3) -> bool:
    return abs(one.value - other.value) <= errors / 1.96 * sqrt(one.interval**2 + other.interval**2)


# Unbiased
# ---------------------------------------------------------------------------------------------------------------


def test_the_mean_over_all_runouts_of_four_rounds_is_the_exact_value() -> None:
    rules = small_fhp(3, (1, 2, 1, 1), (0, 1, 1, 1), num_suits=2, hole_cards=1)
    first, second = random_policy(rules, 1, "raw"), random_policy(rules, 2, "canonical")
    runouts = Runouts(first, second, 2, 0, None)
    cards = [*permutations(range(6), 3)]
    runouts.sampler.cards = cards.__getitem__
    mean = 1000 * np.mean([runouts.gains(number) for number in range(len(cards))], axis=0)
    exact = exact_match(first, second)
    assert mean == pytest.approx(exact.seats, abs=1e-6)
    assert abs(exact.value) > 1


def test_lines_on_which_both_are_all_in_ask_nobody() -> None:
    """With bets the size of the pot and little behind, one line of a round is often one without decisions."""
    cards = {"num_ranks": 4, "rank_symbols": "2345", "board_cards": (0, 1, 1, 1)}
    rules = replace(PRESETS["hunl-pot"], name="short", stack=400, **cards)
    game = PokerGame(rules)
    buckets = lossless(rules)
    table = np.random.default_rng(0).random(table_layout(game.tree, buckets.counts).size)
    one, other = AbstractPolicy(game, buckets, table), UniformPolicy(game)
    whole = boards_match(one, other, 60, seed=1, lines=None)
    by_lines = boards_match(one, other, 60, seed=1, lines=1)
    assert by_lines.interval > whole.interval > 0
    assert agree(whole, by_lines)


def test_every_line_counts_with_its_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many draws of lines on one runout the mean is what all lines give, which may come in parts."""
    policies = [random_policy(COUSIN, seed) for seed in (3, 4)]
    cards = (3, 5, 6)
    whole = gains_on(*policies, cards)
    runouts = Runouts(*policies, 2, 0, 2)
    runouts.sampler.cards = lambda number: cards  # noqa: ARG005
    found = 1000 * np.array([runouts.gains(number) for number in range(80)])
    error = np.std(found, axis=0, ddof=1) / sqrt(len(found))
    assert (error > 0).all()
    assert (np.abs(np.mean(found, axis=0) - whole) < 3.5 * error).all()
    monkeypatch.setattr(boards_module, "_TOGETHER", 1)
    assert gains_on(*policies, cards) == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize("rules", [THREE_ROUNDS, SMALL_FHP], ids=lambda rules: rules.name)
def test_tables_by_boards_play_sampled_ones(rules: PokerRules) -> None:
    """A solver's tables are found by the class of a board, also against a policy that sees raw suits."""
    solution = solved(rules, 20)
    for rival in (random_policy(rules, 5, "raw"), solved(rules, 2)):
        exact, sampled = exact_match(solution, rival), boards_match(solution, rival, 60, 1)
        assert agree(sampled, exact)
        assert sampled.interval < 0.5 * abs(exact.value)


def test_a_game_without_boards_is_exact_on_any_runout() -> None:
    first, second = random_policy(KUHN, 6), random_policy(KUHN, 7)
    match = boards_match(first, second, 2, 0)
    assert match.seats == pytest.approx(exact_match(first, second).seats)
    assert match.interval == pytest.approx(0, abs=1e-9)


# Nothing against itself
# -------------------------------------------------------------------------------------------------


def network(rules: PokerRules, seed: int) -> AveragePolicy:
    """A random network that plays nothing like uniformly."""
    game = PokerGame(rules)
    net = build_network(game.encoding, NetworkConfig(), generator(seed))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.5)
    return AveragePolicy(game, net)


def mixture(rules: PokerRules, seed: int) -> MixturePolicy:
    return MixturePolicy(PokerGame(rules), [random_policy(rules, seed + i) for i in range(3)], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(("make", "lines"), [(random_policy, None), (random_policy, 2), (network, 2), (mixture, 2)])
def test_both_seats_share_boards_and_lines(make: Callable[..., Policy], lines: int | None) -> None:
    """So a policy gains exactly nothing against itself, and exchanged policies have exactly the opposite result."""
    policy, again, other = make(COUSIN, 8), make(COUSIN, 8), random_policy(COUSIN, 10)
    match = boards_match(policy, again, 4, 2, lines=lines)
    assert (match.value, match.interval) == (0, 0)
    assert match.seats[0] == -match.seats[1] != 0
    assert (match.boards, match.hands, match.exact) == (4, 0, False)
    there, back = (boards_match(*pair, 4, 3, lines=lines) for pair in ((policy, other), (other, policy)))
    assert there.value == -back.value != 0
    assert there.seats == (-back.seats[1], -back.seats[0])
    assert there.interval == back.interval > 0


# Policies of every kind
# -------------------------------------------------------------------------------------------------


def test_a_mixture_is_its_exact_average() -> None:
    mixed, rival = mixture(COUSIN, 12), random_policy(COUSIN, 15)
    exact = exact_match(mixed, rival)
    assert agree(boards_match(mixed, rival, 8, 4), exact)


def test_asking_for_parts_of_a_round_gives_what_the_whole_round_gives() -> None:
    """A mixture of one policy answers for whole rounds, the policy itself for parts; a table first round for both."""
    inner, rival = network(COUSIN, 16), random_policy(COUSIN, 17)
    whole = MixturePolicy(inner.game, [inner], [1.0])
    seats = [boards_match(policy, rival, 5, 5, lines=2).seats for policy in (inner, whole)]
    assert seats[0] == pytest.approx(seats[1], abs=1e-3)  # networks answer in single precision
    tree, board = first_board(inner.game)
    table = np.full((tree.num_edges, len(board)), 0.0, np.float32)
    for node, edge in enumerate(tree.first_edge[:-1]):
        table[edge : tree.first_edge[node + 1]] = 1 / (tree.first_edge[node + 1] - edge)
    first_round = FirstRound(tree, board.visible_cards, table)
    seats = [boards_match(WithFirstRound(p, first_round), rival, 5, 5, lines=2).seats for p in (inner, whole)]
    assert seats[0] == pytest.approx(seats[1], abs=1e-3)


@pytest.mark.parametrize(
    ("rules", "first", "second"),
    [(PRESETS["fhp"], "uniform", "network"), (COUSIN, "network", "raise")],
    ids=lambda value: getattr(value, "name", value),
)
def test_boards_and_hands_agree(rules: PokerRules, first: str, second: str) -> None:
    pair = [
        network(rules, 18) if name == "network" else scripted_policy(name, PokerGame(rules)) for name in (first, second)
    ]
    boards, hands = boards_match(*pair, 20, 6), sampled_match(*pair, 5_000, 6)
    assert agree(boards, hands)
    assert min(boards.interval, hands.interval) > 0
    assert boards.interval < 100
    if rules is COUSIN:
        assert agree(boards, exact_match(*pair))


def test_heads_up_limit_holdem_takes_memory_for_a_part_of_its_river_only() -> None:
    """567 roots with 1,081 hands are played in parts, also if all of them are: whole, reach alone would take 60 MB."""
    first, second = (scripted_policy(name, PokerGame(PRESETS["hulh"])) for name in ("call", "uniform"))
    runouts = Runouts(first, second, 2, 0, None)
    gains = runouts.gains(0)
    largest = {name: array.nbytes for name, array in runouts._passes._scratch[0]._buffers.items()}
    assert max(size for name, size in largest.items() if name.endswith(" 3")) < 10_000_000
    assert max(largest.values()) < 25_000_000
    # all that folds lose and calls win is chips: nobody gains more than the 24 big blinds that can be put in
    assert 0 < abs(sum(gains)) < 24


# Intervals
# --------------------------------------------------------------------------------------------------------------


def test_the_interval_of_a_stratified_mean_by_hand() -> None:
    values, stratum = np.array([1.0, 3.0, 10.0, 14.0, 12.0]), np.array([0, 0, 1, 1, 1])
    # variances 2 and 4 within strata, so the mean's is 4 / 25 + 12 / 25; degrees of freedom 16^2 / (4^2 / 1 + 12^2 / 2)
    expected = 0.8 * stats.t.ppf(0.975, 256 / 88)
    assert half_interval(values, stratum) == pytest.approx(expected, rel=1e-2)
    assert half_interval(np.ones(4), np.zeros(4, np.int64)) == 0
    for degrees in (1, 3.3, 37, 1e6):
        assert student_t_95(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-9)
    assert student_t_95(1e9) == pytest.approx(NORMAL_95, rel=1e-8)


@pytest.fixture(scope="module")
def flop_values() -> tuple[float, dict[tuple[int, ...], float]]:
    """A match on FLOPS: the exact value and that of every flop."""
    first, second = random_policy(FLOPS, 20), random_policy(FLOPS, 21)
    runouts = Runouts(first, second, 2, 0, None)
    values = {}
    for cards in {tuple(row) for row in runouts.sampler._ordered.tolist()}:
        runouts.sampler.cards = lambda number, cards=cards: cards  # noqa: ARG005
        values[cards] = 500 * sum(runouts.gains(0))
    assert len(values) == 455
    exact = exact_match(first, second).value
    assert np.mean(list(values.values())) == pytest.approx(exact, abs=1e-6)
    found = boards_match(first, second, 30, 9)
    cards = RunoutSampler(FLOPS, 30, boards_module.key(9, "match", "boards"))
    assert found.value == pytest.approx(np.mean([values[cards.cards(number)] for number in range(30)]))
    return exact, values


def test_95_of_100_intervals_hold_the_value(flop_values: tuple) -> None:
    """Chi-square of how many of 300 matches contain the exact value, with 95 % expected."""
    exact, values = flop_values
    covered, matches, count = 0, 300, 10
    many = RunoutSampler(FLOPS, 200, 1)
    found = np.array([values[many.cards(number)] for number in range(200)])  # strata make intervals narrower
    assert half_interval(found, many.stratum) < 0.95 * half_interval(found, np.zeros(200, np.int64))
    for seed in range(matches):
        sampler = RunoutSampler(FLOPS, count, seed)
        found = np.array([values[sampler.cards(number)] for number in range(count)])
        covered += abs(found.mean() - exact) <= half_interval(found, sampler.stratum)
    assert stats.chisquare([covered, matches - covered], [0.95 * matches, 0.05 * matches]).pvalue > 1e-3


# Refusals
# ---------------------------------------------------------------------------------------------------------------


def test_threads_change_nothing_and_progress_reaches_its_end() -> None:
    first, second = random_policy(COUSIN, 22), random_policy(COUSIN, 23)
    seen: list[tuple[int, int]] = []
    one = boards_match(first, second, 6, 8, lines=2)
    two = boards_match(first, second, 6, 8, lines=2, threads=2, on_board=lambda *now: seen.append(now))
    assert (one.seats, one.interval) == (two.seats, two.interval)
    assert seen == [(done, 6) for done in range(1, 7)]


def test_what_cannot_be_played_is_refused() -> None:
    leduc, fhp = (UniformPolicy(PokerGame(rules)) for rules in (LEDUC, SMALL_FHP))
    for boards in (1, 0, -3):
        with pytest.raises(ConfigError, match=f"at least 2 boards for its interval, but {boards} were"):
            boards_match(leduc, leduc, boards, 0)
    with pytest.raises(ConfigError, match="at least 1 line of a round, but 0 were"):
        boards_match(leduc, leduc, 2, 0, lines=0)
    with pytest.raises(ConfigError, match="at least 2 boards"):
        boards_module.dealer_value(leduc, 1, 3)
    dice = UniformPolicy(load_openspiel_game("liars_dice(dice_sides=2)"))
    with pytest.raises(GameError, match=r"Boards are sampled in poker games only, but 'liars_dice.*' is not one"):
        boards_match(dice, dice, 2, 0)
    with pytest.raises(GameError, match=r"'leduc' and .* differ in"):
        boards_match(leduc, fhp, 2, 0)


def test_the_dealers_value_is_that_of_the_profile() -> None:
    policy = random_policy(COUSIN, 5)
    exact = exploitability(policy).value
    mean, interval = boards_module.dealer_value(policy, 100, 3)
    assert abs(exact) > 4 * interval  # so that a change of sign would be seen
    assert abs(mean - exact) < 1.7 * interval
    # the same boards in both seats: with the sign changed it is what the second player gains
    assert boards_match(policy, policy, 100, 3).seats == pytest.approx((mean, -mean))
