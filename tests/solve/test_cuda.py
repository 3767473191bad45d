"""The same code on another device: it needs one, so most machines skip this."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from deepcfr.defaults import default_config
from deepcfr.game.presets import load_game
from deepcfr.measure.exploitability import exploitability
from deepcfr.run.folder import RunFolder
from deepcfr.solve.deep_cfr import DeepCFR

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def test_training_on_cuda_draws_the_samples_of_the_cpu_and_resumes(tmp_path: Path) -> None:
    base = default_config("kuhn")
    config = replace(base, iterations=2, runtime=replace(base.runtime, device="cuda"))
    solver = DeepCFR(load_game("kuhn", device="cuda"), config)
    other = DeepCFR(load_game("kuhn"), config)
    next(solver.iterations())
    next(other.iterations())
    ours, theirs = solver.memories.advantages[0][:], other.memories.advantages[0][:]
    assert torch.equal(ours.infosets.cards.cpu(), theirs.infosets.cards)
    assert torch.allclose(ours.target.cpu(), theirs.target)
    solver.fit_average()
    run = RunFolder.create(tmp_path / "run", config)
    run.save(solver, 0.0)
    again, _ = run.load_solver(pytest.fail, memories=True)
    assert again.game.device == "cuda"
    assert exploitability(again.average_policy()).nash_conv < 900
