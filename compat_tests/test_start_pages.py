"""What the pages in docs/start show works as it stands there, and prints what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT
from compat_tests.page_blocks import PageRun, find_blocks
from compat_tests.ports import free_port

PAGES = ROOT / "docs" / "start"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

PLUGIN = "kafkacompat.testing.plugin"

needs_registries = pytest.mark.quickstarts


@pytest.fixture
def run(broker_kind: str, tmp_path: Path) -> Iterator[PageRun]:
    if broker_kind != "kafkacompat":
        pytest.skip("the pages start this broker")
    port = free_port()
    page_run = PageRun(tmp_path, {":9092": f":{port}", "--port 9092": f"--port {port}"})
    yield page_run
    page_run.stop()


@pytest.mark.parametrize(
    "name", ["python", *(pytest.param(name, marks=needs_registries) for name in ("java", "node", "go", "spark"))]
)
def test_the_programs_print_what_the_page_shows(run: PageRun, name: str) -> None:
    page = (PAGES / f"{name}.md").read_text()
    printed = [output for output in map(run.run, find_blocks(page)) if output]
    shown = [text for kind, text in FENCE.findall(page) if not kind]
    assert shown
    assert [output for output in printed if output in shown] == shown


def test_the_fixture_works_as_the_pages_show_it(broker_kind: str, tmp_path: Path) -> None:
    if broker_kind != "kafkacompat":
        pytest.skip("the fixture starts this broker")
    pages = [(ROOT / page).read_text() for page in ("README.md", "docs/start/pytest.md")]
    programs = [text for page in pages for kind, text in FENCE.findall(page) if kind == "python"]
    tests = [text for text in programs if "def test_" in text]
    for number, text in enumerate(tests):
        (tmp_path / f"test_{number}.py").write_text(text)
    # An installed copy names the plugin to pytest.
    is_named = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    options = ["-q", "-p", "no:cacheprovider", *([] if is_named else ["-p", PLUGIN])]
    assert f"{len(tests)} passed" in _run_python(["-m", "pytest", *options], tmp_path)
    others = [text for text in programs if text not in tests]
    assert _run_python(["-c", "\n".join(others)], tmp_path).count("127.0.0.1:") == len(others)


def _run_python(arguments: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
