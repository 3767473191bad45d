"""Fitting a network to examples: mini-batch Adam, as in section 5.2, with the options that the configuration names."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from deepcfr.config import FitConfig
from deepcfr.errors import TrainingError
from deepcfr.parallel import Workers, flushed_denormals
from deepcfr.rng import key
from deepcfr.training.draw import Draw
from deepcfr.training.networks import SplitNetwork
from deepcfr.training.shards import AnyExamples, BlockDraw, ShardedExamples
from deepcfr.training.step import Descent, Row
from deepcfr.training.team import Team

_REPORT = 100  # losses are read from the device, and checked, this often
_STAGES = 4  # batch sizes of a fit whose batches grow
_BLOCK = 1 << 18  # examples whose numbers are drawn at a time
_HELD_OUT = 1024  # held-out examples to look at, at least; two mini-batches if that is more


@dataclass(frozen=True)
class FitResult:
    """What a fit did; losses are weighted means, in squared units of the targets."""

    loss: float  # of the last steps
    steps: int
    seconds: float
    examples: int  # drawn for mini-batches
    held_out_loss: float | None = None  # of the weights that were kept; None if nothing was held out


def fit(
    network: SplitNetwork,
    examples: AnyExamples,
    config: FitConfig,
    stream: int,
    workers: Workers,
    team: Team | None = None,
) -> FitResult:
    """Fit `network` in place to `examples`, with mini-batches drawn from `stream`.

    Every worker takes the gradient of an equal share of the mini-batch, in pieces of `examples.share` at most. In a team,
    which only shards serve, this process draws its share of every mini-batch, and all end with the same weights.
    Raises TrainingError when the loss stops being a number. Source: Algorithm 1 and section 5.2.
    """
    start = time.perf_counter()
    with flushed_denormals():
        network.scale.fill_(examples.scale())
        descent = Descent(network, examples, config, workers, team)
        total = steps_for(config, len(examples))
        blocks = list(_blocks(config, total, team))
        draw: Draw | BlockDraw
        watch = None
        if isinstance(examples, ShardedExamples):
            stream = key(stream, "rank", team.rank) if team and team.size > 1 else stream
            draw = BlockDraw(examples, stream, [block.batch * (block.last - block.first) for block in blocks])
        else:
            draw = Draw(examples, config.held_out, stream, descent.device)
            watch = _Watch(descent, draw, config) if config.held_out else None
        last = drawn = 0
        for block in blocks:
            if block.opens_stage:
                descent.start_stage(block.room, block.batch)
            descent.run(draw, [_row(config, step, total) for step in range(block.first, block.last)])
            last = block.last
            drawn += block.batch * (block.last - block.first) * (team.size if team else 1)
            look = watch is not None and (last % config.check_every == 0 or last == total)
            if look or last % _REPORT == 0 or last == total:
                _check(descent.recent, last, total, config)
            if watch and look and watch.is_over():
                break
        if watch:
            watch.restore()
        else:
            descent.swap_average()
    unit = float(network.scale) ** 2
    held_out = watch.best * unit if watch else None
    return FitResult(float(descent.recent * network.scale**2), last, time.perf_counter() - start, drawn, held_out)


def steps_for(config: FitConfig, examples: int) -> int:
    """Steps of a fit to a memory of so many examples, if it is not stopped early."""
    return config.steps + config.steps_per_million * examples // 1_000_000


@dataclass(frozen=True)
class _Block:
    """Steps `first` to `last` - 1, whose examples are named together; `room` is the longest block of its stage."""

    first: int
    last: int
    batch: int
    room: int
    opens_stage: bool


def _blocks(config: FitConfig, total: int, team: Team | None) -> Iterator[_Block]:
    """The steps of a fit, cut where a batch size ends and where losses are looked at."""
    stages = _STAGES if config.batch_growth > 1 else 1
    looks = [_REPORT, *([config.check_every] if config.held_out else [])]
    first = 0
    for stage in range(stages):
        end = total * (stage + 1) // stages
        batch = round(config.batch_size * config.batch_growth ** (stage / max(1, stages - 1)))
        batch = team.share(batch) if team else batch
        room, opens = max(1, min(_REPORT, end - first, _BLOCK // batch)), True
        while first < end:
            last = min(end, first + room, *(first - first % every + every for every in looks))
            yield _Block(first, last, batch, room, opens)
            first, opens = last, False


def _row(config: FitConfig, step: int, total: int) -> Row:
    """The rates of one step; the early steps of an average count evenly, so that the random start leaves no trace."""
    rate = 1.0 if config.schedule == "constant" else 0.5 * (1 + math.cos(math.pi * step / total))
    return config.learning_rate * rate, max(1 - config.averaging, 1 / (step + 1)), min(step + 1, _REPORT)


class _Watch:
    """The loss on held-out examples, and the weights at which it was smallest.

    With weight averaging, the weights are the average. A cosine schedule lowers the loss up to its last step, so there a
    stop gives away the end of it; a constant rate with averaging has no end to miss.
    """

    def __init__(self, descent: Descent, draw: Draw, config: FitConfig) -> None:
        self._descent, self._patience = descent, config.patience
        self._index = draw.some_held_out(max(_HELD_OUT, 2 * config.batch_size))
        self._weights = [parameter.detach().clone() for parameter in descent.parameters]
        self._waited = 0
        self.best = math.inf

    def is_over(self) -> bool:
        """Whether the loss has not improved for `patience` looks, this one included."""
        self._descent.swap_average()
        loss = self._descent.mean_loss(self._index)
        self._waited += 1
        if loss < self.best:
            self.best, self._waited = loss, 0
            for weight, parameter in zip(self._weights, self._descent.parameters, strict=True):
                weight.copy_(parameter.detach())
        self._descent.swap_average()
        return self._waited >= self._patience

    def restore(self) -> None:
        """Take back the best weights."""
        with torch.no_grad():
            for weight, parameter in zip(self._weights, self._descent.parameters, strict=True):
                parameter.copy_(weight)


def _check(recent: torch.Tensor, done: int, total: int, config: FitConfig) -> None:
    if not bool(torch.isfinite(recent)):
        raise TrainingError(
            f"The loss is not a number after {done} of {total} steps at learning rate {config.learning_rate:g}: "
            "lower the learning rate or the gradient clip."
        )
