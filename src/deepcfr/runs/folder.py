"""A run on disk: configuration, game, metrics, environment and checkpoints in one folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deepcfr.config import RunConfig, config_to_toml, load_config
from deepcfr.errors import CheckpointError, GameError
from deepcfr.files import json_bytes, read_json, write_atomically
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import load_rules
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.runs.checkpoint import Checkpoint, newest_checkpoint, restore, save_checkpoint
from deepcfr.runs.metrics import environment
from deepcfr.solvers.deep_cfr import DeepCFR

Warn = Callable[[str], None]


class RunFolder:
    """The folder of one run; `create` starts one, `open` finds one."""

    def __init__(self, path: Path, config: RunConfig, rules: PokerRules) -> None:
        self.path, self.config, self.rules = path, config, rules

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> RunFolder:
        """Start a run in a folder that does not hold one yet. Raises CheckpointError, GameError."""
        if (path / "config.toml").exists():
            raise CheckpointError(
                f"'{path}' already holds a run: go on with 'deepcfr resume {path}', or choose another folder."
            )
        run = cls(path, config, load_rules(config.game))
        write_atomically(path / "game.json", json_bytes(dataclasses.asdict(run.rules)))
        write_atomically(
            path / "environment.json", json_bytes(environment(config.runtime.device, config.runtime.threads))
        )
        write_atomically(path / "config.toml", config_to_toml(config).encode())
        return run

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Find a run. Raises CheckpointError if the folder holds none or is damaged, ConfigError, GameError."""
        if not (path / "config.toml").is_file():
            raise CheckpointError(f"'{path}' does not hold a run: there is no config.toml in it.")
        config = load_config(path / "config.toml")
        stored: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in read_json(path / "game.json").items()
        }
        try:
            rules = PokerRules(**stored)
        except (TypeError, GameError) as error:
            raise CheckpointError(f"'{path / 'game.json'}' is damaged: {error}.") from error
        return cls(path, config, rules)

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def fingerprint(self) -> str:
        """What a checkpoint must agree with: the rules, the network and the memories of the run."""
        parts: list[dict[str, Any]] = [dataclasses.asdict(self.rules)]
        parts += [dataclasses.asdict(self.config.network), dataclasses.asdict(self.config.memory)]
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()

    def game(self, device: str = "cpu") -> PokerGame:
        """The run's game, with cards as its networks see them."""
        return PokerGame(self.rules, self.config.network.suits, device)

    def checkpoint(self, warn: Warn) -> Checkpoint | None:
        """The newest good checkpoint; see `newest_checkpoint`."""
        return newest_checkpoint(self.path, self.fingerprint, warn)

    def load_solver(self, warn: Warn, *, memories: bool) -> tuple[DeepCFR, float]:
        """The solver as the newest good checkpoint has it (or new), and the seconds it has run so far.

        Without `memories` it is for use, not for training, and lives on the CPU whatever it was trained on.
        """
        checkpoint = self.checkpoint(warn)
        config = self.config
        if not memories:  # nothing will be collected, so nothing large is allocated
            small = dataclasses.replace(config.memory, advantage_capacity=1, strategy_capacity=1)
            config = dataclasses.replace(config, memory=small)
        solver = DeepCFR(self.game(config.runtime.device if memories else "cpu"), config)
        if checkpoint is None:
            return solver, 0.0
        restore(solver, checkpoint, memories=memories)
        return solver, checkpoint.seconds

    def save(self, solver: DeepCFR, seconds: float) -> Path:
        """Write a checkpoint."""
        return save_checkpoint(self.path, solver, self.fingerprint, seconds, self.config.runtime.keep)

    def load_policy(self, which: str, warn: Warn) -> tuple[Policy, DeepCFR]:
        """The run's `average` strategy (its network) or its `current` one, and the solver it comes from.

        Raises CheckpointError if the run has no such policy yet.
        """
        solver, _ = self.load_solver(warn, memories=False)
        if solver.iteration == 0:
            raise CheckpointError(f"'{self.path}' has no checkpoint yet, so there is no policy to load.")
        if which == "current":
            return solver.current_policy(), solver
        if solver.average_network is None:
            raise CheckpointError(
                f"'{self.path}' has no average-strategy network yet: 'deepcfr resume {self.path}' fits one at its end, "
                "and --policy current uses the newest iteration's strategy."
            )
        return solver.average_policy(), solver

    def export(self, target: Path, warn: Warn) -> None:
        """Copy the run without its memories: small, playable, measurable, but not resumable."""
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            what = "is not empty" if target.is_dir() else "is a file"
            raise CheckpointError(f"'{target}' {what}: choose another folder.")
        solver, seconds = self.load_solver(warn, memories=False)
        if solver.iteration == 0:
            raise CheckpointError(f"'{self.path}' has no checkpoint yet, so there is nothing to export.")
        for name in ("config.toml", "game.json", "environment.json", "metrics.jsonl"):
            if (self.path / name).is_file():
                write_atomically(target / name, (self.path / name).read_bytes())
        save_checkpoint(target, solver, self.fingerprint, seconds, keep=1, memories=False)
