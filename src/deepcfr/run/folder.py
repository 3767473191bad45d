"""A run on disk: configuration, game, metrics, environment and checkpoints in one folder; and small copies of runs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from deepcfr.buckets.buckets import Abstraction, load_abstraction
from deepcfr.config import (
    PolicyName,
    RunConfig,
    config_to_toml,
    load_config,
    settings_by_name,
    signed_toml,
    validate_config,
)
from deepcfr.core.errors import CheckpointError, ConfigError, NoPolicy, require_least
from deepcfr.core.files import json_bytes, read_json, signed_json, write_atomically, writing
from deepcfr.core.types import Say
from deepcfr.game.base import Game
from deepcfr.game.bet_sizes import BetSizeRules
from deepcfr.game.presets import GameSource, cards_of, load_source
from deepcfr.policy.base import Policy
from deepcfr.run.build import build_solver, make_game
from deepcfr.run.checkpoint import Checkpoint, newest_checkpoint, restore, save_checkpoint
from deepcfr.run.costs import cost_notes
from deepcfr.run.metrics import environment, read_metrics, truncate_metrics
from deepcfr.run.record import RunRecord, checkpoint_folders, trained_here
from deepcfr.solve.base import Solver
from deepcfr.solve.memories import without_memories

if TYPE_CHECKING:
    from deepcfr.cluster.ray_cluster import RayCluster  # Ray is optional


#: settings that decide the shape and meaning of a solver's state
_DECISIVE = (
    "solver", "network.", "memory.", "solve.", "values.capacity", "advantage.target", "nfsp.replay_capacity",
    "nfsp.reservoir_capacity",
)  # fmt: skip
_READ_BY = {"solve.boards": "cfr-d"}  # settings of one solver only, which others had been saved without


class RunFolder(RunRecord):
    """The folder of one run; `create` starts one, `open` finds one. It builds the run's game once for each device."""

    def __init__(self, path: Path, config: RunConfig, source: GameSource) -> None:
        super().__init__(path, config, source)
        self._games: dict[str, Game] = {}
        self._cost_notes: list[str] | None = None

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> RunFolder:
        """Start a run in a folder that does not hold one yet. Raises CheckpointError, GameError."""
        run = cls.plan(path, config)
        run.begin()
        return run

    @classmethod
    def plan(cls, path: Path, config: RunConfig) -> RunFolder:
        """A run that `begin` will start; nothing is written yet. Raises GameError."""
        return cls(path, config, load_source(config.game))

    def begin(self) -> None:
        """Write the folder of a planned run, under its lock.

        Raises CheckpointError if it holds a run, or other runs below it, and if another process begins or trains one in it.
        """
        if self._abstraction_origin:
            self._load_abstraction(self._abstraction_origin)  # refuses a damaged one before anything is written
        with trained_here(self.path):
            self._require_free()
            self._copy_abstraction()
            write_atomically(self.path / "game.json", signed_json(dataclasses.asdict(self.source)))
            runtime = self.config.runtime
            write_atomically(self.path / "environment.json", json_bytes(environment(runtime.device, runtime.threads)))
            self.keep_config()

    def _require_free(self) -> None:
        if (self.path / "config.toml").exists():
            if not checkpoint_folders(self.path):
                raise CheckpointError(
                    f"'{self.path}' already holds a run, which has no checkpoint: remove it, or choose another folder."
                )
            raise CheckpointError(
                f"'{self.path}' already holds a run: go on with 'deepcfr resume {self.path}', or choose another folder."
            )
        if others := sorted(self.path.glob("*/config.toml")):
            raise CheckpointError(
                f"'{self.path}' holds other runs, such as '{others[0].parent}': choose another folder."
            )

    def withdraw(self) -> None:
        """Remove what `begin` wrote, after a start that failed."""
        if self.abstraction_path:
            shutil.rmtree(self.abstraction_path)
        for name in ("config.toml", "game.json", "environment.json"):
            (self.path / name).unlink()
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def cost_notes(self) -> list[str]:
        """The sentences of `run.costs.cost_notes`, estimated at the first call; raises what it raises."""
        if self._cost_notes is None:
            begun = (self.path / "config.toml").exists()
            abstraction = self.abstraction_path if begun else self._abstraction_origin
            game = partial(self.game, self.config.runtime.device)
            self._cost_notes = cost_notes(self.config, self.source, abstraction, game=game)
        return self._cost_notes

    def extend(self, iterations: int) -> None:
        """Raise the run's number of iterations to `iterations`; `keep_config` makes it last.

        Its iterations so far stay valid. Raises ConfigError for fewer iterations, and for NFSP and policy gradients,
        whose schedules end with the last one.
        """
        config = self.config
        if iterations <= config.iterations:
            raise ConfigError(
                f"'{self.path}' is a run of {config.iterations:,} iterations: --iterations must be more, but is "
                f"{iterations:,}."
            )
        if config.family in ("nfsp", "ppo"):
            raise ConfigError(
                f"A run of {config.method} cannot go on past its last iteration, with which its schedules end."
            )
        self.config = validate_config(replace(config, iterations=iterations))

    def allow(self, minutes: float) -> None:
        """Raise the run's time to `minutes` in all; `keep_config` makes it last.

        Raises ConfigError if the run has used as much.
        """
        done = read_metrics(self.metrics_path)
        used = done[-1]["seconds"] / 60 if done else 0.0
        if minutes <= used:
            raise ConfigError(
                f"'{self.path}' has used {used:.3f} minutes: --minutes, the time in all, must be more, but is {minutes:g}."
            )
        self.config = validate_config(
            replace(self.config, runtime=replace(self.config.runtime, minutes=float(minutes)))
        )

    def keep_config(self) -> None:
        """Write the configuration if it has changed, or has no checksum because a user edited it."""
        path = self.path / "config.toml"
        same = path.is_file() and load_config(path) == self.config
        text = path.read_text(encoding="utf-8") if same else config_to_toml(self.config)
        if not same or signed_toml(text) != text:
            write_atomically(path, signed_toml(text).encode())

    def note_resumption(self, iteration: int) -> None:
        """Add to `environment.json` the environment of a run resumed at `iteration`, if it has changed."""
        path = self.path / "environment.json"
        if not path.is_file():
            return
        recorded, now = read_json(path), environment(self.config.runtime.device, self.config.runtime.threads)
        last = {**recorded, **(recorded.get("resumed") or [{}])[-1]}
        if any(last.get(name) != value for name, value in now.items()):
            resumed = [*recorded.get("resumed", []), {"iteration": iteration, **now}]
            write_atomically(path, json_bytes(recorded | {"resumed": resumed}))

    @property
    def abstraction_path(self) -> Path | None:
        """The run's own copy of its abstraction; None for runs without one."""
        return self.path / "abstraction" if self._abstraction_origin else None

    @property
    def _abstraction_origin(self) -> Path | None:
        """The folder of the abstraction that the configuration names."""
        return self.config.solve.abstraction_folder if self.config.tabular else None

    def _copy_abstraction(self) -> None:
        """Copy the abstraction into the run's folder, so that the run does not depend on another folder."""
        origin, target = self._abstraction_origin, self.abstraction_path
        if origin is None or target is None:
            return
        try:
            shutil.copytree(origin, target, dirs_exist_ok=True)  # an earlier start may have been cut off here
        except (OSError, shutil.Error) as error:
            raise CheckpointError(f"'{target}' cannot be written: {error}.") from error

    def _load_abstraction(self, path: Path) -> Abstraction:
        # with bet sizes, buckets may be those of any game with the same cards: they were made without a look at the betting
        return load_abstraction(path, cards_of(self.source), any_betting=isinstance(self.source, BetSizeRules))

    @property
    def fingerprint(self) -> str:
        """A hash that a checkpoint must have: of the game and the settings that decide the state's shape and meaning."""
        named = settings_by_name(self.config)
        decisive = {
            name: value
            for name, value in named.items()
            if name.startswith(_DECISIVE) and _READ_BY.get(name, self.config.solver) == self.config.solver
        }
        return hashlib.blake2b(
            json.dumps([dataclasses.asdict(self.source), decisive]).encode(), digest_size=16
        ).hexdigest()

    def game(self, device: str = "cpu") -> Game:
        """The run's game, with cards as its networks see them."""
        if device not in self._games:
            self._games[device] = make_game(self.source, self.config, device)
        return self._games[device]

    def checkpoint(self, warn: Say) -> Checkpoint | None:
        """The newest undamaged checkpoint; None before the first one."""
        return newest_checkpoint(self.path, self.fingerprint, warn)

    def load_solver(self, warn: Say, *, memories: bool, cluster: RayCluster | None = None) -> tuple[Solver, float]:
        """The solver in the state of the newest undamaged checkpoint, or a new one, and its seconds so far.

        With a `cluster` its traversals run there. Without `memories` it can play but not train, and is on the CPU whatever
        it was trained on.
        """
        checkpoint = self.checkpoint(warn)
        config = self.config
        if not memories:
            config = without_memories(config)
        path = self.abstraction_path
        abstraction = self._load_abstraction(path) if path else None
        device, outside = config.runtime.device if memories else "cpu", None
        game = self.game(device)
        if cluster:
            if config.solver != "deep-cfr":
                raise ConfigError(f"--ray is for Deep CFR, but '{self.path}' is a run of {config.method}.")
            outside = cluster.traversals(self.source, config)
        solver = build_solver(game, config, abstraction, outside)
        if checkpoint is None:
            return solver, 0.0
        try:
            restore(solver, checkpoint, memories=memories)
        except BaseException:
            solver.close()  # or its processes elsewhere would stay
            raise
        return solver, checkpoint.seconds

    def save(self, solver: Solver, seconds: float) -> Path:
        """Write a checkpoint."""
        return save_checkpoint(self.path, solver, self.fingerprint, seconds)

    def load_policy(self, which: str, warn: Say) -> tuple[Policy, Solver]:
        """A strategy of the run, and the solver that it comes from.

        That is its `average`, its `current` one, the `sd-cfr` average, or its `own`: the one of these
        that `evaluation.policy` names. Raises ConfigError for another name, and CheckpointError if the run has no such
        policy yet.
        """
        if which not in get_args(PolicyName):
            raise ConfigError(f"A policy must be one of {', '.join(get_args(PolicyName))}, but is {which!r}.")
        which = self.config.evaluation.policy if which == "own" else which
        # a tabular solver's current strategy is in its regrets, which only a whole checkpoint holds
        whole = which == "current" and self.config.tabular
        if whole and not self.keeps_memories():
            raise CheckpointError(f"'{self.path}' was exported without its regrets, so it has no current strategy.")
        solver, _ = self.load_solver(warn, memories=whole)
        if solver.iteration == 0:
            raise CheckpointError(f"'{self.path}' has no checkpoint yet, so there is no policy to load.")
        return self.played(solver, which), solver

    def played(self, solver: Solver, which: str) -> Policy:
        """The policy of a name; raises CheckpointError if there is none (yet)."""
        try:
            return solver.policy(which)
        except NoPolicy as error:
            raise CheckpointError(f"'{self.path}' {str(error).replace('{run}', str(self.path))}") from error


def export(run: RunFolder, target: Path, warn: Say, keep_networks: int = 1) -> None:
    """Copy a run to the folder `target` without its memories. The copy is small; it can play and be measured, not resumed.

    The weights of Deep CFR's networks have 16 bits in it. Of the iterates for SD-CFR every `keep_networks`-th stays,
    counted back from the newest, or none if that is 0. Raises ConfigError for a number below 0, and CheckpointError for a
    folder that is in use and for a run without a policy to play.
    """
    require_least(0, {"--keep-networks": keep_networks})
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        what = "is not empty" if target.is_dir() else "is a file"
        raise CheckpointError(f"'{target}' {what}: choose another folder.")
    solver, seconds = run.load_solver(warn, memories=False)
    if solver.iteration == 0:
        raise CheckpointError(f"'{run.path}' has no checkpoint yet, so there is nothing to export.")
    solver.thin(keep_networks)
    if not any(_has_policy(solver, which) for which in ("average", "sd-cfr")):
        run.played(solver, "average")  # says what is missing
    beside = target.absolute().with_name(f"{target.absolute().name}.{os.getpid()}.tmp")
    try:
        with writing(target):
            _write_copy(run, beside, solver, seconds)
            if target.exists():  # and is empty; only some systems replace it
                target.rmdir()
            os.replace(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write_copy(run: RunFolder, target: Path, solver: Solver, seconds: float) -> None:
    """Write the copy; `config.toml`, which makes a folder a run, comes last."""
    save_checkpoint(target, solver, run.fingerprint, seconds, keep=1, memories=False)
    if run.abstraction_path:
        shutil.copytree(run.abstraction_path, target / "abstraction")
    for name in ("metrics.jsonl", "game.json", "environment.json", "config.toml"):
        if (run.path / name).is_file():
            write_atomically(target / name, (run.path / name).read_bytes())
            if name == "metrics.jsonl":
                truncate_metrics(target / name, solver.iteration)  # a run in training has later lines


def _has_policy(solver: Solver, which: str) -> bool:
    try:
        solver.policy(which)
    except NoPolicy:
        return False
    return True
