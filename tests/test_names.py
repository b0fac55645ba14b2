"""The rules of docs/STYLE.md for names that a program can check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "kafkacompat",
    "wire",
    "handlers",
    "storage",
    "spark_integration",
    "bench",
    "compat_tests",
    "tests",
    "examples",
)
NO_NAMES = {"each", "found", "one", "told", "it", "what", "who", "there"}
BROKER = ("kafkacompat", "wire", "handlers", "storage")
MESSAGES = ROOT / "wire" / "apis"
"""The messages of the APIs have Kafka's names."""
IMPORTED_BY_TESTS = {("kafkacompat/testing/acls.py", "Acl"), ("kafkacompat/testing/rows.py", "Record")}
"""Classes that users import from kafkacompat.testing by the name of a class of the broker."""


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


def list_classes(path: Path) -> Iterator[str]:
    """Yield the names of the public classes of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_two_classes_of_the_broker_share_a_name() -> None:
    files: dict[str, list[str]] = {}
    for folder in BROKER:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if MESSAGES in path.parents:
                continue
            file = path.relative_to(ROOT).as_posix()
            for name in list_classes(path):
                if (file, name) not in IMPORTED_BY_TESTS:
                    files.setdefault(name, []).append(file)
    assert {name: homes for name, homes in files.items() if len(homes) > 1} == {}
