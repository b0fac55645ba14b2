"""What the pages in docs/start show works as it stands there, and prints what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
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


@pytest.mark.parametrize("page", ["README.md", "docs/start/pytest.md"])
def test_the_fixture_works_as_the_pages_show_it(page: str, tmp_path: Path) -> None:
    (test,) = (text for kind, text in FENCE.findall((ROOT / page).read_text()) if "def test_" in text)
    (tmp_path / "test_orders.py").write_text(test)
    # An installed copy names the plugin to pytest.
    named = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    options = [] if named else ["-p", PLUGIN]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_orders.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
