"""Steps: those of torch's plain Adam, and the same numbers as CUDA graphs as run operation by operation."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deepcfr.config import FitConfig, NetworkConfig
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import generator
from deepcfr.core.types import Infosets, Samples
from deepcfr.game.presets import load_game
from deepcfr.network.examples import Draw, InfosetExamples, Loss, Objective, _batch_loss, linear_weights
from deepcfr.network.fit import Descent, advantage_loss, fit, gradients, strategy_loss
from deepcfr.network.memory import Memory
from deepcfr.network.networks import SplitNetwork, build_network
from deepcfr.solve.self_play import Learner
from fit_data import LEGAL, NEWEST, Downhill, advantages, new_network


class ReadsBack(TorchDispatchMode):
    """Refuses every operation for which the processor must wait for the device, as a capture does."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        assert func.overloadpacket.__name__ not in ("_local_scalar_dense", "nonzero", "_unique2", "masked_select"), func
        self.operations += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("loss", "draw"), [(advantage_loss, "merged"), (strategy_loss, "uniform")])
def test_a_step_reads_nothing_back_from_the_device(loss: Loss, draw: Any) -> None:
    data, config = advantages(), FitConfig(batch_size=32, draw=draw)
    examples = InfosetExamples(data.memory, Objective(LEGAL, loss, linear_weights, NEWEST), config)
    descent = Descent(new_network(kind="paper"), examples, config, Workers(1))
    descent.make_room(block=3, batch=32)
    draw = Draw(examples, 1, torch.device("cpu"))
    descent.run(draw, [(1e-3, 1), (1e-3, 2)])
    with pytest.raises(AssertionError, match="_local_scalar_dense"), ReadsBack():
        float(descent.recent)
    with ReadsBack() as watched:
        descent.step()
    assert watched.operations > 50


def test_a_step_takes_its_examples_and_rates_by_the_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepcfr.network.fit._CLIP", 1e9)  # it would change the direction from step to step
    examples, network = Downhill(), new_network()
    start = network.head.bias.detach().clone()
    config = FitConfig(batch_size=32)
    descent = Descent(network, examples, config, Workers(1))
    descent.make_room(block=3, batch=32)
    rates = [0.01, 0.02, 0.04]
    descent.run(Draw(examples, 1, torch.device("cpu")), [(rate, 1) for rate in rates])
    assert len({tuple(index.tolist()) for index in examples.drawn}) == 3
    torch.testing.assert_close(start - network.head.bias.detach(), torch.full((3,), sum(rates)), atol=1e-5, rtol=1e-3)


def descended(network: SplitNetwork, examples: InfosetExamples) -> None:
    """Twenty steps of a fit."""
    descent = Descent(network, examples, FitConfig(batch_size=32), Workers(1))
    descent.make_room(block=20, batch=32)
    descent.run(Draw(examples, 1, torch.device("cpu")), [(1e-2, 1)] * 20)


def learnt(network: SplitNetwork, examples: InfosetExamples) -> None:
    """Twenty steps of a solver by self-play."""
    Learner(network).descend(len(examples), partial(examples.loss, network), 20, 32, 1e-2, stream=1)


@pytest.mark.parametrize(("kind", "steps"), [("paper", descended), ("two-tower", descended), ("mlp", learnt)])
def test_steps_are_those_of_adam_without_fused_kernels(
    kind: str, steps: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    objective = Objective(LEGAL, advantage_loss, linear_weights, NEWEST)
    examples = InfosetExamples(advantages().memory, objective, FitConfig(batch_size=32))
    networks, plain = [new_network(kind=kind), new_network(kind=kind)], torch.optim.Adam
    adams = (plain, lambda parameters, **rest: plain(parameters, **(rest | {"fused": False})))
    for network, adam in zip(networks, adams, strict=True):
        monkeypatch.setattr(torch.optim, "Adam", adam)
        steps(network, examples)
    for ours, theirs in zip(*(network.parameters() for network in networks), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


# On CUDA


@pytest.mark.parametrize(
    ("loss", "draw"), [pytest.param(advantage_loss, "merged", marks=pytest.mark.long), (strategy_loss, "uniform")]
)
def test_the_loss_compiles_whole_and_stays_the_same(loss: Loss, draw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data, config = advantages(), FitConfig(batch_size=32, draw=draw)
    examples = InfosetExamples(data.memory, Objective(LEGAL, loss, linear_weights, NEWEST), config)
    network, index = new_network(kind="paper"), torch.arange(32)
    parameters = list(network.parameters())
    plain = examples.loss(network, index)
    # this backend traces the loss and its gradient as the one for CUDA does, and needs no compiler of C
    compiled = torch.compile(_batch_loss, backend="aot_eager", fullgraph=True, dynamic=False)
    monkeypatch.setattr("deepcfr.network.examples._batch_loss", compiled)
    traced = examples.loss(network, index)
    torch.testing.assert_close(traced, plain)
    for ours, theirs in zip(gradients(traced, parameters), gradients(plain, parameters), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_replayed_steps_have_the_numbers_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    game = load_game("fhp", device="cuda")
    draw = generator(1)
    count = 20_000
    node = torch.randint(len(game.encoding.legal), (count,), generator=draw)
    cards = torch.randint(52, (count, 5), generator=draw, dtype=torch.uint8)
    target = torch.randn(count, game.encoding.num_actions, generator=draw)
    iteration = torch.randint(1, NEWEST + 1, (count,), generator=draw, dtype=torch.int32)
    memory = Memory(game.encoding, count, device="cuda")
    memory.add(Samples(Infosets(node.cuda(), cards.cuda()), target.cuda(), iteration.cuda()), stream=0)
    results = []
    for replayed in (True, False):
        if not replayed:
            monkeypatch.setattr(Descent, "_replay", Descent.step)
        network = build_network(game.encoding, NetworkConfig(width=16), generator(2))
        config = FitConfig(steps=60, batch_size=512, schedule="cosine")
        examples = InfosetExamples(
            memory, Objective(game.encoding.legal, advantage_loss, linear_weights, NEWEST), config
        )
        results.append((network, fit(network, examples, config, 3, Workers(1))))
    (graph, same), (plain, result) = results
    assert same.steps == result.steps == 60
    assert same.loss == pytest.approx(result.loss, rel=1e-3)
    for one, other in zip(plain.parameters(), graph.parameters(), strict=True):
        torch.testing.assert_close(other, one, atol=1e-3, rtol=1e-3)
