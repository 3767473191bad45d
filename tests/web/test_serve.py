"""The commands `serve` and `api`, and the address that the server listens at."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from command_line import NOTE, deepcfr, problems
from deepcfr.errors import ConfigError
from deepcfr.web.app import build_app
from deepcfr.web.serve import _is_loopback, _listen, warm_up
from deepcfr.web.site import open_site
from web_site import MODELS, model, site


def test_the_server_answers_at_the_address_that_it_names_and_stops_at_an_interrupt() -> None:
    command = [sys.executable, "-m", "deepcfr.cli", "serve", str(MODELS / "kuhn"), "--port", "0", "--host", "127.0.0.2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as server:
        assert server.stderr is not None
        assert server.stderr.readline() == NOTE
        address = re.search(r"http://127\.0\.0\.2:\d+/", server.stderr.readline())
        assert address is not None
        with urllib.request.urlopen(address[0] + "api/agents") as answer:
            assert json.load(answer)["agents"][0]["game"] == "kuhn"
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


def test_the_api_is_described_without_a_run() -> None:
    document = deepcfr("api").json
    assert "/api/agents/{name}/strategy" in document["paths"]


def test_what_cannot_be_served_is_refused(tmp_path: Path) -> None:
    assert "does not hold a run" in problems(deepcfr("serve", tmp_path))[0]
    kuhn = MODELS / "kuhn"
    assert f"'{kuhn}' is given twice." in problems(deepcfr("serve", kuhn, kuhn))
    assert "--port must be from 0 to 65535, but is 99999." in problems(deepcfr("serve", kuhn, "--port", 99999))


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="is not available"):
        _listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError, match=r"a\.\.b:0 is not available"):
        _listen("a..b", 0)


def test_loopback_is_told_from_other_addresses() -> None:
    assert [_is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "192.168.1.2", "there")] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_names_are_plain_and_different(tmp_path: Path) -> None:
    folders = [tmp_path / "a" / "kuhn", tmp_path / "b" / "kuhn", tmp_path / "c" / "<odd name>&"]
    for folder in folders:
        folder.parent.mkdir()
        _copy(folder)
    names = list(open_site(folders, "average", pytest.fail).runs)
    assert names == ["kuhn", "kuhn-2", "odd-name"]


def _copy(folder: Path) -> None:
    folder.mkdir()
    for name in ("config.toml", "game.json"):
        (folder / name).write_bytes((MODELS / "kuhn" / name).read_bytes())


def test_an_agent_follows_the_checkpoints_of_its_run(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "kuhn", tmp_path / "kuhn")
    run = open_site([tmp_path / "kuhn"], "average", pytest.fail).run("kuhn")
    first = run.agent()
    assert run.agent() is first
    latest = tmp_path / "kuhn" / "checkpoints" / "latest"
    os.utime(latest, ns=(1, 1))
    second = run.agent()
    assert second is not first
    shutil.rmtree(latest.parent)  # as if it were being replaced
    assert run.agent() is second


def test_runs_without_a_policy_are_left_to_their_own_pages(tmp_path: Path) -> None:
    _copy(tmp_path / "young")
    young = open_site([tmp_path / "young"], "average", pytest.fail)
    warm_up(young)
    assert young.run("young")._agent is None
    trained = site(model("kuhn"))
    warm_up(trained)
    assert trained.run("kuhn")._agent is not None


def test_a_run_is_served_as_it_is_and_in_styles() -> None:
    kuhn = MODELS / "kuhn"
    players = (kuhn, f"deterministic:{kuhn}", f"tight:aggressive:{kuhn}", f"ensemble:sum:{kuhn}")
    served = open_site(players, "average", pytest.fail)
    assert list(served.runs) == ["kuhn", "deterministic-kuhn", "tight-aggressive-kuhn", "ensemble-sum-kuhn"]
    plain, sure, twice, alone = (run.agent() for run in served.runs.values())
    kinds = (plain.policy.kind, f"{plain.policy.kind}, deterministic", f"{plain.policy.kind}, aggressive, tight")
    assert (plain.policy.kind, sure.policy.kind, twice.policy.kind) == kinds
    assert alone.policy.kind == plain.policy.kind  # an ensemble of one is its member
    # what choices cost is against the style, and a style has no networks of its own
    assert sure.costs is not None
    assert sure.costs.policy is sure.policy
    assert sure.advantages is None
    assert plain.advantages is not None
    client = TestClient(build_app(served), base_url="http://127.0.0.1")
    shares = [
        client.get(f"/api/agents/{name}/strategy", params={"situation": "K / r"}).json()["probabilities"]
        for name in ("kuhn", "deterministic-kuhn")
    ]
    assert set(shares[1].values()) == {0.0, 1.0} != set(shares[0].values())
    state = client.post("/api/play/deterministic-kuhn", json={}).json()
    assert (state["agent"], state["game"]) == ("deterministic-kuhn", "kuhn")


def test_a_style_given_twice_or_of_no_single_run_is_refused() -> None:
    kuhn, leduc = MODELS / "kuhn", MODELS / "leduc"
    again = f"tight:{kuhn}/"
    assert problems(deepcfr("serve", f"tight:{kuhn}", kuhn, again)) == [f"'{again}' is given twice."]
    for name in ("scripted:call", f"ensemble:sum:{kuhn},{leduc}"):
        (sentence,) = problems(deepcfr("serve", name))
        assert sentence.startswith(f"'{name}' does not name one run: ")
    assert "is not a style of play" in problems(deepcfr("serve", f"mad:{kuhn}"))[0]
