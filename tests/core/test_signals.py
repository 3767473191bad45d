"""What ends a process otherwise than Ctrl-C ends a command in the same way."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from command_line import deepcfr
from deepcfr.core.signals import as_ctrl_c, catch_interrupt, received
from deepcfr.search.subgame import SubgameSolver

OTHERS = [signal.SIGTERM, signal.SIGHUP]
RIVER = ("--board", "Qs 7h 2c 9d 4s", "--pot", 10, "--stacks", 20, "--dealer", "AA,QQ", "--big-blind", "KK,22")


@pytest.mark.parametrize("number", OTHERS)
def test_a_signal_is_an_interrupt_while_a_command_runs_and_what_it_was_after(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), as_ctrl_c():
        signal.raise_signal(number)
    assert received == [number]
    assert signal.getsignal(number) is before
    with as_ctrl_c():
        assert received == []


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with as_ctrl_c(), catch_interrupt(pytest.fail) as interrupt:
            signal.raise_signal(signal.SIGHUP)
        assert (received, interrupt.pressed) == ([], False)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("second", OTHERS)
def test_a_second_signal_does_not_break_off_an_iteration_but_ctrl_c_does(second: signal.Signals) -> None:
    said: list[str] = []
    with as_ctrl_c(), catch_interrupt(said.append) as interrupt:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(second)
        assert interrupt.pressed
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert received == [signal.SIGTERM, second]
    with as_ctrl_c():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)  # does not break off what the first made a command save


def test_a_spot_that_is_ended_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = signal.SIGHUP
    run = SubgameSolver.run

    def struck(solver: SubgameSolver, *arguments: Any) -> None:
        run(solver, *arguments)
        if solver.iteration == 16:  # the first that are done together
            signal.raise_signal(number)

    monkeypatch.setattr(SubgameSolver, "run", struck)
    out = tmp_path / "spot.json"
    outcome = deepcfr("spot", *RIVER, "--exploitability", 0, "--out", out)
    assert outcome.status == 128 + number
    assert json.loads(out.read_text())["iterations"] == 16
    assert f"Wrote {out}.\n" in outcome.out
    assert outcome.err.endswith(f"deepcfr: ended by {number.name}.\n")
