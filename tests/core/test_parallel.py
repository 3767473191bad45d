"""Work in threads."""

from threading import Event

import pytest

from deepcfr.core.errors import ConfigError
from deepcfr.core.parallel import Workers


def test_what_has_not_begun_at_an_error_never_begins() -> None:
    begun: list[int] = []
    go = Event()

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise ValueError
        assert go.wait(60)

    with Workers(2) as workers:
        with pytest.raises(ValueError):
            list(workers.map(work, range(8)))
        go.set()
        list(workers.map(lambda _: None, range(4)))  # comes after whatever was still to begin
    assert len(begun) <= 3  # the one that failed, and one in each thread


def test_no_threads_are_refused() -> None:
    with pytest.raises(ConfigError, match="must be at least 1, but is 0"):
        Workers(0)
