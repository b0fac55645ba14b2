"""The projects in examples/: their own tests, as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from compat_tests.brokers import ROOT

EXAMPLES = ROOT / "examples"
OPTIONS = ("-q", "-p", "kafkacompat.testing.plugin", "-p", "no:cacheprovider")


@pytest.mark.parametrize(("project", "tests"), [("orders", 14)])
def test_the_tests_of_an_example_pass(project: str, tests: int) -> None:
    # An installed plugin would be a second one.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-B", "-m", "pytest", *OPTIONS]
    done = subprocess.run(
        command, cwd=EXAMPLES / project, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests} passed" in done.stdout
