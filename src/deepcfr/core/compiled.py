"""numba, with a place that can be written for compiled kernels. The package's other modules import numba from here.

numba keeps kernels beside the code. Where that cannot be written, as in containers, they are kept in this library's
cache, and where that cannot be written either, they are compiled again in every process.
"""

from __future__ import annotations

import importlib
import logging
import tempfile
from pathlib import Path
from typing import Any

import numba as nb
from numba.core.dispatcher import Dispatcher
from numba.np import linalg

from deepcfr.core.files import cache_folder

__all__ = ["nb"]


def _can_write(folder: Path | None) -> bool:
    """Whether files can be made in a folder, which is made too."""
    if folder is None:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _find_place() -> None:
    """Set numba's folder, if its own choice cannot be written, or keep it from keeping kernels."""
    config: Any = nb.config  # its names are set as it is loaded
    chosen, cache = config.CACHE_DIR, cache_folder()
    if _can_write(Path(chosen) if chosen else Path(__file__).with_name("__pycache__")):
        return
    if _can_write(cache and cache / "kernels"):
        config.CACHE_DIR = str(cache and cache / "kernels")
        return
    kernel: Any = Dispatcher
    kernel.enable_caching = lambda _: None  # it raises RuntimeError where nothing can be written
    logging.getLogger(__name__).warning(
        "Compiled code cannot be kept, so every start compiles it: let DEEPCFR_CACHE name a folder that can be written."
    )


def _load_functions() -> None:
    """Load numba's own functions, but not SciPy's BLAS, which takes a third of a second and which no kernel here uses.

    numba tries to import it only to see that it is there. It does so again when it compiles a kernel that needs it.
    """
    ensure, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    importlib.import_module("numba.np.arraymath")
    linalg.ensure_blas = ensure


_find_place()
_load_functions()
