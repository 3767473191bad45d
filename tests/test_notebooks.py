"""The notebooks of docs/notebooks run from the top to the bottom, and what is stored in them is what they print."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
# For each notebook what makes it long, and something shorter.
SHORT_FITS = 'iterations=ITERATIONS, advantage={"steps": 60}, average={"steps": 100})'
SHORTER = {
    "leduc": {"ITERATIONS = 200": "ITERATIONS = 2", "iterations=ITERATIONS)": SHORT_FITS},
    "flop_holdem": {'Path("fhp")': 'Path("leduc")'},  # whose error budget takes a second
}


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output["text"] for output in cell["outputs"] if output["output_type"] == "stream")


def pictures(notebook: nbformat.NotebookNode) -> int:
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_every_notebook_is_here() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(SHORTER)


@pytest.mark.long
@pytest.mark.parametrize("name", ["leduc", "flop_holdem"])
def test_a_notebook_runs_to_its_end(name: str, tmp_path: Path) -> None:
    stored = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    for whole, short in SHORTER[name].items():
        assert sum(whole in cell.source for cell in notebook.cells) == 1
        for cell in notebook.cells:
            cell.source = cell.source.replace(whole, short)
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert pictures(notebook) == pictures(stored) > 0
    code = [(new, old) for new, old in zip(notebook.cells, stored.cells, strict=True) if new.cell_type == "code"]
    assert all(bool(printed(new)) == bool(printed(old)) for new, old in code)
    if name == "flop_holdem":
        before = [(new, old) for new, old in code if "BudgetSettings" not in new.source]
        assert [printed(new) for new, _ in before] == [printed(old) for _, old in before]
        assert "exact NashConv 20.57 mbb/g over all 1,755 flops" in printed(before[0][1])
    else:
        last = [line for new, _ in code for line in printed(new).splitlines() if line.startswith("iteration")][-1]
        assert 0 < float(last.split()[-2]) < 2_373.61
