"""Memories of hands on fixed boards are running means over the iterations."""

import pytest
import torch

from deepcfr.core.errors import TrainingError
from deepcfr.core.rng import generator
from deepcfr.core.types import HandSamples
from deepcfr.network.memory import HandMemory, bytes_per_hand
from deepcfr.solve.memories import discounted_rates


def hands(count: int, iteration: int, seed: int = 0) -> HandSamples:
    """Hands with 4 edges at 2 nodes; the first card is the row."""
    draw = generator(seed)
    cards = torch.randint(50, (count, 3), generator=draw).to(torch.uint8)
    cards[:, 0] = torch.arange(count)
    return HandSamples(
        cards=cards,
        values=20 * torch.randn(count, 4, generator=draw),
        reach=torch.rand(count, 2, generator=draw),
        iteration=torch.full((count,), iteration, dtype=torch.int32),
    )


@pytest.mark.parametrize("linear", [True, False])
def test_a_panel_is_the_weighted_mean_over_iterations(linear: bool) -> None:
    memory = HandMemory(3, 4, 2, 70)
    total = {"values": torch.zeros(60, 4, dtype=torch.float64), "reach": torch.zeros(60, 2, dtype=torch.float64)}
    mass, cards = 0.0, hands(60, 1).cards
    for t in range(1, 13):
        fresh = hands(60, t, seed=t)
        samples = HandSamples(cards, fresh.values, fresh.reach, fresh.iteration)
        memory.average(samples, 2 / (t + 1) if linear else 1 / t)
        weight = t if linear else 1
        mass += weight
        total["values"] += weight * samples.values.double()
        total["reach"] += weight * samples.reach.double()
        found = memory[slice(0, None)]
        assert torch.equal(found.cards, cards)
        assert found.iteration.tolist() == [t] * 60
        torch.testing.assert_close(found.values.double(), total["values"] / mass, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(found.reach.double(), total["reach"] / mass, rtol=1e-5, atol=1e-6)
    assert (memory.seen, len(memory)) == (60, 60)
    assert bytes_per_hand(3, 4, 2) * 70 == sum(column.nbytes for column in memory.columns.values())


def test_a_discounted_panel_holds_the_regrets_of_discounted_cfr_over_their_weight() -> None:
    memory = HandMemory(3, 4, 2, 70)
    regret, reach = torch.zeros(60, 4, dtype=torch.float64), torch.zeros(60, 2, dtype=torch.float64)
    weight, cards = 0.0, hands(60, 1).cards
    for t in range(1, 13):
        fresh = hands(60, t, seed=t)
        memory.average(HandSamples(cards, fresh.values, fresh.reach, fresh.iteration), *discounted_rates(t))
        power = (t - 1) ** 1.5
        positive, negative = power / (power + 1), 0.0 if t == 1 else 0.5
        regret = regret * torch.where(regret > 0, positive, negative) + fresh.values.double()
        reach, weight = reach * positive + fresh.reach.double(), weight * positive + 1
        found = memory[slice(0, None)]
        torch.testing.assert_close(found.values.double(), regret / weight, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(found.reach.double(), reach / weight, rtol=1e-5, atol=1e-5)


def test_long_panels_are_averaged_in_pieces() -> None:
    memory = HandMemory(3, 4, 2, 10_000)
    many = [hands(200, 1), hands(200, 2, seed=3)]
    cards = many[0].cards.repeat(45, 1)
    many = [HandSamples(cards, h.values.repeat(45, 1), h.reach.repeat(45, 1), h.iteration.repeat(45)) for h in many]
    memory.average(many[0], 1.0)
    memory.average(many[1], 0.25)
    torch.testing.assert_close(memory[slice(0, None)].values, 0.75 * many[0].values + 0.25 * many[1].values)


def test_a_panel_of_other_hands_is_refused() -> None:
    memory = HandMemory(3, 4, 2, 20)
    memory.average(hands(20, 1), 1.0)
    with pytest.raises(TrainingError, match="not those in the memory"):
        memory.average(hands(20, 2, seed=3), 0.5)


def test_contents_can_be_put_back() -> None:
    memory, other = HandMemory(3, 4, 2, 50), HandMemory(3, 4, 2, 50)
    first, second = hands(30, 4), hands(30, 5, seed=9)
    memory.average(first, 1.0)
    other.restore({name: column.clone() for name, column in memory.contents().items()}, memory.seen)
    for one in (memory, other):
        one.average(HandSamples(first.cards, second.values, second.reach, second.iteration), 0.5)
    assert all(torch.equal(memory.filled(name), other.filled(name)) for name in memory.columns)
