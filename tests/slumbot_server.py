"""A server of Slumbot's HTTP protocol, whose hands pokerkit deals and referees; its bot plays at random."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from pokerkit import Automation, Mode, NoLimitTexasHoldem

STACK = 20_000
DEALT = (0, 3, 4, 5)  # board cards by round


class Table:
    """One hand after another; player 0 is the big blind, and the client's seat changes after every hand."""

    def __init__(self, seed: int, slashes: bool = True) -> None:
        """With `slashes` an all-in call is followed by a slash for every round without betting."""
        self.slashes = slashes
        self.random = np.random.default_rng(seed)
        self.token = "first"
        self.hands = self.total = 0
        self.requests: list[dict[str, Any]] = []

    def new_hand(self, _: dict[str, Any]) -> dict[str, Any]:
        own = (Automation.HOLE_DEALING, Automation.BOARD_DEALING, Automation.CARD_BURNING)
        automations = tuple(automation for automation in Automation if automation not in own)
        self.state = NoLimitTexasHoldem.create_state(
            automations, True, 0, (50, 100), 100, (STACK, STACK), 2, mode=Mode.CASH_GAME
        )
        self.deck = [f"{rank}{suit}" for rank in "23456789TJQKA" for suit in "cdhs"]
        self.random.shuffle(self.deck)
        for _player in range(2):
            self.state.deal_hole("".join(self.deck.pop() for _ in range(2)))
        self.holes = [[repr(card) for card in cards] for cards in self.state.hole_cards]
        self.client, self.action, self.old = self.hands % 2, "", ""
        self.hands += 1
        self.token = f"token-{self.hands}"
        return self.answer()

    def act(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            self.play(body["incr"])
        except (ValueError, KeyError) as error:
            return {"error_msg": f"Illegal action {body.get('incr')!r}: {error}"}
        return self.answer()

    def play(self, incr: str) -> None:
        """Apply an action of the player to act."""
        state, before = self.state, self.state.street_index
        owed = state.checking_or_calling_amount
        if incr == "f":
            state.fold()
        elif incr in ("k", "c"):
            if (incr == "k") != (owed == 0):
                raise ValueError("a check is no call")
            state.check_or_call()
        else:
            state.complete_bet_or_raise_to(int(incr[1:]))
        self.action += incr
        while state.status and state.actor_index is None:
            if state.can_burn_card():
                state.burn_card("??")
            if state.street_index != before or not state.actor_indices:
                self.action += "/"
            count = DEALT[self.action.count("/")] - DEALT[self.action.count("/") - 1]
            state.deal_board("".join(self.deck.pop() for _ in range(count)))

    def answer(self) -> dict[str, Any]:
        """Let the bot act until the client must, or the hand is over."""
        while self.state.status and self.state.actor_index != self.client:
            self.play(self.choice())
        over = not self.state.status
        found = {
            "old_action": self.old,
            "action": self.action if self.slashes else self.action.rstrip("/") if over else self.action,
            "client_pos": self.client,
            "hole_cards": self.holes[self.client],
            "board": [repr(card) for cards in self.state.board_cards for card in cards],
            "token": self.token,
        }
        self.old = self.action
        if not over:
            found["winnings"] = None
        else:
            won = int(self.state.payoffs[self.client])
            self.total += won
            found |= {"winnings": won, "session_total": self.total}
            if "f" not in self.action:
                found["bot_hole_cards"] = self.holes[1 - self.client]
        return found

    def choice(self) -> str:
        """The bot's action: random, and half of the raises small."""
        state, draw = self.state, self.random.random()
        owed = state.checking_or_calling_amount
        least, most = (
            state.min_completion_betting_or_raising_to_amount,
            state.max_completion_betting_or_raising_to_amount,
        )
        if draw < 0.35 and least is not None and most is not None:
            top = most if self.random.random() < 0.2 else min(most, 3 * least)
            return f"b{int(least + self.random.integers(top - least + 1))}"
        return "f" if draw > 0.9 and owed else "c" if owed else "k"


@contextmanager
def serving(table: Any) -> Iterator[str]:
    """The address of a server whose requests a table answers; bytes are sent as they are."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint = self.path.rsplit("/", 1)[-1]
            table.requests.append({"path": self.path, **body})
            answer = getattr(table, endpoint)(body)
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/slumbot/api"
        server.shutdown()
        thread.join()
