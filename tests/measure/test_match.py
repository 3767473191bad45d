"""Matches: exact ones against OpenSpiel and exploitability's profile values, sampled ones against exact ones."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyspiel
import pytest
import torch

from deepcfr.core.errors import ConfigError, GameError
from deepcfr.core.types import TERMINAL, Encoding, Infosets
from deepcfr.game.base import Deals, check_game
from deepcfr.game.openspiel import OpenSpielGame, load_openspiel_game
from deepcfr.game.poker import PokerGame, Suits
from deepcfr.game.rules import PRESETS, PokerRules
from deepcfr.interop.openspiel import openspiel_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match import Match, exact_match, sampled_match
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.tables import RangePolicy, TablePolicy, TreePolicy, canonical_hands
from deepcfr.solve.vector_cfr import VectorCFR
from openspiel_poker import openspiel_infosets, openspiel_policy, small_fhp
from openspiel_policies import to_tabular_policy
from tables import tabular

KUHN, LEDUC = PRESETS["kuhn"], PRESETS["leduc"]
SMALL_FHP = small_fhp(3, (3, 4), (0, 2), num_suits=3)
THREE_ROUNDS = replace(
    LEDUC,
    name="three rounds",
    board_cards=(0, 1, 1),
    first_player=(0, 1, 0),
    raise_size=(1, 2, 4),
    max_raises=(1, 1, 1),
    rank_symbols="",
)
BY_NAME = {"ids": lambda value: value.name if isinstance(value, PokerRules) else None}


def random_policy(rules: PokerRules, seed: int, suits: Suits = "canonical") -> TablePolicy:
    """Independent probabilities at every infoset, a fifth of the actions never played."""
    rng = np.random.default_rng(seed)
    game = PokerGame(rules, suits)
    tables = []
    for round_, hands in enumerate(canonical_hands(game)):
        legal = game.tree.legal[: game.tree.num_decisions][game.tree.round[: game.tree.num_decisions] == round_]
        weights = rng.exponential(size=(len(legal), len(hands), 3)) * (rng.random((len(legal), len(hands), 3)) < 0.8)
        weights = (weights + 1e-9) * legal[:, None, :]
        tables.append(weights / weights.sum(axis=2, keepdims=True))
    return TablePolicy(game, tables)


def random_tree_policy(game: OpenSpielGame, seed: int) -> TreePolicy:
    table = np.random.default_rng(seed).random(game.explicit.legal.shape) * game.explicit.legal
    return TreePolicy(game, table / table.sum(1, keepdims=True))


def solved(rules: PokerRules, iterations: int) -> RangePolicy:
    """The average strategy of CFR+, in tables of the solver's boards."""
    solver = VectorCFR(PokerGame(rules), tabular("cfr+", iterations))
    for _ in solver.iterations():
        pass
    return solver.average_policy()


def seats_by_openspiel(first: Policy, second: Policy) -> list[float]:
    """The first policy's gain in each seat, in thousandths, by OpenSpiel's walk over the tree of all histories."""
    assert isinstance(first.game, PokerGame)
    assert isinstance(second.game, PokerGame)
    rules = first.game.rules
    other = openspiel_game(rules)
    pair = [openspiel_policy(policy, openspiel_infosets(policy.game, other)) for policy in (first, second)]
    root = other.new_initial_state()
    values = [
        pyspiel.expected_returns(root, pair, -1, True)[0],
        pyspiel.expected_returns(root, pair[::-1], -1, True)[1],
    ]
    return [1000 * value / rules.unit_chips for value in values]


# Exact matches
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suits", ["canonical", "raw"])
@pytest.mark.parametrize("rules", [KUHN, LEDUC, THREE_ROUNDS, SMALL_FHP], **BY_NAME)
def test_a_policy_draws_with_itself_and_its_seats_are_its_profile_value(rules: PokerRules, suits: Suits) -> None:
    policy = random_policy(rules, 1, suits)
    match, result = exact_match(policy, policy), exploitability(policy)
    assert abs(result.value) > 1
    assert match.seats == pytest.approx((result.value, -result.value), abs=1e-9)
    assert match.value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("suits", [("canonical", "canonical"), ("raw", "canonical"), ("raw", "raw")], ids=str)
@pytest.mark.parametrize("rules", [KUHN, LEDUC, small_fhp(3, (2, 1), (0, 1), num_suits=2)], **BY_NAME)
def test_random_policies_gain_what_openspiel_says(rules: PokerRules, suits: tuple[Suits, Suits]) -> None:
    first, second = random_policy(rules, 2, suits[0]), random_policy(rules, 3, suits[1])
    match, expected = exact_match(first, second), seats_by_openspiel(first, second)
    assert match.seats == pytest.approx(expected, abs=1e-6)
    assert match.value == pytest.approx(sum(expected) / 2, abs=1e-6)
    assert abs(match.value) > 1
    back = exact_match(second, first)
    assert back.value == pytest.approx(-match.value, abs=1e-9)
    assert back.seats == pytest.approx((-match.seats[1], -match.seats[0]), abs=1e-9)


def test_uniform_play_loses_to_a_solution_of_leduc_what_openspiel_says() -> None:
    solution, uniform = solved(LEDUC, 200), UniformPolicy(PokerGame(LEDUC))
    match = exact_match(uniform, solution)
    assert match.seats == pytest.approx(seats_by_openspiel(uniform, solution), abs=1e-3)
    # the solution's own exploitability is all that anyone can gain from it
    assert match.value < -500 < exploitability(solution).exploitability < 20
    assert (match.game, match.unit, match.hands, match.exact, match.interval) == ("leduc", "mA/g", 0, True, 0.0)
    assert match.policies == ("uniform", "average")


@pytest.mark.parametrize("rules", [LEDUC, THREE_ROUNDS, SMALL_FHP], **BY_NAME)
def test_a_solvers_tables_play_the_same_against_raw_and_canonical_suits(rules: PokerRules) -> None:
    """Uniform play is one policy in both encodings, so enumerating all boards must give what merging them gives."""
    early, late = solved(rules, 3), solved(rules, 30)
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


SPIEL_GAMES = ["kuhn_poker", "liars_dice(dice_sides=3)", "goofspiel(num_cards=3,imp_info=True)"]


@pytest.mark.parametrize("name", SPIEL_GAMES)
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
    value = exploitability(first).value
    assert exact_match(first, first).seats == pytest.approx((value, -value))


# Sampled matches
# --------------------------------------------------------------------------------------------------------


def within(sampled: Match, exact: Match, errors: float) -> bool:
    return abs(sampled.value - exact.value) <= errors * sampled.interval / 1.96


@pytest.mark.parametrize("suits", [("canonical", "canonical"), ("raw", "canonical")], ids=str)
@pytest.mark.parametrize("rules", [KUHN, LEDUC, SMALL_FHP], **BY_NAME)
def test_sampled_matches_agree_with_exact_ones(rules: PokerRules, suits: tuple[Suits, Suits]) -> None:
    first, second = random_policy(rules, 8, suits[0]), random_policy(rules, 9, suits[1])
    exact, sampled = exact_match(first, second), sampled_match(first, second, hands=40_000, seed=1)
    assert within(sampled, exact, 4)
    assert 2 * sampled.interval < abs(exact.value)  # so that the wrong sign would show
    assert sampled.value == pytest.approx(sum(sampled.seats) / 2)
    # one seat's error has no interval of its own; the games of a seat vary more than deals do, but not tenfold
    assert sampled.seats == pytest.approx(exact.seats, abs=10 * sampled.interval)
    assert (sampled.hands, sampled.exact, sampled.unit) == (40_000, False, exact.unit)


@pytest.mark.parametrize("name", SPIEL_GAMES)
def test_sampled_matches_of_openspiels_games_agree_with_exact_ones(name: str) -> None:
    game = load_openspiel_game(name)
    first, second = random_tree_policy(game, 10), random_tree_policy(game, 11)
    exact, sampled = exact_match(first, second), sampled_match(first, second, hands=40_000, seed=2)
    assert within(sampled, exact, 4)
    assert sampled.seats == pytest.approx(exact.seats, abs=5 * sampled.interval)


def test_a_solvers_tables_play_sampled_matches() -> None:
    solution, uniform = solved(LEDUC, 50), UniformPolicy(PokerGame(LEDUC, "raw"))
    exact, sampled = exact_match(solution, uniform), sampled_match(solution, uniform, hands=10_000, seed=3)
    assert within(sampled, exact, 4)
    assert exact.value > 500


def test_a_policy_draws_every_deal_with_itself() -> None:
    """Both games of a deal share cards and the uniforms of the actions, so they mirror each other."""
    policy = random_policy(LEDUC, 12)
    match = sampled_match(policy, policy, hands=2000, seed=4)
    assert (match.value, match.interval) == (0, 0)
    assert match.seats[0] == -match.seats[1] != 0


def test_exchanged_policies_have_the_opposite_result_in_the_same_deals() -> None:
    first, second = random_policy(LEDUC, 13), random_policy(LEDUC, 14, "raw")
    there, back = (sampled_match(*pair, hands=500, seed=5) for pair in ((first, second), (second, first)))
    assert there.seats == (-back.seats[1], -back.seats[0])
    assert there.interval == pytest.approx(back.interval)


def test_neither_chunks_nor_threads_change_a_match() -> None:
    first, second = random_policy(LEDUC, 15), random_policy(LEDUC, 16)
    seen: list[tuple[int, int]] = []
    whole = sampled_match(first, second, 1000, 6)
    parts = sampled_match(
        first, second, 1000, 6, chunk=300, threads=2, on_hands=lambda done, total: seen.append((done, total))
    )
    assert {**asdict(whole), "seconds": 0} == {**asdict(parts), "seconds": 0}
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

HEADS, TAILS, SECRET, GUESS = 0, 1, 0, 1


class Pennies:
    """Player 0 hides heads or tails, player 1 guesses and loses 1 if right; player 0 always gains 2 on every other deal."""

    name, unit, milli_unit, device = "pennies", "points", "mpoints/g", "cpu"

    def __init__(self) -> None:
        self.child = torch.tensor([[1, 2], [3, 4], [4, 3], [-1, -1], [-1, -1]])
        self.actor = torch.tensor([0, 1, 1, TERMINAL, TERMINAL])
        self.infoset = torch.tensor([SECRET, GUESS, GUESS, 0, 0])
        self.round, self.deals_before = torch.zeros(5, dtype=torch.int64), torch.zeros(5, dtype=torch.int64)
        self.legal = self.child >= 0
        self.encoding = Encoding(torch.eye(2), torch.ones(2, 2, dtype=torch.bool), (), 0, 0)

    def deal(self, count: int, stream: int, first: int = 0) -> Deals:  # noqa: ARG002
        traversal = torch.arange(first, first + count)
        return Deals(traversal, torch.zeros(count, 2, 1, 0, dtype=torch.uint8), traversal % 2)

    def start(self, deals: Deals) -> torch.Tensor:
        return torch.zeros_like(deals.traversal)

    def step(self, node: torch.Tensor, action: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:  # noqa: ARG002
        return self.child[node, action]

    def payoff(self, node: torch.Tensor, row: torch.Tensor, deals: Deals) -> torch.Tensor:
        return torch.where(node == 3, 1.0, -1.0) + 2.0 * deals.hidden[row]


class Habit(Policy):
    """Heads with the same probability at each infoset, whatever came before."""

    kind = "habit"

    def __init__(self, game: Any, *heads: float) -> None:
        self.game = game
        self.table = torch.tensor([[p, 1 - p] for p in heads], dtype=torch.float64)

    def probabilities(self, infosets: Infosets) -> torch.Tensor:
        return self.table[infosets.node.long()]


def test_any_game_can_be_sampled_and_only_known_ones_evaluated() -> None:
    game = Pennies()
    check_game(game)
    first, second = Habit(game, 1.0, 0.0), Habit(game, 0.5, 1.0)  # (as player 0, as player 1)
    match = sampled_match(first, second, hands=20_000, seed=8)
    # as player 0 the first hides heads, which the second guesses: 1 + 1 for the luck of the seat. As player 1 it
    # guesses tails against a fair coin: 0 - 1
    assert match.seats[0] == 2000
    assert match.seats[1] == pytest.approx(-1000, abs=4 * 1000 / np.sqrt(20_000))
    assert match.policies == ("habit", "habit")
    # only the second game of a pair varies, by a coin of 1 and -1
    assert match.interval == pytest.approx(1.96 * 1000 / 2 / np.sqrt(20_000), rel=0.02)
    with pytest.raises(GameError, match="needs a poker game or an OpenSpiel game, but 'pennies' is neither"):
        exact_match(first, second)


def uniform(game: Any) -> UniformPolicy:
    return UniformPolicy(game)


@pytest.mark.parametrize("play", [exact_match, lambda a, b: sampled_match(a, b, 10, 0)], ids=["exact", "sampled"])
def test_policies_of_different_games_are_refused(play: Any) -> None:
    kuhn, leduc = uniform(PokerGame(KUHN)), uniform(PokerGame(LEDUC))
    with pytest.raises(GameError, match="'kuhn' and 'leduc' differ in num_suits, board_cards"):
        play(kuhn, leduc)
    higher = uniform(PokerGame(replace(LEDUC, raise_size=(2, 6))))
    with pytest.raises(GameError, match=r"'leduc' and 'leduc' differ in raise_size\.$"):
        play(leduc, higher)
    spiel = uniform(load_openspiel_game("kuhn_poker"))
    with pytest.raises(GameError, match=r"'kuhn' \(PokerGame\) and 'kuhn_poker' \(OpenSpielGame\) are not the same"):
        play(kuhn, spiel)
    dice = [uniform(load_openspiel_game(f"liars_dice(dice_sides={sides})")) for sides in (2, 3)]
    with pytest.raises(GameError, match=r"'liars_dice\(dice_sides=2\)' and .* are two different OpenSpiel games"):
        play(*dice)
    with pytest.raises(GameError, match=r"'pennies'.* are not the same"):
        play(uniform(Pennies()), uniform(Pennies()))


def test_a_game_may_go_by_two_names() -> None:
    renamed = PokerGame(replace(LEDUC, name="my game", rank_symbols="JQK"))
    first, second = random_policy(LEDUC, 19), UniformPolicy(renamed)
    assert exact_match(first, second).seats == exact_match(first, UniformPolicy(PokerGame(LEDUC))).seats


def test_games_out_of_reach_are_refused_exactly_and_sampled() -> None:
    policy = UniformPolicy(PokerGame(PRESETS["hulh"]))
    with pytest.raises(GameError, match=r"hulh has .* boards"):
        exact_match(policy, policy)
    assert sampled_match(policy, policy, hands=50, seed=0).value == 0


@pytest.mark.parametrize("hands", [1, 0, -3])
def test_an_interval_takes_two_hands(hands: int) -> None:
    policy = UniformPolicy(PokerGame(KUHN))
    with pytest.raises(ConfigError, match=f"at least 2 hands for its interval, but {hands} were"):
        sampled_match(policy, policy, hands, seed=0)
