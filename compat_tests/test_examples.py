"""The projects in examples/: their own tests, as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
PLUGIN = () if entry_points(group="pytest11", name="kafkacompat") else ("-p", "kafkacompat.testing.plugin")
"""An installed plugin is loaded by itself, and a second time it is an error."""


@pytest.mark.parametrize(("project", "tests"), [("orders", 14)])
def test_the_tests_of_an_example_pass(project: str, tests: int) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *PLUGIN]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command,
        cwd=EXAMPLES / project,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests} passed" in done.stdout
