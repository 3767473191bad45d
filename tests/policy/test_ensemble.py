"""Ensembles: of one the member, Lin's sum by his own example, and mixtures that are worth the mean of their members."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from board_play import OnlyRows, random_table, solved
from class_games import RowPolicy
from deepcfr.core.errors import GameError
from deepcfr.core.types import Infosets
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PRESETS
from deepcfr.measure.exploitability import exploitability
from deepcfr.measure.match.exact import exact_match
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.mixture import RULES, AveragedPolicy, MixturePolicy, SumPolicy, ensemble
from deepcfr.policy.styles import ThresholdPolicy, styled
from deepcfr.policy.tables import AbstractPolicy


@cache
def leduc() -> PokerGame:
    return load_game("leduc")


@cache
def random_policy(seed: int) -> AbstractPolicy:
    return random_table(leduc(), seed)


def test_the_sum_is_the_one_of_lins_example() -> None:
    """Figure 6: three distributions over fold, check and call. He rounds to two digits."""
    game = PokerGame(PRESETS["hulh"])
    node = int(np.flatnonzero(game.tree.legal[: game.tree.num_decisions].all(1))[0])
    members = [
        RowPolicy(game, [row] * game.tree.num_decisions) for row in ([0.2, 0.4, 0.4], [0.5, 0.5, 0], [0, 0.5, 0.5])
    ]
    cards = torch.zeros(1, 7, dtype=torch.uint8)
    joint = ensemble(members, "sum").probabilities(Infosets(torch.tensor([node]), cards))
    assert joint[0].tolist() == pytest.approx([0.23, 0.47, 0.30], abs=0.005)
    assert joint.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_whole_boards_and_single_infosets_get_the_same_answers(rule: str) -> None:
    both = ensemble([random_policy(seed) for seed in range(3)], rule)
    by_board, by_row = exploitability(both), exploitability(OnlyRows(both))  # type: ignore[arg-type]
    assert by_board.nash_conv == pytest.approx(by_row.nash_conv, rel=1e-9)
    assert by_board.value == pytest.approx(by_row.value, rel=1e-9)


def test_equal_members_are_as_good_as_one_and_one_is_no_ensemble() -> None:
    member = random_policy(4)
    alone = exploitability(member).nash_conv
    for rule in RULES:
        assert ensemble([member], rule) is member
        assert exploitability(ensemble([member, member], rule)).nash_conv == pytest.approx(alone, rel=1e-9)


def test_a_mixture_gains_the_mean_of_its_members_and_a_sum_does_not() -> None:
    """Against anybody: Kuhn's theorem (1953). The sum is another strategy."""
    members, rival = [random_policy(seed) for seed in range(3)], random_policy(7)
    mean = np.mean([exact_match(member, rival).value for member in members])
    for rule in ("mixture", "member"):
        assert exact_match(ensemble(members, rule), rival).value == pytest.approx(mean, rel=1e-9)
    assert abs(exact_match(ensemble(members, "sum"), rival).value - mean) > 1


@pytest.mark.parametrize("rule", RULES)
def test_an_ensemble_knows_what_its_training_started_from(rule: str) -> None:
    start, members = random_policy.__wrapped__(2), [random_policy.__wrapped__(seed) for seed in range(2)]
    assert styled(ensemble(members, rule), "initial").kind == "uniform"
    for member in members:
        member.initial = lambda: start
    both = ensemble(members, rule)
    assert styled(both, "initial") is start
    assert styled(styled(both, "tight"), "initial") is start


def test_one_member_is_drawn_for_each_game() -> None:
    members = [random_policy(seed) for seed in range(4)]
    drawn = ensemble(members, "member")
    assert isinstance(drawn, MixturePolicy)
    assert drawn.draw(5, 17) is members[int(drawn.draw_for(5, torch.tensor([17]))[0])]
    assert isinstance(ensemble(members, "mixture"), AveragedPolicy)  # drawn from at every action instead


def test_full_width_members_are_asked_on_boards_of_their_own() -> None:
    members: list[Policy] = [solved(PRESETS["leduc"], iterations) for iterations in (3, 5)]
    both = ensemble([random_policy(1), *members], "sum")
    assert isinstance(both, SumPolicy)
    assert both.boards is members[0].boards
    by_row = exploitability(OnlyRows(both))  # type: ignore[arg-type]
    assert exploitability(both).nash_conv == pytest.approx(by_row.nash_conv, rel=1e-5)


def test_as_few_deals_are_played_together_as_the_member_with_fewest_takes() -> None:
    members = [random_policy(0), random_policy(1)]
    assert ensemble(members, "sum").most_deals is None
    for policy, most in zip(members, (64, 32), strict=True):
        policy.most_deals = most
    for rule in ("sum", "mixture", "member"):
        assert ensemble([*members, random_policy(2)], rule).most_deals == 32
    assert ThresholdPolicy(members[0], 0.1).most_deals == 64
    for policy in members:
        del policy.most_deals


def test_what_is_no_ensemble_is_refused() -> None:
    member = random_policy(0)
    with pytest.raises(GameError, match=r"'vote' is not an ensemble rule. Choose one of sum, mixture, member\."):
        ensemble([member], "vote")
    with pytest.raises(GameError, match="at least one policy"):
        ensemble([], "sum")
    for other, sentence in (
        (UniformPolicy(load_game("kuhn")), "one sees leduc in canonical suits and another kuhn in canonical suits"),
        (UniformPolicy(PokerGame(PRESETS["leduc"], "raw")), "leduc in canonical suits and another leduc in raw suits"),
        (UniformPolicy(load_openspiel_game("kuhn_poker")), "kuhn_poker"),
    ):
        with pytest.raises(GameError, match=sentence):
            ensemble([member, other], "mixture")
