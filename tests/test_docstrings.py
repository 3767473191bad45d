"""Docstrings say what a thing does: every module has one, none begins with a question word, and modules they name exist."""

import ast
import re
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


def test_modules_that_texts_name_are_in_their_packages() -> None:
    parents: dict[str, set[str]] = {}
    for path in FILES:
        parents.setdefault(path.stem, set()).add(path.parent.name)
    for path in FILES:
        for package, module in re.findall(r"`([a-z_]+)\.([a-z_]+)[`.]", path.read_text()):
            if package not in ("deepcfr", "evaluation"):  # the latter is a section of a configuration
                assert package in parents.get(module, {package}), f"{path}: {package}.{module}"
