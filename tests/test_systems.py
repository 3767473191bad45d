"""Every command without what Linux alone has and without a home; in the long test, nor a right to write the code."""

import re
import shlex
import socket
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from deepcfr.cli import COMMANDS
from systems import HOMELESS, SRC, WITHOUT, program, read_only_code

RUN = """
import io, shlex
from deepcfr.cli import main
for line in sys.argv[1:]:
    sys.argv, sys.stdin, status = ["deepcfr", *shlex.split(line)], io.StringIO("q\\n"), 0
    try:
        main()
    except SystemExit as end:
        status = end.code or 0
    print(f"== {status} {line}", file=sys.stderr)
"""
SPOT = "--board 'As Ks Qs Js Ts' --pot 10 --stacks 10 --dealer 22 --big-blind 33 --sizes 'river 50'"
FIT = "--advantage.steps 1 --average.steps 1"
WORKING = (
    "games",
    f"train kuhn --out trained --iterations 1 {FIT}",
    "resume trained --iterations 2",
    "solve kuhn --out tables --iterations 2 --solver cfr+",
    "abstract leduc --out buckets --buckets 2 4",
    "export trained --out small",
    "runs .",
    "models .",
    "exploitability tables",
    "error-budget trained --solve-iterations 2 --steps 1",
    "strategy trained K",
    f"spot {SPOT} --iterations 2 --out spot.json",
    "spots --list --flops 25",
    "hands --write-ranges ranges.toml",
    "match trained tables --hands 10",
    "tournament trained tables --hands 10",
    "lbr tables",
    "play tables --hands 1",
    "api",
    "dealer trained tables --hands 2 --log log",
    "report --run trained",
)
REFUSED = (  # after all that they need is loaded
    "serve trained --host 203.0.113.1",
    "acpc trained --port 1 --retries 0",
    "slumbot trained --address http://127.0.0.1:1",
    "review trained nothing.phh",
)


def test_the_lists_have_every_command() -> None:
    assert {shlex.split(line)[0] for line in WORKING + REFUSED} == set(COMMANDS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("read_only", [False, pytest.param(True, marks=pytest.mark.long)])  # when kernels are compiled
def test_commands_work_there(
    read_only: bool, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And at last a server, which says that it keeps no seats."""
    monkeypatch.chdir(tmp_path)
    code = read_only_code(tmp_path_factory.mktemp("code")) if read_only else SRC
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serve = f"serve kuhn --port {port}"
    with program(WITHOUT + RUN, *WORKING, *REFUSED, serve, source=code, **HOMELESS) as server:
        assert server.stderr is not None
        said = []
        while not said or not (address := re.search(rf"http://\S+:{port}\S*", said[-1])):
            said.append(server.stderr.readline())
            assert said[-1], said  # the process has not ended
        seat = Request(f"{address[0]}api/play/kuhn", b"{}", {"content-type": "application/json"})
        with urlopen(seat) as answer:
            assert answer.status == 201
        server.terminate()
        said += server.stderr
    assert server.returncode == 0
    assert "Traceback" not in "".join(said)
    statuses = [line.removesuffix("\n") for line in said if line.startswith("== ")]
    assert statuses == [f"== 0 {line}" for line in WORKING] + [f"== 2 {line}" for line in REFUSED] + [f"== 0 {serve}"]
    assert (
        "deepcfr: Seats and results are lost when the server stops: "
        "this user has no home, and DEEPCFR_STATE names no folder.\n"
    ) in said
