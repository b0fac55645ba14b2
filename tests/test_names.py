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
MESSAGES = (ROOT / "wire" / "apis", ROOT / "wire" / "consumer_protocol.py")
"""The messages of the protocol have Kafka's names."""
IMPORTED_BY_TESTS = {("kafkacompat/testing/acls.py", "Acl"), ("kafkacompat/testing/rows.py", "Record")}
"""Classes that users import from kafkacompat.testing by the name of a class of the broker."""


def list_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each variable, parameter, function, import and attribute of self; fields of classes are left out."""
    fields = {
        id(field.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            if isinstance(node.ctx, ast.Store) and id(node) not in fields:
                yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            yield node.lineno, node.name or ""
        elif isinstance(node, ast.alias):
            yield node.lineno, node.asname or ""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(each): found: list[int] = []", ["f", "each", "found"]),
        ("class C:\n    found: int\n    def __init__(self): self._found = 0", ["__init__", "self", "_found"]),
        ("try: pass\nexcept OSError as it: pass", ["it"]),
        ("import told as what", ["what"]),
        ("[one for one in rows]", ["one"]),
    ],
)
def test_names_of_every_kind_are_listed(source: str, names: list[str]) -> None:
    assert sorted(name for _, name in list_names(ast.parse(source)) if name) == sorted(names)


@pytest.mark.parametrize("folder", SOURCES)
def test_names_say_what_they_hold(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for line, name in list_names(ast.parse(path.read_text()))
        if name.lstrip("_") in NO_NAMES
    ]
    assert wrong == []


def list_classes() -> Iterator[tuple[str, str]]:
    """Yield (file, name) of the public classes of the broker, but for the messages of the protocol."""
    for folder in BROKER:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if any(path.is_relative_to(messages) for messages in MESSAGES):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield path.relative_to(ROOT).as_posix(), node.name


def test_no_two_classes_of_the_broker_share_a_name() -> None:
    classes = set(list_classes())
    assert classes >= IMPORTED_BY_TESTS
    files: dict[str, list[str]] = {}
    for file, name in sorted(classes - IMPORTED_BY_TESTS):
        files.setdefault(name, []).append(file)
    assert {name: homes for name, homes in files.items() if len(homes) > 1} == {}
