"""The solved spots of a server, and the one that it is solving."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from pydantic import ValidationError

from deepcfr.errors import CheckpointError, ConfigError, DeepCFRError
from deepcfr.files import cannot_write, write_atomically
from deepcfr.search.spot_solver import SpotSolver
from deepcfr.web.schema import SpotFacts, SpotState

MOST_SPOTS = 50  # in memory
MOST_ROWS = 400_000  # strategies of single hands in a spot
_LARGEST = 100_000_000  # most bytes of a file that is read
_NAME_LENGTH = 60
_SUFFIX = ".json"


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

    def state(self, name: str) -> SpotState:
        """Its progress."""
        return SpotState(name=name, solved=False, iterations=self.done, gap_mbb=self.now, problem=self.problem)


class SpotShelf:
    """Solved spots by name. Those of `folder` are read at the start, and new ones are written there.

    Without a folder they are gone with the server. `warn` gets a sentence for every file that is not one of `deepcfr spot`.
    Raises CheckpointError if there cannot be such a folder.
    """

    def __init__(self, folder: Path | None = None, warn: Callable[[str], None] = print) -> None:
        self.folder = folder
        self._spots: dict[str, SpotFacts] = {}
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            try:
                self._spots[self._unused(path.stem)] = read_spot(path)
            except CheckpointError as error:
                warn(str(error))

    def everything(self) -> tuple[dict[str, SpotFacts], list[SpotState]]:
        """All solved spots by name, and how far the others are."""
        with self._lock:
            return dict(self._spots), [job.state(name) for name, job in self._jobs.items()]

    def find(self, name: str) -> SpotFacts | Job | None:
        """The solved spot of a name, or its job."""
        with self._lock:
            return self._spots.get(name) or self._jobs.get(name)

    def require_room(self) -> None:
        """Raise ConfigError if a spot is being solved, or there are too many."""
        with self._lock:
            self._require_room()

    def _require_room(self) -> None:
        for name, job in self._jobs.items():
            if not job.problem:
                raise ConfigError(f"The spot '{name}' is being solved: wait for it, or stop it.")
        if len(self._spots) >= MOST_SPOTS:
            raise ConfigError(f"There are {MOST_SPOTS} spots here, which is the most.")

    def _unused(self, wanted: str, suffix: str = "") -> str:
        """A name without characters that are special in addresses, with a number if a spot has it.

        With a `suffix` it is also none of a file in the folder with this suffix.
        """
        plain = name = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted).strip("-")[:_NAME_LENGTH] or "spot"
        number = 2
        while name in self._spots or name in self._jobs or self._is_file(name, suffix):
            name, number = f"{plain}-{number}", number + 1
        return name

    def _is_file(self, name: str, suffix: str) -> bool:
        return bool(suffix and self.folder and (self.folder / (name + suffix)).exists())

    def start(self, wanted: str, solver: SpotSolver, gap: float, iterations: int) -> str:
        """Solve a spot in the background and return its name.

        Raises ConfigError if another one is being solved, or there are too many, or the spot has too many decisions.
        """
        if solver.rows > MOST_ROWS:
            raise ConfigError(
                f"The spot has {solver.rows:,} strategies of single hands on its board, and a page shows at most "
                f"{MOST_ROWS:,}: give fewer sizes, or use deepcfr spot --out."
            )
        with self._lock:
            self._require_room()
            name = self._unused(wanted, _SUFFIX)
            self._jobs[name] = Job(solver.describe(), gap, iterations)
        threading.Thread(target=self._solve, args=(name, solver), daemon=True).start()
        return name

    def stop(self, name: str) -> None:
        """Stop solving a spot, if it is being solved, and keep what there is."""
        if job := self._jobs.get(name):
            job.stopped = True

    def _solve(self, name: str, solver: SpotSolver) -> None:
        job = self._jobs[name]

        def progress(done: int, gap: float) -> bool:
            job.done, job.now = done, gap if isfinite(gap) else None
            return job.stopped

        try:
            facts = SpotFacts.model_validate(solver.solve(job.gap, job.iterations, progress).facts())
            if self.folder:
                write_atomically(self.folder / f"{name}{_SUFFIX}", facts.model_dump_json().encode())
            with self._lock:
                self._spots[name] = facts
                del self._jobs[name]
        except (DeepCFRError, MemoryError) as error:
            job.problem = " ".join(error.problems) if isinstance(error, DeepCFRError) else "There is too little memory."
        finally:  # a mistake of ours must not keep others from solving
            if name in self._jobs and not job.problem:
                job.problem = "Solving failed, and the output of the server says why."


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
