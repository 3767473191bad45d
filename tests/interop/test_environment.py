"""Games as environments of PettingZoo: its own tests pass, and hands are those of the game."""

import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from pettingzoo.test import api_test, seed_test

from deepcfr import Agent, environment, load
from deepcfr.core.errors import ConfigError, GameError
from deepcfr.game.cards import card_text
from deepcfr.game.presets import load_game
from deepcfr.game.rules import PRESETS
from deepcfr.interop.environment import AGENTS
from deepcfr.policy.base import UniformPolicy

NAMES = ["leduc", "hunl-pot", "hunl-200", "openspiel:kuhn_poker"]


@pytest.mark.parametrize("name", NAMES)
def test_pettingzoos_own_tests_pass(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():  # it would rather have observations without a mask, and pictures
        warnings.simplefilter("ignore")
        api_test(environment(name), num_cycles=100)
    assert "Passed API test" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["fhp"])
def test_a_seed_decides_the_hands(name: str) -> None:
    seed_test(lambda: environment(name), num_cycles=30)


def test_hands_are_those_of_the_game() -> None:
    env, game = environment("leduc", seed=3), load_game("leduc", "raw")
    deals, random = game.deal(60, env._stream), np.random.default_rng(0)
    for hand in range(60):
        env.reset()
        node, row = game.start(deals)[[hand]], torch.tensor([hand])
        while not env.terminations[AGENTS[0]]:
            agent = env.agent_selection
            assert agent == AGENTS[int(game.actor[node])]
            shown = env.observe(agent)
            assert shown["action_mask"].tolist() == game.legal[node][0].int().tolist()
            assert not env.observe(AGENTS[1 - AGENTS.index(agent)])["action_mask"].any()
            features = game.encoding.node_features[game.infoset[node]][0].numpy()
            np.testing.assert_array_equal(shown["observation"][: len(features)], features)
            cards = shown["observation"][len(features) :].reshape(-1, 6)
            view = deals.visible_cards[hand, int(game.actor[node]), int(game.round[node])].tolist()
            assert [int(slot.argmax()) if slot.any() else 255 for slot in cards] == view
            action = int(random.choice(np.flatnonzero(shown["action_mask"])))
            env.step(action)
            node = game.step(node, torch.tensor([action]), row, deals)
        payoff = float(game.payoff(node, row, deals))
        assert env.rewards == env._cumulative_rewards == {"player_0": payoff, "player_1": -payoff}


def test_an_agent_acts_in_the_environment_of_its_game() -> None:
    agent = load("leduc")
    env = environment(agent)
    env.reset(seed=5)
    row = env.strategy(agent.policy)
    name = ("Jc", "Jd", "Qc", "Qd", "Kc", "Kd")[env._deals.visible_cards[0, 0, 0, 0]]
    assert row[row > 0].tolist() == pytest.approx([share for share in agent.act(name).values() if share > 0])
    with pytest.raises(GameError, match="The policy plays kuhn, and the environment leduc"):
        env.strategy(load("kuhn").policy)
    while not env.terminations[env.agent_selection]:
        env.step(1)
    assert not env.observe(env.agent_selection)["action_mask"].any()
    for _ in range(2):
        with pytest.raises(GameError, match="The hand is over"):
            env.strategy(agent.policy)
        env.step(None)  # both players leave
    with pytest.raises(GameError, match="The hand is over: reset the environment"):
        env.step(None)


def test_what_is_no_game_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, sentence in (("no-such-game", "neither a preset"), ("hunl-ladder", "hunl-ladder")):
        with pytest.raises(GameError, match=sentence):
            environment(name)
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "deepcfr.interop.environment")
    with pytest.raises(ConfigError, match=r"deepcfr\[pettingzoo\]"):
        environment("kuhn")


def test_the_environment_of_an_agent_has_its_suits() -> None:
    agent = Agent(UniformPolicy(load_game("fhp")))
    assert environment(agent).game.suits == "canonical"  # type: ignore[attr-defined]
    raw = environment("fhp")
    raw.reset()
    with pytest.raises(GameError, match="sees fhp in other suits: make the environment from its agent"):
        raw.strategy(agent.policy)


def test_an_agent_with_bet_sizes_answers_in_its_environment() -> None:
    agent = load("hunl-200")
    env = environment(agent)
    env.reset()
    shares = env.strategy(agent.policy)
    cards = env.observe("player_0")["observation"][-7 * 52 :].reshape(7, 52)[:2].argmax(1)
    asked = agent.act(" ".join(card_text(PRESETS["hulh"], int(card)) for card in cards)).values()
    assert shares[shares > 0] == pytest.approx([share for share in asked if share > 0])


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("step", [0]),
        ("step", [None]),
        ("last", []),
        ("observe", ["player_0"]),
        ("agent_iter", []),
        ("strategy", [None]),
    ],
)
def test_nothing_is_played_before_a_reset(call: str, arguments: list[Any]) -> None:
    with pytest.raises(GameError, match=r"^No hand has been dealt: reset the environment first"):
        getattr(environment("kuhn"), call)(*arguments)


@pytest.mark.parametrize("action", [0, 3, -1, 1.0, "1", None, [1], np.ones(2), np.int64(7)])
def test_what_is_no_legal_action_is_refused(action: Any) -> None:
    env = environment("kuhn")
    env.reset()
    with pytest.raises(GameError, match="is not legal for player_0 here"):
        env.step(action)
    env.step(np.int64(1))
    assert env.agent_selection == "player_1"


@pytest.mark.parametrize("name", [0, None, "player_2", ["player_0"], np.zeros(2)])
def test_a_player_has_one_of_two_names(name: Any) -> None:
    env = environment("kuhn")
    env.reset()
    for call in (env.observe, env.action_space, env.observation_space):
        with pytest.raises(GameError, match=r"^A player is player_0 or player_1, but"):
            call(name)
    with pytest.raises(GameError, match="A seed is a whole number"):
        env.reset(seed=name if not isinstance(name, int) and name is not None else 0.5)  # type: ignore[arg-type]
