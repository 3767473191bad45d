"""Games as environments of PettingZoo: its own tests pass, and hands are those of the game."""

import sys
import warnings
from collections.abc import Callable
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
from deepcfr.interop.environment import AGENTS, GameEnv
from deepcfr.policy.base import UniformPolicy

NAMES = ["kuhn", "leduc", "fhp", "hulh", "hunl-pot", "hunl-200", "openspiel:leduc_poker", "openspiel:tic_tac_toe"]


@pytest.mark.parametrize("name", NAMES)
def test_pettingzoos_own_tests_pass(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():  # it would rather have observations without a mask, and pictures
        warnings.simplefilter("ignore")
        api_test(environment(name), num_cycles=300)
    assert "Passed API test" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["leduc", "fhp"])
def test_a_seed_decides_the_hands(name: str) -> None:
    seed_test(lambda: environment(name), num_cycles=30)


def play(env: GameEnv, random: np.random.Generator) -> list[tuple[str, int, int]]:
    """Play a hand at random; returns the player, the number of legal actions and the action of every decision."""
    steps = []
    for agent in env.agent_iter():
        observation, _, over, _, _ = env.last()
        assert observation is not None
        legal = np.flatnonzero(observation["action_mask"])
        if over:
            assert len(legal) == 0
            env.step(None)
            continue
        action = int(random.choice(legal))
        steps.append((agent, len(legal), action))
        env.step(action)
    return steps


def test_hands_are_those_of_the_game() -> None:
    env, game = environment("leduc", seed=3), load_game("leduc", "raw")
    deals = game.deal(200, env._stream)
    random = np.random.default_rng(0)
    for hand in range(200):
        env.reset()
        node, row = game.start(deals)[[hand]], torch.tensor([hand])
        while not env.terminations[AGENTS[0]]:
            agent = env.agent_selection
            assert agent == AGENTS[int(game.actor[node])]
            shown = env.observe(agent)
            assert shown["action_mask"].tolist() == game.legal[node][0].int().tolist()
            other = env.observe(AGENTS[1 - AGENTS.index(agent)])
            assert not other["action_mask"].any()
            features = game.encoding.node_features[game.infoset[node]][0].numpy()
            np.testing.assert_array_equal(shown["observation"][: len(features)], features)
            cards = shown["observation"][len(features) :].reshape(-1, 6)
            view = deals.visible_cards[hand, int(game.actor[node]), int(game.round[node])].tolist()
            assert [int(slot.argmax()) if slot.any() else 255 for slot in cards] == view
            action = int(random.choice(np.flatnonzero(shown["action_mask"])))
            env.step(action)
            node = game.step(node, torch.tensor([action]), row, deals)
        payoff = float(game.payoff(node, row, deals))
        assert env.rewards == {"player_0": payoff, "player_1": -payoff}
        assert env._cumulative_rewards == env.rewards


def test_rewards_of_random_play_are_the_value_of_uniform_play() -> None:
    """Kuhn, both uniform: player 0 wins 1/8 of an ante a hand, by enumeration of its 30 ends."""
    env, random = environment("kuhn"), np.random.default_rng(1)
    total = []
    for _ in range(3_000):
        env.reset()
        play(env, random)
        total.append(env.game.payoff(env._node, env._row, env._deals).item())
    assert np.mean(total) == pytest.approx(0.125, abs=4 * np.std(total) / 3_000**0.5)


def test_an_agent_acts_in_the_environment_of_its_game() -> None:
    agent = load("leduc")
    env = environment(agent)
    env.reset(seed=5)
    row = env.strategy(agent.policy)
    assert row.sum() == pytest.approx(1)
    assert (row > 0).sum() <= env.observe(env.agent_selection)["action_mask"].sum()
    hand = env._deals.visible_cards[0, 0, 0].tolist()
    name = ("Jc", "Jd", "Qc", "Qd", "Kc", "Kd")[hand[0]]
    assert row[row > 0].tolist() == pytest.approx([share for share in agent.act(name).values() if share > 0])
    with pytest.raises(GameError, match="The policy plays kuhn, and the environment leduc"):
        env.strategy(load("kuhn").policy)
    play(env, np.random.default_rng(0))
    env.reset()
    while not env.terminations[env.agent_selection]:
        env.step(1)
    with pytest.raises(GameError, match="The hand is over"):
        env.strategy(agent.policy)
    for _ in range(2):
        env.step(None)  # both players leave
    with pytest.raises(GameError, match="The hand is over"):
        env.strategy(agent.policy)
    assert not env.observe(env.agent_selection)["action_mask"].any()
    with pytest.raises(GameError, match="The hand is over: reset the environment"):
        env.step(None)


def test_what_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    env = environment("kuhn")
    env.reset()
    with pytest.raises(GameError, match="Action 0 is not legal for player_0 here"):
        env.step(0)  # nothing to fold to
    for action in (-1, 5):
        with pytest.raises(GameError, match=f"Action {action} is not legal"):
            env.step(action)
    with pytest.raises(GameError, match="neither a preset"):
        environment("no-such-game")
    with pytest.raises(GameError, match="hunl-ladder"):
        environment("hunl-ladder")
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "deepcfr.interop.environment")
    with pytest.raises(ConfigError, match=r"deepcfr\[pettingzoo\]"):
        environment("kuhn")


def test_the_environment_of_an_agent_has_its_suits() -> None:
    canonical = environment(Agent(UniformPolicy(load_game("fhp"))))
    assert canonical.game.suits == "canonical"  # type: ignore[attr-defined]
    agent = load("fhp")
    raw = environment("fhp")
    raw.reset()
    with pytest.raises(GameError, match="sees fhp in other suits: make the environment from its agent"):
        raw.strategy(agent.policy)


def test_an_agent_with_bet_sizes_answers_in_its_environment() -> None:
    agent = load("hunl-200")
    env = environment(agent)
    env.reset()
    shares = env.strategy(agent.policy)
    assert shares.sum() == pytest.approx(1)
    cards = env.observe("player_0")["observation"][-7 * 52 :].reshape(7, 52)
    hole = [card_text(PRESETS["hulh"], int(card)) for card in cards[:2].argmax(1)]
    asked = list(agent.act(" ".join(hole)).values())
    assert shares[shares > 0] == pytest.approx([share for share in asked if share > 0])


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.step(0),
        lambda env: env.step(None),
        lambda env: env.last(),
        lambda env: env.observe("player_0"),
        lambda env: env.agent_iter(),
        lambda env: env.strategy(load("kuhn").policy),
    ],
)
def test_nothing_is_played_before_a_reset(call: Callable[[GameEnv], object]) -> None:
    with pytest.raises(GameError, match=r"^No hand has been dealt: reset the environment first"):
        call(environment("kuhn"))


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
