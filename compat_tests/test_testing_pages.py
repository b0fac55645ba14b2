"""The code of the pages about test brokers, run by pytest as a reader runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT

BLOCK = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONS = ("-q", "-p", "kafkacompat.testing.plugin", "-p", "no:cacheprovider")


@pytest.mark.parametrize(
    ("page", "outcome"), [("dropins.md", "3 passed"), ("releases.md", "7 passed, 1 skipped")], ids=lambda value: value
)
def test_the_blocks_of_a_page_pass(page: str, outcome: str, tmp_path: Path) -> None:
    text = (ROOT / "docs/testing" / page).read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python")
    for name, block in blocks:
        (tmp_path / name).write_text(block)
    # An installed plugin would be a second one.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", *OPTIONS]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{outcome} in " in done.stdout
