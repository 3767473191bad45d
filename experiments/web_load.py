"""Measure response times of `deepcfr serve`, with one player and with many, and its memory over many hands.

    python -m experiments.web_load        # writes experiments/results/web_load.json
    python -m experiments.web_load --players 5 --seconds 5 --hands 100 --out /tmp/web_load.json

The server is a separate process on loopback; its clients share the machine, so their work is part of all times. They send
the requests of the pages: read the table, send the form of an action, follow the redirect to the table, load the review,
and get the next hand. In the crowd they pause before an action, `--think` seconds on average; in a second crowd,
`without_pauses`, each sends a request as soon as the last one is answered, which gives the server's maximum load. The seed
determines deals and choices. The time of a request is from its first byte to its last; in crowds all kinds of requests
count. Memory is that of a second, new server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from deepcfr.games.cards import card_text
from deepcfr.games.rules import PokerRules
from deepcfr.machine import resident_memory
from deepcfr.runs.folder import RunFolder
from deepcfr.runs.metrics import environment

BETTING = "rc/c"  # betting before a decision after the flop
PATIENCE = 60.0  # timeout of a request in seconds
LONGEST_START = 600.0  # seconds
ALONE = 100  # hands of one player
GRIDS = 50
TOGETHER = 8  # players during the measurement of memory
SHOWN_ERRORS = 5


@dataclass(frozen=True)
class Server:
    """A running server."""

    base: str
    process: int
    started: float  # start time of its process, by `perf_counter`
    up: float  # time at which it printed its address


@contextmanager
def serving(run: Path) -> Iterator[Server]:
    """`deepcfr serve` of a run on any free port, stopped at the end."""
    command = [sys.executable, "-m", "deepcfr.cli", "serve", str(run), "--port", "0"]
    started = time.perf_counter()
    with tempfile.NamedTemporaryFile() as said, subprocess.Popen(command, stderr=said) as process:
        try:
            base = _address(process, Path(said.name))
            yield Server(base, process.pid, started, time.perf_counter())
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    """The address that a starting server prints on standard error. Raises SystemExit if it does not."""
    deadline = time.perf_counter() + LONGEST_START
    while time.perf_counter() < deadline and process.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:\d+(?=/)", said.read_text())
        if found:
            return found[0]
        time.sleep(0.005)
    raise SystemExit(f"The server did not start: {said.read_text()}")


class Failed(Exception):
    """A request without the expected answer."""


@dataclass
class Record:
    """Seconds of requests by kind, errors as sentences, and numbers of started and finished hands."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    begun: int = 0
    hands: int = 0

    def facts(self) -> dict[str, Any]:
        """The record as JSON values, in milliseconds."""
        every = [value for values in self.seconds.values() for value in values]
        return {
            "hands": self.hands,
            "errors": len(self.errors),
            "first_errors": self.errors[:SHOWN_ERRORS],
            "requests": spread(every),
            "by_kind": {kind: spread(values) for kind, values in sorted(self.seconds.items())},
        }


def spread(seconds: list[float]) -> dict[str, float | int]:
    """The number of times, and their quantiles in milliseconds."""
    if not seconds:
        return {"count": 0}
    middle, late, most = (1000 * float(np.quantile(seconds, at)) for at in (0.5, 0.99, 1.0))
    return {"count": len(seconds), "p50_ms": middle, "p99_ms": late, "max_ms": most}


class Player:
    """A simulated player at a browser, who takes uniformly random actions."""

    def __init__(self, client: httpx.AsyncClient, agent: str, seed: int, think: float, record: Record) -> None:
        self.client, self.agent, self.think, self.record = client, agent, think, record
        self.chance = random.Random(seed)
        self.seed = seed

    async def sit_down(self) -> None:
        """Start a session whose hands follow from the seed."""
        await self._ask("new", "POST", f"/play/{self.agent}/new", 303, data={"seed": str(self.seed)})

    async def hand(self) -> None:
        """Play the hand that is on to its end, look at its review, and ask for the next one."""
        self.record.begun += 1
        page = await self._table()
        while actions := re.findall(r'name="action" value="([^"]+)"', page):
            if self.think:
                await asyncio.sleep(self.chance.expovariate(1 / self.think))
            fields = _hidden(page) | {"action": self.chance.choice(actions)}
            await self._ask("act", "POST", f"/play/{self.agent}/act", 303, data=fields)
            page = await self._table()
        fields = _hidden(page)
        if "data-load" in page:
            await self._ask("review", "GET", f"/play/{self.agent}/review?hand={fields['hand']}&part=true", 200)
        await self._ask("next", "POST", f"/play/{self.agent}/next", 303, data=fields)
        self.record.hands += 1

    async def hands_while(self, going: Callable[[], bool]) -> None:
        """Play hand after hand; after an error, the table is asked for again, as after a reload."""
        while going():
            try:
                await self.hand()
            except Failed as error:
                self.record.errors.append(str(error))
                await asyncio.sleep(0.1)

    async def _table(self) -> str:
        return (await self._ask("table", "GET", f"/play/{self.agent}", 200)).text

    async def _ask(self, kind: str, method: str, path: str, expected: int, **more: Any) -> httpx.Response:
        start = time.perf_counter()
        try:
            answer = await self.client.request(method, path, **more)
        except httpx.HTTPError as error:
            raise Failed(f"{method} {path}: {type(error).__name__} {error}") from error
        self.record.seconds[kind].append(time.perf_counter() - start)
        if answer.status_code != expected:
            raise Failed(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer


def _hidden(page: str) -> dict[str, str]:
    """The hidden fields of the table's form."""
    return dict(re.findall(r'<input type="hidden" name="(hand|decision)" value="(\d+)">', page))


async def play(
    base: str, agent: str, players: int, seed: int, think: float, record: Record, going: Callable[[], bool]
) -> None:
    """Some players at once, each with a connection and a seat of its own."""
    async with AsyncExitStack() as stack:
        people = []
        for number in range(players):
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=base, timeout=PATIENCE))
            people.append(Player(client, agent, seed + number, think, record))
        for person in people:
            await person.sit_down()
        await asyncio.gather(*(person.hands_while(going) for person in people))


def first_pages(server: Server) -> tuple[str, dict[str, float]]:
    """The agent's name, and the seconds of a new server's first pages, in order."""
    with httpx.Client(base_url=server.base, timeout=LONGEST_START) as client:
        found = {"process_to_address_s": server.up - server.started}
        client.get("/").raise_for_status()
        found["address_to_first_page_s"] = time.perf_counter() - server.up
        agent: str = client.get("/api/agents").json()["agents"][0]["name"]
        start = time.perf_counter()
        client.post(f"/play/{agent}", follow_redirects=True).raise_for_status()
        found["first_table_s"] = time.perf_counter() - start
    return agent, found


def grids(base: str, agent: str, rules: PokerRules, count: int, seed: int) -> dict[str, float | int]:
    """Milliseconds of grids after the flop, each on a different board."""
    chance, seconds = random.Random(seed), []
    with httpx.Client(base_url=base, timeout=PATIENCE) as client:
        for _ in range(count):
            cards = chance.sample(range(rules.num_cards), sum(rules.board_cards))
            board = "".join(card_text(rules, card) for card in cards)
            start = time.perf_counter()
            client.get(f"/strategy/{agent}", params={"betting": BETTING, "board": board}).raise_for_status()
            seconds.append(time.perf_counter() - start)
    return spread(seconds)


def wait_for_costs(base: str, agent: str) -> float:
    """Seconds until the values of the first round, which the first review needs, are computed."""
    start = time.perf_counter()
    with httpx.Client(base_url=base, timeout=PATIENCE) as client:
        state = client.post(f"/api/play/{agent}", json={"seed": 0}).raise_for_status().json()
        while not state["over"]:
            action = {"hand": state["hand"], "decision": state["decision"], "action": state["actions"][0]["token"]}
            state = client.post(f"/api/play/{agent}/act", json=action).raise_for_status().json()
        while "being computed" in (client.get(f"/api/play/{agent}/review", params={"hand": 0}).json()["note"] or ""):
            time.sleep(0.5)
    return time.perf_counter() - start


def crowd(base: str, agent: str, players: int, seconds: float, seed: int, think: float) -> dict[str, Any]:
    """Many players at once for some seconds; unfinished hands are then played to their end."""
    record = Record()
    end = time.perf_counter() + seconds
    asyncio.run(play(base, agent, players, seed, think, record, lambda: time.perf_counter() < end))
    return {"players": players, "seconds": seconds, "think_s": think, **record.facts()}


def memory(server: Server, agent: str, most: int, seed: int) -> dict[str, Any]:
    """Resident bytes of a server after 100 hands and after every further thousand."""
    record, found = Record(), [{"hands": 0, "resident_bytes": resident_memory(server.process)}]
    marks = [mark for mark in (100, *range(1_000, most, 1_000)) if mark < most]
    for place, mark in enumerate([*marks, most]):

        def going(mark: int = mark) -> bool:
            return record.begun < mark

        asyncio.run(play(server.base, agent, TOGETHER, seed + place * TOGETHER, 0.0, record, going))
        found.append({"hands": record.hands, "resident_bytes": resident_memory(server.process)})
        print(f"{record.hands:,} hands: {found[-1]['resident_bytes'] / 1e6:.1f} MB")
    return {
        "players": TOGETHER,
        "errors": len(record.errors),
        "first_errors": record.errors[:SHOWN_ERRORS],
        "at": found,
    }


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """All figures as one object."""
    rules = RunFolder.open(asked.run).source
    if not isinstance(rules, PokerRules):
        raise SystemExit(f"{asked.run} is of {rules.name}, but ranges need a poker game with a listed tree.")
    facts: dict[str, Any] = {"environment": environment("cpu", 1), "run": str(asked.run), "seed": asked.seed}
    with serving(asked.run) as server:
        agent, facts["start"] = first_pages(server)
        print(facts["start"])
        facts["first_round_costs_s"] = wait_for_costs(server.base, agent)
        facts["grid"] = {"betting": BETTING, **grids(server.base, agent, rules, asked.grids, asked.seed)}
        print(facts["grid"])
        alone = Record()
        asyncio.run(play(server.base, agent, 1, asked.seed, 0.0, alone, lambda: alone.begun < asked.alone))
        facts["alone"] = alone.facts()
        print(facts["alone"]["by_kind"])
        facts["crowd"] = crowd(server.base, agent, asked.players, asked.seconds, asked.seed, asked.think)
        facts["without_pauses"] = crowd(server.base, agent, asked.players, asked.seconds, asked.seed, 0.0)
        for crowded in ("crowd", "without_pauses"):
            print(crowded, {key: facts[crowded][key] for key in ("hands", "errors", "requests")})
    with serving(asked.run) as server:
        agent, _ = first_pages(server)
        facts["memory"] = memory(server, agent, asked.hands, asked.seed)
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("models/fhp"), help="a run or model with a flop")
    parser.add_argument("--players", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--think", type=float, default=2.0, help="mean seconds that players think before an action")
    parser.add_argument("--hands", type=int, default=10_000, help="over which the memory is looked at")
    parser.add_argument("--alone", type=int, default=ALONE, help="hands of one player without others")
    parser.add_argument("--grids", type=int, default=GRIDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("experiments/results/web_load.json"))
    asked = parser.parse_args()
    facts = measure(asked)
    asked.out.write_text(json.dumps(facts, indent=2) + "\n")
    print(f"Wrote {asked.out}.")


if __name__ == "__main__":
    main()
