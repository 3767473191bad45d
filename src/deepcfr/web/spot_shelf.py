"""The solved spots of a server, and the one that it is solving."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from deepcfr.errors import CheckpointError, ConfigError, DeepCFRError
from deepcfr.files import cannot_write, write_atomically
from deepcfr.search.spot_solver import SpotSolver
from deepcfr.web.schema import SpotFacts, SpotState

MOST_SPOTS = 200  # in memory
_LARGEST = 100_000_000  # most bytes of a file that is read
_NAME_LENGTH = 60


@dataclass
class Job:
    """A spot that is being solved, or that could not be."""

    size: str  # in words
    gap: float  # the one to stop at, in thousandths of a big blind
    iterations: int  # the most
    done: int = 0
    now: float | None = None  # the gap so far
    problem: str = ""
    stopped: bool = False


class SpotShelf:
    """Solved spots by name. Those of `folder` are read at the start, and new ones are written there.

    Without a folder they are gone with the server. Raises CheckpointError for other files than those of `deepcfr spot`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.spots: dict[str, SpotFacts] = {}
        self.jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        for path in sorted(folder.glob("*.json")):
            self.spots[self.free_name(path.stem)] = read_spot(path)

    def free_name(self, wanted: str) -> str:
        """A name without characters that are special in addresses, with a number if it is taken."""
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted).strip("-")[:_NAME_LENGTH] or "spot"
        name, number = plain, 2
        while name in self.spots or name in self.jobs:
            name, number = f"{plain}-{number}", number + 1
        return name

    def start(self, wanted: str, solver: SpotSolver, gap: float, iterations: int) -> str:
        """Solve a spot in the background and return its name. Raises ConfigError if there is another one, or too many."""
        with self._lock:
            for name, job in self.jobs.items():
                if not job.problem:
                    raise ConfigError(f"The spot '{name}' is being solved: wait for it, or stop it.")
            if len(self.spots) >= MOST_SPOTS:
                raise ConfigError(f"There are {MOST_SPOTS} spots here, which is the most.")
            name = self.free_name(wanted)
            self.jobs[name] = Job(solver.describe(), gap, iterations)
        threading.Thread(target=self._solve, args=(name, solver), daemon=True).start()
        return name

    def stop(self, name: str) -> None:
        """Stop solving a spot, if it is being solved, and keep what there is."""
        if job := self.jobs.get(name):
            job.stopped = True

    def state(self, name: str) -> SpotState:
        """How far a spot is."""
        with self._lock:
            facts, job = self.spots.get(name), self.jobs.get(name)
        if facts:
            return SpotState(name=name, solved=True, iterations=facts.iterations, gap_mbb=facts.gap_mbb)
        assert job is not None
        return SpotState(name=name, solved=False, iterations=job.done, gap_mbb=job.now, problem=job.problem)

    def _solve(self, name: str, solver: SpotSolver) -> None:
        job = self.jobs[name]

        def progress(done: int, gap: float) -> bool:
            job.done, job.now = done, gap
            return job.stopped

        try:
            facts = SpotFacts.model_validate(solver.solve(job.gap, job.iterations, progress).facts())
            if self.folder:
                write_atomically(self.folder / f"{name}.json", facts.model_dump_json().encode())
        except (DeepCFRError, MemoryError) as error:
            job.problem = " ".join(error.problems) if isinstance(error, DeepCFRError) else "There is too little memory."
            return
        with self._lock:
            self.spots[name] = facts
            del self.jobs[name]


def read_spot(path: Path) -> SpotFacts:
    """The spot in a file of `deepcfr spot --out`. Raises CheckpointError for another file."""
    try:
        if path.stat().st_size > _LARGEST:
            raise CheckpointError(f"'{path}' is larger than {_LARGEST // 1_000_000} MB, which no spot is.")
        return SpotFacts.model_validate_json(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CheckpointError(f"'{path}' is not a file of deepcfr spot --out: {where}: {first['msg']}.") from error
