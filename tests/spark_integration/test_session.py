"""The start of a session, as far as it needs no JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from spark_integration.runtime.packages import SparkInstallation
from spark_integration.session import UNWANTED_LINE, missing_package_advice

# Starts a process with the filtered standard error, as a JVM is started; with a second argument it fails to start.
SCRIPT = """
import subprocess, sys
from spark_integration import session
with session._filtered_standard_error() as stderr:
    subprocess.run(["sh", "-c", sys.argv[1]], stderr=stderr, check=True)
    if sys.argv[2:]:
        raise SystemExit(3)
"""


def errors_of(command: str, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, command, *more], capture_output=True, text=True, env=environment, timeout=60
    )


def test_the_incubator_warning_is_left_out_and_nothing_else() -> None:
    unwanted = UNWANTED_LINE.decode()
    done = errors_of(f"printf 'one\\n{unwanted}two\\nthree' >&2", "fails")
    assert done.stderr == "one\ntwo\nthree"


def test_all_words_of_a_jvm_that_does_not_start_are_shown() -> None:
    words = "Unrecognized option: -X\n" * 10_000
    done = errors_of("yes 'Unrecognized option: -X' | head -10000 >&2; exit 1")
    assert done.returncode == 1
    assert done.stderr.startswith(words)


def test_advice_for_a_session_without_a_package_shows_how_to_start_it() -> None:
    advice = missing_package_advice("delta", SparkInstallation("4.0.0", "2.13", Path("jars")))
    assert advice == (
        "the Spark session that runs in this process lacks the package delta: stop it first, or start it with "
        "spark.jars.packages=io.delta:delta-spark_2.13:4.0.0,io.delta:delta-storage:4.0.0"
    )
