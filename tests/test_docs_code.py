"""The code that the pages show and the files that they name exist."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("spark_integration", "kafkacompat")
FOLDERS = "kafkacompat|wire|handlers|storage|spark_integration|bench|compat_tests|tests"

PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOTTED_NAME = re.compile(r"`(spark_integration(?:\.\w+)*)\.(\w+)`")
NAMED_FILE = re.compile(rf"`((?:{FOLDERS})/[\w/.*-]+)`")
# docs/ARCHITECTURE.md abbreviates the paths of its map.
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "ARCHITECTURE.md"]


def imported_names(code: str) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for what a program imports from this project."""
    for statement in ast.walk(ast.parse(code)):
        if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith(PACKAGES):
            for alias in statement.names:
                yield str(statement.module), alias.name


def shown_names(text: str) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for what a page's programs import and for what its sentences name."""
    for code in PYTHON.findall(text):
        yield from imported_names(code)
    yield from DOTTED_NAME.findall(text)


SHOWN = sorted({name for page in PAGES for name in shown_names(page.read_text())})


@pytest.mark.parametrize(("module", "name"), SHOWN, ids=".".join)
def test_names_that_a_page_shows_exist(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    assert [name for name in NAMED_FILE.findall(page.read_text()) if not any(ROOT.glob(name))] == []


def test_names_of_this_project_are_found() -> None:
    code = "import os\nfrom spark_integration.cluster import Cluster as C, Other\nfrom pyspark import sql\n"
    assert list(imported_names(code)) == [
        ("spark_integration.cluster", "Cluster"),
        ("spark_integration.cluster", "Other"),
    ]
    assert list(shown_names("`spark_integration.a.b` and `kafkacompat.acks.after`")) == [("spark_integration.a", "b")]
    assert SHOWN
