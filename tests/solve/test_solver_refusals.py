"""What a solver cannot do is refused with one sentence, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from deepcfr.buckets.buckets import lossless
from deepcfr.config import NFSPConfig, RunConfig, SamplingConfig, config_problems, unread_settings
from deepcfr.core.errors import ConfigError, GameError, NoPolicy
from deepcfr.defaults import default_config
from deepcfr.game.bet_size_game import ImplicitPoker
from deepcfr.game.bet_sizes import BET_SIZE_GAMES
from deepcfr.game.openspiel import load_openspiel_game
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import build_game, load_game, load_rules, load_source
from deepcfr.run.build import build_solver, make_game
from deepcfr.solve.deep_cfr import DeepCFR
from deepcfr.solve.mccfr import MCCFR
from deepcfr.solve.policy_gradient import PolicyGradient
from deepcfr.solve.sequence_form import TreeCFR
from deepcfr.solve.vector_cfr import VectorCFR
from tables import changed, small_config, tabular

DREAM = default_config("kuhn", "dream")
BOOTSTRAP, TABLE = {"target": "bootstrap"}, {"first_round": "table"}


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            changed(DREAM, sampling=SamplingConfig(kind="outcome", estimate="values"), advantage=BOOTSTRAP),
            "needs 'sampling.estimate' to be payoffs or baseline",
        ),
        (
            changed(DREAM, advantage=BOOTSTRAP, cfr=TABLE),
            "needs 'cfr.first_round' to be network, or 'sampling.kind' to be public-chance",
        ),
        (
            changed(DREAM, advantage={"target": "predict"}, cfr=TABLE, sampling=SamplingConfig(kind="public-chance")),
            "needs 'cfr.first_round' to be network: a table predicts nothing",
        ),
        (
            changed(DREAM, advantage={"target": "sum"}, cfr={"weighting": "discounted"}),
            "'advantage.target' is sum, which needs 'cfr.weighting' to be uniform, but it is discounted",
        ),
        (changed(default_config("leduc"), advantage=BOOTSTRAP), "set 'sampling.panel' to false"),
        (
            tabular("egt", game="leduc"),
            "is egt, which is for games of OpenSpiel and classes, such as openspiel:leduc_poker, but",
        ),
        (
            tabular("xfp", game="leduc"),
            "is xfp, which is for games of OpenSpiel and classes, such as openspiel:leduc_poker, but",
        ),
        (tabular("mccfr", precision="int16"), "int16"),
        (tabular("cfr+", abstraction="buckets"), "cfr+ is full-width"),
        (tabular("mccfr", exploration_start=float("nan")), "nan"),
    ],
)
def test_settings_that_contradict_are_refused_with_a_sentence(config: RunConfig, sentence: str) -> None:
    problems = list(config_problems(config))
    assert any(sentence in problem for problem in problems), problems


def test_settings_of_other_solvers_are_said_to_be_ignored() -> None:
    plain = replace(DREAM, sampling=SamplingConfig(kind="outcome"), nfsp=NFSPConfig())
    assert any("values.steps" in note for note in unread_settings(plain))
    mmd = changed(default_config("kuhn", "mmd"), nfsp={"episodes": 5})
    assert any("nfsp.episodes: ignored, because 'solver' is mmd" in note for note in unread_settings(mmd))


KUHN, LEDUC, SPIEL = load_game("kuhn"), load_game("leduc"), load_openspiel_game("kuhn_poker")
LADDER = ImplicitPoker(BET_SIZE_GAMES["hunl-ladder"])
BOARD_FIRST = PokerGame(replace(load_rules("leduc"), name="board first", board_cards=(1, 0)))
OF_KUHN = lossless(KUHN.rules)
ON_BOARDS = small_config(game="leduc", sampling=SamplingConfig(kind="public-chance", boards=3, samples=60))


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: default_config("hulh", "rcfr"), ConfigError, "of which hulh has none or too many"),
        (lambda: default_config("openspiel:tic_tac_toe", "rcfr"), ConfigError, "has none or too many"),
        (
            lambda: default_config("leduc", "bogus"),  # type: ignore[arg-type]
            ConfigError,
            r"must be one of deep-cfr, nfsp, ppo, mmd, dream.*but is bogus",
        ),
        (
            lambda: DeepCFR(build_game(load_source("openspiel:kuhn_poker")), small_config(advantage={"units": "pots"})),
            GameError,
            r"targets in units of the pot need a poker game, but .* is not one",
        ),
        (
            lambda: DeepCFR(BOARD_FIRST, changed(ON_BOARDS, cfr=TABLE)),
            GameError,
            "needs a round without public cards, but board first deals 1 before it",
        ),
        (lambda: PolicyGradient(KUHN, small_config("mmd")).policy("sd-cfr"), NoPolicy, "is not a run of Deep CFR"),
        (lambda: VectorCFR(PokerGame(LEDUC.rules, "raw"), tabular()), GameError, "canonical suits"),
        (lambda: TreeCFR(SPIEL, tabular("mccfr")), ConfigError, "'mccfr' is not a full-width algorithm"),
        (lambda: MCCFR(LEDUC, tabular("mccfr"), OF_KUHN), GameError, r"[Kk]uhn"),
        (lambda: MCCFR(SPIEL, tabular("mccfr"), OF_KUHN), GameError, "kuhn_poker"),
        (
            lambda: build_solver(LADDER, tabular("cfr+")),
            ConfigError,
            r"^hunl-ladder is solved with mccfr, and 'cfr\+' was asked for\.$",
        ),
        (
            lambda: build_solver(LADDER, tabular("mccfr", sampler="outcome", abstraction="texture")),
            ConfigError,
            r"^hunl-ladder is solved with external sampling only, but the sampler is 'outcome'\.$",
        ),
        (
            lambda: build_solver(LADDER, tabular("mccfr", abstraction="runs/k")),
            ConfigError,
            r"^The abstraction 'runs/k' of hunl-ladder is in a folder, but was not loaded from it\.$",
        ),
        (
            lambda: build_solver(LADDER, tabular("mccfr")),
            ConfigError,
            "^Round 4 of hunl-ladder has 123,156,254 distinct hands, and a lossless abstraction numbers at most "
            r"20,000,000: use --abstraction texture or a folder\.$",
        ),
        (
            lambda: make_game(BET_SIZE_GAMES["hunl-ladder"], RunConfig(game="hunl-ladder")),
            GameError,
            "has more than 200,000 nodes: networks, search and exact evaluation need fewer",
        ),
    ],
)
def test_what_a_solver_does_not_offer_is_one_sentence(
    make: Callable[[], object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make()


def test_what_is_like_it_and_possible_is_not_refused() -> None:
    DeepCFR(BOARD_FIRST, ON_BOARDS)
    assert not list(config_problems(tabular("xfp", game="openspiel:kuhn_poker")))
    config = default_config("leduc", "rcfr")
    for other in ({"cfr": {"weighting": "linear"}}, {"cfr": TABLE}, {"advantage": {"units": "log"}}):
        assert changed(config, **other).method == "Deep CFR"
