"""The commands that set-up compiles with."""

import shlex

import pytest

from deepcfr import cli
from deepcfr.cli import warm_up


def test_they_are_commands_in_folders_of_their_own() -> None:
    commands = [shlex.split(command) for command in (*warm_up._on_listed_games(), *warm_up._on_others())]
    outs = [command[command.index("--out") + 1] for command in commands if "--out" in command]
    assert len(commands) > 10
    assert len(outs) == len(set(outs))
    for command in commands:
        assert type(cli.parse_command(command)).__module__.startswith("deepcfr.cli.")


def test_a_command_that_fails_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        warm_up._run_all(["games", "exploitability nowhere"])
    assert end.value.code == 2
    said = capsys.readouterr()
    assert said.err.startswith("deepcfr exploitability nowhere\n")
    assert "nowhere" in said.err.splitlines()[-1]
    assert said.out == ""
