"""`python -m deepcfr.cli.warm_up`: compile the kernels of the commands; `make setup` runs it.

Kernels are compiled for the types of their arguments, whatever their sizes, and kept on disk. So tiny runs of the commands
in a temporary folder compile them all.
"""

from __future__ import annotations

import io
import shlex
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

from deepcfr.cli import main

_FIT = "--advantage.steps 1 --average.steps 1"
_TRAIN = f"--iterations 1 {_FIT}"
_BET_SIZES = """\
stack = 16
bet_sizes = [[4, 8], [50, 100]]
measure = ["chips", "pot"]
max_raises = [2, 2]
all_in = [false, true]
blinds = [1, 2]
first_player = [0, 1]
num_ranks = 3
num_suits = 2
hole_cards = 1
board_cards = [0, 1]
unit_chips = 2
unit = "big blinds"
milli_unit = "mbb/g"
"""


def _on_listed_games() -> Iterator[str]:
    """Commands on games whose betting is listed; later ones use the folders of earlier ones."""
    yield f"train kuhn --out kuhn {_TRAIN}"
    for kind in ("external", "outcome"):
        sampled = f"--sampling.kind {kind} --sampling.traversals 20 --cfr.weighting linear --cfr.keep-networks 1"
        yield f"train leduc --out {kind} {_TRAIN} {sampled}"
    boards = "--sampling.kind public-chance --sampling.boards 2 --sampling.samples 8"
    yield f"train fhp-mini --out mini {_TRAIN} --cfr.first-round table {boards}"
    yield f"train fhp-mini --out towers {_TRAIN} --network.kind two-tower {boards}"
    precisions = {"cfr+": "float32", "pcfr+": "float32", "linear-cfr": "int16", "dcfr": "float64"}
    for algorithm, precision in precisions.items():
        yield f"solve leduc --out {algorithm} --solver {algorithm} --precision {precision} --iterations 2"
    yield "exploitability external --policy sd-cfr"
    yield "match external cfr+ --hands 50"
    yield "match resolve:external external --hands 5 --search.rounds 0 1 --search.iterations 2"
    yield "lbr external"


def _on_others() -> Iterator[str]:
    """Commands on spots, bet sizes, abstractions and games of OpenSpiel, which share few kernels with those above."""
    yield "solve sizes.toml --out bets --solver mccfr --traversals 20 --iterations 2"
    textures = "--abstraction texture --initial win-rates"
    yield f"solve hunl-ladder --out texture --solver mccfr {textures} --traversals 20 --iterations 2"
    for sampler in ("external", "outcome"):
        yield f"solve leduc --out mccfr-{sampler} --solver mccfr --sampler {sampler} --traversals 9 --iterations 2"
    yield "abstract fhp-mini --out buckets --buckets 4 8"
    for bot in ("bets", "texture", "hunl-200"):
        yield f"match {bot} random:{bot} --hands 20"
    yield "lbr bets --hands 5"
    yield "strategy fhp 'As Kd / r / Qs 7h 2c'"
    yield "spot --board 'Qs 7h 2c 9d 4s' --pot 10 --stacks 20 --dealer AA,KK --big-blind QQ,77 --exploitability 20%"
    if find_spec("pyspiel"):
        for solver in ("cfr+", "egt"):
            yield f"solve openspiel:kuhn_poker --out openspiel-{solver} --solver {solver} --iterations 2"


def warm_up() -> None:
    """Run the commands, in two processes. Raises SystemExit after printing the output of a command that fails."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        list(processes.map(_run_all, ([*_on_listed_games()], [*_on_others()])))


def _run_all(commands: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("sizes.toml").write_text(_BET_SIZES, encoding="utf-8")
        for command in commands:
            _run(command)


def _run(command: str) -> None:
    said = io.StringIO()
    try:
        with patch("sys.argv", ["deepcfr", *shlex.split(command)]), redirect_stdout(said), redirect_stderr(said):
            main()
    except SystemExit as end:
        if end.code:
            sys.stderr.write(f"deepcfr {command}\n{said.getvalue()}")
            raise


if __name__ == "__main__":
    warm_up()
