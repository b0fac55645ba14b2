"""The rules of docs/STYLE.md for names that a program can check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("kafkacompat", "wire", "handlers", "storage", "spark_integration", "bench", "compat_tests", "tests", "examples")
NO_NAMES = {"each", "found", "one", "told", "it", "what", "who", "there"}


def list_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each variable, parameter and function; attributes of classes are left out."""
    fields = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and node.simple}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


@pytest.mark.parametrize("folder", SOURCES)
def test_names_say_what_they_hold(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, name in list_names(ast.parse(path.read_text()))
        if name.lstrip("_") in NO_NAMES
    ]
    assert wrong == []
