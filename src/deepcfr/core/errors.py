"""Errors caused by the user's input, as full sentences; the command line prints them and exits with status 2."""

from __future__ import annotations

from collections.abc import Sequence


class DeepCFRError(Exception):
    """An error that the user can act on. `problems` holds every problem found, one sentence each."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class ConfigError(DeepCFRError):
    """An impossible value in a configuration file, on the command line or in a text."""


def require_least(least: int, numbers: dict[str, int | None]) -> None:
    """Raise ConfigError naming the first of some numbers that is below `least`; None is no number."""
    for name, value in numbers.items():
        if value is not None and value < least:
            raise ConfigError(f"{name} must be at least {least}, but is {value}.")


class GameError(DeepCFRError):
    """Contradictory rules, a malformed game definition, or a game that does not support the request."""


class CheckpointError(DeepCFRError):
    """A run folder or checkpoint that is damaged, belongs to another game, or cannot be written."""


class NoPolicy(CheckpointError):
    """A solver does not have the policy, or not yet; the message begins with a verb, whose subject is the run.

    `{run}` in the message stands for the run's folder.
    """


class TrainingError(DeepCFRError):
    """Training that cannot continue, for example because a loss is not a number."""


class HiddenAgent(UserWarning):
    """A folder that has the name of a shipped agent, and is meant by it."""


class ClusterError(DeepCFRError):
    """A cluster that cannot be reached, is too small, runs other code, or loses a worker again and again."""
