"""Deep CFR on small games: it approaches equilibrium, and its memories hold what Algorithm 1 says they hold."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from deepcfr.config import AdvantageFitConfig, FitConfig, MemoryConfig, NetworkConfig, RunConfig, SamplingConfig
from deepcfr.core.errors import GameError
from deepcfr.core.types import Infosets, Samples
from deepcfr.game.base import by_infoset
from deepcfr.game.poker import PokerGame
from deepcfr.game.presets import build_game, load_game, load_source
from deepcfr.measure.exploitability import exploitability
from deepcfr.network.memory import Memory
from deepcfr.policy.base import Policy, UniformPolicy
from deepcfr.policy.network import RegretMatchingPolicy, regret_matching
from deepcfr.solve.data import IterationRecord
from deepcfr.solve.deep_cfr import DeepCFR

KUHN = load_game("kuhn")
EVERY = Infosets(  # the infosets of Kuhn
    torch.arange(4).repeat_interleave(3), torch.arange(3, dtype=torch.uint8).repeat(4)[:, None]
)
FIT = FitConfig(steps=40, batch_size=128, learning_rate=5e-3, schedule="cosine")
ADVANTAGE = AdvantageFitConfig(**vars(FIT))
CONFIG = RunConfig(
    game="kuhn",
    iterations=25,
    sampling=SamplingConfig(traversals=300),
    memory=MemoryConfig(advantage_capacity=100_000, strategy_capacity=100_000),
    network=NetworkConfig(kind="mlp", width=32, layers=2),
    advantage=ADVANTAGE,
    average=replace(FIT, steps=400, batch_size=256),
)
BRIEF = replace(
    CONFIG,
    iterations=3,
    sampling=replace(CONFIG.sampling, traversals=40),
    advantage=replace(ADVANTAGE, steps=10),
    average=FIT,
)


def solved(config: RunConfig, game: PokerGame = KUHN) -> DeepCFR:
    solver = DeepCFR(game, config)
    for _ in solver.iterations():
        pass
    return solver


def held(memory: Memory) -> Samples:
    return memory[slice(0, None)]


def rows(memory: Memory) -> Counter[tuple[int, tuple[int, ...], int, tuple[float, ...]]]:
    """The samples in a memory without their order."""
    samples = held(memory)
    columns = samples.infosets.node, samples.infosets.cards, samples.iteration, samples.target
    return Counter(
        (node, tuple(cards), iteration, tuple(target))
        for node, cards, iteration, target in zip(*(column.tolist() for column in columns), strict=True)
    )


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


# Learning


@pytest.fixture(scope="module")
def kuhn() -> tuple[DeepCFR, list[IterationRecord]]:
    solver = DeepCFR(KUHN, CONFIG)
    records = list(solver.iterations())
    solver.fit_average()
    return solver, records


def test_a_short_run_is_far_less_exploitable_than_uniform_play(kuhn: tuple[DeepCFR, list[IterationRecord]]) -> None:
    solver, _ = kuhn
    uniform = exploitability(UniformPolicy(KUHN))
    average = exploitability(solver.average_policy())
    assert uniform.nash_conv == pytest.approx(916.7, abs=0.1)
    assert average.nash_conv < 0.12 * uniform.nash_conv
    assert average.value == pytest.approx(-1000 / 18, abs=30)  # the value of the game to the first player


def test_a_run_in_units_of_the_pot_is_as_good() -> None:
    solver = solved(replace(CONFIG, advantage=replace(ADVANTAGE, units="pots")))
    solver.fit_average()
    assert exploitability(solver.average_policy()).nash_conv < 0.12 * 916.7
    policy = solver.current_policy()
    assert isinstance(policy, RegretMatchingPolicy)
    assert policy.pot_units


def test_advantages_are_learned_as_shares_of_the_pot() -> None:
    """After one iteration against a uniform opponent: the same memory in both units, and nearly exact fits."""
    exact = replace(ADVANTAGE, steps=500, batch_size=256, draw="merged")
    found = []
    for units in ("chips", "pots"):
        solver = solved(
            replace(
                CONFIG,
                iterations=1,
                sampling=SamplingConfig(traversals=2000),
                advantage=replace(exact, units=units),
            )
        )
        network = solver.advantage_networks[0]
        with torch.no_grad():
            found.append((network(EVERY) * network.scale)[:3][KUHN.encoding.legal[EVERY.node[:3]]])
    assert KUHN.pot[0] == 2
    torch.testing.assert_close(found[1] * 2, found[0], atol=0.05, rtol=0.05)
    assert float(found[0].abs().max()) > 0.3


def test_the_average_plays_what_every_equilibrium_plays(kuhn: tuple[DeepCFR, list[IterationRecord]]) -> None:
    solver, _ = kuhn
    probabilities = {
        (node, "JQK"[card]): row.tolist()
        for (node, card), row in zip(
            zip(EVERY.node.tolist(), EVERY.cards[:, 0].tolist(), strict=True),
            solver.average_policy().probabilities(EVERY),
            strict=True,
        )
    }
    child = KUHN.tree.child
    root, checked, bet = 0, int(child[0, 1]), int(child[0, 2])
    assert probabilities[root, "Q"][1] > 0.75  # a queen is checked
    assert probabilities[bet, "J"][0] > 0.95  # a jack folds to a bet
    assert probabilities[bet, "K"][1] > 0.95  # a king calls one
    assert probabilities[checked, "Q"][1] > 0.9  # a queen checks behind
    assert probabilities[checked, "K"][2] > 0.95  # a king bets behind
    assert probabilities[checked, "J"][2] == pytest.approx(1 / 3, abs=0.2)  # a jack bluffs one time in three
    assert probabilities[bet, "Q"][1] == pytest.approx(1 / 3, abs=0.2)  # a queen calls one time in three


def test_the_records_add_up(kuhn: tuple[DeepCFR, list[IterationRecord]]) -> None:
    solver, records = kuhn
    assert [record.iteration for record in records] == list(range(1, 26))
    assert solver.iteration == 25
    assert {record.traversals for record in records} == {600}
    assert solver.nodes_touched == sum(record.nodes_touched for record in records)
    last = records[-1]
    assert last.advantage_samples == tuple(len(memory) for memory in solver.memories.advantages)
    assert last.strategy_samples == len(solver.memories.strategies)
    # Player 0's traversal has the deal, the root, two answers and an end to each, and after check and bet two ends
    # more; player 1's has the deal, the root, an answer and two ends, and after check and bet player 0's answer.
    again = [held(memory) for memory in (solver.memories.advantages[0], solver.memories.strategies)]
    second = int(KUHN.tree.child[KUHN.tree.child[0, 1], 2])
    for record in records:
        seen = [int(((s.infosets.node == second) & (s.iteration == record.iteration)).sum()) for s in again]
        assert record.nodes_touched == 300 * (6 + 5) + 2 * seen[0] + seen[1]
        assert all(0 < loss < 10 for loss in record.advantage_loss)


def weighted_mean_strategy(solver: DeepCFR) -> torch.Tensor:
    """The target of the average network: the mean of the memory with weight t, [12, A]."""
    samples = held(solver.memories.strategies)
    index = 3 * samples.infosets.node.long() + samples.infosets.cards[:, 0].long()
    weight = samples.iteration.float()
    total = torch.zeros(12, 3).index_add_(0, index, samples.target * weight[:, None])
    return total / total.sum(1, keepdim=True)


def test_the_average_policy_is_the_linear_average_in_the_memory(kuhn: tuple[DeepCFR, list[IterationRecord]]) -> None:
    solver, _ = kuhn
    distance = solver.average_policy().probabilities(EVERY) - weighted_mean_strategy(solver)
    assert distance.abs().max() < 0.06


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


def test_a_record_has_the_time_and_the_examples_of_both_fits() -> None:
    solver = DeepCFR(KUHN, BRIEF)
    record = next(solver.iterations())
    assert record.fit_seconds > 0
    assert record.traversal_seconds > 0
    assert record.trained == 2 * BRIEF.advantage.steps * BRIEF.advantage.batch_size


def test_the_first_strategies_are_uniform() -> None:
    solver = DeepCFR(KUHN, BRIEF)
    next(solver.iterations())
    samples = held(solver.memories.strategies)
    first = by_infoset(KUHN, KUHN.actor)[samples.infosets.node.long()] == 1  # collected before any network was fitted
    legal = KUHN.encoding.legal[samples.infosets.node.long()]
    uniform = legal / legal.sum(1, keepdim=True)
    assert torch.equal(samples.target[first], uniform[first])
    assert not torch.allclose(samples.target[~first], uniform[~first], atol=0.05)  # player 0 has learned by then


def test_samples_carry_the_iteration_that_made_them() -> None:
    solver = DeepCFR(KUHN, BRIEF)
    sizes = []
    for _ in solver.iterations():
        sizes.append([len(memory) for memory in (*solver.memories.advantages, solver.memories.strategies)])
    for column, memory in enumerate((*solver.memories.advantages, solver.memories.strategies)):
        ends = [0, *(size[column] for size in sizes)]
        expected = [t for t in (1, 2, 3) for _ in range(ends[t] - ends[t - 1])]
        assert held(memory).iteration.tolist() == expected


def test_each_player_has_a_memory_of_its_own_advantages() -> None:
    solver = solved(BRIEF)
    owner = by_infoset(KUHN, KUHN.actor)
    for player, memory in enumerate(solver.memories.advantages):
        samples = held(memory)
        assert set(owner[samples.infosets.node.long()].tolist()) == {player}
        assert bool((samples.target[~KUHN.encoding.legal[samples.infosets.node.long()]] == 0).all())
    assert set(owner[held(solver.memories.strategies).infosets.node.long()].tolist()) == {0, 1}
    # every traversal of player 0 starts at its first decision, so that K samples an iteration are there
    assert int((held(solver.memories.advantages[0]).infosets.node == 0).sum()) == 3 * 40


def test_the_weighting_and_the_iteration_reach_the_fit() -> None:
    linear, uniform = (
        solved(replace(BRIEF, cfr=replace(BRIEF.cfr, weighting=weighting)))  # type: ignore[arg-type]
        for weighting in ("linear", "uniform")
    )
    # the first iteration's weights are 2 and 1, later ones differ between samples
    assert rows(linear.memories.advantages[0]) != rows(uniform.memories.advantages[0])
    first = [held(solver.memories.advantages[0]) for solver in (linear, uniform)]
    assert torch.equal(*(samples.target[samples.iteration == 1] for samples in first))


# Policies


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
@pytest.mark.parametrize("network", [NetworkConfig(kind="mlp", width=8), NetworkConfig(width=8)])
def test_policies_are_distributions_over_legal_actions(name: str, network: NetworkConfig) -> None:
    game = load_game(name)
    solver = solved(replace(BRIEF, network=network), game)
    solver.fit_average(replace(FIT, steps=5))
    deals = game.deal(300, 5)
    node = torch.arange(300) % game.tree.num_decisions
    infosets = Infosets(node, deals.visible_cards[torch.arange(300), game.actor[node], game.round[node]])
    legal = game.encoding.legal[node]
    policies: list[Policy] = [solver.current_policy(), solver.average_policy(), UniformPolicy(game)]
    for policy in policies:
        probabilities = policy.probabilities(infosets)
        assert bool((probabilities[~legal] == 0).all())
        assert bool((probabilities >= 0).all())
        torch.testing.assert_close(probabilities.sum(1), torch.ones(300, dtype=probabilities.dtype))


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


# Repeatability


def test_the_same_seed_gives_the_same_run_and_another_does_not() -> None:
    one = solved(BRIEF)
    torch.manual_seed(123)  # the global generator plays no part
    assert_same_state(one, solved(BRIEF))
    other = solved(replace(BRIEF, seed=1))
    assert rows(other.memories.advantages[0]) != rows(one.memories.advantages[0])


def test_a_run_can_be_left_and_taken_up_again() -> None:
    solver = DeepCFR(KUHN, BRIEF)
    next(solver.iterations())
    assert solver.iteration == 1
    assert [record.iteration for record in solver.iterations()] == [2, 3]
    assert list(solver.iterations()) == []
    assert_same_state(solver, solved(BRIEF))


def test_fitting_the_average_on_the_way_does_not_change_the_run() -> None:
    solver = DeepCFR(KUHN, BRIEF)
    for _ in solver.iterations():
        solver.fit_average(replace(FIT, steps=3))
    assert_same_state(solver, solved(BRIEF))


def totals(memory: Memory) -> dict[tuple[int, int, int], torch.Tensor]:
    """For each infoset and iteration the number of samples and the sum of their targets."""
    found: dict[tuple[int, int, int], torch.Tensor] = {}
    samples = held(memory)
    columns = samples.infosets.node.tolist(), samples.infosets.cards[:, 0].tolist(), samples.iteration.tolist()
    for at, target in zip(zip(*columns, strict=True), samples.target.double(), strict=True):
        found[at] = found.get(at, torch.zeros(4, dtype=torch.float64)) + torch.cat([torch.ones(1), target])
    return found


@pytest.mark.parametrize("chunk", [1, 7, 39, 40])
def test_the_chunk_changes_only_the_order_of_what_is_collected(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # fits too small to move random weights, so that the order cannot change the networks
    still = replace(BRIEF, advantage=replace(ADVANTAGE, steps=1, learning_rate=1e-12))
    other = solved(still)
    monkeypatch.setattr("deepcfr.solve.data._CHUNK", chunk)
    one = solved(still)
    assert one.nodes_touched == other.nodes_touched
    pairs = [*zip(one.memories.advantages, other.memories.advantages, strict=True)]
    for mine, theirs in [*pairs, (one.memories.strategies, other.memories.strategies)]:
        sums, expected = totals(mine), totals(theirs)
        assert {at: total[0] for at, total in sums.items()} == {at: total[0] for at, total in expected.items()}
        assert {iteration for _, _, iteration in sums} == {1, 2, 3}
        for at, total in sums.items():
            torch.testing.assert_close(total, expected[at], atol=1e-4, rtol=1e-5)
    # bit for bit where all play is uniform
    assert {r for r in rows(one.memories.advantages[0]).items() if r[0][2] == 1} == {
        r for r in rows(other.memories.advantages[0]).items() if r[0][2] == 1
    }


# Options


@pytest.mark.parametrize("kind", ["reservoir", "window"])
def test_memories_are_bounded_and_of_the_configured_kind(kind: str) -> None:
    memory = MemoryConfig(kind=kind, advantage_capacity=50, strategy_capacity=30)  # type: ignore[arg-type]
    solver = solved(replace(BRIEF, memory=memory, iterations=6))
    for one, capacity in zip((*solver.memories.advantages, solver.memories.strategies), (50, 50, 30), strict=True):
        assert len(one) == capacity
        assert one.seen >= 6 * 40
        iterations = set(held(one).iteration.tolist())
        # every iteration adds at least 40 samples to each memory
        assert iterations <= {5, 6} if kind == "window" else len(iterations) >= 5


@pytest.mark.parametrize("refit", ["scratch", "fine-tune"])
def test_networks_are_fitted_anew_or_further(refit: str) -> None:
    # fits too small to move weights show where they start
    still = replace(ADVANTAGE, steps=1, learning_rate=1e-12, refit=refit)  # type: ignore[arg-type]
    solver = DeepCFR(KUHN, replace(BRIEF, advantage=still))
    starts = []
    for _ in solver.iterations():
        starts.append([network.state_dict()["head.weight"].clone() for network in solver.advantage_networks])
    for player in (0, 1):
        assert float(starts[0][player].std()) > 0.05  # random: only the very first network is zero
        for earlier, later in ((0, 1), (1, 2)):
            assert torch.allclose(starts[earlier][player], starts[later][player], atol=1e-6) == (refit == "fine-tune")
    assert not torch.allclose(starts[0][0], starts[0][1])  # players do not share


def test_the_average_network_is_fitted_anew() -> None:
    solver = solved(BRIEF)
    solver.fit_average()
    first = solver.average_network
    solver.fit_average(replace(FIT, steps=1))
    assert solver.average_network is not first


def test_the_memory_of_a_run_is_known_before_it_is_allocated() -> None:
    solver = DeepCFR(KUHN, replace(BRIEF, memory=MemoryConfig("reservoir", 1000, 300)))
    memories = (*solver.memories.advantages, solver.memories.strategies)
    allocated = sum(column.nbytes for memory in memories for column in memory.columns.values())
    assert DeepCFR.memory_bytes(KUHN, solver.config) == allocated
    assert DeepCFR.memory_bytes(load_game("fhp"), RunConfig()) <= 120_000_000 * 32


def test_a_player_that_never_got_to_act_does_not_stop_the_run() -> None:
    # with one traversal, player 0 folds before player 1 has acted for one seed in three or so
    tiny = replace(
        BRIEF,
        iterations=1,
        sampling=replace(BRIEF.sampling, traversals=1),
        advantage=replace(ADVANTAGE, steps=1),
        game="fhp",
    )
    for seed in range(12):
        solved(replace(tiny, seed=seed), load_game("fhp"))


def test_a_player_that_acts_late_is_fine_tuned_from_random_weights() -> None:
    rare = replace(
        BRIEF,
        game="fhp",
        iterations=5,
        sampling=replace(BRIEF.sampling, traversals=1),
        advantage=replace(ADVANTAGE, steps=5, refit="fine-tune"),
        network=NetworkConfig(width=8),
    )
    late = 0
    for seed in range(12):
        solver = DeepCFR(load_game("fhp"), replace(rare, seed=seed))
        next(solver.iterations())
        silent = not len(solver.memories.advantages[1])
        for _ in solver.iterations():
            pass
        if silent and len(solver.memories.advantages[1]):
            late += 1
            assert float(solver.advantage_networks[1].state_dict()["head.weight"].abs().max()) > 0
    assert late


def test_targets_in_units_of_the_pot_need_a_poker_game() -> None:
    game = build_game(load_source("openspiel:kuhn_poker"))
    config = replace(BRIEF, game="openspiel:kuhn_poker", advantage=replace(ADVANTAGE, units="pots"))
    with pytest.raises(GameError, match=r"targets in units of the pot need a poker game, but .* is not one"):
        DeepCFR(game, config)
