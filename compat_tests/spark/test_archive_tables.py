"""Archives as Delta and Iceberg tables: counted by interval, read by the manifest, and whole after a kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT, Broker
from compat_tests.spark.releases import table_formats

LIMIT_SECONDS = 500


@pytest.mark.spark
@pytest.mark.parametrize("form", table_formats())
def test_tables(broker: Broker, name: str, tmp_path: Path, form: str) -> None:
    command = [sys.executable, "-m", "compat_tests.spark.archive_tables", form, broker.bootstrap, name, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
