"""The seats of all persons, in memory and in a folder, from which they go on after a restart."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from deepcfr.errors import CheckpointError
from deepcfr.files import cannot_write, json_bytes, read_json, write_atomically
from deepcfr.web.table import WebSeat

MOST_SEATS = 2_000  # the least recently used are dropped
LOST_SEATS = "Seats and results are lost when the server stops"
_TOKEN_BYTES = 18


class Seats:
    """The seats of all persons by token and agent; no more than `most`.

    Each seat has a file in `folder` that only its owner can read, under a hash of its token; without a folder all seats are
    gone with the server. `warn` gets a sentence when seats can no longer be kept.
    """

    def __init__(self, folder: Path | None = None, warn: Callable[[str], None] = print, most: int = MOST_SEATS) -> None:
        self._folder, self._warn, self._most = folder, warn, most
        self._seats: OrderedDict[tuple[str, str], WebSeat] = OrderedDict()
        self._lock, self._writing = threading.RLock(), threading.Lock()  # the latter is taken last
        if folder is None:
            return
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            oldest_first = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            for path in oldest_first[: max(0, len(oldest_first) - most)]:
                path.unlink(missing_ok=True)
        except OSError as error:
            self._keep_no_more(cannot_write(folder, error))

    def find(
        self, token: str | None, agent: str, go_on: Callable[[dict[str, Any]], WebSeat] | None = None
    ) -> WebSeat | None:
        """Return the seat of a person against an agent; None if there is none.

        `go_on` makes a seat from the facts of one that was kept; a CheckpointError that it raises is told.
        """
        if not token:
            return None
        with self._lock:
            seat = self._seats.get((token, agent))
            if seat is not None:
                self._seats.move_to_end((token, agent))
            elif go_on and (path := self._path(token, agent)) and path.is_file():
                try:
                    seat = go_on(read_json(path))
                except CheckpointError as error:
                    self._warn(" ".join(error.problems))
                else:
                    self.put(token, seat)
            return seat

    def put(self, token: str, seat: WebSeat) -> None:
        """Store a seat; it replaces the person's earlier one against the same agent."""
        with self._lock:
            seat.changed = partial(self._keep, token, seat)
            self._seats[token, seat.agent] = seat
            self._seats.move_to_end((token, seat.agent))
            seat.changed()
            while len(self._seats) > self._most:
                oldest, _ = self._seats.popitem(last=False)
                if path := self._path(*oldest):
                    path.unlink(missing_ok=True)

    def known(self, token: str) -> bool:
        """Whether a token has a seat, so that this server must have issued it."""
        with self._lock:
            kept = any(self._folder.glob(f"{_hashed(token)}-*.json")) if self._folder else False
            return kept or any(owner == token for owner, _ in self._seats)

    def __len__(self) -> int:
        return len(self._seats)

    def _path(self, token: str, agent: str) -> Path | None:
        return self._folder / f"{_hashed(token)}-{agent}.json" if self._folder else None

    def _keep(self, token: str, seat: WebSeat) -> None:
        """Write the file of a seat, unless another one has taken its place."""
        path = self._path(token, seat.agent)
        if path is None:
            return
        facts = seat.facts()
        with self._writing:
            if self._seats.get((token, seat.agent)) is not seat:
                return
            try:
                write_atomically(path, json_bytes(facts))
            except CheckpointError as error:
                self._keep_no_more(error)

    def _keep_no_more(self, error: CheckpointError) -> None:
        self._folder = None
        self._warn(f"{LOST_SEATS}: {' '.join(error.problems)}")


def _hashed(token: str) -> str:
    return hashlib.blake2b(token.encode(), digest_size=16).hexdigest()


def new_token() -> str:
    """A new token, by which a browser finds its seats."""
    return secrets.token_urlsafe(_TOKEN_BYTES)
