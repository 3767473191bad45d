"""Deep CFR on small games: its memories and networks hold what Algorithm 1 says they hold."""

from dataclasses import replace

import pytest
import torch

from deepcfr.config import AdvantageFitConfig, FitConfig, MemoryConfig, NetworkConfig, RunConfig, SamplingConfig
from deepcfr.core.types import Infosets, Samples
from deepcfr.game.base import by_infoset
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import load_game
from deepcfr.network.memory import Memory
from deepcfr.policy.network import regret_matching
from deepcfr.solve.deep_cfr import DeepCFR
from tables import changed, finished

KUHN = load_game("kuhn")
EVERY = Infosets(  # the infosets of Kuhn
    torch.arange(4).repeat_interleave(3), torch.arange(3, dtype=torch.uint8).repeat(4)[:, None]
)


BRIEF = RunConfig(
    game="kuhn",
    iterations=3,
    sampling=SamplingConfig(traversals=40),
    memory=MemoryConfig(capacity=10_000),
    network=NetworkConfig(kind="mlp", width=32, layers=2),
    advantage=AdvantageFitConfig(steps=10, batch_size=128, learning_rate=5e-3, schedule="cosine"),
    average=FitConfig(steps=300, batch_size=128, learning_rate=5e-3, schedule="cosine", draw="merged"),
)
STILL = {"steps": 1, "learning_rate": 1e-12}  # a fit too small to move random weights


def solved(config: RunConfig, game: PokerGame = KUHN) -> DeepCFR:
    return finished(DeepCFR(game, config))


def held(memory: Memory) -> Samples:
    return memory[slice(0, None)]


def assert_same_state(one: DeepCFR, other: DeepCFR) -> None:
    assert (one.iteration, one.nodes_touched) == (other.iteration, other.nodes_touched)
    pairs = [
        *zip(one.memories.advantages, other.memories.advantages, strict=True),
        (one.memories.strategies, other.memories.strategies),
    ]
    for mine, theirs in pairs:
        assert mine.seen == theirs.seen
        contents = theirs.contents()
        assert all(torch.equal(column, contents[name]) for name, column in mine.contents().items())
    for network, same in zip(one.advantage_networks, other.advantage_networks, strict=True):
        state = same.state_dict()
        assert all(torch.equal(weight, state[name]) for name, weight in network.state_dict().items())


def test_a_run_records_what_it_did_and_its_average_is_the_linear_average_of_its_samples() -> None:
    """Fits of the average on the way change nothing."""
    solver, plain, sizes = DeepCFR(KUHN, BRIEF), solved(BRIEF), []
    memories = (*solver.memories.advantages, solver.memories.strategies)
    for record in solver.iterations():
        sizes.append([len(memory) for memory in memories])
        assert record.traversals == 2 * 40
        assert record.advantage_samples == tuple(sizes[-1][:2])
        assert record.strategy_samples == sizes[-1][2]
        assert record.trained == 2 * BRIEF.advantage.steps * BRIEF.advantage.batch_size
        assert all(0 < loss < 10 for loss in record.advantage_loss)
        # Player 0's traversal has the deal, the root, two answers and an end to each, and after check and bet two ends
        # more; player 1's has the deal, the root, an answer and two ends, and after check and bet player 0's answer.
        second = int(KUHN.tree.child[KUHN.tree.child[0, 1], 2])
        again = [held(memory) for memory in (memories[0], memories[2])]
        seen = [int(((s.infosets.node == second) & (s.iteration == record.iteration)).sum()) for s in again]
        assert record.nodes_touched == 40 * (6 + 5) + 2 * seen[0] + seen[1]
        solver.fit_average(replace(BRIEF.average, steps=2))
    solver.fit_average()
    first = solver.average_network
    assert_same_state(solver, plain)
    owner = by_infoset(KUHN, KUHN.actor)
    for column, (memory, owners) in enumerate(zip(memories, ({0}, {1}, {0, 1}), strict=True)):
        ends = [0, *(size[column] for size in sizes)]
        samples = held(memory)
        assert samples.iteration.tolist() == [t for t in (1, 2, 3) for _ in range(ends[t] - ends[t - 1])]
        assert set(owner[samples.infosets.node.long()].tolist()) == owners
    samples = held(memories[2])
    index = 3 * samples.infosets.node.long() + samples.infosets.cards[:, 0].long()
    total = torch.zeros(12, 3).index_add_(0, index, samples.target * samples.iteration.float()[:, None])
    assert (solver.average_policy().probabilities(EVERY) - total / total.sum(1, keepdim=True)).abs().max() < 0.05
    solver.fit_average(replace(BRIEF.average, steps=1))
    assert solver.average_network is not first  # it is fitted anew


def test_advantages_are_learned_as_shares_of_the_pot() -> None:
    """After one iteration against a uniform opponent: the same memory in both units, and nearly exact fits."""
    found = []
    for units in ("chips", "pots"):
        fit = {"steps": 150, "draw": "merged", "units": units}
        solver = solved(changed(BRIEF, iterations=1, sampling=SamplingConfig(traversals=1_000), advantage=fit))
        network = solver.advantage_networks[0]
        with torch.no_grad():
            found.append((network(EVERY) * network.scale)[:3][KUHN.encoding.legal[EVERY.node[:3]]])
    assert KUHN.pot[0] == 2
    torch.testing.assert_close(found[1] * 2, found[0], atol=0.08, rtol=0.08)
    assert float(found[0].abs().max()) > 0.3


# Algorithm 1, line by line


def test_the_advantage_networks_start_at_zero() -> None:
    solver = DeepCFR(KUHN, BRIEF)
    for network in solver.advantage_networks:
        with torch.no_grad():
            assert torch.equal(network(EVERY), torch.zeros(12, 3))
    legal = KUHN.encoding.legal[EVERY.node]
    torch.testing.assert_close(solver.current_policy().probabilities(EVERY), legal / legal.sum(1, keepdim=True))


@pytest.mark.parametrize("fallback", ["highest", "uniform"])
def test_strategy_samples_are_those_of_the_newest_networks_at_the_time(fallback: str) -> None:
    solver = DeepCFR(KUHN, replace(BRIEF, cfr=replace(BRIEF.cfr, fallback=fallback)))  # type: ignore[arg-type]
    owner = by_infoset(KUHN, KUHN.actor)
    before = solver.current_policy().probabilities(EVERY)
    for record in solver.iterations():
        after = solver.current_policy().probabilities(EVERY)
        samples = held(solver.memories.strategies)
        index = 3 * samples.infosets.node.long() + samples.infosets.cards[:, 0].long()
        now = samples.iteration == record.iteration
        # player 0 traverses first, against player 1 of the iteration before; then player 1 against the new player 0
        for player, policy in ((1, before), (0, after)):
            chosen = now & (owner[samples.infosets.node.long()] == player)
            assert chosen.sum() >= 40
            torch.testing.assert_close(samples.target[chosen], policy[index[chosen]], atol=1e-4, rtol=0)
        before = after


def test_the_current_policy_is_regret_matching_on_each_players_network() -> None:
    solver = solved(BRIEF)
    probabilities = solver.current_policy().probabilities(EVERY)
    owner = by_infoset(KUHN, KUHN.actor)
    for row in range(12):
        infoset = EVERY[slice(row, row + 1)]
        with torch.no_grad():
            advantage = solver.advantage_networks[int(owner[EVERY.node[row]])](infoset)
        expected = regret_matching(advantage, KUHN.encoding.legal[infoset.node])
        # products of a batch are summed in another order than those of one row, which depends on the processor
        torch.testing.assert_close(probabilities[row], expected[0], atol=1e-4, rtol=0)


def test_the_weighting_and_the_iteration_reach_the_fit() -> None:
    linear, uniform = (solved(changed(BRIEF, cfr={"weighting": weighting})) for weighting in ("linear", "uniform"))
    one, other = (held(solver.memories.advantages[0]) for solver in (linear, uniform))
    first = int((one.iteration == 1).sum())
    assert torch.equal(one.target[:first], other.target[:first])
    # the first iteration's weights are 2 and 1, later ones differ between samples
    assert len(one) != len(other) or not torch.equal(one.target, other.target)


# Options


@pytest.mark.parametrize("kind", ["reservoir", "window"])
def test_memories_are_bounded_and_of_the_configured_kind(kind: str) -> None:
    memory = MemoryConfig(kind=kind, capacity=50)  # type: ignore[arg-type]
    solver = solved(replace(BRIEF, memory=memory, iterations=6))
    for one in (*solver.memories.advantages, solver.memories.strategies):
        assert len(one) == 50
        assert one.seen >= 6 * 40
        iterations = set(held(one).iteration.tolist())
        # every iteration adds at least 40 samples to each memory
        assert iterations <= {5, 6} if kind == "window" else len(iterations) >= 5


@pytest.mark.parametrize("refit", ["scratch", "fine-tune"])
def test_networks_are_fitted_anew_or_further(refit: str) -> None:
    solver = DeepCFR(KUHN, changed(BRIEF, advantage=STILL | {"refit": refit}))
    starts = []
    for _ in solver.iterations():
        starts.append([network.state_dict()["head.weight"].clone() for network in solver.advantage_networks])
    for player in (0, 1):
        assert float(starts[0][player].std()) > 0.05  # random: only the very first network is zero
        for earlier, later in ((0, 1), (1, 2)):
            assert torch.allclose(starts[earlier][player], starts[later][player], atol=1e-6) == (refit == "fine-tune")
    assert not torch.allclose(starts[0][0], starts[0][1])  # players do not share


def test_a_player_that_acts_late_is_fine_tuned_from_random_weights() -> None:
    one, fit = SamplingConfig(traversals=1), {"steps": 2, "refit": "fine-tune"}
    rare = changed(BRIEF, game="fhp-mini", iterations=4, sampling=one, advantage=fit)
    late, game = 0, load_game("fhp-mini")
    for seed in range(12):
        solver = DeepCFR(game, replace(rare, seed=seed))
        next(solver.iterations())
        silent = not len(solver.memories.advantages[1])
        finished(solver)
        if silent and len(solver.memories.advantages[1]):
            late += 1
            assert float(solver.advantage_networks[1].state_dict()["head.weight"].abs().max()) > 0
            break
    assert late
