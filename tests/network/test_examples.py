"""The samples of a memory as training examples: sums of losses, and what must be held out together."""

import pytest
import torch
from scipy.stats import chisquare

from deepcfr.config import FitConfig, NetworkConfig
from deepcfr.core.rng import generator, key
from deepcfr.core.types import Infosets, Samples
from deepcfr.game.base import by_infoset
from deepcfr.game.presets import load_game
from deepcfr.network.examples import Draw, InfosetExamples, Objective, linear_weights
from deepcfr.network.fit import advantage_loss
from deepcfr.network.memory import Memory
from deepcfr.network.networks import build_network
from fit_data import EVERY, GAME, LEGAL, NEWEST, Downhill, advantages, new_network


def examples_in(memory: Memory) -> InfosetExamples:
    return InfosetExamples(
        memory, Objective(memory.encoding.legal, advantage_loss, linear_weights, NEWEST), FitConfig()
    )


def test_the_loss_is_a_weighted_sum_in_units_of_the_networks_scale() -> None:
    data, network = advantages(count=50), new_network()
    network.scale.fill_(2.0)
    examples = examples_in(data.memory)
    index = torch.tensor([3, 3, 41])
    with torch.no_grad():
        error = (network(EVERY)[data.index[index]] - data.samples.target[index] / 2) * LEGAL[
            EVERY.node[data.index[index]]
        ]
        expected = (data.samples.iteration[index] / 5 * error.square().sum(1)).sum()
        torch.testing.assert_close(examples.loss(network, index), expected)
    assert len(examples) == 50


def test_the_loss_of_a_hand_with_several_decisions_is_their_mean() -> None:
    network, draw = new_network(), generator(3)
    node, cards = torch.randint(len(LEGAL), (10, 2), generator=draw), EVERY.cards[:10]
    target = torch.randn(10, 2, LEGAL.shape[1], generator=draw)
    together = Memory(GAME.encoding, 10, decisions=2)
    together.add(Samples(Infosets(node, cards), target, torch.arange(1, 11) // 2), 0)
    with torch.no_grad():
        loss = examples_in(together).loss(network, torch.arange(10))
        of_each = []
        for j in (0, 1):
            memory = Memory(GAME.encoding, 10)
            memory.add(Samples(Infosets(node[:, j], cards), target[:, j], torch.arange(1, 11) // 2), 0)
            of_each.append(examples_in(memory).loss(network, torch.arange(10)))
    torch.testing.assert_close(loss, sum(of_each) / 2)


def test_balanced_draws_take_the_place_of_weights_in_the_loss() -> None:
    """In one round the odds are in proportion to the weights, and the loss has none."""
    data, network = advantages(count=50), new_network()
    rounds = torch.zeros(len(LEGAL), dtype=torch.int64)
    objective = Objective(LEGAL, advantage_loss, linear_weights, NEWEST, rounds=rounds)
    alike, drawn = (InfosetExamples(data.memory, objective, FitConfig(draw=d)) for d in ("uniform", "balanced"))
    assert alike.odds is None
    assert drawn.odds is not None
    torch.testing.assert_close(drawn.odds, data.samples.iteration / data.samples.iteration.max())
    with torch.no_grad():
        for one in torch.arange(50).split(1):
            weight = linear_weights(data.samples.iteration[one], NEWEST)
            torch.testing.assert_close(drawn.loss(network, one) * weight[0], alike.loss(network, one))


def test_balanced_draws_take_as_much_weight_from_every_round() -> None:
    game, rows = load_game("leduc"), 900
    node = torch.arange(rows) % len(game.encoding.legal)
    iteration = 1 + torch.arange(rows, dtype=torch.int32) % 7
    cards = torch.zeros(rows, 2, dtype=torch.uint8)
    memory = Memory(game.encoding, rows)
    memory.add(Samples(Infosets(node, cards), torch.zeros(rows, game.encoding.num_actions), iteration), stream=0)
    round_ = by_infoset(game, game.round)
    assert round_[game.infoset[game.actor >= 0]].tolist() == game.round[game.actor >= 0].tolist()
    config = FitConfig(draw="balanced")
    examples = InfosetExamples(
        memory, Objective(game.encoding.legal, advantage_loss, linear_weights, 7, rounds=round_), config
    )
    odds = examples.odds
    assert odds is not None
    early = round_[memory.filled("node").long()] == 0
    assert float(odds[early].sum()) == pytest.approx(float(odds[~early].sum()), rel=1e-4)
    assert float(odds.max()) == pytest.approx(1, rel=1e-4)
    for part in (early, ~early):
        torch.testing.assert_close(odds[part] / odds[part].max(), memory.filled("iteration")[part] / 7)


def test_the_scale_of_a_large_memory_is_that_of_all_its_parts() -> None:
    """Later samples are ten times as large as earlier ones, and neither alone gives the unit."""
    data = advantages(count=4_000)
    target = torch.ones_like(data.memory.filled("target"))
    target[2_000:] = 10.0
    scale = examples_in(data.memory).objective.mean_square(data.memory, target, most=100) ** 0.5
    assert scale == pytest.approx((101 / 2) ** 0.5, rel=0.02)


def test_targets_are_divided_by_the_unit_of_their_infoset() -> None:
    """In units of 10 and 1: as if the memory held the quotients, in the loss and in the scale."""
    game = load_game("leduc")
    unit = torch.where(torch.arange(len(game.encoding.legal)) % 2 == 0, 10.0, 1.0)
    node = torch.tensor([0, 1, 0, 1])
    cards = torch.tensor([[0, 255], [2, 255], [4, 255], [0, 255]], dtype=torch.uint8)
    target = torch.arange(1.0, 13.0).view(4, 3)
    network = build_network(game.encoding, NetworkConfig(kind="mlp", width=8), generator(0))
    losses, scales = [], []
    for found, in_unit in ((target, unit), (target / unit[node][:, None], None)):
        memory = Memory(game.encoding, 10)
        memory.add(Samples(Infosets(node, cards), found, torch.full((4,), 3, dtype=torch.int32)), stream=0)
        examples = InfosetExamples(
            memory, Objective(game.encoding.legal, advantage_loss, linear_weights, NEWEST, unit=in_unit), FitConfig()
        )
        scales.append(examples.scale())
        with torch.no_grad():
            losses.append(float(examples.loss(network, torch.arange(4))))
    assert losses[0] == pytest.approx(losses[1])
    assert scales[0] == pytest.approx(scales[1])
    assert scales[0] < float(target.square().mean().sqrt())


class Selective(Downhill):
    """Examples of which the later ones are drawn more often."""

    @property
    def odds(self) -> torch.Tensor:
        return (1 + torch.arange(100) // 50).float() / 3


@pytest.mark.parametrize(("kind", "weight"), [(Downhill, torch.ones(100)), (Selective, 1.0 + torch.arange(100) // 50)])
def test_draws_follow_the_odds(kind: type[Downhill], weight: torch.Tensor) -> None:
    draw, index = Draw(kind(count=100), key(5, "draw"), torch.device("cpu")), torch.empty(10, 4_000, dtype=torch.int64)
    draw.fill(index)
    counts = torch.bincount(index.view(-1), minlength=100)
    expected = weight.double()
    assert chisquare(counts, 40_000 * expected / expected.sum()).pvalue > 1e-3
