"""Many spots at once: read their file, and solve those that a folder does not have yet, in processes or on a Ray cluster.

A solved spot is a file of its folder. So a command that was stopped goes on where it was, and spots may be added.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import re
import signal
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from deepcfr.boards.kernels import reach_against
from deepcfr.core.errors import ConfigError
from deepcfr.core.files import read_json, require_writable, signed_json, text_of, write_atomically
from deepcfr.core.types import Doubles
from deepcfr.defaults import SPOT_EXPLOITABILITY, SPOT_ITERATIONS, SPOT_SIZES
from deepcfr.game.cards import all_hands, cards_text
from deepcfr.run.spot_table import SolvedSpot, SpotTable
from deepcfr.search.flops import all_flops, flop_subset
from deepcfr.search.spot import SPOT_TEXTS, Spot, parse_board
from deepcfr.search.spot_ranges import HOLDEM, parse_range
from deepcfr.search.spot_solver import SpotSolver, check_limits, goal_of, memory_for_spots

if TYPE_CHECKING:
    from deepcfr.cluster.ray_cluster import RayCluster  # Ray is optional

SOLVED, SOLUTIONS = "solved", "solutions"  # folders of a folder of spots
TABLE, REPORT = "table.csv", "report.html"
ALL_FLOPS = "all"
_NUMBERS = {"pot": float, "stacks": float, "rake": float, "cap": float, "min_bet": float, "weight": float,
            "iterations": int, "flops": int}  # fmt: skip
_OF_SPOT = tuple(name for name in SPOT_TEXTS if name != "line")
_NEEDED = ("pot", "stacks", "dealer", "big_blind")
_DEFAULTS = {"sizes": SPOT_SIZES, "exploitability": SPOT_EXPLOITABILITY, "iterations": SPOT_ITERATIONS, "weight": 1.0}
_KEYS = {*_OF_SPOT, *_DEFAULTS, "name", "boards", "flops"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
Spots = Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class SpotJob:
    """One of many spots, and when it is solved."""

    name: str  # also of its file
    weight: float  # how many deals of its board it stands for
    matchups: float  # pairs of hands that are possible together on its board, by their weights
    values: dict[str, Any]  # as `Spot.parse` reads them
    exploitability: float  # the goal, in percent of the pot
    iterations: int  # the most

    @property
    def wish(self) -> dict[str, Any]:
        """All that the result depends on."""
        return self.values | {"exploitability": self.exploitability, "iterations": self.iterations}

    def solver(self, most: float, threads: int) -> SpotSolver:
        """Prepare the solver. Raises GameError if it needs more than `most` bytes, and ConfigError for mistakes."""
        return SpotSolver(Spot.parse(**self.values), most, threads)


def read_jobs(spots: Spots, flops: int | str | None = None, say: Say = print) -> list[SpotJob]:
    """The spots of a file, or of what such a file has (docs/spots.md); `flops` takes the place of all boards in it.

    `say` gets a sentence for every value that is solved otherwise, and for flops that no pair of hands sees. Raises
    ConfigError for mistakes.
    """
    jobs: dict[str, SpotJob] = {}
    for given in _tables(spots):
        if unknown := sorted(given.keys() - _KEYS):
            raise ConfigError(
                f"A file of spots has no '{unknown[0]}': the names are {', '.join(sorted(_KEYS))}, spots."
            )
        if flops is not None:
            given = {name: value for name, value in given.items() if name not in ("board", "boards")} | {"flops": flops}
        for job in _jobs_of(_DEFAULTS | given, say):
            if job.name in jobs:
                raise ConfigError(f"Two spots are named '{job.name}': give each a name of its own.")
            jobs[job.name] = job
    if not jobs:
        raise ConfigError("There are no spots: give boards, or flops = 25.")
    return list(jobs.values())


def _tables(spots: Spots) -> list[dict[str, Any]]:
    """Each table of spots with what holds for all of them."""
    if isinstance(spots, Path):
        spots = _read(spots)
    if isinstance(spots, Mapping):
        common = {name: value for name, value in spots.items() if name != "spots"}
        spots = [common | dict(each) for each in _list("spots", spots.get("spots", [{}]), Mapping)]
    return [dict(each) for each in _list("spots", spots, Mapping)]


def _list(name: str, value: object, kind: type) -> Sequence[Any]:
    """A list of values of a kind. Raises ConfigError for anything else."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(each, kind) for each in value):
        raise ConfigError(f"'{name}' must be a list of {'tables' if kind is Mapping else 'texts'}, but is {value!r}.")
    return value


def _read(path: Path) -> Mapping[str, Any] | list[dict[str, Any]]:
    """The contents of a file of spots. Raises ConfigError for one that is neither TOML nor CSV."""
    try:
        text = text_of(path)
        if path.suffix.lower() != ".csv":
            return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"'{path}' is not TOML: {error}.") from error
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be read: {error.strerror}.") from error
    lines = text.splitlines(keepends=True)  # a range in quotes may have several lines
    # spreadsheets write semicolons where commas are decimal
    between = max(",;\t", key=lines[0].count) if lines else ","
    rows = csv.DictReader(lines, restkey="more", restval="", delimiter=between)
    names = [name.strip() for name in rows.fieldnames or ()]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"The first line of '{path}' has '{min(twice)}' twice.")
    found = []
    for number, row in enumerate(rows, 2):
        if row.pop("more", None):
            raise ConfigError(f"Line {number} of '{path}' has more cells than the first line: quote cells with commas.")
        plain = {name.strip(): text.strip() for name, text in row.items()}
        found.append({name: _cell(path, number, name, text) for name, text in plain.items() if text})
    return found


def _cell(path: Path, number: int, name: str, text: str) -> Any:
    """The value of a cell of CSV. Raises ConfigError for a text where a number should be."""
    if name not in _NUMBERS or text == ALL_FLOPS:
        return text
    try:
        return _NUMBERS[name](text)
    except ValueError as error:
        raise ConfigError(f"Line {number} of '{path}': '{text}' is no number for {name}.") from error


def _jobs_of(given: Mapping[str, Any], say: Say) -> Iterator[SpotJob]:
    """The spots of a table: one for each of its boards."""
    goal, values = given["exploitability"], {name: given[name] for name in _OF_SPOT if name in given}
    check_limits(goal, given["iterations"], 1)
    if lacking := [name for name in _NEEDED if name not in values]:
        raise ConfigError(f"Spots need {' and '.join(lacking)}.")
    ranges = np.stack([parse_range(values[name]) for name in ("dealer", "big_blind")])
    missing, told = 0, False
    for board, weight, drawn in _boards(given):
        cards = parse_board(board)
        pairs = matchups(ranges, cards)
        if drawn and not pairs:
            missing += 1
            continue
        flop = sorted(cards[:3], reverse=True)  # in any order it is one board, which two spots may not have
        plain = cards_text(HOLDEM, [*flop, *cards[3:]]).replace(" ", "")
        prefix = given.get("name", "")
        several = "board" not in given
        name = f"{prefix}-{plain}" if prefix and several else prefix or plain
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(f"The name {name!r} must be of letters, digits, points, hyphens and underscores.")
        job = SpotJob(name, weight, pairs, values | {"board": board}, goal_of(goal), given["iterations"])
        spot = Spot.parse(**job.values)
        if not told:  # notes are about ranges, amounts and sizes, which are the same on all boards
            for note in spot.notes:
                say(note)
        told = True
        yield job
    if missing:
        say(f"No two hands of the ranges are possible on {missing} of the flops, which are left out.")


def _boards(given: Mapping[str, Any]) -> Iterator[tuple[str, float, bool]]:
    """The boards of a table, each with its weight and whether it is one of drawn flops."""
    named = [name for name in ("board", "boards", "flops") if name in given]
    if len(named) != 1:
        raise ConfigError(f"Spots need one of board, boards and flops, but have {' and '.join(named) or 'none'}.")
    weight = given["weight"]
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < np.inf:
        raise ConfigError(f"A weight must be a number above 0, but is {weight!r}.")
    if "flops" in given:
        flops = all_flops() if given["flops"] == ALL_FLOPS else flop_subset(given["flops"])
        for board, copies in zip(flops.texts(), flops.weights.tolist(), strict=True):
            yield board, weight * copies, True
    for board in [given["board"]] if "board" in given else _list("boards", given.get("boards", []), str):
        yield board, float(weight), False


def matchups(ranges: Doubles, board: Sequence[int]) -> float:
    """The pairs of hands of two ranges, [2, 1326], that are possible on a board: the sum of the products of weights."""
    holes = all_hands(HOLDEM.num_cards, HOLDEM.hole_cards)
    live = ranges * ~np.isin(holes, board).any(1)
    return float(live[0] @ reach_against(live[1, None], holes)[0])


Result = tuple[SpotJob, dict[str, Any], dict[str, Any] | None]
"""A spot, its solution as a dictionary for JSON without single hands and, if it is asked for, with them."""


def solve_job(job: SpotJob, most: float | None, threads: int, whole: bool = False) -> Result:
    """Solve a spot with at most so many bytes, None: those of this machine; with `whole` the result has single hands.

    Raises GameError if that is too little memory, and KeyboardInterrupt at Ctrl-C.
    """
    solution = job.solver(memory_for_spots() if most is None else most, threads).solve_to_end(
        job.exploitability, job.iterations
    )
    return job, solution.facts(hands=False), solution.facts() if whole else None


class SpotFolder:
    """A folder of solved spots; None keeps them in memory only. Raises CheckpointError if nothing can be written there."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path:
            require_writable(path / SOLVED / "a")

    def solved(self, job: SpotJob, whole: bool) -> SolvedSpot | None:
        """The result of a spot, if it is there; with `whole` only if its whole solution is, too.

        Raises ConfigError if a spot of the name was solved with other values, and CheckpointError if it is damaged.
        """
        if not self.path or not (file := self.path / SOLVED / f"{job.name}.json").exists():
            return None
        found = read_json(file)
        if found.get("wish") != job.wish:
            raise ConfigError(f"'{file}' was solved with other values than '{job.name}' has: choose another folder.")
        if whole and not (self.path / SOLUTIONS / file.name).exists():
            return None
        return SolvedSpot(job.name, job.weight, job.matchups, found["solution"])

    def keep(self, job: SpotJob, solution: dict[str, Any], whole: dict[str, Any] | None) -> SolvedSpot:
        """Write the result of a spot, and the whole solution, if there is one, in the form of `deepcfr spot --out`."""
        if self.path:
            name = f"{job.name}.json"
            if whole:
                write_atomically(self.path / SOLUTIONS / name, json.dumps(whole).encode())
            write_atomically(self.path / SOLVED / name, signed_json({"wish": job.wish, "solution": solution}))
        return SolvedSpot(job.name, job.weight, job.matchups, solution)

    def write(self, table: SpotTable) -> None:
        """Write the table of the spots as CSV and as a page."""
        from deepcfr.run.spots_page import spots_page

        if self.path:
            write_atomically(self.path / TABLE, table.csv().encode())
            write_atomically(self.path / REPORT, spots_page(table, self.path.resolve().name).encode())


def solve_jobs(
    jobs: Sequence[SpotJob],
    folder: SpotFolder,
    *,
    processes: int = 1,
    threads: int = 1,
    cluster: RayCluster | None = None,
    whole: bool = False,
    on_solved: Callable[[int, int], object] | None = None,
) -> SpotTable:
    """Solve the spots that the folder does not have, and write and return the table of all of them.

    They are solved one after another, or in so many `processes` of this machine, or by the workers of a cluster; each uses
    so many `threads`, and their share of the memory that is free. `on_solved(done, total)` is told the spots that are
    solved. Raises GameError if a spot needs more memory, ConfigError and CheckpointError as `SpotFolder` does, and what a
    lost worker raises. At Ctrl-C what is being solved is lost, and the table has those that are solved.
    """
    check_limits(0, 1, threads)
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise ConfigError(f"The number of processes must be a whole number of 1 or more, but is {processes!r}.")
    found = {job.name: folder.solved(job, whole) for job in jobs}
    left = [job for job in jobs if not found[job.name]]
    if on_solved:
        on_solved(len(jobs) - len(left), len(jobs))
    most = memory_for_spots() / processes
    if left and not cluster:
        left[0].solver(most, threads)  # before processes start for what does not fit
    work = partial(solve_job, most=None if cluster else most, threads=threads, whole=whole)
    if cluster:
        results = cluster.map(partial(partial, work), left)
    else:
        results = _in_processes(work, left, processes) if processes > 1 else map(work, left)

    def table() -> SpotTable:
        return SpotTable(tuple(solved for solved in found.values() if solved), len(jobs))

    try:
        for job, *solution in results:
            found[job.name] = folder.keep(job, *solution)
            if on_solved:
                on_solved(sum(map(bool, found.values())), len(jobs))
    finally:
        if any(found.values()):
            folder.write(table())
    return table()


def _in_processes(work: Callable[[SpotJob], Result], jobs: Sequence[SpotJob], count: int) -> Iterator[Result]:
    """The results of `work` by processes of this machine, in the order in which they end.

    The processes end at once when this one leaves the function, or is killed: they see the pipe's other end close. Raises
    ConfigError if one of them is killed.
    """
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, context, _end_with, (watched,))
    try:
        for result in as_completed([pool.submit(work, job) for job in jobs]):
            yield result.result()
    except BrokenProcessPool as error:
        raise ConfigError(
            "A process ended before its spot was solved, as the system ends those that take too much memory: the same "
            "command with fewer --processes goes on."
        ) from error
    finally:
        held.close()
        pool.shutdown(cancel_futures=True)


def _end_with(watched: Connection) -> None:
    """End this process when the other end of a pipe closes; Ctrl-C, which all processes of a terminal get, does not."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait() -> None:
        watched.poll(None)
        os._exit(1)

    Thread(target=wait, daemon=True).start()
