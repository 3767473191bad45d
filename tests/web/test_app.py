"""The commands `serve` and `api`, and the address that the server listens at."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from queue import Queue
from unittest.mock import Mock

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient

from command_line import NOTE, deepcfr, problems
from deepcfr.core.errors import ConfigError
from deepcfr.run.listing import model_facts
from deepcfr.web.app import _listen, build_app, end_spots, serve, warm_up
from deepcfr.web.schema import SpotState
from deepcfr.web.site import Site, open_site
from deepcfr.web.spot_shelf import SpotShelf
from web_site import MODELS, model, site

SMALL = {  # a river whose players mix, so no number of iterations ends at 0
    "board": "2s 2h 2d 3c 3d", "pot": 10, "stacks": 10, "dealer": "KK", "big_blind": "AA,QQ", "sizes": "river 100",
    "exploitability": 0, "iterations": 100_000,
}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["SIGHUP", *(pytest.param(name, marks=pytest.mark.long) for name in ("SIGINT", "SIGTERM"))]
)
def test_the_server_answers_at_its_address_and_ends_at_a_signal_with_the_spot_kept(name: str, tmp_path: Path) -> None:
    place = ["--port", "0", "--host", "127.0.0.2", "--spots", str(tmp_path)]
    command = [sys.executable, "-m", "deepcfr.cli", "serve", str(MODELS / "kuhn"), *place]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as server:
        assert server.stderr is not None
        assert server.stderr.readline() == NOTE
        (address,) = re.findall(r"http://127\.0\.0\.2:\d+", server.stderr.readline())
        with httpx.Client(base_url=f"{address}/api") as client:
            assert client.get("/agents").json()["agents"][0]["game"] == "kuhn"
            spot = client.post("/spots", json=SMALL).json()["name"]
            while not client.get(f"/spots/{spot}/state").json()["iterations"]:
                pass
        server.send_signal(getattr(signal, name))
        said = server.stderr.read()
        assert server.wait(60) == 0
    assert f"The spot '{spot}' is kept in '{tmp_path}'." in said
    assert "Traceback" not in said
    assert 0 < json.loads((tmp_path / f"{spot}.json").read_text())["iterations"] < 100_000


def test_a_spot_that_is_kept_nowhere_is_told_at_the_end() -> None:
    shelf, told = SpotShelf(), []
    shelf._jobs["turn"] = Mock(problem="")
    shelf._jobs["turn"].state.return_value = SpotState(
        name="turn", solved=False, iterations=3, exploitability_percent=None
    )
    end_spots(shelf, told.append)
    assert told == ["The spot 'turn' is not solved and nothing of it is kept: --spots FOLDER keeps what was found."]


Served = Callable[..., int]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The server of `serve` itself on an address, in a thread; its port."""
    servers: list[uvicorn.Server] = []
    threads: list[threading.Thread] = []
    run = uvicorn.Server.run
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: servers.append(self) or run(self, sockets))

    def start(host: str = "127.0.0.1", port: int = 0, site: Site | None = None) -> int:
        said: Queue[str] = Queue()
        threads.append(threading.Thread(target=serve, args=(site or Site({}), host, port, said.put), daemon=True))
        threads[-1].start()
        return int(re.findall(r":(\d+)/", said.get(timeout=60))[0])

    yield start
    for server in servers:
        server.should_exit = True
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("listening", "named", "status"),
    [
        ("127.0.0.1", "localhost:{}", 200),
        ("127.0.0.2", "127.0.0.2:{}", 200),
        ("127.0.0.1", "evil.example", 400),  # a name that leads here, as in DNS rebinding
        ("127.0.0.1", "127.0.0.1.evil.example:{}", 400),
        ("localhost", "evil.example", 400),
        ("0.0.0.0", "table.example:{}", 200),
    ],
)
def test_a_server_on_loopback_answers_to_no_other_name(served: Served, listening: str, named: str, status: int) -> None:
    port = served(listening)
    address = "127.0.0.2" if listening == "127.0.0.2" else "127.0.0.1"
    assert httpx.get(f"http://{address}:{port}/", headers={"Host": named.format(port)}).status_code == status


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:8321", "http://127.0.0.1:8321", 422),
        ("127.0.0.1:8321", None, 422),  # not a browser
        ("127.0.0.1:8321", "http://127.0.0.1:8322", 403),
        ("127.0.0.1", "http://127.0.0.1:8321", 403),
        ("127.0.0.1:8321", "http://localhost:8321", 403),
        ("127.0.0.1:8321", "null", 403),
        ("127.0.0.1:8321", "", 403),
        ("127.0.0.1:8321", "http://[", 403),
    ],
)
def test_only_a_page_of_this_host_and_port_may_change_something(host: str, origin: str | None, status: int) -> None:
    client = TestClient(build_app(Site({})))
    headers = {"host": host} | ({} if origin is None else {"origin": origin})
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = client.request(method, "/api/spots", headers=headers, json={})
        assert answer.status_code == (status if method == "POST" or status == 403 else 405)


@pytest.mark.parametrize(
    ("limit", "sent", "status", "words"),
    [
        ("REQUEST_SECONDS", b"", b"", b""),
        ("REQUEST_SECONDS", b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"", b""),
        ("REQUEST_SECONDS", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HT", b"HTTP/1.1 200 ", b""),
        ("BODY_SECONDS", b"POST /api/spots HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
         b"HTTP/1.1 408 ", b"The request did not end within 0.2 seconds."),
    ],
)  # fmt: skip
def test_half_a_request_is_answered_with_a_sentence_or_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch, limit: str, sent: bytes, status: bytes, words: bytes
) -> None:
    monkeypatch.setattr(f"deepcfr.web.app.{limit}", 0.2)
    with socket.create_connection(("127.0.0.1", served()), timeout=60) as connection:
        connection.sendall(sent)
        heard = b""
        while piece := connection.recv(65_536):
            heard += piece
    assert heard.startswith(status)
    assert heard.count(b"HTTP/1.1 ") == bool(status)
    assert words in heard


def test_seats_are_kept_for_the_next_server_on_the_same_port(
    served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEEPCFR_STATE", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    again, random = site(), site()
    served(port=port, site=again)
    served(site=random)
    assert (again.seats, random.seats) == (tmp_path / "seats" / str(port), None)
    assert again.seats.is_dir()


def test_what_cannot_be_served_is_refused(tmp_path: Path) -> None:
    kuhn, leduc = MODELS / "kuhn", MODELS / "leduc"
    assert "does not hold a run" in problems(deepcfr("serve", tmp_path))[0]
    assert f"'{kuhn}' is given twice." in problems(deepcfr("serve", kuhn, kuhn))
    assert problems(deepcfr("serve", f"tight:{kuhn}", kuhn, f"tight:{kuhn}/")) == [f"'tight:{kuhn}/' is given twice."]
    assert "--port must be from 0 to 65535, but is 99999." in problems(deepcfr("serve", kuhn, "--port", 99999))
    for name in ("scripted:call", f"ensemble:sum:{kuhn},{leduc}"):
        assert problems(deepcfr("serve", name))[0].startswith(f"'{name}' does not name one run: ")
    assert "is not a style of play" in problems(deepcfr("serve", f"mad:{kuhn}"))[0]


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="is not available"):
        _listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError, match=r"a\.\.b:0 is not available"):
        _listen("a..b", 0)


def test_names_are_plain_and_different_and_a_run_without_a_policy_has_no_agent(tmp_path: Path) -> None:
    folders = [tmp_path / "a" / "kuhn", tmp_path / "b" / "kuhn", tmp_path / "c" / "<odd name>&"]
    for folder in folders:
        folder.mkdir(parents=True)
        for name in ("config.toml", "game.json"):
            (folder / name).write_bytes((MODELS / "kuhn" / name).read_bytes())
    young = open_site(folders, "average", pytest.fail)
    assert list(young.runs) == ["kuhn", "kuhn-2", "odd-name"]
    warm_up(young)
    assert young.run("kuhn")._agent is None
    trained = site(model("kuhn"))
    warm_up(trained)
    assert trained.run("kuhn")._agent is not None


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


def test_a_run_is_served_as_it_is_and_in_styles() -> None:
    kuhn = MODELS / "kuhn"
    players = (kuhn, f"deterministic:{kuhn}", f"tight:aggressive:{kuhn}", f"ensemble:sum:{kuhn}")
    served = open_site(players, "average", pytest.fail)
    assert list(served.runs) == ["kuhn", "deterministic-kuhn", "tight-aggressive-kuhn", "ensemble-sum-kuhn"]
    plain, sure, twice, alone = (run.agent() for run in served.runs.values())
    kind = plain.policy.kind
    assert (sure.policy.kind, twice.policy.kind) == (f"{kind}, deterministic", f"{kind}, aggressive, tight")
    assert alone.policy.kind == kind  # an ensemble of one is its member
    # what choices cost is against the style, and a style has no networks of its own
    assert sure.costs is not None
    assert sure.costs.policy is sure.policy
    assert sure.advantages is None
    assert plain.advantages is not None
    client = TestClient(build_app(served), base_url="http://127.0.0.1")
    asked = client.get("/api/agents/deterministic-kuhn/strategy", params={"situation": "K / r"}).json()
    assert set(asked["probabilities"].values()) == {0.0, 1.0}
    told = {one["name"]: one["strength"] for one in client.get("/api/agents").json()["agents"]}
    assert "perfect opponent" in told["kuhn"]
    assert "plays another strategy" in told["deterministic-kuhn"]
    assert "perfect opponent" not in told["deterministic-kuhn"]  # which boasts not with the figures of its run


def test_every_agent_is_told_from_the_others_by_what_its_records_say() -> None:
    shipped = TestClient(build_app(open_site((), "own", pytest.fail)), base_url="http://127.0.0.1")
    facts = model_facts(MODELS)
    cards = unescape(shipped.get("/").text).split('<li class="panel">')[1:]
    assert len(cards) == len(facts) == len(set(cards))
    for card, known in zip(cards, facts, strict=True):
        assert f'<h3>{known["title"]} <small class="muted">{Path(known["model"]).name}</small></h3>' in card
        assert all(f"{known[part]}" in card for part in ("about", "strength", "made"))
