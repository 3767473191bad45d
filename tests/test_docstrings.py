"""Docstrings say what a thing does: every module has one, and none begins with a question word or only refers elsewhere."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(path for folder in ("src", "experiments") for path in (ROOT / folder).rglob("*.py"))
FORBIDDEN = {"What", "Whatever", "Which", "Who", "How", "See"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstrings_begin_plainly(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "the module has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                assert text.split()[0] not in FORBIDDEN, f"{getattr(node, 'name', 'module')}: {text}"
