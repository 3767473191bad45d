"""Parameter files of TexasSolver: the spot that they describe, and one sentence for what cannot be read."""

import json
from pathlib import Path

import pytest

from command_line import deepcfr, problem
from deepcfr.core.errors import ConfigError
from deepcfr.interop.texas_solver import read_parameters
from deepcfr.search.spot import Spot
from deepcfr.search.spot_sizes import Sizes

FILE = """\
set_pot 20
set_effective_stack 90
set_board Ks,8h,3d,2c

set_range_ip KK,AKs:0.5
set_range_oop 88,A3s
set_bet_sizes oop,turn,bet,50
set_bet_sizes oop,turn,raise,60,100
set_bet_sizes oop,turn,allin
set_bet_sizes ip,turn,bet,33,75
set_bet_sizes oop,river,bet,66
set_bet_sizes oop,river,donk,25
set_allin_threshold 0.8
build_tree
set_thread_num 3
set_accuracy 0.5
set_max_iteration 40
set_print_interval 10
set_use_isomorphism 1
start_solve
set_dump_rounds 2
dump_result turn.json
"""


def test_a_file_is_the_spot_that_it_describes() -> None:
    found = read_parameters("\ufeff" + FILE.replace("\n", "\r\n"))
    assert (found["board"], found["pot"], found["stacks"]) == ("Ks,8h,3d,2c", 20, 90)
    assert (found["dealer"], found["big_blind"]) == ("KK,AKs:0.5", "88,A3s")
    assert (found["exploitability"], found["iterations"], found["dump"]) == ("0.5%", 40, "turn.json")
    sizes = Sizes.parse(found["sizes"])
    assert (sizes.cap, sizes.threshold) == (3, 80)
    kinds = [
        (1, 2, "bet"),
        (1, 2, "raise"),
        (0, 2, "bet"),
        (0, 2, "donk"),
        (1, 3, "bet"),
        (1, 3, "donk"),
        (0, 3, "bet"),
    ]
    bets = [[size.number for size in sizes.at(*kind)] for kind in kinds]
    assert bets == [[50], [60, 100], [33, 75], [33, 75], [66], [25], []]  # the dealer never has a donk bet


def test_without_sizes_there_is_all_in_alone_as_in_the_console_program() -> None:
    found = read_parameters("set_pot 10")
    which = Spot.parse("Ks8h3d2cTs", found["sizes"], pot=10, stacks=10, dealer="KK", big_blind="88")
    assert which.betting.tree.num_decisions == 4
    assert ("exploitability" in found, found["iterations"]) == (False, 100)


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("set_ante 3", "Line 2, 'set_ante 3', is no command of TexasSolver that can be read: build_tree, "),
        ("set_pot ten", "Line 2, 'set_pot ten', needs a number"),
        ("set_max_iteration nan", "Line 2, 'set_max_iteration nan', needs a number"),
        ("set_bet_sizes oop,flop,bet,x", "Line 2, 'set_bet_sizes oop,flop,bet,x', needs a number"),
        ("set_bet_sizes bb,flop,bet,50", r"needs a player \(oop, ip\), a street"),
        ("set_bet_sizes oop", r"needs a player \(oop, ip\), a street"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(line: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_parameters(f"# a comment\n{line}\n")


def test_the_command_solves_a_file_and_options_come_first(tmp_path: Path) -> None:
    file, out = tmp_path / "spot.txt", tmp_path / "solved.json"
    file.write_text(FILE + "set_board Ks,8h,3d,2c,Ts\n")
    command = ("spot", "--from-file", file, "--threads", 1, "--stacks", 45, "--iterations", 5)
    assert "'turn.json' of" in deepcfr(*command).err
    assert deepcfr(*command, "--out", out).status == 0
    stored = json.loads(out.read_text())
    assert (stored["board"], stored["pot"], stored["stacks"]) == ("Ks 8h 3d 2c Ts", 20, 45)
    assert (stored["dealer"], stored["big_blind"], stored["iterations"]) == ("AKs:0.5,KK", "88,A3s", 5)
    assert list(stored["decisions"][0]["frequencies"]) == ["check", "bet 13.2", "all-in"]
    file.write_text("set_pot 3\n")
    assert "A spot needs a board" in problem(deepcfr("spot", "--from-file", file))
    assert "No such file" in problem(deepcfr("spot", "--from-file", tmp_path / "none.txt"))
