"""`make run`: what it starts, and that its start is as quick as that of an installed copy."""

from __future__ import annotations

import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_arguments_reach_the_broker() -> None:
    # Under `make check` this is a make within a make, which would also print the directory that it enters and leaves.
    command = ["make", "--no-print-directory", "--dry-run", "--always-make", "run", "ARGS=--override num.partitions=6"]
    steps = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert steps[-1].endswith("bin/kafkacompat serve --override num.partitions=6")
    assert any("compileall -q kafkacompat wire handlers storage spark_integration" in step for step in steps)


def test_an_editable_install_needs_no_import_hook() -> None:
    """setuptools installs a plain .pth file where the root is the only folder of packages."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["options"]["package_dir"].strip() == "= ."
    for name in ("wire", "handlers", "storage"):
        assert (ROOT / "kafkacompat" / name).resolve() == ROOT / name
