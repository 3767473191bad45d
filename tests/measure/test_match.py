"""Matches: exact ones against OpenSpiel and exploitability's profile values, sampled ones against exact ones."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyspiel
import pytest
import torch

from board_play import KUHN, LEDUC, THREE_ROUNDS, random_policy, solved
from class_games import Bluff, RowPolicy
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import Infosets
from deepcfr.game.base import check_game
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.interop.openspiel import openspiel_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match import Match, exact_match, sampled_match
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.tables import RangePolicy
from experiments.theorem1.tables import TablePolicy, canonical_hands
from openspiel_poker import openspiel_infosets, openspiel_policy, small_fhp
from openspiel_policies import random_tree_policy, to_tabular_policy

SMALL_FHP = small_fhp(3, (2, 2), (0, 2), num_suits=3)
BY_NAME: dict[str, Any] = {"ids": lambda value: getattr(value, "name", None)}
SEATED: tuple[tuple[Suits, Suits], ...] = (("canonical", "canonical"), ("raw", "canonical"), ("raw", "raw"))


def seats_by_openspiel(first: Policy, second: Policy) -> list[float]:
    """The first policy's gain in each seat, in thousandths, by OpenSpiel's walk over the tree of all histories."""
    assert isinstance(first.game, PokerGame)
    assert isinstance(second.game, PokerGame)
    rules = first.game.rules
    other = openspiel_game(rules)
    pair = [openspiel_policy(policy, openspiel_infosets(policy.game, other)) for policy in (first, second)]
    root = other.new_initial_state()
    values = (pyspiel.expected_returns(root, players, -1, True) for players in (pair, pair[::-1]))
    return [1000 * returns[seat] / rules.unit_chips for seat, returns in enumerate(values)]


# Exact matches
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "suits"),
    [(KUHN, SEATED[0]), *((LEDUC, suits) for suits in SEATED), (small_fhp(2, (1, 1), (0, 1)), SEATED[1])],
    **BY_NAME,
)
def test_random_policies_gain_what_openspiel_says(rules: PokerRules, suits: tuple[Suits, Suits]) -> None:
    first, second = random_policy(rules, 2, suits[0]), random_policy(rules, 3, suits[1])
    match, expected = exact_match(first, second), seats_by_openspiel(first, second)
    assert match.seats == pytest.approx(expected, abs=1e-6)
    assert match.value == pytest.approx(sum(expected) / 2, abs=1e-6)
    assert max(map(abs, match.seats)) > 1
    assert (match.hands, match.exact, match.interval, match.policies) == (0, True, 0.0, ("table", "table"))
    back = exact_match(second, first)
    assert back.seats == pytest.approx((-match.seats[1], -match.seats[0]), abs=1e-9)


@pytest.mark.parametrize("suits", ["canonical", "raw"])
@pytest.mark.parametrize("rules", [THREE_ROUNDS, SMALL_FHP], **BY_NAME)
def test_a_policy_draws_with_itself_and_its_seats_are_its_profile_value(rules: PokerRules, suits: Suits) -> None:
    policy = random_policy(rules, 1, suits)
    match, result = exact_match(policy, policy), exploitability(policy)
    assert abs(result.value) > 1
    assert match.seats == pytest.approx((result.value, -result.value), abs=1e-9)
    assert match.value == 0


@pytest.mark.parametrize("rules", [THREE_ROUNDS, SMALL_FHP], **BY_NAME)
def test_a_solvers_tables_play_the_same_against_raw_and_canonical_suits(rules: PokerRules) -> None:
    """Uniform play is one policy in both encodings, so enumerating all boards must give what merging them gives."""
    early, late = solved(rules, 2), solved(rules, 10)
    merged, all_boards = (exact_match(late, UniformPolicy(PokerGame(rules, suits))) for suits in ("canonical", "raw"))
    assert merged.value > 1
    assert all_boards.seats == pytest.approx(merged.seats, abs=1e-4)  # the tables are in single precision
    between = exact_match(early, late)  # each with boards of its own
    assert between.value < -1
    assert exact_match(as_table(early), as_table(late)).seats == pytest.approx(between.seats, abs=1e-4)
    assert exact_match(early, as_table(late)).seats == pytest.approx(between.seats, abs=1e-4)


def as_table(policy: RangePolicy) -> TablePolicy:
    """A solver's policy as a table, by asking for all of its infosets one by one."""
    game = policy.game
    tables = []
    for round_, hands in enumerate(canonical_hands(game)):
        nodes = (game.round[: game.tree.num_decisions] == round_).nonzero()[:, 0]
        cards = torch.from_numpy(hands).repeat(len(nodes), 1)
        rows = policy.probabilities(Infosets(nodes.repeat_interleave(len(hands)), cards))
        tables.append(rows.double().reshape(len(nodes), len(hands), -1).numpy())
    return TablePolicy(game, tables)


def test_threads_change_nothing_and_progress_reaches_its_end() -> None:
    first, second = random_policy(SMALL_FHP, 4), random_policy(SMALL_FHP, 5)
    seen: list[tuple[int, int]] = []
    one = exact_match(first, second, threads=1)
    two = exact_match(first, second, threads=2, on_board=lambda done, total: seen.append((done, total)))
    assert one.seats == two.seats
    assert seen == [(done, len(seen)) for done in range(1, len(seen) + 1)]
    assert len(seen) > 1


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel(num_cards=3,imp_info=True)"])
def test_policies_of_openspiels_games_gain_what_openspiel_says(name: str) -> None:
    game, again = load_openspiel_game(name), load_openspiel_game(name)
    first, second = random_tree_policy(game, 6), random_tree_policy(again, 7)
    match = exact_match(first, second)
    pair = [pyspiel.TabularPolicy(to_tabular_policy(policy).to_dict()) for policy in (first, second)]
    root = game.spiel_game.new_initial_state()
    as_zero = pyspiel.expected_returns(root, pair, -1, True)[0]
    as_one = pyspiel.expected_returns(root, pair[::-1], -1, True)[1]
    assert match.seats == pytest.approx((1000 * as_zero, 1000 * as_one), abs=1e-6)
    assert abs(match.value) > 1
    assert match.unit == "mpoints/g"
    sampled = sampled_match(first, second, hands=20_000, seed=2)
    assert within(sampled, match, 4)
    assert sampled.seats == pytest.approx(match.seats, abs=5 * sampled.interval)


# Sampled matches
# --------------------------------------------------------------------------------------------------------


def within(sampled: Match, exact: Match, errors: float) -> bool:
    return abs(sampled.value - exact.value) <= errors * sampled.interval / 1.96


@pytest.mark.parametrize(
    ("rules", "make"),
    [
        (KUHN, lambda: (random_policy(KUHN, 8), random_policy(KUHN, 9, "raw"))),
        (SMALL_FHP, lambda: (random_policy(SMALL_FHP, 8, "raw"), random_policy(SMALL_FHP, 9))),
        (LEDUC, lambda: (solved(LEDUC, 20), UniformPolicy(PokerGame(LEDUC, "raw")))),
    ],
    **BY_NAME,
)
def test_sampled_matches_agree_with_exact_ones(rules: PokerRules, make: Any) -> None:
    first, second = make()
    exact, sampled = exact_match(first, second), sampled_match(first, second, hands=20_000, seed=1)
    assert within(sampled, exact, 4)
    assert 2 * sampled.interval < abs(exact.value)  # so that the wrong sign would show
    assert sampled.value == pytest.approx(sum(sampled.seats) / 2)
    # one seat's error has no interval of its own; the games of a seat vary more than deals do, but not tenfold
    assert sampled.seats == pytest.approx(exact.seats, abs=10 * sampled.interval)
    assert (sampled.hands, sampled.exact, sampled.unit) == (20_000, False, rules.milli_unit)


def test_both_games_of_a_deal_share_cards_and_uniforms() -> None:
    """So a policy draws every deal with itself, and exchanged policies have the opposite result."""
    first, second = random_policy(LEDUC, 13), random_policy(LEDUC, 14, "raw")
    same = sampled_match(first, first, hands=2000, seed=4)
    assert (same.value, same.interval) == (0, 0)
    assert same.seats[0] == -same.seats[1] != 0
    there, back = (sampled_match(*pair, hands=500, seed=5) for pair in ((first, second), (second, first)))
    assert there.seats == (-back.seats[1], -back.seats[0])
    assert there.interval == pytest.approx(back.interval)


def test_neither_chunks_nor_threads_change_a_match() -> None:
    first, second = random_policy(LEDUC, 15), random_policy(LEDUC, 16)
    seen: list[tuple[int, int]] = []
    whole = sampled_match(first, second, 1000, 6)
    parts = sampled_match(first, second, 1000, 6, chunk=300, threads=2, on_hands=lambda *now: seen.append(now))
    assert replace(whole, seconds=0) == replace(parts, seconds=0)
    assert seen == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)]
    assert sampled_match(first, second, 1000, 7).value != whole.value


def test_the_interval_covers_the_exact_value_about_as_often_as_it_says() -> None:
    first, second = random_policy(KUHN, 17), random_policy(KUHN, 18)
    exact = exact_match(first, second).value
    matches = [sampled_match(first, second, hands=200, seed=seed) for seed in range(300)]
    covered = np.mean([abs(match.value - exact) <= match.interval for match in matches])
    assert 0.91 <= covered <= 0.99  # three standard errors are 3.8 %
    # and the mean interval is what the spread of the values says
    spread = np.std([match.value for match in matches], ddof=1)
    assert np.mean([match.interval for match in matches]) == pytest.approx(1.96 * spread, rel=0.13)


# Other games, and refusals
# ----------------------------------------------------------------------------------------------


def test_any_game_can_be_sampled_and_only_known_ones_evaluated() -> None:
    """Both always bet; the first never calls, the second one time in two."""
    game = Bluff()
    check_game(game)
    first, second = (RowPolicy(game, [[0, 0, 1], [0, 0, 1], [1 - call, call, 0]]) for call in (0, 0.5))
    match = sampled_match(first, second, hands=20_000, seed=8)
    assert match.seats[1] == -1000  # the first folds to every bet
    # as player 0 it gains 1 if the second folds, and 3 or -3 otherwise: 0.5 in the mean, with a variance of 4.75
    error = 1000 * np.sqrt(4.75 / 20_000)
    assert match.seats[0] == pytest.approx(500, abs=4 * error)
    assert match.interval == pytest.approx(1.96 * error / 2, rel=0.02)
    assert match.policies == ("rows", "rows")
    with pytest.raises(GameError, match="needs a poker game or an OpenSpiel game, but 'bluff' is neither"):
        exact_match(first, second)


HIGHER = replace(LEDUC, raise_size=(2, 6))
DICE = "liars_dice(dice_sides={})"


@pytest.mark.parametrize("play", [exact_match, lambda a, b: sampled_match(a, b, 10, 0)], ids=["exact", "sampled"])
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: (PokerGame(KUHN), PokerGame(LEDUC)), "'kuhn' and 'leduc' differ in num_suits, board_cards"),
        (lambda: (PokerGame(LEDUC), PokerGame(HIGHER)), r"'leduc' and 'leduc' differ in raise_size\.$"),
        (
            lambda: (PokerGame(KUHN), load_openspiel_game("kuhn_poker")),
            r"'kuhn' \(PokerGame\) and 'kuhn_poker' \(OpenSpielGame\) are not the same",
        ),
        (
            lambda: [load_openspiel_game(DICE.format(sides)) for sides in (2, 3)],
            r"'liars_dice\(dice_sides=2\)' and .* are two different OpenSpiel games",
        ),
        (lambda: (Bluff(), Bluff()), r"'bluff'.* are not the same"),
    ],
)
def test_policies_of_different_games_are_refused(make: Any, sentence: str, play: Any) -> None:
    with pytest.raises(GameError, match=sentence):
        play(*map(UniformPolicy, make()))


def test_a_game_may_go_by_two_names() -> None:
    renamed = PokerGame(replace(LEDUC, name="my game", rank_symbols="JQK"))
    first = random_policy(LEDUC, 19)
    assert exact_match(first, UniformPolicy(renamed)).seats == exact_match(first, UniformPolicy(first.game)).seats


def test_what_cannot_be_played_is_refused() -> None:
    policy = UniformPolicy(PokerGame(PRESETS["hulh"]))
    with pytest.raises(GameError, match=r"hulh has .* boards"):
        exact_match(policy, policy)
    assert sampled_match(policy, policy, hands=50, seed=0).value == 0
    for hands in (1, 0, -3):
        with pytest.raises(ConfigError, match=f"at least 2 hands for its interval, but {hands} were"):
            sampled_match(policy, policy, hands, seed=0)
