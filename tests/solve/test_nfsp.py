"""NFSP: step by step as a plain implementation, and the same however it is cut up."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch
from scipy import stats

import deepcfr.solve.nfsp as module
from deepcfr.config import EvaluationConfig, NetworkConfig, NFSPConfig, RunConfig, RuntimeConfig
from deepcfr.core.errors import TrainingError
from deepcfr.core.rng import addressed_uniforms, generator, key
from deepcfr.core.types import NO_CARD, Encoding, Infosets
from deepcfr.game.base import Game
from deepcfr.game.betting import CALL, FOLD, RAISE
from deepcfr.game.presets import build_game, load_game, load_source
from deepcfr.network.fit import masked_softmax
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.solve.nfsp import (
    AVERAGE,
    NFSP,
    RESPONSE,
    TransitionMemory,
    bytes_per_transition,
    epsilon_greedy,
    q_targets,
)
from deepcfr.solve.self_play import EXPLORE, NetworkPlayer, Transitions, mixed, outputs_at
from tables import finished

SETTINGS = NFSPConfig(
    episodes=40,
    anticipatory=0.4,
    epsilon_start=0.3,
    replay_capacity=90,  # both memories are full on the way
    reservoir_capacity=50,
    q_steps=3,
    policy_steps=2,
    batch_size=16,
    target_every=4,
    q_learning_rate=0.02,
    policy_learning_rate=0.05,
)
CONFIG = RunConfig(
    game="kuhn",
    seed=3,
    solver="nfsp",
    iterations=6,
    nfsp=SETTINGS,
    network=NetworkConfig(kind="mlp", width=8, layers=1),
    evaluation=EvaluationConfig(every=3),
    runtime=RuntimeConfig(threads=1, checkpoint_seconds=0),
)


def changed(iterations: int = CONFIG.iterations, **settings: Any) -> RunConfig:
    return dataclasses.replace(CONFIG, iterations=iterations, nfsp=dataclasses.replace(SETTINGS, **settings))


def solved(config: RunConfig, game: Game | None = None) -> NFSP:
    return finished(NFSP(game or load_game("kuhn"), config))


def state(solver: NFSP) -> dict[str, torch.Tensor]:
    """Everything that a run goes on from."""
    columns = {
        f"{name} {c}": column for name, memory in solver.stores.items() for c, column in memory.contents().items()
    }
    return {name: tensor.clone() for name, tensor in (solver.state(memories=False).tensors | columns).items()}


def same(one: NFSP, other: NFSP) -> bool:
    left, right = state(one), state(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


# A plain implementation: Kuhn's rules by hand, one episode at a time, one infoset at a time, gradients step by step


class PlainNFSP:
    """NFSP on Kuhn with lists for memories; it shares networks' architecture and random numbers, and nothing else.

    A history is a word of c for check or call, b for bet or raise and f for fold.
    """

    def __init__(self, config: RunConfig) -> None:
        self.game, self.settings, self.seed = load_game("kuhn"), config.nfsp, config.seed
        self.iterations = config.iterations
        self.nodes = {"": 0}
        for history, (parent, action) in {"c": ("", CALL), "b": ("", RAISE), "cb": ("c", RAISE)}.items():
            node = torch.tensor([self.nodes[parent]])
            self.nodes[history] = int(self.game.step(node, torch.tensor([action]), torch.tensor([0]), None))  # type: ignore[arg-type]

        def new(kind: str, player: int) -> SplitNetwork:
            draw = generator(self.stream("network", kind, player))
            return build_network(self.game.encoding, config.network, draw)

        self.q = [new("value", player) for player in (0, 1)]
        self.target = [new("value", player) for player in (0, 1)]
        self.pi = [new("average", player) for player in (0, 1)]
        self.adam = {network: torch.optim.Adam(network.parameters()) for network in (*self.q, *self.pi)}
        self.replay: list[list[tuple[Any, ...]]] = [[], []]  # history, card, action, reward, next history, terminal
        self.reservoir: list[list[tuple[str, int, int]]] = [[], []]  # history, card, action
        self.responses: list[list[tuple[str, int, int]]] = [[], []]  # of an iteration
        self.seen, self.offered, self.updates = [0, 0], [0, 0], [0, 0]

    def stream(self, *purpose: str | int) -> int:
        return key(self.seed, "nfsp", *purpose)

    def outputs(self, network: SplitNetwork, history: str, card: int) -> torch.Tensor:
        infoset = Infosets(torch.tensor([self.nodes[history]]), torch.tensor([[card]], dtype=torch.uint8))
        return network(infoset)[0]

    @staticmethod
    def legal(history: str) -> list[int]:
        return [FOLD, CALL] if history.endswith("b") else [CALL, RAISE]

    def strategy(self, player: int, responds: bool, history: str, card: int, epsilon: float) -> list[float]:
        legal = self.legal(history)
        if responds:
            values = self.outputs(self.q[player], history, card).tolist()
            best = max(legal, key=lambda action: values[action])
            return [(epsilon / len(legal) + (1 - epsilon) * (a == best)) * (a in legal) for a in range(3)]
        logits = self.outputs(self.pi[player], history, card).tolist()
        weights = [math.exp(logits[action]) * (action in legal) for action in range(3)]
        return [weight / sum(weights) for weight in weights]

    @staticmethod
    def payoff(history: str, cards: list[int]) -> float | None:
        """To player 0; None while the game goes on."""
        higher = 1 if cards[0] > cards[1] else -1
        return {"cc": higher, "bc": 2 * higher, "cbc": 2 * higher, "bf": 1, "cbf": -1}.get(history)

    def play(self, t: int) -> None:
        epsilon = self.settings.epsilon_start / math.sqrt(t)
        deals = self.game.deal(self.settings.episodes, self.stream("deal", t))
        for episode in range(self.settings.episodes):
            number = torch.tensor(episode)
            cards = [int(deals.visible_cards[episode, player, 0, 0]) for player in (0, 1)]
            responds = [
                float(addressed_uniforms(self.stream("mode", t), number, torch.tensor(p))) < self.settings.anticipatory
                for p in (0, 1)
            ]
            history, pending = "", [None, None]  # type: ignore[var-annotated]
            while (paid := self.payoff(history, cards)) is None:
                player = len(history) % 2
                if pending[player]:
                    self.keep(player, (*pending[player], 0.0, history, False))
                probabilities = self.strategy(player, responds[player], history, cards[player], epsilon)
                at = torch.tensor(self.nodes[history])
                left = float(addressed_uniforms(self.stream("action", t), number, at))
                action = next(a for a in range(3) if left < sum(probabilities[: a + 1]))
                pending[player] = (history, cards[player], action)
                if responds[player]:
                    values = self.outputs(self.q[player], history, cards[player]).tolist()
                    best = max(self.legal(history), key=lambda one: values[one])
                    self.responses[player].append((history, cards[player], best))
                history += {FOLD: "f", CALL: "c", RAISE: "b"}[action]
            for player, sign in ((0, 1), (1, -1)):
                self.keep(player, (*pending[player], sign * paid, pending[player][0], True))

    def keep(self, player: int, transition: tuple[Any, ...]) -> None:
        """A circular memory."""
        memory, capacity = self.replay[player], self.settings.replay_capacity
        if len(memory) < capacity:
            memory.append(transition)
        else:
            memory[self.seen[player] % capacity] = transition
        self.seen[player] += 1

    def offer(self, t: int, player: int) -> None:
        """Algorithm R for the iteration's best responses, whose numbers are drawn at once."""
        draw, responses = generator(self.stream("slot", t, player, self.offered[player])), self.responses[player]
        numbers = torch.rand(len(responses), generator=draw, dtype=torch.float64).tolist()
        for sample, number in zip(responses, numbers, strict=True):
            memory, i = self.reservoir[player], self.offered[player]
            if i < self.settings.reservoir_capacity:
                memory.append(sample)
            elif int(number * (i + 1)) < self.settings.reservoir_capacity:
                memory[int(number * (i + 1))] = sample
            self.offered[player] += 1

    def iterate(self, t: int) -> tuple[list[float], list[float]]:
        self.responses = [[], []]
        self.play(t)
        for player in (0, 1):
            self.offer(t, player)
        return [self.learn_q(t, player) for player in (0, 1)], [self.learn_pi(t, player) for player in (0, 1)]

    def batches(self, purpose: str, t: int, player: int, size: int, steps: int) -> list[list[int]]:
        draw = generator(self.stream(purpose, t, player))
        return torch.randint(size, (steps, self.settings.batch_size), generator=draw).tolist()  # type: ignore[no-any-return]

    def q_target(self, player: int, transition: tuple[Any, ...]) -> float:
        _, card, _, reward, following, terminal = transition
        unit = float(self.target[player].scale)
        if terminal:
            return reward / unit  # type: ignore[no-any-return]
        values = self.outputs(self.target[player], following, card).tolist()
        return reward / unit + max(values[action] for action in self.legal(following))  # type: ignore[no-any-return]

    def learn_q(self, t: int, player: int) -> float:
        memory, network = self.replay[player], self.q[player]
        if self.updates[player] == 0:
            paid = [transition[3] for transition in memory if transition[5]]
            network.scale.fill_(math.sqrt(sum(x * x for x in paid) / len(paid)))
        losses = []
        for batch in self.batches("value steps", t, player, len(memory), self.settings.q_steps):
            if self.updates[player] % self.settings.target_every == 0:
                self.target[player].load_state_dict(network.state_dict())
            loss = torch.zeros(())
            for i in batch:
                history, card, action = memory[i][:3]
                value = self.outputs(network, history, card)[action]
                loss = loss + (value - self.q_target(player, memory[i])) ** 2 / len(batch)
            self.descend(network, loss, self.settings.q_learning_rate * self.factor(t))
            self.updates[player] += 1
            losses.append(float(loss.detach()) * float(network.scale) ** 2)
        return sum(losses) / len(losses)

    def learn_pi(self, t: int, player: int) -> float:
        memory, network = self.reservoir[player], self.pi[player]
        losses = []
        for batch in self.batches("average steps", t, player, len(memory), self.settings.policy_steps):
            loss = torch.zeros(())
            for i in batch:
                history, card, action = memory[i]
                logits = self.outputs(network, history, card)[self.legal(history)]
                loss = loss - logits.log_softmax(0)[self.legal(history).index(action)] / len(batch)
            self.descend(network, loss, self.settings.policy_learning_rate * self.factor(t))
            losses.append(float(loss.detach()))
        return sum(losses) / len(losses)

    def factor(self, t: int) -> float:
        return 0.1 + 0.45 * (1 + math.cos(math.pi * (t - 1) / self.iterations))

    def descend(self, network: SplitNetwork, loss: torch.Tensor, rate: float) -> None:
        parameters, adam = list(network.parameters()), self.adam[network]
        slopes = torch.autograd.grad(loss, parameters)
        norm = math.sqrt(sum(float(slope.square().sum()) for slope in slopes))
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter.grad = slope / max(1.0, norm)
        adam.param_groups[0]["lr"] = rate
        adam.step()


def listed(*columns: torch.Tensor) -> list[tuple[Any, ...]]:
    """Rows of columns."""
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("episodes", [40, 15])  # with more episodes than infosets strategies are tables
def test_it_is_step_by_step_what_a_plain_implementation_is(episodes: int) -> None:
    config = changed(episodes=episodes, iterations=5 * 40 // episodes)
    solver, plain = NFSP(load_game("kuhn"), config), PlainNFSP(config)
    for t, record in enumerate(solver.iterations(), start=1):
        q_losses, pi_losses = plain.iterate(t)
        for player in (0, 1):
            replay = solver.replay[player]
            found = replay[slice(0, None)]
            assert replay.seen == plain.seen[player]
            at, after = found.infosets, found.following.node
            assert listed(at.node, at.cards[:, 0], found.action, found.reward, after, found.terminal) == [
                (plain.nodes[h], card, action, reward, plain.nodes[n], over)
                for h, card, action, reward, n, over in plain.replay[player]
            ]
            samples = solver.reservoir[player][slice(0, None)]
            assert solver.reservoir[player].seen == plain.offered[player]
            assert samples.target.sum(1).tolist() == [1.0] * len(samples)
            at = samples.infosets
            assert listed(at.node, at.cards[:, 0], samples.target.argmax(1)) == [
                (plain.nodes[h], card, action) for h, card, action in plain.reservoir[player]
            ]
            targets = q_targets(solver.targets[player], found, solver.game.encoding)
            assert targets.tolist() == pytest.approx(
                [plain.q_target(player, transition) for transition in plain.replay[player]], abs=1e-5
            )
            for ours, theirs in (
                (solver.values[player].network, plain.q[player]),
                (solver.targets[player], plain.target[player]),
                (solver.averages[player].network, plain.pi[player]),
            ):
                for name, tensor in theirs.state_dict().items():
                    torch.testing.assert_close(ours.state_dict()[name], tensor, rtol=1e-4, atol=1e-5)
        assert record.q_loss == pytest.approx(q_losses, rel=1e-3)
        assert record.policy_loss == pytest.approx(pi_losses, rel=1e-3)
    assert min(plain.seen) > SETTINGS.replay_capacity  # the circle has been closed, and the reservoir is full
    assert min(plain.offered) > SETTINGS.reservoir_capacity
    assert min(plain.updates) > 2 * SETTINGS.target_every


def test_players_respond_with_probability_eta_and_independently() -> None:
    solver = NFSP(load_game("kuhn"), CONFIG)
    responding = solver.modes(solver.game.deal(20_000, 1), t=1) == RESPONSE
    assert stats.binomtest(int(responding.sum()), 40_000, SETTINGS.anticipatory).pvalue > 1e-3
    both = int(responding.all(1).sum())
    assert stats.binomtest(both, 20_000, SETTINGS.anticipatory**2).pvalue > 1e-3
    assert not torch.equal(responding, solver.modes(solver.game.deal(20_000, 1), t=2) == RESPONSE)


def test_each_player_explores_in_a_share_of_the_games_and_its_opponent_does_not_learn_from_them() -> None:
    solver = NFSP(load_game("kuhn"), changed(exploration=0.2, anticipatory=1.0, episodes=1_000, replay_capacity=10**6))
    explores = solver.modes(solver.game.deal(20_000, 1), t=1) == EXPLORE
    assert not explores.all(1).any()
    for player in (0, 1):
        assert stats.binomtest(int(explores[:, player].sum()), 20_000, 0.2).pvalue > 1e-3
    found = next(iter(solver._play(1)))
    solver._remember(found, 1)
    for player in (0, 1):
        mode, opposing = found.modes[player].unbind(1)
        assert (opposing == EXPLORE).any()
        assert solver.replay[player].seen == int((opposing != EXPLORE).sum())
        assert solver.reservoir[player].seen == int((mode == RESPONSE).sum())


@pytest.mark.parametrize("episodes", [5, 2_000])  # evaluated row by row, and from a table
def test_exploration_is_the_average_policy_with_half_of_the_actions_at_random(episodes: int) -> None:
    solver = NFSP(load_game("kuhn"), CONFIG)
    deals = solver.game.deal(episodes, 1)
    average = NetworkPlayer.of(solver.averages[0].network, masked_softmax)
    response = NetworkPlayer.of(solver.values[0].network, epsilon_greedy)
    root, rows = torch.zeros(episodes, dtype=torch.int64), torch.arange(episodes)

    def at_root(mode: int) -> torch.Tensor:
        modes = torch.full((episodes,), mode)
        return mixed(solver.game, deals, modes, 0, (average, response))(root, rows)

    legal = solver.game.legal[root]
    assert torch.equal(at_root(RESPONSE).amax(1), torch.ones(episodes))
    torch.testing.assert_close(at_root(EXPLORE), (at_root(AVERAGE) + legal / legal.sum(1, keepdim=True)) / 2)


def test_who_has_nothing_to_imitate_keeps_its_network() -> None:
    solver = solved(changed(anticipatory=0.0, iterations=2))
    start = NFSP(solver.game, solver.config)
    for mine, old, reservoir in zip(solver.averages, start.averages, solver.reservoir, strict=True):
        assert reservoir.seen == 0
        assert all(torch.equal(old.network.state_dict()[k], v) for k, v in mine.network.state_dict().items())


def test_repeated_infosets_are_computed_once_and_count_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    game = load_game("leduc")
    network = build_network(game.encoding, NetworkConfig(kind="mlp", width=8, layers=2), generator(5))
    draw = generator(6)
    cards = torch.randint(3, (200, 2), generator=draw).to(torch.uint8)
    cards[::2, 1] = NO_CARD
    infosets = Infosets(torch.randint(len(game.encoding.legal), (200,), generator=draw), cards)
    slopes = torch.rand(200, game.encoding.num_actions, generator=draw)
    parameters, expected = list(network.parameters()), network(infosets)
    expected_gradients = torch.autograd.grad((expected * slopes).sum(), parameters)
    computed: list[int] = []
    forward = network.forward

    def counted(some: Infosets) -> torch.Tensor:
        computed.append(len(some))
        return forward(some)

    monkeypatch.setattr(network, "forward", counted)
    found = outputs_at(network, infosets, game.encoding)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad((found * slopes).sum(), parameters), expected_gradients)
    assert computed == [len(set(zip(infosets.node.tolist(), map(tuple, cards.tolist()), strict=True)))]
    assert computed[0] < 200


def test_epsilon_greedy_by_hand() -> None:
    values = torch.tensor([[5.0, 1.0, 2.0], [0.0, 3.0, 3.0]])
    legal = torch.tensor([[False, True, True], [True, True, True]])
    assert epsilon_greedy(values, legal).tolist() == [[0, 0, 1], [0, 1, 0]]
    expected = torch.tensor([[0, 0.1, 0.9], [0.2 / 3, 0.8 + 0.2 / 3, 0.2 / 3]])
    torch.testing.assert_close(epsilon_greedy(values, legal, 0.2), expected)


def test_a_run_is_the_same_in_one_thread_or_two_and_in_any_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = solved(changed(reservoir_capacity=10_000))
    monkeypatch.setattr("deepcfr.solve.self_play.CHUNK", 7)
    assert same(solved(changed(reservoir_capacity=10_000)), whole)  # while it is not full, a reservoir draws nothing
    one = solved(CONFIG)
    two = solved(dataclasses.replace(CONFIG, runtime=RuntimeConfig(threads=2)))
    assert same(one, two)
    assert not same(one, solved(dataclasses.replace(CONFIG, seed=4)))


def test_the_loss_that_is_no_number_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "q_loss", lambda network, *_: network.head.bias.sum() * torch.nan)
    with pytest.raises(TrainingError, match=r"not a number after 3 steps at learning rate 0\.02"):
        solved(CONFIG)


@pytest.mark.parametrize("name", ["fhp-mini", "hunl-pot", "openspiel:liars_dice(dice_sides=3)"])
def test_games_of_several_rounds_pot_betting_and_without_cards_are_trained(name: str) -> None:
    game = build_game(load_source(name))
    own = dataclasses.replace(SETTINGS, episodes=300, replay_capacity=10_000, reservoir_capacity=10_000)
    network = NetworkConfig(kind="mlp" if "openspiel" in name else "paper", width=8, card_width=1)
    config = dataclasses.replace(CONFIG, game=name, iterations=2, nfsp=own, network=network)
    solver = solved(config, game)
    assert min(memory.seen for memory in solver.reservoir) > 0
    decisions = sum(memory.seen for memory in solver.replay)
    # of every episode: the decisions, the end, and the deals
    assert decisions + 2 * 600 <= solver.nodes_touched <= decisions + 5 * 600
    assert NFSP.memory_bytes(game, config) == sum(
        column.nbytes for memory in solver.stores.values() for column in memory.columns.values()
    )
    if "openspiel" not in name:
        rounds = game.tree.round.tolist()
        seen = {rounds[int(node)] for memory in solver.replay for node in memory[slice(None)].infosets.node}
        assert seen == set(rounds)  # decisions of every round were remembered


def test_every_infoset_is_played_by_its_owners_network() -> None:
    solver = solved(changed(iterations=1))
    game, policy = solver.game, solver.average_policy()
    for node in range(4):
        infosets = Infosets(torch.full((3,), node), torch.arange(3, dtype=torch.uint8)[:, None])
        network = solver.averages[int(game.actor[node])].network
        legal = game.encoding.legal[node]
        expected = network(infosets)[:, legal].softmax(1)
        torch.testing.assert_close(policy.probabilities(infosets)[:, legal], expected)


# The replay memory


def test_a_replay_memory_keeps_all_columns_of_a_row_in_the_bytes_that_are_said() -> None:
    """Actions and nodes do not fit in a byte; the newest transitions are kept, and each names its iteration."""
    legal = torch.ones(500, 300, dtype=torch.bool)
    encoding = Encoding(torch.zeros(500, 1), legal, card_groups=(1, 2), num_ranks=3, num_suits=2)
    memory, position = TransitionMemory(encoding, 500), torch.arange(501)
    cards = torch.stack([position % 6, position // 6 % 6, position // 36 % 6], dim=1).to(torch.uint8)
    at, after = Infosets(position % 500, cards), Infosets((position + 7) % 500, cards.flip(1))
    every = Transitions(at, position % 300, position / 8, after, position % 3 == 0)
    memory.add(every[slice(0, 499)], 1)
    memory.add(every[slice(499, 501)], 2)
    found, kept = memory[slice(0, None)], torch.tensor([500, *range(1, 500)])
    assert memory.filled("iteration").tolist() == [2, *[1] * 498, 2]
    for mine, other in ((found.infosets, at), (found.following, after)):
        assert torch.equal(mine.node.long(), other.node[kept])
        assert torch.equal(mine.cards, other.cards[kept])
    assert torch.equal(found.action, every.action[kept])
    assert torch.equal(found.reward, every.reward[kept])
    assert torch.equal(found.terminal, every.terminal[kept])
    assert sum(column.nbytes for column in memory.columns.values()) == 500 * bytes_per_transition(encoding)
