"""Solved spots as compact files that open in a second: NumPy's .npz, with the strategies of every street (docs/spots.md).

Boards are read when they are asked for, so a file is opened in a time that does not depend on its size.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from deepcfr.core.errors import CheckpointError, ConfigError, GameError
from deepcfr.core.files import replacing
from deepcfr.core.types import Floats
from deepcfr.search.spot import Spot
from deepcfr.search.spot_solution import Solution, shares_at
from deepcfr.search.spot_solver import SpotSolver
from deepcfr.search.spot_tree import SpotTree, board_name
from deepcfr.search.subgame import subgame

COMPACT = ".npz"
_VERSION = 1
_KEPT = ("iterations", "goal", "exploitability", "seconds", "bytes")  # of a solution
_LEVEL = 3  # of compression
_DAMAGES = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error)
_ABOUT, _VALUES, _EQUITIES = "about", "values", "equities"  # members beside the boards


def write_solution(path: Path, solution: Solution) -> None:
    """Write a solution with all its streets. Raises CheckpointError if the file cannot be written."""
    tree, root = solution.tree, solution.tree.street(())
    first = board_name(tree.solver.game, root.board)
    about = {"version": _VERSION, "spot": solution.spot.texts(), "locks": list(solution.locks)}
    about |= {name: getattr(solution, name) for name in _KEPT}
    with (
        replacing(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as file,
    ):
        _add(file, _ABOUT, np.frombuffer(json.dumps(about).encode(), np.uint8))
        _add(file, _VALUES, root.values.astype(np.float32))
        _add(file, _EQUITIES, root.equities.astype(np.float32))
        for name in tree.names:
            _add(file, name, tree.strategy(name).astype(np.float32 if name == first else np.float16))


def _add(file: zipfile.ZipFile, name: str, array: np.ndarray[Any, Any]) -> None:
    with file.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)


class _Members:
    """The members of a file, each read when it is asked for. Raises CheckpointError for a damaged one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = np.load(path, allow_pickle=False)
            if not isinstance(self._file, np.lib.npyio.NpzFile):
                raise ValueError("it is one array")
        except FileNotFoundError as error:
            raise CheckpointError(f"'{path}' cannot be read: {error.strerror}.") from error
        except _DAMAGES as error:
            raise self._damaged(error) from error

    def read(self, name: str) -> Floats:
        try:
            return np.asarray(self._file[name])
        except _DAMAGES as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> CheckpointError:
        return CheckpointError(f"'{self._path}' is no file of deepcfr spot --out, or is damaged: {error}.")

    @property
    def boards(self) -> list[str]:
        return [name for name in self._file.files if name not in (_ABOUT, _VALUES, _EQUITIES)]


def read_solution(path: Path, threads: int = 1) -> Solution:
    """Open a file of `write_solution`. Raises CheckpointError for another or a damaged one."""
    file = _Members(path)
    try:
        about = json.loads(file.read(_ABOUT).tobytes())
        if about["version"] != _VERSION:
            raise CheckpointError(f"'{path}' is of version {about['version']}, and this program reads {_VERSION}.")
        solver = SpotSolver(Spot.parse(**about["spot"]), inf, threads, about["locks"])
        kept = {name: about[name] for name in _KEPT}
        inside = subgame(solver.game, solver.rounds, solver.board, np.array([0]), keep=False)
        strategy, *rest = (
            file.read(name).astype(np.float64) for name in (board_name(solver.game, solver.board), _VALUES, _EQUITIES)
        )
        ends = np.arange(len(inside.rounds[solver.spot.round].round_leaves))
        street = solver.street_of(inside, solver.reach, strategy, ends, *rest)
    except (ValueError, KeyError, IndexError, TypeError, ConfigError, GameError) as error:
        raise CheckpointError(f"'{path}' is no file of deepcfr spot --out, or is damaged: {error}.") from error
    return Solution(
        spot=solver.spot,
        holes=solver.board.holes,
        decisions=street.decisions,
        locks=tuple(about["locks"]),
        tree=SpotTree(solver, file.boards, file.read, street),
        **kept | shares_at(solver.spot, street.decisions[0]),
    )
