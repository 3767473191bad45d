"""The solved spots of a server, the one that it is solving, and those that wait."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from pydantic import ValidationError

from deepcfr.core.errors import CheckpointError, ConfigError, DeepCFRError, GameError
from deepcfr.core.files import write_atomically, writing
from deepcfr.search.spot_file import COMPACT, read_solution, write_solution
from deepcfr.search.spot_solution import Solution
from deepcfr.search.spot_solver import SpotSolver
from deepcfr.web.schema import SpotFacts, SpotState

MOST_SPOTS = 50  # in memory
MOST_JOBS = 10  # that wait or are being solved
MOST_ROWS = 400_000  # strategies of single hands in a spot
_LARGEST = 100_000_000  # most bytes of a file that is read
_NAME_LENGTH = 60
_SUFFIX = ".json"
_MOST_OPEN = 4  # solutions with all streets


@dataclass
class SolveJob:
    """A spot that waits or is being solved, or that could not be."""

    solver: SpotSolver
    size: str  # in words
    goal: float  # the exploitability to stop at, in percent of the pot
    iterations: int  # the most
    done: int = 0
    now: float | None = None  # the newest exploitability
    measured: int = 0  # the iteration that has it
    began: float | None = None  # on the clock `time.monotonic`; None of a spot that waits
    problem: str = ""
    stopped: bool = False
    paused: float | None = None  # since when, on the same clock
    going: threading.Event = field(default_factory=threading.Event)  # set unless it is paused

    @property
    def waits(self) -> bool:
        """Whether it is not being solved yet."""
        return self.began is None and not self.problem

    def progress(self, done: int, now: float) -> bool:
        """Note how far it is; whether to stop there."""
        self.done = done
        if isfinite(now) and now != self.now:
            self.now, self.measured = now, done
        while self.paused is not None and not self.stopped:
            self.going.wait()
        return self.stopped

    def state(self, name: str, waits: int = 0) -> SpotState:
        """Its progress, with its place among those that wait."""
        until = time.monotonic() if self.paused is None else self.paused
        seconds = 0.0 if self.began is None else until - self.began
        return SpotState(
            name=name,
            solved=False,
            iterations=self.done,
            exploitability_percent=self.now,
            waits=waits,
            seconds=seconds,
            seconds_left=self._left(seconds),
            stopping=self.stopped,
            paused=self.paused is not None,
            problem=self.problem,
        )

    def _left(self, seconds: float) -> float | None:
        """An estimate of the seconds that are left, if exploitability falls as 1 / t^2; None before it was measured."""
        if self.now is None or not self.done:
            return None
        needed = self.measured * (self.now / self.goal) ** 0.5 if self.goal > 0 else self.iterations
        return max(min(needed, self.iterations) - self.done, 0) * seconds / self.done


class SpotShelf:
    """Solved spots by name. Those of `folder` are read at the start, and new ones are written there.

    Without a folder they are gone with the server. `warn` gets a sentence for every file that is not one of `deepcfr spot`.
    Raises CheckpointError if there cannot be such a folder.
    """

    def __init__(self, folder: Path | None = None, warn: Callable[[str], None] = print) -> None:
        self.folder = folder
        self._spots: dict[str, SpotFacts] = {}
        self._files: dict[str, Path] = {}  # of the spots that have one
        self._streets: dict[str, Path] = {}  # of the spots that have all streets
        self._open: dict[str, Solution] = {}  # the newest last
        self._temporary: tempfile.TemporaryDirectory[str] | None = None  # of streets, without a folder
        self._jobs: dict[str, SolveJob] = {}  # in the order in which they came
        self._lock = threading.RLock()
        if folder is None:
            return
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for path in sorted([*folder.glob(f"*{_SUFFIX}"), *folder.glob(f"*{COMPACT}")]):
            streets = path.with_suffix(COMPACT)
            if path == streets and path.with_suffix(_SUFFIX).exists():
                continue  # beside it
            try:
                spot, name = read_spot(path), self._unused(path.stem)
            except CheckpointError as error:
                warn(str(error))
            else:
                self._spots[name], self._files[name] = spot, path
                if streets.exists():
                    self._streets[name] = streets

    def everything(self) -> tuple[dict[str, SpotFacts], list[SpotState]]:
        """All solved spots by name, and how far the others are."""
        with self._lock:
            return dict(self._spots), [job.state(name, self.place(job)) for name, job in self._jobs.items()]

    def find(self, name: str) -> SpotFacts | SolveJob | None:
        """The solved spot of a name, or its job."""
        with self._lock:
            return self._spots.get(name) or self._jobs.get(name)

    def has_streets(self, name: str) -> bool:
        """Whether a solved spot has all its streets."""
        with self._lock:
            return name in self._streets

    def whole(self, name: str) -> Solution | None:
        """A solved spot with all its streets; None if it has only those of its board.

        Raises CheckpointError for a file that is damaged, or of another solution than the spot of its name.
        """
        with self._lock:
            spot, path = self._spots.get(name), self._streets.get(name)
            if spot is None or path is None:
                return None
            found = self._open.pop(name, None) or read_solution(path)
            if (found.iterations, found.exploitability) != (spot.iterations, spot.exploitability_percent):
                raise CheckpointError(
                    f"'{path}' has the streets of another solution than '{name}{_SUFFIX}': delete one."
                )
            self._open[name] = found
            for other in list(self._open)[:-_MOST_OPEN]:
                del self._open[other]
            return found

    def place(self, job: SolveJob) -> int:
        """The place of a job among those that wait, from 1; 0 if it does not wait."""
        with self._lock:
            waiting = [each for each in self._jobs.values() if each.waits]
            return waiting.index(job) + 1 if job in waiting else 0

    def require_room(self) -> None:
        """Raise ConfigError if there are too many spots, or too many of them wait."""
        with self._lock:
            if sum(not job.problem for job in self._jobs.values()) >= MOST_JOBS:
                raise ConfigError(f"{MOST_JOBS} spots wait or are being solved, which is the most: stop one of them.")
            if len(self._spots) + len(self._jobs) >= MOST_SPOTS:
                raise ConfigError(f"There are {MOST_SPOTS} spots here, which is the most: delete one of them.")

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

    def start(self, wanted: str, solver: SpotSolver, goal: float, iterations: int) -> str:
        """Solve a spot in the background, when those before it are solved, and return its name.

        Raises ConfigError if there are too many spots, and GameError if this one has too many decisions.
        """
        if solver.rows > MOST_ROWS:
            raise GameError(
                f"The spot has {solver.rows:,} strategies of single hands on its board, and a page shows at most "
                f"{MOST_ROWS:,}: give fewer sizes, or use deepcfr spot --out."
            )
        with self._lock:
            self.require_room()
            name = self._unused(wanted, _SUFFIX)
            self._jobs[name] = SolveJob(solver, solver.describe(), goal, iterations)
        self._begin_next()
        return name

    def stop(self, name: str) -> None:
        """Stop solving a spot, if it is being solved, and keep what there is; one that waits is taken away."""
        with self._lock:
            if job := self._jobs.get(name):
                job.stopped = True
                job.going.set()
                if job.waits:
                    del self._jobs[name]

    def pause(self, name: str, paused: bool) -> None:
        """Pause a spot that is being solved, or go on with it; nothing else is solved meanwhile."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None or job.began is None or paused == (job.paused is not None):
                return
            if paused:
                job.going.clear()
                job.paused = time.monotonic()
            else:
                job.began += time.monotonic() - (job.paused or 0.0)
                job.paused = None
                job.going.set()

    def add(self, wanted: str, facts: SpotFacts) -> str:
        """Keep a solved spot, and return its name. Raises ConfigError if there are too many spots."""
        with self._lock:
            self.require_room()
            name = self._unused(wanted, _SUFFIX)
            self._keep(name, facts)
        return name

    def rename(self, name: str, wanted: str) -> str:
        """Give a solved spot another name, with a number if a spot has it, and return it."""
        with self._lock:
            if wanted == name:
                return name
            new = self._unused(wanted, _SUFFIX)
            for files in (self._files, self._streets):
                if path := files.get(name):
                    target = path.with_name(f"{new}{path.suffix}")
                    with writing(path):
                        files[new] = path.rename(target) if path.exists() else target  # one file may be in both
                    del files[name]
            self._open.pop(name, None)
            self._spots[new] = self._spots.pop(name)
        return new

    def delete(self, name: str) -> None:
        """Delete a solved spot and its file, or a spot that could not be solved. Raises ConfigError for another one."""
        with self._lock:
            if name in self._jobs and not self._jobs[name].problem:
                raise ConfigError(f"'{name}' waits or is being solved: stop it first.")
            for files in (self._files, self._streets):
                if path := files.get(name):
                    with writing(path):
                        path.unlink(missing_ok=True)
                    del files[name]
            self._open.pop(name, None)
            self._spots.pop(name, None)
            self._jobs.pop(name, None)

    def _keep(self, name: str, facts: SpotFacts) -> None:
        if self.folder:
            path = self.folder / f"{name}{_SUFFIX}"
            write_atomically(path, facts.model_dump_json().encode())
            self._files[name] = path
        self._spots[name] = facts

    def _keep_streets(self, name: str, solution: Solution) -> None:
        """Write all streets of a solution that has several; a note says if that cannot be."""
        if not solution.tree.ends():
            return
        if self.folder is None:
            self._temporary = self._temporary or tempfile.TemporaryDirectory(prefix="deepcfr-spots-")
        path = (self.folder or Path(self._temporary.name if self._temporary else "")) / f"{name}{COMPACT}"
        try:
            write_solution(path, solution)
        except CheckpointError as error:
            self._spots[name].notes.append(f"Later streets are not kept: {error}")
        else:
            self._streets[name] = path

    def _begin_next(self) -> None:
        """Begin with the first spot that waits, unless one is being solved."""
        with self._lock:
            if any(job.began and not job.problem for job in self._jobs.values()):
                return
            found = next(((name, job) for name, job in self._jobs.items() if job.waits), None)
            if found is None:
                return
            found[1].began = time.monotonic()
        threading.Thread(target=self._solve, args=found, daemon=True).start()

    def _solve(self, name: str, job: SolveJob) -> None:
        try:
            solution = job.solver.solve(job.goal, job.iterations, job.progress)
            facts = SpotFacts.model_validate(solution.facts())
            with self._lock:
                self._keep(name, facts)
                self._keep_streets(name, solution)
                del self._jobs[name]
        except (DeepCFRError, MemoryError) as error:
            job.problem = " ".join(error.problems) if isinstance(error, DeepCFRError) else "There is too little memory."
        finally:  # a mistake of ours must not keep others from solving
            if name in self._jobs and not job.problem:
                job.problem = "Solving failed, and the output of the server says why."
            self._begin_next()


def read_spot(path: Path) -> SpotFacts:
    """The spot in a file of `deepcfr spot --out`, .json or .npz. Raises CheckpointError for another file."""
    try:
        if path.suffix != COMPACT and path.stat().st_size > _LARGEST:
            raise CheckpointError(f"'{path}' is larger than {_LARGEST // 1_000_000} MB, which no spot is.")
        if path.suffix == COMPACT:
            return SpotFacts.model_validate(read_solution(path).facts())
        return SpotFacts.model_validate_json(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CheckpointError(f"'{path}' is not a file of deepcfr spot --out: {where}: {first['msg']}.") from error
