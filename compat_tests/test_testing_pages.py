"""The code of the pages about test brokers, run by pytest as a reader runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from compat_tests.brokers import ROOT

BLOCK = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONS = ("-q", "-p", "kafkacompat.testing.plugin", "-p", "no:cacheprovider")


PAGES = ("dropins.md", "releases.md")


def test_the_blocks_of_the_pages_pass(tmp_path: Path) -> None:
    text = "".join((ROOT / "docs/testing" / page).read_text() for page in PAGES)
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
    assert "10 passed, 1 skipped in " in done.stdout
