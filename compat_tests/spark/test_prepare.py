"""`kafkacompat spark prepare` as users run it: the next session starts with the classes that it keeps."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.brokers import ROOT
from spark_integration.runtime.fetching import jar_folders
from spark_integration.runtime.packages import find_installation

pytestmark = pytest.mark.spark

SECONDS = 300
# Spark loads more than ten thousand classes.
MANY = 5_000


def run_python(cache: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done


def count_kept(log: Path) -> int:
    """Return the number of classes that a JVM took from the file, from its log of loaded classes."""
    return sum("shared objects file (top)" in line for line in log.read_text().splitlines())


def test_the_next_session_starts_with_the_classes_of_the_last(tmp_path: Path) -> None:
    [folder] = jar_folders(find_installation(), ["kafka"])
    shutil.copytree(folder, tmp_path / "kafkacompat" / "spark" / folder.name)
    script = (
        "import sys; from spark_integration.session import start_session; start_session('x', configs={'spark.driver."
    )
    script += "extraJavaOptions': f'-Xlog:class+load:file={sys.argv[1]}'}).range(10).count()"

    run_python(tmp_path, "-c", script, str(tmp_path / "before"))
    assert count_kept(tmp_path / "before") == 0
    done = run_python(tmp_path, "-m", "kafkacompat", "spark", "prepare", "--json")
    file = Path(json.loads(done.stdout)["class_data"])
    assert file.is_relative_to(tmp_path)
    run_python(tmp_path, "-c", script, str(tmp_path / "after"))
    assert count_kept(tmp_path / "after") > MANY

    made = file.stat()
    run_python(tmp_path, "-m", "kafkacompat", "spark", "prepare")
    assert file.stat() == made
