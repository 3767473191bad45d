"""Check that a Ray cluster answers at an address, without joining it."""

from __future__ import annotations

import socket
import subprocess
import sys

from deepcfr.errors import ClusterError


def require_cluster(address: str, seconds: float) -> None:
    """Raise ClusterError unless a Ray cluster answers at HOST:PORT within `seconds` and accepts this machine.

    The check runs in a process that can be killed, because Ray would retry for minutes and print a line each time.
    """
    _knock(address)
    command = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", address]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise ClusterError(
            f"There is no Ray cluster at '{address}': it did not answer within {seconds} seconds."
        ) from error
    if found.returncode == 0:
        return
    if "AuthenticationError" in found.stderr:
        raise ClusterError(
            f"The Ray cluster at '{address}' asks for a token: set RAY_AUTH_MODE=token, and, unless there is the token of "
            "its machines in ~/.ray/auth_token here, RAY_AUTH_TOKEN."
        )
    reasons = [line.partition(": ")[2] for line in found.stderr.splitlines() if "Error: " in line]
    reason = reasons[-1].rstrip(".") if reasons else "it does not say why"
    raise ClusterError(f"'{address}' cannot be joined as a Ray cluster: {reason}.")


def _knock(address: str) -> None:
    """Raise ClusterError if nothing listens at the address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ClusterError(f"'{address}' is no address of a Ray cluster: it should read HOST:PORT.")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"Nothing answers at '{address}', so there is no Ray cluster: {error}.") from error
