"""Fits: a plain loop of Adam, whatever the targets' unit, the threads and the pieces."""

from dataclasses import replace

import pytest
import torch

from deepcfr.config import FitConfig
from deepcfr.core.errors import TrainingError
from deepcfr.core.parallel import Workers
from deepcfr.core.rng import generator, key
from deepcfr.network.examples import InfosetExamples, Objective, linear_weights, quadratic_weights, uniform_weights
from deepcfr.network.fit import FitResult, advantage_loss, fit
from deepcfr.network.networks import SplitNetwork
from fit_data import LEGAL, NEWEST, NODES, Data, Downhill, advantages, new_network, predicted

QUICK = FitConfig(steps=250, batch_size=256, learning_rate=1e-2, schedule="cosine")
SMALL = FitConfig(steps=30, batch_size=64)
ALONE = Workers(1)


def fitted(data: Data, config: FitConfig, **changes: object) -> tuple[SplitNetwork, FitResult]:
    chosen = {"loss": advantage_loss, "weights": linear_weights, "stream": key(1, "fit"), "workers": ALONE} | changes
    objective = Objective(LEGAL, chosen["loss"], chosen["weights"], NEWEST, scaled=bool(changes.get("scaled", True)))  # type: ignore[arg-type]
    examples = InfosetExamples(data.memory, objective, config)
    network = new_network()
    return network, fit(network, examples, config, chosen["stream"], chosen["workers"])  # type: ignore[arg-type]


# Products on CUDA


def test_products_on_cuda_are_rounded_in_fits_alone() -> None:
    seen = []

    def watched(*arguments: torch.Tensor) -> torch.Tensor:
        seen.append(torch.backends.cuda.matmul.allow_tf32)
        return advantage_loss(*arguments)

    fitted(advantages(), SMALL, loss=watched)
    assert seen == [True] * SMALL.steps
    assert not torch.backends.cuda.matmul.allow_tf32


# Weights


def test_weights_average_one() -> None:
    assert linear_weights(torch.tensor([1, 5, 10], dtype=torch.int32), 10).tolist() == pytest.approx([0.2, 1.0, 2.0])
    assert uniform_weights(torch.tensor([1, 5, 10]), 10).tolist() == [1.0, 1.0, 1.0]
    squares = quadratic_weights(torch.tensor([1, 5, 10], dtype=torch.int32), 10)
    assert squares.tolist() == pytest.approx([0.03, 0.75, 3.0])
    weights = linear_weights(torch.arange(1, 1001), 1000)
    # of order 1, so that the gradient clip keeps its meaning
    assert float(weights.mean()) == pytest.approx(1, abs=2e-3)


# Units


def test_the_unit_of_the_targets_does_not_matter_if_they_are_scaled() -> None:
    unit = 2.0**-20  # powers of two change no digit
    (one, result), (other, other_result) = (fitted(advantages(unit=u), SMALL) for u in (1.0, unit))
    assert torch.equal(predicted(other), unit * predicted(one))
    assert other.scale == unit * one.scale
    legal = LEGAL[NODES[advantages().index]]
    assert float(one.scale) == pytest.approx(float(advantages().samples.target[legal].square().mean().sqrt()), rel=1e-5)
    assert other_result.loss == pytest.approx(unit**2 * result.loss)


def test_targets_that_are_all_zero_are_fitted() -> None:
    data = advantages(unit=0.0)
    network, result = fitted(data, QUICK)
    assert float(network.scale) == 1
    assert result.loss < 0.02
    assert predicted(network).abs().max() < 0.15


# Options


def test_merging_infosets_learns_the_same_means_without_the_sampling_noise() -> None:
    data, errors, start = advantages(noise=2.0), [], {}
    config = FitConfig(steps=150, batch_size=128, learning_rate=1e-2, schedule="cosine")
    mean = data.mean(linear_weights(data.samples.iteration, NEWEST))
    data.memory.columns["target"][len(data.memory) :] = torch.nan  # only the filled part of a memory is used
    start = {name: column.clone() for name, column in data.memory.contents().items()}
    for one in (config, replace(config, draw="merged")):
        network, result = fitted(data, one)
        errors.append(float((predicted(network) - mean).square().sum(1).mean()))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.05
    assert result.loss < 0.15  # what is left of a loss that is 8 or more otherwise
    assert all(torch.equal(column, start[name]) for name, column in data.memory.contents().items())


def downhill(predicted: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    """A loss whose gradient to the last biases is constant, so that Adam moves them by exactly the rate."""
    return predicted.sum()


@pytest.mark.parametrize(("schedule", "steps"), [("constant", 10), ("cosine", 1), ("cosine", 20)])
def test_the_rate_is_constant_or_a_half_cosine_down_to_zero(
    schedule: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepcfr.network.fit._CLIP", 1e9)  # it would change the direction from step to step
    config = FitConfig(steps=steps, batch_size=8, learning_rate=0.01, schedule=schedule)  # type: ignore[arg-type]
    start = new_network().state_dict()["head.bias"].clone()
    network, _ = fitted(advantages(count=200), config, loss=downhill)
    travelled = start - network.state_dict()["head.bias"]
    # the sum of (1 + cos(pi s / n)) / 2 over s = 0 .. n - 1 is (n + 1) / 2
    expected = 0.01 * (steps if schedule == "constant" else (steps + 1) / 2)
    torch.testing.assert_close(travelled, torch.full((3,), expected), atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("count", [2, 7])
def test_threads_change_a_fit_by_rounding_only(count: int) -> None:
    data, config = advantages(), replace(SMALL, batch_size=50)  # that 3 and 7 do not divide
    workers = Workers(count)
    try:
        (one, result), (shared, same) = fitted(data, config), fitted(data, config, workers=workers)
        torch.testing.assert_close(predicted(shared), predicted(one), atol=1e-4, rtol=1e-4)
        assert same.loss == pytest.approx(result.loss, rel=1e-4)
        again, _ = fitted(data, config, workers=workers)
        assert torch.equal(predicted(again), predicted(shared))  # in whatever order the threads finish
    finally:
        workers.shutdown()


# Errors


@pytest.mark.parametrize("steps", [1, 150])
def test_a_target_that_is_not_a_number_stops_the_fit_with_a_sentence(steps: int) -> None:
    data = advantages()
    data.memory.columns["target"][:, 1] = torch.nan
    with pytest.raises(TrainingError, match=rf"after \d+ of {steps} steps at learning rate 0\.25") as caught:
        fitted(data, FitConfig(steps=steps, batch_size=64, learning_rate=0.25))
    (problem,) = caught.value.problems
    assert problem.endswith(".")
    assert int(problem.split("after ")[1].split()[0]) <= min(steps, 100)  # noticed soon


# The steps


def test_a_fit_is_a_plain_loop_of_adam() -> None:
    data, config = advantages(), FitConfig(steps=7, batch_size=40, learning_rate=1e-2, schedule="cosine")
    network, _ = fitted(data, config)
    plain, draw = new_network(), generator(key(1, "fit"))
    plain.scale.fill_(network.scale)
    adam = torch.optim.Adam(plain.parameters())
    for step in range(config.steps):
        adam.param_groups[0]["lr"] = 1e-2 * (1 + float(torch.tensor(torch.pi * step / 7).cos())) / 2
        batch = data.memory[torch.randint(3000, (40,), generator=draw)]
        error = (plain(batch.infosets) - batch.target / plain.scale) * LEGAL[batch.infosets.node]
        adam.zero_grad()
        (batch.iteration * 2 / NEWEST * error.square().sum(1)).mean().backward()
        norm = torch.stack([p.grad.square().sum() for p in plain.parameters()]).sum().sqrt()
        for parameter in plain.parameters():
            parameter.grad *= min(1.0, 1.0 / float(norm))
        adam.step()
    torch.testing.assert_close(predicted(network), predicted(plain), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("passes", "steps"), [(0.0, 9), (1.0, 9), (0.1, 8), (0.05, 4), (1e-6, 1)])
def test_a_fit_makes_at_most_so_many_passes_over_its_examples(passes: float, steps: int) -> None:
    data, config = advantages(), FitConfig(steps=9, passes=passes, batch_size=40)
    _, result = fitted(data, config)
    assert (result.steps, result.examples) == (steps, 40 * steps)  # of 3,000 examples 0.1 passes are 7.5 mini-batches


def travel(examples: Downhill, config: FitConfig, workers: Workers = ALONE) -> tuple[float, FitResult]:
    """A fit that moves the first of the last biases down; how far it went."""
    network = new_network()
    start = network.head.bias[0].item()
    result = fit(network, examples, config, key(2, "fit"), workers)
    return start - network.head.bias[0].item(), result


STEADY = FitConfig(steps=60, batch_size=64, learning_rate=0.01)


@pytest.mark.parametrize("count", [1, 2])
def test_no_piece_is_larger_than_a_share_and_a_batch_is_whole(count: int) -> None:
    examples, config = Downhill(most=7), replace(STEADY, steps=1, batch_size=50)
    workers = Workers(count)
    try:
        travelled, _ = travel(examples, config, workers)
        assert travelled == pytest.approx(0.01, rel=1e-3)
    finally:
        workers.shutdown()
    assert max(map(len, examples.drawn)) == 7
    whole = Downhill()
    travel(whole, config)
    assert torch.equal(torch.cat(examples.drawn).sort().values, whole.drawn[0].sort().values)


def test_draws_do_not_depend_on_how_many_steps_are_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Downhill(), Downhill()
    travel(one, STEADY)
    monkeypatch.setattr("deepcfr.network.fit._BLOCK", 200)  # three steps
    travel(other, STEADY)
    assert len(one.drawn) == 60
    assert torch.equal(torch.stack(one.drawn), torch.stack(other.drawn))


@pytest.mark.parametrize("count", [1, 2])
def test_denormal_numbers_are_zero_in_every_thread_of_a_fit_and_nowhere_else(count: int) -> None:
    examples, workers = Downhill(), Workers(count)
    try:
        travel(examples, replace(STEADY, steps=10), workers)
        assert examples.denormals == {False}
        assert len(examples.threads) == count
        small = torch.full((), 1e-40)
        assert all(bool(small * 1 > 0) for small in workers.map(lambda x: x * 1, [small] * 8))
        assert bool(small * 1 > 0)
    finally:
        workers.shutdown()
