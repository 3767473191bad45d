"""What goes wrong because of the user's input, as full sentences; the command line prints them and exits with status 2."""

from __future__ import annotations

from collections.abc import Sequence


class DeepCFRError(Exception):
    """An error that the user can act on. `problems` holds every problem found, one sentence each."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class ConfigError(DeepCFRError):
    """A configuration file, a command-line value or a piece of text that asks for something impossible."""


class GameError(DeepCFRError):
    """Rules that contradict themselves, a malformed game definition, or a game that does not offer what was asked."""


class CheckpointError(DeepCFRError):
    """A run folder or checkpoint that is damaged, belongs to another game, or cannot be written."""


class TrainingError(DeepCFRError):
    """Training that cannot go on, such as a loss that is not a number."""


class ClusterError(DeepCFRError):
    """A cluster that is not there, is too small, or runs other code."""


class WorkerLost(ClusterError):
    """A process of a run that ended, or is on a machine that is gone."""
