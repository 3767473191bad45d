"""The list of mutants stays one of the program: each changes one place that is there, and names tests that are there."""

import pytest

from mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_mutant_changes_one_place(mutant: Mutant) -> None:
    assert (ROOT / "src/deepcfr" / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert (ROOT / "tests" / mutant.tests.split()[0]).exists()


def test_there_are_many_mutants() -> None:
    assert len({mutant.what for mutant in MUTANTS}) == len(MUTANTS) >= 40
