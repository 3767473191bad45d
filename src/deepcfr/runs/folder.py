"""A run on disk: configuration, game, metrics, environment and checkpoints in one folder."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from deepcfr.abstraction.buckets import Abstraction
from deepcfr.abstraction.files import load_abstraction
from deepcfr.config import AnyConfig, RunConfig, SolveConfig, config_to_toml, load_any_config, validate_config
from deepcfr.errors import CheckpointError, ConfigError, GameError
from deepcfr.files import json_bytes, read_json, write_atomically
from deepcfr.games.ladder import LadderRules, ladder_rules
from deepcfr.games.ladder_betting import LadderGame
from deepcfr.games.openspiel import OpenSpielGame
from deepcfr.games.poker import PokerGame
from deepcfr.games.presets import NOT_LISTED, GameSource, OpenSpielSource, build_game, cards_of, load_source
from deepcfr.games.rules import PokerRules
from deepcfr.policies.base import Policy
from deepcfr.policies.iterates import mean_iterate, thin
from deepcfr.policies.ladder import LadderTable
from deepcfr.runs.checkpoint import Checkpoint, newest_checkpoint, restore, save_checkpoint
from deepcfr.runs.metrics import environment
from deepcfr.solvers.build import Solver, build_ladder_solver, build_solver, close_solver
from deepcfr.solvers.collector import Collecting
from deepcfr.solvers.deep_cfr import DeepCFR
from deepcfr.solvers.ladder import LadderMCCFR
from deepcfr.solvers.sampled import Merging, SampledSolver

Warn = Callable[[str], None]
# settings younger than checkpoints, with the values that are left out of fingerprints so that old ones still fit
_YOUNG_RULES = {"betting": "limit", "stack": 0, "limp": True}
_YOUNG_NETWORK = {"strength": False, "node_embedding": False, "runouts": False}
_YOUNG_MEMORY = {"shards": 1, "files": ""}
_YOUNG_SOLVE = {
    "exploration_start": 0.0,
    "exploration_slope": -2.5e-7,
    "exploration_end": 40_000,
    "reward_shape": "y1",
    "reward_on": "payoff",
    "initial": "uniform",
    "initial_weight": 1.0,
    "parts": 1,
    "epoch": 1,
}


class Cluster(Protocol):
    """Where a run's traversals run, if not in this process. Methods raise ClusterError if it cannot carry them."""

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine, and has its memory only."""

    def connect(self) -> None:
        """Join it, and see that the workers fit."""

    def collecting(self, source: GameSource) -> Collecting:
        """What makes the collector of a run of Deep CFR of the game."""

    def merging(
        self, solver: SampledSolver, source: GameSource, config: SolveConfig, abstraction: Abstraction | None
    ) -> Merging:
        """What runs the parts of a run of Monte Carlo CFR."""


class RunFolder:
    """The folder of one run; `create` starts one, `open` finds one."""

    def __init__(self, path: Path, config: AnyConfig, source: GameSource) -> None:
        self.path, self.config, self.source = path, config, source

    @classmethod
    def create(cls, path: Path, config: AnyConfig) -> RunFolder:
        """Start a run in a folder that does not hold one yet. Raises CheckpointError, GameError."""
        if (path / "config.toml").exists():
            raise CheckpointError(
                f"'{path}' already holds a run: go on with 'deepcfr resume {path}', or choose another folder."
            )
        run = cls(path, config, load_source(config.game))
        run._copy_abstraction()
        write_atomically(path / "game.json", json_bytes(dataclasses.asdict(run.source)))
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
        config = load_any_config(path / "config.toml")
        stored: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in read_json(path / "game.json").items()
        }
        try:
            source = _source(stored, path / "game.json")
        except (TypeError, GameError) as error:
            raise CheckpointError(f"'{path / 'game.json'}' is damaged: {error}.") from error
        return cls(path, config, source)

    def extend(self, iterations: int) -> None:
        """Let the run go on to `iterations`, more than it was to have; what it has done so far is what it would have done.

        Raises ConfigError for fewer iterations, and for NFSP, whose schedules end with the last one.
        """
        config = self.config
        if iterations <= config.iterations:
            raise ConfigError(
                f"'{self.path}' is a run of {config.iterations:,} iterations: --iterations must be more, but is "
                f"{iterations:,}."
            )
        if isinstance(config, SolveConfig):
            extended: AnyConfig = replace(config, solve=replace(config.solve, iterations=iterations))
        elif config.solver == "deep-cfr":
            extended = replace(config, cfr=replace(config.cfr, iterations=iterations))
        else:
            raise ConfigError("A run of NFSP cannot go on past its last iteration, with which its schedules end.")
        self.config = validate_config(extended)
        write_atomically(self.path / "config.toml", config_to_toml(extended).encode())

    def allow(self, minutes: float) -> None:
        """Let the run go on until it has had so many minutes in all."""
        limited = replace(self.config, runtime=replace(self.config.runtime, minutes=float(minutes)))
        self.config = validate_config(limited)
        write_atomically(self.path / "config.toml", config_to_toml(limited).encode())

    def note_resumption(self, iteration: int) -> None:
        """Add to `environment.json` what the run goes on with from `iteration`, if that is not what it had so far."""
        path = self.path / "environment.json"
        if not path.is_file():
            return
        recorded, now = read_json(path), environment(self.config.runtime.device, self.config.runtime.threads)
        last = {**recorded, **(recorded.get("resumed") or [{}])[-1]}
        if any(last.get(name) != value for name, value in now.items()):
            resumed = [*recorded.get("resumed", []), {"iteration": iteration, **now}]
            write_atomically(path, json_bytes(recorded | {"resumed": resumed}))

    def note_loss(self, iteration: int, reached: int, reason: str) -> None:
        """Add to `environment.json` that a worker was lost, and which iterations are done again because of it."""
        path = self.path / "environment.json"
        if not path.is_file():
            return
        recorded = read_json(path)
        loss = {"goes_on_from": iteration, "done_again": reached - iteration, "reason": reason}
        write_atomically(path, json_bytes(recorded | {"losses": [*recorded.get("losses", []), loss]}))

    @property
    def abstraction_path(self) -> Path | None:
        """The run's own copy of its abstraction; None for runs that take none."""
        named = isinstance(self.config, SolveConfig) and self.config.abstraction_folder
        return self.path / "abstraction" if named else None

    def _copy_abstraction(self) -> None:
        """Keep the abstraction in the run's folder, so that the run does not depend on another one."""
        origin = self.config.abstraction_folder if isinstance(self.config, SolveConfig) else None
        target = self.abstraction_path
        if origin is None or target is None:
            return
        self._load_abstraction(origin)
        try:
            shutil.copytree(origin, target, dirs_exist_ok=True)  # an earlier start may have been cut off here
        except (OSError, shutil.Error) as error:
            raise CheckpointError(f"'{target}' cannot be written: {error}.") from error

    def _load_abstraction(self, path: Path) -> Abstraction:
        # a ladder's buckets may be those of any game with its cards: they were made without a look at the betting
        return load_abstraction(path, cards_of(self.source), any_betting=isinstance(self.source, LadderRules))

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def fingerprint(self) -> str:
        """What a checkpoint must agree with: the game, and what decides the shape and the meaning of the state."""
        parts: list[dict[str, Any]] = [_without(dataclasses.asdict(self.source), _YOUNG_RULES)]
        if isinstance(self.config, RunConfig):
            parts += [_without(dataclasses.asdict(self.config.network), _YOUNG_NETWORK)]
            parts += [_without(dataclasses.asdict(self.config.memory), _YOUNG_MEMORY)]
            if self.config.solver == "nfsp":
                own = self.config.nfsp
                parts += [{"nfsp": [own.replay_capacity, own.reservoir_capacity, own.optimizer]}]
        else:
            solve = _without(dataclasses.asdict(self.config.solve), _YOUNG_SOLVE)
            parts += [{name: value for name, value in solve.items() if name != "iterations"}]
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()

    def game(self, device: str = "cpu") -> PokerGame | OpenSpielGame:
        """The run's game, with cards as its networks see them."""
        suits = self.config.network.suits if isinstance(self.config, RunConfig) else "canonical"
        return build_game(self.source, suits, device)

    def checkpoint(self, warn: Warn) -> Checkpoint | None:
        """The newest good checkpoint; see `newest_checkpoint`."""
        return newest_checkpoint(self.path, self.fingerprint, warn)

    def load_solver(self, warn: Warn, *, memories: bool, cluster: Cluster | None = None) -> tuple[Solver, float]:
        """The solver as the newest good checkpoint has it (or new), and the seconds it has run so far.

        With a `cluster` its traversals run there, and the memories of Deep CFR are there, too.

        Without `memories` it is for use, not for training, and lives on the CPU whatever it was trained on.
        """
        checkpoint = self.checkpoint(warn)
        config = self.config
        if not memories and isinstance(config, RunConfig):  # nothing will be collected, so nothing large is allocated
            small = dataclasses.replace(config.memory, advantage_capacity=1, strategy_capacity=1, shards=1, files="")
            least = dataclasses.replace(config.nfsp, replay_capacity=1, reservoir_capacity=1)
            config = dataclasses.replace(config, memory=small, nfsp=least)
        path = self.abstraction_path
        abstraction = self._load_abstraction(path) if path else None
        if isinstance(self.source, LadderRules):
            solver: Solver = build_ladder_solver(LadderGame(self.source), config, abstraction)
        else:
            game = self.game(config.runtime.device if memories else "cpu")
            solver = build_solver(game, config, abstraction, cluster.collecting(self.source) if cluster else None)
        if cluster and isinstance(solver, SampledSolver) and isinstance(config, SolveConfig):
            solver.merging = cluster.merging(solver, self.source, config, abstraction)
        if checkpoint is None:
            return solver, 0.0
        try:
            restore(solver, checkpoint, memories=memories)
        except BaseException:
            close_solver(solver)  # or its processes elsewhere would stay
            raise
        return solver, checkpoint.seconds

    def save(self, solver: Solver, seconds: float) -> Path:
        """Write a checkpoint."""
        return save_checkpoint(self.path, solver, self.fingerprint, seconds, self.config.runtime.keep)

    def load_policy(self, which: str, warn: Warn) -> tuple[Policy, Solver]:
        """A strategy of the run, and the solver that it comes from.

        That is its `average` (or `network`), its `current` one, the `sd-cfr` average, the `smoothed` one, or its `own`:
        the one of these that `evaluation.policy` names. Raises CheckpointError if the run has no such policy yet, and
        TrainingError for a smoothed one of networks that were fitted from scratch.
        """
        which = self.config.evaluation.policy if which == "own" else which
        solver = self._trained_solver(which, warn)
        if isinstance(solver, LadderMCCFR):
            raise GameError(NOT_LISTED.format(self.source.name))
        if which == "current":
            return solver.current_policy(), solver
        if which in ("sd-cfr", "smoothed"):
            kept = self._with_iterates(solver, which)
            return kept.sd_cfr_policy() if which == "sd-cfr" else kept.smoothed_policy(), solver
        if isinstance(solver, DeepCFR) and solver.average_network is None:
            raise CheckpointError(
                f"'{self.path}' has no average-strategy network yet: 'deepcfr resume {self.path}' fits one at its end, "
                "and --policy current uses the newest iteration's strategy."
            )
        return solver.average_policy(), solver

    def load_ladder_policy(self, which: str, warn: Warn) -> tuple[LadderTable, Solver]:
        """The `average` or the `current` strategy of a run of a raise-ladder game, and the solver it comes from.

        Raises CheckpointError if the run has no such policy, and GameError if its game is of another kind.
        """
        solver = self._trained_solver(which, warn)
        if not isinstance(solver, LadderMCCFR):
            raise GameError(f"'{self.path}' is no run of a raise-ladder game, but of {self.source.name}.")
        if which in ("sd-cfr", "smoothed"):
            raise CheckpointError(f"'{self.path}' is no run of Deep CFR: --policy average is what this run has.")
        return solver.current_policy() if which == "current" else solver.average_policy(), solver

    def _trained_solver(self, which: str, warn: Warn) -> Solver:
        """The solver with what one of its policies needs."""
        # a tabular solver's current strategy is in its regrets, which only a whole checkpoint holds
        whole = which == "current" and isinstance(self.config, SolveConfig)
        checkpoint = self.checkpoint(warn) if whole else None
        if checkpoint and not checkpoint.state["memories"]:
            raise CheckpointError(f"'{self.path}' was exported without its regrets, so it has no current strategy.")
        solver, _ = self.load_solver(warn, memories=whole)
        if solver.iteration == 0:
            raise CheckpointError(f"'{self.path}' has no checkpoint yet, so there is no policy to load.")
        return solver

    def _with_iterates(self, solver: Solver, which: str) -> DeepCFR:
        name = {"sd-cfr": "the average of SD-CFR", "smoothed": "a smoothed policy"}[which]
        if not isinstance(solver, DeepCFR):
            raise CheckpointError(
                f"'{self.path}' is no run of Deep CFR, and {name} is one of its networks: "
                "--policy average is what this run has."
            )
        if not solver.iterates and not (which == "smoothed" and solver.smoothed):
            raise CheckpointError(
                f"'{self.path}' has kept no networks for {name}: runs keep them every cfr.keep_networks "
                "iterations, and exports as many as asked for."
            )
        return solver

    def export(self, target: Path, warn: Warn, keep_networks: int = 1) -> None:
        """Copy the run without its memories: small, playable, measurable, but not resumable.

        Of the iterates for SD-CFR every `keep_networks`-th stays, counted back from the newest, or none if that is 0; of
        the smoothed policy its networks, if it is the run's own.
        """
        if keep_networks < 0:
            raise ConfigError(f"--keep-networks must be at least 0, but is {keep_networks}.")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            what = "is not empty" if target.is_dir() else "is a file"
            raise CheckpointError(f"'{target}' {what}: choose another folder.")
        solver, seconds = self.load_solver(warn, memories=False)
        if solver.iteration == 0:
            raise CheckpointError(f"'{self.path}' has no checkpoint yet, so there is nothing to export.")
        if isinstance(solver, DeepCFR):
            if solver.iterates and solver.config.evaluation.policy == "smoothed":
                solver.smoothed = mean_iterate(solver.iterates)
            solver.iterates = thin(solver.iterates, keep_networks)
        for name in ("config.toml", "game.json", "environment.json", "metrics.jsonl"):
            if (self.path / name).is_file():
                write_atomically(target / name, (self.path / name).read_bytes())
        if self.abstraction_path:
            shutil.copytree(self.abstraction_path, target / "abstraction")
        save_checkpoint(target, solver, self.fingerprint, seconds, keep=1, memories=False)


def _source(stored: dict[str, Any], path: Path) -> GameSource:
    """What `game.json` holds; raises what the sources raise."""
    if "ladder" in stored:
        return ladder_rules(stored, path)
    return OpenSpielSource(**stored) if "openspiel" in stored else PokerRules(**stored)


def _without(settings: dict[str, Any], young: dict[str, Any]) -> dict[str, Any]:
    """The settings but those that have the value from before they existed."""
    return {name: value for name, value in settings.items() if name not in young or value != young[name]}
