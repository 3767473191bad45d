"""Serve the application until it is interrupted."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import torch
import uvicorn

from deepcfr.errors import ConfigError, DeepCFRError
from deepcfr.play.hand import Hand, adjusted_result
from deepcfr.policies.base import Player
from deepcfr.web.app import LOOPBACK, build_app
from deepcfr.web.site import Refusal, Site

ANY_HOST = ("*",)


def serve(site: Site, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve `site` until Ctrl-C on a port, or on any free one if it is 0; `say` gets the address when it is ready.

    Raises ConfigError for an address that is not available.
    """
    listening = _listen(host, port)
    torch.set_num_threads(1)  # the server itself has many threads
    hosts = (*LOOPBACK, host) if _is_loopback(host) else ANY_HOST
    config = uvicorn.Config(build_app(site, hosts), log_level="warning", access_log=False, server_header=False)
    threading.Thread(target=warm_up, args=(site,), daemon=True).start()
    shown = f"[{host}]" if ":" in host else host
    say(f"http://{shown}:{listening.getsockname()[1]}/  (Ctrl-C stops it)")
    if hosts is ANY_HOST:
        say(f"{host} can be reached from other machines, and nobody is asked who they are.")
    with listening, suppress(KeyboardInterrupt):  # Ctrl-C stops the server
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise ConfigError(f"--port must be from 0 to 65535, but is {port}.")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(256)  # early requests wait until the application is ready
    except (OSError, UnicodeError) as error:  # no name of a machine is what cannot be encoded
        raise ConfigError(f"{host}:{port} is not available: {getattr(error, 'strerror', None) or error}.") from error
    return listening


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def warm_up(site: Site) -> None:
    """Load every agent and play a hand with it, so that no request waits for compilation."""
    for run in site.runs.values():
        if not run.plays:
            continue
        try:
            _play_a_hand(run.agent().policy)
        except (Refusal, DeepCFRError):
            continue  # its page shows the reason


def _play_a_hand(policy: Player) -> None:
    hand = Hand(policy, 0, 0)
    while not hand.over:
        if hand.persons_turn:
            hand.act(hand.choices()[-1].action)
        else:
            hand.act_for_agent()
    adjusted_result(hand)
