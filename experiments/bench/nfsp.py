"""NFSP on Leduc against OpenSpiel's PyTorch implementation, in episodes per second with learning, in one process."""

from __future__ import annotations

import dataclasses
import importlib.util
import time
from typing import Any

import torch

from deepcfr.config import NetworkConfig, NFSPConfig, RunConfig, RuntimeConfig
from deepcfr.core.errors import ConfigError
from deepcfr.defaults import default_config
from deepcfr.game.presets import load_game
from deepcfr.run.metrics import environment
from deepcfr.solve.nfsp import NFSP
from experiments.grid import Say

_HIDDEN = 64  # features of the one hidden layer of every network
_PEER_BATCH, _PEER_EVERY = 128, 64  # OpenSpiel's example for Leduc: a mini-batch, and steps between mini-batches
_PEER_EPISODES = 2_000
_OUR_ITERATIONS = 20
_WARM_UP = 2  # iterations before the measurement


def bench_nfsp(seed: int, say: Say) -> dict[str, Any]:
    """Episodes per second of NFSP on Leduc, learning included, ours against OpenSpiel's; both on one core.

    All networks have one hidden layer of 64. OpenSpiel learns from 128 examples for every 64 steps of an agent, as in its
    example. `ours` learns from as many examples per episode, in mini-batches of its default size; `ratio` compares these
    two. `recipe` has the settings of `train leduc --solver nfsp`, which learns from fewer examples.

    Raises ConfigError if OpenSpiel is not installed.
    """
    if importlib.util.find_spec("pyspiel") is None or importlib.util.find_spec("tree") is None:
        raise ConfigError("This benchmark needs OpenSpiel: pip install 'deepcfr[openspiel]'.")
    torch.set_num_threads(1)
    peer = _run_openspiel(_PEER_EPISODES, seed)
    say(_sentence("OpenSpiel", peer))
    settings = default_config("leduc", "nfsp").nfsp
    ours = _run_ours(matched(settings, peer["examples_per_episode"]), seed, _OUR_ITERATIONS)
    say(_sentence("deepcfr", ours))
    recipe = _run_ours(settings, seed, _OUR_ITERATIONS)
    say(_sentence("deepcfr, with the default settings of Leduc", recipe))
    facts = {
        "game": "leduc",
        "seed": seed,
        "environment": environment("cpu", 1),
        "hidden": _HIDDEN,
        "peer": peer,
        "ours": ours,
        "recipe": recipe,
        "ratio": ours["episodes_per_second"] / peer["episodes_per_second"],
        "recipe_ratio": recipe["episodes_per_second"] / peer["episodes_per_second"],
    }
    say(f"{facts['ratio']:.1f} x at equal examples per episode, {facts['recipe_ratio']:.1f} x with those settings")
    return facts


def matched(settings: NFSPConfig, examples_per_episode: float) -> NFSPConfig:
    """The settings with at least `examples` examples per episode for each network."""
    steps = -int(-examples_per_episode * settings.episodes // settings.batch_size)
    return dataclasses.replace(settings, q_steps=steps, policy_steps=steps)


def _sentence(who: str, facts: dict[str, Any]) -> str:
    return (
        f"{who}: {facts['episodes_per_second']:,.0f} episodes/s, {facts['examples_per_episode']:.1f} examples of each "
        f"episode for each network in mini-batches of {facts['batch_size']:,}"
    )


def _run_ours(settings: NFSPConfig, seed: int, iterations: int) -> dict[str, Any]:
    config = RunConfig(
        game="leduc",
        seed=seed,
        solver="nfsp",
        iterations=_WARM_UP + iterations,
        nfsp=settings,
        network=NetworkConfig(kind="mlp", width=_HIDDEN, layers=1),
        runtime=RuntimeConfig(threads=1),
    )
    solver = NFSP(load_game("leduc"), config)
    records = solver.iterations()
    for _ in range(_WARM_UP):
        next(records)
    start = time.perf_counter()
    episodes = settings.episodes * len(list(records))
    seconds = time.perf_counter() - start
    steps = (
        settings.q_steps + settings.policy_steps
    ) / 2  # steps of a network, on average over action values and policies
    return {
        "episodes": episodes,
        "seconds": seconds,
        "episodes_per_second": episodes / seconds,
        "batch_size": settings.batch_size,
        "examples_per_episode": steps * settings.batch_size / settings.episodes,
    }


def _run_openspiel(episodes: int, seed: int) -> dict[str, Any]:
    from open_spiel.python import rl_environment
    from open_spiel.python.pytorch import nfsp

    game = rl_environment.Environment("leduc_poker")
    game.seed(seed)
    agents = [
        nfsp.NFSP(
            player,
            state_representation_size=game.observation_spec()["info_state"][0],
            num_actions=game.action_spec()["num_actions"],
            hidden_layers_sizes=[_HIDDEN],
            reservoir_buffer_capacity=2_000_000,
            anticipatory_param=0.1,
            batch_size=_PEER_BATCH,
            learn_every=_PEER_EVERY,
            min_buffer_size_to_learn=_PEER_BATCH,  # so that it learns from the start and during the whole measurement
            replay_buffer_capacity=200_000,
            epsilon_start=0.06,
            epsilon_end=0.001,
            seed=seed + player,
        )
        for player in (0, 1)
    ]
    while any(a._reservoir_buffer is None or len(a._reservoir_buffer) < _PEER_BATCH for a in agents):
        _play_openspiel(game, agents)
    before = sum(agent.step_counter for agent in agents)
    start = time.perf_counter()
    for _ in range(episodes):
        _play_openspiel(game, agents)
    seconds = time.perf_counter() - start
    steps = (sum(agent.step_counter for agent in agents) - before) / len(agents)
    return {
        "episodes": episodes,
        "seconds": seconds,
        "episodes_per_second": episodes / seconds,
        "batch_size": _PEER_BATCH,
        "examples_per_episode": steps / _PEER_EVERY * _PEER_BATCH / episodes,
    }


def _play_openspiel(game: Any, agents: list[Any]) -> None:
    """Play one episode as in OpenSpiel's example."""
    time_step = game.reset()
    while not time_step.last():
        agent = agents[time_step.observations["current_player"]]
        time_step = game.step([agent.step(time_step).action])
    for agent in agents:
        agent.step(time_step)
